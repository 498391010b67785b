"""Prediction with a model of few vectors: many rows at a time, and one.

Many rows: nanoseconds per kernel evaluation of ``predict`` and of the model's ``scores`` alone, as shares of 0.14 ns +
0.0174 ns d per core (see the benchmark ``kernels``). One row: milliseconds of ``predict``, beside scikit-learn's `SVC`
with about as many support vectors. Dense float32 rows; scikit-learn gets float64, which is what it works with.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import svm

from benchmarks.shared.timing import NS_PER_FEATURE, NS_PER_VALUE, add_timing_options, best_of_turns
from slimsvm import SVC, LowRank
from slimsvm.cli import options

FEATURES = (8, 22, 54, 123, 784)
VECTORS, ROWS = 500, 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks prediction``."""
    number = options.positive_integer
    parser.add_argument("--features", nargs="+", type=number, default=list(FEATURES), metavar="D", help="of the rows")
    parser.add_argument("--vectors", type=number, default=VECTORS, metavar="K", help="in the model (%(default)s)")
    parser.add_argument("--rows", type=number, default=ROWS, metavar="N", help="predicted at a time (%(default)s)")
    add_timing_options(parser, "line")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Time every number of features with every number of threads.

    Returns
    -------
    dict
        ``table``: one row per number of features and threads.
    """
    table = []
    for d in args.features:
        ours, theirs, X = models(d, args.vectors, args.rows)
        table += [measure(ours, theirs, X, threads, args.seconds) for threads in args.threads]
    return {"table": table}


def models(d: int, k: int, n: int) -> tuple[SVC, svm.SVC, np.ndarray]:
    """Our model of k vectors, scikit-learn's of about as many, and n rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((max(n, 2 * k), d), dtype=np.float32)
    y = rng.integers(0, 2, len(X))  # labels without a pattern: nearly every row becomes a support vector
    gamma = 0.5 / d
    ours = SVC(gamma=gamma, solver=LowRank(k, tol_relative=0.1), random_state=0, precision="float32").fit(
        X[: 2 * k], y[: 2 * k]
    )
    theirs = svm.SVC(gamma=gamma).fit(X[:k].astype(np.float64), y[:k])
    return ours, theirs, X[:n]


def measure(ours: SVC, theirs: svm.SVC, X: np.ndarray, threads: int, seconds: float) -> dict[str, Any]:
    """Both ways of prediction, the best of many turns."""
    ours.set_params(n_jobs=threads)
    k, (n, d) = ours.n_basis_, X.shape
    one, one_64 = X[:1], X[:1].astype(np.float64)
    many, scores = best_of_turns([lambda: ours.predict(X), lambda: ours.model_.scores(X, threads)], seconds)
    single, other = best_of_turns([lambda: ours.predict(one), lambda: theirs.predict(one_64)], seconds)
    limit = (NS_PER_VALUE + NS_PER_FEATURE * d) / threads
    ns, scores_ns = 1e9 * many / (n * k), 1e9 * scores / (n * k)
    return {
        "d": d,
        "k": k,
        "rows": n,
        "threads": threads,
        "predict ns": round(ns, 4),
        "limit ns": round(limit, 4),
        "of limit": round(limit / ns, 2),
        "scores of limit": round(limit / scores_ns, 2),
        "one row ms": round(1e3 * single, 3),
        "sklearn ms": round(1e3 * other, 3),
        "sklearn k": len(theirs.support_),
    }


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Nanoseconds per evaluation against d beside the limit, and milliseconds for one row beside scikit-learn's."""
    from matplotlib.figure import Figure

    threads = min(row["threads"] for row in result["table"])
    rows = [row for row in result["table"] if row["threads"] == threads]
    figure = Figure(figsize=(9, 4), layout="constrained")
    many, one = figure.subplots(1, 2)
    at = [row["d"] for row in rows]
    for axes, column, label in (
        (many, "predict ns", "slimsvm"),
        (many, "limit ns", "0.14 ns + 0.0174 ns d"),
        (one, "one row ms", "slimsvm"),
        (one, "sklearn ms", "scikit-learn"),
    ):
        axes.loglog(at, [row[column] for row in rows], "o-", label=label)
    many.set(xlabel="features d", ylabel=f"ns per kernel evaluation, {threads} thread(s)")
    one.set(xlabel="features d", ylabel="ms for one row")
    many.legend()
    one.legend()
    path = folder / "prediction.png"
    figure.savefig(path, dpi=150)
    return [path]
