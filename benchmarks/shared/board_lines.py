"""The lines of the board: for each kind of set and each method where it stands, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.shared.standings import standings

Records = Sequence[dict[str, Any]]

# Whose wins against each are told, whose losses are 1 in ratios, whose Elo is 1000 (or the first method).
OURS, BESIDE, ANCHOR = "slimsvm", "CatBoost", "random forest"
# What is compared, and what stands beside it. Losses below LEAST count as this one: sets without errors would be all
# of a mean of ratios.
LOSSES = {"classes": "log_loss", "numbers": "of_deviation"}
BESIDES = {"classes": ("auc", "error"), "numbers": ()}
LEAST = 1e-3


def board_lines(records: Records) -> list[dict[str, Any]]:
    """Lines of classes and of numbers, over the sets on which every method was measured as often."""
    return [line for kind in LOSSES for line in lines_of(kind, [r for r in records if r["kind"] == kind])]


def lines_of(kind: str, records: Records) -> list[dict[str, Any]]:
    """Lines of one kind; none where no set has all methods."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    sets = whole_sets(records, methods)
    if not sets:
        return []
    of = {
        (name, method): [r for r in records if r["set"] == name and r["method"] == method]
        for name in sets
        for method in methods
    }
    losses = np.array([[loss_of(of[name, method], LOSSES[kind]) for method in methods] for name in sets])
    roles = [name if name in methods else methods[0] for name in (OURS, BESIDE, ANCHOR)]
    ours, beside, anchor = map(methods.index, roles)
    lines = []
    for method, standing in zip(methods, standings(losses, ours, beside, anchor)):
        cells = [record for name in sets for record in of[name, method]]
        done = [record for record in cells if "failed" not in record]
        line: dict[str, Any] = {"kind": kind, "method": method, "sets": len(sets), "failed": len(cells) - len(done)}
        line |= {"rank": round(standing.rank, 2), "elo": [round(value) for value in standing.elo]}
        line["first_wins_%"] = None if method == roles[0] else [round(100 * share) for share in standing.beaten]
        if done:
            line |= {"ratio": round(standing.ratio, 3)} | costs(done)
            line |= {key: round(float(np.mean([record[key] for record in done])), 4) for key in BESIDES[kind]}
        lines.append(line)
    return lines


def costs(records: Records) -> dict[str, float]:
    """Medians over sets: processor seconds for 1,000 rows, kilobytes, microseconds of a predicted row."""
    found = {
        "s_per_1000_rows": [1000 * record["seconds"] / record["rows"] for record in records],
        "kB": [record["bytes"] / 1000 for record in records],
        "us_a_row": [record["us"] for record in records],
    }
    return {name: float(f"{np.median(values):.3g}") for name, values in found.items()}


def whole_sets(records: Records, methods: Sequence[str]) -> list[str]:
    """Names of the sets with as many records of each method."""
    numbers = {
        name: {sum(r["set"] == name and r["method"] == method for r in records) for method in methods}
        for name in dict.fromkeys(record["set"] for record in records)
    }
    return [name for name, counts in numbers.items() if len(counts) == 1]


def loss_of(records: Records, key: str) -> float:
    """Mean of the splits; infinite where one failed."""
    if any("failed" in record for record in records):
        return float("inf")
    return float(np.maximum(np.mean([record[key] for record in records]), LEAST))
