"""Checks of what users pass in. Every message names the parameter or the row, what was found and what is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from slimsvm import solvers
from slimsvm.kernels.far import Bulk
from slimsvm.rows import (
    FLOATS,
    ColumnSums,
    Rows,
    as_rows,
    find_not_finite,
    first_missing,
    in_pieces,
    is_sparse,
    keep_sums,
    parts_of,
)
from slimsvm.sparse_parts import check_sparse

BLOCK_VALUES = 1 << 20
# What C=inf stands for. scikit-learn's is as good as this, too.
HARD_MARGIN = 1e10
# How many times the features' own variance that of all entries together may be, where gamma is only begun with.
APART = 4.0


def check_positive(name: str, value: Any, otherwise: str = "") -> float:
    """A finite number > 0; ``otherwise`` says what else would do."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number{otherwise}, found {value!r}")
    return float(value)


def check_price(name: str, value: Any, otherwise: str = "") -> float:
    """A number > 0; `HARD_MARGIN` for an infinite one."""
    is_infinite = isinstance(value, Real) and float(value) == np.inf
    return HARD_MARGIN if is_infinite else check_positive(name, value, otherwise)


def check_limit(name: str, value: Any, integer: bool, least: int = 1) -> Any:
    """None, or -1 for integers (scikit-learn's way to say no limit), or a positive number; or ``least``, if it is 0."""
    if value is None or (integer and value == -1):
        return None
    is_least = least == 0 and value == 0
    is_number = isinstance(value, Integral if integer else Real) and not isinstance(value, bool)
    if not is_number or not (is_least or float(value) > 0):
        none = "None or -1" if integer else "None"
        raise ValueError(f"{name} must be a positive {'integer' if integer else 'number'}, or {none}; found {value!r}")
    return value


def check_option(name: str, value: Any, options: tuple[Any, ...], *others: str) -> Any:
    """One of the options; ``others`` says in words what else the parameter may be."""
    if not any(value is option or value == option for option in options):
        named = ", ".join(map(repr, options))
        if len(options) == 1:
            known = f"{', '.join(others)} or {named}"
        else:
            known = " or ".join([f"one of {named}", *others])
        raise ValueError(f"{name} must be {known}; found {value!r}")
    return value


def check_cap(value: Any, least: int = 1) -> None:
    """``max_basis`` of an estimator: None, "auto" or an integer from ``least`` on."""
    if value is None or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least):
        return
    kind = "a positive integer" if least == 1 else f"an integer >= {least}"
    check_option("max_basis", value, ("auto",), kind, "None")


def check_at_least(name: str, value: Any, least: int) -> int:
    """An integer from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, found {value!r}")
    return int(value)


def is_chosen(value: Any) -> bool:
    """Whether a price or a width is to be chosen on validation rows."""
    return isinstance(value, str) and value == "validate"


def is_plain(X: Any) -> bool:
    """Whether X is an array that scikit-learn's checks let pass as it is, if it is finite: they take longer than the
    scores of a row.
    """
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS and len(X) > 0 and X.shape[1] > 0


def is_plain_target(y: Any, n: int) -> bool:
    """The same of n labels."""
    return type(y) is np.ndarray and y.shape == (n,) and y.dtype.kind in "biuU"


def check_finite(X: Any, name: str = "X", columns: Any = None) -> None:
    """No NaN and no infinity; read in blocks, and the first offender is named by row and column, which may have names
    of their own (``columns``).
    """
    if (found := find_not_finite(X)) is not None:
        row, column, value = found
        what = "NaN" if np.isnan(value) else "infinity (inf)"
        named = column if columns is None else columns[column]
        raise ValueError(f"{name} contains {what} at row {row}, column {named!r}; only finite numbers are accepted")


def checked_target(y: Any) -> Any:
    """Labels or targets of which none is missing, with pandas' types of integers and truth values as NumPy's:
    scikit-learn makes them float64, in which large ones are equal.
    """
    if (found := first_missing(y)) is not None:
        row, value = found
        raise ValueError(f"Input y contains {value}, at row {row}: y must hold a label for every row, and this one is "
                         "missing")  # fmt: skip
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    return y if plain is None or isinstance(y, np.ndarray) else np.asarray(y, dtype=plain)


@contextmanager
def naming_rows_of(y: Any) -> Iterator[None]:
    """Scikit-learn says that y has a NaN or an infinity; here it says in which row, too."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Input y contains"):
            raise
        values = np.asarray(y)
        bad = ~np.isfinite(values) if values.dtype.kind == "f" else values != values
        raise ValueError(f"{str(error).rstrip('.')}, at row {np.argwhere(bad)[0][0]}") from None


def check_numbers(X: Any) -> Any:
    """X, whose entries must not be Python objects: scikit-learn lets categories of a pandas table pass as such."""
    if X.dtype.kind == "O":
        raise TypeError("X must hold real numbers, found dtype object")
    return X


