"""Attributes and methods of a fitted estimator beyond prediction.

Attributes of scikit-learn's SVMs, in its order, shapes and types, are read off the model. The model's own form stays as
it is: ``basis_vectors_`` and ``basis_coef_``, with a column for each output. Then come certificates, files and Shapley
values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slimsvm import tasks
from slimsvm.docstrings import described
from slimsvm.estimators._shared.input_checks import check_at_least, check_limit, check_path
from slimsvm.lazy import made_once
from slimsvm.model import columns_between
from slimsvm.parts.certificate import Certificate, certify
from slimsvm.parts.problem import Problem
from slimsvm.rows import Rows, as_csr, as_rows, is_sparse

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion
    from slimsvm.shapley import Explanation

Array = np.ndarray

# What the docstrings of all methods and functions that write a fitted model say.
WRITING = """
Parameters
----------
path : str or path-like
    An existing file is replaced only once the new one is complete.

Raises
------
NotFittedError
    Before ``fit``.
"""

# Each column of the exact solver's coefficients adds up to 0 with a free intercept, up to this share of its size.
BALANCE = 1e-6


class Trained(NamedTuple):
    """Rows that a model is trained on: positions in X (None: all rows), and their classes as numbers, if any."""

    index: Any
    codes: Array | None = None


@dataclass(frozen=True, eq=False)
class Support:
    """Basis vectors that are training rows."""

    model: KernelExpansion
    rows: Array | None  # positions in X; None where a file does not say
    classes: Array | None  # number of each vector's class, where rows have one

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("model", "rows", "classes")}

    @made_once
    def order(self) -> Array:
        """Positions of the vectors, sorted by class and then by row."""
        n = self.model.n_basis
        keys = [key for key in (self.rows, self.classes) if key is not None]
        return np.lexsort(keys) if keys else np.arange(n)

    @made_once
    def vectors(self) -> Any:
        """The vectors in this order; an empty array for a precomputed kernel."""
        if not self.model.kernel.has_features:
            return np.empty((0, 0))
        basis = self.model.basis[self.order]
        return as_sparse(basis.astype(np.float64)) if is_sparse(basis) else np.asarray(basis, np.float64)

    @made_once
    def coef(self) -> Array:
        """Coefficients in this order, one row per output."""
        return np.ascontiguousarray(self.model.coef[self.order].T)

    @made_once
    def pairs(self) -> Array | None:
        """LIBSVM's table for pairs of classes; None if it cannot hold the coefficients."""
        assert self.classes is not None
        return table_of_pairs(self.coef.T, self.classes[self.order])


def is_balanced(model: KernelExpansion) -> bool:
    """Whether each column of coefficients adds up to 0, as only the exact solver with a free intercept has it."""
    coef = model.coef
    return bool((np.abs(coef.sum(axis=0)) <= BALANCE * np.abs(coef).sum(axis=0)).all())


def support_by_sign(model: KernelExpansion, n_classes: int | None) -> Support:
    """The support vectors in an exact model of classes, or of a regression (None), by their coefficients alone.

    The coefficient of a row is positive for the first class of a pair, and for the second of two classes.
    """
    coef = model.coef
    if n_classes is None:
        return Support(model, None, None)
    if n_classes == 2:
        return Support(model, None, (coef[:, 0] > 0).astype(np.uint8))
    first, second = np.triu_indices(n_classes, 1)
    pair = np.argmax(coef != 0, axis=1)
    classes = np.where(coef[np.arange(len(coef)), pair] > 0, first[pair], second[pair])
    return Support(model, None, classes.astype(np.min_scalar_type(n_classes)))


def as_sparse(matrix: Any) -> Any:
    """A CSR matrix of the kind that scikit-learn returns."""
    kind = sp.csr_array if get_config().get("sparse_interface", "spmatrix") == "sparray" else sp.csr_matrix
    return kind(as_csr(matrix))


# -- pairs of classes -------------------------------------------------------------------------------------------------


