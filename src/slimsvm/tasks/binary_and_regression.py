"""Losses of one score: two classes (and each label of several), numbers, and one class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, RowDual, SmoothRowLoss, Task, as_floats, losses


def signed_examples(y, sample_weight) -> Examples:
    """One-row examples of labels −1 and +1 (any two-valued codes 0/1 are mapped to them) and weights."""
    y = np.asarray(y)
    known = (y == 1) | (y == 0) | (y == -1)
    if y.ndim != 1 or not known.all():
        found = f"{y[~known][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
        raise ValueError(f"binary labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
    labels = np.where(y > 0, np.int8(1), np.int8(-1))
    return Examples(labels=labels, weights=unit_weights(sample_weight, len(labels)))


def labelled_examples(y, n_labels: int, sample_weight) -> Examples:
    """One-row examples of an indicator matrix (n, n_labels) of 0 and 1 (or −1 and +1), and weights of its rows."""
    y = np.asarray(y)
    if y.ndim != 2 or y.shape[1] != n_labels:
        raise ValueError(f"labels must be an indicator matrix of shape (n, {n_labels}), found shape {y.shape}")
    unknown = ~np.isin(y, (-1, 0, 1))
    if unknown.any():
        raise ValueError(f"an indicator matrix holds 0 and 1 (or -1 and +1), found {y[unknown][0]!r}")
    return Examples(np.where(y > 0, 1, -1).astype(np.int8), unit_weights(sample_weight, len(y)))


def target_examples(y, n_targets: int, sample_weight) -> Examples:
    """One-row examples of targets (n,), or (n, n_targets) where a row has several, and weights."""
    y = np.asarray(y, dtype=np.float64)
    if y.shape[1:] != (() if n_targets == 1 else (n_targets,)) or not np.all(np.isfinite(y)):
        each = "one per row" if n_targets == 1 else f"{n_targets} per row"
        raise ValueError(f"regression targets must be finite numbers, {each}")
    return Examples(labels=y, weights=unit_weights(sample_weight, len(y)))


def targets_of(examples: Examples):
    """The targets of all rows, row after row, as the core has them."""
    return as_floats(examples.labels).reshape(-1)


def columns_of(tasks: list[Task], examples: Examples) -> list[tuple[Task, Examples]]:
    """Each target with its task; the only one with all."""
    labels = examples.labels
    columns = [labels] * len(tasks) if labels.ndim == 1 else list(labels.T)
    return [(task, replace(examples, labels=np.ascontiguousarray(own))) for task, own in zip(tasks, columns)]


def predicted_targets(scores):
    """Scores as predictions: (n,) of one target, (n, m) of several."""
    return scores[:, 0] if scores.shape[1] == 1 else scores


def mean_loss_of(task: Task, scores, examples: Examples) -> float:
    """Weighted mean loss of scores."""
    scores, plain = np.reshape(scores, (-1, task.n_outputs)), np.zeros(0)
    found = losses(task.augment(scores, plain, examples), scores, plain, examples)
    return float(np.average(found, weights=examples.weights))


def share_of_wrong_labels(predicted, examples: Examples) -> float:
    """Hamming loss: weighted share of wrong labels."""
    wrong = (np.asarray(predicted) > 0) != (examples.labels > 0)
    return float(np.average(wrong.mean(axis=1), weights=examples.weights))


@dataclass(frozen=True)
class Binary(SmoothRowLoss):
    """Two classes with Ψ(x, y) = ½ y φ(x), so that ℓ = max(0, cost_y − y f(x)).

    Parameters
    ----------
    cost_negative, cost_positive : float, default=1.0
        Δ for a wrong example of the class −1 and of the class +1: the margin asked of each class. (Class weights
        multiply the loss and belong into the weights of the examples.)

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Binary
    >>> task = Binary()
    >>> examples = task.encode(np.array([-1, 1, 1]))
    >>> task.augment(np.array([[-2.0], [0.5], [3.0]]), np.zeros(0), examples).coef.ravel()
    array([0., 1., 0.])
    """

    cost_negative: float = 1.0
    cost_positive: float = 1.0
    has_two_classes = has_class_scores = is_compiled = True
    step_loss = core.HINGE
    bounded_by = "rows"

    def __post_init__(self):
        for name in ("cost_negative", "cost_positive"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise ValueError(f"{name} must be a positive number, found {getattr(self, name)!r}")

    @property
    def has_costs(self) -> bool:  # type: ignore[override]
        """Whether a margin is not 1."""
        return (self.cost_negative, self.cost_positive) != (1.0, 1.0)

    def encode(self, y, sample_weight=None) -> Examples:
        """Labels −1 and +1 (any two-valued codes 0/1 are mapped to them) and weights as one-row examples."""
        return signed_examples(y, sample_weight)

    def row_dual(self, examples: Examples, price):
        """The dual with one variable for each row, v_i = α_i y_i."""
        is_positive = examples.labels > 0
        target = np.where(is_positive, self.cost_positive, -self.cost_negative)
        return RowDual(target, 0.0, np.where(is_positive, 0.0, -price), np.where(is_positive, price, 0.0))

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        cost = np.array([self.cost_negative, self.cost_positive], np.float64)
        return core.RowLoss(
            code=core.HINGE,
            n_outputs=1,
            n_classes=0,
            signs=np.ascontiguousarray(examples.labels),
            weights=as_floats(examples.weights),
            cost=cost,
        )

    def decode(self, scores, plain, examples=None):
        """+1 where the score is positive, −1 elsewhere."""
        return np.where(scores[:, 0] > 0, 1, -1)


@dataclass(frozen=True)
class Multilabel(SmoothRowLoss):
    """Ψ(x, y) = Σ_l ½ y_l φ(x) ⊗ e_l with y_l = ±1, and ℓ = Σ_l max(0, 1 − y_l s_l): Δ is the number of wrong labels.

    Parameters
    ----------
    n_labels : int
        Number of labels, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Multilabel
    >>> task = Multilabel(2)
    >>> examples = task.encode(np.array([[1, 0], [1, 1]]))
    >>> task.augment(np.array([[2.0, 0.5], [0.5, 2.0]]), np.zeros(0), examples).coef
    array([[ 0., -1.],
           [ 1.,  0.]])
    """

    n_labels: int

    def __post_init__(self):
        if self.n_labels < 1:
            raise ValueError(f"n_labels must be at least 1, found {self.n_labels}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per label."""
        return self.n_labels

    def encode(self, y, sample_weight=None) -> Examples:
        """An indicator matrix (n, n_labels) of 0 and 1 (or −1 and +1), and weights of its rows."""
        return labelled_examples(y, self.n_labels, sample_weight)

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        return core.RowLoss(
            code=core.HINGE,
            n_outputs=self.n_labels,
            n_classes=0,
            signs=np.ascontiguousarray(examples.labels).reshape(-1),
            weights=as_floats(examples.weights),
            cost=np.ones(2),
        )

    def decode(self, scores, plain, examples=None):
        """+1 where a score is positive, −1 elsewhere, (n, n_labels)."""
        return np.where(scores > 0, 1, -1)

    def error(self, predicted, examples: Examples) -> float:
        """Hamming loss: weighted share of wrong labels."""
        return share_of_wrong_labels(predicted, examples)


