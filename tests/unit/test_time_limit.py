"""max_seconds within an iteration: a clock that runs with kernel evaluations."""

import time
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, Exact, ExactCuts, LowRank, Refine, ViolatedCuts
from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.editing import CrossTrainer
from slimsvm.kernels import RBF, EvalCounter, KernelRows
from slimsvm.kernels.operands import MAP_WORK, RowSizes
from slimsvm.kernels.outlying_rows import BLOCK_VALUES, Bulk
from slimsvm.parts.descent.basis_descent import Descent
from slimsvm.parts.dual_ascent import smo
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import ReportSettings, Status, reported
from slimsvm.parts.solver import Solver, nothing
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary

PIECE = 40_000  # evaluations of four features between two looks at the clock


@pytest.fixture
def evaluations(monkeypatch):
    """Kernel evaluations done so far, which are the seconds too."""
    done = [0]

    def add(counter, n):
        counter.n += int(n)
        done[0] += int(n)

    monkeypatch.setattr(EvalCounter, "add", add)
    monkeypatch.setattr(time, "perf_counter", lambda: float(done[0]))
    monkeypatch.setattr(KernelRows, "sizes", RowSizes(call_work=PIECE * (4 + MAP_WORK), tile_rows=1))
    return done


def classes(n=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0.2, 1, -1)


@pytest.mark.parametrize("solver", [ExactCuts(), ViolatedCuts(), Exact(512)], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_fit_ends_within_a_piece_of_the_limit(solver, share, evaluations):
    X, y = classes()
    task = Binary()
    problem = Problem(
        as_rows(X), task.encode(y), task, RBF(0.5), C=3.0, tol=1e-3, random_state=0, memory_limit=10_000_000
    )
    history = solver.solve(problem).history
    longest = max(np.diff([record["kernel_evals"] for record in history]))
    assert longest > 4 * PIECE  # otherwise the limit between iterations would do
    spent = evaluations[0]
    limit = share * history[-1]["kernel_evals"]
    seen = []
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fit = solver.solve(replace(problem, max_seconds=limit), callbacks=[lambda record: seen.append(evaluations[0])])
    assert fit.status == Status.TIME_LIMIT
    before_the_report = fit.counters["kernel_evals"] - fit.counters.get("report_kernel_evals", 0)
    assert before_the_report <= fit.counters["kernel_evals"] <= limit + PIECE
    assert evaluations[0] > spent
    scores = fit.model.scores(X)[:, 0]
    loss = np.maximum(0.0, 1.0 - y * scores).sum()
    norm = fit.model.norm_squared() + float(np.sum(fit.model.intercept**2))
    assert fit.objective == pytest.approx(0.5 * norm + 3.0 * loss, rel=1e-4)


def test_the_report_has_its_share_of_the_limit_and_no_more(evaluations, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: evaluations[0] / (40 * PIECE))
    X, y = classes()
    settings = (ReportSettings(work=0, share=0.01),)
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), settings=settings)
    rows = KernelRows(RBF(0.5), X)
    with time_limit(1.0):
        found = reported(
            problem, Status.TIME_LIMIT, 2000, lambda: rows.scores(rows.points(np.arange(2000)), np.ones((2000, 1)))
        )
    assert found is None
    assert evaluations[0] <= 2 * PIECE


def test_passes_are_the_same_whether_the_clock_is_looked_at_or_not(evaluations):
    X, _ = classes(700)
    rows = KernelRows(RBF(0.5), X)
    points, coef = rows.points(np.arange(300)), np.ones((300, 2))
    some = np.arange(0, 700, 3)
    whole = rows.scores(points, coef), rows.scores(points, coef, rows=some), rows.block(points, rows=(3, 650))
    n = rows.counter.n
    with time_limit(1e9):
        parts = rows.scores(points, coef), rows.scores(points, coef, rows=some), rows.block(points, rows=(3, 650))
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    assert rows.counter.n == 2 * n
    with time_limit(1.5 * PIECE), pytest.raises(OutOfTimeError):
        rows.scores(points, coef)
    assert PIECE < rows.counter.n - 2 * n <= 2 * PIECE


