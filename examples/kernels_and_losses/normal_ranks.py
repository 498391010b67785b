"""
Features with long tails
========================

If a feature has a few huge values, all other rows lie close together.
``NormalRanks`` replaces a value by the normal quantile of its rank. The Laplacian kernel,
which adds up distances along single features, suffers less.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, NormalRanks

n_rows = 1_000  # tests: 200
rng = np.random.default_rng(0)
normal = rng.normal(size=(2 * n_rows, 6))
y = (normal[:, 0] * normal[:, 1] + normal[:, 2] > 0).astype(int)
X = np.exp(2 * normal)
train, test = slice(n_rows), slice(n_rows, None)

errors = {}
for kernel in ("rbf", "laplacian"):
    for scaler in (StandardScaler(), NormalRanks()):
        clf = make_pipeline(
            scaler, SVC(kernel=kernel, C="validate", gamma="validate", random_state=0)
        )
        clf.fit(X[train], y[train])
        errors[f"{type(scaler).__name__},\n{kernel}"] = 100 * (
            1 - clf.score(X[test], y[test])
        )

figure, axes = plt.subplots(1, 2, figsize=(8.6, 3.6), layout="constrained")
for scaler, ax_label in (
    (StandardScaler(), "StandardScaler"),
    (NormalRanks(), "NormalRanks"),
):
    axes[0].hist(
        scaler.fit_transform(X)[:, 0],
        bins=np.linspace(-3, 6, 46),
        alpha=0.7,
        label=ax_label,
    )
axes[0].set(xlabel="first feature after scaling", ylabel="rows")
axes[0].legend()
bars = axes[1].barh(list(errors), list(errors.values()))
axes[1].bar_label(bars, fmt="%.1f", padding=3)
axes[1].set(xlabel="test error (%)", xlim=(0, 1.15 * max(errors.values())))
axes[1].invert_yaxis()
