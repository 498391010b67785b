"""Losses of numbers with two derivatives: quantiles, several targets, counts, Huber's loss."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss

from slimsvm import SVR, Exact, LowRank, load, load_predictor, tasks

NUMBERS = sorted(tasks.NUMBER_LOSSES)


@pytest.mark.parametrize("tau", [0.05, 2.0])
def test_the_smoothed_quantile_loss_its_slope_and_its_curvature_are_those_of_the_formula(tau):
    rng = np.random.default_rng(0)
    y, f, weights, q = rng.normal(size=200), rng.normal(size=(200, 1)), rng.uniform(0.5, 2, 200), 0.3
    found = tasks.Quantile(q).smooth(f, tau, tasks.Quantile(q).encode(y, weights))
    r = y - f[:, 0]
    share = 1 / (1 + np.exp(-r / tau))
    assert found.loss == pytest.approx(weights @ np.maximum(q * r, (q - 1) * r), rel=1e-12)
    assert found.value == pytest.approx(weights @ ((q - 1) * r + tau * np.logaddexp(0, r / tau)), rel=1e-12)
    np.testing.assert_allclose(found.residual[:, 0], weights * (share + q - 1), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(found.curvature[:, 0], weights * share * (1 - share) / tau, rtol=1e-9, atol=1e-14)


def test_quantiles_of_scikit_learn():
    """A linear program without penalty, and the exact SVM of one quantile, at a large C."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 1))
    y = np.sin(2 * X[:, 0]) + rng.exponential(0.5, 120)
    for q in (0.2, 0.5, 0.9):
        ours = SVR(loss="quantile", quantile=q, kernel="linear", C=1e3, tol=1e-6).fit(X, y)
        peer = QuantileRegressor(quantile=q, alpha=0.0, solver="highs").fit(X, y)
        losses = [mean_pinball_loss(y, each.predict(X), alpha=q) for each in (ours, peer)]
        assert losses[0] == pytest.approx(losses[1], rel=1e-4)
        smoothed = SVR(loss="quantile", quantile=q, gamma=1.0, solver=LowRank(None), intercept="free").fit(X, y)
        exact = SVR(loss="quantile", quantile=q, gamma=1.0, tol=1e-6).fit(X, y)
        assert isinstance(exact.solver_, Exact)
        assert smoothed.objective_ == pytest.approx(exact.objective_, rel=1e-5)
        assert exact.lower_bound_ <= smoothed.objective_ * (1 + 1e-9)
        assert exact.lower_bound_ == pytest.approx(exact.objective_, rel=1e-4)
        assert np.mean(y < exact.predict(X)) == pytest.approx(q, abs=0.06)
        few = SVR(loss="quantile", quantile=q, gamma=1.0, max_basis=10, random_state=0).fit(X, y)
        assert few.objective_ < 1.1 * exact.objective_


def test_several_quantiles_do_not_cross(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 2))
    y = np.sin(2 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, 1])) * rng.normal(size=150)
    several = [0.1, 0.4, 0.5, 0.6, 0.9]
    whole = SVR(loss="quantile", quantile=several, gamma=1.0, C=10.0).fit(X, y)
    Z = rng.uniform(-3, 3, size=(500, 2))
    found = whole.predict(Z)
    assert found.shape == (500, 5)
    assert (np.diff(found, axis=1) >= 0).all()
    apart = [SVR(loss="quantile", quantile=q, gamma=1.0, C=10.0, intercept="regularized", tol=1e-6) for q in several]
    total = sum(each.fit(X, y).objective_ for each in apart)
    newton = SVR(loss="quantile", quantile=several, gamma=1.0, C=10.0, solver=LowRank(None)).fit(X, y)
    assert newton.objective_ == pytest.approx(total, rel=1e-5)
    assert newton.lower_bound_ <= total
    whole = SVR(loss="quantile", quantile=several, gamma=1.0, C=10.0, intercept="regularized").fit(X, y)
    assert isinstance(whole.solver_, Exact)
    assert whole.objective_ == pytest.approx(total, rel=1e-3)
    assert whole.lower_bound_ <= total
    assert whole.certificate(X, y).lower_bound <= total * (1 + 1e-9)
    few = SVR(loss="quantile", quantile=np.array(several), gamma=1.0, C=10.0, max_basis=5, random_state=0).fit(X, y)
    assert (np.diff(few.model_.scores(Z), axis=1) < 0).any()  # before they are sorted
    assert 0.2 < few.score(X, y) <= 1.0
    few.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict(Z), few.predict(Z))
    np.testing.assert_allclose(load_predictor(tmp_path / "model.slim").predict(Z), few.predict(Z), atol=1e-6)
    few.to_json(tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text())["quantile"] == several


NUMBERS_OF_TASKS = [*NUMBERS, "epsilon_insensitive", "quantile"]


