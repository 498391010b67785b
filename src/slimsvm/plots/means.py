"""A plot of means of runs: one quantity against another, a line for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slimsvm.plots.drawing import axes_for, colour_of_class, marker_of_class


def plot_means(
    results: Sequence[Mapping[str, Any]], x: str, y: str, *, by: str = "method", scale: float = 1.0, ax: Any = None
) -> Any:
    """Draw the means of one quantity against another, a line for each method, bars for standard deviations.

    Parameters
    ----------
    results : list of dict
        One per run. Runs with the same ``by`` and ``x`` are averaged; runs whose ``y`` is None are left out.
    x, y : str
        Keys of the quantities on the axes.
    by : str, default="method"
        Key that distinguishes the lines; results without it belong to one line without a name.
    scale : float, default=1.0
        Factor on y.
    ax : matplotlib.axes.Axes or None, default=None
        The axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        A result lacks ``x`` or ``y``, or there are none.
    ImportError
        matplotlib is not installed.
    """
    for number, result in enumerate(results):
        for key in (x, y):
            if key not in result:
                raise ValueError(f"result {number} has no {key!r}; it has {', '.join(map(repr, result)) or 'nothing'}")
    known = [result for result in results if result[y] is not None]
    if not known:
        raise ValueError(f"there are no results with a value of {y!r}")
    ax = axes_for(ax)
    for number, name in enumerate(dict.fromkeys(result.get(by) for result in known)):
        chosen = [result for result in known if result.get(by) == name]
        at = sorted({result[x] for result in chosen})
        values = [[scale * result[y] for result in chosen if result[x] == place] for place in at]
        means = [float(np.mean(runs)) for runs in values]
        deviations = [float(np.std(runs, ddof=1)) if len(runs) > 1 else 0.0 for runs in values]
        label = None if name is None else str(name)
        ax.errorbar(at, means, yerr=deviations, color=colour_of_class(number), marker=marker_of_class(number),
                    markersize=4, capsize=2, label=label)  # fmt: skip
    ax.set_xscale("log")
    if any(result.get(by) is not None for result in known):
        ax.legend(fontsize="small")
    return ax
