"""
Losses of classifiers, compared
===============================

The loss of a row as a function of its score times its label. The hinge and the squared
hinge are 0 from 1 on, so rows beyond 1 are not support vectors. The logistic loss is
never 0; its scores are log odds. The ramp loss is at most 2, so outliers cost no more.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVC

margin = np.linspace(-3, 3, 301)
hinge = np.maximum(0, 1 - margin)
curves = {
    "hinge": hinge,
    "squared_hinge": hinge**2,
    "logistic": np.log1p(np.exp(-margin)),
    "ramp": np.minimum(hinge, 2),
}
styles = dict(zip(curves, ["-", "--", "-.", ":"], strict=True))
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, values in curves.items():
    ax.plot(margin, values, styles[name], linewidth=2.5, label=f'loss="{name}"')
ax.set(xlabel="score × label", ylabel="loss of the row", ylim=(-0.1, 6))
ax.legend()

# %%
# What the scores are then. The rows have one feature, class 1 is likely on the right, and
# one row in five between 2 and 3 has the wrong label. Scores of the logistic loss are log
# odds and go furthest; with the squared hinge they give way most to the wrong labels;
# with the hinge and the ramp they stay at 1 there.

n_rows = 400  # tests: 100
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (n_rows, 1))
y = (X[:, 0] + 0.5 * rng.normal(size=n_rows) > 0).astype(int)
y[(X[:, 0] > 2) & (rng.random(n_rows) < 0.2)] = 0
grid = np.linspace(-3, 3, 301)[:, None]

figure, ax = plt.subplots(figsize=(8.5, 4.4), layout="constrained")
for name, style in styles.items():
    clf = SVC(C=1, gamma=0.5, loss=name).fit(X, y)
    ax.plot(grid, clf.decision_function(grid), style, linewidth=2.5, label=f'loss="{name}"')
ax.axhline(0, color="black", linewidth=0.8)
for k, height in enumerate(ax.get_ylim()):
    ax.plot(X[y == k], np.full((y == k).sum(), height), "|", color="grey")
ax.set(xlabel="feature (bars: rows of class 0 below, of class 1 above)", ylabel="score")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
