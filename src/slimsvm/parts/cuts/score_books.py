"""Score books: they provide the scores of the rows while cuts are added.

`FullScores` keeps A_j = ⟨g_j, φ(x_i)⟩ of every live cut over all rows: a new cut costs one fused kernel product, and
every score and every entry of G is read off. `SampledScores` keeps G only and evaluates between sampled rows.
`WeightScores` keeps explicit weights of a linear model; `prefers_weights` says when that is cheaper. `ProjectedScores`
keeps cuts projected onto a small basis that grows with them (cutting-plane subspace pursuit).

Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training", 2009. With K_BB = L Lᵀ a cut g = Σ_i coef_i φ(x_i) has
the whitened coordinates z = L⁻¹ K_BX coef, its projection is Σ_j β_j φ(b_j) with β = L⁻ᵀ z, and ⟨ĝ_j, ĝ_k⟩ = z_j · z_k.
A new basis vector adds one row to L and one entry to every z: nothing is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from slimsvm import core
from slimsvm.kernels import FeatureRows, Kernel, KernelRows
from slimsvm.kernels.pairs import between, squared_lengths
from slimsvm.parts.cuts.working_set import Cut, weighted_sum
from slimsvm.parts.problem import SMALL_N, Problem
from slimsvm.rows import Rows

Array = np.ndarray

MAX_LIVE_CUTS = 4096
# Products that one compiled call reads (below 50 ms), and per microsecond: in order, and at scattered places.
READ_AT_ONCE, READ_PER_MICROSECOND, PICKED_PER_MICROSECOND = 1 << 25, 4000, 1000
# From about this many features on, reading a kernel entry beats computing it again by a wide margin.
CACHE_FROM_FEATURES = 64


class ScoreBook:
    """The base of all score books; an intercept adds the constant feature, never projected, to every product."""

    def __init__(self, kernel_rows: KernelRows, n_outputs: int, intercept: bool):
        self.kernel_rows, self.n_outputs, self.intercept = kernel_rows, n_outputs, intercept

    @property
    def full(self) -> bool:
        """Return whether a further cut needs room made first."""
        return False


class FullScores(ScoreBook):
    """The score book of all rows: it keeps the products of every live cut.

    It can keep the whole kernel matrix, too, if that fits half the limit of memory.
    """

    def __init__(self, kernel_rows: KernelRows, n_outputs: int, intercept: bool, memory_limit: int, cache_kernel: bool):
        super().__init__(kernel_rows, n_outputs, intercept)
        n = kernel_rows.n_rows
        itemsize = np.dtype(kernel_rows.dtype).itemsize
        matrix_bytes = n * n * itemsize
        self.matrix: Array | None = None
        if cache_kernel and matrix_bytes <= memory_limit // 2:
            self.matrix = kernel_rows.block(kernel_rows.points(np.arange(n)))
            memory_limit -= matrix_bytes
        n_slots = memory_limit // (n * n_outputs * itemsize)
        if n_slots < 3:
            raise ValueError(
                f"memory_limit leaves room for the products of {n_slots} cuts over {n} rows x {n_outputs} outputs; "
                f"at least 3 are needed: {3 * n * n_outputs * itemsize / 1e6:.0f} MB, or solver='uniform-cuts'"
            )
        # The system provides pages only when a slot is first written.
        self.products = np.empty((min(n_slots, MAX_LIVE_CUTS), n * n_outputs), dtype=kernel_rows.dtype)
        self.free = list(range(len(self.products)))[::-1]
        self.last_exact: tuple[Array, Array] | None = None
        self.slots = np.zeros(0, dtype=np.int64)
        self.scores = np.zeros((n, n_outputs))

    @property
    def full(self) -> bool:
        """Return whether a further cut needs room made first."""
        return not self.free

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Evaluate a cut over all rows; returns its inner products (t + 1,) with the live cuts and with itself.

        An ``exact`` cut differs from the one before it in the rows whose loss-augmented label changed: only those are
        evaluated.
        """
        slot = self.free.pop()
        out = self.products[slot].reshape(-1, self.n_outputs)
        out[:] = self._by_difference(cut) if exact else self._evaluate(cut.rows, cut.coef)
        if self.intercept:
            out += cut.intercept.astype(out.dtype)
        self.slots = np.append(self.slots, slot)
        found: Array = self._products_with(cut) + plain_products(cut, live)
        return found

    def _products_with(self, cut: Cut) -> Array:
        """Return inner products of a cut with the live cuts, (t,)."""
        row = np.empty(len(self.slots))
        step = max(1, READ_AT_ONCE // max(1, cut.coef.size))
        for lo in range(0, len(row), step):
            out = row[lo : lo + step]
            core.gram_row(
                products=self.products.reshape(len(self.products), -1, self.n_outputs),
                slots=self.slots[lo : lo + step],
                rows=cut.rows,
                coef=cut.coef,
                out=out,
                n_threads=self.kernel_rows.n_jobs,
                microseconds=len(out) * cut.coef.size / PICKED_PER_MICROSECOND,
            )
        return row

    def _evaluate(self, rows: Array, coef: Array) -> Array:
        """Return Σ coef_j k(x_i, x_j) for every row i."""
        if self.matrix is None:
            return self.kernel_rows.scores(self.kernel_rows.points(rows), coef)
        if self.n_outputs > 1:
            found: Array = self.matrix[rows].T @ coef.astype(self.matrix.dtype)
            return found
        # The matrix is symmetric: its rows are added up in place, since copying them takes longer than the product.
        out = np.empty(len(self.matrix))
        self._combine(self.matrix, rows, coef[:, 0], out)
        return out[:, None]

    def _by_difference(self, cut: Cut) -> Array:
        """Return the products of an exact cut, updated in float64 from the exact cut before it."""
        coef = np.zeros_like(self.scores)
        coef[cut.rows] = cut.coef
        before, products = self.last_exact or (np.zeros_like(coef), np.zeros_like(coef))
        changed = np.flatnonzero((coef != before).any(axis=1) if self.n_outputs > 1 else coef[:, 0] != before[:, 0])
        if len(changed) < len(cut.rows):
            if len(changed):
                products = products + self._evaluate(changed, coef[changed] - before[changed])
        else:
            products = self._evaluate(cut.rows, cut.coef).astype(np.float64)
        self.last_exact = coef, products
        return products

    def combine(self, alpha: Array) -> None:
        """Set ``scores`` to Σ α_j A_j over all rows, (n_rows, n_outputs) float64."""
        scores = np.empty_like(self.scores)
        self._combine(self.products, self.slots, alpha, scores.reshape(-1))
        self.scores = scores

    def _combine(self, products: Array, slots: Array, weights: Array, out: Array) -> None:
        """Add up the products in some slots, with weights."""
        step = max(1, READ_AT_ONCE // max(1, len(slots)))
        for lo in range(0, len(out), step):
            part = out[lo : lo + step]
            core.combine_products(
                products=products,
                slots=slots,
                weights=weights,
                first=lo,
                out=part,
                n_threads=self.kernel_rows.n_jobs,
                microseconds=len(slots) * len(part) / READ_PER_MICROSECOND,
            )

    def keep(self, index: Array) -> None:
        """Keep only the cuts at ``index``, and give back the slots of the others."""
        kept = self.slots[index]
        self.free.extend(np.setdiff1d(self.slots, kept))
        self.slots = kept

    def merge(self, n: int, share: Array) -> None:
        """Replace the n oldest cuts by one, their mean of these weights, at the end."""
        merged = np.empty(self.products.shape[1])
        self._combine(self.products, self.slots[:n], share, merged)
        self.keep(np.arange(n, len(self.slots)))
        slot = self.free.pop()
        self.products[slot] = merged
        self.slots = np.append(self.slots, slot)


class SampledScores(ScoreBook):
    """The score book of sampled rows only: its memory and work per iteration do not depend on the number of rows."""

    scores = None

    def __init__(self, kernel_rows: KernelRows, n_outputs: int, intercept: bool):
        super().__init__(kernel_rows, n_outputs, intercept)
        self.vectors: list[Any] = []
        self.points: Any = None

    def evaluate(self, rows: Array, live: list[Cut]) -> Array:
        """Return ⟨g_j, φ(x_i)⟩ of the rows for every live cut, (t, n_sampled, n_outputs) float64."""
        if not live:
            return np.zeros((0, len(rows), self.n_outputs))
        if self.points is None:
            stack = sp.vstack if sp.issparse(self.vectors[0]) else np.concatenate
            self.points = self.kernel_rows.points_of(stack(self.vectors))
        coef = np.concatenate([cut.coef for cut in live])
        offsets = np.cumsum([0] + [len(cut.rows) for cut in live])
        products = self.kernel_rows.scores(self.points, coef, rows=rows, segments=offsets).astype(np.float64)
        if self.intercept:
            products += np.stack([cut.intercept for cut in live])
        return products.transpose(1, 0, 2)

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Add a cut; ``products`` (t,) are those with the live cuts, if they are known already."""
        if products is None:
            products = np.einsum("juc,uc->j", self.evaluate(cut.rows, live), cut.coef)
        own = self.kernel_rows.scores(self.kernel_rows.points(cut.rows), cut.coef, rows=cut.rows)
        diagonal = float(np.sum(own * cut.coef))
        if self.intercept:
            diagonal += float(cut.intercept @ cut.intercept)
        self.vectors.append(self.kernel_rows.basis(cut.rows))
        self.points = None
        found: Array = np.append(products, diagonal) + plain_products(cut, live)
        return found

    def combine(self, alpha: Array) -> None:
        """Do nothing: scores are computed where they are sampled."""

    def keep(self, index: Array) -> None:
        """Forget the vectors of all cuts but ``index``."""
        self.vectors = [self.vectors[j] for j in index]
        self.points = None


def plain_products(cut: Cut, live: list[Cut]) -> Array:
    """Return products (t + 1,) of a new cut's plain part with the live cuts' plain parts and with itself."""
    if not len(cut.plain):
        return np.zeros(len(live) + 1)
    found: Array = np.stack([one.plain for one in [*live, cut]]) @ cut.plain
    return found


# -- Scores while cuts are added to a linear model of explicit weights -------------------------------------------------


class WeightScores(ScoreBook):
    """The score book of the linear kernel: it keeps weights u = Σ_i coef_i x_i, not expansions over rows.

    A new cut costs one product with the rows' transpose and one with the rows, as does a new w; no kernel value is
    computed, and nothing is kept beside the cuts themselves.
    """

    def __init__(self, kernel_rows: KernelRows, n_outputs: int, intercept: bool):
        super().__init__(kernel_rows, n_outputs, intercept)
        self.features = FeatureRows(kernel_rows.rows, kernel_rows.n_jobs)
        self.scores = np.zeros((kernel_rows.n_rows, n_outputs))
        self.cuts: list[Cut] = []

    def weights(self, cut: Cut) -> Array:
        """Return g of a cut as weights, shape (n_features, n_outputs)."""
        coef = np.zeros_like(self.scores)
        coef[cut.rows] = cut.coef
        return self.features.gather(coef)

    def _scores(self, cut: Cut) -> Array:
        """Return ⟨g, φ(x_i)⟩ of all rows."""
        return self.features.scores(self.weights(cut), cut.intercept if self.intercept else None)

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Add a cut; return its inner products (t + 1,) with the live cuts and with itself."""
        scores = self._scores(cut)
        self.cuts.append(cut)
        found: Array = np.array([np.vdot(one.coef, scores[one.rows]) for one in self.cuts]) + plain_products(cut, live)
        return found

    def combine(self, alpha: Array) -> None:
        """Set ``scores`` to the scores by Σ α_j g_j."""
        used = np.flatnonzero(alpha)
        if not len(used):
            self.scores = np.zeros_like(self.scores)
            return
        self.scores = self._scores(weighted_sum([self.cuts[j] for j in used], alpha[used]))

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.cuts = [self.cuts[j] for j in index]


FindVector = Callable[[Cut, Any, Array], Any]
IsExplained = Callable[[Cut, float], bool]


class ProjectedScores(ScoreBook):
    """The score book over a growing basis: it computes scores from cuts projected onto it.

    ``find`` returns the next basis vector, of shape (0, d) if nothing is left to explain, for a cut, the basis and the
    coefficients of the cut's projection; ``is_explained`` says of a cut, and of the squared length of its projection,
    whether it needs no further vector.
    """

    def __init__(
        self,
        kernel_rows: KernelRows,
        n_outputs: int,
        intercept: bool,
        max_basis: int,
        vectors_per_cut: int,
        find: FindVector,
        is_explained: IsExplained,
    ):
        super().__init__(kernel_rows, n_outputs, intercept)
        self.max_basis, self.vectors_per_cut, self.find = max_basis, vectors_per_cut, find
        self.is_explained = is_explained
        self.scores = np.zeros((kernel_rows.n_rows, n_outputs))
        self.basis: Any = None
        self.refused = 0  # vectors in a row that were left out: they lay in the span of the basis up to rounding
        self.gained = 0.0  # squared length of the last cut's part along the vectors it brought: its residual fell by it
        self.L = np.zeros((max_basis, max_basis))  # the factor is its leading (n_basis, n_basis) part
        self.z = np.zeros((0, max_basis, n_outputs))
        # Whitened coordinates and constant of what `combine` was last called for.
        self.coordinates = np.zeros((max_basis, n_outputs))
        self.constants, self.constant = np.zeros((0, n_outputs)), np.zeros(n_outputs)
        self.points: Any = None
        self.smallest_pivot = 1e-10 if kernel_rows.dtype == np.float64 else 1e-6

    @property
    def n_basis(self) -> int:
        """Return the number of vectors in the basis."""
        return 0 if self.basis is None else self.basis.shape[0]

    @property
    def is_full(self) -> bool:
        """Return whether the basis grows no more."""
        return self.n_basis >= self.max_basis

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Let the basis grow by the new cut's residual; return the inner products (t + 1,) of its projection.

        If the basis has grown, all projections have: then the inner products of all, (t + 1, t + 1).
        """
        cuts = [*live, cut]
        z = np.zeros((1, self.max_basis, self.n_outputs))
        k = self.n_basis
        if k:
            inner = self.kernel_rows.block(self.points, rows=cut.rows).astype(np.float64).T @ cut.coef
            z[0, :k] = solve_triangular(self.L[:k, :k], inner, lower=True)
        self.z = np.concatenate([self.z, z])
        for _ in range(self.vectors_per_cut):
            if self.is_full or self.is_explained(cut, float(np.sum(self.z[-1] ** 2))) or not self._grow(cuts):
                break
        self.gained = float(np.sum(self.z[-1, k:] ** 2))
        self.constants = np.vstack([self.constants, cut.intercept if self.intercept else np.zeros(self.n_outputs)])
        flat = self.z[:, : self.n_basis].reshape(len(cuts), -1)
        gram = flat @ flat.T + self.constants @ self.constants.T
        if len(cut.plain):
            plain = np.stack([one.plain for one in cuts])
            gram += plain @ plain.T
        return gram if self.n_basis > k and live else gram[-1]

    def _grow(self, cuts: list[Cut]) -> bool:
        """Add the vector found for the last cut's residual; False if it lies in the span of the basis already."""
        k, cut = self.n_basis, cuts[-1]
        vector = self.find(cut, self.basis, -self.coefficients(self.z[-1]))
        if not vector.shape[0]:
            self.refused += 1
            return False
        own = float(squared_lengths(self.kernel_rows, vector)[0])
        row = np.zeros(k)
        if k:
            row = solve_triangular(self.L[:k, :k], between(self.kernel_rows, self.basis, vector)[:, 0], lower=True)
        pivot = own - float(row @ row)
        if not pivot > self.smallest_pivot * own:
            self.refused += 1
            return False
        self.refused = 0
        root = np.sqrt(pivot)
        self.L[k, :k], self.L[k, k] = row, root
        column = self.kernel_rows.block(self.kernel_rows.points_of(vector))[:, 0].astype(np.float64)
        for j, live in enumerate(cuts):
            inner = column[live.rows] @ live.coef
            self.z[j, k] = (inner - row @ self.z[j, :k]) / root
        stack = sp.vstack if sp.issparse(vector) else np.concatenate
        self.basis = vector if self.basis is None else stack([self.basis, vector])
        self.points = self.kernel_rows.points_of(self.basis)
        return True

    def coefficients(self, z: Array) -> Array:
        """Return β = L⁻ᵀ z over the present basis, (n_basis, n_outputs)."""
        k = self.n_basis
        if not k:
            return np.zeros((0, self.n_outputs))
        return solve_triangular(self.L[:k, :k], z[:k], lower=True, trans="T")

    def combine(self, alpha: Array) -> None:
        """Set ``coordinates``, ``constant`` and ``scores`` by Σ α_j ĝ_j."""
        self.coordinates = np.einsum("j,jkc->kc", alpha, self.z)
        self.constant = alpha @ self.constants
        self.scores = np.zeros_like(self.scores) + self.constant
        if self.n_basis:
            self.scores += self.kernel_rows.scores(self.points, self.coefficients(self.coordinates))

    def keep(self, index: Array) -> None:
        """Forget the projections of all cuts but ``index``."""
        self.z, self.constants = self.z[index], self.constants[index]


def prefers_weights(rows: Rows, kernel: Kernel, n_outputs: int, memory_limit: float) -> bool:
    """Whether explicit weights are the cheaper form.

    With the linear kernel above 2,000 rows (up to there a fit goes to 1e-10, and its kernel matrix is small), where a
    row has on average no more features stored than there are rows, so that a product with the weights costs less than
    reading the kernel values of the rows, and the weights take at most a quarter of the memory limit.
    """
    fits = 8 * rows.n_features * n_outputs <= memory_limit / 4
    return kernel.has_weights and rows.n_rows > SMALL_N and rows.n_stored <= rows.n_rows**2 and fits


def resolve_weights(weights: Any, problem: Problem) -> bool:
    """Whether to keep explicit weights, of a solver's parameter: "auto" (`prefers_weights`), True or False.

    Raises
    ------
    ValueError
        It is something else, or True with another kernel.
    """
    if not (isinstance(weights, bool) or (isinstance(weights, str) and weights == "auto")):
        raise ValueError(f"weights must be 'auto', True or False, found {weights!r}")
    if weights is True and not problem.kernel.has_weights:
        raise ValueError(f"weights=True needs kernel='linear', found {problem.kernel!r}")
    if isinstance(weights, bool):
        return weights
    return prefers_weights(problem.rows, problem.kernel, problem.task.n_outputs, problem.memory_limit)
