"""Files of results: the runs there were, their records, pages of tables."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from slimsvm.cli.output import CommandError, machine, say, write_json

Results = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments on what becomes of earlier results."""
    parser.add_argument(
        "--append", action="store_true", help="keep the records of earlier runs that are in the output folder"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on with the last run in the output folder, which ended early: its fits are not run again",
    )
    parser.add_argument(
        "--redraw", action="store_true", help="run nothing: make tables and figures of the records there are"
    )


def run_and_tabulate(
    args: argparse.Namespace,
    name: str,
    run: Callable[[argparse.Namespace, Results, Path], None],
    all_tables: Callable[[list[dict[str, Any]]], Mapping[str, str]],
    overview: Callable[[list[dict[str, Any]]], Any],
) -> Results:
    """Run the experiments, unless there is only to be drawn; records are on disk after every fit, tables at the end.

    Parameters
    ----------
    args : Namespace
        With those of `add_arguments`, and ``output``.
    name : str
        The benchmark's.
    run : callable (args, results, path) -> None
        Adds the records of a new run to the results.
    all_tables, overview : callables (records)
        Markdown tables by title; the rows of a run for people to look at.

    Returns
    -------
    dict
        ``runs`` (machine and options of each), ``records``, ``tables``, and ``table``, the overview of the last run.
    """
    path = Path(args.output) / f"{name}.json"
    results: Results = {"bench": name, "runs": [], "records": []}
    if args.append or args.redraw or args.resume:
        results = read_results(path, name, must_exist=args.redraw)
    if not args.redraw:
        run(args, results, path)
    tables = all_tables(results["records"])
    write_tables(tables, path)
    return {**results, "tables": tables, "table": overview(of_last_run(results))}


def read_results(path: Path, name: str, must_exist: bool) -> Results:
    """Results of earlier runs of the benchmark ``name``; none where there is no file, unless there must be one."""
    if not path.exists():
        if must_exist:
            raise CommandError(f"{path}: there is no such file, and --redraw needs the records in it")
        return {"bench": name, "runs": [], "records": []}
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CommandError(f"{path}: not JSON: {error}") from None
    if not isinstance(results, dict) or results.get("bench") != name:
        raise CommandError(f"{path}: not the results of `benchmarks {name}`")
    return {key: results[key] for key in ("bench", "runs", "records")}


def begin_run(
    results: Results,
    path: Path,
    options: Mapping[str, Any],
    amend: Callable[[list[dict[str, Any]]], None],
    resume: bool = False,
) -> tuple[Callable[[dict[str, Any]], None], list[dict[str, Any]]]:
    """Enter a new run into the results, or go on with the last one.

    Parameters
    ----------
    results : dict
    path : Path
        Where they are kept: up to date after every record.
    options : mapping
        What was asked for.
    amend : callable (records) -> None
        Computes the figures of a record that depend on others.
    resume : bool
        Whether the last run, which ended early, goes on.

    Returns
    -------
    hear : callable (record) -> None
        Takes a record in.
    known : list of dict
        Records that the run has already.

    Raises
    ------
    CommandError
        The run to go on with had other options.
    """
    begun, asked = time.perf_counter(), json.loads(json.dumps(dict(options)))
    if resume and results["runs"]:
        this, known = results["runs"][-1], of_last_run(results)
        if this["options"] != asked:
            raise CommandError(f"{path}: --resume needs the options of the run that ended early, {this['options']}")
        begun -= this.get("seconds", 0.0)
    else:
        this, known = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}, []
        this["options"] = asked
        results["runs"].append(this)
    number = len(results["runs"]) - 1

    def hear(record: dict[str, Any]) -> None:
        record |= {"run": number, "commit": commit()}
        results["records"].append(record)
        amend(results["records"])
        this["seconds"] = time.perf_counter() - begun
        save(results, path)
        say(progress(record))

    return hear, known


@cache
def commit() -> str | None:
    """The commit that is checked out, "-changed" behind it where the library or the core differ; None without git."""
    root = Path(__file__).parents[2]

    def git(*argv: str) -> str:
        return subprocess.run(["git", *argv], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short=12", "HEAD") + "-changed" * bool(git("status", "--short", "src", "core"))
    except (OSError, subprocess.CalledProcessError):
        return None


def save(results: Results, path: Path) -> None:
    """Write the results; a file that is there stays whole until the new one is."""
    partial = path.with_suffix(".partial")
    write_json(partial, results)
    partial.replace(path)


def write_tables(tables: Mapping[str, str], path: Path) -> None:
    """Write a page of tables beside the results."""
    page = path.with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n\n".join(f"## {title}\n\n{text}" for title, text in tables.items()) + "\n", encoding="utf-8")
    say(f"written: {page}")


def of_last_run(results: Results) -> list[dict[str, Any]]:
    """Records of the last run."""
    return [record for record in results["records"] if record["run"] == len(results["runs"]) - 1]


def progress(record: Mapping[str, Any]) -> str:
    """One line on a record."""
    where = f"{record['part']}, {record['data']}"
    if "method" not in record:
        return f"{where}: {record['skipped']}"
    where += f", n = {record['n_train']:,}, C = {record['C']:g}: {record['method']}"
    if record.get("max_basis") is not None:
        where += f", k = {record['max_basis']:,}"
    if "skipped" in record:
        return f"{where}: {record['skipped']}"
    ended = f", {record['status']}" if record.get("status", "converged") != "converged" else ""
    return f"{where}, seed {record['seed']}: {record['seconds']:.2f} s, {100 * record['test_error']:.2f} %{ended}"
