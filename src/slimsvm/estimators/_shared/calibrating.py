"""Probabilities of a classifier: what they are calibrated on, and the calibration.

The exact solver's scores are those of rows that are left out in closed form (`parts.dual_ascent.leave_one_out`). With
another solver a fifth of the rows is held out of a second fit. A column of scores s has log odds of

    z(s) = u (log(1 + eˢ) − log 2) + w (log 2 − log(1 + e⁻ˢ)) + c sign(s) log(1 + |s|) + b,    u, w, c ≥ 0,

Platt's line for u = w and c = 0, other slopes on the two sides else. It minimises the weighted log loss against Platt's
targets, pulled to his line. `slimsvm.deploy.decisions` makes probabilities of it: for two classes z has the sign of s,
so that they agree with `predict`; pairs of classes are coupled. docs/experiments/probabilities.md has what else was
tried.

Platt, "Probabilistic Outputs for Support Vector Machines", 1999; Price, Knerr, Personnaz, Dreyfus, "Pairwise neural
network classifiers with probabilistic outputs", NIPS 1994 (coupling).
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.metaestimators import available_if

from slimsvm import core
from slimsvm.core.clock import OutOfTimeError, no_limit
from slimsvm.deploy.decisions import ARRAYS, AS_THEY_ARE, LEAST_SHARE, calibration_terms
from slimsvm.estimators._shared.input_checks import wants_probability
from slimsvm.estimators._shared.validating import evenly, shuffled_by_kind, some_of
from slimsvm.model import KernelExpansion
from slimsvm.parts.dual_ascent.leave_one_out import LeaveOneOutSettings, leave_one_out
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import ChosenRows, as_rows
from slimsvm.size_search.compact import Compact
from slimsvm.solvers import Exact
from slimsvm.tasks import OneClass, Ordinal

Array = np.ndarray

# Share of the rows that are held out where none are left out in closed form, and the most of them.
HELD_SHARE, MOST_HELD = 0.2, 5000
# Fewest rows of a class among those that are left out in turn.
LEAST_OF_CLASS = 30
# Rows that were trained on and are calibrated on where there is no time for others. Classes of fewer rows than
# FEWEST_OF_CLASS have none held out.
FEW_ROWS, FEWEST_OF_CLASS = 200, 5
# Scores count as no larger than so many times their median magnitude: Platt's targets would flatten the line for one.
LARGEST_SCORE = 50.0
# How strongly u, w and c are pulled to Platt's slope, in units of its inverse square; pairs of classes: to the slope
# that they share, and b to 0 (docs/experiments/probabilities.md).
PULL, PULL_OF_BIAS = 4.0, 0.5
# How much of a row's log loss may be lost by the sign that log odds keep.
LOST = 0.003
# Log odds of what no row tells against.
SURE = 60.0
# Least slope, and what makes a problem without rows have a solution.
LEAST_SLOPE, WEAK = 1e-6, 1e-8


def out_of_sample(solver: Solver, problem: Problem, fit: Fit) -> tuple[Array, Array]:
    """Rows, and their scores by about the model that would be trained without them.

    Of a fit that was cut short, or where there is no time or there are no rows for anything else, some rows that were
    trained on, and their scores.
    """
    solved = problem if fit.solved is None else fit.solved
    codes = class_numbers(solved.examples.labels, solved.task.has_targets)
    if not (fit.status.is_cut or fit.status is Status.STOPPED):
        try:
            rows, scores = left_out(solver, problem, fit, codes)
            if len(rows):
                return rows, scores
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            message = "interrupted: probabilities are calibrated on rows that were trained on"
            warnings.warn(message, ConvergenceWarning, stacklevel=6)
    with no_limit():
        rows = some_of_each(codes, FEW_ROWS, 1)
        return rows, scores_of(fit, problem, problem.rows.take(rows, problem.rows.exact_dtype))


def left_out(solver: Solver, problem: Problem, fit: Fit, codes: Array) -> tuple[Array, Array]:
    """Rows and scores in closed form where the fit is the exact solver's, else by a second fit; so of several
    quantiles, whose intervals would be too narrow.
    """
    solved = problem if fit.solved is None else fit.solved
    is_exact = isinstance(solver, Exact) and fit.kept is not None and solved.kernel.is_inner_product
    is_exact = is_exact and not (solved.task.has_columns and solved.task.has_targets)
    if is_exact and not fit.is_too_coarse:
        rows = some_of_each(codes, solved.settings_of(LeaveOneOutSettings).most_rows, LEAST_OF_CLASS)
        with suppress(np.linalg.LinAlgError):  # kernel values of no inner product
            return rows, leave_one_out(solved, fit, rows)
    return held_out(solver, problem, fit, codes)


def scores_of(fit: Fit, problem: Problem, rows: Any) -> Array:
    """Scores of rows; of ordered classes less each threshold."""
    scores, thresholds = fit.model.scores(rows, problem.n_jobs), fit.model.plain
    return scores - np.sort(thresholds) if len(thresholds) else scores


def class_numbers(labels: Array, are_targets: bool) -> Array:
    """Numbers 0, 1, … of the classes; 0 for all rows of an indicator matrix, and of targets."""
    if labels.ndim == 2 or are_targets:
        return np.zeros(len(labels), np.int64)
    from_0 = labels.astype(np.int64) - int(labels.min())
    found: Array = (np.cumsum(np.bincount(from_0) > 0) - 1)[from_0]
    return found


def some_of_each(codes: Array, most: int, least: int) -> Array:
    """About ``most`` rows, of every class the same share, but at least ``least`` where it has them; ascending."""
    n = len(codes)
    if n <= most:
        return np.arange(n)
    order = shuffled_by_kind(codes, np.random.default_rng(0))
    parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
    return np.sort(np.concatenate([part[: max(least, round(most * len(part) / n))] for part in parts]))


def held_out(solver: Solver, problem: Problem, fit: Fit, codes: Array) -> tuple[Array, Array]:
    """Rows that a second fit of the same solver leaves out, and their scores by it."""
    n, order = len(codes), shuffled_by_kind(codes, np.random.default_rng(0))
    is_held = np.zeros(n, bool)
    is_held[evenly(n, min(round(HELD_SHARE * n), MOST_HELD))] = True
    is_held[np.bincount(codes)[codes[order]] < FEWEST_OF_CLASS] = False  # the second fit needs what there is of these
    train, held = np.sort(order[~is_held]), np.sort(order[is_held])
    if not len(held):
        return held, np.zeros((0, fit.model.coef.shape[1]))
    state = fit.state if isinstance(solver, Compact) else None  # the number of vectors to try first
    rows = problem.rows
    own: Any
    others: Any
    if rows.in_memory:
        columns: Any = slice(None) if problem.kernel.has_features else train  # a kernel matrix of the rows
        taken: list[Any] = [rows.take(index, rows.exact_dtype) for index in (train, held)]
        own, others = (part[:, columns] for part in taken)
    else:
        own, others = ChosenRows(rows, train), ChosenRows(rows, held)
    _, examples = some_of(problem.task, problem.examples, train)
    # The user's generator goes on as if there had been no second fit.
    seed = problem.random_state if isinstance(problem.random_state, Integral) else 0
    part = replace(problem, rows=as_rows(own), examples=examples, kept=None, verbose=0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit of all rows has said it
        found = solver.solve(part, state)
    fit.counters["kernel_evals"] += found.counters["kernel_evals"]
    scores = scores_of(found, problem, others)
    if isinstance(problem.task, OneClass):  # whose scores grow with the weights of the rows
        scores *= problem.examples.total_weight / examples.total_weight
    return held, scores


# -- the calibration ---------------------------------------------------------------------------------------------------


def calibrate(
    scores: Array, is_first: Array, weights: Array, starts: Array | None = None, keeps_sign: bool = True
) -> Array:
    """Parameters (u, w, c, b) of every column of scores; ``is_first``: which rows are of the class of positive scores.

    Columns of pairs of classes stand one after another, from ``starts`` on, and share what they are pulled to; None:
    there is one column. ``keeps_sign``: its log odds have the sign of the score. b then counts at most as much as the
    rest: where that loses much, as where scores tell nothing but which class is rare, b is 0, and slopes say it.
    """
    weights = weights * (len(weights) / max(weights.sum(), np.finfo(float).tiny))
    size = np.abs(scores)
    half = len(size) // 2
    most = LARGEST_SCORE * float(np.partition(size, half)[half]) if len(scores) else 0.0
    if most > 0 and float(size.max()) > most:
        scores = np.clip(scores, -most, most)
        size = np.abs(scores)
    whole, unit = np.array([0, len(scores)]), float(size.mean()) if len(scores) else 1.0
    unit = unit if unit > 0 else 1.0  # slopes are those of scores of about 1
    line = np.stack([scores / unit, np.ones_like(scores)])
    if starts is None:
        targets = smoothed_targets(is_first, weights)
        a, b = fitted(line, targets, weights, whole, np.array([[1.0, 0.0]]), [WEAK, WEAK], 1)[0]
        terms = calibration_terms(scores)
        terms[:3] /= unit
        pulls = np.array([PULL, PULL, PULL, 0.0]) / max(a, LEAST_SLOPE) ** 2 + WEAK
        found = fitted(terms, targets, weights, whole, np.array([[a, a, 0.0, b]]), pulls, 3)
        if keeps_sign:
            free, kept = (log_loss_of(found, terms, targets, weights, keeps) for keeps in (False, True))
            if kept > free + LOST * len(scores):
                a = float(fitted(line[:1], targets, weights, whole, np.array([[1.0]]), [WEAK], 1)[0, 0])
                pulls = np.full(3, PULL / max(a, LEAST_SLOPE) ** 2 + WEAK)
                slopes = fitted(terms[:3], targets, weights, whole, np.array([[a, a, 0.0]]), pulls, 3)
                without = np.append(slopes, [[0.0]], axis=1)
                found = without if log_loss_of(without, terms, targets, weights, True) < kept else found
    else:
        signed = np.where(is_first, line[:1], -line[:1])
        targets = smoothed_targets(np.ones(len(scores), bool), weights)
        a = float(fitted(signed, targets, weights, whole, np.ones((1, 1)), [WEAK], 1)[0, 0])
        pulls = [PULL / max(a, LEAST_SLOPE) ** 2, PULL_OF_BIAS]
        lines = fitted(
            line, is_first.astype(np.float64), weights, starts, np.tile([a, 0.0], (len(starts) - 1, 1)), pulls, 1
        )
        found = np.column_stack([lines[:, 0], lines[:, 0], np.zeros(len(lines)), lines[:, 1]])
    found[:, :2] = np.maximum(found[:, :2], LEAST_SLOPE)
    found[:, :3] /= unit
    return found


def log_loss_of(parameters: Array, terms: Array, targets: Array, weights: Array, keeps_sign: bool) -> float:
    """The log loss of one column, as a decision has its log odds."""
    rest = (parameters[0, :3, None] * terms[:3]).sum(axis=0)
    size, own = np.abs(rest), np.where(rest < 0, -1.0, 1.0) * parameters[0, 3]
    z = np.sign(rest) * np.maximum(size + np.minimum(own, size), LEAST_SHARE * size)
    z = z if keeps_sign else rest + parameters[0, 3]
    return float((weights * (np.logaddexp(0.0, z) - targets * z)).sum())


def smoothed_targets(is_first: Array, weights: Array) -> Array:
    """Platt's: what Laplace's rule says of as many rows, in place of 1 and 0."""
    first = float(weights[is_first].sum())
    others = float(weights.sum()) - first
    return np.where(is_first, (first + 1.0) / (first + 2.0), 1.0 / (others + 2.0))


def fitted(
    terms: Array, targets: Array, weights: Array, starts: Array, centre: Array, pulls: Any, n_bounded: int
) -> Array:
    """θ of min Σ ω_i [log(1 + e^{z_i}) − t_i z_i] + ½ Σ_j pull_j (θ_j − centre_j)², z = θ·terms, in each column.

    The first ``n_bounded`` of θ are at least 0. Columns stand one after another, from ``starts`` on.
    """
    theta = np.empty_like(centre)
    core.fit_log_odds(
        terms=terms,
        targets=targets,
        weights=weights,
        starts=starts,
        centre=centre,
        pulls=np.asarray(pulls, np.float64),
        n_bounded=n_bounded,
        theta=theta,
    )
    return theta


# -- the estimator -----------------------------------------------------------------------------------------------------


def has_probability(estimator: Any) -> bool:
    """Whether ``probability`` asks for probabilities; an AttributeError otherwise, so that `hasattr` is False."""
    if not wants_probability(estimator):
        name = type(estimator).__name__
        raise AttributeError(f"{name} has no predict_proba without probability=True, found {estimator.probability!r}")
    return True


class Seen(NamedTuple):
    """Scores of rows of a stream from before they were learned from, with labels and weights."""

    scores: Array
    labels: Array
    weights: Array

    def with_more(self, others: Seen) -> Seen:
        """These and others, the last MOST_HELD of them."""
        both = zip(self, others, strict=True)
        return Seen(*(np.concatenate([own[-MOST_HELD:], more])[-MOST_HELD:] for own, more in both))


class Probabilities:
    """Mixin of classifiers with ``probability``."""

    def _calibrate(self: Any, fit: Fit, problem: Problem) -> tuple[Array, Array] | None:
        """Calibrate the scores of a fit; return the rows and the scores that it was calibrated on. Scores that are log
        odds by training need neither.
        """
        solved = problem if fit.solved is None else fit.solved
        if solved.task.has_log_odds:
            self.calibration_ = log_odds_as_they_are(solved.task)
            return None
        rows, scores = out_of_sample(self.solver_, problem, fit)
        labels, weights = solved.examples.labels[rows], solved.examples.weights
        weights = weights[rows] if len(weights) == len(solved.examples.labels) else np.ones(len(rows))
        ends = int(solved.examples.labels.min()), int(solved.examples.labels.max())
        with no_limit():  # a few thousand rows at most
            self.calibration_ = calibration_of(solved.task, scores + self._centre, labels, weights, ends)
        self._seen = Seen(scores, labels, weights) if hasattr(self.solver_, "partial_solve") else None
        return rows, scores

    def _calibrate_on(self: Any, model: KernelExpansion, problem: Problem, is_first: bool) -> None:
        """Calibrate on the rows of a chunk, by a model that was not trained on them, and on the rows of earlier chunks.

        The first chunk's rows were trained on: they count until there are others.
        """
        rows = problem.rows
        scores = model.scores(rows.slice(0, rows.n_rows, rows.exact_dtype), problem.n_jobs)
        found = Seen(scores, problem.examples.labels, problem.examples.weights)
        before = getattr(self, "_seen", None)
        found = found if before is None else before.with_more(found)
        self._seen = None if is_first else found
        self.calibration_ = calibration_of(problem.task, *found)

    @available_if(has_probability)
    def predict_proba(self: Any, X: Any) -> Array:
        """Probabilities of the classes, calibrated on scores of rows that the model was not trained on.

        With the exact solver these scores approximate those of a model trained without the row, in closed form. With
        other solvers, a second fit with the same C and kernel holds out a fifth of the rows. If C, gamma or scales of
        features were chosen or learned, that used all rows. `partial_fit` calibrates on the last 5,000 rows that it
        received, with their scores before it learned from them, and on the first chunk after it was trained on. A fit
        that was cut short is calibrated on some of its training rows. With ``loss="logistic"`` there is no calibration:
        the scores of two classes and of labels are log odds, those of several classes are logarithms of probabilities,
        up to a constant for each row.

        For two classes, and for each of several labels, `predict` names the class with a probability above 1/2. For
        several classes the odds of all pairs are coupled; for ordered classes each class has the probability between
        its thresholds. The class with the largest probability may then differ from `predict`'s. Probabilities refer to
        the population weighted by ``sample_weight`` and ``class_weight``. Two copies of a row make the same model as
        one row of twice the weight, but not the same probabilities, because a row is left out with its whole weight.
        Ordered classes at an end that had no training rows have probability 0.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
            Columns in the order of ``classes_``. For an indicator matrix (n_samples, n_labels), each label's own.

        Raises
        ------
        AttributeError
            ``probability`` is False.
        NotFittedError
            Before ``fit``, or ``fit`` was without ``probability``.

        References
        ----------
        Platt: Probabilistic Outputs for Support Vector Machines, 1999. Price, Knerr, Personnaz, Dreyfus: Pairwise
        Neural Network Classifiers with Probabilistic Outputs, NIPS 1994.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from slimsvm import SVC
        >>> X, y = load_iris(return_X_y=True)
        >>> SVC(probability=True).fit(X, y).predict_proba(X[:1]).round(1)
        array([[1., 0., 0.]])
        """
        self._check_fitted()
        if getattr(self, "calibration_", None) is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False: fit again with probability=True"
            )
        return self._decision().probabilities(self._scores(X))

    @available_if(has_probability)
    def predict_log_proba(self: Any, X: Any) -> Array:
        """Logarithms of `predict_proba`, at least that of the smallest number.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), float64
        """
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))


def log_odds_as_they_are(task: Any) -> Array:
    """Parameters (u, w, c, b) for every column with which z(s) = s; of several classes for every pair."""
    m = task.n_outputs
    columns = m * (m - 1) // 2 if task.has_class_scores and m > 1 else m
    return np.tile(AS_THEY_ARE, (columns, 1))


def calibration_of(
    task: Any, scores: Array, labels: Array, weights: Array, ends: tuple[int, int] | None = None
) -> Array:
    """Calibrate scores of a task's rows: parameters (u, w, c, b) for every column that is calibrated.

    ``ends`` are the lowest and the highest of ordered classes that have rows.
    """
    if isinstance(task, Ordinal):
        return ordinal_calibration(scores, labels, weights, *(ends or (int(labels.min()), int(labels.max()))))
    if labels.ndim == 2:
        return np.concatenate([calibrate(scores[:, j], labels[:, j] > 0, weights) for j in range(labels.shape[1])])
    if scores.shape[1] == 1:
        return calibrate(scores[:, 0], labels > 0, weights)
    if not task.class_pairs():
        scores = ARRAYS.differences(scores, scores.shape[1])
    found, is_first, index, starts = pair_columns(scores, labels, task.n_classes)
    return calibrate(found, is_first, weights[index], starts)


def ordinal_calibration(scores: Array, labels: Array, weights: Array, lowest: int, highest: int) -> Array:
    """Calibrate scores less each threshold: one line for all, so that they stay in order.

    Where classes outside ``lowest`` to ``highest`` have no rows, a line for each, and all rows are surely within those
    two.
    """
    n_thresholds, used = scores.shape[1], np.arange(lowest, highest)
    above = labels[:, None] > used
    repeated, keeps_sign = np.repeat(weights, len(used)), n_thresholds == 1
    line = calibrate(scores[:, used].ravel(), above.ravel(), repeated, keeps_sign=keeps_sign)
    if len(used) == n_thresholds:
        return line
    lines = np.zeros((n_thresholds, 4))
    lines[:lowest, 3], lines[highest:, 3] = SURE, -SURE
    lines[used] = line
    return lines


def pair_columns(scores: Array, codes: Array, n_classes: int) -> tuple[Array, Array, Array, Array]:
    """Collect the scores of each pair of classes for its own rows, one pair after another: scores, whether rows are of
    the first class, numbers of the rows, and where pairs begin.
    """
    of_class = [np.flatnonzero(codes == c) for c in range(n_classes)]
    sizes = np.array([len(rows) for rows in of_class])
    first, second = np.triu_indices(n_classes, 1)
    pairs = np.stack([first, second], axis=1)
    index = np.concatenate([of_class[c] for c in pairs.ravel()])
    starts = np.concatenate([[0], np.cumsum(sizes[pairs].sum(axis=1))])
    is_first = np.repeat(np.tile([True, False], len(pairs)), sizes[pairs].ravel())
    column = np.repeat(np.arange(len(pairs)), np.diff(starts))
    return scores[index, column], is_first, index, starts
