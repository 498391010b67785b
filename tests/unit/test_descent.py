"""Descent on vectors and coefficients: gradients, steps, threads."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from kernel_cases import with_metric
from slimsvm import SVC, SVR, KernelExpansion, Refine, core
from slimsvm.kernels import RBF, KernelRows, Linear, Polynomial, Sigmoid
from slimsvm.parts.descent import basis_descent
from slimsvm.parts.descent.basis_descent import Descent, Expansion
from slimsvm.parts.descent.batch_gradient import BETAS, GradientSettings, Rates
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, Multiclass, Regression, task_of_classes
from tasks_for_tests import COST

KERNELS = {
    **with_metric(0.3, (0.2, 0.5, 0.1, 0.4)),
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


def descent_of(problem, k=7, seed=1, batch_size=10_000, learn_metric=False, rate=0.0, norm_tiles=1):
    rng = np.random.default_rng(seed)
    d, m = problem.rows.n_features, problem.task.n_outputs
    log_scale = 0.3 * rng.normal(size=d) if learn_metric else np.zeros(d)
    start = Expansion(rng.normal(size=(k, d)), rng.normal(size=(k, m)), rng.normal(size=m), log_scale, np.zeros(0))
    if problem.intercept == "none":
        start.intercept[:] = 0
    rates = Rates(np.full(d, rate), rate, rate, rate)
    return Descent(problem, problem.bind(), start, rates, batch_size, learn_metric, norm_tiles)


def test_vectors_of_many_numbers_are_turned_in_pieces():
    rng, task = np.random.default_rng(0), Binary()
    X = rng.normal(loc=3.0, size=(20, 500))
    problem = Problem(as_rows(X), task.encode(np.repeat([-1, 1], 10), None), task, RBF(0.01))
    learner, start = descent_of(problem, k=70), np.random.default_rng(1).normal(size=(70, 500))
    unit, centre = learner.gradient.unit, learner.kernel_rows.centre
    folded = ((start - centre) * unit).T.astype(learner.parameters.flat.dtype)
    np.testing.assert_array_equal(learner.parameters.basis, folded)
    np.testing.assert_array_equal(learner.expansion().basis, folded.T / unit + centre)


def gradient_of(learner):
    """The gradient as one sweep in a single batch sees it, with all rates 0."""
    learner.sweep(np.arange(learner.examples.n_examples), np.ones(1), np.zeros(1))
    return learner.gradient.gradient.copy()


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
@pytest.mark.parametrize("kernel", sorted(with_metric(0.3, (0.2, 0.5, 0.1, 0.4))))
def test_gradient_in_the_feature_scales(kernel, task):
    problem, _ = problem_of(TASKS[task], KERNELS[kernel])
    learner = descent_of(problem, learn_metric=True)
    expected = numerical_gradient(learner)
    assert np.abs(expected[-4:]).min() > 1e-4
    np.testing.assert_allclose(gradient_of(learner), expected, atol=2e-8)


@pytest.mark.parametrize("task", sorted(TASKS))
@pytest.mark.parametrize("kernel", [*with_metric(0.3), "poly", "linear", "sigmoid"])
def test_gradient_of_sparse_rows(kernel, task):
    problem, _ = problem_of(TASKS[task], KERNELS[kernel], sparse=True, intercept="none")
    learner = descent_of(problem)
    expected = numerical_gradient(learner)
    d, k, m = learner.shape
    expected[d * k + k * m :] = 0
    np.testing.assert_allclose(gradient_of(learner), expected, atol=2e-8 * max(1, np.abs(expected).max()))


def test_rows_of_small_slopes_take_part_by_chance():
    """Their mean gradient is that of all rows, and rows of equal slopes all take part."""
    logistic = task_of_classes("logistic", 2, has_labels=False)

    def pair(weighted):
        settings = [(GradientSettings(thinned=share),) for share in (0.0, 1.0)]
        return [descent_of(problem_of(logistic, RBF(0.3), weighted=weighted, settings=own)[0]) for own in settings]

    exact, thinned = pair(weighted=True)
    expected, found = gradient_of(exact), np.array([gradient_of(thinned) for _ in range(400)])
    size = np.abs(expected).max()
    assert found.std(axis=0).max() > 0.01 * size
    np.testing.assert_allclose(found.mean(axis=0), expected, atol=0.02 * size)
    exact, thinned = pair(weighted=False)
    for learner in (exact, thinned):
        learner.parameters.flat[learner.parameters.basis.size :] = 0.0
    np.testing.assert_array_equal(gradient_of(thinned), gradient_of(exact))


def test_the_pull_draws_the_scales_to_their_mean():
    problem, _ = problem_of(Binary(), RBF(0.3))
    learner = descent_of(problem, learn_metric=True)
    free = gradient_of(learner)[-4:]
    learner.adam.set_rates(Rates(np.zeros(4), 0.0, 0.0, 0.0, pull=3.0))
    pulled, scales = gradient_of(learner)[-4:], learner.parameters.log_scale
    np.testing.assert_allclose(pulled - free, 3.0 * (scales - scales.mean()), atol=1e-12)


@pytest.mark.parametrize(("n", "k", "norm_tiles"), [(300, 5, 1), (300, 70, 1), (300, 70, 2), (40, 40, 1)])
def test_gradient_over_many_tiles_and_a_part_of_the_norm(n, k, norm_tiles):
    """Rows in several tiles and groups; the norm from some basis vectors at a time adds up over the steps."""
    problem, _ = problem_of(Multiclass(3), RBF(0.3), n=n, settings=(GradientSettings(shared_work=0),))
    whole = descent_of(problem, k, norm_tiles=norm_tiles)
    expected = numerical_gradient(whole)
    k = whole.shape[1]
    expected[-4:] = 0
    n_tiles, size = whole.gradient.norm_tiles, whole.gradient.norm_rows
    assert n_tiles == norm_tiles
    assert size == min(k, 32)
    # 35 steps of 32 vectors each (or twice as many) go through 70 vectors 16 times.
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
        parts.append(learner.gradient.gradient.copy())
    np.testing.assert_allclose(np.mean(parts, axis=0), whole, atol=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_task_that_only_python_knows_has_the_same_gradient(sparse):
    own, _ = problem_of(OwnBinary(0.7, 1.3), RBF(0.3), sparse=sparse)
    known, _ = problem_of(Binary(0.7, 1.3), RBF(0.3), sparse=sparse)
    first, second = descent_of(own), descent_of(known)
    assert first.gradient.loss is None
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


@pytest.mark.parametrize("task", sorted(TASKS))
def test_losses_of_a_sweep_are_weighted_and_written_out(task):
    """Each row's loss is the worst of all its guesses, times its weight."""
    written_out = {
        "binary": lambda y: naive.binary_options(y, 0.7, 1.3),
        "multiclass": lambda y: naive.multiclass_options(y, COST),
        "regression": lambda y: naive.regression_options(y, 0.2),
    }[task]
    problem, X = problem_of(TASKS[task], RBF(0.3))
    learner = descent_of(problem)
    at, examples = learner.expansion(), problem.examples
    scores = naive.kernel_matrix(RBF(0.3), X, at.basis) @ at.coef + at.intercept
    losses = [naive.option_values(written_out(y), s[None], np.zeros(0)).max() for y, s in zip(examples.labels, scores)]
    sweep = learner.sweep(np.arange(60), np.ones(1), np.zeros(1))
    assert len(np.unique(examples.weights)) == 3
    assert sweep.loss == pytest.approx(examples.weights @ losses / examples.weights.sum(), rel=1e-9)


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
    rates[: d * k] *= np.repeat(np.abs(other.gradient.unit), k)
    b1, b2 = BETAS
    for t in range(1, 4):
        other.set(flat)
        g = gradient_of(other)
        first, second = b1 * first + (1 - b1) * g, b2 * second + (1 - b2) * g**2
        flat = flat - 0.5 * rates * (first / (1 - b1**t)) / (np.sqrt(second / (1 - b2**t)) + 1e-12)
        mean += (flat - mean) / t
    for t in range(1, 4):
        learner.sweep(np.arange(60), np.full(1, 0.5), np.full(1, 1 / t))
    np.testing.assert_allclose(learner.parameters.flat[:-4], flat[:-4], atol=1e-12)
    np.testing.assert_allclose(learner.adam.mean[:-4], mean[:-4], atol=1e-12)


