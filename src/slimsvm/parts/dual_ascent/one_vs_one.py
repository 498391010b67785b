"""Several classes by two-class problems of all pairs, and several targets one after another, each by another solver.

One record of the history is one pair. The model has a basis that all pairs share and a column of coefficients for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.core.clock import OutOfTimeError, check_time, share_of_time
from slimsvm.lazy import made_once
from slimsvm.parts.dual_ascent.dual import GAP, LAST
from slimsvm.parts.problem import Kept, Problem, Room
from slimsvm.parts.run import Fit, Run, Status, model_over
from slimsvm.parts.solver import Solver
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, Examples, Task
from slimsvm.tasks.examples import check_same_loss

Array = np.ndarray


@dataclass(frozen=True)
class PairStates:
    """The states of the pairs' fits, for a warm start; None for pairs that were not reached."""

    states: list[Any]
    task: Task
    examples: Examples

    def check(self, task: Task, examples: Examples) -> None:
        """Refuse to go on with another loss."""
        check_same_loss(self, task, examples, "; only the kernel, C and X may change")


def rows_of_pair(problem: Problem, pair: tuple[int, int]) -> Array:
    """Return the rows of the two classes."""
    labels = problem.examples.labels
    return np.flatnonzero((labels == pair[0]) | (labels == pair[1]))


def problem_of_pair(problem: Problem, k: int, index: Array) -> Problem:
    """Return the two-class problem of pair k and its rows; the lower class is positive."""
    task, pair = Binary(), problem.task.class_pairs()[k]
    block = problem.rows.take(index, problem.rows.exact_dtype)
    if not problem.kernel.has_features:
        block = block[:, index]
    labels = np.where(problem.examples.labels[index] == pair[0], 1, -1)
    examples = task.encode(labels, problem.examples.weights[index])
    C = problem.C * problem.task.pair_factor(k)
    return replace(problem, rows=as_rows(block), examples=examples, task=task, C=C)


@dataclass(frozen=True)
class PairFit:
    """The fit of one pair of classes."""

    v: Array  # float64: coefficients of the pair's rows
    intercept: float
    objective: float
    lower_bound: float
    status: Status
    n_iter: int
    state: Any  # the state for a warm start
    norm_squared: float | None  # ‖w‖² of the pair's model; None where the solver does not know it
    report_kernel_evals: int = 0  # kernel evaluations that only the report took


