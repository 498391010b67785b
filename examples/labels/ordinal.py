"""
Grades
======

Classes with an order. ``OrdinalSVC`` learns one function and a threshold between any two
neighbouring grades, so a wrong grade is rarely far off. A classifier that does not know
the order makes larger errors.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVC, OrdinalSVC

n_rows = 600  # tests: 150
rng = np.random.default_rng(0)
names = np.array(["poor", "fair", "good", "excellent"])
X = rng.uniform(-2, 2, (n_rows + 3_000, 4))
quality = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=len(X))
grade = np.digitize(quality, [-0.8, 0.4, 1.6])
train, test = slice(n_rows), slice(n_rows, None)

ordinal = OrdinalSVC(classes=list(names), C=10, gamma=0.1).fit(
    X[train], names[grade[train]]
)
plain = SVC(C=10, gamma=0.1).fit(X[train], grade[train])

# %%
# On the left scores of test rows, by their true grade, and the thresholds. On the right
# how far predictions are off.

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4), layout="constrained")
scores = (
    ordinal.decision_function(X[test])[:, 1] + ordinal.thresholds_[0]
)  # the function before the thresholds
bins = np.linspace(scores.min(), scores.max(), 40)
for k, name in enumerate(names):
    axes[0].hist(scores[grade[test] == k], bins, histtype="step", linewidth=2, label=name)
for threshold in ordinal.thresholds_:
    axes[0].axvline(threshold, color="black", linestyle="--")
axes[0].set(xlabel="score (dashed: thresholds)", ylabel="test rows")
axes[0].legend()

predicted = {"OrdinalSVC": ordinal.predict(X[test]), "SVC": names[plain.predict(X[test])]}
place = {name: k for k, name in enumerate(names)}
for shift, (name, labels) in zip((-0.2, 0.2), predicted.items(), strict=True):
    off = np.abs(np.array([place[label] for label in labels]) - grade[test])
    shares = [100 * np.mean(off == step) for step in range(4)]
    bars = axes[1].bar(
        np.arange(4) + shift, shares, 0.38, label=f"{name}: mean {off.mean():.3f}"
    )
    axes[1].bar_label(bars, fmt="%.1f", fontsize="small")
axes[1].set(xlabel="grades off", ylabel="test rows (%)", xticks=range(4))
axes[1].legend()
