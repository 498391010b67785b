"""
A kernel of your own
====================

A function of two blocks of rows is enough: ``kernel=function``. This kernel is periodic,
so the regression predicts beyond the last row.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVR


def periodic(A, B):
    """Near where phases are near: a kernel of period 1."""
    return np.exp(-2 * np.sin(np.pi * (A - B.T)) ** 2)


n_rows = 120  # tests: 60
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 3, (n_rows, 1)), axis=0)
y = (
    np.sin(2 * np.pi * X[:, 0])
    + 0.5 * np.cos(4 * np.pi * X[:, 0])
    + 0.2 * rng.normal(size=n_rows)
)
grid = np.linspace(0, 6, 601)[:, None]

figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.scatter(X, y, s=12, color="grey", label="rows")
ax.plot(
    grid,
    SVR(kernel=periodic, C=10).fit(X, y).predict(grid),
    linewidth=2,
    label="kernel=periodic",
)
ax.plot(
    grid,
    SVR(gamma=5, C=10).fit(X, y).predict(grid),
    "--",
    linewidth=2,
    label='kernel="rbf"',
)
ax.set(xlabel="x", ylabel="y", ylim=(-2.4, 2.4))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
