"""Cutting-plane training: a cut is the mean over all examples, or over a sample, or belongs to one example.

cut, working_set, simplex_qp   a cut, the cuts the QP is over, and the QP
solution                       of a QP, and what a fit leaves to the next one
oracles                        which cut is next: exact, uniform, violated (Algorithms 1, 2 and 3)
score_books, projected_scores  where scores come from while cuts are added
line_search                    the best point, and the search from it to the QP's solution
cutting_plane_loop, cutting_plane_solver  the loop, with one slack for all examples
example_planes, plane_store    a slack for each example
explicit_weights               when a linear model is kept as weights of its features
"""

from slimsvm.parts.cuts.cut import Cut, n_distinct_rows, weighted_sum
from slimsvm.parts.cuts.line_search import BestPoint
from slimsvm.parts.cuts.oracles import (
    CutState,
    ExactOracle,
    Point,
    Proposal,
    UniformOracle,
    ViolatedOracle,
    exact_cut,
    reference_loss,
)
from slimsvm.parts.cuts.projected_scores import ProjectedScores
from slimsvm.parts.cuts.score_books import FullScores, SampledScores, WeightScores
from slimsvm.parts.cuts.solution import CutsState, Solution
from slimsvm.parts.cuts.working_set import WorkingSet

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