@pytest.mark.parametrize("loss", NUMBERS_OF_TASKS)
def test_several_targets_are_as_many_problems(loss, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2, 3 + X.sum(axis=1)]) + 0.1 * rng.normal(size=(120, 3))
    Y = rng.poisson(np.exp(np.clip(Y, -3, 3))).astype(float) if loss == "poisson" else Y
    weights = rng.uniform(0.5, 2, 120)
    params = {"loss": loss, "gamma": 1.0, "C": 5.0, "intercept": "none" if loss == "poisson" else "regularized"}
    whole = SVR(tol=1e-6, **params).fit(X, Y, sample_weight=weights)
    newton = SVR(solver=LowRank(None), **params).fit(X, Y, sample_weight=weights)
    apart = [SVR(tol=1e-6, **params).fit(X, Y[:, j], sample_weight=weights) for j in range(3)]
    total = sum(each.objective_ for each in apart)
    for each in (whole, newton):
        assert each.objective_ == pytest.approx(total, rel=1e-5)
        assert each.lower_bound_ <= total * (1 + 1e-9)
        assert each.lower_bound_ == pytest.approx(total, rel=1e-4)
    assert whole.predict(X).shape == (120, 3)
    np.testing.assert_allclose(
        whole.predict(X), np.column_stack([each.predict(X) for each in apart]), rtol=0.02, atol=0.02
    )
    few = SVR(max_basis=20, random_state=0, **params).fit(X, Y, sample_weight=weights)
    assert few.objective_ < 1.5 * total
    assert few.predict(X).shape == (120, 3)
    assert few.certificate(X, Y, sample_weight=weights).lower_bound <= total * (1 + 1e-9)
    few.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict(X), few.predict(X))
    np.testing.assert_allclose(load_predictor(tmp_path / "model.slim").predict(X), few.predict(X), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="give max_basis a number"):
        SVR(max_basis="auto", **params).fit(X, Y)


def test_counts_are_predicted_by_exponentials():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 1))
    y = rng.poisson(1000.0 * np.exp(np.sin(2 * X[:, 0])))
    reg = SVR(loss="poisson", gamma=1.0).fit(X, y)
    assert reg.status_ == "converged"
    np.testing.assert_allclose(reg.predict(X), np.exp(reg.model_.scores(X)[:, 0]))
    assert reg.score(X, y) > 0.97
    # A free intercept makes the sum of predictions that of the counts.
    free = SVR(loss="poisson", gamma=1.0, intercept="free").fit(X, y)
    assert free.predict(X).sum() == pytest.approx(y.sum(), rel=1e-6)
    peer = PoissonRegressor(alpha=1 / (300 * 2.0), tol=1e-10, max_iter=1000).fit(X, y)
    line = SVR(loss="poisson", kernel="linear", C=2.0, intercept="free").fit(X, y)
    np.testing.assert_allclose(line.predict(X), peer.predict(X), rtol=1e-3)
    y[7] = -1
    with pytest.raises(ValueError, match=r"loss='poisson' needs targets >= 0, found -1\.0 in row 7"):
        reg.fit(X, y)
    for some in ({"calibration_size": 0.5}, {}):  # rows that are held out or have no weight count as well
        estimator, weights = clone(reg).set_params(**some), np.where(np.arange(300) < 5, 0.0, 1.0)
        held = np.arange(300)[:0] if not some else SVR(**some).fit(X, np.abs(y), weights).calibration_indices_
        row = int(np.setdiff1d(np.arange(200, 300), held)[0])
        other = np.abs(y)
        other[row] = -2
        with pytest.raises(ValueError, match=rf"found -2\.0 in row {row}$"):
            estimator.fit(X, other, weights)
    with pytest.raises(ValueError, match="needs a target above 0"):
        reg.fit(X, np.zeros(300))


def test_huber_s_loss_lies_between_the_squared_one_and_that_of_a_tube():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(100, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=100)
    y[:5] += 20.0
    squared, wide, narrow = (
        SVR(gamma=1.0, C=10.0, **params).fit(X, y)
        for params in ({"loss": "squared"}, {"loss": "huber", "epsilon": 1e6}, {"loss": "huber", "epsilon": 0.1})
    )
    assert wide.objective_ == pytest.approx(squared.objective_, rel=1e-9)
    truth = np.sin(2 * X[:, 0])
    assert np.abs(narrow.predict(X) - truth).mean() < 0.3 * np.abs(squared.predict(X) - truth).mean()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "quantile", "quantile": 1.0}, "quantile must be a number between 0 and 1"),
        ({"loss": "quantile", "quantile": [0.9, 0.1]}, "must be in rising order"),
        ({"loss": "quantile", "quantile": []}, "must be in rising order"),
        ({"loss": "quantile", "quantile": [[0.1, 0.9]]}, "quantile must be a number between 0 and 1"),
        ({"loss": "huber", "epsilon": 0.0}, "epsilon must be a number > 0"),
        ({"loss": "quantile", "solver": "bsca"}, "solver='refine' trains it"),
    ],
)
def test_parameters_of_regressions_that_cannot_be_are_named(params, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=message):
        SVR(**params).fit(X, X[:, 0])
