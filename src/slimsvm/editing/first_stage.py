"""First stage of cross-training: machines of random subsets, their price and their thresholds.

    validation rows V, of every class alike; on the rows that are left
    S_1 … S_s: subsets of r rows, r/2 of each class
    C: of a few prices the one at which machines err least on rows that they have not seen
    every machine's threshold: the one with the lowest error on V, where that is fewer errors by more than chance

Bakır, Bottou, Weston (2004), steps 1 and 2 of algorithm 3 and section 4.3. The machines of one price are trained side
by side, each on one thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.core.threads import resolve_n_jobs, run_tiles
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.progress import one_by_one
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import Rows, as_rows

Array = np.ndarray

# Prices that are tried, from the lowest. The search ends after PATIENCE prices in a row that do not lower the error by
# a standard error, or, for the last machine, that err more. One price is too few: at the lowest a machine that calls
# all rows the larger class may seem good.
PRICES, PATIENCE = (0.1, 1.0, 10.0, 100.0, 1000.0), 2
# Least number of rows in a subset whose size is not given; half of all rows if that is more.
LEAST_SIZE = 1000
# Share of a class that some machine has not seen, below which only the validation rows judge.
LEAST_UNSEEN = 0.75
# Rows a class must have at least: two to learn from and one to validate by.
MIN_ROWS = 3
# Standard errors by which a threshold has to be better than none, and a price than one with fewer vectors, unless the
# user says otherwise: they are the best of many.
SURE = 2.0
# Rows scored at a time.
BLOCK = 1 << 16
# Of a time limit, the share of the first stage. A price that it does not suffice for is not tried.
FIRST_SHARE = 0.5


@dataclass(frozen=True)
class Split:
    """Which rows validate, which are edited, and the subsets of the latter.

    Parameters
    ----------
    validating, training : int64 ndarray
        Positions of rows, ascending; together all of them.
    subsets : list of int64 ndarray
        Positions of rows, ascending.
    """

    validating: Array
    training: Array
    subsets: list[Array]


@dataclass(frozen=True)
class FirstStage:
    """The machines of the subsets.

    Parameters
    ----------
    machines : list of KernelExpansion
        Their thresholds are in their intercepts.
    support : list of int64 ndarray
        Positions of the rows that are their vectors.
    margins : float64 ndarray of shape (n_subsets, n)
        y f(x) of all rows.
    C : float
    trials : list of dict
        ``C``, ``error``, ``n_basis`` and ``seconds`` of every price that was tried.
    kernel_evals : int
    """

    machines: list[KernelExpansion]
    support: list[Array]
    margins: Array
    C: float
    trials: list[dict[str, Any]]
    kernel_evals: int


def split(labels: Array, n_subsets: int, subset_size: int | None, validation_size: int | None, rng) -> Split:
    """Draw validation rows and subsets.

    Parameters
    ----------
    labels : ndarray of shape (n,)
        -1 and +1.
    n_subsets : int
    subset_size : int or None
        The paper's r. None: the share 1/n_subsets of all rows, but at least 1,000 or half of them.
    validation_size : int or None
        None: a third of the subsets' size.
    rng : numpy.random.Generator

    Returns
    -------
    Split

    Raises
    ------
    ValueError
        A class has fewer than three rows, or fewer are left than validation rows and subsets take.
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
    """The problem of some of its rows, at the same price of a row."""
    rows = problem.rows
    part = as_rows(rows.take(index, rows.exact_dtype))
    return replace(problem, rows=part, examples=problem.examples.take(index), verbose=0, **changes)


def scores_of(model: KernelExpansion, rows: Rows, n_jobs: int | None) -> Array:
    """Scores (n,) of rows, block by block."""
    parts = [model.scores(rows.slice(lo, hi, rows.exact_dtype), n_jobs)[:, 0] for lo, hi in rows.blocks(BLOCK)]
    return np.concatenate(parts)


