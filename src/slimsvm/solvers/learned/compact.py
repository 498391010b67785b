r"""As few vectors as do as well as the exact SVM: what ``solver="auto"`` is without a cap.

    hold out a fifth of the rows; solve for the others exactly: error e* on the rows held out, k* vectors
    for k = 25, 100, 400, 1600, … while k*/14 is well above, then k*/14 and k*/9:
        learn k vectors from the same rows; error e
        stop if e − e* is within the slack; give up if it does not fall as fast as it must
        of the two largest k: stop too if it is with coefficients solved for at 2C
    solve for the coefficients of the learned vectors over all rows, at that price
    without such vectors thin the exact SVM out to 0.24 k*; if that will do, once more with all rows
    otherwise solve exactly for all rows, from the dual point of the first solution

The slack is a twentieth of what the exact SVM gains over a constant answer; for classes at most 0.3 points,
and at most a quarter of e* unless that is under a twentieth of a point; for regression at most a hundredth of e*. The
errors are those of the same rows, so that what is chance in one is in the other too. The search is given up when, at
the rate of the last two sizes, the excess would still be over two and a half times the slack at k*/9; where it would
be over one and a half times at k*/14, that size is passed over. At twice the price since few vectors need a longer w
than many for the same function; the objective is at C all the same.

The exact solution of a part bounds the problem from below: rows that are added at the same price can only raise the
minimum. The model thus comes with a bound on the kernel's own optimum (``lower_bound``), looser by about the loss of
the rows held out, and with one within its basis (``bound_in_basis``). With ``learn_metric`` vectors are learned with
one scale per feature, from the kernel of the exact SVM: the model is of another kernel then, without the first bound.
Nothing of this asks the clock: the same ``random_state`` gives the same model.

Parts: `solvers.decomposition.exact` for the reference of two classes, `solvers.cutting.cut_solvers` for that of other
losses; `solvers.learned.refine` or `solvers.learned.cpsp` for the vectors, `solvers.in_span.low_rank` for the
coefficients; `solvers.learned.thinned`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from slimsvm.bases.preimage import get_preimage
from slimsvm.kernels import EvalCounter
from slimsvm.model import KernelExpansion
from slimsvm.rows import Rows, as_rows
from slimsvm.solvers.base import Callback, Fit, Problem, Solver, Status, exact_objective
from slimsvm.solvers.checks import Need, check_needs, check_smoothable
from slimsvm.solvers.cutting.cut_solvers import ExactCuts, ViolatedCuts
from slimsvm.solvers.decomposition.dual import DualState
from slimsvm.solvers.decomposition.exact import Exact
from slimsvm.solvers.in_span.low_rank import LowRank, LowRankState
from slimsvm.solvers.learned.batch_gradient import check_kernel
from slimsvm.solvers.learned.cpsp import CPSP
from slimsvm.solvers.learned.refine import Refine
from slimsvm.solvers.learned.thinned import PRICE, Projection, Thinned, can_thin, projected
from slimsvm.tasks import Examples, Task

Array = np.ndarray

# The most rows the exact SVM is asked of.
MAX_REFERENCE = 100_000
# Ways to find vectors, and the fewest rows of which one is held out.
VECTORS, LEAST_ROWS = ("refine", "fixed-point", "training-rows"), 3
# Where none of the sizes does, the exact SVM of four fifths of the rows is thinned out to the share THIN_SHARE of its
# vectors: a fifth of those that all rows would have. That must leave LEAST_THINNED vectors, and the mere projection
# onto them may exceed the exact SVM's error by at most PROMISING times the slack. Wide rows are not thinned: their
# sweeps take longer than solving exactly.
THIN_SHARE, LEAST_THINNED, PROMISING = 0.24, 1000, 15.0
# `Refine`'s rate. It falls with the root of the number of vectors, but for dense rows of at least WIDE features with
# one gamma only up to STEADY_VECTORS vectors.
RATE, WIDE, STEADY_VECTORS = 0.1, 200, 49
# The reference of two classes is solved to REFERENCE_TOL times ``tol``: a gap of about a hundredth, as exact cuts have.
REFERENCE_TOL = 10
# Rows up to which an exact solution takes the place of learned vectors that do not do; sampled cuts above.
MAX_EXACT_ROWS = 300_000
# Of max_seconds, the shares of the exact SVM and of each size.
REFERENCE_SHARE, SIZE_SHARE = 0.4, 0.5
# One row in EVERY is held out, at most MAX_HELD rows.
EVERY, MAX_HELD = 5, 20_000
# Sizes: the first, the factor to the next, and the largest two as shares of the exact SVM's vectors.
FIRST_SIZE, FACTOR, SHARES = 25, 4, (1 / 14, 1 / 9)
# A model may err more than the exact SVM by the share GAIN_SHARE of what that gains over a constant answer. For classes
# this is capped at MAX_SLACK and at the share ERROR_SHARE of the exact SVM's error, or LEAST_SLACK if that is more; for
# regression at the share REGRESSION_SHARE of the error.
GAIN_SHARE, MAX_SLACK, ERROR_SHARE, LEAST_SLACK = 0.05, 0.003, 0.25, 0.0005
REGRESSION_SHARE = 0.01
# The search is given up where the excess expected of the largest size is over HOPELESS times what is allowed. The last
# size but one, which costs nearly as much, is passed over where that expected of it is over UNLIKELY times.
HOPELESS, UNLIKELY = 2.5, 1.5


@dataclass(frozen=True)
class CompactState:
    """The model that a fit ended with, to go on from (None: it was an exact one)."""

    model: KernelExpansion | None


LABELS = Need(
    lambda problem: problem.task.is_smoothable and (problem.task.has_class_scores or problem.task.has_targets),
    "Compact looks for few vectors for two classes, several (multi_class='crammer-singer') or regression, found {task}",
)
CUT_IN_TWO = (
    Need(
        lambda problem: problem.kernel.has_features,
        "Compact holds rows out and needs a kernel of rows, found kernel='precomputed'",
    ),
    Need(
        lambda problem: problem.rows.n_rows >= LEAST_ROWS,
        f"Compact holds out a fifth of the rows and needs at least {LEAST_ROWS}, found {{problem.rows.n_rows}}",
    ),
)


class Compact(Solver):
    """The smallest learned model that errs no more than the exact SVM on rows held out; the exact one if there is none.

    ``SVC(max_basis="auto")`` takes it with the way to vectors that suits kernel and rows. For losses that are sums over
    rows and can be smoothed, and rows of which a copy can be made.

    Parameters
    ----------
    vectors : {"refine", "fixed-point", "training-rows"}, default="refine"
        How vectors are found: by `Refine`, or by `CPSP` with one of these preimages.
    learn_metric : bool, default=False
        `Refine` learns one scale per feature with the vectors, from the kernel given, whose exact SVM they are measured
        by. The model's objective is then that of its own kernel, which nothing bounds from below.

    Notes
    -----
    Records in ``history_`` are those of the solvers at work, with ``stage``: "reference", "k vectors", and at the end
    "coefficients", "all rows" (of a thinned model) or "exact". The last record of a stage has its ``held_out_error``,
    where it was measured; the last one of all says in ``search`` what was tried and what came of it, which ``verbose``
    prints. Where the price is not C, records have no objective.
    """

    def __init__(self, vectors="refine", learn_metric=False):
        self.vectors = vectors
        self.learn_metric = learn_metric

    def learner(self, k: int, rows: Rows) -> Refine | CPSP:
        """The solver that learns k vectors of such rows."""
        if self.vectors != "refine":
            return CPSP(k, self.vectors)
        is_steady = rows.n_features >= WIDE and not rows.is_sparse and not self.learn_metric
        rate = RATE * max(1.0, k / STEADY_VECTORS) ** 0.5 if is_steady else RATE
        return Refine(k, rate=rate, learn_metric=self.learn_metric)

    def solve(self, problem: Problem, state: CompactState | None = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """See `Solver.solve`."""
        if state is not None and not isinstance(state, CompactState):
            raise ValueError(f"Compact can only be warm-started from a Compact fit, found {type(state).__name__}")
        self._check(problem)
        return _Search(problem, self, state, tuple(callbacks)).run()

    def _check(self, problem: Problem) -> None:
        """Refuse a problem that there can be no search for, before the exact SVM is solved for."""
        if self.vectors not in VECTORS:
            raise ValueError(f"vectors must be one of {', '.join(map(repr, VECTORS))}; found {self.vectors!r}")
        if self.learn_metric and self.vectors != "refine":
            raise ValueError(f"learn_metric=True needs vectors='refine', found {self.vectors!r}")
        check_needs("Compact", problem, LABELS)
        check_smoothable(problem)
        check_needs("Compact", problem, *CUT_IN_TWO)
        if self.vectors == "refine":
            check_kernel(problem.bind(), self.learn_metric)
        else:
            get_preimage(self.vectors).check(problem.kernel, problem.rows.is_sparse)


class _Search:
    """One search on one problem."""

    def __init__(self, problem: Problem, solver: Compact, state: CompactState | None, callbacks: tuple[Callback, ...]):
        self.problem, self.solver, self.callbacks = problem, solver, callbacks
        self.known = None if state is None else state.model
        self.begun, self.rng = time.perf_counter(), problem.generator()
        self.history: list[dict[str, Any]] = []
        self.n_evals = 0
        self.search, self.trials = "", list[Trial]()
        self.least = self.allowed = np.nan
        examples, rows = problem.examples, problem.rows
        training, held = parts(examples.labels, self.rng)
        self.held, self.held_examples = rows.take(held, rows.exact_dtype), examples.take(held)
        self.training, self.asked = self._some(training), training
        self.reference = self.training
        if len(training) > MAX_REFERENCE:
            self.asked = np.sort(self.rng.choice(training, MAX_REFERENCE, replace=False))
            self.reference = self._some(self.asked)

    def _some(self, index: Array) -> Problem:
        """The problem of some of the rows, at the same price of one row."""
        rows = as_rows(self.problem.rows.take(index, self.problem.rows.exact_dtype))
        return replace(self.problem, rows=rows, examples=self.problem.examples.take(index))

    def run(self) -> Fit:
        """The model of the fewest vectors that will do."""
        part, solver = self.reference, exact_solver(self.problem.task)
        if isinstance(solver, Exact):
            part = replace(part, tol=REFERENCE_TOL * part.tol)
        reference = self._solve(solver, part, "reference", REFERENCE_SHARE)
        if reference.status is not Status.CONVERGED:
            return self._stopped(reference, reference.status)
        found, status = self._attempt(self._few, reference)
        if status is not Status.CONVERGED:
            return self._stopped(reference, status)
        if found is None:
            start, status = self._attempt(self._thinned, reference)
            if status is not Status.CONVERGED:
                return self._stopped(reference, status)
            if start is not None:
                fit = self._solve(Thinned(start), self.problem, "all rows", 1.0)
                return self._end(fit, reference.lower_bound)
            self.search += ": none does, all rows are solved exactly"
            return self._end(self._whole(solver, reference), None)
        if not found.n_basis:
            self.search += ": none are needed, all rows are solved exactly"
            return self._end(self._whole(solver, reference), None)
        fit = self._coefficients(found, self.problem, "coefficients", 1.0)
        return self._end(fit, None if self.solver.learn_metric else reference.lower_bound)

    def _coefficients(self, model: KernelExpansion, problem: Problem, stage: str, share: float) -> Fit:
        """The model with coefficients for these rows, at the price of the last trial; its objective is at C."""
        problem, price = replace(problem, kernel=model.kernel), self.trials[-1].price
        priced = replace(problem, C=price * problem.C)
        fit = self._solve(LowRank(model.n_basis), priced, stage, share, LowRankState(model, None))
        if price != 1.0:
            rows = problem.bind()
            fit.objective = exact_objective(problem, rows, fit.model)
            fit.counters |= {"bound_in_basis": None, "report_kernel_evals": rows.counter.n}
        return fit

    def _whole(self, solver: Solver, reference: Fit) -> Fit:
        """All rows solved exactly, by cuts that are sampled where there are very many rows."""
        problem, state = self.problem, None
        if problem.rows.n_rows > MAX_EXACT_ROWS:
            solver = ViolatedCuts()
        elif isinstance(reference.state, DualState):
            v = np.zeros(problem.rows.n_rows)
            v[self.asked] = reference.state.v
            state = DualState(v, problem.C, problem.task, problem.examples)
        return self._solve(solver, problem, "exact", 1.0, state)

    def _attempt(self, search: Callable[[Fit], tuple[Any, Status]], reference: Fit) -> tuple[Any, Status]:
        """What a part of the search finds; a warning says if it did not come to its end."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found, status = search(reference)
        except KeyboardInterrupt:  # between two solvers, or before the first step of one
            found, status = None, Status.INTERRUPTED
        if status not in (Status.CONVERGED, Status.STOPPED):
            n = self.reference.rows.n_rows
            message = f"the search for few vectors ended early ({status}): the exact SVM of {n} of the rows is returned"
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        return found, status

    def _few(self, reference: Fit) -> tuple[KernelExpansion | None, Status]:
        """A model of few vectors that will do, or None, and how the last attempt ended."""
        self.least = least = self._noted(self._error(reference.model))
        self.allowed = allowed = slack(least, self.problem, self.held_examples)
        sizes, state = sizes_for(reference.model.n_basis), None
        if self.known is not None and self.known.n_basis <= sizes[-1]:
            sizes = [k for k in sizes if k >= self.known.n_basis]
        trials = self.trials
        for k in sizes:
            if hopeless(trials, least, HOPELESS * allowed, sizes[-1]):
                break
            if k == sizes[-2] and hopeless(trials, least, UNLIKELY * allowed, k):
                continue
            solver = self.solver.learner(k, self.training.rows)
            if not trials and self.known is not None and self.known.n_basis <= k and isinstance(solver, Refine):
                solver.set_params(initial=self.known)
            fit = self._solve(solver, self.training, f"{k} vectors", SIZE_SHARE, state)
            if fit.status is not Status.CONVERGED:
                return None, fit.status
            state = fit.state if isinstance(solver, CPSP) else None  # its vectors are kept, and more of them sought
            if self._will_do(fit, reference):
                return fit.model, fit.status
            if k in sizes[-2:] and fit.model.n_basis:
                self.trials[-1] = replace(self.trials[-1], price=PRICE)
                fit = self._coefficients(fit.model, self.training, f"{k} vectors", SIZE_SHARE)
                if fit.status is not Status.CONVERGED:
                    return None, fit.status
                if self._will_do(fit, reference, PRICE):
                    return fit.model, fit.status
        return None, Status.CONVERGED

    def _will_do(self, fit: Fit, reference: Fit, price: float = 1.0) -> bool:
        """Whether a model errs no more than it may; the trial is noted, that of the same vectors forgotten."""
        if price != 1.0:
            self.trials.pop()
        self.trials.append(Trial(fit.model.n_basis, self._noted(self._error(fit.model)), price))
        self.search = told(Trial(reference.model.n_basis, self.least), self.trials, self.allowed)
        return self.trials[-1].error - self.least <= self.allowed

    def _thinned(self, reference: Fit) -> tuple[Projection | None, Status]:
        """Where a descent to a model that will do begins with a share of the exact SVM's vectors, or None."""
        k, part = int(THIN_SHARE * reference.model.n_basis), self.training
        may = self.solver.vectors == "refine" and not self.solver.learn_metric and can_thin(part, k)
        if not may or k < LEAST_THINNED or part.rows.n_features >= WIDE:
            return None, Status.CONVERGED
        counter = EvalCounter()
        start = projected(reference.model, k, self.rng, counter, part.n_jobs)
        self.n_evals += counter.n
        if self._error(start.model) - self.least > PROMISING * self.allowed:
            return None, Status.CONVERGED
        fit = self._solve(Thinned(start), part, f"{start.model.n_basis} vectors", SIZE_SHARE)
        if fit.status is not Status.CONVERGED:
            return None, fit.status
        return (start if self._will_do(fit, reference) else None), fit.status

    def _solve(self, solver: Solver, problem: Problem, stage: str, share: float, state: Any = None) -> Fit:
        """One solver's fit, in a share of the time that is left; its records join the history."""
        seed, begun, before = int(self.rng.integers(2**31 - 1)), time.perf_counter() - self.begun, self.n_evals
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
        self.n_evals += fit.counters["kernel_evals"]
        return fit

    def _error(self, model: KernelExpansion) -> float:
        """Error on the rows held out."""
        task, examples = self.problem.task, self.held_examples
        scores = model.scores(self.held, self.problem.n_jobs)
        self.n_evals += len(scores) * model.n_basis
        return float(task.error(task.decode(scores, model.plain, examples), examples))

    def _noted(self, error: float) -> float:
        """The error on the rows held out, which the last record is told."""
        self.history[-1]["held_out_error"] = error
        return error

    def _stopped(self, reference: Fit, status: Status) -> Fit:
        """The exact SVM of a part of the rows: what there is when a search is cut short."""
        rows = self.problem.bind()
        reference.objective = exact_objective(self.problem, rows, reference.model)
        reference.counters["report_kernel_evals"] = rows.counter.n
        if reference.basis_rows is not None:
            reference.basis_rows = self.asked[reference.basis_rows]
        reference.status = status
        return self._end(reference, reference.lower_bound)

    def _end(self, fit: Fit, bound: float | None) -> Fit:
        """The fit that counts, with all that was done for it."""
        is_small = self.history[-1]["stage"] in ("coefficients", "all rows")
        self.history[-1]["search"] = self.search
        if self.problem.verbose and self.search:
            tqdm.write(self.search, file=sys.stderr)
        fit.state = CompactState(fit.model if is_small else None)
        fit.history, fit.counters["kernel_evals"] = self.history, self.n_evals
        fit.counters["seconds"] = time.perf_counter() - self.begun
        if bound is not None:
            fit.lower_bound = min(bound, fit.objective)
        return fit


