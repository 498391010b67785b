"""How good predictions are, for numbers and for people."""

from __future__ import annotations

from typing import Any

import numpy as np


def quality(estimator: Any, y: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Error rate of a classifier; mean absolute and root mean squared error of a regression.

    Parameters
    ----------
    estimator : SVC or SVR
    y : ndarray of shape (n,)
        True labels, as a file gave them.
    predicted : ndarray of shape (n,)
    """
    if not hasattr(estimator, "classes_"):
        residual = np.asarray(y, dtype=np.float64) - predicted
        return {
            "mean_absolute_error": float(np.abs(residual).mean()),
            "root_mean_squared_error": float(np.sqrt(np.square(residual).mean())),
        }
    n_wrong = int(np.count_nonzero(predicted != as_classes(y, estimator.classes_)))
    return {"error_rate": n_wrong / len(y), "n_wrong": n_wrong}


def as_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels in the type of the classes: 1 and 2 in a test file mean "1" and "2" where training had texts too."""
    return y.astype(str) if classes.dtype.kind in "OU" and y.dtype.kind not in "OU" else y


def describe_quality(values: dict[str, Any]) -> str:
    """The values of `quality` with `n_rows`, in words."""
    if "error_rate" in values:
        return f"error {100 * values['error_rate']:.2f} % ({values['n_wrong']:,} of {values['n_rows']:,} wrong)"
    return (
        f"mean absolute error {values['mean_absolute_error']:.4g}, "
        f"root mean squared error {values['root_mean_squared_error']:.4g} ({values['n_rows']:,} rows)"
    )
