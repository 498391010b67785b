"""What an estimator chooses by itself: C and gamma on a validation part (``"validate"``), the metric (``"learn"``)."""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import OutOfTimeError, is_time_over, no_limit, share_of_time, time_limit
from slimsvm.editing import PATIENCE, VALUES_OF_C
from slimsvm.estimators._shared.drawing import evenly, shuffled_by_kind
from slimsvm.estimators._shared.learned_scales import check_scales
from slimsvm.parts.problem import Kept, Problem, Room
from slimsvm.parts.progress import one_by_one
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import as_rows

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion

PRICES = VALUES_OF_C
# Errors up to this many times the lowest are near it. Further widths are tried on a side as long as the last one's
# error is near the lowest before; prices of such errors are tried again with more rows.
NEAR = 1.05
# Widths that are tried, as multiples of gamma="scale" or of the gamma of a kernel object.
WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
# One row (or sequence, query, example) in EVERY validates. That takes at least MIN_ROWS rows, or MIN_EXAMPLES examples
# of several rows.
EVERY, MIN_ROWS, MIN_EXAMPLES = 5, 20, 10
# Rows of the part that trains: FEW_TRAINING, or so many that RAREST are of the rarest class, if that is more. What
# they choose is nearly as good for all rows as what ten times as many choose; but prices that err alike are told apart
# by more rows, and some problems want a narrower kernel the more rows there are. Both are tried again with more.
FEW_TRAINING, RAREST = 5000, 500
# Most rows of either part.
MAX_TRAINING, MAX_VALIDATION = 50_000, 20_000
# Of max_seconds, the share of one trial, and of all of them.
TRIAL_SHARE, SEARCH_SHARE = 0.1, 0.7
# The violation of a row's margin at which a trial of the exact machine ends, where tol is not larger. By it trials of
# 5,000 rows take 0.8 times as long, and C and gamma are nearly always the same.
TRIAL_TOL = 0.03


def learns_with_vectors(solver: Solver) -> bool:
    """Whether the solver learns a metric together with its vectors."""
    return hasattr(solver, "learn_metric")


def learning_metric(solver: Solver, problem: Problem) -> Solver:
    """The solver that learns the metric with its vectors, or one that takes scales which were learned before; an error
    where the kernel, the rows or the loss have none.
    """
    if not learns_with_vectors(solver):
        check_scales(problem)
        return solver
    kernel = problem.kernel
    if not kernel.has_metric:
        hint = "; solver='exact' takes scales learned before" if kernel.form == "absolute" else ""
        raise ValueError(f"gamma='learn' needs kernel={kernels.kernels_with('has_metric')}, found {kernel!r}{hint}")
    if problem.rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    return solver if solver.learn_metric else clone(solver).set_params(learn_metric=True)


def widths(kernel: kernels.Kernel) -> list[kernels.Kernel]:
    """The kernel with each multiple of its gamma that ``gamma="validate"`` tries."""
    gamma = getattr(kernel, "gamma", None)
    if gamma is None or not is_dataclass(kernel):
        raise ValueError(f"gamma='validate' needs a kernel with a gamma, found {kernel!r}")
    return [replace(kernel, gamma=factor * np.asarray(gamma)) for factor in WIDTHS]


