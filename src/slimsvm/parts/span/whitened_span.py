"""The span of a basis: whitened coordinates, and products with the coordinates of rows that are never all stored.

With K_BB = L Lᵀ a function u of the span has the coefficients β = L⁻ᵀ u and ‖Σ β_j φ(b_j)‖ = ‖u‖; the row x has the
coordinates z(x) = L⁻¹ k_B(x), and after them a constant (1, or 0 without an intercept). Products with z go by the
kernel values: Z u = K_XB (L⁻ᵀ u), Zᵀ v = L⁻¹ (K_BX v), so that what is trained on is what will be predicted with. Only
the few rows that a second derivative is made of are whitened.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from slimsvm.bases import RANK_TOLERANCE
from slimsvm.core.factors import cholesky, lower_inverse, pivoted_cholesky, scaled
from slimsvm.core.products import SUM_ROWS, add_transposed, multiply_rows, multiply_wide, squares
from slimsvm.core.threads import run_tiles
from slimsvm.kernels import Kernel, KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.lazy import made_once
from slimsvm.parts.problem import Problem
from slimsvm.rows import Block, Rows, in_pieces, parts_of

Array = np.ndarray

# Kernel values computed together if they are not stored: as many as the processor's caches hold.
BLOCK_BYTES = 1 << 22
# Rows and columns of the tiles of dense products.
TILE_ROWS, TILE_COLUMNS = 128, 128
# From this many multiplications of values in memory on, a thread is woken for them. Chosen, not measured.
WORK_PER_THREAD = 500_000
# The coefficients of a direction of length 1, each times the length of its vector, sum up to at most this. Each of many
# vectors may be independent of those before it, and the last one nearly dependent on all others: after more cancelling
# only rounding errors would be left of a length of 1 (the square of this, times 1e-16).
MOST_CANCELLED = 1e6
# The first number of columns that a growing basis has room for, the rows whose new columns are computed together, and
# how many kernel values are whitened together.
FIRST_COLUMNS, COPY_ROWS, COPY_VALUES = 128, 1 << 14, 1 << 22


@dataclass(frozen=True)
class Coefficients:
    """The best model over a basis that was found."""

    coef: Array  # float64 (k, m): 0 for basis vectors that lie in the span of the others
    intercept: Array  # float64 (m,)
    objective: float  # over all rows
    bound_in_basis: float  # no model over this basis has a lower objective
    n_steps: int
    converged: bool
    plain: Array = field(default_factory=lambda: np.zeros(0))  # float64 (n_plain,)
    tau: float | None = None  # the temperature that smoothed losses ended with


# -- Rows seen from a subspace, one part at a time, in this process or in another --------------------------------------


class SpanRows(ABC):
    """A part of the rows, with kernel values to the vectors of a subspace."""

    n_rows: int
    rank: int
    n_threads: int

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, int, Array]]:
        """Yield kernel values with the kept vectors, in pieces of rows."""

    def scores(self, coef: Array, shift: Array) -> Array:
        """Return the kernel values' product with coef (r, m) plus a constant (m,), in float64."""
        out = np.empty((self.n_rows, coef.shape[1]))
        for lo, hi, values in self.pieces():
            multiply_wide(values[:, : self.rank], coef, out[lo:hi], self.n_threads)
        out += shift
        return out

    @abstractmethod
    def take(self, index: Array) -> Block:
        """Return the rows at ``index`` of this part."""

    def transposed(self, v: Array, chosen: Array | None = None) -> tuple[Array, list[Block]]:
        """Return the product (r, m) of the transposed kernel values with v (n, m), in float64, and the chosen rows
        (ascending numbers), each copied while its neighbours are being read.
        """
        out, v, taken = np.zeros((self.rank, v.shape[1])), np.ascontiguousarray(v), []
        for lo, hi, values in self.pieces():
            add_transposed(values[:, : self.rank], v[lo:hi], out, self.n_threads)
            if chosen is not None:
                taken.append(self.take(chosen[slice(*np.searchsorted(chosen, [lo, hi]))]))
        return out, taken


