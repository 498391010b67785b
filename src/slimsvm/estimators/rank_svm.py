"""Ranking with kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.metrics import ndcg_score
from sklearn.utils.validation import check_is_fitted

from slimsvm.estimators._shared import with_shared_parameters
from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.input_checks import (
    check_finite,
    check_limit,
    check_option,
    check_sample_weight,
    numbers_of,
)
from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.parts.certificate import Certificate
from slimsvm.rows import check_one_kind, first_missing
from slimsvm.tasks import AveragePrecision, Swaps
from slimsvm.tasks.ranking import Ranking

Array = np.ndarray

LOSSES = {"swaps": Swaps, "average_precision": AveragePrecision}


@with_shared_parameters
class RankSVM(KernelEstimator):
    """Ranking SVM with any kernel: scores that put the rows of every query in the right order.

    Minimises ½‖w‖² + C Σ_queries ω ℓ. For "swaps", ℓ is the mean of max(0, 1 − (f(x_i) − f(x_j))) over the pairs of a
    query's rows in which i should stand above j. For "average_precision" it is the maximum over all rankings of
    1 − AP − (the right ranking's score minus this ranking's score). A query without a pair (one row, or equal labels)
    has no loss.

    Parameters
    ----------
    C : float or "validate", default=1.0
        Weight of one query's loss, which is of the size of 1 whatever the number of its rows. "validate" tries 0.1, 1,
        … 1000, takes the value with the lowest error on a fifth of the queries, which are held out (at least ten must
        have a pair), and trains on all queries with it.
    kernel, degree, gamma, coef0
    loss : {"swaps", "average_precision"}, default="swaps"
        The loss to minimise, which `score` reports as well. For "swaps" labels are grades, any numbers; higher ones
        should stand above. For "average_precision" rows with label > 0 are relevant.
    tol, verbose, max_iter, random_state
    solver
        "refine", "cpsp" and all kinds of cuts can train rankings. There is no intercept, because a constant does not
        change a ranking.
    max_basis : int or None, default=None
        Largest number of learned vectors, for solvers that have such a limit.
    max_seconds, precision, memory_limit, n_jobs, warm_start

    Attributes
    ----------
    n_basis_, basis_vectors_, basis_coef_, objective_, lower_bound_, gap_, status_, history_, model_, C_
    validation_

    References
    ----------
    Joachims: Optimizing Search Engines using Clickthrough Data, KDD 2002.
    Yue, Finley, Radlinski, Joachims: A Support Vector Method for Optimizing Average Precision, SIGIR 2007.
    Mohapatra, Jawahar, Kumar: Efficient Optimization for Average Precision SVM, NIPS 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import RankSVM
    >>> X = np.array([[0.0], [1.0], [2.0], [0.5], [3.0]])
    >>> clf = RankSVM(C=10.0, kernel="linear").fit(X, [1, 2, 3, 0, 1], groups=[7, 7, 7, 8, 8])
    >>> clf.predict([[1.0], [9.0]]).argmax()
    np.int64(1)
    >>> clf.score(X, [1, 2, 3, 0, 1], groups=[7, 7, 7, 8, 8])
    1.0

    For a search by cross-validation, say that the queries are for the estimator too, not only for the splitter:

    >>> from sklearn import config_context
    >>> from sklearn.model_selection import GridSearchCV, GroupKFold
    >>> with config_context(enable_metadata_routing=True):
    ...     estimator = RankSVM().set_fit_request(groups=True).set_score_request(groups=True)
    ...     search = GridSearchCV(estimator, {"C": [1.0, 10.0]}, cv=GroupKFold(2))
    ...     _ = search.fit(np.tile(X, (2, 1)), [1, 2, 3, 0, 1] * 2, groups=[7, 7, 7, 8, 8, 9, 9, 9, 6, 6])
    """

    _y_numeric = True
    _decisive = ("loss",)
    intercept = "none"

    def __init__(
        self, *, C=1.0, kernel="rbf", degree=3, gamma="scale", coef0=0.0, loss="swaps", tol=1e-3, verbose=False,
        max_iter=-1, random_state=None, solver="auto", max_basis=None, max_seconds=None, precision="auto",
        memory_limit=2000, n_jobs=None, warm_start=False,
    ):  # fmt: skip
        self.C, self.kernel, self.degree, self.gamma, self.coef0, self.loss = C, kernel, degree, gamma, coef0, loss
        self.tol, self.verbose, self.max_iter, self.random_state = tol, verbose, max_iter, random_state
        self.solver, self.max_basis, self.max_seconds, self.precision = solver, max_basis, max_seconds, precision
        self.memory_limit, self.n_jobs, self.warm_start = memory_limit, n_jobs, warm_start

    @with_callbacks
    @afresh
    def fit(self, X, y, groups=None, sample_weight=None, qid=None):
        """Train.

        Parameters
        ----------
        X
        y
            Grades, or relevances.
        groups : array-like of shape (n_samples,)
            The query of each row: numbers or strings, in any order. Required; if all rows are one query, give
            ``groups=np.zeros(len(X))``.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights ≥ 0 of the queries' losses, the same for all rows of a query.
        qid : array-like of shape (n_samples,)
            Another name for ``groups``, used by XGBoost and by scikit-learn's readers of LIBSVM text.

        Raises
        ------
        ValueError
            A parameter or a value is invalid, queries are not given, or none of them has two rows of
            different labels.
        """
        check_option("loss", self.loss, tuple(LOSSES))
        groups = _queries_given("fit", groups, qid)
        if np.ndim(y) == 1 and np.asarray(y).dtype.kind in "OU":
            y = numbers_of(y, "OrdinalSVC")
        X, y = self._check_X(X, reset=True, y=y)
        self._solve(*self._problem(X, y, groups, sample_weight))
        return self

    def _problem(self, X: Any, y: Array, groups: Any, sample_weight: Any) -> tuple:
        """Rows in the order of their queries: X, y, examples, task, weights and positions in the X given."""
        codes = _group_codes(groups, len(y))
        X, y, weights, index = self._weighted_rows(X, y, sample_weight)
        task, codes = self._task(), codes if index is None else codes[index]
        order = np.argsort(codes, kind="stable")
        if np.any(order[1:] < order[:-1]):
            X = X[order][:, order] if self._is_precomputed else X[order]
            y, codes, index = y[order], codes[order], order if index is None else index[order]
            weights = None if weights is None else weights[order]
        examples = task.encode(_by_query(y, codes), _query_weights(weights, codes))
        if not task.augment(np.zeros((len(y), 1)), np.zeros(0), examples).coef.any():
            raise ValueError(
                "no query has two rows of different labels, so there is nothing to rank; groups says which rows belong "
                f"together: found {examples.n_examples} queries of {len(y)} rows in all"
            )
        return X, y, examples, task, weights, index

    def certificate(self, X, y, sample_weight=None, max_seconds=None, groups=None, qid=None) -> Certificate:
        """Bound the gap between the model and the best one of this kernel and C. It uses only the model, not the fit.

        The bound comes from exact cuts; the first one is taken at the model.

        Parameters
        ----------
        X, y, groups, sample_weight, qid
            The training rows, as in `fit`.
        max_seconds

        Raises
        ------
        NotFittedError
        ValueError
            A value is invalid, or the kernel is a matrix.
        """
        self = self._as_fitted()
        groups = _queries_given("certificate", groups, qid)
        limit = check_limit("max_seconds", max_seconds, integer=False)
        if self._is_precomputed:
            raise ValueError("a certificate needs rows and a kernel of them, found kernel='precomputed'")
        X, y = self._check_X(X, reset=False, y=y)
        X, _, examples, task, _, _ = self._problem(X, y, groups, sample_weight)
        return self._certify(X, task, examples, self.model_, limit)

    def decision_function(self, X):
        """Scores: rows with higher scores should stand above."""
        return self._scores(X)[:, 0]

    def predict(self, X):
        """The scores of `decision_function`. Sorting a query's rows by falling score ranks them.

        Returns
        -------
        ndarray of shape (n_samples,), float64
        """
        return self.decision_function(X)

    def score(self, X, y, groups=None, sample_weight=None, qid=None):
        """Mean over queries of the share of pairs in the right order (equal scores half), or of average precision.

        Queries without a pair are left out of the mean.

        Parameters
        ----------
        X, y, groups, sample_weight, qid
            As in `fit`.

        Raises
        ------
        ValueError
            Queries are not given, or none of them has a pair.
        """
        scores, _, examples = self._scored("score", X, y, groups, sample_weight, qid)
        return 1.0 - self._task().error(scores, examples)

    def ndcg(self, X, y, groups=None, sample_weight=None, qid=None, k=None):
        """Mean over queries of the normalised discounted cumulative gain, as in `sklearn.metrics.ndcg_score`.

        A row's gain is its label; queries without a pair are left out of the mean, as by `score`.

        Parameters
        ----------
        X, y, groups, sample_weight, qid
            As in `fit`, with labels ≥ 0.
        k : int or None, default=None
            Count only the first k rows of each ranking; None: all.

        Raises
        ------
        ValueError
            Queries are not given, none of them has a pair, or a label is negative.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import RankSVM
        >>> X, y, qid = np.array([[0.0], [1.0], [2.0], [0.5], [3.0]]), [1, 2, 3, 0, 1], [7, 7, 7, 8, 8]
        >>> float(RankSVM(C=10.0, kernel="linear").fit(X, y, qid=qid).ndcg(X, y, qid=qid, k=2))
        1.0
        """
        scores, grades, examples = self._scored("ndcg", X, y, groups, sample_weight, qid)
        if grades.min() < 0:
            raise ValueError(f"labels must be >= 0, because NDCG uses them as gains; found {grades.min()}")
        queries = [slice(lo, hi) for lo, hi in pairwise(examples.row_offsets)]
        has_pair = ~np.isnan(self._task().measures(scores, examples))
        values = [ndcg_score([grades[q]], [scores[q]], k=k) for q, kept in zip(queries, has_pair, strict=True) if kept]
        return float(np.average(values, weights=examples.weights[has_pair]))

    def _scored(self, caller: str, X: Any, y: Any, groups: Any, sample_weight: Any, qid: Any) -> tuple:
        """Scores, labels and examples of the rows of positive weight, in the order of their queries."""
        check_is_fitted(self, "model_")
        groups = _queries_given(caller, groups, qid)
        scores = self.decision_function(X)
        y = np.asarray(y)
        if y.shape != scores.shape:
            raise ValueError(f"y must have one label for each of the {len(scores)} rows of X, found shape {y.shape}")
        check_finite(y[:, None], "y")
        weights, codes = check_sample_weight(sample_weight, len(y)), _group_codes(groups, len(y))
        kept = np.argsort(codes, kind="stable")
        if weights is not None:
            kept = kept[weights[kept] > 0]
            weights = weights[kept]
        task = self._task()
        examples = task.encode(_by_query(y[kept], codes[kept]), _query_weights(weights, codes[kept]))
        if np.isnan(task.measures(scores[kept], examples)).all():
            raise ValueError("no query has two rows of different labels, so all rankings are equally good")
        return scores[kept], y[kept], examples

    def _task(self) -> Ranking:
        """The loss that ``loss`` named at the fit."""
        return LOSSES[self._fitted_with("loss")]()


def _queries_given(caller: str, groups: Any, qid: Any) -> Any:
    """The queries of the rows, given as ``groups`` or ``qid``.

    They are required: a search by cross-validation gives ``groups`` to its splitter alone, and would rank all rows as
    one query.
    """
    if groups is not None and qid is not None:
        raise ValueError("groups and qid are two names for the same parameter: give one of them")
    if groups is None and qid is None:
        raise ValueError(
            f"RankSVM.{caller} needs groups (or qid), the query of each row, found neither; if all rows are one query: "
            "groups=np.zeros(len(X)). For GridSearchCV and other searches: "
            "sklearn.set_config(enable_metadata_routing=True), "
            "and RankSVM().set_fit_request(groups=True).set_score_request(groups=True)"
        )
    return qid if groups is None else groups


def _group_codes(groups: Any, n: int) -> Array:
    """Query of every row as 0, 1, ..., in the order of the groups' names."""
    if np.shape(groups) != (n,):
        raise ValueError(f"groups must have one entry per row: {n} rows, found shape {np.shape(groups)}")
    if (missing := first_missing(groups)) is not None:
        raise ValueError(f"groups contains {missing[1]} in row {missing[0]}, which is not a name of a query")
    check_one_kind(groups, "groups")
    names = np.asarray(groups)
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise ValueError(f"groups contains {names[~np.isfinite(names)][0]}, which is not a name of a query")
    return np.unique(names, return_inverse=True)[1]


def _by_query(values: Array, codes: Array) -> list[Array]:
    """The values of each query, of rows in the order of their queries."""
    return np.split(values, np.flatnonzero(np.diff(codes)) + 1)


def _query_weights(weights: Array | None, codes: Array) -> Array | None:
    """One weight per query; its rows must have the same."""
    if weights is None:
        return None
    inside = np.flatnonzero((np.diff(codes) == 0) & (np.diff(weights) != 0))
    if len(inside):
        found = weights[inside[0]], weights[inside[0] + 1]
        raise ValueError(
            f"sample_weight must be the same for all rows of a query, found {found[0]} and {found[1]} in one"
        )
    return weights[np.append(0, np.flatnonzero(np.diff(codes)) + 1)]
