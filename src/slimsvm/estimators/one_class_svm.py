"""Novelty and outlier detection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, unchanged_by_failure, with_callbacks
from slimsvm.estimators._shared.conformal import PredictsPValues
from slimsvm.estimators._shared.input_checks import is_chosen
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.estimators._shared.streams import begin_stream, fit_chunk, has_partial_fit
from slimsvm.parts.problem import SMALL_TOLERANCE
from slimsvm.solvers import BSCA, BSGD, Exact
from slimsvm.tasks import OneClass

# Solvers that know what the intercept of this problem costs.
ONE_CLASS_SOLVERS = (Exact, BSCA, BSGD)


@with_shared_parameters
class OneClassSVM(PredictsPValues, OutlierMixin, KernelEstimator):
    """The region that contains most rows, a drop-in replacement for `sklearn.svm.OneClassSVM`.

    Minimises ½‖w‖² + Σ ω_i max(0, ρ − f(x_i)) − ν ρ Σ ω_i over w and ρ, in LIBSVM's scaling. Inside means f(x) ≥ ρ.

    Parameters
    ----------
    kernel, degree
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        "scale": 1 / (n_features · X.var()); a row of weight 2 counts twice. "auto": 1 / n_features. An array: one gamma
        per feature, for RBF and other kernels of x - z.
    coef0
    tol : float, default=1e-3
        LIBSVM's: the largest violation of the optimality conditions by a pair of rows. Up to 2,000 rows with
        ``precision="auto"`` the fit goes on to 1e-10, so that weights and repeated rows give the same model.
    nu : float, default=0.5
        In (0, 1]. At most this share of the rows is outside, and at least this share are support vectors.
    shrinking, cache_size, verbose, max_iter, random_state
    solver : {"exact", "bsca", "bsgd"} or Exact, BSCA, BSGD, default="exact"
        The budgeted solvers, "bsca" and "bsgd", keep at most ``max_basis`` vectors, which need not be rows (so there is
        no ``support_``). The solver object has their tolerance, and ``max_iter`` limits the number of box constraints
        that are tried until ν is reached.
    max_seconds, precision, memory_limit, n_jobs, warm_start, calibration_size

    Attributes
    ----------
    offset_ : ndarray of shape (1,)
        ρ: ``decision_function`` is ``score_samples`` minus ρ.
    n_basis_, basis_vectors_, basis_coef_
    intercept_
        It is −ρ.
    support_, support_vectors_, dual_coef_
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    n_iter_, coef_, fit_status_, shape_fit_
    objective_, lower_bound_
        Both are usually negative here.
    gap_, status_, history_, n_kernel_evals_, model_, kernel_, solver_, precision_, guarantee_
    nonconformity_, calibration_indices_

    References
    ----------
    Schölkopf, Platt, Shawe-Taylor, Smola, Williamson: Estimating the Support of a High-Dimensional Distribution, Neural
    Computation 2001.

    Examples
    --------
    >>> from slimsvm import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> OneClassSVM(gamma="auto", nu=0.5).fit(X).predict(X).tolist()
    [-1, 1, 1, 1, -1]
    """

    _y_numeric = False
    _takes_blocks = True
    _takes_objects = True
    # What the problem has and the user does not choose.
    C, intercept, max_basis = 1.0, "free", None
    _decisive = ("nu",)
    _solvers = ONE_CLASS_SOLVERS

    def __init__(
        self, *, kernel="rbf", degree=3, gamma="scale", coef0=0.0, tol=1e-3, nu=0.5, shrinking=True, cache_size=200,
        verbose=False, max_iter=-1, random_state=None, solver="exact", max_seconds=None, precision="auto",
        memory_limit=2000, n_jobs=None, warm_start=False, calibration_size=None,
    ):  # fmt: skip
        self.kernel, self.degree, self.gamma, self.coef0, self.tol, self.nu = kernel, degree, gamma, coef0, tol, nu
        self.shrinking, self.cache_size, self.verbose, self.max_iter = shrinking, cache_size, verbose, max_iter
        self.random_state, self.solver, self.max_seconds = random_state, solver, max_seconds
        self.precision, self.memory_limit, self.n_jobs, self.warm_start = precision, memory_limit, n_jobs, warm_start
        self.calibration_size = calibration_size

    @property
    def offset_(self):
        """ρ: ``decision_function`` is ``score_samples`` minus ρ."""
        check_is_fitted(self, "model_")
        return -self.intercept_

    @with_callbacks
    @afresh
    def fit(self, X, y=None, sample_weight=None):
        """Train.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or objects for a kernel function
            As in `SVC.fit`.
        y : ignored
        sample_weight

        Raises
        ------
        ValueError
            A parameter or a value in X is out of range; the message names it.
        """
        X = self._check_X(X, reset=True)
        X, nothing, weights, index = self._training_rows(X, np.zeros(X.shape[0]), sample_weight)
        task, examples, _ = self._encode(nothing, weights)
        self._solve(X, nothing, examples, task, weights, index)
        return self

    def _set_up(self, X, examples, task, weights):
        """The problem; with few rows it is solved to the last digits."""
        if is_chosen(self.gamma):
            raise ValueError("gamma='validate' needs labels to validate by: give 'scale', 'auto' or a number")
        if self._learns_metric:
            raise ValueError("gamma='learn' needs labels to learn from: give 'scale', 'auto', a number or an array")
        problem = super()._set_up(X, examples, task, weights)
        return replace(problem, tol=min(problem.tol, SMALL_TOLERANCE)) if problem.is_small else problem

    def _named_solver(self, problem, learns_metric):
        """The solver, if it is one of those that know this problem."""
        solver = super()._named_solver(problem, learns_metric)
        if not isinstance(solver, self._solvers):
            raise ValueError(
                "OneClassSVM is trained by solver='exact' or an Exact object, or on a budget 'bsca' or 'bsgd', found "
                f"{self.solver!r}"
            )
        return solver

    def certificate(self, X, y=None, sample_weight=None, max_seconds=None):
        """Bound the gap between the model and the exact one of this kernel. It uses only the model, not the fit.

        One pass costs n² kernel evaluations.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The training rows.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            As in ``fit``.
        max_seconds

        Returns
        -------
        Certificate
            As for `SVC`; objective and bound are usually negative.
        """
        self._check_fitted()
        X = self._check_X(X, reset=False)
        return super().certificate(X, np.zeros(X.shape[0]), sample_weight, max_seconds)

    def _encode(self, y, weights):
        task = OneClass(self.nu)
        return task, task.encode(y, weights), 0.0

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self, X, y=None, sample_weight=None):
        """Process one more chunk of rows: the first is fitted, every later one is processed once by the solver's steps.

        The objective is over all rows seen so far. Only the last thousand rows are kept, or the chunk if it has more:
        ``offset_`` is the ν-quantile of their scores, and ``objective_`` is estimated from them. So if the distribution
        of the rows does not change, about a share ν is outside. Coefficients are not optimised again at the end. For
        several passes over a chunk, give it several times in a row; no row counts twice. The first chunk determines
        ``gamma="scale"``, and should have more than a handful of rows: `BSCA` learns badly from a stream that begins
        with few. A stream continues after ``save`` and `slimsvm.load` as if it had not stopped.

        Parameters
        ----------
        X
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import BSGD, OneClassSVM
        >>> rng = np.random.default_rng(0)
        >>> clf = OneClassSVM(nu=0.1, solver=BSGD(max_basis=30), random_state=0)
        >>> for _ in range(10):
        ...     clf = clf.partial_fit(rng.normal(size=(100, 2)))
        >>> clf.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
        [1, -1]
        """
        X = self._check_X(X, reset=begin_stream(self))
        self._centre = 0.0
        X, nothing, weights, _ = self._weighted_rows(X, np.zeros(X.shape[0]), sample_weight)
        task, examples, _ = self._encode(nothing, weights)
        fit_chunk(self, X, examples, task, weights)
        return self

    def score_samples(self, X):
        """f(x), without the intercept."""
        return self.decision_function(X) + self.offset_

    def decision_function(self, X):
        """f(x) − ρ: positive inside, negative outside, 0 on the boundary."""
        return self._decision().shown(self._scores(X))

    def predict(self, X):
        """+1 inside and on the boundary, −1 outside."""
        return self._decision().predicted(self._scores(X))
