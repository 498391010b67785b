"""
Several labels for each row
===========================

``y`` is an indicator matrix: a row may have every label, or none. All labels share the
same few vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVC

n_rows = 600  # tests: 150
rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, (n_rows, 2))
Y = np.column_stack(
    [np.hypot(*(X - centre).T) < 1.3 for centre in ([-0.7, -0.5], [0.7, -0.5], [0, 0.7])]
).astype(int)
flips = rng.random(Y.shape) < 0.03
clf = SVC(C=10, gamma=1, max_basis=20, random_state=0).fit(X, np.where(flips, 1 - Y, Y))
print(
    f"{clf.n_basis_} vectors, all labels right on {100 * clf.score(X, Y):.0f} % of the rows"
)

# %%
# The predicted region of every label.

xx, yy = np.meshgrid(np.linspace(-2, 2, 201), np.linspace(-2, 2, 201))
scores = clf.decision_function(np.column_stack([xx.ravel(), yy.ravel()]))
figure, ax = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
ax.scatter(*X.T, s=8, color="grey", label="rows")
for k, style in enumerate(["-", "--", ":"]):
    region = scores[:, k].reshape(xx.shape)
    ax.contourf(xx, yy, region, levels=[0, np.inf], colors=[f"C{k}"], alpha=0.25)
    ax.contour(xx, yy, region, levels=[0], colors=[f"C{k}"], linestyles=style, linewidths=2)
    ax.plot([], [], style, color=f"C{k}", linewidth=2, label=f"label {k}")
ax.scatter(
    *clf.basis_vectors_.T, s=40, facecolors="none", edgecolors="black", label="vectors"
)
ax.set(xlabel="feature 0", ylabel="feature 1", xlim=(-2, 2), ylim=(-2, 2))
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
