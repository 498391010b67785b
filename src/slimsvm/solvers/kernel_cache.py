"""Kernel values between rows of a fit that are asked for again and again, within a limit of memory."""

from __future__ import annotations

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.numerics.smo import keep_columns
from slimsvm.numerics.threads import run_tiles

Array = np.ndarray

# Lines computed in one call: enough for every thread, and a small temporary array.
LINES_PER_BLOCK = 96


class KernelCache:
    """Lines K(x_i, active rows), computed by blocks, least recently used lines replaced first.

    Parameters
    ----------
    kernel_rows : KernelRows
    memory_limit : int
        Bytes for the lines.
    active : int64 ndarray
        Rows that are the columns at first.

    Attributes
    ----------
    values : ndarray of shape (n_slots, capacity), of the type of ``kernel_rows``
        A line's columns are in the order of ``active``, as far as `lines` has filled them.
    """

    def __init__(self, kernel_rows: KernelRows, memory_limit: int, active: Array):
        self.kernel_rows = kernel_rows
        self.memory_limit = memory_limit
        self._restart(active)

    @property
    def n_slots(self) -> int:
        """Lines there is room for."""
        return len(self.values)

    def _restart(self, active: Array) -> None:
        n, itemsize = self.kernel_rows.n_rows, self.kernel_rows.dtype.itemsize
        self.active = active
        capacity = max(1, min(n, 2 * len(active)))
        n_slots = min(capacity, self.memory_limit // (itemsize * capacity))
        self.values = np.empty((n_slots, capacity), self.kernel_rows.dtype)
        # Used again and again: memory that is new costs as much as the values it takes.
        self._buffer = np.empty(min(LINES_PER_BLOCK, n_slots) * capacity, self.kernel_rows.dtype)
        self._parts = [(0, len(active), self.kernel_rows.points(active))]
        self._slot_of = np.full(n, -1)
        self._owner = np.full(n_slots, -1)
        self._valid = np.zeros(n_slots, np.int64)
        self._stamp = np.zeros(n_slots, np.int64)
        self._clock = 0

    def extend(self, rows: Array) -> None:
        """Let rows be columns too, after those there are."""
        lo, hi = len(self.active), len(self.active) + len(rows)
        active = np.concatenate([self.active, rows])
        if hi > self.values.shape[1]:
            self._restart(active)
        elif len(rows):
            self.active = active
            self._parts.append((lo, hi, self.kernel_rows.points(rows)))

    def keep(self, places: Array) -> None:
        """Keep only the columns at these places, which rise."""
        used = np.flatnonzero(self._valid)
        values, valid = self.values, self._valid[used]
        run_tiles(lambda lo, hi: keep_columns(values, used, valid, places, lo, hi), len(used), self.kernel_rows.n_jobs)
        self._valid[used] = np.searchsorted(places, valid)
        bounds = np.searchsorted(places, [hi for _, hi, _ in self._parts])
        self.active = self.active[places]
        self._parts = [
            (lo, hi, self.kernel_rows.points(self.active[lo:hi]))
            for lo, hi in zip([0, *bounds[:-1]], bounds, strict=True)
            if hi > lo
        ]

    def lines(self, rows: Array) -> Array:
        """Slots of the lines of these distinct rows, at most `n_slots`, filled for all columns."""
        self._clock += 1
        slots = self._slot_of[rows]
        self._stamp[slots[slots >= 0]] = self._clock
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            slots[missing] = free = np.argsort(self._stamp, kind="stable")[: len(missing)]
            self._slot_of[self._owner[free][self._owner[free] >= 0]] = -1
            self._owner[free], self._slot_of[rows[missing]] = rows[missing], free
            self._valid[free], self._stamp[free] = 0, self._clock
        for lo, hi, points in self._parts:
            wanting = np.flatnonzero(self._valid[slots] <= lo)
            for at in range(0, len(wanting), LINES_PER_BLOCK):
                part = wanting[at : at + LINES_PER_BLOCK]
                block = self._buffer[: len(part) * (hi - lo)].reshape(len(part), hi - lo)
                self.values[slots[part], lo:hi] = self.kernel_rows.block(points, rows=rows[part], out=block)
                self._valid[slots[part]] = hi
        return slots
