"""Support vector regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slimsvm import tasks
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, unchanged_by_failure, with_callbacks
from slimsvm.estimators._shared.conformal import PredictsIntervals
from slimsvm.estimators._shared.input_checks import check_finite
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator, begin_stream, fit_chunk, has_partial_fit


@with_shared_parameters
class SVR(PredictsIntervals, RegressorMixin, KernelEstimator):
    """ε-insensitive kernel regression, a drop-in replacement for `sklearn.svm.SVR`.

    Minimises ½‖w‖² + C Σ ω_i max(0, abs(y_i − f(x_i)) − ε). The regularised intercept is measured from the weighted
    mean of y, so large targets are not penalised.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
    C
        The error is the mean absolute error.
    epsilon : float, default=0.1
        Half-width of the tube in which residuals have no loss, in the units of y.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_basis, intercept, max_seconds, precision
    memory_limit, n_jobs, warm_start, calibration_size

    Attributes
    ----------
    n_basis_, basis_vectors_, basis_coef_
    intercept_
        It includes the mean of y.
    support_, support_vectors_, dual_coef_
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    n_iter_, coef_, fit_status_, shape_fit_, objective_, lower_bound_, gap_, status_, history_, n_kernel_evals_, model_
    kernel_, solver_, precision_, C_, validation_, guarantee_, nonconformity_, calibration_indices_

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import SVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> reg = SVR(C=10.0, gamma=1.0, epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(reg.predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
    True
    """

    _y_numeric = True
    _takes_blocks = True
    _takes_objects = True

    def __init__(
        self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, C=1.0, epsilon=0.1, shrinking=True,
        cache_size=200, verbose=False, max_iter=-1, random_state=None, solver="auto", max_basis=None, intercept="auto",
        max_seconds=None, precision="auto", memory_limit=2000, n_jobs=None, warm_start=False, calibration_size=None,
    ):  # fmt: skip
        self.kernel, self.degree, self.gamma, self.coef0, self.tol, self.C = kernel, degree, gamma, coef0, tol, C
        self.epsilon, self.shrinking, self.cache_size, self.verbose = epsilon, shrinking, cache_size, verbose
        self.max_iter, self.random_state, self.solver, self.max_basis = max_iter, random_state, solver, max_basis
        self.intercept, self.max_seconds, self.precision = intercept, max_seconds, precision
        self.memory_limit, self.n_jobs, self.warm_start = memory_limit, n_jobs, warm_start
        self.calibration_size = calibration_size

    @with_callbacks
    @afresh
    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or objects for a kernel function
            As in `SVC.fit`.
        y
            Targets.
        sample_weight
        """
        X, y = self._check_X(X, reset=True, y=y)
        X, y, weights, index = self._training_rows(X, y, sample_weight)
        task, examples, centre = self._encode(y, weights)
        self._solve(X, y, examples, task, weights, index, shift=centre)
        return self

    def _encode(self, y, weights):
        """The task, its examples, and the mean of y that a regularised intercept is measured from."""
        task, y = tasks.Regression(self.epsilon), np.asarray(y, dtype=np.float64)
        check_finite(y[:, None], "y")
        is_centred = self.intercept in ("auto", "regularized")
        centre = float(np.average(y, weights=weights)) if is_centred else 0.0
        return task, task.encode(y - centre, weights), centre

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self, X, y, sample_weight=None):
        """Process one more chunk of rows, once, as `SVC.partial_fit` does. The intercept is measured from the mean of
        the first chunk's y.

        Parameters
        ----------
        X
        y
        sample_weight : array-like of shape (n_samples,) or None, default=None
        """
        is_first = begin_stream(self)
        X, y = self._check_X(X, reset=is_first, y=y)
        X, y, weights, _ = self._weighted_rows(X, y, sample_weight)
        task, _, centre = self._encode(y, weights)
        if is_first:
            self._centre = centre
        fit_chunk(self, X, task.encode(np.asarray(y, np.float64) - self._centre, weights), task, weights)
        return self

    def predict(self, X):
        """Predicted targets.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        check_is_fitted(self, "model_")
        return self._predicted(self._scores(X))

    def _predicted(self, scores):
        """The targets that scores stand for."""
        return scores[:, 0]
