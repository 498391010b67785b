"""Bad arguments are exceptions, a library of other sources is refused, and its threads and copies get along."""

import copy
import ctypes
import os
import pickle
import shutil
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from slimsvm import core
from slimsvm.core import border
from slimsvm.core.library import ISAS, library_path
from threads_for_tests import in_threads

FUZZ = Path(__file__).with_name("fuzz.py")


def rows_of(X):
    """The structure of dense rows."""
    n, d = X.shape
    half, factor = np.zeros(n, X.dtype), np.ones(n)
    return core.Rows(n_features=d, values=X.ravel(), half=half, factor=factor, columns=None, indptr=None)


def run(program, **environment):
    """Run a program of Python in a process of its own; what it prints, and its end."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=300)


# ---------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(("times", "seed"), [(40, 0), pytest.param(2000, 1, marks=pytest.mark.full)])
def test_no_argument_ends_the_process(times, seed):
    ended = subprocess.run([sys.executable, str(FUZZ), str(times), str(seed)], capture_output=True, text=True)
    report = ended.stdout.splitlines()
    assert ended.returncode == 0, f"{report[-1:]} (function, number of the call)\n{ended.stderr[-4000:]}"
    assert sum(line.startswith("# ") for line in report) > 5


def test_what_is_wrong_is_said():
    total, rows = np.zeros(3), np.zeros((4, 3))
    core.add_rows(rows=rows, total=total)
    with pytest.raises(core.CoreError, match=r"rows must be an array of float32 or float64, got int64"):
        core.add_rows(rows=rows.astype(np.int64), total=total)
    with pytest.raises(core.CoreError, match=r"must have 2 axes, got shape \(12,\)"):
        core.add_rows(rows=rows.ravel(), total=total)
    with pytest.raises(core.CoreError, match=r"total has d = 4, where the others have 3"):
        core.add_rows(rows=rows, total=np.zeros(4))
    with pytest.raises(core.CoreError, match="C-contiguous"):
        core.add_rows(rows=rows[:, ::2], total=np.zeros(2))
    with pytest.raises(core.CoreError, match="needs total"):
        core.add_rows(rows=rows)
    with pytest.raises(core.CoreError, match="takes no argument 'more'"):
        core.add_rows(rows=rows, total=total, more=1)
    with pytest.raises(core.CoreError, match="writeable"):
        core.add_rows(rows=rows, total=np.broadcast_to(total, 3))


def test_what_is_missing_in_two_steps_is_said():
    left, right, out = np.ones((3, 2)), np.ones((3, 2)), np.zeros((2, 2))
    given, later = {"left": left, "is_upper": 0, "n_threads": 1}, {"right": right, "out": out, "microseconds": 1.0}
    core.add_squares.prepare(**given, weights=np.ones(3))(**later)
    assert np.all(out == 3.0)
    with pytest.raises(core.CoreError, match="needs weights"):  # a second step that was right after another first one
        core.add_squares.prepare(**given)(**later)


def test_rows_may_lie_apart():
    a, b, out = np.arange(24.0).reshape(4, 6), np.ones((3, 2)), np.zeros((4, 5))
    for n_columns in (2, 1):
        core.multiply_rows(
            values=a[:, 2:5],
            right=b[:, :n_columns].copy(),
            out=out[:, :n_columns],
            is_upper=0,
            n_threads=1,
            microseconds=1.0,
        )
        assert np.array_equal(out[:, :n_columns], a[:, 2:5] @ b[:, :n_columns])
    with pytest.raises(core.CoreError, match="rows of values must be C-contiguous"):
        core.multiply_rows(values=a[:, :6:2], right=b, out=out[:, :2], is_upper=0, n_threads=1, microseconds=1.0)


def test_an_index_out_of_range_is_said():
    values = {"values": np.ones(2), "half": np.zeros(1), "factor": np.ones(1), "indptr": np.array([0, 2])}
    core.Rows(n_features=3, columns=np.array([0, 2]), **values)
    with pytest.raises(core.CoreError, match=r"columns must be in 0\.\.2, got 3 at 1"):
        core.Rows(n_features=3, columns=np.array([0, 3]), **values)
    with pytest.raises(core.CoreError, match=r"columns must be in 0\.\.2, got -1 at 0"):
        core.Rows(n_features=3, columns=np.array([-1, 2], np.int32), **values)
    with pytest.raises(core.CoreError, match=r"indptr must rise from 0 to at most 2"):
        core.Rows(n_features=3, columns=np.array([0, 2]), **values | {"indptr": np.array([0, 3])})


# ---------------------------------------------------------------- which library


def test_a_library_of_other_sources_is_refused_in_one_sentence(tmp_path):
    other = tmp_path / library_path().name
    binary, abi = library_path().read_bytes(), core.library().slimsvm_abi()
    assert binary.count(abi) == 1
    other.write_bytes(binary.replace(abi, abi[::-1]))
    ended = run("from slimsvm.core import isa; isa()", SLIMSVM_LIBRARY=str(other))
    last = ended.stderr.splitlines()[-1]
    assert last == f"ImportError: slimsvm's compiled core ({other}) is of another version: rebuild it with `make`"


def test_a_missing_library_is_said_in_one_sentence(tmp_path):
    ended = run("from slimsvm.core import isa; isa()", SLIMSVM_LIBRARY=str(tmp_path / "none.so"))
    assert "is missing" in ended.stderr.splitlines()[-1]
    assert "build it with `make` or `pip install .`" in ended.stderr.splitlines()[-1]


def test_importing_builds_nothing_and_loads_nothing(tmp_path):
    ended = run("import slimsvm; print(slimsvm.__version__)", SLIMSVM_LIBRARY=str(tmp_path / "none.so"))
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("isa", ISAS)
def test_an_instruction_set_that_is_asked_for_is_used_or_refused(isa):
    ended = run("from slimsvm.core import isa; print(isa())", SLIMSVM_ISA=isa)
    # Asked of a new process, which need not run where this one does: emulators do not reach it.
    best = run("from slimsvm import core; print(core.library().slimsvm_best_isa().decode())", SLIMSVM_ISA="baseline")
    best = best.stdout.strip()
    if ISAS.index(isa) <= ISAS.index(best):
        assert ended.stdout.strip() == isa
    else:
        assert f"SLIMSVM_ISA asks for {isa}, but this machine runs {best}" in ended.stderr


def test_an_instruction_set_that_does_not_exist_is_refused():
    ended = run("from slimsvm.core import isa; isa()", SLIMSVM_ISA="mmx")
    assert "SLIMSVM_ISA must be one of baseline, avx2, avx512, got 'mmx'" in ended.stderr


def test_two_copies_of_the_library_in_one_process(tmp_path):
    other = tmp_path / library_path().name
    shutil.copy(library_path(), other)
    copied, own = ctypes.CDLL(str(other)), core.library()
    assert copied._handle != own._handle
    copied.slimsvm_times_shared.restype = ctypes.c_int64
    copied.slimsvm_share_from.argtypes = [ctypes.c_double] * 2
    before, before_own = copied.slimsvm_times_shared(), own.slimsvm_times_shared()
    copied.slimsvm_share_from(0.0, 0.0)
    rng = np.random.default_rng(0)
    values, total = rng.normal(size=(3000, 5)), np.zeros((5, 2))
    arguments = {"values": values, "coef": rng.normal(size=(3000, 2)), "n_threads": 3, "microseconds": 1e6}
    core.multiply_transposed(out=total, **arguments)
    again = np.zeros((5, 2))
    prepared = core.multiply_transposed.prepare(out=again, **arguments)
    prepared.function = copy.copy(prepared.function)
    prepared.function.compiled = copied.slimsvm_multiply_transposed
    prepared.function.compiled.argtypes, prepared.function.compiled.restype = [ctypes.c_void_p], ctypes.c_int32
    prepared()
    np.testing.assert_array_equal(again, total)
    assert copied.slimsvm_times_shared() > before
    assert own.slimsvm_times_shared() == before_own + 1


def test_work_under_a_millisecond_wakes_no_one():
    woken = core.library().slimsvm_times_woken
    values, total = np.ones((3000, 5)), np.zeros((5, 2))
    call = partial(core.multiply_transposed, values=values, coef=np.ones((3000, 2)), out=total, n_threads=2)
    before = woken()
    for _ in range(50):
        call(microseconds=999.0)
    assert woken() == before
    until = time.monotonic() + 20
    while woken() == before and time.monotonic() < until:
        time.sleep(0.01)  # a helper that is awake still is not woken
        call(microseconds=1001.0)
    assert woken() > before


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda rows: pickle.loads(pickle.dumps(rows))])
def test_a_copy_of_a_structure_has_memory_of_its_own(again):
    rows = rows_of(np.arange(6.0).reshape(2, 3))
    other = again(rows)
    assert other.address != rows.address
    assert other.address == ctypes.addressof(other.memory)
    assert (other.memory.n, other.memory.n_features) == (2, 3)
    np.testing.assert_array_equal(other.values, rows.values)
    assert other.memory.values == other.values.ctypes.data


def test_a_pickle_holds_no_address():
    rows = rows_of(np.arange(6.0).reshape(2, 3))
    pickled = pickle.dumps(rows)
    assert rows.address.to_bytes(8, "little") not in pickled
    assert rows.values.ctypes.data.to_bytes(8, "little") not in pickled


def test_a_structure_keeps_its_arrays():
    rows = rows_of(np.ones((1000, 3)))
    trash = [np.zeros(3000) for _ in range(100)]
    assert trash[0].sum() == 0
    assert np.ctypeslib.as_array((ctypes.c_double * 3000).from_address(rows.memory.values)).sum() == 3000


# ---------------------------------------------------------------- threads and processes


def product(values, coef, n_threads):
    out = np.zeros((values.shape[1], coef.shape[1]))
    core.multiply_transposed(values=values, coef=coef, out=out, n_threads=n_threads, microseconds=1e6)
    return out


@pytest.fixture
def factors():
    rng = np.random.default_rng(0)
    return rng.normal(size=(20_000, 7)), rng.normal(size=(20_000, 3))


@pytest.mark.parametrize("n_threads", [2, 4, 16, 300])
def test_any_number_of_threads_gives_the_same_bits(factors, n_threads):
    np.testing.assert_array_equal(product(*factors, n_threads), product(*factors, 1))


def test_several_python_threads_at_once(factors):
    expected, failures = product(*factors, 1), []

    def work(number):
        for _ in range(20):
            if not np.array_equal(product(*factors, 3), expected):
                failures.append(number)

    in_threads(work, range(8))
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_after_a_call():
    ended = run(
        """
        import os, threading
        import numpy as np
        from slimsvm import core
        values, coef = np.ones((20_000, 7)), np.ones((20_000, 3))
        def product():
            out = np.zeros((7, 3))
            core.multiply_transposed(values=values, coef=coef, out=out, n_threads=4, microseconds=1e6)
            return out
        product()
        # Another thread is at work meanwhile: the child finds its crew taken.
        stop = threading.Event()
        def work():
            while not stop.is_set():
                product()
        busy = threading.Thread(target=work)
        busy.start()
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0 if (product() == 20_000).all() and (product() == 20_000).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert (product() == 20_000).all()
        stop.set()
        busy.join()
        print("done")
        """
    )
    assert ended.stdout == "done\n", ended.stderr


def test_an_argument_may_be_none_at_one_call_and_an_array_at_the_next():
    numbers = {"n_segments": 1, "n_outputs": 0, "values": np.empty(0), "first": np.zeros(1, np.int64)}
    segments = np.zeros(0, np.int64)
    for given in (None, segments, None, None, segments, segments):
        made = core.Weights(segments=given, **numbers)
        assert made.memory.segments == (None if given is None else segments.ctypes.data)


def test_a_call_within_a_call_leaves_the_workspace_of_the_outer_one():
    """As a signal's handler may make one, between the choice of a workspace and the call itself."""
    n, seen = 300, []
    K = np.ones((n, n))
    how = {"balanced": 0, "offset": 0.0, "epsilon": 0.0, "tol": 1e-3, "max_steps": 1, "places": None, "diagonal": None}

    def call(size):
        core.smo(values=K[:size, :size].copy(), slots=np.arange(size), lo=np.zeros(size), hi=np.ones(size),
                 g=np.ones(size), v=np.zeros(size), **how)  # fmt: skip

    def within(frame, event, function):
        if event == "c_call" and function is ctypes.addressof and frame.f_code is border.Function.__call__.__code__:
            sys.setprofile(None)
            outer = frame.f_locals["workspace"]
            call(n)  # which needs more than there is
            seen.append((outer, border._scratch.held[0]))

    def calls():  # in a thread whose workspace is small
        call(10)
        sys.setprofile(within)
        try:
            call(10)
        finally:
            sys.setprofile(None)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(calls).result()
    outer, latest = seen[0]
    assert outer is not None  # the outer call holds it while it runs
    assert outer is not latest
