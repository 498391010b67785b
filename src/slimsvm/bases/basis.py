"""The base class of bases, and bases of training rows: drawn uniformly (Nyström), or chosen by incomplete Cholesky."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slimsvm import core
from slimsvm.core.products import FROM_MEMORY, in_calls
from slimsvm.kernels import KernelRows
from slimsvm.rows import is_sparse

Array = np.ndarray

# A vector whose part outside the span of the others is below this share of its own k(b, b) adds only rounding errors of
# the kernel values.
RANK_TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}


class Basis(ABC):
    """A way to choose basis vectors before training; a basis of your own is one class with `choose`.

    >>> import numpy as np
    >>> from slimsvm.bases import Basis
    >>> from slimsvm.kernels import RBF, KernelRows
    >>> class First(Basis):
    ...     name = "first"
    ...     def choose(self, kernel_rows, n_vectors, rng, labels=None):
    ...         return np.arange(min(n_vectors, kernel_rows.n_rows))
    >>> First().choose(KernelRows(RBF(1.0), np.eye(3)), 2, np.random.default_rng(0))
    array([0, 1])
    """

    name: ClassVar[str]

    @abstractmethod
    def choose(
        self, kernel_rows: KernelRows, n_vectors: int, rng: np.random.Generator, labels: Array | None = None
    ) -> Any:
        """Choose at most ``n_vectors`` basis vectors.

        Parameters
        ----------
        kernel_rows : KernelRows
            Training rows seen through the kernel.
        n_vectors : int
            How many are wanted. Fewer come back where there are not that many to choose from.
        rng : numpy.random.Generator
            All randomness comes from it.
        labels : integer ndarray of shape (n_rows,) or None
            Class of every row, for choices made class by class.

        Returns
        -------
        ndarray or csr_array
            Rows of the data: their positions, a 1-D int64 array. Otherwise the vectors themselves, of shape (k, d).
        """

    def bytes_needed(self, kernel_rows: KernelRows, n_vectors: int) -> int:
        """Return the memory that `choose` takes beyond the data and the vectors."""
        return 0


def check_n_vectors(n_vectors: int) -> None:
    """Require at least one vector."""
    if n_vectors < 1:
        raise ValueError(f"n_vectors must be at least 1, found {n_vectors}")


def contents(block: Any) -> Iterator[bytes]:
    """Yield each row of a block as bytes that are equal for equal rows; -0.0 is 0.0, a stored zero is none."""
    if not is_sparse(block):
        for row in block + 0:
            yield row.tobytes()
        return
    for lo, hi in zip(block.indptr[:-1].tolist(), block.indptr[1:].tolist()):
        stored = block.data[lo:hi] != 0
        yield block.indices[lo:hi][stored].astype(np.int64).tobytes() + block.data[lo:hi][stored].tobytes()


@dataclass(frozen=True)
class Nystrom(Basis):
    """Uniformly drawn training rows, without replacement and no two of them equal.

    References
    ----------
    Williams, Seeger: Using the Nyström Method to Speed Up Kernel Machines, NIPS 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.bases import Nystrom
    >>> from slimsvm.kernels import RBF, KernelRows
    >>> rows = KernelRows(RBF(1.0), np.array([[0.0], [1.0], [1.0], [2.0]]))
    >>> len(Nystrom().choose(rows, 4, np.random.default_rng(0)))
    3
    """

    name: ClassVar[str] = "nystrom"

    def choose(self, kernel_rows, n_vectors, rng, labels=None) -> Array:
        """Draw different rows uniformly; return their positions in increasing order."""
        check_n_vectors(n_vectors)
        order = rng.permutation(kernel_rows.n_rows)
        chosen: dict[bytes, int] = {}
        at = 0
        while len(chosen) < n_vectors and at < len(order):
            part = order[at : at + n_vectors]
            at += len(part)
            for row, content in zip(part.tolist(), contents(kernel_rows.rows.take(part, kernel_rows.rows.exact_dtype))):
                if len(chosen) < n_vectors:
                    chosen.setdefault(content, row)
        return np.sort(np.fromiter(chosen.values(), np.int64, len(chosen)))


@dataclass(frozen=True)
class IncompleteCholesky(Basis):
    """Training rows chosen one after another, each the row furthest from the span of those before it.

    The row of largest residual k(x, x) - |projection of φ(x)|² is the next pivot. Works for every kernel; memory is
    n × rank numbers, time n × rank kernel values and n × rank² / 2 multiply-adds.

    Parameters
    ----------
    residual : float or None, default=None
        Stop when no residual exceeds this share of the largest k(x, x). None: 1e-10 in float64, 1e-6 in float32, below
        which there are only rounding errors.
    sample_size : int or None, default=None
        Look for pivots among this many uniformly drawn rows, to spare memory and time. None: among all rows.

    References
    ----------
    Fine, Scheinberg: Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2001, figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.bases import IncompleteCholesky
    >>> from slimsvm.kernels import Linear, KernelRows
    >>> rows = KernelRows(Linear(), np.array([[1.0, 0.0], [0.0, 3.0], [2.0, 1.0]]))
    >>> IncompleteCholesky().choose(rows, 3, np.random.default_rng(0))
    array([1, 2])
    """

    residual: float | None = None
    sample_size: int | None = None
    name: ClassVar[str] = "incomplete-cholesky"

    def __post_init__(self):
        if self.residual is not None and not 0 <= self.residual < 1:
            raise ValueError(f"residual must be a number from 0 to 1, or None; found {self.residual!r}")
        if self.sample_size is not None and self.sample_size < 1:
            raise ValueError(f"sample_size must be at least 1, or None; found {self.sample_size!r}")

    def bytes_needed(self, kernel_rows, n_vectors) -> int:
        """Return the memory of the sample's factor, n · min(n, n_vectors) numbers."""
        n = min(kernel_rows.n_rows, self.sample_size or kernel_rows.n_rows)
        return n * min(n, n_vectors) * kernel_rows.dtype.itemsize

    def choose(self, kernel_rows, n_vectors, rng, labels=None) -> Array:
        """Choose rows by pivoting; return their positions in the order in which they were chosen."""
        rows = None
        if self.sample_size is not None and self.sample_size < kernel_rows.n_rows:
            rows = np.sort(rng.choice(kernel_rows.n_rows, self.sample_size, replace=False))
        pivots = self.factorise(kernel_rows, n_vectors, rows)[0]
        return pivots if rows is None else rows[pivots]

    def factorise(self, kernel_rows: KernelRows, n_vectors: int, rows: Array | None = None):
        """Compute a factor G of rank at most ``n_vectors``, with K ≈ GGᵀ.

        Parameters
        ----------
        rows : int64 ndarray of shape (b,) or None
            The rows whose kernel matrix K is factorised; None: all.

        Returns
        -------
        pivots : int64 ndarray of shape (r,)
            Positions among those rows.
        factor : ndarray of shape (b, r)
        residuals : float64 ndarray of shape (r,)
            The largest residual before each pivot.
        """
        check_n_vectors(n_vectors)
        remaining = kernel_rows.diag(rows)
        n = len(remaining)
        rank = min(n, n_vectors)
        tolerance = RANK_TOLERANCE[kernel_rows.dtype] if self.residual is None else self.residual
        stop = tolerance * remaining.max(initial=0.0)
        factor = np.empty((n, rank), kernel_rows.dtype)
        pivots: list[int] = []
        residuals: list[float] = []
        pivot = int(np.argmax(remaining))
        while len(pivots) < rank and remaining[pivot] > stop:
            pivots.append(pivot)
            residuals.append(float(remaining[pivot]))
            position = np.array([pivot if rows is None else rows[pivot]])
            column = kernel_rows.block(kernel_rows.points(position), rows)[:, 0]
            remaining[pivot] = -1.0
            done, root = len(pivots) - 1, np.sqrt(residuals[-1])
            pivot = _add_pivot(column, pivot, root, done, factor, remaining, kernel_rows.n_jobs)
            if pivot < 0:
                break
        return np.array(pivots, np.int64), factor[:, : len(pivots)], np.array(residuals)


def _add_pivot(column: Array, pivot: int, root: float, t: int, factor: Array, remaining: Array, n_threads: int) -> int:
    """Set column t of the factor, and what remains without it; returns the row where most remains, -1 for none."""
    row = factor[pivot, :t].astype(np.float64)
    call = core.add_pivot.prepare(root=root, pivot_row=row, n_threads=n_threads)
    per_row, most, place = (t + 1) / FROM_MEMORY, -1.0, -1
    for part in in_calls(len(remaining), per_row):
        where, largest = call(
            kernel=column[part], factor=factor[part], residual=remaining[part],
            microseconds=per_row * len(column[part]),
        )  # fmt: skip
        if largest > most:
            most, place = largest, part.start + where
    return place
