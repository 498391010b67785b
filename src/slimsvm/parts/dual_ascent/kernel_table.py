"""Kernel values between the rows that an online solver keeps, all of them, as rows come and go."""

from __future__ import annotations

from math import isqrt

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.rows import in_pieces

Array = np.ndarray

FIRST_SLOTS = 256
# Kernel values worked on without a pause: some 10 ms. Ctrl-C is heard between two pieces.
PIECE = 1 << 21


class KernelTable:
    """K between rows in slots: a row that comes costs one kernel value for each row there is, and none later.

    Unlike `KernelCache`, whose lines go and are computed again: every step of an online solver needs the values between
    all rows it keeps.

    Parameters
    ----------
    kernel_rows : KernelRows
    memory_limit : int
        Bytes for the values.
    name : str
        Whose table it is, for the message when it is full.

    Attributes
    ----------
    values : ndarray of shape (capacity, capacity), of the type of ``kernel_rows``
        Symmetric; entries between slots that are not in use are old ones, or 0.
    row : int64 ndarray of shape (capacity,)
        The row in every slot.
    top : int
        No slot in use is beyond.
    """

    def __init__(self, kernel_rows: KernelRows, memory_limit: int, name: str):
        self.kernel_rows, self.name = kernel_rows, name
        # While it grows there are two of them, one at least half as wide.
        self.most = isqrt(4 * memory_limit // (5 * kernel_rows.dtype.itemsize))
        size = min(FIRST_SLOTS, self.most)
        self.values = np.zeros((size, size), kernel_rows.dtype)
        self.row = np.full(size, -1)
        self.top = 0

    def add(self, rows: Array, used: Array) -> Array:
        """Slots for these rows, with their kernel values; the slots of ``used`` stay as they are."""
        taken = np.zeros(self.top + len(rows), bool)
        taken[used] = True
        slots = np.flatnonzero(~taken)[: len(rows)]
        self._reserve(int(slots.max(initial=-1)) + 1)
        self.row[slots] = rows
        others = np.concatenate([used, slots])
        for part in in_pieces(len(rows), PIECE // len(others)):
            block = self.kernel_rows.block(self.kernel_rows.points(rows[part]), rows=self.row[others])
            self.values[others[:, None], slots[part]] = block
            self.values[slots[part, None], others] = block.T
        self.top = max(self.top, int(slots.max(initial=-1)) + 1)
        return slots

    def _reserve(self, size: int) -> None:
        if size > self.most:
            raise ValueError(
                f"{self.name} keeps the kernel values between all its vectors, and memory_limit leaves room for "
                f"{self.most} of them; {size} are needed: raise memory_limit, or lower C"
            )
        if size > len(self.values):
            new = min(self.most, max(size, 2 * len(self.values)))
            values, row = np.zeros((new, new), self.values.dtype), np.full(new, -1)
            for part in in_pieces(self.top, PIECE // new):
                values[part, : self.top] = self.values[part, : self.top]
            row[: self.top] = self.row[: self.top]
            self.values, self.row = values, row
