"""CrossTrainedSVC: what an estimator promises."""

import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import check_estimator

import slimsvm
from cross_training_for_tests import PLAIN, fitted, noisy
from slimsvm import CrossTrainedSVC, CrossTraining, Exact
from slimsvm.core.clock import Limit
from slimsvm.datasets import checkerboard
from slimsvm.parts.run import Status, timed, warn_of_time


@pytest.mark.parametrize("C", [1.0, pytest.param("validate", marks=pytest.mark.full)])
def test_scikit_learns_checks_pass_without_exception(C):
    """The default tries thirty values of C in every fit: five times as long."""
    check_estimator(CrossTrainedSVC(C=C), on_skip=None)


@pytest.mark.parametrize(
    "parameters",
    [{"gamma": 2.0}, {"gamma": 2.0, "max_basis": 30}, {"second_stage": False}],
    ids=["as it is", "cap", "bag"],
)
def test_same_bits_for_any_number_of_threads(parameters):
    X, y = noisy(1200)
    one, four = (CrossTrainedSVC(random_state=0, n_jobs=n_jobs, **parameters).fit(X, y) for n_jobs in (1, 4))
    np.testing.assert_array_equal(one.sample_indices_, four.sample_indices_)
    np.testing.assert_array_equal(one.decision_function(X), four.decision_function(X))
    assert one.n_kernel_evals_ == four.n_kernel_evals_ > 0


def test_containers_give_one_answer(tmp_path):
    X, y = noisy()
    X = np.round(X * 64) / 64
    expected = fitted(X.astype(np.float32), y, gamma=2.0)
    np.save(tmp_path / "rows.npy", X)
    for other in (X.astype(np.float64), np.load(tmp_path / "rows.npy", mmap_mode="r"), np.asfortranarray(X)):
        np.testing.assert_allclose(fitted(other, y, gamma=2.0).decision_function(X), expected.decision_function(X))
    sparse = fitted(sp.csr_array(X), y, gamma=2.0)
    np.testing.assert_array_equal(sparse.sample_indices_, expected.sample_indices_)
    np.testing.assert_allclose(
        sparse.decision_function(sp.csc_array(X)), expected.decision_function(X), rtol=2e-3, atol=2e-3
    )


