"""What a basis is, and the simplest one: rows drawn uniformly, as in the Nyström method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.rows import is_sparse

Array = np.ndarray

# A vector whose part outside the span of the others is below this share of its own k(b, b) adds nothing but rounding
# errors of the kernel values.
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
        """Memory that `choose` takes beyond the data and the vectors."""
        return 0


def check_n_vectors(n_vectors: int) -> None:
    """A basis has at least one vector."""
    if n_vectors < 1:
        raise ValueError(f"n_vectors must be at least 1, found {n_vectors}")


def contents(block: Any) -> Iterator[bytes]:
    """What each row of a block holds, as bytes that are equal for equal rows; -0.0 is 0.0, a stored zero is none."""
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
