"""Sets, intervals and p-values of rows, by how badly rows fitted that nothing was learned from.

`slimsvm.estimators._shared.conformal` says why they are right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np

Array = np.ndarray


def check_alpha(alpha: Any) -> Fraction:
    """Check that alpha is a number in (0, 1); as the decimal that is written."""
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0 < float(alpha) < 1:
        raise ValueError(f"alpha must be a number in (0, 1), found {alpha!r}")
    return Fraction(str(float(alpha)))


def bound(ascending: Array, alpha: Fraction) -> float:
    """The ⌈(m + 1)(1 − α)⌉-th of m ascending numbers; infinity where there are too few."""
    place = math.ceil((len(ascending) + 1) * (1 - alpha))
    return float(ascending[place - 1]) if place <= len(ascending) else np.inf


def steepness_of(kind: str, calibration: Array | None) -> float:
    """How much misfits of classes change with scores, at most; of numbers and sides of thresholds as much as these.

    A probability changes by at most a quarter of what log odds do, and these are of differences of two scores.
    """
    if kind not in ("classes", "pairs") or calibration is None:
        return 1.0
    u, w, c, _ = np.abs(calibration).T
    return float((np.maximum(u, w) + c).max())


def bound_for_export(model: Any, alpha: Any, error: Callable[[], float] | None = None) -> float | None:
    """The bound for an alpha that a form has which has no rows held out; None where there is no alpha.

    ``error`` computes what the form's arithmetic does to misfits; None: no more than the library's own. A ValueError
    says if the model has neither sets nor intervals, or if too few rows were held out for alpha.
    """
    if alpha is None:
        return None
    share, held = check_alpha(alpha), model.nonconformity
    if held is None or model.kind == "one class":
        kind = "was fitted without calibration_size" if held is None else "has p-values: use load_predictor or JSON"
        raise ValueError(f"alpha={alpha!r} asks for sets of classes or for intervals; this model {kind}")
    found = bound(held, share)
    if not np.isfinite(found):
        raise ValueError(
            f"alpha={alpha!r} needs {math.ceil(1 / share) - 1:,} rows held out, found {np.isfinite(held).sum():,}: "
            "sets would have all classes, and intervals no end"
        )
    return found if error is None else found + error()


def sets_of(misfit: Array, ascending: Array, codes: Array | None, alpha: Any) -> Array:
    """Whether each class fits no worse than the bound, or, where rows have ``codes``, than that of its own rows."""
    share = check_alpha(alpha)
    if codes is None:
        return misfit <= bound(ascending, share)
    found: Array = misfit <= np.array([bound(ascending[codes == c], share) for c in range(misfit.shape[1])])
    return found


def sets_of_table(misfit: Array, of_all: Array, of_classes: list[Array], alpha: Any, class_conditional: bool) -> Array:
    """`sets_of` where the rows of each class are apart."""
    if not class_conditional:
        return sets_of(misfit, of_all, None, alpha)
    codes = np.repeat(np.arange(len(of_classes)), [len(own) for own in of_classes])
    return sets_of(misfit, np.concatenate(of_classes), codes, alpha)


def intervals_of(predicted: Array, ascending: Array, alpha: Any, least: float) -> Array:
    """Where intervals begin, at ``least`` or above, and end."""
    half = bound(ascending, check_alpha(alpha))
    low, high = ends_of(predicted)
    return np.column_stack([np.maximum(low - half, least), high + half])


def ends_of(predicted: Array) -> tuple[Array, Array]:
    """Where intervals begin and end before they are widened: the prediction, or the outer ones of several quantiles."""
    return (predicted, predicted) if predicted.ndim == 1 else (predicted[:, 0], predicted[:, -1])


def p_values_of(outside: Array, ascending: Array) -> Array:
    """Shares of rows, the new one among them, that are as far outside, or farther."""
    n_nearer = np.searchsorted(ascending, outside, side="left")
    found: Array = (1 + len(ascending) - n_nearer) / (1 + len(ascending))
    return found
