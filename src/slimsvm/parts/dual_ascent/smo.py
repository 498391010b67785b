"""SMO within a working set: steps on pairs of variables that keep Σ v, or on one or two with bounds only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from slimsvm import core
from slimsvm.core.clock import is_time_over
from slimsvm.parts.dual_ascent.dual import Slopes, slopes
from slimsvm.parts.dual_ascent.newton_step import STEP, NewtonSteps, newton_step, products

Array = np.ndarray

TINY = 1e-12  # the curvature of a direction without any (LIBSVM's τ)


@dataclass(frozen=True)
class SetSettings:
    """Settings of steps within a working set; docs/experiments/exact_solver.md, "Unscaled data, few free rows"."""

    # Entries of kernel rows that one compiled call goes through, in some 10 to 40 ms: Ctrl-C is checked between calls.
    call_work: int = 1 << 23
    # Rows with kernel rows are solved for to the first share of all rows' violation before others get kernel rows, and
    # to the second one if no other row violates enough to get one. Chosen, not measured.
    grown_share: float = 0.2
    alone_share: float = 0.02
    # From this many rows and this many steps per row on, steps use only the rows that can still change, if these are no
    # more than ``few_share``, down to ``shrunk_share`` of all rows' violation (LIBSVM's shrinking).
    worth_shrinking: int = 128
    soon: int = 4
    shrunk_share: float = 0.5
    few_share: float = 0.1


USUAL = SetSettings()


class Solved(NamedTuple):
    """The result of `solve_set`.

    Parameters
    ----------
    n_steps : int
    gain : float
        The rise of D(v).
    violation : float
        The violation of the optimality conditions that is left.
    middle : float
        LIBSVM's intercept, were the set all rows.
    """

    n_steps: int
    gain: float
    violation: float
    middle: float


class Growing(Protocol):
    """Kernel rows that are computed when they are needed."""

    def make(self, rows: Array) -> None:
        """Compute the kernel rows of these rows that are missing."""

    is_whole: bool  # all kernel rows are computed

    def make_worst(self, found: Slopes) -> int:
        """Compute kernel rows of some rows that violate most; return how many."""


class KernelBlock(NamedTuple):
    """Kernel values among the rows of a working set, without the offset.

    Parameters
    ----------
    lines : ndarray of shape (n_lines, width)
        Kernel rows.
    slots : int64 ndarray
        Which of them belongs to each row of the set.
    places : int64 ndarray or None
        Column of each row of the set; None: the first ones, in order.
    diagonal : ndarray or None
        The diagonal of K. None: it is read from the kernel rows.
    growing : Growing or None
        Computes kernel rows of rows whose slots are -1; None: all are computed.
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
    newton: NewtonSteps | None = None,
    settings: SetSettings = USUAL,
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
        A constant added to K.
    epsilon : float
        The factor of −Σ |v|.
    tol : float
        Violation of the optimality conditions at which the set is solved.
    max_steps : int
    workspace : uint8 ndarray or None
        Memory to use again.
    newton : NewtonSteps or None
        The schedule of Newton steps; None: there are none.
    settings : SetSettings

    Returns
    -------
    Solved
    """
    n, left, gain, own = len(v), max_steps, 0.0, settings
    memory = {} if workspace is None else {"workspace": workspace}
    values = _values(block) | {"lo": bounds[0], "hi": bounds[1]}
    now = _grown(block, g, v, bounds, balanced, epsilon, tol, own)
    few: Array | None = None  # the rows that steps use; None: all
    while True:
        size, most = (n, own.soon * n if n >= own.worth_shrinking else left) if few is None else (len(few), left)
        asked = min(max(1, own.call_work // max(1, size)), left, most)
        if newton is not None and newton.least_wait(n) <= asked * (size + STEP):
            free = np.flatnonzero((v > bounds[0]) & (v < bounds[1]) & (v != 0))
            wait = newton.wait(n, len(free))
            if wait <= 0:
                if block.growing is not None:
                    block.growing.make(free)
                risen = newton_step(block, g, v, bounds, free, balanced=balanced, offset=offset, epsilon=epsilon)
                newton.made(risen)
                gain += risen
                wait = newton.wait(n, len(free))
            asked = int(min(asked, wait / (size + STEP) + 1))
        how = {"balanced": balanced, "offset": offset, "epsilon": epsilon, "max_steps": asked, **memory}
        if few is None:
            made, risen, violation, middle = core.smo(**values, g=g, v=v, tol=now, **how)
        else:
            made, risen = _steps_among(few, block, g, v, bounds, tol=max(now, own.few_share * violation), **how)
        left, gain = left - made, gain + risen
        if newton is not None:
            newton.note(made, size, risen)
        is_over = not left or is_time_over()
        if few is None and (made < asked or is_over):
            if made == asked or now <= tol or is_over:
                return Solved(max_steps - left, gain, violation, middle)
            now = _grown(block, g, v, bounds, balanced, epsilon, tol, own) if made else tol
        elif is_over or n < own.worth_shrinking or (few is not None and not made):
            few = None
        else:
            few, violation = _movable(g, v, bounds, balanced, epsilon, now, own.shrunk_share)


def _movable(
    g: Array, v: Array, bounds: tuple[Array, Array], balanced: bool, epsilon: float, tol: float, share: float
) -> tuple[Array | None, float]:
    """Return the rows that can be in a violating pair, and the violation; None if steps should be made among all."""
    up, down, highest, lowest = slopes(v, g, *bounds, epsilon, balanced)
    few = np.flatnonzero((up > lowest) | (down < highest))
    is_worth_it = highest - lowest > tol and len(few) <= share * len(v)
    return few if is_worth_it else None, highest - lowest


def _values(block: KernelBlock) -> dict[str, Any]:
    """Return the arguments that `core.smo` takes from a block."""
    return {"lines": block.lines, "slots": block.slots, "places": block.places, "diagonal": block.diagonal}


def _steps_among(
    few: Array, block: KernelBlock, g: Array, v: Array, bounds: tuple[Array, Array], **how: Any
) -> tuple[int, float]:
    """Take steps among few rows and update g of all; return the number of steps and how much D rose."""
    part = KernelBlock(
        block.lines,
        block.slots[few],
        few if block.places is None else block.places[few],
        None if block.diagonal is None else block.diagonal[few],
    )
    own_g, own_v = g[few], v[few]
    made, gain, _, _ = core.smo(**_values(part), lo=bounds[0][few], hi=bounds[1][few], g=own_g, v=own_v, **how)
    change = own_v - v[few]
    moved = np.flatnonzero(change)
    if len(moved):
        g -= products(block, few[moved], change[moved]) + how["offset"] * change.sum()
    g[few], v[few] = own_g, own_v
    return made, gain


def _grown(
    block: KernelBlock,
    g: Array,
    v: Array,
    bounds: tuple[Array, Array],
    balanced: bool,
    epsilon: float,
    tol: float,
    own: SetSettings,
) -> float:
    """Compute kernel rows of rows that violate most; return the violation to solve those with kernel rows to."""
    if block.growing is None:
        return tol
    found = slopes(v, g, *bounds, epsilon, balanced)
    violation = found.highest - found.lowest
    if violation <= tol:
        return tol
    n_made = block.growing.make_worst(found)
    share = own.grown_share if n_made else own.alone_share
    return tol if block.growing.is_whole else max(tol, share * violation)
