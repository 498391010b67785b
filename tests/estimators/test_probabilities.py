"""Probabilities: what they are calibrated on, the calibration, and what estimators, streams and files make of it."""

import time
import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss

import slimsvm
from slimsvm import SVC, SVR, Blocks, CrossTrainedSVC, GridSearchSVC, OrdinalSVC
from slimsvm.deploy.decisions import ARRAYS
from slimsvm.estimators._shared.calibrating import calibrate
from slimsvm.parts.dual_ascent.leave_one_out import LeaveOneOutSettings

MOONS = make_moons(1200, noise=0.3, random_state=0)
NEW = make_moons(2000, noise=0.3, random_state=1)


def left_out(estimator, X, y):
    """Scores of each row by the estimator that is trained without it."""
    rows = np.arange(len(y))
    return np.array([estimator.fit(X[rows != i], y[rows != i]).decision_function(X[[i]])[0] for i in rows])


# -- scores of rows that are left out ----


class Kept(SVC):
    """An SVC that keeps what it was calibrated on."""

    def _calibrate(self, fit, problem):
        from slimsvm.estimators._shared import calibrating

        self.rows_, self.scores_ = calibrating.out_of_sample(self.solver_, problem, fit)
        super()._calibrate(fit, problem)


@pytest.mark.parametrize("intercept", ["free", "regularized", "none"])
@pytest.mark.parametrize("C", [0.3, 5.0])
def test_scores_are_near_those_of_estimators_without_the_row(C, intercept):
    X, y = make_classification(80, 5, n_informative=4, n_redundant=0, flip_y=0.1, random_state=3)
    exact = left_out(SVC(C=C, gamma=0.1, intercept=intercept), X, y)
    estimator = Kept(C=C, gamma=0.1, intercept=intercept, probability=True).fit(X, y)
    found, own = estimator.scores_[:, 0], estimator.decision_function(X)
    np.testing.assert_array_equal(estimator.rows_, np.arange(80))
    # What is left out moves scores; the closed form tells most of the move.
    assert np.mean(np.abs(found - exact)) < 0.35 * np.mean(np.abs(own - exact))
    assert np.corrcoef(found, exact)[0, 1] > 0.97


def test_a_row_that_is_free_moves_by_the_span_rule():
    """Without a bounded vector the closed form is exact as long as no other row changes its side."""
    X = np.array([[-2.0], [-1.0], [1.0], [2.5]])
    y = np.array([0, 0, 1, 1])
    estimator = Kept(C=1e6, gamma=0.5, probability=True).fit(X, y)
    exact = left_out(SVC(C=1e6, gamma=0.5), X, y)
    alpha = np.zeros(4)
    alpha[estimator.support_] = np.abs(estimator.dual_coef_[0])
    K = np.exp(-0.5 * (X - X.T) ** 2)
    border = np.block([[K, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
    expected = estimator.decision_function(X) - np.where(y > 0, 1, -1) * alpha / np.diag(np.linalg.inv(border))[:4]
    assert (alpha > 0).all()
    np.testing.assert_allclose(estimator.scores_[:, 0], expected, rtol=1e-5)
    assert np.isfinite(exact).all()


def test_rows_without_weight_in_the_model_keep_their_scores():
    X, y = MOONS
    estimator = Kept(probability=True).fit(X, y)
    others = np.setdiff1d(estimator.rows_, estimator.support_)
    expected = estimator.decision_function(X[others])
    np.testing.assert_allclose(estimator.scores_[others, 0], expected, rtol=1e-5, atol=1e-6)


def test_pairs_of_classes_are_left_out_like_two_classes():
    X, y = load_iris(return_X_y=True)
    estimator = Kept(C=2.0, gamma=0.2, probability=True).fit(X, y)
    for column, (a, b) in enumerate(combinations(range(3), 2)):
        rows = np.flatnonzero(np.isin(y, (a, b)))
        pair = Kept(C=2.0, gamma=0.2, probability=True).fit(X[rows], y[rows] == a)
        alone = pair.scores_[:, 0]
        # Pairs have one band, by which losses are smoothed, in common.
        assert np.corrcoef(estimator.scores_[rows, column], alone)[0, 1] > 0.99


def test_few_rows_stand_for_many_and_work_is_counted():
    X, y = MOONS
    whole = SVC(probability=True).fit(X, y)
    settings = (LeaveOneOutSettings(most_rows=300, most_free=8),)
    some = Kept(probability=True)
    some._settings = settings
    some.fit(X, y)
    assert 300 <= len(some.rows_) <= 310
    assert len(np.unique(y[some.rows_])) == 2
    assert log_loss(NEW[1], some.predict_proba(NEW[0])) < 1.05 * log_loss(NEW[1], whole.predict_proba(NEW[0]))
    assert whole.n_kernel_evals_ > SVC().fit(X, y).n_kernel_evals_


# -- the calibration ----


def test_calibration_is_the_optimum_of_its_objective():
    rng = np.random.default_rng(0)
    s = rng.normal(size=400)
    t = rng.random(400) < 1 / (1 + np.exp(-(2 * s + 0.5 * np.maximum(s, 0) + 0.3)))
    w = rng.random(400) + 0.5
    u, v, c, b = calibrate(s, t, w)[0]
    w = w * 400 / w.sum()
    first = w @ t
    targets = np.where(t, (first + 1) / (first + 2), 1 / (400 - first + 2))
    line = minimize(lambda p: np.sum(w * (np.logaddexp(0, p[0] * s + p[1]) - targets * (p[0] * s + p[1]))), [1.0, 0.0])
    a = line.x[0]
    terms = np.stack(
        [
            np.logaddexp(0, s) - np.log(2),
            np.log(2) - np.logaddexp(0, -s),
            np.sign(s) * np.log1p(np.abs(s)),
            np.ones(400),
        ]
    )

    def objective(p):
        z, off = p @ terms, (p[:3] - [a, a, 0]) / a
        return np.sum(w * (np.logaddexp(0, z) - targets * z)) + 2.0 * off @ off

    best = minimize(objective, [a, a, 0.0, 0.0], bounds=[(0, None)] * 3 + [(None, None)], options={"ftol": 1e-14})
    assert objective(np.array([u, v, c, b])) <= best.fun + 1e-6
    np.testing.assert_allclose([u, v, c, b], best.x, atol=2e-3)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1e-3, 1.0, 1e6]), st.booleans())
