"""Checks of what users pass in: parameters, rows, labels, weights, lists of sequences, objects for a kernel function.

Every message names the parameter or the row, what was found and what is accepted.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import _safe_indexing, check_array, check_X_y
from sklearn.utils.multiclass import check_classification_targets, is_multilabel
from sklearn.utils.validation import _num_samples, validate_data

from slimsvm import solvers
from slimsvm.kernels import CallableKernel, Kernel
from slimsvm.kernels.user_kernels import CallableValues
from slimsvm.parts.problem import check_flag
from slimsvm.rows import (
    FLOATS,
    Rows,
    check_mask,
    check_one_kind,
    find_not_finite,
    first_missing,
    is_sparse,
    say_not_finite,
)
from slimsvm.sparse_parts import check_sparse
from slimsvm.tasks import LOSSES_OF_LOG_ODDS

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion

Array = np.ndarray

# What C=inf stands for. scikit-learn's is as good as this, too.
HARD_MARGIN = 1e10


def check_positive(name: str, value: Any, otherwise: str = "") -> float:
    """Check that a value is a finite number > 0; ``otherwise`` says what else is accepted."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name} must be a positive number{otherwise}, found {value!r}")
    return float(value)


def check_C(name: str, value: Any, otherwise: str = "") -> float:
    """Check that C is a number > 0; infinity becomes `HARD_MARGIN`."""
    is_infinite = isinstance(value, Real) and float(value) == np.inf
    return HARD_MARGIN if is_infinite else check_positive(name, value, otherwise)


def check_limit(name: str, value: Any, integer: bool, least: int = 1) -> Any:
    """Check a limit: a positive number, 0 if ``least`` is 0, or None or (for integers) -1, which mean no limit."""
    if value is None or (integer and value == -1):
        return None
    is_least = least == 0 and value == 0
    is_number = isinstance(value, Integral if integer else Real) and not isinstance(value, bool)
    if not is_number or not (is_least or float(value) > 0):
        none = "None or -1" if integer else "None"
        raise ValueError(f"{name} must be a positive {'integer' if integer else 'number'}, or {none}; found {value!r}")
    return value


def check_option(name: str, value: Any, options: tuple[Any, ...], *others: str) -> Any:
    """Check that a value is one of the options; ``others`` says in words what else the parameter may be."""
    if value not in options:
        named = ", ".join(map(repr, options))
        if len(options) == 1:
            known = f"{', '.join(others)} or {named}"
        else:
            known = " or ".join([f"one of {named}", *others])
        raise ValueError(f"{name} must be {known}; found {value!r}")
    return value


def check_cap(value: Any, least: int = 1) -> None:
    """Check ``max_basis``: None, "auto" or an integer >= ``least``."""
    if value is None or (isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least):
        return
    kind = "a positive integer" if least == 1 else f"an integer >= {least}"
    check_option("max_basis", value, ("auto",), kind, "None")


def check_at_least(name: str, value: Any, least: int) -> int:
    """Check that a value is an integer >= ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer >= {least}, found {value!r}")
    return int(value)


def is_chosen(value: Any) -> bool:
    """Whether C or gamma is to be chosen on validation rows."""
    return isinstance(value, str) and value == "validate"


def is_plain(X: Any) -> bool:
    """Whether X is an array that scikit-learn's checks, which take longer than the scores of a row, let pass as it is
    if it is finite.
    """
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype in FLOATS and len(X) > 0 and X.shape[1] > 0


def is_plain_target(y: Any, n: int) -> bool:
    """Whether y is an array of n labels or targets that scikit-learn's checks let pass as it is."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    return y.dtype.kind in "biuU" or (y.dtype in FLOATS and bool(np.isfinite(y).all()))


def check_finite(X: Any, name: str = "X", columns: Any = None) -> None:
    """Raise a ValueError that names row and column (by ``columns``, if given) of the first NaN or infinity.

    X is read in blocks.
    """
    if (found := find_not_finite(X)) is not None:
        raise ValueError(say_not_finite(found, names=columns, of=name))


