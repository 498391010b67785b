"""Sets, intervals and p-values beside slow truths: what is held out, how often they are right, what keeps them."""

import pickle
import warnings
from copy import copy
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, LeaveOneOut, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import slimsvm
from slimsvm import (
    BSCA,
    SVC,
    SVR,
    Blocks,
    CrossTrainedSVC,
    Exact,
    GridSearchSVC,
    GridSearchSVR,
    OneClassSVM,
    OrdinalSVC,
    Refine,
)
from slimsvm.core.clock import OutOfTimeError
from slimsvm.deploy.conformal import bound, check_alpha
from slimsvm.estimators._shared import conformal
from slimsvm.estimators._shared.conformal import hold_out

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
VALUE = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * RNG.normal(size=400)
TWO, THREE = VALUE > 0.5, np.array(["low", "middle", "high"])[np.digitize(VALUE, [0.0, 1.0])]
NEW = np.random.default_rng(1).normal(size=(300, 3))
GRADES = ["low", "middle", "high"]

CLASSIFIERS = {
    "two": (SVC(calibration_size=0.25), TWO),
    "pairs": (SVC(calibration_size=0.25), THREE),
    "pairs, few vectors": (SVC(max_basis=12, random_state=0, calibration_size=0.25), THREE),
    "classes": (SVC(solver=Refine(max_basis=12), random_state=0, calibration_size=100), THREE),
    "probability": (SVC(probability=True, calibration_size=0.25), THREE),
    "ordered": (OrdinalSVC(classes=GRADES, calibration_size=0.25), THREE),
    "cross-trained": (CrossTrainedSVC(C=1.0, first_C=1.0, random_state=0, calibration_size=0.25), TWO),
    "F1": (SVC(loss="f1", calibration_size=0.25), TWO),
}
OTHERS = {
    "targets": (SVR(calibration_size=0.25), VALUE + 50.0),
    "targets, few vectors": (SVR(max_basis=12, random_state=0, calibration_size=0.25), VALUE + 50.0),
    "one class": (OneClassSVM(nu=0.2, calibration_size=0.25), None),
    "one class on a budget": (OneClassSVM(solver=BSCA(12), random_state=0, calibration_size=0.25), None),
}
ALL = CLASSIFIERS | OTHERS


def predicted(estimator, rows, alpha=0.1):
    """What the estimator promises, whichever kind it is of."""
    if hasattr(estimator, "p_values"):
        return estimator.p_values(rows)
    if hasattr(estimator, "predict_set"):
        return estimator.predict_set(rows, alpha)
    return estimator.predict_interval(rows, alpha)


def misfit(estimator, rows):
    """How badly each class fits, or how far outside rows are, by public methods."""
    if isinstance(estimator, OneClassSVM):
        return -estimator.model_.scores(rows)
    if isinstance(estimator, OrdinalSVC):
        f, theta = estimator.model_.scores(rows)[:, 0], np.concatenate([[-np.inf], estimator.thresholds_, [np.inf]])
        return np.stack([np.maximum(low - f, f - high) for low, high in pairwise(theta)], axis=1)
    if len(estimator.classes_) == 2:
        f = estimator.decision_function(rows)
        return np.stack([f, -f], axis=1)
    return 1.0 - estimator.set_params(probability=True).predict_proba(rows)


def places(estimator, y):
    """Numbers of classes."""
    return np.array([list(estimator.classes_).index(label) for label in y])


def fitted(name, **params):
    estimator, y = ALL[name]
    estimator = clone(estimator).set_params(**params)
    return (estimator.fit(X) if y is None else estimator.fit(X, y)), y


# -- the order statistic ----


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.integers(0, 6), st.integers(1, 99))
def test_a_value_is_within_the_bound_where_its_p_value_is_above_alpha(values, value, per_cent):
    ascending, alpha = np.sort(np.array(values, float)), Fraction(per_cent, 100)
    p = Fraction(1 + sum(other >= value for other in values), 1 + len(values))
    assert (value <= bound(ascending, check_alpha(per_cent / 100))) == (p > alpha)


@pytest.mark.parametrize(("m", "place"), [(8, None), (9, 9), (10, 10), (18, 18), (19, 18), (99, 90)])
def test_the_order_statistic_at_ten_per_cent(m, place):
    assert bound(np.arange(1.0, m + 1), check_alpha(0.1)) == (np.inf if place is None else place)


# -- what is held out ----


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_learned_from_rows_that_are_held_out(name):
    estimator, y = fitted(name)
    held = estimator.calibration_indices_
    rest = np.setdiff1d(np.arange(400), held)
    assert len(held) == 100
    assert estimator.guarantee_ == "1 - alpha"
    other = clone(estimator).set_params(calibration_size=None)
    other = other.fit(X[rest]) if y is None else other.fit(X[rest], y[rest])
    np.testing.assert_array_equal(estimator.basis_coef_, other.basis_coef_)
    np.testing.assert_array_equal(estimator.intercept_, other.intercept_)


