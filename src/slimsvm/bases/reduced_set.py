r"""Reduced sets: a model of few vectors that approximates a model of many as closely as possible.

Given w = Σ_l A_l φ(x_l) (n_basis vectors, m outputs), find basis vectors b_1..b_k and coefficients β that minimise

    D(b, β) = λ Σ_c ‖w_c − Σ_j β_jc φ(b_j)‖²  +  (1/n) Σ_i Σ_c (f_c(x_i) − Σ_j β_jc k(b_j, x_i))²

the second sum over n rows x_i where some are given; λ is then `NORM_WEIGHT` / mean k(x, x), otherwise 1. For fixed b
the best coefficients solve H β = T with H = λ K_BB + K_BX K_XB / n and T = λ ⟨φ(b), w⟩ + K_BX F / n. So D is a function
of the vectors alone, D(b) = const − ⟨β, T⟩, whose gradient takes β as it is.

    start: one vector after the other, each the preimage of what the others leave over of w
    descent: L-BFGS on all vectors together
    end: β once more, over all rows

Burges, "Simplified Support Vector Decision Rules", ICML 1996; Schölkopf et al., "Input Space versus Feature Space in
Kernel-Based Methods", IEEE Transactions on Neural Networks 1999; Golub and Pereyra, "The Differentiation of
Pseudo-Inverses and Nonlinear Least Squares Problems Whose Variables Separate", 1973 (the coefficients eliminated).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from slimsvm.bases.basis import RANK_TOLERANCE
from slimsvm.bases.distance import Distance, descend
from slimsvm.bases.preimage import Residual, as_dense, get_preimage, greedy_picks
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import EvalCounter, KernelRows, kernels_with
from slimsvm.kernels.pairs import between, squared_lengths
from slimsvm.model import KernelExpansion
from slimsvm.rows import is_sparse

Array = np.ndarray

# The start is complete after this many vectors in a row were refused because they lie in the span of the others.
MAX_REFUSED = 10
# Of a model's own vectors, those that few are chosen from: of so many the kernel values are in memory.
MOST_CANDIDATES = 2000


@dataclass(frozen=True)
class ReducedSettings:
    """Settings of how much is optimised. Chosen, not measured."""

    # The rows by which vectors are optimised; the coefficients are solved for over all rows.
    most_rows: int = 10_000
    # The largest k · d that is optimised: L-BFGS stores some fifteen copies.
    most_values: int = 1 << 23


USUAL = ReducedSettings()


@dataclass(frozen=True)
class Reduced:
    """The result of `reduce_model`.

    Parameters
    ----------
    residual_norm, norm : float
        ‖w − ŵ‖ and ‖w‖ (of a kernel that is no inner product NaN), intercepts and plain parameters left out.
    score_error : float or None
        Root of the mean over the rows given of Σ_c (f_c − f̂_c)²; None without rows.
    n_iter : int
        Steps of the descent.
    history : list of dict
        ``objective`` = D, as a share of what the model without vectors has, after the start and after every step.
    """

    model: KernelExpansion
    residual_norm: float
    norm: float
    score_error: float | None = None
    n_iter: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    kernel_evals: int = 0


def reduce_model(
    model: KernelExpansion,
    max_basis: int,
    X: Any = None,
    *,
    preimage: Any = "auto",
    max_iter: int | str = "auto",
    rng: np.random.Generator,
    n_jobs: int | None = None,
    settings: ReducedSettings = USUAL,
) -> Reduced:
    """Return the model of at most ``max_basis`` vectors nearest to a model.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d), or None
        Rows over which the scores are to agree.
    preimage : str or object
        See `slimsvm.compress`.
    max_iter : int or "auto"
        Steps of the descent.

    Raises
    ------
    ValueError
        The kernel does not go with what is asked for, or too many values would have to be moved.
    """
    if not model.kernel.has_features:
        raise ValueError(
            "a model of a precomputed kernel cannot be compressed: it does not hold the kernel's values between its "
            "own vectors"
        )
    model = model.merged()
    differentiable = model.kernel.has_gradient
    if isinstance(max_iter, str):
        max_iter = 100 if differentiable else 0
    if max_iter and not differentiable:
        raise ValueError(
            f"max_iter={max_iter}: vectors are moved along the kernel's derivative, for which it must be "
            f"{kernels_with('has_gradient')}; found {model.kernel!r}; max_iter=0 leaves them where they are"
        )
    if model.n_basis <= max_basis:
        norm = float(np.sqrt(max(0.0, model.norm_squared(n_jobs=n_jobs))))
        return Reduced(model, 0.0, norm, None if X is None else 0.0)
    if not model.kernel.is_inner_product and X is None:
        raise ValueError(
            "the sigmoid kernel is not an inner product, so there is no distance between models: give rows X on "
            "which the scores should agree"
        )
    d = model.basis.shape[1]
    if max_iter and max_basis * d > settings.most_values:
        raise ValueError(
            f"moving {max_basis} vectors of {d} features is too much: at most {settings.most_values} values are moved; "
            "preimage='training-rows' with max_iter=0 chooses among the model's own vectors and keeps them sparse"
        )
    strategy = get_preimage(_usual_preimage(model) if isinstance(preimage, str) and preimage == "auto" else preimage)
    strategy.check(model.kernel, is_sparse(model.basis))
    with one_blas_thread():
        return _reduce(model, max_basis, X, strategy, max_iter, rng, n_jobs, settings.most_rows)


def _usual_preimage(model: KernelExpansion) -> str:
    if model.kernel.is_gaussian:
        return "fixed-point"
    return "gradient" if model.kernel.has_gradient and model.kernel.is_inner_product else "training-rows"


def _reduce(model, max_basis, X, strategy, max_iter, rng, n_jobs, most_rows) -> Reduced:
    counter = EvalCounter()
    own = KernelRows(model.kernel, model.basis, dtype=model.dtype, n_jobs=n_jobs, counter=counter)
    if not model.kernel.is_inner_product:
        basis = model.basis[np.sort(np.argsort(-np.abs(model.coef).sum(axis=1), kind="stable")[:max_basis])]
    else:
        basis = greedy(own, model.coef, max_basis, strategy, rng)
    history: list[dict[str, Any]] = []
    n_iter = 0
    if max_iter:
        part = X
        if X is not None and X.shape[0] > most_rows:
            part = X[np.sort(rng.choice(X.shape[0], most_rows, replace=False))]
        basis, history, n_iter = descend(Distance(model, part, n_jobs, counter), as_dense(basis), max_iter)
    distance = Distance(model, X, n_jobs, counter)
    coef = distance.coefficients(basis)
    error, residual = distance.parts(basis, coef)
    smaller = replace(model, basis=basis, coef=coef)
    norm = float(np.sqrt(distance.norm_squared))
    return Reduced(smaller, residual, norm, None if X is None else error, n_iter, history, counter.n)


def greedy(
    kernel_rows: KernelRows, coef: Array, n_vectors: int, strategy: Any, rng: np.random.Generator, at_once: int = 1
) -> Any:
    """Find vectors one after the other, each the preimage of the part of w = Σ_l coef_l φ(row l) that the others leave.

    Parameters
    ----------
    kernel_rows : KernelRows
        The vectors of w.
    coef : ndarray of shape (n_rows, m)
    strategy : object of `slimsvm.bases.preimage`
    at_once : int, default=1
        Vectors that are found for the same part of w.

    Returns
    -------
    ndarray or csr_array of shape (k, d)
        Fewer than ``n_vectors`` where no more were found outside the span of the others.
    """
    tolerance, rows = RANK_TOLERANCE[kernel_rows.dtype], np.arange(kernel_rows.n_rows)
    factor, z = np.zeros((n_vectors, n_vectors)), np.zeros((n_vectors, coef.shape[1]))
    basis: Any = None
    k = n_refused = 0
    while k < n_vectors and n_refused < MAX_REFUSED:
        beta = solve_triangular(factor[:k, :k], z[:k], lower=True, trans="T") if k else z[:0]
        found = strategy.find(Residual(kernel_rows, rows, coef, basis, -beta), rng, min(at_once, n_vectors - k))
        n_refused += not found.shape[0]
        for j in range(found.shape[0]):
            vector = found[j : j + 1]
            own = float(squared_lengths(kernel_rows, vector)[0])
            row = between(kernel_rows, basis, vector)[:, 0] if k else np.zeros(0)
            row = solve_triangular(factor[:k, :k], row, lower=True) if k else row
            pivot = own - float(row @ row)
            if not pivot > tolerance * own:
                n_refused += 1
                continue
            n_refused = 0
            factor[k, :k], factor[k, k] = row, np.sqrt(pivot)
            product = kernel_rows.block(kernel_rows.points_of(vector)).astype(np.float64)[:, 0] @ coef
            z[k] = (product - row @ z[:k]) / factor[k, k]
            basis = vector if basis is None else _stacked(basis, vector)
            k += 1
    return basis if basis is not None else kernel_rows.basis(rows[:1])


def own_vectors(kernel_rows: KernelRows, coef: Array, n_vectors: int, rng: np.random.Generator) -> Any:
    """Find vectors among those of w = Σ_l coef_l φ(row l), each the one that explains most of what others leave of it.

    Of more than ``MOST_CANDIDATES`` random ones are looked at. Parameters and result are those of `greedy`.
    """
    n = kernel_rows.n_rows
    size = min(n, max(MOST_CANDIDATES, 2 * n_vectors))
    index = np.arange(n) if size == n else np.sort(rng.choice(n, size, replace=False))
    rho = kernel_rows.scores(kernel_rows.points(np.arange(n)), coef, rows=index).astype(np.float64)
    gram = kernel_rows.block(kernel_rows.points(index), rows=index).astype(np.float64)
    picks = greedy_picks(rho, gram, kernel_rows.diag(index), RANK_TOLERANCE[kernel_rows.dtype], n_vectors)
    return kernel_rows.basis(index[np.sort(picks)] if len(picks) else index[:1])


def _stacked(basis: Any, vector: Any) -> Any:
    if is_sparse(basis):
        return sp.csr_array(sp.vstack([basis, sp.csr_array(vector)], format="csr"))
    return np.vstack([basis, vector])
