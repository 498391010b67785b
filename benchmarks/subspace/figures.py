"""The three figures of the subspace paper: error, objective and time, from records alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.shared.looks import paint
from benchmarks.shared.tables import Record
from slimsvm.plots import SizePathDisplay, plot_means

PANEL = (5.2, 5.0)  # inches
FIGURES = {"figure-1": "test_error", "figure-2": "objective_multiple", "figure-3": "seconds"}


def draw_figures(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw every figure that there are records for, a panel for each set, as PNG files.

    Figure 3 is in two files: against the number of vectors, and against the number of rows. In its files fits that met
    the time limit are left out.

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
    done = [record for record in records if "seconds" in record]
    sized = [record for record in done if record["part"] == "sizes"]
    ended = [record for record in sized if record.get("status") != "time limit"]
    grown = [record for record in done if record["part"] == "growth" and record.get("status") != "time limit"]
    paths = []
    for name, y in FIGURES.items():
        paths += _save(name, _panels(ended if y == "seconds" else sized, y), folder, _against_vectors(y))
    return paths + _save("figure-3-rows", _panels(grown, "seconds"), folder, _against_rows)


def _panels(records: Sequence[Record], y: str) -> dict[str, list[Record]]:
    """Records by set, of the sets that have the figure y for some number of vectors."""
    panels: dict[str, list[Record]] = {}
    for record in records:
        if record.get(y) is not None:
            panels.setdefault(record["data"], []).append(record)
    return {data: found for data, found in panels.items() if any(record["max_basis"] is not None for record in found)}


def _against_vectors(y: str) -> Callable[[Sequence[Record], Any], Any]:
    return lambda found, ax: SizePathDisplay.from_results(found, y=y, ax=ax)


def _against_rows(found: Sequence[Record], ax: Any) -> None:
    plot_means(found, "n_train", "seconds", ax=ax)
    ax.set(xlabel="training rows", ylabel="seconds of training", yscale="log")


def _save(name: str, panels: dict[str, list[Record]], folder: Path, draw: Callable) -> list[Path]:
    """One figure with its panels side by side; none if there is nothing."""
    if not panels:
        return []
    from matplotlib.figure import Figure

    figure = Figure(figsize=(PANEL[0] * len(panels), PANEL[1]), layout="constrained")
    for ax, (data, found) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels.items()):
        draw(found, ax)
        paint(ax)
        ax.set_title(data)
    path = folder / f"subspace-{name}.png"
    figure.savefig(path, dpi=120)
    return [path]
