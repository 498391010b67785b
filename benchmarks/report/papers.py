"""The sections of the report: the four papers, what agrees with them and what does not, and the peers.

An item of a section is (title, text, tables, pictures). What a text says of agreement is computed from the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.report import bsca, cpsp, cross_training, peers_section, sampled_cuts
from benchmarks.report.found import Found

SECTIONS: dict[str, Callable[[Found], list[tuple[Any, ...]]]] = {
    "Sampled cuts (Yu and Joachims 2008)": sampled_cuts.items,
    "BSCA (Qaadan, Schüler, Glasmachers 2018)": bsca.items,
    "Cross-training (Bakır, Bottou, Weston 2004)": cross_training.items,
    "CPSP (Joachims and Yu 2009)": cpsp.items,
    "Peers": peers_section.items,
}