def test_calibration_is_finite_and_rises(seed, unit, separates):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    s = unit * rng.normal(size=n)
    t = s > 0 if separates else rng.random(n) < 0.3
    found = calibrate(s, t, rng.random(n) + 1e-3)
    assert np.isfinite(found).all()
    assert (found[:, :3] >= 0).all()
    grid = unit * np.linspace(-5, 5, 401)[:, None]
    for keeps_sign in (False, True):
        z = ARRAYS.log_odds(grid, found, keeps_sign)[:, 0]
        assert (np.diff(z) > 0).all()
    np.testing.assert_array_equal(np.sign(z), np.sign(grid[:, 0]))


def test_pairs_share_a_slope_where_rows_are_few():
    rng = np.random.default_rng(1)
    s = rng.normal(size=1003)
    t = rng.random(1003) < 1 / (1 + np.exp(-3 * s))
    few, many = calibrate(s, t, np.ones(1003), np.array([0, 3, 1003]))
    assert abs(few[0] - many[0]) < 0.3 * many[0]
    none, _ = calibrate(s[3:], t[3:], np.ones(1000), np.array([0, 0, 1000]))
    assert none[3] == 0
    assert abs(none[0] - many[0]) < 0.1 * many[0]


def test_coupling_is_that_of_its_formula_and_of_two_classes():
    rng = np.random.default_rng(2)
    z = rng.normal(size=(20, 6)) * 3
    found = ARRAYS.coupled(z, 4)
    odds = np.ones((20, 4))
    for column, (a, b) in enumerate(combinations(range(4), 2)):
        odds[:, a] += np.exp(-z[:, column])
        odds[:, b] += np.exp(z[:, column])
    np.testing.assert_allclose(found, (1 / odds) / (1 / odds).sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(ARRAYS.coupled(z[:, :1], 2)[:, 0], 1 / (1 + np.exp(-z[:, 0])), rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = ARRAYS.coupled(np.array([[1e300, -1e300, 1e300]]), 3)
    assert np.isfinite(far).all()
    assert far.sum() == pytest.approx(1.0)


# -- estimators ----


@pytest.mark.parametrize(
    "params",
    [{}, {"max_basis": 15}, {"max_basis": "auto"}, {"solver": "cpsp"}, {"solver": "bsca"}, {"solver": "lasvm"},
     {"solver": "low-rank"}, {"solver": "violated-cuts"}, {"loss": "f1", "C": 0.01}, {"loss": "roc_auc", "C": 0.1},
     {"loss": "ramp"}, {"C": "validate"}, {"gamma": "learn", "max_basis": 15}, {"class_weight": "balanced"},
     {"cost_matrix": [[0, 1], [2, 0]]}],
    ids=str,
)  # fmt: skip
def test_two_classes_agree_with_predict(params):
    X, y = MOONS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(probability=True, random_state=0, **params).fit(X[:600], y[:600])
        plain = SVC(random_state=0, **params).fit(X[:600], y[:600])
    P = clf.predict_proba(NEW[0])
    assert P.shape == (2000, 2)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    sure = np.abs(P[:, 1] - 0.5) > 1e-12
    np.testing.assert_array_equal(P.argmax(axis=1)[sure], clf.predict(NEW[0])[sure])
    np.testing.assert_array_equal(clf.decision_function(NEW[0]), plain.decision_function(NEW[0]))
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(NEW[0])), P, rtol=1e-12)
    # Where a loss or costs move the threshold away from p = 1/2, agreement with it has a price.
    assert log_loss(NEW[1], P) < (0.6 if set(params) & {"loss", "cost_matrix"} else 0.3)


