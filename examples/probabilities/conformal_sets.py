"""
Sets that have the right class
==============================

With ``calibration_size=0.2`` a fifth of the rows is held out, and ``predict_set`` gives
every class that may be right. The share of rows whose set misses is at most alpha,
whatever the model is. Hard rows get larger sets.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from slimsvm import SVC
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 1_500  # tests: 300
X, y = make_blobs(2 * n_rows, centers=[[0, 0], [2.2, 0], [1.1, 2]], random_state=0)
X_train, y_train, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
clf = SVC(gamma=0.5, calibration_size=0.2, random_state=0).fit(X_train, y_train)

# %%
# On the left the sets for alpha = 0.1: where classes overlap there are two or three. On
# the right what is promised and what was found, and how many classes a set has. (The
# promise is one over the draw of all rows: one model may miss a little more or less.)

figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
sizes = clf.predict_set(X_test, alpha=0.1).sum(axis=1)
DecisionSurfaceDisplay.from_estimator(clf, X_test, max_points=1, ax=axes[0])
for collection in axes[0].collections[1:]:
    collection.remove()
for size, marker, colour in (
    (0, "x", "black"),
    (1, ".", "grey"),
    (2, "o", "black"),
    (3, "*", "black"),
):
    if (sizes == size).any():
        rows = X_test[sizes == size]
        axes[0].scatter(
            *rows.T, s=8 * (1 + size), marker=marker, color=colour, label=f"sets of {size}"
        )
axes[0].legend(loc="upper right")
axes[0].set_title("Sets of test rows, and regions of the predicted class")

alphas = np.linspace(0.01, 0.4, 40)
sets = [clf.predict_set(X_test, alpha=alpha) for alpha in alphas]
missed = [1 - each[np.arange(len(y_test)), y_test].mean() for each in sets]
axes[1].plot(alphas, alphas, "--", color="black", label="promised, at most")
axes[1].plot(alphas, missed, label="sets without the right class")
axes[1].set(xlabel="alpha", ylabel="share of test rows")
other = axes[1].twinx()
other.plot(
    alphas,
    [each.sum(axis=1).mean() for each in sets],
    "-.",
    color="C1",
    label="classes in a set",
)
other.set_ylabel("classes in a set, mean")
handles = [*axes[1].get_lines(), *other.get_lines()]
axes[1].legend(handles=handles, loc="upper center")
