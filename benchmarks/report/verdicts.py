"""What agrees with a paper and what does not: a claim of the paper, and checks of what was measured, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.report.found import Rows
from benchmarks.shared.trials import RUNS_BY_SECONDS, runs_by_seconds

NOTHING = "Not measured in this run."
WHOLE = "whole"
# Instead of the paper's number, where the paper claims nothing.
NO_CLAIM = "–"
# What a line begins with that says what was measured.
SEEN = "Here: "
SECONDS = "Seconds are those of the processor where they were recorded: most fits ran beside other work."
UNPAIRED = "as if errors were independent: by pairs of rows, which the records lack, it would be less"
MARKS = {True: "✓", False: "✗"}
# Methods without random choices: one run says all.
WITHOUT_CHANCE = "scikit-learn SVC", "decomposition", "exact", "incomplete Cholesky", "linear SVM"


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
    ours : str
        What was measured here, as short as the paper's number.
    settings : str
        Those of the paper, and where ours are others.
    less : str
        Why there are fewer rows or settings here, a sentence.
    """

    claim: str
    checks: Sequence[Check]
    why: str = ""
    more: str = ""
    theirs: str = ""
    sizes: str = ""
    ours: str = ""
    settings: str = ""
    less: str = ""

    def __str__(self) -> str:
        """The claim, settings, what was measured, how many checks agree at which size, and the rest, each on a line."""
        of_size = f"Size here / there: {self.sizes}." if self.sizes != WHOLE else "The size is the paper's own."
        lines = [
            f"The paper: {self.claim}",
            f"Settings: {self.settings}" if self.settings else "",
            f"{SEEN}{self.ours}." if self.ours else "",
            " ".join([*counted(self.checks), *([of_size] if self.sizes else [])]) if self.checks else NOTHING,
            self.why if not all(check.holds for check in self.checks) else "",
            self.less if self.checks and not self.sizes.endswith(WHOLE) else "",
            self.more,
        ]
        return "\n".join(filter(None, lines))

    @property
    def of_paper(self) -> list[Check]:
        """The checks of the paper's own methods."""
        return [check for check in self.checks if not check.ours]

    @property
    def outcome(self) -> str:
        """Whether the claim was reproduced, at the paper's size or a smaller one."""
        if not self.of_paper:
            return "not measured"
        if not all(check.holds for check in self.of_paper):
            return "in part" if any(check.holds for check in self.of_paper) else "not reproduced"
        return "reproduced" if self.sizes == WHOLE else "reproduced smaller"

    @property
    def reason(self) -> str:
        """Why the claim was not reproduced, or at a smaller size only, a sentence."""
        told = {"in part": self.why, "not reproduced": self.why, "reproduced smaller": self.less}
        return first_sentence(told.get(self.outcome, ""))

    @property
    def table(self) -> Rows:
        """A line for each check; where some are of our method, whose method it is."""
        whose = {False: "the paper's", True: "ours"} if any(check.ours for check in self.checks) else {}
        return [
            {"": MARKS[check.holds], "checked": check.told} | ({"method": whose[check.ours]} if whose else {})
            for check in self.checks
        ]


def first_sentence(text: str) -> str:
    """The sentence that a text begins with; the rest stands with the figure."""
    first, stop, _ = text.partition(". ")
    return f"{first}." if stop else text


def counted(checks: Sequence[Check]) -> list[str]:
    """How many checks of the paper's methods agree, and how many of ours, a sentence each."""
    told = []
    for whose, ours in (("", False), (" of our methods", True)):
        own = [check.holds for check in checks if check.ours == ours]
        if own:
            told.append(f"{sum(own)} of {len(own)} checks{whose} agree.")
    return told


def overview(items: Iterable[tuple[Any, ...]]) -> Rows:
    """For each figure and table: how many checks agree and do not, of the paper's methods and of ours, and sizes."""
    rows = []
    for title, text, *_ in items:
        if isinstance(text, Verdict):
            row: dict[str, Any] = {"figure or table": title.partition(":")[0]}
            for name, ours in (("", False), (", our methods", True)):
                own = [check.holds for check in text.checks if check.ours == ours]
                row |= {f"agree{name}": sum(own), f"do not agree{name}": len(own) - sum(own)}
            rows.append(row | {"size here / there": text.sizes or "–"})
    return rows


def said(rows: Iterable[Any], text: str) -> str:
    """The text, or that nothing was measured."""
    return text if list(rows) else NOTHING


def of_sets(sizes: str, n_sets: int, of_paper: int) -> str:
    """Sizes, after how many of the paper's sets there are, where some lack."""
    return sizes if n_sets in (0, of_paper) else f"{n_sets} of {of_paper} sets: {sizes}"


def timed(records: Rows) -> Rows:
    """Records with the seconds of the processor, which other work does not lengthen, where these are known.

    Those of the ramp lack its search for C, which is the exact SVM's.
    """
    return [
        record | {"seconds": record["cpu_seconds"]}
        if record.get("cpu_seconds") and record.get("method") != "ramp"
        else record
        for record in records
    ]


def told_of_runs(records: Iterable[dict[str, Any]], keys: Sequence[str]) -> str:
    """How many runs the fits have that differ by these keys, and how many have fewer than they should, or nothing."""
    known = list(records)
    counts = Counter(tuple(record.get(key) for key in keys) for record in known)
    if not counts:
        return ""
    runs = " to ".join(dict.fromkeys((str(min(counts.values())), str(max(counts.values())))))
    should = {
        tuple(record.get(key) for key in keys): runs_by_seconds(record["seconds"])
        for record in known
        if record.get("method") not in WITHOUT_CHANCE and record.get("status") != "time limit" and record.get("seconds")
    }
    lack = sum(counts[key] < most for key, most in should.items())
    rule = ", ".join(f"{most} of less than {seconds / 60:.0f} minutes each" for seconds, most in RUNS_BY_SECONDS)
    told = f" There should be {rule}, else one; {lack} of {len(should)} fits with random choices have fewer."
    return f"Each fit has {runs} run{'s' * (runs != '1')}." + told * bool(lack)


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
