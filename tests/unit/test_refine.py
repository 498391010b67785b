"""Learned bases: gradients, threads, starts, limits, and what the descent must reach."""

import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

import naive
from slimsvm import SVC, SVR, KernelExpansion, Refine
from slimsvm.kernels import RBF, CallableKernel, KernelRows, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from slimsvm.numerics import team
from slimsvm.rows import as_rows
from slimsvm.solvers import Problem, Status, descent
from slimsvm.solvers.descent import Descent, Expansion, Rates
from slimsvm.tasks import Binary, Multiclass, Regression
from tasks_for_tests import CASES, COST

KERNELS = {
    "rbf": RBF(0.3),
    "rbf-per-feature": RBF((0.2, 0.5, 0.1, 0.4)),
    "poly": Polynomial(3, 0.4, 0.7),
    "linear": Linear(),
    "sigmoid": Sigmoid(0.2, 0.1),
}
TASKS = {
    "binary": Binary(0.7, 1.3),
    "multiclass": Multiclass(3, COST),
    "regression": Regression(0.2),
}


class OwnBinary(Binary):
    """The binary task as a user might write it: only Python code knows its loss."""


def labels_for(task, n, rng):
    if isinstance(task, Regression):
        return rng.normal(size=n)
    return rng.permutation(np.arange(n) % task.n_outputs) if isinstance(task, Multiclass) else rng.choice([-1, 1], n)


def problem_of(task, kernel, n=60, sparse=False, weighted=True, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < (0.5 if sparse else 1.0))
    weights = rng.choice([0.5, 1.0, 2.0], n) if weighted else None
    examples = task.encode(labels_for(task, n, rng), weights)
    settings = {"C": 0.3, "precision": "float64", "random_state": 0} | options
    return Problem(as_rows(sp.csr_array(X) if sparse else X), examples, task, kernel, **settings), X


def descent_of(problem, k=7, seed=1, batch_size=10_000, learn_metric=False, rate=0.0):
    rng = np.random.default_rng(seed)
    d, m = problem.rows.n_features, problem.task.n_outputs
    log_scale = 0.3 * rng.normal(size=d) if learn_metric else np.zeros(d)
    start = Expansion(rng.normal(size=(k, d)), rng.normal(size=(k, m)), rng.normal(size=m), log_scale, np.zeros(0))
    if problem.intercept == "none":
        start.intercept[:] = 0
    rates = Rates(np.full(d, rate), rate, rate, rate)
    return Descent(problem, problem.bind(), start, rates, batch_size, learn_metric)


def gradient_of(learner):
    """The gradient as one sweep in a single batch sees it, with all rates 0."""
    learner.sweep(np.arange(learner.examples.n_examples), np.ones(1), np.zeros(1))
    return learner.moments.gradient.copy()


def value_of(learner, flat):
    """Mean loss + ½(‖w‖² + b²)/C₁ at parameters in folded coordinates, from nothing but the definitions."""
    problem = learner.problem
    at = learner.expansion(flat)
    kernel = learner.kernel(at.log_scale)
    X = problem.rows.take(np.arange(problem.rows.n_rows), np.float64)
    X = X.toarray() if sp.issparse(X) else X
    scores = naive.kernel_matrix(kernel, X, at.basis) @ at.coef + at.intercept
    augmented = problem.task.augment(scores, np.zeros(0), problem.examples)
    losses = augmented.delta - np.sum(augmented.coef * scores, axis=1)
    weights = problem.examples.weights
    norm = np.sum(at.coef * (naive.kernel_matrix(kernel, at.basis, at.basis) @ at.coef))
    if problem.intercept == "regularized":
        norm += at.intercept @ at.intercept
    return weights @ losses / weights.sum() + 0.5 * norm / problem.C1


def numerical_gradient(learner):
    flat = learner.parameters.flat.astype(np.float64)
    step = 1e-6

    def difference(i):
        ends = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[i] += sign * step
            ends.append(value_of(learner, moved))
        return (ends[0] - ends[1]) / (2 * step)

    return np.array([difference(i) for i in range(len(flat))])


# ---- gradients


