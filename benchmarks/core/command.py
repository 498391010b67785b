"""Two versions of the library side by side: the same work in turns, seconds and what came of it.

Two processes, one for each interpreter (``--old``, ``--new``), get the same data and do each piece of work in turns.
Seconds are medians over the rounds: of the processor for one thread, on the clock for several. What is compiled when it
is first called is not counted. Beside the ratio old/new stands that of the fastest turns, which a busy machine changes
less; then how far scores (or gradients) and objectives are from each other, relative to the largest score and to the
objective, and test errors in percent.

    python -m benchmarks core --old ../before/.venv/bin/python --threads 1 2
    python -m benchmarks core --old ../before/.venv/bin/python --cases 'scores*' 'exact ijcnn1' --isa avx2
    python -m benchmarks core --small          # new processes and small sets, beside scikit-learn
    python -m benchmarks core --calls          # Python calls of a small fit, file by file

Records are added to DIR/core.jsonl, a line each, as soon as a case is done.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.core import new_processes, python_calls
from benchmarks.core.cases import CASES, Case
from slimsvm.cli import options
from slimsvm.cli.output import CommandError, say

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 9
# What Numba is told to compile for, so that a version that has it is at the same level as one that obeys SLIMSVM_ISA.
NUMBA_TARGETS = {
    "baseline": ("x86-64", "+cx8,+fxsr,+mmx,+sse,+sse2"),
    "avx2": (
        "haswell",
        "+avx,+avx2,+bmi,+bmi2,+cmov,+cx16,+cx8,+f16c,+fma,+fsgsbase,+fxsr,+lzcnt,+mmx,+movbe,+popcnt,+sse,+sse2,+sse3,"
        "+sse4.1,+sse4.2,+ssse3,+xsave",
    ),
}
ISAS = (*NUMBA_TARGETS, "avx512")
# What is said of a case beside its numbers: slower than this share (by medians and by the fastest turns, so that a busy
# machine raises no alarm), another objective, another test error (points), values that differ by more than rounding.
LEAST_RATIO, MOST_OBJECTIVE, MOST_POINTS, MOST_ROUNDING = 0.9, 1e-3, 0.1, 1e-5
# Groups whose values differ by rounding alone; fits go another way where a sum is rounded otherwise.
ROUNDED = ("scores", "predict", "one-row", "argmax", "refine-steps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks core``."""
    parser.add_argument("--old", metavar="PYTHON", help="interpreter that has the version to compare with")
    parser.add_argument("--new", metavar="PYTHON", default=sys.executable, help="the other one (default: this one)")
    parser.add_argument("--cases", nargs="+", metavar="PATTERN", default=["*"], help="such as 'scores*'; default: all")
    parser.add_argument(
        "--threads", nargs="+", type=options.positive_integer, default=[1], metavar="T", help="default: 1"
    )
    parser.add_argument(
        "--rounds", type=options.positive_integer, default=ROUNDS, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--isa", choices=ISAS, help="instruction set of both versions")
    parser.add_argument("--small", action="store_true", help="only new processes and small sets, beside scikit-learn")
    parser.add_argument("--calls", action="store_true", help="only count the Python calls of a small fit, file by file")
    parser.add_argument("--list", action=ListOfCases, nargs=0, help="list the cases and exit")


class ListOfCases(argparse.Action):
    """Prints the names and ends, as ``--help`` does."""

    def __call__(self, parser: argparse.ArgumentParser, *arguments: Any) -> None:
        """See `argparse.Action`."""
        print("\n".join(CASES))
        parser.exit()


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Compare all cases with every number of threads.

    Returns
    -------
    dict
        ``table``: one row per case and number of threads, then geometric mean and worst; ``misses``: what is slower or
        other than it should be.
    """
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    if args.small or args.calls:
        table = new_processes.run(args.new, args.rounds) if args.small else python_calls.run()
        with open(folder / "core.jsonl", "a", encoding="utf-8") as lines:
            lines.writelines(json.dumps(row) + "\n" for row in table)
        return {"table": table}
    if args.old is None:
        raise CommandError("--old PYTHON says which version to compare with")
    cases = [case for case in CASES.values() if any(fnmatch.fnmatchcase(case.name, each) for each in args.cases)]
    if not cases:
        raise CommandError(f"no case is named {', '.join(map(repr, args.cases))}; --list lists them")
    environments = environment(args.isa, folder.resolve(), is_other=args.old != args.new)
    table = []
    with tempfile.TemporaryDirectory() as scratch, open(folder / "core.jsonl", "a", encoding="utf-8") as lines:
        for n_threads in args.threads:
            with (
                Version(args.old, environments.old, n_threads) as old,
                Version(args.new, environments.new, n_threads) as new,
            ):
                for case in cases:
                    record = compare(case, old, new, args.rounds, n_threads, Path(scratch))
                    table.append(record)
                    print(json.dumps(record | {"isa": args.isa}), file=lines, flush=True)
                    say(", ".join(f"{key} {value}" for key, value in record.items() if value not in (None, "")))
    return {
        "table": [*table, *summary(table)],
        "misses": {row["case"]: row["misses"] for row in table if row["misses"]},
    }


class Environments(NamedTuple):
    """Environment variables of the two processes."""

    old: dict[str, str]
    new: dict[str, str]


def environment(isa: str | None, folder: Path, is_other: bool) -> Environments:
    """The same instruction set for both; another interpreter does not find this one's modules in PYTHONPATH."""
    new = dict(os.environ)
    if isa is not None:
        new["SLIMSVM_ISA"] = isa
    if isa in NUMBA_TARGETS:
        new["NUMBA_CPU_NAME"], new["NUMBA_CPU_FEATURES"] = NUMBA_TARGETS[isa]
        new["NUMBA_CACHE_DIR"] = str(folder / f"numba-cache-{isa}")
    return Environments({key: value for key, value in new.items() if not (is_other and key == "PYTHONPATH")}, new)


class Version:
    """A process with one version of the library."""

    def __init__(self, python: str, environment: dict[str, str], n_threads: int):
        limits = {name: str(n_threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.core.worker", str(n_threads)],
            cwd=ROOT, env=environment | limits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.python = python

    def __enter__(self) -> Version:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.process.__exit__(None, None, None)  # closes its input, at whose end it ends

    def ask(self, request: Any) -> dict[str, Any]:
        """The answer to one request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise CommandError(f"{self.python} ended with exit code {self.process.wait()}; what it said is above")
        return json.loads(line)


def compare(case: Case, old: Version, new: Version, rounds: int, n_threads: int, scratch: Path) -> dict[str, Any]:
    """One case in turns."""
    inputs = scratch / "inputs.npz"
    arrays: dict[str, Any] = case.inputs()
    np.savez(inputs, **arrays)
    files = {name: str(scratch / f"{name}.npz") for name in ("old", "new")}
    record: dict[str, Any] = {"case": case.name, "threads": n_threads}
    versions = {"old": old, "new": new}
    for name, version in versions.items():
        answer = version.ask({"prepare": case.name, "inputs": str(inputs), "outcome": files[name]})
        if "error" in answer:
            return record | {"misses": f"{name}: {answer['error']}"}
    seconds: dict[str, list[float]] = {"old": [], "new": []}
    clock = "process" if n_threads == 1 else "wall"
    for k in range(rounds):
        for name in ("old", "new") if k % 2 == 0 else ("new", "old"):
            seconds[name].append(versions[name].ask("turn")[clock])
    old_ms, new_ms = (1e3 * float(np.median(seconds[name])) for name in versions)
    record |= {"old ms": rounded(old_ms), "new ms": rounded(new_ms), "old/new": round(old_ms / new_ms, 3)}
    record["fastest"] = round(min(seconds["old"]) / min(seconds["new"]), 3)
    with np.load(files["old"]) as before, np.load(files["new"]) as after:
        record |= differences(dict(before), dict(after))
    return record | {"misses": "; ".join(misses(record))}


def differences(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """How far what came of a case is from what came of it before."""
    found: dict[str, Any] = {}
    if "values" in old:
        same_shape = old["values"].shape == new["values"].shape
        largest = max(float(np.abs(old["values"]).max(initial=0.0)), np.finfo(float).tiny)
        found["values differ"] = (
            rounded(float(np.abs(new["values"] - old["values"]).max(initial=0.0)) / largest) if same_shape else None
        )
    if "objective" in old:
        # Positive where the new one is higher.
        change = (float(new["objective"]) - float(old["objective"])) / max(abs(float(old["objective"])), 1e-300)
        found["objective differs"] = rounded(change) if np.isfinite(change) else None
    if "error" in old:
        found |= {"old error": round(float(old["error"]), 3), "new error": round(float(new["error"]), 3)}
    for key in ("n_basis", "kernel_evals"):
        if key in old and old[key] != new[key]:
            found[key] = f"{old[key]} -> {new[key]}"
    return found


def misses(record: dict[str, Any]) -> list[str]:
    """What a case is not as it should be in."""
    found = []
    if max(record["old/new"], record["fastest"]) < LEAST_RATIO:
        found.append("slower")
    is_rounded = record["case"].split()[0] in ROUNDED
    if "values differ" in record and (record["values differ"] is None or record["values differ"] > MOST_ROUNDING):
        found += ["other values"] if is_rounded else []
    if abs(record.get("objective differs") or 0.0) > MOST_OBJECTIVE:
        found.append("other objective")
    if abs(record.get("new error", 0.0) - record.get("old error", 0.0)) > MOST_POINTS:
        found.append("other test error")
    return found


def summary(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Geometric mean and least ratio for each number of threads."""
    found = []
    for n_threads in dict.fromkeys(row["threads"] for row in table):
        ratios = {row["case"]: row["old/new"] for row in table if row["threads"] == n_threads and "old/new" in row}
        if ratios:
            worst = min(ratios, key=lambda name: ratios[name])
            mean = round(float(np.exp(np.mean(np.log(list(ratios.values()))))), 3)
            found.append({"case": "geometric mean", "threads": n_threads, "old/new": mean})
            found.append({"case": f"worst: {worst}", "threads": n_threads, "old/new": ratios[worst]})
    return found


def rounded(value: float) -> float:
    """Three digits."""
    return float(f"{value:.3g}")
