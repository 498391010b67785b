"""Losses of one score: two classes (and each label of several), numbers, and one class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import (
    BOUND_OF_TARGETS,
    Augmented,
    RowDual,
    SeveralLabels,
    SmoothRowLoss,
    TargetsWithDual,
    Task,
    TwoClasses,
    as_floats,
    columns_of,
    mean_loss_of,
    row_loss,
    spread_of,
    target_examples,
    targets_of,
)


@dataclass(frozen=True)
class Binary(TwoClasses):
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

    def row_dual(self, examples: Examples, C):
        """Return the dual with one variable for each row, v_i = α_i y_i."""
        is_positive = examples.labels > 0
        target = np.where(is_positive, self.cost_positive, -self.cost_negative)
        return RowDual(target, 0.0, np.where(is_positive, 0.0, -C), np.where(is_positive, C, 0.0))

    def core_loss(self, examples: Examples):
        cost = np.array([self.cost_negative, self.cost_positive], np.float64)
        return row_loss(core.HINGE, examples, 1, signs=np.ascontiguousarray(examples.labels), cost=cost)


@dataclass(frozen=True)
class Multilabel(SeveralLabels):
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
    has_columns = True

    def __post_init__(self):
        if self.n_labels < 1:
            raise ValueError(f"n_labels must be at least 1, found {self.n_labels}")

    def columns(self, examples: Examples):
        return columns_of([Binary()] * self.n_labels, examples)

    def core_loss(self, examples: Examples):
        return row_loss(
            core.HINGE,
            examples,
            self.n_labels,
            signs=np.ascontiguousarray(examples.labels).reshape(-1),
            cost=np.ones(2),
        )


@dataclass(frozen=True)
class Regression(TargetsWithDual):
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
    bounded_by = BOUND_OF_TARGETS

    def __post_init__(self):
        if not (np.isfinite(self.epsilon) and self.epsilon >= 0):
            raise ValueError(f"epsilon must be a number >= 0, found {self.epsilon!r}")

    @property
    def step_loss(self) -> int | None:  # type: ignore[override]
        """Return the loss of budgeted steps, for one target only."""
        return core.EPSILON_INSENSITIVE if self.n_targets == 1 else None

    def row_dual(self, examples: Examples, C):
        """Return the dual with one variable for each row, v_i = α_i − α_i*."""
        return RowDual(examples.labels, float(self.epsilon), -C, C)

    def core_loss(self, examples: Examples):
        return row_loss(
            core.EPSILON_INSENSITIVE,
            examples,
            self.n_targets,
            targets=targets_of(examples),
            cost=np.array([self.epsilon], np.float64),
        )

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean absolute error."""
        off = np.abs(predicted - examples.labels)
        return float(np.average(off if off.ndim == 1 else off.mean(axis=1), weights=examples.weights))


@dataclass(frozen=True)
class Quantile(TargetsWithDual):
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
    bounded_by = BOUND_OF_TARGETS

    def __post_init__(self):
        check_quantile(self.q)

    def row_dual(self, examples: Examples, C):
        """Return the dual with one variable for each row, between (q − 1) and q times its C."""
        return RowDual(examples.labels, 0.0, (self.q - 1.0) * C, self.q * C)

    def core_loss(self, examples: Examples):
        return row_loss(
            core.QUANTILE, examples, self.n_targets, targets=targets_of(examples), cost=np.array([self.q], np.float64)
        )

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean loss."""
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
        The shares q, ascending.

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
    has_targets = has_columns = True

    def __post_init__(self):
        for q in self.quantiles:
            check_quantile(q)
        object.__setattr__(self, "quantiles", tuple(map(float, self.quantiles)))
        if not self.quantiles or list(self.quantiles) != sorted(set(self.quantiles)):
            raise ValueError(f"quantiles must be in rising order, found {list(self.quantiles)}")

    @property
    def n_outputs(self) -> int:  # type: ignore[override]
        return len(self.quantiles)

    @property
    def tilt(self):
        """Return q_j − ½ of each quantile."""
        return np.array(self.quantiles) - 0.5

    def units(self, examples: Examples):
        """The spread of the targets, and 1."""
        return spread_of(examples), 1.0

    def columns(self, examples: Examples):
        return columns_of([Quantile(q) for q in self.quantiles], examples)

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode targets and weights as one-row examples."""
        return target_examples(y, 1, sample_weight)

    def core_loss(self, examples: Examples):
        """Return half the absolute error, as the core has it."""
        return row_loss(
            core.QUANTILE,
            examples,
            self.n_outputs,
            targets=np.repeat(as_floats(examples.labels), self.n_outputs),
            cost=np.array([0.5]),
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        half = super().augment(scores, plain, examples)
        return Augmented(half.delta + self.tilt.sum() * examples.labels, half.coef + self.tilt)

    def along(self, base, direction, k, examples: Examples, n_jobs=1):
        value, slope = super().along(base, direction, k, examples, n_jobs)
        scores, weights = base[0] + k * direction[0], examples.weights
        value += float(weights @ ((examples.labels[:, None] - scores) @ self.tilt))
        return value, slope - float(weights @ (direction[0] @ self.tilt))

    def smooth(self, scores, tau, examples: Examples, n_jobs=1):
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
        """Return the scores of every row, sorted."""
        return np.sort(scores, axis=1)

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean loss."""
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
        A number in (0, 1]: an upper bound on the share of rows outside, a lower one on that of support vectors.

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
    def intercept_nu(self) -> float:  # type: ignore[override]
        return self.nu

    def row_dual(self, examples: Examples, C):
        zeros = np.zeros(len(C))
        return RowDual(zeros, 0.0, zeros, C, float(self.nu * C.sum()))

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode weights as one-row examples; of y only the length counts."""
        return Examples(labels=np.ones(len(y), np.int8), weights=unit_weights(sample_weight, len(y)))

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        return Augmented(delta=np.zeros(len(scores)), coef=np.where(scores < 0, 1.0, 0.0))

    def decode(self, scores, plain, examples=None):
        """Return +1 inside, −1 outside."""
        return np.where(scores[:, 0] >= 0, 1, -1)
