"""Newton's direction for the smoothed problem in whitened coordinates.

With a_i the soft argmax of row i the second derivative is

    H = I + C/τ Σ_i ω_i (diag(a_i) − a_i a_iᵀ) ⊗ z_i z_iᵀ,        z_i with a constant 1 after it for the intercept,

to which only the rows near their margin contribute. One output: H is formed and factorised. Several: conjugate
gradients on H, preconditioned by its diagonal blocks (one per output).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from slimsvm.core.factors import cholesky
from slimsvm.parts.span.row_passes import Near, RowPasses, SmoothedRows
from slimsvm.parts.span.whitened_span import Subspace

Array = np.ndarray

# Rows are sampled if they are more than the accuracy's limit, or than this many per coordinate
# (docs/experiments/subspace_pursuit.md, "How many rows a direction is made of").
ROWS_PER_COORDINATE = 4
CG_STEPS = 100
# The most numbers in a point for which the second derivative of several outputs is formed as a whole: for exact
# directions, and after many slow steps (docs/experiments/newton_in_a_fixed_basis.md, "Several outputs").
MAX_WHOLE, WHOLE_EFFORT = 1500, 8


class Accuracy(NamedTuple):
    """The accuracy of a direction: cheap directions need more steps but less time, until the last digits are wanted."""

    negligible: float  # rows whose curvature is below this share of the largest are left out
    max_rows: float  # more rows are sampled
    cg_tolerance: float  # conjugate gradients end at this share of the gradient


CHEAP, EXACT = Accuracy(1e-3, 4096, 0.05), Accuracy(1e-9, np.inf, 1e-3)


class Draw(NamedTuple):
    """The rows that a direction uses, drawn if there are more than ``limit``.

    ``raw`` are these rows, where a pass has taken them; ``random`` is the state of the generator that drew, after it.
    """

    near: Near
    limit: float
    random: Any
    raw: Any = None


def draw_rows(
    passes: RowPasses,
    smoothed: SmoothedRows,
    largest: float,
    rng: np.random.Generator,
    accuracy: Accuracy = CHEAP,
    effort: float = 1.0,
) -> Draw:
    """Draw the rows of a direction at the present point, where a row's curvature is at most ``largest``.

    ``effort`` times the usual number of rows are drawn, and of less curvature by its square.
    """
    limit = effort * max(accuracy.max_rows, ROWS_PER_COORDINATE * passes.space.rank)
    near = passes.near_margin(smoothed, accuracy.negligible / effort**2 * largest, limit, rng)
    return Draw(near, limit, rng.bit_generator.state)


def draw_ahead(
    passes: RowPasses,
    smoothed: SmoothedRows,
    rng: np.random.Generator,
    accuracy: Accuracy = CHEAP,
    effort: float = 1.0,
) -> Draw:
    """Draw rows as `draw_rows` does, for a pass to copy them; the generator is left as it was."""
    before = rng.bit_generator.state
    draw = draw_rows(passes, smoothed, passes.largest(smoothed), rng, accuracy, effort)
    rng.bit_generator.state = before
    return draw


def direction(
    passes: RowPasses, draw: Draw, gradient: Array, C: float, penalty: Array, accuracy: Accuracy, effort: float
) -> Array:
    """Return -H⁻¹ gradient, (r + 1, m), the intercept last; ``penalty`` (r + 1, 1) is its second derivative."""
    space, near, share = passes.space, draw.near, draw.near.share
    rows = space.whitened(near.index, draw.raw)
    curvature = (C * near.n / int(draw.limit) if near.n > draw.limit else C) * near.curvature
    if share is not None and (accuracy is EXACT or effort > WHOLE_EFFORT) and gradient.size <= MAX_WHOLE:
        return _solve_whole(space, rows, curvature, share, gradient, penalty)
    factors = [_factor(space.gram(rows, curvature[:, c]), penalty[:, 0]) for c in range(gradient.shape[1])]

    def solve_blocks(v: Array) -> Array:
        return np.column_stack([lapack.dpotrs(L, v[:, c], lower=1)[0] for c, L in enumerate(factors)])

    if share is None:
        return -solve_blocks(gradient)
    weight = _row_weights(curvature, share)

    def apply(v: Array) -> Array:
        along = space.product(rows, v)
        mixed = share * along
        mixed = weight * (mixed - share * mixed.sum(axis=1, keepdims=True))
        found: Array = penalty * v + space.product_transposed(rows, mixed)
        return found

    return _conjugate_gradients(apply, solve_blocks, -gradient, accuracy.cg_tolerance)


def _row_weights(curvature: Array, share: Array) -> Array:
    """Return ω C / τ of every row (b, 1), from the curvature ω C a (1 − a) / τ of its largest entry."""
    at = np.arange(len(share)), np.argmax(curvature, axis=1)
    found: Array = (curvature[at] / np.maximum(share[at] * (1 - share[at]), 1e-300))[:, None]
    return found


def _solve_whole(
    space: Subspace, rows: Array, curvature: Array, share: Array, gradient: Array, penalty: Array
) -> Array:
    """Return -H⁻¹ gradient for several outputs, with H formed as a whole."""
    width, m = gradient.shape
    H = np.empty((width * m, width * m), order="F")
    weight = _row_weights(curvature, share)[:, 0]
    for c in range(m):
        for d in range(c + 1):
            values = curvature[:, c] if c == d else -weight * share[:, c] * share[:, d]
            gram = np.tril(space.gram(rows, values))
            H[c * width : (c + 1) * width, d * width : (d + 1) * width] = gram + np.tril(gram, -1).T
    factor = _factor(H, np.tile(penalty[:, 0], m))
    found: Array = -lapack.dpotrs(factor, gradient.T.ravel(), lower=1)[0].reshape(m, width).T
    return found


def _factor(gram: Array, penalty: Array) -> Array:
    """Return the lower Cholesky factor of gram + diag(penalty); raise the diagonal if rounding makes it indefinite."""
    diagonal = np.einsum("ii->i", gram)
    diagonal += penalty
    raised = 0.0
    while True:
        factor = cholesky(gram)
        if factor is not None:
            return factor
        raise_by = max(10 * raised, 1e-14 * diagonal.max())
        diagonal += raise_by - raised
        raised = raise_by


def _conjugate_gradients(
    apply: Callable[[Array], Array], precondition: Callable[[Array], Array], right: Array, tolerance: float
) -> Array:
    """Solve apply(x) = right approximately."""
    x, residual = np.zeros_like(right), right.copy()
    z = precondition(residual)
    p, rz = z, float(np.sum(residual * z))
    target = tolerance**2 * rz
    for _ in range(CG_STEPS):
        if rz <= target:
            break
        Hp = apply(p)
        curvature = float(np.sum(p * Hp))
        if not curvature > 0.0:  # the squares of tiny numbers underflow to 0
            break
        step = rz / curvature
        x += step * p
        residual -= step * Hp
        z = precondition(residual)
        rz, old = float(np.sum(residual * z)), rz
        p = z + (rz / old) * p
    return x
