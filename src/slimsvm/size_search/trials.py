"""What a search for few vectors goes by: parts of the rows, sizes, and the statistics of their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.bases.distance import Distance
from slimsvm.kernels import EvalCounter
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit
from slimsvm.size_search.reduced_models import (
    LEARNED,
    SOLVED,
    ModelKind,
    Mover,
    MoveSettings,
    measured_by,
    quick_evals,
)
from slimsvm.tasks import Task

Array = np.ndarray

# docs/experiments/automatic_choice.md settles the number of parts ("Parts one after another") and SURE ("Why five
# generated classes lost two points"); the others were chosen, not measured.
# Up to FEW_ROWS rows each is held out once, in FOLDS parts. Of more rows a third is held out up to LEAST_HELD, or a
# fifth if that is more, at most MAX_HELD.
FEW_ROWS, FOLDS, MOST_SHARE, LEAST_HELD, SHARE_HELD, MAX_HELD = 5_000, 3, 1 / 3, 4_000, 1 / 5, 20_000
# Of the exact SVM's vectors, the share that is tried before more are, and the most.
LARGE_SHARE, LAST_SHARE = 0.245, 1 / 3
# Standard errors of the paired difference by which one of two trials errs surely less.
SURE = 2.0
# Shares of the exact SVM's error, and of what it gains over a constant, that the extra error stays under.
ERROR_SHARE, GAIN_SHARE = 0.5, 0.1


@dataclass(frozen=True)
class SizeSettings:
    """Which numbers of vectors are tried; docs/experiments/automatic_choice.md settles the rates."""

    # The first number, at least so many for each of several classes, and the factors to the next at least and at most.
    first: int = 25
    first_of_class: int = 5
    factor: float = 2
    most_factor: float = 6
    # In between, the upper end is taken to fall with this power of their number, or with a lower one that was seen,
    # down to the second.
    rate: float = 1.7
    slow_rate: float = 1.2
    # A search is given up where the upper end would be over ``hopeless`` times what is allowed with the most vectors.
    # It is taken to fall at least with the power ``least_rate`` of their number.
    hopeless: float = 1.0
    least_rate: float = 1.4


USUAL = SizeSettings()


@dataclass(frozen=True)
class Trial:
    """What a number of vectors has come to on the rows held out."""

    n_basis: int
    vectors: str  # {"moved", "learned"}: towards the exact SVM, or from the rows
    # "ovo" for pairs of classes, "crammer-singer" for a score each; None where there are no several classes.
    multi_class: str | None
    error: float
    # extra_error, standard_error: mean of the difference to the exact SVM's error, and how sure that is
    extra_error: float
    standard_error: float
    allowed: float  # what the upper end, extra_error + standard_error, may be
    # whether it errs surely less than what was tried before with as many vectors, or nothing was. Of
    # several kinds of model one is likely to look allowed by chance; the first does not need more than that.
    is_sure: bool = True

    @property
    def upper(self) -> float:
        """Return the upper end of the extra error."""
        return self.extra_error + self.standard_error

    @property
    def kind(self) -> tuple[str, str | None]:
        """Return what sizes are compared within."""
        return self.vectors, self.multi_class

    @property
    def will_do(self) -> bool:
        """Whether the upper end of the extra error is allowed, and not just one of several that might be."""
        return self.is_sure and self.upper <= self.allowed

    def is_better_than(self, other: Trial) -> bool:
        """Whether this is the one to take: it will do and the other will not, or it errs less."""
        if self.will_do != other.will_do:
            return self.will_do
        return self.extra_error < other.extra_error

    def is_decided(self, n_held: int) -> bool:
        """Whether it will do, or surely will not, by the parts so far, so that others are left out.

        A difference of less than one of the ``n_held`` rows that were seen is not known.
        """
        return self.fails or self.extra_error + max(self.standard_error, 1.0 / n_held) <= self.allowed

    @property
    def fails(self) -> bool:
        """Whether even the lower end of the extra error is not allowed."""
        return self.extra_error - self.standard_error > self.allowed

    @property
    def missed_by(self) -> float:
        """Return by how much the upper end is more than is allowed; 0 if it is not."""
        return max(0.0, self.upper - self.allowed)

    def as_dict(self) -> dict[str, Any]:
        """Return the record that ``validation_`` has."""
        found = {name: value for name, value in vars(self).items() if name != "is_sure"}
        return found | {"missed_by": self.missed_by}

    @property
    def name(self) -> str:
        """Say how many vectors of which kind."""
        return f"{self.n_basis} {self.vectors}{'' if self.multi_class is None else f' ({self.multi_class})'}"


def parts(labels: Array, has_targets: bool, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """Return pairs of training rows and rows held out, of every class (or range of targets) the same share.

    Of a class of one row that row is never held out.
    """
    n = len(labels)
    order = rng.permutation(n)
    order = order[np.argsort(labels[order], kind="stable")]
    place = np.arange(n)
    may_be_held = np.ones(n, dtype=bool)
    if not has_targets:
        _, code, count = np.unique(labels[order], return_inverse=True, return_counts=True)
        may_be_held = count[code] > 1
    if n <= FEW_ROWS:
        helds = [may_be_held & (place % FOLDS == fold) for fold in range(FOLDS)]
    else:
        n_held = int(min(max(SHARE_HELD * n, min(MOST_SHARE * n, LEAST_HELD)), MAX_HELD))
        helds = [may_be_held & ((place + 1) * n_held // n > place * n_held // n)]
    return [(np.sort(order[~held]), np.sort(order[held])) for held in helds]


def first_size(last: int, n_classes: int, settings: SizeSettings = USUAL) -> int:
    """Return the number of vectors to begin with, where ``last`` are the most."""
    first = settings.first if n_classes <= 2 else max(settings.first, settings.first_of_class * n_classes)
    return first if last > 1.4 * first else last


def next_size(
    k: int, last: int, tried: list[Trial], before: list[Trial] | None = None, settings: SizeSettings = USUAL
) -> int | None:
    """Return how many vectors come after k, by how far the best trial is from what is allowed; None after ``last``.

    ``tried`` have k vectors, ``before`` fewer: the last one of the same kind says how quickly the upper end falls.
    """
    if k >= last:
        return None
    best = min(tried, key=lambda trial: trial.upper)
    allowed, rate = max(trial.allowed for trial in tried), settings.rate
    same = [trial for trial in before or [] if trial.kind == best.kind]
    if same:
        rate = min(max(rate_seen(same[-1], best), settings.slow_rate), settings.rate)
    factor = (best.upper / allowed) ** (1.0 / rate) if best.upper > 0 < allowed else settings.factor
    size = int(k * min(max(factor, settings.factor), settings.most_factor))
    return size if 1.4 * size < last else last


def rate_seen(before: Trial, now: Trial) -> float:
    """Return the power of the number of vectors with which the upper end fell, 0 where it did not."""
    if before.upper > now.upper > 0:
        return float(np.log(before.upper / now.upper) / np.log(now.n_basis / before.n_basis))
    return 0.0


def is_hopeless(before: Trial, now: Trial, size: int, settings: SizeSettings = USUAL) -> bool:
    """Whether the upper end will be far from allowed with ``size`` vectors, at the rate seen or the least."""
    rate = max(rate_seen(before, now), settings.least_rate)
    return now.upper * (now.n_basis / size) ** rate > settings.hopeless * now.allowed


def row_errors(task: Task, scores: Array, labels: Array) -> Array:
    """Return the error of each row: 1 where its class is wrong, or how far the prediction is from the target."""
    predicted = task.decode(scores, np.zeros(0), None)
    if task.has_targets:
        return np.abs(np.asarray(predicted, dtype=np.float64) - labels)
    return (np.asarray(predicted) != labels).astype(np.float64)


def paired(difference: Array, weights: Array) -> tuple[float, float]:
    """Return the weighted mean of differences of single rows, and its standard error."""
    mean = float(np.average(difference, weights=weights))
    spread = np.sqrt(np.sum(np.square(weights * (difference - mean))))
    return mean, float(spread / weights.sum())


def err_surely_less(errors: Array, others: Array, weights: Array) -> bool:
    """Whether errors are less than others of the same rows, by more than chance makes likely.

    Of trials that were decided at different numbers of rows, the rows count that both have seen.
    """
    n = min(len(errors), len(others))
    mean, deviation = paired(errors[:n] - others[:n], weights[:n])
    return mean + SURE * deviation < 0


def allowed_error(error: float, max_extra_error: float, problem: Problem) -> float:
    """Return how much more than the exact SVM's error will do."""
    labels, weights = problem.examples.labels, problem.examples.weights
    if problem.task.has_targets:
        constant = float(np.average(np.abs(labels - np.median(labels)), weights=weights))
        max_extra_error = max_extra_error * constant
    else:
        _, codes = np.unique(labels, return_inverse=True)
        constant = 1.0 - float(np.bincount(codes, weights=weights).max() / weights.sum())
    return min(max_extra_error, ERROR_SHARE * error, GAIN_SHARE * max(0.0, constant - error))


