"""Kernel machines that stay small."""

from typing import TYPE_CHECKING

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm import datasets, kernels, onnx
    from slimsvm.deploy.predictors import Predictor, load_predictor
    from slimsvm.estimators import (
        SVR,
        CrossTrainedSVC,
        OneClassSVM,
        OrdinalSVC,
        RankSVM,
        SequenceSVM,
        StructuredSVM,
    )
    from slimsvm.estimators._shared.around_fit import Checkpoint
    from slimsvm.estimators.compression import compress
    from slimsvm.estimators.editors import Condense, CrossTraining, EditedNN, MultiEdit
    from slimsvm.estimators.files import explain, export, load, save
    from slimsvm.estimators.grid_search import GridSearchSVC, GridSearchSVR, path
    from slimsvm.estimators.learned_axes import LearnedAxes
    from slimsvm.estimators.normal_ranks import NormalRanks
    from slimsvm.estimators.svc import SVC
    from slimsvm.model import KernelExpansion
    from slimsvm.modelfile import ModelFileError
    from slimsvm.rows import Blocks
    from slimsvm.shapley.explanation import Explanation
    from slimsvm.size_search.compact import Compact
    from slimsvm.solvers import (
        BCFW,
        BSCA,
        BSGD,
        BVM,
        CPSP,
        CVM,
        LASVM,
        Exact,
        ExactCuts,
        LowRank,
        Refine,
        UniformCuts,
        ViolatedCuts,
    )
    from slimsvm.tasks import check_task

__version__ = "0.1.0"

__all__ = [
    "BCFW",
    "BSCA",
    "BSGD",
    "BVM",
    "CPSP",
    "CVM",
    "LASVM",
    "SVC",
    "SVR",
    "Blocks",
    "Checkpoint",
    "Compact",
    "Condense",
    "CrossTrainedSVC",
    "CrossTraining",
    "EditedNN",
    "Exact",
    "ExactCuts",
    "Explanation",
    "GridSearchSVC",
    "GridSearchSVR",
    "KernelExpansion",
    "LearnedAxes",
    "LowRank",
    "ModelFileError",
    "MultiEdit",
    "NormalRanks",
    "OneClassSVM",
    "OrdinalSVC",
    "Predictor",
    "RankSVM",
    "Refine",
    "SequenceSVM",
    "StructuredSVM",
    "UniformCuts",
    "ViolatedCuts",
    "check_task",
    "compress",
    "datasets",
    "explain",
    "export",
    "kernels",
    "load",
    "load_predictor",
    "onnx",
    "path",
    "save",
]

# Where each name lives. It is imported when first asked for: `slimsvm --help` need not wait for scikit-learn.
_HOMES = {
    "BCFW": "solvers",
    "BSCA": "solvers",
    "BSGD": "solvers",
    "BVM": "solvers",
    "CPSP": "solvers",
    "CVM": "solvers",
    "LASVM": "solvers",
    "SVC": "estimators.svc",
    "SVR": "estimators",
    "Blocks": "rows",
    "Checkpoint": "estimators._shared.around_fit",
    "Compact": "size_search.compact",
    "Condense": "estimators.editors",
    "CrossTrainedSVC": "estimators",
    "CrossTraining": "estimators.editors",
    "EditedNN": "estimators.editors",
    "Exact": "solvers",
    "ExactCuts": "solvers",
    "Explanation": "shapley.explanation",
    "GridSearchSVC": "estimators.grid_search",
    "GridSearchSVR": "estimators.grid_search",
    "KernelExpansion": "model",
    "LearnedAxes": "estimators.learned_axes",
    "LowRank": "solvers",
    "ModelFileError": "modelfile",
    "MultiEdit": "estimators.editors",
    "NormalRanks": "estimators.normal_ranks",
    "OneClassSVM": "estimators",
    "OrdinalSVC": "estimators",
    "Predictor": "deploy.predictors",
    "RankSVM": "estimators",
    "Refine": "solvers",
    "SequenceSVM": "estimators",
    "StructuredSVM": "estimators",
    "UniformCuts": "solvers",
    "ViolatedCuts": "solvers",
    "check_task": "tasks",
    "compress": "estimators.compression",
    "explain": "estimators.files",
    "export": "estimators.files",
    "load": "estimators.files",
    "load_predictor": "deploy.predictors",
    "datasets": "",
    "kernels": "",
    "onnx": "",
    "path": "estimators.grid_search",
    "save": "estimators.files",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
