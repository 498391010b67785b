"""First stage of cross-training: machines of random subsets, their price and their thresholds.

    validation rows V, of every class alike; on the rows that are left
    S_1 … S_s: subsets of r rows, r/2 of each class
    C: of a few prices the one whose machines f_1 … f_s have the lowest error on V
    every machine's threshold: the one with the lowest error on V

Bakır, Bottou, Weston (2004), steps 1 and 2 of algorithm 3 and section 4.3. The machines of one price are trained side
by side, each on one thread.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.model import KernelExpansion
from slimsvm.numerics.threads import resolve_n_jobs, run_tiles
from slimsvm.rows import Rows, as_rows
from slimsvm.solvers import Fit, Problem, Solver, Status

Array = np.ndarray

# Prices that are tried, from the lowest; no more after so many in a row without a lower error.
PRICES, PATIENCE = (0.1, 1.0, 10.0, 100.0, 1000.0), 2
# Rows a class must have at least: two to learn from and one to validate by.
MIN_ROWS = 3
# Rows scored at a time.
BLOCK = 1 << 16


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
    C : float
    trials : list of dict
        ``C``, ``error``, ``n_basis`` and ``seconds`` of every price that was tried.
    kernel_evals : int
    """

    machines: list[KernelExpansion]
    support: list[Array]
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
        The paper's r. None: the share 1/n_subsets of all rows, but at least 200 or half of them.
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
        subset_size = max(n // n_subsets, min(n // 2, 200))
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


class Clock:
    """How many seconds of a limit are left."""

    def __init__(self, limit: float | None):
        self._end = None if limit is None else time.perf_counter() + limit

    def left(self) -> float | None:
        """Seconds left, a moment at least; None without a limit."""
        return None if self._end is None else max(1e-3, self._end - time.perf_counter())


def train(problem: Problem, solver: Solver, parts: Split, C: float | None, seed: int, clock: Clock) -> FirstStage:
    """Train the machines, for the price C or the best of `PRICES`.

    Parameters
    ----------
    problem : Problem
        Two classes; its C is ignored.
    solver : Solver
        Of every machine.
    parts : Split
    C : float or None
        None: the best one on the validation rows.
    seed : int
    clock : Clock

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
    validation = some_rows(problem, parts.validating) if len(parts.validating) else None
    best, trials, kernel_evals = None, [], 0
    for price in PRICES if C is None else (C,):
        begun = time.perf_counter()
        fits = _side_by_side(subsets, solver, price, problem.n_jobs, clock)
        machines, errors = [], []
        for fit in fits:
            model, error = fit.model, np.nan
            if validation is not None:
                model, error = with_threshold(fit.model, validation)
                kernel_evals += fit.model.n_basis * validation.rows.n_rows
            machines.append(model)
            errors.append(error)
        kernel_evals += sum(fit.counters["kernel_evals"] for fit in fits)
        vectors = float(np.mean([fit.model.n_basis for fit in fits]))
        error = float(np.mean(errors))
        trials.append({"C": price, "error": error, "n_basis": vectors, "seconds": time.perf_counter() - begun})
        if best is None or error < trials[best[0]]["error"]:
            best = len(trials) - 1, machines, fits
        if len(trials) - 1 - best[0] >= PATIENCE:
            break
    assert best is not None
    number, machines, fits = best
    support = [
        index[fit.basis_rows] if fit.basis_rows is not None else np.zeros(0, np.int64)
        for index, fit in zip(parts.subsets, fits, strict=True)
    ]
    return FirstStage(machines, support, trials[number]["C"], trials, kernel_evals)


def with_threshold(model: KernelExpansion, validation: Problem) -> tuple[KernelExpansion, float]:
    """The model with the best threshold on validation rows, and its error on them."""
    scores = scores_of(model, validation.rows, validation.n_jobs)
    threshold, error = best_threshold(scores, validation.examples.labels)
    return replace(model, intercept=model.intercept - threshold), error


def _side_by_side(subsets: list[Problem], solver: Solver, C: float, n_jobs: int | None, clock: Clock) -> list[Fit]:
    fits: list[Any] = [None] * len(subsets)

    def fit_range(lo: int, hi: int) -> None:
        for j in range(lo, hi):
            fits[j] = solver.solve(replace(subsets[j], C=C, max_seconds=clock.left()))

    run_tiles(fit_range, len(subsets), resolve_n_jobs(n_jobs))
    if any(fit.status == Status.INTERRUPTED for fit in fits):
        raise KeyboardInterrupt
    return fits
