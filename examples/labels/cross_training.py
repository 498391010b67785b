"""
Cross-training on growing data
==============================

With wrong labels, the number of support vectors grows with the rows. Cross-training trains
models on subsets to find the rows to remove, and its number of vectors hardly grows.
"""

import matplotlib.pyplot as plt

from slimsvm import SVC, CrossTrainedSVC
from slimsvm.datasets import two_gaussians

n_rows = 8_000  # tests: 240
X, y = two_gaussians(n_rows, random_state=0)
X_test, y_test = two_gaussians(10_000, random_state=1)
sizes = [n_rows // 8, n_rows // 4, n_rows // 2, n_rows]

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
for marker, (name, model) in zip(
    "os",
    {
        "SVC()": SVC(C=1, gamma=0.5),
        "CrossTrainedSVC()": CrossTrainedSVC(gamma=0.5, random_state=0),
    }.items(),
):
    fits = [model.__class__(**model.get_params()).fit(X[:n], y[:n]) for n in sizes]
    axes[0].plot(sizes, [fit.n_basis_ for fit in fits], marker + "-", label=name)
    axes[1].plot(
        sizes,
        [100 * (1 - fit.score(X_test, y_test)) for fit in fits],
        marker + "-",
        label=name,
    )
for ax, label in zip(axes, ("vectors of the model", "test error (%)"), strict=True):
    ax.set(xlabel="training rows", ylabel=label)
    ax.set_ylim(0, 1.1 * ax.get_ylim()[1])
    ax.legend()
