"""Trials: one method fitted to one problem, timed and judged; each gives one flat record.

A record holds the problem (``part``, ``data``, ``n_train``, ``C``, ``gamma``, ``intercept``, …), the method and its
settings, the seed, and what was measured. Tables and figures read records and nothing else.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

Array = np.ndarray

# Rows of the fits that are not timed: of the small kind (float64) and of the usual one.
WARM_UP_ROWS = (300, 2500)
WARM_UP_SECONDS = 1.0
# Runs of a method that makes random choices: five where one takes less than ten minutes, three below an hour, else one.
# A run that met its time limit is not repeated.
RUNS_BY_SECONDS = ((600.0, 5), (3600.0, 3))
# A method that knows no limit is left out where, by its exponent from the sizes before, it would take longer than this.
MOST_SECONDS = 3600.0
USUAL_EXPONENT = 2.0
# What tells trials apart.
TRIAL = (
    "part", "data", "n_train", "C", "gamma", "intercept", "method", "max_basis", "sample_size", "seed",
)  # fmt: skip


@dataclass(frozen=True)
class Problem:
    """Rows with labels −1 and +1, and the settings they are trained with.

    Parameters
    ----------
    data : str
        Name of the data set.
    X_train, y_train, X_test, y_test : ndarray
    C, gamma : float
        Price of a row's loss; of the RBF kernel.
    intercept : {"none", "regularized"}
        Of our methods; others have their own.
    svc_max_n : int or None
        Training rows above which scikit-learn's SVC is left out; None: it is left out where it would take too long.
    """

    data: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    C: float
    gamma: float
    intercept: str = "none"
    svc_max_n: int | None = None

    @property
    def n_train(self) -> int:
        """Training rows."""
        return len(self.y_train)

    def head(self, n: int) -> Problem:
        """The problem with the first n training rows."""
        return replace(self, X_train=self.X_train[:n], y_train=self.y_train[:n])

    def shuffled(self) -> Problem:
        """The problem with its training rows in a random order, always the same."""
        order = np.random.default_rng(0).permutation(self.n_train)
        return replace(self, X_train=self.X_train[order], y_train=self.y_train[order])


@dataclass(frozen=True)
class Method:
    """Something that learns, and how to read off what it learned.

    Parameters
    ----------
    name : str
        What tables and figures call it.
    make : callable (problem, seed, max_seconds) -> unfitted estimator
    scores : callable (estimator, problem, X) -> ndarray of shape (n,)
        Positive for +1.
    report : callable (estimator, problem, training scores) -> mapping
        What is known of the fit beside time and errors.
    settings : mapping
        Written into every record.
    seeded : bool
        False for methods without random choices: they run once.
    capped : bool
        Whether it knows no time limit, so that it is left out of large problems.
    missing : str or None
        Why it cannot run here.
    dense : bool
        Whether it needs dense rows.
    """

    name: str
    make: Callable[[Problem, int, float | None], Any]
    scores: Callable[[Any, Problem, Array], Array]
    report: Callable[[Any, Problem, Array], Mapping[str, Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeded: bool = True
    capped: bool = False
    missing: str | None = None
    dense: bool = False


@dataclass
class Session:
    """Limits of a run, and what hears of its records.

    Parameters
    ----------
    seeds : int or None
        Runs of every method that makes random choices; None: by what one takes (`RUNS_BY_SECONDS`).
    max_seconds : float or None
        Limit on one fit, for methods that know limits.
    hear : callable (record) -> None
        Called with every record as soon as it is there.
    known : sequence of dict
        Records of a run that ended early: their trials are not run again.
    """

    seeds: int | None = 3
    max_seconds: float | None = None
    hear: Callable[[dict[str, Any]], None] = lambda record: None
    known: Sequence[dict[str, Any]] = ()
    _seconds: dict[tuple[str, float, str], list[tuple[int, float]]] = field(default_factory=dict)
    _warm: set[tuple[str, str, float]] = field(default_factory=set)
    _left_out: list[dict[str, Any]] = field(default_factory=list)

    def leave_out(self, part: str, data: str, reason: str) -> list[dict[str, Any]]:
        """The record of a data set that cannot be had; none where it is known."""
        record = {"part": part, "data": data, "skipped": reason}
        if any(record.items() <= other.items() for other in (*self.known, *self._left_out)):
            return []
        self._left_out.append(record)
        self.hear(record)
        return [record]

    def compare(self, part: str, methods: Sequence[Method], problem: Problem) -> list[dict[str, Any]]:
        """Records of every method on one problem: one for each seed, or one that says why there is none."""
        records: list[dict[str, Any]] = []
        known = {tuple(record.get(name) for name in TRIAL): record for record in self.known}
        for method in methods:
            reason = method.missing or self.too_large(method, problem)
            seed, runs = 0, 1
            while seed < runs:
                record = describe(part, method, problem, seed)
                found = known.get(tuple(record.get(name) for name in TRIAL))
                if found is not None:
                    record = found
                elif reason is None:
                    self.warm_up(method, problem)
                    record |= measure(method, problem, seed, self.max_seconds)
                    self.hear(record)
                else:
                    record["skipped"] = reason
                    self.hear(record)
                records.append(record)
                if seed == 0 and "seconds" in record:
                    runs = self.runs_of(method, record)
                    line = self._seconds.setdefault((problem.data, problem.C, method.name), [])
                    line.append((problem.n_train, record["seconds"]))
                seed += 1
        return records

    def runs_of(self, method: Method, first: dict[str, Any]) -> int:
        """How often a method is run, by its first run; once where that met the time limit."""
        if not method.seeded:
            return 1
        if self.seeds is not None:
            return self.seeds
        return 1 if first.get("status") == "time limit" else runs_by_seconds(first["seconds"])

    def too_large(self, method: Method, problem: Problem) -> str | None:
        """Why a method that knows no limit is left out of a problem, if it is."""
        if not method.capped:
            return None
        if problem.svc_max_n is not None:
            is_too_large = problem.n_train > problem.svc_max_n
            return f"left out above {problem.svc_max_n:,} rows" if is_too_large else None
        line = self._seconds.get((problem.data, problem.C, method.name), [])
        smaller = [(n, seconds) for n, seconds in line if n < problem.n_train]
        if not smaller:
            return None
        (n, seconds), exponent = smaller[-1], USUAL_EXPONENT
        if len(smaller) > 1:
            before, of_before = smaller[-2]
            exponent = max(1.0, float(np.log(seconds / of_before) / np.log(n / before)))
        expected = seconds * (problem.n_train / n) ** exponent
        return f"{expected / 60:.0f} minutes expected by its growth so far" if expected > MOST_SECONDS else None

    def warm_up(self, method: Method, problem: Problem) -> None:
        """Fit a few rows once for each method and data set, so that no timing includes compilation or imports."""
        key = (method.name, problem.data, problem.gamma)
        if key in self._warm:
            return
        self._warm.add(key)
        for n in sorted({min(n, problem.n_train) for n in WARM_UP_ROWS}):
            few = problem.head(n)
            if len(np.unique(few.y_train)) == 2:
                measure(method, few, 0, min(WARM_UP_SECONDS, self.max_seconds or WARM_UP_SECONDS))


def runs_by_seconds(seconds: float) -> int:
    """How often something is run that takes so long."""
    return next((runs for most, runs in RUNS_BY_SECONDS if seconds < most), 1)


def describe(part: str, method: Method, problem: Problem, seed: int) -> dict[str, Any]:
    """The part of a record that is known before anything ran."""
    return {
        "part": part,
        "data": problem.data,
        "n_train": problem.n_train,
        "n_test": len(problem.y_test),
        "n_features": problem.X_train.shape[1],
        "C": problem.C,
        "gamma": problem.gamma,
        "intercept": problem.intercept,
        "method": method.name,
        "seed": seed,
        **method.settings,
    }


def measure(method: Method, problem: Problem, seed: int, max_seconds: float | None) -> dict[str, Any]:
    """Fit once; seconds are those of ``fit`` alone."""
    estimator = method.make(problem, seed, max_seconds)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    begun, begun_cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a limit reached is in the record, as its status
        estimator.fit(problem.X_train, problem.y_train)
    seconds, cpu_seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    train_scores = method.scores(estimator, problem, problem.X_train)
    test_scores = method.scores(estimator, problem, problem.X_test)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "load": load,
        "train_error": error(train_scores, problem.y_train),
        "test_error": error(test_scores, problem.y_test),
        **method.report(estimator, problem, train_scores),
    }


def error(scores: Array, y: Array) -> float:
    """Share of rows whose score is on the wrong side; 0 counts as −1."""
    return float(np.mean((scores > 0) != (y > 0)))


def hinge_objective(problem: Problem, scores: Array, norm_squared: float) -> float:
    """½‖w‖² + C Σ max(0, 1 − y f(x)) over the training rows."""
    hinge = np.maximum(0.0, 1.0 - problem.y_train * scores.astype(np.float64))
    return 0.5 * norm_squared + problem.C * float(hinge.sum())


def add_gaps(records: Sequence[dict[str, Any]]) -> None:
    """Set ``gap``, the share of the objective above the best lower bound that any fit of the same problem found."""
    bounds: dict[tuple, float] = {}
    keys = ("run", "data", "n_train", "C", "gamma", "intercept")
    for record in records:
        if record.get("lower_bound") is not None:
            key = tuple(record.get(name) for name in keys)
            bounds[key] = max(bounds.get(key, -np.inf), record["lower_bound"])
    for record in records:
        bound, objective = bounds.get(tuple(record.get(name) for name in keys)), record.get("objective")
        record["gap"] = None if bound is None or not objective else (objective - bound) / objective
