"""Timing of one call that is repeated, and the limit that kernel evaluations are compared with."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.cli import options
from slimsvm.core.threads import resolve_n_jobs

# Nanoseconds per kernel evaluation and core of a processor with AVX-512 at 2.5 GHz: exp2, and the inner product's
# multiply-adds for each feature.
NS_PER_VALUE, NS_PER_FEATURE = 0.14, 0.0174
TURNS = 4


def add_timing_options(parser: argparse.ArgumentParser, subject: str) -> None:
    """``--threads`` and ``--seconds`` of benchmarks that repeat one call; ``subject`` is what the seconds are for."""
    parser.add_argument(
        "--threads",
        nargs="+",
        type=options.positive_integer,
        default=sorted({1, resolve_n_jobs(None)}),
        metavar="T",
        help="default: 1 and all (%(default)s here)",
    )
    parser.add_argument(
        "--seconds", type=options.positive, default=1.0, metavar="S", help=f"for each {subject} (default: %(default)s)"
    )


class Elsewhere:
    """The cores that other processes keep busy from when it is made on.

    Two threads of ours beside one other process on two cores take as long as one thread: whoever finishes a task waits
    for the one whose core was taken.
    """

    def __init__(self) -> None:
        self.begun, self.before = time.perf_counter(), self._seconds()

    def cores(self) -> float | None:
        """Return their number on average, to two digits; None where the system does not say."""
        now, wall = self._seconds(), time.perf_counter() - self.begun
        if now is None or self.before is None or not wall:
            return None
        return round(max(0.0, now - self.before) / wall, 2)

    @staticmethod
    def _seconds() -> float | None:
        """Return the processor time that others have had, the host's included."""
        try:
            first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
        except OSError:
            return None
        user, nice, system, _, _, interrupts, soft, stolen, *_ = (int(ticks) for ticks in first.split()[1:])
        ticks = user + nice + system + interrupts + soft + stolen
        return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])


def best_of_turns(calls: list[Callable[[], Any]], seconds: float) -> list[float]:
    """Least seconds of each call, over turns of several calls each.

    Turns, so that a busy moment of the machine meets all of them; several, because threads of BLAS go on spinning for a
    while after their work and take the cores from whatever comes next.
    """
    best = [np.inf] * len(calls)
    for _ in range(TURNS):
        for i, call in enumerate(calls):
            end = time.perf_counter() + seconds / (TURNS * len(calls))
            n_done = 0
            while n_done < 2 or time.perf_counter() < end:
                begun = time.perf_counter()
                call()
                best[i] = min(best[i], time.perf_counter() - begun)
                n_done += 1
    return best
