"""C, weights and costs whose squares are 0 in float64: a fit ends with a model, and no division by 0."""

import warnings

import numpy as np
import pytest

from slimsvm import CPSP, SVC, SVR, LowRank, OrdinalSVC, Refine


def three_classes(seed):
    return np.random.default_rng(seed).normal(size=(12, 2)), np.arange(12) % 3


def fitted(estimator, X, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.set_params(random_state=0, n_jobs=1).fit(X, y, **options)
    assert np.isfinite(estimator.predict(X)).all()
    assert np.isfinite(estimator.objective_)


@pytest.mark.parametrize("C", [1e-165, 1e-164, 1e-163, 1e-160, 1e-155])
@pytest.mark.parametrize("solver", [CPSP(5), LowRank(6, tol_relative=0.01), Refine(5, epochs=3)])
def test_a_C_without_square(solver, C):
    estimators = [SVC(C=C, solver=solver), SVR(C=C, solver=solver)]
    for estimator in estimators if isinstance(solver, LowRank) else [*estimators, OrdinalSVC(C=C, solver=solver)]:
        fitted(estimator, *three_classes(0))


@pytest.mark.parametrize("solver", [CPSP(5), LowRank(6, tol_relative=0.01), Refine(5, epochs=3)])
def test_weights_without_square(solver):
    fitted(SVC(solver=solver), *three_classes(1), sample_weight=np.full(12, 1e-164))


@pytest.mark.parametrize(("seed", "power", "share"), [(9, -159, 1 / 30), (0, -160, 1 / 10), (3, -158, 1.0)])
def test_costs_as_small_as_C(seed, power, share):
    """The slopes between which a line search looks for its root become 0, halved again and again."""
    C = 10.0**power
    costs = share * C * (1 - np.eye(3))
    fitted(SVC(C=C, cost_matrix=costs, solver=LowRank(3, tol_relative=0.3)), *three_classes(seed))
