"""
How training time grows with the rows
=====================================

The exact SVM is quick on a few thousand rows, but its number of vectors grows with the
rows. With ``max_basis=50``, the number of steps that learn the vectors does not depend on
the rows. Which one is faster depends on the data, too. Times were measured on the computer
that built this page.
"""

import time

import matplotlib.pyplot as plt

from slimsvm import SVC
from slimsvm.datasets import checkerboard

n_rows = 64_000  # tests: 640
X, y = checkerboard(n_rows, random_state=0)
X_test, y_test = checkerboard(10_000, random_state=1)
sizes = [n_rows // 32, n_rows // 8, n_rows // 2, n_rows]
models = {
    "SVC()": SVC(gamma=10),
    "SVC(max_basis=50)": SVC(gamma=10, max_basis=50, random_state=0),
}

found = {}
for name, clf in models.items():
    for n in sizes:
        start = time.process_time()
        clf.fit(X[:n], y[:n])
        seconds = time.process_time() - start
        found.setdefault(name, []).append(
            (seconds, clf.n_basis_, 100 * (1 - clf.score(X_test, y_test)))
        )

figure, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
for ax, label, k in zip(
    axes, ("processor seconds of fit", "vectors", "test error (%)"), range(3), strict=True
):
    for marker, (name, values) in zip("os", found.items()):
        ax.plot(sizes, [value[k] for value in values], marker + "-", label=name)
    ax.set(xscale="log", xlabel="thousands of training rows", ylabel=label)
    ax.set_xticks(sizes, [f"{n / 1000:g}" for n in sizes])
    ax.set_xticks([], minor=True)
    ax.set_ylim(0, ax.get_ylim()[1])
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
