"""Coefficients of a given basis: what is known on the way, and how far small problems are solved."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from low_rank_cases import problem_of
from slimsvm import CPSP, SVC, ExactCuts, LowRank
from slimsvm.parts.run import Status
from slimsvm.parts.span import smoothed_newton
from slimsvm.parts.span.smoothed_newton import NewtonSettings


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize("task", ["binary", "regression"])
def test_what_is_known_at_a_point_is_of_that_point_and_its_tau(task, intercept):
    problem, X, _ = problem_of(task, 200, intercept=intercept)
    space = smoothed_newton.subspace(problem, problem.bind(), X[:20])
    finish, taus = smoothed_newton.ConvexFinish(problem, space, problem.generator(), np.inf, 1e-6), set()
    for _ in range(30):
        finish.step()
        taus.add(finish.tau)
        (scores,) = finish.point.scores
        smoothed = problem.task.smooth(scores, finish.tau, finish.examples)
        np.testing.assert_array_equal(finish.passes.residual(finish.values.smoothed), smoothed.residual)
        np.testing.assert_allclose(scores, finish.space.times(finish.point.u), rtol=0, atol=1e-9)
    assert len(taus) > 3


@pytest.mark.parametrize(
    ("task", "n", "k", "is_exact"),
    [
        ("multiclass-costs", 150, 20, True),
        ("multiclass-costs", 700, 20, False),
        ("multiclass-costs", 300, 170, False),
        ("binary", 700, 170, True),
    ],
)
@pytest.mark.parametrize("solver", [LowRank, CPSP], ids=lambda s: s.__name__)
def test_small_problems_are_solved_to_rounding_where_that_is_little_work(solver, task, n, k, is_exact):
    problem, _, _ = problem_of(task, n)
    fit = solver(max_basis=k).solve(problem)
    gap = (fit.objective - fit.counters["bound_in_basis"]) / fit.objective
    assert fit.status == Status.CONVERGED
    assert (gap <= 1.01e-10) == is_exact
    assert gap <= 1e-3


def test_the_exact_optimum_of_several_classes_to_rounding_up_to_2000_numbers():
    gaps = []
    for n in (150, 700):
        fit = ExactCuts().solve(problem_of("multiclass-costs", n)[0])
        gaps.append((fit.objective - fit.lower_bound) / fit.objective)
    assert gaps[0] <= 1.01e-10 < gaps[1] <= 1e-3


def test_several_outputs_that_steps_by_conjugate_gradients_crawl_to():
    X, y = load_digits(return_X_y=True)
    clf = SVC(kernel="linear", solver=LowRank(max_basis=20), random_state=0).fit(X, y)
    assert clf.objective_ - clf.counters_["bound_in_basis"] <= 1e-3 * clf.objective_
    assert len(clf.history_) < 100


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("task", ["binary", "regression", "multiclass-costs"])
def test_sums_in_parts_find_the_same(task, intercept, monkeypatch):
    if intercept == "free" and task == "multiclass-costs":
        pytest.skip("a free intercept is for one score column")
    problem, X, _ = problem_of(task, 700, intercept=intercept)
    found = []
    for rows, kept in ((1 << 18, 1 << 21), (300, 1 << 21), (300, 0)):
        monkeypatch.setattr("slimsvm.rows.arrays.PASS_ROWS", rows)
        fit = LowRank(max_basis=20, basis=np.ascontiguousarray(X[:20])).solve(
            replace(problem, settings=(NewtonSettings(kept_rows=kept),))
        )
        found.append((fit.objective, fit.counters["bound_in_basis"], fit.history[-1]["training_error"]))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)
    assert found[2] == found[1]
