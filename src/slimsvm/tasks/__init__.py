"""Tasks: what the loss is. A task knows labels y and scores, never x."""

from typing import TYPE_CHECKING

from slimsvm.lazy import LazyClasses, homes_of, lazy_names

if TYPE_CHECKING:
    from slimsvm.tasks.binary_and_regression import Binary as Binary
    from slimsvm.tasks.binary_and_regression import Multilabel as Multilabel
    from slimsvm.tasks.binary_and_regression import OneClass as OneClass
    from slimsvm.tasks.binary_and_regression import Quantile as Quantile
    from slimsvm.tasks.binary_and_regression import Quantiles as Quantiles
    from slimsvm.tasks.binary_and_regression import Regression as Regression
    from slimsvm.tasks.checking import TaskError as TaskError
    from slimsvm.tasks.checking import TaskReport as TaskReport
    from slimsvm.tasks.checking import check_task as check_task
    from slimsvm.tasks.example_task import ExampleTask as ExampleTask
    from slimsvm.tasks.examples import Examples as Examples
    from slimsvm.tasks.multiclass import HingeOneVsRest as HingeOneVsRest
    from slimsvm.tasks.multiclass import Multiclass as Multiclass
    from slimsvm.tasks.multiclass import OneVsOne as OneVsOne
    from slimsvm.tasks.multiclass import Ordinal as Ordinal
    from slimsvm.tasks.multivariate import MULTIVARIATE as MULTIVARIATE
    from slimsvm.tasks.multivariate import ErrorRate as ErrorRate
    from slimsvm.tasks.multivariate import FBeta as FBeta
    from slimsvm.tasks.multivariate import OverAllRows as OverAllRows
    from slimsvm.tasks.multivariate import PrecisionAtK as PrecisionAtK
    from slimsvm.tasks.multivariate import RecallAtK as RecallAtK
    from slimsvm.tasks.multivariate import ROCArea as ROCArea
    from slimsvm.tasks.ranking import AveragePrecision as AveragePrecision
    from slimsvm.tasks.ranking import Ranking as Ranking
    from slimsvm.tasks.ranking import Swaps as Swaps
    from slimsvm.tasks.sequence import Chain as Chain
    from slimsvm.tasks.smooth import CLASS_LOSSES as CLASS_LOSSES
    from slimsvm.tasks.smooth import LOSSES_OF_LOG_ODDS as LOSSES_OF_LOG_ODDS
    from slimsvm.tasks.smooth import NUMBER_LOSSES as NUMBER_LOSSES
    from slimsvm.tasks.smooth import OneVsRest as OneVsRest
    from slimsvm.tasks.smooth import SmoothBinary as SmoothBinary
    from slimsvm.tasks.smooth import SmoothLabels as SmoothLabels
    from slimsvm.tasks.smooth import SmoothRegression as SmoothRegression
    from slimsvm.tasks.smooth import Softmax as Softmax
    from slimsvm.tasks.smooth import check_counts as check_counts
    from slimsvm.tasks.smooth import task_of_classes as task_of_classes
    from slimsvm.tasks.task import Augmented as Augmented
    from slimsvm.tasks.task import Smoothed as Smoothed
    from slimsvm.tasks.task import Task as Task
    from slimsvm.tasks.task import losses as losses


TASKS = LazyClasses(
    __name__,
    {
        "average-precision": "ranking:AveragePrecision",
        "binary": "binary_and_regression:Binary",
        "chain": "sequence:Chain",
        "error-rate": "multivariate:ErrorRate",
        "f-beta": "multivariate:FBeta",
        "multiclass": "multiclass:Multiclass",
        "multilabel": "binary_and_regression:Multilabel",
        "ordinal": "multiclass:Ordinal",
        "precision-at-k": "multivariate:PrecisionAtK",
        "recall-at-k": "multivariate:RecallAtK",
        "regression": "binary_and_regression:Regression",
        "roc-area": "multivariate:ROCArea",
        "swaps": "ranking:Swaps",
    },
)


_HOMES = homes_of(
    {
        "checking": ["TaskError", "TaskReport", "check_task"],
        "example_task": ["ExampleTask"],
        "examples": ["Examples"],
        "multiclass": ["HingeOneVsRest", "Multiclass", "OneVsOne", "Ordinal"],
        "multivariate": ["ErrorRate", "FBeta", "MULTIVARIATE", "OverAllRows", "PrecisionAtK", "ROCArea", "RecallAtK"],
        "binary_and_regression": ["Binary", "Multilabel", "OneClass", "Quantile", "Quantiles", "Regression"],
        "ranking": ["AveragePrecision", "Ranking", "Swaps"],
        "sequence": ["Chain"],
        "smooth": [
            "CLASS_LOSSES",
            "LOSSES_OF_LOG_ODDS",
            "NUMBER_LOSSES",
            "OneVsRest",
            "SmoothBinary",
            "SmoothLabels",
            "SmoothRegression",
            "Softmax",
            "check_counts",
            "task_of_classes",
        ],
        "task": ["Augmented", "Smoothed", "Task", "losses"],
    }
)
__all__ = ["TASKS", *_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
