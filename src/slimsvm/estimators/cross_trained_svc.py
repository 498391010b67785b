"""Support vector classification after cross-training."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from slimsvm.editing import CrossTrained, CrossTrainer
from slimsvm.editing.cross_training_stages import Clock
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.calibrating import Probabilities
from slimsvm.estimators._shared.conformal import PredictsSets
from slimsvm.estimators._shared.fitted import Trained
from slimsvm.estimators._shared.input_checks import (
    check_at_least,
    check_cap,
    check_classes,
    check_positive,
    class_codes,
    is_chosen,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.parts.problem import Problem, check_flag
from slimsvm.parts.run import Fit
from slimsvm.tasks import Binary


@with_shared_parameters
class CrossTrainedSVC(Probabilities, PredictsSets, ClassifierMixin, KernelEstimator):
    """SVC of two classes trained on the rows that cross-training keeps: few support vectors on noisy data.

    Models are trained on random subsets, side by side. Rows that these models misclassify on average, and rows that
    they classify with a large margin, are removed. The vectors of the last model come from the remaining rows; its
    coefficients are fitted to all rows.
    (As published, the last model is trained on the remaining rows: ``max_basis=None``.) For more classes wrap it in
    `sklearn.multiclass.OneVsRestClassifier`.

    Parameters
    ----------
    C : float or "validate", default="validate"
        Weight of one row's loss for the last model. "validate" tries 0.1, 1, … 1000. Several values have the fewest
        errors on the validation rows, within a standard error of the difference; it takes the middle one of these. If
        there are fewer than 300 validation rows, every part of the rows validates in turn. With ``max_basis=None`` it
        considers values within two standard errors, and of those with the fewest vectors (within 10 %) the lowest.
    first_C : float or "validate", default="validate"
        C for the models of the subsets, and for finding vectors. "validate" takes the highest value with the fewest
        errors, within two standard errors, on rows that the models were not trained on.
    kernel
        There is no precomputed kernel here.
    degree
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        "scale": 1 / (n_features · X.var()). "auto": 1 / n_features. An array: one gamma per feature, for RBF and other
        kernels of x - z.
    coef0
    n_subsets : int, default=5
        Number of subsets, the paper's s.
    subset_size : int or None, default=None
        Rows of a subset, the paper's r: half of them from each class, or all rows of a smaller class. None: the share
        1/n_subsets of all rows, but at least 1,000 or half of them. Larger subsets decide better and remove fewer
        vectors.
    validation_size : int or None, default=None
        Rows that choose thresholds and the last model's C. None: a third of subset_size. 0: no thresholds; C must then
        be a number.
    variances : float, default=0.0
        Rows are removed if their mean margin is beyond 0 or 1 by this number of variances. The paper has 1, which
        removes fewer rows. 0 uses the mean alone, unless few vectors are not enough (``max_basis="auto"``).
    balance : bool, default=True
        Whether the smaller class of the kept rows gets surely right rows back.
    max_basis : int, "auto" or None, default="auto"
        Largest number of vectors of the last model. A model is trained on a sample of the kept rows. Round by
        round it takes in rows that it classifies wrongly, until it has that many vectors. Their coefficients are then
        fitted to all rows, including those with wrong labels. "auto": the sample is what is kept of 2,000 rows, and the
        number of vectors is the same (fewer if some lie in the span of the others). So it hardly depends on the number
        of rows from 2,000 on; below, the vectors come from the model of all kept rows. If the result errs more on
        the validation rows than the first models (by a point, and by two standard errors), it is None with
        ``variances`` of at least 1. None: the model of all kept rows, as in the paper.
    second_stage : bool, default=True
        False: the mean of the models of the subsets is the model (bagging), and there is no last model.
    rejoin : bool, default=True
        Whether the validation rows join the last training once they have chosen its C. False: they only choose, as in
        the paper.
    deviations : float, default=2.0
        Standard errors by which a C must err less than one with fewer vectors, and a threshold less than none, to be
        taken. 0 takes the best, as in the paper.
    solver : str or Solver, default="exact"
        For all models: a name of `slimsvm.solvers.SOLVERS`, or an object with its own parameters.
    intercept : {"free", "regularized", "none"}, default="free"
        "regularized": the weight of a constant feature 1; ‖w‖² includes it. "free": as in LIBSVM, ‖w‖² does not.
    tol
    max_iter : int, default=-1
        Limit on the iterations of every model; -1 means none.
    max_seconds : float or None, default=None
        Time limit. Unfinished models are then used as they are, with a warning.
    precision, memory_limit, n_jobs
        The models of the subsets are trained side by side, each on one thread.
    verbose
    random_state : int, RandomState, Generator or None, default=None
        For subsets and validation rows. A number makes fits repeatable bit for bit, whatever ``n_jobs``.
    probability, calibration_size

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    sample_indices_ : int64 ndarray
        Positions of the rows that were kept, ascending: the rows that the last model, or the one that gives its
        vectors, could be trained on.
    C_, first_C_ : float
    validation_, first_validation_ : list of dict
        ``C``, ``error``, ``n_basis`` and ``seconds`` of every C that was tried for the last and for the first models.
        The last model's are without the validation rows, and by their error.
    margin_mean_, margin_variance_ : ndarray of shape (n_samples,)
        Mean and variance of y f(x) over the models of the subsets; NaN for rows that ``calibration_size`` holds out.
    n_wrong_, n_sure_, n_returned_ : int
        Numbers of rows removed on the wrong side, removed as surely right, and put back of the latter.
    n_basis_, basis_vectors_, basis_coef_, intercept_, model_, kernel_, precision_
    support_, support_vectors_, dual_coef_, n_support_
    objective_, lower_bound_ : float
        For the last model's problem before its threshold was moved: over all rows and without a bound, or with
        ``max_basis=None`` over the rows that were kept. NaN and None for the mean of models.
    status_, history_, n_iter_
        For the last model.
    n_kernel_evals_ : int
        For the whole fit.
    calibration_, guarantee_, nonconformity_, nonconformity_classes_, calibration_indices_

    References
    ----------
    Bakır, Bottou, Weston: Breaking SVM Complexity with Cross-Training, NIPS 2004, Algorithm 3 and section 4.3.

    Examples
    --------
    >>> from slimsvm import SVC, CrossTrainedSVC
    >>> from slimsvm.datasets import two_gaussians
    >>> X, y = two_gaussians(2000, 10, 2.2, random_state=0)
    >>> clf = CrossTrainedSVC(kernel="linear", random_state=0).fit(X, y)
    >>> whole = SVC(kernel="linear", solver="exact", intercept="free").fit(X, y)
    >>> bool(clf.n_basis_ < 0.5 * whole.n_basis_), bool(abs(clf.score(X, y) - whole.score(X, y)) < 0.02)
    (True, True)
    """

    _y_numeric = False
    warm_start = False

    _is_of_parts = True

    def __init__(
        self, *, C="validate", first_C="validate", kernel="rbf", degree=3, gamma="scale", coef0=0.0, n_subsets=5,
        subset_size=None, validation_size=None, variances=0.0, balance=True, max_basis="auto", second_stage=True,
        rejoin=True, deviations=2.0, solver="exact", intercept="free", tol=1e-3, max_iter=-1, max_seconds=None,
        precision="auto", memory_limit=2000, n_jobs=None, random_state=None, verbose=False, probability=False,
        calibration_size=None,
    ):  # fmt: skip
        self.C, self.first_C, self.kernel, self.degree, self.gamma = C, first_C, kernel, degree, gamma
        self.coef0, self.n_subsets, self.subset_size = coef0, n_subsets, subset_size
        self.validation_size, self.variances, self.balance = validation_size, variances, balance
        self.max_basis, self.second_stage, self.rejoin = max_basis, second_stage, rejoin
        self.deviations, self.solver = deviations, solver
        self.intercept, self.tol, self.max_iter, self.max_seconds = intercept, tol, max_iter, max_seconds
        self.precision, self.memory_limit, self.n_jobs = precision, memory_limit, n_jobs
        self.random_state, self.verbose, self.probability = random_state, verbose, probability
        self.calibration_size = calibration_size

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    @with_callbacks
    @afresh
    def fit(self, X, y):
        """Edit the training set and train.

        Parameters
        ----------
        X
            Any real dtype; memory maps are read in blocks.
        y
            Labels of two classes, numbers or strings; at least three rows of each.
        """
        X, y, _ = self._check_data(X, y)
        X, y, _, index = self._training_rows(X, y, None)
        codes, task = class_codes(y, self.classes_), Binary()
        self._solve(X, y, task.encode(codes), task, index=index, codes=codes)
        return self

    def edit(self, X, y):
        """Only the first stage: the rows that the last model would be trained on (without ``max_basis``).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        Edited
            Positions of the kept rows, and the values that decided.
        """
        own = copy(self)  # a fitted estimator stays as it is
        X, y, codes = own._check_data(X, y)
        problem = own._set_up(X, Binary().encode(codes), Binary(), None)
        return own.solver_.edit(problem, problem.generator(), Clock(problem.max_seconds))

    def _check_data(self, X, y):
        """Check X and y; return them, and the classes as 0 and 1."""
        X, y = self._check_X(X, reset=True, y=y)
        check_classes(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: y must hold two "
                f"classes, found {len(self.classes_)}; wrap the estimator in sklearn.multiclass.OneVsRestClassifier"
            )
        if len(self.classes_) < 2:
            raise ValueError(f"y must hold two classes, found 1 class: {self.classes_[0]!s}")
        return X, y, codes

    @property
    def _cap(self) -> None:
        """None: ``max_basis`` limits the last model, not the solver of each."""

    def _resolve_solver(self, problem):
        """Cross-training by the solver that ``solver`` stands for; checks the parameters."""
        if self._learns_metric or is_chosen(self.gamma):
            raise ValueError(
                f"gamma={self.gamma!r} is not offered with cross-training: give 'scale', 'auto' or a number"
            )
        C_values = {
            name: None
            if is_chosen(getattr(self, name))
            else check_positive(name, getattr(self, name), " or 'validate'")
            for name in ("C", "first_C")
        }
        sizes = {"n_subsets": (self.n_subsets, 1), "subset_size": (self.subset_size, 2)}
        sizes |= {"validation_size": (self.validation_size, 0)}
        check_cap(self.max_basis, least=2)
        if not isinstance(self.max_basis, str):
            sizes["max_basis"] = self.max_basis, 2
        counts = {
            name: None if value is None and name != "n_subsets" else check_at_least(name, value, least)
            for name, (value, least) in sizes.items()
        }
        for name in ("balance", "second_stage", "rejoin"):
            check_flag(name, getattr(self, name))
        for name in ("variances", "deviations"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < np.inf:
                raise ValueError(f"{name} must be a number >= 0, found {value!r}")
        return CrossTrainer(
            self._named_solver(problem, self._learns_metric),
            variances=self.variances,
            deviations=self.deviations,
            balance=self.balance,
            second_stage=self.second_stage,
            rejoin=self.rejoin,
            **{"max_basis": "auto"} | C_values | counts,
        )

    def _with_chosen(self, problem: Problem) -> Problem:
        """The problem as it is: `CrossTrainer` chooses both values of C."""
        return problem

    def _keep(self, fit: Fit, trained: Trained) -> None:
        """Set the attributes of a fit, with those that cross-training adds."""
        super()._keep(fit, trained)
        record: CrossTrained = fit.state
        edited = record.edited
        self._state = None
        self.C_, self.validation_ = record.C, record.trials
        index, n = trained.index, self.shape_fit_[0]
        self.sample_indices_ = edited.kept if index is None else index[edited.kept]
        self.first_C_, self.first_validation_ = edited.first.C, edited.first.trials
        self.margin_mean_, self.margin_variance_ = edited.mean, edited.variance
        if index is not None:
            both = np.full((2, n), np.nan)
            both[:, index] = edited.mean, edited.variance
            self.margin_mean_, self.margin_variance_ = both
        self.n_wrong_, self.n_sure_, self.n_returned_ = edited.n_wrong, edited.n_sure, edited.n_returned

    def _encode(self, y, weights):
        return Binary(), Binary().encode(class_codes(y, self.classes_), weights), 0.0

    def decision_function(self, X):
        """Scores.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Positive for ``classes_[1]``.
        """
        return self._decision().shown(self._scores(X))

    def predict(self, X):
        """Predicted class labels. Ties go to the lowest class."""
        return self._decision().predicted(self._scores(X))