def test_log_loss_is_that_of_five_folds():
    X, y = MOONS
    folds = CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y)
    own = SVC(probability=True).fit(X, y)
    assert log_loss(NEW[1], own.predict_proba(NEW[0])) < 1.02 * log_loss(NEW[1], folds.predict_proba(NEW[0]))


@pytest.mark.parametrize(
    "params", [{}, {"max_basis": 20}, {"multi_class": "crammer-singer"}, {"decision_function_shape": "ovo"}], ids=str
)
def test_several_classes(params):
    X, y = make_classification(900, 6, n_informative=5, n_redundant=0, n_classes=4, random_state=0)
    names = np.array(["a", "b", "c", "d"])[y]
    clf = SVC(probability=True, random_state=0, **params).fit(X[:600], names[:600])
    P = clf.predict_proba(X[600:])
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    folds = CalibratedClassifierCV(SVC(), ensemble=False).fit(X[:600], names[:600])
    assert log_loss(names[600:], P) < 1.05 * log_loss(names[600:], folds.predict_proba(X[600:]))
    assert np.mean(clf.classes_[P.argmax(axis=1)] == clf.predict(X[600:])) > 0.9


def test_labels_and_ordered_classes():
    X, y = MOONS
    Y = np.column_stack([y, X[:, 0] > 0, X[:, 1] > 0.5]).astype(int)
    clf = SVC(probability=True, max_basis=20, random_state=0).fit(X, Y)
    P = clf.predict_proba(NEW[0])
    assert P.shape == (2000, 3)
    np.testing.assert_array_equal(P > 0.5, clf.predict(NEW[0]) > 0)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 3))
    grades = np.digitize(rows[:, 0] + 0.5 * rng.normal(size=900), [-1.0, 0.0, 0.8])
    ordered = OrdinalSVC(probability=True, random_state=0).fit(rows[:600], grades[:600])
    P = ordered.predict_proba(rows[600:])
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert log_loss(grades[600:], P) < 1.0
    two = OrdinalSVC(probability=True, random_state=0).fit(rows[:600], grades[:600] > 1)
    np.testing.assert_array_equal(two.predict_proba(rows)[:, 1] > 0.5, two.predict(rows))


def test_ordered_classes_without_rows_have_no_probability():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 3))
    grades = np.digitize(rows[:, 0] + 0.5 * rng.normal(size=400), [-0.5, 0.5])
    P = OrdinalSVC(probability=True, random_state=0).fit(rows, grades).predict_proba(rows)
    # Classes 0, 4, 5 are outside of those with rows, 2 is between them.
    clf = OrdinalSVC(probability=True, classes=range(6), random_state=0).fit(rows, np.array([1, 3, 3])[grades])
    outer = clf.predict_proba(rows)
    assert outer[:, [0, 4, 5]].max() < 1e-20
    np.testing.assert_allclose(outer.sum(axis=1), 1.0, rtol=1e-12)
    every = OrdinalSVC(probability=True, classes=[-1, 0, 1, 2, 3], random_state=0).fit(rows, grades)
    assert log_loss(grades, every.predict_proba(rows)[:, 1:4]) < 1.02 * log_loss(grades, P)


