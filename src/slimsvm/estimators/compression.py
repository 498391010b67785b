"""Compression: a fitted model of few vectors in place of a fitted model of many."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import svm
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from slimsvm.bases.reduced_set import Reduced, reduce_model
from slimsvm.estimators._shared.fitted import pairs_of_table
from slimsvm.estimators._shared.input_checks import check_finite, has_log_odds
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.estimators.nu import NuSVC, NuSVR
from slimsvm.estimators.one_class_svm import OneClassSVM
from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR
from slimsvm.kernels import get_kernel
from slimsvm.model import KernelExpansion, columns_between
from slimsvm.rows import as_csr, is_sparse
from slimsvm.sparse_parts import check_sparse

Array = np.ndarray

SKLEARN_KERNELS = ("rbf", "poly", "linear", "sigmoid")
# scikit-learn's estimators, those that are taken for them, and the parameters that both have with the same meaning.
OF_SKLEARN: dict[type, type] = {
    svm.SVC: SVC, svm.NuSVC: NuSVC, svm.SVR: SVR, svm.NuSVR: NuSVR, svm.OneClassSVM: OneClassSVM,
}  # fmt: skip
SHARED = {
    "C", "nu", "epsilon", "kernel", "degree", "coef0", "tol", "shrinking", "cache_size", "class_weight",
    "decision_function_shape", "break_ties",
}  # fmt: skip
# What a fitted estimator keeps of the training rows in its model, and of the chunks it goes on from.
OF_ROWS = ("_support", "_state", "_stream", "_stream_parts")


@dataclass(frozen=True)
class Compression:
    """A compressed model and its distance from the original.

    Parameters
    ----------
    n_basis_before, n_basis : int
        Numbers of vectors before and after.
    residual_norm, norm : float
        ‖w − ŵ‖ and ‖w‖, without intercepts; NaN for the sigmoid kernel, which is not an inner product.
    score_error : float or None
        Root mean squared difference of the scores over the rows ``X``; None without rows.
    """

    n_basis_before: int
    n_basis: int
    residual_norm: float
    norm: float
    score_error: float | None


# Most of its lines are the docstring.
def compress(
    model,
    max_basis=100,
    X=None,
    *,
    preimage="auto",
    max_iter="auto",
    random_state=None,
    n_jobs=None,
    return_report=False,
):
    """Replace the vectors of a fitted model by fewer ones, with as little change of the model as possible.

    Without rows ``X`` the new function ŵ is the closest to w in the kernel's own norm. With rows it is the one whose
    scores on these rows differ least. That is usually much closer to the old predictions, so give rows if you have some
    that are like the rows to predict. No labels are needed. If you have labels, train a small model instead
    (`Refine`); that is better.

    Vectors are chosen one after the other as preimages of the part that the others leave (Schölkopf et al. 1999). Then
    L-BFGS moves them together. Coefficients are always the best ones for the vectors. Intercepts do not change.

    Parameters
    ----------
    model : KernelExpansion, or a fitted estimator
        A model of slimsvm, or an estimator of `sklearn.svm` with kernel "rbf", "poly", "linear" or "sigmoid".
    max_basis : int, default=100
        Largest number of vectors of the new model. A model that has no more is returned unchanged, except that equal
        vectors are merged.
    X : array-like or sparse matrix of shape (n_samples, n_features), or None, default=None
        Rows on which the scores should agree.
    preimage : {"auto", "fixed-point", "gradient", "training-rows"}, default="auto"
        How vectors are found, as in `CPSP`; "training-rows" chooses among the model's own vectors, for any kernel.
        "auto": fixed-point for RBF, gradient for polynomial and linear kernels, training-rows for others. The sigmoid
        kernel starts from the vectors with the largest coefficients.
    max_iter : int or "auto", default="auto"
        Steps of L-BFGS on all vectors together; 0 does not move them. "auto": 100, and 0 for kernels
        without a derivative. Vectors that are moved are dense, even if the model's are sparse.
    random_state : int, RandomState or None, default=None
    n_jobs : int or None, default=None
        Threads; None takes all cores. The result does not depend on it.
    return_report : bool, default=False
        Whether to return a `Compression` too.

    Returns
    -------
    smaller : the same kind as ``model``
        A KernelExpansion for a KernelExpansion; a fitted estimator of the same class for one of slimsvm. For one of
        scikit-learn it is the fitted estimator of slimsvm that has its name, in which the functions of all pairs of
        classes share one basis. Estimators have the report as ``compression_``; their ``status_`` is "compressed", and
        their ``objective_`` is NaN because y is not known.
    report : Compression
        If ``return_report``.

    Raises
    ------
    TypeError
        The model is none of these.
    ValueError
        A parameter is out of range, or does not fit the kernel; the message says which.
    NotFittedError
        The estimator is not fitted.

    References
    ----------
    Burges: Simplified Support Vector Decision Rules, ICML 1996.
    Schölkopf, Mika, Burges, Knirsch, Müller, Rätsch, Smola: Input Space versus Feature Space in Kernel-Based Methods,
    IEEE Transactions on Neural Networks, 1999.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> import slimsvm
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> large = SVC().fit(scale(X), y)
    >>> small = slimsvm.compress(large, max_basis=5, X=scale(X), random_state=0)
    >>> small.n_basis_, bool(abs(small.score(scale(X), y) - large.score(scale(X), y)) < 0.02)
    (5, True)
    """
    if isinstance(max_basis, bool) or not isinstance(max_basis, (int, np.integer)) or max_basis < 1:
        raise ValueError(f"max_basis must be a positive integer, found {max_basis!r}")
    is_auto = isinstance(max_iter, str) and max_iter == "auto"
    if not is_auto and (isinstance(max_iter, bool) or not isinstance(max_iter, (int, np.integer)) or max_iter < 0):
        raise ValueError(f"max_iter must be an integer >= 0 or 'auto', found {max_iter!r}")
    expansion = _expansion(model)
    rows = None if X is None else _check_rows(X, model, expansion)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    columns = columns_between(expansion, *([] if rows is None else [rows]))
    if columns is not None:
        expansion = replace(expansion, basis=columns.narrow(expansion.basis))
        rows = None if rows is None else columns.narrow(rows)
    found = reduce_model(expansion, int(max_basis), rows, preimage=preimage, max_iter=max_iter, rng=rng, n_jobs=n_jobs)
    report = Compression(expansion.n_basis, found.model.n_basis, found.residual_norm, found.norm, found.score_error)
    if columns is not None:
        found = replace(found, model=replace(found.model, basis=columns.widen(found.model.basis)))
    smaller: Any = found.model
    if not isinstance(model, KernelExpansion):
        smaller = copy.copy(model) if isinstance(model, KernelEstimator) else _of_sklearn(model, expansion)
        if not has_log_odds(smaller):
            vars(smaller).pop("calibration_", None)
        for name in ("guarantee_", "nonconformity_", "nonconformity_classes_"):
            vars(smaller).pop(name, None)  # of the larger model's scores
        _replace_model(smaller, found, report)
    return (smaller, report) if return_report else smaller


def _expansion(model: Any) -> KernelExpansion:
    """The kernel expansion of any model that `compress` takes."""
    if isinstance(model, KernelExpansion):
        return model
    if isinstance(model, KernelEstimator):
        check_is_fitted(model, "model_")
        return model.model_
    if not any(isinstance(model, theirs) for theirs in OF_SKLEARN):
        names = ", ".join(theirs.__name__ for theirs in OF_SKLEARN)
        raise TypeError(
            f"model must be a KernelExpansion, a fitted estimator of slimsvm, or one of scikit-learn's {names}; found "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    if model.kernel not in SKLEARN_KERNELS:
        raise ValueError(
            f"of scikit-learn's {type(model).__name__} the kernels {', '.join(map(repr, SKLEARN_KERNELS))} "
            f"are accepted, found kernel={model.kernel!r}"
        )
    kernel = get_kernel(model.kernel, gamma=model._gamma, degree=model.degree, coef0=model.coef0)
    dual = np.asarray(model.dual_coef_.toarray() if is_sparse(model.dual_coef_) else model.dual_coef_)
    coef, intercept = dual.T, np.ravel(model.intercept_)
    if is_classifier(model) and len(model.classes_) > 2:
        coef = pairs_of_table(dual, np.repeat(np.arange(len(model.classes_)), model.n_support_))
    vectors = as_csr(model.support_vectors_) if is_sparse(model.support_vectors_) else model.support_vectors_
    return KernelExpansion(vectors, coef, intercept, np.zeros(0), kernel, "float64")


def _of_sklearn(model: Any, expansion: KernelExpansion) -> Any:
    """An estimator of ours for one of scikit-learn's, without its model."""
    smaller: Any = next(ours for theirs, ours in OF_SKLEARN.items() if isinstance(model, theirs))()
    params = {name: value for name, value in model.get_params(deep=False).items() if name in SHARED}
    params |= {"gamma": float(model._gamma), "intercept": "free", "solver": "exact"}
    own = smaller.get_params(deep=False)
    smaller.set_params(**{name: value for name, value in params.items() if name in own})
    for name in ("classes_", "class_weight_", "n_features_in_", "feature_names_in_"):
        if hasattr(model, name):
            setattr(smaller, name, getattr(model, name))
    smaller.lower_bound_, smaller.intercept_kind_ = None, "free"
    if is_classifier(model):
        smaller.multi_class_ = "ovo"
    smaller.kernel_ = expansion.kernel
    return smaller