def takes_several(estimator: Any, y: Any) -> bool:
    """Whether y has several labels or targets for each row, and the estimator takes them."""
    if estimator._takes_targets:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y, object).shape
        return len(shape) == 2 and shape[1] > 1
    return bool(estimator._takes_labels and is_multilabel(y))


def checked_target(y: Any) -> Any:
    """Labels or targets, after a check that none is missing. pandas' integers and truth values become NumPy's:
    scikit-learn makes them float64, in which large ones are equal.
    """
    if (found := first_missing(y)) is not None:
        row, value = found
        raise ValueError(f"Input y contains {value}, at row {row}: y must hold a label for every row, and this one is "
                         "missing")  # fmt: skip
    check_one_kind(y)
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)
    return y if plain is None or isinstance(y, np.ndarray) else np.asarray(y, dtype=plain)


@contextmanager
def naming_rows_of(y: Any) -> Iterator[None]:
    """Add the row to scikit-learn's message that y has a NaN or an infinity."""
    try:
        yield
    except ValueError as error:
        if not str(error).startswith("Input y contains"):
            raise
        values = np.asarray(y)
        bad = ~np.isfinite(values) if values.dtype.kind == "f" else values != values
        raise ValueError(f"{str(error).rstrip('.')}, at row {np.argwhere(bad)[0][0]}") from None


def target_of(estimator: Any, y: Any, n: int) -> Any:
    """Labels or targets of n rows that scikit-learn does not check."""
    y = checked_target(y)
    stand_in = np.broadcast_to(np.float32(0), (n, 1))  # it checks y together with rows
    options = {"y_numeric": estimator._y_numeric, "multi_output": takes_several(estimator, y)}
    with naming_rows_of(y):
        found: Any = check_X_y(stand_in, y, estimator=estimator, **options)[1]
    return found.toarray() if is_sparse(found) else found


def check_numbers(X: Any) -> Any:
    """Refuse X with Python objects as entries: scikit-learn lets categories of a pandas table pass."""
    if X.dtype.kind == "O":
        raise TypeError("X must hold real numbers, found dtype object")
    return X


@contextmanager
def naming_columns_of(X: Any) -> Iterator[None]:
    """Replace scikit-learn's error about texts, dates or categories by one that names the column and what to do."""
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


def check_rows_of_numbers(X: Any) -> None:
    """Refuse rows that are texts or dictionaries, and say what makes numbers of them; let anything else pass."""
    is_line = isinstance(X, list | tuple) or getattr(X, "ndim", 0) == 1
    first = next(iter(X), None) if is_line else None
    makers = {str: ("texts", "text.TfidfVectorizer"), Mapping: ("dictionaries", "DictVectorizer")}
    for kind, (found, maker) in makers.items():
        if isinstance(first, kind):
            made = f"sklearn.feature_extraction.{maker} makes rows of them"
            raise ValueError(f"X must hold rows of numbers, found {found}: {made}")


def checked_features(transformer: Any, X: Any, *y: Any, reset: bool, **accepted: Any) -> Any:
    """Check a transformer's rows; return them, together with y if it is given, as a dense array of float32 or float64,
    unless others are ``accepted``. ``reset``: later rows must have the columns of these.
    """
    options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False} | accepted
    columns, y = getattr(X, "columns", None), tuple(map(checked_target, y))
    check_sparse(X)
    check_mask(X)
    with naming_columns_of(X), naming_rows_of(*y or (None,)):
        checked = validate_data(transformer, X, *y, reset=reset, **options)
        found = check_numbers(checked[0] if y else checked)
    check_finite(found, columns=columns)
    return checked


