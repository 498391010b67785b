"""A memory map far larger than the memory allowed: a 10 GB map in 2 GB, here in a smaller pair of the same ratio."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

MAP_BYTES = 500_000_000
ALLOWED_BYTES = 100_000_000
N_FEATURES = 125

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="anonymous memory is read from /proc")

SCRIPT = """
import json, sys, threading, warnings
import numpy as np
from slimsvm import SVC, UniformCuts

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

def fit(X, y):
    # Room enough for a folded copy of everything: it is for being mapped that the rows must not be copied.
    solver = UniformCuts(sample_size=300, final_objective=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SVC(solver=solver, C=0.01, max_iter=15, random_state=0, n_jobs=2, memory_limit=10_000).fit(X, y)

X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X), dtype=np.int8) % 2
fit(np.asarray(X[:3000]), y[:3000])  # whatever is loaded once is loaded now
before, peak, done = anonymous(), [0], threading.Event()

def watch():
    while not done.wait(0.002):
        peak[0] = max(peak[0], anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
clf = fit(X, y)
done.set()
watcher.join()
print(json.dumps({"growth": peak[0] - before, "iterations": len(clf.history_), "map": X.nbytes}))
"""


def test_a_memory_map_trains_in_a_fifth_of_its_size(tmp_path):
    n = MAP_BYTES // (4 * N_FEATURES)
    path = tmp_path / "rows.npy"
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, N_FEATURES))
    block = np.random.default_rng(0).normal(size=(10_000, N_FEATURES)).astype(np.float32)
    for lo in range(0, n, len(block)):
        rows[lo : lo + len(block)] = block[: n - lo]
    rows.flush()
    del rows
    try:
        run = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False, timeout=300
        )
    finally:
        path.unlink()
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    assert found["map"] == pytest.approx(MAP_BYTES, rel=0.01)
    assert found["iterations"] > 1
    assert found["growth"] <= ALLOWED_BYTES, found