def test_cross_training_and_searches_have_them():
    X, y = MOONS
    for estimator in (
        CrossTrainedSVC(probability=True, random_state=0),
        GridSearchSVC(SVC(probability=True), {"C": [0.3, 3.0]}, scoring="neg_log_loss"),
    ):
        P = estimator.fit(X, y).predict_proba(NEW[0])
        assert log_loss(NEW[1], P) < 0.3
        np.testing.assert_array_equal(P.argmax(axis=1), estimator.predict(NEW[0]))


def test_containers_agree():
    X, y = MOONS
    X, y = X[:400], y[:400]
    expected = SVC(gamma=1.0, probability=True).fit(X, y).predict_proba(NEW[0])
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    new = np.exp(-((NEW[0][:, None] - X) ** 2).sum(axis=2))
    for found in (
        SVC(gamma=1.0, probability=True).fit(sp.csr_matrix(X), y).predict_proba(sp.csr_matrix(NEW[0])),
        SVC(kernel="precomputed", probability=True).fit(K, y).predict_proba(new),
        SVC(kernel=lambda a, b: np.exp(-((a[:, None] - b) ** 2).sum(axis=2)), probability=True)
        .fit(X, y)
        .predict_proba(NEW[0]),
        SVC(gamma=1.0, probability=True).fit(X.astype(np.float32), y).predict_proba(NEW[0]),
    ):
        np.testing.assert_allclose(found, expected, atol=2e-3)
    few = {"gamma": 1.0, "max_basis": 15, "probability": True, "random_state": 0}
    found = SVC(**few).fit(Blocks([X[:150], X[150:]]), y).predict_proba(NEW[0])
    np.testing.assert_allclose(found, SVC(**few).fit(X, y).predict_proba(NEW[0]), atol=1e-6)
    held = SVC(kernel="precomputed", probability=True, solver="bsca", random_state=0).fit(K, y).predict_proba(new)
    assert log_loss(NEW[1], held) < 0.35


def test_threads_and_repeats_give_the_same_bits():
    X, y = MOONS
    first = SVC(probability=True, n_jobs=1).fit(X, y).calibration_
    for n_jobs in (1, 2, 3):
        np.testing.assert_array_equal(SVC(probability=True, n_jobs=n_jobs).fit(X, y).calibration_, first)


def test_weights_count_as_in_the_fit():
    X, y = MOONS
    weights = np.where(y > 0, 3.0, 1.0)
    weighted = SVC(probability=True).fit(X, y, weights)
    repeated = SVC(gamma=weighted.kernel_.gamma, probability=True).fit(
        np.concatenate([X, X[y > 0], X[y > 0]]), np.concatenate([y, y[y > 0], y[y > 0]])
    )
    found, expected = weighted.predict_proba(NEW[0])[:, 1], repeated.predict_proba(NEW[0])[:, 1]
    assert np.abs(found - expected).mean() < 0.03  # leaving a row out leaves all of its weight out
    assert found.mean() > SVC(probability=True).fit(X, y).predict_proba(NEW[0])[:, 1].mean() + 0.05


def test_streams_calibrate_on_a_chunk_before_it_is_learned_from():
    X, y = MOONS
    clf = SVC(solver="bsgd", max_basis=40, probability=True, random_state=0).partial_fit(X[:400], y[:400])
    assert log_loss(NEW[1], clf.predict_proba(NEW[0])) < 0.5
    before = clf.decision_function(X[400:800])
    clf.partial_fit(X[400:800], y[400:800])
    np.testing.assert_allclose(clf.calibration_, calibrate(before, y[400:800] > 0, np.ones(400)), rtol=1e-9)
    both = np.concatenate([before, clf.decision_function(X[800:])])
    clf.partial_fit(X[800:], y[800:])
    np.testing.assert_allclose(clf.calibration_, calibrate(both, y[400:] > 0, np.ones(800)), rtol=1e-9)
    plain = SVC(solver="bsgd", max_basis=40, random_state=0).partial_fit(X[:400], y[:400])
    plain.partial_fit(X[400:800], y[400:800]).partial_fit(X[800:], y[800:])
    np.testing.assert_array_equal(clf.decision_function(NEW[0]), plain.decision_function(NEW[0]))


