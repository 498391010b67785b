r"""Rows projected on a few principal directions: in wide data, vectors are searched for or learned there.

With V orthonormal and b = c + V z, in features times √γ,

    |x − b|² = |Vᵀ(x − c) − z|² + r²,        r² = |x − c|² − |Vᵀ(x − c)|²,

so the RBF kernel of a row and such a vector is that of (Vᵀ(x − c), r) and (z, 0): no approximation, and q + 1 numbers
in place of d. What it costs is that vectors can only be where b is, in c + span V. Of rows like images, most of whose
variance lies in few directions, that is little; rows that are not have to do without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.extmath import randomized_range_finder

from slimsvm.bases.preimage import FixedPoint
from slimsvm.core.products import multiply_rows
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import RBF, KernelRows
from slimsvm.kernels.shift_invariant import LOG2_E
from slimsvm.parts.problem import Problem

Array = np.ndarray

# directions="auto": DIRECTIONS of them and one more for every VECTORS_PER_DIRECTION vectors, at most the share SHARE of
# the features; none below MIN_FEATURES features (docs/experiments/subspace_pursuit.md, "Principal directions instead of
# the whole space").
DIRECTIONS, VECTORS_PER_DIRECTION, SHARE, MIN_FEATURES = 64, 16, 1 / 6, 192
# The least share of the rows' variance that the directions must hold, and the most of it, times γ, that they may leave:
# kernel values vanish if vectors cannot come near to rows. Chosen, not measured, as are the next four.
LEAST_HELD, MOST_LEFT = 0.8, 0.5
# The rows from which directions are found, by one power iteration: SAMPLE_ROWS, or ROWS_PER_DIRECTION per direction if
# that is more.
SAMPLE_ROWS, ROWS_PER_DIRECTION = 1024, 4
# Rows that are projected together if they are not kept folded.
BLOCK_ROWS = 1 << 14
# The share of the memory limit that projected rows may take, as they are and folded together.
MEMORY_SHARE = 1 / 4
# Folded rows are features times √γ times FOLDED_SCALE. Rows too far from c for the kernel's type get r = OUT_OF_SIGHT.
FOLDED_SCALE, OUT_OF_SIGHT = np.sqrt(2.0 * LOG2_E), 2000.0


@dataclass(frozen=True)
class Directions:
    """The subspace c + span V, in features times √γ."""

    centre: Array  # (d,): c / √γ: the mean of the rows
    scale: Array  # (d,): √γ of every feature
    V: Array  # (d, q): orthonormal columns

    def seen(self, kernel_rows: KernelRows, block_rows: int = BLOCK_ROWS) -> Array:
        """Return (Vᵀ(x − c), r) of every row of an RBF kernel, (n, q + 1) of V's type, in blocks of rows."""
        n, (d, q), dtype = kernel_rows.n_rows, self.V.shape, self.V.dtype
        out, step = np.empty((n, q + 1), dtype), n if kernel_rows.is_kept else block_rows
        right = (self.V / FOLDED_SCALE).astype(dtype)
        for lo in range(0, n, max(1, step)):
            part = out[lo : lo + step]
            folded, _ = kernel_rows.folded_rows(np.arange(lo, lo + len(part)))
            multiply_rows(folded.values.reshape(-1, d), right, part[:, :q], kernel_rows.n_jobs)
            z, squares = part[:, :q], -2.0 / FOLDED_SCALE**2 * folded.half
            left = np.sqrt(np.maximum(squares - np.einsum("ij,ij->i", z, z), 0.0))
            part[:, q] = np.where(folded.factor == 0.0, OUT_OF_SIGHT, left)
        return out

    def beside(self, kernel_rows: KernelRows) -> KernelRows:
        """Return the projected rows of an RBF kernel; both count their kernel evaluations together."""
        seen = self.seen(kernel_rows)
        centre, counter = np.zeros(seen.shape[1]), kernel_rows.counter
        return KernelRows(RBF(1.0), seen, dtype=seen.dtype, n_jobs=kernel_rows.n_jobs, counter=counter, centre=centre)

    def of_vectors(self, vectors: Array) -> Array:
        """Project vectors (k, d) of input space: return the nearest in c + span V, (k, q + 1)."""
        z = ((vectors - self.centre) * self.scale) @ self.V
        return np.hstack([z, np.zeros((len(z), 1))])

    def along(self, deviations: Array) -> Array:
        """Return the standard deviations along V, and 0, of noise with the given ones (d,) in input space."""
        variances = np.square(self.V).T @ np.square(deviations * self.scale)
        return np.append(np.sqrt(variances), 0.0)

    def lifted(self, vectors: Array) -> Array:
        """Return projected vectors (k, q + 1) in input space: float64 (k, d)."""
        found: Array = self.centre + (vectors[:, :-1].astype(np.float64) @ self.V.T) / self.scale
        return found


