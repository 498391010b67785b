"""Models of few vectors against the exact SVM: the experiments of the subspace-pursuit paper, and what came after it.

Parts: sizes (error, objective and time at 10 to 5000 vectors; the paper's figures 1 to 3 and table 2), growth (time
against the number of rows). More than 1000 vectors are tried only where fewer neither come near the exact SVM nor meet
the time limit. All of it takes many hours; --quick takes minutes. Pieces of it, one set or a few sizes at a time, come
together in one file by --append; without, an earlier run's file is replaced.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.shared import results
from benchmarks.shared.tables import latest
from benchmarks.shared.trials import Session
from benchmarks.subspace.experiments import EXPERIMENTS, SETTINGS, Scope, add_multiples, quick, run_experiments
from benchmarks.subspace.figures import draw_figures
from benchmarks.subspace.sized_methods import FULL_SIZE, SIZED
from benchmarks.subspace.tables import all_tables, overview
from slimsvm.cli import options

NAME = "subspace"
USUAL = Scope()
SECONDS, QUICK_SECONDS = 900.0, 20.0
QUICK_SEEDS = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks subspace``."""
    number = options.positive_integer
    parser.add_argument("--quick", action="store_true", help="minutes: 5,000 rows, one seed, up to 100 vectors")
    parser.add_argument("--parts", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="default: both")
    parser.add_argument("--sets", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="default: all of them")
    parser.add_argument("--methods", nargs="*", choices=SIZED, default=list(SIZED), help="default: all of them")
    parser.add_argument(
        "--beside",
        nargs="*",
        choices=FULL_SIZE,
        default=list(FULL_SIZE),
        help="models of full size in the part sizes (default: all); objectives are multiples of that of exact",
    )
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=number,
        default=list(USUAL.sizes),
        metavar="K",
        help=f"numbers of vectors (default: {' '.join(map(str, USUAL.sizes))}, quick: those up to 100)",
    )
    parser.add_argument(
        "--fixed", action="store_true", help="take the documented C and gamma instead of choosing them by validation"
    )
    parser.add_argument(
        "--choose-each",
        action="store_true",
        help="choose C and gamma for every method and size up to 1000, as the paper does",
    )
    parser.add_argument("--max-n", type=number, metavar="N", help="no training set is larger (default: none)")
    parser.add_argument(
        "--growth-basis",
        type=number,
        default=USUAL.growth_basis,
        metavar="K",
        help="vectors in the part growth (default: %(default)s, quick: 50)",
    )
    parser.add_argument(
        "--seeds",
        type=number,
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
        "--svc-max-n",
        type=number,
        default=USUAL.svc_max_n,
        metavar="N",
        help="leave scikit-learn's SVC, which knows no time limit, out above N rows (default: %(default)s)",
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
    scope = Scope(
        sets=tuple(args.sets),
        methods=tuple(args.methods),
        beside=tuple(args.beside),
        sizes=tuple(args.sizes),
        growth_basis=args.growth_basis,
        fixed=args.fixed,
        choose_each=args.choose_each,
        max_n=args.max_n,
        svc_max_n=args.svc_max_n,
    )
    seeds = args.seeds or (QUICK_SEEDS if args.quick else None)
    max_seconds = getattr(args, "max_seconds", QUICK_SECONDS if args.quick else SECONDS)
    scope = quick(scope) if args.quick else scope
    asked = {**vars(scope), "quick": args.quick, "parts": args.parts, "seeds": seeds, "max_seconds": max_seconds}
    hear, known = results.begin_run(found, path, asked, add_multiples, args.resume)
    for runs in dict.fromkeys((1, seeds)):  # one run of everything first: a benchmark that is cut short has that
        run_experiments(args.parts, scope, Session(runs, max_seconds, hear, known))
        known = results.of_last_run(found)
