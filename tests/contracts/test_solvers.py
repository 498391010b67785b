"""What every registered solver promises, on every task, container and dtype."""

import sys
import warnings
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import naive
from contracts.pairwise import full_product, pairwise
from slimsvm.cuts import Cut, n_distinct_rows, scorebooks
from slimsvm.kernels import RBF, CallableKernel, Laplacian, Linear, Polynomial, operands
from slimsvm.numerics import threads
from slimsvm.numerics.losses import ROWS_PER_TILE
from slimsvm.rows import as_rows
from slimsvm.solvers import SOLVERS, Exact, ExactCuts, Problem, Status, UniformCuts, ViolatedCuts
from tasks_for_tests import CASES

# Small samples where the defaults would take every row; further variants of the same class.
PARAMETERS = {"uniform-cuts": {"sample_size": 20}, "violated-cuts": {"sample_size": 20}, "cpsp": {"max_basis": 12}}
PARAMETERS |= {"refine": {"max_basis": 12, "epochs": 6}, "exact": {"working_set_size": 4}}
PARAMETERS |= {"low-rank": {"max_basis": 12}}
PARAMETERS |= {name: {"max_basis": 12, "epochs": 6} for name in ("bsca", "bsgd")}
VARIANTS = {name: solver(**PARAMETERS.get(name, {})) for name, solver in SOLVERS.items()}
# CPSP's fixed point is for RBF kernels; the best of random rows serves every kernel.
VARIANTS["cpsp-rows"] = SOLVERS["cpsp"](max_basis=12, preimage="training-rows")
VARIANTS["exact-cuts-full"] = ExactCuts(step="full")
VARIANTS["violated-cuts-full"] = ViolatedCuts(sample_size=20, step="full", tol_relative=None)
# With room for every row these are plain dual coordinate ascent.
VARIANTS["bsca-room"] = SOLVERS["bsca"](max_basis=500)
VARIANTS["bsca-plain"] = SOLVERS["bsca"](max_basis=12, epochs=6, finish=False, maintenance="project")
VARIANTS["bsgd-plain"] = SOLVERS["bsgd"](max_basis=12, epochs=6, finish=False, maintenance="remove")
# Explicit weights are for the linear kernel alone.
WEIGHTS = {"bcfw-weights": SOLVERS["bcfw"](weights=True), "exact-cuts-weights": ExactCuts(weights=True)}
PAPERS_CUTS = (ExactCuts, ViolatedCuts, UniformCuts)
CUT_SOLVERS = sorted(name for name, solver in VARIANTS.items() if isinstance(solver, PAPERS_CUTS))
EXACT = sorted(name for name, solver in VARIANTS.items() if isinstance(solver, ExactCuts))
# What a solver cannot do, by task or kernel, and what it says instead.
NO_SUM = "needs a loss that is a sum over examples; that of "
NO_DERIVATIVE = "needs kernel 'rbf', 'poly', 'linear' or 'sigmoid', found Laplacian"
OVER_ALL_ROWS = sorted(name for name, case in CASES.items() if not case.make().decomposes)
WITH_PLAIN = sorted(name for name, case in CASES.items() if case.make().n_plain)
REFUSED = {"refine": dict.fromkeys(OVER_ALL_ROWS, NO_SUM) | {"laplacian": NO_DERIVATIVE}}
ONE_OUTPUT = "Exact solves problems of two classes, of pairs of classes, regression and one class, found "
TWO_CLASSES = "solves two-class problems, found "
REFUSED["lasvm"] = {name: TWO_CLASSES for name in sorted(CASES) if not name.startswith("binary")}
REFUSED |= {name: REFUSED["lasvm"] | {"binary-costs": TWO_CLASSES} for name in ("cvm", "bvm")}
NO_SMOOTH = "needs a task with a smoothed loss"
WITHOUT_SMOOTH = sorted(name for name, case in CASES.items() if not case.make().is_smoothable)
REFUSED["exact"] = {name: ONE_OUTPUT for name in sorted(CASES) if not name.startswith(("binary", "regression"))}
REFUSED["low-rank"] = dict.fromkeys(WITHOUT_SMOOTH, NO_SMOOTH)
NO_BOX, NO_MERGE = "trains two classes, several, or regression, found", "for which it needs kernel='rbf'; found"
NO_COSTS = "trains each class against the rest, without costs; found a cost matrix"
BOXED = ("binary", "multiclass", "regression")
for budgeted in ("bsca", "bsgd", "bsca-room", "bsca-plain", "bsgd-plain"):
    REFUSED[budgeted] = {name: NO_BOX for name in sorted(CASES) if not name.startswith(BOXED)}
    REFUSED[budgeted] |= {"multiclass-costs": NO_COSTS} if budgeted.endswith("plain") else {}
