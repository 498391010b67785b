"""The base classes of tasks, by what a label is. A task is the only part of the library that knows what y means.

A task turns scores (and plain parameters) into each example's loss-augmented argmax

    ŷ_e = argmax_ŷ  Δ(y_e, ŷ) − ⟨w, δΨ_e(ŷ)⟩,        δΨ_e(ŷ) = Ψ(x_e, y_e) − Ψ(x_e, ŷ),

given as the constant c_e = Δ(y_e, ŷ_e) and the coefficients of δΨ_e(ŷ_e) over (row, output column) and over the
plain parameters. The example's loss is ℓ_e = c_e − Σ coef · scores − ⟨plain_e, v⟩ ≥ 0. Ties go to the lowest label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights

Array = np.ndarray

# Targets that differ by less than this share of their size are alike: half the digits of float64.
ROUNDING = 1e-8


@dataclass(frozen=True)
class Augmented:
    """Loss-augmented argmax of every example, as the constraint it stands for.

    Parameters
    ----------
    delta : float64 ndarray of shape (n_examples,)
        The constant c_e.
    coef : float64 ndarray of shape (n_rows, n_outputs)
        Coefficients of δΨ_e over rows and output columns, not yet weighted.
    plain : float64 ndarray of shape (n_examples, n_plain) or None
        δΨ_e over the plain parameters; None when there are none.
    """

    delta: Array
    coef: Array
    plain: Array | None = None


@dataclass(frozen=True)
class Smoothed:
    """A soft maximum in place of each example's maximum over labels, of temperature τ.

    Parameters
    ----------
    loss, value : float
        Weighted sums of the losses themselves and of the smoothed ones.
    dual : tuple of two floats
        Weighted sum of the constants Σ_ŷ a_ŷ Δ(y, ŷ), with a the soft argmax: with ``residual`` a dual point. Where
        there is one output, over the rows of positive residual and over the others; otherwise all in the first.
    residual : float64 ndarray of shape (n_rows, n_outputs)
        Minus the derivative of ``value`` by the scores.
    curvature : float64 ndarray of shape (n_rows, n_outputs)
        The second derivative by each score alone.
    share : float64 ndarray of shape (n_rows, n_outputs) or None
        The soft argmax a where there are several outputs. The second derivatives by two scores of a row are
        ω/τ (diag(a) − a aᵀ).
    """

    loss: float
    value: float
    dual: tuple[float, float]
    residual: Array
    curvature: Array
    share: Array | None = None


@dataclass(frozen=True)
class RowDual:
    """max_v Σ t_i v_i − ε Σ |v_i| − ½ v'Kv,  lo ≤ v ≤ hi: the dual of a loss, one variable for each row."""

    target: Array  # t
    epsilon: float
    lo: Array
    hi: Array
    total: float = 0.0  # the value of Σ v_i if the objective has a term in the intercept


