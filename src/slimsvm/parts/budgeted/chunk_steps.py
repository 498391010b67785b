r"""Budgeted steps on rows that come in chunks.

A chunk is met once, in random order, by the steps of `parts.budgeted.epochs`; the model goes on from the chunks
before.

BSGD    min ½‖w‖² + C Σ_i ω_i ℓ_i(w) over all n rows met so far:  step t adds (n C ω_i / t) y_i φ(x_i)
BSCA    the rows of earlier chunks keep the α they had; those of this chunk have theirs while it is the chunk

The same chunk given again is another pass over it: BSCA's α go on, and no row counts twice for BSGD's n.

Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012; Qaadan, Schüler, Glasmachers, "Dual SVM
Training on a Budget", 2018.

Parts: `parts.budgeted.epochs`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.core.clock import time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.budgeted.box_dual import BudgetState
from slimsvm.parts.budgeted.epochs import BudgetedRun
from slimsvm.parts.chunks import digest_of
from slimsvm.parts.problem import Problem
from slimsvm.parts.reports import finite
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import iterate
from slimsvm.tasks.examples import same_fields


def comes_again(digest: bytes, problem: Problem, state: BudgetState | None) -> bool:
    """Whether the chunk is the one that the state was left by."""
    if state is None or state.digest != digest:
        return False
    return same_fields(state.examples, problem.examples) and same_fields(state.task, problem.task)


class StreamRun(BudgetedRun):
    """One pass over a chunk."""

    def __init__(self, problem: Problem, solver: Any, state: BudgetState | None):
        n = problem.rows.n_rows
        self.digest = digest_of(problem)
        self.is_again = comes_again(self.digest, problem, state)
        self.n_before = 0 if state is None else state.n_rows - (state.n_last if self.is_again else 0)
        if state is not None and not self.is_again:
            state = replace(state, alpha=None, basis_rows=np.full(len(state.coef), -1))
        super().__init__(problem, solver, state)
        self.n_rows = self.n_before + n
        if self.is_dual:  # a row that is met once has no later step to make up for a short one
            self.steps = replace(self.steps, damping=0.0)
        else:  # n C ω_i of a step counts the rows of all chunks
            self.steps = replace(self.steps, price=self.steps.price * (self.n_rows / n))

    def _report(self, record: dict[str, Any]) -> None:
        """Nothing that needs more than the steps themselves."""
        record |= {"n_basis": self.model.n_basis, "n_rows": self.n_rows}

    def _watch(self, record: dict[str, Any]) -> None:
        """A single pass shows no trend."""

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """The model, its objective over the rows of the chunk, and what the next chunk goes on from."""
        fit = super().finish(status, history)
        fit.state = replace(fit.state, digest=self.digest, n_rows=self.n_rows, n_last=self.problem.rows.n_rows)
        return fit


@dataclass(frozen=True)
class AfterFit:
    """A fit that chunks go on from: its model, finished or not, and the state it left."""

    model: KernelExpansion
    state: BudgetState


def after_fit(fit: AfterFit) -> BudgetState:
    """The model of a fit, of whose rows only the number is known."""
    model, state = fit.model, fit.state
    n = state.examples.n_examples
    return replace(
        state,
        basis=model.basis,
        coef=model.coef,
        intercept=model.intercept,
        basis_rows=np.full(model.n_basis, -1),
        alpha=None,
        n_steps=n,  # as after one pass, whatever the epochs: a row's share of BSGD's w is 1 / n_steps
        n_rows=n,
    )


def without_finish(solver: Any, **parameters: Any) -> Any:
    """The solver with steps only."""
    steps_only = {"finish": False, "descent_epochs": 0, "patience": None}
    return type(solver)(**solver.get_params(deep=False) | steps_only | parameters)


def meet_chunk(solver: Any, problem: Problem, state: BudgetState | None) -> Fit:
    """One pass over the problem's rows, from the state of the pass or fit before."""
    problem = replace(problem, max_iter=None)
    problem.check_range()
    with one_blas_thread():
        run = StreamRun(problem, without_finish(solver, epochs=1), state)
        with time_limit(problem.max_seconds):
            status, history = iterate(run, problem, time.perf_counter(), (), type(solver).__name__)
        return finite(run.finish(status, history), problem)
