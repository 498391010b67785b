"""Preimages: the basis vector b whose φ(b) explains most of what a cut's projection leaves over.

Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training", 2009: the residual r = g − ĝ is an expansion over
training rows and the present basis vectors, r_c = Σ_l a_lc φ(x_l), and b maximises

    value(b) = Σ_c ρ_c(b)² / k(b, b),       ρ_c(b) = ⟨r_c, φ(b)⟩ = Σ_l a_lc k(x_l, b),

the amount by which ‖r‖² falls when b joins the basis if b is orthogonal to it. Several vectors at once are chosen
greedily, each by what it explains of what the basis and those before it leave over: there k(b, b) in the value is the
squared length of φ(b) outside their span.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from slimsvm import core
from slimsvm.bases.basis import RANK_TOLERANCE
from slimsvm.core.products import in_calls
from slimsvm.core.threads import run_tiles
from slimsvm.kernels import FoldedKernel, KernelRows, kernels_with
from slimsvm.kernels.pairs import between, squared_lengths

Array = np.ndarray

# With probability 0.95 the best of this many random rows is among the best 5 % of all.
N_CANDIDATES = 59
# The random rows per vector if several vectors are asked for together, and the starts of the search
# (docs/experiments/subspace_pursuit.md, "Fewer of everything").
CANDIDATES_PER_VECTOR, STARTS_PER_VECTOR = 6, 2
# Terms of the residual used while moving b; the value of what comes out is computed over all of them
# (docs/experiments/subspace_pursuit.md, "Which terms of the residual move a vector").
MAX_TERMS = 2048
# The features that the fixed point sums together, and the products of terms, vectors and features that are worth
# threads.
TILE_FEATURES, WORTH_THREADS = 200, 1 << 21
# The multiplications of the greedy choice per microsecond.
PICKS_PER_MICROSECOND = 2_000


@dataclass(frozen=True)
class Candidates:
    """Raw vectors (s, d) with their ρ (s, m), and coordinates (s, k) in the span of the basis if these count."""

    vectors: Any
    rho: Array
    z: Array | None

    def taken(self, chosen: Array) -> Candidates:
        """Return some of the candidates."""
        return Candidates(self.vectors[chosen], self.rho[chosen], None if self.z is None else self.z[chosen])

    def beside(self, others: Candidates) -> Candidates:
        """Return these and others of the same residual, dense."""
        z = None if self.z is None or others.z is None else np.concatenate([self.z, others.z])
        vectors, rho = ([a, b] for a, b in ((self.vectors, others.vectors), (self.rho, others.rho)))
        return Candidates(np.concatenate(vectors), np.concatenate(rho), z)


@dataclass(frozen=True)
class Residual:
    """The residual r_c = Σ_l coef_lc φ(x_{rows_l}) + Σ_j basis_coef_jc φ(b_j)."""

    kernel_rows: KernelRows
    # rows, coef: int64 (u,) and float64 (u, m)
    rows: Array
    coef: Array
    basis: Any
    basis_coef: Array  # (k, m)
    # From kernel values (s, k) of vectors with the basis to their coordinates (s, k) in its span, in an
    # orthonormal frame. None: vectors are valued as if they were orthogonal to it, as the paper does.
    whiten: Callable[[Any], Array] | None = None
    flat: bool = False  # the last feature is a distance from where vectors may be: it is 0 in all of them

    def admitted(self, vectors: Any) -> Any:
        """Return raw vectors (s, d) in the form that the basis can hold."""
        if self.flat:
            vectors[:, -1] = 0.0
        return vectors

    def at(self, vectors: Any) -> Candidates:
        """Compute ρ at raw vectors (s, d), over all terms in the fit's precision; return the vectors with it."""
        block = self.kernel_rows.block(self.kernel_rows.points_of(vectors), rows=self.rows)
        rho, z = (block.T @ self.coef.astype(block.dtype)).astype(np.float64), None
        if self.basis is not None:
            values = between(self.kernel_rows, vectors, self.basis)
            rho += values @ self.basis_coef
            z = None if self.whiten is None else self.whiten(values)
        return Candidates(vectors, rho, z)

    def value(self, vectors: Any) -> Array:
        """Return the value of each of some vectors (s, d)."""
        rho, own = self.at(vectors).rho, squared_lengths(self.kernel_rows, vectors)
        total = np.sum(rho**2, axis=1)
        return np.divide(total, own, out=np.zeros_like(total), where=own > 0)

    def best(self, candidates: Candidates, n: int) -> Candidates:
        """Return up to n candidates, each the best after those before it; all of them explain something."""
        vectors, z = candidates.vectors, candidates.z
        own = squared_lengths(self.kernel_rows, vectors)
        gram = between(self.kernel_rows, vectors)
        if z is not None:
            gram -= z @ z.T
        tolerance = RANK_TOLERANCE[self.kernel_rows.dtype]
        return candidates.taken(greedy_picks(candidates.rho, gram, own, tolerance, n))

    def sample(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return rows and coefficients of the expansion over rows, or of an unbiased sample if it is long."""
        if len(self.rows) <= MAX_TERMS:
            return self.rows, self.coef
        size = np.abs(self.coef).sum(axis=1)
        drawn = rng.choice(len(self.rows), MAX_TERMS, p=size / size.sum())
        return self.rows[drawn], self.coef[drawn] * (size.sum() / (MAX_TERMS * size[drawn]))[:, None]

    def terms(self, rng: np.random.Generator) -> list[tuple[Any, Array]]:
        """Return (vectors, coefficients) of the sampled expansion over rows, and of the basis."""
        rows, coef = self.sample(rng)
        parts: list[tuple[Any, Array]] = [(self.kernel_rows.rows.take(rows, np.float64), coef)]
        if self.basis is not None:
            parts.append((self.basis, self.basis_coef))
        return parts

    def squared_norm(self, projected: float) -> float:
        """Return ‖r‖² of an r orthogonal to the basis, given the squared length ``projected`` of its part within it.

        Costs as many kernel values as the expansion has pairs of rows.
        """
        points = self.kernel_rows.points(self.rows)
        scores = self.kernel_rows.scores(points, self.coef, rows=self.rows)
        return max(0.0, float(np.sum(self.coef * scores)) - projected)


def greedy_picks(rho: Array, gram: Array, own: Array, tolerance: float, n: int) -> Array:
    """Return the positions of up to n of s vectors, each with the greatest Σ_c rho_jc² / rest_j.

    ``gram`` (s, s) are the vectors' products outside the span of a basis, rest_j what is left of gram_jj outside of the
    vectors chosen too. Vectors are skipped if at most ``tolerance`` times own_j is left of them, or if they explain
    nothing.
    """
    s, n = len(own), min(n, len(own))
    chosen, columns, n_chosen = np.empty(n, np.int64), np.empty((n, s)), 0
    call = core.greedy_picks.prepare(
        tolerance=tolerance, gram=np.ascontiguousarray(gram), own=own, rho=rho.copy(), rest=np.diagonal(gram).copy(),
        is_free=own > 0.0, chosen=chosen, columns=columns,
    )  # fmt: skip
    for part in in_calls(n, n * s / PICKS_PER_MICROSECOND):
        n_chosen = call(max_steps=part.stop - n_chosen, n_chosen=n_chosen)
        if n_chosen < part.stop:
            break
    return chosen[:n_chosen]


def as_dense(vectors: Any) -> Array:
    """Return a few vectors as a float64 array."""
    if isinstance(vectors, np.ndarray):
        return vectors.astype(np.float64)
    return vectors.toarray().astype(np.float64)


def best_rows(residual: Residual, n_candidates: int, n: int, n_best: int, rng: np.random.Generator) -> Candidates:
    """Return up to n_best of some random training rows, chosen greedily.

    The rows are n_candidates, or more where n vectors are to come of them.
    """
    kernel_rows = residual.kernel_rows
    size = min(kernel_rows.n_rows, max(n_candidates, CANDIDATES_PER_VECTOR * n))
    vectors = residual.admitted(kernel_rows.basis(np.sort(rng.choice(kernel_rows.n_rows, size, replace=False))))
    return residual.best(residual.at(vectors), n_best)


def best_of(residual: Residual, moved: Array, started: Candidates, n: int) -> Array:
    """Return up to n of the vectors found and their starts, chosen greedily: the first is at least the best start."""
    moved = moved[np.isfinite(moved).all(axis=1)]
    return residual.best(residual.at(moved).beside(started), n).vectors


@dataclass(frozen=True)
class TrainingRows:
    """The best of 59 random training rows; for every kernel, custom and precomputed ones too.

    Parameters
    ----------
    n_candidates : int, default=59
        If n vectors are asked for together, at least 6 n.
    """

    n_candidates: int = N_CANDIDATES

    def check(self, kernel: Any, sparse: bool) -> None:
        """Accept any kernel."""

    def find(self, residual: Residual, rng: np.random.Generator, n: int = 1) -> Any:
        """Return up to n raw vectors (s, d); fewer if fewer explain anything of the residual."""
        return best_rows(residual, self.n_candidates, n, n, rng).vectors


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point iteration for the RBF kernel: b ← Σ_l w_l k(x_l, b) x_l / Σ_l w_l k(x_l, b), w_l = Σ_c ρ_c a_lc.

    Started from the best random rows, all starts at once; a start whose denominator vanishes stays where it is. Never
    worse than the best row it started from.

    Parameters
    ----------
    n_candidates : int, default=59
        Random rows that starts are chosen from. Where n vectors are asked for at once, at least 6 n.
    n_starts : int, default=3
        If n vectors are asked for together, at least 2 n.
    max_iter : int, default=2
        More are no better where many vectors are asked for: weights of both signs make full steps overshoot.
    damping : float, default=1
        Each iteration goes this share of the way; 1 is the paper's.
    tol : float, default=1e-3
        Relative move of all starts below which the iteration ends.
    """

    n_candidates: int = N_CANDIDATES
    n_starts: int = 3
    max_iter: int = 2
    damping: float = 1.0
    tol: float = 1e-3

    def check(self, kernel: Any, sparse: bool) -> None:
        """Require the RBF kernel."""
        if not kernel.is_gaussian:
            raise ValueError(
                f"preimage='fixed-point' is for the RBF kernel, found {type(kernel).__name__}; "
                "use preimage='gradient' (differentiable kernels) or 'training-rows' (any kernel)"
            )

    def find(self, residual: Residual, rng: np.random.Generator, n: int = 1) -> Array:
        """Return up to n raw vectors (s, d), dense; fewer if fewer explain anything of the residual."""
        started = best_rows(residual, self.n_candidates, n, max(self.n_starts, STARTS_PER_VECTOR * n), rng)
        vectors = as_dense(started.vectors)
        if not len(vectors):
            return vectors
        return best_of(residual, self.moved(residual, vectors, rng), replace(started, vectors=vectors), n)

    def moved(self, residual: Residual, started: Array, rng: np.random.Generator) -> Array:
        """Return the vectors after the iteration. It takes means in float32; their values are computed again."""
        kernel_rows, centre = residual.kernel_rows, residual.kernel_rows.centre
        rows, coef = residual.sample(rng)
        terms: Any = kernel_rows.rows.take(rows, np.float32)
        basis, is_sparse = None, kernel_rows.rows.is_sparse
        if not is_sparse:
            terms = less(terms, centre)
        if residual.basis is not None:
            raw: Any = sp.csr_array(residual.basis) if is_sparse else residual.basis
            basis = beside(kernel_rows, raw)
            coef = np.concatenate([coef, residual.basis_coef])
            terms = sp.vstack([terms, raw]) if is_sparse else np.concatenate([terms, less(raw, centre)])
        coef = (coef / (np.abs(coef).max(initial=0.0) or 1.0)).astype(kernel_rows.dtype)
        vectors, block = started, np.empty((len(coef), len(started)), kernel_rows.dtype)
        for _ in range(self.max_iter):
            points = kernel_rows.points_of(vectors)
            kernel_rows.block(points, rows=rows, out=block[: len(rows)])
            if basis is not None:
                basis.block(points, out=block[len(rows) :])
            weights = (block * (coef @ (block.T @ coef).T)).astype(np.float32, copy=False)
            total, size = weights.sum(axis=0, dtype=np.float64), np.abs(weights).sum(axis=0)
            safe = (np.abs(total) > 1e-6 * size)[:, None]
            sums = sums_over(weights, terms, kernel_rows.n_jobs)
            there = np.divide(sums, total[:, None], out=vectors - centre, where=safe) + centre
            step = self.damping * (there - vectors)
            vectors = residual.admitted(vectors + step)
            if np.linalg.norm(step, axis=1).max() <= self.tol * np.linalg.norm(vectors - centre, axis=1).max():
                break
        return vectors


def beside(kernel_rows: KernelRows, X: Any) -> KernelRows:
    """Return other rows kept folded in the same way, dense or sparse as those are: points depend on that."""
    given: Any = {"n_jobs": kernel_rows.n_jobs, "counter": kernel_rows.counter, "centre": kernel_rows.centre}
    return KernelRows(kernel_rows.kernel, X, dtype=kernel_rows.dtype, memory_limit=sys.maxsize, **given)


def less(vectors: Array, centre: Array) -> Array:
    """Return vectors less a centre, in float32."""
    return (vectors - centre.astype(vectors.dtype)).astype(np.float32, copy=False)


def sums_over(weights: Array, terms: Any, n_jobs: int) -> Array:
    """Return Σ_l weights_lj x_l (s, d) of terms x_l, (u, d); the order of a sum does not depend on the threads."""
    if not isinstance(terms, np.ndarray):
        return np.asarray((terms.T @ weights).T, np.float64)
    d = terms.shape[1]
    out, left = np.empty((weights.shape[1], d)), np.ascontiguousarray(weights.T)

    def add(lo: int, hi: int) -> None:
        for t in range(lo, hi):
            part = slice(t * TILE_FEATURES, (t + 1) * TILE_FEATURES)
            out[:, part] = left @ terms[:, part]

    run_tiles(add, -(-d // TILE_FEATURES), n_jobs if weights.size * d >= WORTH_THREADS else 1)
    return out


@dataclass(frozen=True)
class GradientAscent:
    """Quasi-Newton ascent on value(b), for kernels that have a derivative.

    Parameters
    ----------
    n_candidates : int, default=59
        Random rows that starts are chosen from, one for each vector asked for; at least 6 for each.
    max_iter : int, default=20
    """

    n_candidates: int = N_CANDIDATES
    max_iter: int = 20

    def check(self, kernel: Any, sparse: bool) -> None:
        """Require a kernel with a derivative."""
        if not kernel.has_gradient:
            raise ValueError(
                f"preimage='gradient' needs a differentiable kernel ({kernels_with('has_gradient')}), found "
                f"{type(kernel).__name__}; use preimage='training-rows'"
            )

    def find(self, residual: Residual, rng: np.random.Generator, n: int = 1) -> Array:
        """Return up to n raw vectors (s, d), dense; fewer if fewer explain anything of the residual."""
        started = best_rows(residual, self.n_candidates, n, n, rng)
        vectors = as_dense(started.vectors)
        if not len(vectors):
            return vectors
        kernel_rows, parts = residual.kernel_rows, residual.terms(rng)
        kernel: Any = kernel_rows.kernel
        scale = max(residual.value(vectors).max(), 1e-300)

        def negative(b: Array) -> tuple[float, Array]:
            value, slope = value_and_gradient(kernel, parts, b)
            kernel_rows.counter.add(sum(len(coef) for _, coef in parts))
            return -value / scale, -slope / scale

        def ascend(b: Array) -> Array:
            return minimize(negative, b, jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter}).x

        moved = [ascend(b) for b in vectors]
        return best_of(residual, np.array(moved), replace(started, vectors=vectors), n)


def value_and_gradient(kernel: FoldedKernel, parts: list[tuple[Any, Array]], b: Array) -> tuple[float, Array]:
    """Return value(b) = Σ_c ρ_c² / k(b, b) and its gradient for a residual's terms; the kernel needs a derivative."""
    column, folding = b[None, :], kernel.folding(len(b))
    own, own_slope = (float(array[0, 0]) for array in kernel.block_with_slopes(column, column))
    if not own > 0:
        return 0.0, np.zeros_like(b)
    known = [kernel.block_with_slopes(vectors, column) for vectors, _ in parts]
    rho = np.sum([coef.T @ k[:, 0] for (k, _), (_, coef) in zip(known, parts)], axis=0)
    total, gradient = float(rho @ rho), np.zeros_like(b)
    for (_, slopes), (vectors, coef) in zip(known, parts):
        weights = (coef @ rho) * slopes[:, 0]
        gradient += 2.0 * (vectors.T @ weights)
        if folding.norms:
            gradient -= 2.0 * weights.sum() * b
    if not folding.norms:
        gradient -= total / own * 2.0 * own_slope * b
    return total / own, folding.metric * gradient / own


PREIMAGES = {"fixed-point": FixedPoint, "training-rows": TrainingRows, "gradient": GradientAscent}


def get_preimage(preimage: Any) -> Any:
    """Return the strategy of a name; objects with ``check`` and ``find`` come back as they are."""
    if isinstance(preimage, str):
        if preimage not in PREIMAGES:
            raise ValueError(f"preimage must be one of {', '.join(map(repr, PREIMAGES))}; found {preimage!r}")
        return PREIMAGES[preimage]()
    if not (hasattr(preimage, "find") and hasattr(preimage, "check")):
        raise ValueError(f"preimage must be a name or an object with check and find, found {preimage!r}")
    return preimage
