"""Features as normal deviates of their ranks, so that long tails and steps no longer set a kernel's distances."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh
from slimsvm.estimators._shared.validation import check_at_least, checked_features

Array = np.ndarray


@with_shared_parameters
class NormalRanks(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Replace each feature by the normal deviate of its rank; equal values share the mean of their ranks.

    A value that a share p of the training rows lie below, with half of those equal to it, becomes Φ⁻¹(p), where Φ is
    the distribution function of a standard normal variable. Between the values of the training rows the function is
    linear, and beyond them constant. Like trees, the result depends on the order of the values alone.

    Use it before an SVM for tables whose features have long tails, steps, or many equal values. Features are
    not to be standardised afterwards: one that is equal in nearly all rows has a small variance, and is meant to have
    little weight. (scikit-learn's ``QuantileTransformer`` moves all rows that have a feature's least value, often 0, to
    -5.2 instead of to the mean of their ranks.)

    Parameters
    ----------
    n_values : int, default=1000
        Values of a feature that are kept, at least 2. Of a feature with more distinct values so many are kept, at equal
        distances in their order.

    Attributes
    ----------
    values_ : list of ndarrays of shape (n_kept,)
        For each feature its kept values, ascending.
    deviates_ : list of float64 ndarrays of shape (n_kept,)
        What they become.
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
        self.values_, self.deviates_ = [], []
        for column in X.T:
            values, counts = np.unique(column, return_counts=True)
            below = np.cumsum(counts) - 0.5 * counts
            if len(values) > self.n_values:
                kept = np.unique(np.linspace(0, len(values) - 1, self.n_values).round().astype(np.int64))
                values, below = values[kept], below[kept]
            self.values_.append(values)
            self.deviates_.append(ndtri(below / len(column)))
        return self

    def transform(self, X):
        """Replace the features."""
        check_is_fitted(self)
        X = checked_features(self, X, reset=False)
        ranks = np.empty(X.shape, X.dtype)
        for feature, (values, deviates) in enumerate(zip(self.values_, self.deviates_, strict=True)):
            ranks[:, feature] = np.interp(X[:, feature], values, deviates)
        return ranks
