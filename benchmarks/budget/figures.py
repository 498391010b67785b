"""Figures of ``python -m benchmarks budget``, after those of the BSCA paper (its numbers in the names of the files)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.budget.tables import of_part
from benchmarks.shared.looks import colour_of

STYLES = {200: ":", 500: "-", 1000: "--"}  # by budget; the colour is the method's
WIDTHS = {"bsca": 1.5, "bsgd": 1.5, "our-bsca": 0.9, "our-bsgd": 0.9}


def plot(result: dict[str, Any], folder: Path) -> list[Path]:
    """Draw a page per set: errors, objectives and merges against seconds or epochs, and what was without a budget."""
    from matplotlib.figure import Figure

    paths = []
    records = [record for record in of_part(result["records"], "budget") if record.get("curve")]
    exact = {record["data"]: record for record in of_part(result["records"], "exact")}
    free_runs = by_method(of_part(result["records"], "no-budget"))
    for name in dict.fromkeys(record["data"] for record in records):
        figure = Figure(figsize=(15.0, 8.0), layout="constrained")
        (error, primal, dual), (bsca, merges, free) = figure.subplots(2, 3)
        own = [record for record in records if record["data"] == name]
        for method, budget in dict.fromkeys((r["method"], r["max_basis"]) for r in own):
            curves = [r["curve"] for r in own if (r["method"], r["max_basis"]) == (method, budget)]
            look = {"ls": STYLES.get(budget, "-"), "lw": WIDTHS[method], "color": colour_of(method)}
            look["label"] = f"{method}, B={budget}"
            seconds, epochs = mean(curves, "seconds"), mean(curves, "epoch")
            error.plot(seconds, 100 * mean(curves, "test_error"), **look)
            primal.plot(seconds, mean(curves, "primal"), **look)
            merges.plot(epochs, mean(curves, "merge_fraction"), **look)
            dual.plot(seconds, mean(curves, "dual_of_model"), **look)
            if method == "bsca":
                bsca.plot(seconds, 100 * mean(curves, "test_error"), **look)
                dual.plot(seconds, mean(curves, "dual"), **look | {"marker": ".", "label": None})
        if name in exact:
            for ax in (error, bsca):
                ax.axhline(100 * exact[name]["test_error"], color="0.5", label="exact SVM")
            for method, limit in exact[name]["limits"].items():
                merges.axhline(limit, color=colour_of(method), lw=0.5, label=f"lemma 2, {method}")
        for (data, method), curves in free_runs.items():
            if data == name:
                seconds, errors = mean(curves, "seconds"), 100 * mean(curves, "test_error")
                free.plot(seconds, errors, color=colour_of(method), label=method)
        error.set(xlabel="seconds", ylabel="test error (%)", title=f"{name}: figures 2 and 5")
        primal.set(xlabel="seconds", ylabel="primal objective", yscale="log", title="figures 1 and 7")
        dual.set(xlabel="seconds", yscale="symlog", ylabel="Σα − ½‖w̃‖²; dots: D(α)", title="figures 1 and 7")
        bsca.set(xlabel="seconds", ylabel="test error (%)", title="figure 6")
        merges.set(xlabel="epoch", ylabel="steps that merge", title="figures 3 and 8")
        free.set(xlabel="seconds", ylabel="test error (%)", title="figure 4: no budget")
        for ax in (error, merges, *([free] if free.lines else [])):
            ax.legend(fontsize="small")
        paths.append(folder / f"budget-{name}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths


def by_method(records: list[dict[str, Any]]) -> dict[tuple[str, str], list[list[dict[str, Any]]]]:
    """Curves of all runs by set and method."""
    found: dict[tuple[str, str], list[list[dict[str, Any]]]] = {}
    for record in records:
        found.setdefault((record["data"], record["method"]), []).append(record["curve"])
    return found


def mean(curves: list[list[dict[str, Any]]], key: str) -> np.ndarray:
    """Mean over runs of one number of every epoch."""
    return np.mean([[point[key] for point in curve] for curve in curves], axis=0)
