"""Losses over all rows at once: F_β, precision and recall at k, ROC area, and the error rate as the plainest of them.

Joachims, "A Support Vector Method for Multivariate Performance Measures", ICML 2005. There is one example, all rows,
of weight n, so that C₁ = n·C:

    ½‖w‖² + C n max_ŷ [Δ(y, ŷ) − ⟨w, Ψ(y) − Ψ(ŷ)⟩],      Ψ(y) = (1/n) Σ_i ½ y_i φ(x_i),

with Δ in [0, 1] over all labellings ŷ of the rows, or for ROC area over all rankings, with
Ψ = 1/(n₊n₋) Σ_{i∈+, j∈−} ½ ȳ_ij (φ(x_i) − φ(x_j)). The argmax is found by sorting: O(n log n).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.binary_and_regression import Binary
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, Task, as_floats

Array = np.ndarray

ROW_BY_ROW = Binary()
TABLES_PER_CALL = 200_000  # table entries (numbers of true positives) in one call: some 10 ms


class OverAllRows(Task):
    """The base class of losses over all rows of two classes."""

    decomposes = False

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode labels −1 and +1 (or 0 and 1) as one example of weight n; single rows cannot have weights."""
        y = np.asarray(y)
        unknown = ~np.isin(y, (-1, 0, 1))
        if y.ndim != 1 or unknown.any():
            found = f"{y[unknown][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
        labels = np.where(y > 0, 1, -1).astype(np.int8)
        n, n_positive = len(labels), int(np.count_nonzero(labels > 0))
        if not 0 < n_positive < n:
            raise ValueError(
                f"a loss over all rows needs rows of both classes, found {n_positive} positive of {n} rows"
            )
        weights = unit_weights(sample_weight, n)
        if np.any(weights != weights[0]):
            raise ValueError(
                "a loss over all rows has no weights of single rows: sample_weight and class_weight must be the same "
                "for all"
            )
        return Examples(
            labels=labels,
            weights=np.array([n * weights[0]]),
            offsets=np.array([0, n], dtype=np.int64),
            per_example={"n_rows": np.array([n])},
        )

    def decode(self, scores, plain, examples=None):
        """Return +1 where the score is positive, −1 elsewhere."""
        return np.where(scores[:, 0] > 0, 1, -1)

    def n_predicted(self, examples: Examples) -> int:
        """Return how many rows to predict positive if the loss leaves the threshold open: as many as are positive."""
        return int(np.count_nonzero(examples.labels > 0))

    def shift(self, scores: Array, examples: Examples) -> float:
        """Return the shift of scores (n, 1) that makes `n_predicted` of them positive, or fewer if scores are equal."""
        order = np.sort(scores[:, 0])
        k = self.n_predicted(examples)
        return -0.5 * float(order[len(order) - k] + order[len(order) - k - 1])

    def measure(self, scores: Array, examples: Examples) -> float:
        """Return the measure trained for, 1 − Δ of the decoded scores (n, 1)."""
        return 1.0 - self.error(self.decode(scores, np.zeros(0), examples), examples)

    def _by_class(self, scores: Array, examples: Examples) -> tuple[Array, Array]:
        """Return the scores of the positive and of the negative rows, each in descending order."""
        positive, falling = examples.labels > 0, -as_floats(scores)[:, 0]
        return -np.sort(falling[positive]), -np.sort(falling[~positive])

    def _table(self, scores: Array, examples: Examples, a: int, b: int, classes: tuple[Array, Array]) -> Array:
        """Return the coefficients of the best labelling with a true and b false positives."""
        coef = np.empty((examples.n_rows, 1))
        core.table_coefficients(
            a=a,
            b=b,
            labels=examples.labels,
            scores=as_floats(scores),
            positives=classes[0],
            negatives=classes[1],
            coef=coef,
        )
        return coef


class ErrorRate(OverAllRows):
    """Share of wrong labels. With Ψ as above this *is* the binary SVM at the same C.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import ErrorRate
    >>> task = ErrorRate()
    >>> task.augment(np.array([[2.0], [0.5]]), np.zeros(0), task.encode(np.array([-1, 1]))).delta
    array([1.])
    """

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        rows = examples.made.setdefault("rows", Examples(examples.labels, np.ones(examples.n_rows)))
        hinge = ROW_BY_ROW.augment(scores, plain, rows)
        hinge.coef[:] /= examples.n_rows
        return Augmented(np.array([hinge.delta.mean()]), hinge.coef)