class LocalSpanRows(SpanRows):
    """The rows lo, …, hi − 1 of a `Subspace` in this process."""

    def __init__(self, space: Subspace, lo: int, hi: int):
        self._space, self._bounds = space, (lo, hi)
        self.n_rows, self.rank, self.n_threads = hi - lo, space.rank, space.n_threads

    def pieces(self) -> Iterator[tuple[int, int, Array]]:
        """Return an iterator over pieces of the rows: first row, end, values."""
        return self._space.pieces(*self._bounds)

    def take(self, index: Array) -> Block:
        """Return some of the rows."""
        rows = self._space.kernel_rows.rows
        return rows.take(index + self._bounds[0], rows.exact_dtype)


@dataclass(frozen=True)
class Span:
    """The data that another process needs to see rows as a subspace does, in pieces of ``block_rows`` rows."""

    kernel: Kernel
    basis: Any
    centre: Array
    dtype: Any
    block_rows: int


class RemoteSpanRows(SpanRows):
    """A part of the rows in another process than the subspace. It uses one thread."""

    def __init__(self, span: Span, rows: Rows):
        self._rows = KernelRows(span.kernel, rows, dtype=span.dtype, n_jobs=1, memory_limit=0, centre=span.centre)
        self._points, self._block_rows = self._rows.points_of(span.basis), span.block_rows
        self.n_rows, self.rank, self.n_threads = rows.n_rows, len(self._points), 1

    def pieces(self) -> Iterator[tuple[int, int, Array]]:
        """Yield the rows piece by piece, all in the same memory: Dask's workers return memory to the system at once,
        and new memory takes longer than the values.
        """
        size = min(self.n_rows, self._block_rows if self.rank else self.n_rows)
        values = _memory(size * self.rank, self._rows.dtype).reshape(size, self.rank)
        for part in in_pieces(self.n_rows, size):
            out = values[: part.stop - part.start]
            yield part.start, part.stop, self._rows.block(self._points, rows=(part.start, part.stop), out=out)

    def take(self, index: Array) -> Block:
        """Return some of the rows."""
        return self._rows.rows.take(index, self._rows.rows.exact_dtype)


_of_thread = threading.local()


def _memory(n: int, dtype: Any) -> Array:
    """Return room for n numbers, in this thread's memory of the part before if that is large enough."""
    n_bytes = n * np.dtype(dtype).itemsize
    if len(getattr(_of_thread, "memory", ())) < n_bytes:
        _of_thread.memory = np.empty(n_bytes, np.uint8)
    found: Array = _of_thread.memory[:n_bytes].view(dtype)
    return found


def on_remote_rows(function: Callable[..., Any], span: Span, rows: Rows, *own: Any) -> Any:
    """Call function(seen, *own) on a part of the rows."""
    return function(RemoteSpanRows(span, rows), *own)


# -- The subspace itself -----------------------------------------------------------------------------------------------


