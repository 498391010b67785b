"""Newton's direction for the smoothed problem in whitened coordinates.

With a_i the soft argmax of row i the second derivative is

    H = I + C/τ Σ_i ω_i (diag(a_i) − a_i a_iᵀ) ⊗ z_i z_iᵀ,        z_i with a constant 1 after it for the intercept,

to which only the rows near their margin contribute. One output: H is formed and factorised. Several: conjugate
gradients on H, preconditioned by its diagonal blocks (one per output).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from slimsvm.solvers.subspace import Subspace
from slimsvm.tasks import Smoothed

Array = np.ndarray

# Rows whose curvature is below this share of the largest are left out of the second derivative.
NEGLIGIBLE = 1e-3
# More rows than this, or than this many for each coordinate, are sampled: the direction needs no more.
MAX_ROWS, ROWS_PER_COORDINATE = 4096, 4
# Conjugate gradients end at this share of the gradient, or after this many steps.
CG_TOLERANCE, CG_STEPS = 0.05, 100


def direction(
    space: Subspace,
    smoothed: Smoothed,
    gradient: Array,
    C: float,
    penalty: Array,
    rng: np.random.Generator,
    effort: float = 1.0,
) -> Array:
    """-H⁻¹ gradient, (r + 1, m); the intercept is the last row.

    Parameters
    ----------
    space : Subspace
    smoothed : Smoothed
        At the present point.
    gradient : float64 ndarray of shape (r + 1, m)
    C : float
    penalty : float64 ndarray of shape (r + 1, 1)
        Second derivatives of the penalty: 1, or 0 for a free intercept.
    rng : numpy.random.Generator
        Draws rows where there are too many.
    effort : float, default=1.0
        So many times the usual number of rows are drawn.
    """
    size = smoothed.curvature.sum(axis=1)
    index = np.flatnonzero(size > NEGLIGIBLE * size.max(initial=0.0))
    limit, factor = int(effort * max(MAX_ROWS, ROWS_PER_COORDINATE * space.rank)), C
    if len(index) > limit:
        factor = C * len(index) / limit
        index = np.sort(rng.choice(index, limit, replace=False))
    rows = space.whitened(index)
    curvature = factor * smoothed.curvature[index]
    factors = [_factor(space.gram(rows, curvature[:, c]), penalty[:, 0]) for c in range(gradient.shape[1])]

    def solve_blocks(v: Array) -> Array:
        return np.column_stack([lapack.dpotrs(L, v[:, c], lower=1)[0] for c, L in enumerate(factors)])

    if smoothed.share is None:
        return -solve_blocks(gradient)
    share = smoothed.share[index]
    # ω C / τ of every row, from the curvature ω a (1 − a) / τ of its largest entry.
    at = np.arange(len(index)), np.argmax(curvature, axis=1)
    weight = (curvature[at] / np.maximum(share[at] * (1 - share[at]), 1e-300))[:, None]

    def apply(v: Array) -> Array:
        along = space.product(rows, v)
        mixed = share * along
        mixed = weight * (mixed - share * mixed.sum(axis=1, keepdims=True))
        return penalty * v + space.product_transposed(rows, mixed)

    return _conjugate_gradients(apply, solve_blocks, -gradient)


def _factor(gram: Array, penalty: Array) -> Array:
    """Lower Cholesky factor of gram + diag(penalty), whose diagonal is raised where rounding ate it."""
    diagonal = np.einsum("ii->i", gram)
    diagonal += penalty
    raised = 0.0
    while True:
        factor, info = lapack.dpotrf(gram, lower=1)
        if info == 0:
            return factor
        raise_by = max(10 * raised, 1e-14 * diagonal.max())
        diagonal += raise_by - raised
        raised = raise_by


def _conjugate_gradients(apply, precondition, right: Array) -> Array:
    """Approximate solution of apply(x) = right."""
    x, residual = np.zeros_like(right), right.copy()
    z = precondition(residual)
    p, rz = z, float(np.sum(residual * z))
    target = CG_TOLERANCE**2 * rz
    for _ in range(CG_STEPS):
        if rz <= target:
            break
        Hp = apply(p)
        step = rz / float(np.sum(p * Hp))
        x += step * p
        residual -= step * Hp
        z = precondition(residual)
        rz, old = float(np.sum(residual * z)), rz
        p = z + (rz / old) * p
    return x
