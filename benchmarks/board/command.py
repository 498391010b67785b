"""TableClassifier and TableRegressor beside what users would take instead, on tables as they are.

Sets of packages that carry data, with categories and gaps (`benchmarks.board.sets`). One half of them settled what the
library does, the other, ``--side report``, did not; copies of the first are left out there. 30 % of the rows test, and
at most ``--max-rows`` train, of at most 60,000; sets come by size. A set has one split alone if a fit of the first one
takes over ten minutes; a method has failed on a split where it takes over ``--limit``. RealMLP and xRFM get ten
minutes and tables of at most 10,000 rows. Methods have their defaults and
one thread; seconds are of the process. What is in the output folder is not measured again.
"""

from __future__ import annotations

import argparse
import json
import pickle
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.board.methods import METHODS, installed
from benchmarks.board.sets import LEAST_ROWS, SETS, Table, copies, read
from benchmarks.shared.board_lines import OURS, board_lines
from benchmarks.shared.results import commit, save
from slimsvm.cli import options
from slimsvm.cli.output import CommandError, say

Array = np.ndarray
Record = dict[str, Any]

TEST_ROWS = 5000
PREDICTED_ROWS = 1000  # at least, where predictions are timed
ROWS_OF_CLASS = 10  # to train on, at least
ONE_SPLIT_AFTER = 600.0  # seconds of a fit
OF_RUN = "side", "max_rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks board``."""
    parser.add_argument("--side", choices=["settle", "report"], default="settle", help="default: %(default)s")
    parser.add_argument("--kinds", nargs="+", choices=list(SETS), default=list(SETS), help="default: both")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="default: all of the side")
    parser.add_argument(
        "--methods", nargs="+", choices=list(METHODS), metavar="METHOD", help="default: all that are installed"
    )
    parser.add_argument("--splits", type=options.positive_integer, default=3, metavar="N", help="default: 3")
    parser.add_argument(
        "--max-rows", type=options.positive_integer, default=3000, metavar="N", help="to train on (default: 3000)"
    )
    parser.add_argument(
        "--limit",
        type=options.positive,
        default=3600.0,
        metavar="S",
        help="seconds of a method on a split (default: 3600)",
    )


def run(args: argparse.Namespace) -> Record:
    """Measure what is not measured yet.

    Returns
    -------
    dict
        ``table``: a line for each kind and method. ``records``: one for each set, split and method. ``left_out``: sets
        with too few rows, and copies.
    """
    path = Path(args.output) / "board.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = known(path, args)
    tables, left_out = sets_of(args)
    found["left_out"] = left_out
    done = {(record["set"], record["split"], record["method"]) for record in found["records"]}
    for kind, name, table in tables:
        for seed in range(args.splits):
            if seed and has_one_split(found["records"], name):
                break
            for method in args.methods or installed():
                if (name, seed, method) not in done and len(table.y) <= METHODS[method].most_rows:
                    found["records"].append(of_cell(kind, name, table, seed, method, args))
                    save(found, path)
    return found | {"table": board_lines(found["records"])}


def has_one_split(records: list[Record], name: str) -> bool:
    """Whether a method took so long on the first split of a set that there are no others."""
    own = (record for record in records if record["set"] == name and record["split"] == 0)
    return any(max(record.get("seconds") or 0.0, record.get("limit") or 0.0) > ONE_SPLIT_AFTER for record in own)