@dataclass(frozen=True)
class Regression(SmoothRowLoss):
    """ℓ = max(0, |y − f(x)| − ε).

    The constant of a cut may be negative here, so Theorem 1 of the sampled-cut paper does not apply.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half-width of the tube in which residuals cost nothing, in the units of y.
    n_targets : int, default=1
        Targets of a row, whose losses are added up.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Regression
    >>> task = Regression(epsilon=0.5)
    >>> task.augment(np.zeros((2, 1)), np.zeros(0), task.encode(np.array([0.2, -3.0]))).coef.ravel()
    array([ 0., -1.])
    """

    epsilon: float = 0.1
    n_targets: int = 1
    has_targets = is_compiled = True

    def __post_init__(self):
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number >= 0, found {self.epsilon!r}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per target."""
        return self.n_targets

    @property
    def step_loss(self) -> int | None:  # type: ignore[override]
        """Of one target."""
        return core.EPSILON_INSENSITIVE if self.n_targets == 1 else None

    @property
    def bounded_by(self) -> str:  # type: ignore[override]
        """A dual variable for each row of one target; cuts of several."""
        return "rows" if self.n_targets == 1 else "cuts"

    @property
    def has_dual(self) -> bool:
        """Whether there is one target."""
        return self.n_targets == 1

    @property
    def has_columns(self) -> bool:
        """Whether there are several targets."""
        return self.n_targets > 1

    def columns(self, examples: Examples):
        """Each target by itself."""
        return columns_of([Regression(self.epsilon)] * self.n_targets, examples) if self.has_columns else []

    def encode(self, y, sample_weight=None) -> Examples:
        """Targets and weights as one-row examples."""
        return target_examples(y, self.n_targets, sample_weight)

    def row_dual(self, examples: Examples, price):
        """The dual with one variable for each row, v_i = α_i − α_i*."""
        return RowDual(examples.labels, float(self.epsilon), -price, price)

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        return core.RowLoss(
            code=core.EPSILON_INSENSITIVE,
            n_outputs=self.n_targets,
            n_classes=0,
            targets=targets_of(examples),
            weights=as_floats(examples.weights),
            cost=np.array([self.epsilon], np.float64),
        )

    def decode(self, scores, plain, examples=None):
        """The scores themselves."""
        return predicted_targets(scores)

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean absolute error."""
        off = np.abs(predicted - examples.labels)
        return float(np.average(off if off.ndim == 1 else off.mean(axis=1), weights=examples.weights))


