"""Support vector regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_pinball_score
from sklearn.utils.metaestimators import available_if

from slimsvm import tasks
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, unchanged_by_failure, with_callbacks
from slimsvm.estimators._shared.conformal import PredictsIntervals
from slimsvm.estimators._shared.input_checks import check_finite, check_option, numbers_of
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.estimators._shared.streams import begin_stream, fit_chunk, has_partial_fit


@with_shared_parameters
class SVR(PredictsIntervals, RegressorMixin, KernelEstimator):
    """Kernel regression, a drop-in replacement for `sklearn.svm.SVR`.

    Minimises ½‖w‖² + C Σ ω_i ℓ_i, where ℓ is max(0, abs(y_i − f(x_i)) − ε) or another ``loss``. The
    regularised intercept is measured from the weighted mean of y, so large targets are not penalised.

    Parameters
    ----------
    kernel, degree, gamma, coef0, tol
    C
        The error of "validate" is the mean absolute error.
    epsilon : float, default=0.1
        Half-width of the tube in which residuals have no loss, in the units of y. With ``loss="huber"``, the residual
        beyond which the loss is linear. Other losses ignore it.
    shrinking, cache_size, verbose, max_iter, random_state, solver, max_basis, intercept, max_seconds, precision
    memory_limit, n_jobs, warm_start, calibration_size
    loss : str, default="epsilon_insensitive"
        With r = y − f(x): "epsilon_insensitive": max(0, abs(r) − ε). "squared": ½ r², kernel ridge regression with
        alpha = 1/C. "huber": ½ r² up to abs(r) = ε, and ε abs(r) − ½ ε² beyond. "quantile": max(q r, (q − 1) r).
        "poisson": exp(f) − y f for counts y ≥ 0, whose prediction is exp(f).

        With a number as ``max_basis``, all of them learn vectors ("epsilon_insensitive" of up to 5,000 rows moves those
        of the exact SVM). Without one, "epsilon_insensitive" and "quantile" use the exact solver, which trains several
        targets one after another. The others use Newton's method with all rows as vectors, up to 3,000 rows. With more
        rows, the unit vectors are these with the linear kernel and up to 1,000 features, which loses nothing; otherwise
        1,000 rows are drawn, and a warning says so.
    quantile : float or list of float, default=0.5
        q of "quantile", between 0 and 1. A list, in rising order, trains several quantiles of one target over one
        basis: `predict` has a column for each, sorted in every row, so that they do not cross.

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
    _decisive: tuple[str, ...] = ("loss", "quantile", "epsilon", "intercept")
    _takes_objects = True
    _takes_targets = True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = not hasattr(self, "partial_fit")
        return tags

    def __init__(
        self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, C=1.0, epsilon=0.1, shrinking=True,
        cache_size=200, verbose=False, max_iter=-1, random_state=None, solver="auto", max_basis=None, intercept="auto",
        max_seconds=None, precision="auto", memory_limit=2000, n_jobs=None, warm_start=False, calibration_size=None,
        loss="epsilon_insensitive", quantile=0.5,
    ):  # fmt: skip
        self.kernel, self.degree, self.gamma, self.coef0, self.tol, self.C = kernel, degree, gamma, coef0, tol, C
        self.epsilon, self.shrinking, self.cache_size, self.verbose = epsilon, shrinking, cache_size, verbose
        self.max_iter, self.random_state, self.solver, self.max_basis = max_iter, random_state, solver, max_basis
        self.intercept, self.max_seconds, self.precision = intercept, max_seconds, precision
        self.memory_limit, self.n_jobs, self.warm_start = memory_limit, n_jobs, warm_start
        self.calibration_size = calibration_size
        self.loss, self.quantile = loss, quantile

    @with_callbacks
    @afresh
    def fit(self, X, y, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or objects for a kernel function
            As in `SVC.fit`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. Several targets share one basis, and the losses of a row are added up.
        sample_weight
        """
        X, y = self._check_X(X, reset=True, y=y)
        y = numbers_of(y, "SVC")
        X, y, weights, index = self._training_rows(X, y, sample_weight)
        if self.loss == "poisson":  # while positions in the X given are known
            tasks.check_counts(y, index)
        task, examples, centre = self._encode(y, weights)
        self._solve(X, y, examples, task, weights, index, shift=centre)
        return self

    def _encode(self, y, weights):
        """The task, its examples, and what a regularised intercept is measured from: the mean of y, or its logarithm.

        Counts are divided by their mean, and weights multiplied, which leaves the loss as it was.
        """
        y = np.asarray(y, dtype=np.float64)
        task = self._task(1 if y.ndim == 1 else y.shape[1])
        check_finite(y.reshape(len(y), -1), "y")
        if task.has_log_link:
            tasks.check_counts(y)
            mean = float(np.average(y.reshape(len(y), -1).mean(axis=1), weights=weights))
            if not mean > 0:
                raise ValueError("loss='poisson' needs a target above 0, found zeros alone")
            scale = 1.0 if self.intercept == "none" else mean
            weights = np.full(len(y), scale) if weights is None else scale * weights
            return task, task.encode(y / scale, weights), float(np.log(scale))
        is_centred = self.intercept in ("auto", "regularized")
        centre = np.average(y, axis=0, weights=weights) if is_centred else 0.0
        return task, task.encode(y - centre, weights), float(centre) if np.ndim(centre) == 0 else centre

    def _task(self, n_targets: int) -> tasks.Task:
        """The task of the loss."""
        check_option("loss", self.loss, ("epsilon_insensitive", "quantile", *tasks.NUMBER_LOSSES))
        if self.loss == "epsilon_insensitive":
            return tasks.Regression(self.epsilon, n_targets)
        if self.loss != "quantile":
            return tasks.SmoothRegression(self.loss, self.epsilon, n_targets)
        if np.ndim(self.quantile) == 0:
            return tasks.Quantile(self.quantile, n_targets)
        if n_targets > 1:
            raise ValueError(f"a list of quantiles is for one target, found {n_targets} targets: give one quantile")
        return tasks.Quantiles(tuple(self.quantile))

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self, X, y, sample_weight=None):
        """Process one more chunk of rows, once, as `SVC.partial_fit` does.

        The intercept is measured from the mean of the first chunk's y.

        Parameters
        ----------
        X
        y
        sample_weight : array-like of shape (n_samples,) or None, default=None
        """
        is_first = begin_stream(self)
        X, y = self._check_X(X, reset=is_first, y=y)
        y = numbers_of(y, "SVC")
        X, y, weights, _ = self._weighted_rows(X, y, sample_weight)
        task, _, centre = self._encode(y, weights)
        if is_first:
            self._centre = centre
        fit_chunk(self, X, task.encode(y - self._centre, weights), task, weights)
        return self

    def predict(self, X):
        """Predicted targets.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_targets) of several targets or quantiles, float64
        """
        return self._decision().predicted(self._scores(X))

    def score(self, X, y, sample_weight=None):
        """R² as in scikit-learn; for several quantiles the mean of their D² pinball scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        float
        """
        quantiles = self._fitted_with("quantile")
        if self._fitted_with("loss") != "quantile" or np.ndim(quantiles) == 0:
            return super().score(X, y, sample_weight)
        found = self.predict(X)
        shares = [
            d2_pinball_score(y, found[:, j], sample_weight=sample_weight, alpha=q) for j, q in enumerate(quantiles)
        ]
        return float(np.mean(shares))
