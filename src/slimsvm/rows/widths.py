"""How wide the features are: what a fit that did not converge says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.rows.arrays import Rows, is_sparse

ROWS_AT_ONCE = 1 << 12
# Features are scaled where the widest is at most so many times the narrowest, and all are between 1 / WIDE and WIDE.
ALIKE, WIDE = 10.0, 100.0


def feature_widths(rows: Rows) -> np.ndarray:
    """Largest less smallest value of each feature; of sparse rows the largest magnitude, of features that occur."""
    slices = (rows.slice(lo, hi, rows.exact_dtype) for lo, hi in rows.blocks(ROWS_AT_ONCE))
    parts: list[Any] = [X for X in slices if 0 not in X.shape]
    if not parts:
        return np.zeros(0)
    if is_sparse(parts[0]):
        features, place = np.unique(np.concatenate([X.indices for X in parts]), return_inverse=True)
        widths = np.zeros(len(features))
        np.maximum.at(widths, place, np.abs(np.concatenate([X.data for X in parts])))
        return widths
    highest = np.max([X.max(axis=0) for X in parts], axis=0).astype(np.float64)
    return highest - np.min([X.min(axis=0) for X in parts], axis=0)


def advice_to_scale(rows: Rows) -> str:
    """Words about the widths of the features; none where they are scaled or the rows are not in memory."""
    widths = feature_widths(rows) if rows.in_memory else np.zeros(0)
    widths = widths[(widths > 0) & np.isfinite(widths)]
    if not len(widths) or (widths.min() >= 1 / WIDE and widths.max() <= min(WIDE, ALIKE * widths.min())):
        return ""
    return (
        f"widths of the features (largest minus smallest value) range from {widths.min():.3g} to {widths.max():.3g}: "
        "scale them, for example by sklearn.preprocessing.StandardScaler"
    )
