r"""Exact cuts with a slack for each example.

Tsochantaridis, Joachims, Hofmann, Altun, "Large Margin Methods for Structured and Interdependent Output Variables",
JMLR 2005, Algorithm 1 in the form that takes a cut of every example at one w (the n-slack algorithm of Joachims,
Finley, Yu, "Cutting-Plane Training of Structural SVMs", Machine Learning 2009, Algorithm 1).

Problem (ω_e: weight of example e):

    min_{w, ξ ≥ 0}  ½‖w‖² + C Σ_e ω_e ξ_e     s.t.  c − ⟨w, g⟩ ≤ ξ_e  for every cut (c, g) of example e

    repeat
        exact pass: the loss-augmented argmax of every example at w is its cut; with their losses, P(w)
        stop when the least P(w) so far − D is within the tolerances
        raise the dual over all cuts there are by passes from example to example; its value is D; w = Σ_e Σ_k α_k g_k
        drop cuts that have been inactive for `max_idle` iterations

The mean over all examples, the one cut of `parts.cuts.cutting_plane_loop`, is one combination of these out of very
many: n slacks take tens of exact passes where one slack takes hundreds. At w = 0 the cuts of all examples are alike and
teach little; so the first pass is followed by one of block-coordinate Frank-Wolfe, whose cuts are made as w changes.

Parts: the planes, steps and books of `parts.cuts.example_planes`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.parts.cuts.example_planes import BlockSteps, PlanesRun, PlanesState
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Best

Array = np.ndarray

# Examples whose argmax is kept at a time.
EXAMPLES_AT_ONCE = 1024


class ExampleCutsRun(PlanesRun):
    """The loop's state on one problem.

    Parameters
    ----------
    problem : Problem
    solver : ExactCuts
    state : PlanesState or None
        The cuts of an earlier fit, with their weights.
    """

    def __init__(self, problem: Problem, solver: Any, state: PlanesState | None):
        tol_relative = solver.tol_relative
        if tol_relative is not None:
            tol, tol_relative = problem.tolerances(tol_relative)
            problem = replace(problem, tol=tol)
        super().__init__(problem, BlockSteps(tol_relative, weights=solver.weights), state)
        self.max_idle = solver.max_idle
        self.is_new = state is None
        self.best = Best()  # of parameters

    def step(self) -> dict[str, Any]:
        """One exact pass, and the dual over the cuts there are."""
        self.in_step = True
        norm = self.book.norm_squared
        loss = self.exact_pass()
        objective = 0.5 * norm + self.problem.C * loss
        self.best = self.best.or_lower(objective, tuple(part.copy() for part in self.book.parameters()))
        self.left = max(self.best.objective - self.lower_bound, 0.0)
        self.converged = self.left <= self.allowed(self.best.objective)
        if not self.converged:
            self.improve_dual()
            self.converged = self.left <= self.allowed(self.best.objective)
        self.in_step = False
        return {
            "objective": self.best.objective,
            "lower_bound": self.lower_bound,
            "gap": self.best.objective - self.lower_bound,
            "loss": loss / self.examples.total_weight,
            "training_error": None,
            "n_planes": int(self.planes.n[0]),
            "n_basis": self.book.n_basis,
        }

    def exact_pass(self) -> float:
        """The cut of every example at w; returns Σ ω_e ℓ_e."""
        n, total = self.examples.n_examples, 0.0
        for lo in range(0, n, EXAMPLES_AT_ONCE):
            total += self.ask(np.arange(lo, min(n, lo + EXAMPLES_AT_ONCE)))
        return total

    def improve_dual(self) -> None:
        """A few passes over the cuts there are."""
        if self.is_new:
            self.is_new = False
            self.oracle_pass()
        for _ in range(self.solver.cached_passes):
            self.each_batch()
        self.lower_bound = max(self.lower_bound, self.planes.constants - 0.5 * self.book.norm_squared)
        self.left = max(self.best.objective - self.lower_bound, 0.0)
        self.planes.age(self.max_idle)

    def settle(self) -> float:
        """Go to the w of the least objective that was seen."""
        if self.best.found is None:
            return super().settle()
        self.book.set(self.best.found)
        return self.best.objective
