"""The border to libslimsvm, the library of compiled loops whose sources lie in ``core/``.

Every function and structure of slimsvm.h is an attribute of this module: ``core.fold_rows(...)`` calls
``slimsvm_fold_rows``, ``core.Rows(...)`` makes a ``struct slimsvm_rows``, ``core.EXP2`` is ``SLIMSVM_EXP2``. See
`slimsvm.core.border`.
"""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any

import numpy as np

from slimsvm.core.border import CoreError, Function, Prepared, Structure, address_of, constants, function, layouts
from slimsvm.core.library import isa, library

__all__ = ["CoreError", "Function", "Prepared", "Structure", "aligned_zeros", "isa", "library", "panel_of"]

ROWS_PER_TILE = 48  # the fewest rows that one thread takes
ALIGNMENT = 64  # bytes of the widest vector
EXP2_SCALE_FLOAT32 = 0.9999998689950266  # the factor by which float32 values of 2^z are too small


@cache
def panel_of(dtype: Any) -> int:
    """Return how many numbers of a type stand side by side in a panel.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.core import panel_of
    >>> panel_of(np.float32) == 2 * panel_of(np.float64)
    True
    """
    return library().slimsvm_panel_bytes() // np.dtype(dtype).itemsize


def aligned_zeros(size: int, dtype: Any) -> np.ndarray:
    """Return zeros that begin where a vector does: vectors across two cache lines take longer to read.

    Examples
    --------
    >>> from slimsvm.core import aligned_zeros
    >>> aligned_zeros(3, "float64"), aligned_zeros(3, "float64").ctypes.data % 64
    (array([0., 0., 0.]), 0)
    """
    itemsize = np.dtype(dtype).itemsize
    room = np.zeros(size + ALIGNMENT // itemsize, dtype)
    first = -address_of(room) % ALIGNMENT // itemsize
    return room[first : first + size]


def __getattr__(name: str) -> Any:
    """Return a function of the library, the maker of a structure (with capitals), or a constant (all in capitals)."""
    if name.isupper():
        if name in constants():
            globals()[name] = constants()[name]
            return globals()[name]
    elif name[:1].isupper():
        snake = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        if snake in layouts():
            maker = partial(Structure, layouts()[snake])
            globals()[name] = maker
            return maker
    elif name + "_call" in layouts():
        globals()[name] = function(name)
        return globals()[name]
    raise AttributeError(f"slimsvm.core has no {name!r}")
