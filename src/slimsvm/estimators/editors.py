"""Editors of training sets with the interface of imbalanced-learn's samplers: `fit_resample`, `sample_indices_`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils import _safe_indexing, check_random_state

from slimsvm.docstrings import described
from slimsvm.editing import condense, edited_nearest_neighbours, multi_edit
from slimsvm.estimators._shared.around_fit import afresh
from slimsvm.estimators._shared.input_checks import (
    check_at_least,
    check_classes,
    check_option,
    checked_features,
)
from slimsvm.estimators.cross_trained_svc import CrossTrainedSVC
from slimsvm.rows import as_csr, is_sparse

Array = np.ndarray

# The largest value of X.
MOST = 1e150
# Whether class c loses rows, by the numbers of the smallest and the largest class.
TARGETS: dict[str, Callable[[int, int, int], bool]] = {
    "all": lambda c, smallest, largest: True,
    "auto": lambda c, smallest, largest: c != smallest,
    "not minority": lambda c, smallest, largest: c != smallest,
    "not majority": lambda c, smallest, largest: c != largest,
    "majority": lambda c, smallest, largest: c == largest,
}


class Editor(OneToOneFeatureMixin, BaseEstimator):
    """Base of the editors: checks X and y, asks which rows stay, and returns them.

    An editor is a step of imbalanced-learn's ``Pipeline``, before any classifier.

    Parameters
    ----------
    sampling_strategy : {"all", "auto", "not minority", "not majority", "majority"}, list or callable, default="all"
        The classes that may lose rows; rows of others all stay, and vote. "auto", the default of imbalanced-learn, is
        "not minority": all but the smallest class. A list names the classes; a function gets y and returns them.
    n_jobs : int or None, default=None
        Threads; None takes all cores. The result is the same for any number.

    Attributes
    ----------
    sample_indices_ : int64 ndarray
        Positions of the rows that stayed, ascending.
    sampling_strategy_ : dict
        Its keys are the classes that may lose rows; its values, as in imbalanced-learn, the size of the smallest class.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    _estimator_type = "sampler"
    sampling_strategy: Any = "all"
    sample_indices_: Array
    sampling_strategy_: dict[Any, int]
    classes_: Array

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = self._estimator_type
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @afresh
    def fit(self, X, y):
        """Check X, y and ``sampling_strategy``, and choose nothing; `fit_resample` does it all.

        Parameters
        ----------
        X, y
            As in `fit_resample`.

        Returns
        -------
        Editor
            The editor itself.
        """
        self._checked(X, y)
        return self

    @afresh
    def fit_resample(self, X, y):
        """Choose the rows that stay.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Any real dtype.
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings.

        Returns
        -------
        X_resampled : the rows of X that stayed
            A data frame if X is one, CSR if X is sparse, otherwise an array; with the dtype of X.
        y_resampled : their labels
            A series if y is one, otherwise an array.

        Raises
        ------
        ValueError
            A parameter or a value in X or y is out of range; the message names it.
        """
        given, labels = X, y
        X, y, codes, may_go = self._checked(X, y)
        self.sample_indices_ = self._select(X, codes, may_go)
        lost = np.setdiff1d(codes, codes[self.sample_indices_])
        if len(lost):
            warnings.warn(
                f"{type(self).__name__} discarded all rows of class {self.classes_[lost[0]]!s}", UserWarning, 2
            )
        return _rows_of(given, X, self.sample_indices_), _rows_of(labels, y, self.sample_indices_)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array, Array, Array]:
        """X, y, the classes' numbers, and which rows may go."""
        X, y = checked_features(self, X, y, reset=True, accept_sparse="csr", dtype="numeric")
        _check_range(X)
        check_classes(y)
        X = as_csr(X) if is_sparse(X) else X
        self.classes_, codes = np.unique(y, return_inverse=True)
        targeted = _targeted(self.sampling_strategy, self.classes_, codes, y)
        smallest = int(np.bincount(codes).min())
        self.sampling_strategy_ = {c: smallest for c, is_meant in zip(self.classes_.tolist(), targeted) if is_meant}
        return X, y, codes, targeted[codes]

    def _select(self, X: Any, codes: Array, may_go: Array) -> Array:
        """Positions of the rows that stay, ascending; rows that may not go stay."""
        raise TypeError(f"{type(self).__name__} must define _select(X, codes, may_go)")


