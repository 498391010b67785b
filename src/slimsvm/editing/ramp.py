"""The ramp loss: the hinge loss cut off, so that no outlier counts more than 1 − s.

    min over w   ½‖w‖² + C Σ ω_i min(1 − s, max(0, 1 − y_i f(x_i))),    s < 1

Collobert, Sinz, Weston, Bottou, "Trading Convexity for Scalability", ICML 2006: the difference of two hinges, minimised
by the concave-convex procedure (CCCP). Bakır, Bottou and Weston (2004) name it as the alternative to editing. Here:

    all rows count
    repeat  train the SVM of the rows that count;  from now on the rows with y_i f(x_i) ≥ s count
    until they are the same rows, or the objective no longer falls

For a row that does not count the loss is replaced by its bound 1 − s, for the others by the hinge: both lie above the
ramp and touch it where the last SVM is, so the objective never rises. CCCP takes max(1, y f) − s, above 1 − s, for
rows that do not count: the same steps as long as no such row gets beyond y f = 1, and a looser bound where one does.

Parts: `solvers.exact` for every SVM, each started from the dual point of the one before.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slimsvm.core.clock import no_limit
from slimsvm.editing.cross_training_stages import Clock, scores_of, some_rows
from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.problem import RANDOM_ACCESS, Need, Problem, check_needs
from slimsvm.parts.run import Best, Fit, Status, reported
from slimsvm.parts.solver import Solver
from slimsvm.solvers import Exact

Array = np.ndarray

# The objective has converged when a step lowers it by less than this share.
STALL = 1e-6
MAX_STEPS = 100


NEEDS = (
    Need(lambda problem: problem.task.has_two_classes, "{solver} is for two classes, found {task}"),
    Need(
        lambda problem: problem.kernel.has_features,
        "{solver} leaves rows out: it needs a kernel of rows, found 'precomputed'",
    ),
)


@dataclass(eq=False, repr=False)
class Ramp(Solver):
    """A solver of the ramp-loss SVM of two classes, by convex steps.

    Parameters
    ----------
    solver : Exact or None, default=None
        The solver of every step.
    s : float, default=-1.0
        The point where the hinge is cut off: no row's loss is above 1 − s. Below 1.
    """

    solver: Exact | None = None
    s: float = -1.0

    def solve(self, problem: Problem, state: Any = None, callbacks=()) -> Fit:
        """Train; the first step starts from ``state``, the dual point of an earlier fit of the same rows.

        The objective is that of the ramp loss over all rows. There is no lower bound: the problem is not convex.
        """
        check_needs("the ramp loss", problem, RANDOM_ACCESS, *NEEDS)
        if not self.s < 1:
            raise ValueError(f"s must be below 1, found {self.s!r}")
        begun, clock = time.perf_counter(), Clock(problem.max_seconds)
        examples = problem.examples
        solver = Exact() if self.solver is None else self.solver
        counting, best, kernel_evals = np.arange(examples.n_rows), Best(), 0
        history: list[dict[str, Any]] = []
        for _ in range(MAX_STEPS):
            part = problem if len(counting) == examples.n_rows else some_rows(problem, counting)
            fit = solver.solve(replace(part, max_seconds=clock.left()), state=state, callbacks=callbacks)
            if fit.state is None:  # there was no time for an iteration
                break
            rows = counting if fit.basis_rows is None else counting[fit.basis_rows]
            with no_limit():
                look = partial(scores_of, fit.model, problem.rows, problem.n_jobs)
                scores = reported(problem, fit.status, fit.model.n_basis, look)
            if scores is None:
                fit = replace(fit, objective=np.nan, lower_bound=None)
                break
            hinge = np.maximum(0.0, 1.0 - examples.labels * scores)
            kernel_evals += fit.counters["kernel_evals"] + len(scores) * fit.model.n_basis
            objective = fit.objective + problem.C * float(
                examples.weights @ np.minimum(hinge, 1.0 - self.s) - examples.weights[counting] @ hinge[counting]
            )
            v = np.zeros(examples.n_rows)
            v[counting] = fit.state.v
            history.append(
                {
                    "objective": objective,
                    "n_counting": len(counting),
                    "n_basis": fit.model.n_basis,
                    "seconds": time.perf_counter() - begun,
                    "kernel_evals": kernel_evals,
                }
            )
            falls = best.found is None or objective < best.objective - STALL * abs(best.objective)
            best = best.or_lower(objective, (fit, rows, v))
            before, counting = counting, np.flatnonzero(hinge <= 1.0 - self.s)
            same = len(before) == len(counting) and bool((before == counting).all())
            if same or not falls or fit.status != Status.CONVERGED or not len(counting):
                break
            some = examples.take(counting)
            state = DualState(v[counting], problem.C, problem.task, some)
        if best.found is None:
            return fit
        objective, (fit, rows, v) = best.objective, best.found
        counters = {"kernel_evals": kernel_evals, "seconds": time.perf_counter() - begun}
        full = DualState(v, problem.C, problem.task, examples)
        return Fit(fit.model, fit.status, objective, None, history, counters, full, rows)
