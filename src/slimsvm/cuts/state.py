"""What is kept of a fit by cuts: w at one moment, and what a later fit can go on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from slimsvm.cuts.cut import Cut
from slimsvm.cuts.oracles import Point
from slimsvm.tasks import Examples, Task

Array = np.ndarray


@dataclass(frozen=True)
class Solution:
    """w = Σ α_j g_j as it stood at one moment; nobody writes to it, so that an interrupt cannot tear it.

    Parameters
    ----------
    cuts : tuple of Cut
    alpha : float64 ndarray of shape (t,)
    norm_squared : float
        ‖w‖².
    objective : float or None
        None where it is not known.
    point : Point
    """

    cuts: tuple[Cut, ...]
    alpha: Array
    norm_squared: float
    objective: Any
    point: Point


@dataclass(frozen=True)
class CutsState:
    """The active cuts of a fit, enough to go on from: cuts hold for any kernel, C and features of the same examples.

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
        """Refuse to go on with another loss: its cuts are others."""
        if self.examples.n_rows != examples.n_rows:
            raise ValueError(
                f"warm start: the earlier fit had {self.examples.n_rows} rows, this one has {examples.n_rows}; "
                "a warm start needs the same rows"
            )
        if not (same_fields(self.examples, examples) and same_fields(self.task, task)):
            raise ValueError(
                "warm start: labels, weights or the loss are not those of the earlier fit, whose cuts therefore do not "
                "hold; only the kernel, C and X may change"
            )


def same_fields(a: Any, b: Any) -> bool:
    """Whether two objects of one class have equal attributes, arrays included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same_fields(a[key], b[key]) for key in a)
    if not hasattr(a, "__dict__"):
        return np.array_equal(a, b)
    names = [field.name for field in fields(a)] if is_dataclass(a) else vars(a)
    return all(same_fields(getattr(a, name), getattr(b, name, None)) for name in names)
