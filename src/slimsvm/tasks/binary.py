"""Binary classification: the usual hinge loss, LIBSVM's objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.tasks.task import Examples, RowDual, SmoothRowLoss, as_floats, unit_weights


@dataclass(frozen=True)
class Binary(SmoothRowLoss):
    """Two classes with Ψ(x, y) = ½ y φ(x), so that ℓ = max(0, cost_y − y f(x)).

    Parameters
    ----------
    cost_negative, cost_positive : float, default=1.0
        Δ for a wrong example of the class −1 and of the class +1: the margin asked of each class. (Class weights
        multiply the loss and belong into the weights of the examples.)

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Binary
    >>> task = Binary()
    >>> examples = task.encode(np.array([-1, 1, 1]))
    >>> task.augment(np.array([[-2.0], [0.5], [3.0]]), np.zeros(0), examples).coef.ravel()
    array([0., 1., 0.])
    """

    cost_negative: float = 1.0
    cost_positive: float = 1.0
    has_two_classes = has_class_scores = is_compiled = True
    step_loss = core.HINGE
    bounded_by = "rows"

    def __post_init__(self):
        for name in ("cost_negative", "cost_positive"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive number, found {getattr(self, name)!r}")

    @property
    def has_costs(self) -> bool:  # type: ignore[override]
        """Whether a margin is not 1."""
        return (self.cost_negative, self.cost_positive) != (1.0, 1.0)

    def encode(self, y, sample_weight=None) -> Examples:
        """Labels −1 and +1 (any two-valued codes 0/1 are mapped to them) and weights as one-row examples."""
        y = np.asarray(y)
        known = (y == 1) | (y == 0) | (y == -1)
        if y.ndim != 1 or not known.all():
            found = f"{y[~known][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"binary labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
        labels = np.where(y > 0, np.int8(1), np.int8(-1))
        return Examples(labels=labels, weights=unit_weights(sample_weight, len(labels)))

    def row_dual(self, examples: Examples, price):
        """See `Task.row_dual`: v_i = α_i y_i."""
        is_positive = examples.labels > 0
        target = np.where(is_positive, self.cost_positive, -self.cost_negative)
        return RowDual(target, 0.0, np.where(is_positive, 0.0, -price), np.where(is_positive, price, 0.0))

    def core_loss(self, examples: Examples):
        """See `Task.core_loss`."""
        cost = np.array([self.cost_negative, self.cost_positive], np.float64)
        return core.RowLoss(
            code=core.HINGE,
            n_outputs=1,
            n_classes=0,
            signs=np.ascontiguousarray(examples.labels),
            weights=as_floats(examples.weights),
            cost=cost,
        )

    def decode(self, scores, plain, examples=None):
        """+1 where the score is positive, −1 elsewhere."""
        return np.where(scores[:, 0] > 0, 1, -1)
