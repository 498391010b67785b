"""The sections of the report: the four papers, what agrees with them and what does not, and the peers.

An item of a section is (title, text, tables, pictures). What a text says of agreement is computed from the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report import bsca, cpsp, cross_training, peers_section, sampled_cuts
from benchmarks.report.found import STALE_WITH, Found, Rows
from benchmarks.report.verdicts import NO_CLAIM, Verdict, overview

Items = list[tuple[Any, ...]]


KINDS_OF: dict[Callable[[Found], Items], tuple[str, ...]] = {
    sampled_cuts.items: ("sampled-cuts",),
    bsca.items: ("budget", "many-epochs"),
    cross_training.items: ("cross-training",),
    cpsp.items: ("subspace", "objectives", "comparators", "original"),
}
PAPERS: dict[str, Callable[[Found], Items]] = {
    "Sampled cuts (Yu and Joachims 2008)": sampled_cuts.items,
    "BSCA (Qaadan, Schüler, Glasmachers 2018)": bsca.items,
    "Cross-training (Bakır, Bottou, Weston 2004)": cross_training.items,
    "CPSP (Joachims and Yu 2009)": cpsp.items,
}


LACKING = (
    "Cells that ended before all of their fits, and those that were not run; the figures say which sizes and how many "
    "runs they have:"
)


def claims(found: Found) -> Rows:
    """Every claim of the four papers that was checked: their number, ours, sizes, and what came of it."""
    return [
        {
            "paper": paper.partition(" (")[0],
            "figure or table": title.partition(":")[0],
            "claim": text.claim,
            "their number": text.theirs or "–",
            "ours": text.ours or "–",
            "size here / there": text.sizes if text.sizes and text.of_paper else "–",
            "outcome": text.outcome,
            "checks that agree": f"{sum(check.holds for check in text.of_paper)} of {len(text.of_paper)}",
            "why": text.reason,
        }
        for paper, items in PAPERS.items()
        for title, text, *_ in items(found)
        if isinstance(text, Verdict) and text.theirs != NO_CLAIM
    ]


def first_table(found: Found) -> Items:
    """What the page opens with."""
    text = (
        "Each claim of the four papers, with what was found here. Reproduced: every check agrees at the paper's own "
        "size. Reproduced smaller: every check agrees, with fewer rows or settings. In part: some checks agree. The "
        "checks stand below, figure by figure; checks of our own methods are not counted here."
    )
    return [("What was reproduced", text, [claims(found)], [])]


def weighed(items: Callable[[Found], Items]) -> Callable[[Found], Items]:
    """The items of a paper, after a table of how many checks of each agree."""

    def make(found: Found) -> Items:
        own = items(found)
        text = "What the paper says of each figure and table was checked on what was measured; the texts say how."
        records = [row for kind in KINDS_OF[items] for row in found.records(kind)]
        lacks = [cell for kind in KINDS_OF[items] for cell in found.lacking(kind)]
        lacking: Items = [("Lacking", f"{LACKING} {', '.join(lacks)}.", [], [])] if lacks else []
        told = (
            "When, where, beside which load and at which commit each cell was measured, and what of the files that "
            f"make it stale has changed since. These files are: {', '.join(STALE_WITH[KINDS_OF[items][0]])}. A load "
            "above 1 means that other work ran beside."
        )
        return [("In short", text, [overview(own)], []), *own, *lacking, ("Records", told, [records], [])]

    return make


SECTIONS = (
    {"In one table": first_table}
    | {paper: weighed(items) for paper, items in PAPERS.items()}
    | {"Peers": peers_section.items}
)
