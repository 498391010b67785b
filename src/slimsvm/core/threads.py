"""Threads over fixed tiles, and BLAS held to one thread meanwhile."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np
import scipy.linalg.cython_blas  # noqa: F401 (the BLAS of compiled code: it must be loaded to be held to one thread)
import threadpoolctl
from threadpoolctl import ThreadpoolController

from slimsvm.core.clock import present_limit, under

RANGES_PER_THREAD = 4  # so that one slow core does not hold the others up


@cache
def _cores_by_quota(n_cores: int) -> int:
    """Return how many of ``n_cores`` a container's quota (cgroup) and the user's LOKY_MAX_CPU_COUNT leave.

    Looked up once: joblib takes longer to find it than a row's scores take.
    """
    import joblib  # imported here: processes that only predict may do without

    return min(n_cores, joblib.cpu_count())


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity, a container's quota and LOKY_MAX_CPU_COUNT."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return _cores_by_quota(n_cores)


def _cores_of_worker() -> int | None:
    """Return the cores of one of several workers (joblib, multiprocessing, our own pool); None if this is no worker.

    A process of joblib's default backend has what joblib gives to compiled code in it: the cores over the number of
    workers, or ``inner_max_num_threads``. Others have one.
    """
    process = multiprocessing.current_process()
    if is_worker() or process.daemon:
        return 1
    parallel = sys.modules.get("joblib.parallel")
    nesting = 0 if parallel is None else parallel.get_active_backend()[0].nesting_level or 0
    if nesting == 1 and type(process).__module__.startswith("joblib.externals.loky"):
        given = os.environ.get("OMP_NUM_THREADS", "")
        return max(1, min(usable_cores(), int(given))) if given.isdecimal() else 1
    return 1 if nesting else None


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for.

    Parameters
    ----------
    n_jobs : int or None
        None: all cores of `usable_cores`; inside a process of joblib's the share of them that joblib gives it, 1 inside
        other workers. Negative: that many from the end as in joblib (-1 all cores, -2 all but one). Otherwise the
        number itself.

    Returns
    -------
    int
        At least 1.

    Raises
    ------
    ValueError
        ``n_jobs`` is 0.
    TypeError
        ``n_jobs`` is not an integer.

    Examples
    --------
    >>> from slimsvm.core.threads import resolve_n_jobs
    >>> resolve_n_jobs(3)
    3
    """
    if n_jobs is None:
        return _cores_of_worker() or usable_cores()
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)):
        raise TypeError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: give a positive number of threads, -1 for all cores, or None")
    if n_jobs < 0:
        return max(1, usable_cores() + 1 + int(n_jobs))
    return int(n_jobs)


_here = threading.local()
# Helpers, threads that wait at a queue for calls; a thread takes longer to start than most work. Taking one from the
# list and giving it back are atomic.
_idle: list[SimpleQueue[_Call]] = []


def is_worker() -> bool:
    """Whether this thread already works for another one, beside other threads."""
    return getattr(_here, "is_worker", False)


class _Call:
    """A function for a helper to call, unless the asking thread takes the call back first."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function, self.limit = function, present_limit()
        # Plain locks instead of futures: they are a tenth of the time from one thread to the other.
        self.begun, self.ended = threading.Lock(), threading.Lock()
        self.ended.acquire()
        self.error: BaseException | None = None
        self.is_over = False

    def make(self) -> None:
        """Call the function, where the call was not taken back."""
        if self.begun.acquire(blocking=False):
            try:
                with under(self.limit):
                    self.function()
            except BaseException as error:
                self.error = error
        self.is_over = True
        self.ended.release()

    def wait(self) -> None:
        """Wait for the end of the call; one that has not begun is taken back: it has nothing left to do.

        After Ctrl-C it may be called again: what was taken back is over, too, once the helper has met it.
        """
        if not self.is_over and not self.begun.acquire(blocking=False):
            self.ended.acquire()


def _serve(calls: SimpleQueue[_Call]) -> None:
    """Make one call from the queue after another, in a helper's thread."""
    _here.is_worker = True
    while True:
        calls.get().make()


def _submit(function: Callable[[], Any], times: int) -> list[tuple[SimpleQueue[_Call], _Call]]:
    """Have helpers call the function; fewer than asked for where the system starts no more threads."""
    asked = []
    for _ in range(times):
        try:
            helper = _idle.pop()
        except IndexError:
            helper = SimpleQueue()
            try:
                threading.Thread(target=_serve, args=(helper,), name="slimsvm", daemon=True).start()
            except RuntimeError:  # at the interpreter's exit, or the system's limit
                break
        asked.append((helper, _Call(function)))
        helper.put(asked[-1][1])
    return asked


def _wait_for(asked: list[tuple[SimpleQueue[_Call], _Call]]) -> None:
    """Wait for all calls, whose helpers are idle again then; Ctrl-C counts after that.

    Helpers write where the caller looks next, be it for the best model so far.
    """
    waiting, interrupt = list(asked), None
    while waiting:
        try:
            waiting[-1][1].wait()
            _idle.append(waiting.pop()[0])
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def run_together(function: Callable[[], Any], n_jobs: int) -> None:
    """Call ``function()`` in this thread and in up to n_jobs - 1 others, which share out the work between them.

    A call must return when there is nothing left to do, and none may count on the others: helpers come when they can,
    and inside another call's worker there are none.

    Parameters
    ----------
    function : callable () -> None
    n_jobs : int
        Number of threads (as `resolve_n_jobs` returns it), the calling one included.
    """
    if n_jobs <= 1 or is_worker():
        function()
        return
    asked = _submit(function, n_jobs - 1)
    try:
        function()
    finally:
        _wait_for(asked)
    for _, call in asked:
        if call.error is not None:
            raise call.error