@pytest.mark.parametrize("intercept", ["none", "regularized", "free"])
@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_gradient_is_that_of_the_objective(kernel, task, intercept):
    problem, _ = problem_of(TASKS[task], KERNELS[kernel], intercept=intercept)
    learner = descent_of(problem)
    expected = numerical_gradient(learner)
    d, k, m = learner.shape
    expected[d * k + k * m + m :] = 0  # the scales are not learned here
    if intercept == "none":
        expected[d * k + k * m : d * k + k * m + m] = 0
    np.testing.assert_allclose(gradient_of(learner), expected, atol=2e-8 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("kernel", ["rbf", "rbf-per-feature"])
def test_gradient_in_the_feature_scales(kernel, task):
    problem, _ = problem_of(TASKS[task], KERNELS[kernel])
    learner = descent_of(problem, learn_metric=True)
    expected = numerical_gradient(learner)
    assert np.abs(expected[-4:]).min() > 1e-4
    np.testing.assert_allclose(gradient_of(learner), expected, atol=2e-8)


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
def test_gradient_of_sparse_rows(kernel, task):
    problem, _ = problem_of(TASKS[task], KERNELS[kernel], sparse=True, intercept="none")
    learner = descent_of(problem)
    expected = numerical_gradient(learner)
    d, k, m = learner.shape
    expected[d * k + k * m :] = 0
    np.testing.assert_allclose(gradient_of(learner), expected, atol=2e-8 * max(1, np.abs(expected).max()))


def test_the_pull_draws_the_scales_to_their_mean():
    problem, _ = problem_of(Binary(), RBF(0.3))
    learner = descent_of(problem, learn_metric=True)
    free = gradient_of(learner)[-4:]
    learner.set_rates(Rates(np.zeros(4), 0.0, 0.0, 0.0, pull=3.0))
    pulled, scales = gradient_of(learner)[-4:], learner.parameters.log_scale
    np.testing.assert_allclose(pulled - free, 3.0 * (scales - scales.mean()), atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(300, 5), (300, 70), (40, 40)])
def test_gradient_over_many_tiles_and_a_part_of_the_norm(n, k, monkeypatch):
    """Rows in several tiles and groups; the norm from some basis vectors at a time adds up over the steps."""
    monkeypatch.setattr(descent, "SHARED_WORK", 0)
    problem, _ = problem_of(Multiclass(3), RBF(0.3), n=n)
    whole = descent_of(problem, k)
    expected = numerical_gradient(whole)
    k = whole.shape[1]
    expected[-4:] = 0
    size = whole.norm_tile.half.shape[1]
    assert size == min(k, 32)
    # 35 steps of 32 vectors each go through 70 vectors 16 times.
    n_steps = 35 if size < k else 1
    mean = np.mean([gradient_of(whole) for _ in range(n_steps)], axis=0)
    np.testing.assert_allclose(mean, expected, atol=3e-8)


def test_gradients_of_batches_add_up():
    problem, _ = problem_of(Binary(), RBF(0.3), n=60)
    learner = descent_of(problem)
    whole = gradient_of(learner)
    order = np.random.default_rng(0).permutation(60)
    parts = []
    for lo in range(0, 60, 20):
        learner.sweep(order[lo : lo + 20], np.ones(1), np.zeros(1))
        parts.append(learner.moments.gradient.copy())
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, atol=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_task_that_only_python_knows_has_the_same_gradient(sparse):
    own, _ = problem_of(OwnBinary(0.7, 1.3), RBF(0.3), sparse=sparse)
    known, _ = problem_of(Binary(0.7, 1.3), RBF(0.3), sparse=sparse)
    first, second = descent_of(own), descent_of(known)
    assert first.loss is None
    np.testing.assert_allclose(gradient_of(first), gradient_of(second), atol=1e-14)
    seen = [learner.sweep(np.arange(60), np.ones(3), np.zeros(3)) for learner in (first, second)]
    assert seen[0].loss == pytest.approx(seen[1].loss)
    assert seen[0].norm == pytest.approx(seen[1].norm)


def test_float32_gradient_is_that_of_float64():
    for learn_metric in (False, True):
        gradients = []
        for precision in ("float32", "float64"):
            problem, _ = problem_of(Binary(), RBF(0.3), precision=precision)
            gradients.append(gradient_of(descent_of(problem, learn_metric=learn_metric)))
        assert gradients[0].dtype == np.float32
        np.testing.assert_allclose(*gradients, atol=2e-6)