def test_rates_rise_and_fall_once_and_the_last_steps_count():
    schedule = basis_descent.Schedule(10, 0.1)
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
    schedule = basis_descent.Schedule(100, 0.05)
    schedule.sweep(10)
    schedule.left = 3
    factors = [schedule.sweep(10)[0] for _ in range(3)]
    assert schedule.done
    assert factors[-1][-1] < 0.01
    assert schedule.progress == pytest.approx(1.0)


# ---- threads


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(
    ("task", "sparse", "learn_metric"),
    [(Binary(), False, False), (Binary(), False, True), (Multiclass(3), False, False), (Binary(), True, False)],
)
def test_same_bits_for_any_number_of_threads(task, sparse, learn_metric, precision, threads_for_all):
    options = {"n": 600, "sparse": sparse, "precision": precision}
    options["settings"] = (GradientSettings(shared_work=0, block_parameters=8, tile_rows=16),)
    fits, shared = [], []
    for n_jobs in (1, 2, 4):
        problem, _ = problem_of(task, RBF(0.3), n_jobs=n_jobs, **options)
        solver = Refine(10, epochs=5, batch_size=128, learn_metric=learn_metric, initial="nystrom", finish=False)
        before = len(threads_for_all)
        fits.append(solver.solve(problem))
        shared.append(len(threads_for_all) - before)
    assert shared[0] == 0
    assert min(shared[1:]) > 5 * 2 * 600 // 128  # two phases of every step
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.model.basis, fits[0].model.basis)
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
        assert fit.objective == fits[0].objective
        assert fit.model.kernel == fits[0].model.kernel
        assert [r["loss"] for r in fit.history] == [r["loss"] for r in fits[0].history]


