"""GridSearchSVC and GridSearchSVR: what scikit-learn's GridSearchCV finds."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit
from sklearn.utils.estimator_checks import check_estimator

from slimsvm import SVC, SVR, Exact, GridSearchSVC, GridSearchSVR, NuSVC, NuSVR
from slimsvm.estimators._shared import cross_validation

GRID = {"C": [10.0, 0.1, 1.0], "gamma": [0.1, 1.0]}


def problem(n=150, n_classes=2, seed=0):
    """Rows and classes with something to learn, some labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, :n_classes] if n_classes > 2 else np.stack([X[:, 0] * X[:, 1], 0.2 * X[:, 2]], axis=1)
    y = np.argmax(score, axis=1)
    wrong = rng.random(n) < 0.1
    y[wrong] = rng.integers(0, n_classes, np.count_nonzero(wrong))
    return X, y


def curve(n=120):
    """Rows and targets."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def assert_same(ours, theirs, atol=1e-12):
    """The same results, but for the times."""
    assert sorted(ours.cv_results_) == sorted(theirs.cv_results_)
    for name, expected in theirs.cv_results_.items():
        found = ours.cv_results_[name]
        if name.endswith("_time"):
            assert (found >= 0).all()
        elif name == "params":
            assert found == expected
        elif name.startswith("param_"):
            assert type(found) is type(expected)
            np.testing.assert_array_equal(found, expected)
        elif not name.startswith("rank_"):  # which tells candidates apart by the last digit
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
    if hasattr(theirs, "best_score_"):
        assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=atol)


LABELS = {
    "two": (2, np.array([0, 1])),
    "three": (3, np.array([0, 1, 2])),
    "strings": (2, np.array(["no", "yes"])),
    "three strings": (3, np.array(["a", "b", "c"], object)),
}


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("estimator", [SVC(tol=1e-6), svm.SVC(tol=1e-6)], ids=["ours", "scikit-learn's"])
def test_the_results_are_those_of_a_search_without_sharing(labels, estimator):
    n_classes, names = LABELS[labels]
    X, y = problem(n_classes=n_classes)
    y = names[y]
    theirs = GridSearchCV(estimator, GRID, cv=4, return_train_score=True).fit(X, y)
    ours = GridSearchSVC(SVC(tol=1e-6), GRID, cv=4, return_train_score=True).fit(X, y)
    assert_same(ours, theirs)
    assert (ours.best_params_, ours.best_index_) == (theirs.best_params_, theirs.best_index_)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert ours.score(X, y) == theirs.score(X, y)


CHANGES = {
    "sparse": ({}, {"X": sp.csr_matrix}),
    "frame": ({}, {"X": lambda X: pd.DataFrame(X, columns=["a", "b", "c"])}),
    "float32": ({}, {"X": np.float32}),
    "class weights": ({"class_weight": {0: 1.0, 1: 3.0}}, {}),
    "balanced": ({"class_weight": "balanced"}, {}),
    "polynomial": ({"kernel": "poly", "coef0": 1.0, "degree": 2}, {}),
    "regularised": ({"intercept": "regularized"}, {}),
    "one problem": ({"multi_class": "crammer-singer"}, {}),
    "learned vectors": ({"max_basis": 5, "random_state": 0}, {}),
    "matrix": ({"kernel": "precomputed"}, {"X": rbf_kernel}),
    "ramp": ({"loss": "ramp"}, {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_results_are_those_of_a_search_without_sharing_whatever_is_asked_for(change):
    params, of_rows = CHANGES[change]
    X, y = problem(100)
    X = of_rows.get("X", lambda X: X)(X)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.3]}
    estimator = SVC(tol=1e-6, **params)
    theirs, ours = GridSearchCV(estimator, grid, cv=3).fit(X, y), GridSearchSVC(estimator, grid, cv=3).fit(X, y)
    assert_same(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert getattr(ours, "feature_names_in_", None) is None or list(ours.feature_names_in_) == ["a", "b", "c"]


def scores_of(estimator, X, y):
    """Two scores in a dict."""
    return {"right": accuracy_score(y, estimator.predict(X)), "mean": float(estimator.decision_function(X).mean())}


@pytest.mark.parametrize(
    ("scoring", "refit"),
    [
        ("roc_auc", True),
        ("neg_log_loss", False),
        (make_scorer(accuracy_score), True),
        (["accuracy", "roc_auc"], "roc_auc"),
        (scores_of, "right"),
        (scores_of, False),
        ("accuracy", lambda results: 3),
    ],
)
def test_scores_are_asked_for_as_of_scikit_learns_search(scoring, refit):
    X, y = problem()
    searches = [
        search(SVC(tol=1e-6), GRID, cv=3, scoring=scoring, refit=refit, error_score=-1.0)
        for search in (GridSearchCV, GridSearchSVC)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no probabilities, and so no log loss
        theirs, ours = (search.fit(X, y) for search in searches)
    assert_same(ours, theirs, atol=1e-5)
    assert ours.multimetric_ == theirs.multimetric_
    for name in ("best_index_", "best_params_", "best_score_", "best_estimator_", "classes_", "predict"):
        assert hasattr(ours, name) == hasattr(theirs, name)
    if refit:
        assert ours.best_index_ == theirs.best_index_
        assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)


@pytest.mark.parametrize("cv", [KFold(3, shuffle=True, random_state=0), PredefinedSplit(np.arange(150) % 4 - 1)])
def test_splitters_and_weights_are_scikit_learns(cv):
    X, y = problem()
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    theirs = GridSearchCV(SVC(tol=1e-6), GRID, cv=cv).fit(X, y, sample_weight=weights)
    ours = GridSearchSVC(SVC(tol=1e-6), GRID, cv=cv).fit(X, y, sample_weight=weights)
    unweighted = GridSearchSVC(SVC(tol=1e-6), GRID, cv=cv).fit(X, y)
    assert_same(ours, theirs)
    assert ours.n_splits_ == theirs.n_splits_
    np.testing.assert_array_equal(ours.best_estimator_.support_, theirs.best_estimator_.support_)
    different = ours.cv_results_["mean_test_score"] != unweighted.cv_results_["mean_test_score"]
    assert different.any()


def test_groups_go_to_the_splitter():
    X, y = problem()
    groups = np.arange(len(y)) % 7
    theirs = GridSearchCV(SVC(), GRID, cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert_same(GridSearchSVC(SVC(), GRID, cv=GroupKFold(3)).fit(X, y, groups=groups), theirs)


@pytest.mark.parametrize("reference", [SVR(tol=1e-6), svm.SVR(tol=1e-6)], ids=["ours", "scikit-learn's"])
def test_regression_with_widths_of_the_tube(reference):
    X, y = curve()
    grid = GRID | {"epsilon": [0.0, 0.1]}
    theirs = GridSearchCV(reference, grid, cv=3).fit(X, y)
    ours = GridSearchSVR(SVR(tol=1e-6), grid, cv=3).fit(X, y)
    assert_same(ours, theirs, atol=1e-4)
    assert ours.best_params_ == theirs.best_params_
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-3)
    assert not hasattr(ours, "decision_function")


class WithThreads(GridSearchSVC):
    """Threads are used however few rows there are."""

    _settings = cross_validation.SearchSettings(threads_from=0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_the_same_bits_for_any_number_of_threads(n_classes, monkeypatch):
    X, y = problem(n_classes=n_classes)

    def searched(n_jobs):
        search = WithThreads(SVC(tol=1e-2), GRID, cv=3, n_jobs=n_jobs, scoring=spread).fit(X, y)
        return search.cv_results_["mean_test_score"]

    def spread(estimator, X, y):
        return float(np.abs(estimator.decision_function(X)).sum())

    alone = searched(1)
    assert len(np.unique(alone)) == len(alone)
    for n_jobs in (2, 3, None):
        np.testing.assert_array_equal(searched(n_jobs), alone)
    monkeypatch.setattr(cross_validation.CrossValidation, "pieces", reversed_pieces)
    np.testing.assert_array_equal(searched(2), alone)


PIECES = cross_validation.CrossValidation.pieces


def reversed_pieces(self, *args):
    """The pieces of work in another order."""
    return PIECES(self, *args)[::-1]


def test_few_bytes_give_the_same_scores():
    X, y = problem(200)
    wide, narrow = (
        GridSearchSVC(SVC(tol=1e-6, memory_limit=megabytes), GRID, cv=3).fit(X, y) for megabytes in (2000, 0.05)
    )
    np.testing.assert_array_equal(wide.cv_results_["mean_test_score"], narrow.cv_results_["mean_test_score"])
    assert narrow.best_estimator_.memory_limit == 0.05


def test_a_line_along_C_takes_less_work_than_its_fits_alone(monkeypatch):
    X, y = problem(600)
    seen = []
    fit = SVC.fit

    def watched(self, *args, **kwargs):
        before = getattr(self, "_earlier", None)
        fit(self, *args, **kwargs)
        seen.append((before is not None, self.n_iter_, self.n_kernel_evals_))
        return self

    monkeypatch.setattr(SVC, "fit", watched)
    grid = {"C": list(2.0 ** np.arange(0, 3, 0.25)), "gamma": [3.0]}
    GridSearchSVC(SVC(), grid, cv=2, n_jobs=1, refit=False).fit(X, y)
    shared, seen[:] = list(seen), []
    GridSearchCV(SVC(), grid, cv=2, refit=False).fit(X, y)
    assert all(is_shared for is_shared, _, _ in shared)
    assert not any(is_shared for is_shared, _, _ in seen)
    # Evaluations are counted over a line.
    assert sum(evals for *_, evals in shared[len(grid["C"]) - 1 :: len(grid["C"])]) < sum(evals for *_, evals in seen)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"C": []}, "parameter 'C' need"),
        ([], "param_grid must hold at least one candidate, found none"),
        ({"cost": [1.0]}, "Invalid parameter 'cost'"),
        ({"C": [1.0, -1.0]}, "C in param_grid must be a positive number, found -1.0"),
        ({"C": [np.nan]}, "C in param_grid must be a positive number, found nan"),
        ({"C": ["best"]}, "C in param_grid must be a positive number, found 'best'"),
        ({"gamma": [-0.5]}, "gamma in param_grid must be a positive number, found -0.5"),
    ],
)
def test_a_bad_grid_is_refused_before_any_fit(grid, message, monkeypatch):
    X, y = problem(30)
    monkeypatch.setattr(SVC, "fit", lambda *args, **kwargs: pytest.fail("a candidate was fitted"))
    with pytest.raises(ValueError, match=message):
        GridSearchSVC(param_grid=grid).fit(X, y)


def test_a_bad_width_and_a_bad_estimator_are_refused():
    X, y = problem(30)
    with pytest.raises(ValueError, match="epsilon in param_grid must be a positive number"):
        GridSearchSVR(param_grid={"epsilon": [-0.1]}).fit(X, y)
    with pytest.raises(TypeError, match=r"estimator must be a slimsvm.SVC or None, found dict"):
        GridSearchSVC({"C": [1.0]}).fit(X, y)
    with pytest.raises(TypeError, match=r"estimator must be a slimsvm.SVR or None, found SVC"):
        GridSearchSVR(SVC()).fit(X, y)
    with pytest.raises(ValueError, match="NaN at row 3"):
        GridSearchSVC(error_score="raise").fit(np.where(np.arange(30)[:, None] == 3, np.nan, X), y)


def test_candidates_that_fail_get_the_score_for_it():
    X, y = problem(60)
    grid = {"C": [1.0], "intercept": ["free", "some"]}
    with pytest.warns(FitFailedWarning, match="intercept must be one of"):
        search = GridSearchSVC(param_grid=grid, error_score=-7.0).fit(X, y)
    assert search.cv_results_["mean_test_score"][1] == -7.0
    assert search.best_params_["intercept"] == "free"
    with pytest.raises(ValueError, match="intercept must be one of"):
        GridSearchSVC(param_grid=grid, error_score="raise").fit(X, y)
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        GridSearchSVC(SVC(intercept="some"), {"C": [1.0]}).fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_ends_the_search(n_jobs):
    X, y = problem(60)
    seen = []

    def interrupted(estimator, X, y):
        seen.append(estimator)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WithThreads(param_grid={"C": [1.0, 2.0], "gamma": [0.1, 1.0]}, scoring=interrupted, n_jobs=n_jobs).fit(X, y)
    assert len(seen) <= n_jobs


@pytest.mark.parametrize(
    ("search", "names"), [(GridSearchSVC(NuSVC()), "'nu', 'gamma'"), (GridSearchSVR(NuSVR()), "'nu', 'C', 'gamma'")]
)
def test_estimators_of_nu_have_no_default_grid(search, names):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=f"has nu, of which there is no default grid: give param_grid .* {names}"):
        search.fit(X, X[:, 0] if isinstance(search, GridSearchSVR) else X[:, 0] > 0)


def test_without_a_grid_C_and_multiples_of_scale_are_tried():
    X, y = problem()
    search = GridSearchSVC(cv=2).fit(X, y)
    assert sorted({p["C"] for p in search.cv_results_["params"]}) == [0.1, 1.0, 10.0, 100.0, 1000.0]
    gammas = sorted({p["gamma"] for p in search.cv_results_["params"]})
    np.testing.assert_allclose(gammas, 1 / (3 * X.var()) * np.array([1 / 16, 1 / 4, 1, 4, 16]))
    assert is_classifier(search)
    assert is_regressor(GridSearchSVR())


def test_of_targets_tubes_in_their_spread_are_tried():
    X, y = curve()
    search = GridSearchSVR(cv=2).fit(X, 1000 * y)
    tubes = sorted({p["epsilon"] for p in search.cv_results_["params"]})
    np.testing.assert_allclose(tubes, 1000 * y.std() * np.array([0.01, 0.1]))
    np.testing.assert_allclose(GridSearchSVR(cv=2).fit(X, np.ones(len(X))).predict(X), 1.0)


# -- candidates that are stopped early ------------------------------------------------------------------------------

WIDE = {"C": [1e-3, 1.0, 10.0], "gamma": [1e-4, 0.5, 100.0]}


@pytest.mark.parametrize("search", [GridSearchSVC, GridSearchSVR])
def test_hopeless_candidates_are_stopped_early_and_the_best_is_the_same(search):
    X, y = problem(400) if search is GridSearchSVC else curve(300)
    whole = search(param_grid=WIDE, cv=5, return_train_score=True).fit(X, y)
    early = search(param_grid=WIDE, cv=5, return_train_score=True, early_stopping=True).fit(X, y)
    assert early.best_params_ == whole.best_params_
    assert early.best_score_ == pytest.approx(whole.best_score_, abs=1e-4)  # fits start from other ones
    scores = np.array([early.cv_results_[f"split{k}_test_score"] for k in range(5)])
    fitted = np.isfinite(scores)
    assert fitted[:2].all()
    assert 0 < fitted.sum() < fitted.size
    assert (fitted[1:] <= fitted[:-1]).all()  # who has left does not come back
    expected = np.array([whole.cv_results_[f"split{k}_test_score"] for k in range(5)])
    np.testing.assert_allclose(scores[fitted], expected[fitted], atol=1e-3)
    np.testing.assert_array_equal(np.isnan(early.cv_results_["mean_test_score"]), ~fitted.all(axis=0))
    assert early.cv_results_["rank_test_score"][early.best_index_] == 1
    assert np.isnan(early.cv_results_["split4_train_score"][~fitted[4]]).all()


def test_who_leaves_was_behind_on_every_split():
    """By three standard errors of the difference, as a plain loop over the scores of the whole search says."""
    X, y = problem(400)
    whole = GridSearchSVC(param_grid=WIDE, cv=5).fit(X, y)
    early = GridSearchSVC(param_grid=WIDE, cv=5, early_stopping=True).fit(X, y)
    scores = np.array([whole.cv_results_[f"split{k}_test_score"] for k in range(5)])
    racing = set(range(9))
    for n_seen in (2, 3, 4):
        best = max(racing, key=lambda k: (scores[:n_seen, k].mean(), -k))
        behind = {k: scores[:n_seen, best] - scores[:n_seen, k] for k in racing}
        error = {k: np.std(behind[k], ddof=1) / n_seen**0.5 for k in racing}
        middle = np.median(list(error.values()))
        racing = {k for k in racing if min(behind[k]) <= 0 or np.mean(behind[k]) <= 3 * max(error[k], middle)}
    assert racing == set(np.flatnonzero(np.isfinite(early.cv_results_["mean_test_score"])))


def test_early_stopping_gives_the_same_for_any_number_of_threads():
    X, y = problem(200)
    one, two = (WithThreads(param_grid=WIDE, cv=4, early_stopping=True, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_same(one, two, atol=0)


def test_early_stopping_of_several_scores_goes_by_the_one_that_refit_names():
    X, y = problem(300)
    scoring = ["accuracy", "roc_auc"]
    early = GridSearchSVC(param_grid=WIDE, scoring=scoring, refit="roc_auc", early_stopping=True).fit(X, y)
    whole = GridSearchSVC(param_grid=WIDE, scoring=scoring, refit="roc_auc").fit(X, y)
    assert early.best_params_ == whole.best_params_
    left = np.isnan(early.cv_results_["mean_test_roc_auc"])
    assert left.any()
    np.testing.assert_array_equal(left, np.isnan(early.cv_results_["mean_test_accuracy"]))
    with pytest.raises(ValueError, match="early_stopping goes by one score: with several, refit must name it"):
        GridSearchSVC(param_grid=WIDE, scoring=scoring, refit=False, early_stopping=True).fit(X, y)
    with pytest.raises(ValueError, match="early_stopping must be True or False, found 'yes'"):
        GridSearchSVC(param_grid=WIDE, early_stopping="yes").fit(X, y)


def test_a_candidate_that_fails_is_stopped_and_two_splits_are_no_race():
    X, y = problem(200)
    grid = {"C": [1.0], "degree": [2, -1], "kernel": ["poly"]}
    with pytest.warns(FitFailedWarning, match="2 fits failed"):
        early = GridSearchSVC(param_grid=grid, cv=4, early_stopping=True).fit(X, y)
    assert early.best_params_["degree"] == 2
    two = GridSearchSVC(param_grid=WIDE, cv=2, early_stopping=True).fit(X, y)
    assert np.isfinite(two.cv_results_["mean_test_score"]).all()


def test_a_search_is_cloned_and_pickled_and_its_parameters_set():
    X, y = problem()
    search = GridSearchSVC(SVC(tol=1e-2), {"C": [1.0, 2.0]}, cv=2)
    assert clone(search).get_params()["estimator__tol"] == 1e-2
    search.set_params(estimator__tol=1e-4, cv=3).fit(X, y)
    assert (search.best_estimator_.tol, search.n_splits_) == (1e-4, 3)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), search.predict(X))
    with pytest.raises(NotFittedError):
        clone(search).predict(X)
    without = clone(search).set_params(refit=False).fit(X, y)
    assert not hasattr(without, "predict")
    assert without.best_params_ == search.best_params_


@pytest.mark.parametrize("search", [GridSearchSVC, GridSearchSVR])
def test_scikit_learns_checks_pass(search):
    check_estimator(search(param_grid={"C": [0.1, 1.0]}, cv=2), on_skip=None)


def test_progress_is_shown_where_it_is_asked_for(capfd):
    X, y = problem(60)
    GridSearchSVC(param_grid={"C": [1.0, 2.0]}, cv=2, verbose=1).fit(X, y)
    assert "search: 100%" in capfd.readouterr().err
    GridSearchSVC(param_grid={"C": [1.0, 2.0]}, cv=2).fit(X, y)
    assert not capfd.readouterr().err


def test_parameters_of_a_solver_object_are_searched_and_the_object_is_left_alone():
    X, y = problem()
    solver = Exact()
    grid = {"solver__working_set_size": [10, None], "C": [1.0, 10.0]}
    search = GridSearchSVC(SVC(solver=solver), grid, cv=2, refit=False).fit(X, y)
    theirs = GridSearchCV(SVC(solver=solver), grid, cv=2, refit=False).fit(X, y)
    assert_same(search, theirs)
    assert solver.working_set_size is None


def test_scales_that_are_learned_for_each_C_share_no_kernel_values():
    """The kernel is another one for each C, since the small model that learns the scales is."""
    X, y = problem(200)
    estimator = SVC(gamma="learn", solver="exact", tol=1e-6, random_state=0)
    grid = {"C": [0.1, 1.0, 30.0]}
    assert_same(GridSearchSVC(estimator, grid, cv=3).fit(X, y), GridSearchCV(estimator, grid, cv=3).fit(X, y))