def told(trials: list[Trial], n_exact: int, error: float, allowed: float) -> str:
    """Return what was tried, in a line."""
    tried = ", ".join(f"{trial.name} {trial.error:.4g} ± {trial.standard_error:.2g}" for trial in trials)
    most = f"at most {allowed:.2g} more will do"
    return f"error on rows held out: exact SVM ({n_exact} vectors) {error:.4g}, {most}; {tried or 'none tried'}"


def nearest(trials: list[Trial]) -> str:
    """Say by how much the best of trials that will not do misses what is allowed."""
    if not trials:
        return "none tried"
    best = min(trials, key=lambda trial: trial.missed_by)
    return f"best {best.name}, {best.extra_error:.2g} ± {best.standard_error:.2g} more"


# -- What a search for few vectors takes, in kernel evaluations, and what it may: no clock is asked --------------------

# docs/experiments/automatic_choice.md, "The search in one to five times the exact SVM's time", has what took the
# time, and "Work of the sweeps counted as kernel evaluations alone" SWEEP_COST.
# What takes as long as kernel evaluations: Newton's method makes NEWTON_PASSES (of several classes CLASS_PASSES) of
# n·k² multiply-adds (``MoveSettings.value_cost`` of them and one for each feature are an evaluation); pairs of classes
# take PAIR_COST multiply-adds for each of their n·k numbers and WHITEN_COST for each of n·k².
NEWTON_PASSES, CLASS_PASSES, PAIR_COST, WHITEN_COST = 10, 250, 340, 2.3
# An exact SVM of pairs of classes, which share kernel values, takes this many times as long as these. What exact
# SVMs take grows with this power of the rows (docs/experiments/automatic_choice.md, "What exact SVMs take").
PAIRS_SHARE, WORK_GROWTH = 2, 1.2
# How many times as long as an exact SVM of a part Newton's method (beside pairs of classes, too), pairs of classes
# and sweeps over the rows may take in a trial.
NEWTON_SHARE, BESIDE_SHARE, PAIR_SHARE, LEARN_SHARE = 1.5, 0.5, 2.0, 3.0
# Sweeps over the rows in which moved vectors are learned further, those in which others are learned from the start
# (learned_bases.md, "Learned from the start"), and how many times as long as a kernel evaluation one of
# theirs takes, with its derivative and the step.
SWEEPS, FIRST_SWEEPS, SWEEP_COST = 20, 300, 3


