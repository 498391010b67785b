"""A regression of targets in other units is the same regression: predictions, objectives and bounds in those units."""

import numpy as np
import pytest

from slimsvm import SVR, GridSearchSVR, LowRank, NuSVR, Refine
from slimsvm.tasks import Quantiles, Regression, SmoothRegression

UNITS = (1e-7, 1e8)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=240) + 0.3


def in_units(unit, loss="epsilon_insensitive", C=10.0, epsilon=0.1):
    """Parameters that make the problem of targets in these units the same one."""
    own = {"loss": loss, "C": C if loss in ("squared", "huber") else C * unit}
    return own | ({"epsilon": epsilon * unit} if loss in ("huber", "epsilon_insensitive") else {})


def fitted(rows, unit, loss, **options):
    X, y = rows
    model = SVR(**in_units(unit, loss), random_state=0, **options).fit(X, unit * y)
    return model, model.predict(X) / unit


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile", "squared", "huber"])
def test_estimators_of_all_rows(rows, loss, intercept, unit):
    first, expected = fitted(rows, 1.0, loss, intercept=intercept)
    model, found = fitted(rows, unit, loss, intercept=intercept)
    assert model.status_ == first.status_ == "converged"
    np.testing.assert_allclose(found, expected, atol=2e-3)
    np.testing.assert_allclose(model.objective_ / unit**2, first.objective_, rtol=1e-3)
    assert model.lower_bound_ / unit**2 == pytest.approx(first.lower_bound_, rel=1e-3)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "options",
    [{"solver": LowRank(max_basis=40)}, {"solver": "cpsp", "max_basis": 20}, {"solver": "bsca", "max_basis": 40}],
    ids=["low-rank", "pursuit", "budget"],
)
def test_fixed_vectors(rows, options, unit):
    _, expected = fitted(rows, 1.0, "epsilon_insensitive", **options)
    _, found = fitted(rows, unit, "epsilon_insensitive", **options)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("gamma", ["scale", "learn"])
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "epsilon_insensitive"])
def test_learned_vectors(rows, loss, gamma, unit):
    """Steps that round otherwise lead elsewhere, but not to another quality."""
    first, _ = fitted(rows, 1.0, loss, gamma=gamma, max_basis=15)
    model, _ = fitted(rows, unit, loss, gamma=gamma, max_basis=15)
    assert model.objective_ / unit**2 < 1.3 * first.objective_
    X, y = rows
    assert model.score(X, unit * y) > first.score(X, y) - 0.02


@pytest.mark.parametrize("unit", [2.0**-32, 2.0**32])
def test_steps_to_the_bit(rows, unit):
    """By powers of two nothing rounds, and Adam's constants are beside numbers of the same size."""
    solver = Refine(max_basis=10, epochs=20, learn_metric=True)
    _, expected = fitted(rows, 1.0, "squared", solver=solver)
    _, found = fitted(rows, unit, "squared", solver=solver)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("unit", UNITS)
def test_nu(rows, unit):
    X, y = rows
    first, model = (NuSVR(nu=0.3, C=10 * u).fit(X, u * y) for u in (1.0, unit))
    np.testing.assert_allclose(model.predict(X) / unit, first.predict(X), atol=2e-3)
    assert model.epsilon_ / unit == pytest.approx(first.epsilon_, rel=5e-3)
    certificate = model.certificate(X, unit * y)
    assert certificate.gap < 1e-3
    assert model.lower_bound_ <= certificate.objective


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared", "quantile"])
def test_certificates(rows, loss, unit):
    X, y = rows
    options = {"solver": LowRank(max_basis=40), "random_state": 0}
    bounds = [
        SVR(**in_units(u, loss), **options).fit(X, u * y).certificate(X, u * y).lower_bound / u**2 for u in (1.0, unit)
    ]
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