def test_sweep_reports_what_the_rows_lost():
    problem, _ = problem_of(Binary(), RBF(0.3))
    learner = descent_of(problem)
    sweep = learner.sweep(np.arange(60), np.ones(4), np.zeros(4))
    at = learner.expansion()
    scores = RBF(0.3).scores(problem.rows.take(np.arange(60), np.float64), at.basis, at.coef) + at.intercept
    augmented = problem.task.augment(scores, np.zeros(0), problem.examples)
    weights = problem.examples.weights / problem.examples.weights.sum()
    assert sweep.loss == pytest.approx(weights @ (augmented.delta - augmented.coef[:, 0] * scores[:, 0]))
    assert sweep.error == pytest.approx(problem.task.error(problem.task.decode(scores, None), problem.examples))
    norm = KernelExpansion(at.basis, at.coef, at.intercept, np.zeros(0), RBF(0.3), "float64").norm_squared()
    assert sweep.norm == pytest.approx(0.5 * norm / problem.C1)


# ---- Adam, averaging, the schedule


def test_steps_are_adams():
    """Three steps on one batch, against Adam as in its paper."""
    problem, _ = problem_of(Binary(), RBF(0.3))
    learner, other = descent_of(problem, rate=0.01), descent_of(problem)
    flat = other.parameters.flat.copy()
    first, second, mean = np.zeros_like(flat), np.zeros_like(flat), np.zeros_like(flat)
    rates = np.full(len(flat), 0.01)
    d, k, _ = other.shape
    rates[: d * k] *= np.repeat(np.abs(other.point_scale), k)
    b1, b2 = descent.BETAS
    for t in range(1, 4):
        other.set(flat)
        g = gradient_of(other)
        first, second = b1 * first + (1 - b1) * g, b2 * second + (1 - b2) * g**2
        flat = flat - 0.5 * rates * (first / (1 - b1**t)) / (np.sqrt(second / (1 - b2**t)) + 1e-12)
        mean += (flat - mean) / t
    for t in range(1, 4):
        learner.sweep(np.arange(60), np.full(1, 0.5), np.full(1, 1 / t))
    np.testing.assert_allclose(learner.parameters.flat[:-4], flat[:-4], atol=1e-12)
    np.testing.assert_allclose(learner.moments.mean[:-4], mean[:-4], atol=1e-12)


def test_rates_rise_and_fall_once_and_the_last_steps_count():
    schedule = descent.Schedule(10, 0.1)
    factors, shares = zip(*(schedule.sweep(50) for _ in range(10)))
    factors, shares = np.concatenate(factors), np.concatenate(shares)
    assert schedule.done
    top = factors.argmax()
    assert top == pytest.approx(150, abs=1)
    assert (np.diff(factors[:top]) > 0).all()
    assert (np.diff(factors[top + 1 :]) < 0).all()
    assert factors[0] < 0.05
    assert factors[-1] < 0.002
    np.testing.assert_allclose(shares[450:], 1 / np.arange(1, 51))
    assert not shares[:450].any()


def test_a_schedule_cut_short_comes_to_its_end():
    schedule = descent.Schedule(100, 0.05)
    schedule.sweep(10)
    schedule.left = 3
    factors = [schedule.sweep(10)[0] for _ in range(3)]
    assert schedule.done
    assert factors[-1][-1] < 0.01
    assert schedule.progress == pytest.approx(1.0)


# ---- the team of threads


def test_a_team_does_every_task_once():
    done = np.zeros(1000, int)

    def work(sync, is_leader):
        while sync[team.LIMIT] >= 0:
            task = team.take(sync)
            if task >= 0:
                done[task] += 1
                sync[team.DONE] += 1  # one thread at a time: Python's lock is held
            elif is_leader and team.phase_done(sync):
                sync[team.LIMIT] = 1000 if sync[team.LIMIT] == 0 else -1
            else:
                return False
        return True

    team.run_team(work, 4)
    assert (done == 1).all()


