"""Error against vectors: ours of few and of all vectors, beside scikit-learn's `SVC` and boosted trees.

README's first screen, its picture and its first table, and the table of docs/how_it_works/compact.md come of it.
Seconds are of the wall, of one fit after another; ``ratio`` is to scikit-learn's `SVC` of the same set. What draws
random numbers is fitted with every seed: a row has the medians, and its ``runs`` hold each seed's. Sets that are here
without a test part are cut in two, 70 to 30.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.shared.timing import Elsewhere
from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.datasets import load

Array = np.ndarray
Parts = tuple[Array, Array, Array, Array]

SIZES = (10, 25, 50, 100, 200)
TREES, THEIRS, EXACT, AUTO = "boosted trees", "scikit-learn SVC", "SVC()", 'SVC(max_basis="auto")'


def loaded(name: str, scales: bool = False) -> Parts:
    """A benchmark set, dense: training rows and labels, test rows and labels."""
    data = load(name)
    dense = [X.toarray() if hasattr(X, "toarray") else np.asarray(X) for X in (data.X_train, data.X_test)]
    if scales:
        scaler = StandardScaler().fit(dense[0])
        dense = [scaler.transform(X) for X in dense]
    train, test = (np.ascontiguousarray(X, np.float32) for X in dense)
    return train, data.y_train, test, data.y_test


def generated(n: int, d: int, classes: int) -> Parts:
    """Made-up rows of classes that overlap."""
    X, y = make_classification(
        n, d, n_informative=min(d, 8), n_redundant=0, n_classes=classes, flip_y=0.02, random_state=7
    )
    X = StandardScaler().fit_transform(X).astype(np.float32)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    return X_train, y_train, X_test, y_test


# The rows, and the settings they are trained with.
SETS: dict[str, tuple[Callable[[], Parts], dict[str, Any]]] = {
    "ijcnn1": (lambda: loaded("ijcnn1"), {"C": 32.0, "gamma": 2.0}),
    "cod-rna": (lambda: loaded("cod-rna", scales=True), {"C": 32.0, "gamma": 0.125}),
    "adult": (lambda: loaded("adult"), {"C": 32.0, "gamma": 1 / 128}),
    "two classes": (lambda: generated(15_000, 10, 2), {"C": 1.0, "gamma": "scale"}),
    "five classes": (lambda: generated(12_000, 20, 5), {"C": 1.0, "gamma": "scale"}),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks few-vectors``."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["ijcnn1"], metavar="SET", help=", ".join(SETS))
    parser.add_argument("--sizes", nargs="*", type=options.positive_integer, default=list(SIZES), metavar="K")
    parser.add_argument(
        "--seeds", type=options.positive_integer, default=5, metavar="N", help="of what draws at random"
    )
    parser.add_argument("--max-rows", type=options.positive_integer, metavar="N", help="to train on: the first ones")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit every method to each set.

    Returns
    -------
    dict
        ``table``: one row per set and method.
    """
    table: list[dict[str, Any]] = []
    for name in args.sets:
        rows, settings = SETS[name]
        X, y, X_test, y_test = rows()
        lines = [
            fitted(name, what, models, X[: args.max_rows], y[: args.max_rows], X_test, y_test)
            for what, models in methods(settings, args.sizes, args.seeds)
        ]
        theirs = next(line["seconds"] for line in lines if line["method"] == THEIRS)
        table += [line | {"ratio": round(line["seconds"] / theirs, 3)} for line in lines]
    return {"table": table}


