"""Checks of parameters that several solvers have."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from slimsvm.solvers.base import Problem


def check_count(name: str, value: Any) -> None:
    """A parameter that counts things must be an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")


def check_smoothable(problem: Problem) -> None:
    """Newton's method needs a smoothed loss over one-row examples, and for a free intercept a single output."""
    task = problem.task
    if not task.is_smoothable or problem.examples.offsets is not None:
        raise ValueError(
            f"the convex problem in the coefficients needs a task with a smoothed loss (binary, multiclass, "
            f"regression), found {type(task).__name__}"
        )
    if problem.intercept not in ("regularized", "free", "none"):
        raise ValueError(f"intercept must be 'regularized', 'free' or 'none', found {problem.intercept!r}")
    if problem.intercept == "free" and task.n_outputs > 1:
        raise ValueError(
            f"intercept='free' is for one score column (two classes or regression), found {task.n_outputs}: "
            "use 'regularized' or 'none'"
        )
