"""BSCA and BSGD against their steps written out, plain ascent against the optimum, finish and warm starts."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import naive
from budgeted_cases import BOTH, TASKS, anyhow, larger, naive_steps, problem_of
from slimsvm import BSCA, BSGD, SVC, SVR
from slimsvm.budget import BUDGET_RULES, BudgetedModel, Remove
from slimsvm.budget.budgeted_model import DUAL, N_COUNTS, PRIMAL
from slimsvm.kernels import RBF
from slimsvm.parts.budgeted import box_dual
from slimsvm.parts.budgeted.box_dual import PlainAscentSettings, steps_of
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.solvers import ExactCuts
from slimsvm.tasks import Binary, Multiclass
from tasks_for_tests import CASES, COST


@pytest.mark.parametrize("container", ["dense", "csr"])
@pytest.mark.parametrize("intercept", ["regularized", "none"])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("method", [DUAL, PRIMAL])
def test_steps_without_a_budget_are_the_papers(method, task, intercept, container):
    problem, X = problem_of(task, intercept=intercept, precision="float64")
    if container == "csr":
        problem = replace(problem, rows=as_rows(sp.csr_array(X)))
    rows = problem.bind()
    n, m = len(X), problem.task.n_outputs
    order = np.random.default_rng(0).integers(0, n, 4 * n)
    model = BudgetedModel(rows, n, m, Remove())
    alpha, b, t = np.zeros((n, m)), np.zeros(m), np.zeros(2, np.int64)
    for part, data, places in model.chunks(order):
        model.take_steps(steps_of(problem, method), part, data, places, alpha, b, np.zeros(N_COUNTS), t)
    unit = 1.0 if method == DUAL else 1.0 / t[0]
    expected_alpha, beta, expected_b = naive_steps(problem, X, order, method)
    coef = np.zeros((n, m))
    coef[model.basis_rows] = model.coef * unit
    np.testing.assert_allclose(coef, beta, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(b * unit, expected_b, rtol=1e-8, atol=1e-9)
    if method == DUAL:
        np.testing.assert_allclose(alpha, expected_alpha, rtol=1e-8, atol=1e-9)


# ---- no more rows than vectors


@pytest.mark.parametrize("finish", [True, False])
@pytest.mark.parametrize("C", [1e-10, 0.1, 10.0, 1e10])
@pytest.mark.parametrize("task", ["binary", "binary-costs", "regression"])
@BOTH
def test_with_room_for_all_rows_the_optimum_is_reached(solver, task, C, finish):
    problem, X = problem_of(task, C=C)
    fit = solver(finish=finish).solve(problem) if C < 1e10 else anyhow(solver(finish=finish), problem)
    K = naive.kernel_matrix(problem.kernel, X, X)
    primal, dual = naive.optimum(K, CASES[task].written_out(problem.examples), C, True)
    assert fit.lower_bound <= primal * (1 + 1e-9)
    assert fit.objective >= dual * (1 - 1e-9)
    if C < 1e10:  # there nothing is separable, and the ascent of little use
        assert fit.objective == pytest.approx(dual, rel=1e-6)
        assert fit.objective - fit.lower_bound <= 1e-9 * abs(fit.objective)


@pytest.mark.parametrize("task", ["multiclass", "multiclass-costs"])
def test_with_room_for_all_rows_several_classes_are_finished_to_the_optimum(task):
    problem, _ = problem_of(task)
    fit = BSCA().solve(problem)
    exact = ExactCuts().solve(problem)
    assert fit.objective == pytest.approx(exact.objective, rel=1e-8)
    assert fit.lower_bound <= exact.objective
    against_the_rest = BSCA(finish=False)
    if task == "multiclass-costs":
        with pytest.raises(ValueError, match="trains each class against the rest, without costs; found a cost matrix"):
            against_the_rest.solve(problem)
        return
    fit = against_the_rest.solve(problem)
    scores = fit.model.scores(problem.rows.slice(0, 60, np.float64))
    for c in range(3):
        y = np.where(problem.examples.labels == c, 1, -1)
        binary = replace(problem, task=Binary(), examples=Binary().encode(y, problem.examples.weights))
        alone = BSCA().solve(binary)
        np.testing.assert_allclose(
            scores[:, c], alone.model.scores(binary.rows.slice(0, 60, np.float64))[:, 0], atol=1e-4
        )


def test_ascent_that_does_not_end_says_so_or_is_finished():
    problem, _ = problem_of("binary", C=100.0)
    problem = replace(problem, settings=(PlainAscentSettings(sweeps=2),))
    with pytest.warns(ConvergenceWarning, match="coordinate ascent ended after 2 sweeps with a gap of"):
        rough = BSCA(finish=False).solve(problem)
    fine = BSCA().solve(problem)
    assert fine.objective < rough.objective
    assert fine.objective - fine.lower_bound <= 1e-9 * fine.objective


@BOTH
def test_without_a_budget_the_share_of_steps_goes_to_the_limits_of_lemma_2(solver):
    """#free / n of dual steps and Σα / (nC) of stochastic gradient steps change the model."""
    problem = larger(400, C=3.0, intercept="none", precision="float64")
    fit = anyhow(solver(399, epochs=250, finish=False, maintenance="remove", selection="uniform"), problem)
    K = naive.kernel_matrix(problem.kernel, *[problem.rows.slice(0, 400, np.float64)] * 2)
    alpha = naive_ascent(K, problem.examples.labels, 3.0)
    limit = np.mean((alpha > 1e-8) & (alpha < 3 - 1e-8)) if solver is BSCA else alpha.sum() / (400 * 3.0)
    seen = np.mean([1 - record["zero_step_fraction"] for record in fit.history[-100:]])
    assert max(record["merge_fraction"] for record in fit.history) == 0
    assert seen == pytest.approx(limit, rel=0.1)