def choose(
    problem: Problem, solver: Solver, prices: tuple[float, ...], tried: list[kernels.Kernel]
) -> tuple[Problem, list[dict[str, Any]]]:
    """The problem with the price and the kernel whose model has the lowest error on a fifth of the rows, and a record
    of every trial.

    The middle kernel comes first, then those on either side of it, each as long as the last one's error was near the
    lowest of all: the widest and the narrowest are seldom best, and the narrowest may take longer than all others. Of
    many rows this is done with few of those that train; with all of them the best kernel is then tried again at the
    prices whose errors were near the lowest, and narrower ones as long as the error falls.

    The parts have the same share of every class (or, for regression, of every range of targets). Examples of several
    rows (sequences, queries) stay whole: a fifth of them is held out. Ties go to the trial that came first.

    Parameters
    ----------
    problem : Problem
        Its C and kernel are ignored.
    solver : Solver
    prices : tuple of float
        From the lowest.
    tried : list of Kernel
        From the widest.

    Returns
    -------
    problem : Problem
    trials : list of dict
        ``C``, of several kernels ``gamma``, ``n_rows`` that were trained on, ``error`` (the task's: share of wrong
        labels, mean absolute error, mean loss of a query, ...) and ``seconds``.

    Raises
    ------
    ValueError
        There are fewer than 20 rows, or than 10 examples of several rows that can have a loss; or the kernel is a
        matrix.
    KeyboardInterrupt
        A trial was interrupted: no model of all rows is there that a fit could end with.
    """
    rows, examples, task = problem.rows, problem.examples, problem.task
    asked = "C='validate'" if len(tried) == 1 else "gamma='validate'"
    if not problem.kernel.has_features:
        raise ValueError(f"{asked} cuts the rows in two and needs a kernel of rows, found kernel='precomputed'")
    kinds = _kinds(task, examples, asked)
    training, validating = _parts(kinds, problem.generator(), rows.n_rows)
    few = training[evenly(len(training), _few(task, examples, kinds))]
    held = _Held(problem, validating, len(tried) > 1)
    middle = len(tried) // 2
    trials = _Trials(held, solver, few, tried[middle])
    with suppress(OutOfTimeError), time_limit(share_of_time(SEARCH_SHARE)):
        for further in (tried[middle:], tried[:middle][::-1]):
            for kernel in further:
                if not trials.of_kernel(kernel, prices):
                    break
        narrower = tried[[kernel is trials.kernel for kernel in tried].index(True) :]
        near = trials.near_best()
        if len(few) < len(training) and len(narrower) * len(near) > 1:
            with_all = _Trials(held, solver, training, trials.kernel)
            for kernel in narrower:
                with_all.of_kernel(kernel, near)
                trials = with_all
                if trials.kernel is not kernel:
                    break
    best = trials.best or {"C": 1.0 if 1.0 in prices else prices[0]}  # there was no time for a single trial
    return replace(problem, C=best["C"], kernel=trials.kernel), held.records


def _part_of(problem: Problem, chosen: np.ndarray, solver: Solver) -> Problem:
    """The problem of a trial: of some rows or examples, with its share of the time."""
    rows, task = problem.rows, problem.task
    index, examples = _some(task, problem.examples, np.sort(chosen))
    part = replace(problem, rows=as_rows(rows.take(index, rows.exact_dtype)), examples=examples, verbose=0)
    if problem.max_seconds is not None:
        part = replace(part, max_seconds=TRIAL_SHARE * problem.max_seconds)
    if isinstance(solver, solvers.Exact) and not task.has_targets:
        part = replace(part, tol=max(problem.tol, TRIAL_TOL))
    return part


class _Held:
    """Rows or examples held out, and the records of all that was judged on them.

    Parameters
    ----------
    problem : Problem
        Of all rows.
    chosen : int64 ndarray
        Those held out.
    names_gamma : bool
        Whether a record has the gamma.
    """

    def __init__(self, problem: Problem, chosen: np.ndarray, names_gamma: bool):
        self.problem, self.names_gamma = problem, names_gamma
        index, self.examples = _some(problem.task, problem.examples, chosen)
        self.block = problem.rows.take(index, problem.rows.exact_dtype)
        self.records: list[dict[str, Any]] = []

    def error(self, model: KernelExpansion) -> float:
        """The task's error of a model."""
        task, scores = self.problem.task, model.scores(self.block, n_jobs=self.problem.n_jobs)
        return float(task.error(task.decode(scores, model.plain, self.examples), self.examples))


