"""Tables of the sampled-cuts experiments, from their records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from benchmarks.shared.tables import (
    NONE,
    Record,
    exponent,
    gap,
    latest,
    markdown,
    number,
    per_cent,
    seconds,
    summarise,
)

# Exponents of seconds are of sizes from here on: below, a fit's fixed costs are most of its time.
SLOPE_FROM = 10_000
# Part and C of each set; the largest C below where that was not run.
TABLE_1 = {"checkerboard": ("scaling", 1.0), "adult": ("sample-size", 100.0), "covtype": ("scaling", 1.0)}
TABLE_1_SIZES = (None, 400, 1000)
SVC = "scikit-learn SVC"
# Of the theorems: what the stopping rule allows of the mean loss, and the probability that draws are unlucky.
EPSILON, DELTA = 1e-3, 0.05


def of_part(rows: Sequence[Record], part: str) -> list[Record]:
    """Rows of one part."""
    return [row for row in rows if row.get("part") == part]


def all_tables(records: Sequence[Record]) -> dict[str, str]:
    """Every table that there are records for, by its title."""
    records = latest(records)
    rows = summarise(record for record in records if "method" in record)
    made = {
        "Table 1: time and error at the largest size": table_1(rows),
        "Scaling with the size of the training set": fits(of_part(rows, "scaling")),
        "Growth with n (exponents ± two standard errors)": growth(rows),
        "Fixed C₁ = 10⁴": fits(of_part(rows, "fixed-c1")),
        "Sample sizes and C on Adult": fits(of_part(rows, "sample-size")),
        "Theorems 1 to 3 beside what was measured (ε = 0.001, R = Δ̄ = 1, δ = 0.05)": theorems(rows),
        "Left out": left_out(records),
    }
    return {title: text for title, text in made.items() if text}


def overview(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A line per problem and method, of plain values."""
    rows = summarise(record for record in records if "seconds" in record)
    return [
        {
            "part": row["part"],
            "data": row["data"],
            "rows": row["n_train"],
            "C": row["C"],
            "method": row["method"],
            "seconds": seconds(row),
            "test error %": per_cent("test_error")(row),
            "vectors": number("n_vectors")(row),
            "kernel evaluations": number("kernel_evals")(row),
            "gap": gap(row),
        }
        for row in rows
    ]


def fits(rows: Sequence[Record]) -> str:
    """Everything of every fit."""
    if not rows:
        return ""
    columns: dict[str, Callable[[Record], str]] = {
        "data": lambda row: row["data"],
        "rows": lambda row: f"{row['n_train']:,}",
        "C": lambda row: f"{row['C']:g}",
        "method": lambda row: row["method"],
        "seconds": seconds,
        "kernel evaluations": number("kernel_evals"),
        "iterations": number("iterations"),
        "training error %": per_cent("train_error"),
        "test error %": per_cent("test_error"),
        "vectors": number("n_vectors"),
        "objective": lambda row: NONE if row["objective"] is None else f"{row['objective']:.6g}",
        "gap": gap,
    }
    return markdown(columns, [row for row in rows if "skipped" not in row])


def table_1(rows: Sequence[Record]) -> str:
    """The paper's table 1: a line for each method, for each set seconds, training and test error."""
    chosen: dict[str, dict[str, Record]] = {}
    for data, (part, C) in TABLE_1.items():
        candidates = [
            row
            for row in of_part(rows, part)
            if row["data"] == data and row["C"] <= C and row.get("sample_size") in TABLE_1_SIZES
        ]
        if candidates:
            largest, found_C = max((row["n_train"], row["C"]) for row in candidates)
            title = f"{data} (n = {largest:,}, C = {found_C:g})"
            chosen[title] = {
                row["method"]: row for row in candidates if (row["n_train"], row["C"]) == (largest, found_C)
            }
    if not chosen:
        return ""
    columns: dict[str, Callable[[str], str]] = {"method": str}
    for title, found in chosen.items():
        columns[f"{title}: seconds"] = _cell(found, seconds)
        data = title.partition(" ")[0]
        columns[f"{data}: training error %"] = _cell(found, per_cent("train_error"))
        columns[f"{data}: test error %"] = _cell(found, per_cent("test_error"))
    return markdown(columns, dict.fromkeys(name for found in chosen.values() for name in found))


