"""Helpers of all plots: colours, new axes that cut nothing off, names."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

Array = np.ndarray

# Parameters that the docstrings of all displays share.
DRAWING = """
Parameters
----------
ax : matplotlib.axes.Axes or None, default=None
    The axes to draw on; None makes a new figure, laid out so that nothing is cut off.

Raises
------
ImportError
    matplotlib is not installed.
"""

# Petroff (2021), "Accessible color sequences for data visualization": ten colours that colour-blind people can tell
# apart. Every class has one, and a marker, in every plot.
PALETTE = (
    "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd",
)  # fmt: skip
PAPER = 0.45  # how much of a class's colour its region has
MARKERS = "o", "s", "^", "D", "v", "P", "X"
LABEL_WIDTH, LABEL_LINES = 36, 2  # characters of a line, and lines, of a feature's name on an axis
IN_A_COLUMN = 12  # entries of a legend that stand above each other
MOST_NAMED = 36  # entries of a legend: more would leave no room for what is drawn


def colour_of_class(number: int) -> str:
    """Return the colour of a class; from the eleventh class on, colours come again with other markers."""
    return PALETTE[number % len(PALETTE)]


def paper_of_class(number: int) -> tuple[float, ...]:
    """Return the light colour of a class's region, below its rows."""
    from matplotlib.colors import to_rgb

    return tuple(1.0 - PAPER * (1.0 - part) for part in to_rgb(colour_of_class(number)))


def marker_of_class(number: int) -> str:
    """Return the marker of a class."""
    return MARKERS[number % len(MARKERS)]


def label(name: Any) -> str:
    """Return a feature's name in short lines, cut if it is longer than these."""
    return textwrap.fill(
        str(name), LABEL_WIDTH, max_lines=LABEL_LINES, placeholder=" …", break_long_words=True
    ).replace("$", r"\$")


def entry(name: Any) -> str:
    """Return a name for a legend, where matplotlib leaves out what begins with an underscore."""
    text = label(name)
    return f" {text}" if text.startswith("_") else text


def axes_for(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """Return the given axes, or the axes of a new figure."""
    return figure_of(size).subplots() if ax is None else ax


def figure_of(size: tuple[float, float] | None) -> Any:
    """Make a figure of this size in inches, or of matplotlib's, laid out so that nothing is cut off."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'slimsvm[plots]'") from error
    return plt.figure(figsize=size, layout="constrained")


def add_legend(ax: Any, is_new: bool, handles: Any = None, title: str | None = None) -> None:
    """Add a legend on the right of new axes, where it covers nothing, and within others; none without labels, or with
    more of them than there is room for.
    """
    handles = ax.get_legend_handles_labels()[0] if handles is None else handles
    if not 0 < len(handles) <= MOST_NAMED:
        return
    place: dict[str, Any] = {"loc": "best"}
    if is_new:
        columns = -(-len(handles) // IN_A_COLUMN)
        place = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0), "borderaxespad": 0.0, "ncols": columns}
    ax.legend(handles=handles, title=title, fontsize="small", **place)


def last_step(estimator: Any) -> Any:
    """Return the estimator at the end of a pipeline, or the given one."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def names_of_features(names: Iterable[Any] | None, n_features: int) -> list[str]:
    """Return the names of the features, or their numbers."""
    found = [f"feature {f}" for f in range(n_features)] if names is None else [str(name) for name in names]
    if len(found) != n_features:
        raise ValueError(f"feature_names must be {n_features} names, found {len(found)}")
    return found