def best_threshold(scores: Array, labels: Array) -> tuple[float, float]:
    """Threshold above which rows are to be called positive, and the share of errors it leaves.

    Of thresholds with equally many errors the nearest to 0 is taken.

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
    """How many seconds of a limit are left, of which the stages have shares.

    Attributes
    ----------
    status : Status
        Why work was left out, if it was.
    """

    def __init__(self, limit: float | None):
        self._begun, self._limit = time.perf_counter(), limit
        self.status = Status.CONVERGED

    def left(self, share: float = 1.0) -> float | None:
        """Seconds left of that share of the limit, a moment at least; None without a limit."""
        return None if self._limit is None else max(1e-3, self._begun + share * self._limit - time.perf_counter())

    def is_over(self, share: float = 1.0) -> bool:
        """Whether that share of the limit is over, so that what would come next is left out."""
        is_over = self._limit is not None and time.perf_counter() >= self._begun + share * self._limit
        if is_over and self.status is Status.CONVERGED:
            self.status = Status.TIME_LIMIT
        return is_over

    def stop(self) -> None:
        """Ctrl-C: all time is over, and what there is goes into a model."""
        self._limit, self.status = 0.0, Status.INTERRUPTED


def train(
    problem: Problem,
    solver: Solver,
    parts: Split,
    C: float | None,
    seed: int,
    clock: Clock,
    deviations: float = SURE,
) -> FirstStage:
    """Train the machines, for the price C or the best of `PRICES`.

    Parameters
    ----------
    problem : Problem
        Two classes; its C is ignored.
    solver : Solver
        Of every machine.
    parts : Split
    C : float or None
        None: of `PRICES` the highest at which the mean of the machines that have not seen a row errs least, give or
        take some standard errors.
    seed : int
    clock : Clock
    deviations : float
        How many; and those by which a threshold has to be better than none.

    Returns
    -------
    FirstStage
    """
    subsets = [
        some_rows(
            problem, index, n_jobs=1, memory_limit=problem.memory_limit // len(parts.subsets), random_state=seed + j
        )
        for j, index in enumerate(parts.subsets)
    ]
    labels = problem.examples.labels
    unseen = np.ones((len(subsets), len(labels)), bool)
    for mask, index in zip(unseen, parts.subsets, strict=True):
        mask[index] = False
    judging: Array = np.asarray(unseen.any(axis=0))
    if len(parts.validating) and min(judging[labels == sign].mean() for sign in (-1, 1)) < LEAST_UNSEEN:
        # Subsets have nearly all rows of the smaller class: without them the larger class alone would judge.
        judging = np.isin(np.arange(len(labels)), parts.validating)
    if C is None and not judging.any():
        raise ValueError("every subset has all rows, which leaves nothing to choose first_C by: give it as a number")
    least = gained = np.zeros(0, bool)
    chosen, latest, trials, kernel_evals = None, 0, [], 0
    for price in one_by_one(PRICES if C is None else (C,), "values of C of the machines of subsets", problem.verbose):
        begun = time.perf_counter()
        try:
            with time_limit(None if chosen is None else clock.left(FIRST_SHARE)):
                tried = _tried(problem, subsets, solver, price, clock, may_end=chosen is not None)
        except OutOfTimeError:
            clock.is_over(FIRST_SHARE)
            break
        except KeyboardInterrupt:
            if chosen is None:
                raise
            clock.stop()
            break
        if tried is None:
            break
        fits, scores = tried
        machines = [fit.model for fit in fits]
        for j, machine in enumerate(machines):
            threshold = worthwhile_threshold(scores[j, parts.validating], labels[parts.validating], deviations)
            scores[j] -= threshold
            machines[j] = replace(machine, intercept=machine.intercept - threshold)
        margins = labels * scores
        wrong = np.sum(margins * unseen, axis=0)[judging] <= 0
        error = float(np.mean(wrong)) if len(wrong) else np.nan
        kernel_evals += sum(fit.counters["kernel_evals"] + len(labels) * fit.model.n_basis for fit in fits)
        vectors = float(np.mean([machine.n_basis for machine in machines]))
        trials.append({"C": price, "error": error, "n_basis": vectors, "seconds": time.perf_counter() - begun})
        if chosen is None or wrong.sum() < least.sum():
            least = wrong
        # What is no more than chance is no reason to go on: at high prices overlapping classes take very long.
        if chosen is None or is_worse(gained, wrong):
            gained, latest = wrong, len(trials) - 1
        # The highest of prices that err alike: its machines tell right from wrong most clearly.
        if chosen is None or not is_worse(wrong, least, deviations):
            chosen = price, machines, fits, margins
        if len(trials) - 1 - latest >= PATIENCE:
            break
    assert chosen is not None
    price, machines, fits, margins = chosen
    support = [
        index[fit.basis_rows] if fit.basis_rows is not None else np.zeros(0, np.int64)
        for index, fit in zip(parts.subsets, fits, strict=True)
    ]
    return FirstStage(machines, support, margins, price, trials, kernel_evals)


def worthwhile_threshold(scores: Array, labels: Array, deviations: float = SURE) -> float:
    """The best threshold, or 0 where that errs no more but by chance (or there are no rows to tell by)."""
    if not len(labels):
        return 0.0
    threshold, _ = best_threshold(scores, labels)
    as_it_is, moved = ((scores > t) != (labels > 0) for t in (0.0, threshold))
    return threshold if is_worse(as_it_is, moved, deviations) else 0.0


def _tried(
    problem: Problem, subsets: list[Problem], solver: Solver, C: float, clock: Clock, may_end: bool
) -> tuple[list[Fit], Array] | None:
    """Machines of the subsets at a price, and their scores of all rows; None where time is over and that may be."""
    fits: list[Any] = [None] * len(subsets)
    scores: list[Array] = []

    def fit_range(lo: int, hi: int) -> None:
        for j in range(lo, hi):
            if not (may_end and clock.is_over(FIRST_SHARE)):
                fits[j] = solver.solve(replace(subsets[j], C=C, max_seconds=clock.left(FIRST_SHARE)))

    run_tiles(fit_range, len(subsets), resolve_n_jobs(problem.n_jobs))
    if any(fit is not None and fit.status is Status.INTERRUPTED for fit in fits):
        raise KeyboardInterrupt
    for fit in fits:
        if fit is None or (may_end and clock.is_over(FIRST_SHARE)):
            return None
        scores.append(scores_of(fit.model, problem.rows, problem.n_jobs))
    return fits, np.stack(scores)
