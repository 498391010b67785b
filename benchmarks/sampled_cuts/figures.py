"""Figures of the sampled-cuts experiments like the paper's 1 to 7, from their records alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.shared.looks import paint
from benchmarks.shared.tables import Record
from slimsvm.plots import plot_means

PANEL = (5.2, 5.0)  # inches
PANELS = {
    "uniform, paper's steps": ("uniform", "paper"),
    "violated, paper's steps": ("violated", "paper"),
    "violated": ("violated", "ours"),
}


@dataclass(frozen=True)
class Drawing:
    """What a figure shows.

    Parameters
    ----------
    name : str
        Of the file, after "sampled-cuts-".
    y, label : str
        Key of the vertical axis, and what is written on it.
    scale : float
        Factor on y.
    logarithmic : bool
        Of the vertical axis.
    """

    name: str
    y: str
    label: str
    scale: float = 1.0
    logarithmic: bool = False


AGAINST_SIZE = (
    Drawing("figure-1", "seconds", "seconds", logarithmic=True),
    Drawing("figure-2", "train_error", "training error (%)", 100.0),
    Drawing("figure-3", "test_error", "test error (%)", 100.0),
)
AGAINST_SAMPLE_SIZE = (
    Drawing("figure-4", "seconds", "seconds", logarithmic=True),
    Drawing("figure-5", "iterations", "iterations"),
    Drawing("figure-6", "train_error", "training error (%)", 100.0),
    Drawing("figure-7", "test_error", "test error (%)", 100.0),
)
EVALUATIONS = Drawing("evaluations", "kernel_evals", "kernel evaluations", logarithmic=True)


def draw_figures(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw every figure that there are records for, as PNG files.

    Fits that met the time limit are left out, as the paper leaves its unfinished ones out.

    Parameters
    ----------
    records : list of mappings
    folder : Path
        Must exist.

    Returns
    -------
    list of Path
        The files written.
    """
    done = [record for record in records if "seconds" in record and record.get("status") != "time limit"]
    scaling = _grouped((record for record in done if record["part"] == "scaling"), lambda record: record["data"])
    fixed = _grouped((record for record in done if record["part"] == "fixed-c1"), lambda record: record["data"])
    sampled = [record for record in done if record["part"] == "sample-size" and record.get("sample_size")]
    evaluations = {f"{data}, C = 1": found for data, found in scaling.items()}
    evaluations |= {f"{data}, C n = 10⁴": found for data, found in fixed.items()}
    paths = []
    for drawing in AGAINST_SIZE:
        paths += _save(drawing, scaling, ("n_train", "training rows"), "method", folder)
    for drawing in AGAINST_SAMPLE_SIZE:
        paths += _save(drawing, _by_steps(sampled), ("sample_size", "sample size"), "C", folder)
    return paths + _save(EVALUATIONS, evaluations, ("n_train", "training rows"), "method", folder)


def _by_steps(records: Iterable[Record]) -> dict[str, list[Record]]:
    titles = {kind: title for title, kind in PANELS.items()}
    named = ({**record, "C": f"C = {record['C']:g}"} for record in records)
    found = _grouped(named, lambda record: titles.get((record["oracle"], record["steps"]), ""))
    return {title: found[title] for title in PANELS if title in found}


def _grouped(records: Iterable[Record], title: Callable[[Record], str]) -> dict[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(title(record), []).append(record)
    return groups


def _save(drawing: Drawing, panels: dict[str, list[Record]], x: tuple[str, str], by: str, folder: Path) -> list[Path]:
    """One figure with its panels side by side, on one scale if lines are values of C; none if there is nothing."""
    known = {
        title: [record for record in found if record.get(drawing.y) is not None] for title, found in panels.items()
    }
    known = {title: found for title, found in known.items() if found}
    if not known:
        return []
    figure = _new_figure(len(known))
    axes = figure.subplots(1, len(known), squeeze=False, sharey=by == "C")[0]
    for ax, (title, found) in zip(axes, known.items()):
        plot_means(found, x[0], drawing.y, by=by, scale=drawing.scale, ax=ax)
        paint(ax)
        ax.set(title=title, xlabel=x[1], ylabel=drawing.label)
        if drawing.logarithmic:
            ax.set_yscale("log")
    path = folder / f"sampled-cuts-{drawing.name}.png"
    figure.savefig(path, dpi=120)
    return [path]


def _new_figure(n_panels: int) -> Any:
    """A figure of its own, which leaves pyplot's as they are."""
    from matplotlib.figure import Figure

    return Figure(figsize=(PANEL[0] * n_panels, PANEL[1]), layout="constrained")
