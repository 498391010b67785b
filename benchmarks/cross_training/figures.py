"""Figures of `python -m benchmarks cross-training`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared.looks import paint

# Figure by part: what is on the horizontal axis, and panels of (measure, factor, label).
VECTORS = ("n_vectors", 1.0, "support vectors")
ERROR = ("test_error", 100.0, "test error (%)")
CLEAN = ("clean_error", 100.0, "test error, labels without noise (%)")
SECONDS = ("seconds", 1.0, "seconds")
BOUNDED = ("n_bounded", 1.0, "of them at the bound")
FIGURES = {
    "overlap": ("overlap", (VECTORS, BOUNDED)),
    "gaussians": ("n_train", (VECTORS, ERROR, SECONDS)),
    "noise": ("noise", (VECTORS, ERROR, CLEAN)),
}
AXES = {"overlap": "overlap", "n_train": "training rows", "noise": "share of labels turned round"}


def draw(records: list[dict[str, Any]], folder: Path) -> list[Path]:
    """One file per part: a panel per measure, a line per method; of the noise the largest n, and vectors against n."""
    paths = []
    for part, (axis, panels) in FIGURES.items():
        mine = [record for record in records if record["part"] == part]
        if not mine:
            continue
        largest = [record for record in mine if part != "noise" or record["n_train"] == max(r["n_train"] for r in mine)]
        paths.append(_figure(largest, axis, panels, folder / f"cross-training-{part}.png"))
        if part == "noise":
            share = 0.1 if any(record["noise"] == 0.1 for record in mine) else mine[-1]["noise"]
            curve = [record for record in mine if record["noise"] == share]
            paths.append(_figure(curve, "n_train", (VECTORS, ERROR, CLEAN), folder / "cross-training-size.png"))
    return paths


def _figure(records: list[dict[str, Any]], axis: str, panels: tuple, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(panels), 3.8), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    for method in dict.fromkeys(record["method"] for record in records):
        points: dict[float, list[dict[str, Any]]] = {}
        for record in records:
            if record["method"] == method:
                points.setdefault(record[axis], []).append(record)
        x = sorted(points)
        for ax, (measure, factor, label) in zip(axes, panels, strict=True):
            means = [factor * np.mean([record[measure] for record in points[value]]) for value in x]
            ax.plot(x, means, "o-", label=method, markersize=3)
            ax.set(xlabel=AXES[axis], ylabel=label, xscale="log" if axis == "n_train" else "linear")
            if measure in ("n_vectors", "n_bounded"):
                ax.set_yscale("symlog", linthresh=1)
    axes[0].legend()
    for ax in axes:
        paint(ax)
    figure.savefig(path, dpi=120)
    return path
