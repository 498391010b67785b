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
from slimsvm.tasks import OneVsOne

Array = np.ndarray


def pair_scores(scores: Array, n_classes: int, shape: str) -> Array:
    """What scikit-learn's decision function returns, of scores for each pair that are positive for the lower class."""
    return scores if shape == "ovo" else _ovr_decision_function(scores < 0, -scores, n_classes)


def pair_labels(scores: Array, n_classes: int, shape: str, break_ties: bool) -> Array:
    """Codes of the classes with most votes, or with ``break_ties`` of the largest decision value."""
    if not break_ties:
        return OneVsOne(n_classes).decode(scores, np.zeros(0))
    if shape == "ovo":
        raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
    return np.argmax(pair_scores(scores, n_classes, shape), axis=1)


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
        return pair_scores(scores, len(self.classes_), self.decision_function_shape)

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
        return self.classes_[OneVsOne(len(self.classes_)).decode(scores, np.zeros(0))]

    def _scores(self, X: Any) -> Array:
        if not hasattr(self, "model_"):
            raise NotFittedError("a PairwiseSVC comes from slimsvm.compress: this one has no model")
        X = check_array(X, accept_sparse="csr", dtype="numeric", ensure_all_finite=False)
        check_finite(X)
        return self.model_.scores(X)
