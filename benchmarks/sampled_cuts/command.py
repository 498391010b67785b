"""Sampled cuts against exact ones, scikit-learn's SVC and trees: the paper's experiments, with its settings.

Parts: scaling (the paper's figures 1 to 3 and table 1), fixed-c1 (work at C n = 10,000), sample-size (figures 4 to 7).
All of it takes many hours; --quick takes minutes.
Without --append an earlier run's file is replaced.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.sampled_cuts.experiments import EXPERIMENTS, Scope, quick, run_experiments
from benchmarks.sampled_cuts.figures import draw_figures
from benchmarks.sampled_cuts.tables import all_tables, overview
from benchmarks.shared import methods, results
from benchmarks.shared.tables import latest
from benchmarks.shared.trials import Session, add_gaps
from slimsvm.cli import options

NAME = "sampled-cuts"
SETS = Scope().sets
SECONDS, QUICK_SECONDS = 3600.0, 20.0
QUICK_SEEDS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks sampled-cuts``."""
    parser.add_argument("--quick", action="store_true", help="minutes: 10,000 rows, one seed, fewer settings")
    parser.add_argument(
        "--parts", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="default: all of them"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument(
        "--max-n", type=options.positive_integer, metavar="N", help="no training set is larger (default: none)"
    )
    parser.add_argument(
        "--seeds",
        type=options.positive_integer,
        help="runs of each method (default: 5 of less than ten minutes each, 3 of less than an hour, else 1; "
        f"quick: {QUICK_SEEDS})",
    )
    parser.add_argument(
        "--max-seconds",
        type=options.positive_or_none,
        default=argparse.SUPPRESS,
        metavar="S",
        help=f"limit on one fit of ours, or none (default: {SECONDS:g}, quick: {QUICK_SECONDS:g})",
    )
    parser.add_argument(
        "--svc-cache",
        type=options.positive,
        default=methods.SVC_CACHE,
        metavar="MB",
        help="kernel rows it may keep (default: %(default)s, what our solvers may take; its own default is 200)",
    )
    results.add_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the experiments; see `results.run_and_tabulate`."""
    return results.run_and_tabulate(args, NAME, run_and_record, all_tables, overview)


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a result."""
    return draw_figures(latest(result["records"]), folder)


def run_and_record(args: argparse.Namespace, found: results.Results, path: Path) -> None:
    """Add the records of a new run to the results; the file is up to date after every fit."""
    asked = {name: getattr(args, name) for name in ("quick", "parts", "sets", "max_n", "svc_cache")}
    seeds = args.seeds or (QUICK_SEEDS if args.quick else None)
    max_seconds = getattr(args, "max_seconds", QUICK_SECONDS if args.quick else SECONDS)
    told = {**asked, "seeds": seeds, "max_seconds": max_seconds}
    hear, known = results.begin_run(found, path, told, add_gaps, args.resume)
    scope = Scope(tuple(args.sets), max_n=args.max_n, svc_cache=args.svc_cache)
    scope = quick(scope) if args.quick else scope
    for runs in dict.fromkeys((1, seeds)):  # one run of everything first: a benchmark that is cut short has that
        known = run_experiments(args.parts, scope, Session(runs, max_seconds, hear, known))
