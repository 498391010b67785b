"""Threads that work through one long list of small tasks inside compiled code, without a word to Python in between.

A step of descent takes tens of microseconds to milliseconds: too short to hand its parts to a thread pool. Here every
thread is inside the same compiled function for many steps, and takes the next task by an atomic counter. Tasks come in
phases: those of a phase may be done in any order, and the leader opens the next phase when all of them are done and it
has done what must be done by one thread in between. No thread waits for a helper that has not started, so that one
thread alone comes through as well. Counters of ``sync``, each in a cache line of its own:

    NEXT    number of the next task to be taken
    LIMIT   tasks up to here may be taken; −1 when all is done
    DONE    tasks done
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from slimsvm.numerics.compiling import njit

NEXT, LIMIT, DONE, SYNC_SIZE = 0, 16, 32, 48
# Looks at the counters before a thread without work lets others run.
PATIENCE = 20_000

intrinsic: Any = _intrinsic
_yield = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return cgutils.get_item_pointer(context, builder, signature.args[0], array, [args[1]])


@intrinsic
def load(typingctx, array, index):
    """array[index], after which everything is seen that was written before the matching `store` or `add`."""

    def codegen(context, builder, signature, args):
        return builder.load_atomic(_place(context, builder, signature, args), "acquire", 8)

    return types.int64(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):
    """array[index] = value, atomically."""

    def codegen(context, builder, signature, args):
        builder.store_atomic(args[2], _place(context, builder, signature, args), "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), codegen


@intrinsic
def add(typingctx, array, index, value):
    """array[index] += value, atomically; returns the old value."""

    def codegen(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        return builder.atomic_rmw("add", place, args[2], "acq_rel")

    return types.int64(array, types.intp, types.int64), codegen


@intrinsic
def swap_if(typingctx, array, index, expected, value):
    """Atomically: if array[index] is ``expected`` set it to ``value``; returns whether."""

    def codegen(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        pair = builder.cmpxchg(place, args[2], args[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.intp, types.int64, types.int64), codegen


@njit(nogil=True)
def take(sync):
    """Number of a task that is now the caller's; −1: there is none at the moment."""
    task = load(sync, NEXT)
    if task < load(sync, LIMIT) and swap_if(sync, NEXT, task, task + 1):
        return task
    return -1


@njit(nogil=True)
def phase_done(sync):
    """Whether all tasks that may be taken are done."""
    return load(sync, DONE) == load(sync, LIMIT)


def run_team(work: Callable[[np.ndarray, bool], bool], n_jobs: int) -> None:
    """Call ``work(sync, is_leader)`` in this thread (the leader) and in n_jobs - 1 helpers, until it returns True.

    ``work`` returns False when it has looked for tasks in vain for some time, to be called again when others have had
    the processor. It returns True when LIMIT is −1, which the leader sets at the end.

    Examples
    --------
    >>> from slimsvm.numerics.team import run_team
    >>> run_team(lambda sync, is_leader: True, 2)
    """
    sync = np.zeros(SYNC_SIZE, np.int64)

    def loop(is_leader: bool) -> None:
        while not work(sync, is_leader):
            _yield()

    helpers = [threading.Thread(target=loop, args=(False,), daemon=True) for _ in range(n_jobs - 1)]
    try:
        for helper in helpers:
            helper.start()
        loop(True)
    finally:
        sync[LIMIT] = -1
        for helper in helpers:
            if helper.ident is not None:
                helper.join()
