"""BSCA in the paper's form beside Algorithm 1 written out, and what figure 1 shows of BSGD."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import naive
from budgeted_cases import anyhow, larger
from slimsvm import BSCA, BSGD, SVC
from slimsvm.budget import Merge
from slimsvm.kernels import RBF

GAMMA, C, BUDGET = 0.3, 5.0, 12


def kernel(x, z):
    return np.exp(-GAMMA * np.sum((x - z) ** 2, axis=-1))


def merged(points, beta):
    """The point of the smallest coefficient and the best of its own sign become one, by a search along the line."""
    r = int(np.argmin(np.abs(beta)))
    found = []
    for j in np.flatnonzero((beta * beta[r] > 0) & (np.arange(len(beta)) != r)):
        k = kernel(points[r], points[j])

        def kept(h, j=j, k=k):
            return beta[r] * k ** ((1 - h) ** 2) + beta[j] * k ** (h**2)

        def lost(h, j=j, k=k, kept=kept):
            return beta[r] ** 2 + beta[j] ** 2 + 2 * beta[r] * beta[j] * k - kept(h) ** 2

        h = minimize_scalar(lost, bounds=(0, 0.5), method="bounded", options={"xatol": 1e-10}).x
        found.append((lost(h), j, h, kept(h)))
    if found:
        _, j, h, value = min(found)
        points[j], beta[j] = (1 - h) * points[j] + h * points[r], value
    return np.delete(points, r, axis=0), np.delete(beta, r)


def papers_bsca(X, y, order):
    """Algorithm 1: dual coordinate ascent with the scores of the budgeted model, a merger for each point too many."""
    alpha, points, beta = np.zeros(len(y)), np.zeros((0, X.shape[1])), np.zeros(0)
    for i in order:
        f = beta @ kernel(points, X[i])
        new = np.clip(alpha[i] + 1 - y[i] * f, 0, C)
        delta, alpha[i] = new - alpha[i], new
        if delta:
            same = np.flatnonzero((points == X[i]).all(axis=1))
            if len(same):  # the row is a point already
                beta[same[0]] += y[i] * delta
            else:
                points, beta = np.vstack([points, X[i]]), np.append(beta, y[i] * delta)
            if len(beta) > BUDGET:
                points, beta = merged(points, beta)
    return alpha, points, beta


@pytest.mark.parametrize("search", ["golden-section", "table"])
def test_300_steps_are_those_of_algorithm_1(search):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    solver = BSCA(
        BUDGET, epochs=1, damping=0, average=False, finish=False, selection="uniform",
        maintenance=Merge(search, two_signs=False),
    )  # fmt: skip
    clf = SVC(C=C, gamma=GAMMA, solver=solver, intercept="none", precision="float64")
    clf.set_params(random_state=np.random.default_rng(0)).fit(X, y)
    draws = np.random.default_rng(0)
    draws.integers(2**63)  # the report's own random numbers
    alpha, points, beta = papers_bsca(X, y, draws.integers(0, 300, 300))
    assert clf.history_[-1]["merge_fraction"] > 0.3
    expected = beta @ kernel(points[:, None], X)
    np.testing.assert_allclose(clf.decision_function(X), expected, atol=1e-5 if search == "golden-section" else 0.05)
    linear = clf.history_[-1]["dual_of_model"] + 0.5 * beta @ kernel(points[:, None], points) @ beta
    assert linear == pytest.approx(alpha.sum(), rel=1e-6 if search == "golden-section" else 1e-2)


def test_the_dual_of_gradient_steps_is_that_of_what_each_row_was_given():
    """Without a budget Σα is that of the coefficients, also where a fit goes on from another."""
    problem = larger(200, intercept="none", precision="float64")
    X, y = problem.rows.slice(0, 200, np.float64), problem.examples.labels
    K = naive.kernel_matrix(RBF(0.3), X, X)
    fit = anyhow(BSGD(199, epochs=3, average=False, finish=False, maintenance="remove"), problem)
    again = anyhow(BSGD(199, epochs=2, average=False, finish=False, maintenance="remove"), problem)
    again = BSGD(199, epochs=1, average=False, finish=False, maintenance="remove").solve(problem, again.state)
    for found in (fit, again):
        assert sum(record["merge_fraction"] for record in found.history) == 0
        scores = found.model.scores(X)[:, 0]
        beta = np.linalg.lstsq(K, scores, rcond=None)[0]
        dual = y @ beta - 0.5 * beta @ K @ beta
        assert found.history[-1]["dual_of_model"] == pytest.approx(dual, rel=1e-5)


def test_rows_of_different_weights_have_no_dual_of_gradient_steps():
    problem = larger(100, intercept="none")
    problem.examples.weights[0] = 2.0
    assert anyhow(BSGD(20, epochs=1, finish=False), problem).history[-1]["dual_of_model"] is None
