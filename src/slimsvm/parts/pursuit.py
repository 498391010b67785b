r"""Subspace pursuit by Newton's method: CPSP's loop for the tasks that have a smoothed loss.

    repeat
        a = soft loss-augmented argmax of every row at w: with it g = Σ_i ω_i a-mean of δΨ_i / Ω is a convex
            combination of cuts, hence a cut itself, and its own dual point
        while there is room: add the best vectors for the residual g − ĝ to the basis, several at a time
        Newton's steps on the smoothed problem within the basis, until objective − bound is a share of the loss
    then go on within the basis until the gap is within the tolerance
    closing (not in the paper; sweeps > 0), before that: move all vectors together by a few sweeps of descent, solve for
        their coefficients in the same way, and keep the outcome unless the vectors as they were have a lower objective

Joachims and Yu's Algorithm 2 takes the latest cut; near the optimum within the basis its residual is noise of a
single vertex, while C₁ g of the soft argmax is the solution itself and its residual the direction in which the
objective falls. Bound and theorem are the same: with δ = ‖g − ĝ‖ of this one cut

    objective within the basis − C₁² δ²/2 − gap  ≤  the kernel's own optimum.

Dense rows of many features (RBF, fixed point; not in the paper either) are seen along a few principal directions while
the basis grows, and vectors sought in their span, where a kernel value costs less. The rest is over the rows as they
are.

Parts: `parts.span.smoothed_newton` (steps and bound), `parts.span.whitened_span` (the growing factor),
`bases.preimage`, `parts.principal_directions`, `parts.descent.vector_descent`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.bases.preimage import FixedPoint, GradientAscent, Residual, TrainingRows
from slimsvm.core.factors import solve_positive
from slimsvm.kernels import KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import CutsState
from slimsvm.parts.descent.vector_descent import Learning, VectorDescent
from slimsvm.parts.principal_directions import Directions, Search
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Best, Fit, Run, Status, model_over, objective_of_model, warn_of_a_gap
from slimsvm.parts.span.best_coefficients import best_coefficients
from slimsvm.parts.span.smoothed_newton import ConvexFinish, Point
from slimsvm.parts.span.whitened_span import Coefficients, GrowingSubspace

Array = np.ndarray

# Soft argmaxes below this share of the largest are left out of a residual. Chosen, not measured.
NEGLIGIBLE = 1e-6
# The basis counts as complete after this many searches in a row without a vector. Chosen, not measured.
MAX_REFUSED = 10


@dataclass(frozen=True)
class PursuitSettings:
    """Settings of how many vectors are added together, and how exactly the problem is solved in between.

    docs/experiments/subspace_pursuit.md settles the numbers: "How many vectors at a time", "The pursuit before a
    descent", "How exactly to solve while the basis grows".
    """

    # While the basis has less than this share of max_basis, ``early_growth`` times its size is added, at least
    # ``early_vectors``, since later vectors make up for the choice.
    early: float = 0.6
    early_growth: float = 0.25
    early_vectors: int = 8
    # Then ``late_share`` of max_basis is added, at least ``late_vectors``; from the start if max_basis is below
    # ``small_basis``.
    late_share: float = 0.05
    late_vectors: int = 4
    small_basis: int = 80
    # If all vectors are optimised at the end, ``moved_growth`` times the basis is added, at least ``moved_vectors``.
    moved_growth: float = 0.5
    moved_vectors: int = 8
    # While the basis grows, Newton steps end at a gap of this share of the loss, or after this many steps.
    growing_gap: float = 0.02
    growing_steps: int = 3


@dataclass(frozen=True)
class PursuitState(CutsState):
    """The basis and coefficients of a fit, and the problem they were fitted to."""

    model: KernelExpansion | None = None


@dataclass(frozen=True)
class Found:
    """A candidate model: basis, coefficients, objective, bound. With directions, the basis is in their coordinates."""

    basis: Any
    coef: Array
    intercept: Array
    objective: float
    bound: float
    loss: float
    training_error: float
    directions: Directions | None = None


class GrowingFinish(ConvexFinish):
    """Newton's method in a growing space; until the basis is complete its tolerance is a share of the loss."""

    loss_share: float | None

    def __init__(self, problem: Problem, *how: Any):
        # The tolerance is this share of C Σ ω_e ℓ_e; None: the usual one.
        self.loss_share = problem.settings_of(PursuitSettings).growing_gap
        super().__init__(problem, *how)

    def aim(self, loss_share: float | None) -> None:
        """Set ``loss_share``, and judge by it."""
        self.loss_share = loss_share
        self.converged = self.best.objective - self.bound <= self.tolerance()

    def widen(self, n: int) -> None:
        """Go on in a space that has n more coordinates, from the best point: what bounded the narrower one is void."""
        best: Point = self.best.found
        u = np.insert(best.u, [len(best.u) - 1] * n, 0.0, axis=0)
        self.penalty = np.vstack([np.ones((n, 1)), self.penalty])
        self.point = Point(u, best.scores)
        self.best = replace(self.best, found=self.point)
        self.bound, self.converged, self.idle = -np.inf, False, 0
        self.decrement, self.effort = np.inf, 1.0
        self._evaluate()

    def go_over(self, space: GrowingSubspace, coef: Array, intercept: Array) -> None:
        """Go on in another space, from these coefficients of its vectors."""
        u = space.coordinates(coef, intercept)
        self.whole = space
        self._see(space, self.problem.examples)
        self.penalty = np.vstack([np.ones((space.rank, 1)), self.penalty[-1:]])
        self.point = Point(u, self.passes.times(u))
        self.best = Best(np.inf, self.point)
        self.bound, self.idle, self.decrement = -np.inf, 0, np.inf
        self._evaluate()

    @property
    def is_done(self) -> bool:
        """Whether the tolerance is reached at the problem's own C."""
        return self.converged and not self.on_the_way

    def loss(self) -> float:
        """Return C Σ ω_e ℓ_e of the best point, at the present C."""
        return max(0.0, self.best.objective - self._norm())

    def objective_at(self, C: float) -> float:
        """Return the objective of the best point at a C."""
        return self.best.objective if C == self.problem.C else self._norm() + C / self.problem.C * self.loss()

    def _norm(self) -> float:
        u = self.best.found.u
        return 0.5 * float(np.sum(self.penalty * u * u))

    def tolerance(self) -> float:
        """Return the gap at which Newton's method ends."""
        return super().tolerance() if self.loss_share is None else self.loss_share * self.loss()

    def _enter(self, u: Array, share: float) -> None:
        super()._enter(u, share if u.any() else self.settings.first_tau)


