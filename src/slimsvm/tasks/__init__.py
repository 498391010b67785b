"""Tasks: what the loss is. A task sees y and scores, never x."""

from slimsvm.tasks.base import Augmented, Examples, Smoothed, Task, losses
from slimsvm.tasks.binary import Binary
from slimsvm.tasks.checking import TaskError, TaskReport, check_task
from slimsvm.tasks.multiclass import Multiclass
from slimsvm.tasks.multilabel import Multilabel
from slimsvm.tasks.multivariate import (
    MULTIVARIATE,
    ErrorRate,
    FBeta,
    OverAllRows,
    PrecisionAtK,
    RecallAtK,
    ROCArea,
)
from slimsvm.tasks.one_class import OneClass
from slimsvm.tasks.one_vs_one import OneVsOne
from slimsvm.tasks.ordinal import Ordinal
from slimsvm.tasks.own import ExampleTask
from slimsvm.tasks.ranking import AveragePrecision, Ranking, Swaps
from slimsvm.tasks.regression import Regression
from slimsvm.tasks.sequence import Chain

TASKS = {
    "average-precision": AveragePrecision,
    "binary": Binary,
    "chain": Chain,
    "error-rate": ErrorRate,
    "f-beta": FBeta,
    "multiclass": Multiclass,
    "multilabel": Multilabel,
    "ordinal": Ordinal,
    "precision-at-k": PrecisionAtK,
    "recall-at-k": RecallAtK,
    "regression": Regression,
    "roc-area": ROCArea,
    "swaps": Swaps,
}

__all__ = [
    "MULTIVARIATE",
    "TASKS",
    "Augmented",
    "AveragePrecision",
    "Binary",
    "Chain",
    "ErrorRate",
    "ExampleTask",
    "Examples",
    "FBeta",
    "Multiclass",
    "Multilabel",
    "OneClass",
    "OneVsOne",
    "Ordinal",
    "OverAllRows",
    "PrecisionAtK",
    "ROCArea",
    "Ranking",
    "RecallAtK",
    "Regression",
    "Smoothed",
    "Swaps",
    "Task",
    "TaskError",
    "TaskReport",
    "check_task",
    "losses",
]
