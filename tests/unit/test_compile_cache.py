"""What is compiled once is compiled for all processes: a second one compiles nothing."""

import importlib
import os
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from slimsvm import numerics
from slimsvm.numerics import compiling
from slimsvm.numerics.compiling import CacheFiles

TINY = """
import numpy as np
from slimsvm import SVC

X = np.random.default_rng(0).normal(size=(60, 3))
SVC().fit(X, np.arange(60) % 2).predict(X)
"""
MANY = """
import warnings
import numpy as np
import scipy.sparse as sp
from slimsvm import SVC, SVR

warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(60, 3))
y = np.arange(60) % 2
for solver in ("exact-cuts", "violated-cuts", "uniform-cuts"):
    for precision in ("float32", "float64"):
        SVC(solver=solver, precision=precision, max_iter=5, random_state=0).fit(X, y).predict(X)
        SVC(solver=solver, precision=precision, max_iter=5, random_state=0).fit(sp.csr_array(X), y)
SVC(max_iter=5).fit(X, np.arange(60) % 3)
SVR(max_iter=5).fit(X, X[:, 0])
"""


REPORT = """
from numba.core import event

with event.install_recorder("numba:compile") as recorder:
    exec({script!r})
print(*[happened.data["dispatcher"].py_func.__qualname__ for _, happened in recorder.buffer if happened.is_start])
"""


def compiled(script, folder=None):
    """Functions that a fresh process compiles: what it finds in the cache, or never compiles, does not count."""
    elsewhere = {} if folder is None else {"NUMBA_CACHE_DIR": str(folder)}
    run = subprocess.run(
        [sys.executable, "-c", REPORT.format(script=script)],
        capture_output=True,
        text=True,
        env=os.environ | elsewhere,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


def test_a_second_process_compiles_nothing():
    compiled(TINY)
    assert not compiled(TINY)


@pytest.mark.full
@pytest.mark.parametrize("script", [TINY, MANY], ids=["tiny", "many"])
def test_nothing_more_than_the_functions_is_compiled(script, tmp_path):
    first = compiled(script, tmp_path)
    assert "kernel_tiles" in first
    # What Numba makes of the error of `out[a:b] = values`: see `numerics.copying`.
    assert not [name for name in first if "shape_context" in name]
    assert not compiled(script, tmp_path)


def test_what_compiled_code_calls_can_be_called_from_python_too():
    @compiling.njit(nogil=True)
    def twice(x):
        return x + x

    @compiling.njit(nogil=True)
    def four_times(x):
        return twice(twice(x))

    assert four_times(2.0) == 8.0
    assert twice(2.0) == 4.0  # as compiled for the other, it has no way in from Python
    assert twice(2) == 4
    np.testing.assert_array_equal(four_times(np.ones(2)), [4.0, 4.0])


class Between(CacheFiles):
    """Files of a process in the midst of whose saving another process does something."""

    def __init__(self, *args, others):
        super().__init__(*args)
        self.others = others

    def _load_index(self):
        index = super()._load_index()
        self.others("the index is read")
        return index

    def _save_index(self, overloads):
        self.others("before the index")
        super()._save_index(overloads)
        self.others("after the index")


@pytest.mark.parametrize("moment", ["the index is read", "before the index", "after the index"])
@pytest.mark.parametrize("known", [False, True], ids=["first", "further"])
def test_two_processes_that_save_at_once_never_find_each_others_code(moment, known, tmp_path):
    def other(at):
        if at == moment:
            CacheFiles(tmp_path, "f", "now").save("float32", "code for float32")
            for key in ("float32", "float64"):
                assert CacheFiles(tmp_path, "f", "now").load(key) in (None, f"code for {key}")

    if known:
        CacheFiles(tmp_path, "f", "now").save("int64", "code for int64")
    Between(tmp_path, "f", "now", others=other).save("float64", "code for float64")
    files = CacheFiles(tmp_path, "f", "now")
    assert files.load("float32") in (None, "code for float32")
    assert files.load("float64") == "code for float64"
    assert files.load("int64") in (None, "code for int64")
    files.save("float32", "code for float32")
    assert files.load("float32") == "code for float32"


def test_code_of_other_sources_is_not_used_and_goes(tmp_path):
    CacheFiles(tmp_path, "f", "before").save("float64", "old")
    CacheFiles(tmp_path, "g", "before").save("float64", "other function")
    now = CacheFiles(tmp_path, "f", "now")
    assert now.load("float64") is None
    now.save("float64", "new")
    assert now.load("float64") == "new"
    assert CacheFiles(tmp_path, "f", "before").load("float64") is None
    assert CacheFiles(tmp_path, "g", "before").load("float64") == "other function"
    assert len(list(tmp_path.glob("f.*.nbc"))) == 1


def test_a_function_is_of_the_modules_it_names_too(tmp_path, monkeypatch):
    for name, text in {
        "a": "from slimsvm.numerics.b import f",
        "b": "from slimsvm.numerics.c import g",
        "c": "from slimsvm.numerics.a import h; 1",
        "d": "",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(compiling, "_FOLDER", tmp_path)

    def stamps():
        compiling.stamp.cache_clear()
        compiling._text.cache_clear()
        return {name: compiling.stamp(tmp_path / f"{name}.py") for name in "abcd"}

    before = stamps()
    assert before == stamps()
    (tmp_path / "c.py").write_text("from slimsvm.numerics.a import h; 2")
    assert {name for name, found in stamps().items() if found != before[name]} == {"a", "b", "c"}
    monkeypatch.undo()
    compiling.stamp.cache_clear()
    compiling._text.cache_clear()


def test_every_cached_function_is_in_such_files():
    for module in pkgutil.iter_modules(numerics.__path__):
        for item in vars(importlib.import_module(f"slimsvm.numerics.{module.name}")).values():
            if isinstance(item, Dispatcher) and not isinstance(item._cache, NullCache):
                assert isinstance(item._cache._cache_file, CacheFiles), item
