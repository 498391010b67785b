"""Cutting planes: the working set with its QP, the books that hold scores, the oracles that choose cuts."""

from slimsvm.cuts.cut import Cut, n_distinct_rows, weighted_sum
from slimsvm.cuts.oracles import (
    CutState,
    ExactOracle,
    Point,
    Proposal,
    UniformOracle,
    ViolatedOracle,
    exact_cut,
    reference_loss,
)
from slimsvm.cuts.projected_scores import ProjectedScores
from slimsvm.cuts.scorebooks import FullScores, SampledScores
from slimsvm.cuts.stabilise import BestPoint
from slimsvm.cuts.state import CutsState, Solution
from slimsvm.cuts.weight_scores import WeightScores
from slimsvm.cuts.working_set import WorkingSet

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