class OneVsOneRun(Run):
    """The run that fits the pairs one after another.

    Parameters
    ----------
    problem : Problem
        The problem; its task is a `OneVsOne`.
    solver : Solver
        For two classes.
    """

    doing = "exact SVM, pairs of classes"
    has_parts = True
    what = "pairs of classes"

    def __init__(self, problem: Problem, solver: Solver, state: PairStates | None):
        self.problem, self.solver, self.pairs = problem, solver, self.parts_of(problem)
        if state is not None:
            state.check(problem.task, problem.examples)
        self.states = [None] * len(self.pairs) if state is None else list(state.states)
        self.kernel_rows = problem.bind()
        self.fits: list[PairFit] = []
        self.bound = 0.0  # the bound of the reported pairs; no pair's objective is below 0
        self.converged = False
        self.room = Room()
        self.kept = Kept(self.room) if problem.kept is None else problem.kept

    def parts_of(self, problem: Problem) -> Sequence[Any]:
        """Return the parts to fit one after another."""
        pairs: Sequence[Any] = problem.task.class_pairs()
        return pairs

    @property
    def max_records(self) -> int | None:
        """Return None, since ``max_iter`` limits each pair instead; 0 if that is 0."""
        return 0 if self.problem.max_iter == 0 else None

    @property
    def share_done(self) -> float:
        """Return the share of the planned work that is done."""
        return len(self.fits) / len(self.pairs)

    def rows_of(self, pair: tuple[int, int]) -> Array:
        """Return the rows of the two classes."""
        return rows_of_pair(self.problem, pair)

    def two_classes(self, k: int) -> Problem:
        """Return the problem of pair k, with up to twice its share of the time that is left."""
        seconds = share_of_time(2.0 / (1 + len(self.pairs) - len(self.fits)))
        problem = replace(self.problem, precision=self.kernel_rows.precision, max_seconds=seconds, verbose=0)
        problem = replace(problem, kept=None, room=self.room)
        pair = self.pairs[k]
        if self.problem.kept is None:
            return problem_of_pair(problem, k, self.rows_of(pair))
        kept = self.problem.kept.part(pair, len(self.pairs))
        of_pair: Problem = kept.once("problem", lambda: problem_of_pair(problem, k, self.rows_of(pair)))
        changes: dict[str, Any] = {"C": problem.C * problem.task.pair_factor(k), "to_compare": problem.to_compare}
        return replace(of_pair, max_seconds=seconds, kept=kept, **changes)

    def fit_pair(self, k: int) -> PairFit:
        """Fit pair k."""
        problem = self.two_classes(k)
        fit = self.solver.solve(problem, state=self.states[k])
        if fit.is_too_coarse and self.problem.precision == "auto":
            fit = self.solver.solve(replace(problem, precision="float64", kept=None), state=fit.state)
        if fit.state is None:  # there was no time for an iteration
            raise OutOfTimeError
        assert fit.basis_rows is not None
        assert fit.lower_bound is not None
        if fit.kept is not None:
            self.kept.put((LAST, self.pairs[k]), fit.kept.get(LAST))
        if problem.kept is not self.kept:  # which has a counter of its own
            self.kernel_rows.counter.add(fit.counters["kernel_evals"])
        v = np.zeros(len(self.rows_of(self.pairs[k])))
        v[fit.basis_rows] = fit.model.coef[:, 0]
        return PairFit(
            v=v,
            intercept=float(fit.model.intercept[0]),
            objective=fit.objective,
            lower_bound=fit.lower_bound,
            status=fit.status,
            n_iter=fit.n_iter,
            state=fit.state,
            norm_squared=fit.norm_squared,
            report_kernel_evals=fit.counters["report_kernel_evals"],
        )

    def step(self) -> dict[str, Any]:
        """Fit one pair. After the last one there is another step only if some pair ended with its share of the time."""
        check_time()
        k = len(self.fits)
        if k == len(self.pairs):
            raise OutOfTimeError
        fit = self.fit_pair(k)
        self.fits.append(fit)
        self.states[k] = fit.state
        if fit.status == Status.INTERRUPTED:
            raise KeyboardInterrupt
        return self.told(k)

    def told(self, k: int) -> dict[str, Any]:
        """Return the record of pair k; after the last one, set whether all converged."""
        fit = self.fits[k]
        self.bound += fit.lower_bound
        if k + 1 == len(self.pairs):
            self.converged = all(f.status in (Status.CONVERGED, Status.GAP) for f in self.fits)
            at_limit = sum(f.status == Status.ITERATION_LIMIT for f in self.fits)
            self.spent = f"iteration limit for {at_limit} of {len(self.pairs)} {self.what}" if at_limit else None
        return {
            "objective": None,
            "lower_bound": self.bound,
            "gap": None,
            "pair": self.pairs[k],
            "status": str(fit.status),
            "n_basis": int(np.count_nonzero(fit.v)),
            "iterations": fit.n_iter,
            "training_error": None,
        }

    def loss_at_zero(self, k: int) -> float:
        """Return the weighted loss of pair k with all scores 0."""
        first, second = self.pairs[k]
        return self.problem.task.pair_factor(k) * float(self.class_weights[first] + self.class_weights[second])

    @made_once
    def class_weights(self) -> Array:
        """Return the weight of all rows of each class."""
        examples = self.problem.examples
        return np.bincount(examples.labels, examples.weights, minlength=self.pairs[-1][1] + 1)

    def allowed(self, objective: float) -> float:
        """Return the widest gap with which all pairs together have converged."""
        return max(GAP, self.problem.tol) * abs(objective)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return one model of all pairs; pairs that were not reached have the score 0."""
        problem, intercept, objective, bound = self.problem, np.zeros(len(self.pairs)), 0.0, 0.0
        found: list[tuple[Array, Array]] = []  # rows and coefficients of each pair
        for k, pair in enumerate(self.pairs):
            if k >= len(self.fits):
                objective += problem.C * self.loss_at_zero(k)
                continue
            index, fit = self.rows_of(pair), self.fits[k]
            vectors = np.flatnonzero(fit.v)
            found.append((index[vectors], fit.v[vectors]))
            intercept[k], objective, bound = fit.intercept, objective + fit.objective, bound + fit.lower_bound
        rows, coef = self.joined(found)
        model = model_over(self.kernel_rows, self.kernel_rows.basis(rows), coef, intercept)
        counters: dict[str, Any] = {"kernel_evals": self.kernel_rows.counter.n}
        counters["report_kernel_evals"] = sum(fit.report_kernel_evals for fit in self.fits)
        state = PairStates(self.states, problem.task, problem.examples)
        self.kept.put("kernel rows", self.kernel_rows)
        norms = [part.norm_squared for part in self.fits if part.norm_squared is not None]
        norm = float(sum(norms)) if len(norms) == len(self.fits) else None
        return Fit(model, status, objective, bound, history, counters, state, rows, kept=self.kept, norm_squared=norm)

    def joined(self, found: list[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return the rows that are vectors of any pair, and their coefficients with a column for each pair.

        Of many classes these are far larger than all that is not 0 in them.
        """
        is_vector = np.zeros(self.kernel_rows.n_rows, bool)
        for rows, _ in found:
            is_vector[rows] = True
        places, vectors = np.cumsum(is_vector) - 1, np.flatnonzero(is_vector)
        coef = np.zeros((len(vectors), len(self.pairs)))
        for k, (rows, v) in enumerate(found):
            coef[places[rows], k] = v
        return vectors, coef


class TargetsRun(OneVsOneRun):
    """The run for several targets, quantiles, or classes against the rest, one after another (`Task.columns`).

    They share kernel values.
    """

    doing = what = "columns of scores"

    def parts_of(self, problem: Problem) -> list[Any]:
        """Return the targets' numbers."""
        self.columns = problem.task.columns(problem.examples)
        return list(range(len(self.columns)))

    def rows_of(self, pair: Any) -> Array:
        """Return all rows."""
        return np.arange(self.problem.rows.n_rows)

    def two_classes(self, k: int) -> Problem:
        """Return the problem of target k, with up to twice its share of the time that is left."""
        seconds = share_of_time(2.0 / (1 + len(self.pairs) - len(self.fits)))
        (task, examples), precision = self.columns[k], self.kernel_rows.precision
        found = replace(self.problem, task=task, examples=examples, precision=precision, verbose=0)
        self.kept.put("kernel rows", self.kernel_rows)
        return replace(found, max_seconds=seconds, kept=self.kept)

    def told(self, k: int) -> dict[str, Any]:
        """Return the record of target k."""
        record = super().told(k)
        return record | {"target": record.pop("pair")}

    def loss_at_zero(self, k: int) -> float:
        """Return the weighted loss of target k with all scores 0."""
        (task, examples), n = self.columns[k], self.problem.rows.n_rows
        here = np.zeros((n, 1)), np.zeros(0)
        return task.along(here, here, 0.0, examples)[0]
