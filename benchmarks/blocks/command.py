"""Rows beyond memory: Parquet beside arrays, Dask beside one process, killed workers, and boosted trees.

Parts: ``files`` (the same rows from an array, from Parquet and by Dask, in turn), ``kills`` (a worker killed at ten
moments of a fit), ``peers`` (KDD cup 99 and the checkerboard from files, beside LightGBM and lightgbm.dask),
``accuracy`` (real sets repeated with noise: Dask beside a local fit). Every fit is a process of its own; what is in the
results already is not fitted again, so a run that was cut off goes on. Sets are written to ``--folder`` as Parquet.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.blocks.sources import REAL, file_of
from slimsvm.cli import options
from slimsvm.cli.output import say, write_json

PARTS = ("files", "kills", "peers", "accuracy")
ROWS, QUICK_ROWS, TURNS, KILLS, TREES = 10_000_000, 20_000, 2, 10, 100
# Workers are killed in fits of this share of the rows: still more than those that the client learns from by itself.
KILLS_SHARE = 0.3
# C and γ of each set.
SETTINGS: dict[str, dict[str, Any]] = {
    "generated": {},
    "checkerboard": {"gamma": 10.0},
    "kddcup99": {"C": 10.0},
    "ijcnn1": {"C": 32.0, "gamma": 2.0},
    "cod-rna": {"C": 32.0, "gamma": 0.125},
    "covtype": {"C": 10.0, "gamma": 8.0},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks blocks``."""
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} rows, few vectors and two kills")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="default: all of them")
    parser.add_argument("--rows", type=options.positive_integer, metavar="N", help=f"of a set (default: {ROWS:,})")
    parser.add_argument("--workers", type=options.positive_integer, default=2, metavar="N", help="default: 2")
    parser.add_argument("--max-basis", type=options.positive_integer, metavar="K", help="default: 200, quick: 10")
    parser.add_argument("--folder", help="where sets are written as Parquet (default: one that is removed again)")
    parser.add_argument("--max-seconds", type=options.positive, default=3600.0, metavar="S", help="limit on a process")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure.

    Returns
    -------
    dict
        ``records``, one per fit, and ``table``, the same with fewer columns.
    """
    rows = args.rows or (QUICK_ROWS if args.quick else ROWS)
    max_basis = args.max_basis or (10 if args.quick else 200)
    path = Path(args.output) / "blocks.json"
    records: list[dict[str, Any]] = json.loads(path.read_text())["records"] if path.exists() else []
    with tempfile.TemporaryDirectory() as own:
        folder = Path(args.folder or own)
        for part in args.parts:
            for asked in _asked(part, rows, max_basis, args, records):
                if any(all(record.get(key) == value for key, value in asked.items()) for record in records):
                    continue
                records.append(asked | _measured(asked, folder, args.max_seconds))
                say(_told(records[-1]))
                write_json(path, {"bench": "blocks", "records": records})
    return {"records": records, "table": [_line(record) for record in records]}


def _asked(
    part: str, rows: int, max_basis: int, args: argparse.Namespace, records: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The fits of a part."""

    def one(name: str, fit: str, n: int = rows, **others: Any) -> dict[str, Any]:
        has_trees = fit.lower().startswith("lightgbm")
        settings = {"trees": TREES} if has_trees else {"options": {**SETTINGS[name], "max_basis": max_basis}}
        return {"part": part, "set": name, "rows": n, "fit": fit, "workers": args.workers, **settings, **others}

    if part == "files":
        yield from (one("generated", fit, turn=turn) for turn in range(TURNS) for fit in ("memory", "parquet", "dask"))
    elif part == "kills":
        unharmed = one("generated", "dask", int(KILLS_SHARE * rows))
        yield unharmed
        seconds = next((r["seconds"] for r in records if r.items() >= unharmed.items() and "seconds" in r), None)
        drawn = random.Random(0)
        for _ in range(2 if args.quick else KILLS if seconds is not None else 0):
            yield unharmed | {"kill": round(drawn.random() * (seconds or 1.0), 2)}
    elif part == "peers":
        for name, n in (("kddcup99", min(rows, 400_000)), ("checkerboard", rows)):
            yield from (one(name, fit, n) for fit in ("parquet", "dask", "LightGBM", "lightgbm.dask"))
    else:
        yield from (one(name, fit) for name in REAL for fit in ("memory", "dask"))


def _measured(asked: dict[str, Any], folder: Path, limit: float) -> dict[str, Any]:
    """What a process says of a fit, or how it failed."""
    path = file_of(asked["set"], asked["rows"], folder)
    command = [sys.executable, "-m", "benchmarks.blocks.fits", json.dumps(asked | {"path": str(path)})]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"status": "time limit"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"status": "failed", "said": said}
    return {"status": "done", **json.loads(lines[-1])}


def _line(record: dict[str, Any]) -> dict[str, Any]:
    """A record as people look at it."""
    line = {key: record.get(key) for key in ("part", "set", "rows", "fit", "turn", "kill", "status")}
    if record["status"] != "done":
        return line
    return line | {
        "seconds": round(record["seconds"], 1),
        "processor": round(record["cpu_seconds"], 1),
        "with all": round(record["whole_cpu_seconds"], 1),
        "MB": round(record["peak_bytes"] / 1e6),
        "test error (%)": round(100 * record["test_error"], 3),
        "model": record.get("model", "")[:8],
        "file": record.get("file", "")[:8],
    }


def _told(record: dict[str, Any]) -> str:
    if record["status"] != "done":
        return f"{record['part']}, {record['set']}, {record['fit']}: {record['status']} {record.get('said', '')}"
    return ", ".join(f"{key} {value}" for key, value in _line(record).items() if value is not None)
