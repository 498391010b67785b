"""Normal deviates of ranks."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def normal_deviates(column: Array, weights: Array | None, most: int) -> tuple[Array, Array]:
    """Distinct values of a column, ascending, and Φ⁻¹ of the share of weights below each, with half of its own.

    Of more than ``most`` those at equal distances in their order are kept.
    """
    from scipy.special import ndtri  # which prediction without SciPy does not need

    values, codes = np.unique(column, return_inverse=True)
    counts = np.bincount(codes.ravel(), weights, len(values))
    below = np.cumsum(counts) - 0.5 * counts
    total = counts.sum()
    if len(values) > most:
        kept = np.unique(np.linspace(0, len(values) - 1, most).round().astype(np.int64))
        values, below = values[kept], below[kept]
    return values, ndtri(below / total)
