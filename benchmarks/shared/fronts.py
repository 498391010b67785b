"""Fronts of what costs and what errs least."""

from __future__ import annotations

from typing import Any

import numpy as np


def front(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of (cost, error) those that none undercuts in both, by rising cost."""
    best: list[tuple[float, float]] = []
    for cost, error in sorted(points):
        if not best or error < best[-1][1]:
            best.append((cost, error))
    return best


def is_never_beaten(records: list[dict[str, Any]], least_seconds: float = 1.0) -> bool:
    """Whether at every time of a fit from ``least_seconds`` on some model of ours errs no more than all others."""
    ends = sorted({max(least_seconds, r["seconds"]) for r in records})

    def best(is_ours: bool, seconds: float) -> float:
        return min(
            (r["test_error"] for r in records if r["ours"] == is_ours and r["seconds"] <= seconds), default=np.inf
        )

    return all(best(True, seconds) <= best(False, seconds) for seconds in ends)
