"""The defaults beside scikit-learn's: `SVC()` and `SVR()`, and `SVC(max_basis="auto")`, with default C and γ.

Sets are made up by scikit-learn or come with it. Machines are compared with scikit-learn's at tol = 1e-6: *other* is
how many test rows `SVC` classifies otherwise, beside those of scikit-learn's own at its tol of 1e-3, and of `SVR` by
how much R² is apart. Seconds are of the process on all its threads; each machine's are the least of two fits, and its
ratio is to scikit-learn's of the same set, at 1e-3. That of "auto" to `SVC()` is ``of_exact``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets, svm
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, SVR
from slimsvm.cli import options

Array = np.ndarray
Pair = tuple[Array, Array]
FITS = 2


def _classes(n: int, d: int, k: int, seed: int) -> Callable[[], Pair]:
    informative = min(d, 8)
    return lambda: datasets.make_classification(
        n, d, n_informative=informative, n_redundant=0, n_classes=k, flip_y=0.02, random_state=seed
    )


CLASSES: dict[str, Callable[[], Pair]] = {
    "digits": lambda: datasets.load_digits(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "moons": lambda: datasets.make_moons(12_000, noise=0.3, random_state=1),
    "circles": lambda: datasets.make_circles(12_000, noise=0.15, factor=0.6, random_state=2),
    "two classes": _classes(15_000, 10, 2, 3),
    "two classes, 40 features": _classes(10_000, 40, 2, 4),
    "five classes": _classes(12_000, 20, 5, 5),
    "thirty classes": _classes(20_000, 12, 30, 6),
    "blobs": lambda: datasets.make_blobs(12_000, 6, centers=8, cluster_std=3.0, random_state=7)[:2],
    "Gaussian shells": lambda: datasets.make_gaussian_quantiles(n_samples=12_000, n_features=6, random_state=8),
}
TARGETS: dict[str, Callable[[], Pair]] = {
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman 1": lambda: datasets.make_friedman1(8_000, noise=1.0, random_state=9),
    "swiss roll": lambda: datasets.make_swiss_roll(8_000, noise=0.5, random_state=10),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks defaults``."""
    names = [*CLASSES, *TARGETS]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="SET", help=", ".join(names))
    parser.add_argument("--threads", type=options.positive_integer, default=1, metavar="T", help="default: 1")
    parser.add_argument("--max-rows", type=options.positive_integer, metavar="N", help="the first ones")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit every machine to each set.

    Returns
    -------
    dict
        ``table``: one row per set and machine.
    """
    table: list[dict[str, Any]] = []
    for name in args.sets:
        X, y = (CLASSES | TARGETS)[name]()
        X, y = StandardScaler().fit_transform(X[: args.max_rows]), y[: args.max_rows]
        if name in CLASSES:
            table += _of_classes(name, train_test_split(X, y, test_size=0.3, random_state=0, stratify=y), args.threads)
        else:
            y = (y - y.mean()) / y.std()
            table += _of_targets(name, train_test_split(X, y, test_size=0.3, random_state=0), args.threads)
    return {"table": table}


def _of_classes(name: str, parts: Any, threads: int) -> list[dict[str, Any]]:
    X, X_test, y, y_test = parts
    machines = {
        "scikit-learn, tol=1e-6": svm.SVC(tol=1e-6, cache_size=2000),
        "scikit-learn": svm.SVC(cache_size=2000),
        "SVC()": SVC(n_jobs=threads),
        'SVC(max_basis="auto")': SVC(max_basis="auto", random_state=0, n_jobs=threads),
    }
    seconds, fitted = _fitted(machines, X, y)
    found = {what: model.predict(X_test) for what, model in fitted.items()}
    reference = found["scikit-learn, tol=1e-6"]
    vectors = {
        what: model.n_basis_ if hasattr(model, "n_basis_") else len(model.support_) for what, model in fitted.items()
    }
    return [
        _line(name, X, what, seconds)
        | {"error_percent": round(100 * float(np.mean(found[what] != y_test)), 3)}
        | {"other": int(np.sum(found[what] != reference)), "vectors": vectors[what]}
        for what in machines
    ]


def _of_targets(name: str, parts: Any, threads: int) -> list[dict[str, Any]]:
    X, X_test, y, y_test = parts
    machines = {
        "scikit-learn, tol=1e-6": svm.SVR(tol=1e-6, cache_size=2000),
        "scikit-learn": svm.SVR(cache_size=2000),
        "SVR()": SVR(n_jobs=threads),
    }
    seconds, fitted = _fitted(machines, X, y)
    scores = {what: model.score(X_test, y_test) for what, model in fitted.items()}
    reference = scores["scikit-learn, tol=1e-6"]
    return [
        _line(name, X, what, seconds)
        | {"R2": round(float(scores[what]), 5), "R2_apart": float(f"{abs(scores[what] - reference):.1e}")}
        for what in machines
    ]


def _fitted(machines: dict[str, Any], X: Array, y: Array) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds of each machine, and the machines fitted; in turns, so that a busy moment meets all of them."""
    seconds: dict[str, float] = {}
    for _ in range(FITS):
        for what, model in machines.items():
            begun = time.process_time()
            model.fit(X, y)
            seconds[what] = min(seconds.get(what, np.inf), time.process_time() - begun)
    return seconds, machines


def _line(name: str, X: Array, what: str, seconds: dict[str, float]) -> dict[str, Any]:
    line = {"set": name, "rows": f"{X.shape[0]} x {X.shape[1]}", "machine": what, "seconds": round(seconds[what], 4)}
    line["ratio"] = round(seconds[what] / seconds["scikit-learn"], 3)
    if "auto" in what:
        line["of_exact"] = round(seconds[what] / seconds["SVC()"], 2)
    return line