for merging in ("bsca", "bsgd"):
    REFUSED[merging] |= dict.fromkeys(("laplacian", "linear", "poly"), NO_MERGE)
NO_BLOCKS = "BCFW needs a loss that is a sum over examples"
BLOCKS = sorted(name for name in VARIANTS | WEIGHTS if name.startswith("bcfw"))
for block in BLOCKS:
    REFUSED[block] = dict.fromkeys(OVER_ALL_ROWS, NO_BLOCKS)
KERNELS = {"rbf": RBF(0.3), "laplacian": Laplacian(0.4), "linear": Linear(), "poly": Polynomial(2, 0.5, 1.0)}

NOT_LINEAR = dict.fromkeys(sorted(set(KERNELS) - {"linear"}), "weights=True needs kernel='linear'")
for name in WEIGHTS:
    REFUSED[name] = REFUSED.get(name, {}) | NOT_LINEAR

AXES = {
    "solver": sorted(VARIANTS | WEIGHTS),
    "task": sorted(CASES),
    "container": ["C", "F", "csr", "csr64", "memmap"],
    "dtype": ["float32", "float64", "int8"],
    "precision": ["float64", "float32"],
    "intercept": ["regularized", "none"],
    "kernel": sorted(KERNELS),
}


@pytest.fixture(autouse=True)
def warnings_about_limits_are_expected():
    """Tests that set limits say which warning they await; a bare warning is an error as everywhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def contain(X, container, dtype, folder):
    """The same numbers in another container."""
    X = np.asarray(X, dtype=dtype)
    if container == "F":
        return np.asfortranarray(X)
    if container == "memmap":
        np.save(folder / "rows.npy", X)
        return np.load(folder / "rows.npy", mmap_mode="r")
    if container.startswith("csr"):
        X = sp.csr_array(X)
        if container == "csr64":
            X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
        return X
    return X


@lru_cache
def optimum(task_name, kernel_name, intercept, C, seed):
    """(primal, dual) of the slow truth."""
    _, X, _, examples = CASES[task_name].problem(seed)
    K = naive.kernel_matrix(KERNELS[kernel_name], X, X)
    return naive.optimum(K, CASES[task_name].written_out(examples), C, intercept == "regularized")


def true_objective(model, X, case, examples, C):
    """The objective of a model, from nothing but its arrays."""
    basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
    K_basis = naive.kernel_matrix(model.kernel, basis, basis)
    K_rows = naive.kernel_matrix(model.kernel, X, basis)
    if not len(basis):
        K_basis, K_rows = np.zeros((0, 0)), np.zeros((len(X), 0))
    parts = case.written_out(examples)
    return naive.objective(K_basis, K_rows, model.coef, model.intercept, model.plain, parts, C)


def problem_of(task_name, seed=0, n=None, **options):
    """(problem, X, case) with the usual settings."""
    case = CASES[task_name]
    task, X, _, examples = case.problem(seed, n)
    settings = {"kernel": RBF(0.3), "C": 1.0, "random_state": 0} | options
    return Problem(as_rows(X), examples, task, **settings), X, case


def solve_anyhow(solver, problem, **options):
    """The fit, whether or not it warns of a limit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem, **options)


def richest_task(solver_name):
    """The task of several outputs where the solver takes it."""
    return "binary" if "multiclass" in REFUSED.get(solver_name, ()) else "multiclass"


def is_refused(solver_name, problem, *choices):
    """Whether the solver cannot do one of the choices; then it must say so before any work."""
    messages = [REFUSED[solver_name][name] for name in choices if name in REFUSED.get(solver_name, ())]
    if messages:
        with pytest.raises(ValueError, match="|".join(messages)):
            (VARIANTS | WEIGHTS)[solver_name].solve(problem)
    return bool(messages)


# ---- the product of everything


