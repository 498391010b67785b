"""Transformers of features: axes learned from the gradients of an SVM's scores, and normal deviates of ranks."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from slimsvm.core.threads import one_blas_thread
from slimsvm.deploy.steps import Ranked, Turned
from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh
from slimsvm.estimators._shared.input_checks import check_at_least, checked_features
from slimsvm.estimators._shared.validating import evenly, shuffled_by_kind
from slimsvm.estimators.svc import SVC
from slimsvm.kernels import FoldedKernel, kernels_with
from slimsvm.kernels.outlying_rows import Bulk
from slimsvm.model import KernelExpansion
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.tables.splines import normal_deviates

Array = np.ndarray

# Kernel values that are computed at a time.
BLOCK_VALUES = 1 << 22

# Squared derivatives are not taken for smaller than this times the largest one.
LEAST = 1e-12


@with_shared_parameters
class LearnedAxes(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Rotate the features to the axes along which the labels change, and stretch axes along which they change fast.

    An SVM is trained on some of the rows. Its scores have a gradient at each of these rows; the eigenvectors of the
    gradients' mean outer product are the axes, and the root of an eigenvalue is how much the scores change along it.

    Use it before an SVM if combinations of features, not single features, separate the classes.
    ``gamma="learn"`` finds one scale for each feature; after this step it finds one for each axis, and both
    together are a full metric. Features should have the same unit, or be standardised first. If single features
    separate the classes, errors can grow: compare both (see the examples).

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of slimsvm, or None, default=None
        The estimator whose scores are differentiated; it is cloned. None: the exact SVM in learned scales,
        ``SVC(kernel="matern32", gamma="learn", solver="exact", C=5)``. For regression give an `SVR`.
    max_rows : int, default=5000
        Largest number of rows that it is trained on, at least 2. Each class keeps its share.
    power : float, default=0.25
        An axis is stretched by this power of the scores' root mean squared derivative along it, from 0 (only
        rotation) to 1.
    shrinkage : float, default=0.1
        Correlations between derivatives along features are multiplied by one minus this, from 0 to 1 (axes are the
        features). Correlations are noisy if there are few rows.
    random_state : int, RandomState or None, default=None
        Draws the rows, and is passed to the estimator if ``estimator`` is None.
    n_jobs : int or None, default=None
        Number of threads; None uses all cores. The result does not depend on it. Used for the gradients, and for the
        estimator if ``estimator`` is None.

    Attributes
    ----------
    components_ : float64 ndarray of shape (n_features, n_features)
        Each row is an axis, multiplied by its stretch; the axis along which scores change most comes first. All are
        scaled so that the new features have a mean variance of 1 on the drawn rows, without those far from all others.
    derivatives_ : float64 ndarray of shape (n_features,)
        Root mean squared derivatives of the scores along the axes, after shrinkage.
    mean_ : float64 ndarray of shape (n_features,)
        Mean of the training rows, without those far from all others.
    estimator_ : the fitted estimator
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    References
    ----------
    Trivedi, Wang, Kpotufe, Shakhnarovich: A Consistent Estimator of the Expected Gradient Outerproduct, UAI 2014.
    Radhakrishnan, Beaglehole, Pandit, Belkin: Mechanism for feature learning in neural networks and
    backpropagation-free machine learning models, Science 2024 (recursive feature machines, Algorithm 1: one iteration).

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from slimsvm import SVC, LearnedAxes
    >>> X, y = make_classification(600, 10, n_informative=8, n_redundant=0, random_state=1)
    >>> clf = SVC(kernel="matern32", gamma="learn", solver="exact", C=5, random_state=0)
    >>> pipeline = make_pipeline(LearnedAxes(random_state=0), clf)
    >>> search = GridSearchCV(pipeline, {"learnedaxes": ["passthrough", LearnedAxes(random_state=0)]}, cv=3)
    >>> without, turned = search.fit(X, y).cv_results_["mean_test_score"]
    >>> bool(turned > without)
    True
    """

    def __init__(self, estimator=None, *, max_rows=5000, power=0.25, shrinkage=0.1, random_state=None, n_jobs=None):
        self.estimator, self.max_rows, self.power, self.shrinkage = estimator, max_rows, power, shrinkage
        self.random_state, self.n_jobs = random_state, n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self):
        """The number of transformed features, for their names."""
        return len(self.components_)

    @afresh
    def fit(self, X, y):
        """Train the estimator and find the axes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels, or numbers to predict where ``estimator`` takes these.

        Returns
        -------
        LearnedAxes
            The transformer itself.

        Raises
        ------
        ValueError
            A parameter is out of range, X has NaN, infinite values or no numbers, y has a single class, or the
            estimator's kernel has no derivative; the message names it.
        TypeError
            ``estimator`` is no estimator of slimsvm.
        KeyboardInterrupt
            The estimator's fit was interrupted.
        """
        check_at_least("max_rows", self.max_rows, 2)
        for name, value in (("power", self.power), ("shrinkage", self.shrinkage)):
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, found {value!r}")
        X, y = checked_features(self, X, y, reset=True)
        kinds = np.unique(y, return_inverse=True)[1]
        order = shuffled_by_kind(kinds, check_random_state(self.random_state))
        drawn = np.sort(order[evenly(len(order), self.max_rows)])
        X_drawn = X[drawn]
        estimator = self._new_estimator().fit(X_drawn, y[drawn])
        if getattr(estimator, "status_", None) == Status.INTERRUPTED:
            raise KeyboardInterrupt
        near = Bulk.of(as_rows(X)).holds(X)
        mean = (X if near.all() else X[near]).mean(axis=0, dtype=np.float64)
        with one_blas_thread():
            outer = outer_product_of_gradients(*model_of(estimator), X_drawn, self.n_jobs)
            axes, derivatives = principal_axes(outer, self.shrinkage)
            stretched = axes * (derivatives ** float(self.power))[:, None]
            spread = np.sqrt(((X_drawn[near[drawn]] - mean) @ stretched.T).var(axis=0).mean())
        self.components_ = stretched / spread if spread > 0 else stretched
        self.derivatives_, self.mean_, self.estimator_ = derivatives, mean, estimator
        return self

    def transform(self, X):
        """Features along the axes."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False)
        with one_blas_thread():
            return (X - self.mean_.astype(X.dtype)) @ self.components_.T.astype(X.dtype)

    def _as_step(self):
        """The step that a file has of it."""
        return Turned(self.mean_, self.components_)

    @classmethod
    def _from_step(cls, step):
        """The transformer that a file describes; derivatives and the estimator are not in it."""
        axes = cls()
        axes.mean_, axes.components_ = step.mean, step.axes
        return axes

    def _new_estimator(self):
        """The estimator to be trained."""
        if self.estimator is not None:
            return clone(self.estimator)
        return SVC(
            kernel="matern32", gamma="learn", solver="exact", C=5.0, random_state=self.random_state, n_jobs=self.n_jobs
        )


def model_of(estimator: Any) -> tuple[KernelExpansion, FoldedKernel]:
    """A fitted estimator's model and kernel, if its scores have a gradient."""
    model = getattr(estimator, "model_", None)
    if not isinstance(model, KernelExpansion):
        raise TypeError(f"estimator must be one of slimsvm's SVMs, found {estimator!r}")
    if not (isinstance(model.kernel, FoldedKernel) and model.kernel.has_metric):
        raise ValueError(f"estimator must have kernel={kernels_with('has_metric')}, found {model.kernel!r}")
    return model, model.kernel


