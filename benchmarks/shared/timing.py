"""Timing of one call that is repeated, and the limit that kernel evaluations are compared with."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
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
