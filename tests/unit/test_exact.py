"""The exact solver: reference optima, the three levels, cache, warm start, extremes."""

import gc
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import SVR as TheirSVR

import naive
from pairwise import crossed
from slimsvm import SVC, SVR, Exact, ExactCuts, OneClassSVM
from slimsvm.kernels import RBF, KernelRows, Linear, Sigmoid
from slimsvm.kernels.operands import MAP_WORK
from slimsvm.parts.dual_ascent import active_rows
from slimsvm.parts.dual_ascent.active_rows import ActiveSettings
from slimsvm.parts.dual_ascent.dual import Box, Dual, ToleranceSettings
from slimsvm.parts.dual_ascent.kernel_values import ValueSettings
from slimsvm.parts.dual_ascent.smo import KernelBlock, NewtonSteps, solve_set
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import ReportSettings, Run, Status, exact_objective
from slimsvm.rows import as_rows
from slimsvm.solvers import exact
from slimsvm.solvers.exact import ExactSettings
from slimsvm.tasks import Binary, Multiclass, Regression


def classes(n, seed=0, d=3, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + noise * rng.normal(size=n) > 0.2, 1, -1)


def targets(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


def problem_of(X, y, task=None, weights=None, **options):
    task = Binary() if task is None else task
    settings = {"kernel": RBF(0.5), "C": 3.0, "tol": 1e-6, "random_state": 0} | options
    return Problem(as_rows(X), task.encode(y, weights), task, **settings)


def dual_value(K, coef, target, epsilon):
    """D(v) as written in `parts.dual_ascent.dual`."""
    return target @ coef - epsilon * np.abs(coef).sum() - 0.5 * coef @ K @ coef


def all_coef(model, support, n):
    coef = np.zeros(n)
    coef[support] = model
    return coef


# ---- reference optima


@pytest.mark.parametrize("seed", range(20))
def test_the_dual_of_libsvm_with_weights(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 150))
    X, y = classes(n, seed)
    y[:2] = -1, 1
    weights, C, gamma = rng.choice([0.5, 1.0, 3.0], n), 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-1.5, 0.5)
    K = naive.kernel_matrix(RBF(gamma), X, X)
    theirs = TheirSVC(C=C, gamma=gamma, tol=1e-6).fit(X, y, sample_weight=weights)
    best = dual_value(K, all_coef(theirs.dual_coef_[0], theirs.support_, n), y, 0.0)
    ours = SVC(C=C, gamma=gamma, tol=1e-5, solver="exact", intercept="free").fit(X, y, sample_weight=weights)
    coef = all_coef(ours.dual_coef_[0], ours.support_, n)
    assert ours.status_ == "converged"
    assert abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()
    assert (coef * y >= 0).all()
    assert (coef * y <= C * weights * (1 + 1e-12)).all()
    assert ours.lower_bound_ == pytest.approx(dual_value(K, coef, y, 0.0), rel=1e-9)
    assert ours.lower_bound_ >= best * (1 - 1e-6)
    assert ours.objective_ - ours.lower_bound_ <= 1e-3 * ours.objective_
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_the_dual_of_libsvms_regression(seed):
    rng = np.random.default_rng(seed)
    X, y = targets(int(rng.integers(10, 150)), seed)
    weights, C, epsilon = rng.choice([0.5, 1.0, 3.0], len(y)), 10 ** rng.uniform(-2, 2), rng.choice([0.0, 0.1, 0.5])
    K = naive.kernel_matrix(RBF(0.4), X, X)
    theirs = TheirSVR(C=C, gamma=0.4, epsilon=epsilon, tol=1e-6).fit(X, y, sample_weight=weights)
    best = dual_value(K, all_coef(theirs.dual_coef_[0], theirs.support_, len(y)), y, epsilon)
    ours = SVR(C=C, gamma=0.4, epsilon=epsilon, tol=1e-5, solver="exact", intercept="free")
    ours.fit(X, y, sample_weight=weights)
    assert ours.lower_bound_ >= best * (1 - 1e-6)
    assert ours.objective_ - ours.lower_bound_ <= 1e-3 * ours.objective_ + 1e-12
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


