"""Problems for the tests of coefficients in a given basis."""

import numpy as np
import scipy.sparse as sp

from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from tasks_for_tests import CASES


def problem_of(task="binary", n=60, seed=0, sparse=False, weighted=False, **options):
    """(problem, X, y) whose labels depend on the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < (0.5 if sparse else 1.0))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)
    if task.startswith("multiclass"):
        y = np.digitize(y, [-0.3, 0.3])
    elif task.startswith("binary"):
        y = np.where(y > 0, 1, -1)
    weights = rng.choice([0.5, 1.0, 3.0], n) if weighted else None
    settings = {"C": 2.0, "kernel": RBF(0.4), "random_state": 0} | options
    made = CASES[task].make()
    return Problem(as_rows(sp.csr_array(X) if sparse else X), made.encode(y, weights), made, **settings), X, y
