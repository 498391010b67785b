"""Threads over tiles, and BLAS held to one thread."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky.backend import context
from threadpoolctl import ThreadpoolController, threadpool_info

import slimsvm
from slimsvm.core import threads
from slimsvm.core.threads import one_blas_thread, resolve_n_jobs, run_tiles, run_together
from slimsvm.lazy import made_once
from threads_for_tests import in_threads


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_resolve_n_jobs():
    cores = min(len(os.sched_getaffinity(0)), int(os.environ.get("LOKY_MAX_CPU_COUNT", "1000")))
    assert resolve_n_jobs(None) == cores
    assert resolve_n_jobs(-1) == cores
    assert resolve_n_jobs(-cores - 5) == 1
    assert resolve_n_jobs(3) == 3
    assert resolve_n_jobs(np.int64(2)) == 2


@pytest.fixture
def cores(monkeypatch):
    """A process that may run on eight cores, with no quota; ``quota(n)`` gives it one."""

    def quota(n):
        monkeypatch.setattr(context, "_cpu_count_cgroup", lambda os_cpu_count: n)
        threads._cores_by_quota.cache_clear()

    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    quota(8)
    yield quota
    threads._cores_by_quota.cache_clear()


def test_a_quota_of_a_container_is_kept(cores):
    assert resolve_n_jobs(None) == resolve_n_jobs(-1) == 8
    cores(3)
    assert resolve_n_jobs(None) == resolve_n_jobs(-1) == 3
    assert resolve_n_jobs(-2) == 2
    assert resolve_n_jobs(5) == 5


def test_an_affinity_under_the_quota_counts(cores, monkeypatch):
    cores(3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4, 5}, raising=False)
    assert resolve_n_jobs(None) == 2


def test_the_user_can_limit_the_cores_as_for_joblib(cores, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "2")
    assert resolve_n_jobs(None) == 2


@pytest.mark.parametrize(
    ("n_jobs", "error"), [(0, ValueError), (1.5, TypeError), ("all", TypeError), (True, TypeError)]
)
def test_bad_n_jobs_is_named(n_jobs, error):
    with pytest.raises(error, match="n_jobs"):
        resolve_n_jobs(n_jobs)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_joblib_worker_has_its_share_of_the_cores(backend):
    """What joblib gives it for compiled code: of processes the cores over the workers, of threads one."""
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(resolve_n_jobs)(None) for _ in range(4))
    share = min(joblib.cpu_count() // 2, threads.usable_cores()) if backend == "loky" else 1
    assert found == [max(1, share)] * 4
    assert joblib.Parallel(n_jobs=2, backend=backend)([joblib.delayed(resolve_n_jobs)(2)]) == [2]


def test_a_joblib_worker_has_what_the_user_gives_it():
    with joblib.parallel_config("loky", inner_max_num_threads=3):
        found = joblib.Parallel(n_jobs=2)(joblib.delayed(resolve_n_jobs)(None) for _ in range(2))
    assert found == [min(3, threads.usable_cores())] * 2


@pytest.mark.parametrize("n_tiles", [0, 1, 2, 3, 17, 1000])
@pytest.mark.parametrize("n_jobs", [1, 2, 4, 33])
def test_every_tile_once(n_tiles, n_jobs):
    count, lock = np.zeros(n_tiles, int), threading.Lock()

    def function(lo, hi):
        with lock:
            count[lo:hi] += 1

    run_tiles(function, n_tiles, n_jobs)
    assert (count == 1).all()


def test_several_threads_take_part():
    meeting = threading.Barrier(3, timeout=20)  # passes only when three calls are under way at once
    seen = set()

    def function(lo, hi):
        if lo == 0 or threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            meeting.wait()

    run_tiles(function, 3, 3)
    assert len(seen) == 3


def test_one_thread_runs_in_the_caller():
    seen = []
    run_tiles(lambda lo, hi: seen.append((lo, hi, threading.get_ident())), 40, 1)
    assert seen == [(0, 40, threading.get_ident())]


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("bad", [0, 13, 39])
def test_exceptions_come_out(n_jobs, bad):
    def function(lo, hi):
        if lo <= bad < hi:
            raise RuntimeError("tile 13")

    with pytest.raises(RuntimeError, match="tile 13"):
        run_tiles(function, 40, n_jobs)
    run_tiles(lambda lo, hi: None, 40, n_jobs)


def test_helpers_are_waited_for_and_work_again_afterwards():
    inside, seen, main = threading.Event(), [], threading.get_ident()

    def function():
        if threading.get_ident() == main:
            assert inside.wait(timeout=20)
            return
        inside.set()
        time.sleep(0.01)
        seen.append(1)

    run_together(function, 2)
    assert seen == [1]
    meeting = threading.Barrier(2, timeout=20)
    run_together(meeting.wait, 2)
    run_together(meeting.wait, 2)


def test_a_call_that_no_helper_began_is_taken_back():
    call = threads._Call(lambda: pytest.fail("was called"))
    call.wait()
    call.make()
    assert call.error is None


@pytest.mark.parametrize("times", [1, 3])
def test_an_interrupt_counts_when_helpers_have_ended(times):
    """Helpers wrote on where the caller looked for the best model so far."""
    caller, begun, ended = threading.get_ident(), threading.Event(), threading.Event()
    former = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it

    def work():
        if threading.get_ident() == caller:
            begun.wait(10)
            return
        begun.set()
        for _ in range(times):
            time.sleep(0.05)
            signal.pthread_kill(caller, signal.SIGINT)
        time.sleep(0.1)
        ended.set()

    run_together(lambda: None, 2)
    n_idle = len(threads._idle)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_together(work, 2)
    finally:
        signal.signal(signal.SIGINT, former)
    assert ended.is_set()
    assert len(threads._idle) == n_idle
    test_every_tile_once(100, 2)


def test_a_call_that_is_waited_for_twice():
    """Ctrl-C comes when the call was taken back, or is over, and before the wait has returned."""
    call = threads._Call(lambda: None)
    call.wait()
    call.make()
    call.wait()
    call.wait()
    other = threads._Call(lambda: None)
    other.make()
    other.wait()
    other.wait()


def test_helpers_let_go_of_what_they_worked_on():
    array = np.zeros(10)
    alive = weakref.ref(array)
    meeting = threading.Barrier(2, timeout=20)

    def function(array=array):
        array[0] = 1
        meeting.wait()

    run_together(function, 2)
    del array, function
    until = time.monotonic() + 20
    while alive() is not None and time.monotonic() < until:
        time.sleep(0.001)
    assert alive() is None


def test_nested_and_from_many_threads_at_once():
    count, lock = np.zeros((6, 20), int), threading.Lock()

    def outer(i):
        def function(lo, hi):
            run_tiles(lambda a, b: None, 8, 4)
            time.sleep(0.001)
            with lock:
                count[i, lo:hi] += 1

        run_tiles(function, 20, 2 + i)  # of growing size: the pool is replaced while others use it

    in_threads(outer, range(6))
    assert (count == 1).all()


def run_apart(code, *arguments, **environment):
    """Run code that forks in a process of its own: a fork beside the test runner's threads is not what is tested."""
    options = ["-W", "ignore::DeprecationWarning"]  # newer Pythons warn of any fork of a process with threads
    command = [sys.executable, *options, "-c", code, *arguments]
    subprocess.run(command, env=os.environ | environment, check=True, timeout=120)


