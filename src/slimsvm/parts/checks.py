"""Checks of parameters that several solvers have, and of the gaps they end with."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.parts.problem import Problem
from slimsvm.parts.reports import GAP_ROUNDING
from slimsvm.rows import is_sparse

# A relative tolerance is a share of the objective, or of GAINS times the gain over the zero model if that is less.
# Otherwise the zero model would be within the tolerance if little can be gained (rare classes under a loss over all
# rows). The share of the objective is never below NO_LESS.
GAINS, NO_LESS = 10.0, 1e-5


def allowed_gap(share: float, objective: float, at_zero: float) -> float:
    """Return the gap that a relative tolerance allows at an objective; the zero model has the objective ``at_zero``.

    >>> allowed_gap(0.01, 100.0, 1000.0), allowed_gap(0.01, 6000.0, 6010.0), allowed_gap(1e-10, 6000.0, 6000.0)
    (1.0, 1.0, 6e-07)
    """
    most, gain = abs(objective), max(0.0, at_zero - objective)
    return max(share * min(most, GAINS * gain), min(share, NO_LESS) * most)


def check_count(name: str, value: Any) -> None:
    """Require an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")


def check_number(name: str, value: Any, accepted: str, most: float = np.inf, positive: bool = False) -> None:
    """Require a finite number from 0, or above it, to ``most``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_) and np.isfinite(float(value))
    if not is_number or not 0 <= value <= most or (positive and value == 0):
        raise ValueError(f"{name} must be {accepted}, found {value!r}")


def check_vectors(name: str, vectors: Any) -> None:
    """Require finite values in vectors, dense or CSR, that a parameter holds."""
    if not np.isfinite(vectors.data if is_sparse(vectors) else vectors).all():
        raise ValueError(f"{name} must hold finite numbers, found NaN or infinity")


@dataclass(frozen=True)
class Need:
    """A requirement of a solver, and the message for problems that do not meet it.

    Parameters
    ----------
    is_met : callable (problem) -> bool
    reason : str
        The message, with fields ``{solver}``, ``{problem}`` and ``{task}``, the name of the task's class.
    """

    is_met: Callable[[Problem], bool]
    reason: str


TWO_CLASSES = Need(
    lambda problem: problem.task.has_two_classes,
    "{solver} solves two-class problems, found {task}; for more classes wrap the estimator in "
    "sklearn.multiclass.OneVsOneClassifier",
)


RANDOM_ACCESS = Need(
    lambda problem: problem.rows.has_random_access,
    "{solver} needs all rows in memory, found Blocks, which are read one after another: give max_basis a number, such "
    "as 100 (with solver='auto', 'refine' or 'low-rank', or 'bsca' for one class), take solver='violated-cuts', or "
    "load the rows into memory",
)


def no_free_intercept(reason: str) -> Need:
    """Return whether the intercept is regularised or absent."""
    return Need(
        lambda problem: problem.intercept in ("regularized", "none"),
        "{solver} trains with intercept='regularized' or 'none', found {problem.intercept!r}: " + reason,
    )


def check_needs(solver: str, problem: Problem, *needs: Need) -> None:
    """Refuse a problem that lacks something, with the reason."""
    for need in needs:
        if not need.is_met(problem):
            raise ValueError(need.reason.format(solver=solver, problem=problem, task=type(problem.task).__name__))


def check_smoothable(problem: Problem) -> None:
    """Require a smoothed loss over one-row examples, and a single output for a free intercept (Newton's method)."""
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


def warn_of_a_gap(
    whose: str, objective: float, bound: float, share: float, dtype: Any, level: int, advice: str | None = None
) -> None:
    """Warn where rounding, or a step without progress, ended a fit before the gap was ``share`` of the objective."""
    gap, dtype = objective - bound, np.dtype(dtype)
    if gap > max(share, GAP_ROUNDING[dtype]) * abs(objective):
        mended_by = "precision='float64' or a lower C" if dtype == np.float32 else "a lower C"
        advice = f"rounding allows no less; {mended_by} may" if advice is None else advice
        warnings.warn(
            f"{whose} ended with a gap of {gap:.2g} at an objective of {objective:.6g}: {advice}",
            ConvergenceWarning,
            stacklevel=level + 1,
        )
