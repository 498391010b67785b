"""The scaling of features that belongs to a model: what a pipeline's scalers do to a row, in one step."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray


class Scaling(NamedTuple):
    """x'_f = (x_f − offset_f) · factor_f, then no less than low_f and no more than high_f.

    Parameters
    ----------
    offset, factor : float64 ndarrays of shape (n_features,)
        Factors are positive.
    low, high : float64 ndarrays of shape (n_features,), or None
        Bounds of scalers that clip, in the scaled features; infinite where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.deploy.scaling import Scaling
    >>> Scaling(np.array([10.0]), np.array([0.5]), None, None).rows(np.array([[12.0], [8.0]]))
    array([[ 1.],
           [-1.]])
    """

    offset: Array
    factor: Array
    low: Array | None
    high: Array | None

    def rows(self, X: Array) -> Array:
        """Scaled rows."""
        scaled = (X - self.offset) * self.factor
        return scaled if self.low is None or self.high is None else np.clip(scaled, self.low, self.high)

    def in_type(self, dtype: Any) -> Scaling:
        """The same with numbers of another type."""
        low, high = (None if bound is None else bound.astype(dtype) for bound in (self.low, self.high))
        return Scaling(self.offset.astype(dtype), self.factor.astype(dtype), low, high)

    def unscaled(self, X: Array) -> Array:
        """Rows that these are the scaled ones of, where no bound is met."""
        return X / self.factor + self.offset


def read_scaling(arrays: dict[str, Array], n_features: int) -> Scaling:
    """The scaling that a file's arrays say; ValueError where they do not fit."""
    has_bounds = "scaling_low" in arrays or "scaling_high" in arrays
    names = Scaling._fields if has_bounds else ("offset", "factor")
    parts = [arrays.get(f"scaling_{name}", np.empty(0)) for name in names]
    if any(part.shape != (n_features,) or part.dtype != np.float64 for part in parts):
        raise ValueError(f"the scaling must be float64 arrays of {n_features} numbers, one for each feature")
    offset, factor, *bounds = parts
    is_usable = np.isfinite(offset) & np.isfinite(factor) & (factor > 0)
    if not is_usable.all() or (bounds and not (bounds[0] <= bounds[1]).all()):
        raise ValueError("the scaling's offsets and factors must be finite, factors above 0, and no low above its high")
    return Scaling(offset, factor, *(bounds or (None, None)))