def check_fit(fit, problem, X, case, tolerance):
    """Objective, model, history and counters of one finished fit."""
    assert fit.objective == pytest.approx(
        true_objective(fit.model, X, case, problem.examples, problem.C), rel=tolerance
    )
    model = fit.model
    assert model.coef.shape == (model.n_basis, problem.task.n_outputs)
    assert model.plain.shape == (problem.task.n_plain,)
    assert np.isfinite(model.coef).all()
    if problem.intercept == "none":
        assert not model.intercept.any()
    if fit.basis_rows is not None:
        basis = model.basis.toarray() if sp.issparse(model.basis) else model.basis
        np.testing.assert_array_equal(basis, X[fit.basis_rows])
        assert len(np.unique(fit.basis_rows)) == model.n_basis
    assert fit.n_iter == len(fit.history) > 0
    assert fit.counters["kernel_evals"] == fit.history[-1]["kernel_evals"] or "report_kernel_evals" in fit.counters
    check_history(fit)


def check_history(fit):
    """Every record has what it should, time and evaluations never go back, bounds never fall."""
    for record in fit.history:
        assert {"seconds", "kernel_evals", "objective", "lower_bound", "gap", "n_basis", "training_error"} <= set(
            record
        )
        if record["lower_bound"] is None:
            assert record["gap"] is None
        elif record["objective"] is not None:
            assert record["gap"] == pytest.approx(record["objective"] - record["lower_bound"])
    for name in ("seconds", "kernel_evals"):
        values = [record[name] for record in fit.history]
        assert values == sorted(values)
    bounds = [record["lower_bound"] for record in fit.history if record["lower_bound"] is not None]
    assert bounds == sorted(bounds)
    assert (fit.lower_bound is None) == (fit.history[-1]["lower_bound"] is None)


def check_everything(combination, folder):
    solver_name, task_name, container, dtype, precision, intercept, kernel_name = combination
    solver = (VARIANTS | WEIGHTS)[solver_name]
    if solver_name == "cpsp" and kernel_name != "rbf":
        solver = VARIANTS["cpsp-rows"]
    before = repr(solver.get_params())
    C = 1.0
    for seed in (0, 1):
        problem, X, case = problem_of(
            task_name, seed, C=C, precision=precision, intercept=intercept, kernel=KERNELS[kernel_name]
        )
        problem = replace(problem, rows=as_rows(contain(X, container, dtype, folder)))
        if is_refused(solver_name, problem, task_name, kernel_name):
            return
        fit = solver.solve(problem)
        assert fit.status == Status.CONVERGED
        assert fit.model.dtype == precision
        tolerance = 1e-8 if precision == "float64" else 2e-5
        check_fit(fit, problem, X, case, tolerance)
        primal, dual = optimum(task_name, kernel_name, intercept, C, seed)
        assert fit.objective >= dual * (1 - tolerance)
        if isinstance(solver, ExactCuts) or solver_name in BLOCKS:
            assert fit.objective <= primal * 1.0101
            assert fit.lower_bound <= primal * (1 + tolerance)
    assert repr(solver.get_params()) == before


