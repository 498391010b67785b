"""Kernel machines that stay small."""

from typing import TYPE_CHECKING

from slimsvm.lazy import homes_of, lazy_names

if TYPE_CHECKING:
    from slimsvm import datasets as datasets
    from slimsvm import kernels as kernels
    from slimsvm import onnx as onnx
    from slimsvm.deploy.predictors import Predictor as Predictor
    from slimsvm.deploy.predictors import load_predictor as load_predictor
    from slimsvm.estimators import SVR as SVR
    from slimsvm.estimators import CrossTrainedSVC as CrossTrainedSVC
    from slimsvm.estimators import NuSVC as NuSVC
    from slimsvm.estimators import NuSVR as NuSVR
    from slimsvm.estimators import OneClassSVM as OneClassSVM
    from slimsvm.estimators import OrdinalSVC as OrdinalSVC
    from slimsvm.estimators import RankSVM as RankSVM
    from slimsvm.estimators import SequenceSVM as SequenceSVM
    from slimsvm.estimators import StructuredSVM as StructuredSVM
    from slimsvm.estimators._shared.around_fit import Checkpoint as Checkpoint
    from slimsvm.estimators.compression import compress as compress
    from slimsvm.estimators.editors import Condense as Condense
    from slimsvm.estimators.editors import CrossTraining as CrossTraining
    from slimsvm.estimators.editors import EditedNN as EditedNN
    from slimsvm.estimators.editors import MultiEdit as MultiEdit
    from slimsvm.estimators.files import explain as explain
    from slimsvm.estimators.files import export as export
    from slimsvm.estimators.files import load as load
    from slimsvm.estimators.files import save as save
    from slimsvm.estimators.grid_search import GridSearchSVC as GridSearchSVC
    from slimsvm.estimators.grid_search import GridSearchSVR as GridSearchSVR
    from slimsvm.estimators.grid_search import path as path
    from slimsvm.estimators.svc import SVC as SVC
    from slimsvm.estimators.tables import TableClassifier as TableClassifier
    from slimsvm.estimators.tables import TableRegressor as TableRegressor
    from slimsvm.estimators.transformers import LearnedAxes as LearnedAxes
    from slimsvm.estimators.transformers import NormalRanks as NormalRanks
    from slimsvm.model import KernelExpansion as KernelExpansion
    from slimsvm.modelfile import ModelFileError as ModelFileError
    from slimsvm.rows import Blocks as Blocks
    from slimsvm.shapley import Explanation as Explanation
    from slimsvm.size_search.compact import Compact as Compact
    from slimsvm.solvers import BCFW as BCFW
    from slimsvm.solvers import BSCA as BSCA
    from slimsvm.solvers import BSGD as BSGD
    from slimsvm.solvers import BVM as BVM
    from slimsvm.solvers import CPSP as CPSP
    from slimsvm.solvers import CVM as CVM
    from slimsvm.solvers import LASVM as LASVM
    from slimsvm.solvers import Exact as Exact
    from slimsvm.solvers import ExactCuts as ExactCuts
    from slimsvm.solvers import LowRank as LowRank
    from slimsvm.solvers import Refine as Refine
    from slimsvm.solvers import UniformCuts as UniformCuts
    from slimsvm.solvers import ViolatedCuts as ViolatedCuts
    from slimsvm.tasks import check_task as check_task

__version__ = "0.2.0"


# Where each name lives. It is imported when first asked for: `slimsvm --help` need not wait for scikit-learn.
_HOMES = homes_of(
    {
        "": ["datasets", "kernels", "onnx"],
        "deploy.predictors": ["Predictor", "load_predictor"],
        "estimators": [
            "SVR",
            "CrossTrainedSVC",
            "NuSVC",
            "NuSVR",
            "OneClassSVM",
            "OrdinalSVC",
            "RankSVM",
            "SequenceSVM",
            "StructuredSVM",
        ],
        "estimators._shared.around_fit": ["Checkpoint"],
        "estimators.compression": ["compress"],
        "estimators.editors": ["Condense", "CrossTraining", "EditedNN", "MultiEdit"],
        "estimators.files": ["explain", "export", "load", "save"],
        "estimators.grid_search": ["GridSearchSVC", "GridSearchSVR", "path"],
        "estimators.svc": ["SVC"],
        "estimators.tables": ["TableClassifier", "TableRegressor"],
        "estimators.transformers": ["LearnedAxes", "NormalRanks"],
        "model": ["KernelExpansion"],
        "modelfile": ["ModelFileError"],
        "rows": ["Blocks"],
        "shapley": ["Explanation"],
        "size_search.compact": ["Compact"],
        "solvers": [
            "BCFW",
            "BSCA",
            "BSGD",
            "BVM",
            "CPSP",
            "CVM",
            "LASVM",
            "Exact",
            "ExactCuts",
            "LowRank",
            "Refine",
            "UniformCuts",
            "ViolatedCuts",
        ],
        "tasks": ["check_task"],
    }
)
# Constants, classes, functions.
__all__ = sorted(_HOMES, key=lambda name: (not name.isupper(), name.islower(), name))

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
