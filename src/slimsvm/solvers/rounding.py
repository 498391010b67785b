r"""What rounding can do to a bound from below.

A dual point V, one number per row and output, bounds all objectives by D(V) = rest − ½ Σ_ij V_i k(x_i, x_j) V_j. Of D
only the double sum is in doubt. It is summed up anew in float64 over all pairs of rows with V ≠ 0 where these are few;
of many, where the fit's kernel values are float32, over some of them as the first of a pair, which tells what is amiss
with the fit's own sum: the mean difference and five times its standard error. What is in doubt in float64 is then taken
off (γ about ε d / 8 for sums of d products):

    inner products     |error of k(x, z)|  ≤  γ p s(x) s(z),  s(x)² = (γ_k ⟨x, x⟩ + |coef0|)^p
    distances          |error of k(x, z)|  ≤  γ (2.5 min(r(x), r(z)) + 2),  r the exponent of a row that is folded:
                       where r(x) and r(z) are far apart, k is next to 0
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import core
from slimsvm.kernels import KernelRows
from slimsvm.kernels.far import FAR
from slimsvm.lazy import made_once
from slimsvm.rows import is_sparse

Array = np.ndarray

# Pairs of rows that are summed up in float64, and multiply-adds for them, some 4 ms; rows that are the first of a pair
# where there are more, at least; standard errors.
PAIRS, WORK, LEAST_ROWS, ERRORS = 1_000_000, 100_000_000, 128, 5.0
# A float64 sum of which no greater share is in doubt is not summed up anew: steps on the way to it, each of which
# rounds, count as this many sums.
LITTLE, ON_THE_WAY = 1e-6, 4.0
# Products of a sum that go to one lane, and operations beside them.
LANES, OTHERS = 8, 4
# A warning says so where rounding takes more of a bound than this share of the objective.
WORTH_SAYING = 0.01
# Objectives below this share of C₁ are those of rounding.
NOTHING = 1e-6
ROWS_AT_ONCE = 1 << 12
# Exponents of rows that are kept folded, in float32, are short of the true ones by less than this.
AS_KEPT = 1.0 + 1e-5
# Of rows that are folded: beyond it values are taken about other centres.
LARGEST_EXPONENT = 2.0 * FAR[np.dtype(np.float64)]


@dataclass(frozen=True)
class DualPoint:
    """A dual point that a fit ends with.

    Parameters
    ----------
    rows : int64 ndarray of shape (k,)
        Those with V ≠ 0.
    V : float64 ndarray of shape (k, m)
    rest : float
        D without the double sum, which no kernel value has a part in.
    seen : float
        The double sum as the fit has it.
    is_weights : bool
        Whether it is the squared length of explicit weights instead.
    """

    rows: Array
    V: Array
    rest: float
    seen: float
    is_weights: bool = False


class Doubt:
    """By how much the double sums of some rows, in float64, can be wrong.

    Parameters
    ----------
    kernel_rows : KernelRows
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
        """Rounding error of each row's score. Costs little if folded rows are cached."""
        half = self.kernel_rows.half_norms
        if half is not None and -half.min(initial=0.0) < FAR[half.dtype]:
            return -2.0 * AS_KEPT * (half if self.rows is None else half[self.rows]).astype(np.float64)
        index = np.arange(self.kernel_rows.n_rows) if self.rows is None else self.rows
        parts = [index[lo : lo + ROWS_AT_ONCE] for lo in range(0, len(index), ROWS_AT_ONCE)]
        return np.concatenate([np.zeros(0), *map(self._sizes, parts)])

    @made_once
    def order(self) -> Array:
        """Rows by size."""
        return np.argsort(self.size)

    def _sizes(self, index: Array) -> Array:
        kernel_rows = self.kernel_rows
        folding: Any = self.folding
        if folding is None:
            return np.sqrt(np.abs(kernel_rows.diag(index)))
        X: Any = kernel_rows.rows.take(index, np.float64)
        if self.is_distance:
            X = X.multiply(folding.row_scale) if is_sparse(X) else (X - kernel_rows.centre) * folding.row_scale
            size = _sums(np.abs(X) if folding.manhattan else X * X if not is_sparse(X) else X.multiply(X))
            return np.minimum(size, LARGEST_EXPONENT)
        squares = _sums(X.multiply(X) if is_sparse(X) else X * X)
        return (np.abs(folding.point_scale) * squares + abs(folding.shift)) ** (0.5 * self.power)

    def of(self, V: Array) -> float:
        """The most that Σ_ij V_i k(x_i, x_j) V_j can be wrong by."""
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
        """What `of` any V is at most, as a multiple of (Σ|V|)²."""
        largest = float(self.size.max(initial=0.0))
        if not self.is_distance:
            return self.gamma * (self.power * largest**2 + 1.0)
        return self.gamma * (2.5 * largest + 2.0)

    def of_weights(self, V: Array, norm_squared: float) -> float:
        """The same of ‖Σ_i V_i x_i‖² by its features."""
        a = np.abs(V).reshape(len(V), -1).sum(axis=1)
        error = self.gamma * float(a @ self.size)
        return 2.0 * np.sqrt(max(norm_squared, 0.0)) * error + error**2


