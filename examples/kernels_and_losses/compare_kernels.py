"""
Kernels, compared
=================

Seven kernels on the same rows. RBF, Matérn and the rational quadratic kernel are round.
The Laplacian kernel has edges along the axes. With an additive kernel the two features do
not interact. The boundary of a linear kernel is straight.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from slimsvm import SVC
from slimsvm.kernels import Additive
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 400  # tests: 100
X, y = make_moons(2 * n_rows, noise=0.2, random_state=0)
models = {
    'kernel="rbf"': SVC(C=10, gamma=2),
    'kernel="matern32"': SVC(C=10, gamma=2, kernel="matern32"),
    'kernel="rational_quadratic"': SVC(C=10, gamma=2, kernel="rational_quadratic"),
    'kernel="laplacian"': SVC(C=10, gamma=1, kernel="laplacian"),
    "kernel=Additive(2)": SVC(C=10, kernel=Additive(2)),
    'kernel="poly"': SVC(C=10, kernel="poly", degree=3, gamma=1, coef0=1),
    'kernel="linear"': SVC(C=10, kernel="linear"),
}

figure, axes = plt.subplots(4, 2, figsize=(8, 14), layout="constrained")
for ax, (name, clf) in zip(axes.flat, models.items()):
    clf.fit(X[:n_rows], y[:n_rows])
    DecisionSurfaceDisplay.from_estimator(
        clf, X[n_rows:], y[n_rows:], grid_resolution=101, max_points=200, ax=ax
    )
    handles, names = ax.get_legend_handles_labels()
    ax.get_legend().remove()
    error = 100 * (1 - clf.score(X[n_rows:], y[n_rows:]))
    ax.set_title(f"{name}\n{error:.1f} % errors, {clf.n_basis_} vectors")
axes[3, 1].set_axis_off()
axes[3, 1].legend(handles, [*names[:-1], "vectors"], loc="center", fontsize="large")