def test_labels_files_pickles_and_grids(tmp_path):
    X, codes = noisy()
    y = np.where(codes > 0, "yes", "no")
    clf = fitted(X, y, gamma=2.0)
    assert set(clf.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(clf.predict(X) == "yes", clf.decision_function(X) > 0)
    clf.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
        assert again.get_params() == clf.get_params()
    grid = GridSearchCV(CrossTrainedSVC(gamma=2.0, random_state=0), {"n_subsets": [2, 3]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.8


def test_more_classes_by_a_wrapper():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X + 0.2 * rng.normal(size=X.shape)).argmax(axis=1) + (X[:, 0] < -0.8)
    with pytest.raises(ValueError, match=r"y must hold two classes, found 3; wrap .*OneVsRestClassifier"):
        fitted(X, y)
    clf = OneVsRestClassifier(CrossTrainedSVC(random_state=0, n_jobs=1)).fit(X, y)
    assert clf.score(X, y) > 0.85


def test_any_solver_inside():
    X, y = noisy()
    clf = fitted(X, y, gamma=2.0, solver="exact-cuts", intercept="regularized")
    assert clf.score(*checkerboard(1000, side=2, random_state=1)) > 0.9


@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C_have_an_answer(C):
    X, y = noisy(200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = fitted(X, y, **{**PLAIN, "C": C, "first_C": C, "validation_size": None}, max_iter=100)
        assert np.isfinite(clf.decision_function(X)).all()
        clf = fitted(X, y, C=C)  # nothing but itself ends it
        assert np.isfinite(clf.decision_function(X)).all()


def test_rows_that_say_nothing_have_an_answer():
    y = np.tile([0, 1], 30)
    clf = fitted(np.zeros((60, 3)), y)
    assert np.isfinite(clf.decision_function(np.zeros((2, 3)))).all()
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 20 == 0
    assert set(fitted(X, y).predict(X)) <= {False, True}


def test_all_stages_show_a_bar(capfd):
    X, y = noisy(400)
    fitted(X, y, gamma=0.3)
    assert capfd.readouterr().err == ""
    fitted(X, y, gamma=0.3, verbose=1)
    err = capfd.readouterr().err
    for doing in "values of C of the models of subsets", "values of C of the last model":
        assert re.search(rf"{doing}: +\d+%\|.*<", err)


class Hurried(Exact):
    """Fits in full, and says in both ways of `parts.run` that the time was too short."""

    def solve(self, problem, state=None, callbacks=()):
        warn_of_time("Exact", "the model of a few rows is returned")
        fit = super().solve(replace(problem, max_seconds=None), state, callbacks)
        limit = Limit(None, None)
        limit.note()
        return timed(replace(fit, status=Status.CONVERGED), limit, "Exact")


@pytest.mark.parametrize("solver", [Exact(), Hurried()])
def test_out_of_time_is_said_once(solver):
    X, y = noisy(1500)
    asked = PLAIN | {"first_C": "validate", "validation_size": None, "solver": solver}
    with pytest.warns(ConvergenceWarning, match=r"time limit.* values of C were tried up to") as said:
        fitted(X, y, **asked, max_seconds=1e-6)
    assert len(said) == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "C must be a positive number or 'validate', found 0"),
        ({"first_C": "auto"}, "first_C must be a positive number or 'validate', found 'auto'"),
        ({"n_subsets": 0}, "n_subsets must be an integer >= 1, found 0"),
        ({"n_subsets": None}, "n_subsets must be an integer >= 1, found None"),
        ({"subset_size": 1}, "subset_size must be an integer >= 2, found 1"),
        ({"validation_size": -1}, "validation_size must be an integer >= 0, found -1"),
        ({"validation_size": 0}, "validation_size=0 leaves nothing to choose C by"),
        ({"validation_size": 0, "subset_size": 1200, "C": 1.0}, "leaves nothing to choose first_C by: give it as a"),
        ({"validation_size": 500}, "validation_size=500 and subset_size=300 are more than the 600 rows"),
        ({"variances": -1}, "variances must be a number >= 0, found -1"),
        ({"balance": "yes"}, "balance must be True or False, found 'yes'"),
        ({"max_basis": 1}, "max_basis must be an integer >= 2, None or 'auto'; found 1"),
        ({"max_basis": "few"}, "max_basis must be .*found 'few'"),
        ({"kernel": "precomputed"}, "needs a kernel of rows, found 'precomputed'"),
        ({"gamma": "learn"}, "gamma='learn' is not offered with cross-training"),
        ({"solver": "none"}, "solver must be one of"),
    ],
    ids=repr,
)
def test_bad_parameters_are_named(parameters, message):
    X, y = noisy()
    X = X[:600] if parameters.get("kernel") != "precomputed" else X @ X.T
    with pytest.raises(ValueError, match=message):
        fitted(X, y, **parameters)


def test_too_few_rows_of_a_class_are_named():
    X, y = noisy(50)
    y[:] = -1
    y[:2] = 1
    with pytest.raises(ValueError, match="cross-training needs at least 3 rows of each class, found 2"):
        fitted(X, y)


def test_the_editor_is_the_first_stage():
    X, y = noisy()
    editor = CrossTraining(gamma=2.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        editor.fit_resample(X, y)
    clf = fitted(X, y, gamma=2.0)
    np.testing.assert_array_equal(editor.sample_indices_, clf.sample_indices_)
    np.testing.assert_array_equal(editor.margin_mean_, clf.margin_mean_)
    assert clf.first_C_ == editor.C_


def test_the_command_line_reads_its_files(tmp_path, capsys):
    from slimsvm.cli import main

    fitted(*noisy()).save(tmp_path / "model.slim")
    assert main(["info", str(tmp_path / "model.slim")]) == 0
    assert "CrossTrainedSVC" in capsys.readouterr().out
