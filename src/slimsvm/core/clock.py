"""The time limit of a fit. Everything that takes long checks it: calls into the core, passes over rows, loops.

    with time_limit(seconds) as limit:
        ...                              # raises OutOfTimeError once the time is over
    if limit.was_reached: ...            # the result depends on the clock

A limit holds for the thread that sets it and for the helpers of its `core.threads`. It reaches into everything that is
called, so that nothing has to be handed on. A limit that is not reached changes nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

# Limits shorter than this end a fit only after an iteration, so that small problems get a model.
LEAST_SECONDS = 0.5


class OutOfTimeError(Exception):
    """The time limit was reached; the state so far is as usable as after Ctrl-C."""


class Limit:
    """A time limit: when it ends, and whether it ended something.

    Parameters
    ----------
    seconds : float or None
        Seconds from now on; None: only the outer limit counts.
    outer : Limit or None
        The limit that contains it, and that it cannot outlast.
    least : float or None
        Seconds that work has in any case; None: half a second.

    Attributes
    ----------
    seconds : float
        The given seconds, no more than the outer limit's; infinite without.
    end : float
        The end by `time.perf_counter`.
    was_reached : bool
        Whether this limit, or one within it, ended something.
    """

    def __init__(self, seconds: float | None, outer: Limit | None, least: float | None = None) -> None:
        begun = time.perf_counter()
        self.seconds = inf if seconds is None else seconds
        least = LEAST_SECONDS if least is None else least
        self.end, self.interrupts_at = begun + self.seconds, begun + max(self.seconds, least)
        self.outer, self.was_reached = outer, False
        if outer is not None:
            self.seconds, self.end = min(self.seconds, outer.seconds), min(self.end, outer.end)
            self.interrupts_at = min(self.interrupts_at, outer.interrupts_at)

    def note(self) -> None:
        """Remember, in this limit and the outer ones, that the time ended something."""
        limit: Limit | None = self
        while limit is not None:
            limit.was_reached, limit = True, limit.outer


class _Here(threading.local):
    limit: Limit | None = None


here = _Here()


def present_limit() -> Limit | None:
    """Return the innermost limit of this thread."""
    return here.limit


class under:
    """Have this thread look at a limit, or at none, within a ``with`` statement."""

    def __init__(self, limit: Limit | None) -> None:
        self.limit = limit

    def __enter__(self) -> None:
        self.before, here.limit = here.limit, self.limit

    def __exit__(self, *error: object) -> None:
        here.limit = self.before


def no_limit() -> under:
    """Suspend the limits outside a ``with`` statement; limits set inside are as long as they ask for."""
    outer = present_limit()
    if outer is None:
        return under(None)
    limit = Limit(None, None)
    limit.seconds, limit.outer = outer.seconds, outer
    return under(limit)


@contextmanager
def time_limit(seconds: float | None, least: float | None = None) -> Iterator[Limit]:
    """Limit the seconds of a ``with`` statement, but to no less than ``least`` (None: half a second).

    Without seconds only limits outside hold.

    Examples
    --------
    >>> from slimsvm.core.clock import check_time, time_limit
    >>> with time_limit(60.0) as limit:
    ...     check_time()
    >>> limit.was_reached
    False
    """
    limit = Limit(seconds, present_limit(), least)
    with under(limit):
        yield limit


def share_of_time(share: float) -> float | None:
    """Return a share of the seconds that are left; None without a limit."""
    left = time_left()
    return None if left == inf else share * left


def time_left() -> float:
    """Return the seconds that are left, infinite without a limit."""
    limit = present_limit()
    return inf if limit is None else max(0.0, limit.end - time.perf_counter())


def is_time_over() -> bool:
    """Whether the time is over; the caller then ends its work."""
    limit = here.limit
    if limit is None or time.perf_counter() < limit.end:
        return False
    limit.note()
    return True


def check_time() -> None:
    """Raise `OutOfTimeError` if the time is over."""
    limit = here.limit
    if limit is not None and time.perf_counter() >= limit.interrupts_at:
        limit.note()
        raise OutOfTimeError
