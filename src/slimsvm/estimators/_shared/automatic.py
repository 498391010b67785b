"""What automatic values of parameters stand for: C, gamma, solver and multi_class.

solver="auto"        `choose_solver`, by counts of rows and kernel evaluations, never by a clock
multi_class="auto"   `resolve_multi_class`
gamma="scale"        `scale_gamma`
"validate"           `choose` fits trials of C and gamma on some rows and judges them on others
gamma="learn"        `learning_metric`: the solver learns one gamma per feature with its vectors. Solvers that learn no
                     vectors take the scales of a small model of few learned vectors: it finds how fast the labels
                     change along each feature, and the proportion of its gammas is kept (`with_learned_scales`).
"""

from __future__ import annotations

import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import OutOfTimeError, is_time_over, no_limit, share_of_time, time_limit
from slimsvm.kernels.far import Bulk
from slimsvm.kernels.shift_invariant import KERNELS, RBF
from slimsvm.parts.checks import RANDOM_ACCESS, check_needs
from slimsvm.parts.cuts.explicit_weights import prefers_weights
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import PATIENCE, Kept, Problem, Room
from slimsvm.parts.progress import one_by_one
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import ColumnSums, Rows, as_rows, in_pieces, is_sparse, is_text, keep_sums, parts_of
from slimsvm.size_search.compact import Compact
from slimsvm.size_search.reduced_models import machine_problem

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion


@dataclass(frozen=True)
class ChoiceSettings:
    """By which counts ``solver="auto"`` chooses. Chosen, not measured."""

    # Kernel evaluations that the exact solver may take. They are estimated as ``per_vector`` times rows times vectors.
    # Where that could be more, a sample of so many rows tells the share of rows that are vectors.
    most_evals: float = 1e12
    per_vector: int = 3
    sample: int = 2000
    # Of max_seconds, the share of that sample.
    sample_share: float = 0.1
    # Rows up to which a loss without a decomposition is solved by exact cuts: with more rows they take too long.
    most_cut_rows: int = 300_000
    # Rows from which the number of vectors with a metric of their own is searched for.
    least_searched: int = 50


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


# Gammas that are tried, as multiples of gamma="scale" or of the gamma of a kernel object. Chosen, not measured, as is
# what follows up to the small model.
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)
# One row (or sequence, query, example) in EVERY validates. That takes at least MIN_ROWS rows, or MIN_EXAMPLES examples
# of several rows.
EVERY, MIN_ROWS, MIN_EXAMPLES = 5, 20, 10
# Vectors of the small model that learns scales, its steps and their rate: half the default steps, at twice the rate,
# on batches of the usual size.
# Models in its scales err as much as in scales that took twice the time (docs/experiments/learned_bases.md, "Scales in
# fewer steps").
VECTORS, RATE, SHORT = 100, 0.2, SweepSettings(steps=3000, steps_power=0.0, batch_epochs=10)
# Of max_seconds, the share of the small model.
SMALL_MODEL_SHARE = 0.3
# Values of a block in which the variance for gamma="scale" is summed. How many times the features' own variance that of
# all entries together may be, before a search for gamma begins with a larger one.
BLOCK_VALUES, APART = 1 << 20, 4.0

# -- solver and multi_class -------------------------------------------------------------------------------------------


