"""What users import: scikit-learn estimators. All validation of users' input lives here."""

from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR

ESTIMATORS = {"SVC": SVC, "SVR": SVR}

__all__ = ["ESTIMATORS", "SVC", "SVR"]
