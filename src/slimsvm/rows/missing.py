"""Labels that are missing: NaN, None, NaT and pandas' NA, in arrays, lists and columns of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.rows.arrays import is_sparse


def first_missing(y: Any) -> tuple[int, str] | None:
    """The row of the first label that is missing, and what stands there; None if none is."""
    if y is None or is_sparse(y):
        return None
    if hasattr(y, "isna"):
        mask, values = np.asarray(y.isna(), dtype=bool), np.asarray(y, dtype=object)
    else:
        # An array of a list's own type would have the text "nan" for a NaN among texts.
        values = y if isinstance(y, np.ndarray) else _of_objects(y)
        mask = _missing(values)
    if not mask.any():
        return None
    at = tuple(np.argwhere(mask)[0])
    value = values[at]
    is_nan = isinstance(value, float | np.floating)
    return int(at[0]), "NaN" if is_nan else str(value)


def _of_objects(y: Any) -> np.ndarray:
    try:
        return np.array(y, dtype=object)
    except (TypeError, ValueError):  # rows of several lengths, which others refuse
        return np.zeros(0)


def _missing(values: np.ndarray) -> np.ndarray:
    """Which of the values are missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    return np.array([_is_missing(value) for value in values.ravel()], bool).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    """None, pandas' NA (which answers no comparison), and what is not equal to itself."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, str | int):
        return False
    differs = value != value  # NumPy's own type of truth value, where the value is of NumPy
    return isinstance(differs, bool | np.bool_) and bool(differs)