@dataclass(frozen=True)
class Quantile(SmoothRowLoss):
    """ℓ = max(q (y − f), (q − 1) (y − f)), which is least in the mean where a share q of the targets is below f.

    Parameters
    ----------
    q : float, default=0.5
        Between 0 and 1. 0.5 is half the absolute error.
    n_targets : int, default=1

    References
    ----------
    Koenker, Bassett: Regression Quantiles, Econometrica 1978.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Quantile
    >>> task = Quantile(0.9)
    >>> task.augment(np.zeros((2, 1)), np.zeros(0), task.encode(np.array([0.2, -3.0]))).coef.ravel().round(1)
    array([ 0.9, -0.1])
    """

    q: float = 0.5
    n_targets: int = 1
    has_targets = is_compiled = True

    def __post_init__(self):
        check_quantile(self.q)

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per target."""
        return self.n_targets

    @property
    def bounded_by(self) -> str:  # type: ignore[override]
        """A dual variable for each row of one target; cuts of several."""
        return "rows" if self.n_targets == 1 else "cuts"

    @property
    def has_dual(self) -> bool:
        """Whether there is one target."""
        return self.n_targets == 1

    @property
    def has_columns(self) -> bool:
        """Whether there are several targets."""
        return self.n_targets > 1

    def columns(self, examples: Examples):
        """Each target by itself."""
        return columns_of([Quantile(self.q)] * self.n_targets, examples) if self.has_columns else []

    def encode(self, y, sample_weight=None) -> Examples:
        """Targets and weights as one-row examples."""
        return target_examples(y, self.n_targets, sample_weight)

    def row_dual(self, examples: Examples, price):
        """The dual with one variable for each row, between (q − 1) and q times its price."""
        return RowDual(examples.labels, 0.0, (self.q - 1.0) * price, self.q * price)

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        return core.RowLoss(
            code=core.QUANTILE,
            n_outputs=self.n_targets,
            n_classes=0,
            targets=targets_of(examples),
            weights=as_floats(examples.weights),
            cost=np.array([self.q], np.float64),
        )

    def decode(self, scores, plain, examples=None):
        """The scores themselves."""
        return predicted_targets(scores)

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean loss."""
        return mean_loss_of(self, predicted, examples)


def check_quantile(q: Any) -> None:
    """Raise a ValueError unless q is a number between 0 and 1."""
    if isinstance(q, bool) or not isinstance(q, Real) or not 0.0 < float(q) < 1.0:
        raise ValueError(f"quantile must be a number between 0 and 1, or a list of them, found {q!r}")


