"""Cuts, the live ones, and the small quadratic programme over them, kept ready to be solved again.

    max_a  h'a - 1/2 a'G a    subject to  a >= 0,  sum(a) <= C

is the dual of  min_{w, xi}  1/2 ||w||^2 + C xi  s.t.  h_j - <w, g_j> <= xi,  xi >= 0,  with G_jk = <g_j, g_k>
(Yu and Joachims 2008, the problem solved in every iteration of Algorithms 1 to 4). `core/cuts/active_set.cc` has the
method. A cut is one linear lower bound on the mean loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slimsvm import core
from slimsvm.lazy import made_once


@dataclass(frozen=True)
class Cut:
    """The constraint c − ⟨w, g⟩ ≤ ξ; it keeps g as coefficients over rows."""

    c: float  # the constant
    rows: Array  # int64 (u,): the distinct rows g lies on, in increasing order
    coef: Array  # float64 (u, n_outputs): coefficients of g over (row, output column)
    plain: Array  # float64 (n_plain,): g's part over the plain parameters

    @made_once
    def intercept(self) -> Array:
        """Return g's part over the constant feature of every output column."""
        found: Array = self.coef.sum(axis=0)
        return found


def weighted_sum(cuts: Sequence[Cut], weights: Array) -> Cut:
    """Return Σ_j weights_j (c_j, g_j) as one cut over the union of the rows."""
    rows = np.concatenate([cut.rows for cut in cuts])
    coef = np.concatenate([weight * cut.coef for cut, weight in zip(cuts, weights)])
    distinct, where = np.unique(rows, return_inverse=True)
    total = np.zeros((len(distinct), coef.shape[1]))
    np.add.at(total, where, coef)
    plain = sum((weight * cut.plain for cut, weight in zip(cuts, weights)), np.zeros_like(cuts[0].plain))
    return Cut(float(sum(weight * cut.c for cut, weight in zip(cuts, weights))), distinct, total, plain)


def n_distinct_rows(cuts: Sequence[Cut], n_rows: int) -> int:
    """Return how many distinct rows the cuts have coefficients on."""
    n_listed = sum(len(cut.rows) for cut in cuts)
    if n_rows > 64 * n_listed:  # if cuts have few rows, the work must not grow with the data
        return len(np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(cut.rows for cut in cuts)])))
    found = np.zeros(n_rows, dtype=bool)
    for cut in cuts:
        found[cut.rows] = True
    return int(np.count_nonzero(found))


_NOT_FINITE = "the cuts' inner products, constants and multipliers must be finite; found NaN or infinity"
_PIVOTS_PER_COORDINATE = 20  # at most 4 were seen: this bound makes the method end
_MAX_WORK = 50_000_000  # multiply-adds of one call of compiled code: below 50 ms
_SLACK = 0  # the coordinate that stands for C - sum(a) in compiled code; cut j is coordinate j + 1


class QPSolution(NamedTuple):
    """The result of `SimplexQP.solve`, beside `alpha` itself."""

    xi: float  # the multiplier of sum(alpha) <= C: max(0, max_j (h - G alpha)_j)
    # KKT residual reached: the largest xi - (h - G alpha)_j over alpha_j > 0 (and xi itself where sum(alpha) < C), as a
    # share of max(max|h|, max|G alpha|). The other conditions hold by construction.
    kkt: float
    n_pivots: int  # how many times a coordinate became free or left the free set