def outer_product_of_gradients(
    model: KernelExpansion,
    kernel: FoldedKernel,
    X: Array,
    n_jobs: int | None = None,
    block_values: int = BLOCK_VALUES,
) -> Array:
    """The mean over rows of Σ_c ∇f_c ∇f_cᵀ, float64 (d, d), for the scores f_c of a model.

    Its kernel has a metric: k is a function h of −Σ_f m_f (x_f − b_f)² / 2, and ∇k = h' · m (b − x). The result does
    not depend on ``n_jobs``.
    """
    basis, d = np.asarray(model.basis, np.float64), X.shape[1]
    metric = kernel.folding(d).metric
    total, n_rows = np.zeros((d, d)), max(1, block_values // len(basis))
    for lo in range(0, len(X), n_rows):
        x = X[lo : lo + n_rows].astype(np.float64)
        slopes = kernel.block_with_slopes(basis, x, n_jobs)[1]
        for coef in model.coef.T:
            used = np.flatnonzero(coef)  # of a pair of classes the vectors of two
            pulls = slopes[used].T * coef[used]
            gradients = metric * (pulls @ basis[used] - pulls.sum(axis=1, keepdims=True) * x)
            total += gradients.T @ gradients
    return total / len(X)


def principal_axes(outer: Array, shrinkage: float) -> tuple[Array, Array]:
    """Unit eigenvectors of the matrix whose correlations are shrunk, as rows, and the roots of their eigenvalues.

    From the largest eigenvalue; the entry of largest magnitude in each eigenvector is positive. A matrix of zeros has
    the features as axes, all alike.
    """
    squares = np.diag(outer)
    if not squares.max() > 0:
        return np.eye(len(outer)), np.ones(len(outer))
    shrunk = (1.0 - shrinkage) * outer
    np.fill_diagonal(shrunk, np.maximum(squares, LEAST * squares.max()))
    values, vectors = np.linalg.eigh(shrunk)
    axes = vectors.T[::-1]
    largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=1)[:, None], axis=1)
    return axes * np.sign(largest), np.sqrt(np.maximum(values[::-1], LEAST * values[-1]))


