"""One version of the library, in a process of its own: does the cases it is asked to do, one turn at a time.

Requests and answers are lines of JSON: {"prepare": NAME, "inputs": FILE, "outcome": FILE}, then as many "turn" as are
wanted. What the case itself prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

# Seconds that a turn takes at least: work that takes less is repeated.
LEAST_SECONDS = 0.05


def keep_to_cores(n_threads: int) -> None:
    """Let what takes no number of threads find as many cores."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:n_threads])


def prepare(request: dict[str, Any], n_threads: int) -> tuple[Callable[[], Any], int]:
    """The work and how often it is done in a turn; writes what came of it. What must be compiled is, by then."""
    import numpy as np

    from benchmarks.core.cases import CASES

    case = CASES[request["prepare"]]
    with np.load(request["inputs"]) as stored:
        inputs = dict(stored)
    work = case.work(inputs, n_threads)
    outcome: dict[str, Any] = {key: np.asarray(value) for key, value in case.outcome(work(), inputs).items()}
    np.savez(request["outcome"], **outcome)
    count = 1
    while True:
        seconds = turn(work, count)["wall"] * count
        if seconds >= LEAST_SECONDS:
            return work, count
        count = max(2 * count, int(1.2 * count * LEAST_SECONDS / max(seconds, 1e-6)))


def turn(work: Callable[[], Any], count: int) -> dict[str, float]:
    """Seconds of the work: of the processor, and on the clock."""
    wall, process = time.perf_counter(), time.process_time()
    for _ in range(count):
        work()
    return {"process": (time.process_time() - process) / count, "wall": (time.perf_counter() - wall) / count}


def main() -> None:
    """Answer until there are no more requests."""
    n_threads = int(sys.argv[1])
    keep_to_cores(n_threads)
    warnings.simplefilter("ignore")  # of limits that are reached: both versions are the same in that
    # Only answers go to standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work: Callable[[], Any] = int
    count = 1
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request == "turn":
                answer: Any = turn(work, count)
            else:
                work, count = prepare(request, n_threads)
                answer = {"count": count}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
