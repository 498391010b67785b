"""Tables of the subspace experiments, from their records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.shared.tables import (
    NONE,
    Record,
    latest,
    markdown,
    number,
    per_cent,
    seconds,
    slope,
    spread,
    summarise,
)
from benchmarks.subspace.sized_methods import EXACT

# Behind what a fit that met its limit reached.
LIMITED = " (time limit)"
# Table 2: as good as the exact SVM up to this share of errors.
TARGET = 0.005
# Errors of equal models differ by no more.
ROUNDING = 1e-12
# The order that the paper finds, up to this many vectors.
ORDERED, ORDER_UP_TO = ("CPSP", "CPSP (training rows)", "Nyström"), 500


def all_tables(records: Sequence[Record]) -> dict[str, str]:
    """Every table that there are records for, by its title."""
    records = latest(records)
    done = [dict(record) for record in records if "seconds" in record]
    rows = [dict(row) for row in summarise(done)]
    name_problems([*rows, *done])
    sized = [row for row in rows if row["part"] == "sizes"]
    made = {
        "Models of full size": full_size(sized),
        "Test error (%) by number of vectors": by_size(sized, _error),
        "Objective as a multiple of the exact SVM's": by_size(sized, _multiple),
        "Seconds of training": by_size(sized, seconds),
        "Microseconds of prediction per row": by_size(sized, _micros),
        "Table 2: vectors and seconds to come within 0.5 points of the exact SVM": table_2(sized),
        f"Is {' ≤ '.join(ORDERED)}?": order(done),
        "Growth with the number of vectors (exponent of the seconds)": growth(sized, "max_basis"),
        "Training sets of growing size": of_growth(rows),
        "Growth with the rows (exponent of the seconds)": growth(
            [row for row in rows if row["part"] == "growth"], "n_train"
        ),
        "Left out": left_out(records),
    }
    return {title: text for title, text in made.items() if text}


def overview(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A line per problem, method and number of vectors, of plain values."""
    return [
        {
            "part": row["part"],
            "data": row["data"],
            "rows": row["n_train"],
            "method": row["method"],
            "k": NONE if row.get("max_basis") is None else row["max_basis"],
            "vectors": number("n_vectors")(row),
            "seconds": seconds(row),
            "test error %": per_cent("test_error")(row),
            "objective multiple": _multiple(row),
        }
        for row in summarise(record for record in records if "seconds" in record)
    ]


def _error(row: Record) -> str:
    return per_cent("test_error")(row) + LIMITED * row["limited"]


def _multiple(row: Record) -> str:
    known = row["objective_multiple"] is not None
    return spread(row, "objective_multiple", lambda value: f"{value:.3f}") + LIMITED * (known and row["limited"])


def _micros(row: Record) -> str:
    return NONE if row["predict_us"] is None else f"{row['predict_us']:.2g}"


def name_problems(rows: Sequence[dict[str, Any]]) -> None:
    """Give each row the name of its problem: with C and γ where all methods and sizes have the same."""
    settings: dict[tuple[Any, ...], set[tuple[float, float]]] = {}
    for row in rows:
        settings.setdefault((row["part"], row["data"], row["n_train"]), set()).add((row["C"], row["gamma"]))
    for row in rows:
        is_one = len(settings[row["part"], row["data"], row["n_train"]]) == 1
        shared = f"C = {row['C']:g}, γ = {row['gamma']:.3g}" if is_one else "C and γ chosen for each"
        row["problem"] = f"{row['data']} (n = {row['n_train']:,}, {shared})"


def _problem(row: Record) -> str:
    return row["problem"]


def full_size(rows: Sequence[Record]) -> str:
    """The exact SVM and the linear one."""
    rows = [row for row in rows if row.get("max_basis") is None]
    if not rows:
        return ""
    columns: dict[str, Callable[[Record], str]] = {
        "data": _problem,
        "method": lambda row: row["method"],
        "vectors": number("n_vectors"),
        "test error %": per_cent("test_error"),
        "seconds": seconds,
        "µs of prediction per row": _micros,
    }
    return markdown(columns, rows)


def by_size(rows: Sequence[Record], text: Callable[[Record], str]) -> str:
    """A line for each set and method, a column for each number of vectors."""
    lines: dict[tuple[str, str], dict[int, Record]] = {}
    for row in rows:
        if row.get("max_basis") is not None:
            lines.setdefault((_problem(row), row["method"]), {})[row["max_basis"]] = row
    if not any(text(row) != NONE for line in lines.values() for row in line.values()):
        return ""
    columns: dict[str, Callable[[tuple[str, str]], str]] = {"data": lambda key: key[0], "method": lambda key: key[1]}
    for k in sorted({k for line in lines.values() for k in line}):
        columns[f"k = {k:,}"] = _cell(lines, k, text)
    return markdown(columns, lines)


def _cell(
    lines: Mapping[tuple[str, str], Mapping[int, Record]], k: int, text: Callable[[Record], str]
) -> Callable[[tuple[str, str]], str]:
    return lambda key: text(lines[key][k]) if k in lines[key] else NONE


