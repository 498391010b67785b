"""What a solver at work looks like, and what it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Any

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Kept, Problem
from slimsvm.parts.rounding import DualPoint

Array = np.ndarray


class Status(StrEnum):
    """Why a fit ended."""

    CONVERGED = "converged"
    GAP = "gap above tolerance"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by a callback"

    @property
    def is_cut(self) -> bool:
        """Whether a fit ended somewhere within its work, and is to return at once."""
        return self in (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass
class Fit:
    """What a solver returns.

    Parameters
    ----------
    model : KernelExpansion
    status : Status
    objective : float
        ½‖w‖² + C Σ ω_e ℓ_e of the model over all rows (sums in float64); NaN if the solver was told not to compute it.
    lower_bound : float or None
        A bound no model of this problem can be under, where the solver has one.
    history : list of dict
        One record per iteration or epoch.
    counters : dict
        Kernel evaluations and the like.
    state : object
        Plain data for a warm start.
    basis_rows : int64 ndarray of shape (n_basis,) or None
        Training rows the basis vectors are; None where they are not rows of the data.
    solved : Problem or None
        The problem that the model is of, where the solver had a choice; None: the one it was given.
    trials : list of dict
        What was tried on rows held out.
    is_too_coarse : bool
        Whether float32 kernel values were too coarse for the problem.
    kept : Kept or None
        What the exact solver knows of the rows by then: their scores, and kernel values of few.
    """

    model: KernelExpansion
    status: Status
    objective: float
    lower_bound: float | None
    history: list[dict[str, Any]]
    counters: dict[str, Any]
    state: Any = None
    basis_rows: Array | None = None
    solved: Problem | None = None
    trials: list[dict[str, Any]] = field(default_factory=list)
    is_too_coarse: bool = False
    kept: Kept | None = None

    @property
    def n_iter(self) -> int:
        """Iterations (or epochs) done."""
        return len(self.history)


@dataclass(frozen=True)
class Best:
    """What had the lowest objective so far. Another takes its place as a whole, so that an interrupt cannot tear it."""

    objective: float = np.inf
    found: Any = None

    def or_lower(self, objective: float, found: Any, or_equal: bool = False) -> Best:
        """What was found, if its objective is lower (or, where asked for, as low); the best so far otherwise."""
        is_lower = objective <= self.objective if or_equal else objective < self.objective
        return Best(objective, found) if is_lower else self


class Run(ABC):
    """One solver at work on one problem.

    Attributes
    ----------
    problem : Problem
    kernel_rows : KernelRows
        Counts the kernel evaluations of the fit.
    converged : bool
        Whether the last step reached the tolerance.
    spent : str or None
        The run's own limit that it has come to, where it has one.
    doing : str or None
        What a progress bar says, in words for users; None: the solver's name.
    has_models : bool
        Whether `finish` may be asked after every step, and the run goes on.
    can_go_on : bool
        Whether `so_far` can be asked.
    has_said_of_gap : bool
        Whether the run has warned of a gap wider than its tolerance.
    between : callable or None
        Is called within long steps, between parts of them.
    """

    problem: Problem
    kernel_rows: KernelRows
    converged: bool = False
    spent: str | None = None
    doing: str | None = None
    has_models: bool = False
    can_go_on: bool = False
    has_said_of_gap: bool = False
    between: Callable[[], Any] | None = None

    @abstractmethod
    def step(self) -> dict[str, Any]:
        """Do one iteration; return its record and set ``converged``.

        An interrupt inside leaves `finish` usable; so does the end of time (`core.clock`), which comes between calls
        into the core and parts of passes over rows.
        """

    @abstractmethod
    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best model so far and what is known of it."""

    @property
    def max_records(self) -> int | None:
        """The most iterations; None: no limit. A run of parts that each have ``max_iter`` has another limit."""
        return self.problem.max_iter

    @property
    def share_done(self) -> float:
        """Share of the planned work that is done."""
        return 0.0

    def distance(self, record: dict[str, Any]) -> float | None:
        """How many times the tolerance is left after an iteration; None where that is not known."""
        return None

    def so_far(self) -> Fit:
        """Return a quick fit with an objective of NaN, whose state goes on to the same bits (`parts.resuming`)."""
        raise TypeError(f"{type(self).__name__} cannot be asked for its state")

    def allowed(self, objective: float) -> float:
        """The widest gap with which the run has converged, at an objective."""
        return inf

    def dual_point(self) -> DualPoint | None:
        """The dual point that the bound belongs to, once `finish` was asked (`parts.rounding`)."""
        return None

    def sure_bound(self) -> float | None:
        """What is sure of the bound, of a run with a bound and without one dual point."""
        return None
