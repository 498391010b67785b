"""Solvers: one file per published algorithm."""

from slimsvm.solvers.base import Fit, Problem, Solver, Status
from slimsvm.solvers.bcfw import BCFW
from slimsvm.solvers.bsca import BSCA
from slimsvm.solvers.bsgd import BSGD
from slimsvm.solvers.bvm import BVM
from slimsvm.solvers.certificate import Certificate, certify
from slimsvm.solvers.compact import Compact
from slimsvm.solvers.cpsp import CPSP
from slimsvm.solvers.cuts import ExactCuts, UniformCuts, ViolatedCuts
from slimsvm.solvers.cvm import CVM
from slimsvm.solvers.exact import Exact
from slimsvm.solvers.lasvm import LASVM
from slimsvm.solvers.low_rank import LowRank
from slimsvm.solvers.refine import Refine

SOLVERS = {
    "exact-cuts": ExactCuts,
    "uniform-cuts": UniformCuts,
    "violated-cuts": ViolatedCuts,
    "cpsp": CPSP,
    "refine": Refine,
    "exact": Exact,
    "low-rank": LowRank,
    "bcfw": BCFW,
    "bsca": BSCA,
    "bsgd": BSGD,
    "lasvm": LASVM,
    "cvm": CVM,
    "bvm": BVM,
}

__all__ = [
    "BCFW",
    "BSCA",
    "BSGD",
    "BVM",
    "CPSP",
    "CVM",
    "LASVM",
    "SOLVERS",
    "Certificate",
    "Compact",
    "Exact",
    "ExactCuts",
    "Fit",
    "LowRank",
    "Problem",
    "Refine",
    "Solver",
    "Status",
    "UniformCuts",
    "ViolatedCuts",
    "certify",
]