def test_a_team_stops_when_its_leader_fails():
    begun = threading.active_count()

    def work(sync, is_leader):
        if is_leader:
            raise KeyboardInterrupt
        return sync[team.LIMIT] < 0

    with pytest.raises(KeyboardInterrupt):
        team.run_team(work, 4)
    assert threading.active_count() == begun


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("task", "sparse", "learn_metric"),
    [(Binary(), False, False), (Binary(), False, True), (Multiclass(3), False, False), (Binary(), True, False)],
)
def test_same_bits_for_any_number_of_threads(task, sparse, learn_metric, precision, monkeypatch):
    monkeypatch.setattr(descent, "SHARED_WORK", 0)
    monkeypatch.setattr(descent, "BLOCK_WORK", 8)
    monkeypatch.setattr(descent, "TILE", 16)
    teams, run_team = [], descent.run_team
    monkeypatch.setattr(descent, "run_team", lambda work, n_jobs: teams.append(n_jobs) or run_team(work, n_jobs))
    fits = []
    for n_jobs in (1, 2, 4):
        problem, _ = problem_of(task, RBF(0.3), n=600, sparse=sparse, precision=precision, n_jobs=n_jobs)
        solver = Refine(10, epochs=5, batch_size=128, learn_metric=learn_metric, initial="nystrom", finish=False)
        fits.append(solver.solve(problem))
    assert set(teams) == {1, 2, 4}
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.model.basis, fits[0].model.basis)
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
        assert fit.objective == fits[0].objective
        assert fit.model.kernel == fits[0].model.kernel
        assert [r["loss"] for r in fit.history] == [r["loss"] for r in fits[0].history]


@pytest.mark.parametrize("container", ["memmap", "memory-limit"])
def test_rows_that_are_not_kept_give_the_same_bits(container, tmp_path, monkeypatch):
    monkeypatch.setattr(descent, "CHUNK_BYTES", 2000)
    problem, X = problem_of(Binary(), RBF(0.3), n=300, precision="float32")
    solver = Refine(8, epochs=4, batch_size=32, initial="nystrom")
    expected = solver.solve(problem)
    if container == "memmap":
        np.save(tmp_path / "rows.npy", X)
        problem = Problem(
            as_rows(np.load(tmp_path / "rows.npy", mmap_mode="r")), problem.examples, problem.task, problem.kernel,
            C=problem.C, precision="float32", random_state=0,
        )  # fmt: skip
        assert not problem.bind().is_kept
    else:
        monkeypatch.setattr(KernelRows, "_folded_bytes", lambda self: 1 << 60)
    fit = solver.solve(problem)
    np.testing.assert_array_equal(fit.model.basis, expected.model.basis)
    np.testing.assert_array_equal(fit.model.coef, expected.model.coef)


# ---- what it reaches


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(3000, noise=0.25, random_state=0)
    return X, np.where(y > 0, 1, -1)


def solve(X, y, solver, **options):
    task = options.pop("task", Binary())
    settings = {"C": 10.0, "random_state": 0} | options
    kernel = settings.pop("kernel", RBF(1.0))
    problem = Problem(as_rows(X), task.encode(y), task, kernel, **settings)
    return solver.solve(problem), problem


def test_learned_vectors_beat_chosen_ones():
    """Twelve vectors on a board of five by five fields: too few for one in each, so that their places matter."""
    X = np.random.default_rng(0).uniform(0, 5, (3000, 2))
    y = np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1)
    fit, _ = solve(X, y, Refine(12), kernel=RBF(2.0))
    assert fit.status == Status.CONVERGED
    assert fit.counters["bound_in_basis"] <= fit.objective <= 1.0011 * fit.counters["bound_in_basis"]
    for initial in ("kmeans", "nystrom"):
        chosen, _ = solve(X, y, Refine(12, initial=initial, rate=1e-9, epochs=1), kernel=RBF(2.0))
        assert fit.objective < 0.75 * chosen.objective
    estimates = [record["objective_estimate"] for record in fit.history]
    assert estimates[-1] == pytest.approx(fit.objective, rel=0.02)
    assert estimates[-1] < 0.7 * estimates[0]


def test_the_objective_is_that_of_the_model(moons):
    X, y = moons
    for solver in (Refine(6, epochs=10), Refine(6, epochs=10, finish=False), Refine(6, epochs=10, learn_metric=True)):
        fit, _ = solve(X, y, solver, precision="float64")
        basis, kernel = fit.model.basis, fit.model.kernel
        scores = naive.kernel_matrix(kernel, X, basis) @ fit.model.coef + fit.model.intercept
        norm = np.sum(fit.model.coef * (naive.kernel_matrix(kernel, basis, basis) @ fit.model.coef))
        hinge = np.maximum(0, 1 - y * scores[:, 0]).sum()
        truth = 0.5 * (norm + np.sum(fit.model.intercept**2)) + 10 * hinge
        assert fit.objective == pytest.approx(truth, rel=1e-8)


