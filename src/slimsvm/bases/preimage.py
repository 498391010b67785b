"""Preimages: the basis vector b whose φ(b) explains most of what a cut's projection leaves over.

Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training", 2009: the residual r = g − ĝ is an expansion over
training rows and the present basis vectors, r_c = Σ_l a_lc φ(x_l), and b maximises

    value(b) = Σ_c ρ_c(b)² / k(b, b),       ρ_c(b) = ⟨r_c, φ(b)⟩ = Σ_l a_lc k(x_l, b),

the amount by which ‖r‖² falls when b joins the basis (if b were orthogonal to it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize

from slimsvm.kernels import RBF, KernelRows, Linear, Polynomial, Sigmoid
from slimsvm.kernels.pairs import between, squared_lengths

Array = np.ndarray

# Chance 0.95 that the best of this many random rows is among the best 5 % of all.
N_CANDIDATES = 59
# Terms of the residual used while moving b; the value of what comes out is computed over all of them.
MAX_TERMS = 4096


@dataclass(frozen=True)
class Residual:
    """r_c = Σ_l coef_lc φ(x_{rows_l}) + Σ_j basis_coef_jc φ(b_j).

    Parameters
    ----------
    kernel_rows : KernelRows
    rows, coef : int64 array of shape (u,), array of shape (u, m)
    basis : raw vectors or None
    basis_coef : array of shape (k, m)
    """

    kernel_rows: KernelRows
    rows: Array
    coef: Array
    basis: Any
    basis_coef: Array

    def at_rows(self, index: Array) -> Array:
        """ρ at training rows, (len(index), m)."""
        kernel_rows = self.kernel_rows
        rho = kernel_rows.scores(kernel_rows.points(self.rows), self.coef, rows=index).astype(np.float64)
        if self.basis is not None:
            rho += kernel_rows.scores(kernel_rows.points_of(self.basis), self.basis_coef, rows=index)
        return rho

    def value(self, vectors: Any) -> Array:
        """Value of each of some vectors (s, d), computed over all terms in the fit's precision."""
        block = self.kernel_rows.block(self.kernel_rows.points_of(vectors), rows=self.rows)
        rho = block.astype(np.float64).T @ self.coef
        if self.basis is not None:
            rho += between(self.kernel_rows, vectors, self.basis) @ self.basis_coef
        return explained(rho, squared_lengths(self.kernel_rows, vectors))

    def terms(self, rng: np.random.Generator) -> tuple[Any, Array]:
        """Raw vectors and coefficients of the expansion, or of an unbiased sample where it is long."""
        rows, coef = self.rows, self.coef
        if len(rows) > MAX_TERMS:
            size = np.abs(coef).sum(axis=1)
            drawn = rng.choice(len(rows), MAX_TERMS, p=size / size.sum())
            rows = rows[drawn]
            coef = coef[drawn] * (size.sum() / (MAX_TERMS * size[drawn]))[:, None]
        raw: Any = self.kernel_rows.rows.take(rows, np.float64)
        if self.basis is None:
            return raw, coef
        sparse = self.kernel_rows.rows.is_sparse
        stacked = sp.vstack([raw, sp.csr_array(self.basis)]).tocsr() if sparse else np.vstack([raw, self.basis])
        return stacked, np.concatenate([coef, self.basis_coef])


def explained(rho: Array, own: Array) -> Array:
    """Σ_c ρ_c² / k(b, b) of each vector; 0 where φ(b) = 0, as for a row of zeros and the linear kernel."""
    total = np.sum(rho**2, axis=1)
    return np.divide(total, own, out=np.zeros_like(total), where=own > 0)


def as_dense(vectors: Any) -> Array:
    """A few vectors as a float64 array."""
    if isinstance(vectors, np.ndarray):
        return vectors.astype(np.float64)
    return vectors.toarray().astype(np.float64)


