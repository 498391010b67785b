"""How the tables of README and docs are written: Markdown, numbers as readers like them, where it was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.report.found import Found, machine_of
from slimsvm.cli.output import CommandError

# How C and γ of a set of `few-vectors` and `exact` are written.
SETTINGS = {
    "ijcnn1": "ijcnn1, {}, C = 32, γ = 2",
    "cod-rna": "cod-rna, {}, C = 32, γ = 1/8",
    "adult": "Adult, {}, C = 32, γ = 1/128",
    "mnist-38": "MNIST 3 against 8, {}, C = 10, γ = 0.02",
    "money-fx": "money-fx (sparse), {}, C = 10, γ = 1/4",
    "checkerboard": "checkerboard, {}, C = 1, γ = 10",
    "covtype": "covtype, {}, C = 10, γ = 8",
}


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], cells: Sequence[str], found: Found) -> str:
    """A table, and a line that says where and when it was measured."""
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join([*lines, "", measured_on(cells, found), ""])


def measured_on(cells: Sequence[str], found: Found) -> str:
    """The machine and the command of one cell, or of all that begin with the same words."""
    if not cells:
        raise CommandError("a table has no results: `python -m benchmarks all --output benchmarks/results`")
    records = [found.cells[cell] for cell in cells]
    machines = dict.fromkeys(machine_of(record["machine"]) for record in records)
    load = max(record["load"] or 0.0 for record in records)
    if len(records) > 1:
        patterns = " ".join(f'"{kind} *"' for kind in dict.fromkeys(cell.split()[0] for cell in cells))
        command = f"all --output benchmarks/results --cells {patterns}"
    else:
        command = " ".join(quoted(records[0]["argv"]))
    days = sorted({record["begun"][:10] for record in records})
    # Of records since it is in them.
    others = [record["elsewhere"] for record in records if record.get("elsewhere") is not None]
    beside = f", {max(others):.2f} cores busy with other work meanwhile" if others else ""
    return (
        f"`python -m benchmarks {command}`: {'; '.join(machines)}, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
        f"load {load:.1f} at most when {'a cell' if len(records) > 1 else 'it'} began{beside}."
    )


def quoted(words: Iterable[str]) -> list[str]:
    """Words of a command; those with spaces in quotes."""
    return [f'"{word}"' if " " in word else word for word in words]


def seconds(value: float) -> str:
    """Two digits that count."""
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"


def counted(value: Any) -> str:
    """A number of vectors."""
    return f"{value:,}"


def shape(rows: str) -> str:
    """A size such as "49990 x 22", as a reader likes it."""
    n, d = rows.split(" x ")
    return f"{int(n):,} × {int(d):,}"


def named(name: str, rows: str) -> str:
    """A set with its size and settings."""
    return SETTINGS.get(name, name + ", {}").format(rows)
