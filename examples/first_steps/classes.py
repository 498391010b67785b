"""
A classifier, and a small one
=============================

You have rows and two classes. ``SVC()`` trains the same model as scikit-learn's
``SVC``. ``max_basis=15`` trains a model with at most 15 vectors, whose positions are
learned. A certificate says how far each model is from the optimum.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

from slimsvm import SVC
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 3_000  # tests: 300
X, y = make_moons(n_rows, noise=0.25, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

exact = SVC(C=10, gamma=2).fit(X_train, y_train)
small = SVC(C=10, gamma=2, max_basis=15, random_state=0).fit(X_train, y_train)

# %%
# The regions hardly differ; the small model needs a few per cent of the vectors. The
# surface shows the score: it is 0 on the solid line, where the classes meet.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.8), layout="constrained")
for ax, name, clf in zip(axes, ["SVC()", "SVC(max_basis=15)"], [exact, small], strict=True):
    DecisionSurfaceDisplay.from_estimator(clf, X_test, y_test, max_points=300, ax=ax)
    error = 100 * (1 - clf.score(X_test, y_test))
    ax.set_title(f"{name}\n{clf.n_basis_} vectors, test error {error:.1f} %")

# %%
# A bound on the relative distance between the objective and the exact SVM's optimum:

for clf in (exact, small):
    print(f"{clf.n_basis_} vectors: {clf.certificate(X_train, y_train).gap:.1e}")