def test_finish_lowers_the_objective_and_bounds_it_within_the_basis(moons):
    rough, _ = solve(*moons, Refine(6, epochs=3, finish=False, averaging=0.0))
    smooth, _ = solve(*moons, Refine(6, epochs=3, averaging=0.0))
    np.testing.assert_allclose(smooth.model.basis, rough.model.basis)
    assert smooth.objective < rough.objective
    assert rough.counters["bound_in_basis"] is None
    assert smooth.counters["bound_in_basis"] == smooth.history[-1]["bound_in_basis"] <= smooth.objective
    assert smooth.lower_bound is None


def test_small_problems_are_finished_to_rounding():
    X, y = make_classification(200, 5, random_state=0)
    fit, problem = solve(X, np.where(y > 0, 1, -1), Refine(5, epochs=20))
    assert problem.is_small
    assert fit.objective - fit.counters["bound_in_basis"] <= 1e-9 * fit.objective


def test_the_whole_data_as_a_basis_reaches_the_optimum():
    """With as many vectors as rows the bound in the basis is below the optimum's neighbourhood, and the model at it."""
    X, y = make_classification(40, 3, n_informative=3, n_redundant=0, random_state=0)
    y = np.where(y > 0, 1, -1)
    fit, _ = solve(X, y, Refine(40, rate=1e-9, epochs=1), C=1.0, kernel=RBF(0.5), intercept="none")
    K = naive.kernel_matrix(RBF(0.5), X, X)
    parts = [(np.array([i]), naive.binary_options(y[i]), 1.0) for i in range(40)]
    primal, dual = naive.optimum(K, parts, 1.0, False)
    assert fit.objective == pytest.approx(primal, rel=1e-6)
    assert fit.counters["bound_in_basis"] == pytest.approx(dual, rel=1e-6)


def test_several_classes_share_one_basis():
    X, y = load_iris(return_X_y=True)
    clf = SVC(C=10.0, solver=Refine(4), random_state=0).fit(X, y)
    assert clf.basis_coef_.shape == (4, 3)
    assert clf.score(X, y) > 0.96


def test_regression_at_any_scale_of_the_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2500, 1))
    y = np.sinc(X[:, 0]) + 0.05 * rng.normal(size=2500)
    for scale in (1e-3, 1.0, 1e4):
        reg = SVR(C=10.0 * scale, gamma=1.0, epsilon=0.05 * scale, solver=Refine(8), random_state=0).fit(X, scale * y)
        assert np.abs(reg.predict(X) / scale - np.sinc(X[:, 0])).mean() < 0.02


def test_features_in_any_unit():
    """Start and steps follow the features' units: scaled rows with a scaled gamma make the same model."""
    X, y = make_moons(2500, noise=0.25, random_state=0)
    plain = SVC(C=10.0, gamma=1.0, solver=Refine(6, epochs=20), random_state=0).fit(X, y)
    scaled = SVC(C=10.0, gamma=1e-8, solver=Refine(6, epochs=20), random_state=0).fit(1e4 * X, y)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=0.02)


def test_learned_metric_finds_the_features_that_matter(moons):
    X, y = moons
    rng = np.random.default_rng(0)
    noisy = np.hstack([X, rng.normal(size=(len(X), 6))])
    plain = SVC(C=1.0, solver=Refine(20), random_state=0).fit(noisy[:2000], y[:2000])
    learned = SVC(C=1.0, solver=Refine(20, learn_metric=True), random_state=0).fit(noisy[:2000], y[:2000])
    gamma = np.array(learned.model_.kernel.gamma)
    assert gamma[:2].min() > 5 * gamma[2:].max()
    assert learned.score(noisy[2000:], y[2000:]) > plain.score(noisy[2000:], y[2000:])
    assert learned.objective_ < 0.8 * plain.objective_


def test_a_strong_pull_leaves_the_scales_alike(moons):
    fit, _ = solve(*moons, Refine(6, epochs=5, learn_metric=True, metric_pull=1e6))
    gamma = np.array(fit.model.kernel.gamma)
    assert gamma[0] == pytest.approx(gamma[1], rel=1e-2)


