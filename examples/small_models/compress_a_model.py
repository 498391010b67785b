"""
Compressing a finished model
============================

``compress`` takes a fitted SVM, of scikit-learn or ours, and finds a model with few
vectors whose scores are as close as possible. It needs no labels.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles
from sklearn.svm import SVC as LibSVC

import slimsvm
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 1_000  # tests: 200
X, y = make_circles(n_rows, noise=0.15, factor=0.5, random_state=0)
large = LibSVC(C=1, gamma=1).fit(X, y)
small = slimsvm.compress(large, max_basis=8, X=X, random_state=0)

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.8), layout="constrained")
for ax, name, clf in zip(
    axes, ["scikit-learn's SVC", "compressed"], [large, small], strict=True
):
    DecisionSurfaceDisplay.from_estimator(clf, X, y, max_points=300, ax=ax)
    ax.set_title(name)

# %%
# The loss of accuracy: the root mean squared difference of scores, and the predictions that
# changed.

report = small.compression_
print(f"{report.n_basis_before} vectors before, scores differ by {report.score_error:.3f}")
print(
    "rows with another prediction:",
    (small.predict(X) != large.predict(X)).sum(),
    "of",
    len(X),
)
