"""SMO inside a working set: pairs of variables that keep Σ v, or two with bounds only, on a block of K."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from slimsvm import core
from slimsvm.core.clock import is_time_over
from slimsvm.solvers.decomposition.dual import extremes, slopes
from slimsvm.solvers.decomposition.leap import Leaps, leap

Array = np.ndarray

TINY = 1e-12  # curvature of a direction that has none (LIBSVM's τ)
# Numbers of a line that the steps of one compiled call go through, some 10 to 40 ms: Ctrl-C is heard between two.
CALL_WORK = 1 << 23
# The rows whose lines are there are solved for to this share of the violation of all, before there are more; to the
# second where no other row violates enough to have a line made.
GROWN_SHARE, ALONE_SHARE = 0.2, 0.02


class Solved(NamedTuple):
    """What became of a working set.

    Parameters
    ----------
    n_steps : int
    gain : float
        By how much D(v) has risen.
    violation : float
        Of the optimality conditions, that is left.
    middle : float
        LIBSVM's intercept, were the set all rows.
    """

    n_steps: int
    gain: float
    violation: float
    middle: float


class Growing(Protocol):
    """Lines of K that are made when they are needed."""

    def make(self, rows: Array) -> None:
        """Make the lines of those of these rows that have none."""

    def make_worst(self, up: Array, down: Array, highest: float, lowest: float) -> int:
        """Make some lines of rows that violate most, by their slopes and extremes; how many."""

    @property
    def is_whole(self) -> bool:
        """Whether all lines are there."""


class KernelBlock(NamedTuple):
    """Kernel values among the rows of a working set, without the offset.

    Parameters
    ----------
    lines : ndarray of shape (n_lines, width)
    slots : int64 ndarray
        Line of each row of the set.
    places : int64 ndarray or None
        Column of each row of the set; None: the first ones, in order.
    diagonal : ndarray or None
        Of K. None: that of the lines.
    growing : Growing or None
        What makes lines of rows whose slots are -1; None: all lines are there.
    """

    lines: Array
    slots: Array
    places: Array | None = None
    diagonal: Array | None = None
    growing: Growing | None = None


def solve_set(
    block: KernelBlock,
    g: Array,
    v: Array,
    bounds: tuple[Array, Array],
    *,
    balanced: bool,
    offset: float = 0.0,
    epsilon: float = 0.0,
    tol: float,
    max_steps: int,
    workspace: Array | None = None,
    leaps: Leaps | None = None,
) -> Solved:
    """Maximise D(v) over the variables of a working set, in v and g; when the time is over, the steps so far are all.

    Parameters
    ----------
    block : KernelBlock
    g, v : float64 ndarray of shape (n,)
    bounds : lo and hi of v
    balanced : bool
        Whether Σ v is kept; the offset has no effect then.
    offset : float
        To be added to K.
    epsilon : float
        Of the term −ε Σ |v|.
    tol : float
        Violation of the optimality conditions at which the set is solved.
    max_steps : int
    workspace : uint8 ndarray or None
        Memory to use again.
    leaps : Leaps or None
        When all free variables are moved at a time; None: never.

    Returns
    -------
    Solved
    """
    n = len(v)
    at_once, left, gain = max(1, CALL_WORK // max(1, n)), max_steps, 0.0
    memory = {} if workspace is None else {"workspace": workspace}
    now = _grown(block, g, v, bounds, balanced, epsilon, tol)
    while True:
        asked = min(at_once, left)
        if leaps is not None and leaps.least_wait(n) <= asked * n:
            free = np.flatnonzero((v > bounds[0]) & (v < bounds[1]) & (v != 0))
            if (wait := leaps.wait(n, len(free))) <= 0:
                if block.growing is not None:
                    block.growing.make(free)
                risen = leap(block, g, v, bounds, free, balanced=balanced, offset=offset, epsilon=epsilon)
                leaps.made(risen)
                gain += risen
            else:
                asked = int(min(asked, wait // max(1, n) + 1))
        made, risen, violation, middle = core.smo(
            lines=block.lines,
            slots=block.slots,
            places=block.places,
            diagonal=block.diagonal,
            g=g,
            v=v,
            lo=bounds[0],
            hi=bounds[1],
            balanced=balanced,
            offset=offset,
            epsilon=epsilon,
            tol=now,
            max_steps=asked,
            **memory,
        )
        left, gain = left - made, gain + risen
        if leaps is not None:
            leaps.note(made * n)
        is_over = not left or is_time_over()
        if made < asked and now > tol and not is_over:
            now = _grown(block, g, v, bounds, balanced, epsilon, tol) if made else tol
        elif made < asked or is_over:
            return Solved(max_steps - left, gain, violation, middle)


def _grown(
    block: KernelBlock, g: Array, v: Array, bounds: tuple[Array, Array], balanced: bool, epsilon: float, tol: float
) -> float:
    """Make lines of rows that violate most; to which violation those that have lines are to be solved."""
    if block.growing is None:
        return tol
    up, down = slopes(v, g, *bounds, epsilon)
    highest, lowest = extremes(up, down, balanced)
    if highest - lowest <= tol:
        return tol
    n_made = block.growing.make_worst(up, down, highest, lowest)
    share = GROWN_SHARE if n_made else ALONE_SHARE
    return tol if block.growing.is_whole else max(tol, share * (highest - lowest))
