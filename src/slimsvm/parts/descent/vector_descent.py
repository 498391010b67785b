"""Sweeps over the rows that move basis vectors and coefficients together, and the finish over the final basis.

`solvers.learned_vectors` says which problem this solves, and how.
"""

from __future__ import annotations

import time
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slimsvm.core.clock import no_limit, present_limit
from slimsvm.kernels import KernelRows
from slimsvm.lazy import made_once
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.basis_descent import (
    Descent,
    Expansion,
    Schedule,
    StepSettings,
    basis_rate,
    loss_of_zero,
    mean_loss,
    step_sizes,
)
from slimsvm.parts.descent.batch_gradient import check_kernel
from slimsvm.parts.descent.first_basis import SampleSettings, expansion_of, learning_part, part_of
from slimsvm.parts.principal_directions import Directions, search_for
from slimsvm.parts.problem import Problem, has_smoothed_rows
from slimsvm.parts.resuming import RunState, asked_of, generator_at
from slimsvm.parts.run import Best, Fit, Run, Status, model_over, reported_objective
from slimsvm.parts.span.best_coefficients import NEWTON_TOLERANCE, best_coefficients
from slimsvm.parts.span.smoothed_newton import ConvexFinish, fit_coefficients
from slimsvm.parts.span.whitened_span import Coefficients
from slimsvm.rows import is_sparse

Array = np.ndarray


@dataclass(frozen=True)
class SweepSettings:
    """How many sweeps of how many steps "auto" means, and when they are fewer.

    docs/experiments/learned_bases.md settles the batch (512 rows, twenty sweeps where labels are noisy) and how long to
    learn. The others were chosen, not measured.
    """

    # epochs="auto": so many steps for up to 100 vectors, growing with this power of their number beyond.
    steps: int = 6000
    steps_power: float = 0.75
    # … times this for losses with two derivatives, which ask every row for more of its score (smooth_losses.md).
    smooth_steps: float = 1.6
    # … the sweeps that make them lie between these.
    fewest_epochs: int = 10
    most_epochs: int = 1000
    # batch_size="auto": examples of so many rows, or, if that is more, the number with which so many sweeps have
    # ``steps`` steps.
    batch_rows: int = 512
    batch_epochs: int = 20
    # epochs="auto" for examples of several rows: so many sweeps, or what makes so many steps if that is more.
    long_epochs: int = 80
    long_steps: int = 1000
    # The rate is too high where a sweep's objective is over so many times the best so far.
    diverged: float = 2.0
    # Of max_seconds, the share left for the finish.
    finish_share: float = 0.15
    # Fewer sweeps are planned where all would take ``hopeless`` times what is left of max_seconds after ``look_share``
    # of it, or more than is left after half of it: a limit that suffices changes nothing.
    look_share: float = 0.1
    hopeless: float = 4.0


@dataclass(eq=False, repr=False)
class Learning:
    """How vectors are learned: the parameters of `Refine`, which describes them."""

    max_basis: int = 100
    _: KW_ONLY
    initial: Any = "kmeans"
    epochs: Any = "auto"
    batch_size: Any = "auto"
    rate: float = 0.1
    learn_metric: bool = False
    metric_pull: float = 1.0
    noise: Any = "auto"
    averaging: float = 0.05
    finish: bool = True
    directions: Any = "auto"
    tol_relative: Any = "auto"


@dataclass(frozen=True)
class LearnedState:
    """The model that a fit ended with, to go on from."""

    model: KernelExpansion


