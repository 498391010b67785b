"""Lines of the kernel matrix over some rows, of which there are ever more: those of the rows that violate most.

Steps on pairs move rows that have a line, and keep g of all. Where these are all but solved for, the rows that violate
most get lines, too. Few are made that no step asks for, none twice, and g never has to be computed anew: for problems
that take few steps for each row that is most of what working sets cost.
"""

from __future__ import annotations

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.parts.problem import Room

Array = np.ndarray

# Lines that are made at a time: at least, at most, and as a share of those there are.
LEAST_LINES, MOST_LINES, LINES_SHARE = 128, 256, 0.5
# Of so many rows all are made at once: the search for the next ones takes longer.
FEW_ROWS = 1024
# Only for rows whose slopes are this near to the greatest, as a share of the violation.
NEAR = 0.5


class GrowingLines:
    """Kernel values of some rows with each other, line by line; see the module's text.

    Parameters
    ----------
    kernel_rows : KernelRows
    rows : int64 ndarray
    room : Room
        For the lines.

    Attributes
    ----------
    values : ndarray of shape (n, n)
        Lines in the order in which they were made.
    slots : int64 ndarray of shape (n,)
        Line of each row, or -1.
    diagonal : ndarray of shape (n,) or None
        None: all lines are there.
    """

    def __init__(self, kernel_rows: KernelRows, rows: Array, room: Room):
        n = len(rows)
        self.kernel_rows, self.rows, self.n_lines = kernel_rows, rows, 0
        self.values = room.array((n, n), kernel_rows.dtype)
        self.slots = np.full(n, -1)
        self._points = kernel_rows.points(rows)
        self.diagonal: Array | None = None
        if n <= FEW_ROWS:
            self.make(np.arange(n))
        else:
            self.diagonal = kernel_rows.diag(rows).astype(kernel_rows.dtype)

    def make(self, rows: Array) -> None:
        """Make the lines of those of these places that have none."""
        places = rows[self.slots[rows] < 0]
        if len(places):
            lines = slice(self.n_lines, self.n_lines + len(places))
            self.kernel_rows.block(self._points, rows=self.rows[places], out=self.values[lines])
            self.n_lines = lines.stop
            self.slots[places] = np.arange(lines.start, lines.stop)

    @property
    def is_whole(self) -> bool:
        """Whether all lines are there."""
        return self.n_lines == len(self.slots)

    def make_worst(self, up: Array, down: Array, highest: float, lowest: float) -> int:
        """Make lines of those without that violate most, by their slopes and extremes; how many."""
        missing, near = np.flatnonzero(self.slots < 0), NEAR * (highest - lowest)
        up, down = up[missing], down[missing]
        most = max(LEAST_LINES, min(MOST_LINES, int(LINES_SHARE * self.n_lines))) // 2
        tops, bottoms = _greatest(up, highest - near, most), _greatest(-down, -lowest - near, most)
        before = self.n_lines
        if len(tops) or len(bottoms):
            self.make(missing[np.union1d(tops, bottoms)])
        return self.n_lines - before


def _greatest(values: Array, least: float, most: int) -> Array:
    """Places of the greatest of the values that are at least so great, at most so many."""
    places = np.flatnonzero(values >= least)
    return places if len(places) <= most else places[np.argpartition(-values[places], most)[:most]]