def test_small_chunks_join_those_before_them(tmp_path):
    X, y = MOONS
    clf = SVC(solver="bsgd", max_basis=40, probability=True, random_state=0)
    for lo in range(0, 1000, 20):
        clf.partial_fit(X[lo : lo + 20], y[lo : lo + 20], classes=[0, 1])
    assert log_loss(NEW[1], clf.predict_proba(NEW[0])) < 0.32
    clf.save(tmp_path / "stream.slim")
    again = slimsvm.load(tmp_path / "stream.slim")
    for each in (clf, again):
        each.partial_fit(X[1000:], y[1000:])
    np.testing.assert_array_equal(again.predict_proba(NEW[0]), clf.predict_proba(NEW[0]))


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_few_directions_and_large_C_do_not_flatten_them(kernel, C):
    """Free vectors that span the space move far by the span rule alone: others would become free."""
    X, y = MOONS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = SVC(kernel=kernel, C=C, max_iter=50_000)
        folds = CalibratedClassifierCV(estimator, ensemble=False).fit(X[:400], y[:400])
        own = estimator.set_params(probability=True).fit(X[:400], y[:400])
    expected = log_loss(NEW[1], folds.predict_proba(NEW[0]))
    assert log_loss(NEW[1], own.predict_proba(NEW[0])) < 1.08 * expected


def test_one_far_row_and_offsets_do_not_flatten_them():
    X, y = MOONS
    X, y = X[:400], y[:400]
    expected = log_loss(NEW[1], SVC(kernel="linear", probability=True).fit(X, y).predict_proba(NEW[0]))
    far = X.copy()
    far[0] *= 1e6
    found = SVC(kernel="linear", probability=True).fit(far, y).predict_proba(NEW[0])
    assert log_loss(NEW[1], found) < 1.1 * expected
    found = SVC(kernel="linear", probability=True).fit(X + 1e5, y).predict_proba(NEW[0] + 1e5)
    assert log_loss(NEW[1], found) < 1.05 * expected


def test_kernels_that_are_no_inner_product_hold_rows_out():
    X, y = MOONS
    D = ((X[:400, None] - X[:400]) ** 2).sum(axis=2)
    clf = SVC(kernel="precomputed", probability=True).fit(np.exp(-D) - 0.3 * np.exp(-0.1 * D), y[:400])
    D = ((NEW[0][:, None] - X[:400]) ** 2).sum(axis=2)
    assert log_loss(NEW[1], clf.predict_proba(np.exp(-D) - 0.3 * np.exp(-0.1 * D))) < 0.4


@pytest.mark.parametrize("seed", range(8))
def test_scores_that_tell_nothing_leave_the_share_of_the_rare_class(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(600, 20)), rng.random(600) < 0.1
    P = SVC(probability=True).fit(X[:300], y[:300]).predict_proba(X[300:])
    assert log_loss(y[300:], P) < log_loss(y[300:], np.full(300, y[:300].mean())) + 0.05


def test_small_scores_have_their_constant():
    X, y = make_classification(600, 2, n_informative=2, n_redundant=0, weights=[0.85], random_state=0)
    small, large = (
        SVC(kernel="linear", intercept="none", C=1.0 / unit**2, probability=True)
        .fit(unit * X, y)
        .predict_proba(unit * X)
        for unit in (1e-3, 1.0)
    )
    np.testing.assert_allclose(small, large, atol=1e-3)


def test_interrupts_and_random_streams(monkeypatch):
    from slimsvm.estimators._shared import calibrating

    X, y = MOONS
    whole = calibrating.leave_one_out

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrating, "leave_one_out", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted: probabilities are calibrated on rows"):
        clf = SVC(probability=True).fit(X, y)
    assert log_loss(NEW[1], clf.predict_proba(NEW[0])) < 0.4
    monkeypatch.setattr(calibrating, "leave_one_out", whole)
    ends = []
    for probability in (False, True):
        stream = np.random.RandomState(0)
        SVC(max_basis=10, random_state=stream, probability=probability).fit(X[:300], y[:300])
        ends.append(stream.random_sample())
    assert ends[0] == ends[1]


