"""``C="validate"`` and ``gamma="validate"``: `choose` fits trials on some rows and judges them on others."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import OutOfTimeError, is_time_over, no_limit, share_of_time, time_limit
from slimsvm.parts.problem import Kept, Problem, Room
from slimsvm.parts.solver import Solver
from slimsvm.parts.values_of_C import AlongC, fit_on_trial
from slimsvm.rows import as_rows

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion


@dataclass(frozen=True)
class TrialSettings:
    """How "validate" tries values of C and gamma.

    docs/experiments/automatic_choice.md settles the numbers: "A quicker search for C and γ", "C and γ from 5,000 rows".
    """

    # Errors up to this many times the lowest are near it. Further gammas are tried on a side as long as the last one's
    # error is near the lowest before; values of C with such errors are tried again with more rows.
    near: float = 1.05
    # Rows of the part that trains: so many, or so many that ``rarest`` are of the rarest class, if that is more. What
    # they choose is nearly as good for all rows as what ten times as many choose; but values of C that err alike are
    # told apart by more rows, and some problems want a narrower kernel the more rows there are. Both are tried again
    # with more.
    few_training: int = 5000
    rarest: int = 500
    # Most rows of either part. Chosen, not measured.
    most_training: int = 50_000
    most_validation: int = 20_000
    # Of max_seconds, the share of one trial, and of all of them. Chosen, not measured.
    trial_share: float = 0.1
    search_share: float = 0.7
    # The violation of a row's margin at which a trial of the exact solver ends, where tol is not larger. By it trials
    # of 5,000 rows take 0.8 times as long, and C and gamma are nearly always the same.
    tol: float = 0.03


# Gammas that are tried, as multiples of gamma="scale" or of the gamma of a kernel object. Chosen, not measured.
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
# One row (or sequence, query, example) in EVERY validates. That takes at least MIN_ROWS rows, or MIN_EXAMPLES examples
# of several rows. Chosen, not measured.
EVERY, MIN_ROWS, MIN_EXAMPLES = 5, 20, 10


def kernels_tried(kernel: kernels.Kernel) -> list[kernels.Kernel]:
    """The kernel with each multiple of its gamma that ``gamma="validate"`` tries."""
    gamma = getattr(kernel, "gamma", None)
    if gamma is None or not is_dataclass(kernel):
        raise ValueError(f"gamma='validate' needs a kernel with a gamma, found {kernel!r}")
    return [replace(kernel, gamma=factor * np.asarray(gamma)) for factor in GAMMA_FACTORS]


def choose(
    problem: Problem, solver: Solver, C_values: tuple[float, ...], tried: list[kernels.Kernel]
) -> tuple[Problem, list[dict[str, Any]]]:
    """The problem with the C and the kernel whose model has the lowest error on a fifth of the rows, and a record of
    every trial.

    The middle kernel comes first, then those on either side of it, each as long as the last one's error was near the
    lowest of all: the widest and the narrowest are seldom best, and the narrowest may take longer than all others. If
    there are many rows, trials train on few of them; with all of them the best kernel is then tried again with the
    values of C whose errors were near the lowest, and narrower kernels as long as the error falls.

    The parts have the same share of every class (or, for regression, of every range of targets). Examples of several
    rows (sequences, queries) stay whole: a fifth of them is held out. Ties go to the trial that came first.

    The problem's C is that of a search without the time for a trial; its kernel is ignored. ``C_values`` rise, and the
    kernels get narrower. A record has ``C``, of several kernels ``gamma``, ``n_rows`` that were trained on, ``error``
    (the task's: share of wrong labels, mean absolute error, mean loss of a query, ...) and ``seconds``.

    A ValueError says if there are fewer than 20 rows, or than 10 examples of several rows that can have a loss, or if
    the kernel is a matrix. An interrupted trial ends the fit, as there is no model of all rows.
    """
    rows, examples, task, own = problem.rows, problem.examples, problem.task, problem.settings_of(TrialSettings)
    asked = "C='validate'" if len(tried) == 1 else "gamma='validate'"
    if not problem.kernel.has_features:
        raise ValueError(f"{asked} cuts the rows in two and needs a kernel of rows, found kernel='precomputed'")
    kinds = _kinds(task, examples, asked)
    training, validating = _parts(kinds, problem.generator(), rows.n_rows, own)
    few = training[evenly(len(training), _few(task, examples, kinds, own))]
    held = _Held(problem, validating, len(tried) > 1)
    middle = len(tried) // 2
    trials = _Trials(held, solver, few, tried[middle])
    with suppress(OutOfTimeError), time_limit(share_of_time(own.search_share)):
        for further in (tried[middle:], tried[:middle][::-1]):
            for kernel in further:
                if not trials.of_kernel(kernel, C_values):
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
    best = trials.best or {"C": problem.C}  # there was no time for a single trial
    return replace(problem, C=best["C"], kernel=trials.kernel), held.records


def _part_of(problem: Problem, chosen: np.ndarray, solver: Solver) -> Problem:
    """The problem of a trial: some of the rows or examples, and a share of the time."""
    rows, task, own = problem.rows, problem.task, problem.settings_of(TrialSettings)
    index, examples = some_of(task, problem.examples, np.sort(chosen))
    part = replace(problem, rows=as_rows(rows.take(index, rows.exact_dtype)), examples=examples, verbose=0)
    if problem.max_seconds is not None:
        part = replace(part, max_seconds=own.trial_share * problem.max_seconds)
    if isinstance(solver, solvers.Exact) and not task.has_targets:
        part = replace(part, tol=max(problem.tol, own.tol))
    return part


class _Held:
    """The rows or examples of a problem that are held out, and the records of all trials that were judged on them."""

    def __init__(self, problem: Problem, chosen: np.ndarray, names_gamma: bool):
        self.problem, self.names_gamma = problem, names_gamma
        index, self.examples = some_of(problem.task, problem.examples, chosen)
        self.block = problem.rows.take(index, problem.rows.exact_dtype)
        self.records: list[dict[str, Any]] = []

    def error(self, model: KernelExpansion) -> float:
        """The task's error of a model."""
        task, scores = self.problem.task, model.scores(self.block, n_jobs=self.problem.n_jobs)
        return float(task.error(task.decode(scores, model.plain, self.examples), self.examples))


class _Trials:
    """Fits of the ``chosen`` rows or examples, each judged on those held out."""

    def __init__(self, held: _Held, solver: Solver, chosen: np.ndarray, kernel: kernels.Kernel):
        self.held, self.solver, self.kernel = held, solver, kernel
        self.near = held.problem.settings_of(TrialSettings).near
        self.part, self.is_exact = _part_of(held.problem, chosen, solver), isinstance(solver, solvers.Exact)
        self.room = Room()
        self.best: dict[str, Any] = {}  # the record of the lowest error, with the kernel
        self.errors: dict[float, float] = {}  # of the best kernel

    def of_kernel(self, kernel: kernels.Kernel, C_values: tuple[float, ...]) -> bool:
        """Try values of C, each from the model of the one before; return whether an error is near the lowest of the
        kernels before, or lower.
        """
        kept = Kept(self.room) if self.is_exact else None
        part = replace(self.part, kernel=kernel, kept=kept, to_compare=self.is_exact)
        state, before = None, self.best.get("error", np.inf)
        errors: dict[float, float] = {}
        along_C = AlongC(C_values, "values of C on rows held out", self.held.problem.verbose)
        for C in along_C:
            if is_time_over():
                raise OutOfTimeError
            record, state = self.one(replace(part, C=C), state)
            self.held.records.append(record)
            along_C.judge(has_helped=record["error"] < min(errors.values(), default=np.inf))
            errors[C] = record["error"]
            if record["error"] < self.best.get("error", np.inf) or not self.best:
                self.best, self.kernel, self.errors = record, kernel, errors
        return min(errors.values()) <= self.near * before

    def near_best(self) -> tuple[float, ...]:
        """Values of C whose errors with the best kernel are near the lowest."""
        return tuple(C for C, error in self.errors.items() if error <= self.near * self.best["error"])

    def one(self, problem: Problem, state: Any) -> tuple[dict[str, Any], Any]:
        """Fit one trial; return its record, and its state if the next trial may continue from it."""
        begun = time.perf_counter()
        fit = fit_on_trial(self.solver, problem, state)
        of_gamma = {"gamma": problem.kernel.gamma} if self.held.names_gamma else {}
        with no_limit():  # a trial that has ended counts
            error = self.held.error(fit.model)
        record = {"C": problem.C} | of_gamma | {"n_rows": problem.rows.n_rows, "error": error}
        record["seconds"] = time.perf_counter() - begun
        return record, fit.state if self.is_exact else None


def _kinds(task: tasks.Task, examples: tasks.Examples, asked: str) -> np.ndarray:
    """For each row, or each whole example, the kind (such as its class) of which both parts get the same share."""
    if task.decomposes and examples.offsets is not None:
        # Examples that can have a loss tell values of C apart; a query of one row cannot.
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


def some_of(task: tasks.Task, examples: tasks.Examples, index: np.ndarray) -> tuple[np.ndarray, tasks.Examples]:
    """The rows of a part, and the part as a smaller problem with the same C of one row or example."""
    if task.decomposes:
        return examples.rows_of(index), examples.take(index)
    part = examples.take_rows(index)
    return index, replace(part, weights=part.weights * (len(index) / examples.n_rows))


def _few(task: tasks.Task, examples: tasks.Examples, kinds: np.ndarray, own: TrialSettings) -> int:
    """How many rows or examples the first trials train on."""
    if examples.offsets is not None:
        return len(kinds)
    share = 1.0 if task.has_targets else np.unique(kinds, return_counts=True)[1].min() / len(kinds)
    return max(own.few_training, int(own.rarest / share))


def _parts(
    kinds: np.ndarray, rng: np.random.Generator, n_rows: int, own: TrialSettings
) -> tuple[np.ndarray, np.ndarray]:
    """Positions that train and positions that validate: every fifth in the order of kinds, shuffled within a kind."""
    n = len(kinds)
    order = shuffled_by_kind(kinds, rng)
    is_held = np.arange(n) % EVERY == EVERY // 2
    parts = []
    for index, most_rows in ((order[~is_held], own.most_training), (order[is_held], own.most_validation)):
        parts.append(index[evenly(len(index), most_rows * n // n_rows)])
    return parts[0], np.sort(parts[1])


def shuffled_by_kind(kinds: np.ndarray, rng: np.random.Generator | np.random.RandomState) -> np.ndarray:
    """Positions sorted by kind and shuffled within a kind, so that every k-th position gives each kind its share."""
    order = rng.permutation(len(kinds))
    return order[np.argsort(kinds[order], kind="stable")]


def evenly(n: int, most: int) -> np.ndarray:
    """At most ``most`` of n positions, at even distances."""
    n_chosen = min(n, max(1, most))
    return np.arange(n_chosen) * n // n_chosen