@dataclass
class Part:
    """Rows to train on and rows held out, and what is made of them."""

    index: Array
    problem: Problem
    held: Any
    labels: Array
    weights: Array
    exact: Fit
    errors: Array
    distance: Distance | None = None
    basis: Any = None
    size: int = 0
    model: KernelExpansion | None = None


class SearchWork:
    """The work of a search beside that of the exact SVMs of its parts.

    ``counter`` has all kernel evaluations, ``other_work`` what else took as long as so many of them. ``ascends`` says
    whether C of two classes is one for dual coordinate ascent, and that came to its end so far.
    """

    mover: Mover
    trials: list[Trial]
    settings: Any

    def __init__(self, problem: Problem, solver: Any):
        self.problem, self.solver = problem, solver
        self.parts, self.counter, self.other_work = list[Part](), EvalCounter(), 0.0
        self.exact_evals, self.ascends = 0.0, True

    def _exact_work(self) -> float:
        """Return what the exact SVMs of parts took, in kernel evaluations."""
        return self._work_of([part.exact for part in self.parts])

    def _work_of(self, fits: list[Fit]) -> float:
        """Return what exact SVMs took, in kernel evaluations."""
        evals = float(sum(fit.counters["kernel_evals"] for fit in fits))
        return evals * (PAIRS_SHARE if measured_by(self.problem.task).class_pairs() else 1)

    def _taken(self) -> float:
        """Return what the search has taken, exact SVMs of parts included, in kernel evaluations that take as long."""
        exact = float(sum(part.exact.counters["kernel_evals"] for part in self.parts))
        return self.counter.n - exact + self._exact_work() + self.other_work + self.mover.work

    def _left(self) -> float:
        """Return what is left of ``search_factor`` times what the exact SVM of all rows is expected to take."""
        n = min(self.problem.rows.n_rows, self.settings.most_rows)
        of_all = self.exact_evals * (n / len(self.parts[0].index)) ** WORK_GROWTH
        return self.solver.search_factor * max(quick_evals(self.problem) / 2, of_all) - self._taken()

    def _has_room(self, kind: ModelKind, k: int) -> bool:
        """Whether k vectors stay within ``search_factor``, of parts and then of all rows; the first always do."""
        n_times, is_moved = len(self.parts) + 1, self.parts[0].size == k
        return not self.trials or n_times * self._expected(kind, k, is_moved) <= self._left()

    def _has_room_for_part(self, kind: ModelKind, k: int, number: int) -> bool:
        """Whether k vectors of one more part do, whose exact SVM may be one more, too."""
        exact = 0.0 if number < len(self.parts) else self.exact_evals
        return exact + 2 * self._expected(kind, k, is_moved=False) <= self._left()

    def _expected(self, kind: ModelKind, k: int, is_moved: bool) -> float:
        """Return what k vectors of a part are expected to take, in kernel evaluations."""
        part, expected = self.parts[0], 0.0
        if not self.solver.learn_metric and not is_moved:
            expected += self.mover.expected(part.exact.model.basis, part.size, k, self.exact_evals)
        if kind.way == SOLVED:
            expected += self._solving(kind.task, part.problem, k)
        elif kind.way == LEARNED:
            expected += SWEEP_COST * SWEEPS * k * part.problem.rows.n_rows
        return expected

    def _quick_work(self, share: float) -> float:
        """Return ``share`` times what an exact SVM takes, or what takes little anyway, in kernel evaluations."""
        return max(quick_evals(self.problem), share * self.exact_evals)

    def _solving(self, task: Task, problem: Problem, k: int) -> float:
        """Return what solving for coefficients takes, in kernel evaluations."""
        n = problem.rows.n_rows
        evaluation = problem.settings_of(MoveSettings).value_cost + problem.rows.n_stored / n
        if task.class_pairs() or self._may_ascend(task):
            n_pairs_of_row = len(np.unique(problem.examples.labels)) - 1.0
            return n * k * (PAIR_COST * n_pairs_of_row + WHITEN_COST * k) / evaluation
        passes = NEWTON_PASSES if task.n_outputs == 1 else CLASS_PASSES
        return passes * n * task.n_outputs * float(k) ** 2 / evaluation

    def _quick_sweeps(self, k: int, problem: Problem) -> int:
        """Return how many sweeps over the rows take at most LEARN_SHARE times as long as an exact SVM, or little."""
        return int(self._quick_work(LEARN_SHARE) / (SWEEP_COST * k * problem.rows.n_rows))

    def _is_swept_quickly(self, k: int, problem: Problem) -> bool:
        """Whether vectors are moved further within that."""
        return self._quick_sweeps(k, problem) >= SWEEPS

    def _may_ascend(self, task: Task) -> bool:
        """Whether coefficients of two classes are solved for as those of a pair."""
        return self.ascends and task.step_loss == core.HINGE and not task.has_costs