class _Trials:
    """Fits of some rows, each judged on the rows held out.

    Parameters
    ----------
    held : _Held
    solver : Solver
    chosen : int64 ndarray
        Rows or examples that are trained on.
    kernel : Kernel
        The first.

    Attributes
    ----------
    best, kernel : dict and Kernel
        The record of the lowest error, and its kernel.
    """

    def __init__(self, held: _Held, solver: Solver, chosen: np.ndarray, kernel: kernels.Kernel):
        self.held, self.solver, self.kernel = held, solver, kernel
        self.part, self.is_exact = _part_of(held.problem, chosen, solver), isinstance(solver, solvers.Exact)
        self.room = Room()
        self.best: dict[str, Any] = {}
        self.errors: dict[float, float] = {}  # of the best kernel

    def of_kernel(self, kernel: kernels.Kernel, prices: tuple[float, ...]) -> bool:
        """Try prices, each from the model of the one before; whether an error is near the lowest of the kernels before,
        or lower.
        """
        line = replace(self.part, kernel=kernel, kept=Kept(self.room) if self.is_exact else None)
        state, errors, before = None, {}, self.best.get("error", np.inf)
        for C in one_by_one(prices, "values of C on rows held out", self.held.problem.verbose):
            if is_time_over():
                raise OutOfTimeError
            record, state = self.one(replace(line, C=C), state)
            self.held.records.append(record)
            errors[C] = record["error"]
            if record["error"] < self.best.get("error", np.inf) or not self.best:
                self.best, self.kernel, self.errors = record, kernel, errors
            if len(errors) - 1 - int(np.argmin(list(errors.values()))) >= PATIENCE:
                break
        return min(errors.values()) <= NEAR * before

    def near_best(self) -> tuple[float, ...]:
        """Prices whose errors with the best kernel are near the lowest."""
        return tuple(C for C, error in self.errors.items() if error <= NEAR * self.best["error"])

    def one(self, problem: Problem, state: Any) -> tuple[dict[str, Any], Any]:
        """One trial, and its state where the next one may go on from it."""
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fit = self.solver.solve(problem, state=state)
        if fit.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        of_gamma = {"gamma": problem.kernel.gamma} if self.held.names_gamma else {}
        with no_limit():  # a trial that has ended counts
            error = self.held.error(fit.model)
        record = {"C": problem.C} | of_gamma | {"n_rows": problem.rows.n_rows, "error": error}
        record["seconds"] = time.perf_counter() - begun
        return record, fit.state if self.is_exact else None


def _kinds(task: tasks.Task, examples: tasks.Examples, asked: str) -> np.ndarray:
    """What is drawn, rows or whole examples, by what both parts shall have the same share of."""
    if task.decomposes and examples.offsets is not None:
        # Examples that can have a loss tell prices apart; a query of one row cannot.
        zero = np.zeros((examples.n_rows, task.n_outputs))
        has_loss = task.augment(zero, np.zeros(task.n_plain), examples).delta > 0
        n_lossy = np.count_nonzero(has_loss)
        if n_lossy < MIN_EXAMPLES:
            few = "" if n_lossy == len(has_loss) else f", and only {n_lossy} that can have a loss"
            raise ValueError(
                f"{asked} holds out a fifth of the examples (sequences, queries) and needs at least "
                f"{MIN_EXAMPLES}, found {len(has_loss)}{few}"
            )
        return has_loss
    if examples.n_rows < MIN_ROWS:
        raise ValueError(f"{asked} needs at least {MIN_ROWS} rows, found {examples.n_rows}")
    labels = examples.labels
    if labels.ndim == 2:  # rows of the same labels are alike
        labels = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
    return labels


def _some(task: tasks.Task, examples: tasks.Examples, index: np.ndarray) -> tuple[np.ndarray, tasks.Examples]:
    """The rows of a part, and the part as a smaller problem at the same price of one row or example."""
    if task.decomposes:
        return examples.rows_of(index), examples.take(index)
    part = examples.take_rows(index)
    return index, replace(part, weights=part.weights * (len(index) / examples.n_rows))


def _few(task: tasks.Task, examples: tasks.Examples, kinds: np.ndarray) -> int:
    """Rows or examples that are trained on at first."""
    if examples.offsets is not None:
        return len(kinds)
    share = 1.0 if task.has_targets else np.unique(kinds, return_counts=True)[1].min() / len(kinds)
    return max(FEW_TRAINING, int(RAREST / share))


def _parts(kinds: np.ndarray, rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of what trains and what validates, in the order of kinds: every fifth, those of one kind shuffled."""
    n = len(kinds)
    order = shuffled_by_kind(kinds, rng)
    is_held = np.arange(n) % EVERY == EVERY // 2
    parts = []
    for index, most_rows in ((order[~is_held], MAX_TRAINING), (order[is_held], MAX_VALIDATION)):
        parts.append(index[evenly(len(index), most_rows * n // n_rows)])
    return parts[0], np.sort(parts[1])
