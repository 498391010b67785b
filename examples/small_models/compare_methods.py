"""
Ways to a small model, compared
===============================

Six ways to choose the same number of vectors: learned together with their coefficients
(``Refine``), found one after another by subspace pursuit (``CPSP``), fixed before training
(``LowRank``), kept within a budget row by row (``BSCA``, ``BSGD``), or made from a trained
SVM (``compress``).
"""

import matplotlib.pyplot as plt

import slimsvm
from slimsvm import BSCA, BSGD, CPSP, SVC, LowRank, Refine
from slimsvm.datasets import checkerboard

n_rows = 2_000  # tests: 200
sizes = [10, 20, 40, 80]  # tests: [10]
X, y = checkerboard(n_rows, random_state=0)
X_test, y_test = checkerboard(5_000, random_state=1)
exact = SVC(C=10, gamma=10).fit(X, y)

# %%
# One curve for each method. The dashed line is the exact SVM with all its vectors.

methods = {"Refine": Refine, "CPSP": CPSP, "LowRank": LowRank, "BSCA": BSCA, "BSGD": BSGD}
errors = {
    name: [
        1
        - SVC(C=10, gamma=10, solver=solver(k), random_state=0)
        .fit(X, y)
        .score(X_test, y_test)
        for k in sizes
    ]
    for name, solver in methods.items()
}
errors["compress"] = [
    1 - slimsvm.compress(exact, k, X=X, max_iter=100, random_state=0).score(X_test, y_test)
    for k in sizes
]

figure, ax = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
for marker, (name, values) in zip("os^DvP", errors.items()):
    ax.plot(sizes, [100 * value for value in values], marker + "-", label=name)
full = 100 * (1 - exact.score(X_test, y_test))
ax.axhline(full, color="black", linestyle="--", label=f"exact, {exact.n_basis_} vectors")
ax.set(
    xscale="log",
    yscale="log",
    xlabel="vectors",
    ylabel="test error (%)",
    title="Checkerboard",
)
ax.set_xticks(sizes, sizes)
ax.set_xticks([], minor=True)
ax.set_yticks([5, 10, 20, 40], [5, 10, 20, 40])
ax.set_yticks([], minor=True)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
