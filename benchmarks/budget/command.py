"""Training on a budget: BSCA and BSGD with the settings of the BSCA paper (its table 1), without an intercept.

bsca and bsgd are as in the paper: steps as they are (damping 0), the model after the last step, rows drawn with
replacement, mergers of points of one sign. our-bsca and our-bsgd are the library's defaults, or what the options say.

finish: a few epochs and the convex finish. curves: one epoch after another without it, each with its objectives,
fractions and test error. In both the clock stops while the model is tested. no budget: the same steps with room for
every row, on some of the rows. lemma 2: on fewer rows, so long that the share of steps that change the model comes to
its limit, beside what the exact SVM's free and bounded rows say it is. --quick takes a minute.
Without --append an earlier run's file is replaced.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from benchmarks.budget import tables
from benchmarks.budget.experiments import LAST, METHODS, MOST_EXACT, SETS, Trial, measure, read, trials
from benchmarks.budget.figures import plot
from benchmarks.shared import results
from benchmarks.shared.trials import RUNS_BY_SECONDS
from slimsvm.budget import BUDGET_RULES
from slimsvm.cli import options

NAME = "budget"
QUICK_SEEDS = 2
# Options that do not change what is measured.
UNTOLD = ("name", "output", "json", "append", "resume", "redraw")

__all__ = ["add_arguments", "plot", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks budget``."""
    parser.add_argument("--quick", action="store_true", help="a minute: the checkerboard, two seeds, short curves")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS), help="default: all four")
    parser.add_argument(
        "--max-basis", nargs="+", type=options.positive_integer, default=[200, 500, 1000], metavar="B", help="budgets"
    )
    ours = parser.add_argument_group("our-bsca and our-bsgd")
    ours.add_argument("--rule", choices=BUDGET_RULES, default="merge", help="default: %(default)s")
    ours.add_argument("--two-signs", action=argparse.BooleanOptionalAction, default=True, help="merge points of both")
    ours.add_argument(
        "--selection", choices=("permutation", "uniform", "adaptive"), default="permutation", help="order of rows"
    )
    ours.add_argument("--damping", type=float, metavar="D", help="of our-bsca's steps (default: the library's)")
    ours.add_argument("--average", action=argparse.BooleanOptionalAction, default=True, help="of the last models")
    parser.add_argument(
        "--epochs", type=options.positive_integer, default=3, help="before the finish (default: %(default)s)"
    )
    parser.add_argument("--curve-epochs", type=int, default=20, metavar="E", help="of the curves; 0 for none")
    parser.add_argument(
        "--no-budget-rows", type=int, default=5000, metavar="N", help="rows of the curves without budget; 0 for none"
    )
    parser.add_argument("--limit-rows", type=int, default=500, metavar="N", help="rows for lemma 2; 0 for none")
    parser.add_argument(
        "--limit-epochs", type=options.positive_integer, metavar="E", help="epochs for lemma 2 (default: by set)"
    )
    parser.add_argument(
        "--exact", action=argparse.BooleanOptionalAction, default=True, help=f"the exact SVM, up to {MOST_EXACT} rows"
    )
    parser.add_argument(
        "--seeds",
        type=options.positive_integer,
        help=f"runs (default: 5 of less than ten minutes each, 3 of less than an hour, else 1; quick: {QUICK_SEEDS})",
    )
    parser.add_argument("--n-jobs", type=options.jobs, default=1, metavar="T", help="threads (default: %(default)s)")
    results.add_arguments(parser)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the experiments; see `results.run_and_tabulate`. Rows for the report stand beside the records."""
    if args.quick:
        args.sets, args.max_basis, args.curve_epochs = ["checkerboard"], [50], LAST
        args.seeds = args.seeds or QUICK_SEEDS
        args.no_budget_rows, args.limit_rows = min(args.no_budget_rows, 500), min(args.limit_rows, 300)
    found = results.run_and_tabulate(args, NAME, run_and_record, tables.all_tables, tables.summary)
    return {**found, **tables.derived(results.of_last_run(found))}


def run_and_record(args: argparse.Namespace, found: results.Results, path: Path) -> None:
    """Add the records of a new run to the results; the file is up to date after every fit."""

    def amend(records: list[dict[str, Any]]) -> None:
        last = results.of_last_run(found)
        found.update(tables.derived(last), table=tables.summary(last))

    told = {name: value for name, value in vars(args).items() if name not in UNTOLD}
    hear, records = results.begin_run(found, path, told, amend, args.resume)
    known = {key_of(record): record for record in records}
    for is_first in (True, False):  # one run of everything first: a benchmark that is cut short has that
        for name in args.sets:
            data = read(name, args.quick)
            for trial in trials(args, len(data[1])):
                for seed in range(1 if is_first else runs_of(trial, known[name, trial, 0], args.seeds)):
                    if (name, trial, seed) not in known:
                        known[name, trial, seed] = measure(trial, name, data, seed, args)
                        hear(known[name, trial, seed])


def key_of(record: dict[str, Any]) -> tuple[str, Trial, int]:
    """What tells runs apart."""
    return record["data"], Trial(record["part"], record["method"], record["max_basis"]), record["seed"]


def runs_of(trial: Trial, first: dict[str, Any], seeds: int | None) -> int:
    """How often a trial is run whose first run took so long."""
    if not trial.is_random:
        return 1
    return seeds or next((runs for most, runs in RUNS_BY_SECONDS if first["whole_seconds"] < most), 1)
