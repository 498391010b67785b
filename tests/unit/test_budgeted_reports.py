"""What epochs of BSCA and BSGD report, and the mean of their last models."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import naive
from budgeted_cases import BOTH, anyhow, larger, naive_steps
from slimsvm import BSCA, BSGD
from slimsvm.budget import BUDGET_RULES, BudgetedModel
from slimsvm.budget.budgeted_model import N_COUNTS
from slimsvm.kernels import RBF, KernelRows
from slimsvm.parts.budgeted.budgeted_solver import StreamRun
from slimsvm.parts.budgeted.epochs import damping_of
from slimsvm.solvers import ExactCuts
from slimsvm.tasks import Binary, Multiclass, OneClass, Regression


def test_reported_objectives_are_those_of_their_definitions():
    problem = larger(max_iter=2)
    X = problem.rows.slice(0, 300, np.float64)
    K = naive.kernel_matrix(problem.kernel, X, X) + 1.0
    fit = anyhow(BSCA(max_basis=20, finish=False, average=False), problem)
    record, y, alpha = fit.history[-1], problem.examples.labels, fit.state.alpha[:, 0]
    assert alpha.min() >= 0
    assert alpha.max() <= problem.C
    beta = y * alpha
    assert record["is_exact"]
    assert record["dual"] == pytest.approx(alpha.sum() - 0.5 * beta @ K @ beta, rel=1e-9)
    basis = fit.model.basis
    norm = float(fit.model.coef[:, 0] @ naive.kernel_matrix(problem.kernel, basis, basis) @ fit.model.coef[:, 0])
    norm += float(fit.model.intercept[0]) ** 2
    assert record["dual_of_model"] == pytest.approx(alpha.sum() - 0.5 * norm, rel=1e-6)
    assert record["primal"] == record["objective"] == pytest.approx(fit.objective, rel=1e-9)
    best = max(r["dual"] for r in fit.history)
    assert best * (1 - 1e-9) <= fit.lower_bound <= best < ExactCuts().solve(larger()).objective
    assert 0 < record["zero_step_fraction"] < 1
    assert 0 < record["merge_fraction"] < 1
    assert record["degradation"] > 0
    predicted = np.where(fit.model.scores(X)[:, 0] > 0, 1, -1)
    assert record["training_error"] == pytest.approx(np.mean(predicted != y))


def test_reports_of_a_sample_are_near_the_exact_ones_and_certify_nothing():
    sampled, exact = (
        BSCA(max_basis=30, finish=False, reports=reports).solve(larger(4000, precision="float32"))
        for reports in ("sample", "exact")
    )
    for one, other in zip(sampled.history, exact.history, strict=True):
        assert (one["is_exact"], other["is_exact"]) == (False, True)
        for name, tolerance in (("primal", 0.1), ("dual", 0.3)):
            assert one[name] == pytest.approx(other[name], rel=tolerance)
        assert one["objective"] is one["lower_bound"] is None
    assert sampled.lower_bound is None
    assert exact.lower_bound < exact.objective
    np.testing.assert_array_equal(sampled.model.coef, exact.model.coef)


@pytest.mark.parametrize("epochs", [1, 4])
@pytest.mark.parametrize("maintenance", sorted(set(BUDGET_RULES) - {"multi-merge"}))
@BOTH
def test_the_mean_is_that_of_the_last_models(solver, maintenance, epochs):
    """Of steps that take no point away: the mean of the models after each of the last max_basis steps.

    In later epochs coefficients of BSCA come back to 0, of rows that earlier models had.
    """
    problem = larger(100, precision="float64", C=10.0)
    run = solver(99, epochs=epochs, finish=False, maintenance=maintenance).start(problem, None)
    run.rng, orders = np.random.default_rng(3), np.random.default_rng(3)
    X, order = problem.rows.slice(0, 100, np.float64), np.concatenate([orders.permutation(100) for _ in range(epochs)])
    for _ in range(epochs):
        run.step()
    models = [naive_steps(problem, X, order[:s], run.solver.method) for s in range(len(order) - 98, len(order) + 1)]
    expected = np.mean([beta for _, beta, _ in models], axis=0)
    assert (expected[models[-1][1] == 0].any()) == (solver is BSCA and epochs > 1)
    found = run._expansion()
    X_new = np.random.default_rng(4).normal(size=(20, 4))
    np.testing.assert_allclose(found.intercept, np.mean([b for _, _, b in models], axis=0), rtol=1e-6)
    truth = naive.kernel_matrix(problem.kernel, X_new, X) @ expected + found.intercept
    np.testing.assert_allclose(found.scores(X_new), truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("maintenance", ["merge", "multi-merge", "remove"])
def test_a_point_at_zero_is_the_first_to_go_and_leaves_the_mean_to_the_nearest(maintenance, m):
    X = np.array([[0.0], [3.0], [-1.0], [9.0]])
    model = BudgetedModel(KernelRows(RBF(0.3), X, dtype=np.float64), 3, m, BUDGET_RULES[maintenance]())
    model.begin_mean()
    coef = np.array([1.0, 2.0, 3.0, -1.0, 0.5])[:, None] * np.array([1.0, -2.0])[:m]
    before = model.add(np.array([0, 1, 2, 0]), coef[:4])
    assert (before.added, model.n_basis) == (3, 3)
    counts = model.add(np.array([3]), coef[4:])
    assert (counts.merged, counts.removed, counts.degradation) == (0, 0, 0.0)
    assert sorted(model.basis_rows) == [1, 2, 3]
    of_models = np.array([3.0 * 1.0, 4 * 2.0, 3 * 3.0, 1 * 0.5]) / 5
    if maintenance != "remove":
        of_models[2] += np.exp(-0.3) * of_models[0]
    expected = of_models[model.basis_rows, None] * np.array([1.0, -2.0])[:m]
    np.testing.assert_allclose(model.mean_of_steps(np.zeros(m))[0], expected, rtol=1e-12)
    model.add(np.array([3]), -coef[4:])
    assert model.n_basis == 3
    model.end_mean()
    assert sorted(model.basis_rows) == [1, 2]


@pytest.mark.parametrize("rule", BUDGET_RULES)
def test_rules_treat_the_mean_as_they_treat_the_model(rule):
    """What comes in times 1 makes the same sums as coefficients, whatever the rule does to both."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    rows = KernelRows(RBF(0.3), X, dtype=np.float64)
    model = BudgetedModel(rows, 10, 1, BUDGET_RULES[rule]())
    for i in range(60):
        model.points.mean[0] = 1.0
        model.add(np.array([i]), rng.normal(size=(1, 1)))
    np.testing.assert_allclose(model.points.sums, model.points.beta, rtol=1e-9, atol=1e-12)


