"""The two stages of cross-training: SVMs of random subsets, then an SVM of few vectors.

First stage, steps 1 and 2 of algorithm 3 and section 4.3 of Bakır, Bottou, Weston (2004):

    validation rows V, a share of each class; from the rows that are left
    S_1 … S_s: subsets of r rows, r/2 of each class
    C: of VALUES_OF_C the one at which the SVMs err least on rows that they have not seen
    every SVM's threshold: the one with the lowest error on V, where that is fewer errors by more than chance

The SVMs of one C are trained side by side, each on one thread.

Second stage with few vectors, not in the paper. Where labels are right an SVM still has more vectors the more rows it
sees (on MNIST 3 against 8 as n^0.7). Hart's rule, by the SVM itself:

    train on a sample
    repeat  rows that are no vectors go; some rows with y_i f(x_i) < 0 come (where there are none, below ½, then 1)
            train
    until the limit of vectors is reached or no row is left to come

The limit follows from the data: with "auto" the sample is what is kept of 2,000 rows, and as many vectors are wanted as
the sample has rows. So their number hardly depends on n. That SVM saw few rows, and none that the first SVMs call
wrong. So only its vectors are taken; their coefficients are the best over all rows, those with wrong labels too
(`LowRank`: a convex problem of few numbers). Hence it matters little at which C the vectors were found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slimsvm.core.clock import Limit as TimeLimit
from slimsvm.core.clock import OutOfTimeError, time_limit, under
from slimsvm.core.threads import resolve_n_jobs, run_tiles
from slimsvm.kernels import EvalCounter
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Kept, Problem
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Solver
from slimsvm.parts.values_of_C import VALUES_OF_C, AlongC
from slimsvm.rows import Rows, as_rows
from slimsvm.solvers import Exact, LowRank
from slimsvm.solvers.low_rank import LowRankState

Array = np.ndarray

# The fewest rows in a subset whose size is not given; half of all rows if that is more.
LEAST_SIZE = 1000
# C is chosen on rows that some SVM has not seen, if these are at least this share of each class, otherwise on the
# validation rows alone.
LEAST_UNSEEN = 0.75
# The fewest rows of a class: two for training and one for validation.
MIN_ROWS = 3
# By this many standard errors a threshold must be better than none, and a C better than one with fewer vectors, unless
# the user says otherwise: both are the best of many.
SURE = 2.0
# The rows that are scored together.
BLOCK = 1 << 16
# The share of a time limit for the first stage. A C that does not finish in it is not tried.
FIRST_SHARE = 0.5
# The first sample has this many rows per vector, if their number is given.
SAMPLE_SHARE = 0.25
# The most rows that are added in one round, as a share of the vectors so far.
GROWTH = 0.3
# Rows below these margins are added; those below a later margin only if there are none below earlier ones.
COMING = 0.0, 0.5, 1.0
# The rounds end when the number of vectors is this near to the limit, as a share.
NEAR = 0.02
MOST_ROUNDS = 100


@dataclass(frozen=True)
class Settings:
    """Settings of the numbers of rows that the paper leaves open.

    Parameters
    ----------
    enough : int
        With fewer validation rows, every part of the rows judges the values of C of the second stage in its turn.
    reference_rows, least_rows : int
        ``max_basis="auto"`` is the number of rows kept of ``reference_rows``, if at least ``least_rows`` can be used
        (what 2,000 rows leave beside validation rows).
    """

    enough: int = 300
    reference_rows: int = 2000
    least_rows: int = 1500


SETTINGS = Settings()


@dataclass(frozen=True)
class Split:
    """Rows for validation, rows to edit, and random subsets of the latter."""

    # validating, training: int64, positions of rows, ascending; together all of them
    validating: Array
    training: Array
    subsets: list[Array]  # list of int64: positions of rows, ascending


@dataclass(frozen=True)
class FirstStage:
    """The SVMs of the subsets."""

    models: list[KernelExpansion]  # the models, whose intercepts contain their thresholds
    support: list[Array]  # list of int64: positions of the rows that are their vectors
    margins: Array  # float64 (n_subsets, n): y f(x) of all rows
    C: float
    trials: list[dict[str, Any]]  # ``C``, ``error``, ``n_basis`` and ``seconds`` of every C that was tried
    kernel_evals: int


def split(labels: Array, n_subsets: int, subset_size: int | None, validation_size: int | None, rng) -> Split:
    """Draw validation rows and subsets of rows with labels −1 and +1.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    subset_size : int or None
        The paper's r. None: the share 1/n_subsets of all rows, but at least 1,000 or half of them.
    validation_size : int or None
        None: a third of the subsets' size.

    Raises
    ------
    ValueError
        A class has fewer than three rows, or validation rows and subsets are more than there are.
    """
    n = len(labels)
    classes = [rng.permutation(np.flatnonzero(labels == sign)) for sign in (-1, 1)]
    if min(map(len, classes)) < MIN_ROWS:
        raise ValueError(f"cross-training needs at least {MIN_ROWS} rows of each class, found {min(map(len, classes))}")
    if subset_size is None:
        subset_size = max(n // n_subsets, min(n // 2, LEAST_SIZE))
    if validation_size is None:
        validation_size = subset_size // 3
    if validation_size + subset_size > n and validation_size:
        raise ValueError(
            f"validation_size={validation_size} and subset_size={subset_size} are more than the {n} rows there are"
        )
    validating, training = [], []
    for rows in classes:
        share = round(validation_size * len(rows) / n)
        share = min(max(share, 1), len(rows) - 2) if validation_size else 0
        validating.append(rows[:share])
        training.append(rows[share:])
    subsets = []
    for _ in range(n_subsets):
        drawn = [rng.choice(rows, min(max(subset_size // 2, 1), len(rows)), replace=False) for rows in training]
        subsets.append(np.sort(np.concatenate(drawn)))
    return Split(np.sort(np.concatenate(validating)), np.sort(np.concatenate(training)), subsets)


def some_rows(problem: Problem, index: Array, **changes: Any) -> Problem:
    """Return the problem of some of its rows, with the same C."""
    rows = problem.rows
    part = as_rows(rows.take(index, rows.exact_dtype))
    return replace(problem, rows=part, examples=problem.examples.take(index), verbose=0, **changes)


def scores_of(model: KernelExpansion, rows: Rows, n_jobs: int | None) -> Array:
    """Return scores (n,) of rows, computed block by block."""
    parts = [model.scores(rows.slice(lo, hi, rows.exact_dtype), n_jobs)[:, 0] for lo, hi in rows.blocks(BLOCK)]
    return np.concatenate(parts)


def best_threshold(scores: Array, labels: Array) -> tuple[float, float]:
    """Return the threshold above which rows are called positive, and the share of errors that it leaves.

    Of thresholds with equally many errors the one nearest to 0 is taken.

    Parameters
    ----------
    scores : float64 ndarray of shape (n,)
    labels : ndarray of shape (n,)
        -1 and +1.

    Returns
    -------
    threshold, error : float
    """
    order = np.argsort(scores, kind="stable")
    ascending, positive = scores[order], labels[order] > 0
    # Cut k calls the k lowest rows negative.
    errors = np.concatenate([[0], np.cumsum(positive)]) + np.concatenate([np.cumsum(~positive[::-1])[::-1], [0]])
    below = np.concatenate([[-np.inf], ascending])
    above = np.concatenate([ascending, [np.inf]])
    middle = np.where(np.isinf(below), above - 1.0, np.where(np.isinf(above), below + 1.0, 0.5 * (below + above)))
    threshold = np.where((below <= 0) & (above > 0), 0.0, middle)
    possible = below < above
    best = np.lexsort((np.abs(threshold), errors, ~possible))[0]
    return float(threshold[best]), float(errors[best] / len(scores))


def is_worse(wrong: Array, other: Array, deviations: float = 1.0) -> bool:
    """Whether one mask of rows has more errors than another, by ``deviations`` standard errors of the difference."""
    return bool(np.sum(wrong) - np.sum(other) > deviations * np.sqrt(np.sum(wrong != other)))


class Clock:
    """A time limit, of which the stages get shares.

    Attributes
    ----------
    status : Status
        Why work was left out, if it was.
    """

    def __init__(self, limit: float | None):
        self._begun, self._limit = time.perf_counter(), limit
        self._whole = None if limit is None else TimeLimit(limit, None)
        self.status = Status.CONVERGED

    def within(self) -> under:
        """Have fits, each of which is given at least a moment, end together with the whole time."""
        return under(self._whole)

    def left(self, share: float = 1.0) -> float | None:
        """Return the seconds left of that share of the limit, at least a moment; None without a limit."""
        return None if self._limit is None else max(1e-3, self._begun + share * self._limit - time.perf_counter())

    def is_over(self, share: float = 1.0) -> bool:
        """Whether that share of the limit is over, so that what would come next is left out."""
        is_over = self._limit is not None and time.perf_counter() >= self._begun + share * self._limit
        if is_over and self.status is Status.CONVERGED:
            self.status = Status.TIME_LIMIT
        return is_over

    def stop(self) -> None:
        """End all time after Ctrl-C: the rows and SVMs so far go into a model."""
        self._limit, self._whole, self.status = 0.0, None, Status.INTERRUPTED


class Path:
    """Fits of one problem at rising values of C.

    Those of the exact solver share kernel rows, and each begins with the dual point of the one before.
    """

    def __init__(self, problem: Problem, solver: Solver):
        self.solver, self.state = solver, None
        self.kept = Kept() if isinstance(solver, Exact) else None
        self.problem = replace(problem, kept=self.kept)

    def fit(self, C: float, max_seconds: float | None) -> Fit:
        """Fit the problem at this C."""
        if self.kept is not None and (kernel_rows := self.kept.get("kernel rows")) is not None:
            kernel_rows.counter = EvalCounter()  # a fit counts its own
        fit = self.solver.solve(replace(self.problem, C=C, max_seconds=max_seconds), self.state)
        self.state = None if self.kept is None else fit.state
        return replace(fit, kept=None)  # kernel rows go with the path


def train_on_subsets(
    problem: Problem,
    solver: Solver,
    parts: Split,
    C: float | None,
    seed: int,
    clock: Clock,
    deviations: float = SURE,
) -> FirstStage:
    """Train an SVM on each subset, for the given C or the best of `VALUES_OF_C`.

    The best is the highest C at which the mean of the SVMs that have not seen a row errs least, within ``deviations``
    standard errors; thresholds have to be better than none by as many.
    """
    memory, labels = problem.memory_limit // len(parts.subsets), problem.examples.labels
    subsets = [
        Path(some_rows(problem, index, n_jobs=1, memory_limit=memory, random_state=seed + j), solver)
        for j, index in enumerate(parts.subsets)
    ]
    unseen, judging = _rows_that_judge(parts, labels)
    if C is None and not judging.any():
        raise ValueError("every subset has all rows, which leaves nothing to choose first_C by: give it as a number")
    least = gained = np.zeros(0, bool)
    chosen, trials, kernel_evals = None, [], 0
    along_C = AlongC(VALUES_OF_C if C is None else (C,), "values of C of the models of subsets", problem.verbose)
    for value in along_C:
        begun = time.perf_counter()
        tried = _tried(problem, subsets, value, clock, may_end=chosen is not None)
        if tried is None:
            break
        fits, scores = tried
        models = _with_thresholds(fits, scores, labels, parts.validating, deviations)
        margins = labels * scores
        wrong = np.sum(margins * unseen, axis=0)[judging] <= 0
        error = float(np.mean(wrong)) if len(wrong) else np.nan
        kernel_evals += sum(fit.counters["kernel_evals"] + len(labels) * fit.model.n_basis for fit in fits)
        vectors = float(np.mean([model.n_basis for model in models]))
        trials.append({"C": value, "error": error, "n_basis": vectors, "seconds": time.perf_counter() - begun})
        if chosen is None or wrong.sum() < least.sum():
            least = wrong
        # A gain within chance is no reason to go on: at a high C overlapping classes take very long.
        has_gained = chosen is None or is_worse(gained, wrong)
        gained = wrong if has_gained else gained
        along_C.judge(has_gained)
        # Take the highest of values with similar errors: its SVMs separate right from wrong most clearly.
        if chosen is None or not is_worse(wrong, least, deviations):
            chosen = value, models, fits, margins
    assert chosen is not None
    value, models, fits, margins = chosen
    support = [
        index[fit.basis_rows] if fit.basis_rows is not None else np.zeros(0, np.int64)
        for index, fit in zip(parts.subsets, fits, strict=True)
    ]
    return FirstStage(models, support, margins, value, trials, kernel_evals)


def _rows_that_judge(parts: Split, labels: Array) -> tuple[Array, Array]:
    """Return masks of the rows (n_subsets, n) that each SVM has not seen, and of the rows (n,) that choose C."""
    unseen = np.ones((len(parts.subsets), len(labels)), bool)
    for mask, index in zip(unseen, parts.subsets, strict=True):
        mask[index] = False
    judging: Array = np.asarray(unseen.any(axis=0))
    if len(parts.validating) and min(judging[labels == sign].mean() for sign in (-1, 1)) < LEAST_UNSEEN:
        # The subsets have nearly all rows of the smaller class: without these the larger class alone would judge.
        judging = np.isin(np.arange(len(labels)), parts.validating)
    return unseen, judging


def _tried(
    problem: Problem, subsets: list[Path], C: float, clock: Clock, may_end: bool
) -> tuple[list[Fit], Array] | None:
    """Fit the subsets at this C; return fits and scores of all rows, or None if time was over and ``may_end``."""
    fits: list[Any] = [None] * len(subsets)

    def is_over() -> bool:
        return may_end and clock.is_over(FIRST_SHARE)

    def fit_range(lo: int, hi: int) -> None:
        for j in range(lo, hi):
            if not is_over():
                with nullcontext() if may_end else clock.within():
                    fits[j] = subsets[j].fit(C, clock.left(FIRST_SHARE))

    try:
        with time_limit(clock.left(FIRST_SHARE) if may_end else None):
            run_tiles(fit_range, len(subsets), resolve_n_jobs(problem.n_jobs))
            if any(fit is not None and fit.status is Status.INTERRUPTED for fit in fits):
                raise KeyboardInterrupt
            scores = []
            for fit in fits:
                if fit is None or is_over():
                    return None
                scores.append(scores_of(fit.model, problem.rows, problem.n_jobs))
            return fits, np.stack(scores)
    except OutOfTimeError:
        clock.is_over(FIRST_SHARE)
    except KeyboardInterrupt:
        if not may_end:
            raise
        clock.stop()
    return None


def _with_thresholds(
    fits: list[Fit], scores: Array, labels: Array, validating: Array, deviations: float
) -> list[KernelExpansion]:
    """Return the models with the thresholds that validation rows choose, and the scores less these."""
    models = []
    for fit, own in zip(fits, scores, strict=True):
        threshold = worthwhile_threshold(own[validating], labels[validating], deviations)
        own -= threshold
        models.append(fit.model.shifted(-threshold))
    return models


def worthwhile_threshold(scores: Array, labels: Array, deviations: float = SURE) -> float:
    """Return the best threshold; return 0 if it saves no more errors than chance does, or without validation rows."""
    if not len(labels):
        return 0.0
    threshold, _ = best_threshold(scores, labels)
    as_it_is, moved = ((scores > t) != (labels > 0) for t in (0.0, threshold))
    return threshold if is_worse(as_it_is, moved, deviations) else 0.0


@dataclass(frozen=True)
class Limit:
    """The number of rows to begin with, and the largest number of vectors.

    ``filled``: rows that are no support vectors make up for missing ones.
    """

    sample: Array
    most: int
    filled: bool

    @classmethod
    def of(
        cls, max_basis: int | str, kept: Array, usable: Array, labels: Array, rng, settings: Settings
    ) -> Limit | None:
        """Return the limit that ``max_basis`` stands for; None if it allows all rows that are kept."""
        if isinstance(max_basis, str):
            if len(usable) < settings.least_rows:
                return None
            drawn = rng.choice(usable, min(settings.reference_rows, len(usable)), replace=False)
            most = max(2, int(settings.reference_rows * len(kept) / len(usable)))
            return cls(_of_both(np.intersect1d(kept, drawn), kept, labels, 1, rng), most, filled=True)
        if len(kept) <= max_basis:
            return None
        size = max(2, int(SAMPLE_SHARE * max_basis))
        return cls(_of_both(np.zeros(0, np.int64), kept, labels, size // 2, rng), max_basis, filled=False)


class Found(NamedTuple):
    """Vectors, their training rows (None: they are no rows), and the kernel evaluations to find them."""

    basis: Any
    basis_rows: Array | None
    kernel_evals: int

    @classmethod
    def of(cls, rows: Array, fit: Fit, kernel_evals: int) -> Found:
        """Return the vectors of an SVM that was trained on ``rows``."""
        return cls(fit.model.basis, None if fit.basis_rows is None else rows[fit.basis_rows], kernel_evals)


class Spanned:
    """The problem of the best coefficients of given vectors, over some rows and at any C.

    Parameters
    ----------
    index : int64 ndarray
        Positions of the rows that count, ascending; vectors that are rows are among them.
    """

    def __init__(self, problem: Problem, index: Array, found: Found, clock: Clock, verbose: int = 0):
        part, self.index, self.clock = replace(some_rows(problem, index), verbose=verbose), index, clock
        # Few rows are not solved to rounding here: the threshold changes afterwards, for many values of C.
        self.part = replace(part, precision="float64") if part.is_small else part
        rows, n_basis = found.basis_rows, found.basis.shape[0]
        dtype = self.part.bind().precision
        start = KernelExpansion(found.basis, np.zeros((n_basis, 1)), np.zeros(1), np.zeros(0), problem.kernel, dtype)
        self.solver = LowRank(max_basis=n_basis)
        self.start = LowRankState(start, None if rows is None else np.searchsorted(index, rows))

    def fit(self, C: float, callbacks: tuple = ()) -> Fit:
        """Fit the SVM of these vectors at this C; `Fit.basis_rows` are positions in the whole problem."""
        part = replace(self.part, C=C, max_seconds=self.clock.left())
        with self.clock.within():
            fit = self.solver.solve(part, self.start, callbacks)
        fit.basis_rows = None if fit.basis_rows is None else self.index[fit.basis_rows]
        return fit


def grow(
    problem: Problem, offered: Array, limit: Limit, fit_to: Callable[[Array], Fit], rng: np.random.Generator
) -> Found:
    """Find vectors by training, with ``fit_to``, on more and more of the offered rows (positions, ascending)."""
    everything, labels = some_rows(problem, offered).rows, problem.examples.labels
    rows, fit = limit.sample, fit_to(limit.sample)
    kernel_evals = fit.counters["kernel_evals"]
    for _ in range(MOST_ROUNDS):
        vectors = fit.model.n_basis
        room = min(limit.most - vectors, max(1, int(GROWTH * vectors)))
        if fit.status in (Status.INTERRUPTED, Status.TIME_LIMIT) or room <= NEAR * limit.most:
            break
        margins = labels[offered] * scores_of(fit.model, everything, problem.n_jobs)
        kernel_evals += len(offered) * vectors
        margins[np.isin(offered, rows)] = np.inf
        coming = next((below for margin in COMING if len(below := offered[margins < margin])), None)
        if coming is None:
            break
        stay = rows if fit.basis_rows is None else rows[fit.basis_rows]
        tried = np.union1d(stay, rng.choice(coming, min(room, len(coming)), replace=False))
        if len(np.unique(labels[tried])) < 2:
            break
        larger = fit_to(tried)
        kernel_evals += larger.counters["kernel_evals"]
        if larger.model.n_basis > limit.most:
            break
        rows, fit = tried, larger
    found = Found.of(rows, fit, kernel_evals)
    if limit.filled and found.basis_rows is not None and found.basis.shape[0] < limit.most:
        others = np.setdiff1d(offered, found.basis_rows)
        others = rng.choice(others, min(limit.most - len(found.basis_rows), len(others)), replace=False)
        joined = np.union1d(found.basis_rows, others)
        found = Found(problem.rows.take(joined, problem.rows.exact_dtype), joined, kernel_evals)
    return found


def _of_both(rows: Array, kept: Array, labels: Array, least: int, rng: np.random.Generator) -> Array:
    """Return rows with at least that number of kept ones of either class, if there are enough."""
    for sign in (-1, 1):
        own = kept[labels[kept] == sign]
        lacking = least - int(np.sum(labels[rows] == sign))
        if lacking > 0:
            more = np.setdiff1d(own, rows)
            rows = np.union1d(rows, rng.choice(more, min(lacking, len(more)), replace=False))
    return rows
