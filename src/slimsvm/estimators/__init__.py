"""What users import: scikit-learn estimators. All validation of users' input lives here."""

from typing import TYPE_CHECKING

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm.estimators.cross_trained_svc import CrossTrainedSVC
    from slimsvm.estimators.files import EDITING, ESTIMATORS, STRUCTURED
    from slimsvm.estimators.one_class_svm import OneClassSVM
    from slimsvm.estimators.ordinal_svc import OrdinalSVC
    from slimsvm.estimators.rank_svm import RankSVM
    from slimsvm.estimators.sequence_svm import SequenceSVM
    from slimsvm.estimators.structured_svm import StructuredSVM
    from slimsvm.estimators.svc import SVC
    from slimsvm.estimators.svr import SVR


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

_HOMES = {
    "EDITING": "files",
    "ESTIMATORS": "files",
    "STRUCTURED": "files",
    "CrossTrainedSVC": "cross_trained_svc",
    "OneClassSVM": "one_class_svm",
    "OrdinalSVC": "ordinal_svc",
    "RankSVM": "rank_svm",
    "SVC": "svc",
    "SVR": "svr",
    "SequenceSVM": "sequence_svm",
    "StructuredSVM": "structured_svm",
}
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
