"""How seconds of fitting grow with the rows: ours and what users would take instead, and the exponents.

Each set of ``python -m benchmarks peers`` with 2,000 rows, 4,000 and so on; the test part is the same for all sizes of
a set but for its number of rows. The exponent is that of the least squares line through the logarithms of the sizes
that were measured, from the one on that takes a tenth of a second.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.measuring import Server
from benchmarks.peers.methods import METHODS
from benchmarks.peers.sets import SETS
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import DataError

SIZES = (2000, 4000, 8000, 16_000, 32_000)
COMPARED = (
    "SVC()", "max_basis=100", 'gamma="learn", max_basis=50', "LowRank(200)", "scikit-learn SVC",
    "scikit-learn-intelex SVC", "Nystroem(200) + LinearSVC", "LightGBM, 100", "CatBoost, 100", "xRFM",
)  # fmt: skip
LEAST_SECONDS = 0.1  # below, what does not grow with the rows is most of it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks scaling``."""
    parser.add_argument("--sets", nargs="+", choices=SETS, default=["covtype", "cod-rna"], metavar="SET")
    parser.add_argument("--sizes", nargs="+", type=options.positive_integer, default=list(SIZES), metavar="N")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(COMPARED), metavar="METHOD")
    parser.add_argument("--max-seconds", type=options.positive, default=120.0, metavar="S", help="limit on a fit")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit every method to growing parts of each set; one that reached the limit is not fitted to more rows.

    Returns
    -------
    dict
        ``records``, one per set, size and method, and ``table``: seconds of each size, and the exponent.
    """
    records: list[dict[str, Any]] = []
    for name in args.sets:
        try:
            SETS[name].rows()
        except DataError as error:
            say(f"{name}: {error}")
            continue
        too_slow: set[str] = set()
        for size in sorted(args.sizes):
            server = Server(name, size)
            n, _, _ = server.start()
            for method in (method for method in args.methods if method not in too_slow):
                found = server.ask(method, args.max_seconds)
                records.append({"data": name, "method": method, "rows": n, **found})
                say(f"{name}, {method}, {n:,} rows: {found['status']}, {found.get('seconds', float('nan')):.2f} s")
                if found["status"] != "done":
                    too_slow.add(method)
            server.stop()
    return {"records": records, "table": tabulated(records)}


def tabulated(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each set and method."""
    table = []
    for name, method in dict.fromkeys((record["data"], record["method"]) for record in records):
        own = [r for r in records if (r["data"], r["method"]) == (name, method)]
        sizes = {f"{r['rows']:,} rows": round(r["seconds"], 2) if r["status"] == "done" else r["status"] for r in own}
        table.append({"data": name, "method": method, **sizes, "exponent": exponent(own)})
    return table


def exponent(records: list[dict[str, Any]]) -> float | None:
    """B of seconds = a n^b; None where fewer than three sizes take long enough."""
    points = [(r["rows"], r["seconds"]) for r in records if r["status"] == "done" and r["seconds"] >= LEAST_SECONDS]
    if len(points) < 3:
        return None
    rows, seconds = np.log(np.array(points)).T
    return round(float(np.polyfit(rows, seconds, 1)[0]), 2)


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Seconds against rows, a picture for each set."""
    from matplotlib.figure import Figure

    paths = []
    for name in dict.fromkeys(record["data"] for record in result["records"]):
        figure = Figure(figsize=(7, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for number, method in enumerate(dict.fromkeys(record["method"] for record in result["records"])):
            own = [r for r in result["records"] if (r["data"], r["method"], r["status"]) == (name, method, "done")]
            marker = "osD^vX*P<>"[number % 10]
            axes.loglog([r["rows"] for r in own], [r["seconds"] for r in own], marker=marker, label=method)
        axes.set(xlabel="training rows", ylabel="seconds of the fit", title=name)
        axes.legend(fontsize="x-small")
        paths.append(folder / f"scaling-{name.replace(' ', '-')}.png")
        figure.savefig(paths[-1], dpi=120)
    return paths
