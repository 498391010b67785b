"""Tasks: what the loss is. A task sees y and scores, never x."""

from typing import TYPE_CHECKING

from slimsvm.lazy import LazyClasses, lazy_names

if TYPE_CHECKING:
    from slimsvm.tasks.binary import Binary, Multilabel
    from slimsvm.tasks.checking import TaskError, TaskReport, check_task
    from slimsvm.tasks.example_task import ExampleTask
    from slimsvm.tasks.examples import Examples
    from slimsvm.tasks.multiclass import Multiclass, OneVsOne, Ordinal
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
    from slimsvm.tasks.ranking import AveragePrecision, Ranking, Swaps
    from slimsvm.tasks.regression import Regression
    from slimsvm.tasks.sequence import Chain
    from slimsvm.tasks.task import Augmented, Smoothed, Task, losses


TASKS = LazyClasses(
    __name__,
    {
        "average-precision": "ranking:AveragePrecision",
        "binary": "binary:Binary",
        "chain": "sequence:Chain",
        "error-rate": "multivariate:ErrorRate",
        "f-beta": "multivariate:FBeta",
        "multiclass": "multiclass:Multiclass",
        "multilabel": "binary:Multilabel",
        "ordinal": "multiclass:Ordinal",
        "precision-at-k": "multivariate:PrecisionAtK",
        "recall-at-k": "multivariate:RecallAtK",
        "regression": "regression:Regression",
        "roc-area": "multivariate:ROCArea",
        "swaps": "ranking:Swaps",
    },
)

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

_HOMES = {
    "Augmented": "task",
    "AveragePrecision": "ranking",
    "Binary": "binary",
    "Chain": "sequence",
    "ErrorRate": "multivariate",
    "ExampleTask": "example_task",
    "Examples": "examples",
    "FBeta": "multivariate",
    "MULTIVARIATE": "multivariate",
    "Multiclass": "multiclass",
    "Multilabel": "binary",
    "OneClass": "one_class",
    "OneVsOne": "multiclass",
    "Ordinal": "multiclass",
    "OverAllRows": "multivariate",
    "PrecisionAtK": "multivariate",
    "ROCArea": "multivariate",
    "Ranking": "ranking",
    "RecallAtK": "multivariate",
    "Regression": "regression",
    "Smoothed": "task",
    "Swaps": "ranking",
    "Task": "task",
    "TaskError": "checking",
    "TaskReport": "checking",
    "check_task": "checking",
    "losses": "task",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