def table_2(rows: Sequence[Record]) -> str:
    """The paper's table 2: the smallest k whose mean error is within `TARGET` of the exact SVM's, and its seconds."""
    exact = {_problem(row): row for row in rows if row["method"] == EXACT}
    found: dict[tuple[str, str], Record | None] = {}
    largest: dict[tuple[str, str], int] = {}
    for row in sorted((row for row in rows if row.get("max_basis") is not None), key=lambda row: row["max_basis"]):
        reference, key = exact.get(_problem(row)), (_problem(row), row["method"])
        if reference is None:
            continue
        largest[key] = row["max_basis"]
        good = row["test_error"] <= reference["test_error"] + TARGET
        if found.setdefault(key, None) is None and good:
            found[key] = row
    if not found:
        return ""

    def vectors(key: tuple[str, str]) -> str:
        row = found[key]
        return f"> {largest[key]:,}" if row is None else f"{row['max_basis']:,}"

    def time_of(key: tuple[str, str]) -> str:
        row = found[key]
        return NONE if row is None else seconds(row)

    columns: dict[str, Callable[[tuple[str, str]], str]] = {
        "data": lambda key: key[0],
        "method": lambda key: key[1],
        "vectors": vectors,
        "seconds": time_of,
        "exact SVM's vectors": lambda key: number("n_vectors")(exact[key[0]]),
        "exact SVM's seconds": lambda key: seconds(exact[key[0]]),
    }
    return markdown(columns, found)


def order(records: Sequence[Record]) -> str:
    """For each set and k: the differences of mean errors with their standard errors, and whether objectives are in
    the paper's order.
    """
    groups: dict[tuple[str, int], dict[str, list[Record]]] = {}
    for record in records:
        k = record.get("max_basis")
        if record["part"] == "sizes" and record["method"] in ORDERED and k is not None and k <= ORDER_UP_TO:
            groups.setdefault((_problem(record), k), {}).setdefault(record["method"], []).append(record)
    groups = {key: group for key, group in groups.items() if len(group) == len(ORDERED)}
    if not groups:
        return ""

    def difference(other: str) -> Callable[[tuple[str, int]], str]:
        def text(key: tuple[str, int]) -> str:
            gap, width = excess(groups[key][ORDERED[0]], groups[key][other])
            verdict = "yes" if gap <= width + ROUNDING else "no"
            return f"{100 * gap:+.2f} ± {100 * width:.2f}: {verdict}"

        return text

    def in_order(key: tuple[str, int]) -> str:
        means = [_mean(groups[key][name], "objective") for name in ORDERED]
        return "yes" if means == sorted(means) else "no"

    columns: dict[str, Callable[[tuple[str, int]], str]] = {
        "data": lambda key: key[0],
        "k": lambda key: f"{key[1]:,}",
        f"error over {ORDERED[1]}'s": difference(ORDERED[1]),
        f"error over {ORDERED[2]}'s": difference(ORDERED[2]),
        "objectives in order": in_order,
        "runs": lambda key: str(min(len(found) for found in groups[key].values())),
    }
    return markdown(columns, groups)


def excess(ours: Sequence[Record], theirs: Sequence[Record]) -> tuple[float, float]:
    """Difference of the mean test errors, and its standard error (0 where there is one run)."""
    gap = _mean(ours, "test_error") - _mean(theirs, "test_error")
    variances = [
        float(np.var([record["test_error"] for record in runs], ddof=1)) / len(runs)
        for runs in (ours, theirs)
        if len(runs) > 1
    ]
    return gap, float(np.sqrt(sum(variances)))


def _mean(runs: Iterable[Record], name: str) -> float:
    return float(np.mean([record[name] for record in runs]))


def of_growth(rows: Sequence[Record]) -> str:
    """Every fit of the experiment on growing training sets."""
    rows = [row for row in rows if row["part"] == "growth"]
    if not rows:
        return ""
    columns: dict[str, Callable[[Record], str]] = {
        "data": lambda row: row["data"],
        "rows": lambda row: f"{row['n_train']:,}",
        "method": lambda row: row["method"],
        "k": lambda row: NONE if row.get("max_basis") is None else f"{row['max_basis']:,}",
        "seconds": seconds,
        "test error %": per_cent("test_error"),
    }
    return markdown(columns, rows)


def growth(rows: Sequence[Record], along: str) -> str:
    """Exponents of seconds in ``along``, by set and method; fits that met the time limit are left out."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        if row.get(along) is not None and not row["limited"]:
            groups.setdefault((row["data"], row["method"]), []).append(row)
    lines = []
    for (data, method), found in groups.items():
        found = sorted(found, key=lambda row: row[along])
        at = [row[along] for row in found]
        if len(at) > 1:
            exponent = slope(at, [row["seconds"] for row in found])
            lines.append({"data": data, "method": method, "from": at[0], "to": at[-1], "exponent": exponent})
    if not lines:
        return ""
    columns: dict[str, Callable[[Record], str]] = {
        "data": lambda row: row["data"],
        "method": lambda row: row["method"],
        "from": lambda row: f"{row['from']:,}",
        "to": lambda row: f"{row['to']:,}",
        "seconds ~": lambda row: f"{'k' if along == 'max_basis' else 'n'}^{row['exponent']:.2f}",
    }
    return markdown(columns, lines)


def left_out(records: Sequence[Record]) -> str:
    """What did not run, and why."""
    reasons = ("part", "data", "method", "skipped")
    skipped = list({tuple(map(record.get, reasons)): record for record in records if "skipped" in record}.values())
    columns: dict[str, Callable[[Record], str]] = {
        "part": lambda row: row["part"],
        "data": lambda row: row["data"],
        "method": lambda row: row.get("method", NONE),
        "reason": lambda row: row["skipped"],
    }
    return markdown(columns, skipped) if skipped else ""