def test_labels_of_many_sets_and_classes_of_few_rows():
    rng = np.random.default_rng(1)
    A, W = rng.normal(size=(200, 8)), rng.normal(size=(8, 30))
    clf = SVC(probability=True, random_state=0).fit(A, (A @ W > 0).astype(int))
    assert (clf.calibration_ != [1, 1, 0, 0]).any(axis=1).all()
    X, y = MOONS
    few = np.concatenate([np.flatnonzero(y == 0)[:3], np.flatnonzero(y == 1)[:3]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        P = CrossTrainedSVC(probability=True, random_state=0).fit(X[few], y[few]).predict_proba(X[few])
    assert np.isfinite(P).all()


def test_compressed_models_have_none():
    X, y = MOONS
    smaller = slimsvm.compress(SVC(probability=True).fit(X, y), 5)
    with pytest.raises(NotFittedError):
        smaller.predict_proba(X)


def test_there_are_none_where_nobody_asked():
    X, y = MOONS
    for probability in (False, "deprecated"):
        clf = SVC(probability=probability).fit(X, y)
        assert not hasattr(clf, "predict_proba")
        assert not hasattr(clf, "predict_log_proba")
        assert not hasattr(clf, "calibration_")
    with pytest.raises(AttributeError, match="SVC has no predict_proba without probability=True, found False"):
        SVC().predict_proba(X)
    clf = SVC().fit(X, y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        clf.predict_proba(X)
    assert hasattr(SVC(probability=True), "predict_proba")
    assert not hasattr(SVR(), "predict_proba")
    with pytest.raises(ValueError, match="probability must be True or False, found 'yes'"):
        SVC(probability="yes").fit(X, y)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_and_rows_that_say_nothing(n):
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for params in ({}, {"max_basis": 2}, {"C": 1e-10}, {"C": 1e10}):
            P = SVC(probability=True, random_state=0, **params).fit(X, y).predict_proba(X)
            assert np.isfinite(P).all()
            assert (P > 0).all()
    P = SVC(probability=True).fit(np.ones((40, 2)), np.arange(40) % 2).predict_proba(np.ones((1, 2)))
    np.testing.assert_allclose(P, 0.5, atol=1e-6)


def test_a_limit_on_time_leaves_probabilities():
    X, y = make_moons(20_000, noise=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning):
        clf = SVC(probability=True, max_seconds=1e-3).fit(X, y)
    assert log_loss(NEW[1], clf.predict_proba(NEW[0])) < 0.4


def test_a_second_fit_without_time(monkeypatch):
    from slimsvm.estimators._shared import calibrating

    X, y = MOONS

    def late(*args):
        raise calibrating.OutOfTimeError

    monkeypatch.setattr(calibrating, "held_out", late)
    clf = SVC(max_basis=10, probability=True, random_state=0).fit(X, y)
    assert log_loss(NEW[1], clf.predict_proba(NEW[0])) < 0.4


def test_scores_are_calibrated_when_the_time_is_over(monkeypatch):
    """A clock that stands still until scores out of sample are known."""
    from slimsvm.estimators._shared import calibrating

    now, usual = [0.0], calibrating.out_of_sample

    def late(*args):
        found, now[0] = usual(*args), 10.0
        return found

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(calibrating, "out_of_sample", late)
    for y in (MOONS[1], np.arange(len(MOONS[1])) % 3):
        clf = SVC(probability=True, max_seconds=1.0).fit(MOONS[0], y)
        assert np.isfinite(clf.predict_proba(NEW[0])).all()


def test_files_hold_them(tmp_path):
    X, y = load_iris(return_X_y=True)
    for name, clf in (
        ("pairs", SVC(probability=True).fit(X, y)),
        ("two", SVC(probability=True).fit(X, y > 0)),
        ("scores", SVC(probability=True, max_basis=10, random_state=0).fit(X, y)),
        ("ordered", OrdinalSVC(probability=True, random_state=0).fit(X, y)),
    ):
        path = tmp_path / f"{name}.slim"
        clf.save(path)
        expected = clf.predict_proba(X)
        np.testing.assert_array_equal(slimsvm.load(path).predict_proba(X), expected)
        np.testing.assert_allclose(slimsvm.load_predictor(path).predict_proba(X), expected, atol=1e-5)
    SVC().fit(X, y).save(tmp_path / "none.slim")
    assert not hasattr(slimsvm.load_predictor(tmp_path / "none.slim"), "predict_proba")