def test_sparse_rows_make_the_same_model_as_dense_ones():
    """Without centring (a kernel of the inner product) they are the same problem to rounding."""
    problem, X = problem_of(Binary(), Polynomial(2, 0.5, 1.0), n=300, sparse=True, weighted=False)
    dense, _ = problem_of(Binary(), Polynomial(2, 0.5, 1.0), n=300, sparse=True, weighted=False)
    dense = Problem(as_rows(X), dense.examples, dense.task, dense.kernel, C=0.3, precision="float64", random_state=0)
    fits = [Refine(5, epochs=5, initial="nystrom").solve(p) for p in (problem, dense)]
    np.testing.assert_allclose(fits[0].model.basis, fits[1].model.basis, atol=1e-6)
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)


# ---- starts


def test_start_from_vectors_and_from_a_model(moons):
    X, y = moons
    first, _ = solve(X, y, Refine(6, epochs=3))
    on, _ = solve(X, y, Refine(8, epochs=10, initial=first.model, rate=0.02))
    assert on.model.n_basis == 8  # two rows that the model has losses on have joined it
    assert on.objective < first.objective
    still, _ = solve(X, y, Refine(8, epochs=1, initial=first.model, rate=1e-9))
    np.testing.assert_allclose(still.model.basis[:6], first.model.basis, atol=1e-6)
    scores = first.model.scores(X)[:, 0]
    for vector in still.model.basis[6:]:
        i = np.abs(X - vector).sum(axis=1).argmin()
        np.testing.assert_allclose(vector, X[i], atol=1e-6)
        assert y[i] * scores[i] < 1
    same, _ = solve(X, y, Refine(6, epochs=10, initial=first.model, rate=0.02))
    assert same.model.n_basis == 6
    vectors, _ = solve(X, y, Refine(8, epochs=3, initial=X[:5]))
    assert vectors.model.n_basis == 5
    with pytest.raises(ValueError, match="initial has 9 vectors, max_basis=8"):
        solve(X, y, Refine(8, initial=X[:9]))
    with pytest.raises(ValueError, match="the model has 2 features and 1 outputs, the problem 2 and 3"):
        solve(X, np.arange(len(y)) % 3, Refine(8, initial=first.model), task=Multiclass(3))


def test_a_fit_goes_on_from_its_state(moons):
    X, y = moons
    clf = SVC(C=10.0, gamma=1.0, solver=Refine(6, epochs=3, rate=0.03), random_state=0, warm_start=True).fit(X, y)
    before = clf.objective_
    assert clf.fit(X, y).objective_ < before
    learned = Refine(6, epochs=3, rate=0.03, learn_metric=True)
    clf = SVC(C=10.0, gamma=1.0, solver=learned, random_state=0, warm_start=True).fit(X, y)
    before, gamma = clf.objective_, clf.model_.kernel.gamma
    clf.fit(X, y)
    assert clf.objective_ < before
    np.testing.assert_allclose(np.log(clf.model_.kernel.gamma), np.log(gamma), atol=1.0)


def test_a_warm_start_grows_along_a_path(moons):
    X, y = moons
    clf = SVC(C=10.0, gamma=1.0, solver=Refine(epochs=10), random_state=0, warm_start=True)
    objectives = []
    for k in (2, 4, 8):
        clf.set_params(solver__max_basis=k).fit(X, y)
        assert clf.n_basis_ == k
        objectives.append(clf.objective_)
    assert objectives[0] > objectives[1] > objectives[2]


def test_fewer_rows_than_vectors():
    X, y = np.array([[0.0], [1.0], [2.0], [2.0]]), np.array([-1, 1, -1, -1])
    fit, _ = solve(X, y, Refine(10, epochs=5))
    assert 1 <= fit.model.n_basis <= 3


# ---- ends before the end


def test_max_iter_brings_the_rates_to_their_end(moons):
    with pytest.warns(ConvergenceWarning, match="stopped at the iteration limit after 5 iterations"):
        fit, _ = solve(*moons, Refine(6), max_iter=5)
    assert fit.n_iter == 5
    assert fit.history[-1]["rate"] < 0.2 * max(record["rate"] for record in fit.history)
    assert fit.counters["bound_in_basis"] is not None


