"""The metric that an estimator learns by itself (``gamma="learn"``), with vectors or before an estimator."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from kernel_cases import NO_METRIC, OF_DISTANCES
from slimsvm import BSCA, SVC, SVR, Refine
from slimsvm.kernels import RBF, Laplacian
from slimsvm.parts.run import Status

# ---- gamma="learn"


def test_a_learned_metric_needs_no_search(noisy_moons, tmp_path):
    X, y, X_test, y_test = noisy_moons
    learned = SVC(gamma="learn", max_basis=10, random_state=0).fit(X, y)
    assert isinstance(learned.solver_, Refine)
    assert learned.n_basis_ <= 10
    gamma = np.array(learned.kernel_.gamma)
    assert gamma.shape == (8,)
    assert gamma[:2].min() > 3 * gamma[2:].max()
    best = max(
        SVC(gamma=gamma, solver="refine", max_basis=10, random_state=0).fit(X, y).score(X_test, y_test)
        for gamma in (0.03, 0.1, 0.3, 1.0)
    )
    assert learned.score(X_test, y_test) > best + 0.02
    learned.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    assert again.gamma == "learn"
    assert again.kernel_ == learned.kernel_
    np.testing.assert_array_equal(again.decision_function(X_test), learned.decision_function(X_test))


def test_the_start_may_be_given(noisy_moons):
    X, y = noisy_moons[:2]
    solver = Refine(5, rate=1e-9, epochs=1)
    for kernel, start in (("rbf", 1 / (8 * X.var())), (RBF(0.7), 0.7)):
        clf = SVC(kernel=kernel, gamma="learn", solver=solver, random_state=0).fit(X, y)
        np.testing.assert_allclose(clf.kernel_.gamma, start, rtol=1e-5)
    assert solver.learn_metric is False  # the user's object is as it was
    same = SVC(kernel=RBF(0.7), solver=Refine(5, epochs=3, learn_metric=True), random_state=0).fit(X, y)
    learned = SVC(kernel=RBF(0.7), gamma="learn", solver=Refine(5, epochs=3), random_state=0).fit(X, y)
    np.testing.assert_array_equal(learned.decision_function(X), same.decision_function(X))


def test_features_of_other_units_begin_as_if_standardised(noisy_moons):
    X, y = noisy_moons[:2]
    X = np.column_stack([X, np.full(len(X), 7.0)])
    for units, is_alike in ((np.array([1, 1, 3, 1, 1, 1, 1, 1, 1]), True), (10.0 ** np.arange(-4, 5), False)):
        variances = (X * units).var(axis=0)
        variances[8] = variances[:8].mean()
        start = 1 / (9 * (variances if not is_alike else (X * units).var()))
        clf = SVC(gamma="learn", solver=Refine(5, rate=1e-9, epochs=1), random_state=0).fit(X * units, y)
        np.testing.assert_allclose(clf.kernel_.gamma, start, rtol=1e-4)


@pytest.mark.parametrize(
    "settings", [{"max_basis": 10}, {"solver": "exact"}, {"solver": "exact", "kernel": "laplacian"}]
)
def test_scales_are_learned_of_features_in_any_unit(noisy_moons, settings):
    X, y, X_test, y_test = noisy_moons
    units = 10.0 ** np.array([-4, 3, 0, 4, -2, 2, -1, 1])
    learned, in_units = (SVC(gamma="learn", random_state=0, **settings) for _ in range(2))
    score = learned.fit(X, y).score(X_test, y_test)
    assert in_units.fit(X * units, y).score(X_test * units, y_test) > score - 0.02


def test_regression_learns_a_metric_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1500, 4))
    y = np.sin(3 * X[:, 1]) + 0.05 * rng.normal(size=1500)
    reg = SVR(gamma="learn", C=10.0, max_basis=12, random_state=0).fit(X, y)
    gamma = np.array(reg.kernel_.gamma)
    assert gamma[1] > 5 * np.delete(gamma, 1).max()
    assert np.abs(reg.predict(X) - np.sin(3 * X[:, 1])).mean() < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, f"{NO_METRIC} Polynomial"),
        ({"kernel": Laplacian(1.0)}, f"{NO_METRIC} Laplacian.*; solver='exact' takes scales"),
        ({"kernel": "precomputed"}, f"{NO_METRIC} Precomputed"),
        (
            {"solver": "exact", "kernel": "poly"},
            "a solver that learns no vectors needs kernel='rbf', .* found Polynomial",
        ),
        ({"solver": "exact-cuts", "loss": "f1"}, "gamma='learn' needs a loss that is a sum over examples, found FBeta"),
    ],
    ids=repr,
)
def test_what_cannot_learn_a_metric_says_so(parameters, message):
    X, y = np.eye(30), np.arange(30) % 2
    with pytest.raises(ValueError, match=message):
        SVC(gamma="learn", **parameters).fit(X, y)


@pytest.mark.parametrize("solver", ["auto", "exact"])
def test_a_metric_of_sparse_rows_is_refused(solver):
    with pytest.raises(ValueError, match="gamma='learn' needs dense rows, found a sparse matrix"):
        SVC(gamma="learn", solver=solver).fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])


# ---- gamma="learn" with solvers that learn no vectors


@pytest.mark.parametrize("kernel", OF_DISTANCES)
@pytest.mark.parametrize("solver", ["exact", "low-rank", BSCA(max_basis=200, maintenance="project")], ids=repr)
def test_scales_are_learned_before(noisy_moons, kernel, solver, tmp_path):
    X, y, X_test, y_test = noisy_moons
    plain = SVC(kernel=kernel, solver=solver, random_state=0).fit(X, y)
    learned = SVC(kernel=kernel, solver=solver, gamma="learn", random_state=0).fit(X, y)
    gamma = learned.kernel_.gamma
    assert gamma.shape == (8,)
    assert gamma[:2].min() > 1.5 * gamma[2:].max()
    assert learned.score(X_test, y_test) > plain.score(X_test, y_test) + 0.005
    slimsvm.save(learned, tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    np.testing.assert_array_equal(again.decision_function(X_test), learned.decision_function(X_test))


@pytest.mark.parametrize("kernel", OF_DISTANCES)
def test_the_estimator_is_that_of_scaled_features(noisy_moons, kernel):
    X, y, X_test, _ = noisy_moons
    learned = SVC(kernel=kernel, gamma="learn", solver="exact", random_state=0).fit(X, y)
    scales = learned.kernel_.gamma ** (1.0 if learned.kernel_.form == "absolute" else 0.5)
    scales /= np.sqrt(np.mean(scales**2))
    same = SVC(kernel=kernel).fit(X * scales, y)
    np.testing.assert_allclose(learned.decision_function(X_test), same.decision_function(X_test * scales), atol=5e-3)


@pytest.mark.parametrize("kernel", [RBF(0.3), Laplacian(0.3), RBF(np.full(8, 0.3))], ids=repr)
def test_the_mean_of_the_gammas_may_be_given(noisy_moons, kernel):
    X, y = noisy_moons[:2]
    learned = SVC(kernel=kernel, gamma="learn", solver="exact", random_state=0).fit(X, y)
    assert np.mean(learned.kernel_.gamma) == pytest.approx(0.3)
    assert np.ptp(learned.kernel_.gamma) > 0.1


def test_scales_of_pairs_of_classes_and_of_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 4))
    codes = np.digitize(np.sin(3 * X[:, 1]), [-0.5, 0.5])
    clf = SVC(gamma="learn", solver="exact", random_state=0).fit(X, codes)
    assert clf.multi_class_ == "ovo"
    reg = SVR(gamma="learn", solver="exact", random_state=0).fit(X, np.sin(3 * X[:, 1]))
    for gamma in (clf.kernel_.gamma, reg.kernel_.gamma):
        assert gamma[1] > 2 * np.delete(gamma, 1).max()


def test_scales_take_half_the_usual_steps(monkeypatch):
    fits, solve = [], Refine.solve
    monkeypatch.setattr(Refine, "solve", lambda *args, **options: fits.append(solve(*args, **options)) or fits[-1])
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5120, 3))
    SVC(gamma="learn", solver="exact", random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    (fit,) = fits
    assert len(fit.history) == 300  # sweeps of ten batches


def test_scales_and_C_on_rows_held_out(noisy_moons):
    X, y = noisy_moons[:2]
    clf = SVC(C="validate", gamma="learn", solver="exact", random_state=0).fit(X, y)
    assert len(clf.validation_) >= 3
    assert clf.C_ in [trial["C"] for trial in clf.validation_]
    assert clf.kernel_.gamma.shape == (8,)


def test_scales_are_not_learned_from_a_chunk():
    with pytest.raises(ValueError, match=r"gamma='learn' finds scales .* partial_fit never sees"):
        SVC(gamma="learn", solver="bsca").partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1])


def test_ctrl_c_while_scales_are_learned_ends_the_fit(noisy_moons, monkeypatch):
    X, y = noisy_moons[:2]
    solve = Refine.solve
    monkeypatch.setattr(Refine, "solve", lambda self, problem: replace(solve(self, problem), status=Status.INTERRUPTED))
    with pytest.raises(KeyboardInterrupt):
        SVC(gamma="learn", solver="exact", random_state=0).fit(X, y)


def test_time_for_scales_is_part_of_max_seconds(noisy_moons, monkeypatch):
    X, y = noisy_moons[:2]
    seen, solve = [], Refine.solve

    def watched(self, problem):
        seen.append(problem.max_seconds)
        return solve(self, problem)

    monkeypatch.setattr(Refine, "solve", watched)
    SVC(gamma="learn", solver="exact", max_seconds=100.0, random_state=0).fit(X, y)
    assert seen == [30.0]