class Task:
    """Base class of tasks; a user's own task overrides the three methods and the sizes.

    Attributes
    ----------
    n_outputs : int
        Columns m of the score matrix.
    n_plain : int
        Number p of plain parameters (0: none).
    decomposes : bool
        True when the loss is a sum over examples, so that cuts add up block by block. False for a loss over all
        rows at once: then ``encode`` gives one example and sampled cuts sample rows of its sum.
    has_threshold : bool
        False where a constant added to all scores changes no loss (a loss that only ranks rows): estimators then
        train without an intercept and choose it afterwards.
    has_two_classes : bool
        Labels are −1 and +1 and the loss is the hinge of one score, as in `Binary`.
    has_class_scores : bool
        Labels are classes, each with its own score, or two that share one.
    has_targets : bool
        Labels are numbers to be predicted.
    has_costs : bool
        Whether one wrong label costs more than another.
    has_object_labels : bool
        Labels are any Python objects, each example's with a ``structure`` beside it (`ExampleTask`).
    intercept_nu : float
        ν where the objective has the term ν C Ω b in the intercept b beside the losses, as with one class; else 0.
    step_loss : int or None
        Loss that steps on single rows have for this task: HINGE, ONE_VS_REST or EPSILON_INSENSITIVE of `slimsvm.core`.
    is_compiled : bool
        Whether compiled descents have this very loss, by its ``core_loss``. Not inherited: see ``bounded_by``.
    is_smooth : bool
        Whether the loss has two derivatives, so that `smooth` is the loss itself at any temperature. Not inherited.
        Such a task says what users call it, in ``loss``.
    has_log_odds : bool
        Whether scores are log odds: of the second of two classes, of each label; of several classes their differences.
    has_log_link : bool
        Whether scores are logarithms of the numbers that are predicted.
    bounded_by : {"rows", "classes", "residuals", "cuts"}
        What bounds the optimum from below: ascent on a dual variable for each row (`row_dual`), ascent on one for each
        row and class, residuals of a smooth loss, or cuts. Not inherited: a class derived from a task may have another
        loss.
    """

    n_outputs: int = 1
    n_plain: int = 0
    decomposes: bool = True
    has_threshold: bool = True
    has_two_classes: bool = False
    has_class_scores: bool = False
    has_targets: bool = False
    has_costs: bool = False
    has_object_labels: bool = False
    intercept_nu: float = 0.0
    step_loss: int | None = None
    is_compiled: bool = False
    is_smooth: bool = False
    has_log_odds: bool = False
    has_log_link: bool = False
    bounded_by: str = "cuts"

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("is_compiled", "is_smooth", "bounded_by"):
            if name not in vars(cls):
                setattr(cls, name, getattr(Task, name))

    def encode(self, y: Any, sample_weight: Array | None = None) -> Examples:
        """Encode labels and weights as the examples of this task."""
        raise TypeError(f"{type(self).__name__} must define encode(y, sample_weight)")

    def augment(self, scores: Array, plain: Array, examples: Examples) -> Augmented:
        """Return every example's loss-augmented argmax for scores (n_rows, n_outputs) and plain parameters
        (n_plain,).
        """
        raise TypeError(f"{type(self).__name__} must define augment(scores, plain, examples)")

    def decode(self, scores: Array, plain: Array, examples: Examples | None = None) -> Array:
        """Return the best labels for scores (n_rows, n_outputs); ties go to the lowest label."""
        raise TypeError(f"{type(self).__name__} must define decode(scores, plain, examples)")

    def along(self, base, direction, k: float, examples: Examples, n_jobs: int = 1) -> tuple[float, float]:
        """Return the weighted sum of the losses at base + k·direction, and its slope in k.

        Parameters
        ----------
        base, direction : pairs (scores, plain)
        k : float
        examples : Examples
        n_jobs : int
            Threads, for tasks that override this with a compiled pass.
        """
        scores, plain = base[0] + k * direction[0], base[1] + k * direction[1]
        augmented = self.augment(scores, plain, examples)
        value = float(examples.weights @ losses(augmented, scores, plain, examples))
        by_row = np.einsum("ij,ij->i", augmented.coef, direction[0])
        weights = examples.weights if examples.offsets is None else examples.weights[examples.example_of_rows()]
        slope = -float(weights @ by_row)
        if augmented.plain is not None:
            slope -= float(examples.weights @ (augmented.plain @ direction[1]))
        return value, slope

    def smooth(self, scores: Array, tau: float, examples: Examples, n_jobs: int = 1) -> Smoothed:
        """Return smoothed losses at temperature tau, for solvers that need derivatives. Tasks may do without."""
        raise NotImplementedError(f"{type(self).__name__} has no smoothed loss")

    def core_loss(self, examples: Examples) -> core.Structure:
        """Return the loss with labels and weights: ``core.RowLoss`` or ``core.SequenceLoss``. Tasks may do without."""
        raise TypeError(f"{type(self).__name__} must define core_loss(examples)")

    def row_dual(self, examples: Examples, C: Array) -> RowDual:
        """Return the dual with one variable for each row; ``C`` has C ω_i of each. Tasks may do without."""
        raise NotImplementedError(f"{type(self).__name__} has no dual with one variable for each row")

    @property
    def has_dual(self) -> bool:
        """Whether `row_dual` is defined."""
        return type(self).row_dual is not Task.row_dual

    def shift(self, scores: Array, examples: Examples) -> float:
        """Return the shift of scores (n_rows, 1) that were trained without a threshold. Tasks may do without."""
        raise NotImplementedError(f"{type(self).__name__} has no threshold")

    @property
    def has_shift(self) -> bool:
        """Whether `shift` is defined, and wanted."""
        return type(self).shift is not Task.shift and not self.has_threshold

    def class_pairs(self) -> Sequence[tuple[int, int]]:
        """Return the pairs of classes, each a two-class problem with its own score; none if the task is one problem."""
        return ()

    def pair_factor(self, k: int) -> float:
        """Return the factor of C of pair k of the `class_pairs`."""
        return 1.0

    def pair_factors(self) -> Array:
        """Return the factor of C of each of the `class_pairs`."""
        return np.ones(len(self.class_pairs()))

    def columns(self, examples: Examples) -> list[tuple[Task, Examples]]:
        """Return tasks of one score with their examples, which share only the rows and are solved one after another,
        each by its own dual; none if the task is one problem.
        """
        return []

    @property
    def has_columns(self) -> bool:
        """Whether `columns` has tasks."""
        return False

    def in_pairs(self) -> Task | None:
        """Return the task of the same classes as pairs, if each class has its own score and costs are equal; else
        None.
        """
        return None

    def in_scores(self) -> Task | None:
        """Return the task of the same pairs of classes as one score per class, if a solver may choose that, or None."""
        return None

    def units(self, examples: Examples) -> tuple[float, float]:
        """What scores, and the slopes of losses, are measured in: 1, unless labels are numbers, which have units."""
        return 1.0, 1.0

    @property
    def is_smoothable(self) -> bool:
        """Whether `smooth` is defined."""
        return type(self).smooth is not Task.smooth

    def error(self, predicted: Array, examples: Examples) -> float:
        """Return the weighted training error of predicted labels (share of rows by default)."""
        if examples.are_alike:
            return np.count_nonzero(np.asarray(predicted) != examples.labels) / max(1, examples.n_rows)
        weights = examples.weights[examples.example_of_rows()]
        return float(np.average(np.asarray(predicted) != examples.labels, weights=weights))