@with_shared_parameters
class NormalRanks(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each feature by the normal deviate of its rank; equal values share the mean of their ranks.

    A value becomes Φ⁻¹(p). Here p is the share of training rows with a smaller value, plus half of the share of those
    with the same value, and Φ is the distribution function of a standard normal variable. Between the values of the
    training rows the function is linear; beyond them it is constant. As with trees, only the order of values counts.

    Use it before an SVM if features have long tails, steps, or many equal values. Do not standardise the features
    afterwards: a feature that is equal in nearly all rows has a small variance, and should have
    little weight. (scikit-learn's ``QuantileTransformer`` moves all rows that have a feature's least value, often 0, to
    -5.2 instead of to the mean of their ranks.)

    Parameters
    ----------
    n_values : int, default=1000
        Largest number of values that are kept per feature, at least 2. If a feature has more distinct values, evenly
        spaced ones of the sorted values are kept.

    Attributes
    ----------
    values_ : list of ndarrays of shape (n_kept,)
        For each feature its kept values, ascending.
    deviates_ : list of float64 ndarrays of shape (n_kept,)
        The normal deviates of these values.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only when X has feature names that are all strings.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from slimsvm import SVC, NormalRanks
    >>> X, y = [[0.0], [0.0], [1.0], [1000.0]], [0, 0, 1, 1]
    >>> NormalRanks().fit_transform(X).ravel().round(2).tolist()
    [-0.67, -0.67, 0.32, 1.15]
    >>> make_pipeline(NormalRanks(), SVC()).fit(X, y).predict([[3.0]]).tolist()
    [1]
    """

    def __init__(self, n_values=1000):
        self.n_values = n_values

    @afresh
    def fit(self, X, y=None):
        """Learn what the values become.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        NormalRanks
            The transformer itself.

        Raises
        ------
        ValueError
            ``n_values`` is out of range, or X has NaN, infinite values or no numbers; the message names it.
        """
        check_at_least("n_values", self.n_values, 2)
        X = checked_features(self, X, reset=True)
        found = [normal_deviates(column, None, self.n_values) for column in X.T]
        self.values_, self.deviates_ = [values for values, _ in found], [deviates for _, deviates in found]
        return self

    def transform(self, X):
        """Replace the features."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False)
        ranks = np.empty(X.shape, X.dtype)
        for feature, (values, deviates) in enumerate(zip(self.values_, self.deviates_, strict=True)):
            ranks[:, feature] = np.interp(X[:, feature], values, deviates)
        return ranks

    def _as_step(self):
        """The step that a file has of it."""
        return Ranked(tuple(self.values_), tuple(self.deviates_))

    @classmethod
    def _from_step(cls, step):
        """The transformer that a file describes."""
        ranks = cls(n_values=max(2, *map(len, step.values)))
        ranks.values_, ranks.deviates_ = list(step.values), list(step.deviates)
        return ranks