def run_tiles(function: Callable[[int, int], Any], n_tiles: int, n_jobs: int) -> None:
    """Call ``function(lo, hi)`` over contiguous ranges that cover ``range(n_tiles)``.

    Each range is handled by exactly one call; which thread makes it is left open, so the function must write only to
    places of its own tiles. With one thread or one tile, and inside another call's worker, it runs inline.

    Parameters
    ----------
    function : callable (lo, hi) -> None
    n_tiles : int
        Number of tiles.
    n_jobs : int
        Number of threads (as `resolve_n_jobs` returns it), the calling one included.
    """
    if n_tiles <= 0:
        return
    n_jobs = min(n_jobs, n_tiles)
    if n_jobs == 1 or is_worker():
        function(0, n_tiles)
        return
    n_ranges = min(n_tiles, n_jobs * RANGES_PER_THREAD)
    ranges = [(n_tiles * i // n_ranges, n_tiles * (i + 1) // n_ranges) for i in reversed(range(n_ranges))]

    def drain() -> None:
        while True:
            try:
                bounds = ranges.pop()
            except IndexError:
                return
            try:
                function(*bounds)
            except BaseException:
                ranges.clear()
                raise

    run_together(drain, n_jobs)


_blas_lock = threading.Lock()
_blas_holders = 0
_blas_limiter: Any = None
_controllers: tuple[ThreadpoolController, ThreadpoolController] | None = None
_controllers_modules = 0


def _blas_and_openmp() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return controllers of the BLAS and OpenMP libraries; the search is repeated after imports of compiled modules.

    The search takes some 8 ms.
    """
    global _controllers, _controllers_modules
    n_modules = len(sys.modules)
    if _controllers is not None and _controllers_modules != n_modules:
        later = list(sys.modules.values())[min(_controllers_modules, n_modules) :]
        if any(not str(getattr(module, "__file__", None) or ".py").endswith(".py") for module in later):
            _controllers = None
    if _controllers is None:
        everything = ThreadpoolController()
        _controllers = everything.select(user_api="blas"), everything.select(user_api="openmp")
    _controllers_modules = n_modules
    return _controllers


class _OneThread:
    """Holds libraries to one thread; libraries that have one thread anyway are left alone."""

    def __init__(self, controller: ThreadpoolController) -> None:
        self._before = []
        for library in controller.lib_controllers:
            n_threads = library.get_num_threads()
            if n_threads is not None and n_threads != 1:
                self._before.append((library, n_threads))
                library.set_num_threads(1)

    def restore(self) -> None:
        """Give the libraries as many threads as before."""
        for library, n_threads in self._before:
            library.set_num_threads(n_threads)


def _take_control() -> None:
    """Let this thread set the number of BLAS threads, and any other one later: threadpoolctl binds it to the first."""
    clear = getattr(getattr(threadpoolctl, "OpenBLASController", None), "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


def _give_blas_back() -> None:
    """Let BLAS have as many threads as before it was held."""
    _take_control()
    _blas_limiter.restore()
    _take_control()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS (in the process) and OpenMP (in this thread) to one thread: results must not depend on their number.

    May be nested, which costs nothing, and entered from several Python threads at once: BLAS gets its threads back when
    the last one leaves.

    Examples
    --------
    >>> from slimsvm.core.threads import one_blas_thread
    >>> with one_blas_thread():
    ...     pass
    """
    global _blas_holders, _blas_limiter
    if getattr(_here, "holds_blas", False):
        yield
        return
    with _blas_lock:
        blas, openmp = _blas_and_openmp()
        if _blas_holders == 0:
            _take_control()
            _blas_limiter = _OneThread(blas)
        _blas_holders += 1
    _here.holds_blas = True
    try:
        own = _OneThread(openmp)
        try:
            yield
        finally:
            own.restore()
    finally:
        _here.holds_blas = False
        with _blas_lock:
            _blas_holders -= 1
            if _blas_holders == 0:
                _give_blas_back()


_locked: weakref.WeakSet[Any] = weakref.WeakSet()


def renew_lock_after_fork(owner: Any) -> None:
    """Make a new ``_lock`` for the owner in a forked child, where the thread that holds it does not exist."""
    _locked.add(owner)


def _after_fork_in_child() -> None:
    """Start afresh in the child of a fork: threads do not survive it, and only this thread may hold BLAS."""
    global _blas_lock, _blas_holders
    _idle.clear()
    _blas_lock = threading.Lock()
    for owner in list(_locked):
        owner._lock = threading.Lock()
    _here.is_worker = False
    others_held, _blas_holders = _blas_holders > 0, int(getattr(_here, "holds_blas", False))
    if others_held and not _blas_holders:
        _give_blas_back()


if hasattr(os, "register_at_fork"):
    # No fork while a thread is half-way through changing the number of BLAS threads.
    os.register_at_fork(
        before=lambda: _blas_lock.acquire(),
        after_in_parent=lambda: _blas_lock.release(),
        after_in_child=_after_fork_in_child,
    )
