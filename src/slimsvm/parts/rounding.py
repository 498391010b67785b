r"""The effect of rounding on lower bounds.

A dual point V, one number per row and output, bounds all objectives by D(V) = rest − ½ Σ_ij V_i k(x_i, x_j) V_j. Of D
only the double sum is in doubt. It is computed again in float64 over all pairs of rows with V ≠ 0, unless the fit's
own sum is one of float64 values that little can have happened to; for the linear kernel it is ‖Σ V_i x_i‖². What is in
doubt in float64 is then taken off (γ about ε d / 8 for sums of d products):

    inner products     |error of k(x, z)|  ≤  γ p s(x) s(z),  s(x)² = (γ_k ⟨x, x⟩ + |coef0|)^p
    distances          |error of k(x, z)|  ≤  γ (2.5 min(r(x), r(z)) + 2),  r the exponent of a row that is folded:
                       where r(x) and r(z) are far apart, k is next to 0

No row is left out: a bound may rest on a single far row.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from slimsvm import core
from slimsvm.kernels import KernelRows
from slimsvm.kernels.outlying_rows import FAR
from slimsvm.lazy import made_once
from slimsvm.rows import as_rows, is_sparse

Array = np.ndarray

# Sums over pairs take this many rows as the second of a pair together; sums over features take this many rows.
AT_A_TIME, FEATURES_OF = 512, 1024
# The bound of a fit that was cut short takes no more multiply-adds than this: a tenth of a second.
CUT_SHORT_WORK = 1 << 32
# A float64 sum is not computed again if at most this share of it is in doubt. Its updates, each of which rounds, count
# as this many sums.
LITTLE, ON_THE_WAY = 1e-6, 4.0
# The number of products of a sum that one lane adds up, and of operations beside them.
LANES, OTHERS = 8, 4
# A warning is given if rounding lowers a bound by more than this share of the objective.
WORTH_SAYING = 0.01
ROWS_AT_ONCE = 1 << 12
# The exponents of rows kept folded in float32 differ from the true ones by less than this.
AS_KEPT = 1.0 + 1e-5
# Values of folded rows beyond this are computed about other centres.
LARGEST_EXPONENT = 2.0 * FAR[np.dtype(np.float64)]


@dataclass(frozen=True)
class DualPoint:
    """The dual point that a fit ends with."""

    rows: Array  # int64 (k,): those with V ≠ 0
    V: Array  # float64 (k, m)
    rest: float  # D without the double sum, which no kernel value has a part in
    seen: float  # the double sum as the fit has it


class RoundingErrors:
    """The rounding error that the double sums of some rows can have in float64.

    Parameters
    ----------
    rows : int64 ndarray or None
        None: all.
    """

    def __init__(self, kernel_rows: KernelRows, rows: Array | None = None):
        self.kernel_rows, self.rows, d = kernel_rows, rows, kernel_rows.n_features
        self.folding = kernel_rows.kernel.folding(d)
        if kernel_rows.rows.is_sparse:
            d = -(-2 * kernel_rows.rows.n_stored // max(1, kernel_rows.n_rows))
        eps = float(np.finfo(np.float64).eps)
        self.gamma = eps * (OTHERS if self.folding is None else d / LANES + OTHERS)
        self.power = self.folding.degree if self.folding is not None and self.folding.code == core.POWER else 1
        self.is_distance = self.folding is not None and self.folding.shift_invariant

    @made_once
    def size(self) -> Array:
        """Return the rounding error of each row's score. It costs little if folded rows are cached."""
        half = self.kernel_rows.half_norms
        if half is not None and -half.min(initial=0.0) < FAR[half.dtype]:
            return -2.0 * AS_KEPT * (half if self.rows is None else half[self.rows]).astype(np.float64)
        index = np.arange(self.kernel_rows.n_rows) if self.rows is None else self.rows
        parts = [index[lo : lo + ROWS_AT_ONCE] for lo in range(0, len(index), ROWS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *map(self._sizes, parts)])

    @made_once
    def order(self) -> Array:
        """Return the rows sorted by ``size``."""
        return np.argsort(self.size)

    def _sizes(self, index: Array) -> Array:
        kernel_rows = self.kernel_rows
        folding: Any = self.folding
        if folding is None:
            found: Array = np.sqrt(np.abs(kernel_rows.diag(index)))
            return found
        X: Any = kernel_rows.rows.take(index, np.float64)
        if self.is_distance:
            X = X.multiply(folding.row_scale) if is_sparse(X) else (X - kernel_rows.centre) * folding.row_scale
            with np.errstate(over="ignore"):
                size = _sums(np.abs(X) if folding.manhattan else X * X if not is_sparse(X) else X.multiply(X))
            found = np.minimum(size, LARGEST_EXPONENT)
            return found
        squares = _sums(X.multiply(X) if is_sparse(X) else X * X)
        found = (np.abs(folding.point_scale) * squares + abs(folding.shift)) ** (0.5 * self.power)
        return found

    def of(self, V: Array) -> float:
        """Return the largest error of Σ_ij V_i k(x_i, x_j) V_j."""
        a = np.abs(V).reshape(len(V), -1).sum(axis=1)
        total = float(a.sum())
        if not self.is_distance:
            return self.gamma * (self.power * float(a @ self.size) ** 2 + total**2)
        a, r = a[self.order], self.size[self.order]
        after = np.cumsum(a[::-1])[::-1] - a
        least = float(np.sum(r * a * (a + 2.0 * after)))
        return self.gamma * (2.5 * least + 2.0 * total**2)

    @made_once
    def most(self) -> float:
        """Return the largest `of` any V, as a multiple of (Σ|V|)²."""
        largest = float(self.size.max(initial=0.0))
        if not self.is_distance:
            return self.gamma * (self.power * largest**2 + 1.0)
        return self.gamma * (2.5 * largest + 2.0)

    @property
    def share_of_diagonal(self) -> float:
        """Return the largest error of a kernel value in the fit's precision, as a share of sqrt(k(x, x) k(z, z))."""
        gamma = self.gamma * float(np.finfo(self.kernel_rows.dtype).eps / np.finfo(np.float64).eps)
        return gamma * (2.5 * float(self.size.max(initial=0.0)) + 2.0 if self.is_distance else self.power)

    def of_weights(self, V: Array, norm_squared: float) -> float:
        """Return the largest error of ‖Σ_i V_i x_i‖² computed by features, in sums over FEATURES_OF rows each."""
        a = np.abs(V).reshape(len(V), -1).sum(axis=1)
        gamma = float(np.finfo(np.float64).eps) * (FEATURES_OF + len(V) / FEATURES_OF + OTHERS)
        error = gamma * float(a @ self.size)
        return float(self.gamma * norm_squared + 2.0 * np.sqrt(max(norm_squared, 0.0)) * error + error**2)


