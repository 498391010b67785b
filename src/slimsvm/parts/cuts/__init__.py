"""Cutting-plane training: a cut is the mean over all examples, or over a sample, or belongs to one example.

working_set         a cut, the cuts the QP is over, and the QP
oracles             which cut is next: exact, uniform, violated (Algorithms 1, 2 and 3), and at which solution
score_books         where scores come from while cuts are added, and when a linear model is kept as weights
line_search         the best point, and the search from it to the QP's solution
cutting_plane_loop  the loop, with one slack for all examples, and the base class of its solvers
example_planes, plane_store  a slack for each example
"""

from slimsvm.parts.cuts.line_search import BestPoint
from slimsvm.parts.cuts.oracles import (
    CutsState,
    CutState,
    ExactOracle,
    Point,
    Proposal,
    Solution,
    UniformOracle,
    ViolatedOracle,
    exact_cut,
    reference_loss,
)
from slimsvm.parts.cuts.score_books import FullScores, ProjectedScores, SampledScores, WeightScores
from slimsvm.parts.cuts.working_set import Cut, WorkingSet, n_distinct_rows, weighted_sum

__all__ = [
    "BestPoint",
    "Cut",
    "CutState",
    "CutsState",
    "ExactOracle",
    "FullScores",
    "Point",
    "ProjectedScores",
    "Proposal",
    "SampledScores",
    "Solution",
    "UniformOracle",
    "ViolatedOracle",
    "WeightScores",
    "WorkingSet",
    "exact_cut",
    "n_distinct_rows",
    "reference_loss",
    "weighted_sum",
]
