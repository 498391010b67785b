"""One fit in a process of its own: ``python -m benchmarks.blocks.fits '{"fit": …}'`` prints what it took as JSON.

Memory is the resident memory of the process and of those that it started that no file backs, so the page cache and
memory maps do not count; processor time is that of all of them, of the fit alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.blocks.groups import group_of
from benchmarks.blocks.sources import test_of
from slimsvm import SVC, Blocks

Spec = dict[str, Any]

# Seconds from look to look, and from list to list of processes, which takes some hundredths of one.
LOOKS_EVERY, LISTS_EVERY = 0.1, 5.0


class Watch:
    """Peak memory and processor time of this process and its children; looking takes a thousandth of the time."""

    def __init__(self) -> None:
        import psutil

        self._own, self.peak, self._ended = psutil.Process(), 0, threading.Event()
        self._spent: dict[int, float] = {}
        self._known, self._listed = [self._own], 0.0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._ended.wait(LOOKS_EVERY):
            if time.perf_counter() - self._listed > LISTS_EVERY:
                self.cpu()
            self.peak = max(self.peak, sum(anonymous_bytes(process.pid) for process in self._known))

    def cpu(self) -> float:
        """Processor seconds so far, of those that have died as they were last seen."""
        self._known, self._listed = [self._own, *self._own.children(recursive=True)], time.perf_counter()
        for process in self._known:
            try:
                times = process.cpu_times()
            except Exception:  # it has just ended
                continue
            self._spent[process.pid] = times.user + times.system
        return sum(self._spent.values())

    def end(self) -> None:
        """Look no more."""
        self._ended.set()
        self._thread.join()


def anonymous_bytes(pid: int) -> int:
    """Resident bytes that no file backs."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


@contextmanager
def cluster(spec: Spec) -> Iterator[Any]:
    """Workers on this machine, in processes of one thread."""
    from distributed import Client, LocalCluster

    options: Any = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(n_workers=spec["workers"], **options) as made, Client(made) as client:
        yield client


def lazy(path: str) -> tuple[Any, Any]:
    """A Dask array of a file's rows, a chunk for each row group, and its labels."""
    import dask
    import dask.array as da
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        d = len(file.schema_arrow.names) - 1
        y = file.read(["y"])["y"].to_numpy()
    read = dask.delayed(group_of, pure=True)
    parts = [da.from_delayed(read(path, i), (n, d), np.float32) for i, n in enumerate(groups)]
    bounds = np.cumsum([0, *groups])
    return da.concatenate(parts), da.concatenate([da.from_array(y[lo:hi], chunks=-1) for lo, hi in pairwise(bounds)])


def in_memory(path: str) -> tuple[np.ndarray, np.ndarray]:
    """A file's rows and labels as arrays."""
    X, y = Blocks.from_parquet(path, label="y", cache_bytes=0)
    return X.slice(0, X.n_rows, np.float32), np.asarray(y)


# ---- fits: each returns what has `predict`, and what else there is to say


def ours(spec: Spec, watch: Watch) -> tuple[Any, Spec]:
    """`slimsvm.SVC`, from memory or from the file."""
    X: Any
    is_array = spec["fit"] == "memory"
    X, y = in_memory(spec["path"]) if is_array else Blocks.from_parquet(spec["path"], label="y")
    if not is_array:
        X.feature_names = None  # which arrays have not
    make = SVC(random_state=0, n_jobs=spec["workers"], **spec["options"])
    return timed(lambda: make.fit(X, y), watch, {"memory_of_rows": int(X.nbytes)} if is_array else {})


def by_dask(spec: Spec, watch: Watch) -> tuple[Any, Spec]:
    """`slimsvm.dask.SVC`; where ``kill`` is a number, a worker is killed that share of the time after the start."""
    from slimsvm import dask as slim

    with cluster(spec) as client:
        X, y = lazy(spec["path"])
        client.run(group_of, spec["path"], 0)  # imports what reads files, as a local fit has before it begins
        make = slim.SVC(client=client, random_state=0, n_jobs=spec["workers"], **spec["options"])
        if spec.get("kill") is not None:
            pid = random.Random(spec["kill"]).choice(sorted(client.run(os.getpid).values()))
            threading.Timer(spec["kill"], os.kill, (pid, signal.SIGKILL)).start()
        fit, found = timed(lambda: make.fit(X, y), watch, {})
        return fit.to_local(), found


def trees(spec: Spec, watch: Watch) -> tuple[Any, Spec]:
    """LightGBM from memory."""
    from lightgbm import LGBMClassifier

    X, y = in_memory(spec["path"])
    make = LGBMClassifier(n_estimators=spec["trees"], n_jobs=spec["workers"], random_state=0, verbose=-1)
    return timed(lambda: make.fit(X, y), watch, {"memory_of_rows": int(X.nbytes)})


def trees_by_dask(spec: Spec, watch: Watch) -> tuple[Any, Spec]:
    """`lightgbm.dask`."""
    from lightgbm import DaskLGBMClassifier

    with cluster(spec) as client:
        X, y = lazy(spec["path"])
        client.run(group_of, spec["path"], 0)
        make = DaskLGBMClassifier(client=client, n_estimators=spec["trees"], random_state=0, verbose=-1)
        fit, found = timed(lambda: make.fit(X, y), watch, {})
        return fit.to_local(), found


def timed(fit: Callable[[], Any], watch: Watch, found: Spec) -> tuple[Any, Spec]:
    """What a fit returns, its seconds and processor seconds."""
    begun, cpu = time.perf_counter(), watch.cpu()
    made = fit()
    return made, found | {"seconds": time.perf_counter() - begun, "cpu_seconds": watch.cpu() - cpu}


FITS = {"memory": ours, "parquet": ours, "dask": by_dask, "LightGBM": trees, "lightgbm.dask": trees_by_dask}


def main(argument: str) -> None:
    """Fit, test, and print what came of it."""
    spec, watch = json.loads(argument), Watch()
    warnings.simplefilter("ignore")
    begun = time.perf_counter()
    machine, found = FITS[spec["fit"]](spec, watch)
    found["whole_seconds"], found["whole_cpu_seconds"] = time.perf_counter() - begun, watch.cpu()
    watch.end()
    found["peak_bytes"] = watch.peak
    if hasattr(machine, "model_"):
        with tempfile.TemporaryDirectory() as folder:
            machine.save(f"{folder}/model.slim")
            found["file"] = hashlib.sha256(Path(f"{folder}/model.slim").read_bytes()).hexdigest()
        model = machine.model_
        bits = model.basis.tobytes() + model.coef.tobytes() + model.intercept.tobytes()
        found["model"] = hashlib.sha256(bits).hexdigest()
        found["n_vectors"] = machine.n_basis_
    X, y = test_of(spec["set"])
    found["test_error"] = float(np.mean(np.asarray(machine.predict(X)) != y))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
