"""
Learned scales of the features
==============================

Two features separate the classes and eight are noise. One gamma for all features cannot
tell them apart. ``gamma="learn"`` learns one for each, together with the vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import SVC
from slimsvm.plots import MetricDisplay

n_rows = 1_000  # tests: 200
rng = np.random.default_rng(0)
X, y = make_moons(2 * n_rows, noise=0.2, random_state=0)
X = np.hstack([X, rng.normal(size=(len(X), 8))])
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
names = ["moons 1", "moons 2", *(f"noise {k}" for k in range(1, 9))]

clf = SVC(gamma="learn", max_basis=20, random_state=0).fit(X_train, y_train)
MetricDisplay.from_estimator(clf, feature_names=names)

# %%
# The exact SVM benefits from learned scales, too: ``solver="exact"`` learns them with
# few vectors first.

models = {
    "SVC()": SVC(),
    'SVC(C="validate",\ngamma="validate")': SVC(
        C="validate", gamma="validate", random_state=0
    ),
    'SVC(gamma="learn",\nsolver="exact")': SVC(
        gamma="learn", solver="exact", random_state=0
    ),
    'SVC(gamma="learn",\nmax_basis=20)': clf,
}
errors = [
    100 * (1 - model.fit(X_train, y_train).score(X_test, y_test))
    for model in models.values()
]
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
bars = ax.barh(list(models), errors)
ax.bar_label(bars, fmt="%.1f", padding=3)
ax.set(xlabel="test error (%)", xlim=(0, 1.15 * max(errors)))
ax.invert_yaxis()