# A child is made while `in_thread()` runs, which sets `begun`, and it ends with the status that `in_child()` returns.
FORK = """
thread = threading.Thread(target=in_thread)
thread.start()
assert begun.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(30)
    os._exit(in_child())
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
ended.set()
thread.join()
assert code == 0, code
"""


def test_after_a_fork():
    code = """
import os
import threading
from slimsvm.core.threads import one_blas_thread, run_tiles
def work():
    meeting = threading.Barrier(2, timeout=20)  # passes only when two threads take part
    run_tiles(lambda lo, hi: meeting.wait(), 2, 2)
    with one_blas_thread():
        return True
assert work()
child = os.fork()
if child == 0:
    os._exit(0 if work() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert work()
"""
    run_apart(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_while_another_thread_makes_what_is_made_once():
    """The thread computes a property of its examples for as long as the child lives, which fits."""
    code = """
import os
import signal
import threading
import numpy as np
from slimsvm import SVC
from slimsvm.tasks import Binary, Examples
X = np.random.default_rng(0).normal(size=(60, 2))
fit = lambda: SVC(n_jobs=1).fit(X, X[:, 0] > 0).predict(X)
fit()
begun, ended = threading.Event(), threading.Event()
class Slow:
    def sum(self):
        begun.set()
        ended.wait()
        return 1.0
def in_thread():
    return Examples(np.zeros(1), Slow()).total_weight
def in_child():
    fit()
    return 0
"""
    run_apart(code + FORK)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_forked_in_the_middle_of_a_fit_has_all_blas_threads():
    """Of fits by each solver in another thread, which waits after its first iteration for as long as the child lives.
    In the child, in the parent after the fit, and in a child of the thread that fits itself, after the fit.
    """
    code = """
import os
import signal
import sys
import threading
import warnings
import numpy as np
from threadpoolctl import threadpool_info
from slimsvm import SVC
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(120, 2))
y = (X[:, 0] * X[:, 1] > 0) * 1

def blas():
    return max((library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"), default=1)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

class Wait:
    def __init__(self, forks):
        self.begun, self.ended, self.forks, self.child = threading.Event(), threading.Event(), forks, None
    def setup(self, estimator, context):
        pass
    def teardown(self, estimator, context):
        pass
    def on_fit_task_begin(self, estimator, context, *, X=None):
        pass
    def on_fit_task_end(self, estimator, context, *, X=None):
        if context.task_name == "iteration" and not self.begun.is_set():
            if self.forks:
                self.child = os.fork()
            self.begun.set()
            if self.child is None:
                self.ended.wait(60)
        return False

before = blas()
for name in sys.argv[1:]:
    few = {"max_basis": 5} if name in ("refine", "cpsp", "low-rank", "bsca", "bsgd") else {}
    clf = SVC(solver=name, C=10, max_iter=2, **few)
    waits = Wait(False)
    thread = threading.Thread(target=lambda: clf.set_callbacks(waits).fit(X, y))
    thread.start()
    assert waits.begun.wait(60), name
    assert blas() == 1, name
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        found = blas()
        SVC().fit(X, y).predict(X)
        os._exit(0 if (found, blas()) == (before, before) else 1)
    assert ended(child) == 0, name
    waits.ended.set()
    thread.join()
    assert blas() == before, name
    waits = Wait(True)
    clf.set_callbacks(waits).fit(X, y)
    if waits.child == 0:
        os._exit(0 if blas() == before else 1)
    assert ended(waits.child) == 0 and blas() == before, name
"""
    solvers = [
        "exact",
        "exact-cuts",
        "uniform-cuts",
        "violated-cuts",
        "cpsp",
        "refine",
        "low-rank",
        "bcfw",
        "bsca",
        "bsgd",
        "lasvm",
        "cvm",
        "bvm",
    ]
    run_apart(code, *solvers, OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_reads_blocks_that_another_thread_is_reading():
    """The thread is within the function that makes a block for as long as the child lives."""
    code = """
import os
import signal
import threading
import numpy as np
from slimsvm import Blocks

begun, ended, parent = threading.Event(), threading.Event(), os.getpid()

def made():
    if os.getpid() == parent and threading.current_thread() is not threading.main_thread():
        begun.set()
        ended.wait(60)
    return np.ones((3, 2))

rows = Blocks([made, made], n_rows=[3, 3], cache_bytes=0)
def in_thread():
    return rows.slice(3, 6, np.float64)

def in_child():
    return 0 if in_thread().sum() == 6 else 1
"""
    run_apart(code + FORK)


def test_what_is_made_once_is_one_thing_for_all_threads():
    class Thing:
        @made_once
        def made(self):
            """A list."""
            meeting.wait()
            return []

    meeting, thing, found = threading.Barrier(4, timeout=20), Thing(), []
    in_threads(lambda _: found.append(thing.made), range(4))
    assert len(found) == 4
    assert all(each is thing.made for each in found)
    assert Thing.made.__doc__ == "A list."
    assert pickle.loads(pickle.dumps(vars(thing))) == {"made": []}


def test_no_property_has_the_lock_of_python_3_11():
    sources = sorted(Path(slimsvm.__file__).parent.rglob("*.py"))
    assert [path.name for path in sources if "import cached_property" in path.read_text()] == ["lazy.py"]


def test_blas_is_held_to_one_thread_and_let_go():
    before = blas_threads()
    with one_blas_thread():
        assert blas_threads() == {1}
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before
    with pytest.raises(RuntimeError, match="inside"), one_blas_thread():
        raise RuntimeError("inside")
    assert blas_threads() == before


def test_libraries_are_looked_for_again_only_after_compiled_modules_came(monkeypatch):
    looked = []

    def look():
        looked.append(1)
        return ThreadpoolController()

    monkeypatch.setattr(threads, "ThreadpoolController", look)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    slimsvm.SVC().fit(X, y)
    looked.clear()
    slimsvm.SVC().fit(X, y)
    monkeypatch.setitem(sys.modules, "plain", types.SimpleNamespace(__file__="plain.py"))
    slimsvm.SVC().fit(X, y)
    assert not looked
    monkeypatch.setitem(sys.modules, "compiled", types.SimpleNamespace(__file__="compiled.so"))
    slimsvm.SVC().fit(X, y)
    assert looked == [1]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
def test_helpers_sleep_when_there_is_no_work():
    """Those of the core and of Python; the system's names for what they do: S sleeps, R runs."""
    code = """
        import threading, time
        from pathlib import Path
        import numpy as np
        from slimsvm import core
        from slimsvm.core.library import library
        from slimsvm.core.threads import run_together

        values, total = np.ones((3000, 5)), np.zeros((5, 2))
        core.multiply_transposed(values=values, coef=np.ones((3000, 2)), out=total, n_threads=3, microseconds=1e6)
        run_together(threading.Barrier(2, timeout=20).wait, 2)
        assert library().slimsvm_times_woken() == 2

        def others():
            own = str(threading.get_native_id())
            tasks = [task for task in Path("/proc/self/task").iterdir() if task.name != own]
            return [(task / "stat").read_text().rsplit(")", 1)[1].split()[0] for task in tasks]

        until = time.monotonic() + 20
        while set(others()) != {"S"} and time.monotonic() < until:
            time.sleep(0.01)
        print(len(others()), set(others()))
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.strip() == "3 {'S'}", ended.stderr


def test_blas_comes_back_only_when_the_last_thread_leaves():
    before, inside, leave = blas_threads(), threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(timeout=20)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert inside.wait(timeout=20)
    assert blas_threads() == {1}
    leave.set()
    thread.join(timeout=20)
    assert blas_threads() == before
    assert threads._blas_holders == 0


def test_a_thread_other_than_the_first_may_be_the_one_that_holds():
    before, seen = blas_threads(), []

    def other():
        with one_blas_thread():
            seen.append(blas_threads())

    with one_blas_thread():
        pass
    thread = threading.Thread(target=other)
    thread.start()
    thread.join(timeout=20)
    assert seen == [{1}]
    assert blas_threads() == before


def test_openmp_is_held_in_every_thread():
    import sklearn.cluster  # noqa: F401 (brings OpenMP)

    def openmp_threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "openmp"}

    before, seen, inside, leave = openmp_threads(), [], threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            seen.append(openmp_threads())
            inside.set()
            leave.wait(timeout=20)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        assert openmp_threads() == {1}
        thread.start()
        assert inside.wait(timeout=20)
    assert openmp_threads() == before
    leave.set()
    thread.join(timeout=20)
    assert seen == [{1}]
