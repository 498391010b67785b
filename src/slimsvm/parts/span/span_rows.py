"""Rows seen from a subspace, one part at a time, in this process or in another."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.core.products import add_transposed, multiply_wide
from slimsvm.kernels import Kernel, KernelRows
from slimsvm.rows import Block, Rows, in_pieces

Array = np.ndarray


class SpanRows(ABC):
    """A part of the rows, with kernel values to the vectors of a subspace.

    Attributes
    ----------
    n_rows, rank, n_threads : int
    """

    n_rows: int
    rank: int
    n_threads: int

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, int, Array]]:
        """Yield kernel values with the kept vectors, in pieces of rows."""

    def multiply(self, coef: Array, out: Array) -> None:
        """Set out (n, m) to the kernel values' product with coef (r, m), in float64."""
        for lo, hi, values in self.pieces():
            multiply_wide(values[:, : self.rank], coef, out[lo:hi], self.n_threads)

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
    """The rows lo, …, hi − 1 of a `whitened_span.Subspace` in this process."""

    def __init__(self, space: Any, lo: int, hi: int):
        self._space, self._bounds = space, (lo, hi)
        self.n_rows, self.rank, self.n_threads = hi - lo, space.rank, space.n_threads

    def pieces(self) -> Iterator[tuple[int, int, Array]]:
        """Return an iterator over pieces of the rows: first row, end, values."""
        found: Iterator[tuple[int, int, Array]] = self._space.pieces(*self._bounds)
        return found

    def take(self, index: Array) -> Block:
        """Return some of the rows."""
        rows = self._space.kernel_rows.rows
        found: Block = rows.take(index + self._bounds[0], rows.exact_dtype)
        return found


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
