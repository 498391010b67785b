"""Where plots are drawn, and checks of what they are asked for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def axes_for(ax: Any) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'slimsvm[plots]'") from error
    return plt.subplots()[1]


def check_count(name: str, value: Any) -> None:
    """An error where it is no integer of 1 or more."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """An error where it is none of these."""
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}; found {value!r}")