def test_values_with_many_coefficients_take_smaller_pieces(evaluations):
    X, _ = classes(700)
    rows = KernelRows(RBF(0.5), X)
    points, pieces = rows.points(np.arange(300)), {}
    for m in (1, 9 * (4 + MAP_WORK)):
        begun = evaluations[0]
        with time_limit(0.5 * PIECE / 10), pytest.raises(OutOfTimeError):  # over after the first piece
            rows.scores(points, np.ones((300, m)), rows=np.arange(700))
        pieces[m] = evaluations[0] - begun
    assert pieces[1] == pytest.approx(10 * pieces[9 * (4 + MAP_WORK)], rel=0.1)


def test_the_model_of_few_rows_is_not_solved_to_rounding(evaluations, monkeypatch):
    """The time is over with the first kernel value, and the clock stands still then."""
    solved, usual = [], Solver.solve

    def noted(self, problem, *args, **options):
        solved.append(problem)
        return usual(self, problem, *args, **options)

    monkeypatch.setattr(Solver, "solve", noted)
    monkeypatch.setattr(time, "perf_counter", lambda: 10.0 * (evaluations[0] > 0))
    X, y = classes()
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), max_seconds=1.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="of the rows is returned"):
        fit = LowRank(50).solve(problem)
    few = solved[-1]
    assert fit.model.n_basis == 50
    assert few.rows.n_rows < 1000
    assert not few.is_small


def test_certificates_end_too(evaluations):
    X, y = classes(1500)
    clf = SVC(C=3.0, gamma=0.5, loss="f1", max_iter=2, memory_limit=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    spent = []
    for limit in (1.0, None):  # the objective alone; all of it
        begun = evaluations[0]
        clf.certificate(X, y, max_seconds=limit)
        spent.append(evaluations[0] - begun)
    limit = spent[0] + 1500**2 + 10 * PIECE  # the objective, the first cut, and ten pieces
    assert spent[1] > limit + 20 * PIECE
    begun = evaluations[0]
    found = clf.certificate(X, y, max_seconds=limit)
    assert 10 * PIECE < evaluations[0] - begun - spent[0] <= limit - spent[0] + PIECE
    assert 0.0 <= found.lower_bound <= found.objective


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_sweeps_are_planned_by_what_the_last_one_took(precision, monkeypatch):
    now, usual = [0.0], Descent.sweep

    def slowed(self, *plan):
        now[0] += 0.01
        return usual(self, *plan)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(Descent, "sweep", slowed)
    fit = learned(Refine(6, epochs=1000, finish=False), max_seconds=0.6, precision=precision)
    assert 40 < fit.n_iter < 60
    assert fit.history[-1]["rate"] < 0.2 * max(record["rate"] for record in fit.history)


def learned(solver, **settings):
    X, y = classes()
    task = Binary()
    problem = Problem(as_rows(X.astype(np.float32)), task.encode(y), task, RBF(0.5), C=3.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solver.solve(replace(problem, **settings))


def test_the_model_is_the_same_as_without_a_limit():
    free, limited = (learned(Refine(6, epochs=5), max_seconds=limit) for limit in (None, 1e9))
    np.testing.assert_array_equal(free.model.basis, limited.model.basis)
    np.testing.assert_array_equal(free.model.coef, limited.model.coef)
    generators = [np.random.default_rng(0) for _ in range(2)]
    for generator, limit in zip(generators, (None, 1e9), strict=True):
        learned(Refine(6, epochs=2), max_seconds=limit, random_state=generator)
    assert generators[0].random() == generators[1].random()


def test_svms_of_subsets_end_together_with_the_whole_time(evaluations, monkeypatch):
    """Each of five has half a second, in which 20 pieces are evaluated here, and all of them have no more."""
    monkeypatch.setattr(time, "perf_counter", lambda: evaluations[0] / (40 * PIECE))
    X, y = classes(3000)
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), C=1.0, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = CrossTrainer(first_C=1.0).solve(replace(problem, max_seconds=0.5))
    assert fit.status is Status.TIME_LIMIT
    assert evaluations[0] < 100 * PIECE  # with the scores of all rows by five SVMs


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("max_basis", ["auto", None])
def test_cross_training_leaves_out_what_there_is_no_time_for(share, max_basis, monkeypatch):
    """A clock that runs with the estimators that are trained."""
    trained, usual = [0], Solver.solve

    def counted(self, *args, **options):
        trained[0] += 1
        return usual(self, *args, **options)

    monkeypatch.setattr(Solver, "solve", counted)
    monkeypatch.setattr(time, "perf_counter", lambda: float(trained[0]))
    X, y = classes(500)
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), C=1.0, random_state=0, n_jobs=1)
    trainer = CrossTrainer(max_basis=max_basis)
    trainer.solve(problem)
    limit, trained[0] = share * trained[0], 0
    with pytest.warns(ConvergenceWarning, match=r"cross-training ended early \(time limit\): values of C were tried"):
        fit = trainer.solve(replace(problem, max_seconds=limit))
    assert fit.status is Status.TIME_LIMIT
    assert 0.8 * limit <= trained[0] <= limit + 3
    assert np.mean(np.sign(fit.model.scores(X)[:, 0]) == y) > 0.7


