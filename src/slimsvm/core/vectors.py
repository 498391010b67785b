"""Memory for the vectors of compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.core.quick import address_of

ALIGNMENT = 64  # bytes of the widest vector


def aligned_zeros(size: int, dtype: Any) -> np.ndarray:
    """Zeros that begin where a vector does: vectors across two cache lines take longer to read.

    Examples
    --------
    >>> from slimsvm.core.vectors import aligned_zeros
    >>> aligned_zeros(3, "float64"), aligned_zeros(3, "float64").ctypes.data % 64
    (array([0., 0., 0.]), 0)
    """
    itemsize = np.dtype(dtype).itemsize
    room = np.zeros(size + ALIGNMENT // itemsize, dtype)
    first = -address_of(room) % ALIGNMENT // itemsize
    return room[first : first + size]
