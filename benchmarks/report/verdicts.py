"""What agrees with a paper and what does not, in words: a claim of the paper, and checks of what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report.found import Rows

NOTHING = "Not measured in this run."


class Check(NamedTuple):
    """Whether what was measured is as the paper says, and the figures that show it."""

    holds: bool
    told: str


def said(rows: Iterable[Any], text: str) -> str:
    """The text, or that nothing was measured."""
    return text if list(rows) else NOTHING


def verdict(claim: str, checks: Sequence[Check], why: str = "", more: str = "") -> str:
    """The paper's claim, what agrees, what does not and why, and what else is to be said: a line for each."""
    if not checks:
        return "\n".join(filter(None, (f"The paper: {claim}", NOTHING, more)))
    agrees = "; ".join(check.told for check in checks if check.holds)
    differs = "; ".join(check.told for check in checks if not check.holds)
    lines = [f"The paper: {claim}"]
    if agrees:
        lines.append(f"Agrees: {agrees}.")
    if differs:
        lines.append(f"Does not agree: {differs}. {why}".rstrip())
    if more:
        lines.append(more)
    return "\n".join(lines)


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