@dataclass(frozen=True)
class PursuitPlan:
    """The options of a pursuit; see the parameters of `CPSP`."""

    preimage: Any  # the search for vectors
    max_basis: int
    # None: many while there are few, few at the end; before a closing descent half of those there are.
    vectors_per_cut: int | None
    tol_relative: float
    record_delta: bool
    sweeps: int  # sweeps of the closing descent
    most_lost: float  # there is none where its start would lose more than this share of ‖w‖²
    # For directions that vectors are sought along; without, with a state, and where δ is recorded, everywhere.
    search: Search | None


class PursuitRun(Run):
    """The run of the loop above on one problem."""

    doing = "finding vectors"

    def __init__(self, problem: Problem, plan: PursuitPlan, state: CutsState | None):
        self.problem, self.plan = problem, plan
        self.kernel_rows, self.rng = problem.bind(), problem.generator()
        m, self.settings = problem.task.n_outputs, problem.settings_of(PursuitSettings)
        start = np.zeros((0, m)), np.zeros(m)
        known = isinstance(state, PursuitState) and state.model is not None
        self.directions: Directions | None = None
        if plan.search is not None and not (known or plan.record_delta):
            self.directions = plan.search.find(self.kernel_rows, self.rng)
        # The rows as the search for vectors sees them.
        self.seen = self.kernel_rows if self.directions is None else self.directions.beside(self.kernel_rows)
        self.space = self._new_space()
        if isinstance(state, PursuitState) and state.model is not None:
            state.check(problem.task, problem.examples)
            kept = self.space.extend(state.model.basis[: plan.max_basis])
            start = state.model.coef[kept], state.model.intercept
        self.tolerances = problem.tolerances(plan.tol_relative, plan.max_basis)
        self.newton = GrowingFinish(problem, self.space, self.rng, *self.tolerances, start)
        self.refused = self.n_added = 0
        self.gained: float = 0.0
        self.delta: float | None = None
        self.lower_bound: float | None = 0.0 if plan.record_delta else None
        self.growing, self.converged = self.space.rank < plan.max_basis, False
        # A basis that does not grow, as in a warm start, is not optimised either.
        self.sweeps = plan.sweeps if self.growing else 0
        self.descent: VectorDescent | None = None
        # The model before its vectors were optimised, and a bound on models of its vectors.
        self.unmoved: tuple[KernelExpansion, float] | None = None
        self.newton.aim(self.settings.growing_gap if self.growing else None)
        self.found = Found(None, start[0], start[1], np.inf, -np.inf, np.inf, 1.0)
        self._note()

    @property
    def share_done(self) -> float:
        """Return the share of the vectors that is found; little work remains after them."""
        return self.space.rank / self.plan.max_basis

    def _new_space(self) -> GrowingSubspace:
        constant = 0.0 if self.problem.intercept == "none" else 1.0
        return GrowingSubspace(self.seen, constant, self.plan.max_basis, self.problem.memory_limit // 2)

    def step(self) -> dict[str, Any]:
        """Add a cut's vectors and take Newton steps; with a full basis, one Newton step or a closing sweep."""
        newton, self.n_added, self.gained, self.delta = self.newton, 0, 0.0, None
        if self.descent is not None:
            return self._sweep(self.descent)
        if self.growing:
            self._grow()
            if not self.growing:
                self._leave_directions()
                newton.aim(self.settings.growing_gap if self.sweeps else None)
        record = newton.step()
        for _ in range(self.settings.growing_steps - 1 if self.growing else 0):
            if newton.converged:
                break
            record = newton.step()
        if self.plan.record_delta:
            self._certify()
        self._note()
        # After vectors were optimised, Newton's method may also end if they cannot give a lower objective than before.
        self.converged = not self.growing and (newton.is_done or newton.bound >= self.found.objective)
        if self.converged:
            self._go_on()
        return record | self._said()

    def _go_on(self) -> None:
        """Close with a descent, or without one; after it go back to the vectors as they were if they may do better."""
        if self.sweeps:
            seed = int(self.rng.integers(2**31 - 1))
            asked = self.sweeps, self.plan.most_lost, seed
            model, self.sweeps = self._model(), 0
            self.descent = closing_descent(self.problem, self.kernel_rows, model, *asked)
            if self.descent is not None:
                self.unmoved, self.converged = (model, self.newton.bound), False
            else:
                self.newton.aim(None)
                self.converged = self.newton.is_done
        elif self.unmoved is not None:
            (model, bound), self.unmoved = self.unmoved, None
            if bound < self.found.objective:
                self._solve_for(model)
                self.converged = False

    def _leave_directions(self) -> None:
        """Go on over the rows as they are, from the present model."""
        if self.directions is not None:
            self._note()
            model = self._model()
            self.directions, self.seen = None, self.kernel_rows
            start = self._span(model)
            self.newton.go_over(self.space, *start)

    def _span(self, model: KernelExpansion) -> tuple[Array, Array]:
        """Make the space that of a model's vectors; their coefficients and the intercept."""
        self.space = self._new_space()
        kept = self.space.extend(model.basis)
        return model.coef[kept], model.intercept

    def _solve_for(self, model: KernelExpansion) -> None:
        """Go on by Newton's method over the vectors of a model, from its coefficients, to the tolerance."""
        start = self._span(model)
        self.newton = GrowingFinish(self.problem, self.space, self.rng, *self.tolerances, start)
        self.newton.aim(None)

    def _said(self) -> dict[str, Any]:
        """Return the record of a step."""
        found = self.found
        return {
            "objective": found.objective,
            "bound_in_basis": found.bound,
            "loss": found.loss,
            "training_error": found.training_error,
            "lower_bound": self.lower_bound,
            "gap": None if self.lower_bound is None else found.objective - self.lower_bound,
            "n_basis": found.basis.shape[0],
            "n_added": self.n_added,
            "residual_gain": self.gained,
            "refused": self.refused,
            "delta": self.delta,
        }

    def _sweep(self, descent: VectorDescent) -> dict[str, Any]:
        """Make a sweep of the closing descent; after the last one Newton's method solves for the coefficients again."""
        record = descent.step()
        if descent.converged:
            model, self.descent = descent.finish(Status.CONVERGED, []).model, None
            self._solve_for(model)
        return {"tau": None, "sampled_rows": None, "objective_estimate": record["objective_estimate"]} | self._said()

    def _grow(self) -> None:
        """Add vectors for the residual of the present cut."""
        space = self.space
        residual, _ = self._residual()
        vectors = self.plan.preimage.find(residual, self.rng, min(self._batch(), self.plan.max_basis - space.rank))
        rank = space.rank
        self.n_added = len(space.extend(vectors)) if vectors.shape[0] else 0
        self.gained = 0.0
        if self.n_added:
            self.newton.widen(self.n_added)
            self.gained = float(np.sum((self.newton.values.gradient[rank:-1] / self.newton.problem.C1) ** 2))
        self.refused = 0 if self.n_added else self.refused + 1
        self.growing = space.rank < self.plan.max_basis and self.refused < MAX_REFUSED

    def _batch(self) -> int:
        """Return how many vectors to add together."""
        rank, limit, own = self.space.rank, self.plan.max_basis, self.settings
        if self.plan.vectors_per_cut:
            return self.plan.vectors_per_cut
        if self.sweeps:
            return max(own.moved_vectors, int(np.ceil(own.moved_growth * rank)))
        if rank < own.early * limit and limit >= own.small_basis:
            return max(own.early_vectors, int(own.early_growth * rank))
        return max(own.late_vectors, int(own.late_share * limit))

    def _residual(self) -> tuple[Residual, Array]:
        """Return Ω (g − ĝ) of the soft argmax at the present point, and Ω times the coordinates of ĝ."""
        newton, space = self.newton, self.space
        a = newton.passes.residual(newton.values.smoothed)
        z = (newton.penalty * newton.point.u - newton.values.gradient) / newton.problem.C
        size = np.abs(a).max(axis=1)
        rows = np.flatnonzero(size > NEGLIGIBLE * size.max(initial=0.0))
        projection = space.coefficients(z)[0]
        flat = self.directions is not None
        return Residual(self.seen, rows, a[rows], space.basis, -projection, space.whiten, flat), z

    def _certify(self) -> None:
        """Compute δ of the present cut, and the bound on the kernel's own optimum that its dual point gives."""
        C, values = self.problem.C, self.newton.values
        residual, z = self._residual()
        left = residual.squared_norm(float(np.sum(z[:-1] ** 2)))
        self.delta = float(np.sqrt(left)) / self.problem.examples.total_weight
        linear, square = C * sum(values.smoothed.dual), C**2 * (left + float(np.sum(z**2)))
        share = min(1.0, max(0.0, linear / square)) if square > 0 else 1.0
        self.lower_bound = max(self.lower_bound or 0.0, share * linear - 0.5 * share**2 * square)

    def _note(self) -> None:
        """Keep the model as it is now in one piece, which an interrupt cannot tear, unless there is a better one."""
        newton, space, problem = self.newton, self.space, self.problem
        as_they_are = self.found.directions is None
        objective = newton.objective_at(problem.C)
        if as_they_are and not self.growing and objective > self.found.objective:
            return
        basis = self.seen.basis(np.zeros(0, dtype=np.int64)) if space.basis is None else space.basis
        self.found = Found(
            basis,
            *space.coefficients(newton.best.found.u),
            objective,
            newton.bound,
            newton.loss() / newton.problem.C1,
            newton.training_error(),
            self.directions,
        )

    def _model(self) -> KernelExpansion:
        found = self.found
        basis = found.basis if found.directions is None else found.directions.lifted(found.basis)
        return model_over(self.kernel_rows, basis, found.coef, found.intercept)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best model over the basis."""
        found, problem, model = self.found, self.problem, self._model()
        if self.converged:
            warn_of_a_gap("CPSP", found.objective, found.bound, self.tolerances[1], self.kernel_rows.dtype, 3)
        counters = {"kernel_evals": self.kernel_rows.counter.n, "bound_in_basis": found.bound}
        state = PursuitState((), problem.task, problem.examples, True, model)
        bound = None if self.lower_bound is None else min(self.lower_bound, found.objective)
        return Fit(model, status, found.objective, bound, history, counters, state)


class OverAllRows(Run):
    """A run on a sample, followed by solving for the coefficients over all rows, with their objective and bound.

    Objectives and bounds of the run on the sample do not hold for all rows, so they are not recorded. ``tau`` returns
    the last τ of its smoothed losses, ``state_of`` the state for a warm start from its fit and the model.
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
            model = replace(fit.model, coef=found.coef, intercept=found.intercept, dtype=rows.precision)
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
            model = replace(fit.model, dtype=rows.precision)
            objective, state = objective_of_model(self.problem, status, rows, model), self.state_of(fit, model)
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": self.kernel_rows.counter.n - evals,
            "bound_in_basis": bound,
        }
        return Fit(model, status, objective, None, history, counters, state)


