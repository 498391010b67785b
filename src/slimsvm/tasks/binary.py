"""Binary classification: the usual hinge loss, LIBSVM's objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm.numerics.losses import binary_along, binary_augment
from slimsvm.numerics.smoothed import share_binary_smooth
from slimsvm.tasks.base import Augmented, Examples, Task, along_by_tiles, smooth_by_tiles, unit_weights


@dataclass(frozen=True)
class Binary(Task):
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

    def __post_init__(self):
        for name in ("cost_negative", "cost_positive"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive number, found {getattr(self, name)!r}")

    def encode(self, y, sample_weight=None) -> Examples:
        """Labels −1 and +1 (any two-valued codes 0/1 are mapped to them) and weights as one-row examples."""
        y = np.asarray(y)
        unknown = ~np.isin(y, (-1, 0, 1))
        if y.ndim != 1 or unknown.any():
            found = f"{y[unknown][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"binary labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
        labels = np.where(y > 0, 1, -1).astype(np.int8)
        return Examples(labels=labels, weights=unit_weights(sample_weight, len(labels)))

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """See `Task.augment`."""
        delta, coef = np.empty(examples.n_rows), np.empty((examples.n_rows, 1))
        binary_augment(examples.labels, self.cost_negative, self.cost_positive, scores, delta, coef)
        return Augmented(delta=delta, coef=coef)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        """See `Task.along`."""
        fixed = (examples.labels, self.cost_negative, self.cost_positive)
        where = (examples.weights, base[0], direction[0], float(k))
        return along_by_tiles(lambda lo, hi, out: binary_along(*fixed, *where, lo, hi, out), examples, n_jobs)

    def smooth(self, scores, tau, examples: Examples, n_jobs=1):
        """See `Task.smooth`."""
        fixed = (examples.labels, self.cost_negative, self.cost_positive, examples.weights, scores, float(tau))
        return smooth_by_tiles(share_binary_smooth, fixed, examples, 1, n_jobs)

    def decode(self, scores, plain, examples=None):
        """+1 where the score is positive, −1 elsewhere."""
        return np.where(scores[:, 0] > 0, 1, -1)
