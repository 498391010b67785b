"""Fits in a process of their own, which is ended at a limit."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.peers.methods import METHODS
from benchmarks.peers.sets import SETS, Rows, Set, read
from slimsvm.cli.output import CommandError

# Rows of the fit before the one that is timed; rows whose prediction is timed.
WARM_UP_ROWS, TIMED_ROWS = 1000, 5000


def measure(method: str, of: Set, rows: Rows) -> dict[str, Any]:
    """One fit after a small one that loads what it needs: seconds, error, microseconds of a row, vectors if any."""
    try:
        small, estimator = METHODS[method](of, rows), METHODS[method](of, rows)
    except (ImportError, OSError) as error:  # thundersvm's wheel needs libraries of CUDA 9
        return {"status": "not installed", "said": str(error)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small.fit(rows.X[:WARM_UP_ROWS], rows.y[:WARM_UP_ROWS])
        begun, begun_cpu = time.perf_counter(), time.process_time()
        estimator.fit(rows.X, rows.y)
        seconds, cpu = time.perf_counter() - begun, time.process_time() - begun_cpu
        predicted = np.ravel(estimator.predict(rows.X_test))
        part = rows.X_test[:TIMED_ROWS]
        begun = time.perf_counter()
        estimator.predict(part)
        micros = 1e6 * (time.perf_counter() - begun) / len(part)
    return {
        "status": "done", "seconds": seconds, "cpu_seconds": cpu, "predict_us": micros,
        "test_error": float(np.mean(predicted != rows.y_test)), "n_vectors": vectors_of(estimator),
    }  # fmt: skip


def vectors_of(estimator: Any) -> int | None:
    """Vectors of a kernel machine; of Nystroem its rows; None for trees."""
    steps = getattr(estimator, "named_steps", {})
    if "nystroem" in steps:
        return len(steps["nystroem"].component_indices_)
    last = estimator[-1] if steps else estimator
    if hasattr(last, "n_basis_"):
        return int(last.n_basis_)
    return len(last.support_) if hasattr(last, "support_") else None


def serve(name: str, most: int, pipe: Any) -> None:
    """Measure one method after another, in a process that can be ended."""
    rows = read(name, most)
    pipe.send((len(rows.y), rows.X.shape[1], len(np.unique(rows.y))))
    while (method := pipe.recv()) is not None:
        try:
            pipe.send(measure(method, SETS[name], rows))
        except Exception as error:
            pipe.send({"status": "failed", "said": f"{type(error).__name__}: {error}"[:500]})


class Server:
    """A process that measures on a set; begun again after a method that it did not survive."""

    def __init__(self, name: str, most: int):
        self.name, self.most = name, most
        self.process: Any = None

    def start(self) -> tuple[int, int, int]:
        """Begin; rows, features, classes."""
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(self.name, self.most, theirs), daemon=True)
        self.process.start()
        theirs.close()
        try:
            return self.pipe.recv()
        except EOFError:
            raise CommandError(f"{self.name}: the process that reads the rows ended") from None

    def ask(self, method: str, limit: float) -> dict[str, Any]:
        """What was measured, or why nothing was."""
        if self.process is None:
            self.start()
        self.pipe.send(method)
        try:
            if self.pipe.poll(limit):
                return self.pipe.recv()
            found = {"status": "time limit", "said": f"more than {limit:g} s"}
        except EOFError:
            found = {"status": "failed", "said": "its process ended"}
        self.stop()
        return found

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None
