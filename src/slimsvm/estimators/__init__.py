"""What users import: scikit-learn estimators. All validation of users' input lives here."""

from slimsvm.estimators.cross_trained import CrossTrainedSVC
from slimsvm.estimators.one_class import OneClassSVM
from slimsvm.estimators.ordinal import OrdinalSVC
from slimsvm.estimators.ranking import RankSVM
from slimsvm.estimators.sequence import SequenceSVM
from slimsvm.estimators.structured import StructuredSVM
from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR

# Those that take one row per example, and so pass scikit-learn's checks; and the others.
ESTIMATORS = {"OrdinalSVC": OrdinalSVC, "SVC": SVC, "SVR": SVR}
STRUCTURED = {
    "OneClassSVM": OneClassSVM,
    "RankSVM": RankSVM,
    "SequenceSVM": SequenceSVM,
    "StructuredSVM": StructuredSVM,
}
# Those that choose the rows they train on: they pass scikit-learn's checks too.
EDITING = {"CrossTrainedSVC": CrossTrainedSVC}

__all__ = [
    "EDITING",
    "ESTIMATORS",
    "STRUCTURED",
    "SVC",
    "SVR",
    "CrossTrainedSVC",
    "OneClassSVM",
    "OrdinalSVC",
    "RankSVM",
    "SequenceSVM",
    "StructuredSVM",
]