def _first_of_no_number(X: Any) -> tuple[Any, Any] | None:
    """The first column of a table with a text or a time in it, and its first text or time."""
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
    """Finite weights ≥ 0 of shape (n,), not all zero; a single number stands for n equal ones. If ``noun`` is another
    than "row", such as "sequence", all weights must be positive. ``negative_is_zero``: negative weights become 0.
    """
    if sample_weight is None:
        return None
    check_mask(sample_weight, "sample_weight")
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
    """Check that labels are all numbers or all strings, and none is missing."""
    if (found := first_missing(y)) is not None:
        row, value = found
        raise ValueError(
            f"y must hold a label for every row; found {value.replace('NaN', 'nan')} in row {row}: it is missing"
        )
    check_one_kind(y)


def check_classes(y: Any) -> None:
    """Check that labels are those of classes; of objects that are no texts say what to do, as scikit-learn does not."""
    if y.dtype.kind == "O" and y.ndim == 1 and len(y) and not isinstance(y[0], str | bytes):
        raise ValueError(
            f"Unknown label type: y is an array of objects, found {y[0]!r} of type {type(y[0]).__name__}; accepted are "
            "strings, or an array of numbers or truth values: y.astype(str), y.astype(int), or y.astype(bool)"
        )
    if y.dtype.kind == "f" and y.ndim == 1 and np.isfinite(y).all() and (is_part := y != np.floor(y)).any():
        row = int(np.argmax(is_part))
        raise ValueError(
            f"Unknown label type: continuous: y has {y[row]!s} in row {row}; classes are whole numbers, texts or truth "
            "values. y.astype(str) makes classes of numbers; numbers are predicted by a regression"
        )
    check_classification_targets(y)


def found_classes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The classes among labels, and the position of each label's in them.

    scikit-learn's check takes longer than a small fit: integers and strings pass it, but for its warning that a target
    of many values may be one of regression.
    """
    is_plain = y.dtype.kind in "biuU"
    if not is_plain:
        check_classes(y)
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


def named_classes(classes: Any) -> np.ndarray:
    """Classes that a user names, as an array; a ValueError where one is missing, or some are texts and others not."""
    if (found := first_missing(classes)) is not None:
        raise ValueError(f"classes must name every class; found {found[1]} at position {found[0]}")
    check_one_kind(classes, "classes", "position")
    return np.asarray(classes)


def in_declared_order(found: np.ndarray, y: Any) -> np.ndarray:
    """Sorted classes in the order of y's type: ordered categories of pandas, an Enum of polars; else as they are.

    A warning says that texts without such an order are sorted as texts, unless each is one character.
    """
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) is True or type(dtype).__name__ == "Enum":
        place = {name: place for place, name in enumerate(dtype.categories)}
        return found[np.argsort([place[name] for name in found.tolist()])]
    names = found.tolist()
    if len(names) > 2 and all(isinstance(name, str) for name in names) and max(map(len, names)) > 1:
        order = " < ".join(map(repr, names[:5])) + (" < …" if len(names) > 5 else "")
        warnings.warn(
            f"classes are texts without an order, and are sorted as texts: {order}; give classes=[...] from the lowest "
            "to the highest, or y as ordered categories",
            UserWarning,
            stacklevel=4,
        )
    return found


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


def takes_label_sets(solver: Any) -> bool:
    """Whether a solver, or the one of that name, trains rows with several labels."""
    found = solvers.SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    return getattr(found, "takes_label_sets", True)


# -- lists of sequences or other examples -----------------------------------------------------------------------------


def stack_sequences(X: Any, width: int | None, noun: str) -> tuple[Any, Array]:
    """The rows of a list of examples as one array (None if there is no row), and the number of rows of each.

    ``width`` is the number of features that they must have; None: that of the first, and there must be a row. ``noun``
    is what messages call an example.
    """
    if (isinstance(X, np.ndarray) and X.dtype != object) or sp.issparse(X) or hasattr(X, "iloc"):
        raise ValueError(f"X must be a list of {noun}s, or one array together with lengths; found one array alone")
    if not len(X):
        raise ValueError(f"X must hold at least one {noun}, found none")
    rows_needed, parts = width is None, []
    for e, sequence in enumerate(X):
        check_sparse(sequence, f"{noun} {e}")
        check_mask(sequence, f"{noun} {e}")
        part: Any = sequence if sp.issparse(sequence) else np.asarray(sequence)
        if part.ndim == 0 or (part.shape[0] and part.ndim != 2):
            raise ValueError(f"every {noun} must have shape (length, n_features); {noun} {e} has {part.shape}")
        if part.shape[0]:
            width = part.shape[1] if width is None else width
            if part.shape[1] != width:
                raise ValueError(f"{noun} {e} has {part.shape[1]} features, found {width} before")
        parts.append(part)
    filled = [part for part in parts if part.shape[0]]
    lengths = np.array([part.shape[0] for part in parts], dtype=np.int64)
    if not filled:
        if rows_needed:
            raise ValueError(f"X must hold at least one row, found empty {noun}s only")
        return None, lengths
    if sp.issparse(filled[0]):
        stacked: Any = sp.vstack([sp.csr_array(part) for part in filled])
        return sp.csr_array(stacked), lengths
    # scikit-learn's check of each takes longer than many a fit; that of all rows together comes later.
    are_numbers = all(part.dtype.kind in "biuf" for part in filled)
    return np.concatenate(
        filled if are_numbers else [check_array(part, ensure_all_finite=False) for part in filled]
    ), lengths


def has_log_odds(estimator: Any) -> bool:
    """Whether an estimator's scores are log odds by training."""
    loss = vars(estimator).get("_at_fit", {}).get("loss", getattr(estimator, "loss", None))
    return isinstance(loss, str) and loss in LOSSES_OF_LOG_ODDS


