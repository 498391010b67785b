"""Checks of kernel parameters."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np


def check_gamma(gamma: Any, per_feature: bool) -> float | np.ndarray:
    """Gamma as a float, or a read-only array for one per feature; an error otherwise. 0 makes a kernel constant."""
    if isinstance(gamma, float) and 0.0 <= gamma < inf:
        return float(gamma)
    kind = "a positive finite number" + (", or a 1-D array of them (one per feature)" if per_feature else "")
    try:
        values = np.asarray(gamma, np.float64)
    except (TypeError, ValueError):
        values = None
    if values is None or gamma is None:
        raise TypeError(f"gamma must be {kind}, got {gamma!r}")
    if values.ndim > per_feature or values.size == 0:
        raise ValueError(f"gamma must be {kind}, got an array of shape {values.shape}")
    wrong = ~(np.isfinite(values) & ((values >= 0) if not values.ndim else (values > 0)))
    if wrong.any():
        found = float(values.flat[np.argmax(wrong)])
        where = f" for feature {int(np.argmax(wrong))}" if values.ndim else ""
        raise ValueError(f"gamma must be {kind}, got {found!r}{where or '; one number may be 0, too'}")
    if not values.ndim:
        return float(values)
    values = values.copy()
    values.flags.writeable = False
    return values


def feature_gamma(gamma: float | np.ndarray, n_features: int) -> float | np.ndarray:
    """Gamma as a float or array, checked against the number of features."""
    if isinstance(gamma, float):
        return gamma
    if len(gamma) != n_features:
        raise ValueError(f"gamma has {len(gamma)} values, the rows have {n_features} features")
    return gamma


def check_finite(name: str, value: Any) -> float:
    """Value as a float; an error that names the parameter if it is not a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a finite number, got {value!r}") from None
    if not np.isfinite(number):
        raise ValueError(f"{name} must be a finite number, got {number!r}")
    return number


def check_degree(degree: Any) -> int:
    """Degree as an int of at least 1."""
    try:
        whole = not isinstance(degree, bool) and int(degree) == degree
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole or degree < 1:
        raise ValueError(f"degree must be an integer of at least 1, got {degree!r}")
    if degree > 1000:  # a power takes one product for each degree
        raise ValueError(f"degree must be at most 1000, got {degree!r}")
    return int(degree)