def test_max_seconds_plans_fewer_sweeps(moons):
    X, y = moons
    solve(X, y, Refine(6, epochs=2))
    fit, _ = solve(X, y, Refine(6, epochs=100_000), max_seconds=1.0)
    assert fit.counters["seconds"] < 3.0
    assert 3 < fit.n_iter < 100_000
    assert fit.history[-1]["rate"] < 0.5 * fit.history[fit.n_iter // 2]["rate"]


def test_an_interrupt_returns_the_model_so_far(moons):
    def press_ctrl_c(record):
        raise KeyboardInterrupt

    problem = solve(*moons, Refine(6, epochs=1))[1]
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 iterations"):
        fit = Refine(6, epochs=50).solve(problem, callbacks=[press_ctrl_c])
    assert fit.status == Status.INTERRUPTED
    assert fit.objective < problem.C1
    assert fit.counters["bound_in_basis"] is None


def test_a_rate_that_is_too_high_is_halved(moons):
    fit, problem = solve(*moons, Refine(6, epochs=60, rate=100.0))
    assert fit.counters["restarts"] > 0
    assert fit.objective < 0.9 * problem.C1
    modest, _ = solve(*moons, Refine(6, epochs=60))
    assert modest.counters["restarts"] == 0


def test_evaluations_are_counted(moons):
    X, y = moons
    fit, _ = solve(X, y, Refine(6, epochs=4, finish=False))
    # Every sweep sees each row once, and all six vectors at each of its six steps.
    assert fit.history[-1]["kernel_evals"] == 4 * (3000 * 6 + 6 * 6 * 6)
    assert fit.counters["report_kernel_evals"] == 3000 * 6


# ---- bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_basis": 0}, "max_basis must be an integer >= 1, found 0"),
        ({"initial": "best"}, "basis must be one of .* found 'best'"),
        ({"initial": np.zeros((3, 5))}, "the rows have 2 features, the basis has shape"),
        ({"epochs": 0}, "epochs must be an integer >= 1, found 0"),
        ({"epochs": "many"}, "epochs must be an integer >= 1, found 'many'"),
        ({"batch_size": 1.5}, "batch_size must be an integer >= 1, found 1.5"),
        ({"rate": 0.0}, "rate must be a positive number, found 0.0"),
        ({"rate": np.nan}, "rate must be a positive number, found nan"),
        ({"metric_pull": -1.0}, "metric_pull must be a number >= 0, found -1.0"),
        ({"averaging": 2.0}, "averaging must be between 0 and 1, found 2.0"),
        ({"tol_relative": 0.0}, "tol_relative must be a positive number, found 0.0"),
    ],
)
def test_bad_parameters(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        solve(*moons, Refine(**parameters))


@pytest.mark.parametrize("kernel", [Laplacian(1.0), CallableKernel(lambda X, Z: X @ Z.T), Precomputed()])
def test_kernels_without_a_known_derivative(kernel):
    X, y = np.eye(4), np.array([-1, 1, -1, 1])
    with pytest.raises(ValueError, match="it needs kernel 'rbf', 'poly', 'linear' or 'sigmoid', found"):
        solve(X, y, Refine(2), kernel=kernel)


def test_a_metric_needs_an_rbf_kernel_and_dense_rows(moons):
    with pytest.raises(ValueError, match="learn_metric=True needs kernel 'rbf', found Linear"):
        solve(*moons, Refine(2, learn_metric=True), kernel=Linear())
    with pytest.raises(ValueError, match="learn_metric=True needs dense rows"):
        solve(sp.csr_array(moons[0]), moons[1], Refine(2, learn_metric=True))


def test_losses_that_are_no_sums_over_examples():
    task, X, _, examples = CASES["f1"].problem(0)
    problem = Problem(as_rows(X), examples, task, RBF(0.3))
    with pytest.raises(ValueError, match="needs a loss that is a sum over examples; that of FBeta is over all rows"):
        Refine(2).solve(problem)


def test_warm_start_only_from_a_refine_fit(moons):
    problem = solve(*moons, Refine(2, epochs=1))[1]
    with pytest.raises(ValueError, match="can only be warm-started from a Refine fit, found str"):
        Refine(2).solve(problem, state="yesterday's")


def test_a_task_without_smoothed_loss_is_trained_without_finish():
    problem, _ = problem_of(OwnBinary(), RBF(0.3), n=300, C=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = Refine(5, epochs=40, finish=False).solve(problem)
    known, _ = problem_of(Binary(), RBF(0.3), n=300, C=10.0)
    other = Refine(5, epochs=40, finish=False).solve(known)
    assert fit.objective == pytest.approx(other.objective, rel=1e-6)
    assert fit.history[-1]["training_error"] == pytest.approx(other.history[-1]["training_error"], abs=0.02)
