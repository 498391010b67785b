"""Cross-training: SVMs of random subsets decide which rows the last SVM is trained on.

Problem: rows x_i with labels y_i = ±1, some of them wrong; find an SVM of few vectors that errs little on new rows.
Bakır, Bottou, Weston, "Breaking SVM Complexity with Cross-Training", NIPS 2004, algorithm 3:

    1     draw s subsets of r rows
    2     train the SVMs f_1 … f_s on them
    3     for each row the mean m_i and the variance v_i of y_i f_1(x_i) … y_i f_s(x_i)
    4, 5  discard m_i + κ v_i < 0 (wrong side) and m_i − κ v_i > 1 (surely right);  κ = 1 in the paper
    6     train on the rest, C and threshold chosen on validation rows

and what section 4.3 needed beside it: the smaller class of what is kept gets back rows that were discarded as surely
right, the nearest to the margin first, until both classes have as many. Nothing is iterated; a search for C stops
after PATIENCE values that err more, or where its share of the time is over.

Not the paper's: validation rows join the last training once they have chosen, unless asked; κ = 0 unless asked,
since with rows that an SVM has seen among the s the variance keeps rows with turned labels; and the last SVM is one of
few vectors, with the best coefficients for all rows. Where that does worse than the SVMs of the subsets, κ = 1 and the
paper's last SVM take its place.

Parts: `cross_training_stages` (subsets, their SVMs, few vectors, thresholds), `Exact` or another solver for all SVMs,
`LowRank` for the coefficients of few vectors.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.core.clock import OutOfTimeError, no_limit, time_limit
from slimsvm.editing.cross_training_stages import (
    SETTINGS,
    SURE,
    Clock,
    FirstStage,
    Found,
    Limit,
    Path,
    Spanned,
    Split,
    grow,
    is_worse,
    scores_of,
    some_rows,
    split,
    train_on_subsets,
    worthwhile_threshold,
)
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Need, Problem, check_needs
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Solver
from slimsvm.parts.values_of_C import VALUES_OF_C, AlongC
from slimsvm.solvers import Exact

Array = np.ndarray

# The limit on vectors is lifted if the SVM of few vectors has this many more errors than the subsets' SVMs, as a share.
MOST_LOST = 0.01
# κ of the paper, which then decides on the rows.
PAPERS_VARIANCES = 1.0
# The shares of a time limit that are over once there are vectors, and once C is chosen.
VECTORS_SHARE, CHOICE_SHARE = 0.7, 0.85
# Among values of C whose SVMs have at most AS_FEW times the fewest vectors the lowest is taken: a higher one only fits
# more closely.
AS_FEW = 1.1


@dataclass(frozen=True)
class Edited:
    """The rows that cross-training kept and discarded, and why."""

    kept: Array  # int64: positions of the rows the last SVM is (or would be) trained on, ascending
    # mean, variance: float64 (n_rows,), m_i and v_i
    mean: Array
    variance: Array
    # n_wrong, n_sure, n_returned: rows discarded on the wrong side, as surely right, and put back of the latter
    n_wrong: int
    n_sure: int
    n_returned: int
    split: Split
    first: FirstStage


@dataclass(frozen=True)
class CrossTrained:
    """The record of a fit, which is `Fit.state`."""

    edited: Edited
    C: float  # C of the last SVM, or of the subsets' SVMs if there is no last one
    trials: list[dict[str, Any]]  # ``C``, ``error``, ``n_basis`` and ``seconds`` of every C tried for the last SVM


NEEDS = (
    Need(lambda problem: problem.task.has_two_classes, "{solver} is for two classes, found {task}"),
    Need(
        lambda problem: problem.kernel.has_features,
        "{solver} cuts rows into subsets: it needs a kernel of rows, found 'precomputed'",
    ),
)


@dataclass(frozen=True)
class Choice:
    """The chosen or given C and threshold of the last SVM, and the values of C that were tried."""

    C: float
    threshold: float
    trials: list[dict[str, Any]]


@dataclass(eq=False, repr=False)
class CrossTrainer(Solver):
    """Cross-training as a solver of two-class problems: it chooses the rows, the values of C and the threshold itself.

    Parameters
    ----------
    solver : Solver or None, default=None
        The solver of all SVMs; None: `Exact`.
    n_subsets, subset_size, validation_size
        Arguments of `split`.
    first_C, C : float or None
        C of the SVMs of the subsets and of the last one; None: chosen on rows held out.
    variances : float
        κ above.
    balance : bool
        Whether the smaller class gets rows back.
    max_basis : int, "auto" or None
        Cap on the vectors of the last SVM (`Limit`). None: all that it has on the kept rows.
    second_stage : bool
        False: the mean of the SVMs of the subsets instead of a last one (bagging).
    rejoin : bool
        Whether the validation rows join the last training; False: they only choose.
    deviations : float
        Standard errors by which values of C and thresholds have to be better.
    """

    solver: Any = None
    n_subsets: Any = 5
    subset_size: Any = None
    validation_size: Any = None
    first_C: Any = None
    C: Any = None
    variances: float = 0.0
    balance: bool = True
    max_basis: Any = "auto"
    second_stage: bool = True
    rejoin: bool = True
    deviations: float = SURE
    settings: Any = SETTINGS

    @property
    def svm_solver(self) -> Solver:
        """Return the solver of all SVMs."""
        return Exact() if self.solver is None else self.solver

    def solve(self, problem: Problem, state: Any = None, callbacks=()) -> Fit:
        """Edit and train; ``callbacks`` see the iterations of the last SVM. There is no warm start.

        The objective is that of the last SVM before its threshold was moved, over all rows, or with ``max_basis=None``
        over those that were kept; NaN for the mean of the SVMs of the subsets.
        """
        begun, rng, clock = time.perf_counter(), problem.generator(), Clock(problem.max_seconds)
        with no_limit(), warnings.catch_warnings():
            # Each SVM would warn. One warning at the end says what was left out for lack of time.
            warnings.filterwarnings("ignore", ".*time limit", ConvergenceWarning)
            edited = self.edit(problem, rng, clock)
            fit = self._last(problem, edited, rng, clock, tuple(callbacks)) if self.second_stage else None
            has_no_time = fit is not None and fit.status.is_cut and not fit.model.n_basis
            if fit is None or (has_no_time and any(len(rows) for rows in edited.first.support)):
                if has_no_time:
                    clock.is_over()  # the mean's own status does not say it
                fit = _bag(problem, edited)
        if fit.status is Status.TIME_LIMIT or clock.status is not Status.CONVERGED:
            fit.status = clock.status if clock.status is not Status.CONVERGED else fit.status
            first, last = (
                trials[-1]["C"] if trials else fit.state.C for trials in (edited.first.trials, fit.state.trials)
            )
            warnings.warn(
                f"cross-training ended early ({fit.status}): values of C were tried up to first_C={first:g} and C="
                f"{last:g}; raise max_seconds, or accept the model as it is",
                ConvergenceWarning,
                stacklevel=4,
            )
        fit.counters["seconds"] = time.perf_counter() - begun
        return fit

    def edit(self, problem: Problem, rng: np.random.Generator, clock: Clock) -> Edited:
        """Do steps 1 to 5: find which rows are kept.

        Raises
        ------
        ValueError
            The problem has not two classes, or its kernel is a matrix; or C is to be chosen without validation rows.
        """
        check_needs("cross-training", problem, *NEEDS)
        if self.validation_size == 0 and self.second_stage and self.C is None:
            raise ValueError("validation_size=0 leaves nothing to choose C by: give it as a number")
        labels = problem.examples.labels
        parts = split(labels, self.n_subsets, self.subset_size, self.validation_size, rng)
        seed = int(rng.integers(2**30))
        first = train_on_subsets(problem, self.svm_solver, parts, self.first_C, seed, clock, self.deviations)
        return self._kept(labels, parts, first, self.variances)

    def _kept(self, labels: Array, parts: Split, first: FirstStage, variances: float) -> Edited:
        """Do steps 3 to 5, with κ = ``variances``, and give the smaller class rows back if it lacks them."""
        mean, variance = first.margins.mean(axis=0), first.margins.var(axis=0)
        usable = np.isin(np.arange(len(labels)), self._rows_of_last(parts))
        wrong = usable & (mean + variances * variance < 0)
        sure = usable & ~wrong & (mean - variances * variance > 1)
        kept = usable & ~wrong & ~sure
        returned = self._put_back(labels, mean - variances * variance, sure, kept)
        kept[returned] = True
        for sign in (-1, 1):
            # A class that would be lost as a whole keeps the row farthest on its side.
            own = parts.training[labels[parts.training] == sign]
            if not kept[own].any():
                kept[own[np.argmax(mean[own])]] = True
        return Edited(
            np.flatnonzero(kept), mean, variance, int(wrong.sum()), int(sure.sum()), len(returned), parts, first
        )

    def _rows_of_last(self, parts: Split) -> Array:
        """Return the positions of the rows that the last training may use, ascending."""
        return np.union1d(parts.training, parts.validating) if self.rejoin else parts.training

    def _put_back(self, labels: Array, confidence: Array, sure: Array, kept: Array) -> Array:
        """Return as many surely right rows of the smaller class as it lacks, the nearest to the margin first."""
        sizes = {sign: int(kept[labels == sign].sum()) for sign in (-1, 1)}
        smaller = 1 if sizes[1] < sizes[-1] else -1
        lacking = sizes[-smaller] - sizes[smaller]
        if not self.balance or not lacking:
            return np.zeros(0, np.int64)
        rows = np.flatnonzero(sure & (labels == smaller))
        return rows[np.argsort(confidence[rows], kind="stable")[:lacking]]

    def _last(self, problem: Problem, edited: Edited, rng: np.random.Generator, clock: Clock, callbacks: tuple) -> Fit:
        """Do step 6: train an SVM of few vectors, or that of all kept rows."""
        seed, spent = int(rng.integers(2**30)), edited.first.kernel_evals
        fit = None
        if self.max_basis is not None:
            fit, evals = self._few(problem, edited, seed, clock, callbacks)
            spent += evals
        if fit is None:
            if self.max_basis == "auto":  # rows matter here: by the mean alone too many are discarded
                variances = max(self.variances, PAPERS_VARIANCES)
                edited = self._kept(problem.examples.labels, edited.split, edited.first, variances)
            fit, evals = self._whole(problem, edited, clock, callbacks)
            spent += evals
        fit.counters["kernel_evals"] = spent
        return fit

    def _few(
        self, problem: Problem, edited: Edited, seed: int, clock: Clock, callbacks: tuple
    ) -> tuple[Fit | None, int]:
        """Train the SVM of few vectors with the best coefficients for all rows; return it with its kernel evaluations.

        Return None if ``max_basis="auto"`` and these vectors do worse than the SVMs of the subsets.
        """
        validating, training = edited.split.validating, edited.split.training
        found = self._vectors(problem, edited, training, seed, clock)
        choice, spent = Choice(self.C, 0.0, []), found.kernel_evals
        if not found.basis.shape[0]:  # there was no time for any
            return None, spent
        if len(validating):
            judges = [(validating, Spanned(problem, training, found, clock).fit)]
            anywhere = found._replace(basis_rows=None)
            for part in further_parts(validating, training, np.random.default_rng(seed), self.settings.enough):
                others = np.setdiff1d(np.arange(problem.rows.n_rows), part)
                judges.append((part, Spanned(problem, others, anywhere, clock).fit))
            choice, wrong, evals = self._choose(problem, judges, middle, clock)
            spent += evals
            first_wrong = edited.first.margins[:, validating].mean(axis=0) <= 0
            wrong = wrong[: len(validating)]
            lost = wrong.mean() - first_wrong.mean()
            is_lost = self.max_basis == "auto" and lost > MOST_LOST and is_worse(wrong, first_wrong, SURE)
            if is_lost and not clock.is_over(CHOICE_SHARE):
                return None, spent
        rows = self._rows_of_last(edited.split)
        fit = Spanned(problem, rows, found, clock, problem.verbose).fit(choice.C, callbacks)
        return _as_chosen(fit, edited, choice), spent + fit.counters["kernel_evals"]

    def _whole(self, problem: Problem, edited: Edited, clock: Clock, callbacks: tuple) -> tuple[Fit, int]:
        """Train the SVM of all kept rows; return it with its kernel evaluations."""

        def train_on(rows: Array, C: float, callbacks: tuple = (), verbose: int = 0) -> Fit:
            part = some_rows(problem, rows, C=C, max_seconds=clock.left())
            with clock.within():
                return self.svm_solver.solve(replace(part, verbose=verbose), callbacks=callbacks)

        choice, spent, fits = Choice(self.C, 0.0, []), 0, dict[float, Fit]()
        kept = np.intersect1d(edited.kept, edited.split.training)
        if len(edited.split.validating):
            choice, fits, spent = self._fits_along_C(problem, kept, edited.split.validating, clock)
        fit = fits.get(choice.C)
        # Without validation rows that rejoin, the last training is the one by which C was chosen.
        is_last = fit is not None and fit.status is Status.CONVERGED and len(kept) == len(edited.kept)
        if fit is None or not is_last or callbacks or problem.verbose:
            fit = train_on(edited.kept, choice.C, callbacks, problem.verbose)
            spent += fit.counters["kernel_evals"]
        fit.basis_rows = None if fit.basis_rows is None else edited.kept[fit.basis_rows]
        return _as_chosen(fit, edited, choice), spent

    def _fits_along_C(
        self, problem: Problem, kept: Array, validating: Array, clock: Clock
    ) -> tuple[Choice, dict[float, Fit], int]:
        """Choose C of the SVM of the kept rows; return it, the fits at all values tried, and kernel evaluations."""
        path, fits = Path(some_rows(problem, kept), self.svm_solver), dict[float, Fit]()

        def judged(C: float) -> Fit:
            with clock.within():
                fits[C] = path.fit(C, clock.left())
            return fits[C]

        choice, _, spent = self._choose(problem, [(validating, judged)], fewest, clock)
        return choice, fits, spent

    def _choose(
        self,
        problem: Problem,
        judges: Sequence[tuple[Array, Callable[[float], Fit]]],
        rule: Callable[..., int],
        clock: Clock,
    ) -> tuple[Choice, Array, int]:
        """Choose C and threshold of the last SVM; return them, the rows on which it errs, and kernel evaluations.

        Each of ``judges`` is some rows, and a function that trains without them at a given C.
        """
        parts = [some_rows(problem, rows) for rows, _ in judges]
        labels = np.concatenate([part.examples.labels for part in parts])
        trials: list[dict[str, Any]] = []
        thresholds, errors, kernel_evals = [], [], 0
        along_C = AlongC(VALUES_OF_C if self.C is None else (self.C,), "values of C of the last model", problem.verbose)
        for C in along_C:
            if trials and clock.is_over(CHOICE_SHARE):
                break
            begun = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the SVM that is kept warns itself
                fits = [train_at(C) for _, train_at in judges]
            pairs = list(zip(fits, parts, strict=True))
            try:
                with time_limit(clock.left(CHOICE_SHARE) if trials else None):
                    scores = np.concatenate([scores_of(fit.model, part.rows, problem.n_jobs) for fit, part in pairs])
            except OutOfTimeError:
                clock.is_over(CHOICE_SHARE)
                break
            kernel_evals += sum(f.counters["kernel_evals"] + f.model.n_basis * p.rows.n_rows for f, p in pairs)
            thresholds.append(worthwhile_threshold(scores, labels, self.deviations))
            errors.append((scores > thresholds[-1]) != (labels > 0))
            trial = {"C": C, "error": float(errors[-1].mean()), "n_basis": fits[0].model.n_basis}
            trials.append({**trial, "seconds": time.perf_counter() - begun})
            if any(fit.status == Status.INTERRUPTED for fit in fits):
                clock.stop()
                break
            along_C.judge(has_helped=not is_worse(errors[-1], min(errors, key=np.sum), SURE))
        number = rule(errors, [trial["n_basis"] for trial in trials], self.deviations)
        return Choice(trials[number]["C"], thresholds[number], trials), errors[number], kernel_evals

    def _vectors(self, problem: Problem, edited: Edited, usable: Array, seed: int, clock: Clock) -> Found:
        """Find vectors of an SVM of some of the usable kept rows, as many as ``max_basis`` allows."""
        rng = np.random.default_rng(seed)

        def fit_to(rows: Array) -> Fit:
            part = some_rows(problem, rows, C=edited.first.C, max_seconds=clock.left(VECTORS_SHARE), random_state=rng)
            with clock.within():
                fit = self.svm_solver.solve(part)
            if fit.status is Status.INTERRUPTED:
                clock.stop()
            return fit

        kept, labels = np.intersect1d(edited.kept, usable), problem.examples.labels
        limit = Limit.of(self.max_basis, kept, usable, labels, rng, self.settings)
        if limit is None:
            fit = fit_to(kept)
            return Found.of(kept, fit, fit.counters["kernel_evals"])
        right = kept[edited.mean[kept] >= 0]
        offered = right if len(np.unique(labels[right])) == 2 else kept
        return grow(problem, offered, limit, fit_to, rng)


def further_parts(validating: Array, training: Array, rng: np.random.Generator, enough: int) -> list[Array]:
    """Return the training rows in parts as large as the validation rows; none if ``enough`` rows validate already."""
    if len(validating) >= enough:
        return []
    n = max(1, len(training) // len(validating))
    return [np.sort(part) for part in np.array_split(rng.permutation(training), n)]


def fewest(errors: list[Array], n_basis: list[int], deviations: float) -> int:
    """Return the index of the lowest C whose SVM has about the fewest vectors, among values with similar errors."""
    as_good = _alike(errors, deviations)
    least = min(n_basis[j] for j in as_good)
    return next(j for j in as_good if n_basis[j] <= AS_FEW * least)


def middle(errors: list[Array], n_basis: list[int], deviations: float) -> int:
    """Return the index of the middle C among values with similar errors, the lower of two: the best varies more."""
    as_good = _alike(errors, min(deviations, 1.0))
    return as_good[(len(as_good) - 1) // 2]


def _alike(errors: list[Array], deviations: float) -> list[int]:
    least = min(errors, key=np.sum)
    return [j for j, wrong in enumerate(errors) if not is_worse(wrong, least, deviations)]


def _as_chosen(fit: Fit, edited: Edited, choice: Choice) -> Fit:
    """Return the last SVM with its threshold, and the record of the fit."""
    fit.model = fit.model.shifted(-choice.threshold)
    fit.state = CrossTrained(edited, choice.C, choice.trials)
    return fit


def _bag(problem: Problem, edited: Edited) -> Fit:
    """Return the mean of the SVMs of the subsets as one model."""
    models = edited.first.models
    support = np.concatenate(edited.first.support)
    rows, place = np.unique(support, return_inverse=True)
    if len(support) != sum(model.n_basis for model in models):
        raise ValueError(f"the mean of models needs vectors that are training rows, which {problem!r} lacks")
    coef = np.zeros((len(rows), 1))
    np.add.at(coef, place, np.concatenate([model.coef for model in models]) / len(models))
    mean = KernelExpansion(
        basis=problem.rows.take(rows, problem.rows.exact_dtype),
        coef=coef,
        intercept=np.mean([model.intercept for model in models], axis=0),
        plain=np.zeros(0),
        kernel=models[0].kernel,
        dtype=models[0].dtype,
    )
    counters = {"kernel_evals": edited.first.kernel_evals}
    state = CrossTrained(edited, edited.first.C, [])
    return Fit(mean, Status.CONVERGED, float("nan"), None, [], counters, state, rows)