@pytest.mark.parametrize("intercept", ["regularized", "none"])
@pytest.mark.parametrize("size", [2, 8, 1024])
@pytest.mark.parametrize("seed", range(3))
def test_the_slow_truths_optimum_without_a_free_intercept(seed, size, intercept):
    rng = np.random.default_rng(seed)
    for task, (X, y), options in [
        (Binary(0.5, 2.0), classes(40, seed), lambda label: naive.binary_options(label, 0.5, 2.0)),
        (Regression(0.2), targets(40, seed), lambda label: naive.regression_options(label, 0.2)),
    ]:
        weights = rng.choice([0.5, 2.0], 40)
        fit = Exact(size).solve(problem_of(X, y, task, weights, intercept=intercept))
        written_out = [(np.array([i]), options(label), weights[i]) for i, label in enumerate(y)]
        K = naive.kernel_matrix(RBF(0.5), X, X)
        primal, dual = naive.optimum(K, written_out, 3.0, intercept == "regularized")
        assert fit.lower_bound <= primal * (1 + 1e-9)
        assert fit.lower_bound == pytest.approx(dual, rel=1e-7)
        assert fit.objective == pytest.approx(primal, rel=1e-5)


@pytest.mark.parametrize("intercept", ["regularized", "none"])
def test_exact_cuts_come_to_the_same_optimum(intercept):
    X, y = classes(900)
    problem = problem_of(X, y, intercept=intercept, C=20.0)
    ours, cuts = Exact(128).solve(problem), ExactCuts().solve(problem)
    assert ours.lower_bound == pytest.approx(cuts.lower_bound, rel=1e-8)
    assert ours.objective == pytest.approx(cuts.objective, rel=1e-6)


# ---- three levels


def by_levels(first=60, kept="never", **others):
    """Settings of samples and growing active rows at sizes that a test can afford; kernel values kept or not."""
    return ExactSettings(first_rows=first, all_rows_share=0.0, **others), keep_values(kept)


def keep_values(kept, **others):
    """Settings of kernel values that are kept or not."""
    if kept != "never":
        others["never_kept"] = 0
    if kept == "blocks too":
        others["never_gathered"] = 0
    return ValueSettings(**others)


AXES = {
    "intercept": ["regularized", "free", "none"],
    "kept": ["never", "kernel rows", "blocks too"],
    "kind": ["classes", "targets"],
    "precision": ["float64", "float32"],
}


@crossed(AXES)
def test_growing_active_rows_come_to_the_optimum_of_all(kept, kind, intercept, precision):
    task, (X, y) = (Binary(), classes(1000)) if kind == "classes" else (Regression(0.1), targets(1000))
    problem = problem_of(X, y, task, intercept=intercept, precision=precision, C=10.0, tol=1e-4)
    whole = Exact(2048).solve(replace(problem, precision="float64"))
    fit = Exact(128).solve(replace(problem, settings=by_levels(kept=kept)))
    active = [record["n_active"] for record in fit.history]
    assert fit.status == Status.CONVERGED
    assert active[0] < 400
    assert max(active) > active[0]
    assert min(active[-5:]) < max(active)
    assert fit.lower_bound == pytest.approx(whole.lower_bound, rel=1e-6 if precision == "float64" else 1e-5)
    assert fit.objective == pytest.approx(whole.objective, rel=1e-4)
    found = [record["objective"] is not None for record in fit.history]
    assert found[-1]
    assert sum(found) > 2


