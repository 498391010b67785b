"""Learned bases for tasks whose examples have several rows and plain parameters: gradients, finish, threads."""

import itertools
import time
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from slimsvm import ExactCuts, Refine, SequenceSVM
from slimsvm.kernels import RBF, Linear
from slimsvm.parts.descent.basis_descent import Descent, Expansion, StepSettings
from slimsvm.parts.descent.batch_gradient import GradientSettings, Rates
from slimsvm.parts.problem import Problem
from slimsvm.parts.span import whitened_span
from slimsvm.parts.span.best_coefficients import FinishByCuts, finish_by_cuts
from slimsvm.rows import as_rows
from slimsvm.tasks import Augmented, Chain, Examples, Task, losses
from tasks_for_tests import CASES

TASKS = ["sequence", "sequence-zero-one", "chain"]


@dataclass(frozen=True)
class PairOrder(Task):
    """Examples of several rows, one score column, no plain parameters: the rows of a list should score in its order."""

    has_threshold = False

    def encode(self, y, sample_weight=None):
        offsets = np.concatenate([[0], np.cumsum([len(query) for query in y])]).astype(np.int64)
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        return Examples(np.concatenate(y).astype(float), weights, offsets)

    def augment(self, scores, plain, examples):
        delta, coef = np.zeros(examples.n_examples), np.zeros((examples.n_rows, 1))
        for e, (lo, hi) in enumerate(zip(examples.offsets[:-1], examples.offsets[1:])):
            for i in range(lo, hi):
                for j in range(lo, hi):
                    if examples.labels[i] > examples.labels[j] and scores[i, 0] - scores[j, 0] < 1:
                        delta[e] += 1
                        coef[i] += 1
                        coef[j] -= 1
        return Augmented(delta, coef)

    def decode(self, scores, plain, examples=None):
        return scores[:, 0]


def words(n_words, seed=0, k=3, noise=0.7):
    """Rows whose labels follow each other in a circle most of the time."""
    rng = np.random.default_rng(seed)
    y, centres = [], rng.normal(size=(k, 4))
    for _ in range(n_words):
        labels = [int(rng.integers(k))]
        while len(labels) < rng.integers(1, 6):
            labels.append((labels[-1] + 1) % k if rng.random() < 0.8 else int(rng.integers(k)))
        y.append(np.array(labels))
    labels = np.concatenate(y)
    return centres[labels] + noise * rng.normal(size=(len(labels), 4)), y


def problem_of(name, kernel=None, seed=0, **options):
    task, X, _, examples = CASES[name].problem(seed)
    settings = {"C": 0.7, "precision": "float64", "random_state": 0} | options
    X = X + 0.1 * np.random.default_rng(seed).normal(size=X.shape)
    return Problem(as_rows(X), examples, task, RBF(0.3) if kernel is None else kernel, **settings), X


def words_problem(n_words=200, task=None, **options):
    X, y = words(n_words)
    task = Chain(3) if task is None else task
    settings = {"C": 1.0, "precision": "float64", "random_state": 0} | options
    return Problem(as_rows(X), task.encode(y), task, RBF(0.3), **settings)


def descent_of(problem, learn_metric=False):
    rng = np.random.default_rng(1)
    d, m, k = problem.rows.n_features, problem.task.n_outputs, 5
    log_scale = 0.3 * rng.normal(size=d) if learn_metric else np.zeros(d)
    sizes = (k, d), (k, m), m
    start = Expansion(*(rng.normal(size=size) for size in sizes), log_scale, rng.normal(size=problem.task.n_plain))
    if problem.intercept == "none":
        start.intercept[:] = 0
    return Descent(problem, problem.bind(), start, Rates(np.zeros(d), 0.0, 0.0), 10_000, learn_metric)