def table_of_pairs(coef: Array, classes: Array) -> Array | None:
    """LIBSVM's table (n_classes − 1, n_vectors) of coefficients (n_vectors, n_pairs).

    A vector's column has its coefficients against the other classes, in their order. None if a vector has a coefficient
    in a pair of other classes.
    """
    n_classes = (1 + isqrt(1 + 8 * coef.shape[1])) // 2
    table, n_counted = np.zeros((n_classes - 1, len(coef))), 0
    for pair, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for own, other in ((a, b - 1), (b, a)):
            of_own = classes == own
            table[other, of_own] = coef[of_own, pair]
        n_counted += int(np.count_nonzero(coef[(classes == a) | (classes == b), pair]))
    return table if n_counted == np.count_nonzero(coef) else None


def pairs_of_table(table: Array, classes: Array) -> Array:
    """Coefficients (n_vectors, n_pairs) from LIBSVM's table; the inverse of `table_of_pairs`."""
    n_classes = len(table) + 1
    coef = np.zeros((table.shape[1], n_classes * (n_classes - 1) // 2))
    for pair, (a, b) in enumerate(combinations(range(n_classes), 2)):
        for own, other in ((a, b - 1), (b, a)):
            of_own = classes == own
            coef[of_own, pair] = table[other, of_own]
    return coef


# -- the estimator ----------------------------------------------------------------------------------------------------


class Fitted:
    """A fitted estimator beyond prediction: attributes like scikit-learn's, certificates, files, Shapley values."""

    _support: Support | None

    def _supported(self: Any, name: str) -> Support:
        check_is_fitted(self, "model_")
        support = getattr(self, "_support", None)
        if support is None:
            raise AttributeError(
                f"{name} exists only if the basis vectors are training rows, and this model has others: see "
                "basis_vectors_ and basis_coef_"
            )
        return support

    @property
    def support_(self: Any) -> Array:
        """Positions in X of the support vectors, grouped by class."""
        support = self._supported("support_")
        if support.rows is None:
            raise AttributeError("support_ is not known: the model's file does not say which rows the vectors are")
        rows = support.rows[support.order]
        return rows.astype(np.int32) if rows.max(initial=0) <= np.iinfo(np.int32).max else rows

    @property
    def support_vectors_(self: Any) -> Any:
        """The support vectors, in the order of ``support_``."""
        return self._supported("support_vectors_").vectors

    @property
    def n_support_(self: Any) -> Array:
        """Number of support vectors of each class."""
        support, classes = self._supported("n_support_"), getattr(self, "classes_", None)
        if classes is None:
            return np.array([support.model.n_basis], np.int32)
        if support.classes is None:
            raise AttributeError("n_support_ counts vectors of each class, and rows of this model have more than one")
        return np.bincount(support.classes, minlength=len(classes)).astype(np.int32)

    @property
    def dual_coef_(self: Any) -> Any:
        """Coefficients of the support vectors, in the order of ``support_``: one row, or for pairs of classes a row
        for each class but one.
        """
        support = self._supported("dual_coef_")
        is_of_pairs = getattr(self, "multi_class_", None) == "ovo" and support.classes is not None
        dual = support.coef if len(support.coef) == 1 else support.pairs if is_of_pairs else None
        if dual is None:
            raise AttributeError(
                "dual_coef_ has LIBSVM's coefficients for two classes and for pairs of classes (multi_class='ovo'), "
                f"which this model's {len(support.coef)} outputs are not: basis_coef_ has a column for each of them"
            )
        if not getattr(self, "_sparse", False):
            return dual
        k, n = dual.shape
        return as_sparse(sp.csr_array((dual.ravel(), np.tile(np.arange(n), k), n * np.arange(k + 1)), shape=(k, n)))

    @property
    def coef_(self: Any) -> Any:
        """Weights of the features, for the linear kernel, shape (n_outputs, n_features), CSR after a fit of sparse
        rows; it cannot be written to. There is one row for two classes and for regression, otherwise one for each
        class or pair of classes, as ``basis_coef_`` has columns.
        """
        check_is_fitted(self, "model_")
        if not self.model_.kernel.has_weights:
            raise AttributeError(f"coef_ exists only for kernel='linear', found {self.kernel_!r}")
        columns = columns_between(self.model_)
        if columns is not None:
            narrow = np.asarray(self.model_.coef.T @ columns.narrow(self.model_.basis))
            found = as_sparse(columns.widen(narrow))
            found.data.flags.writeable = False
            return found
        coef = np.asarray(self.model_.coef.T @ self.model_.basis)
        if getattr(self, "_sparse", False):
            found = as_sparse(sp.csr_array(coef))
            found.data.flags.writeable = False
            return found
        coef.flags.writeable = False
        return coef

    @property
    def fit_status_(self: Any) -> int:
        """0 if the fit met its tolerance, 1 if something else ended it (see ``status_``)."""
        check_is_fitted(self, "model_")
        return int(self.status_ not in ("converged", "compressed"))

    # Names within scikit-learn by which programs that write its models in other languages read them.

    @property
    def _dual_coef_(self: Any) -> Any:
        return -self.dual_coef_ if len(getattr(self, "classes_", ())) == 2 else self.dual_coef_

    @property
    def _intercept_(self: Any) -> Array:
        check_is_fitted(self, "model_")
        return -self.intercept_ if len(getattr(self, "classes_", ())) == 2 else self.intercept_

    @property
    def _n_support(self: Any) -> Array:
        return self.n_support_

    @property
    def _gamma(self: Any) -> float:
        check_is_fitted(self, "model_")
        gamma = getattr(self.kernel_, "gamma", 0.0)
        if np.ndim(gamma):
            raise AttributeError("_gamma is one number, but this model has a gamma for each feature: see kernel_.gamma")
        return float(gamma)

    def certificate(self: Any, X, y, sample_weight=None, max_seconds=None) -> Certificate:
        """Bound the gap between the model and the exact SVM of this kernel and C. It uses only the model, not the fit.

        One pass costs n² kernel evaluations.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As in ``fit``.
        max_seconds : float or None, default=None
            Time limit; the bound so far is then returned.

        Returns
        -------
        Certificate
            ``objective`` is the model's, and no model has one below ``lower_bound``; both are in float64.
            ``gap`` is the largest share by which the objective could be lowered.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            A value in X or y is out of range.

        Examples
        --------
        >>> from slimsvm import SVC
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> SVC(max_basis=10).fit(X, y).certificate(X, y).gap < 0.5
        True
        """
        self = self._as_fitted()
        if self._objects is not None and self._objects.are_vectors:
            raise ValueError(
                "a certificate needs the kernel's values between all rows, and a model of few texts, lists or other "
                "objects keeps those alone: train it with kernel='precomputed' on the matrix of these values"
            )
        X, y = self._check_X(X, reset=False, y=y)
        limit = check_limit("max_seconds", max_seconds, integer=False)
        X, y, weights, index = self._weighted_rows(X, y, sample_weight)
        model = self.model_
        if not model.kernel.has_features:
            positions = np.arange(len(y)) if index is None else index
            if not np.isin(model.basis, positions).all():
                raise ValueError(
                    "sample_weight is 0 for rows of the model, but their kernel values with other rows are needed"
                )
            model = replace(model, basis=np.searchsorted(positions, model.basis))
        task, examples, centre = self._encode(y, weights)
        if self._takes_targets and task.n_outputs != model.coef.shape[1]:
            raise ValueError(f"y must have the targets of the fit, {model.coef.shape[1]}; found {task.n_outputs}")
        return self._certify(X, task, examples, model.shifted(-centre), limit)

    def _certify(
        self: Any, X: Any, task: tasks.Task, examples: tasks.Examples, model: KernelExpansion, max_seconds: float | None
    ) -> Certificate:
        """The certificate of a model for the problem that was trained."""
        C: Any = getattr(self, "C_", self.C)
        C = 1.0 if np.ndim(C) else C  # of pairs of classes that differ in it the task has it
        columns = None if isinstance(X, Rows) else columns_between(model, X)
        if columns is not None:
            X, model = columns.narrow(X), replace(model, basis=columns.narrow(model.basis))
        problem = Problem(
            rows=as_rows(X),
            examples=examples,
            task=task,
            kernel=model.kernel,
            C=C,
            intercept=str(getattr(self, "intercept_kind_", self.intercept)) if task.has_threshold else "none",
            random_state=0,
            memory_limit=int(1e6 * self.memory_limit),
            n_jobs=self.n_jobs,
            verbose=int(self.verbose),
            settings=self._settings,
        )
        return certify(problem, replace(model, dtype="float64"), max_seconds=max_seconds)

    # Files of a fitted estimator: `slimsvm.load` reads the first kind, the others are for programs in other languages.

    @described(WRITING)
    def save(self, path) -> None:
        """Write the fitted model to one file of arrays and a JSON header; `slimsvm.save` says more.

        Raises
        ------
        NotFittedError
        TypeError
            The kernel is the user's function, which a file of data cannot hold.
        ValueError
            The file is one that the rows of training are read from: a memory map, or one of `Blocks`.
        OSError
            The file cannot be written; an older file of that name is left as it was.
        """
        from slimsvm.estimators._shared.saving import save

        check_is_fitted(self, "model_")
        save(self, path)

    @described(WRITING)
    def to_c(self, path, name=None, dtype="auto", rows=None, alpha=None) -> None:
        """Write the fitted model as one C99 header: no allocation, no library; docs/deploy/c.md shows its use.

        Parameters
        ----------
        path
        name : str or None, default=None
            What the names in C begin with; None: the file's name without its ending.
        dtype : {"auto", "float32", "float64", "int16"}, default="auto"
            Of rows, scores and all between. "auto" is float32 where scores are right to 5e-6 of the largest one, as
            measured on rows near the vectors, else float64: large coefficients cancel. int16 is fixed point, for the
            RBF kernel and the Laplacian one, half as large, with rows and scores in float32. What the type does to
            scores is measured and written into the header.
        rows : array-like of shape (n_rows, n_features), or a sparse matrix, default=None
            Rows that this is measured on; None takes some near the vectors.
        alpha : float or None, default=None
            After a fit with ``calibration_size`` that of sets of classes, or of intervals, for which the header has a
            function, too; None: it has none.

        Raises
        ------
        NotFittedError
        ValueError
            A header has no such kernel or no such labels: matrices of kernel values, sequences, ``break_ties``; other
            kernels in fixed point.
        """
        self._export("c", path, name=name, dtype=dtype, rows=rows, alpha=alpha)

    @described(WRITING)
    def to_onnx(self, path, dtype="auto", alpha=None) -> None:
        """Write the fitted model as an ONNX graph of standard operators; docs/deploy/onnx.md shows its use.

        Parameters
        ----------
        path
        dtype : {"auto", "float32", "float64"}, default="auto"
            Type of rows and of what is computed. "auto" is float32 with as much float64 as gets scores right to 5e-6 of
            the largest one; rows are float64 where float32 does not hold their digits. Where coefficients cancel,
            float32 is up to four times as fast, and scores are off by 1e-5 and more of the largest.
        alpha : float or None, default=None
            After a fit with ``calibration_size`` that of the graph's output "set" of classes, or "interval"; None: it
            has none.

        Raises
        ------
        NotFittedError
        ImportError
            The package onnx is not installed: ``pip install 'slimsvm[onnx]'``.
        ValueError
            The model labels sequences, or by a task in Python; there is no such dtype; or float32 cannot hold the rows,
            or int64 the labels.
        """
        self._export("onnx", path, dtype=dtype, alpha=alpha)

    @described(WRITING)
    def to_wasm(self, path) -> None:
        """Write the fitted model as one ES module, with the C runtime as WebAssembly in it, for browsers and Node;
        docs/deploy/wasm.md shows its use.

        Raises
        ------
        NotFittedError
        FileNotFoundError
            The package came without the compiled runtime: ``make wasm`` makes it in a checkout, wheels have it.
        ValueError
            The model labels by a task in Python.
        """
        self._export("wasm", path)

    @described(WRITING)
    def to_json(self, path) -> None:
        """Write the fitted model's numbers as JSON, for a predictor of one's own; docs/deploy/json.md is the schema.

        Raises
        ------
        NotFittedError
        ValueError
            The model labels by a task in Python.
        """
        self._export("json", path)

    def _export(self: Any, target: str, path: Any, **options: Any) -> None:
        from slimsvm.deploy import writer_of
        from slimsvm.estimators._shared.saving import plain_model_of

        check_path(self, path)
        writer_of(target)(plain_model_of(self), path, **options)

    def explain(
        self, X: Any, background: Any = None, *, n_permutations: int = 100, random_state: Any = 0
    ) -> Explanation:
        """Shapley values: how much each feature of a row adds to its score.

        They are exact for the linear kernel, and for the RBF and Laplacian kernels with one γ or one for each feature.
        For other kernels they are means over permutations of the features. In each case they add up to the score
        minus the base value.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features), or a sparse matrix
        background : array-like of shape (n_background, n_features), a sparse matrix or None, default=None
            The meaning of an absent feature. None: it does not count. Its factor of the kernel is 1 (its term of
            the distance or inner product 0), and the base value is the score at distance 0 from every vector. Rows:
            an absent feature takes their values, and the mean over these rows is taken. These are shap's
            interventional values; the base value is the rows' mean score. They take n_background times as long.
        n_permutations : int, default=100
            For kernels that need them, 4 or more; each is also used in reverse.
        random_state : int, RandomState or None, default=0
            For the permutations.

        Returns
        -------
        Explanation
            With ``values``, ``base_values``, ``data``, ``feature_names``, ``standard_errors`` of sampled values, and
            ``to_shap()``. With several classes there are values for each score, which ``output_names`` names: that of a
            class, or of a pair of classes (0, 1), (0, 2), … where each pair has an SVM (votes are not sums). For
            ordered classes the score before the thresholds is explained, for several labels the score of each label.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        TypeError
            The kernel is the user's function, about whose features nothing is known.
        ValueError
            X or background has another number of features, other columns or non-finite values, the kernel is a matrix
            of values, or the model is a `SequenceSVM` or `StructuredSVM`.

        Notes
        -----
        Scores are computed in float64; `decision_function` of a float32 model rounds them. With a learned metric
        (``gamma="learn"``) the values belong to the unscaled features. The γ of a feature says how fast the kernel
        falls along it, not how much the score depends on it.

        References
        ----------
        Lundberg and Lee, "A unified approach to interpreting model predictions", NeurIPS 2017. Mohammadi, Chau and
        Muandet, "Computing exact Shapley values in polynomial time for product-kernel methods", 2025.

        Examples
        --------
        >>> import slimsvm
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = slimsvm.SVC().fit(X, y == 2)
        >>> found = clf.explain(X[:3], background=X[::10])
        >>> found.values.shape, found.base_values.shape
        ((3, 4), (3,))
        """
        return explained(self, X, background, n_permutations, random_state)


def explained(model: Any, X: Any, background: Any, n_permutations: int, random_state: Any) -> Explanation:
    """`Fitted.explain`, also for a pipeline of scalers and an estimator."""
    from slimsvm.deploy.rows import check_names
    from slimsvm.estimators._shared.saving import parts_of, plain_model_of
    from slimsvm.shapley import explain_scores

    check_at_least("n_permutations", n_permutations, 4)
    _, _, estimator = parts_of(model)
    if estimator.kernel_.has_features and not estimator.kernel_.has_formula:
        raise TypeError(
            "explain needs one of the library's kernels, found a function of yours: use "
            "shap.PermutationExplainer(model.decision_function, background), which needs only scores"
        )
    columns = getattr(X, "columns", None)
    names = columns if columns is not None else getattr(model, "feature_names_in_", None)
    names = None if names is None else [str(name) for name in names]
    plain = plain_model_of(model)
    for name, rows in (("X", X), ("background", background)):
        check_names(rows, plain.feature_names, name)
    return explain_scores(plain, X, background, n_permutations, check_random_state(random_state), names)
