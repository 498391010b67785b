"""How every registered solver ends before its end, goes on from where it was, keeps to its memory, and counts."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from contracts.solver_cases import (
    CUT_SOLVERS,
    EXACT,
    VARIANTS,
    able,
    check_fit,
    optimum,
    problem_of,
    solve_anyhow,
    true_objective,
)
from slimsvm.kernels import RBF, CallableKernel
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import ReportSettings, Status
from slimsvm.parts.solver import Bar
from slimsvm.rows import as_rows
from slimsvm.solvers import ExactCuts, UniformCuts
from slimsvm.solvers.exact import ExactSettings
from slimsvm.solvers.frank_wolfe import ObjectiveSettings
from tasks_for_tests import CASES

OF_RBF = ("cpsp", "refine", "bsca", "bsgd")

# ---- ends before the end


@pytest.mark.turns("task")
@pytest.mark.parametrize(("solver", "task"), able("binary", "chain"))
def test_limits_give_the_model_so_far_and_a_warning(solver, task):
    problem, X, case = problem_of(task, C=30.0)
    for limit, status in ({"max_iter": 3}, "iteration limit"), ({"max_seconds": 1e-9}, "time limit"):
        with pytest.warns(ConvergenceWarning, match=f"stopped at the {status} after"):
            fit = VARIANTS[solver].solve(replace(problem, **limit))
        assert fit.status == status
        assert fit.n_iter == limit.get("max_iter", 1)
        check_fit(fit, problem, X, case, 1e-8)


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_a_callback_sees_every_record_and_may_stop(solver):
    problem, X, case = problem_of("binary", C=30.0)
    seen, after = [], []
    fit = VARIANTS[solver].solve(problem, callbacks=[lambda r: seen.append(r) or len(seen) == 4, after.append])
    assert fit.status == Status.STOPPED
    assert seen == after == fit.history
    assert len(seen) == 4
    check_fit(fit, problem, X, case, 1e-8)


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_an_interrupt_in_a_callback_returns_the_best_so_far(solver):
    problem, X, case = problem_of("binary", C=30.0)

    def press_ctrl_c(record):
        if record["seconds"] and len(seen := calls) == 3:
            raise KeyboardInterrupt
        seen.append(record)

    calls = []
    with pytest.warns(ConvergenceWarning, match="interrupted after 4 iterations"):
        fit = VARIANTS[solver].solve(problem, callbacks=[press_ctrl_c])
    assert fit.status == Status.INTERRUPTED
    check_fit(fit, problem, X, case, 1e-8)


class CtrlC:
    """Raises KeyboardInterrupt at the k-th line that the solver's iterations execute."""

    def __init__(self, at):
        self.at, self.lines, self.stepping = at, 0, False

    def __call__(self, frame, event, arg):
        name, path = frame.f_code.co_name, frame.f_code.co_filename
        inside = "slimsvm/solvers" in path or "slimsvm/parts" in path
        if name == "step" and inside:
            self.stepping = True
        if name == "finish":
            self.stepping = False
        return self.line if self.stepping and inside and name != "iterate" else None

    def line(self, frame, event, arg):
        if self.stepping and event == "line":
            self.lines += 1
            if self.lines == self.at:
                self.stepping = False
                raise KeyboardInterrupt
        return self.line


def interrupted_at(solver, problem, k):
    """The fit that Ctrl-C at line k leaves, and how many lines were executed."""
    ctrl_c, before = CtrlC(k), sys.gettrace()
    sys.settrace(ctrl_c)
    try:
        fit = solve_anyhow(solver, problem)
    finally:
        sys.settrace(before)
    return fit, ctrl_c.lines


def check_interrupts(solver, task, n_places):
    """Objective and model belong together wherever the interrupt strikes, and a further fit can go on from there."""
    problem, X, case = problem_of(task, n=8, C=5.0, max_iter=10)
    whole, n_lines = interrupted_at(VARIANTS[solver], problem, -1)
    assert whole.n_iter > 3
    assert n_lines > 40
    for k in np.unique(np.linspace(1, n_lines, n_places).astype(int)):
        fit, _ = interrupted_at(VARIANTS[solver], problem, k)
        assert fit.status == Status.INTERRUPTED
        truth = true_objective(fit.model, X, case, problem.examples, problem.C)
        assert fit.objective == pytest.approx(truth, rel=1e-8), k
    go_on = solve_anyhow(VARIANTS[solver], replace(problem, max_iter=None), state=fit.state)
    assert go_on.objective <= fit.objective * 1.2


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_an_interrupt_in_any_line_leaves_a_whole_model(solver):
    check_interrupts(solver, "binary", 40)


