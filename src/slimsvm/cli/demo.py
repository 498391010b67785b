"""A first look: slimsvm beside scikit-learn's SVC on a few data sets, in one or two minutes.

Checkerboards and scikit-learn's handwritten digits need no file. Benchmark sets are added if their files are found
(`slimsvm datasets` lists them). Prints a table and writes a plot.
"""

from __future__ import annotations

import argparse
import io
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC as LibSVC

from slimsvm.cli import options
from slimsvm.cli.files import check_demo
from slimsvm.cli.output import count, machine, one_line_warnings, say, table, write_json
from slimsvm.datasets import checkerboard, find, load
from slimsvm.estimators import SVC
from slimsvm.kernels import RBF
from slimsvm.whole_file import write_whole

Array = np.ndarray

PEER = "scikit-learn SVC"
SOLVERS: dict[str, dict[str, Any]] = {
    "SVC()": {},
    "SVC(max_basis=100)": {"max_basis": 100},
    "SVC(max_basis=50, gamma='learn')": {"max_basis": 50, "gamma": "learn"},
}
# C and gamma of published experiments, which scikit-learn's SVC gets too, and how many rows it trains on in seconds.
SETS: dict[str, tuple[dict[str, float], int]] = {
    "adult": ({"C": 32, "gamma": 2**-7}, 10_000),
    "ijcnn1": ({"C": 32, "gamma": 2}, 20_000),
    "cod-rna": ({"C": 32, "gamma": 2**-3}, 20_000),
}
BOARD_ROWS = 20_000
TEST_ROWS = 10_000
# No fit of ours takes longer than this; the table would say so.
MAX_SECONDS = 60
CERTIFICATE_SECONDS = 20


@dataclass(frozen=True)
class Trial:
    """A data set with its split and the kernel machine's parameters."""

    name: str
    params: dict[str, Any]
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


ROWS = 20_000
PAGE = "slimsvm-demo.html"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; returns 0."""
    parser = argparse.ArgumentParser(prog="python -m slimsvm.cli.demo", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm demo``."""
    parser.add_argument("--output", default="demo", metavar="DIR", help="folder to write to (default: %(default)s)")
    parser.add_argument(
        "--rows",
        type=options.positive_integer,
        help="largest number of training rows; larger sets are sampled at random (default: 20000, adult: "
        "10000, because SVC's time grows with the square of it; with --web all)",
    )
    parser.add_argument(
        "--web",
        nargs="?",
        const=PAGE,
        metavar="FILE",
        help="instead write one web page (default: %(const)s) in which a browser scores models: points in the plane, "
        "and digits that you draw if the MNIST set is found",
    )


def run(args: argparse.Namespace) -> int:
    """Train, print the table, write the files; or write the web page."""
    if args.web is not None:
        from slimsvm.cli.web_demo import write_page

        check_demo([args.web])
        print(write_page(args.web, args.rows))
        return 0
    folder = Path(args.output)
    check_demo([folder / "demo.json", folder / "demo.png"])
    on = machine()
    print(f"slimsvm {on['slimsvm']}, {on['cores']} cores, {on['processor']}\n")
    with one_line_warnings():
        warnings.simplefilter("always", ConvergenceWarning)
        rows, fits = [], {}
        for trial in trials(args.rows or ROWS):
            for solver in (*SOLVERS, PEER):
                say(f"{trial.name}: {solver}")
                row, fits[trial.name, solver] = measure(trial, solver)
                rows.append(row)
    print(table([printed(row) for row in rows]))
    print(
        "\nseconds: of training; predict: of the test rows (at most 10,000). kernel evaluations: of training; LIBSVM,"
    )
    print(f"inside {PEER}, does not count them. gap: the objective is at most this far above the optimum. Everyone has")
    print("the same C and gamma; gamma='learn' starts from it.\n")
    print(certified(fits, trial))
    write_json(folder / "demo.json", {"machine": on, "rows": rows})
    written = [folder / "demo.json"]
    if find_spec("matplotlib") is None:
        say("no plot: matplotlib is not installed (pip install 'slimsvm[plots]')")
    else:
        written.append(draw(rows, folder / "demo.png"))
    print(f"written: {', '.join(map(str, written))}")
    return 0


def certified(fits: dict[tuple[str, str], Any], trial: Trial) -> str:
    """What a certificate says of the last set's model of 100 vectors."""
    solver = "SVC(max_basis=100)"
    found = fits[trial.name, solver].certificate(trial.X_train, trial.y_train, max_seconds=CERTIFICATE_SECONDS)
    return (
        f"certificate of {solver} on {trial.name}: objective {found.objective:.5g}, that of no machine of this "
        f"kernel and C is below {found.lower_bound:.5g} ({count(found.kernel_evals)} evaluations)"
    )


