"""Exact cuts with a slack for each example."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import block_cases
from block_cases import DECOMPOSING, check_warm_start, optimum
from slimsvm import BCFW, ExactCuts, SequenceSVM
from slimsvm.kernels import RBF, Linear
from slimsvm.model import LinearModel
from slimsvm.parts.cuts.example_planes import ExampleCutsRun
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.tasks import Chain, losses

problem_of = partial(block_cases.problem_of, precision="float64")
CASES_BY_FORM = [(name, True) for name in DECOMPOSING] + [
    (name, False) for name in ("binary", "regression", "sequence")
]


@pytest.mark.parametrize(("name", "weights"), CASES_BY_FORM)
def test_the_reference_optimum_is_reached_with_a_true_gap(name, weights):
    problem, X, case = problem_of(name, Linear() if weights else RBF(0.3))
    fit = ExactCuts(1e-6, slacks="each", weights=weights).solve(problem)
    primal, dual = optimum(problem, X, case)
    assert fit.status == Status.CONVERGED
    assert dual * (1 - 1e-9) <= fit.objective <= primal * (1 + 2e-6)
    assert fit.lower_bound <= primal * (1 + 1e-9)
    assert fit.objective - fit.lower_bound <= 1e-6 * fit.objective
    for record in fit.history:
        assert record["lower_bound"] <= primal * (1 + 1e-9) <= record["objective"] * (1 + 1e-8)


def test_the_objective_is_that_of_the_model_and_the_bound_that_of_its_cuts():
    """Both written out; the model is the best that was seen, also where the fit ends early."""
    problem, X, _ = problem_of("sequence", Linear(), C=3.0, max_iter=4)
    with pytest.warns(match="iteration limit"):
        fit = ExactCuts(1e-9, weights=True).solve(problem)
    model, examples = fit.model, problem.examples
    scores, v = X @ model.basis.T @ model.coef + model.intercept, model.plain
    loss = examples.weights @ losses(problem.task.augment(scores, v, examples), scores, v, examples)
    w = model.basis.T @ model.coef
    norm = np.vdot(w, w) + v @ v + model.intercept @ model.intercept
    assert fit.objective == pytest.approx(0.5 * norm + problem.C * loss, rel=1e-10)
    assert fit.objective == min(record["objective"] for record in fit.history)
    planes = fit.state.planes
    coef, plain = planes.coefficients(problem.examples, problem.task)
    w = X.T @ coef
    norm = np.vdot(w, w) + plain @ plain + np.sum(coef.sum(axis=0) ** 2)
    assert fit.lower_bound == pytest.approx(planes.constants - 0.5 * norm, rel=1e-10)


def sequences(n_sequences, seed=0):
    """(rows, codes, lengths): sparse binary rows, and labels that a few features betray."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n_sequences)
    codes = rng.integers(0, 3, lengths.sum())
    X = (rng.random((len(codes), 40)) < 0.1).astype(float)
    X[:, :3] = np.where(rng.random((len(codes), 1)) < 0.8, np.eye(3)[codes], 0)
    return sp.csr_array(X), codes, lengths


def test_the_same_bits_for_any_number_of_threads():
    X, codes, lengths = sequences(1300)
    task = Chain(3)
    examples = task.encode(np.split(codes, np.cumsum(lengths)[:-1]))
    fits = [
        ExactCuts(0.02).solve(Problem(as_rows(X), examples, task, Linear(), C=0.1, random_state=0, n_jobs=n_jobs))
        for n_jobs in (1, 2, 4)
    ]
    assert fits[0].status == Status.CONVERGED
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.model.coef, fits[0].model.coef)
        np.testing.assert_array_equal(fit.model.plain, fits[0].model.plain)
        assert (fit.objective, fit.lower_bound) == (fits[0].objective, fits[0].lower_bound)


def test_sequences_in_weights_have_a_slack_each():
    """In fewer exact passes than with one slack, to the same optimum as block-coordinate Frank-Wolfe."""
    X, codes, lengths = sequences(900)
    common = {"kernel": "linear", "C": 0.3, "tol": 1e9, "random_state": 0}
    each, one, blocks = (
        SequenceSVM(solver=solver, **common).fit(X, codes, lengths)
        for solver in (ExactCuts(1e-3), ExactCuts(1e-3, slacks="one"), BCFW(1e-3))
    )
    assert isinstance(each.model_, LinearModel)
    assert 2 * each.n_iter_ < one.n_iter_
    for other in (one, blocks):
        assert each.objective_ == pytest.approx(other.objective_, rel=2e-3)
        assert each.lower_bound_ <= other.objective_
    assert each.n_kernel_evals_ == 0


def test_auto_means_examples_of_several_rows_in_weights():
    sequence, _, _ = problem_of("sequence", Linear())
    rows, _, _ = problem_of("multiclass", Linear())
    over_all, _, _ = problem_of("f1", Linear())
    cases = [(sequence, True, True), (sequence, "auto", False), (rows, True, False), (over_all, True, False)]
    for problem, weights, each in cases:
        assert isinstance(ExactCuts(weights=weights).start(problem), ExampleCutsRun) == each


@pytest.mark.parametrize("change", [{"C": 1.5}, {"C": 0.3}])
def test_a_warm_start_goes_on_from_the_dual_point(change):
    solver = ExactCuts(1e-5, weights=True)
    problem, other, cold, state = check_warm_start(solver, change, rel=2e-5, precision="float64")
    again = BCFW(1e-3).solve(other, state=state)  # the two can go on from each other
    assert again.objective == pytest.approx(cold.objective, rel=2e-3)
    with pytest.raises(
        ValueError, match="the earlier fit had a slack of each example, slacks='one' asks for one slack"
    ):
        ExactCuts(weights=True, slacks="one").solve(other, state=state)
    one = ExactCuts(1e-3, slacks="one").solve(problem).state
    with pytest.raises(ValueError, match="the earlier fit had one slack, slacks='each' asks for a slack of each"):
        ExactCuts(slacks="each").solve(other, state=one)
    assert ExactCuts(1e-3, weights=True).solve(other, state=one).status == Status.CONVERGED


def test_small_problems_are_solved_to_the_last_digits():
    problem, _, _ = problem_of("sequence", Linear(), precision="auto")
    fit = ExactCuts(weights=True).solve(replace(problem, tol=1e-3))
    assert fit.objective - fit.lower_bound <= 1e-10 * fit.objective


def test_bad_parameters_are_named():
    problem, _, _ = problem_of("f1", Linear())
    with pytest.raises(ValueError, match="slacks='each' needs a loss that is a sum over examples, found FBeta"):
        ExactCuts(slacks="each").solve(problem)
    with pytest.raises(ValueError, match="slacks must be 'auto', 'one' or 'each', found 'many'"):
        ExactCuts(slacks="many").solve(problem)
