"""
Losses of regressions, compared
===============================

A tenth of the targets is far off. The squared loss follows them. Huber's and the
ε-insensitive loss count an outlier by its distance, not by its square.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVR

n_rows = 200  # tests: 80
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 10, (n_rows, 1)), axis=0)
truth = np.sin(X[:, 0]) + 0.2 * X[:, 0]
y = truth + 0.15 * rng.normal(size=n_rows)
y[::10] += 4

figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
ax.scatter(X, y, s=12, color="grey", label="rows")
ax.plot(X, truth, color="black", linewidth=1, label="truth")
for loss, style in (("squared", "--"), ("huber", "-."), ("epsilon_insensitive", "-")):
    reg = SVR(loss=loss, C=10, gamma=0.5, epsilon=0.1).fit(X, y)
    ax.plot(X, reg.predict(X), style, linewidth=2, label=f'loss="{loss}"')
ax.set(xlabel="x", ylabel="y")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))

# %%
# Counts have their own loss: predictions are exponentials, which are never below 0.

counts = rng.poisson(np.exp(np.sin(X[:, 0])))
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.scatter(X, counts, s=12, color="grey", label="counts")
ax.plot(X, np.exp(np.sin(X[:, 0])), color="black", linewidth=1, label="true mean")
ax.plot(
    X,
    SVR(loss="poisson", C=1, gamma=0.5).fit(X, counts).predict(X),
    linewidth=2,
    label='loss="poisson"',
)
ax.plot(
    X,
    SVR(loss="squared", C=1, gamma=0.5).fit(X, counts).predict(X),
    "--",
    linewidth=2,
    label='loss="squared"',
)
ax.set(xlabel="x", ylabel="count")
ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