def _cell(found: dict[str, Record], text: Callable[[Record], str]) -> Callable[[str], str]:
    return lambda method: text(found[method]) if method in found else NONE


def most_calls(C1: float) -> float:
    """Theorem 1: calls of the oracle, 8 C₁ Δ̄ R² / ε²."""
    return 8 * C1 / EPSILON**2


def promised_excess(oracle: str, C1: float, sample_size: int) -> float:
    """Theorems 2 (``violated``) and 3 (``uniform``): how far above the optimum the objective is at most, but for
    unlucky draws of the probability δ, 2δ with the latter.
    """
    log = np.log(most_calls(C1) / DELTA)
    if oracle == "violated":
        return C1 * (EPSILON + np.sqrt(4 * C1 / sample_size * log))
    return C1 * (EPSILON + 2 * np.sqrt((1 + 2 * np.sqrt(2 * C1)) ** 2 / (2 * sample_size) * log))


def theorems(rows: Sequence[Record]) -> str:
    """What the paper proves of the fits with its own steps, beside what they did.

    C is that of LIBSVM, as the numbers of the paper say it is; so Ψ(x, y) = ½ y φ(x) here.
    """
    found = [row for row in rows if row.get("steps") == "paper" and row.get("iterations") is not None]
    columns: dict[str, Callable[[Record], str]] = {
        "data": lambda row: row["data"],
        "rows": lambda row: f"{row['n_train']:,}",
        "C₁ = C n": lambda row: f"{row['C'] * row['n_train']:g}",
        "method": lambda row: row["method"],
        "iterations": number("iterations"),
        "theorem 1, at most": lambda row: f"{most_calls(row['C'] * row['n_train']):.3g}",
        "objective above the best bound": _excess,
        "theorem 2 or 3, at most": lambda row: (
            f"{promised_excess(row['oracle'], row['C'] * row['n_train'], row['sample_size']):.3g}"
        ),
    }
    return markdown(columns, found) if found else ""


def _excess(row: Record) -> str:
    known = row.get("gap") is not None and row.get("objective") is not None
    return f"{row['gap'] * row['objective']:.3g}" if known else NONE


def growth(rows: Sequence[Record]) -> str:
    """How seconds and kernel evaluations grow with the rows at fixed C and at fixed C₁; fits cut off are left out."""
    groups: dict[tuple, list[Record]] = {}
    for row in rows:
        if row["part"] in ("scaling", "fixed-c1") and row["seconds"] is not None and not row["limited"]:
            groups.setdefault((row.get("run"), row["part"], row["data"], row["method"]), []).append(row)
    lines: list[dict[str, str]] = []
    for (_, part, data, method), found in groups.items():
        found = sorted(found, key=lambda row: row["n_train"])
        timed = [row for row in found if row["n_train"] >= SLOPE_FROM]
        if len(timed) > 1:
            line = {"at fixed": "C" if part == "scaling" else "C₁", "data": data, "method": method}
            line["rows"] = f"{timed[0]['n_train']:,} to {timed[-1]['n_train']:,}"
            lines.append(line | _exponents(timed, "seconds", "seconds ~ n^") | _evaluations(found))
    return markdown({name: itemgetter(name) for name in lines[0]}, lines) if lines else ""


def _exponents(found: Sequence[Record], name: str, title: str) -> dict[str, str]:
    known = [row for row in found if row.get(name)]
    sizes = [row["n_train"] for row in known]
    return {title: exponent(sizes, [row[name] for row in known]) if len(known) > 1 else NONE}


def _evaluations(found: Sequence[Record]) -> dict[str, str]:
    """The exponent of kernel evaluations, from the smallest size on."""
    smallest = f"{found[0]['n_train']:,}"
    return {"from rows": smallest} | _exponents(found, "kernel_evals", "kernel evaluations ~ n^")


def left_out(records: Sequence[Record]) -> str:
    """What did not run, and why."""
    reasons = ("part", "data", "n_train", "method", "skipped")
    skipped = list({tuple(map(record.get, reasons)): record for record in records if "skipped" in record}.values())
    columns: dict[str, Callable[[Record], str]] = {
        "part": lambda row: row["part"],
        "data": lambda row: row["data"],
        "rows": lambda row: f"{row['n_train']:,}" if "n_train" in row else NONE,
        "method": lambda row: row.get("method", NONE),
        "reason": lambda row: row["skipped"],
    }
    return markdown(columns, skipped) if skipped else ""
