"""What users import: scikit-learn estimators. All validation of users' input lives here."""

from typing import TYPE_CHECKING

from slimsvm.lazy import homes_of, lazy_names

if TYPE_CHECKING:
    from slimsvm.estimators.cross_trained_svc import CrossTrainedSVC as CrossTrainedSVC
    from slimsvm.estimators.files import EDITING as EDITING
    from slimsvm.estimators.files import ESTIMATORS as ESTIMATORS
    from slimsvm.estimators.files import NU as NU
    from slimsvm.estimators.files import OF_ONE_MODEL as OF_ONE_MODEL
    from slimsvm.estimators.files import STRUCTURED as STRUCTURED
    from slimsvm.estimators.nu import NuSVC as NuSVC
    from slimsvm.estimators.nu import NuSVR as NuSVR
    from slimsvm.estimators.one_class_svm import OneClassSVM as OneClassSVM
    from slimsvm.estimators.ordinal_svc import OrdinalSVC as OrdinalSVC
    from slimsvm.estimators.rank_svm import RankSVM as RankSVM
    from slimsvm.estimators.sequence_svm import SequenceSVM as SequenceSVM
    from slimsvm.estimators.structured_svm import StructuredSVM as StructuredSVM
    from slimsvm.estimators.svc import SVC as SVC
    from slimsvm.estimators.svr import SVR as SVR


_HOMES = homes_of(
    {
        "cross_trained_svc": ["CrossTrainedSVC"],
        "files": ["EDITING", "ESTIMATORS", "NU", "OF_ONE_MODEL", "STRUCTURED"],
        "nu": ["NuSVC", "NuSVR"],
        "one_class_svm": ["OneClassSVM"],
        "ordinal_svc": ["OrdinalSVC"],
        "rank_svm": ["RankSVM"],
        "sequence_svm": ["SequenceSVM"],
        "structured_svm": ["StructuredSVM"],
        "svc": ["SVC"],
        "svr": ["SVR"],
    }
)
__all__ = [*_HOMES]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
