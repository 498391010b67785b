"""Kinds of labels: one of two classes, several labels, a class's number, or numbers to predict.

A task with a loss that the core computes derives from one of these, and adds the loss.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import SmoothRowLoss, Task, as_floats, losses

Array = np.ndarray

# Targets that differ by less than this share of their size are alike: half the digits of float64.
ROUNDING = 1e-8


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
        """Return the number of labels, each of which has a score column."""
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
        """Return the number of classes, each of which has a score column."""
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
        """Return the number of targets, each of which has a score column."""
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
        """Return each target as a task of its own."""
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
