"""The sections of the report: the four papers, what agrees with them and what does not, and the peers.

An item of a section is (title, text, tables, pictures). What a text says of agreement is computed from the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report import bsca, cpsp, cross_training, peers_section, sampled_cuts
from benchmarks.report.found import Found
from benchmarks.report.verdicts import overview

Items = list[tuple[Any, ...]]


PAPERS: dict[str, Callable[[Found], Items]] = {
    "Sampled cuts (Yu and Joachims 2008)": sampled_cuts.items,
    "BSCA (Qaadan, Schüler, Glasmachers 2018)": bsca.items,
    "Cross-training (Bakır, Bottou, Weston 2004)": cross_training.items,
    "CPSP (Joachims and Yu 2009)": cpsp.items,
}


def weighed(items: Callable[[Found], Items]) -> Callable[[Found], Items]:
    """The items of a paper, after a table of how many checks of each agree."""

    def make(found: Found) -> Items:
        own = items(found)
        text = "What the paper says of each figure and table was checked on what was measured; the texts say how."
        return [("In short", text, [overview(own)], []), *own]

    return make


SECTIONS = {paper: weighed(items) for paper, items in PAPERS.items()} | {"Peers": peers_section.items}