@pytest.mark.parametrize("combination", pairwise(AXES), ids="-".join)
def test_every_pair_of_options(combination, tmp_path):
    check_everything(combination, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("combination", full_product(AXES, ("solver", "task", "container", "dtype")), ids="-".join)
def test_every_combination(combination, tmp_path):
    check_everything(combination, tmp_path)


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_containers_do_not_matter(solver, tmp_path):
    """Dense rows of equal numbers give the same bits whatever holds them; sparse ones the same to rounding.

    So do those on disk for decomposition, which keeps their kernel values and computes those of rows in memory anew.
    """
    problem, X, _ = problem_of(richest_task(solver), 1)
    fits = {}
    for container, dtype in [("C", "float64"), ("F", "float64"), ("memmap", "float32"), ("C", "int8"), ("F", "int32")]:
        fits[container, dtype] = VARIANTS[solver].solve(
            replace(problem, rows=as_rows(contain(X, container, dtype, tmp_path)))
        )
    first = fits["C", "float64"]
    if isinstance(VARIANTS[solver], Exact):
        on_disk = fits.pop(("memmap", "float32"))
        np.testing.assert_allclose(on_disk.model.coef, first.model.coef, rtol=1e-9, atol=1e-12)
    for fit in fits.values():
        check_same_bits(fit, first)
    sparse = VARIANTS[solver].solve(replace(problem, rows=as_rows(contain(X, "csr", "float64", tmp_path))))
    if isinstance(VARIANTS[solver], ExactCuts):
        assert sparse.objective == pytest.approx(first.objective, rel=1e-9)


# ---- the same bits


def check_same_bits(fit, other):
    np.testing.assert_array_equal(fit.model.coef, other.model.coef, strict=True)
    np.testing.assert_array_equal(fit.model.intercept, other.model.intercept, strict=True)
    basis = [f.model.basis.toarray() if sp.issparse(f.model.basis) else f.model.basis for f in (fit, other)]
    np.testing.assert_array_equal(*basis)
    assert fit.objective == other.objective
    assert fit.lower_bound == other.lower_bound
    for record, other_record in zip(fit.history, other.history, strict=True):
        for name in set(record) - {"seconds", "qp_seconds"}:
            assert record[name] == other_record[name], name


def fits_on_threads(solver, n, sparse, precision, monkeypatch):
    """The same fit on 1, 2 and 4 threads, which are used however small the work is."""
    monkeypatch.setattr(operands, "SMALL_WORK", 0)
    monkeypatch.setattr(scorebooks, "WORTH_THREADS", 0)
    helpers, submit = [], threads._submit
    monkeypatch.setattr(threads, "_submit", lambda function, times: helpers.append(times) or submit(function, times))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.5)
    name = richest_task(solver)
    task = CASES[name].make()
    examples = task.encode(rng.integers(0, 3 if name == "multiclass" else 2, n))
    for n_jobs in (1, 2, 4):
        problem = Problem(
            as_rows(sp.csr_array(X) if sparse else X), examples, task, RBF(0.05), max_iter=6, random_state=0,
            precision=precision, n_jobs=n_jobs,
        )  # fmt: skip
        yield solve_anyhow(VARIANTS[solver], problem)
        assert bool(helpers) == (n_jobs > 1)


@pytest.mark.parametrize(("sparse", "precision"), [(False, "float32"), (False, "float64"), (True, "float32")])
@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_same_bits_for_any_number_of_threads(solver, sparse, precision, monkeypatch):
    one, two, four = fits_on_threads(solver, 500, sparse, precision, monkeypatch)
    check_same_bits(two, one)
    check_same_bits(four, one)


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts"])
def test_same_bits_where_the_losses_are_cut_up_too(solver, monkeypatch):
    n = 2 * ROWS_PER_TILE + 100
    one, two, four = fits_on_threads(solver, n, False, "float32", monkeypatch)
    check_same_bits(two, one)
    check_same_bits(four, one)


@pytest.mark.parametrize("task", ["binary", "error-rate"])
@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_same_random_state_same_bits(solver, task):
    problem, _, _ = problem_of(task)
    if is_refused(solver, problem, task):
        return
    first, again = (VARIANTS[solver].solve(problem) for _ in range(2))
    check_same_bits(again, first)
    fresh = VARIANTS[solver].solve(replace(problem, random_state=np.random.default_rng(5)))
    check_same_bits(VARIANTS[solver].solve(replace(problem, random_state=np.random.default_rng(5))), fresh)


@pytest.mark.parametrize("solver", ["violated-cuts", "uniform-cuts", "violated-cuts-full"])
def test_other_random_state_other_sample(solver):
    problem, _, _ = problem_of("binary")
    fits = [VARIANTS[solver].solve(replace(problem, random_state=seed)) for seed in (0, 1)]
    assert fits[0].objective != fits[1].objective


# ---- ends before the end


@pytest.mark.parametrize("task", ["binary", "chain"])
@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_limits_give_the_model_so_far_and_a_warning(solver, task):
    problem, X, case = problem_of(task, C=30.0)
    if is_refused(solver, problem, task):
        return
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
        name = frame.f_code.co_name
        if name == "step" and "slimsvm/solvers" in frame.f_code.co_filename:
            self.stepping = True
        if name == "finish":
            self.stepping = False
        inside = "slimsvm/solvers" in frame.f_code.co_filename or "slimsvm/cuts" in frame.f_code.co_filename
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
    if is_refused(solver, problem, task):
        return
    whole, n_lines = interrupted_at(VARIANTS[solver], problem, -1)
    assert whole.n_iter > 3
    assert n_lines > n_places
    for k in np.unique(np.linspace(1, n_lines, n_places).astype(int)):
        fit, _ = interrupted_at(VARIANTS[solver], problem, k)
        assert fit.status == Status.INTERRUPTED
        truth = true_objective(fit.model, X, case, problem.examples, problem.C)
        assert fit.objective == pytest.approx(truth, rel=1e-8), k
    go_on = solve_anyhow(VARIANTS[solver], replace(problem, max_iter=None), state=fit.state)
    assert go_on.objective <= fit.objective * 1.2


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_an_interrupt_in_any_line_leaves_a_whole_model(solver):
    check_interrupts(solver, "binary", 60)


