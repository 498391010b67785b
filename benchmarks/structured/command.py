"""Structured outputs: handwritten words (OCR letters), chunks of text (CoNLL-2000), and measures over all rows.

letters: chains with linear and RBF emissions on both protocols of the data. chunking: a linear chain over binary
features of words and parts of speech by blocks and by exact cuts, C chosen on a fourth of the training sentences.
measures: training for ROC area, F1 and the break-even point against training for errors and against scikit-learn's SVC
with balanced class weights, C of each chosen by the same measure on four parts of the training rows, each held out in
turn. A seed draws other rows where there are more than ``--max-rows``, and other parts. Data come from `slimsvm
datasets`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.structured import experiments
from slimsvm.cli import options
from slimsvm.cli.output import say
from slimsvm.datasets import load

PARTS = ("letters", "chunking", "measures")
AVERAGED = ("value", "seconds", "iterations", "n_vectors", "gap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks structured``."""
    parser.add_argument("--quick", action="store_true", help="some three minutes: small sets, few rows and values of C")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all of them")
    parser.add_argument(
        "--letters",
        nargs="+",
        choices=experiments.LETTERS,
        default=list(experiments.LETTERS),
        help="protocols of the data",
    )
    parser.add_argument(
        "--sets", nargs="+", choices=experiments.UNBALANCED, default=list(experiments.UNBALANCED), help="for measures"
    )
    parser.add_argument("--measures", nargs="+", choices=experiments.MEASURES, default=list(experiments.MEASURES))
    parser.add_argument("--no-peers", action="store_true", help="leave scikit-learn's SVC out, which takes most time")
    parser.add_argument(
        "--max-basis", type=options.positive_integer, default=1000, metavar="K", help="learned vectors of a chain"
    )
    parser.add_argument(
        "--max-rows", type=options.positive_integer, default=8000, metavar="N", help="rows of each part for measures"
    )
    parser.add_argument("--max-seconds", type=float, default=120.0, metavar="S", help="of a fit (default: %(default)s)")
    parser.add_argument("--seeds", type=options.positive_integer, default=1, help="runs (default: %(default)s)")
    parser.add_argument("--n-jobs", type=options.jobs, default=None, metavar="T", help="threads (default: all)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Fit everything.

    Returns
    -------
    dict
        ``records`` (one per fit and measure), and ``table``: means over the seeds.
    """
    records = []
    for record in fits(args):
        say(f"{record['data']}, {record['method']}: {record['measure']} {100 * record['value']:.2f} % "
            f"in {record['seconds']:.1f} s, seed {record['seed']}")  # fmt: skip
        records.append(record)
    return {"records": records, "table": summary(records)}


def fits(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Records of all parts."""
    words = ["ocr-letters-small"] if args.quick else args.letters
    sets, rows = (["money-fx"], 800) if args.quick else (args.sets, args.max_rows)
    for seed in range(args.seeds):
        if "letters" in args.parts:
            for name in words:
                limit = 10.0 if args.quick else args.max_seconds
                yield from experiments.letters(name, seed, args.max_basis, limit, args.n_jobs)
        if "chunking" in args.parts:
            C_values = (0.1,) if args.quick else experiments.CHUNKING_C
            yield from experiments.chunking(load("conll2000"), seed, C_values, args.n_jobs)
        if "measures" in args.parts:
            C_values = (1.0, 10.0) if args.quick else experiments.MEASURE_C
            for name in sets:
                data = experiments.unbalanced(name, rows, seed)
                settings: Any = (C_values, args.max_seconds, args.n_jobs, args.measures, not args.no_peers)
                yield from experiments.measures(name, data, seed, *settings)


def summary(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over the seeds, with standard errors of the measures; measures and gaps in per cent.

    Beside training for a measure stands by how much that improves on training for errors, seed by seed.
    """
    table = []
    keys = [(r["data"], r["measure"], r["method"]) for r in records]
    for key in dict.fromkeys(keys):
        group = [record for record, own in zip(records, keys) if own == key]
        row: dict[str, Any] = dict(zip(("data", "measure", "method"), key))
        for name in AVERAGED:
            values = [record[name] for record in group if record.get(name) is not None]
            factor = 100 if name in ("value", "gap") else 1
            row[name + (" %" if factor == 100 else "")] = round(factor * float(np.mean(values)), 3) if values else None
            if name == "value":
                row["±"] = standard_error(values)
        row["C"] = " ".join(dict.fromkeys(f"{record['C']:.3g}" for record in group))
        by_seed = {record["seed"]: record["value"] for record in group}
        errors = [r for r, own in zip(records, keys) if own == (key[0], key[1], experiments.ERROR_RATE)]
        gains = [by_seed[r["seed"]] - r["value"] for r in errors if r["seed"] in by_seed]
        if gains and key[2].startswith("trained for"):
            row |= {"gain": round(100 * float(np.mean(gains)), 3), "gain ±": standard_error(gains)}
        table.append(row)
    return table


def standard_error(values: list[float]) -> float | None:
    """Of a mean, in per cent; None of a single value."""
    return round(100 * float(np.std(values, ddof=1)) / len(values) ** 0.5, 3) if len(values) > 1 else None


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw every measure on every set, a bar for each method."""
    from matplotlib.figure import Figure

    rows = [row for row in result["table"] if row["measure"] in experiments.MEASURES]
    if not rows:
        return []
    panels = list(dict.fromkeys((row["data"], row["measure"]) for row in rows))
    figure = Figure(figsize=(4.5, 1.1 * len(panels) + 1), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(panels), 1))
    for ax, panel in zip(axes, panels):
        group = [row for row in rows if (row["data"], row["measure"]) == panel]
        ax.barh([row["method"] for row in group], [row["value %"] for row in group], color="0.6")
        ax.set(title=f"{panel[0]}: {panel[1]} (%)", xlim=(min(row["value %"] for row in group) - 2, None))
    path = folder / "structured-measures.png"
    figure.savefig(path, dpi=120)
    return [path]
