"""Support vector regression with ν in place of ε."""

from __future__ import annotations

from typing import Any

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.exact_of_nu import ExactOfNu, check_nu
from slimsvm.estimators.svr import SVR


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
        Iterations of the last fit, with ``epsilon_``.
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
    _takes_targets = False

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