@contextmanager
def naming_columns_of(X: Any) -> Iterator[None]:
    """Where texts, dates or categories are among the features, this says in which column and what to do."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if "feature names" in str(error) or (found := _first_of_no_number(X)) is None:
            raise
        column, value = found
        raise ValueError(
            f"X must hold numbers, found {value!r} in column {column!r}: convert the column to numbers (categories by "
            "sklearn.preprocessing.OneHotEncoder, in a ColumnTransformer), or leave it out"
        ) from None


def checked_features(transformer: Any, X: Any, *y: Any, reset: bool) -> Any:
    """Rows of a transformer as a dense array of float32 or float64, or a tuple of them and y where that is given;
    names, types and numbers are checked, and ``reset`` says whether they are those that later rows are compared to.
    """
    columns, y = getattr(X, "columns", None), tuple(map(checked_target, y))
    check_sparse(X)
    with naming_columns_of(X), naming_rows_of(*y or (None,)):
        checked = validate_data(
            transformer, X, *y, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=False
        )
    check_finite(check_numbers(checked[0] if y else checked), columns=columns)
    return checked


def _first_of_no_number(X: Any) -> tuple[Any, Any] | None:
    """The first column of a table that has a text or a time, and the first of them."""
    if sp.issparse(X):
        return None
    if hasattr(X, "columns"):
        columns: Any = ((name, np.asarray(X[name])) for name in X.columns)
    else:
        table = np.asarray(X, dtype=object)
        columns = enumerate(table.T if table.ndim == 2 else ())
    for name, values in columns:
        for value in values if values.dtype.kind not in "biufc" else ():
            is_text = isinstance(value, str | bytes)
            if (is_text and not _is_numeral(value)) or isinstance(value, date | np.datetime64 | np.timedelta64):
                return name, value if is_text else str(value)
    return None


def _is_numeral(value: str | bytes) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def check_sample_weight(
    sample_weight: Any, n: int, noun: str = "row", negative_is_zero: bool = False
) -> np.ndarray | None:
    """Finite weights ≥ 0 of shape (n,), not all zero; a single number stands for n equal ones. What else than a row a
    weight may be of (``noun``) must have a positive one. ``negative_is_zero``: a row of negative weight is left out.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n, sample_weight, dtype=np.float64)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, found {weights.ndim} dimensions")
    if len(weights) != n:
        raise ValueError(f"sample_weight must have one entry per {noun}: {n} {noun}s, found {len(weights)} weights")
    least = "" if negative_is_zero else " and >= 0" if noun == "row" else " and > 0"
    is_right = weights > 0 if noun != "row" else weights >= (-np.inf if negative_is_zero else 0)
    bad = np.flatnonzero(~(np.isfinite(weights) & is_right))
    if len(bad):
        raise ValueError(f"sample_weight must be finite{least}; found {weights[bad[0]]} at {noun} {bad[0]}")
    if not (weights > 0).any():
        found = "negative or zero" if weights.any() else "zero"
        raise ValueError(
            f"Invalid input - all samples have zero or negative weights. sample_weight is {found} for every row: there "
            "is nothing to learn from"
        )
    return np.maximum(weights, 0.0) if negative_is_zero else weights


def check_labels(y: np.ndarray) -> None:
    """Labels of rows: all numbers or all strings, and none missing."""
    if (found := first_missing(y)) is not None:
        row, value = found
        raise ValueError(
            f"y must hold a label for every row; found {value.replace('NaN', 'nan')} in row {row}: it is missing"
        )
    values = y.tolist() if y.dtype == object else []
    if len({isinstance(value, str) for value in values}) > 1:
        raise ValueError("y must hold strings or numbers; found both")


