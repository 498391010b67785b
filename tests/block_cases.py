"""Problems of decomposing tasks for solvers with a dual block for each example."""

from dataclasses import replace

import pytest

import naive
from slimsvm.kernels import Linear
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from tasks_for_tests import CASES

DECOMPOSING = sorted(name for name, case in CASES.items() if case.make().decomposes)


def problem_of(name, kernel, seed=0, **options):
    """(problem, dense rows, case) whose tolerance is the relative one alone."""
    case = CASES[name]
    task, X, _, examples = case.problem(seed)
    settings = {"C": 0.7, "tol": 1e9, "random_state": 0} | options
    return Problem(as_rows(X), examples, task, kernel, **settings), X, case


def optimum(problem, X, case):
    """(primal, dual) of the slow truth."""
    K = naive.kernel_matrix(problem.kernel, X, X)
    return naive.optimum(K, case.written_out(problem.examples), problem.C, problem.intercept == "regularized")


def check_warm_start(solver, change, rel, **options):
    """A warm start of a changed problem comes to the cold one's optimum sooner; (problem, changed, its fit, state)."""
    problem, _, _ = problem_of("sequence", Linear(), **options)
    state = solver.solve(problem).state
    other = replace(problem, **change)
    cold, warm = solver.solve(other), solver.solve(other, state=state)
    assert warm.objective == pytest.approx(cold.objective, rel=rel)
    assert warm.n_iter < cold.n_iter
    return problem, other, cold, state
