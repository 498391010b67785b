"""Data of scikit-learn that nobody scaled: `SVC` and `SVR` beside scikit-learn's, for many kernels and C.

Linear, RBF (gamma "scale" and "auto") and polynomial kernels (degree 2 and 3, gamma also 1, coef0 0 and 1), at five C.
LIBSVM stops after --limit steps. Seconds are of the process, on one thread, the median of --fits fits of each in turns.
The table has a line per set: fits, how many of them converged, the ratio of seconds where LIBSVM converged (geometric
mean and largest), and by how much the score on a fourth of the rows is below LIBSVM's, at most. --quick takes seconds.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from sklearn import datasets, svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import slimsvm
from slimsvm.cli import options

Array = np.ndarray


def _diabetes() -> tuple[Array, Array]:
    return datasets.load_diabetes(return_X_y=True, scaled=False)


def _diabetes_classes() -> tuple[Array, Array]:
    X, y = _diabetes()
    return X, (y > np.median(y)).astype(int)


SETS: dict[str, tuple[str, Callable[[], tuple[Array, Array]]]] = {
    "breast cancer": ("SVC", lambda: datasets.load_breast_cancer(return_X_y=True)),
    "wine": ("SVC", lambda: datasets.load_wine(return_X_y=True)),
    "digits": ("SVC", lambda: datasets.load_digits(return_X_y=True)),
    "diabetes": ("SVR", _diabetes),
    "diabetes, above the median": ("SVC", _diabetes_classes),
}
KERNELS: list[dict[str, Any]] = [
    {"kernel": "linear"},
    *({"kernel": "rbf", "gamma": gamma} for gamma in ("scale", "auto")),
    *(
        {"kernel": "poly", "degree": degree, "gamma": gamma, "coef0": coef0}
        for degree, gamma, coef0 in product((2, 3), ("scale", "auto", 1.0), (0.0, 1.0))
    ),
]
C_VALUES = [0.1, 1.0, 10.0, 100.0, 1000.0]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks unscaled``."""
    parser.add_argument("--quick", action="store_true", help="seconds: wine with a linear kernel at C = 1")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET", help=", ".join(SETS))
    parser.add_argument("--kernels", nargs="+", choices=("linear", "rbf", "poly"), default=["linear", "rbf", "poly"])
    parser.add_argument("--C", nargs="+", type=options.positive, default=C_VALUES, metavar="C")
    parser.add_argument(
        "--limit", type=options.positive_integer, default=20_000_000, metavar="STEPS", help="default: %(default)s"
    )
    parser.add_argument("--fits", type=options.positive_integer, default=3, metavar="N", help="default: %(default)s")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit both at every C and kernel.

    Returns
    -------
    dict
        ``records``, one for each kernel and C, and ``table``.
    """
    names, chosen, C_values = (["wine"], ["linear"], [1.0]) if args.quick else (args.sets, args.kernels, args.C)
    records = []
    for name in names:
        machine, make = SETS[name]
        parts = train_test_split(*make(), random_state=0)
        for kernel, C in product([k for k in KERNELS if k["kernel"] in chosen], C_values):
            records.append({"set": name, "C": C} | kernel | _cell(machine, kernel | {"C": C}, parts, args))
    return {"records": records, "table": [_line(name, [r for r in records if r["set"] == name]) for name in names]}


def _cell(machine: str, parameters: dict[str, Any], parts: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds, score and status of both."""
    X, X_test, y, y_test = parts
    ours = getattr(slimsvm, machine)(**parameters, n_jobs=1)
    theirs = getattr(svm, machine)(**parameters, max_iter=args.limit)
    seconds: dict[str, list[float]] = {"ours": [], "theirs": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(args.fits):
            for who, model in (("theirs", theirs), ("ours", ours)):
                begun = time.process_time()
                model.fit(X, y)
                seconds[who].append(time.process_time() - begun)
    return {
        "seconds": float(np.median(seconds["ours"])),
        "sklearn_seconds": float(np.median(seconds["theirs"])),
        "score": ours.score(X_test, y_test),
        "sklearn_score": theirs.score(X_test, y_test),
        "gap": float(ours.gap_),
        "converged": ours.status_ == "converged",
        "sklearn_converged": bool(np.max(theirs.n_iter_) < args.limit),
    }


def _line(name: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    both = [r for r in records if r["sklearn_converged"]]
    ratios = np.array([r["seconds"] / r["sklearn_seconds"] for r in both])
    return {
        "set": name,
        "fits": len(records),
        "converged": sum(r["converged"] for r in records),
        "sklearn_converged": len(both),
        "seconds_ratio": round(float(np.exp(np.log(ratios).mean())), 3) if both else None,
        "largest_ratio": round(float(ratios.max()), 2) if both else None,
        "score_below": round(max((r["sklearn_score"] - r["score"] for r in both), default=0.0), 4),
    }