def plot(result: Record, folder: Path) -> list[Path]:
    """Elo of each method with its interval, classes beside numbers; README's picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    table = board_lines(result["records"])
    kinds = list(dict.fromkeys(line["kind"] for line in table))
    figure, axes = plt.subplots(1, max(1, len(kinds)), figsize=(6.6, 3.4), layout="constrained", squeeze=False)
    for ax, kind in zip(axes[0], kinds):
        lines = sorted((line for line in table if line["kind"] == kind), key=lambda line: line["elo"][0])
        for place, line in enumerate(lines):
            elo, least, most = line["elo"]
            colour = "#0072b2" if line["method"].startswith(OURS) else "#777777"
            ax.plot([least, most], [place, place], color=colour, linewidth=2)
            ax.plot(elo, place, "o", color=colour)
        ax.set_yticks(range(len(lines)), [line["method"] for line in lines])
        ax.set(xlabel="Elo (random forest: 1000)", title=f"{lines[0]['sets']} tables, {kind}")
    path = folder / "elo_of_tables.svg"
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return [path]


def known(path: Path, args: argparse.Namespace) -> Record:
    """What a run with the same options left behind."""
    if not path.exists():
        return {"bench": "board", "records": []}
    records = json.loads(path.read_text(encoding="utf-8"))["records"]
    if any(record[key] != getattr(args, key) for record in records for key in OF_RUN):
        raise CommandError(f"{path}: its records are of another --side or --max-rows; take another --output")
    return {"bench": "board", "records": records}


def sets_of(args: argparse.Namespace) -> tuple[list[tuple[str, str, Table]], dict[str, str]]:
    """Kinds, names and tables by size, and why others are left out."""
    tables, left_out = [], {}
    for kind in args.kinds:
        for name in SETS[kind][args.side]:
            if args.sets is not None and name not in args.sets:
                continue
            table = read(kind, args.side, name)
            if len(table.y) < LEAST_ROWS:
                left_out[name] = f"{len(table.y)} rows"
            elif args.side == "report" and (same := copies(kind, name)):
                left_out[name] = f"copy of {', '.join(same)}"
            else:
                tables.append((kind, name, table))
    for name, why in left_out.items():
        say(f"{name} is left out: {why}")
    return sorted(tables, key=lambda each: size_of(each[0], each[2], args.max_rows)), left_out


def size_of(kind: str, table: Table, most: int) -> int:
    """Values to train on, for each class."""
    return min(len(table.y), most) * table.X.shape[1] * (len(np.unique(table.y)) if kind == "classes" else 1)


def of_cell(kind: str, name: str, table: Table, seed: int, method: str, args: argparse.Namespace) -> Record:
    """The record of one set, split and method; a method that fails has its error there."""
    X, y, X_test, y_test = split(kind, table, seed, args.max_rows)
    package, limit = METHODS[method].package, min(args.limit, METHODS[method].limit)
    record: Record = {"kind": kind, "set": name, "split": seed, "method": method}
    record |= {"rows": len(y), "test_rows": len(y_test), "columns": X.shape[1]}
    record |= {"classes": len(np.unique(y))} if kind == "classes" else {}
    record |= {key: getattr(args, key) for key in OF_RUN} | {
        "commit": commit(),
        "version": f"{package} {version(package)}",
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with within(limit), redirect_stdout(sys.stderr):  # xRFM says how far it is
                record |= measured(METHODS[method].make(kind == "classes", X), kind, X, y, X_test, y_test)
    except TooLongError:
        record |= {"failed": f"took over {limit:g} s", "limit": limit}
    except Exception as error:  # of another package: it has a line, and comes last
        record["failed"] = f"{type(error).__name__}: {error}"[:300]
    say(f"{name}, split {seed}: {method}, " + (record.get("failed") or f"{record['seconds']:.2f} s"))
    return record


class TooLongError(Exception):
    """A method took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """End what is done with a TooLongError after so many seconds, or when a call that knows no signals returns."""

    def end(*unused: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def split(kind: str, table: Table, seed: int, most: int) -> tuple[pd.DataFrame, Array, pd.DataFrame, Array]:
    """Rows to train on and to test on; of classes those that have enough to train on, numbered anew."""
    classes = table.y if kind == "classes" else None
    X, X_test, y, y_test = train_test_split(*table, test_size=0.3, random_state=seed, stratify=classes)
    if len(y) > most:
        X, _, y, _ = train_test_split(X, y, train_size=most, random_state=seed, stratify=None if classes is None else y)
    X_test, y_test = X_test[:TEST_ROWS], y_test[:TEST_ROWS]
    if classes is not None:
        large = np.flatnonzero(np.bincount(y) >= ROWS_OF_CLASS)
        own, theirs = np.isin(y, large), np.isin(y_test, large)
        X, y, X_test, y_test = (
            X[own],
            np.searchsorted(large, y[own]),
            X_test[theirs],
            np.searchsorted(large, y_test[theirs]),
        )
    return X.reset_index(drop=True), y, X_test.reset_index(drop=True), y_test


def measured(model: Any, kind: str, X: pd.DataFrame, y: Array, X_test: pd.DataFrame, y_test: Array) -> Record:
    """Seconds, losses, bytes of the file and microseconds of a predicted row."""
    begun = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - begun
    predict = model.predict_proba if kind == "classes" else model.predict
    predicted = predict(X_test)
    many = X_test.sample(max(PREDICTED_ROWS, len(X_test)), replace=True, random_state=0)
    begun = time.process_time()
    predict(many)
    us = 1e6 * (time.process_time() - begun) / len(many)
    losses = of_classes(predicted, y_test) if kind == "classes" else of_numbers(predicted, y_test)
    costs = {"seconds": seconds, "bytes": bytes_of(model), "us": us}
    return {key: float(f"{value:.6g}") for key, value in (losses | costs).items()}


def of_classes(p: Array, y: Array) -> dict[str, float]:
    """Log loss, area under the curve and share of errors."""
    p = p / p.sum(axis=1, keepdims=True)
    labels = np.arange(p.shape[1])
    auc = roc_auc_score(y, p[:, 1]) if len(labels) == 2 else roc_auc_score(y, p, multi_class="ovr", labels=labels)
    return {"log_loss": log_loss(y, p, labels=labels), "auc": auc, "error": float(np.mean(p.argmax(axis=1) != y))}


def of_numbers(predicted: Array, y: Array) -> dict[str, float]:
    """Root mean squared error, and the same as a share of the deviation of the numbers."""
    rmse = float(np.sqrt(np.mean((np.ravel(predicted) - y) ** 2)))
    return {"rmse": rmse, "of_deviation": rmse / float(np.std(y))}


def bytes_of(model: Any) -> int:
    """Of the file of ours, and of the pickle of others."""
    if not hasattr(model, "save"):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.slim")
        return (Path(folder) / "model.slim").stat().st_size