def trials(max_rows: int) -> Iterator[Trial]:
    """The data sets, one at a time: those that need no file, and those that are found."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    X, y = digits.data[order].astype(np.float32), digits.target[order]
    yield part("digits", {"C": 10, "gamma": 0.001}, (X[:1200], y[:1200], X[1200:], y[1200:]), max_rows)
    board = (*checkerboard(BOARD_ROWS, random_state=0), *checkerboard(TEST_ROWS, random_state=1))
    yield part("checkerboard", {"C": 1, "gamma": 10}, board, max_rows)
    for name, (params, rows) in SETS.items():
        if find(name) is None:
            say(f"{name}: not found, left out (`slimsvm datasets` says where data are looked for)")
            continue
        data = load(name, download=False)
        arrays = (data.X_train.astype(np.float32), data.y_train, data.X_test.astype(np.float32), data.y_test)
        yield part(name, params, arrays, min(rows, max_rows))


def part(name: str, params: dict[str, Any], arrays: Sequence[Array], max_rows: int) -> Trial:
    """At most ``max_rows`` random rows to train on and `TEST_ROWS` to test on, always the same ones."""
    rng = np.random.default_rng(0)
    X_train, y_train, X_test, y_test = arrays
    train = np.sort(rng.permutation(len(y_train))[:max_rows])
    test = np.sort(rng.permutation(len(y_test))[:TEST_ROWS])
    return Trial(name, params, X_train[train], y_train[train], X_test[test], y_test[test])


def measure(trial: Trial, solver: str) -> tuple[dict[str, Any], Any]:
    """Train and test once: what came of it, and the fitted machine."""
    if solver == PEER:
        estimator: Any = LibSVC(**trial.params)
    else:
        params = {"kernel": RBF(trial.params["gamma"])} | trial.params | SOLVERS[solver]
        estimator = SVC(**params, max_seconds=MAX_SECONDS, random_state=0)
    begun = time.perf_counter()
    estimator.fit(trial.X_train, trial.y_train)
    trained = time.perf_counter()
    predicted = estimator.predict(trial.X_test)
    tested = time.perf_counter()
    row = {
        "data": trial.name,
        "n_train": len(trial.y_train),
        "n_test": len(trial.y_test),
        "solver": solver,
        "error_rate": float(np.mean(predicted != trial.y_test)),
        "fit_seconds": trained - begun,
        "predict_seconds": tested - trained,
        "n_vectors": len(estimator.support_vectors_) if solver == PEER else estimator.n_basis_,
        "n_kernel_evals": getattr(estimator, "n_kernel_evals_", None),
        "relative_gap": relative_gap(estimator),
        "status": getattr(estimator, "status_", "converged"),
    }
    return row, estimator


def relative_gap(estimator: Any) -> float | None:
    """How far the objective is from the optimum at most, as a share of it; None where nothing bounds it."""
    bound = getattr(estimator, "lower_bound_", None)
    return None if bound is None else float((estimator.objective_ - bound) / estimator.objective_)


def printed(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the table shows it."""
    evaluations, gap = row["n_kernel_evals"], row["relative_gap"]
    shown = {
        "data": row["data"],
        "rows": row["n_train"],
        "solver": row["solver"],
        "test error %": f"{100 * row['error_rate']:.2f}",
        "seconds": f"{row['fit_seconds']:.2f}",
        "predict": f"{row['predict_seconds']:.2f}",
        "vectors": row["n_vectors"],
        "kernel evaluations": None if evaluations is None else count(evaluations),
        "gap %": None if gap is None else f"{100 * gap:.2f}",
    }
    return shown if row["status"] == "converged" else {**shown, "ended by": row["status"]}


def draw(rows: Sequence[dict[str, Any]], path: Path) -> Path:
    """Error against vectors and against seconds of every fit."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    names = list(dict.fromkeys(row["data"] for row in rows))
    shown = (("n_vectors", "vectors of the model"), ("fit_seconds", "seconds of training"))
    for axes, (of, label) in zip(figure.subplots(1, 2), shown, strict=True):
        for solver, marker in zip((*SOLVERS, PEER), "ovP*", strict=True):
            of_solver = [row for row in rows if row["solver"] == solver]
            axes.scatter(
                [row[of] for row in of_solver],
                [100 * row["error_rate"] for row in of_solver],
                c=[f"C{names.index(row['data'])}" for row in of_solver],
                marker=marker,
                s=90 if solver == PEER else 45,
            )
            axes.scatter([], [], c="grey", marker=marker, label=solver)
        for at, name in enumerate(names):
            axes.scatter([], [], c=f"C{at}", marker="s", label=name)
        axes.set(xscale="log", xlabel=label, ylabel="test error, %", title="one colour per data set")
    axes.legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    figure.savefig(picture, dpi=120, format=path.suffix.removeprefix("."))
    write_whole(path, [picture.getvalue()])
    return path


if __name__ == "__main__":
    sys.exit(main())