def best_rows(residual: Residual, n_candidates: int, n_best: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The best of some random training rows, best first, with their values."""
    n = residual.kernel_rows.n_rows
    candidates = np.sort(rng.choice(n, min(n, n_candidates), replace=False))
    rho = residual.at_rows(candidates)
    values = explained(rho, residual.kernel_rows.diag(candidates))
    order = np.argsort(-values, kind="stable")[:n_best]
    return candidates[order], values[order]


@dataclass(frozen=True)
class TrainingRows:
    """The best of 59 random training rows; for every kernel, custom and precomputed ones too.

    Parameters
    ----------
    n_candidates : int, default=59
    """

    n_candidates: int = N_CANDIDATES

    def check(self, kernel: Any, sparse: bool) -> None:
        """Any kernel will do."""

    def find(self, residual: Residual, rng: np.random.Generator) -> Any:
        """A raw vector (1, d)."""
        rows, _ = best_rows(residual, self.n_candidates, 1, rng)
        return residual.kernel_rows.basis(rows)


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point iteration for the RBF kernel: b ← Σ_l w_l k(x_l, b) x_l / Σ_l w_l k(x_l, b), w_l = Σ_c ρ_c a_lc.

    Started from the best random rows; a start whose denominator vanishes stays where it is. Never worse than the best
    row it started from.

    Parameters
    ----------
    n_candidates : int, default=59
    n_starts : int, default=3
    max_iter : int, default=20
    tol : float, default=1e-3
        Relative move of all starts below which the iteration ends.
    """

    n_candidates: int = N_CANDIDATES
    n_starts: int = 3
    max_iter: int = 20
    tol: float = 1e-3

    def check(self, kernel: Any, sparse: bool) -> None:
        """The RBF kernel only."""
        if not isinstance(kernel, RBF):
            raise ValueError(
                f"preimage='fixed-point' is for the RBF kernel, found {type(kernel).__name__}; "
                "use preimage='gradient' (differentiable kernels) or 'training-rows' (any kernel)"
            )

    def find(self, residual: Residual, rng: np.random.Generator) -> Array:
        """A raw vector (1, d), dense."""
        rows, values = best_rows(residual, self.n_candidates, self.n_starts, rng)
        started = as_dense(residual.kernel_rows.basis(rows))
        terms, coef = residual.terms(rng)
        counter = residual.kernel_rows.counter
        folded = KernelRows(residual.kernel_rows.kernel, terms, dtype=np.float32, n_jobs=1, counter=counter)
        vectors = started.copy()
        for _ in range(self.max_iter):
            block = folded.block(folded.points_of(vectors)).astype(np.float64)
            weights = block * (coef @ (block.T @ coef).T)
            total = weights.sum(axis=0)
            safe = np.abs(total) > 1e-12 * np.abs(weights).sum(axis=0)
            moved = np.where(safe[:, None], (terms.T @ weights).T / np.where(safe, total, 1.0)[:, None], vectors)
            change = np.linalg.norm(moved - vectors, axis=1).max()
            vectors = moved
            if change <= self.tol * max(1e-300, np.linalg.norm(vectors, axis=1).max()):
                break
        return best_of(residual, vectors, started[:1], values[0])


@dataclass(frozen=True)
class GradientAscent:
    """Quasi-Newton ascent on value(b), for differentiable kernels: RBF, polynomial, linear, sigmoid.

    Parameters
    ----------
    n_candidates : int, default=59
    max_iter : int, default=20
    """

    n_candidates: int = N_CANDIDATES
    max_iter: int = 20

    def check(self, kernel: Any, sparse: bool) -> None:
        """Kernels whose derivative is known."""
        if not isinstance(kernel, (RBF, Polynomial, Linear, Sigmoid)):
            raise ValueError(
                f"preimage='gradient' needs a differentiable kernel (RBF, polynomial, linear, sigmoid), found "
                f"{type(kernel).__name__}; use preimage='training-rows'"
            )

    def find(self, residual: Residual, rng: np.random.Generator) -> Array:
        """A raw vector (1, d), dense."""
        rows, values = best_rows(residual, self.n_candidates, 1, rng)
        started = as_dense(residual.kernel_rows.basis(rows))
        terms, coef = residual.terms(rng)
        kernel, scale = residual.kernel_rows.kernel, max(values[0], 1e-300)

        def negative(b: Array) -> tuple[float, Array]:
            value, slope = value_and_gradient(kernel, terms, coef, b)
            residual.kernel_rows.counter.add(len(coef))
            return -value / scale, -slope / scale

        found = minimize(negative, started[0], jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
        return best_of(residual, found.x[None, :], started, values[0])


def value_and_gradient(kernel: Any, terms: Any, coef: Array, b: Array) -> tuple[float, Array]:
    """value(b) = Σ_c ρ_c² / k(b, b) and its gradient, for kernels whose derivative is known."""
    column = b[None, :]
    k = kernel.block(terms, column)[:, 0]
    rho, own = coef.T @ k, float(kernel.diag(column)[0])
    if not own > 0:
        return 0.0, np.zeros_like(b)
    weights = coef @ rho
    if isinstance(kernel, RBF):
        scaled = 2.0 * np.asarray(kernel.gamma) * (terms.T @ (weights * k) - (weights @ k) * b)
        return float(rho @ rho) / own, 2.0 * scaled / own
    inner, own_inner = np.asarray(terms @ b).ravel(), float(b @ b)
    slope = terms.T @ (weights * derivative(kernel, inner))
    own_slope = 2.0 * derivative(kernel, np.array([own_inner]))[0] * b
    return float(rho @ rho) / own, 2.0 * slope / own - float(rho @ rho) / own**2 * own_slope


def derivative(kernel: Any, inner: Array) -> Array:
    """dk/d⟨x, b⟩ of a kernel of the inner product."""
    if isinstance(kernel, Linear):
        return np.ones_like(inner)
    z = kernel.gamma * inner + kernel.coef0
    if isinstance(kernel, Polynomial):
        return kernel.gamma * kernel.degree * z ** (kernel.degree - 1)
    return kernel.gamma / np.cosh(z) ** 2


def best_of(residual: Residual, vectors: Array, start: Array, start_value: float) -> Array:
    """The best of the vectors found, or the start itself where none is better."""
    finite = vectors[np.isfinite(vectors).all(axis=1)]
    if len(finite):
        values = residual.value(finite)
        if np.max(values) > start_value:
            return finite[[int(np.argmax(values))]]
    return start


PREIMAGES = {"fixed-point": FixedPoint, "training-rows": TrainingRows, "gradient": GradientAscent}


def get_preimage(preimage: Any) -> Any:
    """The strategy a name stands for; objects with ``check`` and ``find`` come back as they are."""
    if isinstance(preimage, str):
        if preimage not in PREIMAGES:
            raise ValueError(f"preimage must be one of {', '.join(map(repr, PREIMAGES))}; found {preimage!r}")
        return PREIMAGES[preimage]()
    if not (hasattr(preimage, "find") and hasattr(preimage, "check")):
        raise ValueError(f"preimage must be a name or an object with check and find, found {preimage!r}")
    return preimage
