"""Threads that share out compiled work among themselves."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from slimsvm.numerics import crew
from slimsvm.numerics.compiling import njit
from slimsvm.numerics.team import load, store
from slimsvm.numerics.threads import run_together


@njit(nogil=True)
def mark(values, factor, lo, hi, count, sums):
    for t in range(lo, hi):
        count[t] += 1
        for v in values:
            sums[t] += factor * v


@njit(cache=True, nogil=True)
def share_mark(work, before, after):
    crew.share_out(mark, work, before, after)


def marked(n_tiles, n_jobs, cost=1e9, length=1):
    count, sums, values = np.zeros(n_tiles, np.int64), np.zeros(n_tiles), np.ones(length)
    crew.share(share_mark, (values, 2.0), (count, sums), n_tiles, n_jobs, cost)
    return count, sums


@pytest.mark.parametrize("n_tiles", [0, 1, 2, 3, 17, 1000])
@pytest.mark.parametrize("n_jobs", [1, 2, 4, 9])
@pytest.mark.parametrize("cost", [0.0, 50.0, 1e9])
def test_every_tile_once(n_tiles, n_jobs, cost):
    for _ in range(3):
        count, sums = marked(n_tiles, n_jobs, cost, 3)
        assert (count == 1).all()
        assert (sums == 6.0).all()


@njit(nogil=True)
def meet(lo, hi, flags):
    """Task t is done well if the other one is begun meanwhile: by another thread."""
    for t in range(lo, hi):
        store(flags, t, 1)
        for _ in range(2_000_000_000):
            if load(flags, 1 - t) == 1:
                store(flags, 2 + t, 1)
                break


@njit(cache=True, nogil=True)
def share_meet(work, before, after):
    crew.share_out(meet, work, before, after)


def test_helpers_take_part_and_sleep_when_there_is_nothing_to_do(monkeypatch):
    monkeypatch.setattr(crew, "_free", {})
    monkeypatch.setattr(crew, "MANY_LOOKS", 10_000_000)
    monkeypatch.setattr(crew, "FEW_LOOKS", 10_000_000)
    crew.serve(np.zeros(crew.AWAKE + 1, np.int64), 0)  # both are compiled now
    crew.share(share_meet, (), (np.ones(4, np.int64),), 2, 1, 0.0)
    for _ in range(3):
        flags = np.zeros(4, np.int64)
        crew.share(share_meet, (), (flags,), 2, 2, 1e9)
        assert flags.all()
    (helpers,) = crew._free[1]
    assert helpers.sync[crew.DONE] == helpers.sync[crew.LIMIT] == helpers.sync[crew.NEXT] == 6
    deadline = time.monotonic() + 60
    while helpers.sync[crew.AWAKE]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert (marked(64, 2, cost=crew.WORTH_SHARING)[0] == 1).all()
    assert not helpers.sync[crew.AWAKE]  # it was not worth waking anybody


def test_each_of_several_callers_has_a_crew(monkeypatch):
    monkeypatch.setattr(crew, "_free", {})
    wrong = []

    def call():
        for _ in range(30):
            count, sums = marked(50, 3, length=2000)
            if not ((count == 1).all() and (sums == 4000.0).all()):
                wrong.append(1)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong
    assert 1 <= len(crew._free[2]) <= 4


def test_inside_another_call_one_thread_does_it_all(monkeypatch):
    monkeypatch.setattr(crew, "_free", {})
    counts, barrier = [], threading.Barrier(2, timeout=60)

    def function():
        barrier.wait()  # both are here: one of them is a worker
        counts.append(marked(20, 4)[0])

    run_together(function, 2)
    assert len(counts) == 2
    assert all((count == 1).all() for count in counts)
    assert len(crew._free[3]) == 1


def test_a_child_process_has_crews_of_its_own():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    script = (
        "import os, numpy as np\n"
        "from slimsvm.kernels import KernelRows, RBF\n"
        "from slimsvm.numerics import crew\n"
        "crew.WORTH_SHARING = crew.WORTH_WAKING = 0.0\n"
        "rows = KernelRows(RBF(1.0), np.ones((500, 3)), n_jobs=3)\n"
        "total = lambda: float(rows.scores(rows.points(np.arange(9)), np.ones((9, 1))).sum())\n"
        "first = total()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(0 if total() == first else 1)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert total() == first\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=300)


def test_a_crew_may_have_fewer_helpers_than_asked_for(monkeypatch):
    monkeypatch.setattr(crew, "_free", {})
    start, started = threading.Thread.start, []

    def first_only(self):
        if started:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", first_only)
    assert (marked(40, 4)[0] == 1).all()
    assert len(crew._free[3][0].asleep) == 1