def test_averaging_takes_dips_away():
    errors = {}
    for average in (False, True):
        problem = larger(1500, C=100.0, intercept="none", precision="float32")
        fit = anyhow(BSCA(40, epochs=12, finish=False, average=average), problem)
        errors[average] = [record["training_error"] for record in fit.history[2:]]
    assert np.mean(errors[True]) < np.mean(errors[False])


def test_the_relative_error_is_that_of_its_definition():
    problem = larger(250, C=3.0, intercept="none", precision="float64")
    fit = anyhow(BSCA(20, epochs=2, finish=False, average=False), problem)
    X, y, alpha = problem.rows.slice(0, 250, np.float64), problem.examples.labels, fit.state.alpha[:, 0]
    Q = y[:, None] * naive.kernel_matrix(problem.kernel, X, X) * y
    f = y * fit.model.scores(X)[:, 0]

    def rise(i, margin):
        delta = np.clip(alpha[i] + 1 - margin, 0, 3.0) - alpha[i]
        moved = alpha + delta * (np.arange(250) == i)
        return (moved.sum() - 0.5 * moved @ Q @ moved) - (alpha.sum() - 0.5 * alpha @ Q @ alpha)

    own = Q @ alpha
    ratios = [rise(i, f[i]) / rise(i, own[i]) for i in range(250) if rise(i, own[i]) > 1e-9]
    assert fit.history[-1]["relative_error"] == pytest.approx(1 - max(ratios), abs=1e-6)
    without = anyhow(BSCA(249, epochs=1, finish=False, maintenance="remove", average=False), problem)
    assert without.history[-1]["relative_error"] == pytest.approx(0.0, abs=1e-6)


def test_bsgd_has_no_dual():
    fit = BSGD(max_basis=20).solve(larger())
    assert fit.lower_bound is None
    assert "dual" not in fit.history[-1]


def test_drift_is_warned_of():
    run = BSCA(max_basis=3, finish=False).start(larger(), None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for primal, dual in ((100.0, -50.0), (160.0, -60.0), (140.0, 90.0)):  # never both by half over their best
            run._watch({"primal": primal, "degradation": 1.0, "dual_of_model": dual})
    with pytest.warns(ConvergenceWarning, match="max_basis=3 is too small for this problem"):
        run._watch({"primal": 160.0, "degradation": 1.0, "dual_of_model": 90.0})


# ---- damped steps


def test_steps_are_damped_by_the_points_taken_away():
    problem = larger(intercept="none", precision="float64", C=50.0)
    run = BSCA(20, damping=2.0, finish=False).start(problem, None)
    record = run.step()
    taken = int(run.t[1])
    assert taken == round(record["merge_fraction"] * 300) > 50
    X, y, i = problem.rows.slice(0, 300, np.float64), problem.examples.labels, 7
    before, score = run.alpha[i, 0], run.model.coef[:, 0] @ problem.kernel.block(run.model.basis, X[[i]])[:, 0]
    (part, data, places), *_ = run.model.chunks(np.array([i]))
    run.model.take_steps(run.steps, part, data, places, run.alpha, run.intercept, np.zeros(N_COUNTS), run.t)
    moved = (1 - y[i] * score) / (1 + 2.0 * taken / 300)
    assert run.alpha[i, 0] == pytest.approx(np.clip(before + moved, 0, 50.0), rel=1e-9)
    assert 0 < run.alpha[i, 0] < 50
    assert run.alpha[i, 0] != before


def test_damping_by_task_and_what_it_brings():
    assert [damping_of(BSCA(), task) for task in (Binary(), Multiclass(3), Regression(0.1))] == [4.0, 4.0, 1.0]
    assert damping_of(BSCA(damping=0.5), Binary()) == 0.5
    errors = {}
    for damping in (0.0, "auto"):
        problem = larger(1500, C=100.0, intercept="none", precision="float32")
        fit = anyhow(BSCA(40, epochs=8, finish=False, damping=damping), problem)
        errors[damping] = np.mean([record["training_error"] for record in fit.history[2:]])
    assert errors["auto"] < 0.9 * errors[0.0]


def test_chunks_and_one_class_take_the_papers_steps():
    problem = larger(60)
    assert StreamRun(problem, BSCA(20), None).steps.damping == 0
    assert (
        BSCA(20)
        .start(replace(problem, task=OneClass(0.2), examples=OneClass(0.2).encode(np.ones(60))), None)
        .solver.damping
        == 0
    )
    assert BSCA(20).start(problem, None).steps.damping == 4 / 60
