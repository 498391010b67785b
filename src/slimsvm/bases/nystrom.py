"""Rows drawn uniformly: the Nyström method's basis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slimsvm.bases.basis import Array, Basis, check_n_vectors, contents


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
