"""The model that every solver returns: a kernel expansion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import (
    KERNELS,
    FeatureRows,
    Kernel,
    KernelRows,
    Linear,
    Points,
    RawScorer,
)
from slimsvm.lazy import made_once
from slimsvm.rows import Block, Rows, as_csr, is_sparse, plain_floats
from slimsvm.rows.columns import Columns
from slimsvm.sparse_parts import WIDE_FEATURES

DTYPES = ("float32", "float64")
CSR_PARTS = ("data", "indices", "indptr")
# The values of `Rows` that are scored together.
PART_VALUES = 1 << 22

Check = Callable[[Any], None]


class _Prepared(NamedTuple):
    """The model as compiled code takes it: centre, vectors, and the scorer of plain arrays."""

    centre: np.ndarray
    points: Points
    scorer: RawScorer | None


@dataclass(frozen=True, eq=False)
class KernelExpansion:
    """f_c(x) = sum_j coef_jc k(b_j, x) + intercept_c, and the plain parameters of structured problems.

    Parameters
    ----------
    basis : ndarray of shape (K, d), csr_array, or ndarray of shape (K, 1) for a precomputed kernel
        The vectors b_j; for a precomputed kernel the positions of training rows.
    coef : float64 ndarray of shape (K, m)
    intercept : float64 ndarray of shape (m,)
    plain : float64 ndarray of shape (p,)
        Parameters without a kernel (label transitions of a chain).
    kernel : Kernel
    dtype : {"float32", "float64"}
        Type in which kernel values are computed.

    Raises
    ------
    ValueError
        If the shapes do not fit together or `dtype` is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Linear
    >>> basis, coef = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[1.0], [3.0]])
    >>> model = KernelExpansion(basis, coef, np.array([0.5]), np.zeros(0), Linear(), "float64")
    >>> model.scores(np.array([[1.0, 1.0]]))
    array([[7.5]])
    >>> model.norm_squared()
    37.0
    """

    basis: Any
    coef: np.ndarray
    intercept: np.ndarray
    plain: np.ndarray
    kernel: Kernel
    dtype: str
    # Made on first use for each kind and width of rows. If two threads make one, they make the same.
    _prepared: dict[tuple[bool, int], _Prepared] = field(default_factory=dict, init=False, repr=False)
    # Made on first use, for wide sparse rows: the model of its own columns; None if most occur.
    _narrow: list[tuple[Columns, KernelExpansion] | None] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self):
        basis = as_csr(self.basis) if is_sparse(self.basis) else np.asarray(self.basis)
        object.__setattr__(self, "basis", basis)
        for name in ("coef", "intercept", "plain"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        shapes = basis.shape, self.coef.shape, self.intercept.shape, self.plain.shape
        fits = basis.ndim == self.coef.ndim == 2 and len(self.coef) == basis.shape[0]
        if not (fits and self.intercept.shape == self.coef.shape[1:] and self.plain.ndim == 1):
            raise ValueError(
                "basis, coef, intercept and plain must have shapes (K, d), (K, m), (m,), (p,), "
                f"got {', '.join(map(str, shapes))}"
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the model itself; data that was prepared from it is made again."""
        return {name: value for name, value in vars(self).items() if name != "weights"} | {
            "_prepared": {},
            "_narrow": [],
        }

    @property
    def n_basis(self) -> int:
        """Return the number of basis vectors."""
        return len(self.coef)

    def scores(self, X: Block | Rows, n_jobs: int | None = None, check: Check | None = None) -> np.ndarray:
        """Return scores of rows: the same bits in any batch and for any number of threads.

        The first call prepares the vectors for compiled code and keeps them, so do not change the model's arrays.

        Parameters
        ----------
        X : ndarray, CSR or Rows of shape (n, d)
            For a precomputed kernel, K(rows, training rows).
        n_jobs : int or None
            Threads (None: all cores).
        check : callable or None
            Called with X if it may contain non-finite numbers; if it lets them pass, the scores must be finite too.
            The check of most dense rows comes free with the scores. `Rows` are assumed to be finite.

        Returns
        -------
        float64 ndarray of shape (n, m)

        Raises
        ------
        ValueError
            If X does not have as many features as the basis, or, with ``check``, if scores of a row exceed float32 or
            float64.
        """
        raw, scorer = self._plain(X)
        if raw is not None and scorer is not None:
            scores, n_far = scorer.scores(raw, n_jobs)
            if check is not None and n_far:
                check(X)
                self._check_scores(X, scores)
            return scores
        if isinstance(X, Rows):
            return self._scores_in_parts(X, n_jobs, check is not None)
        if check is not None:
            check(X)
        narrow = self._narrowed(X)
        if narrow is not None:
            scores = narrow[0].scores(narrow[1], n_jobs)
            if check is not None:
                self._check_scores(X, scores)
            return scores
        centre, points, _ = self._prepare(X)
        rows = KernelRows.for_basis(self.kernel, X, self.basis, dtype=self.dtype, n_jobs=n_jobs, centre=centre)
        scores = rows.scores(points, self.coef) + self.intercept
        if check is not None:
            self._check_scores(X, scores)
        return scores

    def _scores_in_parts(self, rows: Rows, n_jobs: int | None, has_check: bool) -> np.ndarray:
        scores = np.empty((rows.n_rows, self.coef.shape[1]))
        width = rows.n_stored // max(1, rows.n_rows) if rows.is_sparse else rows.n_features
        for lo, hi in rows.blocks(max(1, PART_VALUES // max(1, width))):
            scores[lo:hi] = self.scores(rows.slice(lo, hi, rows.exact_dtype), n_jobs)
        if has_check:
            self._check_scores(rows, scores)
        return scores

    def _narrowed(self, X: Block) -> tuple[Any, Block] | None:
        """Return the model of its own columns, and wide sparse rows reduced to them; None for other rows."""
        if not is_sparse(X) or X.shape[1] <= WIDE_FEATURES or X.shape[1] != self.basis.shape[1]:
            return None
        foreign = others_by(self.kernel, X.shape[1])
        if foreign is None:
            return None
        if not self._narrow:
            basis: Any = self.basis if is_sparse(self.basis) else sp.csr_array(self.basis)
            index = np.unique(basis.indices).astype(np.int64)
            if 2 * len(index) > basis.shape[1]:  # most columns occur: to leave the others out is not worth it
                self._narrow.append(None)
            else:
                columns = Columns(index, basis.shape[1])
                self._narrow.append((columns, replace(self, basis=columns.seen(basis, foreign))))
        if self._narrow[0] is None:
            return None
        columns, model = self._narrow[0]
        return model, columns.seen(X, foreign)

    def _check_scores(self, X: Block | Rows, scores: np.ndarray) -> None:
        """Raise an error if finite rows have scores that are not finite."""
        is_finite = np.isfinite(scores).all(axis=1)
        if not is_finite.all():
            row = int(np.argmin(is_finite))
            one: Any = X.take(np.array([row]), X.exact_dtype) if isinstance(X, Rows) else X[[row]]
            most = float(abs(one).max())
            raise ValueError(
                f"the scores of row {row} of X, whose features are as large as {most:.3g}, are beyond {self.dtype}: "
                "scale X as in training" + (", or train with precision='float64'" if self.dtype == "float32" else "")
            )

    def labels(
        self, X: Block | Rows, classes: np.ndarray, n_jobs: int | None = None, check: Check | None = None
    ) -> np.ndarray:
        """Return the class of every row: the one with the greatest score, the first of equal ones. With a single output
        it is ``classes[1]`` if the score is positive, otherwise ``classes[0]``.

        Parameters
        ----------
        X, n_jobs, check
            As in `scores`.
        classes : ndarray of shape (m,), or (2,) for a single output

        Returns
        -------
        ndarray of shape (n,), of the classes' type

        Raises
        ------
        ValueError
            If X does not have as many features as the basis.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm.kernels import Linear
        >>> model = KernelExpansion(np.eye(2), np.array([[1.0], [-1.0]]), np.zeros(1), np.zeros(0), Linear(), "float64")
        >>> model.labels(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array(["no", "yes"]))
        array(['yes', 'no'], dtype='<U3')
        """
        raw, scorer = self._plain(X)
        if raw is not None and scorer is not None:
            labels, n_far = scorer.labels(raw, classes, n_jobs)
            if check is not None and n_far:
                check(X)
                self._check_scores(X, self.scores(X, n_jobs))
            return labels
        scores = self.scores(X, n_jobs, check)
        return classes[np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)]

    def _plain(self, X: Block | Rows) -> tuple[np.ndarray | None, RawScorer | None]:
        """Return rows in a form that compiled code folds in passing, and their scorer; None without such a form."""
        raw = plain_floats(X) if isinstance(X, np.ndarray) and X.ndim == 2 else None
        if raw is None:
            return None, None
        return raw, (self._prepared.get((False, raw.shape[1])) or self._prepare(raw)).scorer

    def _prepare(self, X: Block) -> _Prepared:
        key = is_sparse(X), X.shape[1]
        prepared = self._prepared.get(key)
        if prepared is None:
            rows = KernelRows.for_basis(self.kernel, X, self.basis, dtype=self.dtype, n_jobs=1)
            points = rows.points_of(self.basis)
            scorer = None if len(points.far) else rows.scorer(points, self.coef, self.intercept)
            prepared = _Prepared(rows.centre, points, scorer)
            self._prepared[key] = prepared
        return prepared

    def norm_squared(self, gram: Block | None = None, n_jobs: int | None = None) -> float:
        """Return the squared norm Σ_c coef_cᵀ K_BB coef_c + ‖plain‖² in float64, without the intercept.

        K_BB is summed up block by block, never stored.

        Parameters
        ----------
        gram : ndarray of shape (n, n), for precomputed kernels only
            The training rows' kernel matrix, which the model does not keep.
        n_jobs : int or None
            Threads (None: all cores).

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the kernel is precomputed and there is no `gram`, or the other way round.
        """
        precomputed = not self.kernel.has_features
        if precomputed != (gram is not None):
            found = "there is none" if gram is None else f"the kernel is {self.kernel!r}"
            raise ValueError(f"gram, the training rows' kernel matrix, goes with a precomputed kernel: {found}")
        rows = self.basis if gram is None else gram[self.basis[:, 0]]
        f = replace(self, intercept=np.zeros_like(self.intercept), dtype="float64").scores(rows, n_jobs)
        return float(np.sum(self.coef * f) + self.plain @ self.plain)

    def shifted(self, by: Any) -> Self:
        """Return the model whose scores are larger by this."""
        return replace(self, intercept=self.intercept + by)

    def merged(self) -> KernelExpansion:
        """Return the same function: each vector once, in order of first occurrence, none without coefficients."""
        first_of: dict[bytes, int] = {}
        owner = np.array([first_of.setdefault(key, j) for j, key in enumerate(row_keys(self.basis))], np.int64)
        coef = np.zeros_like(self.coef)
        np.add.at(coef, owner, self.coef)
        kept = np.flatnonzero(coef.any(axis=1))
        return replace(self, basis=self.basis[kept], coef=coef[kept])

    def to_file_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header and arrays for `slimsvm.modelfile.write_model`; a TypeError if the kernel is a user's function
        or a class that cannot be saved.
        """
        kernel, arrays = self.kernel.to_header()
        header: dict[str, Any] = {"kernel": kernel, "dtype": self.dtype, "basis_shape": list(self.basis.shape)}
        arrays |= {"coef": self.coef, "intercept": self.intercept, "plain": self.plain}
        stored = _without_zeros(self.basis)
        if is_sparse(stored):
            arrays |= {f"basis_{part}": getattr(stored, part) for part in CSR_PARTS}
            header["basis_is_dense"] = not is_sparse(self.basis)
        else:
            arrays["basis"] = stored
        return header, arrays

    @classmethod
    def from_file_parts(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> KernelExpansion:
        """Return the model that `to_file_parts` described; entries it did not make are left alone.

        A KeyError says that an entry is missing, a ValueError that entries do not fit together or that the kernel is
        unknown.
        """
        if "weights" in header:
            return LinearModel.from_weights_file(header, arrays)
        name = header["kernel"]["kernel"]
        if name not in KERNELS:
            raise ValueError(f"unknown kernel {name!r}; known kernels: {', '.join(sorted(KERNELS))}")
        basis: Any = arrays.get("basis")
        if basis is None:
            parts = tuple(arrays[f"basis_{part}"] for part in CSR_PARTS)
            basis = sp.csr_array(parts, shape=tuple(header["basis_shape"]))
            basis.check_format(full_check=True)
            basis = basis.toarray() if header.get("basis_is_dense") else basis
        kernel = KERNELS[name].from_header(header["kernel"], arrays)
        return cls(basis, arrays["coef"], arrays["intercept"], arrays["plain"], kernel, header["dtype"])


@dataclass(frozen=True, eq=False)
class LinearModel(KernelExpansion):
    """A linear model by its weights: f_c(x) = Σ_f weights[f, c] x_f + intercept_c.

    As a kernel expansion its vectors are unit vectors, one for each feature that has a weight, and its coefficients the
    weights; `of_weights` makes one. Scores are computed in float64, one product with the weights of the features that
    a row has; ``dtype`` is the precision that was asked for in training.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.model import LinearModel
    >>> model = LinearModel.of_weights(np.array([[0.5], [0.0], [2.0]]), np.array([1.0]), np.zeros(0), "float64")
    >>> model.scores(np.array([[1.0, 5.0, 10.0]])), model.features.tolist()
    (array([[21.5]]), [0, 2])
    """

    @classmethod
    def of_weights(cls, weights: np.ndarray, intercept: np.ndarray, plain: np.ndarray, dtype: str) -> LinearModel:
        """Make the model of weights of shape (d, m)."""
        used = np.flatnonzero(weights.any(axis=1))
        return cls(_unit_vectors(used, len(weights)), weights[used], intercept, plain, Linear(), dtype)

    @property
    def features(self) -> np.ndarray:
        """Return the numbers of the features that have a weight, increasing."""
        return self.basis.indices

    @made_once
    def weights(self) -> np.ndarray:
        """Return all weights, shape (n_features, n_outputs)."""
        weights = np.zeros((self.basis.shape[1], self.coef.shape[1]))
        weights[self.features] = self.coef
        return weights

    def scores(self, X: Block | Rows, n_jobs: int | None = None, check: Check | None = None) -> np.ndarray:
        """Return scores of rows: X W + intercept, from the weights of the features."""
        if isinstance(X, Rows):
            return self._scores_in_parts(X, n_jobs, check is not None)
        if check is not None:
            check(X)
        if X.shape[1] != self.basis.shape[1]:
            raise ValueError(f"the rows have {X.shape[1]} features, the basis has shape {self.basis.shape}")
        narrow = self._narrowed(X)
        model, rows = (self, X) if narrow is None else narrow
        with one_blas_thread():
            scores = FeatureRows(rows, n_jobs).scores(model.weights, self.intercept)
        if check is not None:
            self._check_scores(X, scores)
        return scores

    def _plain(self, X: Block | Rows) -> tuple[np.ndarray | None, RawScorer | None]:
        return None, None

    def norm_squared(self, gram: Block | None = None, n_jobs: int | None = None) -> float:
        """Return ‖W‖² + ‖plain‖², which needs no kernel value."""
        if gram is not None:
            return super().norm_squared(gram, n_jobs)
        return float(np.sum(self.coef**2) + self.plain @ self.plain)

    def to_file_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return header and arrays of a file: the weights, without the unit vectors."""
        kernel, _ = self.kernel.to_header()
        header = {"kernel": kernel, "dtype": self.dtype, "weights": list(self.basis.shape)}
        arrays = {"features": self.features.astype(np.int64)}
        return header, arrays | {"coef": self.coef, "intercept": self.intercept, "plain": self.plain}

    @classmethod
    def from_weights_file(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> LinearModel:
        """Make the model that `to_file_parts` described."""
        features, n_features = arrays["features"], header["weights"][1]
        if len(features) and not (features[0] >= 0 and features[-1] < n_features and (np.diff(features) > 0).all()):
            raise ValueError(f"features must be increasing numbers from 0 to {n_features - 1}")
        basis = _unit_vectors(features, n_features)
        return cls(basis, arrays["coef"], arrays["intercept"], arrays["plain"], Linear(), header["dtype"])


def others_by(kernel: Kernel, n_features: int) -> str | None:
    """Return how a kernel treats columns that no vector has (`seen_by`); None if it knows columns by their numbers."""
    folding = kernel.folding(n_features) if kernel.has_features else None
    if folding is None or np.ndim(folding.row_scale) or np.ndim(folding.point_scale):
        return None
    return "absolute" if folding.manhattan else "squares" if folding.norms else "products"


def columns_between(model: KernelExpansion, *rows: Any) -> Columns | None:
    """Return the columns that a model's vectors and sparse rows have; None if these are not wide (see `Columns.of`)."""
    if others_by(model.kernel, model.basis.shape[1]) is None:
        return None
    return Columns.of(model.basis, *rows)


def _without_zeros(basis: Any) -> Any:
    """Return a basis as a file holds it: dense vectors of mostly zeros, as those learned from text, become sparse."""
    if is_sparse(basis) or basis.dtype.kind != "f" or 3 * np.count_nonzero(basis) >= basis.size:
        return basis
    return sp.csr_array(basis)


def _unit_vectors(features: np.ndarray, n_features: int) -> sp.csr_array:
    """Return one row for each of the features, 1 there and 0 elsewhere."""
    k = len(features)
    return sp.csr_array((np.ones(k), features, np.arange(k + 1)), shape=(k, n_features))


def row_keys(basis: Any) -> Iterator[bytes]:
    """Yield, per row, bytes that are equal where the rows are, in one dtype."""
    if is_sparse(basis):
        basis = basis.copy()
        basis.eliminate_zeros()
        for lo, hi in zip(basis.indptr[:-1], basis.indptr[1:], strict=True):
            yield basis.indices[lo:hi].astype(np.int64).tobytes() + basis.data[lo:hi].tobytes()
    else:
        for row in basis:
            yield (row + 0).tobytes()  # -0.0 becomes 0.0
