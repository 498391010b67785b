"""Figures of ``python -m benchmarks budget``, after those of the BSCA paper (its numbers in the names of the files)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.budget.tables import of_part
from benchmarks.shared.looks import colour_of, put_legend_below

Records = list[dict[str, Any]]

PANEL = (4.6, 4.2)  # inches
STYLES = {200: ":", 500: "-", 1000: "--"}  # by budget; the colour is the method's
# The budget of the paper's figures 1 and 2; its figure 5 has the smallest one.
BUDGET = 500
FREE = 4  # the figure without a budget


class Panel(NamedTuple):
    """What a panel shows: a number of every epoch, against another one."""

    y: str
    label: str
    factor: float = 1.0
    scale: str = "linear"
    x: str = "seconds"


ERROR = Panel("test_error", "test error (%)", 100.0)
PRIMAL = Panel("primal", "primal objective", scale="log")
DUAL = Panel("dual_of_model", "Σα − ½‖w̃‖²", scale="symlog")
MERGES = Panel("merge_fraction", "share of steps that merge", x="epoch")


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the paper's figures of each set, a file for each."""
    curves = [record for record in result["records"] if record.get("curve")]
    exact = {record["data"]: record for record in of_part(result["records"], "exact")}
    paths = []
    for name in dict.fromkeys(record["data"] for record in of_part(curves, "budget")):
        own = [record for record in curves if record["data"] == name]
        for number, (records, panels) in figures_of(own).items():
            path = folder / f"budget-{name}-figure-{number}.png"
            is_whole = number != FREE  # without a budget there are fewer rows than the exact SVM has
            draw(records, panels, f"{name}: figure {number}", exact.get(name) if is_whole else None, path)
            paths.append(path)
    return paths


def figures_of(own: Records) -> dict[int, tuple[Records, tuple[Panel, ...]]]:
    """Records and panels of each figure of the paper; figure 8 is figure 3 on other sets."""
    budgeted = of_part(own, "budget")
    budgets = sorted({record["max_basis"] for record in budgeted})
    small, large = budgets[0], max((size for size in budgets if size <= BUDGET), default=budgets[0])
    of_small, of_large = ([record for record in budgeted if record["max_basis"] == size] for size in (small, large))
    bsca = [record for record in budgeted if record["method"] == "bsca" and record["max_basis"] <= large]
    found = {
        1: (of_large, (PRIMAL, DUAL)),
        2: (of_large, (ERROR,)),
        3: (budgeted, (MERGES,)),
        FREE: (of_part(own, "no-budget"), (ERROR,)),
        5: (of_small, (ERROR,)),
        6: (bsca, (ERROR,)),
        7: (bsca, (PRIMAL, DUAL)),
    }
    return {number: drawn for number, drawn in found.items() if drawn[0]}


def draw(records: Records, panels: Sequence[Panel], title: str, exact: Mapping[str, Any] | None, path: Path) -> None:
    """Draw panels side by side, a line for each method and budget: means over the runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL[0] * len(panels), PANEL[1]), layout="constrained")
    for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for method, budget in dict.fromkeys((record["method"], record["max_basis"]) for record in records):
            runs = [r["curve"] for r in records if (r["method"], r["max_basis"]) == (method, budget)]
            label = method if budget is None else f"{method}, B = {budget:,}"
            x, y = mean(runs, panel.x), panel.factor * mean(runs, panel.y)
            ax.plot(x, y, color=colour_of(method), ls=STYLES.get(budget, "-"), lw=1.2, label=label)
        if exact is not None:
            draw_exact(ax, panel, exact, {record["method"] for record in records})
        ax.set(xlabel=panel.x, ylabel=panel.label, yscale=panel.scale, title=title)
        put_legend_below(ax)
    figure.savefig(path, dpi=100)


def draw_exact(ax: Any, panel: Panel, exact: Mapping[str, Any], methods: set[str]) -> None:
    """Draw the exact SVM's error, or lemma 2's limits of the methods."""
    if panel is ERROR:
        ax.axhline(100 * exact["test_error"], color="0.5", label="exact SVM")
    if panel is MERGES:
        for method, limit in exact["limits"].items():
            if method in methods:
                ax.axhline(limit, color=colour_of(method), lw=0.5, label=f"lemma 2, {method}")


def mean(curves: list[list[dict[str, Any]]], key: str) -> np.ndarray:
    """Mean over runs of one number of every epoch; NaN where a method has none."""
    numbers = [[point[key] for point in curve] for curve in curves]
    return np.mean(np.array(numbers, dtype=float), axis=0)
