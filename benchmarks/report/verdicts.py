"""What agrees with a paper and what does not: a claim of the paper, and checks of what was measured, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report.found import Rows

NOTHING = "Not measured in this run."
WHOLE = "whole"
MARKS = {True: "✓", False: "✗"}


class Check(NamedTuple):
    """Whether a measurement is as the paper says, and the figures that show it.

    Parameters
    ----------
    ours : bool
        True: the measurement is of our method, False: of the paper's.
    """

    holds: bool
    told: str
    ours: bool = False


class Verdict(NamedTuple):
    """A claim of the paper, what was checked, why some of it does not agree, and what else is to be said.

    Parameters
    ----------
    theirs : str
        The paper's number.
    sizes : str
        Sizes here and there; "whole" where they are the paper's own.
    """

    claim: str
    checks: Sequence[Check]
    why: str = ""
    more: str = ""
    theirs: str = ""
    sizes: str = ""

    def __str__(self) -> str:
        """The claim, how many checks agree, why others do not, and the rest: a line for each."""
        agree = sum(check.holds for check in self.checks)
        lines = [f"The paper: {self.claim}"]
        lines.append(f"{agree} of {len(self.checks)} checks agree." if self.checks else NOTHING)
        if agree < len(self.checks) and self.why:
            lines.append(self.why)
        return "\n".join([*lines, self.more] if self.more else lines)

    @property
    def outcome(self) -> str:
        """Whether the claim was reproduced, at the paper's size or a smaller one."""
        if not self.checks:
            return "not measured"
        if not all(check.holds for check in self.checks):
            return "in part" if any(check.holds for check in self.checks) else "not reproduced"
        return "reproduced" if self.sizes == WHOLE else "reproduced smaller"

    @property
    def table(self) -> Rows:
        """A line for each check."""
        return [{"": MARKS[check.holds], "checked": check.told} for check in self.checks]


def overview(items: Iterable[tuple[Any, ...]]) -> Rows:
    """For each figure and table: how many checks agree and do not; none where nothing was measured or checked."""
    return [
        {
            "figure or table": title.partition(":")[0],
            "agree": sum(check.holds for check in text.checks),
            "do not agree": sum(not check.holds for check in text.checks),
        }
        for title, text, *_ in items
        if isinstance(text, Verdict)
    ]


def said(rows: Iterable[Any], text: str) -> str:
    """The text, or that nothing was measured."""
    return text if list(rows) else NOTHING


def means(records: Rows, keys: Sequence[str], value: str) -> dict[tuple[Any, ...], float]:
    """Means over the runs of one number, by the other keys; records without the number are left out."""
    found: dict[tuple[Any, ...], list[float]] = {}
    for record in records:
        if record.get(value) is not None:
            found.setdefault(tuple(record.get(key) for key in keys), []).append(record[value])
    return {key: float(np.mean(values)) for key, values in found.items()}


def number(text: Any) -> float:
    """The first number of a cell such as "5.1 (0.2)" or "k^0.5"; NaN where there is none, as in "> 500"."""
    try:
        return float(str(text).split()[0].rpartition("^")[2].replace(",", ""))
    except (ValueError, IndexError):
        return float("nan")