def _sums(X: Any) -> Array:
    return np.asarray(X.sum(axis=1)).reshape(-1)


def sure_value(kernel_rows: KernelRows, point: DualPoint, anew: bool = True) -> float:
    """What D of a dual point is at least; where ``anew`` is false its double sum is one of float64 values already."""
    rows, V = point.rows, point.V
    if not len(rows):
        return point.rest
    doubt = Doubt(kernel_rows, rows)
    if point.is_weights:
        return point.rest - 0.5 * (point.seen + doubt.of_weights(V, point.seen))
    amount = doubt.of(V)
    if kernel_rows.dtype == np.float64 and (not anew or amount <= LITTLE * abs(point.seen)):
        total, amount = point.seen, ON_THE_WAY * amount
    elif len(rows) ** 2 <= most_pairs(kernel_rows):
        total = float(np.sum(V * _products(kernel_rows, rows, V, None)))
    elif kernel_rows.dtype == np.float64:
        total = point.seen
    else:
        total = point.seen + _amiss(kernel_rows, rows, V)
    return point.rest - 0.5 * (total + amount)


def most_pairs(kernel_rows: KernelRows) -> int:
    """Pairs of rows that are summed up in float64."""
    return min(PAIRS, WORK // (kernel_rows.n_features + 16))


def _products(kernel_rows: KernelRows, rows: Array, V: Array, chosen: Array | None) -> Array:
    """Σ_j k(x_i, x_j) V_j in float64 of rows, or those chosen of them."""
    exact = KernelRows(
        kernel_rows.kernel,
        kernel_rows.rows,
        dtype=np.float64,
        n_jobs=kernel_rows.n_jobs,
        memory_limit=0,
        centre=kernel_rows.centre,
        counter=kernel_rows.counter,
    )
    return exact.scores(exact.points(rows), V, rows=rows if chosen is None else rows[chosen])


def _amiss(kernel_rows: KernelRows, rows: Array, V: Array) -> float:
    """By how much the double sum of float32 values is too small at most, as a sample of rows tells."""
    weight = np.abs(V).sum(axis=1)
    share = weight / weight.sum()
    n = max(LEAST_ROWS, most_pairs(kernel_rows) // len(rows))
    chosen = np.random.default_rng(0).choice(len(rows), n, p=share)
    least = kernel_rows.scores(kernel_rows.points(rows), V, rows=rows[chosen]).astype(np.float64)
    change = np.sum(V[chosen] * (_products(kernel_rows, rows, V, chosen) - least), axis=1) / share[chosen]
    return float(change.mean() + ERRORS * change.std() / np.sqrt(n))


def sure_bound(run: Any, bound: float, objective: float, anew: bool = True) -> float:
    """A fit's bound without what rounding can have added to it; says so where that is much.

    Parameters
    ----------
    run : Run
        With a method ``dual_point`` or ``sure_bound``, or nothing is known better.
    bound, objective : float
        As the run has them.
    anew : bool
        See `sure_value`.
    """
    point = run.dual_point() if hasattr(run, "dual_point") else None
    if point is not None:
        sure = sure_value(run.kernel_rows, point, anew)
    elif hasattr(run, "sure_bound"):
        sure = run.sure_bound()
    else:
        return bound
    sure = min(bound, sure)
    if bound >= 0:  # no loss is below 0, nor is any objective
        sure = max(sure, 0.0)
    if point is not None:
        warn_of_doubt(run.kernel_rows, bound, sure, max(abs(objective), NOTHING * run.problem.C1))
    return sure


def warn_of_doubt(kernel_rows: KernelRows, value: float, sure: float, objective: float) -> None:
    """Say so where a bound is much below the dual's value as it was computed."""
    if value - sure > WORTH_SAYING * abs(objective):
        largest = kernel_rows.kernel.largest(kernel_rows.rows)
        warnings.warn(
            f"kernel values as large as {largest:.3g} leave the dual value of {value:.6g} in doubt, the bound is "
            f"{sure:.6g}: centre the features and scale them to about 1",
            ConvergenceWarning,
            stacklevel=5,
        )