def _replace_model(estimator: Any, found: Reduced, report: Compression) -> None:
    """Replace an estimator's model by the smaller one, and the attributes that depend on it."""
    for name in OF_ROWS:
        vars(estimator).pop(name, None)
    model = replace(found.model, coef=np.ascontiguousarray(found.model.coef))
    estimator.model_, estimator.compression_ = model, report
    estimator.basis_vectors_, estimator.basis_coef_ = model.basis, model.coef
    estimator.n_basis_, estimator.intercept_, estimator.precision_ = model.n_basis, model.intercept, model.dtype
    estimator.objective_, estimator.status_ = float("nan"), "compressed"
    estimator.history_, estimator.n_iter_ = found.history, estimator._iterations(found.n_iter, found.history)
    estimator.n_kernel_evals_ = found.kernel_evals
    estimator.counters_ = {"kernel_evals": found.kernel_evals}


def _check_rows(X: Any, model: Any, expansion: KernelExpansion) -> Any:
    """Check rows; return them as an array or CSR with the model's number of features."""
    if isinstance(model, KernelEstimator):
        rows = model._check_X(X, reset=False)
    else:
        check_sparse(X)
        rows = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        check_finite(rows)
    if rows.shape[1] != expansion.basis.shape[1]:
        raise ValueError(f"X has {rows.shape[1]} features, the model has {expansion.basis.shape[1]}")
    return as_csr(rows) if is_sparse(rows) else rows