class VectorDescent(Run):
    """A descent on one problem; a step is a sweep over the rows, the last one also finishes the coefficients."""

    doing = "learning vectors"
    can_go_on = True

    def __init__(
        self, problem: Problem, learning: Learning, model: KernelExpansion | None, saved: RunState | None = None
    ):
        self.whole, self.learning, self.begun = problem, learning, time.perf_counter()
        self.rng = problem.generator() if saved is None else generator_at(saved.values["drawn_by"])
        self.drawn_by = self.rng.bit_generator.state
        self.problem = problem = learning_part(problem, self.rng)
        self.settings = own = problem.settings_of(SweepSettings)
        if problem.examples is self.whole.examples:  # all rows, in memory now where they were not
            self.whole = problem
        self.kernel_rows = problem.bind()
        check_kernel(self.kernel_rows, learning.learn_metric)
        initial = learning.initial if model is None else model
        self.directions = self._directions(initial)
        self.seen = self.kernel_rows if self.directions is None else self.directions.beside(self.kernel_rows)
        self.converged = False
        self.finished: tuple[KernelExpansion, Coefficients] | None = None
        self.learned: KernelExpansion | None = None  # once the sample that it was learned from is gone
        n, batch_size = problem.examples.n_examples, learning.batch_size
        if batch_size == "auto":
            batch_size = max(-(-own.batch_rows * n // problem.examples.n_rows), -(-n * own.batch_epochs // own.steps))
        if saved is not None:
            shape = self.kernel_rows.n_features, *saved.values["shape"][1:]
            start = Expansion.zeros(shape, problem.task.n_plain)
        else:
            start = expansion_of(
                initial, learning.max_basis, problem, self.kernel_rows, self.rng, learning.learn_metric
            )
        k = len(start.coef)
        self.unit = loss_of_zero(problem)
        self.rate = basis_rate(learning.rate, k, problem.settings_of(StepSettings))
        rates = step_sizes(problem, self.kernel_rows, learning, start.basis, self.unit, self.rng, self.directions)
        if self.directions is not None:
            basis = self.directions.of_vectors(start.basis)
            start = replace(start, basis=basis, log_scale=np.zeros(basis.shape[1]))
        self.descent = Descent(problem, self.seen, start, rates, batch_size, learning.learn_metric, loss=self.unit)
        self.n_batches = -(-n // self.descent.batch_size)
        n_epochs = learning.epochs
        if n_epochs == "auto":
            steps = own.steps * max(1.0, k / 100) ** own.steps_power
            steps *= own.smooth_steps if problem.task.is_smooth else 1.0
            if problem.examples.offsets is not None:
                steps = min(steps, max(own.long_steps, own.long_epochs * self.n_batches))
            n_epochs = int(np.clip(-(-steps // self.n_batches), own.fewest_epochs, own.most_epochs))
        limit = n_epochs if problem.max_iter is None else problem.max_iter
        self.is_cut_short, n_epochs = limit < n_epochs, min(limit, n_epochs)
        self.schedule, self.n_epochs, self.n_swept = Schedule(n_epochs, learning.averaging), n_epochs, 0
        self.best, self.n_restarts = Best(self.unit, self.descent.parameters.flat.copy()), 0
        self.record: dict[str, Any] = {}
        self.first_sweep, self.is_hurried = 0.0, False
        # Where the sweeps ended, once coefficients are solved for: over which vectors, and the run that does.
        self.swept: dict[str, Any] | None = None
        self.solved_for: tuple[KernelExpansion, ConvexFinish] | None = None
        self.newton: dict[str, Any] | None = None
        if saved is not None:
            self._go_back(saved.values)

    def _directions(self, initial: Any) -> Directions | None:
        """Return the directions that vectors are learned along: none from vectors that may lie elsewhere."""
        asked = self.learning.directions
        is_elsewhere = isinstance(initial, (KernelExpansion, np.ndarray)) or is_sparse(initial)
        if isinstance(asked, str) and (is_elsewhere or self.learning.learn_metric):
            return None
        search = search_for(asked, self.learning.max_basis, self.problem)
        return None if search is None else search.find(self.kernel_rows, self.rng)

    @property
    def share_done(self) -> float:
        """Return the share of the planned work that is done; the closing coefficients take ``finish_share`` of it."""
        return (1.0 - self.settings.finish_share) * self.schedule.progress

    # -- sweeps ---------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Make a sweep, and after the last one the finish."""
        self.first_sweep = self.first_sweep or time.perf_counter()
        if not self.schedule.done:
            self.record = self._sweep()
        if self.schedule.done:
            self._finish(self.record)
        return self.record

    def _sweep(self) -> dict[str, Any]:
        factors, shares = self.schedule.sweep(self.n_batches)
        order = self.rng.permutation(self.problem.examples.n_examples)
        sweep = self.descent.sweep(order, factors, shares)
        value = sweep.loss + sweep.norm
        record: dict[str, Any] = {
            "objective": None,
            "lower_bound": None,
            "gap": None,
            "bound_in_basis": None,
            "objective_estimate": self.problem.C1 * value,
            "loss": sweep.loss,
            "training_error": sweep.error,
            "rate": self.rate * 0.5**self.n_restarts * float(factors.max()),
            "n_basis": self.descent.shape[1],
        }
        self.n_swept += 1
        self._watch(value)
        self._fit_into_time()
        return record

    def _watch(self, value: float) -> None:
        """Remember the best sweep; after one that diverged go back to it with half the rates."""
        if value <= self.settings.diverged * self.best.objective:
            self.best = self.best.or_lower(value, self.descent.parameters.flat.copy())
            return
        self.n_restarts += 1
        self.descent.set(self.best.found)
        self.descent.slow_down()

    def _fit_into_time(self) -> None:
        """Plan the sweeps that there is time for, if each takes as long as those so far, where all are too many."""
        limit, own = present_limit(), self.settings
        if limit is None or limit.end == np.inf or self.schedule.done:
            return
        now, n_left = time.perf_counter(), self.n_epochs - self.n_swept
        whole, spent = limit.end - self.begun, now - self.begun
        room, each = (1 - own.finish_share) * whole - spent, (now - self.first_sweep) / self.n_swept
        is_early = spent < 0.5 * whole
        if not self.is_hurried and spent >= own.look_share * whole:
            self.is_hurried = n_left * each > (own.hopeless if is_early else 1.0) * room
        if self.is_hurried:
            limit.note()
            self.schedule.left = int(np.clip(room / max(each, 1e-9), 1, n_left))

    # -- the end --------------------------------------------------------------------------------------------------

    def _finish(self, record: dict[str, Any]) -> None:
        """Solve for the coefficients of the learned basis; a descent cut short by max_iter has not converged."""
        self.converged = not self.is_cut_short
        if self.learning.finish:
            self._pause()
            model, rows = self._learned()
            newton, tau = self.newton, None
            if newton is None:
                model, tau = self._near(model, rows)
            model, rows = self._among_all(model, rows)
            self.swept = self._where()
            if self.problem is not self.whole:
                self._leave_sample(model, rows)
            problem = replace(self.whole, kernel=model.kernel)

            def after_step(finish: ConvexFinish) -> None:
                self.solved_for = model, finish
                self._pause()

            options: Any = {"saved": newton, "after_step": after_step}
            tol_relative = self.learning.tol_relative
            found = best_coefficients(problem, rows, model, tol_relative, self.rng, tau, **options)
            self.finished = replace(model, coef=found.coef, intercept=found.intercept, plain=found.plain), found
            record |= {"objective": found.objective, "bound_in_basis": found.bound_in_basis}

    def _learned(self) -> tuple[KernelExpansion, KernelRows]:
        """Return the model as it has been learned so far, and the rows seen through its kernel."""
        if self.learned is not None:
            return self.learned, self.kernel_rows
        model, rows = self._present(), self.kernel_rows
        if model.kernel != rows.kernel:
            rows = self._bound(replace(self.problem, kernel=model.kernel), rows)
        return replace(model, dtype=rows.precision), rows

    def _present(self) -> KernelExpansion:
        """Return the model of the descent."""
        learned = self.descent.expansion(self.descent.adam.mean if self.schedule.n_averaged else None)
        if self.directions is not None:
            basis = self.directions.lifted(learned.basis)
            learned = replace(learned, basis=basis, log_scale=np.zeros(basis.shape[1]))
        model = model_over(self.kernel_rows, learned.basis, learned.coef, learned.intercept, learned.plain)
        return model if self.directions is not None else replace(model, kernel=self.descent.kernel(learned.log_scale))

    def _near(self, model: KernelExpansion, rows: KernelRows) -> tuple[KernelExpansion, float | None]:
        """Return the model with the best coefficients for the sample that it was learned from, and their last τ.

        Both are near those for all rows, whose passes take longer.
        """
        problem = replace(self.problem, kernel=model.kernel)
        if self.problem is self.whole or not has_smoothed_rows(problem):
            return model, None
        tau, own = None, problem.settings_of(SampleSettings)
        for n_rows in (own.near_rows, own.most_rows):
            few = part_of(problem, n_rows, self.rng)
            seen = rows if few is problem else self._bound(few, rows)
            # Kernel values of all these rows would take more memory than a pass over all others does.
            few = replace(few, memory_limit=few.memory_limit // 4)
            start = model.coef, model.intercept
            found = fit_coefficients(few, seen, model.basis, start, NEWTON_TOLERANCE, rng=self.rng, tau=tau)
            model, tau = replace(model, coef=found.coef, intercept=found.intercept), found.tau
        return model, tau

    def _among_all(self, model: KernelExpansion, rows: KernelRows) -> tuple[KernelExpansion, KernelRows]:
        """Return a model, and all rows seen through its kernel, where it was learned from a sample of them."""
        if self.problem is self.whole:
            return model, rows
        rows = self._bound(replace(self.whole, kernel=model.kernel), rows)
        return replace(model, dtype=rows.precision), rows

    def _leave_sample(self, model: KernelExpansion, rows: KernelRows) -> None:
        """Go on with all rows, and let go of the memory that the sample takes."""
        self.learned, self.problem, self.kernel_rows = model, self.whole, rows
        self.seen = rows
        del self.descent

    @staticmethod
    def _bound(problem: Problem, like: KernelRows) -> KernelRows:
        """Return the rows of a problem, whose kernel values are counted with others."""
        rows = problem.bind()
        rows.counter = like.counter
        return rows

    # -- where it is ----------------------------------------------------------------------------------------------

    def _pause(self) -> None:
        if self.between is not None:
            with no_limit():
                self.between()

    def _where(self) -> dict[str, Any]:
        """Return everything that `_go_back` needs between two sweeps."""
        return {
            "drawn_by": self.drawn_by,
            "shape": list(self.descent.shape),
            "descent": self.descent.saved_state(),
            "schedule": self.schedule.saved_state(),
            "counts": [self.n_swept, self.n_restarts],
            "best": np.array([self.best.objective]),
            "best_found": self.best.found,
            "record": self.record,
            "random": self.rng.bit_generator.state,
            "newton": None,
        }

    def _go_back(self, values: dict[str, Any]) -> None:
        """Go to where another run was."""
        self.descent.go_back(values["descent"])
        self.schedule.go_back(values["schedule"])
        self.n_swept, self.n_restarts = values["counts"]
        self.best = Best(float(values["best"][0]), values["best_found"])
        self.record, self.newton = values["record"], values["newton"]
        self.rng = generator_at(values["random"])

    @made_once
    def _asked(self) -> dict[str, Any]:
        return asked_of(self.whole, "Refine", vars(self.learning))

    def so_far(self) -> Fit:
        """Return the model as it is, whose objective nobody has computed, and where the run is; see `Run`."""
        counters, newton = {"kernel_evals": self.kernel_rows.counter.n}, None
        if self.solved_for is not None:
            model, newton = self._best_so_far(), self.solved_for[1].saved_state()
        else:
            model = self._present()
        values = self._where() if self.swept is None else self.swept
        if newton is not None:
            values = values | {"newton": newton, "random": self.rng.bit_generator.state}
        return Fit(model, Status.STOPPED, np.nan, None, [], counters, RunState(self._asked, values))

    def _best_so_far(self) -> KernelExpansion:
        """Return the model with the best coefficients that have been solved for."""
        assert self.solved_for is not None
        model, finish = self.solved_for
        coef, intercept = finish.whole.coefficients(finish.best.found.u)
        return replace(model, coef=coef, intercept=intercept)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model with its objective over all rows."""
        evals = self.kernel_rows.counter.n
        if self.finished is not None:
            model, found = self.finished
            objective, bound = found.objective, found.bound_in_basis
        else:
            if self.solved_for is not None:
                model, rows = self._best_so_far(), self.kernel_rows
                if model.kernel != rows.kernel:
                    rows = self._bound(replace(self.whole, kernel=model.kernel), rows)
            else:
                model, rows = self._among_all(*self._learned())
            look, bound = partial(self._objective, model, rows), None
            objective = reported_objective(self.whole, status, model.n_basis, look)
        used = model.coef.any(axis=1)
        if not used.all():
            model = replace(model, basis=model.basis[used], coef=model.coef[used])
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": self.kernel_rows.counter.n - evals,
            "bound_in_basis": bound,
            "restarts": self.n_restarts,
        }
        return Fit(model, status, objective, None, history, counters, LearnedState(model))

    def _objective(self, model: KernelExpansion, rows: KernelRows) -> float:
        """Return ½‖w‖² + C Σ ω_e ℓ_e over all rows."""
        scores = rows.scores(rows.points_of(model.basis), model.coef).astype(np.float64) + model.intercept
        norm = model.norm_squared()
        if self.problem.intercept == "regularized":
            norm += float(model.intercept @ model.intercept)
        return 0.5 * norm + self.whole.C1 * mean_loss(self.whole.task, scores, model.plain, self.whole.examples)
