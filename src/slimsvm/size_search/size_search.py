"""The search for how many vectors will do: exact SVMs of parts of the rows, and trials of vectors beside them.

`size_search.compact` says what is searched for, and ends the search.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.core.clock import Limit, OutOfTimeError, is_time_over, present_limit
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Callback, Solver
from slimsvm.parts.span.best_coefficients import pair_coefficients
from slimsvm.rows import as_rows, is_text
from slimsvm.size_search.reduced_models import (
    LEARNED,
    NEAR,
    SOLVED,
    ModelKind,
    Mover,
    exact_solver,
    in_one,
    measured_by,
    with_task,
)
from slimsvm.size_search.trials import (
    BESIDE_SHARE,
    LARGE_SHARE,
    LAST_SHARE,
    NEWTON_SHARE,
    PAIR_SHARE,
    SWEEP_COST,
    SWEEPS,
    Part,
    SearchWork,
    SizeSettings,
    Trial,
    allowed_error,
    err_surely_less,
    first_size,
    is_hopeless,
    next_size,
    paired,
    parts,
    row_errors,
    told,
)
from slimsvm.solvers.learned_vectors import Refine
from slimsvm.solvers.low_rank import LowRank, LowRankState
from slimsvm.tasks import Task

Array = np.ndarray


@dataclass(frozen=True)
class SizeSearchSettings:
    """How a search for few vectors goes.

    docs/experiments/automatic_choice.md settles tolerances and factors of C ("The reference by decomposition", "Pairs
    of classes over the moved vectors"), the rate ("Learning from moved vectors") and ``leads`` ("Learned vectors
    alone"). The others were chosen, not measured.
    """

    # The most rows the exact SVM is asked of while searching.
    most_rows: int = 100_000
    # The exact SVM of a part is solved to so many times ``tol``: a gap of about a hundredth.
    reference_tol: float = 10
    # The exact SVM's vectors are taken to grow with this power of the rows.
    growth: float = 0.7
    # Coefficients are solved for at this many times C: of one problem, and of pairs of classes; of pairs at
    # most at ``most_pair_C``, beyond which that is C itself (learned_bases.md, "Several classes").
    factor: float = 2.0
    pair_factor: float = 4.0
    most_pair_C: float = 10.0
    # Two classes at a higher C have Newton's method at once, as ascent takes long (learned_bases.md, "Two classes").
    most_ascent_C: float = 20.0
    # Where the number of vectors is given: what moved ones may miss of ‖w‖² (learned_bases.md, "Two classes" and "Steps
    # by the length of coefficients").
    most_missed: float = 1 / 6
    # … and how many times the exact SVM's objective theirs may be once they are learned further, before others are
    # learned from the start (learned_bases.md, "Learned from the start").
    most_objective: float = 1.5
    # Gap of the coefficients in trials, as a share of the objective; of the last ones, where rows are few.
    trial_tol: float = 1e-2
    small_tol: float = 1e-4
    # The rate at which moved vectors are learned further, and that of vectors which are learned from the start, with a
    # metric of their own.
    rate: float = 0.05
    metric_rate: float = 0.1
    # Sizes in succession at which learned vectors err surely less than moved ones, before only they are tried.
    leads: int = 2
    # Sizes that there is no room for are made smaller by this factor, down to this many times the size before.
    smaller: float = 0.8
    least_factor: float = 1.4
    # Of max_seconds, the shares of the exact SVMs of parts, and of these and the search together.
    reference_share: float = 0.4
    search_share: float = 0.7


def in_few_digits(problem: Problem) -> Problem:
    """Return the problem without the many digits that few rows mean otherwise, which nothing here needs."""
    return replace(problem, precision="float64") if problem.is_small else problem


class CutShortError(Exception):
    """A solver did not come to its end."""

    def __init__(self, status: Status):
        super().__init__(str(status))
        self.status = status


class SizeSearch(SearchWork):
    """Trials of more and more vectors on one problem, from a known number where there is one.

    ``best`` is the trial to take so far, with its model of the first part; ``search`` says what was tried, in a line.
    """

    def __init__(self, problem: Problem, solver: Any, known: int | None, callbacks: tuple[Callback, ...]):
        super().__init__(problem, solver)
        self.callbacks, self.known = callbacks, known
        self.begun, self.rng = time.perf_counter(), problem.generator()
        self.limit = present_limit() or Limit(None, None)
        self.history: list[dict[str, Any]] = []
        self.settings = problem.settings_of(SizeSearchSettings)
        self.mover, self.of_sizes = Mover(problem, self.rng, self.counter), problem.settings_of(SizeSettings)
        self.splits = list[tuple[Array, Array]]()
        self.trials, self.tried = list[Trial](), list[Trial]()
        self.best: tuple[Trial, KernelExpansion, ModelKind] | None = None
        self.search, self.size, self.learns = "", 0, True
        self.has_scores, self.leads = False, 0
        # A given number of vectors is for the C that is named; in a search fewer do as well at a higher one.
        self.factor = self.settings.factor if solver.max_basis is None else 1.0
        self.ascends = self.factor * problem.C <= self.settings.most_ascent_C

    # -- the exact SVMs of parts -----------------------------------------------------------------------------------

    def _part(self, number: int) -> Part:
        """Return a part: rows that are solved for when first asked for, and the errors on those that are held out."""
        if number < len(self.parts):
            return self.parts[number]
        (training, held), n_parts = self.splits[number], len(self.splits)
        if len(training) > self.settings.most_rows:
            training = np.sort(self.rng.choice(training, self.settings.most_rows, replace=False))
        part = self._some(training)
        stage = "exact SVM of a part" + (f" {number + 1} of {n_parts}" if n_parts > 1 else "")
        own = self.settings
        share = own.reference_share / (n_parts - own.reference_share * number)
        fit = self.solve(exact_solver(part.task), replace(part, tol=own.reference_tol * part.tol), stage, share)
        rows = self.problem.rows.take(held, self.problem.rows.exact_dtype)
        labels, weights = self.problem.examples.labels[held], self.problem.examples.weights[held]
        found = Part(training, part, rows, labels, weights, fit, np.zeros(0))
        self.parts.append(found)
        self.heed(fit)
        found.errors = self._errors(part.task, fit.model, found)
        return found

    def _some(self, index: Array) -> Problem:
        """Return the exact SVM's problem of some of the rows, with the same C of one row."""
        problem = self.problem
        rows = as_rows(problem.rows.take(index, problem.rows.exact_dtype))
        part = replace(problem, rows=rows, examples=problem.examples.take(index))
        part = with_task(in_few_digits(part), measured_by(problem.task))
        return replace(part, to_compare=bool(part.task.class_pairs()))  # a bound of pairs is not needed

    def _errors(self, task: Task, model: KernelExpansion, part: Part) -> Array:
        """Return errors of a model on the rows held out."""
        scores = model.scores(part.held, self.problem.n_jobs)
        self.counter.add(len(scores) * model.n_basis)
        return row_errors(task, scores, part.labels)

    # -- trials ----------------------------------------------------------------------------------------------------

    def try_sizes(self) -> None:
        """Try more and more vectors until they do, or the search has taken what it may."""
        # The same rows are held out whatever random_state is: their choice is most of what is chance in a search.
        self.splits = parts(self.problem.examples.labels, self.problem.task.has_targets, np.random.default_rng(0))
        part = self._part(0)
        n_exact, error = part.exact.model.n_basis, float(np.average(part.errors, weights=part.weights))
        self.history[-1]["held_out_error"] = error
        self.exact_evals = self._exact_work()
        allowed = allowed_error(error, self.solver.max_extra_error, self.problem)
        self.search = told(self.trials, n_exact, error, allowed)
        n_of_all = n_exact * (len(part.index) / self.problem.rows.n_rows) ** -self.settings.growth
        large, last = int(LARGE_SHARE * n_of_all), int(LAST_SHARE * n_of_all)
        n_classes = 0 if self.problem.task.has_targets else len(np.unique(self.problem.examples.labels))
        k: int | None = first_size(large, n_classes, self.of_sizes)
        if k and self.known is not None:
            k = max(k, min(self.known, last))
        while k and self._kinds(k) and not self._is_hopeless(last):
            before, self.tried, self.size = list(self.trials), [], k
            self._try(k)
            known = np.concatenate([part.errors for part in self.parts])
            error = float(np.average(known, weights=np.concatenate([part.weights for part in self.parts])))
            self.search = told(self.trials, n_exact, error, self.tried[-1].allowed)
            if self.best is not None and self.best[0].will_do:
                break
            k = self._within_room(next_size(k, large if k < large else last, self.tried, before, self.of_sizes))

    def _within_room(self, k: int | None) -> int | None:
        """Return the greatest number of vectors up to k that may be tried, None if that is hardly more than there were.

        Fewer vectors whose coefficients are still solved for come before more that are only near to the exact SVM.
        """
        for ways in ((SOLVED, LEARNED), (SOLVED, LEARNED, NEAR)):
            size = k
            while size is not None:
                kinds = self._kinds(size)
                if kinds and kinds[0].way in ways:
                    return size
                size = int(self.settings.smaller * size)
                size = size if size >= self.settings.least_factor * self.size else None
        return None

    def _is_hopeless(self, size: int) -> bool:
        """Whether no kind of model that was tried last is expected to do with ``size`` vectors."""
        kinds: dict[tuple, list[Trial]] = {}
        for trial in self.trials:
            kinds.setdefault((trial.vectors, trial.multi_class), []).append(trial)
        lately = [found for found in kinds.values() if found[-1] in self.tried]
        own = self.of_sizes
        return bool(lately) and all(len(found) > 1 and is_hopeless(found[-2], found[-1], size, own) for found in lately)

    def _try(self, k: int) -> None:
        """Try k vectors with every kind of coefficients, until some will do."""
        first: Array | None = None
        for kind in self._kinds(k):
            trial, errors = self._trial(kind, k, first)
            if first is not None and trial.is_sure:
                self.has_scores = True
            first = errors if first is None else first
            if trial.fails and self._may_learn(kind, k):
                least = min(tried.extra_error for tried in self.tried)
                trial, _ = self._trial(ModelKind(kind.task, LEARNED), k, first)
                self.learns, self.leads = trial.extra_error < least, self.leads + 1 if trial.is_sure else 0
            if trial.will_do:
                break
        if is_time_over():
            raise OutOfTimeError

    def _trial(self, kind: ModelKind, k: int, first: Array | None) -> tuple[Trial, Array]:
        """Return the errors of k vectors on the rows held out, of one part after another until it is decided.

        ``first`` has those of the kind that was tried first with as many vectors.
        """
        found, models = list[Array](), list[KernelExpansion]()
        for number in range(len(self.splits)):
            if number and not self._has_room_for_part(kind, k, number):
                break
            part = self._part(number)
            models.append(self._model(kind, part, k))
            found.append(self._errors(kind.task, models[-1], part))
            errors, seen = np.concatenate(found), self.parts[: number + 1]
            trial = self._judged(kind, models[0].n_basis, errors, first, seen)
            if trial.is_decided(len(errors)):
                break
        self.trials.append(trial)
        self.tried.append(trial)
        if self.best is None or trial.is_better_than(self.best[0]):
            self.best = trial, models[0], kind
        self.note(f"{k} vectors", trial.n_basis, trial.error)
        return trial, errors

    def _judged(self, kind: ModelKind, k: int, errors: Array, first: Array | None, seen: list[Part]) -> Trial:
        """Return the statistics of errors on the rows that some parts hold out."""
        exact, weights = (np.concatenate([getattr(part, name) for part in seen]) for name in ("errors", "weights"))
        extra, deviation = paired(errors - exact, weights)
        error = float(np.average(exact, weights=weights))
        allowed = allowed_error(error, self.solver.max_extra_error, self.problem)
        name = "ovo" if kind.task.class_pairs() else "crammer-singer" if kind.task.n_outputs > 1 else None
        vectors = LEARNED if kind.way == LEARNED else "moved"
        is_sure = first is None or err_surely_less(errors, first, weights)
        return Trial(k, vectors, name, error + extra, extra, deviation, allowed, is_sure)

    def _kinds(self, k: int) -> list[ModelKind]:
        """Return the kinds of coefficients that k moved vectors are tried with."""
        task, part, one = self.problem.task, self.parts[0].problem, in_one(self.problem.task)
        if self.solver.learn_metric:
            return [ModelKind(task, LEARNED)]
        if self.leads >= self.settings.leads and one is not None:
            learned = ModelKind(one, LEARNED)
            if self._is_swept_quickly(k, part) and self._has_room(learned, k):
                return [learned]
        found = list[ModelKind]()
        if task.class_pairs():
            found.append(
                ModelKind(task, SOLVED if self._solving(task, part, k) <= self._quick_work(PAIR_SHARE) else NEAR)
            )
        is_beside = bool(found) and not self.has_scores
        # A second kind takes little beside the exact SVM, however quick that is.
        most = BESIDE_SHARE * self.exact_evals if is_beside else self._quick_work(NEWTON_SHARE)
        if one is not None and self._solving(one, part, k) <= most:
            found.append(ModelKind(one, SOLVED))
        if not found and part.task == task:
            found.append(ModelKind(task, NEAR))
        if len(found) > 1 and self.trials:
            # Pairs of classes, unless a score for each surely erred less with the first vectors.
            found = [kind for kind in found if bool(kind.task.class_pairs()) != self.has_scores]
        return [kind for kind in found if self._has_room(kind, k)]

    def _may_learn(self, kind: ModelKind, k: int) -> bool:
        """Whether moved vectors can be learned further, and that takes little beside the exact SVM."""
        task, part = kind.task, self.parts[0]
        if not self.learns or kind.way == LEARNED or task.class_pairs() or not task.is_compiled:
            return False
        if self.tried[-1] is not min(self.tried, key=lambda trial: trial.extra_error):
            return False
        if not self.problem.kernel.has_gradient or is_text(part.exact.model.basis) or not self.tried[-1].n_basis:
            return False
        return self._is_swept_quickly(k, part.problem) and self._has_room(ModelKind(task, LEARNED), k)

    def _model(self, kind: ModelKind, part: Part, k: int) -> KernelExpansion:
        """Return vectors and coefficients of a part."""
        stage = f"{k} vectors"
        if self.solver.learn_metric:
            return self.heed(self.refined(kind, part.problem, stage, k, None)).model
        if kind.way == LEARNED:
            start = part.model if part.size == k else None
            if start is None or start.coef.shape[1] != kind.task.n_outputs:
                is_near = self.leads >= self.settings.leads and part.problem.task == kind.task
                start = self._model(ModelKind(kind.task, NEAR if is_near else SOLVED), part, k)
            return self.heed(self.refined(kind, part.problem, stage, start.n_basis, start)).model
        if part.size != k:
            if part.distance is None:
                part.distance = self.mover.distance(part.exact)
            part.basis, part.size = self.mover.moved(part.distance, self.parts[0].basis, k, self.exact_evals), k
        if kind.way == SOLVED:
            part.model = self.solved(kind, part.problem, part.basis, stage, part.exact.model)
        else:
            part.model = self.mover.near(part.exact.model, part.basis)
        return part.model

    def refined(self, kind: ModelKind, problem: Problem, stage: str, k: int, start: KernelExpansion | None) -> Fit:
        """Learn vectors and coefficients from the rows, from moved ones or, with a metric of their own, from none."""
        problem = in_few_digits(with_task(problem, kind.task))
        solver = Refine(k, rate=self.settings.rate, epochs=SWEEPS, initial=start)
        if start is None:
            solver = Refine(k, rate=self.settings.metric_rate, learn_metric=True)
        fit = self.solve(solver, problem, stage, 1.0)
        self.other_work += (SWEEP_COST - 1) * fit.counters["kernel_evals"]
        return fit

    def solved(
        self, kind: ModelKind, problem: Problem, basis: Any, stage: str, exact: KernelExpansion
    ) -> KernelExpansion:
        """Return the coefficients of the convex problem over given vectors, at a higher C.

        Newton's method begins at the model nearest to the exact SVM, where that is of the same task.
        """
        task, pairs = kind.task, kind.task.class_pairs()
        self.other_work += self._solving(kind.task, problem, basis.shape[0])
        if pairs or self._may_ascend(task):
            own, C = self.settings, self.problem.C
            C = max(C, min(own.pair_factor * C, own.most_pair_C)) if pairs else self.factor * C
            found = pair_coefficients(replace(problem, C=C, random_state=self.seed()), basis)
            self.counter.add(found.n_kernel_evals)
            if pairs or found.converged:
                return found.model
            self.ascends = False
        tol = self.settings.small_tol if problem.is_small else self.settings.trial_tol
        problem = in_few_digits(with_task(replace(problem, C=self.factor * problem.C), kind.task))
        is_same = task == measured_by(self.problem.task)
        state = LowRankState(self.mover.near(exact, basis), None) if is_same else None
        solver = LowRank(basis.shape[0], basis, tol)
        return self.heed(self.solve(solver, problem, stage, 1.0, state)).model

    # -- parts of all stages ---------------------------------------------------------------------------------------

    def solve(self, solver: Solver, problem: Problem, stage: str, share: float, state: Any = None) -> Fit:
        """Return a solver's fit, in a share of the time that is left; its records join the history."""
        seed, begun, before = self.seed(), time.perf_counter() - self.begun, self.counter.n
        seconds = share * (self.limit.end - time.perf_counter())
        problem = replace(problem, max_seconds=max(1e-3, seconds) if np.isfinite(seconds) else None)

        def note(record: dict[str, Any]) -> bool:
            record["stage"] = stage
            record["seconds"] += begun
            record["kernel_evals"] += before
            if problem.C != self.problem.C:
                record |= dict.fromkeys(("objective", "gap", "bound_in_basis"))
            self.history.append(record)
            return any([callback(record) for callback in self.callbacks])

        fit = solver.solve(replace(problem, random_state=seed), state, (note,))
        self.counter.add(fit.counters["kernel_evals"])
        return fit

    def seed(self) -> int:
        """Return a seed for one solver."""
        return int(self.rng.integers(2**31 - 1))

    @staticmethod
    def heed(fit: Fit) -> Fit:
        """Return the fit, if it came to its end."""
        if fit.status is not Status.CONVERGED:
            raise CutShortError(fit.status)
        return fit

    def note(self, stage: str, k: int, error: float | None) -> None:
        """Add a record of vectors that were moved."""
        record: dict[str, Any] = dict.fromkeys(("objective", "lower_bound", "gap"))
        record |= {"stage": stage, "n_basis": k, "kernel_evals": self.counter.n}
        record["seconds"] = time.perf_counter() - self.begun
        if error is not None:
            record["held_out_error"] = error
        self.history.append(record)
        if any([callback(record) for callback in self.callbacks]):
            raise CutShortError(Status.STOPPED)
