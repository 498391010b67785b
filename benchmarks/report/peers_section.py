"""The section about peers: what users would take instead, set by set."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.report.found import Found, Rows
from benchmarks.report.verdicts import said
from benchmarks.shared.fronts import excesses, is_never_beaten
from benchmarks.shared.settled import BY_TRAINING_ROWS


def items(found: Found) -> list[tuple[Any, ...]]:
    """What users would take instead."""
    records = found.rows("peers", "records")
    told: list[tuple[Any, ...]] = []
    beaten = []
    for name in dict.fromkeys(record["data"] for record in records):
        own = [record for record in records if record["data"] == name]
        done = [record for record in own if record["status"] == "done"]
        if done and not is_never_beaten(done):
            beaten.append(f"{name} ({how_beaten(done)})")
        shape = own[0]
        text = f"{own[0].get('said')}."
        if done:
            text = (
                f"{shape['n_train']:,} training rows, {shape['n_features']} features, {shape['n_classes']} classes. "
                f"It settled {settled(shape)}. {best_of(done)}"
            )
        columns = ("method", "status", "test_error", "seconds", "predict_us", "n_vectors", "said")
        rows = [{key: record.get(key) for key in columns} for record in own]
        told.append((name, text, [rows], found.pictures("peers", f"peers-{name.replace(' ', '-')}.png")))
    sets = {record["data"] for record in records if record["status"] == "done"}
    text = (
        f"On {len(sets) - len(beaten)} of {len(sets)} sets a model of ours errs no more than all peers at every time "
        f"of a fit from one second on. On the others some peer errs less: {'; '.join(beaten) or 'none'}."
    )
    return [("In short", said(sets, text), [], []), growth(found), *told]


def settled(record: dict[str, Any]) -> str:
    """What of ours a set has decided, and by which rows."""
    if record["settled"]:
        return "a default of ours, by rows that test here"
    return "a default of ours, by training rows alone" if record["data"] in BY_TRAINING_ROWS else "nothing of ours"


def how_beaten(records: Rows) -> str:
    """From when to when, and by how much."""
    there = excesses(records)
    times = [seconds for seconds, excess in there if excess > 0]
    later = [seconds for seconds, _ in there if seconds > times[-1]]
    most, n_test = max(excess for _, excess in there), records[0]["n_train"] * 3 // 7
    error = min(record["test_error"] for record in records)
    chance = ", less than a standard error of the test rows" if most < np.sqrt(error * (1 - error) / n_test) else ""
    until = f"until {later[0]:.2g} s" if later else "to the end"
    return f"from {times[0]:.2g} s {until}, by {100 * most:.2g} points at most{chance}"


def growth(found: Found) -> tuple[Any, ...]:
    """Seconds against rows."""
    rows = found.rows("scaling", "table")
    told = "; ".join(f"{row['data']}, {row['method']}: n^{row['exponent']}" for row in rows if row.get("exponent"))
    return ("Seconds against rows", said(rows, f"Exponents: {told}."), [rows], found.pictures("scaling", "scaling-*"))


def best_of(records: Rows) -> str:
    """The least error of ours and of the others."""
    told = []
    for who, is_ours in (("ours", True), ("others", False)):
        own = [record for record in records if record["ours"] == is_ours]
        if own:
            best = min(own, key=lambda record: record["test_error"])
            told.append(f"{who}: {100 * best['test_error']:.2f} % in {best['seconds']:.2g} s ({best['method']})")
    return "Least error, " + "; ".join(told) + "."