class InterruptedExact(Exact):
    """Ctrl-C in the estimator of that number; whether there is time for others after it does not depend on a clock."""

    def __init__(self, number, calls, is_over=False):
        super().__init__()
        self.number, self.calls, self.is_over = number, calls, is_over

    def solve(self, problem, state=None, callbacks=()):
        self.calls.append(problem.C)
        if len(self.calls) == self.number:
            raise KeyboardInterrupt
        if len(self.calls) > self.number:
            if self.is_over:
                return nothing(problem, "Exact", 0.0)
            problem = replace(problem, max_seconds=None)
        return super().solve(problem, state, callbacks)


@pytest.mark.parametrize("is_over", [False, True])
def test_cross_training_keeps_Cs_it_has_when_it_is_interrupted(is_over):
    X, y = classes(2000)
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), C=1.0, random_state=0, n_jobs=1)
    calls = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = CrossTrainer(InterruptedExact(8, calls, is_over)).solve(problem)
    assert calls[:8] == [0.1] * 5 + [1.0] * 3
    assert len(calls) <= (11 if is_over else 9)  # and the estimator whose vectors are taken, or that of all kept rows
    assert fit.status is Status.INTERRUPTED
    assert [trial["C"] for trial in fit.state.edited.first.trials] == [0.1]
    assert np.mean(np.sign(fit.model.scores(X)[:, 0]) == y) > 0.7
    with pytest.raises(KeyboardInterrupt):
        CrossTrainer(InterruptedExact(3, [])).solve(problem)


def test_a_working_set_is_left_when_time_is_over(monkeypatch):
    """A clock that runs with the calls of the compiled steps, of which a large set takes many."""
    calls, usual = [0], smo.core.smo

    def counted(**arguments):
        calls[0] += 1
        return usual(**arguments)

    monkeypatch.setattr(smo, "core", SimpleNamespace(smo=counted))
    X, y = classes(400)
    settings = (smo.SetSettings(call_work=1 << 13),)
    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(0.5), C=1000.0, settings=settings)
    free = Exact(200).solve(problem)
    many, calls[0] = calls[0] / free.n_iter, 0
    assert many > 5
    monkeypatch.setattr(time, "perf_counter", lambda: float(calls[0]))
    limit = free.n_iter / 2 * many
    with pytest.warns(ConvergenceWarning, match="time limit"):
        fit = Exact(200).solve(replace(problem, max_seconds=limit))
    assert limit <= calls[0] <= limit + 1
    assert fit.objective == pytest.approx(true_objective_of(fit.model, X, y, 1000.0), rel=1e-6)


def true_objective_of(model, X, y, C):
    norm = model.norm_squared() + float(model.intercept @ model.intercept)
    return 0.5 * norm + C * np.maximum(0.0, 1.0 - y * model.scores(X)[:, 0]).sum()


@pytest.fixture
def looks(monkeypatch):
    """How often the clock was looked at."""
    n = [0]

    def look():
        n[0] += 1
        return 0.0

    monkeypatch.setattr(time, "perf_counter", look)
    return n


@pytest.mark.parametrize("shape", [(5, 3), (300, 4000)], ids=["one piece", "pieces"])
def test_the_bulk_of_wide_rows_is_found_in_pieces(shape, looks):
    X = np.random.default_rng(0).normal(size=shape)
    with time_limit(1.0):
        found = Bulk.of(as_rows(X))
    # Medians and variances; rows, distances and three sums.
    assert looks[0] >= 6 * -(-X.size // BLOCK_VALUES)
    np.testing.assert_array_equal(found.centre, np.median(X, axis=0))
    np.testing.assert_array_equal(found.variances, np.var(X, axis=0))
    assert found.apart == pytest.approx(np.var(X) / np.mean(np.square(X - found.centre)), rel=1e-12)
