"""What the models of a table are trained for and judged by: probabilities of classes, or numbers."""

from __future__ import annotations

import numpy as np

from slimsvm import tasks
from slimsvm.deploy.table_model import predictions_of
from slimsvm.estimators._shared.calibrating import calibration_of, some_of_each
from slimsvm.estimators._shared.validating import evenly
from slimsvm.tasks import Task

Array = np.ndarray

# Least probability that counts in a log loss.
LEAST = 1e-7
# Rows of a class among some of many rows. Chosen, not measured.
LEAST_OF_CLASS = 30
# Half the width of the tube of errors that cost nothing, in standard deviations of y.
EPSILON = 0.05


class ClassGoal:
    """Probabilities of two or more classes 0, 1, …, judged by log loss."""

    measure = "log loss"

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.task: Task = tasks.Binary() if n_classes == 2 else tasks.OneVsOne(n_classes)

    def kinds(self, y: Array) -> Array:
        """What every fold has the same share of."""
        return y

    def some_rows(self, y: Array, most: int) -> Array:
        """About so many rows: of every class its share, and at least a few."""
        return some_of_each(y, most, LEAST_OF_CLASS)

    def targets(self, y: Array) -> Array:
        """What columns of many levels are encoded by: whether a row is of the second class, or of each."""
        return (y[:, None] == np.arange(1 if self.n_classes == 2 else 0, self.n_classes)).astype(np.float64)

    def has_all(self, y: Array) -> bool:
        """Whether rows have all classes."""
        return len(np.unique(y)) == self.n_classes

    def calibrate(self, scores: Array, y: Array, weights: Array) -> Array:
        """What makes probabilities of scores."""
        return calibration_of(self.task, scores, np.where(y > 0, 1, -1) if self.n_classes == 2 else y, weights)

    def no_calibration(self) -> Array:
        """A calibration for scores that are log odds as they are."""
        return np.tile([1.0, 1.0, 0.0, 0.0], (self.n_classes * (self.n_classes - 1) // 2, 1))

    def predictions(self, scores: Array, calibration: Array) -> Array:
        """Probabilities (n, n_classes)."""
        return predictions_of(scores, calibration, self.n_classes)

    def evidence(self, predictions: Array, y: Array) -> Array:
        """What the loss of a mean of predictions needs: the probability of the row's own class."""
        return predictions[np.arange(len(y)), y]

    def misfits(self, evidence: Array, y: Array) -> Array:
        """How badly the rows' classes fit."""
        return 1.0 - evidence

    def loss(self, evidence: Array, y: Array, weights: Array) -> float:
        """Log loss."""
        return -float(np.average(np.log(np.maximum(evidence, LEAST)), weights=weights))

    def loss_without_columns(self, y: Array, weights: Array) -> float:
        """The loss of the classes' shares for every row."""
        shares = np.bincount(y, weights, self.n_classes) / weights.sum()
        return self.loss(shares[y], y, weights)


class NumberGoal:
    """Numbers of mean 0 and variance 1, judged by their root mean squared error."""

    measure = "root mean squared error"

    def __init__(self) -> None:
        self.task: Task = tasks.Regression(EPSILON)

    def kinds(self, y: Array) -> Array:
        """Every fold has its share of small and of large numbers."""
        return np.argsort(np.argsort(y, kind="stable"), kind="stable") // 5

    def some_rows(self, y: Array, most: int) -> Array:
        """At most so many rows, at equal distances in the order of y."""
        return np.sort(np.argsort(y, kind="stable")[evenly(len(y), most)])

    def targets(self, y: Array) -> Array:
        """What columns of many levels are encoded by."""
        return y[:, None]

    def has_all(self, y: Array) -> bool:
        """Whether there are rows."""
        return len(y) > 0

    def calibrate(self, scores: Array, y: Array, weights: Array) -> Array:
        """Nothing: scores are numbers as they are."""
        return self.no_calibration()

    def no_calibration(self) -> Array:
        """A calibration for scores that are numbers as they are."""
        return np.zeros((0, 4))

    def predictions(self, scores: Array, calibration: Array) -> Array:
        """The scores, of shape (n, 1)."""
        return scores

    def evidence(self, predictions: Array, y: Array) -> Array:
        """What the loss of a mean of predictions needs: the predictions."""
        return predictions[:, 0]

    def misfits(self, evidence: Array, y: Array) -> Array:
        """How far the rows' numbers are from the predictions."""
        return np.abs(evidence - y)

    def loss(self, evidence: Array, y: Array, weights: Array) -> float:
        """Root mean squared error."""
        return float(np.sqrt(np.average((evidence - y) ** 2, weights=weights)))

    def loss_without_columns(self, y: Array, weights: Array) -> float:
        """The loss of the mean for every row."""
        return self.loss(np.full(len(y), np.average(y, weights=weights)), y, weights)


Goal = ClassGoal | NumberGoal
