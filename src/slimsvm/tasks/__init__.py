"""Tasks: what the loss is. A task sees y and scores, never x."""

from slimsvm.tasks.base import Augmented, Examples, Smoothed, Task, losses
from slimsvm.tasks.binary import Binary
from slimsvm.tasks.multiclass import Multiclass
from slimsvm.tasks.multivariate import (
    MULTIVARIATE,
    ErrorRate,
    FBeta,
    OverAllRows,
    PrecisionAtK,
    RecallAtK,
    ROCArea,
)
from slimsvm.tasks.regression import Regression
from slimsvm.tasks.sequence import Chain

TASKS = {
    "binary": Binary,
    "chain": Chain,
    "error-rate": ErrorRate,
    "f-beta": FBeta,
    "multiclass": Multiclass,
    "precision-at-k": PrecisionAtK,
    "recall-at-k": RecallAtK,
    "regression": Regression,
    "roc-area": ROCArea,
}

__all__ = [
    "MULTIVARIATE",
    "TASKS",
    "Augmented",
    "Binary",
    "Chain",
    "ErrorRate",
    "Examples",
    "FBeta",
    "Multiclass",
    "OverAllRows",
    "PrecisionAtK",
    "ROCArea",
    "RecallAtK",
    "Regression",
    "Smoothed",
    "Task",
    "losses",
]
