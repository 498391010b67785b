"""Cross-training: machines of subsets decide which rows the last machine is trained on.

Bakır, Bottou, Weston, "Breaking SVM Complexity with Cross-Training", NIPS 2004, algorithm 3:

    1, 2  subsets and their machines f_1 … f_s (`editing.first_stage`)
    3     for each row the mean m_i and the variance v_i of y_i f_1(x_i) … y_i f_s(x_i)
    4, 5  discard m_i + κ v_i < 0 (wrong side) and m_i − κ v_i > 1 (surely right);  κ = 1 in the paper
    6     train on the rest, C and threshold chosen on the validation rows

and what section 4.3 needed beside it: the smaller class of what is kept gets back rows that were discarded as surely
right, the nearest to the margin first, until both classes have as many.

Not the paper's: ``max_rows`` condenses what is kept by the last machine itself, as Hart's rule does by nearest
neighbours. It is trained on a sample; then some of the rows with y_i f(x_i) < 0.2 join it (where there are none, with
y_i f(x_i) < 1), and again, until there are none or max_rows are reached. Only rows with m_i ≥ 0 take part: their labels
hardly contradict each other, so few of them say it all.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.editing.first_stage import (
    PATIENCE,
    PRICES,
    Clock,
    FirstStage,
    Split,
    scores_of,
    some_rows,
    split,
    train,
    with_threshold,
)
from slimsvm.kernels import Precomputed
from slimsvm.model import KernelExpansion
from slimsvm.solvers import Exact, Fit, Problem, Solver, Status
from slimsvm.tasks import Binary

Array = np.ndarray

# Condensing begins with this share of max_rows, and grows by at most this share of what it has.
FIRST_SHARE, GROWTH = 0.25, 0.5
# Rows below these margins join, below a later one only where there are none below those before it.
JOINING = 0.2, 1.0


@dataclass(frozen=True)
class Edited:
    """What cross-training did with the rows.

    Parameters
    ----------
    kept : int64 ndarray
        Positions of the rows the last machine is (or would be) trained on, ascending.
    mean, variance : float64 ndarray of shape (n_rows,)
        m_i and v_i; NaN for validation rows.
    n_wrong, n_sure, n_returned : int
        Rows discarded on the wrong side, as surely right, and put back of the latter.
    split : Split
    first : FirstStage
    """

    kept: Array
    mean: Array
    variance: Array
    n_wrong: int
    n_sure: int
    n_returned: int
    split: Split
    first: FirstStage


@dataclass(frozen=True)
class CrossTrained:
    """The record of a fit: `Fit.state`.

    Parameters
    ----------
    edited : Edited
    C : float
        Of the last machine; of the first ones where there is no other.
    trials : list of dict
        ``C``, ``error``, ``n_basis`` and ``seconds`` of every price tried for the last machine.
    """

    edited: Edited
    C: float
    trials: list[dict[str, Any]]


class CrossTrainer(Solver):
    """Cross-training as a solver of two-class problems: it chooses the rows, the prices and the threshold itself.

    Parameters
    ----------
    solver : Solver or None, default=None
        Of all machines; None: `Exact`.
    n_subsets, subset_size, validation_size
        See `editing.first_stage.split`.
    first_C, C : float or None
        Prices of the first machines and of the last; None: chosen on the validation rows.
    variances : float
        κ above.
    balance : bool
        Whether the smaller class gets rows back.
    max_rows : int or None
        At most so many rows for the last machine.
    second_stage : bool
        False: the mean of the first machines instead of a last one (bagging).
    """

    def __init__(
        self, solver=None, n_subsets=5, subset_size=None, validation_size=None, first_C=None, C=None, variances=1.0,
        balance=True, max_rows=None, second_stage=True,
    ):  # fmt: skip
        self.solver = solver
        self.n_subsets = n_subsets
        self.subset_size = subset_size
        self.validation_size = validation_size
        self.first_C = first_C
        self.C = C
        self.variances = variances
        self.balance = balance
        self.max_rows = max_rows
        self.second_stage = second_stage

    @property
    def inner(self) -> Solver:
        """The solver of all machines."""
        return Exact() if self.solver is None else self.solver

    def solve(self, problem: Problem, state: Any = None, callbacks=()) -> Fit:
        """Edit and train; ``callbacks`` see the iterations of the last machine. There is no warm start.

        The objective is that of the last machine over the rows that were kept, before its threshold was moved; NaN for
        the mean of machines.
        """
        begun, rng, clock = time.perf_counter(), problem.generator(), Clock(problem.max_seconds)
        edited = self.edit(problem, rng, clock)
        if self.second_stage:
            fit = self._last(problem, edited, rng, clock, tuple(callbacks))
        else:
            fit = _bag(problem, edited)
        fit.counters["seconds"] = time.perf_counter() - begun
        return fit

    def edit(self, problem: Problem, rng: np.random.Generator, clock: Clock) -> Edited:
        """First stage, and which rows are kept.

        Raises
        ------
        ValueError
            The problem has not two classes, or its kernel is a matrix; or C is to be chosen without validation rows.
        """
        if not isinstance(problem.task, Binary):
            raise ValueError(f"cross-training is for two classes, found {type(problem.task).__name__}")
        if isinstance(problem.kernel, Precomputed):
            raise ValueError("cross-training cuts rows into subsets: it needs a kernel of rows, found 'precomputed'")
        if self.validation_size == 0 and (self.first_C is None or (self.second_stage and self.C is None)):
            raise ValueError("validation_size=0 leaves nothing to choose C and first_C by: give both as numbers")
        labels = problem.examples.labels
        parts = split(labels, self.n_subsets, self.subset_size, self.validation_size, rng)
        first = train(problem, self.inner, parts, self.first_C, int(rng.integers(2**30)), clock)
        margins = np.stack([labels * scores_of(machine, problem.rows, problem.n_jobs) for machine in first.machines])
        n_evals = problem.rows.n_rows * sum(machine.n_basis for machine in first.machines)
        first = replace(first, kernel_evals=first.kernel_evals + n_evals)
        mean, variance = margins.mean(axis=0), margins.var(axis=0)
        mean[parts.validating] = variance[parts.validating] = np.nan
        candidate = ~np.isnan(mean)
        wrong = candidate & (mean + self.variances * variance < 0)
        sure = candidate & ~wrong & (mean - self.variances * variance > 1)
        kept = candidate & ~wrong & ~sure
        returned = self._put_back(labels, mean - self.variances * variance, sure, kept)
        kept[returned] = True
        for sign in (-1, 1):
            # A class that would be lost whole keeps the row that is furthest on its side.
            if not kept[labels == sign].any():
                rows = parts.training[labels[parts.training] == sign]
                kept[rows[np.argmax(mean[rows])]] = True
        return Edited(
            np.flatnonzero(kept), mean, variance, int(wrong.sum()), int(sure.sum()), len(returned), parts, first
        )

    def _put_back(self, labels: Array, confidence: Array, sure: Array, kept: Array) -> Array:
        """Surely right rows of the smaller class, as many as it lacks."""
        sizes = {sign: int(kept[labels == sign].sum()) for sign in (-1, 1)}
        smaller = 1 if sizes[1] < sizes[-1] else -1
        lacking = sizes[-smaller] - sizes[smaller]
        if not self.balance or not lacking:
            return np.zeros(0, np.int64)
        rows = np.flatnonzero(sure & (labels == smaller))
        return rows[np.argsort(confidence[rows], kind="stable")[:lacking]]

    def _last(self, problem: Problem, edited: Edited, rng: np.random.Generator, clock: Clock, callbacks: tuple) -> Fit:
        """Second stage: the last machine, for the price C or the best of `PRICES`."""
        validating = edited.split.validating
        validation = some_rows(problem, validating) if len(validating) else None
        seed, trials, kernel_evals, best = int(rng.integers(2**30)), [], edited.first.kernel_evals, None
        for price in PRICES if self.C is None else (self.C,):
            begun = time.perf_counter()
            rows, fit, n_evals = self._train(problem, edited, price, np.random.default_rng(seed), clock, callbacks)
            kernel_evals += n_evals
            error = np.nan
            if validation is not None:
                kernel_evals += fit.model.n_basis * validation.rows.n_rows
                fit.model, error = with_threshold(fit.model, validation)
            n_basis = fit.model.n_basis
            trials.append({"C": price, "error": error, "n_basis": n_basis, "seconds": time.perf_counter() - begun})
            # Equal errors: the model of fewer vectors.
            if best is None or (error, n_basis) < (trials[best[0]]["error"], trials[best[0]]["n_basis"]):
                best = len(trials) - 1, rows, fit
            if fit.status == Status.INTERRUPTED:
                break
            if sum(trial["error"] > trials[best[0]]["error"] for trial in trials[best[0] + 1 :]) >= PATIENCE:
                break
        assert best is not None
        number, rows, fit = best
        fit.counters["kernel_evals"] = kernel_evals
        fit.basis_rows = None if fit.basis_rows is None else rows[fit.basis_rows]
        fit.state = CrossTrained(replace(edited, kept=rows), trials[number]["C"], trials)
        return fit

    def _train(
        self, problem: Problem, edited: Edited, C: float, rng: np.random.Generator, clock: Clock, callbacks: tuple
    ) -> tuple[Array, Fit, int]:
        """Train on the kept rows, or on as many of them as `max_rows` allows; which, the fit, and evaluations."""

        def fit_to(rows: Array) -> Fit:
            part = some_rows(problem, rows, C=C, max_seconds=clock.left(), random_state=rng)
            return self.inner.solve(replace(part, verbose=problem.verbose), callbacks=callbacks)

        kept, labels = edited.kept, problem.examples.labels
        if self.max_rows is None or self.max_rows >= len(kept):
            fit = fit_to(kept)
            return kept, fit, fit.counters["kernel_evals"]
        right = kept[edited.mean[kept] >= 0]
        kept = right if len(np.unique(labels[right])) == 2 else kept
        everything, kernel_evals = some_rows(problem, kept).rows, 0
        chosen = _first_sample(labels[kept], max(2, int(FIRST_SHARE * self.max_rows)), rng)
        while True:
            rows = kept[chosen]
            fit = fit_to(rows)
            kernel_evals += fit.counters["kernel_evals"]
            room = min(self.max_rows - len(rows), max(1, int(GROWTH * len(rows))))
            if room <= 0 or fit.status == Status.INTERRUPTED:
                return rows, fit, kernel_evals
            margins = labels[kept] * scores_of(fit.model, everything, problem.n_jobs)
            kernel_evals += len(kept) * fit.model.n_basis
            margins[chosen] = np.inf
            wanting = next((below for limit in JOINING if len(below := np.flatnonzero(margins < limit))), None)
            if wanting is None:
                return rows, fit, kernel_evals
            chosen[rng.choice(wanting, min(room, len(wanting)), replace=False)] = True


def _first_sample(labels: Array, size: int, rng: np.random.Generator) -> Array:
    """Mask of about ``size`` rows, as many of each class where there are so many."""
    chosen = np.zeros(len(labels), bool)
    for sign in (-1, 1):
        rows = np.flatnonzero(labels == sign)
        chosen[rng.choice(rows, min(len(rows), size // 2), replace=False)] = True
    return chosen


def _bag(problem: Problem, edited: Edited) -> Fit:
    """The mean of the first machines as one model."""
    machines = edited.first.machines
    support = np.concatenate(edited.first.support)
    rows, place = np.unique(support, return_inverse=True)
    if len(support) != sum(machine.n_basis for machine in machines):
        raise ValueError(f"the mean of machines needs vectors that are training rows, which {problem!r} lacks")
    coef = np.zeros((len(rows), 1))
    np.add.at(coef, place, np.concatenate([machine.coef for machine in machines]) / len(machines))
    model = KernelExpansion(
        basis=problem.rows.take(rows, problem.rows.exact_dtype),
        coef=coef,
        intercept=np.mean([machine.intercept for machine in machines], axis=0),
        plain=np.zeros(0),
        kernel=machines[0].kernel,
        dtype=machines[0].dtype,
    )
    counters = {"kernel_evals": edited.first.kernel_evals}
    state = CrossTrained(edited, edited.first.C, [])
    return Fit(model, Status.CONVERGED, float("nan"), None, [], counters, state, rows)
