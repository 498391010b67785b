"""A run on a sample of very many rows, after which coefficients are solved for over all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.reports import exact_objective, reported
from slimsvm.parts.run import Fit, Run, Status
from slimsvm.parts.span.best_coefficients import best_coefficients
from slimsvm.parts.span.whitened_span import Coefficients


class OverAllRows(Run):
    """A run on a sample, followed by solving for the coefficients over all rows, with their objective and bound.

    Parameters
    ----------
    whole : Problem
        The problem of all rows.
    run : Run
        The run on the sample. Its objectives and bounds do not hold for all rows, so they are not recorded.
    tau : callable () -> float
        Returns the last τ of the run's smoothed losses.
    tol_relative : float or "auto"
        The same as for `best_coefficients`.
    rng : numpy.random.Generator
    state_of : callable (Fit, KernelExpansion) -> object
        Makes the state for a warm start from the fit on the sample and the model.
    """

    def __init__(
        self,
        whole: Problem,
        run: Any,
        tau: Callable[[], float],
        tol_relative: Any,
        rng: np.random.Generator,
        state_of: Callable[[Fit, KernelExpansion], Any],
    ):
        self.problem, self.run, self.tau, self.tol_relative, self.rng = whole, run, tau, tol_relative, rng
        self.state_of = state_of
        self.kernel_rows: KernelRows = run.kernel_rows
        self.converged, self.doing = False, run.doing
        self.finished: tuple[KernelExpansion, Coefficients, Any] | None = None

    @property
    def share_done(self) -> float:
        """Return share of the planned work that is done."""
        return 0.9 * self.run.share_done if self.finished is None else 1.0

    def step(self) -> dict[str, Any]:
        """Take a step on the sample; after the last one, solve for the coefficients over all rows."""
        record: dict[str, Any] = self.run.step()
        known: dict[str, Any] = dict.fromkeys(("objective", "bound_in_basis", "lower_bound", "gap"))
        known |= {"objective_estimate": record["objective"]}
        if self.run.converged:
            fit = self.run.finish(Status.CONVERGED, [])
            rows = self._all_rows(fit.model)
            found = best_coefficients(self.problem, rows, fit.model, self.tol_relative, self.rng, self.tau())
            dtype = np.dtype(rows.dtype).name
            model = replace(fit.model, coef=found.coef, intercept=found.intercept, dtype=dtype)
            self.finished = model, found, self.state_of(fit, model)
            self.kernel_rows, self.converged = rows, True
            known |= {"objective": found.objective, "bound_in_basis": found.bound_in_basis}
        return record | known

    def _all_rows(self, model: KernelExpansion) -> KernelRows:
        """Return all rows seen through a model's kernel, with the sample's counter of kernel evaluations."""
        rows = replace(self.problem, kernel=model.kernel).bind()
        rows.counter = self.kernel_rows.counter
        return rows

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model with its objective over all rows."""
        evals = self.kernel_rows.counter.n
        if self.finished is not None:
            model, found, state = self.finished
            objective, bound = found.objective, found.bound_in_basis
        else:
            fit = self.run.finish(status, history)
            rows, bound = self._all_rows(fit.model), None
            model = replace(fit.model, dtype=np.dtype(rows.dtype).name)
            known = reported(self.problem, status, model.n_basis, partial(exact_objective, self.problem, rows, model))
            objective, state = np.nan if known is None else known, self.state_of(fit, model)
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": self.kernel_rows.counter.n - evals,
            "bound_in_basis": bound,
        }
        return Fit(model, status, objective, None, history, counters, state)