def _targeted(strategy: Any, classes: Array, codes: Array, y: Array) -> Array:
    """A mask of the classes that a ``sampling_strategy`` means."""
    accepted = f"{', '.join(map(repr, TARGETS))}, a list of classes or a function of y that returns one"
    if callable(strategy):
        strategy = list(strategy(y))
    if isinstance(strategy, str) and strategy in TARGETS:
        sizes = np.bincount(codes)
        smallest, largest = int(sizes.argmin()), int(sizes.argmax())
        return np.array([TARGETS[strategy](c, smallest, largest) for c in range(len(classes))])
    if not isinstance(strategy, list | tuple | np.ndarray):
        raise ValueError(f"sampling_strategy must be {accepted}, found {strategy!r}")
    known = classes.tolist()
    for c in strategy:
        if c not in known:
            raise ValueError(f"sampling_strategy holds the class {c!r}, found only {known} in y")
    return np.array([c in list(strategy) for c in known])


def _check_range(X: Any) -> None:
    """Squared distances of rows must be finite."""
    values = X.data if is_sparse(X) else X
    if values.dtype.kind == "f" and values.size and (largest := float(np.abs(values).max())) > MOST:
        raise ValueError(f"X contains {largest:.3g} (in absolute value); beyond {MOST:.0e} distances of rows overflow")


def _rows_of(given: Any, checked: Any, index: Array) -> Any:
    """Rows in the container they came in, where that is a data frame or a series."""
    is_frame = hasattr(given, "iloc") or hasattr(given, "to_pandas")
    return _safe_indexing(given, index) if is_frame else checked[index]


