"""Every experiment of the four papers and of the peers, cell by cell: a finished cell is not run again.

Each cell is a benchmark of its own in a process of its own, with a limit on its time. What it measured is in
DIR/cells/NAME/, with a ``done.json`` that says when, how long and on what; DIR/cells.jsonl has a line for each attempt,
also of cells that failed or ran out of time. After a kill the same command goes on where it was. ``--quick`` takes
minutes, the whole of it a night. ``python -m benchmarks report --results DIR`` makes the page.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.report.cells import CELLS, QUICK_LIMIT, Cell
from benchmarks.shared.results import commit
from benchmarks.shared.timing import Elsewhere
from slimsvm.cli import options
from slimsvm.cli.output import machine, say, write_json

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ("scikit-learn-intelex", "lightgbm", "xgboost", "catboost", "xrfm", "falkon", "thundersvm", "matplotlib")
SAID = 2000  # characters of a failed cell's last words that are kept
RESUMING = "budget", "cross-training", "sampled-cuts", "subspace"  # benchmarks that go on with a run that ended early
BY_ITSELF = "board", "peers"  # those that go on without being told


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks all``."""
    parser.add_argument("--quick", action="store_true", help="minutes: fewer cells, small sets")
    parser.add_argument("--cells", nargs="+", metavar="PATTERN", default=["*"], help="such as 'budget *'; default: all")
    parser.add_argument("--again", action="store_true", help="run cells that were finished, too")
    parser.add_argument(
        "--limit", type=options.positive_or_none, metavar="S", help="seconds of a cell (default: its own)"
    )
    parser.add_argument("--list", action="store_true", help="name the cells with their options and end")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Run the cells that are asked for and not done.

    Returns
    -------
    dict
        ``table``: a line for each cell, its status and seconds.
    """
    asked = [
        cell
        for cell in CELLS.values()
        if any(fnmatch.fnmatch(cell.name, pattern) for pattern in args.cells) and (cell.quick or not args.quick)
    ]
    if args.list:
        return {"table": [{"cell": cell.name, "options": " ".join(argv_of(cell, args.quick))} for cell in asked]}
    folder, rows = Path(args.output), []
    for cell in asked:
        known = done(folder, cell, args.quick)
        if known is not None and not args.again:
            say(f"{cell.name}: done before, in {known['seconds']:.0f} s")
        else:
            if known is not None:
                shutil.rmtree(folder_of(folder, cell))
            limit = args.limit or (QUICK_LIMIT if args.quick else cell.limit)
            known = run_cell(folder, cell, args.quick, limit)
            say(f"{cell.name}: {known['status']} in {known['seconds']:.0f} s")
        rows.append({"cell": cell.name, "status": known["status"], "seconds": round(known["seconds"], 1)})
    return {"table": rows}


def argv_of(cell: Cell, quick: bool) -> tuple[str, ...]:
    """The cell's options."""
    return cell.quick if quick else cell.argv


def folder_of(folder: Path, cell: Cell) -> Path:
    """Where a cell's results are."""
    return folder / "cells" / cell.name.replace(" ", "-").replace("*", "all")


def done(folder: Path, cell: Cell, quick: bool) -> dict[str, Any] | None:
    """The record of a cell that was finished with the same options; None where there is none."""
    try:
        record = json.loads((folder_of(folder, cell) / "done.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if record["status"] == "done" and record["argv"] == list(argv_of(cell, quick)) else None


def may_go_on(own: Path, argv: list[str]) -> bool:
    """Whether a cell that ended early, with the same options, has records to go on with."""
    try:
        record = json.loads((own / "done.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return argv[0] in RESUMING and record["status"] != "done" and record["argv"] == argv


def run_cell(folder: Path, cell: Cell, quick: bool, limit: float) -> dict[str, Any]:
    """Run a cell, or go on with it; its record, which is on disk when this returns."""
    own, argv = folder_of(folder, cell), list(argv_of(cell, quick))
    goes_on = may_go_on(own, argv)
    if not goes_on and argv[0] not in BY_ITSELF:
        shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True, exist_ok=True)
    record: dict[str, Any] = {
        "cell": cell.name,
        "argv": argv,
        "begun": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "limit": limit,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "machine": machine() | others(),
        "status": "running",
    }
    write_json(own / "done.json", record)
    command = [*argv, *["--resume"] * goes_on]
    begun, elsewhere = time.perf_counter(), Elsewhere()
    with (own / "log.txt").open("w", encoding="utf-8") as log:
        record["status"] = ended(command, own, log, limit)
    if record["status"] == "done" and has_no_data(own):
        record["status"] = "no data"  # it is run again once they are there
    record["seconds"], record["elsewhere"] = time.perf_counter() - begun, elsewhere.cores()
    if record["status"] != "done":
        record["said"] = (own / "log.txt").read_text(encoding="utf-8", errors="replace")[-SAID:]
    write_json(own / "done.json", record)
    with (folder / "cells.jsonl").open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(record) + "\n")
    return record


def ended(argv: list[str], own: Path, log: Any, limit: float) -> str:
    """Run the benchmark in a process group of its own: "done", "failed", or "time limit" after which all are ended.

    The group ends with this process, too.
    """
    command = [sys.executable, "-m", "benchmarks.one_cell", *argv, "--output", str(own.resolve())]
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": log, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True, **streams) as process:
        try:
            return "done" if process.wait(limit) == 0 else "failed"
        except subprocess.TimeoutExpired:
            return "time limit"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def has_no_data(own: Path) -> bool:
    """Whether all that a cell's benchmark has to say is that its data are missing."""
    records = [
        record
        for path in own.glob("*.json")
        for record in json.loads(path.read_text(encoding="utf-8")).get("records", [])
    ]
    return bool(records) and all(record.get("status") == "no data" for record in records)


def others() -> dict[str, str]:
    """Versions of the peers that are installed."""
    found = {}
    for name in OTHERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
