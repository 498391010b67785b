"""The base class of all runs, and the fit that a solver returns."""

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
    """The reason why a fit ended."""

    CONVERGED = "converged"
    GAP = "gap above tolerance"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by a callback"

    @property
    def is_cut(self) -> bool:
        """Return whether a limit or an interrupt ended the fit amid its work, so that it must return at once."""
        return self in (Status.INTERRUPTED, Status.TIME_LIMIT)


@dataclass
class Fit:
    """The result of a solver.

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
        Results on held-out rows.
    is_too_coarse : bool
        Whether float32 kernel values were too coarse for the problem.
    kept : Kept or None
        Values that the exact solver leaves for later fits of these rows: scores, and kernel values of few rows.
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
        """Return the number of iterations (or epochs) done."""
        return len(self.history)


@dataclass(frozen=True)
class Best:
    """The result with the lowest objective so far. It is replaced as a whole, so that an interrupt cannot tear it."""

    objective: float = np.inf
    found: Any = None

    def or_lower(self, objective: float, found: Any, or_equal: bool = False) -> Best:
        """Return the new result if its objective is lower (or, on request, as low), otherwise the best so far."""
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
        The text of the progress bar, in words for users; None: the solver's name.
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
        """Return the largest number of iterations, None for no limit; a run may limit its parts instead."""
        return self.problem.max_iter

    @property
    def share_done(self) -> float:
        """Return the share of the planned work that is done."""
        return 0.0

    def distance(self, record: dict[str, Any]) -> float | None:
        """Return the gap after an iteration, in units of the tolerance; None if it is not known."""
        return None

    def so_far(self) -> Fit:
        """Return a quick fit with an objective of NaN, whose state goes on to the same bits (`parts.resuming`)."""
        raise TypeError(f"{type(self).__name__} cannot be asked for its state")

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which the run has converged, at an objective."""
        return inf

    def dual_point(self) -> DualPoint | None:
        """Return the dual point that the bound belongs to, after `finish` was called (`parts.rounding`)."""
        return None

    def sure_bound(self) -> float | None:
        """Return the safe bound of a run that has a bound but no single dual point."""
        return None
