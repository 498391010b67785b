"""The tables of results in README and docs, written from a run that is committed: nobody copies a number by hand.

A table stands between ``<!-- results: NAME -->`` and ``<!-- end of results -->``; `TABLES` has what is written there,
from the cells of ``python -m benchmarks all``. A line below the table says where and when its cells were run. A test
asks whether every page has what its results say.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report.all_cells import ROOT
from benchmarks.report.found import Found, Rows
from benchmarks.shared.fronts import is_never_beaten
from slimsvm.cli.output import CommandError, say

RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
PLACE = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)

# Names of `few-vectors` and `defaults`.
AUTO, EXACT, THEIRS = 'SVC(max_basis="auto")', "SVC()", "scikit-learn SVC"
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks tables``."""
    parser.add_argument(
        "--results", metavar="DIR", default=str(RESULTS), help="where `all` wrote (default: %(default)s)"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a page has other numbers")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Write the tables into their pages.

    Returns
    -------
    dict
        ``table``: the pages and what was done.
    """
    found, rows = Found(Path(args.results)), []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        names = [name for _, name, _ in PLACE.findall(text)]
        if not names:
            continue
        new = with_tables(text, found)
        if new != text and args.check:
            raise CommandError(f"{page}: its tables are not those of {args.results}; `python -m benchmarks tables`")
        if new != text:
            page.write_text(new, encoding="utf-8")
            say(f"written: {page}")
        rows.append({"page": page.name, "tables": ", ".join(names), "changed": new != text})
    return {"table": rows}


def with_tables(text: str, found: Found) -> str:
    """The page with its tables as the results have them."""

    def put(place: re.Match[str]) -> str:
        begin, name, end = place.groups()
        if name not in TABLES:
            raise CommandError(f"results: {name} is no table; there are {', '.join(TABLES)}")
        return begin + TABLES[name](found) + end

    return PLACE.sub(put, text)


# ---- writing


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], cells: Iterable[str], found: Found) -> str:
    """A table, and a line that says where and when it was measured."""
    lines = ["| " + " | ".join(line) + " |" for line in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join([*lines, "", measured_on(cells, found), ""])


def measured_on(cells: Iterable[str], found: Found) -> str:
    """The machine and the commands of cells."""
    records = [found.cells[cell] for cell in cells]
    facts = records[0]["machine"]
    load = max(record["load"] or 0.0 for record in records)
    commands = ", ".join(f"`python -m benchmarks {' '.join(quoted(record['argv']))}`" for record in records)
    return (
        f"{commands}: {facts['processor']}, {facts['cores']} core{'s' * (facts['cores'] > 1)}, "
        f"{facts['instruction set']}, {records[0]['begun'][:10]}, load {load:.1f} when it began."
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


# ---- tables


def first_screen(found: Found) -> str:
    """README's first table."""
    lines = {line["method"]: line for line in found.rows("first-screen", "table")}

    def told(method: str) -> str:
        line = lines[method]
        return f"{seconds(line['seconds'])} s, {line['error_percent']:.2f} %, {counted(line['vectors'])} vectors"

    rows = [
        ("scikit-learn's `SVC`, faster", "`SVC(C, gamma)`",
         f"{told(EXACT)} (scikit-learn: {told(THEIRS)})"),
        ("a model that is small", "`SVC(C, gamma, max_basis=100)`", told("SVC(max_basis=100)")),
        ("as few vectors as do as well", '`SVC(C, gamma, max_basis="auto")`',
         f"{told(AUTO)}, a number chosen on rows held out"),
        ("a better kernel, too", '`SVC(C, gamma="learn", max_basis=50)`', told('SVC(gamma="learn", max_basis=50)')),
    ]  # fmt: skip
    return markdown(("You want", "Write", "You get"), rows, ["first-screen"], found)


def few_vectors(found: Found) -> str:
    """The table of ``max_basis="auto"``."""
    table = found.rows("few-vectors", "table")
    rows = []
    for name in dict.fromkeys(line["set"] for line in table):
        lines = {line["method"]: line for line in table if line["set"] == name}
        auto, exact, theirs = (lines[method] for method in (AUTO, EXACT, THEIRS))
        rows.append((
            named(name, shape(exact["rows"])),
            f"{auto['error_percent']:.2f} % ({counted(auto['vectors'])})", seconds(auto["seconds"]),
            f"{exact['error_percent']:.2f} % ({counted(exact['vectors'])})", seconds(exact["seconds"]),
            seconds(theirs["seconds"]),
        ))  # fmt: skip
    head = ("set", '`SVC(max_basis="auto")`', "seconds", "`SVC()`", "seconds", "scikit-learn's `SVC`, seconds")
    return markdown(head, rows, ["few-vectors"], found)


def defaults(found: Found) -> str:
    """Classifiers by default, beside scikit-learn's."""
    table = found.rows("defaults", "table")
    rows = []
    for name in dict.fromkeys(line["set"] for line in table if "error_percent" in line):
        lines = {line["machine"]: line for line in table if line["set"] == name}
        ours, theirs, auto = (lines[machine] for machine in (EXACT, "scikit-learn", AUTO))
        rows.append((
            f"{name}, {shape(ours['rows'])}", f"{ours['ratio']:.2f}", f"{ours['other']} ({theirs['other']})",
            f"{ours['error_percent']:.2f} % ({counted(ours['vectors'])})",
            f"{auto['error_percent']:.2f} % ({counted(auto['vectors'])})", f"{auto['of_exact']:.1f}",
        ))  # fmt: skip
    head = ("set, training rows", "`SVC()`: seconds by scikit-learn's", "others", "error (vectors)",
            '`max_basis="auto"`: error (vectors)', "seconds by `SVC()`'s")  # fmt: skip
    return markdown(head, rows, ["defaults"], found)


def targets(found: Found) -> str:
    """Regression by default, beside scikit-learn's."""
    lines = [line for line in found.rows("defaults", "table") if line["machine"] == "SVR()"]
    rows = [
        (f"{line['set']}, {shape(line['rows'])}", f"{line['ratio']:.2f}", f"{line['R2_apart']:.0e}") for line in lines
    ]
    return markdown(("set, training rows", "`SVR()`: seconds by scikit-learn's", "R² apart"), rows, ["defaults"], found)


def two_threads(found: Found) -> str:
    """The exact machine with two threads, beside scikit-learn and scikit-learn-intelex."""
    cells = found.of("exact")
    records = [r for r in found.rows("exact", "records") if r["absent"] is None]
    rows = []
    for name in dict.fromkeys(record["data"] for record in records):
        lines = {record["method"]: record for record in records if record["data"] == name}
        ours = lines["slimsvm"]
        others = [lines.get(method) for method in ("scikit-learn", "scikit-learn-intelex")]
        rows.append((
            named(name, f"{ours['n_train']:,} rows"), seconds(ours["seconds"]),
            *(told for line in others for told in (
                (seconds(line["seconds"]), f"{line['seconds'] / ours['seconds']:.2g}") if line else ("–", "–"))),
            f"{100 * ours['test_error']:.2f} %", counted(ours["n_vectors"]),
        ))  # fmt: skip
    head = ("set", "`SVC()` s", "scikit-learn s", "times as fast", "scikit-learn-intelex s", "times as fast",
            "test error", "vectors")  # fmt: skip
    return markdown(head, rows, cells, found)


def peers(found: Found) -> str:
    """Least errors of ours and of all peers, and who has the front from one second on."""
    rows = []
    for cell in found.of("peers"):
        done = [record for record in found.results(cell).get("records", []) if record["status"] == "done"]
        if done:
            rows.append((f"{done[0]['data']}{' *' if done[0]['settled'] else ''}, {done[0]['n_train']:,} × "
                         f"{done[0]['n_features']}", *least(done, True), *least(done, False),
                         "yes" if is_never_beaten(done) else "no"))  # fmt: skip
    head = ("set", "least error of ours", "which, seconds", "least error of peers", "which, seconds",
            "never beaten from 1 s on")  # fmt: skip
    return markdown(head, rows, found.of("peers")[:1], found)


def least(records: Rows, ours: bool) -> tuple[str, str]:
    """The least error and who has it, in how many seconds."""
    best = min((r for r in records if r["ours"] == ours), key=lambda r: (r["test_error"], r["seconds"]))
    return f"{100 * best['test_error']:.2f} %", f"{best['method']}, {seconds(best['seconds'])}"


TABLES: dict[str, Callable[[Found], str]] = {
    "first-screen": first_screen,
    "few-vectors": few_vectors,
    "defaults": defaults,
    "targets": targets,
    "two-threads": two_threads,
    "peers": peers,
}