@pytest.mark.parametrize("params", [{"C": "validate"}, {"gamma": "validate"}, {"gamma": "learn", "max_basis": 8}])
def test_nor_are_searches_shown_them(params):
    estimator = SVC(calibration_size=0.25, random_state=3, **params).fit(X, THREE)
    rest = np.setdiff1d(np.arange(400), estimator.calibration_indices_)
    other = SVC(random_state=3, probability=True, **params).fit(X[rest], THREE[rest])
    np.testing.assert_array_equal(estimator.basis_coef_, other.basis_coef_)
    np.testing.assert_array_equal(estimator.calibration_, other.calibration_)


def test_positions_are_those_in_the_x_that_was_given():
    weights = np.ones(400)
    weights[::4] = 0.0
    estimator = SVC(calibration_size=0.5).fit(X, TWO, weights)
    assert len(estimator.calibration_indices_) == 150
    assert not set(estimator.calibration_indices_) & set(np.arange(0, 400, 4))
    trained = np.setdiff1d(np.flatnonzero(weights), estimator.calibration_indices_)
    assert set(estimator.support_) <= set(trained)
    np.testing.assert_array_equal(estimator.support_vectors_, X[estimator.support_])
    crossed = CrossTrainedSVC(C=1.0, first_C=1.0, calibration_size=0.25, random_state=0).fit(X, TWO)
    assert not set(crossed.sample_indices_) & set(crossed.calibration_indices_)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(crossed.margin_mean_)), crossed.calibration_indices_)


def test_every_row_is_held_out_as_often_as_any_other():
    counts = np.zeros(20, int)
    for seed in range(2000):
        train, held, _ = hold_out(5, 20, None, seed)
        counts[held] += 1
        assert sorted([*train, *held]) == list(range(20))
    assert abs(counts - 500).max() < 4 * np.sqrt(2000 * 0.25 * 0.75)


def test_a_number_chooses_the_rows_and_a_generator_does_not():
    def held(random_state):
        return SVC(calibration_size=0.2, random_state=random_state).fit(X, TWO).calibration_indices_

    assert not np.array_equal(held(1), held(2))
    np.testing.assert_array_equal(held(1), held(1))
    np.testing.assert_array_equal(held(None), held(np.random.RandomState(5)))


def test_a_class_keeps_a_row_to_train_on():
    """Such a row counts as one outside of every set."""
    y = np.array(["a", "b"] * 10 + ["rare"])
    rows = np.random.default_rng(2).normal(size=(21, 2))
    n_lent = 0
    for seed in range(20):
        estimator = SVC(calibration_size=0.5, random_state=seed).fit(rows, y)
        assert estimator.classes_.tolist() == ["a", "b", "rare"]
        assert len(estimator.nonconformity_) == 11
        is_lent = np.isinf(estimator.nonconformity_)
        assert is_lent.sum() == 11 - len(estimator.calibration_indices_)
        assert (estimator.nonconformity_classes_[is_lent] == 2).all()
        n_lent += is_lent.sum()
    assert 3 <= n_lent <= 17


# -- what is predicted ----


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("alpha", [0.03, 0.2])
def test_sets_have_the_classes_whose_p_value_is_above_alpha(name, alpha):
    estimator, y = fitted(name)
    held = estimator.calibration_indices_
    codes = places(estimator, y[held])
    own, new = misfit(estimator, X[held])[np.arange(100), codes], misfit(estimator, NEW)
    p = (1 + (own[:, None, None] >= new).sum(axis=0)) / 101
    np.testing.assert_array_equal(estimator.predict_set(NEW, alpha), p > alpha)
    of_class = np.stack(
        [(1 + (own[codes == c, None] >= new[:, c]).sum(axis=0)) / (1 + (codes == c).sum()) for c in np.unique(codes)]
    )
    found = estimator.predict_set(NEW, alpha, class_conditional=True)
    np.testing.assert_array_equal(found.T, of_class > alpha)
    assert found.dtype == bool
    assert found.shape == (300, len(estimator.classes_))


@pytest.mark.parametrize("name", ["targets", "targets, few vectors"])
def test_intervals_are_as_wide_as_residuals_of_rows_held_out(name):
    estimator, y = fitted(name)
    held = estimator.calibration_indices_
    half = np.sort(np.abs(y[held] - estimator.predict(X[held])))[int(np.ceil(101 * 0.8)) - 1]
    expected = estimator.predict(NEW)[:, None] + [-half, half]
    np.testing.assert_allclose(estimator.predict_interval(NEW, alpha=0.2), expected, rtol=1e-12)