@dataclass(frozen=True)
class FBeta(OverAllRows):
    """1 − F_β, with F_β = (1 + β²) a / (β² P + a + b) for a of the P positives and b negatives predicted positive.

    A sample without positive rows has F_β = 1 if no row is predicted positive, else 0.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of recall against precision.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import FBeta
    >>> task = FBeta()
    >>> examples = task.encode(np.array([1, -1, -1]))
    >>> round(float(task.measure(np.array([[1.0], [2.0], [-1.0]]), examples)), 3)
    0.667
    """

    beta: float = 1.0

    def __post_init__(self):
        if isinstance(self.beta, bool) or not isinstance(self.beta, Real) or not 0 < float(self.beta) < np.inf:
            raise ValueError(f"beta must be a positive number, found {self.beta!r}")

    def loss(self, a: int, b: int, n_positive: int) -> float:
        """Return Δ of a contingency table."""
        either = self.beta**2 * n_positive + a + b
        return 1.0 - (1.0 + self.beta**2) * a / either if either else 0.0

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. Ties: the fewest predicted positives, of equal scores the last rows."""
        classes = self._by_class(scores, examples)
        a, b = self._best_table(*classes)
        delta = self.loss(a, b, len(classes[0]))
        return Augmented(np.array([delta]), self._table(scores, examples, a, b, classes))

    def _best_table(self, positives: Array, negatives: Array) -> tuple[int, int]:
        """Return the true and false positives of the greatest worth; scores of both classes are in descending order."""
        search = core.best_f_table.prepare(
            max_steps=TABLES_PER_CALL,
            beta_squared=float(self.beta) ** 2,
            positives=positives,
            negatives=negatives,
            kept=np.empty(len(positives) + 1),
            flipped=np.empty(len(negatives) + 1),
        )
        at, a, b, worth = search(at=0, a=0, b=0, worth=0.0)
        while at <= len(positives):
            at, a, b, worth = search(at=at, a=a, b=b, worth=worth)
        return a, b

    def error(self, predicted, examples: Examples) -> float:
        """Return 1 − F_β of predicted labels."""
        true, positive = examples.labels > 0, np.asarray(predicted) > 0
        a = int(np.count_nonzero(true & positive))
        return self.loss(a, int(np.count_nonzero(positive)) - a, int(np.count_nonzero(true)))


@dataclass(frozen=True)
class AtK(OverAllRows):
    """The base class of precision and recall among the k rows of highest scores.

    ŷ ranges over the labellings with k positives, and y itself.
    """

    k: Any = None
    has_threshold = False

    def __post_init__(self):
        is_share = isinstance(self.k, Real) and not isinstance(self.k, bool) and 0 < float(self.k) < 1
        if not (self.k is None or is_share or self._is_count):
            raise ValueError(
                f"k must be an integer >= 1, a share of the rows between 0 and 1, or None; found {self.k!r}"
            )

    @property
    def _is_count(self) -> bool:
        """Whether k is a number of rows."""
        return isinstance(self.k, Integral) and not isinstance(self.k, bool) and int(self.k) >= 1

    def n_predicted(self, examples: Examples) -> int:
        """Return the number of predicted positives: k, in proportion for a sample, or as many as are positive."""
        if self.k is None:
            return super().n_predicted(examples)
        whole = int(examples.per_example["n_rows"][0])
        share = self.k / whole if self._is_count else self.k
        return min(examples.n_rows, max(1, round(share * examples.n_rows)))

    def per(self, examples: Examples) -> int:
        """Return the divisor of the number of true positives: k for precision, all positives for recall."""
        raise TypeError(f"{type(self).__name__} must define per(examples)")

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode labels −1 and +1 (or 0 and 1) as one example; k must leave rows on both sides."""
        examples = super().encode(y, sample_weight)
        if self._is_count and self.k >= examples.n_rows:
            raise ValueError(f"k must be less than the number of rows, {examples.n_rows}; found {self.k}")
        return examples

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. Ties: the fewest true positives, of equal scores the last rows."""
        classes = self._by_class(scores, examples)
        k, per = self.n_predicted(examples), self.per(examples)
        a, worth = core.best_table_at_k(
            k=k,
            per=per,
            positives=classes[0],
            negatives=classes[1],
            kept=np.empty(len(classes[0]) + 1),
            flipped=np.empty(len(classes[1]) + 1),
        )
        if worth < 0:
            return Augmented(np.zeros(1), np.zeros((examples.n_rows, 1)))
        delta = 1.0 - a / per if per else 0.0
        return Augmented(np.array([delta]), self._table(scores, examples, a, k - a, classes))

    def decode(self, scores, plain, examples=None):
        """Return +1 for the k rows of highest scores (of equal ones the last), −1 elsewhere; the examples say k."""
        if examples is None:
            raise TypeError("decode needs the examples: how many rows are positive depends on them")
        labels = np.full(len(scores), -1)
        labels[np.argsort(scores[:, 0], kind="stable")[len(scores) - self.n_predicted(examples) :]] = 1
        return labels

    def error(self, predicted, examples: Examples) -> float:
        """Return 1 − precision or recall of predicted labels."""
        a, per = np.count_nonzero((examples.labels > 0) & (np.asarray(predicted) > 0)), self.per(examples)
        return 1.0 - a / per if per else 0.0


@dataclass(frozen=True)
class PrecisionAtK(AtK):
    """1 − precision among the k rows of highest scores; with k=None the precision/recall break-even point.

    Parameters
    ----------
    k : int, float or None, default=None
        Rows predicted positive; a number below 1 is their share of all rows; None takes as many as are positive,
        where precision equals recall.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import PrecisionAtK
    >>> task = PrecisionAtK(2)
    >>> float(task.measure(np.array([[1.0], [3.0], [-1.0], [2.0]]), task.encode(np.array([1, 1, -1, -1]))))
    0.5
    """

    def per(self, examples):
        """Return the number of predicted positives."""
        return self.n_predicted(examples)


@dataclass(frozen=True)
class RecallAtK(AtK):
    """1 − recall among the k rows of highest scores: the share of positives that are not there.

    Parameters
    ----------
    k : int, float or None, default=None
        The same as in `PrecisionAtK`.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import RecallAtK
    >>> task = RecallAtK(1)
    >>> float(task.measure(np.array([[1.0], [3.0], [-1.0], [2.0]]), task.encode(np.array([1, 1, -1, -1]))))
    0.5
    """

    def per(self, examples):
        """Return the number of positives."""
        return int(np.count_nonzero(examples.labels > 0))


class ROCArea(OverAllRows):
    """Share of pairs of a positive and a negative row that are ranked the wrong way round: 1 − ROC area.

    Rows of one class only (a sample of some of the rows) have no pair and no loss.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import ROCArea
    >>> task = ROCArea()
    >>> examples = task.encode(np.array([1, -1, -1]))
    >>> scores = np.array([[1.0], [2.0], [-0.5]])
    >>> task.measure(scores, examples)
    0.5
    >>> (task.augment(scores, np.zeros(0), examples).coef.ravel() + 0.0).tolist()
    [0.5, -0.5, 0.0]
    """

    has_threshold = False

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the loss-augmented argmax. A pair is swapped if s₊ − s₋ ≤ 1: its labels −1 and +1 tie at 1."""
        coef, scores, positive = np.empty((examples.n_rows, 1)), as_floats(scores), examples.labels > 0
        positives, negatives = (
            rows[np.argsort(scores[rows, 0])] for rows in map(np.flatnonzero, (positive, ~positive))
        )
        share = core.augment_roc(positives=positives, negatives=negatives, scores=scores, coef=coef)
        return Augmented(np.array([share]), coef)

    def decode(self, scores, plain, examples=None):
        """Return the scores themselves: the prediction is a ranking."""
        return scores[:, 0]

    def error(self, predicted, examples: Examples) -> float:
        """Return 1 − ROC area of predicted scores, ties counted half."""
        positive = examples.labels > 0
        highs, lows = np.sort(np.asarray(predicted)[positive]), np.sort(np.asarray(predicted)[~positive])
        if not len(highs) or not len(lows):
            return 0.0
        below = np.searchsorted(lows, highs, side="left").sum() + np.searchsorted(lows, highs, side="right").sum()
        return 1.0 - float(below) / (2 * len(highs) * len(lows))


# Names that estimators know; the break-even point is precision where as many rows are predicted as are positive.
MULTIVARIATE = {
    "error_rate": ErrorRate,
    "f1": FBeta,
    "prbep": PrecisionAtK,
    "precision_at_k": PrecisionAtK,
    "recall_at_k": RecallAtK,
    "roc_auc": ROCArea,
}