class RowLoss(Task):
    """The base class of tasks over single rows whose loss the core computes; a task names the loss."""

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        scores, n = as_floats(scores), examples.n_rows
        augmented = Augmented(
            np.empty(n), np.empty(scores.shape), np.empty((n, self.n_plain)) if self.n_plain else None
        )
        own = {"plain": as_floats(plain), "part": augmented.plain} if self.n_plain else {}
        core.augment_rows(
            loss=self._made_for(examples), scores=scores, delta=augmented.delta, coef=augmented.coef, **own
        )
        return augmented

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        plain = {}
        if self.n_plain:
            plain = {"base_plain": as_floats(base[1]), "direction_plain": as_floats(direction[1])}
        return core.losses_along(
            loss=self._made_for(examples),
            n_threads=n_jobs,
            step=k,
            base=as_floats(base[0]),
            direction=as_floats(direction[0]),
            **plain,
        )

    def _made_for(self, examples: Examples) -> core.Structure:
        """Return the `core_loss` of these examples, made once."""
        task, loss = examples.made.get("loss", (None, None))
        if task is not self:
            loss = self.core_loss(examples)
            examples.made["loss"] = self, loss
        return loss


class SmoothRowLoss(RowLoss):
    """A `RowLoss` whose smoothed form the core computes, too."""

    has_share = False

    def smooth(self, scores, tau, examples: Examples, n_jobs=1):
        scores = as_floats(scores)
        residual, curvature = np.empty(scores.shape), np.empty(scores.shape)
        share = np.empty(scores.shape) if self.has_share else None
        loss, value, dual, rest = core.smooth_losses(
            loss=self._made_for(examples),
            n_threads=n_jobs,
            tau=tau,
            scores=scores,
            residual=residual,
            curvature=curvature,
            share=share,
        )
        return Smoothed(loss, value, (dual, rest), residual, curvature, share)


def as_floats(values: Array) -> Array:
    """Return a C-contiguous float64 array."""
    return np.ascontiguousarray(values, np.float64)


