"""Solvers: one file per published algorithm."""

from typing import TYPE_CHECKING

from slimsvm.lazy import LazyClasses, lazy_names

if TYPE_CHECKING:
    from slimsvm.solvers.balls.bvm import BVM
    from slimsvm.solvers.balls.cvm import CVM
    from slimsvm.solvers.base import Fit, Problem, Solver, Status
    from slimsvm.solvers.budgeted.bsca import BSCA
    from slimsvm.solvers.budgeted.bsgd import BSGD
    from slimsvm.solvers.certificate import Certificate, certify
    from slimsvm.solvers.cutting.cut_solvers import ExactCuts, UniformCuts, ViolatedCuts
    from slimsvm.solvers.cutting.explicit_weights import prefers_weights
    from slimsvm.solvers.cutting.frank_wolfe import BCFW
    from slimsvm.solvers.decomposition.exact import Exact
    from slimsvm.solvers.in_span.low_rank import LowRank
    from slimsvm.solvers.learned.compact import Compact
    from slimsvm.solvers.learned.cpsp import CPSP
    from slimsvm.solvers.learned.machines import exact_solver
    from slimsvm.solvers.learned.refine import Refine
    from slimsvm.solvers.online.lasvm import LASVM


SOLVERS = LazyClasses(
    __name__,
    {
        "exact-cuts": "cutting.cut_solvers:ExactCuts",
        "uniform-cuts": "cutting.cut_solvers:UniformCuts",
        "violated-cuts": "cutting.cut_solvers:ViolatedCuts",
        "cpsp": "learned.cpsp:CPSP",
        "refine": "learned.refine:Refine",
        "exact": "decomposition.exact:Exact",
        "low-rank": "in_span.low_rank:LowRank",
        "bcfw": "cutting.frank_wolfe:BCFW",
        "bsca": "budgeted.bsca:BSCA",
        "bsgd": "budgeted.bsgd:BSGD",
        "lasvm": "online.lasvm:LASVM",
        "cvm": "balls.cvm:CVM",
        "bvm": "balls.bvm:BVM",
    },
)

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
    "exact_solver",
    "prefers_weights",
]

_HOMES = {
    "BCFW": "cutting.frank_wolfe",
    "BSCA": "budgeted.bsca",
    "BSGD": "budgeted.bsgd",
    "BVM": "balls.bvm",
    "CPSP": "learned.cpsp",
    "CVM": "balls.cvm",
    "Certificate": "certificate",
    "Compact": "learned.compact",
    "Exact": "decomposition.exact",
    "ExactCuts": "cutting.cut_solvers",
    "Fit": "base",
    "LASVM": "online.lasvm",
    "LowRank": "in_span.low_rank",
    "Problem": "base",
    "Refine": "learned.refine",
    "Solver": "base",
    "Status": "base",
    "UniformCuts": "cutting.cut_solvers",
    "ViolatedCuts": "cutting.cut_solvers",
    "certify": "certificate",
    "exact_solver": "learned.machines",
    "prefers_weights": "cutting.explicit_weights",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
