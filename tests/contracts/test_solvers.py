"""What every registered solver promises, on every task, container and dtype."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from contracts.solver_cases import (
    AXES,
    BLOCKS,
    CUT_SOLVERS,
    KERNELS,
    REFUSED,
    VARIANTS,
    WEIGHTS,
    able,
    check_fit,
    contain,
    is_refused,
    optimum,
    problem_of,
    refuses,
    richest_task,
    solve_anyhow,
)
from pairwise import full_product, pairwise
from slimsvm.kernels import RBF
from slimsvm.parts.cuts import Cut, n_distinct_rows
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.solvers import Exact, ExactCuts, UniformCuts, ViolatedCuts
from tasks_for_tests import CASES

# ---- the product of everything


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
        # Without its finish a budget that is too small may drift, and says so.
        fit = solve_anyhow(solver, problem) if solver_name.endswith("-plain") else solver.solve(problem)
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


@pytest.mark.parametrize("combination", pairwise(AXES, refuses), ids="-".join)
def test_every_pair_of_options(combination, tmp_path):
    check_everything(combination, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize(
    "combination", full_product(AXES, ("solver", "task", "container", "dtype"), refuses), ids="-".join
)
def test_every_combination(combination, tmp_path):
    check_everything(combination, tmp_path)


@pytest.mark.turns("choice")
@pytest.mark.parametrize(
    ("solver", "choice"), [(solver, choice) for solver in sorted(REFUSED) for choice in sorted(REFUSED[solver])]
)
def test_what_a_solver_cannot_do_is_refused_before_any_work(solver, choice):
    usual = {"task": "binary", "kernel": "linear" if solver in WEIGHTS else "rbf"}
    choices = usual | {"kernel" if choice in KERNELS else "task": choice}
    problem, _, _ = problem_of(choices["task"], kernel=KERNELS[choices["kernel"]])
    assert is_refused(solver, problem, choice)


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
        # Solved so closely that another path, which rounding may take, ends at the same place.
        closely = replace(problem, tol=1e-10)
        on_disk, in_memory = (
            VARIANTS[solver].solve(replace(closely, rows=as_rows(contain(X, container, "float32", tmp_path))))
            for container in ("memmap", "C")
        )
        del fits["memmap", "float32"]
        # Rows that are equal count together: rounding decides how their coefficient is shared out among them.
        distinct, place = np.unique(X, axis=0, return_inverse=True)
        sums = np.zeros((2, len(distinct), first.model.coef.shape[1]))
        for own, fit in zip(sums, (on_disk, in_memory), strict=True):
            np.add.at(own, place.reshape(-1)[fit.basis_rows], fit.model.coef)
        np.testing.assert_allclose(sums[0], sums[1], rtol=1e-6, atol=1e-9)
    for fit in fits.values():
        # What rounding may have done to a bound is estimated from the rows that are kept: those on disk are not.
        if first.lower_bound is not None:
            assert fit.lower_bound == pytest.approx(first.lower_bound, rel=1e-12)
        check_same_bits(replace(fit, lower_bound=first.lower_bound), first)
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


def fits_on_threads(solver, n, sparse, precision, monkeypatch, helpers):
    """The same fit on 1, 2 and 4 threads, which are used however small the work is."""
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


@pytest.mark.turns("sparse", "precision")
@pytest.mark.parametrize(("sparse", "precision"), [(False, "float32"), (False, "float64"), (True, "float32")])
@pytest.mark.parametrize("solver", sorted(VARIANTS))
def test_same_bits_for_any_number_of_threads(solver, sparse, precision, monkeypatch, threads_for_all):
    one, two, four = fits_on_threads(solver, 500, sparse, precision, monkeypatch, threads_for_all)
    check_same_bits(two, one)
    check_same_bits(four, one)


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts"])
def test_same_bits_where_the_losses_are_cut_up_too(solver, monkeypatch, threads_for_all):
    n = 2_148  # the core cuts up losses from 1,024 rows on
    one, two, four = fits_on_threads(solver, n, False, "float32", monkeypatch, threads_for_all)
    check_same_bits(two, one)
    check_same_bits(four, one)


@pytest.mark.turns("task")
@pytest.mark.parametrize(("solver", "task"), able("binary", "error-rate"))
def test_same_random_state_same_bits(solver, task):
    problem, _, _ = problem_of(task)
    first, again = (VARIANTS[solver].solve(problem) for _ in range(2))
    check_same_bits(again, first)
    fresh = VARIANTS[solver].solve(replace(problem, random_state=np.random.default_rng(5)))
    check_same_bits(VARIANTS[solver].solve(replace(problem, random_state=np.random.default_rng(5))), fresh)


@pytest.mark.parametrize("solver", ["violated-cuts", "uniform-cuts", "violated-cuts-full"])
def test_other_random_state_other_sample(solver):
    problem, _, _ = problem_of("binary")
    fits = [VARIANTS[solver].solve(replace(problem, random_state=seed)) for seed in (0, 1)]
    assert fits[0].objective != fits[1].objective


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


@pytest.mark.parametrize(("solver", "name"), able("chain"))
def test_transitions_matter(solver, name):
    """Labels that only their neighbour betrays are learnt: plain parameters take part in every solver."""
    rng = np.random.default_rng(0)
    task = CASES[name].make()
    labels = [np.array([a, (a + 1) % 3, (a + 2) % 3]) for a in rng.integers(0, 3, 20)]
    X = np.vstack([np.array([[a[0]], [5], [5]]) for a in labels]) + 0.01 * rng.normal(size=(60, 1))
    examples = task.encode(labels)
    problem = Problem(as_rows(X), examples, task, RBF(1.0), C=10.0, random_state=0)
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