@pytest.mark.parametrize("loss", ["plain", "smooth"])
@pytest.mark.parametrize("goal", ["classes", "labels", "targets"])
def test_several_scores_have_the_same_bits_with_rows_that_are_not_kept(goal, loss, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    labels = (X[:, :3] > 0).astype(int)
    estimator, y = {"classes": (SVC, labels.sum(axis=1)), "labels": (SVC, labels), "targets": (SVR, X[:, :2])}[goal]
    if goal == "targets":
        loss = {"plain": "epsilon_insensitive", "smooth": "squared"}[loss]
    else:
        loss = {"plain": "hinge", "smooth": "squared_hinge"}[loss]
    np.save(tmp_path / "rows.npy", X)
    options = {"loss": loss, "solver": Refine(5, epochs=3), "random_state": 0}
    one = estimator(**options).fit(X, y).model_
    other = estimator(**options).fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), y).model_
    np.testing.assert_array_equal(one.basis, other.basis)
    np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("container", ["memmap", "memory-limit"])
def test_rows_that_are_not_kept_give_the_same_bits(container, tmp_path, monkeypatch):
    settings = (GradientSettings(folded_bytes=2000),)
    problem, X = problem_of(Binary(), RBF(0.3), n=300, precision="float32", settings=settings)
    solver = Refine(8, epochs=4, batch_size=32, initial="nystrom")
    expected = solver.solve(problem)
    if container == "memmap":
        np.save(tmp_path / "rows.npy", X)
        problem = Problem(
            as_rows(np.load(tmp_path / "rows.npy", mmap_mode="r")), problem.examples, problem.task, problem.kernel,
            C=problem.C, precision="float32", random_state=0, settings=settings,
        )  # fmt: skip
        assert not problem.bind().is_kept
    else:
        monkeypatch.setattr(KernelRows, "_folded_bytes", lambda self: 1 << 60)
    fit = solver.solve(problem)
    np.testing.assert_array_equal(fit.model.basis, expected.model.basis)
    np.testing.assert_array_equal(fit.model.coef, expected.model.coef)


# ---- a loss that only its owner knows


def test_a_task_without_smoothed_loss_is_trained_without_finish():
    problem, _ = problem_of(OwnBinary(), RBF(0.3), n=300, C=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = Refine(5, epochs=40, finish=False).solve(problem)
    known, _ = problem_of(Binary(), RBF(0.3), n=300, C=10.0)
    other = Refine(5, epochs=40, finish=False).solve(known)
    assert fit.objective == pytest.approx(other.objective, rel=1e-6)
    assert fit.history[-1]["training_error"] == pytest.approx(other.history[-1]["training_error"], abs=0.02)


# ---- calls


@pytest.mark.parametrize("task", [Binary(), OwnBinary()], ids=["known", "own"])
def test_steps_cut_into_many_calls_have_the_same_bits(task):
    """A call ends in the middle of a batch where it would take too long."""
    found = []
    for microseconds in (1e9, 0.0):
        own = GradientSettings(shared_work=0, tile_rows=16, sums_bytes=300, call_microseconds=microseconds)
        problem, _ = problem_of(task, RBF(0.3), n=600, precision="float32", settings=(own,))
        learner = descent_of(problem, rate=0.01)
        found.append((learner.sweep(np.arange(600), np.ones(3), np.zeros(3)), learner))
    (whole, one), (parts, many) = found
    assert many.gradient.max_tiles == 1
    assert many.gradient.n_groups == 2
    assert whole == parts
    np.testing.assert_array_equal(one.parameters.flat, many.parameters.flat)


def test_the_gradient_alone_is_that_of_the_steps():
    problem, _ = problem_of(Multiclass(3), RBF(0.3))
    learner, stats = descent_of(problem), np.zeros(3)
    expected, loss = gradient_of(learner), learner.gradient.loss
    rows, index = learner.kernel_rows.folded_rows(np.arange(60))
    learner.gradient.gradient[:] = 0
    done = core.batch_gradient(
        descent=learner.gradient.data, rows=rows, row_loss=loss.rows, index=index, step=1, pull=0.0, n_threads=1,
        max_tiles=1, tile=0, microseconds=1.0, stats=stats,
    )  # fmt: skip
    assert done == 0
    np.testing.assert_array_equal(learner.gradient.gradient, expected)
    assert stats[0] / 60 == learner.sweep(np.arange(60), np.ones(1), np.zeros(1)).loss


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_the_spread_of_many_rows_is_that_of_their_pieces(make):
    block = np.random.default_rng(0).normal(size=(2 * basis_descent.SPREAD_NUMBERS // 300 + 7, 300)) + np.arange(300)
    found = basis_descent.spread_of(make(block), KernelRows(RBF(1e-4), make(block[:50])))
    np.testing.assert_allclose(found, block.std(axis=0), rtol=1e-9)
