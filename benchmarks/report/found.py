"""What the cells of a run left behind."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.report.cells import CELLS

Rows = list[dict[str, Any]]


# What of a cell's facts says which machine it was; the others are versions.
OF_MACHINE = "processor", "cores", "instruction set"


def machine_of(facts: dict[str, Any]) -> str:
    """A machine in words."""
    cores = facts.get("cores", 1)
    return ", ".join(
        filter(None, (facts.get("processor"), f"{cores} core{'s' * (cores > 1)}", facts.get(OF_MACHINE[2])))
    )


# A cell that is begun at a higher load than this ran beside other work.
BUSY = 0.7
# Files that make records of a benchmark stale when they change: those of its algorithms, and of what stands beside all,
# the exact SVM and the core.
COMMON = (
    "core/ascent", "core/budget", "core/cuts", "core/decomposition", "core/gradients", "core/kernels", "core/losses",
    "core/rows", "core/scores", "core/simd", "core/span", "core/support", "core/threads", "src/slimsvm/kernels",
    "src/slimsvm/parts/dual_ascent", "src/slimsvm/parts/solver.py", "src/slimsvm/solvers/exact.py",
    "benchmarks/shared/trials.py",
)  # fmt: skip
LOW_RANK = "src/slimsvm/solvers/low_rank.py", "src/slimsvm/parts/span"
BALLS = "src/slimsvm/solvers/bvm.py", "src/slimsvm/solvers/cvm.py", "src/slimsvm/parts/enclosing_ball.py"
PURSUIT = "src/slimsvm/solvers/cpsp.py", "src/slimsvm/parts/pursuit.py", "src/slimsvm/parts/descent"
LASVM = "src/slimsvm/solvers/lasvm.py"
STALE_WITH = {
    "sampled-cuts": (
        "src/slimsvm/solvers/sampled_cuts.py",
        "src/slimsvm/parts/cuts",
        "benchmarks/sampled_cuts/experiments.py",
        "benchmarks/shared/methods.py",
        *LOW_RANK,
        *COMMON,
    ),
    "budget": (
        "src/slimsvm/solvers/bsca.py",
        "src/slimsvm/solvers/bsgd.py",
        "src/slimsvm/parts/budgeted",
        "src/slimsvm/budget",
        "benchmarks/budget/experiments.py",
        *COMMON,
    ),
    "cross-training": (
        "src/slimsvm/editing",
        "benchmarks/cross_training",
        LASVM,
        *BALLS,
        *PURSUIT,
        *LOW_RANK,
        *COMMON,
    ),
    "subspace": (
        *PURSUIT,
        "src/slimsvm/parts/cuts",
        "src/slimsvm/bases",
        "src/slimsvm/solvers/learned_vectors.py",
        LASVM,
        *BALLS,
        *LOW_RANK,
        "benchmarks/subspace/experiments.py",
        "benchmarks/subspace/sized_methods.py",
        "benchmarks/shared/methods.py",
        *COMMON,
    ),
}
STALE_WITH |= {"many-epochs": STALE_WITH["budget"]}
STALE_WITH |= {kind: STALE_WITH["subspace"] for kind in ("objectives", "comparators", "original")}


@cache
def changed_since(commit: str | None, kind: str) -> tuple[str, ...] | None:
    """What of the files that make a benchmark's records stale is another one now; None where that is not known."""
    if commit is None or kind not in STALE_WITH:
        return None
    told = subprocess.run(
        ["git", "diff", "--name-only", commit.removesuffix("-changed"), "--", *STALE_WITH[kind]],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode:
        return None
    return tuple(path for path in STALE_WITH[kind] if any(name.startswith(path) for name in told.stdout.split()))


def told_of_changes(commits: Iterable[str | None], kind: str) -> str:
    """What has changed since any of the commits, in words: the shorter list of what has and what has not."""
    found = [changed_since(commit, kind) for commit in commits]
    if None in found:
        return "not known"
    changed = dict.fromkeys(path for paths in found for path in paths or ())
    as_it_was = [path for path in STALE_WITH[kind] if path not in changed]
    if len(changed) <= len(as_it_was):
        return ", ".join(changed) or "no"
    return f"all but {', '.join(as_it_was)}" if as_it_was else "all"


def told_of_loads(loads: Sequence[float]) -> str:
    """The lowest and the highest load."""
    return " to ".join(dict.fromkeys(f"{load:.1f}" for load in (min(loads), max(loads)))) if loads else "–"


class Found:
    """The cells of a folder that ``python -m benchmarks all`` wrote.

    Attributes
    ----------
    cells : dict
        The record of every cell that was tried, by its name.
    """

    def __init__(self, folder: Path):
        self.cells: dict[str, dict[str, Any]] = {}
        self.folders: dict[str, Path] = {}
        self._drawn: dict[str, list[Path]] = {}
        for path in sorted(folder.glob("cells/*/done.json")):
            record = json.loads(path.read_text(encoding="utf-8"))
            self.cells[record["cell"]] = record
            self.folders[record["cell"]] = path.parent

    def of(self, kind: str) -> list[str]:
        """Names of the cells of a benchmark."""
        return [name for name in self.cells if name == kind or name.startswith(kind + " ")]

    def lacking(self, kind: str) -> list[str]:
        """Cells of a benchmark that ended without all results or were not run, and why."""
        ends = {name: self.cells[name]["status"] for name in self.of(kind)}
        ends |= {name: "not run" for name in CELLS if name.startswith(f"{kind} ") and name not in ends}
        return [f"{name} ({end})" for name, end in ends.items() if end != "done"]

    def results(self, cell: str) -> dict[str, Any]:
        """The benchmark's own file; empty where it wrote none."""
        for path in self.folders[cell].glob("*.json"):
            if path.name != "done.json":
                return json.loads(path.read_text(encoding="utf-8"))
        return {}

    def rows(self, kind: str, key: str) -> Rows:
        """Lists of the same key of all cells of a benchmark, one after the other."""
        return [row for cell in self.of(kind) for row in self.results(cell).get(key) or []]

    def tables(self, kind: str, title: str, beside: str | None = None) -> Rows:
        """Rows of the benchmark's tables whose titles begin so: one after the other, or side by side.

        ``beside`` is the column that says whose rows stand side by side.
        """
        rows = [
            row
            for cell in self.of(kind)
            for name, text in (self.results(cell).get("tables") or {}).items()
            if name.startswith(title)
            for row in rows_of_markdown(text)
        ]
        if beside is None:
            return rows
        whose: dict[str, dict[str, Any]] = {}
        for row in rows:
            whose.setdefault(row[beside], {}).update(row)
        return list(whose.values())

    def pictures(self, kind: str, pattern: str) -> list[Path]:
        """Pictures of the benchmark's cells."""
        paths = [path for cell in self.of(kind) for path in self._drawn.get(cell, self.folders[cell].glob("*.png"))]
        return sorted(path for path in paths if path.match(pattern))

    def draw_what_lacks(self, folder: Path, draw: Callable[[str, dict[str, Any], Path], list[Path]]) -> None:
        """Draw the pictures of cells that have numbers alone, such as those that are committed, into a folder.

        ``draw(name, results, folder)`` draws those of a benchmark and says where they are.
        """
        for cell, path in self.folders.items():
            results = self.results(cell)
            if results and not any(path.glob("*.png")):
                own = folder / path.name
                own.mkdir(parents=True, exist_ok=True)
                self._drawn[cell] = draw(self.cells[cell]["argv"][0], results, own)

    def facts(self) -> str:
        """How much was done, on which machines, with which versions."""
        done = sum(record["status"] == "done" for record in self.cells.values())
        begun = sorted(record["begun"][:10] for record in self.cells.values())
        machines = Counter(machine_of(record["machine"]) for record in self.cells.values())
        versions: dict[str, dict[str, None]] = {}
        for record in self.cells.values():
            for name, value in record["machine"].items():
                if name not in OF_MACHINE:
                    versions.setdefault(name, {})[str(value)] = None
        programs = ", ".join(f"{name} {' and '.join(values)}" for name, values in versions.items())
        told = "; ".join(f"{name} ({n} cell{'s' * (n > 1)})" for name, n in machines.most_common())
        others = sum((record.get("load") or 0.0) > BUSY for record in self.cells.values())
        days = " to ".join(dict.fromkeys((begun[0], begun[-1])))
        beside = f" When {others} of the cells began, the machine had other work, too." if others else ""
        return (
            f"{done} of {len(self.cells)} cells (runs of a benchmark on a data set) are done, {days}.{beside} "
            f"Measured on: {told}. Measured with: {programs}."
        )

    def records(self, kind: str) -> Rows:
        """Of each cell of a benchmark: when, where and at which commits it was measured, and what has changed since."""
        return [self._origin(name, kind) for name in self.of(kind)]

    def _origin(self, name: str, kind: str) -> dict[str, Any]:
        """When, where and at which commits the fits of a cell were measured, and what has changed since."""
        cell, fits = self.cells[name], self.results(name).get("records") or []
        commits = dict.fromkeys(fit.get("commit") or cell.get("commit") for fit in fits) or [cell.get("commit")]
        loads = [fit["load"] for fit in fits if fit.get("load") is not None]
        loads += [cell["load"]] if cell.get("load") is not None else []
        return {
            "cell": name,
            "status": cell["status"],
            "begun": cell["begun"][:16].replace("T", " "),
            "minutes": round(cell.get("seconds", 0.0) / 60, 1),
            "machine": "; ".join(
                dict.fromkeys(machine_of(fit.get("machine") or cell["machine"]) for fit in fits or [cell])
            ),
            "load": told_of_loads(loads),
            "commit": ", ".join(commit or "not recorded" for commit in commits),
            "options": self._told_of_options(name),
            "changed since": told_of_changes(commits, kind),
        }

    def _told_of_options(self, name: str) -> str:
        """Whether a cell would be run with the same options now."""
        if name not in CELLS:
            return "no cell any more"
        own = tuple(self.cells[name].get("argv", ()))
        return "as now" if own in filter(None, (CELLS[name].argv, CELLS[name].quick)) else "others now"


def rows_of_markdown(text: str) -> Rows:
    """A Markdown table as rows."""
    lines = [line.strip().strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    if len(lines) < 3:
        return []
    head = [name.strip() for name in lines[0]]
    return [dict(zip(head, (cell.strip() for cell in line), strict=True)) for line in lines[2:]]
