"""The estimators by name, for those who go through all of them: `slimsvm.load`, and tests."""

from __future__ import annotations

from slimsvm.estimators.cross_trained_svc import CrossTrainedSVC
from slimsvm.estimators.one_class_svm import OneClassSVM
from slimsvm.estimators.ordinal_svc import OrdinalSVC
from slimsvm.estimators.rank_svm import RankSVM
from slimsvm.estimators.sequence_svm import SequenceSVM
from slimsvm.estimators.structured_svm import StructuredSVM
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
