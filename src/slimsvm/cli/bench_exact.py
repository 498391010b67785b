"""The exact kernel SVM: time, dual objective, support vectors, test error and prediction time beside other solvers.

LIBSVM's problem (free intercept, tolerance 1e-3) on each set, with one thread and with several. Comparators that are
not installed are reported as absent. Dual objectives are all computed in the same way, in float64, from the
coefficients. --quick takes seconds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import checkerboard, load
from slimsvm.kernels import RBF, KernelRows
from slimsvm.rows import is_sparse

Array = np.ndarray

# The loader's name, C and γ.
SETS = {
    "adult": ("adult", 32.0, 2.0**-7),
    "ijcnn1": ("ijcnn1", 32.0, 2.0),
    "cod-rna": ("cod-rna", 32.0, 2.0**-3),
    "mnist-38": ("mnist-38", 10.0, 0.02),
    "money-fx": ("money-fx", 10.0, 0.25),
    "covtype": ("covtype", 10.0, 8.0),
}
TOL, CACHE_MEGABYTES = 1e-3, 1000
PREDICTIONS = 2  # of which the faster counts


class Problem(NamedTuple):
    """A set, its C and γ."""

    name: str
    X: Any
    y: Array
    X_test: Any
    y_test: Array
    C: float
    gamma: float


class Comparator(NamedTuple):
    """A solver of the problem.

    ``make(C, gamma, n_threads)`` is an unfitted estimator with scikit-learn's ``fit``, ``predict``,
    ``support_vectors_`` and ``dual_coef_``; ``package`` is what must be installed.
    """

    make: Callable[[float, float, int], Any]
    package: str
    takes_threads: bool


def _slimsvm(C: float, gamma: float, n_threads: int) -> Any:
    return SVC(
        C=C, gamma=gamma, tol=TOL, solver="exact", intercept="free", n_jobs=n_threads, random_state=0,
        memory_limit=2 * CACHE_MEGABYTES,
    )  # fmt: skip


def _sklearn(C: float, gamma: float, n_threads: int) -> Any:
    from sklearn.svm import SVC as TheirSVC

    return TheirSVC(C=C, gamma=gamma, tol=TOL, cache_size=CACHE_MEGABYTES)


def _intelex(C: float, gamma: float, n_threads: int) -> Any:
    import daal4py
    from sklearnex.svm import SVC as IntelSVC

    daal4py.daalinit(n_threads)
    return IntelSVC(C=C, gamma=gamma, tol=TOL, cache_size=CACHE_MEGABYTES)


def _thundersvm(C: float, gamma: float, n_threads: int) -> Any:
    from thundersvm import SVC as ThunderSVC

    return ThunderSVC(C=C, gamma=gamma, tol=TOL, n_jobs=n_threads, max_mem_size=CACHE_MEGABYTES)


class LibSVM:
    """LIBSVM's own Python interface, as far as it is needed here."""

    def __init__(self, C: float, gamma: float):
        self.options = f"-t 2 -c {C!r} -g {gamma!r} -e {TOL!r} -m {CACHE_MEGABYTES} -q"

    def fit(self, X: Any, y: Array) -> LibSVM:
        """Train."""
        from libsvm import svmutil

        self.model = svmutil.svm_train(np.asarray(y, float), X, self.options)
        self.support_vectors_ = X[np.asarray(self.model.get_sv_indices()) - 1]
        self.dual_coef_ = np.asarray(self.model.get_sv_coef()).T
        return self

    def predict(self, X: Any) -> Array:
        """Labels."""
        from libsvm import svmutil

        return np.asarray(svmutil.svm_predict(np.zeros(X.shape[0]), X, self.model, "-q")[0])


# The first that is measured is what the predictions of the others are compared with.
COMPARATORS = {
    "scikit-learn": Comparator(_sklearn, "sklearn", takes_threads=False),
    "libsvm-official": Comparator(lambda C, gamma, n_threads: LibSVM(C, gamma), "libsvm", takes_threads=False),
    "scikit-learn-intelex": Comparator(_intelex, "sklearnex", takes_threads=True),
    "thundersvm": Comparator(_thundersvm, "thundersvm", takes_threads=True),
    "slimsvm": Comparator(_slimsvm, "slimsvm", takes_threads=True),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm bench exact``."""
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
            comparator = COMPARATORS[name]
            for n_threads in args.threads if comparator.takes_threads else [1]:
                record = {"data": problem.name, "n_train": problem.X.shape[0], "method": name, "threads": n_threads}
                absent = reason_to_leave_out(comparator, problem, args.slow_max_n)
                if absent is None:
                    measured, predicted = measure(comparator, problem, n_threads)
                    reference = predicted if reference is None else reference
                    record |= measured | {"same": float(np.mean(predicted == reference))}
                    say(f"{problem.name}, {name}, {n_threads} thread(s): {measured['seconds']:.2f} s")
                records.append(record | {"absent": absent})
    return {"records": records, "table": tabulated(records)}


def problems(args: argparse.Namespace):
    """The sets asked for, one at a time."""
    if args.quick:
        yield Problem(
            "checkerboard", *checkerboard(1000, random_state=0), *checkerboard(500, random_state=1), 1.0, 10.0
        )
        return
    for name in args.sets:
        source, C, gamma = SETS[name]
        data = load(source)
        chosen = some_rows(len(data.y_train), args.max_n)
        parts = narrow(data.X_train[chosen]), data.y_train[chosen], narrow(data.X_test), data.y_test
        yield Problem(name, *parts, C, gamma)


def some_rows(n: int, size: int | None) -> Array:
    """Numbers of so many rows drawn at random, or of all, in their order."""
    if size is None or size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size, replace=False))


def narrow(X: Any) -> Any:
    """Sparse rows with 32-bit indices, as LIBSVM's interfaces take them."""
    if not is_sparse(X):
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)


def reason_to_leave_out(comparator: Comparator, problem: Problem, slow_max_n: int) -> str | None:
    """Why a comparator is not measured, or None."""
    if find_spec(comparator.package) is None:
        return "not installed"
    if not comparator.takes_threads and problem.X.shape[0] > slow_max_n:
        return f"more than {slow_max_n} rows"
    return None


def measure(comparator: Comparator, problem: Problem, n_threads: int) -> tuple[dict[str, Any], Array]:
    """One fit, and its predictions of the test rows."""
    head = some_rows(problem.X.shape[0], 500)
    make, settings = comparator.make, (problem.C, problem.gamma, n_threads)
    make(*settings).fit(narrow(problem.X[head]), problem.y[head]).predict(problem.X_test[:10])  # once per process
    begun = time.perf_counter()
    clf = make(*settings).fit(problem.X, problem.y)
    seconds, predict_seconds = time.perf_counter() - begun, []
    for _ in range(PREDICTIONS):
        begun = time.perf_counter()
        predicted = clf.predict(problem.X_test)
        predict_seconds.append(time.perf_counter() - begun)
    coef = np.ravel(clf.dual_coef_.toarray() if hasattr(clf.dual_coef_, "toarray") else clf.dual_coef_)
    return {
        "seconds": seconds,
        "predict_seconds": min(predict_seconds),
        "dual": dual_objective(clf.support_vectors_, coef, problem.gamma),
        "n_vectors": len(coef),
        "test_error": float(np.mean(predicted != problem.y_test)),
    }, predicted


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
