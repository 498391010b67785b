"""Coefficients of two classes, and of all pairs of several, over given vectors."""

import time
from dataclasses import replace

import numpy as np
import pytest

from slimsvm import SVC
from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.parts.span.best_coefficients import AscentSettings, pair_coefficients
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, OneVsOne

TO_MANY_DIGITS = (AscentSettings(tol=1e-6, sweeps=20_000),)


def problem_of(n_classes, n=120, weights=None, **changes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), np.arange(n) % n_classes
    X[:, 0] += 0.8 * y
    task = Binary() if n_classes == 2 else OneVsOne(n_classes)
    examples = task.encode(y, weights)
    settings = {"C": 2.0, "intercept": "regularized", "precision": "float64", "random_state": 0} | changes
    return X, y, Problem(as_rows(X), examples, task, RBF(0.5), **settings)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("intercept", ["regularized", "none"])
def test_over_all_rows_it_is_the_exact_svm(n_classes, intercept):
    weights = np.random.default_rng(1).uniform(0.2, 2.0, 120)
    X, y, problem = problem_of(n_classes, weights=weights, intercept=intercept, settings=TO_MANY_DIGITS)
    found = pair_coefficients(problem, X)
    exact = SVC(C=2.0, gamma=0.5, intercept=intercept, multi_class="ovo", decision_function_shape="ovo", tol=1e-7)
    theirs = exact.fit(X, y, weights).decision_function(X)
    assert found.converged
    np.testing.assert_allclose(found.model.scores(X).squeeze(), theirs, atol=1e-4)
    assert found.n_kernel_evals >= 120 * 120


@pytest.mark.parametrize("n_classes", [2, 4])
def test_over_few_vectors_no_other_coefficients_do_better(n_classes):
    X, _, problem = problem_of(n_classes, settings=TO_MANY_DIGITS)
    found = pair_coefficients(problem, X[:15])
    value = objective(problem, found.model, X)
    rng = np.random.default_rng(0)
    for scale in (1e-1, 1e-3):
        for _ in range(20):
            coef = found.model.coef + scale * rng.normal(size=found.model.coef.shape)
            intercept = found.model.intercept + scale * rng.normal(size=found.model.intercept.shape)
            assert objective(problem, replace(found.model, coef=coef, intercept=intercept), X) > value


def objective(problem, model, X):
    """½‖w‖² + ½b² + C Σ hinge of the pairs, summed up."""
    labels, weights, scores = problem.examples.labels, problem.examples.weights, model.scores(X)
    total = 0.5 * model.norm_squared() + 0.5 * float(model.intercept @ model.intercept)
    for k, (a, b) in enumerate(problem.task.class_pairs() or [(1, -1)]):
        sign = (labels == a) - 1.0 * (labels == b)
        total += problem.C * float(weights @ ((sign != 0) * np.maximum(0.0, 1.0 - sign * scores[:, k])))
    return total


@pytest.mark.parametrize("changes", [{"n_jobs": 2}, {"memory_limit": 10_000}, {"precision": "float32"}], ids=str)
def test_threads_memory_and_precision(changes):
    X, _, problem = problem_of(4)
    one, other = (pair_coefficients(p, X[:20]).model.scores(X) for p in (problem, replace(problem, **changes)))
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-2 if "precision" in changes else 1e-9)
    if "n_jobs" in changes:
        np.testing.assert_array_equal(other, one)


def test_pairs_that_are_solved_together_are_those_one_by_one():
    X, _, problem = problem_of(4)
    alone = replace(problem, settings=(AscentSettings(call_work=60 * 16 * 1000),))  # of one pair in all its sweeps
    one, other = (pair_coefficients(p, X[:15]).model for p in (problem, alone))
    np.testing.assert_array_equal(one.coef, other.coef)


def test_sweeps_that_are_spent_are_told():
    X, _, problem = problem_of(2, C=1e6)
    assert not pair_coefficients(problem, X[:15]).converged
    one_sweep_in_a_call = (AscentSettings(call_work=1),)
    whole = pair_coefficients(replace(problem, C=0.1, settings=one_sweep_in_a_call), X[:15])
    assert whole.converged


@pytest.mark.parametrize("n_classes", [2, 4])
def test_fifty_sweeps_do_not_suffice(n_classes):
    """Of two classes Newton's method would take their place, in many times the time of late sweeps."""
    X, _, problem = problem_of(n_classes, n=400, C=40.0)
    assert pair_coefficients(problem, X[:15]).converged
    fewer = (AscentSettings(sweeps=50),)
    assert not pair_coefficients(replace(problem, settings=fewer), X[:15]).converged


def test_the_end_of_the_time(monkeypatch):
    X, _, problem = problem_of(4)
    looks = iter(range(10**6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(looks)))
    with time_limit(1.0), pytest.raises(OutOfTimeError):
        pair_coefficients(problem, X[:15])
