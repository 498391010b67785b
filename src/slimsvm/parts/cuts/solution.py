"""The solution of a fit by cuts: w at one moment, and the state for a warm start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.parts.cuts.cut import Cut
from slimsvm.parts.cuts.oracles import Point
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray


@dataclass(frozen=True)
class Solution:
    """The point w = Σ α_j g_j at one moment. Nobody changes it, so that an interrupt cannot leave it half written.

    Parameters
    ----------
    cuts : tuple of Cut
    alpha : float64 ndarray of shape (t,)
    norm_squared : float
        ‖w‖².
    objective : float or None
        None if it is not known.
    point : Point
    """

    cuts: tuple[Cut, ...]
    alpha: Array
    norm_squared: float
    objective: Any
    point: Point


@dataclass(frozen=True)
class CutsState:
    """The active cuts of a fit, for a warm start: they hold for any kernel, C and features of the same examples.

    Parameters
    ----------
    cuts : tuple of Cut
    task, examples
        The loss they are bounds of.
    exact : bool
        Whether they are: sampled cuts bound nothing.
    """

    cuts: tuple[Cut, ...]
    task: Task
    examples: Examples
    exact: bool

    def check(self, task: Task, examples: Examples) -> None:
        """Refuse a warm start with another loss: its cuts are others."""
        consequence = ", whose cuts therefore do not hold; only the kernel, C and X may change"
        check_same_loss(self, task, examples, consequence)
