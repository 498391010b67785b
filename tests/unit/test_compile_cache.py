"""What is compiled once is compiled for all processes: a second one compiles nothing."""

import os
import subprocess
import sys

import pytest

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


def compiled(script, folder):
    """Functions that a fresh process compiles: what it finds in the cache, or never compiles, does not count."""
    run = subprocess.run(
        [sys.executable, "-c", REPORT.format(script=script)],
        capture_output=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.splitlines()[-1].split()


@pytest.mark.parametrize("script", [TINY, pytest.param(MANY, marks=pytest.mark.full)], ids=["tiny", "many"])
def test_a_second_process_compiles_nothing(script, tmp_path):
    first = compiled(script, tmp_path)
    assert "kernel_tiles" in first
    # What Numba makes of the error of `out[a:b] = values`: see `numerics.copying`.
    assert not [name for name in first if "shape_context" in name]
    assert not compiled(script, tmp_path)