def test_several_targets_and_quantiles(rows):
    X, y = rows
    both = np.column_stack([y, X[:, 3] * y])
    for targets, own in ((both, {}), (y, {"loss": "quantile", "quantile": [0.1, 0.9]})):
        found = [
            SVR(**(in_units(u) | own), random_state=0).fit(X, u * targets).predict(X) / u for u in (1.0, 1e-7, 1e8)
        ]
        np.testing.assert_allclose(found[1], found[0], atol=5e-3)
        np.testing.assert_allclose(found[2], found[0], atol=5e-3)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gamma": "validate"},
        {"gamma": "learn", "solver": "exact"},
        {"solver": LowRank(max_basis=40)},
        {"loss": "quantile"},
        {"loss": "huber", "solver": LowRank(max_basis=40)},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "exact",
)
def test_C_is_chosen_in_units_of_the_targets(rows, options, unit):
    X, y = rows
    first, model = (SVR(C="validate", epsilon=0.1 * u, random_state=0, **options).fit(X, u * y) for u in (1.0, unit))
    is_squared = options.get("loss") == "huber"
    assert model.C_ / (1.0 if is_squared else unit) == pytest.approx(first.C_)
    np.testing.assert_allclose(model.predict(X) / unit, first.predict(X), atol=1e-2)


def test_learned_vectors_choose_C_to_the_bit(rows):
    X, y = rows
    first, model = (
        SVR(C="validate", epsilon=0.1 * u, max_basis=10, random_state=0).fit(X, u * y) for u in (1.0, 2.0**32)
    )
    assert model.C_ == 2.0**32 * first.C_
    np.testing.assert_allclose(model.predict(X) / 2.0**32, first.predict(X), atol=1e-9)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile"])
def test_a_default_grid_is_in_units_of_the_targets(rows, loss, unit):
    X, y = rows
    first, search = (GridSearchSVR(SVR(loss=loss), cv=2).fit(X, u * y) for u in (1.0, unit))
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"], atol=1e-3)
    assert search.best_params_["C"] / unit == pytest.approx(first.best_params_["C"])
    assert ("epsilon" in search.best_params_) == (loss != "quantile")
    n_tubes = 2 if loss == "epsilon_insensitive" else 1
    assert len(search.cv_results_["params"]) == 25 * n_tubes


def test_units_of_C():
    """A slope times C is a dual variable, which has the units of scores."""
    X, y = np.linspace(0, 1, 20)[:, None], np.tile([0.0, 20.0], 10)
    for options, unit in (({}, 10.0), ({"loss": "squared"}, 1.0), ({"loss": "huber", "epsilon": 0.5}, 20.0)):
        tried = [trial["C"] for trial in SVR(C="validate", **options).fit(X, y).validation_]
        assert tried[0] == pytest.approx(0.1 * unit)


def test_units():
    task = Regression()
    assert task.units(task.encode(np.array([1.0, 3.0]))) == (1.0, 1.0)
    assert task.units(task.encode(np.array([1.0, 3.0]), np.array([1.0, 3.0])))[0] == pytest.approx(0.75**0.5)
    assert task.units(task.encode(np.array([5.0, 5.0]))) == (5.0, 1.0)  # where all are alike, their size
    assert task.units(task.encode(np.zeros(2))) == (1.0, 1.0)
    squared, huber = SmoothRegression(), SmoothRegression("huber", epsilon=0.5)
    assert squared.units(squared.encode(np.array([-4.0, 4.0]))) == (4.0, 4.0)
    assert huber.units(huber.encode(np.array([-4.0, 4.0]))) == (4.0, 0.5)
    counts = SmoothRegression("poisson")
    assert counts.units(counts.encode(np.array([0.0, 400.0]))) == (1.0, 1.0)
    quantiles = Quantiles((0.1, 0.9))
    assert quantiles.units(quantiles.encode(np.array([1.0, 3.0]))) == (1.0, 1.0)


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("max_basis", [None, 5])
def test_targets_whose_squares_are_infinite(rows, loss, max_basis):
    X, y = rows
    with pytest.raises(ValueError, match=f"loss='{loss}' takes squares: targets are at most 1e\\+140, found"):
        SVR(loss=loss, max_basis=max_basis).fit(X, 1e200 * y)
    SVR(loss=loss, max_basis=max_basis, random_state=0).fit(X, 1e100 * y)