def found_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes among labels, and the position of each label's in them.

    scikit-learn's check takes longer than a small fit: integers and strings pass it, but for its warning that a target
    of many values may be one of regression.
    """
    is_plain = y.dtype.kind in "biuU"
    if not is_plain:
        check_classification_targets(y)
    classes = np.unique(y)
    if is_plain and 2 * len(classes) > len(y):
        check_classification_targets(y)
    # Of very many rows the codes are held as long as the fit takes.
    return classes, np.searchsorted(classes, y).astype(np.min_scalar_type(len(classes)))


def class_codes(y: np.ndarray, classes: np.ndarray, noun: str = "classes", hint: str = "") -> np.ndarray:
    """Positions of labels in the sorted ``classes``, all of which must be known; ``hint`` ends the message."""
    unknown = ~np.isin(y, classes)
    if unknown.any():
        found = f"{y[unknown].tolist()[0]!r} in row {int(np.argmax(unknown))}"
        raise ValueError(f"y must hold the {noun} {classes.tolist()}; found {found}{hint}")
    return np.searchsorted(classes, y)


def check_cost_matrix(cost_matrix: Any, n_classes: int) -> np.ndarray:
    """Finite costs ≥ 0 of shape (n_classes, n_classes) with a zero diagonal; positive ones between two classes."""
    cost = np.asarray(cost_matrix, dtype=np.float64)
    if cost.shape != (n_classes, n_classes):
        raise ValueError(
            f"cost_matrix must have one row and one column per class, shape ({n_classes}, {n_classes}); "
            f"found shape {cost.shape}"
        )
    bad = ~np.isfinite(cost) | (cost < 0) | (np.eye(n_classes, dtype=bool) & (cost != 0))
    if n_classes == 2:
        bad |= ~np.eye(2, dtype=bool) & (cost == 0)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"cost_matrix must hold finite costs with zeros on the diagonal, >= 0 elsewhere (> 0 between two classes); "
            f"found {cost[row, column]} at row {row}, column {column}"
        )
    return cost


def scale_gamma(X: Any, weights: np.ndarray | None, bulk: Bulk | None = None) -> float:
    """scikit-learn's ``gamma="scale"``: 1 / (n_features · variance of all entries), rows weighted; one pass in blocks,
    whose means and squares about them are put together (Chan, Golub, LeVeque 1983). Of the rows in a bulk, where given.
    """
    n, d = X.shape
    sparse = X.is_sparse if isinstance(X, Rows) else is_sparse(X)
    n_stored = (X.n_stored if isinstance(X, Rows) else X.nnz) if sparse else n * d
    step = max(1, BLOCK_VALUES // max(1, -(-n_stored // n)))  # by values of a row, zeros of sparse rows are none
    parts = [slice(*bounds) for bounds in parts_of(n)]
    owned = [None if weights is None else weights[part] for part in parts]
    if isinstance(X, Rows):
        adds = not (X.in_memory or X.is_sparse)
        both = X.map(partial(_moments_and_sums, step, adds, bulk), owned)
        found = [moments for moments, _ in both]
        if adds:  # which a kernel will want
            keep_sums(X, [sums for _, sums in both])
    else:
        found = [_moments(step, X if len(parts) == 1 else X[part], own, bulk=bulk) for part, own in zip(parts, owned)]
    total, _, squares = _put_together(found)
    variance = squares / total
    if not 0 < (gamma := 1.0 / (d * variance) if variance > 0 else 1.0) < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · variance of X), found a variance of {variance:.3g}: scale X, or give "
            "gamma as a number"
        )
    return gamma


def typical_gamma(X: Any, weights: np.ndarray | None) -> float:
    """``gamma="scale"`` of the rows that are not far from all others, and of features that are not farther from each
    other than they are wide: where gamma is only begun with.
    """
    bulk = Bulk.of(as_rows(X))
    return scale_gamma(X, weights, bulk) * max(1.0, bulk.apart / APART)


def _put_together(moments: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Weight, mean and squares about it of several sets together."""
    if len(moments) == 1:
        return moments[0]
    total, mean, squares = np.zeros(3)  # NumPy's numbers, which may be infinite
    for weight, own_mean, own_squares in moments:
        if weight > 0:
            off, before = own_mean - mean, total
            total += weight
            mean += off * (weight / total)
            squares += own_squares
            if before > 0:
                squares += off**2 * (weight * (before / total))
    return total, mean, squares


def _moments_and_sums(
    step: int, adds: bool, bulk: Bulk | None, X: Rows, weights: np.ndarray | None
) -> tuple[tuple[float, float, float], ColumnSums]:
    sums = ColumnSums(X.n_features, has_box=True)
    return _moments(step, X, weights, sums if adds else None, bulk), sums


def _moments(
    step: int, X: Any, weights: np.ndarray | None, sums: ColumnSums | None = None, bulk: Bulk | None = None
) -> tuple[float, float, float]:
    """Weight of all entries of some rows (in a bulk), their mean, and Σ weight · (entry − mean)², by ``step`` rows at a
    time; adds all rows to the sums.
    """
    found = []
    for part in in_pieces(X.shape[0], step):
        block: Any = X.slice(part.start, part.stop, X.exact_dtype) if isinstance(X, Rows) else X[part]
        if sums is not None:
            sums.add(block)
        block, own = block.astype(np.float64), None if weights is None else weights[part]
        if bulk is not None and not (held := bulk.holds(block)).all():
            block, own = block[held], None if own is None else own[held]
        found.append(_moments_of(block, own))
    return _put_together(found)


def _moments_of(block: Any, weights: np.ndarray | None) -> tuple[float, float, float]:
    total = (block.shape[0] if weights is None else float(weights.sum())) * float(block.shape[1])
    if not total:
        return 0.0, 0.0, 0.0
    if is_sparse(block):
        sums = [_weighted(weights, np.asarray(part.sum(axis=1)).ravel()) for part in (block, block.power(2))]
        return total, sums[0] / total, sums[1] - sums[0] ** 2 / total
    mean = _weighted(weights, block.sum(axis=1)) / total
    block -= mean
    with np.errstate(over="ignore"):  # an infinite variance is an error of its own
        return total, mean, _weighted(weights, np.square(block, out=block).sum(axis=1))


def _weighted(weights: np.ndarray | None, values: np.ndarray) -> float:
    """Σ weights · values, without BLAS, whose sums depend on how many threads it has."""
    return float((values if weights is None else weights * values).sum())


def takes_label_sets(solver: Any) -> bool:
    """Whether a solver, or the one of that name, trains rows with several labels."""
    found = solvers.SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    return getattr(found, "takes_label_sets", True)