def methods(settings: dict[str, Any], sizes: list[int], n_seeds: int) -> list[tuple[str, list[Any]]]:
    """What is fitted, once for each seed where it is random, under the names of the table."""
    metric = {"C": settings["C"], "gamma": "learn"}

    def seeded(model: Any) -> list[Any]:
        return [clone(model).set_params(random_state=seed) for seed in range(n_seeds)]

    return [
        (THEIRS, [svm.SVC(cache_size=2000, **settings)]),
        (EXACT, [SVC(**settings)]),
        (AUTO, seeded(SVC(max_basis="auto", **settings))),
        *((f"SVC(max_basis={k})", seeded(SVC(max_basis=k, **settings))) for k in sizes),
        *((f'SVC(gamma="learn", max_basis={k})', seeded(SVC(max_basis=k, **metric))) for k in sizes),
        (TREES, seeded(HistGradientBoostingClassifier())),
    ]


def fitted(name: str, what: str, models: list[Any], X: Array, y: Array, X_test: Array, y_test: Array) -> dict[str, Any]:
    """One line of the table: medians over the models, and each of these where there are several."""
    runs = [measured(model, X, y, X_test, y_test) for model in models]
    line: dict[str, Any] = {"set": name, "rows": f"{X.shape[0]} x {X.shape[1]}", "method": what}
    for key in runs[0]:
        values = [run[key] for run in runs if run[key] is not None]
        line[key] = type(values[0])(np.round(np.median(values), 3)) if values else None
    return line | ({"runs": runs} if len(runs) > 1 else {})


def measured(model: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> dict[str, Any]:
    """One fit: seconds of the wall and of the processor, cores that others kept busy, test error and vectors."""
    begun, begun_cpu, elsewhere = time.perf_counter(), time.process_time(), Elsewhere()
    model.fit(X, y)
    seconds, cpu_seconds, others = time.perf_counter() - begun, time.process_time() - begun_cpu, elsewhere.cores()
    vectors = getattr(model, "n_basis_", None)
    if vectors is None and hasattr(model, "support_"):
        vectors = len(model.support_)
    error = 100 * float(np.mean(model.predict(X_test) != y_test))
    times = {"seconds": round(seconds, 3), "cpu_seconds": round(cpu_seconds, 3), "elsewhere": others}
    return times | {"error_percent": round(error, 3), "vectors": vectors}


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Error against vectors of each set: one picture each."""
    return [_picture(result["table"], name, folder) for name in dict.fromkeys(line["set"] for line in result["table"])]


def _picture(table: list[dict[str, Any]], name: str, folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    lines = {line["method"]: line for line in table if line["set"] == name}
    # As wide as a telephone, so that its letters are as large there as the page's.
    figure, ax = plt.subplots(figsize=(4.6, 3.5), layout="constrained")
    for begins, label, colour, marker in (
        ("SVC(max_basis=", "max_basis=K", "#0072b2", "o"),
        ('SVC(gamma="learn"', 'max_basis=K, gamma="learn"', "#009e73", "s"),
    ):
        points = [line for what, line in lines.items() if what.startswith(begins) and what != AUTO]
        ax.plot(*_columns(points), marker=marker, color=colour, label=label)
    for what, label, colour, marker in (
        (AUTO, 'max_basis="auto"', "#0072b2", "*"),
        (EXACT, "SVC()", "#0072b2", "D"),
        (THEIRS, "scikit-learn SVC()", "#d55e00", "X"),
    ):
        label = f"{label}: {lines[what]['seconds']:.1f} s"
        ax.plot(*_columns([lines[what]]), marker, color=colour, markersize=11, label=label)
    ax.axhline(lines[TREES]["error_percent"], color="#555555", linestyle=":", label=TREES)
    ax.set(xscale="log", xlabel="vectors in the model", ylabel="test error, %", title=f"{name}, {lines[EXACT]['rows']}")
    figure.legend(loc="outside lower center", ncols=2, fontsize=9, frameon=False, columnspacing=1.0, handletextpad=0.4)
    path = folder / f"error_against_vectors_{name.replace(' ', '_')}.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def _columns(lines: list[dict[str, Any]]) -> tuple[list[int], list[float]]:
    return [line["vectors"] for line in lines], [line["error_percent"] for line in lines]