def wants_probability(estimator: Any) -> bool:
    """Whether an estimator has a loss of log odds, or ``probability`` that is true; "deprecated", scikit-learn's
    default, is not.
    """
    if has_log_odds(estimator):
        return True
    value = getattr(estimator, "probability", False)
    if isinstance(value, str) and value == "deprecated":
        return False
    check_flag("probability", value)
    return bool(value)


def check_one_array(X: Any, noun: str) -> None:
    """Refuse a list of arrays: with lengths, X is one array of all rows."""
    if isinstance(X, (list, tuple)) and len(X) and (sp.issparse(X[0]) or getattr(X[0], "ndim", 1) == 2):
        raise ValueError(f"X must be a list of {noun}s, or one array together with lengths; found a list and lengths")


def offsets_of(lengths: Any, n_rows: int, noun: str) -> Array:
    """Positions where examples begin among ``n_rows`` rows, and where the last one ends."""
    lengths = np.asarray(lengths)
    if lengths.ndim != 1 or not len(lengths) or lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise ValueError(f"lengths must be integers >= 0, one for each {noun}; found {lengths!r}")
    if lengths.sum() != n_rows:
        raise ValueError(f"lengths must add up to the rows of X, {n_rows}; found {lengths.sum()}")
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


# -- rows in blocks ---------------------------------------------------------------------------------------------------


def check_blocks(estimator: Any, X: Rows, reset: bool, y: Any) -> Any:
    """Return `Rows` (`Blocks`, Dask's) as they are, because reading checks their numbers, and y if given.

    A ValueError says if the estimator or its kernel takes no blocks, or if the number of features, or their names, are
    not those of training.
    """
    if not estimator._takes_blocks or estimator._is_precomputed:
        what = "kernel='precomputed'" if estimator._takes_blocks else type(estimator).__name__
        raise ValueError(f"{what} takes arrays and sparse matrices, found {X!r}: load the rows, or use SVC or SVR")
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        estimator.n_features_in_ = X.n_features
        if X.feature_names is not None:
            estimator.feature_names_in_ = np.array(X.feature_names, dtype=object)
    elif X.n_features != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.n_features} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input"
        )
    else:
        _check_names(estimator, X)
    return X if isinstance(y, str) else (X, target_of(estimator, y, X.n_rows))


