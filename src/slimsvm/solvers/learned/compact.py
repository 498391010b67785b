r"""As few vectors as will do: what ``max_basis="auto"`` stands for.

    hold out a part of the rows; solve for the others exactly: errors e*_i on the rows held out, k* vectors
    for k = 25, 50, 100, … k*/4:
        move k vectors, the ones before and some of the exact machine's, until the model over them is near to that
        machine; solve for their coefficients: errors e_i
        take k if mean(e − e*) + its standard error ≤ min(max_extra_error, mean(e*)/2)
        if not, learn k vectors from the rows, where that takes no longer than the exact machine, and see again
    solve for all rows exactly, move the vectors to be near to that machine, solve for their coefficients
    without such k: the exact machine of all rows

The errors are those of the same rows, so that what is chance in one is in the other too, and with few rows, where much
is chance, the standard error asks for more vectors. Up to 5,000 rows all of them are held out in turn, a quarter at a
time. Coefficients are those of the convex problem over the vectors at twice the price: few vectors need a longer w than
many for the same function. Where that takes longer than the exact machine they are those of the nearest model
(`bases.distance`), and so are those of pairs of classes. Where classes may have a score each instead of pairs, both are
tried, and the one that errs less is taken.

With ``learn_metric`` vectors are learned from the rows with one scale per feature (`solvers.learned.refine`). The model
is of another kernel then, without a bound. Nothing of this asks the clock: the same ``random_state`` gives the same
model, and the search ends when it has taken ``search_factor`` times the exact machines' kernel evaluations.

Burges, "Simplified Support Vector Decision Rules", ICML 1996 (vectors moved to be near to an exact machine).

Parts: `solvers.decomposition.exact` for the exact machine, `bases.distance` for the vectors,
`solvers.in_span.low_rank` for the coefficients, `solvers.learned.trials` for the statistics.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from slimsvm.bases.distance import Distance, descend
from slimsvm.bases.preimage import get_preimage
from slimsvm.bases.reduced_set import greedy
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import EvalCounter
from slimsvm.kernels.kernel_rows import OutOfTimeError
from slimsvm.model import KernelExpansion
from slimsvm.rows import as_rows, is_sparse
from slimsvm.solvers.base import Callback, Fit, Problem, Solver, Status, exact_objective
from slimsvm.solvers.checks import Need, check_needs, check_number, check_smoothable
from slimsvm.solvers.cutting.cut_solvers import ExactCuts, ViolatedCuts
from slimsvm.solvers.decomposition.dual import DualState
from slimsvm.solvers.in_span.low_rank import LowRank, LowRankState
from slimsvm.solvers.learned.batch_gradient import check_kernel
from slimsvm.solvers.learned.machines import (
    LEARNED,
    NEAR,
    SOLVED,
    Machine,
    exact_solver,
    in_one,
    machine_problem,
    measured_by,
)
from slimsvm.solvers.learned.refine import Refine, expected_evals
from slimsvm.solvers.learned.trials import (
    LAST_SHARE,
    Trial,
    allowed_error,
    is_hopeless,
    paired,
    parts,
    row_errors,
    sizes_for,
    told,
)
from slimsvm.tasks import Task, losses

Array = np.ndarray

# The most rows the exact machine is asked of while searching, and the fewest rows there is a search for.
MAX_REFERENCE, LEAST_ROWS = 100_000, 10
# The exact machine of a part is solved to REFERENCE_TOL times ``tol``: a gap of about a hundredth.
REFERENCE_TOL = 10
# Rows up to which an exact solution takes the place of few vectors that do not do; sampled cuts above.
MAX_EXACT_ROWS = 300_000
# The exact machine's vectors are taken to grow with this power of the rows.
GROWTH = 0.7
# Steps of L-BFGS on the first vectors, and whenever some more join them.
FIRST_STEPS, MORE_STEPS = 30, 15
# … but fewer where that would take longer than the exact machine of a part, in its kernel evaluations: MOVE_COST for
# each value between a vector and one of its own, FACTOR_COST for each of k³ in the factor of a step.
MOVE_COST, FACTOR_COST = 8, 0.05
# Multiply-adds, and kernel evaluations, that take so little that nothing is spared: some tenth of a second.
QUICK_WORK, QUICK_EVALS = 2e9, 2e7
# Functions of more pairs of classes than this are moved towards by as many random sums of them.
SKETCH = 16
# Coefficients are solved for at this many times the price C.
PRICE = 2.0
# Gap of the coefficients in trials, as a share of the objective.
TRIAL_TOL = 1e-2
# Passes of Newton's method, for one output and for several classes, that its time is estimated from, what one kernel
# value costs beside its features, and how many times as long as an exact machine the method may take.
NEWTON_PASSES, CLASS_PASSES, VALUE_COST, NEWTON_SHARE = 10, 30, 40, 6
# Kernel evaluations of vectors that are learned from the rows, at most, in those of the exact machines of the parts.
LEARN_SHARE = 1
# Sparse rows of more features than this have their vectors found one by one, not moved: as preimages up to
# MAX_PREIMAGES vectors (dense ones), beyond among the rows.
MAX_SPARSE_FEATURES, MAX_PREIMAGES = 1000, 50
# `Refine`'s rate. It falls with the root of the number of vectors, but for dense rows of at least WIDE features only up
# to STEADY_VECTORS vectors.
RATE, WIDE, STEADY_VECTORS = 0.1, 200, 49
# Of max_seconds, the shares of the exact machines of parts, and of these and the search together.
REFERENCE_SHARE, SEARCH_SHARE = 0.4, 0.7


@dataclass(frozen=True)
class CompactState:
    """The number of vectors that a fit tried last, to go on from (None: it ended with the exact machine)."""

    size: int | None


NEEDS = (
    Need(
        lambda problem: (
            bool(problem.task.class_pairs())
            or (problem.task.is_smoothable and (problem.task.has_class_scores or problem.task.has_targets))
        ),
        "Compact looks for few vectors for two classes, several or regression, found {task}",
    ),
    Need(
        lambda problem: problem.kernel.has_features,
        "Compact holds rows out and needs a kernel of rows, found kernel='precomputed'",
    ),
    Need(
        lambda problem: problem.kernel.is_inner_product,
        "Compact needs a kernel that is an inner product, found {problem.kernel!r}",
    ),
    Need(
        lambda problem: problem.rows.n_rows >= LEAST_ROWS,
        f"Compact holds out a part of the rows and needs at least {LEAST_ROWS}, found {{problem.rows.n_rows}}",
    ),
)


class Compact(Solver):
    """The smallest model that errs no more than the exact machine on rows held out; the exact one if there is none.

    For losses of classes and regression, and rows of which a copy can be made.

    Parameters
    ----------
    max_extra_error : float, default=0.0025
        How much more than the exact machine the small one may err: of classes a share of the rows, a quarter of a
        point by default; of regression a share of what the best constant errs. Half of what the exact machine errs
        bounds it, too, and a tenth of what that gains over a constant. The upper end of the estimated extra error is
        held against it, its mean plus one standard error: few rows lead to more vectors.
    search_factor : float, default=4.0
        Kernel evaluations that the search may take, in those of the exact machines it is measured by. Then it ends.
    learn_metric : bool, default=False
        Vectors are learned by `Refine` with one scale per feature, from the kernel given, whose exact machine they are
        measured by. The model's objective is then that of its own kernel, which nothing bounds from below.

    Notes
    -----
    Records in ``history_`` are those of the solvers at work, with ``stage``: "exact machine of a part", "k vectors",
    and at the end "exact machine" and "all rows". Trials are in ``validation_`` of the estimator, with ``n_basis``,
    ``multi_class`` ("ovo" where coefficients are of pairs of classes), ``error``, ``extra_error``, ``standard_error``
    and ``allowed``. The last record says in ``search`` what was tried and what came of it, which ``verbose`` prints.

    References
    ----------
    Burges: Simplified Support Vector Decision Rules, ICML 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from slimsvm import SVC
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = SVC(max_basis="auto", random_state=0).fit(X[:1000], y[:1000])
    >>> exact = SVC().fit(X[:1000], y[:1000])
    >>> bool(clf.n_basis_ < exact.n_basis_), bool(clf.score(X[1000:], y[1000:]) > 0.94)
    (True, True)
    """

    def __init__(self, max_extra_error=0.0025, search_factor=4.0, learn_metric=False):
        self.max_extra_error = max_extra_error
        self.search_factor = search_factor
        self.learn_metric = learn_metric

    @property
    def follows_libsvm(self) -> bool:  # type: ignore[override]
        """See `Solver`: so does the exact machine that few vectors are measured by."""
        return not self.learn_metric

    def solve(self, problem: Problem, state: CompactState | None = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """See `Solver.solve`."""
        if state is not None and not isinstance(state, CompactState):
            raise ValueError(f"Compact can only be warm-started from a Compact fit, found {type(state).__name__}")
        check_number("max_extra_error", self.max_extra_error, "a number >= 0")
        check_number("search_factor", self.search_factor, "a positive number", positive=True)
        check_needs("Compact", problem, *NEEDS)
        if self.learn_metric:
            check_smoothable(problem)
            check_kernel(problem.bind(), self.learn_metric)
        with one_blas_thread():
            return _Search(problem, self, state, tuple(callbacks)).run()


class _CutShortError(Exception):
    """A solver did not come to its end."""

    def __init__(self, status: Status):
        super().__init__(str(status))
        self.status = status


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


class _Search:
    """One search on one problem."""

    def __init__(self, problem: Problem, solver: Compact, state: CompactState | None, callbacks: tuple[Callback, ...]):
        self.problem, self.solver, self.callbacks = problem, solver, callbacks
        self.known = None if state is None else state.size
        self.begun, self.rng = time.perf_counter(), problem.generator()
        self.history: list[dict[str, Any]] = []
        self.counter = EvalCounter()
        self.trials, self.parts = list[Trial](), list[Part]()
        self.best: tuple[Trial, KernelExpansion, Machine] | None = None
        self.search, self.size, self.n_last = "", 0, 0

    def run(self) -> Fit:
        """The model of the fewest vectors that will do, or the exact one."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                self._measure()
                self._try_sizes()
            if self.best is not None and self.best[0].will_do:
                return self._small(*self.best)
        except _CutShortError as end:
            return self._cut_short(end.status)
        except OutOfTimeError:
            return self._cut_short(Status.TIME_LIMIT)
        except KeyboardInterrupt:
            if not self.parts:
                raise
            return self._cut_short(Status.INTERRUPTED)
        self.search += ": none does, all rows are solved exactly"
        return self._end(self._exact_of_all(self.problem.task))

    # -- the exact machines of parts -------------------------------------------------------------------------------

    def _measure(self) -> None:
        """Solve for the rows that are not held out, and note the errors on those that are."""
        labels, weights = self.problem.examples.labels, self.problem.examples.weights
        splits = parts(labels, self.problem.task.has_targets, self.rng)
        for number, (training, held) in enumerate(splits):
            if len(training) > MAX_REFERENCE:
                training = np.sort(self.rng.choice(training, MAX_REFERENCE, replace=False))
            part = self._some(training)
            of = f" {number + 1} of {len(splits)}" if len(splits) > 1 else ""
            stage, share = "exact machine of a part" + of, REFERENCE_SHARE / (len(splits) - REFERENCE_SHARE * number)
            fit = self._solve(exact_solver(part.task), replace(part, tol=REFERENCE_TOL * part.tol), stage, share)
            rows = self.problem.rows.take(held, self.problem.rows.exact_dtype)
            found = Part(training, part, rows, labels[held], weights[held], fit, np.zeros(0))
            self.parts.append(found)
            self._heed(fit)
            found.errors = self._errors(part.task, fit.model, found)
        held_weights = np.concatenate([part.weights for part in self.parts])
        self.error = float(np.average(np.concatenate([part.errors for part in self.parts]), weights=held_weights))
        self.history[-1]["held_out_error"] = self.error
        self.allowed = allowed_error(self.error, self.solver.max_extra_error, self.problem)
        self.exact_evals = self.counter.n

    def _some(self, index: Array) -> Problem:
        """The exact machine's problem of some of the rows, at the same price of one row."""
        problem = self.problem
        rows = as_rows(problem.rows.take(index, problem.rows.exact_dtype))
        part = replace(problem, rows=rows, examples=problem.examples.take(index))
        # Trials need not be solved to the many digits that few rows mean otherwise.
        return machine_problem(replace(part, precision="float64") if part.is_small else part, measured_by(problem.task))

    def _errors(self, task: Task, model: KernelExpansion, part: Part) -> Array:
        """Errors of a model on the rows held out."""
        scores = model.scores(part.held, self.problem.n_jobs)
        self.counter.add(len(scores) * model.n_basis)
        return row_errors(task, scores, part.labels)

    # -- trials ----------------------------------------------------------------------------------------------------

    def _try_sizes(self) -> None:
        """Try more and more vectors until they do, or the search has taken what it may."""
        least = min(part.exact.model.n_basis for part in self.parts)
        self.search = told(self.trials, least, self.error, self.allowed)
        most = (1.0 + self.solver.search_factor) * self.exact_evals
        share = len(self.parts[0].index) / self.problem.rows.n_rows
        sizes = sizes_for(least * share**-GROWTH)
        for k in sizes:
            if self.known is not None and not self.trials and k < min(self.known, sizes[-1]):
                continue
            if self.counter.n > most or not self._machines(k) or self._is_hopeless(sizes[-1]):
                break
            before, self.size = len(self.trials), k
            self._try(k)
            self.n_last = len(self.trials) - before
            self.search = told(self.trials, least, self.error, self.allowed)
            if self.best is not None and self.best[0].will_do:
                break

    def _is_hopeless(self, size: int) -> bool:
        """Whether no kind of model that was tried last is expected to do with ``size`` vectors."""
        tried: dict[tuple, list[Trial]] = {}
        for trial in self.trials:
            tried.setdefault((trial.vectors, trial.multi_class), []).append(trial)
        kinds = [found for found in tried.values() if found[-1] in self.trials[-self.n_last :]]
        return bool(kinds) and all(len(found) > 1 and is_hopeless(found[-2], found[-1], size) for found in kinds)

    def _try(self, k: int) -> None:
        """Try k vectors with every kind of coefficients."""
        if not self.solver.learn_metric:
            for part in self.parts:
                if part.distance is None:
                    part.distance = self._distance(part.exact.model, SKETCH)
                part.basis = self._moved(part.distance, part.basis, k)
        exact, weights = (
            np.concatenate([getattr(part, name) for part in self.parts]) for name in ("errors", "weights")
        )
        for machine in [*self._machines(k), *self._learned(k)]:
            if machine.way == LEARNED and self.best is not None and self.best[0].will_do:
                break
            models = [self._model(machine, part, k) for part in self.parts]
            errors = [self._errors(machine.task, model, part) for model, part in zip(models, self.parts)]
            extra, deviation = paired(np.concatenate(errors) - exact, weights)
            name = "ovo" if machine.task.class_pairs() else "crammer-singer" if machine.task.n_outputs > 1 else None
            vectors = LEARNED if machine.way == LEARNED else "moved"
            trial = Trial(models[0].n_basis, vectors, name, self.error + extra, extra, deviation, self.allowed)
            self.trials.append(trial)
            if self.best is None or trial.is_better_than(self.best[0]):
                self.best = trial, models[0], machine
            self._note(f"{k} vectors", trial.n_basis, trial.error)
        limit = self.problem.max_seconds
        if limit is not None and time.perf_counter() - self.begun > SEARCH_SHARE * limit:
            raise OutOfTimeError

    def _machines(self, k: int) -> list[Machine]:
        """The kinds of coefficients that k moved vectors are tried with."""
        task, part = self.problem.task, self.parts[0].problem
        if self.solver.learn_metric:
            return [Machine(task, LEARNED)]
        n, found, one = part.rows.n_rows, list[Machine](), in_one(task)
        if one is not None:
            passes = NEWTON_PASSES if one.n_outputs == 1 else CLASS_PASSES
            newton = passes * n * one.n_outputs * float(k) ** 2
            exact = self.exact_evals / len(self.parts) * (VALUE_COST + part.rows.n_stored / n)
            if newton <= max(QUICK_WORK, NEWTON_SHARE * exact):
                found.append(Machine(one, SOLVED))
        if part.task == task and (task.class_pairs() or not found):
            found.append(Machine(task, NEAR))
        return found

    def _learned(self, k: int) -> list[Machine]:
        """Vectors learned from the rows, where that takes at most LEARN_SHARE times what the exact machines took."""
        task = in_one(self.problem.task)
        may_learn = self.problem.kernel.has_gradient and not is_text(self.parts[0].exact.model.basis)
        if task is None or self.solver.learn_metric or not may_learn or not task.is_compiled:
            return []
        evals = sum(expected_evals(part.problem.rows.n_rows, k) for part in self.parts)
        return [Machine(task, LEARNED)] if evals <= LEARN_SHARE * self.exact_evals else []

    def _model(self, machine: Machine, part: Part, k: int) -> KernelExpansion:
        """Vectors and coefficients of a part."""
        if machine.way == LEARNED:
            return self._heed(self._refined(machine, part.problem, f"{k} vectors", k)).model
        if machine.way == SOLVED:
            return self._heed(self._solved(machine, part.problem, part.basis, f"{k} vectors")).model
        return self._near(part.exact.model, part.basis)

    def _refined(self, machine: Machine, problem: Problem, stage: str, k: int) -> Fit:
        """Vectors and coefficients learned from the rows."""
        problem, learn_metric = machine_problem(problem, machine.task), self.solver.learn_metric
        is_steady = problem.rows.n_features >= WIDE and not problem.rows.is_sparse and not learn_metric
        rate = RATE * max(1.0, k / STEADY_VECTORS) ** 0.5 if is_steady else RATE
        return self._solve(Refine(k, rate=rate, learn_metric=learn_metric), problem, stage, 1.0)

    def _solved(self, machine: Machine, problem: Problem, basis: Any, stage: str, tol: float = TRIAL_TOL) -> Fit:
        """The convex problem in the coefficients of given vectors."""
        problem = machine_problem(replace(problem, C=PRICE * problem.C), machine.task)
        return self._solve(LowRank(basis.shape[0], basis, tol), problem, stage, 1.0)

    def _near(self, exact: KernelExpansion, basis: Any) -> KernelExpansion:
        """The model over given vectors that is nearest to an exact one."""
        coef = self._distance(exact).coefficients(basis)
        return replace(exact, basis=basis, coef=coef)

    def _moved(self, distance: Distance, basis: Any, k: int) -> Any:
        """Vectors near to an exact machine, k of them: those there are and more of its own, moved."""
        kernel, V = self.problem.kernel, distance.model.basis
        if is_text(V) or not kernel.has_gradient:
            is_preimage = is_text(V) and kernel.is_gaussian and k <= MAX_PREIMAGES
            way = get_preimage("fixed-point" if is_preimage else "training-rows")
            return greedy(distance.own.kernel_rows, distance.own.target, k, way, self.rng)
        work = k * (MOVE_COST * float(V.shape[0]) + FACTOR_COST * float(k) ** 2)
        room = max(QUICK_EVALS, self.exact_evals / len(self.parts))
        steps = min(int(room / work), FIRST_STEPS if basis is None else MORE_STEPS)
        have = 0 if basis is None else basis.shape[0]
        more: Any = V[np.sort(self.rng.choice(V.shape[0], max(0, min(k, V.shape[0]) - have), replace=False))]
        more = more.toarray() if is_sparse(more) else more
        basis = np.asarray(more if basis is None else np.vstack([basis, more]), dtype=np.float64)
        return descend(distance, basis, steps)[0] if steps else basis

    def _distance(self, exact: KernelExpansion, n_outputs: int | None = None) -> Distance:
        """How far models are from an exact one, or from some random sums of its functions."""
        m = exact.coef.shape[1]
        if n_outputs is not None and m > n_outputs:
            mixed = exact.coef @ (np.random.default_rng(0).normal(size=(m, n_outputs)) / np.sqrt(n_outputs))
            exact = replace(exact, coef=mixed, intercept=np.zeros(n_outputs))
        distance = Distance(
            exact, None, self.problem.n_jobs, self.counter, np.float64 if n_outputs is None else np.float32
        )
        if self.problem.max_seconds is not None:
            distance.own.kernel_rows.end = self.begun + self.problem.max_seconds
        return distance

    # -- the end ---------------------------------------------------------------------------------------------------

    def _small(self, trial: Trial, model: KernelExpansion, machine: Machine) -> Fit:
        """The chosen number of vectors for all rows."""
        if machine.way == LEARNED:
            return self._learned_from_all(model, machine)
        problem, basis = machine_problem(self.problem, machine.task), model.basis
        exact, bound = self.parts[0].exact, None
        if problem.rows.n_rows <= MAX_REFERENCE:
            exact = self._heed(self._exact_of_all(measured_by(self.problem.task)))
            known = float(np.mean([part.exact.model.n_basis for part in self.parts]))
            growth = max(1.0, exact.model.n_basis / known) ** 0.5
            k = max(basis.shape[0], round(min(basis.shape[0] * growth, LAST_SHARE * exact.model.n_basis)))
            basis = self._moved(self._distance(exact.model, SKETCH), None if is_sparse(basis) else basis, k)
            bound = exact.lower_bound if measured_by(self.problem.task) == machine.task else None
        if machine.way == SOLVED:
            fit = self._solved(machine, self.problem, basis, "all rows", LowRank().tol_relative)
        else:
            fit = Fit(self._near(exact.model, basis), Status.CONVERGED, 0.0, None, [], {})
            self._note("all rows", fit.model.n_basis, None)
        rows = problem.bind()
        fit.objective = exact_objective(problem, rows, fit.model)
        fit.counters |= {"bound_in_basis": None, "report_kernel_evals": rows.counter.n}
        fit.lower_bound, fit.solved, fit.basis_rows = bound, problem, None
        return self._end(fit, CompactState(self.size))

    def _learned_from_all(self, model: KernelExpansion, machine: Machine) -> Fit:
        """Vectors learned from all rows; in a metric of their own, those of the part with coefficients for all."""
        problem = replace(machine_problem(self.problem, machine.task), kernel=model.kernel)
        if self.solver.learn_metric:
            seed = LowRankState(model, None)
            fit = self._solve(LowRank(model.n_basis), problem, "all rows", 1.0, seed)
        else:
            fit = self._refined(machine, problem, "all rows", self.size)
            part = self.parts[0].problem
            # Rows that are added at the same price can only raise the least objective.
            fit.lower_bound = self.parts[0].exact.lower_bound if part.task == machine.task else None
        fit.solved, fit.basis_rows = problem, None
        return self._end(fit, CompactState(self.size))

    def _exact_of_all(self, task: Task) -> Fit:
        """All rows solved exactly, by cuts that are sampled where there are very many rows."""
        problem, solver, state = machine_problem(self.problem, task), exact_solver(task), None
        part = self.parts[0]
        if isinstance(solver, ExactCuts) and problem.rows.n_rows > MAX_EXACT_ROWS:
            solver = ViolatedCuts()
        elif isinstance(part.exact.state, DualState) and part.problem.task == task:
            v = np.zeros(problem.rows.n_rows)
            v[part.index] = part.exact.state.v
            state = DualState(v, problem.C, problem.task, problem.examples)
        return self._solve(solver, problem, "exact machine", 1.0, state)

    def _cut_short(self, status: Status) -> Fit:
        """The best of few vectors so far, or the exact machine of a part: what there is when a search is cut short."""
        part = self.parts[0]
        if self.best is not None:
            trial, model, machine = self.best
            problem = replace(machine_problem(self.problem, machine.task), kernel=model.kernel)
            fit = Fit(model, status, 0.0, None, [], {})
            what = f"{trial.n_basis} vectors, which err {trial.extra_error:.2g} more than the exact machine"
        else:
            fit, problem = part.exact, machine_problem(self.problem, part.problem.task)
            what = f"the exact machine of {len(part.index)} of the rows"
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            message = f"the search for few vectors ended early ({status}): {what} is returned"
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        if self.best is not None:
            rows = problem.bind()
            fit.objective = exact_objective(problem, rows, fit.model)
            fit.counters["report_kernel_evals"] = rows.counter.n
        else:
            fit.objective += self._losses_beside(part, problem)
        fit.status = status
        if fit.basis_rows is not None:
            fit.basis_rows = part.index[fit.basis_rows]
        if fit.lower_bound is not None:
            fit.lower_bound = min(fit.lower_bound, fit.objective)
        fit.solved = problem
        return self._end(fit)

    def _losses_beside(self, part: Part, problem: Problem) -> float:
        """What the rows that a part does not have add to its machine's objective."""
        others = np.setdiff1d(np.arange(problem.rows.n_rows), part.index)
        block, examples = problem.rows.take(others, problem.rows.exact_dtype), problem.examples.take(others)
        scores, plain = part.exact.model.scores(block, problem.n_jobs), np.zeros(0)
        self.counter.add(len(others) * part.exact.model.n_basis)
        augmented = problem.task.augment(scores, plain, examples)
        return problem.C * float(examples.weights @ losses(augmented, scores, plain, examples))

    def _end(self, fit: Fit, state: CompactState | None = None) -> Fit:
        """The fit that counts, with all that was done for it."""
        if self.history:
            self.history[-1]["search"] = self.search
        if self.problem.verbose and self.search:
            tqdm.write(self.search, file=sys.stderr)
        fit.state = CompactState(None) if state is None else state
        fit.history, fit.counters["kernel_evals"] = self.history, self.counter.n
        fit.counters["seconds"] = time.perf_counter() - self.begun
        fit.trials = [trial.as_dict() for trial in self.trials]
        if fit.lower_bound is not None:
            fit.lower_bound = min(fit.lower_bound, fit.objective)
        return fit

    # -- parts of all stages ---------------------------------------------------------------------------------------

    def _solve(self, solver: Solver, problem: Problem, stage: str, share: float, state: Any = None) -> Fit:
        """One solver's fit, in a share of the time that is left; its records join the history."""
        seed, begun, before = int(self.rng.integers(2**31 - 1)), time.perf_counter() - self.begun, self.counter.n
        if problem.max_seconds is not None:
            problem = replace(problem, max_seconds=max(1e-3, share * (problem.max_seconds - begun)))

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

    @staticmethod
    def _heed(fit: Fit) -> Fit:
        """The fit, if it came to its end."""
        if fit.status is not Status.CONVERGED:
            raise _CutShortError(fit.status)
        return fit

    def _note(self, stage: str, k: int, error: float | None) -> None:
        """A record of vectors that were moved."""
        record: dict[str, Any] = dict.fromkeys(("objective", "lower_bound", "gap"))
        record |= {"stage": stage, "n_basis": k, "kernel_evals": self.counter.n}
        record["seconds"] = time.perf_counter() - self.begun
        if error is not None:
            record["held_out_error"] = error
        self.history.append(record)
        if any([callback(record) for callback in self.callbacks]):
            raise _CutShortError(Status.STOPPED)


def is_text(basis: Any) -> bool:
    """Whether vectors are sparse with many features."""
    return is_sparse(basis) and basis.shape[1] > MAX_SPARSE_FEATURES