def test_adaptive_selection_visits_rows_at_rest_seldom_and_ends_as_well():
    problem = larger(600, C=3.0, intercept="none")
    fits = {
        selection: anyhow(BSCA(599, epochs=60, finish=False, maintenance="remove", selection=selection), problem)
        for selection in ("adaptive", "permutation")
    }
    steps = {name: sum(record["steps"] for record in fit.history) for name, fit in fits.items()}
    assert steps["permutation"] == 60 * 600
    assert steps["adaptive"] < 0.5 * steps["permutation"]
    assert fits["adaptive"].history[0]["steps"] == 600
    assert fits["adaptive"].objective == pytest.approx(fits["permutation"].objective, rel=1e-3)
    with pytest.raises(ValueError, match="selection='adaptive' needs dual variables, and BSGD has none"):
        BSGD(selection="adaptive").solve(problem)


def naive_ascent(K, y, C):
    """Dual coordinate ascent on the hinge loss, 1,000 sweeps."""
    alpha, f = np.zeros(len(y)), np.zeros(len(y))
    for _ in range(1000):
        for i in range(len(y)):
            new = min(max(alpha[i] + (1 - y[i] * f[i]) / K[i, i], 0.0), C)
            if new != alpha[i]:
                f += (new - alpha[i]) * y[i] * K[i]
                alpha[i] = new
    return alpha


@BOTH
def test_passes_of_descent_after_the_finish_lower_the_objective(solver):
    problem = larger(600)
    finished = solver(8).solve(problem)
    moved = solver(8, descent_epochs=15).solve(problem)
    assert moved.objective < 0.99 * finished.objective
    assert moved.model.n_basis <= 8
    assert moved.objective == pytest.approx(moved.history[-1]["objective"], rel=1e-6)
    with pytest.raises(ValueError, match="descent_epochs starts from the finished coefficients"):
        solver(8, descent_epochs=2, finish=False).solve(problem)
    with pytest.raises(ValueError, match=r"descent_epochs must be an integer >= 0, found -1"):
        solver(8, descent_epochs=-1).solve(problem)


# ---- the finish, and what stops a fit


@BOTH
def test_the_finish_only_helps(solver):
    problem = larger()
    rough = solver(max_basis=25, finish=False).solve(problem)
    fine = solver(max_basis=25).solve(problem)
    assert fine.counters["bound_in_basis"] <= fine.objective <= rough.objective
    assert fine.objective == pytest.approx(fine.counters["bound_in_basis"], rel=1e-8)
    assert fine.model.n_basis <= rough.model.n_basis == 25


@BOTH
@pytest.mark.parametrize("maintenance", BUDGET_RULES)
def test_every_rule_learns(solver, maintenance):
    problem = larger(600)
    fit = solver(max_basis=40, maintenance=maintenance).solve(problem)
    assert fit.model.n_basis <= 40
    assert fit.history[-1]["training_error"] < 0.5
    predicted = np.where(fit.model.scores(problem.rows.slice(0, 600, np.float64))[:, 0] > 0, 1, -1)
    assert np.mean(predicted != problem.examples.labels) < 0.2


@BOTH
def test_a_plateau_stops_the_epochs(solver):
    fit = anyhow(solver(max_basis=30, epochs=200, patience=3, finish=False), larger())
    assert 4 <= fit.n_iter < 100
    assert fit.status == "converged"


def test_selection_with_replacement_leaves_rows_out():
    rows_met = []
    for selection in ("permutation", "uniform"):
        fit = BSCA(max_basis=30, epochs=1, selection=selection, finish=False).solve(larger(C=1e-3))
        rows_met.append(np.sum(fit.state.alpha > 0))
    assert rows_met[0] == 300  # at a small C every row met is at the bound
    assert 150 < rows_met[1] < 230


