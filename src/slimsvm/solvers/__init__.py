"""Solvers: one file per published algorithm."""

from slimsvm.solvers.base import Fit, Problem, Solver, Status
from slimsvm.solvers.cuts import ExactCuts, UniformCuts, ViolatedCuts

SOLVERS = {"exact-cuts": ExactCuts, "uniform-cuts": UniformCuts, "violated-cuts": ViolatedCuts}

__all__ = ["SOLVERS", "ExactCuts", "Fit", "Problem", "Solver", "Status", "UniformCuts", "ViolatedCuts"]
