"""Sentences of the docs that have numbers of many results: counts, least and greatest ratios."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.report.found import Found
from benchmarks.report.own_tables import AUTO, EXACT
from benchmarks.report.papers import PAPERS
from benchmarks.report.verdicts import overview
from benchmarks.shared.fronts import is_never_beaten

# So many vectors of the exact SVM are worth one: "a thirtieth or fewer".
FEW = 30


def in_short(found: Found) -> str:
    """What `docs/measured.md` begins with."""
    return "\n".join((beside_peers(found), beside_scikit_learn(found), small_models(found), papers(found), ""))


def beside_peers(found: Found) -> str:
    """On how many sets no peer errs less."""
    done = [
        [record for record in found.results(cell).get("records", []) if record["status"] == "done"]
        for cell in found.of("peers")
    ]
    never = [is_never_beaten(records) for records in done if records]
    return (
        f"- **Other libraries**: on {sum(never)} of {len(never)} sets of numbers no other library's model is more "
        "accurate than our best one, at any time budget of one second or more. Which of our models is best depends on "
        "the set: one with learned scales, on normal ranks, or with another kernel."
    )


def beside_scikit_learn(found: Found) -> str:
    """Rows that `SVC()` predicts in another way, and its time, by default and on two threads."""
    lines = [row for row in found.rows("defaults", "table") if row["machine"] == EXACT and "error_percent" in row]
    times, intelex, rows = [], 0, []
    records = [record for record in found.rows("exact", "records") if record["absent"] is None]
    for name in dict.fromkeys(record["data"] for record in records):
        own = {record["method"]: record for record in records if record["data"] == name}
        ours = own["slimsvm"]["seconds"]
        rows.append(own["slimsvm"]["n_train"])
        times.append(own["scikit-learn"]["seconds"] / ours)
        intelex += "scikit-learn-intelex" in own and own["scikit-learn-intelex"]["seconds"] < ours
    return (
        f"- **scikit-learn's `SVC`**: `SVC()` makes the same predictions (on {len(lines)} sets, test rows that differ: "
        f"{sum(row['other'] for row in lines)}) in {span([row['ratio'] for row in lines], '.2f')} of the time. On two "
        f"threads the exact SVM is {span(times, '.0f')} times as fast on {len(times)} sets of {span(rows, ',')} rows; "
        f"scikit-learn-intelex is faster on {intelex}."
    )


def small_models(found: Found) -> str:
    """What few vectors cost and save by default."""
    lines = found.rows("defaults", "table")
    exact = {row["set"]: row for row in lines if row["machine"] == EXACT and "error_percent" in row}
    autos = [row for row in lines if row["machine"] == AUTO and row["set"] in exact]
    worst = max(row["error_percent"] - exact[row["set"]]["error_percent"] for row in autos)
    few = sum(FEW * row["vectors"] <= exact[row["set"]]["vectors"] for row in autos)
    return (
        f'- **Small models**: `max_basis="auto"` errs {worst:.2f} points more than `SVC()` at most. On {few} of '
        f"{len(autos)} sets it needs a thirtieth of the vectors or fewer. It takes "
        f"{span([row['of_exact'] for row in autos], '.1f')} times as long to train as `SVC()`."
    )


def papers(found: Found) -> str:
    """How many checks of the four papers agree."""
    rows: list[dict[str, Any]] = [row for items in PAPERS.values() for row in overview(items(found))]
    agree, differ = (sum(row[name] for row in rows) for name in ("agree", "do not agree"))
    return (
        f"- **The papers**: {agree} of {agree + differ} checks of their figures and tables agree, some of them at "
        "smaller sizes; [the report](report/page.md) says at which, and why the others do not."
    )


def span(values: Sequence[float], digits: str) -> str:
    """The least and the greatest number."""
    return f"{min(values):{digits}} to {max(values):{digits}}"


SENTENCES: dict[str, Callable[[Found], str]] = {"in-short": in_short}
