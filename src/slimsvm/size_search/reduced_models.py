"""Vectors that are moved until the model over them is near to an exact SVM, and the nearest model's coefficients.

They begin at random vectors of that SVM and move together, by L-BFGS on `bases.distance`. Where rows have many
features they move along principal directions of these (`parts.principal_directions`). Rows of text, and kernels without
a derivative, have theirs found one by one (`bases.reduced_set`).

Burges, "Simplified Support Vector Decision Rules", ICML 1996.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.bases.distance import Distance, Part, descend
from slimsvm.bases.preimage import get_preimage
from slimsvm.bases.reduced_set import greedy, own_vectors
from slimsvm.kernels import RBF, EvalCounter, KernelRows
from slimsvm.lazy import made_once
from slimsvm.model import KernelExpansion
from slimsvm.parts.principal_directions import Directions, search_for
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit
from slimsvm.rows import is_sparse, is_text
from slimsvm.solvers.exact import Exact
from slimsvm.solvers.sampled_cuts import ExactCuts
from slimsvm.tasks import Task

Array = np.ndarray

# -- The kinds of models that a search for few vectors compares: which problem each solves, and by which solver --------

NEAR, SOLVED, LEARNED = "near", "solved", "learned"


@dataclass(frozen=True)
class ModelKind:
    """The problem that vectors and coefficients belong to, and how they were found."""

    task: Task
    # Of moved vectors, NEAR has the coefficients of the model nearest to the exact one, and SOLVED those of the
    # convex problem at twice C. LEARNED has vectors and coefficients of `Refine`.
    way: str


def measured_by(task: Task) -> Task:
    """Return the task of the exact SVM that few vectors are measured by: pairs of classes, where these are quicker."""
    return task.in_pairs() or task


def in_one(task: Task) -> Task | None:
    """Return the task as one problem: a score for each class in place of pairs, None where pairs were asked for."""
    return task.in_scores() if task.class_pairs() else task


def exact_solver(task: Task) -> Exact | ExactCuts:
    """Return the faster of the exact solvers: decomposition where the loss has its dual, or exact cuts."""
    return Exact() if task.has_dual or task.has_columns or task.class_pairs() else ExactCuts()


def with_task(problem: Problem, task: Task) -> Problem:
    """Return the problem with another task of the same labels; scores of several classes have no free intercept."""
    if task == problem.task:
        return problem
    examples = task.encode(problem.examples.labels, problem.examples.weights)
    is_free = problem.intercept == "free" and bool(task.class_pairs())
    intercept = "regularized" if problem.intercept == "free" and not is_free else problem.intercept
    return replace(problem, task=task, examples=examples, intercept=intercept)


@dataclass(frozen=True)
class MoveSettings:
    """How far vectors are moved; docs/experiments/automatic_choice.md, "The search in one to five times", settles steps
    and costs, "Not giving up" the sums. The others were chosen, not measured.
    """

    # Steps of L-BFGS on the first vectors, and whenever some more join them; and the same for pairs of classes, and for
    # regression (learned_bases.md, "Steps by the length of coefficients").
    first_steps: int = 20
    more_steps: int = 10
    first_steps_of_pairs: int = 10
    more_steps_of_pairs: int = 8
    first_steps_of_targets: int = 30
    more_steps_of_targets: int = 15
    # No more steps where the nearest model misses less than this of ‖w‖² (learned_bases.md, "Two classes").
    near_enough: float = 1e-3
    # … but fewer where that would take longer than the exact SVM of a part. The multiply-adds of a step: for each value
    # between a vector and one of its own, ``move_cost`` and ``feature_cost`` for each feature; for each of k³ in its
    # factor, ``factor_cost``. The values themselves are counted beside that, ``evals_per_step`` times in a step.
    move_cost: float = 320
    feature_cost: float = 2
    factor_cost: float = 3
    evals_per_step: float = 1.2
    # What takes as long as kernel evaluations: so many multiply-adds and one for each feature are an evaluation. Of so
    # many multiply-adds nothing is spared.
    value_cost: float = 40
    quick_work: float = 1.2e9
    # Of more pairs of classes than this, vectors of the exact SVM count in the pairs of their class alone; where
    # these are more as well, so many random sums of all functions are moved towards.
    most_outputs: int = 48
    # Vectors of text that are preimages (dense ones), at most; beyond they are found among the rows.
    most_preimages: int = 50
    preimages_at_once: int = 5


def quick_evals(problem: Problem) -> float:
    """Return as many kernel evaluations as take too little to be spared: the fewer, the more features rows have."""
    own = problem.settings_of(MoveSettings)
    return own.quick_work / (own.value_cost + problem.rows.n_stored / problem.rows.n_rows)


class DistanceAlong(Distance):
    """The distance between models that are seen along principal directions; vectors stay in what these span."""

    def at(self, basis: Array) -> tuple[float, Array, Array]:
        """Return D, its gradient (k, q + 1), whose last column (distances from directions) is 0, and coefficients."""
        value, gradient, beta = super().at(basis)
        gradient[:, -1] = 0.0
        return value, gradient, beta


class Mover:
    """Moves vectors towards exact SVMs, from ones that it draws.

    ``work`` is the kernel evaluations that the steps made so far took, or what takes as long.
    """

    def __init__(self, problem: Problem, rng: np.random.Generator, counter: EvalCounter):
        self.problem, self.rng, self.counter = problem, rng, counter
        self.work, self.settings = 0.0, problem.settings_of(MoveSettings)

    @made_once
    def along(self) -> tuple[Directions, Array] | None:
        """Return directions that vectors are moved along, where rows have many features, and the centre of the rows."""
        search = search_for("auto", 0, self.problem)
        if search is None:
            return None
        rows = self.problem.bind()
        found = search.find(rows, self.rng)
        return None if found is None else (found, rows.centre)

    @property
    def share(self) -> float:
        """Return the time of kernel values along directions, as a share of that of others."""
        if self.along is None:
            return 1.0
        cost = self.settings.value_cost
        return (cost + self.along[0].V.shape[1]) / (cost + self.problem.rows.n_features)

    def distance(self, exact: Fit) -> Distance:
        """Return the distance of models from an exact one, or from some random sums of its functions."""
        model, parts, norm = exact.model, None, exact.norm_squared
        pairs, most = measured_by(self.problem.task).class_pairs(), self.settings.most_outputs
        if len(pairs) > most and pairs[-1][1] <= most:
            model, parts = by_class(model, np.array(pairs))
        elif len(pairs) > most:
            mixed = model.coef @ (np.random.default_rng(0).normal(size=(len(pairs), most)) / np.sqrt(most))
            model, norm = replace(model, coef=mixed, intercept=np.zeros(most)), None
        if self.along is None:
            return self._distance(model, np.float32, parts, norm)
        directions, centre = self.along
        rows = KernelRows(model.kernel, model.basis, dtype=np.float32, n_jobs=self.problem.n_jobs, centre=centre)
        model = replace(model, basis=directions.seen(rows), kernel=RBF(1.0))
        how: Any = {"dtype": np.float32, "parts": parts, "norm_squared": norm}
        return DistanceAlong(model, None, self.problem.n_jobs, self.counter, **how)

    def missed(self, exact: Fit, basis: Any) -> float:
        """Return the share of ‖w‖² that the nearest model over given vectors does not have."""
        distance = self._distance(exact.model, np.float64, norm_squared=exact.norm_squared)
        left = distance.parts(basis, distance.coefficients(basis))[1]
        return left**2 / distance.norm_squared if distance.norm_squared > 0 else 0.0

    def near(self, exact: KernelExpansion, basis: Any) -> KernelExpansion:
        """Return the model over given vectors that is nearest to an exact one."""
        return replace(exact, basis=basis, coef=self._distance(exact, np.float64).coefficients(basis))

    def moved(self, distance: Distance, basis: Any, k: int, room: float) -> Any:
        """Return k vectors near to an exact SVM: those there are and more of its own, moved in this much work."""
        kernel, V = self.problem.kernel, distance.model.basis
        if is_text(V) or not kernel.has_gradient:
            own = distance.own
            if is_text(V) and kernel.is_gaussian and k <= self.settings.most_preimages:
                way = get_preimage("fixed-point")
                return greedy(own.kernel_rows, own.target, k, way, self.rng, self.settings.preimages_at_once)
            return own_vectors(own.kernel_rows, own.target, k, self.rng)
        have = 0 if basis is None else basis.shape[0]
        steps, work = self._steps(V, have, k, room)
        more: Any = V[np.sort(self.rng.choice(V.shape[0], max(0, min(k, V.shape[0]) - have), replace=False))]
        more = more.toarray() if is_sparse(more) else more
        along = None if self.along is None else self.along[0]
        if along is not None:
            more[:, -1] = 0.0
            basis = None if basis is None else along.of_vectors(basis)
        basis = np.asarray(more if basis is None else np.vstack([basis, more]), dtype=np.float64)
        before = self.counter.n
        basis = descend(distance, basis, steps, self.settings.near_enough)[0] if steps else basis
        self.work += steps * work - (1.0 - self.share) * (self.counter.n - before)
        return basis if along is None else along.lifted(basis)

    def most_of_a_kind(self, V: Any, have: int, k: int) -> int:
        """Return the most vectors up to k, at least ``have``, that are found in the same way as ``have``."""
        most = self.settings.most_preimages
        return most if is_text(V) and self.problem.kernel.is_gaussian and have <= most < k else k

    def expected(self, V: Any, have: int, k: int, room: float) -> float:
        """Return what it takes to move k vectors towards an SVM of vectors V, if ``have`` were moved before."""
        if is_text(V) or not self.problem.kernel.has_gradient:
            return 0.0
        steps, work = self._steps(V, have, k, room)
        return steps * work + self.share * self.settings.evals_per_step * (steps + 1) * k * (V.shape[0] + k)

    def _steps(self, V: Any, have: int, k: int, room: float) -> tuple[int, float]:
        """Return how many steps there is room for, and what each takes."""
        own, rows = self.settings, self.problem.rows
        n_features = rows.n_stored / rows.n_rows
        n_moved = n_features if self.along is None else self.along[0].V.shape[1]
        work = (own.move_cost + own.feature_cost * n_moved) * V.shape[0] + own.factor_cost * float(k) ** 2
        work *= k / (own.value_cost + n_features)
        task = measured_by(self.problem.task)
        if task.class_pairs():
            most = own.more_steps_of_pairs if have else own.first_steps_of_pairs
        elif task.has_targets:
            most = own.more_steps_of_targets if have else own.first_steps_of_targets
        else:
            most = own.more_steps if have else own.first_steps
        return min(int(max(quick_evals(self.problem), room) / work), most), work

    def _distance(
        self,
        model: KernelExpansion,
        dtype: Any,
        parts: tuple[Part, ...] | None = None,
        norm_squared: float | None = None,
    ) -> Distance:
        how: Any = {"dtype": dtype, "parts": parts, "norm_squared": norm_squared}
        return Distance(model, None, self.problem.n_jobs, self.counter, **how)


def by_class(model: KernelExpansion, pairs: Array) -> tuple[KernelExpansion, tuple[Part, ...]]:
    """Return a model of pairs with its vectors sorted by class, and the pairs that those of each class are in.

    Coefficients in a pair are positive in its first class.
    """
    vectors, first = np.arange(model.n_basis), (model.coef != 0).argmax(axis=1)
    of_vector = pairs[first, np.where(model.coef[vectors, first] > 0, 0, 1)]
    order, parts = np.argsort(of_vector, kind="stable"), list[Part]()
    ends = np.cumsum(np.bincount(of_vector, minlength=int(pairs.max()) + 1)).tolist()
    for label, (lo, hi) in enumerate(zip([0, *ends], ends)):
        parts.append(Part(slice(lo, hi), np.flatnonzero((pairs == label).any(axis=1))))
    return replace(model, basis=model.basis[order], coef=model.coef[order]), tuple(parts)
