"""ν in place of C for classes, and in place of ε for numbers; `_shared.exact_of_nu` finds either."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import tasks
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.exact_of_nu import ExactOfNu, check_nu
from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR


@with_shared_parameters
class NuSVC(SVC):
    """Kernel support vector classification with ν in place of C, a drop-in replacement for `sklearn.svm.NuSVC`.

    At most the share ν of the rows (by weight) lies within the margin or on its wrong side, and at least that share are
    support vectors. The model is that of `SVC` with the C at which the dual variables add up to this share; ``C_`` is
    that C. For several classes each pair has a C of its own. ``tol`` is in units of 1 / ``C_``, as in LIBSVM. If
    classes overlap so much that no C gives this share, a warning says which share the model has.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]. For any two classes, at most twice the rarer class's share of their rows (by weight).
    kernel, degree
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        "scale": 1 / (n_features · X.var()); a row of weight 2 counts twice. "auto": 1 / n_features. An array: one gamma
        per feature, for RBF and other kernels of x - z.
    coef0, shrinking, probability, tol, cache_size
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class. "balanced" gives every class the same total weight, so that
        any ν is feasible. (scikit-learn's ``NuSVC`` ignores ``class_weight``.)
    verbose, max_iter
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of the decision values for more than two classes: one per class, or one per pair of classes.
    break_ties : bool, default=False
        Predict the class with the largest "ovr" decision value, not the one with most votes.
    random_state, max_seconds, precision, memory_limit, n_jobs, warm_start

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    C_ : float, or ndarray of shape (n_pairs,)
        The C of `SVC` that has this ν, of each pair of classes where there are several.
    n_basis_, basis_vectors_, basis_coef_, coef_, intercept_, support_, support_vectors_, n_support_, dual_coef_
    class_weight_ : ndarray of shape (n_classes,)
        The factors that ``class_weight`` stands for.
    fit_status_, shape_fit_
    objective_, lower_bound_
        Of `SVC` with ``C_``.
    gap_, status_, history_
    n_iter_ : ndarray of int32
        Working sets and passes over all rows: one number, or for pairs of classes one for each pair.
    n_kernel_evals_, model_, kernel_, solver_, precision_, calibration_

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett: New Support Vector Algorithms, Neural Computation 2000.
    Chang, Lin: Training ν-Support Vector Classifiers: Theory and Algorithms, Neural Computation 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from slimsvm import NuSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = NuSVC(nu=0.2).fit(X, y)
    >>> bool(clf.score(X, y) > 0.95), clf.C_.shape
    (True, (3,))
    """

    # What the problem has and the user does not choose.
    C, solver, max_basis, intercept, cost_matrix, loss, multi_class = 1.0, "exact", None, "free", None, "hinge", "ovo"
    _of_one_weighted_class = "specified nu is infeasible: all samples with positive weights belong to the same class"

    def __init__(
        self, *, nu=0.5, kernel="rbf", degree=3, gamma="scale", coef0=0.0, shrinking=True, probability=False, tol=1e-3,
        cache_size=200, class_weight=None, verbose=False, max_iter=-1, decision_function_shape="ovr", break_ties=False,
        random_state=None, max_seconds=None, precision="auto", memory_limit=2000, n_jobs=None, warm_start=False,
    ):  # fmt: skip
        self.nu, self.kernel, self.degree, self.gamma, self.coef0 = nu, kernel, degree, gamma, coef0
        self.shrinking, self.probability, self.tol, self.cache_size = shrinking, probability, tol, cache_size
        self.class_weight, self.verbose, self.max_iter = class_weight, verbose, max_iter
        self.decision_function_shape, self.break_ties = decision_function_shape, break_ties
        self.random_state, self.max_seconds, self.precision = random_state, max_seconds, precision
        self.memory_limit, self.n_jobs, self.warm_start = memory_limit, n_jobs, warm_start

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

    @property
    def partial_fit(self):
        """There is none: ν is a share of all rows."""
        raise AttributeError("NuSVC has no partial_fit, as nu is a share of all rows: SVC(solver='bsgd') takes chunks")

    def _resolve_solver(self, problem):
        return ExactOfNu(nu=check_nu(self))

    def _solve(self, X, y, examples, task, *others, **more):
        if y.ndim == 2:
            raise ValueError(
                "NuSVC takes one class for each row, found an indicator matrix y: SVC takes several labels"
            )
        fit = super()._solve(X, y, examples, task, *others, **more)
        if fit.solved is not None:
            factors = fit.solved.task.pair_factors()
            found: Any = fit.solved.C * factors if len(factors) else fit.solved.C
            self.C_ = found
        return fit

    def _certify(self, *problem):
        _check_kept(self, "C_", "C")
        return super()._certify(*problem)

    def _task(self, or_scores=False):
        factors: Any = getattr(self, "C_", 1.0)
        if np.ndim(factors):
            return tasks.OneVsOne(len(self.classes_), factors=tuple(factors))
        return super()._task(or_scores)


@with_shared_parameters
class NuSVR(SVR):
    """Kernel regression with ν in place of ε, a drop-in replacement for `sklearn.svm.NuSVR`.

    At most the share ν of the rows (by weight) lies outside of the tube, and at least that share are support vectors.
    The model is that of `SVR` with the ε at which the dual variables add up to this share; ``epsilon_`` is that ε.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1].
    C : float, default=1.0
        Weight of one row's loss, as in LIBSVM and scikit-learn.
    kernel, degree
    gamma : {"scale", "auto"}, float or array of shape (n_features,), default="scale"
        "scale": 1 / (n_features · X.var()); a row of weight 2 counts twice. "auto": 1 / n_features. An array: one gamma
        per feature, for RBF and other kernels of x - z.
    coef0, shrinking, tol, cache_size, verbose, max_iter, random_state, max_seconds, precision, memory_limit, n_jobs
    warm_start

    Attributes
    ----------
    epsilon_ : float
        The ε of `SVR` that has this ν.
    n_basis_, basis_vectors_, basis_coef_, intercept_, support_, support_vectors_, dual_coef_
    n_support_ : ndarray of shape (1,)
        Number of support vectors.
    n_iter_ : int
        Working sets and passes over all rows.
    coef_, fit_status_, shape_fit_
    objective_, lower_bound_
        Of `SVR` with ``epsilon_``.
    gap_, status_, history_, n_kernel_evals_, model_, kernel_, solver_, precision_, C_

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett: New Support Vector Algorithms, Neural Computation 2000.
    Chang, Lin: Training ν-Support Vector Regression: Theory and Algorithms, Neural Computation 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import NuSVR
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> reg = NuSVR(nu=0.1, gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(reg.predict([[1.0]])[0] - np.sin(1.0)) < 0.02)
    True
    """

    # What the problem has and the user does not choose.
    solver, max_basis, intercept, loss, quantile = "exact", None, "free", "epsilon_insensitive", 0.5
    _takes_targets, _decisive = False, ()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def __init__(
        self, *, nu=0.5, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, shrinking=True, tol=1e-3,
        cache_size=200, verbose=False, max_iter=-1, random_state=None, max_seconds=None, precision="auto",
        memory_limit=2000, n_jobs=None, warm_start=False,
    ):  # fmt: skip
        self.nu, self.C, self.kernel, self.degree, self.gamma, self.coef0 = nu, C, kernel, degree, gamma, coef0
        self.shrinking, self.tol, self.cache_size, self.verbose = shrinking, tol, cache_size, verbose
        self.max_iter, self.random_state, self.max_seconds, self.precision = (
            max_iter, random_state, max_seconds, precision,
        )  # fmt: skip
        self.memory_limit, self.n_jobs, self.warm_start = memory_limit, n_jobs, warm_start

    @property
    def epsilon(self):
        """What `SVR` has in place of ``nu``: the ε that was found, 0 before."""
        return getattr(self, "epsilon_", 0.0)

    @property
    def partial_fit(self):
        """There is none: ν is a share of all rows."""
        raise AttributeError("NuSVR has no partial_fit, as nu is a share of all rows: SVR(solver='bsgd') takes chunks")

    def _resolve_solver(self, problem):
        return ExactOfNu(nu=check_nu(self))

    def _solve(self, *rows, **more):
        fit = super()._solve(*rows, **more)
        if fit.solved is not None:
            task: Any = fit.solved.task
            self.epsilon_ = task.epsilon
        return fit

    def _certify(self, *problem):
        _check_kept(self, "epsilon_", "epsilon")
        return super()._certify(*problem)


def _check_kept(estimator, name, what):
    """Raise a ValueError if a model does not know what its ν stands for."""
    if not hasattr(estimator, name):
        cls = type(estimator).__name__
        raise ValueError(
            f"a certificate is for one {what}, and scikit-learn's {cls}, from which this model was made, does not keep "
            f"the {what} that nu={estimator.nu!r} stands for: give compress a {cls} that slimsvm has trained"
        )
