"""Scaling of features, fitted on the training part and applied to every part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from slimsvm.datasets.files import DataError

SCALINGS = ("minmax", "standard", "maxabs")


@dataclass(frozen=True, eq=False)
class Scaling:
    """x -> (x - shift) / width, per feature; `shift` is None where nothing is subtracted.

    Attributes
    ----------
    shift : ndarray of shape (d,) or None
    width : ndarray of shape (d,)
        Infinite where the feature is constant, so that it becomes 0.
    """

    shift: np.ndarray | None
    width: np.ndarray

    def apply(self, X: Any) -> Any:
        """Return X scaled: float32 stays float32, other types become float64, sparse stays sparse."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if not isinstance(X, np.ndarray):
            return (X @ diags_array(1 / self.width)).tocsr().astype(dtype)
        scaled = X.astype(np.float64)
        if self.shift is not None:
            scaled -= self.shift
        scaled /= self.width
        return scaled.astype(dtype, copy=False)


def fit_scaling(X: Any, scaling: str) -> Scaling:
    """Return the scaling that X, the training part, asks for.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, d)
    scaling : {"minmax", "standard", "maxabs"}
        "minmax": to [0, 1]; "standard": to mean 0 and standard deviation 1; "maxabs": to [-1, 1] without a shift, the
        only one for sparse X, whose zeros it keeps. A feature that is constant in X becomes 0 ("maxabs": a feature that
        is 0 throughout stays 0).

    Raises
    ------
    DataError
        For another name, and for "minmax" or "standard" with sparse X.
    """
    if scaling not in SCALINGS:
        raise DataError(f"scaling must be None or one of {', '.join(map(repr, SCALINGS))}, found {scaling!r}")
    if scaling == "maxabs":
        low, high = (_as_vector(X.min(axis=0)), _as_vector(X.max(axis=0)))
        return Scaling(None, _positive(np.maximum(np.abs(low), np.abs(high))))
    if not isinstance(X, np.ndarray):
        raise DataError(f"scaling={scaling!r} would fill the zeros of sparse rows; accepted for them is 'maxabs'")
    if scaling == "minmax":
        low = X.min(axis=0).astype(np.float64)
        return Scaling(low, _positive(X.max(axis=0).astype(np.float64) - low))
    return Scaling(X.mean(axis=0, dtype=np.float64), _positive(X.std(axis=0, dtype=np.float64)))


def _as_vector(row: Any) -> np.ndarray:
    return np.asarray(row if isinstance(row, np.ndarray) else row.toarray(), dtype=np.float64).ravel()


def _positive(width: np.ndarray) -> np.ndarray:
    return np.where(width > 0, width, np.inf)