# ---- warm starts


@pytest.mark.parametrize("container", ["dense", "csr"])
@pytest.mark.parametrize("maintenance", ["merge", "project"])
@BOTH
def test_a_warm_start_goes_on(solver, maintenance, container):
    """An epoch from the state is the epoch that a longer fit goes on with, if it meets the rows in the same order."""
    problem = larger(precision="float64")
    if container == "csr":
        problem = replace(problem, rows=as_rows(sp.csr_array(problem.rows.slice(0, 300, np.float64))))
    options = {"max_basis": 30, "maintenance": maintenance, "finish": False}
    orders = np.random.default_rng(1)
    first = solver(epochs=1, **options).solve(replace(problem, random_state=np.random.default_rng(1)))
    orders.integers(2**63)
    orders.permutation(300)
    again = solver(epochs=1, **options).solve(replace(problem, random_state=orders), state=first.state)
    whole = solver(epochs=2, **options).solve(replace(problem, random_state=np.random.default_rng(1)))
    assert again.history[-1]["primal"] == pytest.approx(whole.history[-1]["primal"], rel=1e-6)
    np.testing.assert_allclose(again.model.coef, whole.model.coef, rtol=1e-5, atol=1e-8)


def test_a_smaller_C_shrinks_the_dual_variables_into_the_box():
    problem = larger()
    state = BSCA(max_basis=30, finish=False).solve(problem).state
    run = BSCA(max_basis=30, finish=False).start(replace(problem, C=0.5), state)
    assert run.alpha.max() <= 0.5
    np.testing.assert_allclose(run.model.coef, 0.1 * state.coef)
    plain = BSCA(max_basis=300).start(replace(problem, C=0.5), BSCA(max_basis=300).solve(problem).state)
    assert plain.alpha.max() <= 0.5
    np.testing.assert_allclose(plain.scores, plain.K @ (problem.examples.labels[:, None] * plain.alpha))


def test_a_model_that_is_too_large_to_go_on_from_is_refused():
    problem = larger()
    state = BSCA(max_basis=30).solve(problem).state
    with pytest.raises(ValueError, match="the model to go on from has 30 vectors, max_basis=20"):
        BSCA(max_basis=20).solve(problem, state=state)


# ---- estimators and parameters


@BOTH
def test_estimators(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.argmax(X + 0.2 * rng.normal(size=X.shape), axis=1)
    weights = rng.choice([0.5, 1.0, 2.0], 900)
    clf = SVC(C=10.0, gamma=0.3, solver=solver(max_basis=50), random_state=0).fit(X, y, sample_weight=weights)
    assert clf.n_basis_ <= 50
    assert clf.score(X, y) > 0.85
    target = np.sin(2 * X[:, 0]) + 5.0
    svr = SVR(C=10.0, gamma=0.3, solver=solver(max_basis=60), random_state=0).fit(X, target)
    assert svr.score(X, target) > 0.9
    named = SVC(C=10.0, gamma=0.3, solver="bsca" if solver is BSCA else "bsgd", max_basis=50, random_state=0).fit(X, y)
    assert named.n_basis_ <= 50


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (BSCA(max_basis=0), "max_basis must be an integer >= 1, found 0"),
        (BSGD(epochs=2.5), "epochs must be an integer >= 1, found 2.5"),
        (BSCA(patience=0), "patience must be an integer >= 1, found 0"),
        (BSGD(selection="cyclic"), "selection must be one of 'permutation', 'uniform', 'adaptive', found 'cyclic'"),
        (BSCA(reports="all"), "reports must be one of 'sample', 'exact', found 'all'"),
        (BSGD(average=3), "average must be True or False, found 3"),
        (BSCA(finish="no"), "finish must be True or False, found 'no'"),
        (BSCA(damping=True), "damping must be 'auto' or a number >= 0, found True"),
        (BSGD(tol_relative="small"), "tol_relative must be a positive number, found 'small'"),
        (BSCA(damping=-1), "damping must be 'auto' or a number >= 0, found -1"),
        (BSCA(damping="much"), "damping must be 'auto' or a number >= 0, found 'much'"),
        (BSCA(tol_relative=0), "tol_relative must be a positive number, found 0"),
        (BSCA(maintenance="shrink"), f"maintenance must be one of {', '.join(map(repr, BUDGET_RULES))} or"),
    ],
)
def test_bad_parameters_are_named(solver, message):
    with pytest.raises(ValueError, match=message):
        solver.solve(larger(30))


def test_costs_and_signs_of_the_dual_variables():
    task = Multiclass(3, COST)
    problem = Problem(as_rows(np.eye(3)), task.encode(np.arange(3)), task, RBF(1.0))
    np.testing.assert_array_equal(box_dual.signs(steps_of(problem, DUAL), np.arange(3), 3), 2 * np.eye(3) - 1)
