"""The tables of results in README and docs, and sentences that count, written from a run that is committed.

Nobody copies a number by hand.

A table stands between ``<!-- results: NAME -->`` and ``<!-- end of results -->``; `TABLES` has what is written there,
from the cells of ``python -m benchmarks all``. A line below the table says where and when its cells were run. A test
asks whether every page has what its results say.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.report.all_cells import ROOT
from benchmarks.report.block_tables import BLOCK_TABLES
from benchmarks.report.board_tables import BOARD_TABLES
from benchmarks.report.doc_sentences import SENTENCES
from benchmarks.report.found import Found
from benchmarks.report.own_tables import OWN_TABLES
from benchmarks.report.paper_tables import PAPER_TABLES
from benchmarks.report.plain_tables import PLAIN_TABLES
from slimsvm.cli.output import CommandError, say

RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
TABLES: dict[str, Callable[[Found], str]] = OWN_TABLES | BOARD_TABLES | BLOCK_TABLES | PAPER_TABLES | PLAIN_TABLES
WRITTEN = TABLES | SENTENCES
PLACE = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end of results -->)", re.DOTALL)


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
        if name not in WRITTEN:
            raise CommandError(f"results: {name} is no table; there are {', '.join(WRITTEN)}")
        return begin + WRITTEN[name](found) + end

    return PLACE.sub(put, text)
