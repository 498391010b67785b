"""
A hard limit on vectors, row by row
===================================

BSGD and BSCA go through the rows one at a time. Each step may add a vector; above the
limit, two are merged or one is removed. The weight degradation says how much this
changed the model. The finish solves for the coefficients of the remaining vectors.
"""

import matplotlib.pyplot as plt

from slimsvm import BSCA, BSGD, SVC
from slimsvm.datasets import checkerboard

n_rows = 2_000  # tests: 300
X, y = checkerboard(n_rows, random_state=0)
X_test, y_test = checkerboard(5_000, random_state=1)

errors = {}
for solver, name in ((BSGD, "BSGD"), (BSCA, "BSCA")):
    for maintenance in ("merge", "remove"):
        without, with_finish = (
            SVC(
                C=10,
                gamma=10,
                solver=solver(40, maintenance=maintenance, finish=finish),
                random_state=0,
            )
            .fit(X, y)
            .score(X_test, y_test)
            for finish in (False, True)
        )
        errors[f"{name}, {maintenance}"] = 100 * (1 - without), 100 * (1 - with_finish)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for shift, label, values in zip(
    (-0.2, 0.2), ("steps alone", "with the finish"), zip(*errors.values())
):
    bars = ax.barh(
        [place + shift for place in range(len(errors))], values, 0.38, label=label
    )
    ax.bar_label(bars, fmt="%.1f", padding=3)
exact = SVC(C=10, gamma=10).fit(X, y)
full = 100 * (1 - exact.score(X_test, y_test))
ax.axvline(full, color="black", linestyle="--", label=f"exact, {exact.n_basis_} vectors")
ax.set_yticks(range(len(errors)), errors)
ax.set(
    xlabel="test error (%)",
    title="40 vectors, three epochs",
    xlim=(0, 1.15 * max(map(max, errors.values()))),
)
ax.invert_yaxis()
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