@dataclass(frozen=True)
class Search:
    """The parameters of a search for directions."""

    n: int
    # least_held, most_left: share of the variance that they must hold, and what they may leave of it, times γ
    least_held: float
    most_left: float
    most_bytes: float  # memory that projected rows may take, as they are and folded

    def find(self, kernel_rows: KernelRows, rng: np.random.Generator) -> Directions | None:
        """Find about the first n principal directions of dense rows of an RBF kernel; None if they hold too little."""
        rows, kernel, dtype = kernel_rows.rows, kernel_rows.kernel, kernel_rows.dtype
        if not kernel.is_gaussian or 2 * dtype.itemsize * rows.n_rows * (self.n + 1) > self.most_bytes:
            return None
        size = min(rows.n_rows, max(SAMPLE_ROWS, ROWS_PER_DIRECTION * self.n))
        x = rows.take(np.sort(rng.choice(rows.n_rows, size, replace=False)), dtype)
        near = kernel_rows.bulk.holds(x)
        x = x if near.all() else x[near]
        centre, scale = kernel_rows.centre.astype(dtype), np.empty(rows.n_features, dtype)
        scale[:] = np.sqrt(kernel.gamma)
        x, seed = (x - centre) * scale, int(rng.integers(2**31 - 1))
        with one_blas_thread():
            given = {"n_iter": 1, "power_iteration_normalizer": "QR", "random_state": seed}
            V: Any = randomized_range_finder(x.T, size=self.n, **given)
            held, total = (float(np.sum(part**2, dtype=np.float64)) for part in (x @ V, x))
        if total == 0 or held < self.least_held * total or total - held > self.most_left * len(x):
            return None
        return Directions(centre, scale, np.ascontiguousarray(V, dtype))


def search_for(directions: int | str, max_basis: int, problem: Problem, preimage: Any = None) -> Search | None:
    """Return the search that ``directions`` asks for; raise an error if vectors cannot lie along any.

    Without a ``preimage`` vectors are moved, not found.
    """
    kernel, rows = type(problem.kernel).__name__, "sparse" if problem.rows.is_sparse else "dense"
    is_free = preimage is None or isinstance(preimage, FixedPoint)
    is_possible = problem.kernel.is_gaussian and rows == "dense" and is_free
    d = problem.rows.n_features
    if isinstance(directions, str) and directions == "auto":
        if not is_possible or d < MIN_FEATURES or problem.is_small:
            return None
        n = min(DIRECTIONS + max_basis // VECTORS_PER_DIRECTION, int(SHARE * d))
        return Search(n, LEAST_HELD, MOST_LEFT, MEMORY_SHARE * problem.memory_limit)
    if isinstance(directions, (bool, str)) or not isinstance(directions, (int, np.integer)) or not 0 <= directions <= d:
        raise ValueError(f"directions must be an integer from 0 to {d}, the features, or 'auto'; found {directions!r}")
    if directions and not is_possible:
        needed = "" if preimage is None else " and preimage='fixed-point'"
        found = "" if preimage is None else f", {type(preimage).__name__}"
        raise ValueError(
            f"directions={directions!r} needs the RBF kernel, dense rows{needed}, found {kernel}, {rows} rows{found}; "
            "use directions=0"
        )
    return Search(int(directions), 0.0, np.inf, np.inf) if directions else None