def value_of(learner, flat):
    """Mean loss + ½(‖w‖² + b² + ‖v‖²)/C₁ at parameters in folded coordinates, from nothing but the definitions."""
    problem = learner.problem
    at = learner.expansion(flat)
    kernel = learner.kernel(at.log_scale)
    X = problem.rows.take(np.arange(problem.rows.n_rows), np.float64)
    scores = naive.kernel_matrix(kernel, X, at.basis) @ at.coef + at.intercept
    value = losses(problem.task.augment(scores, at.plain, problem.examples), scores, at.plain, problem.examples)
    norm = np.sum(at.coef * (naive.kernel_matrix(kernel, at.basis, at.basis) @ at.coef))
    norm += at.intercept @ at.intercept + at.plain @ at.plain
    return problem.examples.weights @ value / problem.examples.total_weight + 0.5 * norm / problem.C1


@pytest.mark.parametrize("seed", [0, 1])  # with equal weights, and with others
@pytest.mark.parametrize("learn_metric", [False, True])
@pytest.mark.parametrize("name", TASKS)
def test_gradient_is_that_of_the_objective(name, learn_metric, seed):
    problem, _ = problem_of(name, seed=seed)
    learner = descent_of(problem, learn_metric)
    flat, expected = learner.parameters.flat.copy(), []
    for i in range(len(flat)):
        ends = [flat.copy(), flat.copy()]
        ends[0][i] += 1e-6
        ends[1][i] -= 1e-6
        expected.append((value_of(learner, ends[0]) - value_of(learner, ends[1])) / 2e-6)
    sweep = learner.sweep(np.arange(problem.examples.n_examples), np.ones(1), np.zeros(1))
    d, k, m = learner.shape
    scale = slice(d * k + k * m + m, d * k + k * m + m + d)
    if not learn_metric:
        expected[scale] = np.zeros(d)
    np.testing.assert_allclose(learner.gradient.gradient, expected, atol=3e-8)
    plain = learner.parameters.plain
    assert np.abs(learner.gradient.gradient[-len(plain) :]).max() > 0.01
    assert sweep.loss + sweep.norm + 0.5 * float(np.sum(learner.parameters.intercept**2)) / problem.C1 == pytest.approx(
        value_of(learner, flat)
    )