def _check_names(estimator: Any, X: Rows) -> None:
    """Raise a ValueError if both have names of columns, and those are not the ones of training in their order."""
    expected, found = getattr(estimator, "feature_names_in_", None), X.feature_names
    if expected is not None and found is not None and found != list(expected):
        raise ValueError(f"X has the columns {found}, expected are those of training, in their order: {list(expected)}")


# -- rows that are no numbers -----------------------------------------------------------------------------------------


def are_objects(kernel: Any, X: Any) -> bool:
    """Whether the kernel is a function, and X no table of numbers, so that the function gets X as it is."""
    if not callable(kernel) or isinstance(kernel, Kernel) or isinstance(X, Rows) or sp.issparse(X):
        return False
    try:
        table = np.asarray(X)
    except (TypeError, ValueError):  # lists of different lengths
        return True
    if table.ndim != 2:
        return True
    if table.dtype.kind != "O":
        return table.dtype.kind not in "biuf"
    try:
        table.astype(np.float64)
    except (TypeError, ValueError):
        return True
    return False


@dataclass(frozen=True)
class Objects:
    """Rows that are no numbers (texts, lists, graphs), and the user's kernel function, which compares others with them.

    As in scikit-learn the function gets them as they are, and the solver gets the matrix of its values; new rows are
    compared with all rows of the fit. (Some functions know no others, because they have looked these up.) A model of
    few vectors keeps these, and new rows are compared with them alone.
    """

    rows: Any  # in the container they came in
    kernel: CallableKernel
    are_vectors: bool = False  # whether they are a model's vectors alone, not all rows of its fit

    def values(self, X: Any, name: str) -> Array:
        """The kernel's values between X and these rows."""
        shape = n_rows(X, name), n_rows(self.rows, name)
        return self.kernel.checked(self.kernel.function(X, self.rows), shape)

    @property
    def kernel_of_values(self) -> CallableValues:
        """The kernel of a solver that gets the matrix of values."""
        return CallableValues(self.kernel.function)

    def of_basis(self, model: KernelExpansion) -> tuple[Objects, KernelExpansion]:
        """The rows that are the model's vectors, and the model over them alone."""
        positions = np.asarray(model.basis)[:, 0]
        own = np.arange(len(positions))[:, None]
        return Objects(_safe_indexing(self.rows, positions), self.kernel, True), replace(model, basis=own)


def n_rows(X: Any, name: str) -> int:
    """Number of rows, at least one."""
    n = _num_samples(X)
    if not n:
        raise ValueError(f"Found array with 0 sample(s) while a minimum of 1 is required by {name}.")
    return n


def numbers_of(y: Any, classifier: str) -> Array:
    """Targets as float64; an error names the first that is no number, and the estimator that takes labels."""
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "kind", None) in ("m", "M"):
        raise ValueError(f"y must hold numbers, found times ({dtype}): make numbers of them, such as days")
    try:
        return np.asarray(y, np.float64)
    except (TypeError, ValueError):
        for (row, *_), value in np.ndenumerate(np.asarray(y)):
            try:
                float(value)
            except (TypeError, ValueError):
                found = str(value) if isinstance(value, str) else value
                raise ValueError(
                    f"y must hold numbers, found {found!r} at row {row}; {classifier} takes labels"
                ) from None
        raise


# -- files ------------------------------------------------------------------------------------------------------------


def check_path(estimator: Any, path: Any) -> None:
    """Raise a ValueError if the path leads, by whatever name, to a file of the rows that the model was trained on."""
    for file in vars(estimator).get("_read_from", ()):
        if os.path.exists(path) and os.path.exists(file) and os.path.samefile(path, file):
            raise ValueError(f"{os.fspath(path)} is the file {file} that the rows are read from, which would be lost: "
                             "give another path")  # fmt: skip