class SimplexQP:
    """max_a h'a - 1/2 a'G a over a >= 0, sum(a) <= C, for a set of cuts that grows and shrinks between solutions.

    Keeps the last solution and its Cholesky factor, so that solving again after one cut was appended costs a few
    triangular solves. It aims at ``tol``, a KKT residual (see `QPSolution`), and first has room for ``capacity`` cuts.
    State is plain arrays: copies and pickles.

    Examples
    --------
    >>> qp = SimplexQP()
    >>> qp.append([], 2.0, 1.0)
    >>> qp.append([1.0], 2.0, 0.5)
    >>> solution = qp.solve(10.0)
    >>> qp.alpha
    array([0.5, 0. ])
    >>> solution.kkt < 1e-10
    True
    """

    def __init__(self, tol: float = 1e-10, capacity: int = 64, max_work: int = _MAX_WORK):
        self.tol, self.max_work = tol, max_work
        self._n = 1  # coordinates in use: the slack and the cuts
        self._arrays = _arrays(capacity + 1)
        self._bind()

    @classmethod
    def from_gram(cls, G: Any, h: Any, alpha: Any = None, tol: float = 1e-10, max_work: int = _MAX_WORK) -> SimplexQP:
        """Return the problem with t cuts given at once, whose next solution starts at alpha, or at zero."""
        h = np.asarray(h, dtype=np.float64)
        t = len(h)
        G = np.asarray(G, dtype=np.float64)
        alpha = np.zeros(t) if alpha is None else np.asarray(alpha, dtype=np.float64)
        if G.shape != (t, t) or alpha.shape != (t,):
            raise ValueError(
                f"{t} constants need G of shape ({t}, {t}) and {t} multipliers, got {G.shape}, {alpha.shape}"
            )
        if not (np.isfinite(G).all() and np.isfinite(h).all() and np.isfinite(alpha).all()):
            raise ValueError(_NOT_FINITE)
        qp = cls(tol, max(t, 1), max_work)
        qp._n = t + 1
        qp.G[:] = G
        qp.h[:] = h
        qp._a[1 : t + 1] = alpha
        return qp

    def _bind(self) -> None:
        """Hand the arrays to compiled code; they stay where they are until `_resize`."""
        self._compiled = core.SimplexQp(**self._arrays)
        self._maximise = core.maximise_on_simplex.prepare(qp=self._compiled, max_work=self.max_work)
        self._G, self._h, self._a = (self._arrays[name] for name in "Gha")

    def __getstate__(self) -> dict[str, Any]:
        """Return the arrays, without the structure that holds their addresses."""
        return {"tol": self.tol, "max_work": self.max_work, "_n": self._n, "_arrays": self._arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Bind arrays of its own."""
        vars(self).update(state)
        self._bind()

    def __len__(self) -> int:
        """Return the number of cuts."""
        return self._n - 1

    @property
    def G(self) -> np.ndarray:
        """Return the Gram matrix of the cuts, (t, t) float64; a view."""
        return self._G[1 : self._n, 1 : self._n]

    @property
    def h(self) -> np.ndarray:
        """Return the constants of the cuts, (t,) float64; a view."""
        return self._h[1 : self._n]

    @property
    def alpha(self) -> np.ndarray:
        """Return the last solution, 0 for cuts appended since, (t,) float64; a copy."""
        return self._a[1 : self._n].copy()

    @property
    def value(self) -> float:
        """Return the objective h'a - 1/2 a'G a at `alpha`."""
        alpha = self.alpha
        return float(alpha @ self.h - 0.5 * alpha @ (self.G @ alpha))

    def append(self, row: Any, diagonal: float, c: float, alpha: float = 0.0) -> None:
        """Append a cut of constant c, whose multiplier is alpha when the next solution starts.

        ``row`` (t,) has the inner products of its g with those of the cuts there are, ``diagonal`` is its squared norm.
        """
        row = np.asarray(row, dtype=np.float64)
        n = self._n
        if row.shape != (n - 1,):
            raise ValueError(f"row must hold one inner product per cut, {n - 1} in all; its shape is {row.shape}")
        if not (np.isfinite(row).all() and np.isfinite([diagonal, c, alpha]).all()):
            raise ValueError(_NOT_FINITE)
        if n == len(self._h):
            self._resize(2 * n)
        self._G[1:n, n] = self._G[n, 1:n] = row
        self._G[n, n] = diagonal
        self._h[n] = c
        self._a[n] = alpha
        self._n = n + 1

    def _resize(self, capacity: int) -> None:
        larger = _arrays(capacity)
        for name, array in self._arrays.items():
            larger[name][tuple(slice(length) for length in array.shape)] = array
        self._arrays = larger
        self._bind()

    def keep(self, index: Any) -> None:
        """Forget all cuts but those at these rising positions; the others' multipliers go to the slack."""
        kept = np.append(_SLACK, np.asarray(index, dtype=np.int64) + 1)
        if not (np.all(np.diff(kept) > 0) and kept[-1] < self._n):
            raise ValueError(f"index must hold increasing positions among the {len(self)} cuts, got {index}")
        core.keep_on_simplex(qp=self._compiled, n=self._n, kept=kept)
        self._n = len(kept)

    def merge(self, index: Any) -> np.ndarray:
        """Replace the cuts at index by their mean weighted by alpha, appended at the end; return the weights, of sum 1.

        The value stays as it is. The weights are equal where all of alpha is zero.
        """
        index = np.asarray(index, dtype=np.int64)
        alpha = self.alpha[index]
        total = alpha.sum()
        weights = alpha / total if total > 0 else np.full(len(index), 1.0 / len(index))
        row = weights @ self.G[index]
        diagonal = float(row[index] @ weights)
        c = float(weights @ self.h[index])
        others = np.setdiff1d(np.arange(len(self)), index)
        self.keep(others)
        self.append(row[others], diagonal, c, total)
        return weights

    def solve(self, C: float) -> QPSolution:
        """Solve from the last solution, made feasible for C; `alpha` then holds the result.

        Always ends, at a feasible point whose value is not below that of the start. The KKT residual falls below `tol`
        unless rounding forbids it: G alpha cannot be told better than 1e-16 times |G| alpha, which exceeds G alpha by
        far where the g cancel (C so large that the loss hardly counts, norms of many orders of magnitude).
        """
        if not (np.isfinite(C) and C > 0):
            raise ValueError(f"C must be positive and finite, got {C}")
        max_pivots, is_start, is_done = _PIVOTS_PER_COORDINATE * self._n + 100, 1, 0
        while not is_done:
            is_done, n_pivots, xi, kkt = self._maximise(
                n=self._n, C=C, tol=self.tol, max_pivots=max_pivots, is_start=is_start
            )
            is_start = 0
        return QPSolution(xi, kkt, n_pivots)


def _arrays(capacity: int) -> dict[str, np.ndarray]:
    """Return arrays for a ``struct slimsvm_simplex_qp`` of this capacity."""
    squares = {name: np.zeros((capacity, capacity)) for name in "GR"}
    return squares | {
        "h": np.zeros(capacity),
        "a": np.zeros(capacity),
        "V": np.zeros((2, capacity)),
        "kappa": np.ones(1),
        "free": np.zeros(capacity, np.int64),
        "state": np.zeros(6, np.int64),
        "vectors": np.zeros((3, capacity)),
        "marks": np.zeros(capacity, np.int64),
    }


Array = np.ndarray

# Relative KKT residual asked of the QP. At large C₁ the gap of a fit is this times C₁ / objective: far below 1e-8
# (docs/experiments/sampled_cuts.md).
QP_TOLERANCE = 1e-14


class WorkingSet:
    """Live cuts with the dual solution α of max_α hᵀα − ½ αᵀGα, α ≥ 0, Σα ≤ C₁, where G_jk = ⟨g_j, g_k⟩, h_j = c_j."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self.qp = SimplexQP(tol=QP_TOLERANCE)
        self.alpha = np.zeros(0)  # the last solution, 0 for cuts added since
        self.best_products = np.zeros(0)  # ⟨w_b, g_j⟩ with the best point of a line search (0 where there is none)
        self.idle = np.zeros(0, dtype=np.int64)  # for how many solutions in a row α_j has been 0
        self.xi = self.kkt = 0.0  # mean loss as the cuts see it; relative KKT residual of the last solution

    def __len__(self) -> int:
        return len(self.cuts)

    def add(self, cut: Cut, products: Array, best_product: float = 0.0) -> None:
        """Append a cut; ``products`` (t + 1,) are its inner products with the live cuts and with itself.

        If those between live cuts have changed, too, the inner products of all: (t + 1, t + 1).
        """
        if products.ndim == 2:
            self.qp = SimplexQP.from_gram(products[:-1, :-1], self.qp.h.copy(), self.alpha, tol=QP_TOLERANCE)
            products = products[-1]
        self.qp.append(products[:-1], float(products[-1]), cut.c)
        self.best_products = np.append(self.best_products, best_product)
        self.cuts.append(cut)
        self.alpha = self.qp.alpha
        self.idle = np.append(self.idle, 0)

    def solve(self, C1: float) -> None:
        """Solve the QP from the present α."""
        solution = self.qp.solve(C1)
        self.alpha, self.xi, self.kkt = self.qp.alpha, solution.xi, solution.kkt
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)

    def move_best(self, k: float) -> None:
        """Move the best point the share k of the way to the solution."""
        self.best_products += k * (self.qp.G @ self.alpha - self.best_products)

    def put_best_here(self) -> None:
        """Let the solution be the best point."""
        self.best_products = self.qp.G @ self.alpha

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.qp.keep(index)
        self.cuts = [self.cuts[j] for j in index]
        self.alpha, self.idle, self.best_products = self.qp.alpha, self.idle[index], self.best_products[index]

    def merge(self, index: Array) -> Array:
        """Replace some cuts by Σ α_j (c_j, g_j) / Σ α_j, appended at the end; return the weights of that mean.

        w and the QP's value stay as they are.
        """
        share = self.qp.merge(index)
        rest = np.setdiff1d(np.arange(len(self.cuts)), index)
        self.cuts = [self.cuts[j] for j in rest] + [weighted_sum([self.cuts[j] for j in index], share)]
        self.alpha, self.idle = self.qp.alpha, np.append(self.idle[rest], 0)
        self.best_products = np.append(self.best_products[rest], share @ self.best_products[index])
        return share

    @property
    def norm_squared(self) -> float:
        """Return ‖w‖² = αᵀGα; with kernels that are no inner products (sigmoid) it may be negative."""
        return float(self.alpha @ (self.qp.G @ self.alpha))

    @property
    def value(self) -> float:
        """Return the QP's value hᵀα − ½ αᵀGα: a lower bound on the objective if every cut is exact."""
        return self.qp.value

    @property
    def plain(self) -> Array:
        """Return the plain parameters v = Σ α_j plain_j."""
        found: Array = self.alpha @ np.stack([cut.plain for cut in self.cuts])
        return found