@pytest.mark.parametrize("size", [0.3, "out-of-fold"])
def test_between_quantiles_intervals_are_wide_where_targets_vary(size):
    rng = np.random.default_rng(6)
    rows = rng.uniform(-1, 1, size=(2000, 1))
    y = rows[:, 0] + np.where(rows[:, 0] > 0, 1.0, 0.1) * rng.normal(size=2000)
    estimator = SVR(loss="quantile", quantile=[0.1, 0.5, 0.9], max_basis=8, random_state=0, calibration_size=size)
    low, high = estimator.fit(rows[:500], y[:500]).predict_interval(rows[500:], alpha=0.1).T
    assert 0.85 < np.mean((low <= y[500:]) & (y[500:] <= high)) < 0.95
    is_wide = rows[500:, 0] > 0.2
    assert np.mean((high - low)[is_wide]) > 2 * np.mean((high - low)[rows[500:, 0] < -0.2])
    if size == 0.3:
        held, quantiles = estimator.calibration_indices_, estimator.predict(rows)
        outside = np.maximum(quantiles[held, 0] - y[held], y[held] - quantiles[held, -1])
        half = np.sort(outside)[int(np.ceil(151 * 0.9)) - 1]
        np.testing.assert_allclose(low, quantiles[500:, 0] - half, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(high, quantiles[500:, -1] + half, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "poisson"])
def test_intervals_of_every_loss(loss):
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(1500, 2))
    y = rng.poisson(np.exp(rows[:, 0])) if loss == "poisson" else rows[:, 0] + rng.normal(size=1500)
    estimator = SVR(loss=loss, max_basis=10, random_state=0, calibration_size=99).fit(rows[:400], y[:400])
    held = estimator.calibration_indices_
    half = np.sort(np.abs(y[held] - estimator.predict(rows[held])))[89]
    expected = estimator.predict(rows)[:, None] + [-half, half]
    if loss == "poisson":
        assert (expected < 0).any()
        expected = np.maximum(expected, 0)
    np.testing.assert_allclose(estimator.predict_interval(rows), expected, rtol=1e-9)
    inside = (expected[400:, 0] <= y[400:]) & (y[400:] <= expected[400:, 1])
    assert 0.83 < inside.mean() < 0.97


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("size", [0.25, "out-of-fold"])
@pytest.mark.parametrize("y", [TWO, THREE])
def test_sets_of_every_loss(loss, size, y):
    estimator = SVC(loss=loss, max_basis=10, random_state=0, calibration_size=size).fit(X, y)
    assert estimator.predict_set(X)[np.arange(400), places(estimator, y)].mean() > 0.8
    assert estimator.predict_set(X).shape == (400, len(estimator.classes_))


@pytest.mark.parametrize("name", ["one class", "one class on a budget"])
def test_p_values_count_rows_that_are_as_far_outside(name):
    estimator, _ = fitted(name)
    own, new = misfit(estimator, X[estimator.calibration_indices_]), misfit(estimator, NEW)
    np.testing.assert_allclose(estimator.p_values(NEW), (1 + (own >= new.T).sum(axis=0)) / 101, rtol=1e-15)


def test_ordered_classes_have_sets_without_gaps():
    estimator, _ = fitted("ordered")
    for alpha in (0.02, 0.1, 0.3):
        inside = estimator.predict_set(NEW, alpha).astype(int)
        assert (np.abs(np.diff(inside, axis=1, prepend=0, append=0)).sum(axis=1) <= 2).all()


def test_with_too_few_rows_everything_is_possible():
    assert SVC(calibration_size=8).fit(X, THREE).predict_set(NEW, 0.1).all()
    assert np.isinf(SVR(calibration_size=8).fit(X, VALUE).predict_interval(NEW, 0.1)).all()
    assert (OneClassSVM(calibration_size=8).fit(X).p_values(NEW) >= 1 / 9).all()
    assert np.isfinite(SVR(calibration_size=9).fit(X, VALUE).predict_interval(NEW, 0.1)).all()


def test_ties_count_as_farther_outside():
    rows = np.repeat([[0.0], [1.0]], [50, 50], axis=0)
    p = OneClassSVM(calibration_size=0.3, gamma=1.0).fit(rows).p_values([[0.0], [1.0]])
    held = OneClassSVM(calibration_size=0.3, gamma=1.0).fit(rows).calibration_indices_
    n = np.array([(held < 50).sum(), (held >= 50).sum()])
    assert sorted(p) in ([(1 + n[0]) / 31, 1.0], [(1 + n[1]) / 31, 1.0], [1.0, 1.0])


OF_TIES = {
    "targets": SVR(calibration_size=0.5, precision="float64"),
    "counts": SVR(calibration_size=0.5, loss="poisson"),
    "quantiles": SVR(calibration_size=0.5, loss="quantile", quantile=[0.2, 0.8], precision="float64"),
    "classes": SVC(calibration_size=0.5, precision="float64"),
    "one class": OneClassSVM(calibration_size=0.5, nu=0.2, precision="float64"),
}


