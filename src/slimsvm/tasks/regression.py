"""ε-insensitive regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm.numerics.losses import epsilon_insensitive_along, epsilon_insensitive_augment
from slimsvm.numerics.smoothed import share_epsilon_insensitive_smooth
from slimsvm.tasks.base import Augmented, Examples, Task, along_by_tiles, smooth_by_tiles, unit_weights


@dataclass(frozen=True)
class Regression(Task):
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

    def __post_init__(self):
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number >= 0, found {self.epsilon!r}")

    def encode(self, y, sample_weight=None) -> Examples:
        """Targets and weights as one-row examples."""
        y = np.asarray(y, dtype=np.float64)
        if y.ndim != 1 or not np.all(np.isfinite(y)):
            raise ValueError("regression targets must be finite numbers, one per row")
        return Examples(labels=y, weights=unit_weights(sample_weight, len(y)))

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """See `Task.augment`."""
        delta, coef = np.empty(examples.n_rows), np.empty((examples.n_rows, 1))
        epsilon_insensitive_augment(examples.labels, float(self.epsilon), scores, delta, coef)
        return Augmented(delta=delta, coef=coef)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        """See `Task.along`."""
        fixed = (examples.labels, float(self.epsilon))
        where = (examples.weights, base[0], direction[0], float(k))
        return along_by_tiles(
            lambda lo, hi, out: epsilon_insensitive_along(*fixed, *where, lo, hi, out), examples, n_jobs
        )

    def smooth(self, scores, tau, examples: Examples, n_jobs=1):
        """See `Task.smooth`."""
        fixed = (examples.labels, float(self.epsilon), examples.weights, scores, float(tau))
        return smooth_by_tiles(share_epsilon_insensitive_smooth, fixed, examples, 1, n_jobs)

    def decode(self, scores, plain, examples=None):
        """The score itself."""
        return scores[:, 0]

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean absolute error."""
        return float(np.average(np.abs(predicted - examples.labels), weights=examples.weights))