def choose_solver(problem: Problem, max_basis: Any, learns_metric: bool) -> Solver:
    """The solver that ``solver="auto"`` stands for.

    Without ``max_basis`` it is the exact one: `Exact` where the loss has its dual (two classes, pairs of classes,
    regression, one class); elsewhere exact cuts, or above 300,000 rows sampled ones, and sequences in explicit weights
    by block-coordinate Frank-Wolfe. If the exact solver would take too long (`exact_evals`), `next_best` takes
    its place, with a warning.

    With a number, that many vectors are learned by descent where the kernel has a derivative, the loss is a sum over
    examples and rows are not sparse with many features; otherwise they are found by subspace pursuit. With "auto" their
    number is searched for (`Compact`). Where a metric is learned that is so without a number, too, and it is `Refine`
    with one, or with 100 vectors where there can be no search.

    Parameters
    ----------
    problem : Problem
    max_basis : int, "auto" or None
    learns_metric : bool

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        There is no room for the copy of the rows that "auto" needs; or the rows are `Blocks`, and the solver is the
        exact one or the search.

    Warns
    -----
    ConvergenceWarning
        The exact solver would take more kernel evaluations than this rule allows.
    """
    rows, task, own = problem.rows, problem.task, problem.settings_of(ChoiceSettings)
    is_exact = max_basis is None and not learns_metric and (task.has_dual or task.class_pairs())
    if is_exact or max_basis == "auto":
        solver = "the exact solver" if is_exact else "the search of max_basis='auto'"
        check_needs(solver, problem, RANDOM_ACCESS)
    is_searched_for = max_basis == "auto" or (learns_metric and max_basis is None)
    if is_searched_for and not learns_metric:
        if not has_room(problem):
            raise ValueError(
                f"max_basis='auto' copies the rows in memory, {bytes_of(rows):,} bytes; found "
                f"memory_limit={problem.memory_limit:,} bytes or rows on disk: give max_basis a number"
            )
        return Compact()
    if learns_metric:
        may_search = (task.has_class_scores or task.has_targets) and task.is_smoothable and has_room(problem)
        if is_searched_for and may_search and rows.n_rows >= own.least_searched:
            return Compact(learn_metric=True)
        return solvers.Refine() if is_searched_for else solvers.Refine(max_basis)
    if max_basis is not None:
        is_learned = problem.kernel.has_gradient and task.decomposes and not is_text(rows)
        return solvers.Refine(max_basis) if is_learned else solvers.CPSP(max_basis, preimage(problem))
    if task.has_dual:
        n_evals = exact_evals(problem)
        return solvers.Exact() if n_evals <= own.most_evals else next_best(problem, n_evals)
    if task.class_pairs():
        return solvers.Exact()
    if prefers_weights(rows, problem.kernel, task.n_outputs, problem.memory_limit):
        return solvers.BCFW() if task.decomposes and task.n_plain else solvers.ExactCuts()
    return solvers.ExactCuts() if rows.n_rows <= own.most_cut_rows else solvers.ViolatedCuts()


def resolve_multi_class(solver: Any, max_basis: Any, learns_metric: bool, has_costs: bool) -> str:
    """What ``multi_class="auto"`` stands for: "ovo", "crammer-singer", or "either" for the one that errs less.

    Pairs of classes with solvers that follow LIBSVM, `choose_solver`'s without ``max_basis`` among them; either where
    as few vectors as will do are searched for. Costs, and a metric that is learned with vectors, are of a score for
    each class.
    """
    is_auto = isinstance(solver, str) and solver == "auto"
    if is_auto and (learns_metric or has_costs):
        return "crammer-singer"
    if is_auto:
        return "ovo" if max_basis is None else "either" if max_basis == "auto" else "crammer-singer"
    known = solvers.SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    if known is Compact:
        return "crammer-singer" if learns_metric else "either"
    return "ovo" if getattr(known, "follows_libsvm", False) else "crammer-singer"


def preimage(problem: Problem) -> str:
    """How subspace pursuit (`CPSP`) finds a vector."""
    return "fixed-point" if problem.kernel.is_gaussian else "training-rows"


def has_room(problem: Problem) -> bool:
    """Whether a copy of the rows can be made."""
    return problem.rows.in_memory and bytes_of(problem.rows) <= problem.memory_limit


def bytes_of(rows: Rows) -> int:
    """Bytes of a copy of rows."""
    return rows.n_stored * (rows.exact_dtype.itemsize + (8 if rows.is_sparse else 0))


