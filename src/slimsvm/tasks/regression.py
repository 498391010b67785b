"""ε-insensitive regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import RowDual, SmoothRowLoss, as_floats


@dataclass(frozen=True)
class Regression(SmoothRowLoss):
    """ℓ = max(0, |y − f(x)| − ε).

    The constant of a cut may be negative here, so Theorem 1 of the sampled-cut paper does not apply.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half-width of the tube in which residuals cost nothing, in the units of y.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Regression
    >>> task = Regression(epsilon=0.5)
    >>> task.augment(np.zeros((2, 1)), np.zeros(0), task.encode(np.array([0.2, -3.0]))).coef.ravel()
    array([ 0., -1.])
    """

    epsilon: float = 0.1
    has_targets = is_compiled = True
    step_loss = core.EPSILON_INSENSITIVE
    bounded_by = "rows"

    def __post_init__(self):
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number >= 0, found {self.epsilon!r}")

    def encode(self, y, sample_weight=None) -> Examples:
        """Targets and weights as one-row examples."""
        y = np.asarray(y, dtype=np.float64)
        if y.ndim != 1 or not np.all(np.isfinite(y)):
            raise ValueError("regression targets must be finite numbers, one per row")
        return Examples(labels=y, weights=unit_weights(sample_weight, len(y)))

    def row_dual(self, examples: Examples, price):
        """The dual with one variable for each row, v_i = α_i − α_i*."""
        return RowDual(examples.labels, float(self.epsilon), -price, price)

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        return core.RowLoss(
            code=core.EPSILON_INSENSITIVE,
            n_outputs=1,
            n_classes=0,
            targets=as_floats(examples.labels),
            weights=as_floats(examples.weights),
            cost=np.array([self.epsilon], np.float64),
        )

    def decode(self, scores, plain, examples=None):
        """The score itself."""
        return scores[:, 0]

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean absolute error."""
        return float(np.average(np.abs(predicted - examples.labels), weights=examples.weights))
