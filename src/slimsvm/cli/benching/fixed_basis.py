"""Models over a basis chosen beforehand: the baselines of the benchmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.bases import get_basis
from slimsvm.cli.benching.trials import Array, Problem
from slimsvm.kernels import RBF
from slimsvm.model import KernelExpansion
from slimsvm.rows import as_rows
from slimsvm.solvers import base
from slimsvm.solvers.convex_finish import fit_coefficients
from slimsvm.tasks import Binary


class FixedBasis:
    """Choose a basis, then solve the convex problem in its coefficients.

    Parameters
    ----------
    problem : Problem
        For its C, gamma and intercept.
    basis : str
        Of `slimsvm.bases`.
    max_basis : int
    tol_relative : float
    seed : int
    """

    def __init__(self, problem: Problem, basis: str, max_basis: int, tol_relative: float, seed: int):
        self.problem, self.basis, self.max_basis = problem, basis, max_basis
        self.tol_relative, self.seed = tol_relative, seed

    def fit(self, X: Any, y: Array) -> FixedBasis:
        """Train on labels −1 and +1."""
        task, given = Binary(), self.problem
        problem = base.Problem(
            rows=as_rows(X),
            examples=task.encode((y > 0).astype(np.int64)),
            task=task,
            kernel=RBF(given.gamma),
            C=given.C,
            intercept=given.intercept,
            precision="float32" if len(y) <= base.SMALL_N else "auto",
            random_state=self.seed,
        )
        rows, rng = problem.bind(), problem.generator()
        vectors = get_basis(self.basis).choose(rows, self.max_basis, rng, y)
        vectors = rows.basis(vectors) if vectors.ndim == 1 else vectors
        found = fit_coefficients(problem, rows, vectors, tol_relative=self.tol_relative, rng=rng)
        self.precision_ = np.dtype(rows.dtype).name
        self.model_ = KernelExpansion(
            vectors, found.coef, found.intercept, np.zeros(0), problem.kernel, self.precision_
        )
        self.basis_vectors_, self.intercept_, self.n_basis_ = vectors, found.intercept, vectors.shape[0]
        self.objective_, self.n_iter_ = found.objective, found.n_steps
        self.status_ = "converged" if found.converged else "iteration limit"
        self.n_kernel_evals_ = rows.counter.n
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of rows."""
        return self.model_.scores(X)[:, 0]

    def predict(self, X: Any) -> Array:
        """Labels −1 and +1."""
        return np.where(self.decision_function(X) > 0, 1, -1)