class Subspace:
    """The span of the basis vectors that are independent, with whitened coordinates of the rows.

    Parameters
    ----------
    basis : raw vectors of shape (k, d)
    constant : float
        The entry after the coordinates of every row.
    memory_limit : int
        Bytes that kernel values of all rows may take; above it they are computed again on every pass.

    Attributes
    ----------
    kept : int64 ndarray of shape (r,)
        The independent basis vectors, those with a Cholesky pivot above `RANK_TOLERANCE` of their own k(b, b), in the
        order of their pivots. The others lie in the span of these up to rounding.
    chunk_rows : int
        Rows that are gathered together.
    """

    chunk_rows = 2048

    def __init__(self, kernel_rows: KernelRows, basis: Any, constant: float, memory_limit: int):
        self.kernel_rows, self.constant = kernel_rows, constant
        self.n_vectors = basis.shape[0]
        gram = between(kernel_rows, basis)
        self.kept, self._to_coef = _whiten(gram, RANK_TOLERANCE[kernel_rows.dtype])
        self.rank = len(self.kept)
        self._kept_basis = basis[self.kept]
        self._points = kernel_rows.points_of(self._kept_basis)
        self.n_rows = kernel_rows.n_rows
        self._index: Array | None = None
        self._values: Array | None = None
        self.block_rows = _multiple(BLOCK_BYTES // (kernel_rows.dtype.itemsize * max(1, self.rank)))
        if self.n_rows * self.rank * kernel_rows.dtype.itemsize <= memory_limit and not self.is_remote:
            self._values = kernel_rows.block(self._points)
        else:
            self.block_rows = min(
                self.block_rows, _multiple(memory_limit // (4 * kernel_rows.dtype.itemsize * max(1, self.rank)))
            )

    def restricted(self, index: Array) -> Subspace:
        """Return the same span over some of the rows only; their kernel values are stored."""
        part = object.__new__(Subspace)
        part.__dict__.update(self.__dict__)
        part.n_rows, part._index = len(index), index
        part._values = self.values(index)
        return part

    def coefficients(self, u: Array) -> tuple[Array, Array]:
        """Return coefficients (k, m) of all basis vectors (0 if left out) and intercept (m,) for u (r + 1, m)."""
        coef = np.zeros((self.n_vectors, u.shape[1]))
        coef[self.kept] = self._to_coef @ u[:-1]
        return coef, self.constant * u[-1]

    def coordinates(self, coef: Array, intercept: Array) -> Array:
        """Return u (r + 1, m) for Σ_j coef_j φ(b_j) and an intercept; coefficients of vectors left out are ignored."""
        own = coef[self.kept]
        own = solve_triangular(self._to_coef, own, lower=False) if len(own) else own
        return np.vstack([own, self.constant * intercept])

    def times(self, u: Array) -> Array:
        """Return Z u (n, m) in float64, for u (r + 1, m)."""
        return LocalSpanRows(self, 0, self.n_rows).scores(*self.product_form(u))

    # -- passes in parts (`parts.span.row_passes`) ---------------------------------------------------------------

    @property
    def takes_on_the_way(self) -> bool:
        """Whether single rows are best taken in a pass over all: to go for them costs another one."""
        return self._values is None and not self.kernel_rows.rows.has_random_access

    @property
    def is_remote(self) -> bool:
        """Whether passes over these rows are made elsewhere."""
        return self._index is None and self.kernel_rows.rows.is_remote

    def parts(self) -> list[tuple[int, int]]:
        """Return the bounds of the parts that sums are made in."""
        return parts_of(self.n_rows)

    def place(self, items: list[Any]) -> Any:
        """Move each part's item to where the part is."""
        rows: Any = self.kernel_rows.rows
        return rows.place(items) if self.is_remote else items

    def map(self, function: Callable[..., Any], *items: Any, keep: bool = False) -> Any:
        """Return function(seen, *own) for each part of the rows as `SpanRows` from here, with the part's own items.

        ``keep`` leaves the results where they are made.
        """
        if self.is_remote:
            rows: Any = self.kernel_rows.rows
            self.kernel_rows.counter.add(self.n_rows * self.rank)
            return rows.map(partial(on_remote_rows, function), *items, keep=keep, shared=self._shared_span)
        return [
            function(LocalSpanRows(self, lo, hi), *own) for (lo, hi), *own in zip(self.parts(), *items, strict=True)
        ]

    def each(self, function: Callable[..., Any], *items: Any, keep: bool = False) -> Any:
        """Return function(*own) for each part's items, without its rows."""
        if self.is_remote:
            rows: Any = self.kernel_rows.rows
            return rows.each(function, *items, keep=keep)
        return [function(*own) for own in zip(*items, strict=True)]

    def product_form(self, u: Array) -> tuple[Array, Array]:
        """Return coefficients (r, m) of kernel values and a constant (m,) that give Z u for u (r + 1, m)."""
        return np.ascontiguousarray(self._to_coef @ u[:-1]), self.constant * u[-1]

    def coordinates_of_sums(self, sums: Array, totals: Array) -> Array:
        """Return Zᵀ v (r + 1, m) from the products (r, m) of kernel values with v and the sums (m,) of v."""
        return np.vstack([self._to_coef.T @ sums, self.constant * totals])

    def pieces(self, lo: int, hi: int) -> Iterator[tuple[int, int, Array]]:
        """Yield kernel values of the rows lo, …, hi − 1 in pieces, whose bounds are counted from lo.

        A piece may be written over by the next.
        """
        if self._values is not None or not self.rank:
            yield 0, hi - lo, self._no_values(hi - lo) if self._values is None else self._values[lo:hi]
            return
        values = np.empty((min(hi - lo, self.block_rows), self.rank), self.kernel_rows.dtype)
        for part in in_pieces(hi - lo, self.block_rows):
            where, out = (lo + part.start, lo + part.stop), values[: part.stop - part.start]
            yield part.start, part.stop, self.kernel_rows.block(self._points, rows=where, out=out)

    @made_once
    def _shared_span(self) -> Any:
        """Return the data with which other processes see their rows as this subspace does, sent to them once."""
        seen, rows = self.kernel_rows, self.kernel_rows.rows
        return rows.share(Span(seen.kernel, self._kept_basis, seen.centre, seen.dtype, self.block_rows))  # type: ignore[attr-defined]

    def scores(self, u: Array) -> Array:
        """Return what `times` computes, summed in the kernel's own precision, which is several times as fast."""
        coef = self._to_coef @ u[:-1]
        out = np.empty((self.n_rows, u.shape[1]))
        for lo, hi, values in self.pieces(0, self.n_rows):
            right = coef.astype(values.dtype)

            def fill(a: int, b: int, values: Array = values, part: Array = out[lo:hi], right: Array = right) -> None:
                for tile in range(a, b):
                    rows = slice(tile * TILE_ROWS, (tile + 1) * TILE_ROWS)
                    part[rows] = values[rows, : self.rank] @ right

            self._run(fill, -(-(hi - lo) // TILE_ROWS), right.size * (hi - lo))
        out += self.constant * u[-1]
        return out

    def coordinates_of(self, index: Array, v: Array) -> Array:
        """Return Zᵀ v (r + 1, m) for v (b, m) over some rows, summed in the kernel's own precision."""
        out = np.zeros((self.rank, v.shape[1]))
        for start in range(0, len(index), self.chunk_rows):
            rows: Any = index[start : start + self.chunk_rows]
            right = v[start : start + self.chunk_rows].astype(self.kernel_rows.dtype)
            values = self._values
            if values is None:
                values, rows = self.values(rows), slice(None)

            def add(a: int, b: int, values: Array = values, rows: Any = rows, right: Array = right) -> None:
                for panel in range(a, b):
                    columns = slice(panel * TILE_COLUMNS, min(self.rank, (panel + 1) * TILE_COLUMNS))
                    out[columns] += values[rows, columns].T @ right

            self._run(add, -(-self.rank // TILE_COLUMNS), self.rank * right.size)
        return np.vstack([self._to_coef.T @ out, self.constant * v.sum(axis=0)])

    def whitened(self, index: Array, raw: Any = None) -> Array:
        """Return coordinates z of the rows at ``index`` and the constant, (b, r + 1), of the kernel's type; ``raw`` has
        these rows, if a pass copied them.
        """
        if raw is None and self.takes_on_the_way:
            raw = self.kernel_rows.rows.take(index, self.kernel_rows.rows.exact_dtype)
        dtype = self.kernel_rows.dtype
        out, right = np.empty((len(index), self.rank + 1), dtype), self._to_coef.astype(dtype, copy=False)
        out[:, self.rank] = self.constant
        # Kernel values of all would take as much memory as the result.
        for part in in_pieces(len(index), max(1, COPY_VALUES // max(1, self.rank))):
            values = self.values(index[part]) if raw is None else self._values_of(raw[part])
            multiply_rows(values, right, out[part, : self.rank], self.n_threads, is_upper=True)
        return out

    def gram(self, rows: Array, weights: Array) -> Array:
        """Return Σ_i weights_i z_i z_iᵀ in float64 of whitened rows; only the lower triangle is set."""
        return squares(rows, weights, self.n_threads)

    def product(self, rows: Array, u: Array) -> Array:
        """Return whitened rows (b, r + 1) times u (r + 1, m), in float64."""
        out = np.empty((len(rows), u.shape[1]))
        multiply_wide(rows, np.ascontiguousarray(u), out, self.n_threads)
        return out

    def product_transposed(self, rows: Array, v: Array) -> Array:
        """Return Σ_i z_i v_iᵀ (r + 1, m) of whitened rows, in float64."""
        out = np.zeros((rows.shape[1], v.shape[1]))
        add_transposed(rows, np.ascontiguousarray(v), out, self.n_threads)
        return out

    @property
    def n_threads(self) -> int:
        """Return the number of threads that share products."""
        return self.kernel_rows.n_jobs

    def values(self, index: Array) -> Array:
        """Return kernel values (b, r) of the rows at ``index`` with the kept vectors."""
        if self._values is not None:
            found: Array = self._values[:, : self.rank][index]
            return found
        if not self.rank:
            return self._no_values(len(index))
        return self.kernel_rows.block(self._points, rows=index if self._index is None else self._index[index])

    def _values_of(self, raw: Any) -> Array:
        """Return kernel values (b, r) of raw rows with the kept vectors."""
        seen = self.kernel_rows
        how: Any = {"dtype": seen.dtype, "n_jobs": seen.n_jobs, "counter": seen.counter, "centre": seen.centre}
        return KernelRows(seen.kernel, raw, memory_limit=0, **how).block(self._points)

    def _no_values(self, n: int) -> Array:
        """Return an empty (n, 0) array of kernel values."""
        return np.empty((n, 0), self.kernel_rows.dtype)

    def _run(self, function: Callable[[int, int], None], n_tiles: int, work: int) -> None:
        """Run a Python function in threads if ``work``, in multiplications of values in memory, is worth it."""
        threads = work // WORK_PER_THREAD
        run_tiles(function, n_tiles, max(1, min(self.kernel_rows.n_jobs, threads)))


class GrowingSubspace(Subspace):
    """The span of a growing basis: values computed for earlier vectors are never computed again.

    Parameters
    ----------
    capacity : int
        Vectors it may come to hold.

    Attributes
    ----------
    basis : raw vectors of shape (r, d) or None
    L : float64 ndarray of shape (r, r)
        Cholesky factor of K_BB.
    """

    def __init__(self, kernel_rows: KernelRows, constant: float, capacity: int, memory_limit: int):
        self.kernel_rows, self.constant, self.n_rows = kernel_rows, constant, kernel_rows.n_rows
        self.rank = self.n_vectors = 0
        self.kept = np.zeros(0, dtype=np.int64)
        self.basis: Any = None
        self.L = self._to_coef = np.zeros((0, 0))
        self._index, self._values, self._capacity = None, None, capacity
        itemsize = kernel_rows.dtype.itemsize
        self.block_rows = _multiple(min(BLOCK_BYTES, memory_limit // 4) // (itemsize * max(1, capacity)))
        if self.n_rows * capacity * itemsize <= memory_limit:
            self._values = np.empty((self.n_rows, min(capacity, FIRST_COLUMNS)), kernel_rows.dtype)

    def whiten(self, values: Array) -> Array:
        """Return whitened coordinates (s, r) of vectors whose kernel values with the basis are (s, r)."""
        return solve_triangular(self.L, values.T, lower=True).T if self.rank else values

    def extend(self, vectors: Any) -> Array:
        """Add raw vectors to the basis, except any that lie in the span of the others; return their positions."""
        z = np.zeros((vectors.shape[0], 0))
        if self.rank:
            z = self.whiten(between(self.kernel_rows, vectors, self.basis))
        gram = between(self.kernel_rows, vectors)
        kept, corner, columns = _independent(gram, z, self.L, self._to_coef, RANK_TOLERANCE[self.kernel_rows.dtype])
        if not len(kept):
            return kept
        vectors, z = vectors[kept], z[kept]
        k, p = self.rank, len(kept)
        self.L = np.block([[self.L, np.zeros((k, p))], [z, corner]])
        self._to_coef = np.block([[self._to_coef, columns[:k]], [np.zeros((p, k)), columns[k:]]])
        stack = sp.vstack if sp.issparse(vectors) else np.concatenate
        self.basis = vectors if self.basis is None else stack([self.basis, vectors])
        if self._values is None:
            self._points = self.kernel_rows.points_of(self.basis)
        else:
            if k + p > self._values.shape[1]:
                wider = np.empty((self.n_rows, min(self._capacity, 2 * (k + p))), self._values.dtype)
                wider[:, :k] = self._values[:, :k]
                self._values = wider
            points = self.kernel_rows.points_of(vectors)
            for lo in range(0, self.n_rows, COPY_ROWS):
                hi = min(self.n_rows, lo + COPY_ROWS)
                self._values[lo:hi, k : k + p] = self.kernel_rows.block(points, rows=(lo, hi))
        self.rank = self.n_vectors = k + p
        self.kept = np.arange(self.rank)
        return kept


def _independent(gram: Array, z: Array, L: Array, to_coef: Array, tolerance: float) -> tuple[Array, Array, Array]:
    """Return which of some vectors lie outside the span of others, and what they add to its factor L and to L⁻ᵀ.

    These are the corner of L and the last columns of ``to_coef``; vectors have the coordinates z in the span.
    """
    k, rest, own = len(L), gram - z @ z.T, np.diagonal(gram)
    lengths = np.sqrt(np.abs(np.append(np.einsum("ij,ij->i", L, L), own)))

    def columns_of(factor: Array, z: Array) -> Array:
        inverse = lower_inverse(factor).T
        return np.vstack([-to_coef @ (z.T @ inverse), inverse])

    factor = cholesky(rest)
    if factor is not None and np.all(np.diagonal(factor) ** 2 > tolerance * own):
        columns = columns_of(factor, z)
        if (lengths @ np.abs(columns)).max(initial=0.0) <= MOST_CANCELLED:
            return np.arange(len(rest)), np.tril(factor), columns
    kept: list[int] = []
    factor, columns = np.zeros_like(rest), np.zeros((k + len(rest), len(rest)))
    for j in range(len(rest)):
        t = len(kept)
        row = solve_triangular(factor[:t, :t], rest[kept, j], lower=True) if t else np.zeros(0)
        pivot = rest[j, j] - row @ row
        if pivot > tolerance * own[j]:
            column = -columns[:, :t] @ row
            column[:k] -= to_coef @ z[j]
            column[k + j] = 1.0
            columns[:, t] = column / np.sqrt(pivot)
            if lengths @ np.abs(columns[:, t]) <= MOST_CANCELLED:
                factor[t, :t], factor[t, t] = row, np.sqrt(pivot)
                kept.append(j)
    factor = factor[: len(kept), : len(kept)]
    return np.array(kept, dtype=np.int64), factor, columns_of(factor, z[kept])


def _whiten(gram: Array, tolerance: float) -> tuple[Array, Array]:
    """Return independent vectors, by pivoted Cholesky of their matrix scaled to a unit diagonal, and L⁻ᵀ of these."""
    own = np.diagonal(gram)
    scale = np.where(own > 0, 1.0 / np.sqrt(np.where(own > 0, own, 1.0)), 0.0)
    factor, order, rank = pivoted_cholesky(scaled(gram, scale, scale), tolerance)
    kept, inverse = order[:rank], lower_inverse(factor[:rank, :rank])
    return kept, scaled(inverse.T, scale[kept])


def _multiple(n_rows: int) -> int:
    """Return the rows of a block, a multiple of the unit in which products are summed: blocks do not change sums."""
    return max(SUM_ROWS, n_rows // SUM_ROWS * SUM_ROWS)


def subspace(problem: Problem, kernel_rows: KernelRows, basis: Any) -> Subspace:
    """Return the span of a basis, with the memory that the problem allows and the intercept that it asks for."""
    return Subspace(kernel_rows, basis, 0.0 if problem.intercept == "none" else 1.0, problem.memory_limit // 2)
