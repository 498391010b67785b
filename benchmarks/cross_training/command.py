"""Cross-training: the experiments of its paper, figures 1, 3 and 4 and table 1, beside the exact SVM (free intercept).

Parts: overlap (figure 1), gaussians (figure 3), noise (figure 4), sets (table 1), and comparators: LASVM, CVM, BVM and
models of few vectors beside them. Every machine searches its C among the same values, and its seconds include that;
all fits have one thread. All of it takes many hours; --quick takes seconds, with overlap and gaussians alone.
Without --append an earlier run's file is replaced.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.cross_training.compared_solvers import COMPARED
from benchmarks.cross_training.experiments import CASES, NOISE, SETS, Scope, quick
from benchmarks.cross_training.figures import draw
from benchmarks.cross_training.measuring import Bench
from benchmarks.shared import results
from benchmarks.shared.cross_trained_rows import all_tables, latest, summary
from benchmarks.shared.trials import RUNS_BY_SECONDS
from slimsvm.cli import options

NAME = "cross-training"
QUICK_PARTS = ("overlap", "gaussians")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks cross-training``."""
    parser.add_argument("--quick", action="store_true", help="seconds: overlap and gaussians, few rows, one seed")
    parser.add_argument("--parts", nargs="+", choices=CASES, help="default: all of them (quick: overlap, gaussians)")
    parser.add_argument("--sizes", nargs="+", type=options.positive_integer, metavar="N", help="of gaussians and noise")
    parser.add_argument("--noise", nargs="+", type=float, default=list(NOISE), metavar="P", help="shares of labels")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, *COMPARED], help="of sets and comparators (default: all)")
    parser.add_argument(
        "--rows", type=options.positive_integer, default=5000, metavar="N", help="of comparators (default: %(default)s)"
    )
    parser.add_argument(
        "--seeds",
        type=options.positive_integer,
        help="runs of each case (default: 5 where no method takes ten minutes, 3 where none takes an hour, else 1; "
        "quick: 1)",
    )
    results.add_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the experiments; see `results.run_and_tabulate`."""
    return results.run_and_tabulate(args, NAME, run_and_record, all_tables, summary)


def run_and_record(args: argparse.Namespace, found: results.Results, path: Path) -> None:
    """Add the records of a new run to the results; the file is up to date after every fit."""
    scope = Scope(
        sizes=tuple(args.sizes) if args.sizes else None,
        noise=tuple(args.noise),
        sets=tuple(args.sets) if args.sets else None,
        rows=args.rows,
    )
    scope = quick(scope) if args.quick else scope
    parts = args.parts or (QUICK_PARTS if args.quick else list(CASES))
    seeds = args.seeds or (1 if args.quick else None)
    asked = {**vars(scope), "parts": parts, "seeds": seeds}
    hear, known = results.begin_run(found, path, asked, lambda records: None, args.resume)
    bench = Bench(seeds, hear, known)
    cases = [(part, case) for part in parts for case in CASES[part](scope)]
    for seed in range(seeds or RUNS_BY_SECONDS[0][1]):  # one run of everything first
        for part, case in cases:
            if seed < bench.runs_of(part, case):
                bench.compare(part, case, seed)


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw figures 1, 3 and 4, as far as they were measured."""
    return draw(latest(result["records"]), folder)
