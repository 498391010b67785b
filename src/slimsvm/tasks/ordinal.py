"""Ordered classes: one function and a threshold between any two neighbours.

Chu and Keerthi, "New Approaches to Support Vector Ordinal Regression", ICML 2005, with implicit constraints: every row
asks every threshold to be on its side of f(x), by 1. At the optimum the thresholds are in order by themselves. (They
are plain parameters, regularised like the rest of w; there is no other intercept.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.tasks.task import Examples, RowLoss, as_floats, unit_weights


@dataclass(frozen=True)
class Ordinal(RowLoss):
    """ℓ = Σ_j max(0, 1 − y_j (f(x) − θ_j)), y_j = +1 for classes above the threshold j, else −1.

    Δ is the number of thresholds on the wrong side: how many classes off the prediction is. The plain parameters are
    the n_classes − 1 thresholds θ.

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Ordinal
    >>> task = Ordinal(3)
    >>> task.decode(np.array([[-2.0], [0.0], [5.0]]), np.array([-1.0, 1.0]))
    array([0, 1, 2])
    """

    n_classes: int
    has_threshold = False

    def __post_init__(self):
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, found {self.n_classes}")

    @property
    def n_plain(self) -> int:  # type: ignore[override]
        """One threshold between any two neighbours."""
        return self.n_classes - 1

    def encode(self, y, sample_weight=None) -> Examples:
        """Class codes 0 .. n_classes − 1, lowest first, and weights as one-row examples."""
        y = np.asarray(y)
        bad = ~np.isin(y, np.arange(self.n_classes))
        if y.ndim != 1 or bad.any():
            found = f"{y[bad][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"class codes must be 0 to {self.n_classes - 1}, one per row; found {found}")
        return Examples(labels=y.astype(np.int64), weights=unit_weights(sample_weight, len(y)))

    def core_loss(self, examples: Examples):
        """See `Task.core_loss`."""
        return core.RowLoss(
            code=core.ORDINAL,
            n_outputs=1,
            n_classes=self.n_classes,
            classes=np.ascontiguousarray(examples.labels),
            weights=as_floats(examples.weights),
        )

    def decode(self, scores, plain, examples=None):
        """Class c of the greatest Σ_{j<c} (f − θ_j), the lowest among equals: thresholds that rise are counted."""
        codes = np.empty(len(scores), dtype=np.int64)
        core.decode_ordinal(scores=as_floats(scores), thresholds=as_floats(plain), codes=codes)
        return codes

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean of how many classes off the predictions are."""
        return float(np.average(np.abs(predicted - examples.labels), weights=examples.weights))
