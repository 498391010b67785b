"""Fits over a grid of C, gamma and other parameters: `GridSearchSVC` and `GridSearchSVR` by cross-validation, `path`.

`_shared.cross_validation` fits and scores the candidates.
"""

from __future__ import annotations

import time
import warnings
from copy import copy
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv
from sklearn.model_selection._search import _MultimetricScorer, _search_estimator_has
from sklearn.model_selection._validation import _insert_error_scores, _warn_or_raise_about_fit_failures
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from slimsvm.estimators._shared.around_fit import afresh, with_callbacks
from slimsvm.estimators._shared.automatic import typical_gamma
from slimsvm.estimators._shared.conformal import NONE, hold_out, rows_held
from slimsvm.estimators._shared.cross_validation import CrossValidation, SearchSettings
from slimsvm.estimators._shared.input_checks import check_C, check_positive, check_sample_weight, is_chosen
from slimsvm.estimators._shared.validating import GAMMA_FACTORS
from slimsvm.estimators.svc import SVC
from slimsvm.estimators.svr import SVR
from slimsvm.parts.problem import check_flag
from slimsvm.parts.values_of_C import VALUES_OF_C
from slimsvm.sparse_parts import check_sparse

# epsilon that is tried for regression, in standard deviations of the targets, and the losses that have one.
TUBES, LOSSES_WITH_TUBE = (0.01, 0.1), ("epsilon_insensitive", "huber")


def _has(name: str):
    """Whether the best estimator, or before the search the one to be fitted, has a method."""

    def check(search: GridSearch) -> bool:
        return _search_estimator_has(name)(search._as_searched)

    return check


def _without(held: Any, part: Any, n_rows: int) -> Any:
    """The positions of a part, given as such or as truth values, but for those held out; repeats stay."""
    rows = np.arange(n_rows)[part]
    return rows[~np.isin(rows, held)]


