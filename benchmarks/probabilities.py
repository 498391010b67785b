"""`SVC(probability=True)` beside the same machine in CalibratedClassifierCV of scikit-learn, which fits it six times.

Sets of packages that carry data, with categories and gaps (`benchmarks.shared.package_sets`): numbers standardised, a
column for each category. Half of them settled what the library does, the others, ``--side report``, did not; of those
copies of the first are left out. Machines have default C and γ. *Rank* and *ratio* are those of the mean of a set's
splits; ratios are geometric means, of log loss, Brier score and seconds of the process (to those of the plain fit).
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.shared.package_sets import SIDES, Table, copies, read
from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.cli.output import say

Array = np.ndarray

OURS = "SVC(probability=True)"
TEST_ROWS = 5000
FOLDS_ROWS = 10  # of a class to train on, at least: five folds need them
LEAST = 1e-3  # losses below count as this one: sets without errors would be all of a mean of ratios


def machines() -> dict[str, Any]:
    """The plain machine, and those with probabilities."""
    cross_validated = {
        f'CalibratedClassifierCV(SVC(), method="{method}", cv=5, ensemble=False)': CalibratedClassifierCV(
            SVC(n_jobs=1), method=method, cv=5, ensemble=False
        )
        for method in ("sigmoid", "temperature")
    }
    return {"SVC()": SVC(n_jobs=1), OURS: SVC(probability=True, n_jobs=1), **cross_validated}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks probabilities``."""
    parser.add_argument("--side", choices=list(SIDES), default="settle", help="default: settle")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="default: all of the side")
    parser.add_argument("--splits", type=options.positive_integer, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--max-rows", type=options.positive_integer, default=3000, metavar="N", help="to train on (default: 3000)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit the machines to each set and split.

    Returns
    -------
    dict
        ``table``: a line for each machine. ``sets``: one for each set and machine. ``copies``: what was left out.
    """
    lines: list[dict[str, Any]] = []
    left_out = {}
    for name in args.sets or SIDES[args.side]:
        if args.side == "report" and (same := copies(name)):
            left_out[name] = same
            say(f"{name} is a copy of {', '.join(same)}")
            continue
        lines += of_set(name, read(args.side, name), args.splits, args.max_rows)
        say(f"{name}: " + ", ".join(f"{line['log_loss']:.4f}" for line in lines[-3:]))
    return {"table": summary(lines), "sets": lines, "copies": left_out}


def of_set(name: str, table: Table, n_splits: int, most: int) -> list[dict[str, Any]]:
    """Means of the splits, a line for each machine with probabilities."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for seed in range(n_splits):
        X, X_test, y, y_test = train_test_split(*table, test_size=0.3, random_state=seed, stratify=table.y)
        if len(y) > most:
            X, _, y, _ = train_test_split(X, y, train_size=most, random_state=seed, stratify=y)
        X, y, X_test, y_test = of_large_classes(X, y, X_test[:TEST_ROWS], y_test[:TEST_ROWS])
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        SVC(n_jobs=1).fit(X, y)  # what is made once does not count
        for what, machine in machines().items():
            found.setdefault(what, []).append(measured(machine, X, y, X_test, y_test))
    means = {what: np.mean(parts, axis=0) for what, parts in found.items()}
    plain = means.pop("SVC()")[2]
    facts = {"set": name, "rows": len(y), "features": X.shape[1], "classes": len(np.unique(y))}
    return [
        facts
        | {"machine": what, "log_loss": round(loss, 5), "brier": round(brier, 5)}
        | {"seconds": round(seconds, 4), "of_plain": round(seconds / plain, 2)}
        for what, (loss, brier, seconds) in ((what, map(float, mean)) for what, mean in means.items())
    ]


def of_large_classes(X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[Array, ...]:
    """Rows of the classes that have enough of them to train on, numbered anew."""
    large = np.flatnonzero(np.bincount(y) >= FOLDS_ROWS)
    own, theirs = np.isin(y, large), np.isin(y_test, large)
    return X[own], np.searchsorted(large, y[own]), X_test[theirs], np.searchsorted(large, y_test[theirs])


def measured(machine: Any, X: Array, y: Array, X_test: Array, y_test: Array) -> tuple[float, float, float]:
    """Log loss, Brier score (summed over classes) and seconds of the fit; the plain machine has no probabilities."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.fit(X, y)
    seconds = time.process_time() - begun
    if not hasattr(machine, "predict_proba"):
        return np.nan, np.nan, seconds
    p = machine.predict_proba(X_test)
    off = p.copy()
    off[np.arange(len(y_test)), y_test] -= 1.0
    return float(log_loss(y_test, p, labels=machine.classes_)), float((off**2).sum(axis=1).mean()), seconds


def summary(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean ranks, and ratios to the first method, over all sets, and those of two classes and more apart."""
    table = []
    groups = {"all": lines, "two": [line for line in lines if line["classes"] == 2]}
    groups["several"] = [line for line in lines if line["classes"] > 2]
    for group, own in groups.items():
        if not own:
            continue
        names = list(dict.fromkeys(line["machine"] for line in own))
        of = {
            key: np.reshape([line[key] for line in own], (-1, len(names))) for key in ("log_loss", "brier", "of_plain")
        }
        for j, name in enumerate(names):
            line: dict[str, Any] = {"classes": group, "sets": len(of["brier"]), "machine": name}
            for key in ("log_loss", "brier"):
                line[f"{key}_rank"] = round(float(rankdata(of[key], axis=1)[:, j].mean()), 2)
                counted = np.log(np.maximum(of[key], LEAST))
                ratio = counted[:, j] - counted[:, 0]
                line[f"{key}_ratio"] = round(float(np.exp(ratio.mean())), 3)
            line["time_of_plain"] = round(float(np.exp(np.log(of["of_plain"][:, j]).mean())), 2)
            table.append(line)
    return table