def exact_solver(task: Task) -> Exact | ExactCuts:
    """The faster of the exact solvers: decomposition where the loss has its dual, or exact cuts."""
    return Exact() if task.has_two_classes else ExactCuts()


@dataclass(frozen=True)
class Trial:
    """A number of vectors and the error of their model on the rows held out, at this many times the price C."""

    n_basis: int
    error: float
    price: float = 1.0


def parts(labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions of training rows and of those held out, of every label (or range of targets) the same share."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    every = max(EVERY, -(-len(labels) // MAX_HELD))
    is_held = np.arange(len(labels)) % every == every // 2
    return np.sort(order[~is_held]), np.sort(order[is_held])


def slack(error: float, problem: Problem, examples: Examples) -> float:
    """How much more than the exact SVM's error will do."""
    labels, weights = examples.labels, examples.weights
    if problem.task.has_targets:
        constant = problem.task.error(np.full(len(labels), np.median(labels)), examples)
        return min(GAIN_SHARE * max(0.0, constant - error), REGRESSION_SHARE * error)
    _, codes = np.unique(labels, return_inverse=True)
    constant = 1.0 - np.bincount(codes, weights=weights).max() / weights.sum()
    return min(GAIN_SHARE * max(0.0, constant - error), MAX_SLACK, max(ERROR_SHARE * error, LEAST_SLACK))


def told(exact: Trial, trials: list[Trial], allowed: float) -> str:
    """What was tried, in a line."""
    tried = ", ".join(
        f"{trial.n_basis} vectors {'' if trial.price == 1.0 else f'(at {trial.price:g} C) '}{trial.error:.4g}"
        for trial in trials
    )
    most = f"at most {allowed:.2g} more will do"
    return f"error on rows held out: exact SVM ({exact.n_basis} vectors) {exact.error:.4g}, {most}; {tried}"


def sizes_for(n_exact: int) -> list[int]:
    """Numbers of vectors to try where the exact SVM has n_exact."""
    last = [max(1, int(share * n_exact)) for share in SHARES]
    sizes, k = [], FIRST_SIZE
    while 1.5 * k < last[0]:
        sizes.append(k)
        k *= FACTOR
    return sizes + last


def hopeless(trials: list[Trial], least: float, most: float, size: int) -> bool:
    """Whether the excess over the least error will still be over ``most`` with ``size`` vectors."""
    if len(trials) < 2 or not trials[-2].n_basis:
        return False
    (k_1, before), (k_2, now) = ((trial.n_basis, trial.error - least) for trial in trials[-2:])
    if now >= before or k_2 <= k_1:
        return now > most
    expected = now * (now / before) ** (np.log(size / k_2) / np.log(k_2 / k_1))
    return bool(expected > most)