@dataclass(frozen=True)
class Quantiles(SmoothRowLoss):
    """Several quantiles of one target, the sum of their losses: a score each, over one basis.

    With half the absolute error of the core, ℓ = Σ_j ½ |y − f_j| + (q_j − ½) (y − f_j). Predictions are sorted in every
    row, so that they do not cross; that raises no loss.

    Parameters
    ----------
    quantiles : tuple of float
        In rising order.

    References
    ----------
    Chernozhukov, Fernández-Val, Galichon: Quantile and Probability Curves Without Crossing, Econometrica 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Quantiles
    >>> task = Quantiles((0.1, 0.9))
    >>> task.augment(np.zeros((1, 2)), np.zeros(0), task.encode(np.array([3.0]))).coef.round(1)
    array([[0.1, 0.9]])
    """

    quantiles: tuple[float, ...]
    has_targets = True

    def __post_init__(self):
        for q in self.quantiles:
            check_quantile(q)
        object.__setattr__(self, "quantiles", tuple(map(float, self.quantiles)))
        if not self.quantiles or list(self.quantiles) != sorted(set(self.quantiles)):
            raise ValueError(f"quantiles must be in rising order, found {list(self.quantiles)}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        """One score column per quantile."""
        return len(self.quantiles)

    @property
    def tilt(self):
        """q_j − ½."""
        return np.array(self.quantiles) - 0.5

    has_columns = True

    def columns(self, examples: Examples):
        """Each quantile by itself."""
        return columns_of([Quantile(q) for q in self.quantiles], examples)

    def encode(self, y, sample_weight=None) -> Examples:
        """Targets and weights as one-row examples."""
        return target_examples(y, 1, sample_weight)

    def core_loss(self, examples: Examples):
        """Half the absolute error, as the core has it."""
        return core.RowLoss(
            code=core.QUANTILE,
            n_outputs=self.n_outputs,
            n_classes=0,
            targets=np.repeat(as_floats(examples.labels), self.n_outputs),
            weights=as_floats(examples.weights),
            cost=np.array([0.5]),
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Loss-augmented argmax of every example."""
        half = super().augment(scores, plain, examples)
        return Augmented(half.delta + self.tilt.sum() * examples.labels, half.coef + self.tilt)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        """The loss and its slope along a line."""
        value, slope = super().along(base, direction, k, examples, n_jobs)
        scores, weights = base[0] + k * direction[0], examples.weights
        value += float(weights @ ((examples.labels[:, None] - scores) @ self.tilt))
        return value, slope - float(weights @ (direction[0] @ self.tilt))

    def smooth(self, scores, tau, examples: Examples, n_jobs=1):
        """Smoothed losses."""
        half, weights = super().smooth(scores, tau, examples, n_jobs), examples.weights
        tilted = float(weights @ ((examples.labels[:, None] - scores) @ self.tilt))
        constant = float(weights @ examples.labels) * float(self.tilt.sum())
        return replace(
            half,
            loss=half.loss + tilted,
            value=half.value + tilted,
            dual=(half.dual[0] + constant, half.dual[1]),
            residual=half.residual + weights[:, None] * self.tilt,
        )

    def decode(self, scores, plain, examples=None):
        """The scores of every row, sorted."""
        return np.sort(scores, axis=1)

    def error(self, predicted, examples: Examples) -> float:
        """Weighted mean loss."""
        return mean_loss_of(self, predicted, examples)


@dataclass(frozen=True)
class OneClass(Task):
    """Rows without labels, of which at most a share ν is outside: LIBSVM's one-class SVM.

    With f the expansion and b = −ρ the intercept,

        min  ½‖w‖² + C (Σ ω_i max(0, −(f(x_i) + b)) + ν Ω b),

    where the loss is the sum; the last term belongs to the intercept, and is what a solver must know about. Its dual is
    max −½ v'Kv, 0 ≤ v_i ≤ C ω_i, Σ v_i = ν C Ω.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: a bound from above on the share of rows outside, and from below on that of support vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import OneClass
    >>> task = OneClass(0.1)
    >>> examples = task.encode(np.zeros(2))
    >>> task.augment(np.array([[-1.0], [2.0]]), np.zeros(0), examples).coef.ravel()
    array([1., 0.])
    """

    nu: float = 0.5
    bounded_by = "rows"

    def __post_init__(self):
        if isinstance(self.nu, bool) or not (isinstance(self.nu, Real) and 0 < self.nu <= 1):
            raise ValueError(f"nu must be a number in (0, 1], found {self.nu!r}")

    @property
    def intercept_price(self) -> float:  # type: ignore[override]
        """ν."""
        return self.nu

    def row_dual(self, examples: Examples, price):
        """The dual with one variable for each row."""
        zeros = np.zeros(len(price))
        return RowDual(zeros, 0.0, zeros, price, float(self.nu * price.sum()))

    def encode(self, y, sample_weight=None) -> Examples:
        """Weights as one-row examples; of y only the length counts."""
        return Examples(labels=np.ones(len(y), np.int8), weights=unit_weights(sample_weight, len(y)))

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Loss-augmented argmax of every example."""
        return Augmented(delta=np.zeros(len(scores)), coef=np.where(scores < 0, 1.0, 0.0))

    def decode(self, scores, plain, examples=None):
        """+1 inside, −1 outside."""
        return np.where(scores[:, 0] >= 0, 1, -1)