def pieces(offsets: Array, n_rows: int) -> list[tuple[int, int]]:
    """Return ranges of examples with about that many rows: no call into compiled code may take long."""
    if len(offsets) > 1 and offsets[-1] - offsets[0] <= n_rows:
        return [(0, len(offsets) - 1)]
    starts = np.arange(offsets[0] + n_rows, offsets[-1], n_rows)
    bounds = np.unique([0, *np.searchsorted(offsets, starts), len(offsets) - 1]).tolist()
    return list(pairwise(bounds))


def losses(augmented: Augmented, scores: Array, plain: Array, examples: Examples) -> Array:
    """Return ℓ_e of every example, float64 (n_examples,)."""
    by_row = np.einsum("ij,ij->i", augmented.coef, scores)
    if examples.offsets is not None:
        by_row = np.add.reduceat(np.append(by_row, 0.0), examples.offsets[:-1]) * (examples.lengths > 0)
    values = augmented.delta - by_row
    if augmented.plain is not None:
        values = values - augmented.plain @ plain
    return values


# ---- kinds of labels; a task with a loss of the core derives from one of these, and adds the loss


class TwoClasses(SmoothRowLoss):
    """One score, positive for the second of two classes."""

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode labels −1 and +1 (any two-valued codes 0/1 are mapped to them) and weights as one-row examples."""
        y = np.asarray(y)
        known = (y == 1) | (y == 0) | (y == -1)
        if y.ndim != 1 or not known.all():
            found = f"{y[~known][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"binary labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
        labels = np.where(y > 0, np.int8(1), np.int8(-1))
        return Examples(labels=labels, weights=unit_weights(sample_weight, len(labels)))

    def decode(self, scores, plain, examples=None):
        """Return +1 where the score is positive, −1 elsewhere."""
        return np.where(scores[:, 0] > 0, 1, -1)


class SeveralLabels(SmoothRowLoss):
    """A score for each label of a row, positive where the row has it."""

    n_labels: int

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.n_labels

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode an indicator matrix (n, n_labels) of 0 and 1 (or −1 and +1), and weights of its rows."""
        y = np.asarray(y)
        if y.ndim != 2 or y.shape[1] != self.n_labels:
            raise ValueError(f"labels must be an indicator matrix of shape (n, {self.n_labels}), found shape {y.shape}")
        unknown = ~np.isin(y, (-1, 0, 1))
        if unknown.any():
            raise ValueError(f"an indicator matrix holds 0 and 1 (or -1 and +1), found {y[unknown][0]!r}")
        return Examples(np.where(y > 0, 1, -1).astype(np.int8), unit_weights(sample_weight, len(y)))

    def decode(self, scores, plain, examples=None):
        """Return +1 where a score is positive, −1 elsewhere, (n, n_labels)."""
        return np.where(scores > 0, 1, -1)

    def error(self, predicted, examples: Examples) -> float:
        """Return the Hamming loss: the weighted share of wrong labels."""
        wrong = (np.asarray(predicted) > 0) != (examples.labels > 0)
        return float(np.average(wrong.mean(axis=1), weights=examples.weights))


class SeveralClasses(SmoothRowLoss):
    """A score for each class, the greatest of which is the row's."""

    n_classes: int

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.n_classes

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode class codes 0 .. n_classes − 1 and weights as one-row examples."""
        return coded_examples(y, self.n_classes, sample_weight)

    def decode(self, scores, plain, examples=None):
        """Return the column of the largest score, the lowest among equals."""
        return np.argmax(scores, axis=1)


class Targets(SmoothRowLoss):
    """Numbers to predict, one or several in a row, with a score each."""

    n_targets: int

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return self.n_targets

    def units(self, examples: Examples):
        """The spread of the targets, and 1 for losses that grow as residuals do."""
        return spread_of(examples), 1.0

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode targets and weights as one-row examples."""
        return target_examples(y, self.n_targets, sample_weight)

    def decode(self, scores, plain, examples=None):
        """Return the scores themselves: (n,) of one target, (n, m) of several."""
        return scores[:, 0] if scores.shape[1] == 1 else scores