@pytest.mark.parametrize("loss", ["hamming", "zero-one"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_compiled_chains_descend_as_the_task_says(loss, sparse, kept):
    """Viterbi within the compiled step, tile by tile and shared out, against the task's own augment and decode."""
    X, y = words(120)
    task, weights = Chain(3, loss), np.random.default_rng(0).choice([0.5, 1.0, 3.0], 120)
    rows = as_rows(sp.csr_array(X)) if sparse else as_rows(X)
    problem = Problem(rows, task.encode(y, weights), task, RBF(0.3), C=1.0, precision="float64", random_state=0)
    found = []
    for longest in (0, 1024):
        own = GradientSettings(sequence_rows=8, shared_work=0, longest_sequence=longest)
        learner = descent_of(replace(problem, settings=(own,)))
        if not kept:
            learner.kernel_rows._kept = None
        sweep = learner.sweep(np.random.default_rng(0).permutation(120)[:110], np.ones(1), np.zeros(1))
        found.append((sweep, learner))
    (by_task, slow), (compiled, fast) = found
    assert slow.gradient.loss is None
    assert fast.gradient.n_groups >= 10
    np.testing.assert_allclose(fast.gradient.gradient, slow.gradient.gradient, atol=1e-12)
    assert (compiled.loss, compiled.norm) == pytest.approx((by_task.loss, by_task.norm))
    if loss == "zero-one":
        assert compiled.error == pytest.approx(by_task.error, rel=0.01)  # weights: of the batch, and of all examples
    assert 0.01 < compiled.error < 1


# ---- the finish


@pytest.mark.parametrize("intercept", ["regularized", "none"])
@pytest.mark.parametrize("name", TASKS)
def test_finish_reaches_the_optimum_over_all_rows(name, intercept):
    """With every row in the basis the problem within it is the whole one."""
    problem, X = problem_of(name, intercept=intercept)
    found = finish_by_cuts(problem, problem.bind(), X, None, 1e-9, 2000)
    K = naive.kernel_matrix(RBF(0.3), X, X)
    primal, dual = naive.optimum(K, CASES[name].written_out(problem.examples), 0.7, intercept == "regularized")
    assert found.converged
    assert found.objective == pytest.approx(primal, rel=1e-6)
    assert found.bound_in_basis <= dual * (1 + 1e-6)
    parts = CASES[name].written_out(problem.examples)
    model = found.coef, found.intercept, found.plain
    assert naive.objective(K, K, *model, parts, 0.7) == pytest.approx(found.objective, rel=1e-9)


def test_finish_never_rises_above_its_start():
    problem = words_problem()
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(6, 4))
    good = finish_by_cuts(problem, problem.bind(), basis, None, 1e-3, 2000)
    start = good.coef, good.intercept, good.plain
    run = FinishByCuts(problem, problem.bind(), basis, 1e-3, start)
    assert run.centre.now.objective == pytest.approx(good.objective)
    again = finish_by_cuts(problem, problem.bind(), basis, start, 1e-6, 3)
    assert again.objective <= good.objective * (1 + 1e-12)
    assert again.bound_in_basis <= good.objective


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_fast_products_are_the_exact_ones(precision):
    rng = np.random.default_rng(0)
    basis, u, v = rng.normal(size=(200, 4)), rng.normal(size=(201, 3)), rng.normal(size=(250, 3))
    for memory_limit in (10**9, 4 * 10**6):
        problem = words_problem(precision=precision, memory_limit=memory_limit)
        space = whitened_span.Subspace(problem.bind(), basis, 1.0, memory_limit // 100)
        space.chunk_rows = 100
        u, index = u[: space.rank + 1], np.sort(rng.permutation(space.n_rows)[:250])
        whole = np.zeros((space.n_rows, 3))
        whole[index] = v
        tolerance = {"float32": 2e-3, "float64": 1e-9}[precision]
        for fast, exact in (
            (space.scores(u), space.times(u)),
            (
                space.coordinates_of(index, v),
                space.coordinates_of_sums(
                    whitened_span.LocalSpanRows(space, 0, space.n_rows).transposed(whole)[0], whole.sum(axis=0)
                ),
            ),
        ):
            np.testing.assert_allclose(fast, exact, atol=tolerance * np.abs(exact).max())


def test_dependent_vectors_in_the_basis_are_left_out():
    problem = words_problem(60)
    basis = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 2, axis=0)
    found = finish_by_cuts(problem, problem.bind(), basis, None, 1e-3, 2000)
    once = finish_by_cuts(problem, problem.bind(), basis[::2], None, 1e-3, 2000)
    assert found.objective == pytest.approx(once.objective, rel=2e-3)
    assert np.count_nonzero(found.coef.any(axis=1)) == 3


@pytest.mark.parametrize("learn_metric", [False, True])
def test_learned_bases_beat_their_start_and_keep_a_certificate(learn_metric):
    problem = words_problem(precision="float32")
    solver = Refine(8, epochs=40, initial="nystrom", learn_metric=learn_metric)
    fit = solver.solve(problem)
    rows = Refine(8, epochs=1, rate=1e-9, initial="nystrom").solve(problem)
    assert fit.objective < 0.97 * rows.objective
    assert fit.history[-1]["loss"] < 0.7 * fit.history[0]["loss"]
    bound = fit.counters["bound_in_basis"]
    assert 0 < fit.objective - bound <= 0.0101 * fit.objective
    assert fit.model.plain.any()
    model, X = fit.model, problem.rows.take(np.arange(problem.rows.n_rows), np.float64)
    gram = naive.kernel_matrix(model.kernel, model.basis, model.basis)
    parts = CASES["sequence"].written_out(problem.examples)
    scores = naive.kernel_matrix(model.kernel, X, model.basis)
    true = naive.objective(gram, scores, model.coef, model.intercept, model.plain, parts, 1.0)
    assert fit.objective == pytest.approx(true, rel=1e-4)


def test_as_many_vectors_as_rows_come_near_the_exact_optimum():
    problem = words_problem(60)
    best = ExactCuts().solve(problem)
    fit = Refine(1000, epochs=30, initial="nystrom").solve(problem)
    assert best.lower_bound <= fit.objective * (1 + 1e-9)
    assert fit.objective <= 1.02 * best.objective


@pytest.mark.parametrize("task", [PairOrder(), CASES["chain"].make()])
def test_a_users_task_of_several_rows_is_trained(task):
    X, y = words(60)
    problem = Problem(as_rows(X), task.encode(y), task, Linear(), C=0.1, intercept="none", random_state=0)
    fit = Refine(4, epochs=30, initial="nystrom").solve(problem)
    best = ExactCuts().solve(problem)
    assert fit.objective <= 1.02 * best.objective  # four vectors span all linear functions
    assert fit.counters["bound_in_basis"] <= fit.objective


@pytest.mark.parametrize("longest", [0, 1024], ids=["by-the-task", "compiled"])
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_same_bits_for_any_number_of_threads(precision, longest):
    own = GradientSettings(shared_work=0, tile_rows=16, sequence_rows=8, longest_sequence=longest)
    fits = [
        Refine(8, epochs=4, batch_size=30, learn_metric=True).solve(
            words_problem(precision=precision, n_jobs=n_jobs, settings=(own,))
        )
        for n_jobs in (1, 2, 4)
    ]
    for fit in fits[1:]:
        for name in ("basis", "coef", "plain", "intercept"):
            np.testing.assert_array_equal(getattr(fit.model, name), getattr(fits[0].model, name))
        assert fit.objective == fits[0].objective


@pytest.mark.filterwarnings("ignore:Refine had less time")
def test_a_time_limit_ends_the_cuts(monkeypatch):
    looks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: 0.003 * next(looks))
    with pytest.warns(UserWarning, match="larger max_seconds may bring it down"):
        fit = Refine(8, epochs=2, tol_relative=1e-12).solve(words_problem(300, max_seconds=0.5))
    assert fit.counters["bound_in_basis"] < fit.objective


