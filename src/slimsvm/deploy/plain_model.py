"""A model file as a program of a few steps, the source of every form a model is shipped in.

    row -> scaling -> values of the kernel -> products with coefficients -> decision

Each step is a value with a name: `Scaling`, a kernel (`slimsvm.kernels`), ``coef`` and ``intercept``, and the ``kind``
of the decision (`slimsvm.deploy.decisions`). Forms are interpreters of these, or printers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from slimsvm.deploy.decisions import CLASSIFIERS, kind_of, quantiles_of
from slimsvm.deploy.rows import CsrRows, Scaling, check_finite, dense_rows, read_scaling
from slimsvm.deploy.steps import Encoding
from slimsvm.kernels.kernel import NUMPY, feature_gamma
from slimsvm.kernels.registry import KERNELS as EVERY_KERNEL
from slimsvm.kernels.registry import parameters_of
from slimsvm.modelfile import damage_named, read_model
from slimsvm.sparse_parts import WIDE_FEATURES, seen_by

Array = np.ndarray

# Numbers of a block of rows, of vectors or of kernel values.
BLOCK_NUMBERS = 1 << 22
# Of larger |x|² + |z|², |x − z|² is the sum of squares that it says: the shorter way, by products, loses digits.
FAR = 1e7
# Squared distances are cut at this, so that kernels of them are numbers.
LARGEST = 1e300
# Arrays of a file: their kinds of types and numbers of axes.
PARTS = [
    ("coef", "f", 2), ("intercept", "f", 1), ("plain", "f", 1), ("basis", "fiu", 2), ("basis_data", "f", 1),
    ("basis_indices", "iu", 1), ("basis_indptr", "iu", 1), ("features", "iu", 1), ("kernel_gamma", "f", 1),
    ("kernel_shares", "f", 1), ("kernel_widths", "iu", 1), ("classes", "biufU", 1), ("calibration", "f", 2),
    ("nonconformity", "f", 1), ("nonconformity_classes", "u", 1),
    *((f"scaling_{name}", "f", 1) for name in Scaling._fields),
]  # fmt: skip
FINITE = "coef", "intercept", "plain", "basis", "basis_data", "kernel_gamma", "kernel_shares"
# Parameters of estimators: what a file may have as each, one letter for a kind of `_kind_of_value`.
PARAMETERS = {
    name: kinds
    for names, kinds in [
        ("coef0 cache_size tol memory_limit deviations n_subsets variances degree epsilon nu window", "n"),
        ("probability", "b"), ("verbose shrinking warm_start break_ties balance rejoin second_stage", "bn"),
        ("max_iter max_seconds n_jobs random_state subset_size validation_size time_limit", "n0"),
        ("C first_C", "nt"), ("max_basis calibration_size", "nt0"), ("gamma", "ntla"), ("quantile", "nla"),
        ("kernel precision multi_class decision_function_shape intercept preset", "t"), ("loss", "tk"),
        ("solver", "ts"), ("class_weight", "tp0"), ("cost_matrix", "la0"), ("classes", "vla0"), ("task", "k0"),
    ]
    for name in names.split()
}  # fmt: skip
# Vectors on which a shipped form's errors are measured.
PROBES = 256


@dataclass(frozen=True, eq=False)
class PlainModel:
    """f_c(x) = Σ_j coef_jc k(z_j, x) + intercept_c, and how labels come of it; all numbers are float64.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.deploy.plain_model import PlainModel
    >>> from slimsvm.kernels import RBF
    >>> model = PlainModel("binary", RBF(1.0), 2, np.zeros((1, 2)), np.ones((1, 1)), np.array([-0.5]), np.zeros(0),
    ...                    np.array(["out", "in"]), {})
    >>> model.scores(np.array([[0.0, 0.0]]))
    array([[0.5]])
    """

    kind: str  # a key of `slimsvm.deploy.decisions.DECISIONS`
    # Kernel or FoldedKernel, by their form. With one of weights there are no vectors: scores are products of rows and
    # coef, of shape (n_features, n_outputs).
    kernel: Any
    n_features: int  # that the kernel sees: for sequences, of a row with the rows of its window
    vectors: Any  # (n_vectors, n_features), or CsrRows; for a precomputed kernel positions of rows, (n_vectors, 1)
    coef: Array  # (n_vectors, n_outputs)
    intercept: Array
    plain: Array  # thresholds of ordered classes; transitions, start and end of sequences
    classes: Array | None
    options: dict[str, Any]  # parameters of the estimator that labels depend on
    scaling: Scaling | None = None  # is done to a row first; the kernel and its vectors know scaled rows only
    examples: Array | None = None  # some vectors of a linear model that has its weights from vectors: the range of rows
    feature_names: list[str] | None = None  # what the features of a row are called, before any scaling
    columns: tuple[Array, int] | None = None  # of wide sparse rows: those that are features, and the number of all
    # What makes probabilities of scores: (u, w, c, b) of `OfArrays.log_odds` for the score of two classes, each pair of
    # several, each label, or all thresholds of ordered classes alike.
    calibration: Array | None = None
    nonconformity: Any = None  # how badly rows fitted that nothing was learned from, ascending
    nonconformity_classes: Any = None  # places of their classes
    encoding: Encoding | None = None  # what makes rows, not scaled yet, of the columns that users have

    @property
    def n_outputs(self) -> int:
        """Number of scores of a row."""
        return len(self.intercept)

    def scores(self, X: Array) -> Array:
        """Scores (n, n_outputs) of a block of rows, as users have them: not scaled yet."""
        X = self.scaled(X)
        total = np.tile(self.intercept, (len(X), 1))
        for vectors, coef in self._pieces():
            total += self._kernel_values(X, vectors) @ coef
        return total

    def scaled(self, rows: Array) -> Array:
        """Return rows as the kernel sees them."""
        return rows if self.scaling is None else self.scaling.rows(rows)

    def unscaled(self, rows: Array) -> Array:
        """Return rows as users have them, of rows as the kernel sees them."""
        return rows if self.scaling is None else self.scaling.unscaled(rows)

    @property
    def is_one_product(self) -> bool:
        """Whether scores are products of rows, or of kernel values that rows hold, with coefficients."""
        return self.vectors is None or self.kernel.form == "columns"

    @property
    def block_rows(self) -> int:
        """Rows to be scored at a time."""
        return max(1, BLOCK_NUMBERS // max(1, self.n_features, len(self.coef)))

    @property
    def row_features(self) -> int:
        """Number of features of a row as users have it."""
        return self.n_features if self.columns is None else self.columns[1]

    def seen(self, rows: Array | CsrRows) -> Array | CsrRows:
        """Rows as users have them by the model's columns; see `slimsvm.sparse_parts.seen_by`."""
        if self.columns is None:
            return rows
        if not isinstance(rows, CsrRows):
            check_finite(rows)
            row, column = np.nonzero(rows)
            rows = CsrRows(rows[row, column], column, np.searchsorted(row, np.arange(len(rows) + 1)), rows.shape)
        elif not np.isfinite(rows.data).all():
            at = int(np.argmin(np.isfinite(rows.data)))
            where = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise ValueError(
                f"X must hold finite numbers, found {rows.data[at]} in row {where}, column {rows.indices[at]}"
            )
        parts = seen_by(self.columns[0], self.kernel.form, rows.data, rows.indices, rows.indptr)
        return CsrRows(*parts, (rows.shape[0], self.n_features))

    def dense_vectors(self) -> Array:
        """All vectors as one float64 array."""
        return dense_rows(self.vectors, 0, len(self.coef))

    def _pieces(self) -> Iterator[tuple[Any, Array]]:
        """The vectors and their coefficients, some at a time."""
        if self.vectors is None:
            yield None, self.coef
            return
        step = max(1, BLOCK_NUMBERS // max(1, self.n_features))
        for lo in range(0, len(self.coef), step):
            hi = min(lo + step, len(self.coef))
            yield dense_rows(self.vectors, lo, hi), self.coef[lo:hi]

    def _kernel_values(self, X: Array, Z: Any) -> Array:
        """k(x_i, z_j), shape (n, n_vectors)."""
        if Z is None:
            return X
        if self.kernel.form == "columns":
            return X[:, Z[:, 0].astype(np.int64)]
        if self.kernel.form == "terms":
            terms = self.kernel.terms(self.n_features)
            return sum(
                term.share * _formula_values(term.kernel, X[:, term.columns], Z[:, term.columns]) for term in terms
            )
        return _formula_values(self.kernel, X, Z)


def of_term(model: PlainModel, term: Any) -> PlainModel:
    """What a term of the kernel adds to the scores of scaled rows: a model of the term's columns."""
    vectors = model.dense_vectors()[:, term.columns]
    coef, intercept = term.share * model.coef, np.zeros(model.n_outputs)
    return replace(model, kernel=term.kernel, n_features=vectors.shape[1], vectors=vectors, coef=coef,
                   intercept=intercept, scaling=None)  # fmt: skip


def describe(model: PlainModel) -> str:
    """Describe the model in a line."""
    size = f"{model.n_features} feature{'s' * (model.n_features != 1)}"
    if model.vectors is not None:
        size = f"{len(model.coef)} vector{'s' * (len(model.coef) != 1)} of {size}"
    scaled = "" if model.scaling is None else ", scaled"
    scaled += "" if model.encoding is None else f", of {model.encoding.n_columns} columns"
    scores = f"{model.n_outputs} score{'s' * (model.n_outputs != 1)}"
    return f"{model.kind}, kernel {model.kernel.name}, {size}{scaled}, {scores}"


# Kernels that a model can have without training code.
KERNELS = {name: kernel for name, kernel in EVERY_KERNEL.items() if kernel.form is not None}


def _formula_values(kernel: Any, X: Array, Z: Array) -> Array:
    return kernel.formula(Z_OF[kernel.form](kernel, X, Z), NUMPY)


def _products(kernel: Any, X: Array, Z: Array) -> Array:
    return kernel.gamma * (X @ Z.T) + kernel.coef0


def _squares(kernel: Any, X: Array, Z: Array) -> Array:
    root = np.sqrt(kernel.gamma)
    return (-0.5 * kernel.unit) * _squared_distances(X * root, Z * root)


def _magnitudes(kernel: Any, X: Array, Z: Array) -> Array:
    rows = X * kernel.gamma
    return -kernel.unit * np.stack([np.abs(rows - z).sum(axis=1) for z in Z * kernel.gamma], axis=1)


# The z of rows and vectors that a kernel is a map of, by its form.
Z_OF = {"products": _products, "squares": _squares, "absolute": _magnitudes}


def _squared_distances(X: Array, Z: Array) -> Array:
    """|x_i − z_j|², at most `LARGEST`."""
    norms = np.sum(X * X, axis=1)[:, None] + np.sum(Z * Z, axis=1)
    squares = np.maximum(norms - 2.0 * (X @ Z.T), 0.0)
    for i in np.flatnonzero((norms > FAR).any(axis=1)):
        squares[i] = np.sum((X[i] - Z) ** 2, axis=1)
    return np.minimum(squares, LARGEST)


def read_plain_model(path: Any, by_columns: bool = False) -> PlainModel:
    """The model of a file that an estimator's ``save`` wrote; ``by_columns`` of wide sparse vectors by their columns.

    Errors say if there is no such file, if it is not a model that this version knows, or if it predicts what plain
    arrays cannot: labellings of a task of its own.
    """
    return plain_model_of_parts(path, *read_model(path), by_columns)


def plain_model_of_parts(path: Any, header: dict[str, Any], arrays: dict[str, Array], by_columns: bool) -> PlainModel:
    """The model of a file whose parts are read; ``by_columns`` as in `read_plain_model`."""
    with damage_named(f"{path}: not a model this version knows"):
        check_parts(header, arrays)
        narrow = _narrowed(header, arrays) if by_columns else None
        if narrow is None:
            return plain_model(header, arrays)
        return replace(plain_model(*narrow[1:]), columns=(narrow[0], header["fitted"]["n_features_in_"]))


def _narrowed(
    header: dict[str, Any], arrays: dict[str, Array]
) -> tuple[Array, dict[str, Any], dict[str, Array]] | None:
    """The columns of wide sparse vectors or weights, and the file's parts with these alone; None of others."""
    width, name = header["fitted"]["n_features_in_"], "features" if "weights" in header else "basis_indices"
    knows_columns = KERNELS[header["kernel"]["kernel"]].form == "terms"
    is_plain = (
        not knows_columns
        and "scaling" not in header
        and "encoding" not in header
        and "kernel_gamma" not in arrays
        and not header["params"].get("window", 0)
    )
    if width <= WIDE_FEATURES or name not in arrays or not is_plain or _feature_names(header) is not None:
        return None
    found = arrays[name]
    if len(found) and not (found.min() >= 0 and found.max() < width):
        raise ValueError(f"{name} must lie between 0 and {width - 1}")
    columns = np.unique(found).astype(np.int64)
    shape = "weights" if "weights" in header else "basis_shape"
    header = header | {shape: [header[shape][0], len(columns) + 1]}
    header["fitted"] = header["fitted"] | {"n_features_in_": len(columns) + 1}
    return columns, header, arrays | {name: np.searchsorted(columns, found)}


def plain_model(header: dict[str, Any], arrays: dict[str, Array]) -> PlainModel:
    """The model that the header and the arrays of a file describe."""
    fitted, params = header["fitted"], header["params"]
    check_parts(header, arrays)
    kernel = KERNELS[header["kernel"]["kernel"]].from_header(header["kernel"], arrays)
    classes = arrays.get("classes")
    if classes is not None and fitted.get("classes_are_objects"):
        classes = classes.astype(object)
    names = "decision_function_shape", "break_ties", "window"
    vectors, coef = _vectors(header, arrays), np.asarray(arrays["coef"], np.float64)
    if vectors is not None and not len(coef):  # a constant: with a vector that counts nothing no form is a special case
        vectors, coef = np.zeros((1, vectors.shape[1])), np.zeros((1, coef.shape[1]))
    kind = kind_of(header["estimator"], params, fitted, classes, coef.shape[1])
    model = PlainModel(
        kind=kind,
        kernel=kernel,
        n_features=fitted["n_features_in_"] * (2 * params.get("window", 0) + 1),
        vectors=vectors,
        coef=coef,
        intercept=np.asarray(arrays["intercept"], np.float64),
        plain=np.asarray(arrays["plain"], np.float64),
        classes=classes,
        options={option: params[option] for option in names if option in params}
        | ({"quantile": quantiles_of(params)} if kind == "quantiles" else {}),
        scaling=read_scaling(arrays, fitted["n_features_in_"]) if "scaling" in header else None,
        feature_names=None if "encoding" in header else _feature_names(header),
        calibration=read_calibration(header, arrays),
        nonconformity=arrays.get("nonconformity"),
        nonconformity_classes=arrays.get("nonconformity_classes"),
        encoding=read_encoding(header, arrays),
    )
    has_steps = model.scaling is not None or model.encoding is not None
    if has_steps and (model.kind == "sequences" or kernel.form == "columns"):
        raise ValueError(f"there is no scaling for {model.kind}, kernel {kernel.name}")
    if model.nonconformity is not None:
        check_nonconformity(arrays)
    _check_shapes(model, arrays)
    return _with_weights(model, arrays) if kernel.has_weights else model


def check_parts(header: dict[str, Any], arrays: dict[str, Array]) -> None:
    """A ValueError where entries of a file are not of the type that every reader needs."""
    for name, kinds, n_axes in PARTS:
        if name in arrays and (arrays[name].dtype.kind not in kinds or arrays[name].ndim != n_axes):
            found = arrays[name]
            raise ValueError(f"the array {name} must not have dtype {found.dtype} and shape {found.shape}")
        if name in arrays and name in FINITE and not np.isfinite(arrays[name]).all():
            raise ValueError(f"the array {name} must hold finite numbers")
    if "table" in header:
        raise ValueError(f"a {header['estimator']} encodes the columns of a table: slimsvm.load and load_predictor "
                         "read it, and this form has no place for that")  # fmt: skip
    fitted, params = header["fitted"], header["params"]
    check_params(params)
    window, kernel = params.get("window", 0), header["kernel"]
    for entry, value, least in (("n_features_in_", fitted["n_features_in_"], 0), ("window", window, 0),
                                ("degree", kernel.get("degree", 0), 0)):  # fmt: skip
        if type(value) is not int or value < least:
            raise ValueError(f"{entry} must be a whole number >= {least}, found {value!r}")
    for entry, number in (("gamma", kernel.get("gamma", 1.0)), ("coef0", kernel.get("coef0", 0.0))):
        if type(number) not in (int, float) or not math.isfinite(number):
            raise ValueError(f"{entry} must be a finite number, found {number!r}")
    name = kernel["kernel"]
    if name not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, found {name!r}")
    parameters = parameters_of(name)
    if "gamma" in parameters and not ("gamma" in kernel or "kernel_gamma" in arrays):
        raise ValueError("the kernel has no gamma")
    if "family" in parameters and "family" not in kernel:
        raise ValueError("the kernel has no family")
    width = 1 if KERNELS[name].form == "columns" else fitted["n_features_in_"] * (2 * window + 1)
    shape: Any = arrays["basis"].shape if "basis" in arrays else header.get("basis_shape", header.get("weights"))
    if shape[1] != width:
        raise ValueError(f"vectors of {shape[1]} features do not go with {width}")
    if KERNELS[name].form == "terms":
        cast(Any, KERNELS[name].from_header(kernel, arrays)).offsets(width)
    if header["estimator"] in (*CLASSIFIERS, "OrdinalSVC", "SequenceSVM") and "classes" not in arrays:
        raise ValueError("a classifier has no classes")
    n_outputs, quantiles = arrays["coef"].shape[1], quantiles_of(params)
    if params.get("loss") == "quantile" and np.ndim(quantiles) and np.size(quantiles) != n_outputs:
        raise ValueError(f"{n_outputs} scores do not fit the quantiles {quantiles}")


def check_params(params: dict[str, Any]) -> None:
    """A ValueError where a parameter of a file is of a type that no fit takes."""
    for name, value in params.items():
        if name in PARAMETERS and _kind_of_value(value) not in PARAMETERS[name] + "?":
            raise ValueError(f"the parameter {name} must not be {value!r}")


def _kind_of_value(value: Any) -> str:
    """A letter for what a parameter of a file is.

    b a truth value, n a number, t a text, 0 nothing, l a list of numbers, v a list of others, a an array of numbers,
    p pairs, s a solver, k a task, ? what a file cannot hold, ! anything else.
    """
    if isinstance(value, dict):
        known = {"unsaved": "?", "array": "a", "pairs": "p", "solver": "s", "task": "k"}
        kind = next((known[key] for key in known if key in value), "!")
        return kind if kind != "a" or np.array(value["array"]).dtype.kind in "fiu" else "!"
    if isinstance(value, list):
        return "l" if all(type(item) in (int, float) for item in value) else "v"
    return {bool: "b", int: "n", float: "n", str: "t", type(None): "0"}.get(type(value), "!")


def read_encoding(header: dict[str, Any], arrays: dict[str, Array]) -> Encoding | None:
    """The steps before the scaling of a file's model; a ValueError where they do not make its features."""
    if "encoding" not in header:
        return None
    found, n_features = Encoding.unpack(header["encoding"], arrays), header["fitted"]["n_features_in_"]
    if found.n_features != n_features:
        raise ValueError(f"an encoding makes {found.n_features} features, the model has {n_features}")
    return found


def read_calibration(header: dict[str, Any], arrays: dict[str, Array]) -> Array | None:
    """Return what makes probabilities of the scores of a file's model, None without such; a ValueError where it is not
    that of its kind.
    """
    if "calibration" not in arrays:
        return None
    found, classes = np.asarray(arrays["calibration"], np.float64), arrays.get("classes")
    kind = kind_of(header["estimator"], header["params"], header["fitted"], classes, len(arrays["intercept"]))
    k = 0 if classes is None else len(classes)
    n_pairs = k * (k - 1) // 2
    n_lines = {"binary": 1, "classes": n_pairs, "pairs": n_pairs, "labels": k, "ordinal": 1}.get(kind)
    if kind == "ordinal" and len(found) > 1:
        n_lines = k - 1
    if n_lines is None:
        raise ValueError(f"a model of the kind {kind} has no calibration")
    is_right = found.shape == (n_lines, 4) and np.isfinite(found).all() and (found[:, :3] >= 0).all()
    if not is_right:
        raise ValueError(f"calibration must be {n_lines} lines of 4 finite numbers, the first three >= 0")
    return found


def check_nonconformity(arrays: dict[str, Array]) -> None:
    """Raise a ValueError where a file's rows that were held out are not in order, or of no class."""
    found, classes = arrays["nonconformity"], arrays.get("classes")
    if not (found[:-1] <= found[1:]).all() or np.isnan(found).any():
        raise ValueError("nonconformity must be ascending")
    if classes is not None:
        codes = arrays["nonconformity_classes"]
        if codes.shape != found.shape or codes.max(initial=0) >= len(classes):
            raise ValueError(f"nonconformity_classes must be a class, of {len(classes)}, for each of {len(found)} rows")


def _check_shapes(model: PlainModel, arrays: dict[str, Array]) -> None:
    """An error where the parts do not fit together: a file may have been written by anyone."""
    width = 1 if model.kernel.form == "columns" else model.n_features
    if np.ndim(getattr(model.kernel, "gamma", 0.0)):
        feature_gamma(model.kernel.gamma, model.n_features)
    n_vectors = len(arrays["features"]) if model.vectors is None else model.vectors.shape[0]
    k = 0 if model.classes is None else len(model.classes)
    n_of_kind: dict[str, int] = {"classes": k, "labels": k, "sequences": k, "pairs": k * (k - 1) // 2}
    n_of_kind |= {name: model.coef.shape[1] for name in ("counts", "targets", "quantiles")}
    n_outputs = n_of_kind.get(model.kind, 1)
    n_plain = {"ordinal": k - 1, "sequences": k * (k + 2)}.get(model.kind, len(model.plain))
    found = model.coef.shape, model.intercept.shape, model.plain.shape
    vectors_fit = model.vectors is None or model.vectors.shape[1] == width
    if not vectors_fit or found != ((n_vectors, n_outputs), (n_outputs,), (n_plain,)):
        raise ValueError(
            f"coef, intercept and plain must have shapes {(n_vectors, n_outputs)}, {(n_outputs,)}, {(n_plain,)} beside "
            f"{n_vectors} vectors of {width} features, found {found[0]}, {found[1]}, {found[2]}"
        )


def _feature_names(header: dict[str, Any]) -> list[str] | None:
    """The names of features that the first step with names was fitted with."""
    fits = [*(step["fitted"] for step in header.get("scaling", {}).get("steps", ())), header["fitted"]]
    names = next((fitted["feature_names_in_"] for fitted in fits if "feature_names_in_" in fitted), None)
    if names is not None:
        check_feature_names(names, header["fitted"]["n_features_in_"])
    return names


def check_feature_names(names: Any, n_features: int) -> None:
    """Raise a ValueError unless these are names of ``n_features`` features."""
    is_right = isinstance(names, list) and len(names) == n_features and all(isinstance(name, str) for name in names)
    if not is_right:
        raise ValueError(f"feature_names_in_ is no list of {n_features} names")


def _vectors(header: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """The vectors as the estimator has them; None where the file has weights instead."""
    if "weights" in header:
        return None
    if "basis" in arrays:
        return np.asarray(arrays["basis"], np.float64)
    data, shape = np.asarray(arrays["basis_data"], np.float64), tuple(header["basis_shape"])
    indices, indptr = arrays["basis_indices"], arrays["basis_indptr"]
    is_right = len(indptr) == shape[0] + 1 and len(data) == len(indices) == indptr[-1] and indptr[0] == 0
    if not (is_right and (np.diff(indptr) >= 0).all() and ((indices >= 0) & (indices < shape[1])).all()):
        raise ValueError(f"the sparse vectors are not {shape[0]} rows of {shape[1]} features")
    sparse = CsrRows(data, indices, indptr, shape)
    return sparse.dense(0, shape[0]) if header.get("basis_is_dense") else sparse


def _with_weights(model: PlainModel, arrays: dict[str, Array]) -> PlainModel:
    """A linear model by the weights of its features."""
    if model.vectors is None:
        if (arrays["features"] < 0).any():
            raise IndexError("a feature is negative")
        weights = np.zeros((model.n_features, model.n_outputs))
        weights[arrays["features"]] = model.coef
    elif isinstance(model.vectors, CsrRows):
        weights = model.vectors.transposed_product(model.coef)
    else:
        # About the mean: coefficients of classes add up to 0, and products of large numbers would cancel.
        centre, sums = model.vectors.mean(axis=0), [math.fsum(column) for column in model.coef.T]
        weights = (model.vectors - centre).T @ model.coef + np.outer(centre, sums)
    return replace(model, vectors=None, coef=weights, examples=_some_vectors(model))


def _some_vectors(model: PlainModel) -> Array | None:
    """At most `PROBES` of the vectors, dense."""
    if model.vectors is None or not len(model.coef):
        return None
    n = max(1, min(PROBES, BLOCK_NUMBERS // model.n_features))
    rows = range(0, len(model.coef), -(-len(model.coef) // n))
    return np.concatenate([dense_rows(model.vectors, i, i + 1) for i in rows])


def whole_numbers(classes: Array, largest: int, where: str) -> list[int]:
    """Labels that are whole numbers; an error where one is beyond what a form holds."""
    labels = [int(label) for label in classes]
    for label in labels:
        if not -largest - 1 <= label <= largest:
            raise ValueError(f"{where} holds labels up to {largest}, found {label}: train with other labels, or texts")
    return labels


def texts(classes: Array, where: str) -> list[str]:
    """Labels that are texts; an error where one cannot be written as UTF-8."""
    for label in map(str, classes):
        try:
            label.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where} holds labels in UTF-8, found {label!r}") from error
    return list(map(str, classes))