# -- The closing descent: the vectors of a pursuit moved together for a few sweeps over the rows -----------------------
# A pursuit never moves a vector again once it is in the basis. A few sweeps of `solvers.learned_vectors` from there
# lower the objective and, where test rows are unlike the training rows, the error. Coefficients of vectors that nearly
# depend on each other are large and of both signs, and steps of a usual size leave them so; so the descent starts from
#
#     (K_BB + shrink · diag K_BB)⁻¹ K_BB β
#
# which is nearly the same function with small coefficients.


@dataclass(frozen=True)
class ClosingSettings:
    """Settings of how a pursuit ends; docs/experiments/subspace_pursuit.md, "The closing descent", settles them."""

    # Share of k(b, b) added to the diagonal of K_BB where coefficients are made small.
    shrink: float = 0.1
    # sweeps="auto": so many for up to ``vectors`` vectors, growing with their number, for dense rows; none for fewer
    # than ``rows`` rows, which make 1,000 steps of 512 rows.
    sweeps: int = 20
    vectors: int = 500
    rows: int = 25_600
    # sweeps="auto": none where small coefficients lose more than this share of ‖w‖², since sweeps then did not make up
    # for it; of up to so few vectors, which gain more by being moved, more than this share.
    most_lost: float = 0.4
    few_vectors: int = 200
    most_lost_of_few: float = 0.6


