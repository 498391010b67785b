"""What learned bases reach: test errors of `Refine`'s defaults on the benchmark sets, one row per set and setting.

    python -m benchmarks learned-bases                                   # everything that is quick, 5 seeds
    python -m benchmarks learned-bases --sets ijcnn1 cod-rna --seeds 2   # some sets
    python -m benchmarks learned-bases --sets covtype checkerboard --n-jobs 4
    python -m benchmarks learned-bases --curve --seeds 1      # covtype: error against vectors, beside trees

Results are on disk after every setting. C and gamma are those of the papers' tables, or C = 10 from gamma = "scale"
where no search is the point.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning

from benchmarks.shared.results import save
from slimsvm import SVC, Refine, datasets
from slimsvm.cli import options
from slimsvm.cli.output import say


class Setting(NamedTuple):
    """A set, the number of vectors, how they are trained, and the test error in percent that was asked for."""

    data: str
    max_basis: int
    C: float
    gamma: float | str
    learn_metric: bool
    target: float | None


SETTINGS = [
    Setting("ijcnn1", 100, 32, 2.0, False, 1.1),
    Setting("ijcnn1", 50, 32, 2.0, True, 1.2),
    Setting("ijcnn1", 100, 10, "scale", True, 1.2),
    Setting("cod-rna", 50, 32, 0.125, False, 3.55),
    Setting("cod-rna", 50, 32, 0.125, True, 3.5),
    Setting("cod-rna", 50, 10, "scale", True, 3.6),
    Setting("adult", 20, 32, 2**-7, False, 14.9),
    Setting("mnist-38", 100, 10, 0.02, False, 0.5),
    Setting("mnist-38", 50, 10, 0.02, True, 0.5),
    Setting("covtype", 200, 10, 8.0, True, 12.0),
    Setting("covtype", 1000, 10, 8.0, True, 8.5),
    Setting("covtype", 1000, 10, 8.0, False, 14.0),
    Setting("covtype", 1000, 10, "scale", True, 9.5),
    Setting("mnist", 500, 10, 0.02, False, 1.6),
    Setting("mnist", 500, 10, 0.02, True, 1.6),
    Setting("checkerboard", 100, 1, 10.0, False, 1.0),
]
QUICK = ("ijcnn1", "cod-rna", "adult", "mnist-38")
CHECKERBOARD_ROWS, CHECKERBOARD_FLIPS = 800_000, 0.2
# The curve of covtype: numbers of vectors (learned metric, from gamma = "scale"), and of trees.
CURVE_VECTORS, CURVE_TREES = (50, 100, 200, 500, 1000, 2000), (100, 300, 1000, 2000)


def load(name: str) -> tuple:
    """X, y, X_test, y_test; covtype's first 100,000 training rows."""
    if name == "checkerboard":
        X, y = datasets.checkerboard(CHECKERBOARD_ROWS, noise=0, flip=CHECKERBOARD_FLIPS, random_state=0)
        return X, y, *datasets.checkerboard(100_000, noise=0, random_state=1)
    data = datasets.load(name)
    X, X_test = (
        np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32) for X in (data.X_train, data.X_test)
    )
    n = 100_000 if name == "covtype" else len(X)
    return X[:n], data.y_train[:n], X_test, data.y_test


def fit(parts: tuple, setting: Setting, seed: int, n_jobs: int) -> dict:
    """One fit: error in percent, seconds, objective and gap within the basis."""
    X, y, X_test, y_test = parts
    solver = Refine(setting.max_basis, learn_metric=setting.learn_metric)
    clf = SVC(C=setting.C, gamma=setting.gamma, solver=solver, random_state=seed, n_jobs=n_jobs)
    begun = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - begun
    error = 100 * float(np.mean(clf.predict(X_test) != y_test))
    gap = 1 - clf.counters_["bound_in_basis"] / clf.objective_
    return {
        **setting._asdict(), "seed": seed, "n_jobs": n_jobs, "error": error, "seconds": seconds,
        "objective": clf.objective_, "gap": gap, "epochs": len(clf.history_),
    }  # fmt: skip


def trees(parts: tuple, n_trees: int, seed: int) -> dict:
    """scikit-learn's gradient-boosted trees on the same rows, with their defaults but for the number of trees."""
    X, y, X_test, y_test = parts
    clf = HistGradientBoostingClassifier(max_iter=n_trees, early_stopping=False, random_state=seed)
    begun = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - begun
    error = 100 * float(np.mean(clf.predict(X_test) != y_test))
    return {"data": "covtype", "trees": n_trees, "seed": seed, "error": error, "seconds": seconds}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks learned-bases``."""
    sets = list(dict.fromkeys(setting.data for setting in SETTINGS))
    parser.add_argument("--sets", nargs="+", choices=sets, default=list(QUICK), help="default: those that are quick")
    parser.add_argument(
        "--vectors", type=options.positive_integer, metavar="K", help="only the settings with this number of vectors"
    )
    parser.add_argument("--seeds", type=options.positive_integer, default=5, help="runs (default: %(default)s)")
    parser.add_argument("--first-seed", type=options.not_negative_integer, default=0, metavar="SEED")
    parser.add_argument("--n-jobs", type=options.jobs, default=1, metavar="T", help="threads (default: %(default)s)")
    parser.add_argument("--curve", action="store_true", help="covtype's error against vectors, and against trees")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit the settings asked for.

    Returns
    -------
    dict
        ``records``, one for each fit, and ``table``: means over the seeds.
    """
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    result: dict[str, Any] = {"records": [], "table": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for found in curve(args.vectors, seeds, args.n_jobs) if args.curve else settings(args, seeds):
            row = mean(found)
            say(", ".join(f"{name} {value}" for name, value in row.items() if value is not None))
            result["records"] += found
            result["table"].append(row)
            save(result, Path(args.output) / "learned-bases.json")
    return result


def settings(args: argparse.Namespace, seeds: range) -> Iterator[list[dict]]:
    """Records of each setting of the sets asked for, one for each seed."""
    parts: dict[str, tuple] = {}
    for setting in SETTINGS:
        if setting.data not in args.sets or args.vectors not in (None, setting.max_basis):
            continue
        if setting.data not in parts:
            parts = {setting.data: load(setting.data)}
        yield [fit(parts[setting.data], setting, seed, args.n_jobs) for seed in seeds]


def curve(n_vectors: int | None, seeds: range, n_jobs: int) -> Iterator[list[dict]]:
    """Records on covtype for each number of vectors, then for each number of trees."""
    parts = load("covtype")
    for size in CURVE_VECTORS if n_vectors is None else [n_vectors]:
        setting = Setting("covtype", size, 10, "scale", True, None)
        yield [fit(parts, setting, seed, n_jobs) for seed in seeds]
    for n_trees in CURVE_TREES:
        yield [trees(parts, n_trees, seed) for seed in seeds]


def mean(records: list[dict]) -> dict[str, Any]:
    """Mean of the runs of one setting: error in percent with its standard error, and seconds."""
    errors, seconds = ([record[name] for record in records] for name in ("error", "seconds"))
    shown = ("data", "max_basis", "trees", "C", "gamma", "learn_metric", "target")
    return {
        **{name: records[0][name] for name in shown if name in records[0]},
        "error %": round(float(np.mean(errors)), 3),
        "±": round(float(np.std(errors, ddof=1)) / len(errors) ** 0.5, 3) if len(errors) > 1 else None,
        "seconds": round(float(np.mean(seconds)), 2),
    }