def _sums(X: Any) -> Array:
    return np.asarray(X.sum(axis=1)).reshape(-1)


def sure_value(kernel_rows: KernelRows, point: DualPoint, anew: bool = True, is_cut_short: bool = False) -> float:
    """Return a value that D of a dual point is at least.

    Parameters
    ----------
    anew : bool
        Whether to sum up again; otherwise the double sum is one of float64 values already.
    is_cut_short : bool
        Whether there is no time for many pairs of rows.
    """
    rows, V = point.rows, point.V
    if not len(rows):
        return point.rest
    errors, is_double = RoundingErrors(kernel_rows, rows), kernel_rows.dtype == np.float64
    if anew and kernel_rows.kernel.has_weights:
        total = _norm_of_weights(kernel_rows, rows, V)
        return point.rest - 0.5 * (total + errors.of_weights(V, total))
    amount, total = errors.of(V), point.seen
    if is_double and (not anew or amount <= LITTLE * abs(total)):
        amount *= ON_THE_WAY
    elif is_cut_short and len(rows) ** 2 * (kernel_rows.n_features + 16) > CUT_SHORT_WORK:
        amount *= ON_THE_WAY * float(np.finfo(kernel_rows.dtype).eps / np.finfo(np.float64).eps)
    else:
        total = _double_sum(kernel_rows, rows, V)
    return point.rest - 0.5 * (total + amount)


def in_float64(kernel_rows: KernelRows, rows: Array) -> tuple[KernelRows, Array]:
    """Return a view of some rows in float64, of no others if the kernel has features, and their positions in it."""
    data, of = kernel_rows.rows, rows
    if kernel_rows.kernel.has_features:
        data, of = as_rows(data.take(rows, data.exact_dtype)), np.arange(len(rows))
    how: Any = {"n_jobs": kernel_rows.n_jobs, "centre": kernel_rows.centre, "counter": kernel_rows.counter}
    return KernelRows(kernel_rows.kernel, data, dtype=np.float64, **how), of


def _norm_of_weights(kernel_rows: KernelRows, rows: Array, V: Array) -> float:
    """Return ‖Σ_i V_i x_i‖² in float64; for sparse rows, over the features that they have."""
    total: Any = 0.0
    if kernel_rows.rows.is_sparse:
        X: Any = kernel_rows.rows.take(rows, np.float64)
        columns, places = np.unique(X.indices, return_inverse=True)
        X = sp.csr_array((X.data, places.reshape(-1), X.indptr), shape=(len(rows), len(columns)))
        for lo in range(0, len(rows), FEATURES_OF):
            total = total + X[lo : lo + FEATURES_OF].T @ V[lo : lo + FEATURES_OF]
    else:
        for lo in range(0, len(rows), FEATURES_OF):
            X = kernel_rows.rows.take(rows[lo : lo + FEATURES_OF], np.float64)
            total = total + X.T @ V[lo : lo + FEATURES_OF]
    return float(np.sum(total**2))


def _double_sum(kernel_rows: KernelRows, rows: Array, V: Array) -> float:
    """Return Σ_ij V_i k(x_i, x_j) V_j in float64, each pair computed once."""
    n, total = len(rows), 0.0
    exact, of = in_float64(kernel_rows, rows)
    for lo in range(0, n, AT_A_TIME):
        hi = min(n, lo + AT_A_TIME)
        scores = exact.scores(exact.points(of[lo:hi]), V[lo:hi], rows=of[lo:])
        total += float(np.sum(V[lo:hi] * scores[: hi - lo]) + 2.0 * np.sum(V[hi:] * scores[hi - lo :]))
    return total


def warn_of_rounding(kernel_rows: KernelRows, value: float, sure: float, objective: float) -> bool:
    """Warn, and return True, if a bound is much below the dual's value as it was computed."""
    is_in_doubt = value - sure > WORTH_SAYING * abs(objective)
    if is_in_doubt:
        largest = kernel_rows.kernel.largest(kernel_rows.rows) or float(np.abs(kernel_rows.diag()).max(initial=0.0))
        warnings.warn(
            f"kernel values as large as {largest:.3g} leave the dual value of {value:.6g} in doubt, the bound is "
            f"{sure:.6g}: centre the features and scale them to about 1",
            ConvergenceWarning,
            stacklevel=5,
        )
    return is_in_doubt
