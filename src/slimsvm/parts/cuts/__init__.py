"""Cutting planes: the dual of any loss raised by exact or sampled cuts of all examples or of each.

cut, working_set, simplex_qp   a cut, those at work, and the QP over them
oracles                        which cut is next: exact, uniform, violated (Algorithms 1, 2 and 3)
score_books, projected_scores, weight_scores  where scores come from while cuts are added
stabilise, bracket             the line search
cutting_plane_loop             the loop, with one slack for all examples
example_planes, example_slacks, plane_store  a slack for each example
explicit_weights               when a linear machine is kept as weights of its features
"""

from slimsvm.parts.cuts.cut import Cut, n_distinct_rows, weighted_sum
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
from slimsvm.parts.cuts.score_books import FullScores, SampledScores
from slimsvm.parts.cuts.stabilise import BestPoint
from slimsvm.parts.cuts.state import CutsState, Solution
from slimsvm.parts.cuts.weight_scores import WeightScores
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