def test_working_sets_have_room_for_the_free_rows(monkeypatch):
    sizes, solve = [], active_rows.ActiveRows.solve

    def noted(self, places, *rest):
        sizes.append((len(places), np.count_nonzero(self.box.free(self.v))))
        return solve(self, places, *rest)

    monkeypatch.setattr(active_rows.ActiveRows, "solve", noted)
    X, y = classes(500, d=10)
    small = {"computed_set": 64, "whole_set": 0}
    problem = problem_of(X, y, n_jobs=1, intercept="free", C=10.0, tol=1e-3, kernel=RBF(0.1))
    fits, found = [], []
    for values in (ValueSettings(**small), ValueSettings(**small, largest_set=64)):
        fits.append(Exact().solve(replace(problem, settings=(values, ActiveSettings(all_if_free=2.0)))))
        found.append(sizes.copy())
        sizes.clear()
    assert all(size <= max(len(y) // 6, n_free) for size, n_free in found[0])
    assert found[0][-1][0] > 100
    assert max(size for size, _ in found[1]) == 64
    # In sets smaller than the free rows each solution undoes some of the last one.
    assert fits[0].counters["kernel_evals"] < 0.5 * fits[1].counters["kernel_evals"]
    assert fits[0].lower_bound == pytest.approx(fits[1].lower_bound, rel=1e-3)


def test_regression_takes_few_working_sets():
    # Sets that shrank to a quarter were 500 here, each of which gained little.
    X, y = make_friedman1(5000, noise=1.0, random_state=0)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    reg = SVR(random_state=0).fit(X, y)
    assert reg.status_ == Status.CONVERGED
    assert len(reg.history_) < 100


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize(("kind", "kept"), [("classes", "never"), ("classes", "kernel rows"), ("targets", "never")])
def test_free_rows_become_one_working_set_whose_block_is_computed_once(kind, kept, intercept):
    settings = by_levels(first=200, step_work=20_000)[0], keep_values(kept, computed_set=64)
    task, (X, y) = (Binary(), classes(1500)) if kind == "classes" else (Regression(0.1), targets(700))
    options = {"precision": "float64", "C": 100.0, "tol": 1e-4, "kernel": RBF(5.0), "settings": settings}
    problem = problem_of(X, y, task, intercept=intercept, **options)
    fit = Exact().solve(problem)
    evals = [record["kernel_evals"] for record in fit.history]
    free = [k for k in range(1, len(evals)) if evals[k] == evals[k - 1]]
    assert len(free) > 10  # neither a block nor a change of g was computed
    assert all(fit.history[k]["objective"] is None for k in free)
    whole = Exact(2048).solve(replace(problem, tol=1e-6))
    assert fit.lower_bound == pytest.approx(whole.lower_bound, rel=1e-7)
    # The fit takes off what rounding leaves in doubt, the history does not.
    assert fit.history[-1]["lower_bound"] == pytest.approx(fit.lower_bound, rel=1e-8)


def test_rows_with_dear_values_are_all_active_if_their_kernel_rows_fit():
    X, y = classes(500)
    settings = ExactSettings(first_rows=60), keep_values("kernel rows")
    problem = problem_of(X, y, precision="float64", tol=1e-3, settings=settings)
    n_active = [
        Exact(64).solve(replace(problem, memory_limit=m)).history[0]["n_active"] for m in (4_000_000, 3_999_000)
    ]
    assert n_active[0] == 500
    assert n_active[1] < 200


@pytest.mark.parametrize("intercept", ["regularized", "free"])
@pytest.mark.parametrize(("sparse", "kept"), [(False, "never"), (False, "kernel rows"), (True, "blocks too")])
def test_same_bits_for_any_number_of_threads_at_every_level(sparse, kept, intercept, threads_for_all):
    X, y = classes(4000, d=5)
    X = sp.csr_array(X * (np.abs(X) > 0.5)) if sparse else X
    settings = by_levels(kept=kept)
    problem = problem_of(X, y, intercept=intercept, tol=1e-2, precision="float32", settings=settings)
    fits = [Exact(256).solve(replace(problem, n_jobs=n_jobs)) for n_jobs in (1, 3, 4)]
    assert max(record["n_active"] for record in fits[0].history) > 1024
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
        np.testing.assert_array_equal(fit.basis_rows, fits[0].basis_rows)
        assert fit.objective == fits[0].objective
        assert fit.lower_bound == fits[0].lower_bound
        assert [record["kernel_evals"] for record in fit.history] == [r["kernel_evals"] for r in fits[0].history]


@pytest.mark.parametrize("estimator", [SVC(C=3.0), SVR(C=3.0), OneClassSVM(nu=0.2)])
def test_fits_without_a_random_state_have_the_same_bits(estimator, settings_of_estimators):
    settings_of_estimators(*by_levels())
    X, y = classes(1200)
    fits = [clone(estimator).fit(X, y) for _ in range(2)]
    assert len(fits[0].model_.basis) < len(X)
    for fitted in fits[1:]:
        np.testing.assert_array_equal(fitted.model_.coef, fits[0].model_.coef)
        np.testing.assert_array_equal(fitted.support_, fits[0].support_)


def test_records_are_of_the_point_they_were_taken_at():
    """Objective, bound, gap and training error of a look at all rows are those of a model made there."""
    X, y = classes(1200)
    problem = problem_of(X, y, precision="float64", tol=1e-3, settings=by_levels())
    history = Exact(64).solve(problem).history
    assert sum(record["objective"] is not None for record in history) > 2
    for k, record in enumerate(history):
        if record["objective"] is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                stopped = Exact(64).solve(replace(problem, max_iter=k + 1))
            assert stopped.objective == pytest.approx(record["objective"], rel=1e-9)
            assert stopped.lower_bound == pytest.approx(record["lower_bound"], rel=1e-9)
            assert record["n_basis"] == stopped.model.n_basis
            assert record["training_error"] == np.mean((stopped.model.scores(X)[:, 0] > 0) != (y > 0))


# ---- memory and the sizes of working sets


def test_the_memory_limit_bounds_the_cache_and_not_the_answer():
    X, y = classes(600)
    problem = problem_of(X, y, precision="float64", settings=(keep_values("blocks too"),))
    plenty = Exact(64).solve(problem)
    limit = 16 * 8 * 600 * 2
    run = Exact(64).start(replace(problem, memory_limit=limit))
    assert run.cache.cache.values.nbytes <= limit // 2
    assert run.active.size == run.cache.n_slots == 16
    tight = Exact(64).solve(replace(problem, memory_limit=limit))
    assert tight.lower_bound == pytest.approx(plenty.lower_bound, rel=1e-8)
    assert tight.counters["kernel_evals"] > plenty.counters["kernel_evals"]
    with pytest.raises(ValueError, match="memory_limit leaves room for 1 of 600 kernel rows"):
        Exact().solve(replace(problem, memory_limit=2 * 8 * 600))


def test_sizes_of_working_sets_follow_the_cost_of_a_kernel_value(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = {}
    for d in (3, 100, 300):
        X, y = rng.normal(size=(20_000, d)), np.where(rng.random(20_000) > 0.5, 1, -1)
        run = Exact().start(problem_of(X, y, precision="float32"))
        sizes[d] = run.active.size
        run.cache.extend(np.setdiff1d(np.arange(20_000), run.cache.active))
        sizes[d, "all"] = run.active.size
    expected = {3: 2048, (3, "all"): 3333, 100: 2048, (100, "all"): 2048, 300: 1024, (300, "all"): 1024}
    assert sizes == expected
    assert Exact(77).start(problem_of(*classes(200))).active.size == 77


# ---- warm start


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_warm_start_along_C_and_gamma(kind, intercept):
    task, (X, y) = (Binary(), classes(300)) if kind == "classes" else (Regression(0.1), targets(300))
    problem = problem_of(X, y, task, intercept=intercept, tol=1e-3)
    solver, iterations = Exact(60), np.zeros(2)
    state = solver.solve(problem).state
    for change in ({"C": 3.3}, {"C": 2.5}, {"kernel": RBF(0.55)}):
        other = replace(problem, **change)
        cold, warm = solver.solve(other), solver.solve(other, state=state)
        assert warm.lower_bound == pytest.approx(cold.lower_bound, rel=1e-4)
        iterations += warm.n_iter, cold.n_iter
    assert iterations[0] < iterations[1]
    again = solver.solve(problem, state=state)
    assert again.n_iter == 1


def test_warm_start_of_another_intercept():
    X, y = classes(300, noise=1.0)
    free = problem_of(X, y, intercept="free")
    state = Exact().solve(replace(free, intercept="regularized")).state
    assert abs(state.v.sum()) > 1e-3
    warm = Exact().solve(free, state=state)
    assert warm.lower_bound == pytest.approx(Exact().solve(free).lower_bound, rel=1e-8)
    assert abs(warm.model.coef.sum()) < 1e-9 * np.abs(warm.model.coef).sum()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bound", [5.0, 1e9])
def test_the_best_stretch_is_the_best_of_many(seed, bound):
    rng = np.random.default_rng(seed)
    n = 30
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    C = bound * rng.uniform(0.5, 1.0, size=n)
    dual = Dual(target=y, lo=np.where(y > 0, 0.0, -C), hi=np.where(y > 0, C, 0.0), epsilon=0.0)
    X = rng.normal(size=(n, 2)) + 2.0 * y[:, None]
    v = 0.002 * rng.random(n) * y
    scores = X @ (X.T @ v)
    intercept = 0.01 * rng.normal()

    def objective(s):
        return 0.5 * s**2 * v @ scores + C @ np.maximum(1.0 - y * s * (scores + intercept), 0.0)

    best = dual.best_stretch(v, y - scores, intercept)
    most = np.min(np.where(y > 0, dual.hi, dual.lo) / v)
    assert 1.0 < best <= most
    tried = np.concatenate([np.geomspace(1.0, min(most, 1e4), 2000), best * np.array([0.999, 1.001])])
    assert objective(best) <= min(objective(s) for s in tried if 1.0 <= s <= most) * (1 + 1e-9)
    assert dual.best_stretch(best * v, y - best * scores, best * intercept) == pytest.approx(1.0, rel=1e-9)


# ---- the ends of the ranges


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C(C, intercept):
    X, y = classes(60, noise=0.0)
    problem = problem_of(X, y, C=C, intercept=intercept, tol=1e-3)
    fit = Exact().solve(problem)
    assert fit.status == Status.CONVERGED
    assert 0 <= fit.objective - fit.lower_bound <= 1e-3 * fit.objective
    if C > 1:
        assert ((fit.model.scores(X)[:, 0] > 0) == (y > 0)).all()


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_the_gap_is_a_thousandth_even_where_tol_would_leave_more(C, intercept, monkeypatch):
    X, y = classes(300, noise=0.0)
    problem = problem_of(X, y, C=C, intercept=intercept, tol=1e-2)
    fit = Exact().solve(problem)
    assert fit.objective - fit.lower_bound <= 1e-3 * fit.objective
    at_looks = ToleranceSettings(at_once=0)  # as where rows are many
    fit = Exact().solve(replace(problem, settings=(at_looks,)))
    assert fit.objective - fit.lower_bound <= 1e-3 * fit.objective
    never = replace(problem, settings=(replace(at_looks, least=1.0),))
    monkeypatch.setattr("slimsvm.parts.dual_ascent.dual.Tolerance.closing_steps", lambda *_: 1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        at_tol = Exact().solve(never)
    gap = 1.0 - at_tol.lower_bound / at_tol.objective
    assert gap > 1e-3
    said = any("a wider gap than its tolerance" in str(warning.message) for warning in told)
    assert said == (gap > problem.tol)
    assert at_tol.n_iter < fit.n_iter


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
def test_rows_without_information(intercept):
    """Duplicates of both classes, a constant column, as few rows as can be."""
    for X, y in [
        (np.ones((10, 2)), np.array([1, -1] * 5)),
        (np.array([[0.0], [1.0]]), np.array([-1, 1])),
        (np.repeat([[0.0, 5.0], [1.0, 5.0]], 4, axis=0), np.array([1, 1, 1, -1, -1, -1, 1, -1])),
    ]:
        fit = Exact().solve(problem_of(X, y, intercept=intercept))
        assert fit.status == Status.CONVERGED
        assert fit.objective - fit.lower_bound <= 1e-4 * fit.objective
    flat = Exact().solve(problem_of(np.ones((5, 1)), np.full(5, 3.0), Regression(0.1), intercept=intercept))
    assert flat.status == Status.CONVERGED
    assert flat.model.scores(np.ones((1, 1)))[0, 0] == pytest.approx(3.0, abs=0.2)


def test_all_targets_inside_the_tube_need_no_vectors():
    fit = Exact().solve(problem_of(*targets(30), Regression(100.0), intercept="free"))
    assert fit.model.n_basis == 0
    assert fit.objective == 0


def test_a_kernel_that_is_no_inner_product_ends():
    X, y = classes(200)
    problem = problem_of(X, y, kernel=Sigmoid(0.5, -1.0), intercept="free", tol=1e-3)
    fit = Exact(32).solve(problem)
    assert fit.status == Status.CONVERGED
    assert np.isfinite(fit.model.coef).all()


def test_linear_separable_rows_find_the_widest_margin():
    X, y = np.array([[0.0], [1.0], [3.0], [5.0]]), np.array([-1, -1, 1, 1])
    fit = Exact().solve(problem_of(X, y, kernel=Linear(), C=1e3, intercept="free"))
    np.testing.assert_allclose(fit.model.scores(X)[:, 0], X[:, 0] - 2.0, atol=1e-5)
    np.testing.assert_array_equal(fit.basis_rows, [1, 2])


# ---- refusals


def test_what_it_does_not_solve_is_refused_before_any_work():
    X, _ = classes(30)
    three = Problem(as_rows(X), Multiclass(3).encode(np.arange(30) % 3), Multiclass(3), RBF(0.5))
    with pytest.raises(ValueError, match=r"of several labels, regression and one class, found Multiclass"):
        Exact().solve(three)
    with pytest.raises(ValueError, match=r"working_set_size must be an integer >= 1, found 2\.5"):
        Exact(2.5).solve(problem_of(*classes(30)))
    with pytest.raises(ValueError, match="working_set_size must be at least 2, found 1"):
        Exact(1).solve(problem_of(*classes(30)))


@pytest.mark.parametrize("task", [None, Regression(0.1)], ids=["classes", "regression"])
@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_an_interrupt_before_all_rows_were_looked_at_estimates_the_objective(monkeypatch, task, intercept):
    """The model is what there is, from a sample of the rows; its objective is known from some more of them."""
    monkeypatch.setattr(exact.ExactRun, "_report_work", lambda self: 2 * self.report_work)  # half the rows, then
    X, y = (targets if task else classes)(1500)
    problem = problem_of(X, y, task, intercept=intercept, settings=by_levels(first=200))

    def press_ctrl_c(record):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning) as told:
        fit = Exact().solve(problem, callbacks=(press_ctrl_c,))
    assert fit.status is Status.INTERRUPTED
    text = next(str(warning.message) for warning in told if "estimated" in str(warning.message))
    n_seen = int(text.split("from ")[1].split(" of 1500")[0])
    assert 900 < n_seen < 1000
    rows = problem.bind()
    exact_one = exact_objective(problem, rows, fit.model)
    assert fit.objective == pytest.approx(exact_one, rel=0.1)
    assert fit.objective != pytest.approx(exact_one, rel=1e-6)
    assert fit.lower_bound <= fit.objective
    best = Exact().solve(problem)
    assert fit.lower_bound <= best.objective * (1 + 1e-9)


def test_an_empty_working_set_is_solved():
    """Where rounding leaves no row with a step to gain, the search for rows may end with none."""
    nothing = np.empty(0)
    block = KernelBlock(np.empty((0, 0)), np.empty(0, np.int64))
    bounds, options = Box(nothing, nothing, balanced=0), {"tol": 1e-3, "max_steps": 10}
    assert solve_set(block, nothing.copy(), nothing.copy(), bounds, **options, newton=NewtonSteps(1 << 20)).gain == 0.0


def test_what_an_interrupt_leaves_to_be_computed_is_bounded():
    settings = (*by_levels(first=200), ReportSettings(work=300_000))
    X, y = classes(1500)

    def press_ctrl_c(record):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning):
        fit = Exact().solve(problem_of(X, y, settings=settings), callbacks=(press_ctrl_c,))
    n_vectors, evals = len(fit.basis_rows), fit.counters["report_kernel_evals"]
    work = X.shape[1] + MAP_WORK
    assert 0 < evals * work <= 300_000 < n_vectors * len(X) * work


def test_an_interrupt_before_the_first_look_where_all_rows_are_active():
    """There are no others that a sample could stand for: the objective is no estimate."""
    X, y = classes(300)

    def press_ctrl_c(record):
        raise KeyboardInterrupt

    problem = problem_of(X, y, settings=(ReportSettings(work=0),))
    with pytest.warns(ConvergenceWarning) as said:
        fit = Exact(working_set_size=50).solve(problem, callbacks=(press_ctrl_c,))
    assert not any("is estimated from" in str(each.message) for each in said)
    free = replace(problem, settings=())
    assert fit.objective == pytest.approx(exact_objective(free, free.bind(), fit.model), rel=1e-6)


@pytest.mark.parametrize("estimator", [SVC(), SVC(max_basis=10), SVC(memory_limit=1)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_memory_of_a_fit_is_free_at_its_end(estimator, n_classes):
    """A run that refers to itself keeps its kernel rows until Python looks for circles."""
    X = np.random.default_rng(0).normal(size=(300, 3))

    def alive():
        return [id(each) for each in gc.get_objects() if isinstance(each, Run | KernelRows)]

    gc.collect()
    gc.disable()
    try:
        before = alive()  # of other tests
        estimator.fit(X, np.digitize(X[:, 0], [-0.5, 0.5][: n_classes - 1]))
        assert set(alive()) <= set(before)
    finally:
        gc.enable()
