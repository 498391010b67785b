"""One function for each pair of classes, over one basis."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array
from sklearn.utils.multiclass import _ovr_decision_function

from slimsvm.estimators.validation import check_finite, check_option
from slimsvm.model import KernelExpansion

Array = np.ndarray


class PairwiseSVC(ClassifierMixin, BaseEstimator):
    """A compressed multiclass `sklearn.svm.SVC`: its pairwise functions, over vectors that all of them share.

    Made by `slimsvm.compress`; it has no ``fit``. Predicts as scikit-learn's does, by votes.

    Parameters
    ----------
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        What ``decision_function`` returns.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    model_ : KernelExpansion
        One output for each pair (a, b), a < b, positive for class a.
    n_basis_, basis_vectors_, basis_coef_, intercept_, compression_
        As in estimators that `slimsvm.compress` returns.
    """

    model_: KernelExpansion
    classes_: Array

    def __init__(self, decision_function_shape="ovr"):
        self.decision_function_shape = decision_function_shape

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> Array:
        """Scores, as of scikit-learn's `SVC`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples, n_pairs) with ``decision_function_shape="ovo"``
        """
        check_option("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        scores = self._scores(X)
        if self.decision_function_shape == "ovo":
            return scores
        return _ovr_decision_function(scores < 0, -scores, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Class labels: most votes, ties to the lowest.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        n_classes = len(self.classes_)
        votes, pair = np.zeros((len(scores), n_classes), np.int64), 0
        for a in range(n_classes):
            for b in range(a + 1, n_classes):
                for_a = scores[:, pair] > 0
                votes[:, a] += for_a
                votes[:, b] += ~for_a
                pair += 1
        return self.classes_[np.argmax(votes, axis=1)]

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "model_"):
            raise NotFittedError("a PairwiseSVC comes from slimsvm.compress: this one has no model")
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        check_finite(X)
        return self.model_.scores(X)
