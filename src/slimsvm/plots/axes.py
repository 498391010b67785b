"""Where plots are drawn."""

from __future__ import annotations

from typing import Any


def axes_for(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'slimsvm[plots]'") from error
    return plt.subplots()[1]