@pytest.mark.filterwarnings("ignore:the exact SVM was cut short before:sklearn.exceptions.ConvergenceWarning")
def test_an_interrupt_leaves_what_all_rows_were_last_looked_at_with():
    """Where scores of the latest dual point would take long: no kernel value is computed for the report.

    Before the first look the objective is an estimate (tests/unit/test_exact.py).
    """
    settings = ReportSettings(work=0), ExactSettings(first_rows=3)
    problem, X, case = problem_of("binary", C=30.0, settings=settings)
    whole, n_known = VARIANTS["exact"].solve(problem), 0
    for n_iter in range(2, min(whole.n_iter, 30)):
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            fit = VARIANTS["exact"].solve(problem, callbacks=[interrupting(n_iter)])
        known = [record["objective"] for record in fit.history if record["objective"] is not None]
        if known:
            check_fit(fit, problem, X, case, 1e-8)
            assert fit.objective == known[-1]
            assert not fit.counters["report_kernel_evals"]
            n_known += fit.history[-1]["objective"] is None
    assert n_known > 3


@pytest.mark.parametrize("solver", ["bcfw", "lasvm", "uniform-cuts"])
def test_an_interrupt_takes_no_look_at_all_rows_that_would_take_long(solver):
    """There is no objective then, and the model is whole: with the look it is the same one, and has its objective."""
    never = ObjectiveSettings(first_passes=0, every=10**9, near=0.0)  # else the objective is known by then
    problem, X, case = problem_of("binary", C=30.0)
    fits = []
    for work in (0, 1 << 32):
        given = replace(problem, settings=(never, ReportSettings(work=work)))
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            fits.append(VARIANTS[solver].solve(given, callbacks=[interrupting(2)]))
    quick, whole = fits
    assert np.isnan(quick.objective)
    assert not quick.counters["report_kernel_evals"]
    assert whole.objective == pytest.approx(true_objective(whole.model, X, case, problem.examples, problem.C))
    np.testing.assert_array_equal(quick.model.coef, whole.model.coef)
    assert np.abs(quick.model.intercept - whole.model.intercept).max() < 0.1
    assert quick.lower_bound is None or quick.lower_bound <= whole.objective
    go_on = solve_anyhow(VARIANTS[solver], problem, state=quick.state)
    assert np.isfinite(go_on.objective)


def interrupting(n_iter):
    """A callback that presses Ctrl-C in that iteration."""
    left = iter(range(n_iter, 0, -1))

    def press(record):
        if next(left) == 1:
            raise KeyboardInterrupt

    return press


@pytest.mark.full
@pytest.mark.parametrize(("solver", "task"), able("binary", "multiclass", "chain", "error-rate"))
def test_an_interrupt_in_nearly_every_line(solver, task):
    check_interrupts(solver, task, 500)


# ---- warm starts


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "chain"])
@pytest.mark.parametrize("solver", EXACT)
def test_warm_start_along_C_and_gamma(solver, task):
    problem, _, _ = problem_of(task, precision="float64")
    exact = VARIANTS[solver]
    exact = type(exact)(**exact.get_params() | {"tol_relative": 1e-9})
    state = exact.solve(problem).state
    for change in ({"C": 1.3}, {"C": 0.8}, {"kernel": RBF(0.33)}):
        other = replace(problem, tol=1e-9, **change)
        cold, warm = exact.solve(other), exact.solve(other, state=state)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
        assert warm.lower_bound <= cold.objective * (1 + 1e-12)
        assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("solver", ["violated-cuts", "uniform-cuts", "violated-cuts-full"])
def test_warm_start_of_sampled_cuts(solver):
    problem, X, case = problem_of("binary")
    first = VARIANTS[solver].solve(problem)
    warm = VARIANTS[solver].solve(problem, state=first.state)
    assert warm.n_iter <= first.n_iter
    check_fit(warm, problem, X, case, 1e-8)


