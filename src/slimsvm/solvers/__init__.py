"""Solvers: one file per published algorithm, made of what is in `parts`."""

from typing import TYPE_CHECKING

from slimsvm.lazy import LazyClasses, lazy_names

if TYPE_CHECKING:
    from slimsvm.solvers.bsca import BSCA as BSCA
    from slimsvm.solvers.bsgd import BSGD as BSGD
    from slimsvm.solvers.bvm import BVM as BVM
    from slimsvm.solvers.cpsp import CPSP as CPSP
    from slimsvm.solvers.cvm import CVM as CVM
    from slimsvm.solvers.exact import Exact as Exact
    from slimsvm.solvers.frank_wolfe import BCFW as BCFW
    from slimsvm.solvers.lasvm import LASVM as LASVM
    from slimsvm.solvers.learned_vectors import Refine as Refine
    from slimsvm.solvers.low_rank import LowRank as LowRank
    from slimsvm.solvers.sampled_cuts import ExactCuts as ExactCuts
    from slimsvm.solvers.sampled_cuts import UniformCuts as UniformCuts
    from slimsvm.solvers.sampled_cuts import ViolatedCuts as ViolatedCuts

# The file and the class of each name that ``solver`` can be.
_FILES = {
    "exact-cuts": "sampled_cuts:ExactCuts",
    "uniform-cuts": "sampled_cuts:UniformCuts",
    "violated-cuts": "sampled_cuts:ViolatedCuts",
    "cpsp": "cpsp:CPSP",
    "refine": "learned_vectors:Refine",
    "exact": "exact:Exact",
    "low-rank": "low_rank:LowRank",
    "bcfw": "frank_wolfe:BCFW",
    "bsca": "bsca:BSCA",
    "bsgd": "bsgd:BSGD",
    "lasvm": "lasvm:LASVM",
    "cvm": "cvm:CVM",
    "bvm": "bvm:BVM",
}
SOLVERS = LazyClasses(__name__, _FILES)
_HOMES = {name: file for file, name in (place.split(":") for place in _FILES.values())}
__all__ = ["SOLVERS", *_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
