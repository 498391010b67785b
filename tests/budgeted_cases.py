"""Problems for budgeted solvers, and their steps written out."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import naive
from slimsvm import BSCA, BSGD
from slimsvm.budget.budgeted_model import DUAL, PRIMAL
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, Regression
from tasks_for_tests import CASES

TASKS = ["binary", "binary-costs", "multiclass", "regression"]
BOTH = pytest.mark.parametrize("solver", [BSCA, BSGD])


def problem_of(task_name, seed=1, n=None, **options):
    task, X, _, examples = CASES[task_name].problem(seed, n)
    X = X + 0.1 * np.random.default_rng(seed).standard_normal(X.shape)
    return Problem(as_rows(X), examples, task, **{"kernel": RBF(0.3), "C": 2.0, "random_state": 0} | options), X


def larger(n=300, seed=0, **options):
    """A problem of two noisy classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    return Problem(
        as_rows(X), Binary().encode(y), Binary(), **{"kernel": RBF(0.3), "C": 5.0, "random_state": 0} | options
    )


def anyhow(solver, problem):
    """The fit, with or without a word on convergence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solver.solve(problem)


def naive_steps(problem, X, order, method):
    """(alpha, beta, intercept) after the papers' updates, row after row, with every row's coefficient kept apart."""
    task, examples, n = problem.task, problem.examples, len(X)
    K = naive.kernel_matrix(problem.kernel, X, X)
    constant = float(problem.intercept == "regularized")
    m = task.n_outputs
    alpha, beta, b = np.zeros((n, m)), np.zeros((n, m)), np.zeros(m)
    for t, i in enumerate(order, start=1):
        f = K[i] @ beta + constant * b
        C = problem.C * examples.weights[i]
        for c in range(m):
            k_ii = K[i, i] + constant
            if isinstance(task, Regression):
                y = examples.labels[i]
                if method == DUAL:
                    z = alpha[i, c] * k_ii + y - f[c]
                    new = np.clip(np.sign(z) * max(abs(z) - task.epsilon, 0) / k_ii, -C, C)
                    delta, alpha[i, c] = new - alpha[i, c], new
                else:
                    delta = n * C / t * np.sign(y - f[c]) * (abs(y - f[c]) > task.epsilon)
            else:
                y = examples.labels[i] if isinstance(task, Binary) else (1 if examples.labels[i] == c else -1)
                cost = (task.cost_positive if y > 0 else task.cost_negative) if isinstance(task, Binary) else 1.0
                if method == DUAL:
                    new = np.clip(alpha[i, c] + (cost - y * f[c]) / k_ii, 0, C)
                    delta, alpha[i, c] = y * (new - alpha[i, c]), new
                else:
                    delta = n * C / t * y * (y * f[c] < cost)
            if method == PRIMAL:
                beta[:, c] *= 1 - 1 / t
                b[c] *= 1 - 1 / t
            beta[i, c] += delta
            b[c] += constant * delta
    return alpha, beta, b