@pytest.mark.parametrize("earlier", ["violated-cuts", "uniform-cuts"])
def test_sampled_cuts_do_not_become_bounds(earlier):
    """Exact cuts may start where sampled ones ended, and certify nothing by them."""
    for seed in range(5):
        problem, _, _ = problem_of("binary", seed)
        problem = replace(problem, random_state=seed)
        _, dual = optimum("binary", "rbf", "regularized", 1.0, seed)
        state = VARIANTS[earlier].solve(problem).state
        fit = solve_anyhow(ExactCuts(), replace(problem, max_iter=4), state=state)
        assert fit.lower_bound <= dual * (1 + 1e-9)
        fit = ExactCuts().solve(problem, state=state)
        assert fit.objective == pytest.approx(dual, rel=1e-8)
    with pytest.raises(ValueError, match="the earlier fit's cuts are sampled, which bound nothing"):
        ExactCuts(step="full").solve(problem, state=state)


@pytest.mark.parametrize(
    "solver", sorted(set(VARIANTS) - {"refine", "low-rank"})
)  # their state is a model, good for any rows
def test_warm_start_needs_the_same_examples(solver):
    problem, X, _ = problem_of("binary")
    solver = VARIANTS[solver]
    state = solver.solve(problem).state
    task, examples = problem.task, problem.examples
    fewer = replace(problem, rows=as_rows(X[:50]), examples=examples.take(np.arange(50)))
    with pytest.raises(ValueError, match="earlier fit had 60 rows, this one has 50"):
        solver.solve(fewer, state=state)
    changes = {
        "labels": {"examples": replace(examples, labels=-examples.labels)},
        "weights": {"examples": replace(examples, weights=examples.weights + 1)},
        "loss": {"task": replace(task, cost_positive=2.0)},
    }
    for change in changes.values():
        with pytest.raises(ValueError, match="labels, weights or the loss are not those of the earlier fit"):
            solver.solve(replace(problem, **change), state=state)
    with pytest.raises(ValueError, match=r"can only be warm-started from .* fit, found str"):
        solver.solve(problem, state="yesterday's")


# ---- memory


def step_until_full(solver, problem, n_steps=200):
    run = solver.start(problem, None)
    for _ in range(n_steps):
        if run.book.full:
            return run
        run.step()
    raise AssertionError("the book never filled up")


