"""
Convergence and certificates
============================

A solver with a bound has two curves: how far its objective is above the best bound, and
how far its bounds are below the best objective. The distance to the optimum is at most
their sum; no reference solution is needed.
"""

import matplotlib.pyplot as plt

from slimsvm import LASVM, SVC, ExactCuts
from slimsvm.datasets import checkerboard
from slimsvm.plots import ConvergenceDisplay

n_rows = 3_000  # tests: 200
X, y = checkerboard(n_rows, random_state=0)
cuts = SVC(C=1, gamma=10, solver=ExactCuts(tol_relative=0.001)).fit(X, y)
online = SVC(C=1, gamma=10, solver=LASVM(tol_relative=0.001), random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4), layout="constrained")
for ax, name, clf in zip(axes, ["ExactCuts", "LASVM"], [cuts, online], strict=True):
    ConvergenceDisplay.from_estimator(clf, ax=ax)
    ax.set_title(name)

# %%
# A certificate bounds how far the objective of any model is from the exact SVM's optimum.
# It does not need the exact SVM, whose test error is drawn for comparison.

sizes = [10, 20, 40, 80]  # tests: [10]
gaps, errors = [], []
X_test, y_test = checkerboard(5_000, random_state=1)
for k in sizes:
    small = SVC(C=1, gamma=10, max_basis=k, random_state=0).fit(X, y)
    gaps.append(small.certificate(X, y).gap)
    errors.append(100 * (1 - small.score(X_test, y_test)))

figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ax.plot(errors, gaps, "o-")
for k, error, gap in zip(sizes, errors, gaps):
    ax.annotate(f"{k} vectors", (error, gap), xytext=(8, -4), textcoords="offset points")
exact = SVC(C=1, gamma=10).fit(X, y)
ax.axvline(
    100 * (1 - exact.score(X_test, y_test)),
    color="black",
    linestyle="--",
    label="exact SVM's test error",
)
ax.set(
    xlabel="test error (%)",
    ylabel="gap: distance to the optimum, at most",
    xlim=(0, max(errors) * 1.2),
)
ax.legend()
