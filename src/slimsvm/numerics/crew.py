"""Threads that wait inside compiled code for the next piece of work, and share it out without a word to Python.

To wake a sleeping thread takes 0.05 to 1 ms, and every turn at the interpreter's lock costs some of that again: more
than most steps of a pursuit take. A crew's helpers stay awake for a short time after each piece of work, looking at
counters, and do their part of a function of many tiles by its address and that of its operands. Who leads never waits
for a helper that has not begun; which of them does what leaves no trace in the result.

    @njit(cache=True, nogil=True)
    def share_squares(work, before, after):        # what Python calls, by `share`
        share_out(squares, work, before, after)    # squares(*before, lo, hi, *after) for ranges lo, hi of tiles

Tasks, ranges of tiles, have numbers that only grow, over all work a crew ever does. Counters of ``sync``, those that
change often each in a cache line of its own:

    NEXT             number of the next task to be taken
    LIMIT            tasks below it may be taken
    DONE             tasks done
    FUNCTION, DATA   addresses of the function and of its arguments
    FIRST, TILES     number of the first task, and the tiles that the tasks up to LIMIT share
    PAUSE            address of the system's function that sleeps for some microseconds, or 0
    LOOKS            looks at the counters before a helper goes to sleep
    AWAKE + i        1 while helper i looks for work
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.team import DONE, LIMIT, NEXT, add, load, store, swap_if
from slimsvm.numerics.threads import is_worker, usable_cores

FUNCTION, DATA, FIRST, TILES, PAUSE, LOOKS, AWAKE = range(48, 55)
# Tasks for each thread, so that one slow core does not hold the others up.
TASKS_PER_THREAD = 4
# Looks at the counters before a helper goes to sleep (milliseconds where every thread has a core, else microseconds),
# and before the leader does, for PAUSE_LENGTH microseconds, lest it keep a helper from the core that it waits for.
MANY_LOOKS, FEW_LOOKS, PATIENCE, PAUSE_LENGTH = 150_000, 100, 10_000, 20
# Microseconds of one thread from which work is shared with helpers who are awake, and from which others are woken.
WORTH_SHARING, WORTH_WAKING = 10.0, 200.0

intrinsic: Any = _intrinsic
_ADDRESSES = (types.intp,) * 3


@intrinsic
def _address_of(typingctx, task, before, after):
    """Address of a function (lo, hi, address of (before, after)) that calls task(*before, lo, hi, *after)."""
    operands = types.Tuple((before, after))
    signature = task.get_call_type(typingctx, (*before, types.intp, types.intp, *after), {})

    def codegen(context, builder, _, args):
        convention = context.call_conv
        of_addresses = convention.get_function_type(types.none, _ADDRESSES)
        function = ir.Function(builder.module, of_addresses, builder.module.get_unique_name("shared_task"))
        function.linkage = "internal"
        inside = ir.IRBuilder(function.append_basic_block())
        lo, hi, data = convention.get_arguments(function)
        place = inside.inttoptr(data, context.get_value_type(operands).as_pointer())
        first, last = (cgutils.unpack_tuple(inside, part) for part in cgutils.unpack_tuple(inside, inside.load(place)))
        context.get_function(task, signature)(inside, [*first, lo, hi, *last])
        convention.return_value(inside, context.get_dummy_value())
        return builder.ptrtoint(function, context.get_value_type(types.intp))

    return types.intp(task, before, after), codegen


@intrinsic
def _place_of(typingctx, operands):
    """Address of a copy of the operands that lasts as long as the caller."""

    def codegen(context, builder, signature, args):
        return builder.ptrtoint(cgutils.alloca_once_value(builder, args[0]), context.get_value_type(types.intp))

    return types.intp(operands), codegen


@intrinsic
def _call(typingctx, function, lo, hi, data):
    """Call what `_address_of` gave."""

    def codegen(context, builder, signature, args):
        convention = context.call_conv
        of_addresses = convention.get_function_type(types.none, _ADDRESSES)
        called = builder.inttoptr(args[0], of_addresses.as_pointer())
        convention.call_function(builder, called, types.none, _ADDRESSES, args[1:])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp, types.intp), codegen


@intrinsic
def _call_system(typingctx, function, number):
    """Call a C function of one unsigned number."""

    def codegen(context, builder, signature, args):
        plain = ir.FunctionType(ir.IntType(32), [ir.IntType(32)])
        builder.call(builder.inttoptr(args[0], plain.as_pointer()), [builder.trunc(args[1], ir.IntType(32))])
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), codegen


@njit(nogil=True)
def _do_one(sync):
    """Do a task if there is one, and say whether."""
    task = load(sync, NEXT)
    limit = load(sync, LIMIT)
    if task >= limit:
        return False
    # What is read here is of the task if it is still the next one afterwards: no other work is begun before it is done.
    function, data, first, n_tiles = sync[FUNCTION], sync[DATA], sync[FIRST], sync[TILES]
    if swap_if(sync, NEXT, task, task + 1):
        n_tasks = limit - first
        _call(function, n_tiles * (task - first) // n_tasks, n_tiles * (task - first + 1) // n_tasks, data)
        add(sync, DONE, 1)
    return True


@njit(nogil=True)
def _lead(sync, function, data, n_tiles, n_tasks):
    """Do the tasks as the one of the crew whose work it is, and wait for those that others have taken."""
    sync[FUNCTION], sync[DATA], sync[FIRST], sync[TILES] = function, data, sync[LIMIT], n_tiles
    limit = sync[LIMIT] + n_tasks
    store(sync, LIMIT, limit)
    while _do_one(sync):
        pass
    patience = PATIENCE
    while load(sync, DONE) < limit:
        patience -= 1
        if patience == 0:
            if sync[PAUSE] != 0:
                _call_system(sync[PAUSE], PAUSE_LENGTH)
            patience = PATIENCE


@njit(nogil=True)
def share_out(task, work, before, after):
    """Call task(*before, lo, hi, *after) for ranges that cover all tiles, by all of the crew who are awake.

    ``work`` is (sync, tiles, tasks). The task is compiled code that raises nothing; what it returns is lost.
    """
    sync, n_tiles, n_tasks = work
    _lead(sync, _address_of(task, before, after), _place_of((before, after)), n_tiles, n_tasks)


@njit(cache=True, nogil=True)
def serve(sync, me):
    """Do tasks as helper ``me``, until none was there for some time."""
    looks = sync[LOOKS]
    while looks > 0:
        looks = sync[LOOKS] if _do_one(sync) else looks - 1
    store(sync, AWAKE + me, 0)


def _pause_address() -> int:
    """Address of the C function that sleeps for so many microseconds; 0 where there is none."""
    try:
        function = ctypes.CDLL(None).usleep
    except (AttributeError, OSError, TypeError):
        return 0
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class _Crew:
    """Helpers with their counters; one piece of work at a time is theirs."""

    def __init__(self, n_helpers: int) -> None:
        self.sync = np.zeros(AWAKE + n_helpers, np.int64)
        self.sync[PAUSE] = _pause_address()
        self.sync[LOOKS] = MANY_LOOKS if n_helpers < usable_cores() else FEW_LOOKS
        # Of every helper: free once it has been woken.
        self.asleep = [threading.Lock() for _ in range(n_helpers)]
        for me, asleep in enumerate(self.asleep):
            asleep.acquire()
            try:
                threading.Thread(target=self._help, args=(me, asleep), name="slimsvm", daemon=True).start()
            except RuntimeError:  # no more threads: at the interpreter's exit, or the system's limit
                del self.asleep[me:]
                break

    def _help(self, me: int, asleep: threading.Lock) -> None:
        while True:
            asleep.acquire()
            serve(self.sync, me)

    def wake(self) -> None:
        """Wake those who sleep. One who falls asleep just now is missed, which only costs its help."""
        for i, asleep in enumerate(self.asleep, AWAKE):
            if not self.sync[i]:
                self.sync[i] = 1
                asleep.release()


_free: dict[int, list[_Crew]] = {}  # crews without work, by their helpers; taking one and giving it back are atomic


def share(compiled: Any, before: tuple, after: tuple, n_tiles: int, n_jobs: int, cost: float) -> None:
    """Have a function that `share_out`s a task do so.

    Parameters
    ----------
    compiled : compiled function (work, before, after)
    before, after : tuple
        The task's operands before and after the bounds of its tiles.
    n_tiles : int
    n_jobs : int
        Threads (as `resolve_n_jobs` returns it), the calling one included.
    cost : float
        Microseconds that one thread takes for all of it, about.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.numerics.crew import share
    >>> from slimsvm.numerics.subspace import share_times_tiles
    >>> out = np.empty((3, 1))
    >>> share(share_times_tiles, (np.eye(3), np.ones((3, 1))), (out,), 1, 2, 1.0)
    >>> out.ravel()
    array([1., 1., 1.])
    """
    if n_tiles <= 0:
        return
    n_helpers = min(n_jobs, n_tiles) - 1
    if n_helpers <= 0 or cost < WORTH_SHARING or is_worker():
        compiled((np.zeros(AWAKE, np.int64), n_tiles, 1), before, after)
        return
    crews = _free.setdefault(n_jobs - 1, [])
    try:
        crew = crews.pop()
    except IndexError:
        crew = _Crew(n_jobs - 1)
    try:
        if cost >= WORTH_WAKING:
            crew.wake()
        compiled((crew.sync, n_tiles, min(n_tiles, TASKS_PER_THREAD * n_jobs)), before, after)
    finally:
        crews.append(crew)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free.clear)  # threads do not survive a fork
