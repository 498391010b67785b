"""Several classes by two-class problems of all pairs of classes, each solved by another solver.

One record of the history is one pair. The model has a basis that all pairs share and a column of coefficients for each.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.kernels import Precomputed
from slimsvm.model import KernelExpansion
from slimsvm.rows import as_rows
from slimsvm.solvers.base import Fit, Problem, Solver, Status
from slimsvm.tasks import Binary, Examples, OneVsOne, Task
from slimsvm.tasks.earlier import check_same_loss

Array = np.ndarray


@dataclass(frozen=True)
class PairStates:
    """States of the pairs' fits, to go on from; None for those that were not reached.

    Parameters
    ----------
    states : list
    task, examples
    """

    states: list[Any]
    task: Task
    examples: Examples

    def check(self, task: Task, examples: Examples) -> None:
        """Refuse to go on with another loss."""
        check_same_loss(self, task, examples, "; only the kernel, C and X may change")


def rows_of_pair(problem: Problem, pair: tuple[int, int]) -> Array:
    """Rows of the two classes."""
    return np.flatnonzero(np.isin(problem.examples.labels, pair))


def problem_of_pair(problem: Problem, pair: tuple[int, int], index: Array) -> Problem:
    """The two-class problem of one pair and its rows, the lower class positive."""
    task = Binary()
    block = problem.rows.take(index, problem.rows.exact_dtype)
    if isinstance(problem.kernel, Precomputed):
        block = block[:, index]
    labels = np.where(problem.examples.labels[index] == pair[0], 1, -1)
    return replace(
        problem, rows=as_rows(block), examples=task.encode(labels, problem.examples.weights[index]), task=task
    )


class OneVsOneRun:
    """The pairs one after another.

    Parameters
    ----------
    problem : Problem
        Its task is a `OneVsOne`.
    solver : Solver
        For two classes.
    state : PairStates or None
    """

    def __init__(self, problem: Problem, solver: Solver, state: PairStates | None):
        assert isinstance(problem.task, OneVsOne)
        self.problem, self.solver, self.pairs = problem, solver, problem.task.pairs()
        if state is not None:
            state.check(problem.task, problem.examples)
        self.states = [None] * len(self.pairs) if state is None else list(state.states)
        self.kernel_rows = problem.bind()
        self.fits: list[Fit] = []
        self.converged, self.begun = False, time.perf_counter()

    def rows_of(self, pair: tuple[int, int]) -> Array:
        """Rows of the two classes."""
        return rows_of_pair(self.problem, pair)

    def two_classes(self, pair: tuple[int, int]) -> Problem:
        """The problem of one pair, with the time that is left."""
        seconds = self.problem.max_seconds
        if seconds is not None:
            seconds = max(seconds - (time.perf_counter() - self.begun), 1e-3)
        precision = np.dtype(self.kernel_rows.dtype).name
        problem = replace(self.problem, precision=precision, max_iter=None, max_seconds=seconds, verbose=0)
        return problem_of_pair(problem, pair, self.rows_of(pair))

    def step(self) -> dict[str, Any]:
        """Solve for one pair."""
        k = len(self.fits)
        fit = self.solver.solve(self.two_classes(self.pairs[k]), state=self.states[k])
        self.kernel_rows.counter.add(fit.counters["kernel_evals"])
        self.fits.append(fit)
        self.states[k] = fit.state
        if fit.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        self.converged = len(self.fits) == len(self.pairs) and all(f.status == Status.CONVERGED for f in self.fits)
        return {
            "objective": None,
            "lower_bound": None,
            "gap": None,
            "pair": self.pairs[k],
            "status": str(fit.status),
            "n_basis": fit.model.n_basis,
            "iterations": fit.n_iter,
        }

    @property
    def spent(self) -> str | None:
        """See `solvers.base.Run`: of the pairs that came to it."""
        at_limit = sum(fit.status == Status.ITERATION_LIMIT for fit in self.fits)
        if not at_limit or len(self.fits) < len(self.pairs):
            return None
        return f"limit of steps for {at_limit} of {len(self.pairs)} pairs of classes"

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """One model of all pairs; those that were not reached have the score 0."""
        n, problem = self.kernel_rows.n_rows, self.problem
        coef, intercept = np.zeros((n, len(self.pairs))), np.zeros(len(self.pairs))
        objective, bound = 0.0, 0.0
        for k, pair in enumerate(self.pairs):
            index = self.rows_of(pair)
            if k >= len(self.fits):
                objective += problem.C * float(problem.examples.weights[index].sum())
                continue
            fit = self.fits[k]
            assert fit.basis_rows is not None
            assert fit.lower_bound is not None
            coef[index[fit.basis_rows], k] = fit.model.coef[:, 0]
            intercept[k] = fit.model.intercept[0]
            objective, bound = objective + fit.objective, bound + fit.lower_bound
        rows = np.flatnonzero(coef.any(axis=1))
        model = KernelExpansion(
            basis=self.kernel_rows.basis(rows),
            coef=coef[rows],
            intercept=intercept,
            plain=np.zeros(0),
            kernel=problem.kernel,
            dtype=np.dtype(self.kernel_rows.dtype).name,
        )
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n}
        counters["report_kernel_evals"] = sum(fit.counters["report_kernel_evals"] for fit in self.fits)
        state = PairStates(self.states, problem.task, problem.examples)
        return Fit(model, status, objective, bound, history, counters, state, rows)
