"""``loss="ramp"`` of `SVC`: which solver it takes and what it does not go with."""

from __future__ import annotations

from typing import Any

from slimsvm import editing, solvers, tasks
from slimsvm.estimators._shared.machine import KernelMachine
from slimsvm.parts.certificate import Certificate
from slimsvm.parts.problem import Problem
from slimsvm.parts.solver import Solver


class RampMachine(KernelMachine):
    """A kernel machine whose ``loss`` may be "ramp"."""

    def _task_of_ramp(self, n_classes: int) -> tasks.Binary:
        """The hinge, of which `Ramp` leaves rows out."""
        self._check_two_classes(n_classes)
        if self.cost_matrix is not None:
            raise ValueError("loss='ramp' is for costs that are alike, found a cost_matrix")
        return tasks.Binary()

    def _check_two_classes(self, n_classes: int) -> None:
        if n_classes != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"loss={self.loss!r} is for two classes, found {n_classes} classes"
            )

    def _resolve_solver(self, problem: Problem) -> Solver:
        """See `KernelMachine._resolve_solver`; the ramp loss has one of its own."""
        if self.loss != "ramp":
            return super()._resolve_solver(problem)
        is_exact = isinstance(self.solver, solvers.Exact) or self.solver in ("auto", "exact")
        if not is_exact or self.max_basis is not None or self._learns_metric:
            raise ValueError(
                "loss='ramp' is solved by solver='exact' (or 'auto', which takes it), without max_basis and "
                f"gamma='learn'; found solver={self.solver!r}, max_basis={self.max_basis!r}, gamma={self.gamma!r}"
            )
        return editing.Ramp(self.solver if isinstance(self.solver, solvers.Exact) else None)

    def certificate(self, X: Any, y: Any, sample_weight: Any = None, max_seconds: Any = None) -> Certificate:
        """See `KernelMachine.certificate`; the ramp loss is not convex and has none."""
        if self.loss == "ramp":
            raise ValueError("loss='ramp' is not convex: no bound on its objective is known; found loss='ramp'")
        return super().certificate(X, y, sample_weight, max_seconds)