@pytest.mark.full
@pytest.mark.parametrize("task", ["binary", "multiclass", "chain", "error-rate"])
@pytest.mark.parametrize("solver", sorted(VARIANTS))
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
        merged = book.make_room(working_set)
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


@pytest.mark.parametrize("task", ["binary", "multiclass", "chain", "error-rate"])
@pytest.mark.parametrize("solver", sorted(set(VARIANTS) - {"cpsp", "refine", "bsca", "bsgd"}))  # for RBF kernels
def test_kernel_evaluations_are_those_really_made(solver, task):
    made = []

    def kernel(X, Z):
        made.append(len(X) * len(Z))
        return np.exp(-0.3 * ((X[:, None] - Z) ** 2).sum(axis=2))

    class Counting(CallableKernel):
        def diag(self, X, dtype=np.float64):  # not counted
            return np.ones(X.shape[0], dtype)

    problem, _, _ = problem_of(task, kernel=Counting(kernel))
    if is_refused(solver, problem, task):
        return
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
    assert max(n_rows for n_rows, _ in calls) <= 30
    assert max(n_points for _, n_points in calls) <= 30 * max(record["n_cuts"] for record in fit.history)
    assert fit.n_iter > 3


# ---- special cases that must coincide


@pytest.mark.parametrize("seed", range(3))
def test_error_rate_over_all_rows_is_the_binary_svm(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 3)), rng.choice([-1, 1], 60)
    fits = []
    for name in ("binary", "error-rate"):
        task = CASES[name].make()
        fits.append(ExactCuts().solve(Problem(as_rows(X), task.encode(y), task, RBF(0.5), C=2.0)))
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-9)
    np.testing.assert_allclose(fits[1].model.scores(X), fits[0].model.scores(X), atol=1e-4)


@pytest.mark.parametrize("seed", range(2))
def test_chains_of_one_row_are_multiclass(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 3, 25)
    chain, multiclass = CASES["chain"].make(), CASES["multiclass"].make()
    weights = rng.choice([1.0, 2.0], 25)
    fits = [
        ExactCuts().solve(Problem(as_rows(X), task.encode(labels, weights), task, RBF(0.5), C=2.0))
        for task, labels in ((multiclass, y), (chain, y[:, None]))
    ]
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-9)
    assert not fits[1].model.plain.any()
    np.testing.assert_allclose(fits[1].model.scores(X), fits[0].model.scores(X), atol=1e-4)


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_transitions_matter(solver):
    """Labels that only their neighbour betrays are learnt: plain parameters take part in every solver."""
    rng = np.random.default_rng(0)
    task = CASES["chain"].make()
    labels = [np.array([a, (a + 1) % 3, (a + 2) % 3]) for a in rng.integers(0, 3, 20)]
    X = np.vstack([np.array([[a[0]], [5], [5]]) for a in labels]) + 0.01 * rng.normal(size=(60, 1))
    examples = task.encode(labels)
    problem = Problem(as_rows(X), examples, task, RBF(1.0), C=10.0, random_state=0)
    if is_refused(solver, problem, "chain"):
        return
    fit = VARIANTS[solver].solve(problem)
    predicted = task.decode(fit.model.scores(X), fit.model.plain, examples)
    assert task.error(predicted, examples) == 0
    assert task.error(task.decode(fit.model.scores(X), 0 * fit.model.plain, examples), examples) > 0.3


