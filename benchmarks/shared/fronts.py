"""Fronts of what costs and what errs least."""

from __future__ import annotations

from typing import Any


def front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (cost, error) those that none undercuts in both, by rising cost."""
    best: list[tuple[float, float]] = []
    for cost, error in sorted(points):
        if not best or error < best[-1][1]:
            best.append((cost, error))
    return best


def is_never_beaten(records: list[dict[str, Any]], least_seconds: float = 1.0) -> bool:
    """Whether at every time of a fit from ``least_seconds`` on some model of ours errs no more than all others."""
    return all(excess <= 0 for _, excess in excesses(records, least_seconds))


def excesses(records: list[dict[str, Any]], least_seconds: float = 1.0) -> list[tuple[float, float]]:
    """Times of a fit from ``least_seconds`` on, and how much more our best model of each errs than the best other."""
    ends = sorted({max(least_seconds, r["seconds"]) for r in records})

    def best(is_ours: bool, seconds: float) -> float:
        return min((r["test_error"] for r in records if r["ours"] == is_ours and r["seconds"] <= seconds), default=1.0)

    # Without any model all rows are wrong.
    return [(seconds, best(True, seconds) - best(False, seconds)) for seconds in ends]
