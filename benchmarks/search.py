"""A search over C and gamma by five folds: `GridSearchSVC` beside scikit-learn's `GridSearchCV` over its own `SVC`.

The grid has ten values of C from 0.01 to 1000 and ten of gamma from 0.001 to 10. scikit-learn fits the candidates that
a seed draws of it, half of them before ours and half after: its seconds are those times 100 by their number, ours those
of the whole grid. With one thread seconds are those of the processor, so that other work on the machine has no part in
them. Scores are shares of right labels, of the candidates that both have.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.preprocessing import StandardScaler

from slimsvm import GridSearchSVC
from slimsvm.cli import options
from slimsvm.datasets import load

Array = np.ndarray

GRID = {"C": np.logspace(-2, 3, 10).tolist(), "gamma": np.logspace(-3, 1, 10).tolist()}
FOLDS, DRAWN = 5, 10


def generated() -> tuple[Array, Array]:
    """15,000 rows of two overlapping classes, 10 features."""
    X, y = make_classification(15_000, 10, n_informative=6, n_redundant=2, flip_y=0.03, random_state=0)
    return StandardScaler().fit_transform(X), y


def ijcnn1() -> tuple[Array, Array]:
    """The first 20,000 rows of ijcnn1."""
    data = load("ijcnn1")
    X = data.X_train[:20_000]
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X), data.y_train[:20_000]


def scaled(loader: Callable[..., Any]) -> tuple[Array, Array]:
    """One of scikit-learn's own sets."""
    X, y = loader(return_X_y=True)
    return StandardScaler().fit_transform(X), y


SETS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "generated": generated,
    "ijcnn1": ijcnn1,
    "breast-cancer": lambda: scaled(load_breast_cancer),
    "wine": lambda: scaled(load_wine),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks search``."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    parser.add_argument("--threads", nargs="+", type=options.positive_integer, default=[1, 2], metavar="T")
    parser.add_argument(
        "--drawn", type=options.positive_integer, default=DRAWN, metavar="N", help="theirs (default: %(default)s)"
    )
    parser.add_argument("--early-stopping", action="store_true", help="ours once more, with early_stopping=True")
    parser.add_argument("--seed", type=options.not_negative_integer, default=0, metavar="S")
    parser.add_argument("--max-rows", type=options.positive_integer, metavar="N", help="of a set: the first ones")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Search each set with each number of threads.

    Returns
    -------
    dict
        ``table``: one row per set and number of threads.
    """
    table = []
    for name in args.sets:
        X, y = SETS[name]()
        X, y = X[: args.max_rows], y[: args.max_rows]
        table += [measure(name, X, y, threads, args) for threads in args.threads]
    return {"table": table}


def measure(name: str, X: Array, y: Array, threads: int, args: argparse.Namespace) -> dict[str, Any]:
    """Both searches: seconds, and how far their scores are apart."""
    everything = list(ParameterGrid(GRID))
    drawn = np.random.default_rng(args.seed).choice(len(everything), min(args.drawn, len(everything)), replace=False)
    clock = time.process_time if threads == 1 else time.perf_counter
    theirs, their_seconds, our_seconds = np.empty(len(drawn)), 0.0, 0.0
    raced: dict[str, Any] = {}
    halves = np.array_split(np.arange(len(drawn)), 2)
    for half in halves:
        begun = clock()
        for k in half:
            candidate = {name: [value] for name, value in everything[drawn[k]].items()}
            search = GridSearchCV(svm.SVC(), candidate, cv=FOLDS, n_jobs=threads, refit=False).fit(X, y)
            theirs[k] = search.cv_results_["mean_test_score"][0]
        their_seconds += clock() - begun
        if half is halves[0]:
            begun = clock()
            ours = GridSearchSVC(param_grid=GRID, cv=FOLDS, n_jobs=threads, refit=False).fit(X, y)
            our_seconds = clock() - begun
            if args.early_stopping:
                raced = _raced(ours, clock, X, y)
                raced["of the whole search"] = round(raced["early stopping s"] / our_seconds, 2)
    their_seconds *= len(everything) / len(drawn)
    found = ours.cv_results_["mean_test_score"]
    return {
        "set": name,
        "rows": len(X),
        "threads": threads,
        "slimsvm s": round(our_seconds, 2),
        "sklearn s": round(their_seconds, 1),
        "times as fast": round(their_seconds / our_seconds, 1),
        "sklearn candidates": len(drawn),
        "scores apart, points": round(100 * float(np.abs(found[drawn] - theirs).max()), 3),
        "best score %": round(100 * float(ours.best_score_), 2),
        "best of theirs %": round(100 * float(theirs.max()), 2),
        "C": ours.best_params_["C"],
        "gamma": ours.best_params_["gamma"],
    } | raced


def _raced(whole: GridSearchSVC, clock: Callable[[], float], X: Array, y: Array) -> dict[str, Any]:
    """The same search with early stopping."""
    begun = clock()
    race = clone(whole).set_params(early_stopping=True).fit(X, y)
    return {
        "early stopping s": round(clock() - begun, 2),
        "best found": "the same" if race.best_params_ == whole.best_params_ else str(race.best_params_),
    }
