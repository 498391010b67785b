"""Classification with ordered classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.calibrating import Probabilities
from slimsvm.estimators._shared.conformal import PredictsSets
from slimsvm.estimators._shared.input_checks import (
    check_classes,
    class_codes,
    in_declared_order,
    named_classes,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.tasks import Ordinal

Array = np.ndarray


@with_shared_parameters
class OrdinalSVC(Probabilities, PredictsSets, ClassifierMixin, KernelEstimator):
    """Ordinal regression with any kernel: one function f, and a threshold between any two neighbouring classes.

    Minimises ½‖w‖² + ½‖θ‖² + C Σ ω_i Σ_j max(0, 1 − y_ij (f(x_i) − θ_j)), with y_ij = +1 if the class of row i lies
    above the threshold j and −1 otherwise. The loss counts how many classes off a prediction is. The optimal thresholds
    are in order without a constraint.

    Parameters
    ----------
    classes : array-like or None, default=None
        The classes from the lowest to the highest. None takes the order of y's type, if it has one (ordered categories
        of pandas, an Enum of polars), and otherwise sorts those found: of texts a warning says in which order.
    C
        The error of "validate" is how many classes a prediction is off, on average.
    kernel, degree, gamma, coef0, tol, verbose, max_iter, random_state
    solver
        "refine", "cpsp", and exact and sampled cuts can train it. The thresholds take the place of an intercept.
    max_basis : int or None, default=None
        Largest number of learned vectors, for solvers that have such a limit.
    max_seconds, precision, memory_limit, n_jobs, warm_start, probability, calibration_size

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        From the lowest to the highest.
    n_basis_, basis_vectors_, basis_coef_, objective_, lower_bound_, gap_, status_, history_, model_, C_, validation_
    calibration_, guarantee_, nonconformity_, nonconformity_classes_, calibration_indices_

    References
    ----------
    Chu, Keerthi: New Approaches to Support Vector Ordinal Regression, ICML 2005 (implicit constraints).

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import OrdinalSVC
    >>> X = np.arange(12.0)[:, None]
    >>> grades = ["poor", "fair", "good"]
    >>> clf = OrdinalSVC(classes=grades, C=10.0, kernel="linear").fit(X, np.repeat(grades, 4))
    >>> clf.predict([[1.0], [5.5], [11.0]]).tolist()
    ['poor', 'fair', 'good']
    """

    _y_numeric = False
    _takes_blocks = True
    intercept = "none"
    _sets_need_odds = False

    def __init__(
        self, *, classes=None, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, verbose=False,
        max_iter=-1, random_state=None, solver="auto", max_basis=None, max_seconds=None, precision="auto",
        memory_limit=2000, n_jobs=None, warm_start=False, probability=False, calibration_size=None,
    ):  # fmt: skip
        self.classes, self.C, self.kernel, self.degree, self.gamma = classes, C, kernel, degree, gamma
        self.coef0, self.tol, self.verbose, self.max_iter = coef0, tol, verbose, max_iter
        self.random_state, self.solver, self.max_basis = random_state, solver, max_basis
        self.max_seconds, self.precision, self.memory_limit = max_seconds, precision, memory_limit
        self.n_jobs, self.warm_start, self.probability = n_jobs, warm_start, probability
        self.calibration_size = calibration_size

    @with_callbacks
    @afresh
    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X
        y
            Classes, numbers or strings.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights ≥ 0 of the rows' losses; a row of weight 0 is ignored.
        """
        given = y
        X, y = self._check_X(X, reset=True, y=y)
        check_classes(y)
        X, y, weights, index = self._training_rows(X, y, sample_weight)
        found = np.unique(y)
        self.classes_ = in_declared_order(found, given) if self.classes is None else named_classes(self.classes)
        if self.classes_.ndim != 1 or len(np.unique(self.classes_)) < len(self.classes_):
            raise ValueError(
                f"classes must name every class once, from the lowest to the highest; found {self.classes!r}"
            )
        if len(found) < 2:
            raise ValueError(f"y must hold at least two classes, found 1 class: {found[0]!s}")
        task, examples, _ = self._encode(y, weights)
        self._solve(X, y, examples, task, weights, index)
        return self

    def _encode(self, y: Array, weights: Array | None):
        sorter = np.argsort(self.classes_)
        codes = sorter[class_codes(y, self.classes_[sorter])]
        task = Ordinal(len(self.classes_))
        return task, task.encode(codes, weights), 0.0

    @property
    def thresholds_(self) -> Array:
        """θ_j: f(x) above it means a class after the j-th."""
        check_is_fitted(self, "model_")
        return self.model_.plain

    def decision_function(self, X: Any):
        """f(x) relative to the thresholds.

        Returns
        -------
        ndarray, float64
            Two classes: shape (n_samples,), f − θ. More: (n_samples, n_classes). For class c it is the sum of f − θ_j
            over the thresholds below it; the class with the largest sum is predicted.
        """
        return self._decision().shown(self._scores(X))

    def predict(self, X: Any):
        """Predicted classes; the lower one if f(x) lies on a threshold."""
        return self._decision().predicted(self._scores(X))