class GridSearch(GridSearchCV):
    """What `GridSearchSVC` and `GridSearchSVR` share."""

    _estimator: type
    _settings = SearchSettings()

    def __init__(
        self,
        estimator=None,
        param_grid=None,
        *,
        scoring=None,
        n_jobs=None,
        refit=True,
        cv=None,
        verbose=0,
        error_score=np.nan,
        return_train_score=False,
        early_stopping=False,
    ):
        self.estimator, self.param_grid, self.scoring, self.n_jobs = estimator, param_grid, scoring, n_jobs
        self.refit, self.cv, self.verbose, self.error_score = refit, cv, verbose, error_score
        self.return_train_score, self.early_stopping = return_train_score, early_stopping

    @property
    def _template(self) -> Any:
        """The estimator that candidates are made from."""
        if self.estimator is None:
            return self._estimator()
        if not isinstance(self.estimator, self._estimator):
            raise TypeError(
                f"estimator must be a slimsvm.{self._estimator.__name__} or None, found "
                f"{type(self.estimator).__name__}; for other estimators use sklearn.model_selection.GridSearchCV"
            )
        return self.estimator

    @property
    def _as_searched(self) -> GridSearch:
        """A copy of the search whose estimator is not None, for methods of scikit-learn."""
        search = copy(self)
        search.estimator = self._template
        return search

    def __sklearn_tags__(self):
        if self.estimator is not None:
            return super().__sklearn_tags__()
        return self._as_searched.__sklearn_tags__()

    def get_metadata_routing(self):
        """Which metadata goes where: see scikit-learn's user guide on metadata routing.

        Returns
        -------
        MetadataRouter
        """
        if self.estimator is not None:
            return super().get_metadata_routing()
        return self._as_searched.get_metadata_routing()

    @with_callbacks
    @afresh
    def fit(self, X, y=None, **params):
        """Score every candidate by cross-validation, and fit the best one on all rows.

        Callbacks of the search are told when it begins and ends; callbacks of ``estimator`` are told of every fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        **params : dict
            ``sample_weight`` for the fits, ``groups`` for the splits, as in scikit-learn's `GridSearchCV`.

        Returns
        -------
        GridSearchSVC or GridSearchSVR
            The search itself.

        Raises
        ------
        ValueError
            The grid is empty, or names an unknown parameter; or a value in the grid, X or y is out of range.
        """
        search: Any = self  # scikit-learn has searches with callbacks from its version 1.9 on
        context = search._init_callback_context() if vars(self).get("_skl_callbacks") else None
        seen = {"estimator": self, "X": X, "y": y, "metadata": params}
        if context is not None:
            context.call_on_fit_task_begin(**seen)
        self._search(X, y, params)
        if context is not None:
            context.call_on_fit_task_end(**seen, reconstruction_attributes={})
        return self

    def _search(self, X: Any, y: Any, params: dict[str, Any]) -> None:
        """Search, and set the attributes of the search."""
        search, template = self._as_searched, self._template
        scorers, refit_metric = search._get_scorers()
        metric = self._raced_by(scorers)
        check_sparse(X)
        X, y = indexable(X, y)
        self._check_rows(X, y, params.get("sample_weight"))
        params = _check_method_params(X, params=params)
        routed = search._get_routed_params_for_fit(params)
        cv = check_cv(self.cv, y, classifier=is_classifier(template))
        splits, held = list(cv.split(X, y, **routed.splitter.split)), self._held_out(y, params.get("sample_weight"))
        seen = X, y
        if len(held):
            parted = (tuple(_without(held, part, len(y)) for part in split) for split in splits)
            splits = [split for split in parted if len(split[1])]
            kept = np.setdiff1d(np.arange(len(y)), held)
            seen = _safe_indexing(X, kept), _safe_indexing(y, kept)
        candidates = list(ParameterGrid(self._grid(*seen)))
        self._check(candidates)
        out = CrossValidation(
            template,
            candidates,
            splits,
            X,
            y,
            scorers,
            fit_params=routed.estimator.fit,
            score_params=routed.scorer.score,
            error_score=self.error_score,
            with_train_score=self.return_train_score,
            n_jobs=self.n_jobs,
            verbose=int(self.verbose),
            early_stopping=self.early_stopping,
            metric=metric,
            settings=self._settings,
        ).run()
        _warn_or_raise_about_fit_failures(out, self.error_score)
        if callable(self.scoring):
            _insert_error_scores(out, self.error_score)
        self.n_splits_ = len(splits)
        self.cv_results_ = results = self._results(candidates, out)
        self.multimetric_ = isinstance(out[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(out[0]["test_scores"])
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        if self.refit:
            begun = time.perf_counter()
            best = clone(template).set_params(**clone(self.best_params_, safe=False))
            self.best_estimator_ = best.fit(X, y, **routed.estimator.fit)
            is_seen = np.isin(getattr(best, "calibration_indices_", []), np.concatenate([p for s in splits for p in s]))
            if len(candidates) > 1 and is_seen.any():
                best.guarantee_ = NONE
            self.refit_time_ = time.perf_counter() - begun
            if hasattr(best, "feature_names_in_"):
                self.feature_names_in_ = best.feature_names_in_
        self.scorer_ = scorers._scorers if isinstance(scorers, _MultimetricScorer) else scorers

    def _raced_by(self, scorers: Any) -> str | None:
        """The name of the score that decides which candidates stop, if there are several."""
        for name in ("early_stopping", "return_train_score"):
            check_flag(name, getattr(self, name))
        may_be_several = isinstance(scorers, _MultimetricScorer) or callable(self.scoring)
        if self.early_stopping and isinstance(scorers, _MultimetricScorer) and not isinstance(self.refit, str):
            raise ValueError(
                f"early_stopping goes by one score: with several, refit must name it, found refit={self.refit!r}"
            )
        return self.refit if may_be_several and isinstance(self.refit, str) else None

    def _results(self, candidates: list[dict[str, Any]], out: list[dict[str, Any]]) -> dict[str, Any]:
        """The ``cv_results_`` that scikit-learn's searches make of the scores."""
        with warnings.catch_warnings():
            if self.early_stopping:
                # Candidates that were stopped have no mean.
                warnings.filterwarnings("ignore", "One or more of the .* scores are non-finite", UserWarning)
            return self._format_results(candidates, self.n_splits_, out)

    def _held_out(self, y: Any, sample_weight: Any) -> Any:
        """Positions that ``calibration_size`` of the template will hold out of the last fit: no candidate sees them."""
        template, weights = self._template, check_sample_weight(sample_weight, len(y), negative_is_zero=True)
        rows = np.arange(len(y)) if weights is None else np.flatnonzero(weights)
        count = rows_held(template.calibration_size, len(rows))
        if count is None:
            return rows[:0]
        labels = np.asarray(y)[rows] if is_classifier(template) else None
        return rows[hold_out(count, len(rows), labels, template.random_state)[1]]

    def _grid(self, X: Any, y: Any) -> Any:
        """The grid that ``param_grid`` stands for, of rows that are not held out."""
        if self.param_grid is not None:
            return self.param_grid
        if "nu" in (known := self._template.get_params()):
            names = ", ".join(repr(name) for name in ("nu", "C", "gamma") if name in known)
            raise ValueError(
                f"{type(self._template).__name__} has nu, of which there is no default grid: give "
                f"param_grid with values of {names}"
            )
        scale = typical_gamma(clone(self._template)._check_X(X, reset=True), None)
        return {"C": list(VALUES_OF_C), "gamma": [scale * factor for factor in GAMMA_FACTORS]}

    def _check_rows(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Raise once, before all fits, the error that each of them would raise."""
        X, y = clone(self._template)._check_X(X, reset=True, y=y)
        weights = check_sample_weight(sample_weight, X.shape[0])
        if weights is not None and is_classifier(self._template) and len(left := np.unique(y[weights > 0])) < 2:
            raise ValueError(f"sample_weight leaves rows of one class, {left[0]!s}; at least two classes are needed")

    def _check(self, candidates: list[dict[str, Any]]) -> None:
        """Refuse a grid without candidates, with unknown parameters, or with C or gamma out of range."""
        if not candidates:
            raise ValueError("param_grid must hold at least one candidate, found none")
        for candidate in candidates:
            estimator = clone(self._template).set_params(**clone(candidate, safe=False))
            for name in ("C", "gamma", "epsilon"):
                value = candidate.get(name)
                if isinstance(value, Real) and not (name != "C" and value == 0):
                    (check_C if name == "C" else check_positive)(f"{name} in param_grid", value)
            if not is_chosen(estimator.C):
                check_C("C in param_grid" if "C" in candidate else "C", estimator.C)

    @available_if(_has("predict"))
    def predict(self, X):
        """Predictions of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X):
        """Scores of the best estimator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)


class GridSearchSVC(GridSearch):
    """Exhaustive search over parameters of `SVC` by cross-validation: `GridSearchCV` in a fraction of its time.

    Folds, scores (up to ``tol``) and ``cv_results_`` agree with scikit-learn's `GridSearchCV` over the same
    estimator. It is faster because each fit along C starts from the one before, because fits share prepared rows and
    kernel values, and because threads share the remaining work.

    Parameters
    ----------
    estimator : SVC or None, default=None
        Candidates are clones of it; None is ``SVC()``. Each of up to eight fits at a time may take an eighth of its
        ``memory_limit``.
    param_grid : dict, list of dict or None, default=None
        Values to try for each parameter: ``C``, ``gamma`` or any other. Each of several dicts is a grid of its own.
        None: C of 0.1, 1, … 1000, and gamma of 1/16, 1/4, 1, 4 and 16 times ``"scale"``, computed without outlying
        rows.
    scoring : str, callable, list, tuple, dict or None, default=None
        As in `GridSearchCV`; None is the estimator's own ``score``. Scorers are called from several threads.
    n_jobs : int or None, default=None
        Threads; None takes all cores (in a joblib worker its share). Results do not depend on it.
    refit : bool, str or callable, default=True
        Whether the best candidate is fitted on all rows; with several scores, by which one, as in `GridSearchCV`.
    cv : int, splitter, iterable or None, default=None
        As in `GridSearchCV`: None is 5 stratified folds.
    verbose : int, default=0
        1 shows a progress bar on standard error.
    error_score : "raise" or number, default=np.nan
        Score of a candidate whose fit fails, with a warning.
    return_train_score : bool, default=False
        Whether to score the training parts too.
    early_stopping : bool, default=False
        Whether hopeless candidates are stopped early. After two splits or more, a candidate is stopped if it scored
        less than the best one on each split, and on average by more than three standard errors of that difference (or
        of the median candidate's difference, if that is more). Its scores on the other splits, and its mean scores, are
        NaN. With several scores, the one that ``refit`` names decides.

    Attributes
    ----------
    cv_results_ : dict of arrays
        The keys of `GridSearchCV`: ``params``, ``param_C``, ``split0_test_score``, ``mean_test_score``,
        ``rank_test_score``, ``mean_fit_time``, ...
    best_estimator_ : SVC
        Fitted on all rows. If ``estimator`` has ``calibration_size``, the rows that it holds out of this fit are in no
        fold either, so that its guarantee holds. If the grid varies ``calibration_size`` or ``random_state``, and rows
        held out were in folds, ``guarantee_`` is "none".
    best_score_, best_params_, best_index_
        Of the candidate with the highest mean score, the first among equals.
    scorer_, n_splits_, refit_time_, multimetric_
        As in `GridSearchCV`.
    classes_, n_features_in_, feature_names_in_
        The attributes of the best estimator.

    See Also
    --------
    path : Returns the fitted estimators themselves, along C and gamma.

    References
    ----------
    DeCoste, Wagstaff: Alpha Seeding for Support Vector Machines, KDD 2000.
    Steinwart, Thomann: liquidSVM: A Fast and Versatile SVM Package, arXiv 1702.06899.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from slimsvm import GridSearchSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = StandardScaler().fit_transform(X)
    >>> search = GridSearchSVC(param_grid={"C": [0.1, 1.0, 10.0], "gamma": [0.001, 0.01, 0.1]}, cv=5).fit(X, y)
    >>> search.best_params_
    {'C': 10.0, 'gamma': 0.01}
    >>> bool(search.best_score_ > 0.97)
    True
    """

    _estimator = SVC


class GridSearchSVR(GridSearch):
    """Exhaustive search over parameters of `SVR` by cross-validation: `GridSearchCV` in a fraction of its time.

    Parameters
    ----------
    estimator : SVR or None, default=None
        Candidates are clones of it; None is ``SVR()``.
    param_grid : dict, list of dict or None, default=None
        Values to try for ``C``, ``gamma``, ``epsilon`` or any other parameter. None: those of `GridSearchSVC`, with C
        in units of ``C="validate"``, and epsilon of 0.01 and 0.1 times the targets' standard deviation where the
        loss has one.
    scoring, n_jobs, refit, cv, verbose, error_score, return_train_score, early_stopping
        See `GridSearchSVC`; ``scoring=None`` is R², and ``cv=None`` is 5 folds.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_
        See `GridSearchSVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import GridSearchSVR
    >>> X = np.random.default_rng(0).uniform(-3, 3, size=(200, 1))
    >>> grid = {"C": [1.0, 10.0], "gamma": [0.1, 1.0], "epsilon": [0.01, 0.1]}
    >>> search = GridSearchSVR(param_grid=grid).fit(X, np.sin(X[:, 0]))
    >>> bool(search.best_score_ > 0.99)
    True
    """

    _estimator = SVR

    def _grid(self, X: Any, y: Any) -> Any:
        """The grid that ``param_grid`` stands for: C and epsilon in the units of the targets, a part for each epsilon
        of a loss that has one.
        """
        grid = super()._grid(X, y)
        if self.param_grid is not None:
            return grid
        template: SVR = clone(self._template)
        y = template._check_X(X, reset=True, y=y)[1]

        def units(**tube: float) -> tuple[float, float]:
            task, examples, _ = template.set_params(**tube)._encode(y, None)
            return task.units(examples)

        spread = units()[0]
        tubes = [{"epsilon": spread * share} for share in TUBES] if template.loss in LOSSES_WITH_TUBE else [{}]
        parts = []
        for tube in tubes:
            score, slope = units(**tube)
            parts.append(grid | {"C": [score / slope * C for C in grid["C"]]} | {name: [tube[name]] for name in tube})
        return parts


def path(estimator, X, y=None, *, C=None, gamma=None, epsilon=None, sample_weight=None) -> list[Any]:
    """Fit an estimator along C, gamma and epsilon; every fit except the first of each epsilon is a warm start.

    Along C a fit starts from the one before. The first fit of a gamma starts from the first fit of the gamma before.
    A fit passes on its dual point (``solver="exact"``) or its cuts. Each fit meets its own tolerance, so the
    models are those of cold fits up to ``tol``.

    Parameters
    ----------
    estimator : SVC, SVR or another estimator of the library that has ``warm_start``
        It is not changed.
    X, y
        As in its ``fit``.
    C, gamma, epsilon : sequence of numbers or None, default=None
        Values in the order in which they are fitted; for C, ascending is best. None: the estimator's own.
    sample_weight : array-like of shape (n_samples,) or None, default=None

    Returns
    -------
    list of estimators
        Fitted: for every epsilon every gamma, and for every gamma all C.

    Raises
    ------
    ValueError
        A sequence is empty, the estimator lacks the parameter, or a parameter or a value is out of range.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from slimsvm import SVC, path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> fits = path(SVC(solver="exact"), X, y, C=[0.1, 1.0, 10.0])
    >>> [clf.C for clf in fits]
    [0.1, 1.0, 10.0]
    """
    known = estimator.get_params(deep=False)
    if "warm_start" not in known:
        raise ValueError(f"path needs an estimator with the parameter warm_start, found {type(estimator).__name__}")
    grid: dict[str, list[dict[str, Any]]] = {}
    for name, values in (("C", C), ("gamma", gamma), ("epsilon", epsilon)):
        if values is not None and name not in known:
            raise ValueError(f"{type(estimator).__name__} has no parameter {name}")
        grid[name] = [{}] if values is None else [{name: value} for value in values]
        if not grid[name]:
            raise ValueError(f"{name} must hold at least one number, found none")
    found: list[Any] = []
    for of_epsilon in grid["epsilon"]:
        first_of_gamma = None
        for of_gamma in grid["gamma"]:
            state = first_of_gamma
            for k, of_C in enumerate(grid["C"]):
                candidate = clone(estimator).set_params(warm_start=True, **of_epsilon, **of_gamma, **of_C)
                candidate._state = state
                fitted = (
                    candidate.fit(X, y) if sample_weight is None else candidate.fit(X, y, sample_weight=sample_weight)
                )
                state = fitted._state
                if k == 0:
                    first_of_gamma = state
                found.append(fitted.set_params(warm_start=known["warm_start"]))
    return found
