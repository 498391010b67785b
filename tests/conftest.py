"""Options, markers and fixtures shared by all tests."""

import contextlib
import functools
import os
from collections import defaultdict

import pytest
from hypothesis import settings

from pairwise import few_of_each

# Derandomised, so that a red run stays red; `--full` looks for new examples, and for more of them.
settings.register_profile("fast", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("full", deadline=None, max_examples=500, print_blob=True)


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="also run the tests marked `full`, and every combination of options"
    )


def pytest_configure(config):
    keep_to_own_cores()
    settings.load_profile("full" if config.getoption("--full") else "fast")


def keep_to_own_cores():
    """Keep a worker of several to its share of the cores, so that its threads do not wait for those of other workers.

    This happens before NumPy is imported: BLAS, too, starts a thread for each core that it finds.
    """
    worker, count = os.environ.get("PYTEST_XDIST_WORKER"), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if worker is None:
        return
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        with contextlib.suppress(OSError):  # forbidden in some containers
            if len(cores) >= count:
                os.sched_setaffinity(0, cores[int(worker.removeprefix("gw")) :: count])
                return
    os.environ["LOKY_MAX_CPU_COUNT"] = str(max(1, (os.cpu_count() or 1) // count))


def pytest_collection_modifyitems(config, items):
    """Leave out what only `--full` runs: left out, not skipped, since a skip means "could not run".

    Those are the tests marked `full`, and of tests with several axes the combinations that `few_of_each` does not need.
    """
    if config.getoption("--full"):
        return
    files = defaultdict(list)
    for item in items:
        if not item.get_closest_marker("full"):
            files[item.path].append(item)
    kept = {id(item) for tests in files.values() for item in few_of_each(tests)}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


@pytest.fixture(scope="session", autouse=True)
def library_of_this_run():
    """The core, loaded before any test sets SLIMSVM_ISA: it is read once, and holds for the whole process."""
    from slimsvm.core.library import library

    return library()


@pytest.fixture
def threads_for_all(monkeypatch):
    """Threads are used however small the work is; the result grows whenever others than the caller's are asked."""
    from slimsvm.core import threads
    from slimsvm.core.library import library
    from slimsvm.kernels.operands import RowSizes, Sized
    from slimsvm.parts.span import whitened_span

    asked, submit = _Asked(library()), threads._submit
    library().slimsvm_share_from(0.0, 0.0)
    monkeypatch.setattr(Sized, "sizes", RowSizes(small_work=1))
    monkeypatch.setattr(whitened_span, "WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "_submit", lambda function, times: asked.append(times) or submit(function, times))
    yield asked
    library().slimsvm_share_from(10.0, 1000.0)


class _Asked(list):
    """What was asked of threads in Python, and how often the core shared its work."""

    def __init__(self, core):
        self.core, self.before = core, core.slimsvm_times_shared()

    def __len__(self):
        return super().__len__() + self.core.slimsvm_times_shared() - self.before

    def __bool__(self):
        return len(self) > 0


@pytest.fixture
def settings_of_estimators(monkeypatch):
    """`settings_of_estimators(ClosingSettings(shrink=2.0), …)`: what the problems of all estimators are given."""
    from slimsvm.estimators._shared.kernel_estimator import KernelEstimator

    return lambda *given: monkeypatch.setattr(KernelEstimator, "_settings", given)


@pytest.fixture(scope="session")
def data():
    """`data(name, **options)`: the data set of this name, or a skip that says which file is missing."""
    from slimsvm.datasets import find, load

    # The last few only: the big sets together do not fit a small machine.
    load_once = functools.lru_cache(maxsize=2)(functools.partial(load, download=False))

    def get(name, **options):
        if find(name) is None:
            pytest.skip(f"data set {name!r} is not on this machine (put its files in the folder SLIMSVM_DATA names)")
        return load_once(name, **options)

    return get


@pytest.fixture
def write(tmp_path):
    """`write(content, name)`: a file of this text or of these bytes."""

    def write(content, name="rows.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture(scope="session")
def noisy_moons():
    """Two features that matter and six that do not: (X, y) for training, (X, y) for testing."""
    import numpy as np
    from sklearn.datasets import make_moons

    X, y = make_moons(5000, noise=0.25, random_state=0)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    return X[:1000], y[:1000], X[1000:], y[1000:]