class TargetsWithDual(Targets):
    """`Targets` whose loss has a dual with a variable for each row; several are solved one after another.

    A derived class is a dataclass, whose ``n_targets`` may be 1, and has ``bounded_by = BOUND_OF_TARGETS``.
    """

    @property
    def has_dual(self) -> bool:
        """Whether there is one target."""
        return self.n_targets == 1

    @property
    def has_columns(self) -> bool:
        """Whether there are several targets."""
        return self.n_targets > 1

    def columns(self, examples: Examples):
        one: Any = self
        return columns_of([replace(one, n_targets=1)] * self.n_targets, examples) if self.has_columns else []


# A bound comes from a dual variable for each row with one target, and from cuts with several.
BOUND_OF_TARGETS: Any = property(lambda task: "rows" if task.n_targets == 1 else "cuts")


def coded_examples(y, n_classes: int, sample_weight) -> Examples:
    """Make one-row examples of class codes 0 .. n_classes − 1 and weights."""
    y = np.asarray(y)
    is_number = y.dtype.kind in "biuf"
    bad = ~((y >= 0) & (y < n_classes) & (y % 1 == 0)) if is_number else np.ones(y.shape, bool)
    if y.ndim != 1 or bad.any():
        found = f"{y[bad][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
        raise ValueError(f"class codes must be 0 to {n_classes - 1}, one per row; found {found}")
    return Examples(labels=y.astype(np.int64), weights=unit_weights(sample_weight, len(y)))


def signs_of_classes(examples: Examples, n_classes: int) -> Array:
    """Return +1 in the row's class and −1 in the others, row after row: the labels of one class against the rest."""
    signs = np.where(examples.labels[:, None] == np.arange(n_classes), np.int8(1), np.int8(-1))
    return np.ascontiguousarray(signs).reshape(-1)


def target_examples(y, n_targets: int, sample_weight) -> Examples:
    """Make one-row examples of targets (n,), or (n, n_targets) if a row has several, and weights."""
    y = np.asarray(y, dtype=np.float64)
    if y.shape[1:] != (() if n_targets == 1 else (n_targets,)) or not np.all(np.isfinite(y)):
        each = "one per row" if n_targets == 1 else f"{n_targets} per row"
        raise ValueError(f"regression targets must be finite numbers, {each}")
    return Examples(labels=y, weights=unit_weights(sample_weight, len(y)))


def targets_of(examples: Examples) -> Array:
    """Return the targets of all rows, row after row, as the core has them."""
    return as_floats(examples.labels).reshape(-1)


def columns_of(tasks: list[Any], examples: Examples) -> list[tuple[Task, Examples]]:
    """Return each task with the examples of its target; a single target serves all tasks."""
    labels = examples.labels
    columns = [labels] * len(tasks) if labels.ndim == 1 else list(labels.T)
    return [(task, replace(examples, labels=np.ascontiguousarray(own))) for task, own in zip(tasks, columns)]


def spread_of(examples: Examples) -> float:
    """Standard deviation of the targets; their size where that is all but rounding, and 1 where all are 0."""
    if "spread" not in examples.made:
        y, weights = as_floats(examples.labels), examples.weights
        largest = float(np.abs(y).max(initial=0.0)) or 1.0
        y = y / largest
        spread, size = (
            float(np.sqrt(np.average(np.square(values).reshape(len(y), -1).mean(axis=1), weights=weights)))
            for values in (y - np.average(y, axis=0, weights=weights), y)
        )
        examples.made["spread"] = largest * (spread if spread > ROUNDING * size else size) or 1.0
    found: float = examples.made["spread"]
    return found


def mean_loss_of(task: Task, scores, examples: Examples) -> float:
    """Return the weighted mean loss of scores."""
    scores, plain = np.reshape(scores, (-1, task.n_outputs)), np.zeros(0)
    found = losses(task.augment(scores, plain, examples), scores, plain, examples)
    return float(np.average(found, weights=examples.weights))


def row_loss(code: int, examples: Examples, n_outputs: int, n_classes: int = 0, **labels: Any) -> core.Structure:
    """Make a loss of rows with labels and weights, as the core has it."""
    weights = as_floats(examples.weights)
    return core.RowLoss(code=code, n_outputs=n_outputs, n_classes=n_classes, weights=weights, **labels)
