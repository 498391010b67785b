"""
A regression with intervals
===========================

The intervals of ``predict_interval(X, alpha=0.1)`` contain nine of ten targets. With one
model all intervals have the same width. With two quantiles they are wider where targets
vary more, with the same guarantee.
"""

import matplotlib.pyplot as plt
import numpy as np

from slimsvm import SVR

n_rows = 1_500  # tests: 150
rng = np.random.default_rng(0)


def draw(n):
    """Noise that grows with x."""
    X = np.sort(rng.uniform(0, 10, (n, 1)), axis=0)
    return X, np.sin(X[:, 0]) + (0.05 + 0.1 * X[:, 0]) * rng.normal(size=n)


X, y = draw(n_rows)
X_test, y_test = draw(2_000)
models = {
    "SVR(calibration_size=0.2)": SVR(C=10, gamma=0.3, calibration_size=0.2, random_state=0),
    'SVR(loss="quantile", quantile=[0.05, 0.95])': SVR(
        C=10,
        gamma=0.3,
        loss="quantile",
        quantile=[0.05, 0.95],
        calibration_size=0.2,
        random_state=0,
    ),
}

figure, axes = plt.subplots(1, 2, figsize=(8.6, 4.2), sharey=True, layout="constrained")
for ax, (name, reg) in zip(axes, models.items(), strict=True):
    low, high = reg.fit(X, y).predict_interval(X_test, alpha=0.1).T
    ax.scatter(X_test[::4], y_test[::4], s=6, color="grey", label="test rows")
    ax.fill_between(X_test[:, 0], low, high, alpha=0.4, label="interval, alpha = 0.1")
    inside = np.mean((low <= y_test) & (y_test <= high))
    ax.set(
        xlabel="x",
        title=f"{name}\n{100 * inside:.1f} % inside, mean width {np.mean(high - low):.2f}",
    )
axes[0].set_ylabel("y")
axes[0].legend(loc="lower left")