@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_weights_are_repeats(solver):
    """An example of weight 2 is the example twice: the same optimum for exact cuts, a fit for all."""
    problem, X, case = problem_of(richest_task(solver), 0, C=1.0)
    weights = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = replace(problem, examples=replace(problem.examples, weights=weights.astype(float)))
    rows = np.repeat(np.arange(len(X)), weights)
    repeated = replace(problem, rows=as_rows(X[rows]), examples=problem.examples.take(rows))
    fits = [VARIANTS[solver].solve(p) for p in (weighted, repeated)]
    assert weighted.C1 == repeated.C1
    if isinstance(VARIANTS[solver], ExactCuts):
        assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-8)
        np.testing.assert_allclose(fits[0].model.scores(X), fits[1].model.scores(X), atol=1e-4)
    check_fit(fits[0], weighted, X, case, 1e-8)


# ---- parameters


@pytest.mark.parametrize(
    ("solver", "message"),
    [
        (ExactCuts(tol_relative=0), "tol_relative must be a positive number or None, found 0"),
        (ViolatedCuts(step="half"), "step must be 'line-search' or 'full', found 'half'"),
        (ViolatedCuts(sample_size=0), "sample_size must be an integer >= 1, found 0"),
        (ViolatedCuts(sample_size=2.5), "sample_size must be an integer >= 1, found 2.5"),
        (UniformCuts(sample_size=True), "sample_size must be an integer >= 1, found True"),
        (UniformCuts(patience=0), "patience must be an integer >= 1, found 0"),
        (ExactCuts(max_idle=0), "max_idle must be an integer >= 1, found 0"),
        (ExactCuts(warm_up=-1), "warm_up must be an integer >= 1, found -1"),
        (ExactCuts(overshoot=1.5), "overshoot must be between 0 and 1, found 1.5"),
    ],
)
def test_bad_parameters_are_named(solver, message):
    problem, _, _ = problem_of("binary")
    with pytest.raises(ValueError, match=message):
        solver.solve(problem)


@pytest.mark.parametrize("solver", sorted(set(VARIANTS) - {"exact", "refine", "low-rank", "lasvm"}))
def test_a_free_intercept_is_refused_before_any_work(solver):
    problem, _, _ = problem_of("binary", intercept="free")
    with pytest.raises(ValueError, match="trains with intercept='regularized' or 'none', found 'free'"):
        VARIANTS[solver].solve(problem)


@pytest.mark.parametrize("max_idle", [1, 2])
@pytest.mark.parametrize("solver", ["exact-cuts", "exact-cuts-full", "violated-cuts", "uniform-cuts"])
def test_cuts_may_be_dropped_at_once(solver, max_idle):
    problem, X, case = problem_of("regression", C=3.0)
    chosen = VARIANTS[solver]
    chosen = type(chosen)(**chosen.get_params() | {"max_idle": max_idle})
    fit = solve_anyhow(chosen, replace(problem, max_iter=300))
    check_fit(fit, problem, X, case, 1e-8)


# ---- history


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression", "chain", "error-rate"])
@pytest.mark.parametrize("solver", ["exact-cuts-full", "violated-cuts-full"])
def test_the_best_records_training_error_is_that_of_the_model(solver, task):
    """With full steps the model is the point that the record of the lowest objective speaks of."""
    problem, X, _ = problem_of(task, precision="float64")
    fit = VARIANTS[solver].solve(problem)
    scores = fit.model.scores(X)
    predicted = problem.task.decode(scores, fit.model.plain, problem.examples)
    best = min(fit.history, key=lambda record: record["objective"])
    assert best["training_error"] == pytest.approx(problem.task.error(predicted, problem.examples))
    assert best["training_error"] < max(record["training_error"] for record in fit.history)


@pytest.mark.parametrize("solver", CUT_SOLVERS)
def test_rows_of_several_cuts_count_once_in_the_history(solver):
    problem, _, _ = problem_of("binary")
    history = VARIANTS[solver].solve(problem).history
    assert 0 < history[-1]["n_basis"] <= problem.rows.n_rows


@pytest.mark.parametrize("n_rows", [10, 10_000])
def test_distinct_rows_of_cuts(n_rows):
    rows = [np.array([0, 3]), np.array([3, 7, 9]), np.zeros(0, dtype=np.int64)]
    cuts = [Cut(0.0, index, np.ones((len(index), 1)), np.zeros(0)) for index in rows]
    assert n_distinct_rows(cuts, n_rows) == 4
    assert n_distinct_rows([], n_rows) == 0