def test_a_free_intercept_needs_a_task_that_newton_finishes():
    with pytest.raises(ValueError, match=r"Chain is finished by cuts, .* found 'free'"):
        Refine(3).solve(words_problem(20, intercept="free"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Refine(3, epochs=2, finish=False).solve(words_problem(20, intercept="free")).objective > 0


# ---- the estimator


def test_sequence_svm_learns_its_vectors():
    X, y = words(300)
    lengths = [len(labels) for labels in y]
    labels = np.concatenate(y)
    clf = SequenceSVM(max_basis=6, C=10.0, random_state=0).fit(X, labels, lengths=lengths)
    assert isinstance(clf.solver_, Refine)
    assert clf.n_basis_ <= 6
    assert clf.score(X, labels, lengths=lengths) > 0.85
    assert (clf.transitions_.argmax(axis=1) == [1, 2, 0]).all()
    assert clf.counters_["bound_in_basis"] > 0.98 * clf.objective_
    learned = SequenceSVM(max_basis=6, C=10.0, gamma="learn", random_state=0).fit(X, labels, lengths=lengths)
    assert len(learned.kernel_.gamma) == 4
    assert learned.score(X, labels, lengths=lengths) > 0.85


def test_labels_that_overtake_each_other_settle(settings_of_estimators):
    """Many labels and a wide kernel: full steps push whole columns of scores past each other again and again."""
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 12, 5) for _ in range(60)]
    X = np.eye(12)[np.concatenate(labels)] + 0.05 * rng.normal(size=(300, 12))
    objectives = []
    for own in (StepSettings(), StepSettings(most_push=np.inf)):
        settings_of_estimators(own)
        clf = SequenceSVM(C=10.0, gamma=0.5, solver=Refine(200, epochs=100, finish=False), random_state=0)
        objectives.append(clf.fit(X, np.concatenate(labels), lengths=np.full(60, 5)).objective_)
    assert objectives[0] < 0.5 * objectives[1]


def test_a_warm_start_grows_the_basis():
    X, y = words(200)
    lists = np.split(X, np.cumsum([len(labels) for labels in y])[:-1])
    clf = SequenceSVM(C=10.0, solver=Refine(epochs=10), warm_start=True, random_state=0)
    objectives = [clf.set_params(solver__max_basis=k).fit(lists, y).objective_ for k in (2, 4, 8)]
    assert clf.n_basis_ == 8
    assert objectives[0] > objectives[1] > objectives[2]
