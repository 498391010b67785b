"""What a search for few vectors takes, in kernel evaluations, and what it may: no clock is asked."""

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
from slimsvm.size_search.machines import LEARNED, SOLVED, Machine
from slimsvm.size_search.moves import VALUE_COST, Mover, quick_evals
from slimsvm.size_search.trials import Trial
from slimsvm.tasks import Task

Array = np.ndarray

# What takes as long as kernel evaluations: Newton's method makes NEWTON_PASSES (of several classes CLASS_PASSES) of
# n·k² multiply-adds (VALUE_COST of them and one for each feature are an evaluation); pairs of classes take PAIR_COST
# evaluations for each of their n·k numbers and WHITEN_COST for each of n·k².
NEWTON_PASSES, CLASS_PASSES, PAIR_COST, WHITEN_COST = 10, 250, 6, 0.04
# An exact machine of pairs of classes, which share kernel values, takes this many times as long as these.
PAIRS_SHARE = 2
# How many times as long as an exact machine of a part Newton's method (beside pairs of classes, too), pairs of classes
# and sweeps over the rows may take in a trial.
NEWTON_SHARE, BESIDE_SHARE, PAIR_SHARE, LEARN_SHARE = 1.5, 0.5, 2.0, 3.0
# Sweeps over the rows in which moved vectors are learned further, and how many times as long as a kernel evaluation one
# of theirs takes, with its derivative and the step.
SWEEPS, SWEEP_COST = 20, 3


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
    """The work of a search beside that of the exact machines of its parts.

    Attributes
    ----------
    parts : list of Part
    counter : EvalCounter
        Of all kernel evaluations.
    other_work : float
        What else took as long as so many kernel evaluations.
    ascends : bool
        Whether coefficients of two classes came to their end by dual coordinate ascent so far.
    """

    mover: Mover
    trials: list[Trial]

    def __init__(self, problem: Problem, solver: Any):
        self.problem, self.solver = problem, solver
        self.parts, self.counter, self.other_work = list[Part](), EvalCounter(), 0.0
        self.exact_evals, self.ascends = 0.0, True

    def _exact_work(self) -> float:
        """What the exact machines of parts took, in kernel evaluations."""
        evals = float(sum(part.exact.counters["kernel_evals"] for part in self.parts))
        return evals * (PAIRS_SHARE if self.parts[0].problem.task.class_pairs() else 1)

    def _taken(self) -> float:
        """What the search has taken beside the exact machines, in kernel evaluations that take as long."""
        exact = float(sum(part.exact.counters["kernel_evals"] for part in self.parts))
        return self.counter.n - exact + self.other_work + self.mover.work

    def _has_room(self, machine: Machine, k: int) -> bool:
        """Whether k vectors stay within ``search_factor``, by what they are expected to take; the first always do."""
        part, task = self.parts[0], machine.task
        expected = 0.0
        if not self.solver.learn_metric and part.size != k:
            expected += self.mover.expected(part.exact.model.basis, part.size, k, self.exact_evals)
        if machine.way == SOLVED:
            expected += self._solving(task, part.problem, k)
        elif machine.way == LEARNED:
            expected += SWEEP_COST * SWEEPS * k * part.problem.rows.n_rows
        room = self.solver.search_factor * max(quick_evals(self.problem) / 2, self._exact_work())
        return not self.trials or self._taken() + expected * len(self.parts) <= room

    def _is_quick(self, task: Task, k: int, share: float) -> bool:
        """Whether coefficients of k vectors take at most ``share`` times as long as an exact machine, or little."""
        return self._solving(task, self.parts[0].problem, k) <= max(quick_evals(self.problem), share * self.exact_evals)

    def _solving(self, task: Task, problem: Problem, k: int) -> float:
        """What solving for coefficients takes, in kernel evaluations."""
        n = problem.rows.n_rows
        if task.class_pairs() or self._may_ascend(task):
            n_pairs_of_row = len(np.unique(problem.examples.labels)) - 1.0
            return n * k * (PAIR_COST * n_pairs_of_row + WHITEN_COST * k)
        passes = NEWTON_PASSES if task.n_outputs == 1 else CLASS_PASSES
        return passes * n * task.n_outputs * float(k) ** 2 / (VALUE_COST + problem.rows.n_stored / n)

    def _is_swept_quickly(self, k: int) -> bool:
        """Whether the sweeps over the rows take at most LEARN_SHARE times as long as an exact machine, or little."""
        work = SWEEP_COST * SWEEPS * k * self.parts[0].problem.rows.n_rows
        return work <= max(quick_evals(self.problem), LEARN_SHARE * self.exact_evals)

    def _may_ascend(self, task: Task) -> bool:
        """Whether coefficients of two classes are solved for as those of a pair."""
        return self.ascends and task.step_loss == core.HINGE and not task.has_costs
