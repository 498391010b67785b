"""The base class of solvers by cutting planes: the checks of their parameters, and the run with each one's oracle."""

from __future__ import annotations

from typing import Any

from slimsvm.parts.checks import check_count, check_needs, no_free_intercept
from slimsvm.parts.cuts import CutsState
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, Plan
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Run
from slimsvm.parts.solver import Solver


class CuttingPlaneSolver(Solver):
    """The base class of the three solvers: checks, and the run with the oracle that each makes."""

    max_idle: int
    states: tuple[type, ...] = (CutsState,)

    def oracle(self, problem: Problem) -> Any:
        """Make the oracle with this solver's parameters."""
        raise TypeError(f"{type(self).__name__} must define oracle(problem)")

    def plan(self, problem: Problem) -> Plan:
        """Return the options of the run."""
        raise TypeError(f"{type(self).__name__} must define plan(problem)")

    def start(self, problem: Problem, state: CutsState | None = None) -> Run:
        """Check parameters and set the run up."""
        name = type(self).__name__
        check_needs(name, problem, no_free_intercept("a cut has no place for an unregularised intercept"))
        if state is not None and not isinstance(state, self.states):
            raise ValueError(f"{name} can only be warm-started from a cutting-plane fit, found {type(state).__name__}")
        parameters = self.get_params(deep=False)
        if parameters.get("tol_relative") is not None and not parameters["tol_relative"] > 0:
            raise ValueError(f"tol_relative must be a positive number or None, found {self.tol_relative!r}")
        if parameters.get("step", "full") not in ("line-search", "full"):
            raise ValueError(f"step must be 'line-search' or 'full', found {self.step!r}")
        if parameters.get("constant", "all") not in ("sample", "all"):
            raise ValueError(f"constant must be 'sample' or 'all', found {parameters['constant']!r}")
        if parameters.get("keep", "best") not in ("best", "last"):
            raise ValueError(f"keep must be 'best' or 'last', found {parameters['keep']!r}")
        if parameters.get("keep") == "last" and parameters["step"] == "line-search":
            raise ValueError("keep='last' goes with step='full', found step='line-search'")
        for count in ("max_idle", "sample_size", "patience", "warm_up", "max_basis", "vectors_per_cut", "max_draws"):
            optional = count in ("warm_up", "vectors_per_cut")
            if count in parameters and not (optional and parameters[count] is None):
                check_count(count, parameters[count])
        if not 0 <= parameters.get("overshoot", 0) <= 1:
            raise ValueError(f"overshoot must be between 0 and 1, found {self.overshoot!r}")
        return self.make_run(problem, state)

    def make_run(self, problem: Problem, state: CutsState | None) -> Run:
        """Make the run, after the parameters were checked."""
        return CuttingPlaneRun(problem, self.oracle(problem), self.plan(problem), state)
