"""Multiclass classification after Crammer and Singer, with any cost matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.task import Examples, SmoothRowLoss, as_floats, unit_weights


@dataclass(frozen=True, eq=False)
class Multiclass(SmoothRowLoss):
    """Ψ(x, y) = φ(x) ⊗ e_y and ℓ = max_c [cost[y, c] + s_c − s_y].

    Parameters
    ----------
    n_classes : int
        Number of classes, at least 2. (Two classes at C are the binary problem at 2C; estimators always use `Binary`
        for two.)
    cost : array-like of shape (n_classes, n_classes) or None, default=None
        Δ(y, ŷ) ≥ 0 with a zero diagonal; None is 0/1.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Multiclass
    >>> task = Multiclass(3)
    >>> examples = task.encode(np.array([2, 0]))
    >>> task.augment(np.array([[0.0, 0.5, 1.0], [3.0, 0.0, 0.0]]), np.zeros(0), examples).coef
    array([[ 0., -1.,  1.],
           [ 0.,  0.,  0.]])
    """

    n_classes: int
    cost: Any = None
    has_share = has_class_scores = is_compiled = True
    step_loss = core.ONE_VS_REST
    bounded_by = "classes"

    def __post_init__(self):
        if self.n_classes < 2:
            raise ValueError(f"n_classes must be at least 2, found {self.n_classes}")
        k = self.n_classes
        cost = 1.0 - np.eye(k) if self.cost is None else np.array(self.cost, dtype=np.float64)
        if cost.shape != (k, k):
            raise ValueError(f"cost must have shape ({k}, {k}), found {cost.shape}")
        if not np.all(np.isfinite(cost)) or np.any(cost < 0) or np.any(np.diag(cost) != 0):
            raise ValueError("cost must hold finite numbers >= 0 with a zero diagonal")
        object.__setattr__(self, "cost", cost)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per class."""
        return self.n_classes

    @property
    def has_costs(self) -> bool:  # type: ignore[override]
        """Whether costs are other than 0/1."""
        return not np.array_equal(self.cost, 1.0 - np.eye(self.n_classes))

    def in_pairs(self):
        """See `Task.in_pairs`."""
        from slimsvm.tasks.one_vs_one import OneVsOne  # which knows this class, too

        return None if self.has_costs else OneVsOne(self.n_classes)

    def encode(self, y, sample_weight=None) -> Examples:
        """Class codes 0 .. n_classes − 1 and weights as one-row examples."""
        y = np.asarray(y)
        bad = (y < 0) | (y >= self.n_classes)
        if y.ndim != 1 or bad.any():
            found = f"{y[bad][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"class codes must be 0 to {self.n_classes - 1}, one per row; found {found}")
        return Examples(labels=y.astype(np.int64), weights=unit_weights(sample_weight, len(y)))

    def core_loss(self, examples: Examples):
        """See `Task.core_loss`."""
        return core.RowLoss(
            code=core.MULTICLASS,
            n_outputs=self.n_classes,
            n_classes=self.n_classes,
            classes=np.ascontiguousarray(examples.labels),
            weights=as_floats(examples.weights),
            cost=np.ascontiguousarray(self.cost, np.float64).reshape(-1),
        )

    def decode(self, scores, plain, examples=None):
        """Column of the largest score, the lowest among equals."""
        return np.argmax(scores, axis=1)