def exact_evals(problem: Problem) -> float:
    """Upper estimate of the kernel evaluations that `Exact` takes."""
    n, own = problem.rows.n_rows, problem.settings_of(ChoiceSettings)
    most = own.per_vector * float(n) ** 2
    if most <= own.most_evals or not problem.kernel.has_features:
        return min(most, own.most_evals)
    index = np.sort(np.random.default_rng(0).choice(n, own.sample, replace=False))
    labels = problem.examples.labels[index]
    if problem.task.has_two_classes and len(np.unique(labels)) < 2:
        return 0.0  # a class so rare leaves few vectors
    rows = as_rows(problem.rows.take(index, problem.rows.exact_dtype))
    sample = replace(problem, rows=rows, examples=problem.examples.take(index), max_iter=None)
    if problem.max_seconds is not None:
        sample = replace(sample, max_seconds=own.sample_share * problem.max_seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Exact().solve(replace(sample, precision="float32", verbose=0, random_state=0))
    return most * fit.model.n_basis / own.sample


def next_best(problem: Problem, n_evals: float) -> Solver:
    """The solver that takes the place of the exact one for very many rows; it warns."""
    if problem.task.has_class_scores and has_room(problem) and problem.kernel.folding(problem.rows.n_features):
        solver: Solver = Compact()
        what = "it searches for few learned vectors instead (max_basis='auto')"
    else:
        solver, what = solvers.ViolatedCuts(), "it takes cuts of sampled rows instead (solver='violated-cuts')"
    most = problem.settings_of(ChoiceSettings).most_evals
    warnings.warn(
        f"the exact solver takes some {n_evals:.0e} kernel evaluations for {problem.rows.n_rows} rows, and "
        f"solver='auto' allows {most:.0e}: {what}; solver='exact' takes the exact one nevertheless",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solver


# -- gamma="scale" ----------------------------------------------------------------------------------------------------


def scale_gamma(
    X: Any, weights: np.ndarray | None, bulk: Bulk | None = None, block_values: int = BLOCK_VALUES
) -> float:
    """scikit-learn's ``gamma="scale"``, 1 / (n_features · variance of all entries), of weighted rows, or only of those
    in a bulk. One pass adds up means and squared deviations of blocks of so many values (Chan, Golub, LeVeque 1983).
    """
    n, d = X.shape
    sparse = X.is_sparse if isinstance(X, Rows) else is_sparse(X)
    n_stored = (X.n_stored if isinstance(X, Rows) else X.nnz) if sparse else n * d
    step = max(1, block_values // max(1, -(-n_stored // n)))  # by values of a row, zeros of sparse rows are none
    bounds = parts_of(n)
    if not isinstance(X, Rows) and len(bounds) == 1 and n <= step and bulk is None:
        total, _, squares = _moments_of(X.astype(np.float64), weights)
    else:
        parts = [slice(*each) for each in bounds]
        owned = [None if weights is None else weights[part] for part in parts]
        if isinstance(X, Rows):
            adds = not (X.in_memory or X.is_sparse)
            both = X.map(partial(_moments_and_sums, step, adds, bulk), owned)
            found = [moments for moments, _ in both]
            if adds:  # which a kernel will want
                keep_sums(X, [sums for _, sums in both])
        else:
            found = [
                _moments(step, X if len(parts) == 1 else X[part], own, bulk=bulk) for part, own in zip(parts, owned)
            ]
        total, _, squares = _put_together(found)
    variance = squares / total
    if not 0 < (gamma := 1.0 / (d * variance) if variance > 0 else 1.0) < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · variance of X), found a variance of {variance:.3g}: scale X, or give "
            "gamma as a number"
        )
    return gamma


def typical_gamma(X: Any, weights: np.ndarray | None) -> float:
    """The gamma that searches begin with: ``gamma="scale"`` without the rows that are far from all others, and larger
    if features are farther from each other than they are wide.
    """
    bulk = Bulk.of(as_rows(X))
    return scale_gamma(X, weights, bulk) * max(1.0, bulk.apart / APART)


def _put_together(moments: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of several sets together."""
    if len(moments) == 1:
        return moments[0]
    total, mean, squares = np.zeros(3)  # NumPy's numbers, which may be infinite
    for weight, own_mean, own_squares in moments:
        if weight > 0:
            off, before = own_mean - mean, total
            total += weight
            mean += off * (weight / total)
            squares += own_squares
            if before > 0:
                squares += off**2 * (weight * (before / total))
    return total, mean, squares


def _moments_and_sums(
    step: int, adds: bool, bulk: Bulk | None, X: Rows, weights: np.ndarray | None
) -> tuple[tuple[float, float, float], ColumnSums]:
    sums = ColumnSums(X.n_features, has_box=True)
    return _moments(step, X, weights, sums if adds else None, bulk), sums


def _moments(
    step: int, X: Any, weights: np.ndarray | None, sums: ColumnSums | None = None, bulk: Bulk | None = None
) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of all entries, of rows in a bulk if it is given, ``step`` rows at a
    time. The rows are added to ``sums``.
    """
    found = []
    for part in in_pieces(X.shape[0], step):
        block: Any = X.slice(part.start, part.stop, X.exact_dtype) if isinstance(X, Rows) else X[part]
        if sums is not None:
            sums.add(block)
        block, own = block.astype(np.float64), None if weights is None else weights[part]
        if bulk is not None and not (held := bulk.holds(block)).all():
            block, own = block[held], None if own is None else own[held]
        found.append(_moments_of(block, own))
    return _put_together(found)


def _moments_of(block: Any, weights: np.ndarray | None) -> tuple[float, float, float]:
    total = (block.shape[0] if weights is None else float(weights.sum())) * float(block.shape[1])
    if not total:
        return 0.0, 0.0, 0.0
    if is_sparse(block):
        sums = [_weighted(weights, np.asarray(part.sum(axis=1)).ravel()) for part in (block, block.power(2))]
        return total, sums[0] / total, sums[1] - sums[0] ** 2 / total
    mean = _weighted(weights, block.sum(axis=1)) / total
    block -= mean
    with np.errstate(over="ignore"):  # an infinite variance is an error of its own
        return total, mean, _weighted(weights, np.square(block, out=block).sum(axis=1))


def _weighted(weights: np.ndarray | None, values: np.ndarray) -> float:
    """Σ weights · values, without BLAS, whose sums depend on how many threads it has."""
    return float((values if weights is None else weights * values).sum())


# -- "validate" -------------------------------------------------------------------------------------------------------


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

    Parameters
    ----------
    problem : Problem
        Its C and kernel are ignored.
    solver : Solver
    C_values : tuple of float
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
        A trial was interrupted: there is no model of all rows that the fit could end with.
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
    best = trials.best or {"C": 1.0 if 1.0 in C_values else C_values[0]}  # there was no time for a single trial
    return replace(problem, C=best["C"], kernel=trials.kernel), held.records


def _part_of(problem: Problem, chosen: np.ndarray, solver: Solver) -> Problem:
    """The problem of a trial: some of the rows or examples, and a share of the time."""
    rows, task, own = problem.rows, problem.task, problem.settings_of(TrialSettings)
    index, examples = _some(task, problem.examples, np.sort(chosen))
    part = replace(problem, rows=as_rows(rows.take(index, rows.exact_dtype)), examples=examples, verbose=0)
    if problem.max_seconds is not None:
        part = replace(part, max_seconds=own.trial_share * problem.max_seconds)
    if isinstance(solver, solvers.Exact) and not task.has_targets:
        part = replace(part, tol=max(problem.tol, own.tol))
    return part


class _Held:
    """Rows or examples held out, and the records of all trials that were judged on them.

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
        self.near = held.problem.settings_of(TrialSettings).near
        self.part, self.is_exact = _part_of(held.problem, chosen, solver), isinstance(solver, solvers.Exact)
        self.room = Room()
        self.best: dict[str, Any] = {}
        self.errors: dict[float, float] = {}  # of the best kernel

    def of_kernel(self, kernel: kernels.Kernel, C_values: tuple[float, ...]) -> bool:
        """Try values of C, each from the model of the one before; return whether an error is near the lowest of the
        kernels before, or lower.
        """
        line = replace(self.part, kernel=kernel, kept=Kept(self.room) if self.is_exact else None)
        state, errors, before = None, {}, self.best.get("error", np.inf)
        for C in one_by_one(C_values, "values of C on rows held out", self.held.problem.verbose):
            if is_time_over():
                raise OutOfTimeError
            record, state = self.one(replace(line, C=C), state)
            self.held.records.append(record)
            errors[C] = record["error"]
            if record["error"] < self.best.get("error", np.inf) or not self.best:
                self.best, self.kernel, self.errors = record, kernel, errors
            if len(errors) - 1 - int(np.argmin(list(errors.values()))) >= PATIENCE:
                break
        return min(errors.values()) <= self.near * before

    def near_best(self) -> tuple[float, ...]:
        """Values of C whose errors with the best kernel are near the lowest."""
        return tuple(C for C, error in self.errors.items() if error <= self.near * self.best["error"])

    def one(self, problem: Problem, state: Any) -> tuple[dict[str, Any], Any]:
        """Fit one trial; return its record, and its state if the next trial may continue from it."""
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


def _some(task: tasks.Task, examples: tasks.Examples, index: np.ndarray) -> tuple[np.ndarray, tasks.Examples]:
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


# -- gamma="learn" ----------------------------------------------------------------------------------------------------


def learns_with_vectors(solver: Solver) -> bool:
    """Whether the solver learns a metric together with its vectors."""
    return hasattr(solver, "learn_metric")


def learning_metric(solver: Solver, problem: Problem) -> Solver:
    """The solver, set to learn the metric if it learns vectors; others take scales that are learned before.

    A ValueError says if the kernel, the rows or the loss allow neither.
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


def check_scales(problem: Problem) -> None:
    """Raise a ValueError if no scales can be learned for the kernel, the rows or the loss."""
    kernel, rows, task = problem.kernel, problem.rows, problem.task
    if not isinstance(kernel, KERNELS):
        names = ", ".join(repr(known.name) for known in KERNELS)
        raise ValueError(f"gamma='learn' with a solver that learns no vectors needs kernel={names}, found {kernel!r}")
    if rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    if not rows.in_memory:
        raise ValueError("gamma='learn' with a solver that learns no vectors needs rows in memory, found rows on disk")
    if not task.decomposes and not task.class_pairs():
        raise ValueError(f"gamma='learn' needs a loss that is a sum over examples, found {task!r}")


def with_learned_scales(
    problem: Problem, X: np.ndarray, weights: np.ndarray | None, mean_gamma: float | None
) -> Problem:
    """The problem with a gamma for each feature, in the proportion that a small model has learned.

    Parameters
    ----------
    problem : Problem
        One that `check_scales` lets pass.
    X : ndarray of shape (n_samples, n_features)
        Its rows.
    weights : ndarray of shape (n_samples,) or None
    mean_gamma : float or None
        The mean of the gammas; None: what ``gamma="scale"`` is for features in the learned scales.

    Returns
    -------
    Problem

    Raises
    ------
    KeyboardInterrupt
        The small model was interrupted: there is no model with the kernel asked for that the fit could end with.
    """
    scales = _learned_factors(problem)
    # Absolute differences grow with a scale, squares with its square.
    gamma = scales if problem.kernel.form == "absolute" else scales**2
    with no_limit():
        gamma = gamma * (typical_gamma(X * scales, weights) if mean_gamma is None else mean_gamma / gamma.mean())
    of_features: Any = type(problem.kernel)
    return replace(problem, kernel=of_features(gamma))


def _learned_factors(problem: Problem) -> np.ndarray:
    """Factors of the features, of mean square 1, from the gammas of the small model: an RBF of few vectors."""
    task = problem.task
    small = replace(
        problem,
        kernel=RBF(problem.kernel.gamma),
        intercept="regularized" if task.has_threshold else "none",
        max_iter=None,
        max_seconds=None if problem.max_seconds is None else SMALL_MODEL_SHARE * problem.max_seconds,
        settings=(SHORT, *problem.settings),
    )
    if pairs := task.class_pairs():
        small = machine_problem(small, tasks.Multiclass(1 + max(map(max, pairs))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Refine(VECTORS, rate=RATE, learn_metric=True, finish=False).solve(small)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    gamma = np.asarray(fit.model.kernel.gamma, np.float64)
    return np.sqrt(gamma / gamma.mean())
