"""
Novelties
=========

There are only normal rows to train on. ``OneClassSVM`` finds the region where they lie.
``calibration_size=0.2`` makes p-values valid: at most a share alpha of normal rows has a
p-value of alpha or less.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from slimsvm import OneClassSVM
from slimsvm.plots import DecisionSurfaceDisplay

n_rows = 1_500  # tests: 300
X, _ = make_moons(n_rows, noise=0.08, random_state=0)
normal, _ = make_moons(2_000, noise=0.08, random_state=1)
novel = np.random.default_rng(0).uniform([-1.6, -1.1], [2.6, 1.6], (300, 2))
clf = OneClassSVM(nu=0.05, gamma=8, calibration_size=0.2, random_state=0).fit(X)

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.6), layout="constrained")
shown = np.vstack([normal[:200], novel[:60]])
DecisionSurfaceDisplay.from_estimator(clf, shown, np.repeat([1, -1], [200, 60]), ax=axes[0])
axes[0].set_title("Score; circles are the model's vectors")

alphas = np.linspace(0, 1, 101)
axes[1].plot(alphas, alphas, "--", color="black", label="promised for normal rows, at most")
for name, rows in (("normal rows", normal), ("uniform rows", novel)):
    p = clf.p_values(rows)
    axes[1].plot(alphas, [np.mean(p <= alpha) for alpha in alphas], label=name)
axes[1].set(
    xlabel="alpha", ylabel="share of rows with p ≤ alpha", xlim=(0, 1), ylim=(0, 1.02)
)
axes[1].legend(loc="lower right")
