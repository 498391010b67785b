"""The exact kernel SVM: time, dual objective, support vectors, test error and prediction time beside other solvers.

LIBSVM's problem (free intercept, tolerance 1e-3) on each set, with one thread and with several. Other packages run in
processes of their own (`other_packages`), and those that are not installed are reported as absent. Dual objectives are
all computed in the same way, in float64, from the coefficients. --quick takes seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.exact import other_packages
from benchmarks.shared.results import save
from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import checkerboard, load
from slimsvm.kernels import RBF, KernelRows

Array = np.ndarray

# The loader's name, C and γ; the checkerboard is generated.
BOARD = "checkerboard"
SETS = {
    BOARD: (BOARD, 1.0, 10.0),
    "adult": ("adult", 32.0, 2.0**-7),
    "ijcnn1": ("ijcnn1", 32.0, 2.0),
    "cod-rna": ("cod-rna", 32.0, 2.0**-3),
    "mnist-38": ("mnist-38", 10.0, 0.02),
    "money-fx": ("money-fx", 10.0, 0.25),
    "covtype": ("covtype", 10.0, 8.0),
}


class Problem(NamedTuple):
    """A set, its C and γ."""

    name: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array
    C: float
    gamma: float


# Which take several threads. The first that is measured is what the predictions of the others are compared with.
COMPARATORS = {
    "scikit-learn": False,
    "libsvm-official": False,
    "scikit-learn-intelex": True,
    "thundersvm": True,
    "slimsvm": True,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks exact``."""
    parser.add_argument("--quick", action="store_true", help="seconds: a checkerboard of 1,000 rows")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument("--methods", nargs="+", choices=COMPARATORS, default=list(COMPARATORS), help="default: all")
    parser.add_argument(
        "--threads", nargs="+", type=options.positive_integer, default=[1, 4], metavar="T", help="default: 1 4"
    )
    parser.add_argument(
        "--max-n", type=options.positive_integer, default=None, metavar="N", help="N rows drawn at random"
    )
    parser.add_argument(
        "--slow-max-n", type=options.positive_integer, default=60_000, metavar="N",
        help="leave LIBSVM and scikit-learn's SVC out above N rows (ten minutes at 100,000; default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--peers-python", default=sys.executable, metavar="PYTHON",
        help="interpreter that has the packages other than scikit-learn (default: the one that runs this)",
    )  # fmt: skip
    parser.add_argument(
        "--limit", type=options.positive, default=900.0, metavar="SECONDS",
        help="give another package up after this long (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit everything.

    Returns
    -------
    dict
        ``records``, one for each fit or absence, and ``table``.
    """
    records: list[dict[str, Any]] = []
    for problem in problems(args):
        reference = None
        for name in args.methods:
            for n_threads in args.threads if COMPARATORS[name] else [1]:
                record = {"data": problem.name, "n_train": problem.X.shape[0], "method": name, "threads": n_threads}
                found: dict[str, Any] | str = f"more than {args.slow_max_n} rows"
                if COMPARATORS[name] or problem.X.shape[0] <= args.slow_max_n:
                    found = measure(name, problem, n_threads, args)
                if isinstance(found, str):
                    records.append(record | {"absent": found})
                    continue
                predicted = found["predicted"]
                reference = predicted if reference is None else reference
                figures = figures_of(found, problem) | {"same": float(np.mean(predicted == reference))}
                say(f"{problem.name}, {name}, {n_threads} thread(s): {figures['seconds']:.2f} s")
                records.append(record | figures | {"absent": None})
                # What was measured is there if the run is cut short.
                save({"records": records, "table": tabulated(records)}, Path(args.output) / "exact.json")
    return {"records": records, "table": tabulated(records)}


def problems(args: argparse.Namespace):
    """The sets asked for, one at a time."""
    if args.quick:
        yield board(1000, 500)
        return
    for name in args.sets:
        if name == BOARD:
            yield board(args.max_n or 100_000, 100_000)
            continue
        source, C, gamma = SETS[name]
        data = load(source)
        chosen = some_rows(len(data.y_train), args.max_n)
        X, X_test = other_packages.narrow(data.X_train[chosen]), other_packages.narrow(data.X_test)
        yield Problem(name, X, data.y_train[chosen], X_test, data.y_test, C, gamma)


def board(n: int, n_test: int) -> Problem:
    """A checkerboard."""
    return Problem(BOARD, *checkerboard(n, random_state=0), *checkerboard(n_test, random_state=1), *SETS[BOARD][1:])


def some_rows(n: int, size: int | None) -> Array:
    """Numbers of rows drawn at random, or of all, in their order."""
    if size is None or size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def measure(name: str, problem: Problem, n_threads: int, args: argparse.Namespace) -> dict[str, Any] | str:
    """What `other_packages.measure` finds, of other packages in a process of their own; or why it finds nothing."""
    if name == "slimsvm":

        def ours():
            return SVC(
                C=problem.C, gamma=problem.gamma, tol=other_packages.TOL, solver="exact", intercept="free",
                n_jobs=n_threads, random_state=0, memory_limit=2 * other_packages.CACHE_MEGABYTES,
            )  # fmt: skip

        return other_packages.measure(ours, problem.X, problem.y, problem.X_test)
    python = sys.executable if name == "scikit-learn" else args.peers_python
    with tempfile.TemporaryDirectory() as folder:
        other_packages.write(Path(folder) / "train.npz", problem.X, problem.y)
        other_packages.write(Path(folder) / "test.npz", problem.X_test, problem.y_test)
        command = [python, other_packages.__file__, name, repr(problem.C), repr(problem.gamma), str(n_threads), folder]
        environment = os.environ | {"OMP_NUM_THREADS": str(n_threads)}
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=args.limit)
        except subprocess.TimeoutExpired:
            return f"more than {args.limit:g} s"
        if done.returncode == other_packages.ABSENT:
            return "not installed"
        if done.returncode:
            return f"failed: {(done.stderr.strip() or str(done.returncode)).splitlines()[-1]}"
        with np.load(Path(folder) / "found.npz") as file:
            return {key: file[key] for key in file}


def figures_of(found: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """What is reported of a fit."""
    return {
        "seconds": float(found["seconds"]),
        "predict_seconds": float(found["predict_seconds"]),
        "dual": dual_objective(problem.X[found["support"]], found["coef"], problem.gamma),
        "n_vectors": len(found["coef"]),
        "test_error": float(np.mean(found["predicted"] != problem.y_test)),
    }


def dual_objective(vectors: Any, coef: Array, gamma: float) -> float:
    """Σ α − ½ v'Kv of v = α y, in float64."""
    rows = KernelRows(RBF(gamma), vectors, dtype=np.float64)
    scores = rows.scores(rows.points(np.arange(len(coef))), coef[:, None])[:, 0]
    return float(np.abs(coef).sum() - 0.5 * coef @ scores)


def tabulated(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each record; speeds as multiples of scikit-learn's, dual objectives as differences from the best."""
    table = []
    for record in records:
        here = [r for r in records if r["data"] == record["data"] and r["absent"] is None]
        line = {
            "data": record["data"],
            "rows": record["n_train"],
            "method": record["method"],
            "threads": record["threads"],
        }
        if record["absent"] is not None:
            table.append(line | {"seconds": record["absent"]})
            continue
        theirs = [r["seconds"] for r in here if r["method"] == "scikit-learn"]
        best = max(r["dual"] for r in here)
        table.append(
            line
            | {
                "seconds": round(record["seconds"], 2),
                "× scikit-learn": round(theirs[0] / record["seconds"], 1) if theirs else None,
                "vectors": record["n_vectors"],
                "dual": round(record["dual"], 3),
                "below best": float(f"{(best - record['dual']) / best:.1e}"),
                "test error %": round(100 * record["test_error"], 2),
                "same %": round(100 * record["same"], 3),
                "prediction s": round(record["predict_seconds"], 3),
            }
        )
    return table


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw seconds of every method on every set."""
    from matplotlib.figure import Figure

    measured = [r for r in result["records"] if r["absent"] is None]
    names = list(dict.fromkeys(r["data"] for r in measured))
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for method, n_threads in dict.fromkeys((r["method"], r["threads"]) for r in measured):
        found = [r for r in measured if (r["method"], r["threads"]) == (method, n_threads)]
        places = [names.index(r["data"]) for r in found]
        axes.semilogy(places, [r["seconds"] for r in found], "o", label=f"{method}, {n_threads} thread(s)")
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="seconds to train")
    if measured:
        axes.legend(fontsize="small")
    path = folder / "exact.png"
    figure.savefig(path, dpi=150)
    return [path]
