"""Sampled cuts against exact ones, scikit-learn's SVC and trees: the paper's experiments, with its settings.

Parts: scaling (the paper's figures 1 to 3 and table 1), fixed-c1 (work at C n = 10,000), sample-size (figures 4 to 7),
peers (five sets beside what users would take instead). All of it takes many hours; --quick takes minutes.
Without --append an earlier run's file is replaced.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from slimsvm.cli import options
from slimsvm.cli.benching import methods
from slimsvm.cli.benching.sampled_cuts import EXPERIMENTS, Scope, quick, run_experiments
from slimsvm.cli.benching.sampled_cuts_figures import draw_figures
from slimsvm.cli.benching.sampled_cuts_tables import all_tables, overview
from slimsvm.cli.benching.tables import latest
from slimsvm.cli.benching.trials import Session, add_gaps
from slimsvm.cli.output import CommandError, machine, say, write_json

NAME = "sampled-cuts"
SETS = Scope().sets
SECONDS, QUICK_SECONDS = 900.0, 20.0
SEEDS, QUICK_SEEDS = 3, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``slimsvm bench sampled-cuts``."""
    parser.add_argument("--quick", action="store_true", help="minutes: 10,000 rows, one seed, fewer settings")
    parser.add_argument(
        "--parts", nargs="+", choices=EXPERIMENTS, default=list(EXPERIMENTS), help="default: all of them"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="default: all of them")
    parser.add_argument(
        "--max-n", type=options.positive_integer, metavar="N", help="no training set is larger (default: none)"
    )
    parser.add_argument(
        "--seeds", type=options.positive_integer, help=f"runs of each method (default: {SEEDS}, quick: {QUICK_SEEDS})"
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
        type=options.positive_integer,
        metavar="N",
        help="leave scikit-learn's SVC, which knows no time limit, out above so many rows (default: 100,000, "
        "and 60,000 of covtype among the peers)",
    )
    parser.add_argument(
        "--svc-cache",
        type=options.positive,
        default=methods.SVC_CACHE,
        metavar="MB",
        help="kernel rows it may keep (default: %(default)s, what our solvers may take; its own default is 200)",
    )
    parser.add_argument(
        "--append", action="store_true", help="keep the records of earlier runs that are in the output folder"
    )
    parser.add_argument(
        "--redraw", action="store_true", help="run nothing: make tables and figures of the records there are"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the experiments; records are on disk after every fit, tables at the end.

    Returns
    -------
    dict
        ``runs`` (machine and options of each), ``records``, ``tables`` (Markdown by title), and ``table``, the rows of
        the last run for people to look at.
    """
    path = Path(args.output) / f"{NAME}.json"
    results: dict[str, Any] = {"bench": NAME, "runs": [], "records": []}
    if args.append or args.redraw:
        results = read_results(path, must_exist=args.redraw)
    if not args.redraw:
        run_and_record(args, results, path)
    tables = all_tables(results["records"])
    page = path.with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(f"## {title}\n\n{text}" for title, text in tables.items()) + "\n", encoding="utf-8")
    say(f"written: {page}")
    last = [record for record in results["records"] if record["run"] == len(results["runs"]) - 1]
    return {**results, "tables": tables, "table": overview(last)}


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the figures of a result."""
    return draw_figures(latest(result["records"]), folder)


def run_and_record(args: argparse.Namespace, results: dict[str, Any], path: Path) -> None:
    """Add the records of a new run to the results; the file is up to date after every fit."""
    number, begun = len(results["runs"]), time.perf_counter()
    asked = {name: getattr(args, name) for name in ("quick", "parts", "sets", "max_n", "svc_max_n", "svc_cache")}
    seeds = args.seeds or (QUICK_SEEDS if args.quick else SEEDS)
    max_seconds = getattr(args, "max_seconds", QUICK_SECONDS if args.quick else SECONDS)
    this: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "options": {**asked, "seeds": seeds, "max_seconds": max_seconds},
    }
    results["runs"].append(this)

    def hear(record: dict[str, Any]) -> None:
        record["run"] = number
        results["records"].append(record)
        add_gaps(results["records"])
        this["seconds"] = time.perf_counter() - begun
        save(results, path)
        say(progress(record))

    scope = Scope(tuple(args.sets), max_n=args.max_n, svc_max_n=args.svc_max_n, svc_cache=args.svc_cache)
    run_experiments(args.parts, quick(scope) if args.quick else scope, Session(seeds, max_seconds, hear))


def progress(record: dict[str, Any]) -> str:
    """One line on a record."""
    where = f"{record['part']}, {record['data']}"
    if "method" not in record:
        return f"{where}: {record['skipped']}"
    where += f", n = {record['n_train']:,}, C = {record['C']:g}: {record['method']}"
    if "skipped" in record:
        return f"{where}: {record['skipped']}"
    ended = f", {record['status']}" if record.get("status", "converged") != "converged" else ""
    return f"{where}, seed {record['seed']}: {record['seconds']:.2f} s, {100 * record['test_error']:.2f} %{ended}"


def save(results: dict[str, Any], path: Path) -> None:
    """Write the results; a file that is there stays whole until the new one is."""
    partial = path.with_suffix(".partial")
    write_json(partial, results)
    partial.replace(path)


def read_results(path: Path, must_exist: bool) -> dict[str, Any]:
    """Results of earlier runs."""
    if not path.exists():
        if must_exist:
            raise CommandError(f"{path}: there is no such file, and --redraw needs the records in it")
        return {"bench": NAME, "runs": [], "records": []}
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {error}") from None
    if not isinstance(results, dict) or results.get("bench") != NAME:
        raise CommandError(f"{path}: not the results of `bench {NAME}`")
    return {name: results[name] for name in ("bench", "runs", "records")}
