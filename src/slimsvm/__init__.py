"""Kernel machines that stay small."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slimsvm import datasets, kernels
    from slimsvm.estimators import (
        SVC,
        SVR,
        CrossTrainedSVC,
        OneClassSVM,
        OrdinalSVC,
        RankSVM,
        SequenceSVM,
        StructuredSVM,
    )
    from slimsvm.estimators.checkpoint import Checkpoint
    from slimsvm.estimators.compression import compress
    from slimsvm.estimators.editors import Condense, CrossTraining, EditedNN, MultiEdit
    from slimsvm.estimators.files import load
    from slimsvm.estimators.path import path
    from slimsvm.model import KernelExpansion
    from slimsvm.modelfile import ModelFileError
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
    "Checkpoint",
    "Condense",
    "CrossTrainedSVC",
    "CrossTraining",
    "EditedNN",
    "Exact",
    "ExactCuts",
    "KernelExpansion",
    "LowRank",
    "ModelFileError",
    "MultiEdit",
    "OneClassSVM",
    "OrdinalSVC",
    "RankSVM",
    "Refine",
    "SequenceSVM",
    "StructuredSVM",
    "UniformCuts",
    "ViolatedCuts",
    "check_task",
    "compress",
    "datasets",
    "kernels",
    "load",
    "path",
]

# Where each name lives. It is imported when first asked for: `slimsvm --help` need not wait for scikit-learn and Numba.
_HOMES = {
    "BCFW": "solvers",
    "BSCA": "solvers",
    "BSGD": "solvers",
    "BVM": "solvers",
    "CPSP": "solvers",
    "CVM": "solvers",
    "LASVM": "solvers",
    "SVC": "estimators",
    "SVR": "estimators",
    "Checkpoint": "estimators.checkpoint",
    "Condense": "estimators.editors",
    "CrossTrainedSVC": "estimators",
    "CrossTraining": "estimators.editors",
    "EditedNN": "estimators.editors",
    "Exact": "solvers",
    "ExactCuts": "solvers",
    "KernelExpansion": "model",
    "LowRank": "solvers",
    "ModelFileError": "modelfile",
    "MultiEdit": "estimators.editors",
    "OneClassSVM": "estimators",
    "OrdinalSVC": "estimators",
    "RankSVM": "estimators",
    "Refine": "solvers",
    "SequenceSVM": "estimators",
    "StructuredSVM": "estimators",
    "UniformCuts": "solvers",
    "ViolatedCuts": "solvers",
    "check_task": "tasks",
    "compress": "estimators.compression",
    "load": "estimators.files",
    "path": "estimators.path",
}


def __getattr__(name: str) -> Any:
    """A public name, imported now."""
    if name in _HOMES:
        value = getattr(import_module(f"slimsvm.{_HOMES[name]}"), name)
    elif name in __all__:
        value = import_module(f"slimsvm.{name}")
    else:
        raise AttributeError(f"module 'slimsvm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted({*globals(), *__all__})