def generator(random_state: Any) -> np.random.Generator:
    """A random generator, the same for the same ``random_state`` number."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


@described(Editor.__doc__)
class EditedNN(Editor):
    """Remove the rows whose nearest neighbours belong to another class.

    Parameters
    ----------
    n_neighbors : int or estimator, default=3
        Number of other rows that vote. Or an object with ``kneighbors``, such as `sklearn.neighbors.NearestNeighbors`
        with a metric of its own, which finds them; as in imbalanced-learn a row counts as its own neighbour there, so
        that the object for three others has ``n_neighbors=4``.
    n_jobs
    kind_sel : {"mode", "all"}, default="mode"
        "mode": a row stays unless another class has more votes than its own (Wilson). "all": it stays if all its
        neighbours have its class, the default of imbalanced-learn.
    sampling_strategy

    References
    ----------
    Wilson: Asymptotic Properties of Nearest Neighbor Rules Using Edited Data, IEEE Trans. SMC 1972.

    Examples
    --------
    >>> from slimsvm import EditedNN
    >>> X = [[0.0], [0.1], [0.2], [0.25], [5.0], [5.1], [5.2], [5.3]]
    >>> X_kept, y_kept = EditedNN().fit_resample(X, [0, 0, 0, 1, 1, 1, 1, 1])
    >>> X_kept.ravel().tolist()
    [0.0, 0.1, 0.2, 5.0, 5.1, 5.2, 5.3]
    """

    def __init__(self, n_neighbors=3, n_jobs=None, *, kind_sel="mode", sampling_strategy="all"):
        self.n_neighbors, self.n_jobs, self.kind_sel = n_neighbors, n_jobs, kind_sel
        self.sampling_strategy = sampling_strategy

    def _select(self, X, codes, may_go):
        check_option("kind_sel", self.kind_sel, ("mode", "all"))
        k, index = self.n_neighbors, None
        if hasattr(k, "kneighbors"):
            k, index = k.n_neighbors - 1, k
        k = check_at_least("n_neighbors", k, 1)
        stays = edited_nearest_neighbours(X, codes, k, self.n_jobs, self.kind_sel == "all", index)
        return np.union1d(stays, np.flatnonzero(~may_go))


@described(Editor.__doc__)
class MultiEdit(Editor):
    """Repeatedly remove rows whose nearest neighbour among other rows has another class, until none is found.

    Parameters
    ----------
    n_splits : int, default=3
        Number of parts into which the rows are divided; the next part judges each part.
    n_stable : int, default=3
        The editing ends after this many rounds without a removed row.
    random_state : int, RandomState, Generator or None, default=None
        For the divisions.
    n_jobs
    sampling_strategy

    Warns
    -----
    UserWarning
        All rows of a class were removed.

    References
    ----------
    Devijver, Kittler: Pattern Recognition: A Statistical Approach, 1982, section 3.11.
    Bakır, Bottou, Weston: Breaking SVM Complexity with Cross-Training, NIPS 2004, Algorithm 2.

    Examples
    --------
    >>> from slimsvm import MultiEdit
    >>> from slimsvm.datasets import two_gaussians
    >>> X, y = two_gaussians(500, distance=2.0, random_state=0)
    >>> X_kept, y_kept = MultiEdit(random_state=0).fit_resample(X, y)
    >>> bool(((X_kept.sum(axis=1) > 0) == (y_kept > 0)).mean() > 0.98)
    True
    """

    def __init__(self, n_splits=3, n_stable=3, random_state=None, n_jobs=None, *, sampling_strategy="all"):
        self.n_splits, self.n_stable, self.random_state, self.n_jobs = n_splits, n_stable, random_state, n_jobs
        self.sampling_strategy = sampling_strategy

    def _select(self, X, codes, may_go):
        n_splits, n_stable = check_at_least("n_splits", self.n_splits, 2), check_at_least("n_stable", self.n_stable, 1)
        return multi_edit(X, codes, n_splits, n_stable, generator(self.random_state), self.n_jobs, may_go)


@described(Editor.__doc__)
class Condense(Editor):
    """Keep a subset of the rows whose nearest neighbours classify all other rows correctly.

    It removes rows amid their own class. Rows near a boundary and outliers stay, so edit first (`EditedNN`,
    `MultiEdit`).

    The rule is Hart's: passes over all rows, until one adds none. The ``CondensedNearestNeighbour`` of imbalanced-learn
    takes each class but the smallest alone, against all rows of the smallest, and goes through it once: it keeps other
    rows, whose nearest neighbours may classify some of the others wrongly.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None, default=None
        For the order in which rows are processed; the subset depends on it.
    sampling_strategy

    References
    ----------
    Hart: The Condensed Nearest Neighbor Rule, IEEE Trans. Information Theory 1968.
    Bakır, Bottou, Weston: Breaking SVM Complexity with Cross-Training, NIPS 2004, Algorithm 1.

    Examples
    --------
    >>> from slimsvm import Condense
    >>> from slimsvm.datasets import two_gaussians
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = two_gaussians(500, distance=6.0, random_state=0)
    >>> X_kept, y_kept = Condense(random_state=0).fit_resample(X, y)
    >>> len(y_kept) < 20, KNeighborsClassifier(1).fit(X_kept, y_kept).score(X, y)
    (True, 1.0)
    """

    def __init__(self, random_state=None, *, sampling_strategy="all"):
        self.random_state = random_state
        self.sampling_strategy = sampling_strategy

    def _select(self, X, codes, may_go):
        order = generator(self.random_state).permutation(len(codes))
        return condense(X, codes, order[may_go[order]], np.flatnonzero(~may_go))


@described(Editor.__doc__)
class CrossTraining(Editor):
    """Remove rows on the wrong side for models of random subsets, and rows surely right for all. Two classes.

    This is the first stage of `CrossTrainedSVC`, for any classifier to follow.

    Parameters
    ----------
    C : float or "validate", default="validate"
        Weight of a row's loss for the models. "validate" tries 0.1, 1, … 1000 until there are no fewer errors on rows
        that the models were not trained on. It takes the highest with the fewest errors, within two standard errors.
    kernel, degree, gamma, coef0, n_subsets, subset_size, validation_size, variances, balance
        As in `CrossTrainedSVC`.
    n_jobs : int or None, default=None
        Models trained side by side; None takes all cores. The result is the same for any number.
    random_state : int, RandomState, Generator or None, default=None
        For subsets and validation rows.

    Attributes
    ----------
    sample_indices_
    classes_ : ndarray of shape (2,)
    C_ : float
    margin_mean_, margin_variance_ : ndarray of shape (n_samples,)
        Mean and variance of y f(x) over the models.
    n_features_in_ : int

    References
    ----------
    Bakır, Bottou, Weston: Breaking SVM Complexity with Cross-Training, NIPS 2004, Algorithm 3, steps 1 to 5.

    Examples
    --------
    >>> from slimsvm import CrossTraining
    >>> from slimsvm.datasets import two_gaussians
    >>> from sklearn.svm import SVC
    >>> X, y = two_gaussians(1000, 2, 2.0, random_state=0)
    >>> X_kept, y_kept = CrossTraining(random_state=0).fit_resample(X, y)
    >>> bool(SVC().fit(X_kept, y_kept).n_support_.sum() < 0.7 * SVC().fit(X, y).n_support_.sum())
    True
    """

    def __init__(
        self, *, C="validate", kernel="rbf", degree=3, gamma="scale", coef0=0.0, n_subsets=5, subset_size=None,
        validation_size=None, variances=0.0, balance=True, n_jobs=None, random_state=None,
    ):  # fmt: skip
        self.C, self.kernel, self.degree, self.gamma, self.coef0 = C, kernel, degree, gamma, coef0
        self.n_subsets, self.subset_size, self.validation_size = n_subsets, subset_size, validation_size
        self.variances, self.balance, self.n_jobs, self.random_state = variances, balance, n_jobs, random_state

    def _select(self, X, codes, may_go):
        parameters = self.get_params(deep=False)
        estimator = CrossTrainedSVC(first_C=parameters.pop("C"), C=1.0, **parameters)
        edited = estimator.edit(X, self.classes_[codes])
        self.C_ = edited.first.C
        self.margin_mean_, self.margin_variance_ = edited.mean, edited.variance
        return edited.kept


EDITORS = {"cross-training": CrossTraining, "edited-nn": EditedNN, "multi-edit": MultiEdit, "condense": Condense}