def n_sweeps(sweeps: int | str, problem: Problem, preimage: Any, max_basis: int) -> int:
    """Return how many sweeps a pursuit ends with; raise an error if its vectors cannot be moved by those asked for."""
    if isinstance(sweeps, str) and sweeps == "auto":
        own = problem.settings_of(ClosingSettings)
        is_worth_it = not problem.rows.is_sparse and problem.rows.n_rows >= own.rows
        if not (is_worth_it and isinstance(preimage, (FixedPoint, GradientAscent))):
            return 0
        return -(-own.sweeps * max(max_basis, own.vectors) // own.vectors)
    if isinstance(sweeps, (bool, str)) or not isinstance(sweeps, (int, np.integer)) or sweeps < 0:
        raise ValueError(f"sweeps must be an integer >= 0 or 'auto', found {sweeps!r}")
    if sweeps and isinstance(preimage, TrainingRows):
        raise ValueError(f"sweeps={sweeps!r} moves the vectors: it cannot go with preimage='training-rows'; sweeps=0")
    if sweeps and not problem.kernel.has_gradient:
        raise ValueError(f"sweeps={sweeps!r} needs a differentiable kernel, found {type(problem.kernel).__name__}")
    return int(sweeps)


def most_lost(max_basis: int, settings: ClosingSettings) -> float:
    """Return the share of ‖w‖² that the start may lose, if nobody asked for sweeps."""
    return settings.most_lost_of_few if max_basis <= settings.few_vectors else settings.most_lost


def closing_descent(
    problem: Problem, rows: KernelRows, model: KernelExpansion, sweeps: int, most_lost: float, seed: int
) -> VectorDescent | None:
    """Return a descent of ``sweeps`` sweeps, one in each step, from a model whose coefficients are made small.

    Return None if that loses more than the share ``most_lost`` of ‖w‖², or there is no vector.
    """
    if not model.n_basis:
        return None
    gram = between(rows, model.basis)
    start = replace(model, coef=small_coefficients(gram, model.coef, problem.settings_of(ClosingSettings).shrink))
    lost = start.coef - model.coef
    if np.isfinite(most_lost) and np.sum(lost * (gram @ lost)) > most_lost * np.sum(model.coef * (gram @ model.coef)):
        return None
    learning = Learning(max_basis=model.n_basis, initial=start, epochs=sweeps, finish=False)
    run = VectorDescent(replace(problem, max_iter=None, max_seconds=None, random_state=seed), learning, None)
    run.kernel_rows.counter = rows.counter
    return run


def small_coefficients(gram: Array, coef: Array, shrink: float) -> Array:
    """Return smaller coefficients (k, m) of nearly the same function, from K_BB (k, k)."""
    ridge = gram + shrink * np.diag(np.diagonal(gram))
    return solve_positive(ridge, gram @ coef)
