"""Kernel evaluations per second of the fused product sum_j k(x_i, p_j) coef[j], dense float32 rows.

Beside each time: 0.14 ns + 0.0174 ns d per evaluation and core, what a processor with AVX-512 at 2.5 GHz can do (exp2,
and the inner product's multiply-adds), and SGEMM of the same shape (NumPy's matrix product, as many threads), in turns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.shared.timing import NS_PER_FEATURE, NS_PER_VALUE, add_timing_options, best_of_turns
from slimsvm.cli import options
from slimsvm.kernels import KERNELS, KernelRows, get_kernel

FEATURES = (2, 8, 18, 22, 54, 128, 784)
POINTS = (64, 512, 4096)
MIN_ROWS, MAX_ROWS = 6144, 1 << 18  # enough that starting the threads costs little
MAX_TABLE = 1 << 26  # numbers in the largest array: 256 MB


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks kernels``."""
    parser.add_argument(
        "--kernel", choices=sorted(set(KERNELS) - {"precomputed"}), default="rbf", help="default: %(default)s"
    )
    parser.add_argument(
        "--features", nargs="+", type=options.positive_integer, default=list(FEATURES), metavar="D", help="of the rows"
    )
    parser.add_argument(
        "--points", nargs="+", type=options.positive_integer, default=list(POINTS), metavar="K", help="basis vectors"
    )
    add_timing_options(parser, "shape")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Time every shape with every number of threads.

    Returns
    -------
    dict
        ``table``: one row per shape and number of threads.
    """
    table = []
    for d in args.features:
        for k in args.points:
            one_thread = None
            for threads in args.threads:
                row = measure(args.kernel, d, k, threads, args.seconds)
                one_thread = row["ns"] if threads == 1 else one_thread
                table.append({**row, "speed-up": None if one_thread is None else round(one_thread / row["ns"], 2)})
    return {"table": table}


def measure(kernel: str, d: int, k: int, threads: int, seconds: float) -> dict[str, Any]:
    """Nanoseconds per evaluation and what they are to be compared with, the best of many turns."""
    n = max(MIN_ROWS, min(MAX_ROWS, MAX_TABLE // max(d, k)))
    rng = np.random.default_rng(0)
    X, P = rng.random((n, d), dtype=np.float32), rng.random((k, d), dtype=np.float32)
    rows = KernelRows(get_kernel(kernel, gamma=1.0 / d, coef0=1.0), X, n_jobs=threads)
    points, coef = rows.points_of(P), rng.standard_normal((k, 1)).astype(np.float32)
    out, product, transposed = np.empty((n, 1), np.float32), np.empty((n, k), np.float32), np.ascontiguousarray(P.T)
    with threadpool_limits(threads, "blas"):
        ours, sgemm = best_of_turns(
            [lambda: rows.scores(points, coef, out=out), lambda: np.matmul(X, transposed, out=product)], seconds
        )
    ns, sgemm_ns = (1e9 * s / (n * k) for s in (ours, sgemm))
    limit = (NS_PER_VALUE + NS_PER_FEATURE * d) / threads
    return {
        "d": d,
        "k": k,
        "rows": n,
        "threads": threads,
        "ns": round(ns, 4),
        "1e9 evals/s": round(1.0 / ns, 2),
        "limit ns": round(limit, 4),
        "of limit": round(limit / ns, 2),
        "sgemm ns": round(sgemm_ns, 4),
        "/ sgemm": round(ns / sgemm_ns, 2),
    }


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Nanoseconds per evaluation against d, the limit and SGEMM beside them."""
    from matplotlib.figure import Figure

    table = result["table"]
    threads, k = min(row["threads"] for row in table), max(row["k"] for row in table)
    rows = [row for row in table if row["threads"] == threads and row["k"] == k]
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.add_subplot()
    for column, label in (("ns", "slimsvm"), ("sgemm ns", "SGEMM alone"), ("limit ns", "0.14 ns + 0.0174 ns d")):
        axes.loglog([row["d"] for row in rows], [row[column] for row in rows], "o-", label=label)
    axes.set(xlabel="features d", ylabel=f"ns per kernel evaluation, {threads} thread(s), k = {k}")
    axes.legend()
    path = folder / "kernels.png"
    figure.savefig(path, dpi=150)
    return [path]