@pytest.mark.parametrize("task", ["binary", "multiclass", "chain"])
@pytest.mark.parametrize("solver", ["exact-cuts", "exact-cuts-full", "violated-cuts"])
def test_the_memory_limit_merges_cuts(solver, task):
    """Room for six cuts' products and no kernel matrix: the fit still comes to its end, and says it merged."""
    problem, X, case = problem_of(task, precision="float64", C=3.0)
    n, m = len(X), problem.task.n_outputs
    tight = replace(problem, memory_limit=6 * 8 * n * m + 8 * n * m // 2)
    run = VARIANTS[solver].start(tight, None)
    assert run.book.products.nbytes <= tight.memory_limit
    assert len(run.book.products) == 6
    fit = VARIANTS[solver].solve(replace(tight, tol=0.01, max_iter=3000))
    assert fit.counters["merged_cuts"] > 0
    assert fit.history[-1]["n_merged"] > 0
    assert max(record["n_cuts"] for record in fit.history) <= 6
    check_fit(fit, tight, X, case, 1e-8)
    primal, _ = optimum(task, "rbf", "regularized", 3.0, 0)
    assert fit.objective <= primal * (1.02 if solver.startswith("exact") else 1.25)


@pytest.mark.parametrize("solver", ["exact-cuts", "exact-cuts-full", "violated-cuts"])
def test_a_merge_leaves_the_qp_as_it_was(solver):
    problem, _, _ = problem_of("multiclass", precision="float64", C=3.0, memory_limit=7 * 8 * 60 * 3)
    run = step_until_full(VARIANTS[solver], problem)
    working_set, book = run.working_set, run.book
    merged = 0
    while not merged:
        value, plain = working_set.value, working_set.plain
        scores = book.scores.copy()
        before = run.n_merged
        run.make_room()
        merged = run.n_merged - before
        assert not book.full
        assert working_set.value == pytest.approx(value, rel=1e-12)
        book.combine(working_set.alpha)
        np.testing.assert_allclose(book.scores, scores, atol=1e-12)
        np.testing.assert_allclose(working_set.plain, plain, atol=1e-12)
        working_set.solve(problem.C1)
        assert working_set.value == pytest.approx(value, rel=1e-9)
        while not book.full:
            run.step()
    assert merged >= 2


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts"])
def test_too_small_a_limit_says_what_is_needed(solver):
    problem, _, _ = problem_of("multiclass", memory_limit=1000)
    with pytest.raises(
        ValueError, match="memory_limit leaves room for the products of 0 cuts over 60 rows x 3 outputs"
    ):
        VARIANTS[solver].solve(problem)


# ---- counters


@pytest.mark.parametrize(("solver", "task"), able("binary", "multiclass", "chain", "error-rate", but=OF_RBF))
def test_kernel_evaluations_are_those_really_made(solver, task):
    made = []

    def kernel(X, Z):
        made.append(len(X) * len(Z))
        return np.exp(-0.3 * ((X[:, None] - Z) ** 2).sum(axis=2))

    class Counting(CallableKernel):
        def diag(self, X, dtype=np.float64):  # not counted
            return np.ones(X.shape[0], dtype)

    problem, _, _ = problem_of(task, kernel=Counting(kernel))
    fit = VARIANTS[solver].solve(problem)
    assert fit.counters["kernel_evals"] + fit.counters.get("report_kernel_evals", 0) == sum(made)
    assert fit.counters["kernel_evals"] >= fit.history[-1]["kernel_evals"]


@pytest.mark.parametrize("solver", CUT_SOLVERS)
def test_the_final_objective_is_counted_apart(solver):
    problem, _, _ = problem_of("binary")
    fit = VARIANTS[solver].solve(problem)
    assert fit.counters["kernel_evals"] == fit.history[-1]["kernel_evals"]
    if solver == "uniform-cuts":
        assert fit.counters["report_kernel_evals"] == problem.rows.n_rows * fit.model.n_basis
        silent = UniformCuts(sample_size=20, final_objective=False).solve(problem)
        assert silent.counters["report_kernel_evals"] == 0
        assert np.isnan(silent.objective)
        np.testing.assert_array_equal(silent.model.coef, fit.model.coef)


def test_uniform_cuts_never_look_at_all_rows():
    """Evaluations do not depend on the number of rows: every call has at most the sample's."""
    calls = []

    def kernel(X, Z):
        calls.append((len(X), len(Z)))
        return X @ Z.T

    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 4))
    task = CASES["binary"].make()
    problem = Problem(
        as_rows(X), task.encode(np.sign(X[:, 0])), task, CallableKernel(kernel), C=0.001, random_state=0, max_iter=20
    )
    fit = solve_anyhow(UniformCuts(sample_size=30, final_objective=False), problem)
    assert len(calls) > 20
    assert max(n_rows for n_rows, _ in calls) <= 64  # that tell the precision
    assert max(n_points for _, n_points in calls) <= 30 * max(record["n_cuts"] for record in fit.history)
    assert fit.n_iter > 3


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_a_bar_says_what_is_done_and_comes_to_its_end(solver, capfd):
    """In words for users, with a share that only rises and the time that is left."""
    problem, _, _ = problem_of("binary", C=30.0)
    VARIANTS[solver].solve(replace(problem, verbose=1))
    found = re.findall(r"([A-Za-z ,]+): +(\d+)%\|[^|]*\| \d\d:\d\d<(?:\d\d:\d\d|\?)", capfd.readouterr().err)
    assert len({words for words, _ in found}) == 1
    shares = [int(share) for _, share in found]
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_a_bar_counts_limits():
    """Of what a run has to do, max_iter and max_seconds the bar shows what ends first."""
    run = type("Run", (), {"doing": "work", "share_done": 0.1, "distance": lambda self, record: record["gap"]})()
    bar, shown = Bar(run, "Run", 10, 100.0), []
    for n_iter, (seconds, gap) in enumerate([(1.0, 100.0), (50.0, 50.0), (51.0, 1.0)], start=1):
        bar.update({"seconds": seconds, "gap": gap}, n_iter)
        shown.append(bar.bar.n)
    bar.close(is_done=False)
    assert shown == [10.0, 50.0, 100.0]
