r"""Steps within a working set: SMO on one or two variables, Newton steps on all free ones.

Steps on pairs keep Σ v; where there are bounds only, steps are on one variable or two.

Steps on pairs of variables settle soon which variables are at a bound, and then take long to find the values of the
free ones if C is large, since K between similar rows is nearly singular. A Newton step moves all free ones F together.
Their best change is

    max_d  s'd − ½ d'K_FF d,    balanced: Σ d_i = 0; if it is 2, those of v_i > 0 and those of v_i < 0,

with s the slopes of D: K_FF d = s − μ 1. What this would take beyond a bound is put on it, d_P = r_P, and the rest is
solved for again with the same factor K_FF = LL':  K_FF d = s − μ 1 − Σ_P λ_p e_p, a small system in μ and λ, until no
variable is beyond a bound. Those that should leave one are left to steps on pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import lapack

from slimsvm import core
from slimsvm.core.clock import is_time_over
from slimsvm.core.factors import cholesky, solve_factored
from slimsvm.parts.dual_ascent.dual import Box, Slopes

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
    """The result of `solve_set`."""

    n_steps: int
    gain: float  # the rise of D(v)
    violation: float  # the violation of the optimality conditions that is left
    middle: float  # LIBSVM's intercept, were the set all rows


class Growing(Protocol):
    """Kernel rows that are computed when they are needed."""

    def make(self, rows: Array) -> None:
        """Compute the kernel rows of these rows that are missing."""

    is_whole: bool  # all kernel rows are computed

    def make_worst(self, found: Slopes) -> int:
        """Compute kernel rows of some rows that violate most; return how many."""


class KernelBlock(NamedTuple):
    """Kernel values among the rows of a working set, without the offset."""

    values: Array  # (n_kernel_rows, width): kernel rows
    slots: Array  # int64: which of them belongs to each row of the set
    places: Array | None = None  # int64: column of each row of the set; None: the first ones, in order
    # The diagonal of K. None: it is read from the kernel rows.
    diagonal: Array | None = None
    growing: Growing | None = None  # computes kernel rows of rows whose slots are -1; None: all are computed


def solve_set(
    block: KernelBlock,
    g: Array,
    v: Array,
    box: Box,
    *,
    tol: float,
    max_steps: int,
    workspace: Array | None = None,
    newton: NewtonSteps | None = None,
    settings: SetSettings = USUAL,
) -> Solved:
    """Maximise D(v) over the variables of a working set, in v and g; when the time is over, the steps so far are all.

    Parameters
    ----------
    g, v : float64 ndarray of shape (n,)
    tol : float
        Violation of the optimality conditions at which the set is solved.
    workspace : uint8 ndarray or None
        Memory to use again.
    newton : NewtonSteps or None
        The schedule of Newton steps; None: there are none.
    """
    n, left, gain, own = len(v), max_steps, 0.0, settings
    memory = {} if workspace is None else {"workspace": workspace}
    steps = _steps(block, g, v, box, **memory)
    now = _grown(block, g, v, box, tol, own)
    few: Array | None = None  # the rows that steps use; None: all
    while True:
        size, most = (n, own.soon * n if n >= own.worth_shrinking else left) if few is None else (len(few), left)
        asked = min(max(1, own.call_work // max(1, size)), left, most)
        if newton is not None and newton.least_wait(n) <= asked * (size + STEP):
            free = np.flatnonzero(box.free(v))
            wait = newton.wait(n, len(free))
            if wait <= 0:
                if block.growing is not None:
                    block.growing.make(free)
                risen = newton_step(block, g, v, box, free)
                newton.made(risen)
                gain += risen
                wait = newton.wait(n, len(free))
            asked = int(min(asked, wait / (size + STEP) + 1))
        if few is None:
            made, risen, violation, middle = steps(tol=now, max_steps=asked)
        else:
            least = max(now, own.few_share * violation)
            made, risen = _steps_among(few, block, g, v, box, tol=least, max_steps=asked, **memory)
        left, gain = left - made, gain + risen
        if newton is not None:
            newton.note(made, size, risen)
        is_over = not left or is_time_over()
        if few is None and (made < asked or is_over):
            if made == asked or now <= tol or is_over:
                return Solved(max_steps - left, gain, violation, middle)
            now = _grown(block, g, v, box, tol, own) if made else tol
        elif is_over or n < own.worth_shrinking or (few is not None and not made):
            few = None
        else:
            few, violation = _movable(g, v, box, now, own.shrunk_share)


def _movable(g: Array, v: Array, box: Box, tol: float, share: float) -> tuple[Array | None, float]:
    """Return the rows that can be in a violating pair, and the violation; None if steps should be made among all."""
    found = box.slopes(v, g)
    few = np.flatnonzero((found.up > found.lowest) | (found.down < found.highest))
    is_worth_it = found.violation > tol and len(few) <= share * len(v)
    return few if is_worth_it else None, found.violation


def _steps(block: KernelBlock, g: Array, v: Array, box: Box, **how: Any) -> partial[Any]:
    """Return what takes compiled steps, given what else `core.smo` needs, ``tol`` and ``max_steps``.

    It returns their number, how much D rose, the violation that is left, and the intercept.
    """
    values, slots, places, diagonal, _ = block
    rows = {"values": values, "slots": slots, "places": places, "diagonal": diagonal}
    return partial(core.smo, **rows, g=g, v=v, **box._asdict(), **how)


def _steps_among(few: Array, block: KernelBlock, g: Array, v: Array, box: Box, **how: Any) -> tuple[int, float]:
    """Take steps among few rows and update g of all; return the number of steps and how much D rose."""
    part = KernelBlock(
        block.values,
        block.slots[few],
        few if block.places is None else block.places[few],
        None if block.diagonal is None else block.diagonal[few],
    )
    own_g, own_v, own_box = g[few], v[few], box._replace(lo=box.lo[few], hi=box.hi[few])
    made, gain, _, _ = _steps(part, own_g, own_v, own_box, **how)()
    change = own_v - v[few]
    moved = np.flatnonzero(change)
    if len(moved):
        g -= products(block, few[moved], change[moved]) + box.offset * change.sum()
    g[few], v[few] = own_g, own_v
    return made, gain


def _grown(block: KernelBlock, g: Array, v: Array, box: Box, tol: float, own: SetSettings) -> float:
    """Compute kernel rows of rows that violate most; return the violation to solve those with kernel rows to."""
    if block.growing is None:
        return tol
    found = box.slopes(v, g)
    if found.violation <= tol:
        return tol
    n_made = block.growing.make_worst(found)
    share = own.grown_share if n_made else own.alone_share
    return tol if block.growing.is_whole else max(tol, share * found.violation)


# The most free variables: factorising takes their number's third power. Chosen, not measured.
MOST_FREE = 3000
# Costs in entries of kernel rows that steps on pairs go through in the same time. Factorising for m free variables
# costs m³ / FACTOR, and Python costs OVERHEAD_OF_FEW for few variables, OVERHEAD for more. The first Newton step waits
# for FIRST more. A step on a pair costs STEP more than its rows. docs/experiments/exact_solver.md, "Unscaled data, few
# free rows", has how early a Newton step pays.
FACTOR, OVERHEAD_OF_FEW, OVERHEAD, FIRST, STEP = 45, 200_000, 2_000_000, 800_000, 100
# Added to the diagonal, in units of the rounding error of the least eigenvalue of kernel values.
RIDGE = 4.0
# The most rounds in which variables are put on their bounds, and the largest share of them.
ROUNDS, MOST_PINNED = 8, 1 / 4
# Up to this many variables reach their bounds one after the other (same entry).
FEW = 24
# Bytes for each number of K_FF: the factor, and twice the columns for a fourth of the variables.
BYTES = 12
# A Newton step may change sums that are kept by this share of Σ |v|.
SAME = 1e-12
# Kernel rows that are converted to float64 together.
CONVERTED = 256


class NewtonSteps:
    """The schedule of Newton steps: one comes when steps on pairs have cost as much, later if the last one gained less.

    Parameters
    ----------
    memory : int
        Bytes for a factor and what it is made of.
    """

    def __init__(self, memory: int) -> None:
        self.most_free = min(MOST_FREE, isqrt(memory // BYTES))
        self.patience, self.work, self.work_of_all, self.gain = 1.0, -FIRST, 0, 0.0

    def note(self, n_steps: int, n_rows: int, gain: float) -> None:
        """Count how many entries of kernel rows the steps on pairs went through, and how much they raised D."""
        self.gain += gain
        self.work += n_steps * (n_rows + STEP)
        self.work_of_all += n_steps * (n_rows + STEP)

    def hurry(self) -> None:
        """Make the next Newton step soon, as if half of the steps on pairs were new: the tolerance has changed."""
        self.patience, self.work, self.gain = 1.0, max(self.work, self.work_of_all // 2), 0.0

    def wait(self, n_rows: int, n_free: int) -> float:
        """Return how many entries of kernel rows steps go through before the next Newton step."""
        if not 0 < n_free <= self.most_free:
            return np.inf
        overhead = OVERHEAD_OF_FEW if n_free <= FEW else OVERHEAD
        return self.patience * max(n_rows**2, n_free**3 / FACTOR + overhead) - self.work

    def least_wait(self, n_rows: int) -> float:
        """Return the least `wait` for any number of free variables, since counting these takes time."""
        return self.patience * max(n_rows**2, OVERHEAD_OF_FEW) - self.work

    def made(self, risen: float) -> None:
        """Count a Newton step, and how much it raised D, if it did."""
        self.patience = 1.0 if risen > self.gain else 2.0 * self.patience
        self.work, self.gain = 0, 0.0


def newton_step(block: KernelBlock, g: Array, v: Array, box: Box, free: Array) -> float:
    """Move the free variables to where D is greatest, as far as their bounds allow, in v and g.

    Parameters
    ----------
    free : int64 ndarray
        Variables at no bound and not 0.

    Returns
    -------
    float
        The rise of D; 0 if nothing was changed.
    """
    lo, hi, balanced, offset, epsilon = box
    value = v[free]
    above = value > 0
    slope = g[free] - epsilon * np.sign(value)
    lowest = np.where(above, np.maximum(lo[free], 0.0), lo[free])
    highest = np.where(above, hi[free], np.minimum(hi[free], 0.0))
    least, most = lowest - value, highest - value
    best_change = _change_by_bounds if len(free) <= FEW else _best_change
    border = _border(value, balanced)
    change = best_change(_free_values(block, free, offset), slope, least, most, border)
    if change is None:
        return 0.0
    fall = products(block, free, change) + offset * change.sum()
    gain, curvature = float(slope @ change), float(change @ fall[free])
    if not gain > 0:
        return 0.0
    share = min(1.0, gain / curvature) if curvature > 0 else 1.0
    moved = np.clip(value + share * change, lowest, highest)
    moved = np.where(share * change == most, highest, np.where(share * change == least, lowest, moved))
    if balanced > 1 and np.abs((moved - value) @ border).max() > SAME * np.abs(value).sum():
        return 0.0
    v[free] = moved
    g -= share * fall
    return share * gain - 0.5 * share**2 * curvature


def _free_values(block: KernelBlock, free: Array, offset: float) -> Array:
    """Return K_FF in float64, with a constant added to the diagonal."""
    columns = free if block.places is None else block.places[free]
    K = np.empty((len(free), len(free)))
    for row, slot in zip(K, block.slots[free], strict=True):
        row[:] = block.values[slot][columns]
    ridge = RIDGE * np.finfo(block.values.dtype).eps * np.sqrt(len(free)) * float(np.diagonal(K).mean())
    K += offset
    K[np.diag_indices(len(free))] += ridge
    return K


def _border(value: Array, balanced: int) -> Array:
    """Return a column for each sum of the free variables that is kept: 1 where a variable is in it."""
    if balanced < 2:
        return np.ones((len(value), int(balanced)))
    sides = np.column_stack([value > 0, value < 0]).astype(np.float64)
    found: Array = sides[:, sides.any(axis=0)]
    return found


def _best_change(K: Array, slope: Array, least: Array, most: Array, border: Array) -> Array | None:
    """Return the best change, with variables that would cross a bound put on it; None if many would or K is
    singular.
    """
    n = len(slope)
    # The system is symmetric: a C-ordered matrix is its own transpose, which LAPACK need not copy.
    factor = cholesky(K.T, overwrite=True)
    if factor is None:
        return None
    solved = partial(solve_factored, factor)
    pinned, goal = np.zeros(0, np.int64), np.zeros(0)
    plain = solved(slope)
    # Columns K⁻¹1 and K⁻¹e_p, and the equations' rows: Σ d = 0, perhaps of either side, and d_P = goal.
    pushes, n_kept = solved(border) if border.shape[1] else border, border.shape[1]
    for _ in range(ROUNDS):
        left, right = pushes[pinned], plain[pinned] - goal
        if n_kept:
            left, right = np.vstack([border.T @ pushes, left]), np.concatenate([border.T @ plain, right])
        change = plain - pushes @ np.linalg.solve(left, right) if len(right) else plain.copy()
        change[pinned] = goal
        beyond = np.flatnonzero((change > most) | (change < least))
        if not len(beyond):
            return change
        if len(pinned) + len(beyond) > MOST_PINNED * n:
            return None
        pinned = np.concatenate([pinned, beyond])
        goal = np.concatenate([goal, np.where(change[beyond] > 0, most[beyond], least[beyond])])
        unit = np.zeros((n, len(beyond)), order="F")
        unit[beyond, np.arange(len(beyond))] = 1.0
        pushes = np.hstack([pushes, solved(unit)])
    return None


def _change_by_bounds(K: Array, slope: Array, least: Array, most: Array, border: Array) -> Array | None:
    """Return the same for few variables: go to the first bound on the way, drop its variable, and repeat."""
    change, open_ = np.zeros(len(slope)), np.arange(len(slope))
    while len(open_) > border.shape[1]:
        m = len(open_)
        kept = border[open_]
        kept = kept[:, kept.any(axis=0)]
        n_kept = kept.shape[1]
        system, right = np.zeros((m + n_kept, m + n_kept)), np.zeros(m + n_kept)
        system[:m, :m] = K[np.ix_(open_, open_)]
        system[m:, :m], system[:m, m:] = kept.T, kept
        right[:m] = (slope - K @ change)[open_]
        *_, solved, failed = lapack.dgesv(system, right, overwrite_a=1)
        along = solved[:m]
        if failed or not along @ right[:m] > 0:
            return change
        room = np.where(along > 0, most[open_] - change[open_], least[open_] - change[open_])
        share = np.divide(room, along, out=np.full(m, np.inf), where=along != 0)
        step = min(1.0, float(share.min()))
        change[open_] += step * along
        if step == 1.0:
            return change
        met = share <= step
        change[open_[met]] = np.where(along > 0, most[open_], least[open_])[met]
        open_ = open_[~met]
    return change


def products(block: KernelBlock, free: Array, change: Array) -> Array:
    """Return K change for all rows of the set, summed in float64."""
    n, total = len(block.slots), np.zeros(len(block.slots))
    for at in range(0, len(free), CONVERTED):
        rows = block.values[block.slots[free[at : at + CONVERTED]]]
        rows = rows[:, :n] if block.places is None else rows[:, block.places]
        total += change[at : at + CONVERTED] @ rows.astype(np.float64)
    return total
