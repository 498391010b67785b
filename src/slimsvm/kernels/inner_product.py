"""Kernels of the inner product: linear, polynomial, sigmoid. Python knows of them only what their classes say.

The linear one also has its rows as features of a model of weights, whose products take the place of kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from slimsvm import core
from slimsvm.core.products import SUM_ROWS, add_transposed, in_calls, multiply_wide
from slimsvm.core.threads import resolve_n_jobs
from slimsvm.docstrings import described
from slimsvm.kernels.kernel import (
    FoldedKernel,
    Folding,
    Functions,
    check_degree,
    check_finite,
    check_gamma,
    largest_norm,
    squared_norms,
)
from slimsvm.lazy import made_once
from slimsvm.rows import Rows, as_rows

if TYPE_CHECKING:
    from slimsvm.rows import Rows


class InnerProduct(FoldedKernel):
    """The base class of kernels of gamma <x, z> + coef0, where they have these.

    Parameters
    ----------
    gamma : float
        Positive.
    coef0 : float
    """

    form: ClassVar[str] = "products"

    def folding(self, n_features: int) -> Folding:
        """Scale the points by gamma, and add coef0 to every inner product."""
        parameters = vars(self)
        return Folding(getattr(core, self.map), point_scale=parameters.get("gamma", 1.0),
                       degree=parameters.get("degree", 1), shift=parameters.get("coef0", 0.0))  # fmt: skip


@dataclass(frozen=True)
class Linear(InnerProduct):
    """k(x, z) = <x, z>.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Linear
    >>> Linear().block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"
    has_gradient: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True
    map: ClassVar[str] = "IDENTITY"

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the number z itself."""
        return z

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``|x|^2``."""
        return squared_norms(X).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return the greatest ``|x|^2``."""
        return largest_norm(rows)


@described(InnerProduct.__doc__)
@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """k(x, z) = (gamma <x, z> + coef0)**degree.

    Parameters
    ----------
    degree : int
        At least 1.
    gamma, coef0

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0).block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0
    name: ClassVar[str] = "poly"
    map: ClassVar[str] = "POWER"
    has_gradient: ClassVar[bool] = True

    def __post_init__(self):
        object.__setattr__(self, "degree", check_degree(self.degree))
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=False))
        object.__setattr__(self, "coef0", check_finite("coef0", self.coef0))

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the power ``z^degree``."""
        return f.power(z, self.degree)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``(gamma |x|^2 + coef0)^degree``."""
        return ((self.gamma * squared_norms(X) + self.coef0) ** self.degree).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return the same power of gamma times the greatest ``|x|^2`` plus the magnitude of coef0."""
        with np.errstate(over="ignore"):
            return float(np.float64(self.gamma * largest_norm(rows) + abs(self.coef0)) ** self.degree)


@described(InnerProduct.__doc__)
@dataclass(frozen=True)
class Sigmoid(InnerProduct):
    """k(x, z) = tanh(gamma <x, z> + coef0); not positive semidefinite in general.

    If it is not, problems are not convex, and ``lower_bound_`` and certificates are not bounds.

    Parameters
    ----------
    gamma, coef0

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import Sigmoid
    >>> Sigmoid(gamma=0.5).block(np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]]))
    array([[0.]])
    """

    gamma: float = 1.0
    coef0: float = 0.0
    name: ClassVar[str] = "sigmoid"
    map: ClassVar[str] = "TANH"
    has_gradient: ClassVar[bool] = True
    is_inner_product: ClassVar[bool] = False

    def __post_init__(self):
        object.__setattr__(self, "gamma", check_gamma(self.gamma, per_feature=False))
        object.__setattr__(self, "coef0", check_finite("coef0", self.coef0))

    def formula(self, z: Any, f: Functions) -> Any:
        """Return the hyperbolic tangent of z."""
        return f.tanh(z)

    def diag(self, X: Any, dtype: Any = np.float64) -> np.ndarray:
        """Return ``tanh(gamma |x|^2 + coef0)``."""
        return np.tanh(self.gamma * squared_norms(X) + self.coef0).astype(dtype)

    def largest(self, rows: Rows) -> float:
        """Return 1, or infinity if an inner product is not finite."""
        return 1.0 if np.isfinite(self.gamma * largest_norm(rows)) else np.inf


KERNELS = Polynomial, Linear, Sigmoid


# The bytes of a block of dense rows that is converted, and the weights of features that are summed together.
BLOCK_BYTES, GATHERED = 1 << 24, 1 << 16
# About how many stored numbers one thread multiplies with the weights of their features in a microsecond.
STORED_PER_MICROSECOND = 1_000


class FeatureRows:
    """The rows of a linear model with explicit weights W: both products in float64, bitwise the same for any threads.

    Parameters
    ----------
    rows : Rows, ndarray or sparse matrix
    n_jobs : int or None

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.kernels import FeatureRows
    >>> rows = FeatureRows(np.array([[1.0, 2.0], [0.0, 3.0]]))
    >>> rows.scores(np.array([[1.0], [10.0]]))
    array([[21.],
           [30.]])
    >>> rows.gather(np.array([[1.0], [-1.0]]))
    array([[ 1.],
           [-1.]])
    """

    def __init__(self, rows: Any, n_jobs: int | None = None):
        self.rows: Rows = as_rows(rows)
        self.n_jobs = resolve_n_jobs(n_jobs)
        row_bytes = 8 * max(1, self.rows.n_features)
        self._block_rows = -(-max(SUM_ROWS, BLOCK_BYTES // row_bytes) // SUM_ROWS) * SUM_ROWS

    @made_once
    def csr(self) -> core.Structure:
        """Return all rows as ``struct slimsvm_csr`` for compiled code; dense rows are copied.

        Raises
        ------
        ValueError
            The rows are `Blocks`: this would copy them into memory.
        """
        if not self.rows.has_random_access:
            raise ValueError(
                "explicit weights keep sparse rows in memory, found Blocks of them: load the rows into memory, make "
                "the blocks dense, or take solver='low-rank' with max_basis"
            )
        return csr_structure(self.rows.slice(0, self.rows.n_rows, np.float64))

    @made_once
    def _by_feature(self) -> core.Structure:
        rows, shape = self.csr, (self.rows.n_rows, self.rows.n_features)
        return csr_structure(sp.csr_array((rows.values, rows.columns, rows.indptr), shape=shape).tocsc().T)

    def scores(self, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return X W + bias, shape (n_rows, n_outputs)."""
        W, out = np.ascontiguousarray(W, np.float64), np.empty((self.rows.n_rows, W.shape[1]))
        if self.rows.is_sparse:
            return self._sparse_product(self.csr, out, weights=W, bias=bias)
        for lo, hi in self.rows.blocks(self._block_rows):
            block: Any = self.rows.slice(lo, hi, self.rows.exact_dtype)
            multiply_wide(block, W, out[lo:hi], self.n_jobs)
        return out if bias is None else out + bias

    def scores_of(self, index: np.ndarray, W: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
        """Return the scores of the rows at ``index``, from `csr`."""
        out = np.empty((len(index), W.shape[1]))
        return self._sparse_product(self.csr, out, index, weights=W, bias=bias)

    def _sparse_product(self, rows: core.Structure, out: np.ndarray, index: Any = None, **weights: Any) -> np.ndarray:
        """Call ``core.sparse_product`` into ``out``."""
        per_row = out.shape[1] * len(rows.values) / max(1, len(rows.indptr) - 1) / STORED_PER_MICROSECOND
        for part in in_calls(len(out), per_row):
            core.sparse_product(
                rows=rows,
                first=part.start if index is None else 0,
                index=None if index is None else index[part],
                out=out[part],
                n_threads=self.n_jobs,
                microseconds=per_row * (part.stop - part.start),
                **weights,
            )
        return out

    def gather(self, coef: np.ndarray) -> np.ndarray:
        """Return Xᵀ coef, shape (n_features, n_outputs)."""
        coef = np.ascontiguousarray(coef, np.float64)
        out = np.zeros((self.rows.n_features, coef.shape[1]))
        if self.rows.is_sparse:
            return self._sparse_product(self._by_feature, out, weights=coef, used=coef.any(axis=1))
        step = max(1, GATHERED // max(1, coef.shape[1]))
        for lo, hi in self.rows.blocks(self._block_rows):
            block: Any = self.rows.slice(lo, hi, self.rows.exact_dtype)
            for first in range(0, len(out), step):
                features = slice(first, first + step)
                add_transposed(block[:, features], coef[lo:hi], out[features], self.n_jobs)
        return out


def csr_structure(X: Any) -> core.Structure:
    """Return a matrix as ``struct slimsvm_csr``: float64 values, and int32 columns if they fit."""
    X = X if sp.issparse(X) else sp.csr_array(X)
    index = np.int32 if max(X.shape) < 1 << 31 else np.int64
    return core.Csr(
        n_columns=X.shape[1],
        values=X.data.astype(np.float64, copy=False),
        columns=X.indices.astype(index, copy=False),
        indptr=X.indptr.astype(np.int64),
    )