@pytest.mark.parametrize("name", OF_TIES)
def test_rows_alike_are_as_far_outside_to_the_bit(name):
    """Rounding would leave out all rows that are like the one at the bound."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 2, size=(120, 3)).astype(float)
        y = rows[:, 0] * 0.7 + rng.choice([0.1, 1.3, 2.7], 120, p=[0.1, 0.8, 0.1])
        y = np.digitize(y, [0.5, 1.5]) if name in ("classes", "counts") else y
        estimator = clone(OF_TIES[name]).set_params(random_state=seed)
        estimator = estimator.fit(rows) if name == "one class" else estimator.fit(rows, y)
        held = estimator.calibration_indices_
        for alpha in (0.05, 0.1, 0.2, 0.3, 0.5):
            found, own = predicted(estimator, rows[held], alpha), y[held]
            if name == "one class":
                right = found > alpha
            elif name == "classes":
                right = found[np.arange(60), places(estimator, own)]
            else:
                right = (found[:, 0] <= own) & (own <= found[:, 1])
            assert right.sum() >= np.ceil(61 * (1 - alpha))


# -- how often it is right ----


def shares(make, alpha, n_runs=100):
    """The share of new rows that are right, in each of several runs with rows of their own."""
    found = []
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(260, 2))
        value = rows[:, 0] * rows[:, 1] + 0.3 * rng.standard_t(3, size=260)
        found.append(make(rows, value, seed, alpha))
    return np.mean(found), np.std(found) / np.sqrt(n_runs)


def of_intervals(rows, value, seed, alpha, size=39):
    low, high = (
        SVR(calibration_size=size, random_state=seed).fit(rows[:100], value[:100]).predict_interval(rows[100:], alpha).T
    )
    return np.mean((low <= value[100:]) & (value[100:] <= high))


def of_sets(rows, value, seed, alpha, conditional=False, size=39):
    y = np.digitize(value, [-0.4, 0.4])
    estimator = SVC(calibration_size=size, random_state=seed).fit(rows[:100], y[:100])
    inside = estimator.predict_set(rows[100:], alpha, class_conditional=conditional)
    right = inside[np.arange(160), y[100:]]
    return right[y[100:] == 2].mean() if conditional else right.mean()


def of_p_values(rows, value, seed, alpha, size=39):
    return np.mean(OneClassSVM(calibration_size=size, random_state=seed).fit(rows[:100]).p_values(rows[100:]) > alpha)


@pytest.mark.parametrize("of", [of_intervals, of_sets, of_p_values])
def test_the_mean_share_is_what_exchangeable_rows_have(of):
    """With 39 rows held out at α = 0.2 it is 32/40, for numbers without ties."""
    mean, error = shares(of, 0.2)
    assert abs(mean - 0.8) < 3 * error
    assert error < 0.01


def test_each_class_has_its_share():
    mean, error = shares(lambda *given: of_sets(*given, conditional=True), 0.2, 80)
    assert mean > 0.8 - 2 * error


@pytest.mark.parametrize("of", [of_intervals, of_sets, of_p_values])
def test_scores_out_of_fold_have_about_the_share(of):
    mean, _ = shares(lambda *given: of(*given, size="out-of-fold"), 0.2, 60)
    assert abs(mean - 0.8) < 0.03


def test_scores_of_training_rows_would_not():
    """What the closed form is for: residuals of rows that were fitted are too small."""

    def of_residuals(rows, value, seed, alpha):
        estimator = SVR(C=10.0, gamma=1.0).fit(rows[:100], value[:100])
        half = np.quantile(np.abs(value[:100] - estimator.predict(rows[:100])), 0.8)
        return np.mean(np.abs(value[100:] - estimator.predict(rows[100:])) <= half)

    def of_leaving_out(rows, value, seed, alpha):
        estimator = SVR(C=10.0, gamma=1.0, calibration_size="out-of-fold").fit(rows[:100], value[:100])
        low, high = estimator.predict_interval(rows[100:], alpha).T
        return np.mean((low <= value[100:]) & (value[100:] <= high))

    assert shares(of_residuals, 0.2, 40)[0] < 0.72
    assert abs(shares(of_leaving_out, 0.2, 40)[0] - 0.8) < 0.05


# -- scores out of fold ----


@pytest.mark.parametrize("name", ALL)
def test_out_of_fold_trains_on_all_rows_and_promises_nothing(name):
    estimator, y = fitted(name, calibration_size="out-of-fold")
    plain = clone(estimator).set_params(calibration_size=None)
    plain = plain.fit(X) if y is None else plain.fit(X, y)
    np.testing.assert_array_equal(estimator.basis_coef_, plain.basis_coef_)
    assert estimator.guarantee_ == "none"
    assert not hasattr(estimator, "calibration_indices_")
    assert np.isfinite(estimator.nonconformity_).all()
    assert len(estimator.nonconformity_) == (400 if isinstance(estimator.solver_, Exact) else 80)
    assert len(predicted(estimator, NEW)) == 300


@pytest.mark.parametrize(("make", "y"), [(SVR(C=5.0, gamma=0.3), VALUE[:60]), (OneClassSVM(gamma=0.3, nu=0.3), None)])
def test_scores_out_of_fold_are_near_those_of_estimators_without_the_row(make, y):
    rows = X[:60]
    estimator = clone(make).set_params(calibration_size="out-of-fold")
    estimator = estimator.fit(rows) if y is None else estimator.fit(rows, y)
    exact = []
    for i in range(60):
        rest = np.arange(60) != i
        other = make.fit(rows[rest]) if y is None else make.fit(rows[rest], y[rest])
        exact.append(-other.decision_function(rows[[i]])[0] if y is None else abs(y[i] - other.predict(rows[[i]])[0]))
    scale = np.std(exact)
    assert np.abs(estimator.nonconformity_ - np.sort(exact)).mean() < 0.15 * scale


def test_scores_of_a_one_class_estimator_of_fewer_rows_have_the_scale_of_all():
    estimator = fitted("one class on a budget", calibration_size="out-of-fold")[0]
    ratio = np.std(estimator.nonconformity_) / np.std(estimator.decision_function(X))
    assert 0.8 < ratio < 1.25


def test_a_cluster_takes_none():
    dask = pytest.importorskip("slimsvm.dask")
    for estimator, y in ((dask.SVC, TWO), (dask.SVR, VALUE)):
        with pytest.raises(ValueError, match=r"calibration_size=0\.2 is not offered for rows on a cluster"):
            estimator(max_basis=5, calibration_size=0.2).fit(X, y)


def test_pairs_of_other_classes_have_scores_of_rows_that_they_never_saw():
    estimator = SVC(calibration_size="out-of-fold").fit(X, THREE)
    is_vector = np.isin(np.arange(400), estimator.support_)
    own = misfit(estimator, X)[np.arange(400), places(estimator, THREE)]
    # Rows that are no vectors move by nothing.
    assert np.isin(np.round(own[~is_vector], 9), np.round(estimator.nonconformity_, 9)).mean() > 0.99


# -- rows of every kind, files, searches, limits ----


@pytest.mark.parametrize("name", ["two", "pairs", "targets, few vectors", "one class on a budget"])
def test_rows_of_every_kind(name, tmp_path):
    estimator, y = fitted(name)
    expected = predicted(estimator, NEW)
    mapped = np.memmap(tmp_path / "rows", np.float64, "w+", shape=X.shape)
    mapped[:] = X
    blocks = Blocks([X[lo : lo + 150] for lo in range(0, 400, 150)])
    in_blocks = [blocks] if "few" in name or "budget" in name else []  # the exact solver takes none
    for rows in (X.tolist(), np.asfortranarray(X), mapped, *in_blocks):
        other = clone(estimator).fit(rows) if y is None else clone(estimator).fit(rows, y)
        np.testing.assert_array_equal(predicted(other, NEW), expected)
    for rows in (sp.csr_array(X), X.astype(np.float32)):
        other = clone(estimator).fit(rows) if y is None else clone(estimator).fit(rows, y)
        found = predicted(other, NEW)
        most = 0.1 if name == "targets, few vectors" else 0.02  # moved vectors end elsewhere where digits differ
        assert np.mean(np.abs(found * 1.0 - expected) > most) < 0.03
        np.testing.assert_array_equal(other.calibration_indices_, estimator.calibration_indices_)


@pytest.mark.parametrize("offset", [0.0, 1000.0], ids=["near 0", "far from 0"])
@pytest.mark.parametrize("name", [*ALL, "counts"])
def test_rounding_moves_no_row_held_out_beyond_the_bound(name, offset, tmp_path):
    """Rows as they were held out, sparse and from a file: where nine rows of ten are alike, a digit decided for all."""
    counts = SVR(loss="poisson", calibration_size=0.25), np.digitize(VALUE, [0.0, 1.0])
    machine, y = counts if name == "counts" else ALL[name]
    rows = np.round(X) / 7 + offset
    machine = clone(machine).fit(rows) if y is None else clone(machine).fit(rows, y)
    machine.save(tmp_path / "m.slim")
    held, loaded = machine.calibration_indices_, slimsvm.load_predictor(tmp_path / "m.slim")
    for other, new in ((machine, rows[held]), (machine, sp.csr_array(rows[held])), (loaded, rows[held])):
        if y is None:
            assert (np.sort(other.p_values(new)) >= np.arange(2, 102) / 101).all()  # itself and the rows as far outside
            continue
        for alpha in (0.01, 0.1, 0.3, 0.5):
            found = predicted(other, new, alpha)
            labels = y[held]
            if found.dtype == bool:
                is_covered = found[np.arange(100), places(machine, labels)]
            else:
                is_covered = (found[:, 0] <= labels) & (labels <= found[:, 1])
            assert is_covered.sum() >= np.ceil(101 * (1 - Fraction(str(alpha))))


def test_a_data_frame_and_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    estimator = SVC(calibration_size=0.25).fit(frame, pandas.Series(THREE))
    np.testing.assert_array_equal(
        estimator.predict_set(pandas.DataFrame(NEW, columns=["a", "b", "c"])),
        SVC(calibration_size=0.25).fit(X, THREE).predict_set(NEW),
    )


@pytest.mark.parametrize("size", [0.25, "out-of-fold"])
@pytest.mark.parametrize("y", [TWO, THREE])
def test_matrices_of_kernel_values_and_objects(y, size):
    def kernel(a, b):
        a, b = np.asarray(list(a), float), np.asarray(list(b), float)
        return np.exp(-0.3 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

    expected = SVC(gamma=0.3, calibration_size=size).fit(X, y).predict_set(NEW)
    matrix = SVC(kernel="precomputed", calibration_size=size).fit(kernel(X, X), y)
    objects = SVC(kernel=kernel, calibration_size=size).fit([tuple(row) for row in X.tolist()], y)
    assert np.mean(matrix.predict_set(kernel(NEW, X)) != expected) < 0.01
    assert np.mean(objects.predict_set([tuple(row) for row in NEW.tolist()]) != expected) < 0.01
    if isinstance(size, float):
        np.testing.assert_array_equal(objects.calibration_indices_, matrix.calibration_indices_)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("size", [0.25, "out-of-fold"])
def test_files_pickles_and_threads(name, size, tmp_path):
    estimator, _ = fitted(name, calibration_size=size, n_jobs=1)
    estimator.save(tmp_path / "m.slim")
    loaded = slimsvm.load(tmp_path / "m.slim")
    assert loaded.guarantee_ == estimator.guarantee_
    assert loaded.calibration_size == size
    for other in (loaded, pickle.loads(pickle.dumps(estimator)), fitted(name, calibration_size=size, n_jobs=2)[0]):
        np.testing.assert_array_equal(other.nonconformity_, estimator.nonconformity_)
        np.testing.assert_array_equal(predicted(other, NEW), predicted(estimator, NEW))
    without_training_code = slimsvm.load_predictor(tmp_path / "m.slim")
    for alpha in (0.03, 0.2):
        found, own = predicted(without_training_code, NEW, alpha), predicted(estimator, NEW, alpha)
        assert found.dtype == own.dtype
        if own.dtype == bool:  # scores differ by rounding
            assert np.mean(found != own) < 0.003
            own = estimator.predict_set(NEW, alpha, class_conditional=True)
            assert np.mean(without_training_code.predict_set(NEW, alpha, class_conditional=True) != own) < 0.003
        else:
            np.testing.assert_allclose(found, own, atol=0.02 if own.ndim == 1 else 1e-5)


def test_predictors_promise_what_their_file_does(tmp_path):
    SVC(probability=True).fit(X, TWO).save(tmp_path / "m.slim")
    predictor = slimsvm.load_predictor(tmp_path / "m.slim")
    assert not any(hasattr(predictor, name) for name in ("predict_set", "predict_interval", "p_values"))
    counts = SVR(loss="poisson", calibration_size=0.25).fit(X, np.maximum(np.round(VALUE), 0.0))
    counts.save(tmp_path / "m.slim")
    predictor = slimsvm.load_predictor(tmp_path / "m.slim")
    np.testing.assert_allclose(predictor.predict_interval(NEW), counts.predict_interval(NEW), atol=1e-5)
    with pytest.raises(ValueError, match="alpha must be a number in"):
        predictor.predict_interval(NEW, alpha=1.0)


def test_many_rows_leave_a_small_file(tmp_path):
    rows = np.random.default_rng(3).normal(size=(30_000, 2))
    estimator = SVC(max_basis=5, random_state=0, calibration_size=0.5).fit(rows, rows[:, 0] > 0)
    assert len(estimator.calibration_indices_) == 15_000
    assert len(estimator.nonconformity_) == 5000
    estimator.save(tmp_path / "m.slim")
    assert (tmp_path / "m.slim").stat().st_size < 60_000


def test_a_search_passes_it_on():
    grid = {"C": [0.1, 1.0, 10.0]}
    ours = GridSearchSVC(SVC(calibration_size=0.25), grid, cv=3).fit(X, THREE)
    held = ours.best_estimator_.calibration_indices_
    folds = [[np.setdiff1d(part, held) for part in fold] for fold in StratifiedKFold(3).split(X, THREE)]
    theirs = GridSearchCV(SVC(calibration_size=0.25), grid, cv=folds).fit(X, THREE)
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    best = ours.best_estimator_
    assert best.guarantee_ == "1 - alpha"
    np.testing.assert_array_equal(best.predict_set(NEW), theirs.best_estimator_.predict_set(NEW))


def test_a_path_and_a_warm_start_see_the_same_rows():
    fits = slimsvm.path(SVR(calibration_size=0.25), X, VALUE, C=[0.1, 1.0])
    cold = SVR(calibration_size=0.25, C=1.0).fit(X, VALUE)
    np.testing.assert_allclose(fits[1].predict_interval(NEW), cold.predict_interval(NEW), atol=2e-3)
    np.testing.assert_array_equal(fits[0].calibration_indices_, fits[1].calibration_indices_)


@pytest.mark.parametrize("error", [OutOfTimeError, KeyboardInterrupt])
def test_a_fit_that_is_cut_short_keeps_its_guarantee(error, monkeypatch):
    rows, scores_of, calls = np.random.default_rng(4).normal(size=(4000, 2)), conformal.scores_of, []

    def cut_short(fit, problem, part):
        calls.append(part)
        if len(calls) == 1:
            raise error
        return scores_of(fit, problem, part)

    monkeypatch.setattr(conformal, "scores_of", cut_short)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        estimator = SVR(calibration_size=0.5, max_seconds=1e-9).fit(rows, rows[:, 0])
    assert any("200 of the rows held out" in str(each.message) for each in seen) == (error is KeyboardInterrupt)
    assert estimator.status_ == "time limit"
    assert estimator.guarantee_ == "1 - alpha"
    assert len(estimator.nonconformity_) == 200
    low, high = estimator.predict_interval(rows, 0.2).T
    assert 0.7 < np.mean((low <= rows[:, 0]) & (rows[:, 0] <= high)) < 0.9


def test_a_smaller_model_has_none():
    small = slimsvm.compress(fitted("two")[0], max_basis=5)
    with pytest.raises(NotFittedError, match="calibration_size"):
        small.predict_set(NEW)


# -- what is refused ----


@pytest.mark.parametrize("size", [0, -1, 0.0, 1.0, 1.5, -0.2, np.nan, np.inf, True, "0.2", "held", [0.2], 400, 500])
def test_sizes_that_are_none(size):
    for estimator, y in ((SVC(), TWO), (SVR(), VALUE), (OneClassSVM(), None)):
        with pytest.raises(ValueError, match="calibration_size"):
            estimator.set_params(calibration_size=size).fit(X, y)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.2, np.nan, "0.1", None, True])
def test_alpha_is_a_number_between_0_and_1(alpha):
    for name in ("two", "targets"):
        with pytest.raises(ValueError, match="alpha"):
            predicted(fitted(name)[0], NEW, alpha)


def test_there_is_nothing_without_calibration_size():
    for estimator, method, y in (
        (SVC(), "predict_set", TWO), (OrdinalSVC(), "predict_set", TWO),
        (CrossTrainedSVC(C=1.0, first_C=1.0), "predict_set", TWO), (SVR(), "predict_interval", VALUE),
        (OneClassSVM(), "p_values", None),
    ):  # fmt: skip
        assert not hasattr(estimator, method)
        with pytest.raises(AttributeError, match=rf"has no {method} without calibration_size: give 0\.2"):
            getattr(estimator, method)
        asked = clone(estimator).set_params(calibration_size=0.2)
        with pytest.raises(NotFittedError):
            getattr(asked, method)(NEW)
        plain = estimator.fit(X, y).set_params(calibration_size=0.2)
        with pytest.raises(NotFittedError, match=f"{method} needs a fit with calibration_size"):
            getattr(plain, method)(NEW)
        assert not hasattr(plain, "guarantee_")
        with pytest.raises(ValueError, match="contains NaN"):
            getattr(asked.fit(X, y), method)(np.full((1, 3), np.nan))


def test_what_they_are_not_offered_for():
    labels = np.stack([TWO, ~TWO], axis=1).astype(int)
    for size in (0.2, "out-of-fold"):
        with pytest.raises(ValueError, match="one label or target of each row, found y of shape"):
            SVC(calibration_size=size).fit(X, labels)
        for Estimator, y in ((SVC, TWO), (SVR, VALUE), (OneClassSVM, None)):
            with pytest.raises(ValueError, match="calibration_size holds out some of all rows"):
                Estimator(solver="bsgd", calibration_size=size).partial_fit(X, y)


@pytest.mark.parametrize("size", [0.3, "out-of-fold"])
@pytest.mark.parametrize("params", [{}, {"max_basis": 6, "random_state": 0}, {"max_seconds": 1e-9}])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_sparse_rows_of_many_columns(params, size):
    """Which are worked on by the columns that occur."""
    rng = np.random.default_rng(5)
    kind = rng.integers(0, 3, 90)
    wide = sp.csr_array((np.ones(270), (np.repeat(np.arange(90), 3), np.column_stack(
        [kind, rng.integers(3, 9, 90), 2**17 + rng.integers(0, 50, 90)]).ravel())), shape=(90, 2**18))  # fmt: skip
    for y in (kind, kind > 0):
        estimator = SVC(calibration_size=size, probability=True, **params).fit(wide, y)
        assert estimator.predict_set(wide, 0.2)[np.arange(90), places(estimator, y)].mean() > 0.7
        assert np.isfinite(estimator.predict_proba(wide)).all()


def test_a_pipeline_keeps_it(tmp_path):
    pipeline = make_pipeline(StandardScaler(), SVC(calibration_size=0.25)).fit(X, THREE)
    slimsvm.save(pipeline, tmp_path / "p.slim")
    loaded = slimsvm.load(tmp_path / "p.slim")
    rows = pipeline[:-1].transform(NEW)
    np.testing.assert_array_equal(loaded[-1].predict_set(rows), pipeline[-1].predict_set(rows))


def test_a_file_that_contradicts_itself(tmp_path):
    estimator, _ = fitted("pairs")
    for name, value in (
        ("nonconformity_", estimator.nonconformity_[::-1]),
        ("nonconformity_", np.full(100, np.nan)),
        ("nonconformity_", estimator.nonconformity_.astype(str)),
        ("nonconformity_classes_", estimator.nonconformity_classes_[1:]),
        ("nonconformity_classes_", estimator.nonconformity_classes_ + np.uint8(1)),
        ("guarantee_", 1),
    ):
        other = copy(estimator)
        setattr(other, name, value)
        other.save(tmp_path / "m.slim")
        with pytest.raises(slimsvm.ModelFileError):
            slimsvm.load(tmp_path / "m.slim")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("Search", [GridSearchSVC, GridSearchSVR])
def test_searches_choose_by_other_rows(Search, weighted, monkeypatch):
    """Rows held out may have any features and labels: the search and the model are the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    y = (y > 0).astype(int) if Search is GridSearchSVC else y
    weights = {"sample_weight": np.where(np.arange(120) % 10 == 0, 0.0, 1.0)} if weighted else {}
    estimator = (SVC if Search is GridSearchSVC else SVR)(calibration_size=0.25)
    # Of the same folds, whatever the labels are.
    folds = [(np.flatnonzero(np.arange(120) % 3 != k), np.flatnonzero(np.arange(120) % 3 == k)) for k in range(3)]
    first = Search(estimator, cv=folds).fit(X, y, **weights)
    held = first.best_estimator_.calibration_indices_
    other, labels = X.copy(), y.copy()
    other[held], labels[held] = 5.0 * X[held] + 1.0, y[held][::-1]
    again = Search(estimator, cv=folds).fit(other, labels, **weights)
    assert first.best_estimator_.guarantee_ == "1 - alpha"
    assert first.cv_results_["params"] == again.cv_results_["params"]
    np.testing.assert_array_equal(first.cv_results_["mean_test_score"], again.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(first.best_estimator_.basis_coef_, again.best_estimator_.basis_coef_)


def test_a_search_over_what_is_held_out_promises_nothing():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    search = GridSearchSVC(SVC(calibration_size=0.2), {"random_state": [1, 2]}, cv=3).fit(X, y)
    assert search.best_estimator_.guarantee_ == "none"
    one = GridSearchSVC(SVC(calibration_size=0.2, random_state=1), {"C": [1.0]}, cv=LeaveOneOut()).fit(X, y)
    assert one.best_estimator_.guarantee_ == "1 - alpha"
    assert one.n_splits_ == 48


@pytest.mark.parametrize("form", ["truth values", "lists", "from the end"])
def test_folds_of_any_form_leave_rows_held_out_alone(form):
    rows = np.arange(120)
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    as_given = {
        "truth values": lambda part: np.isin(rows, part),
        "lists": lambda part: part.tolist(),
        "from the end": lambda part: part - 120,
    }[form]
    grid, machine = {"C": [0.1, 1.0]}, SVC(calibration_size=0.25)
    expected = GridSearchSVC(machine, grid, cv=folds).fit(X[:120], TWO[:120])
    found = GridSearchSVC(machine, grid, cv=[tuple(map(as_given, fold)) for fold in folds]).fit(X[:120], TWO[:120])
    np.testing.assert_array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert found.best_estimator_.guarantee_ == "1 - alpha"


def test_folds_with_repeated_rows_keep_them():
    """A bootstrap has them."""
    rows, machine = np.arange(120), SVC(calibration_size=0.25, gamma=0.3)
    held = clone(machine).fit(X[:120], TWO[:120]).calibration_indices_
    left = np.setdiff1d(rows, held)
    single, several = left, np.concatenate([left, left[:20], left[:20]])
    found = [
        GridSearchSVC(machine, {"C": [1.0]}, cv=[(single, part)])
        .fit(X[:120], TWO[:120])
        .cv_results_["mean_test_score"][0]
        for part in (single, several, left[:20])
    ]
    assert found[0] != found[2]
    assert found[1] == pytest.approx((len(left) * found[0] + 40 * found[2]) / (len(left) + 40), rel=1e-12)
