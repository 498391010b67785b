"""Two classes: the usual hinge loss, LIBSVM's objective. Several labels per row: a hinge for each, over one basis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import RowDual, SmoothRowLoss, as_floats


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
        y = np.asarray(y)
        known = (y == 1) | (y == 0) | (y == -1)
        if y.ndim != 1 or not known.all():
            found = f"{y[~known][0]!r}" if y.ndim == 1 else f"shape {y.shape}"
            raise ValueError(f"binary labels must be -1 and +1 (or 0 and 1), one per row; found {found}")
        labels = np.where(y > 0, np.int8(1), np.int8(-1))
        return Examples(labels=labels, weights=unit_weights(sample_weight, len(labels)))

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
        y = np.asarray(y)
        if y.ndim != 2 or y.shape[1] != self.n_labels:
            raise ValueError(f"labels must be an indicator matrix of shape (n, {self.n_labels}), found shape {y.shape}")
        unknown = ~np.isin(y, (-1, 0, 1))
        if unknown.any():
            raise ValueError(f"an indicator matrix holds 0 and 1 (or -1 and +1), found {y[unknown][0]!r}")
        return Examples(np.where(y > 0, 1, -1).astype(np.int8), unit_weights(sample_weight, len(y)))

    def core_loss(self, examples: Examples):
        """The loss with labels and weights, as the core has it."""
        return core.RowLoss(
            code=core.MULTILABEL,
            n_outputs=self.n_labels,
            n_classes=0,
            signs=np.ascontiguousarray(examples.labels).reshape(-1),
            weights=as_floats(examples.weights),
        )

    def decode(self, scores, plain, examples=None):
        """+1 where a score is positive, −1 elsewhere, (n, n_labels)."""
        return np.where(scores > 0, 1, -1)

    def error(self, predicted, examples: Examples) -> float:
        """Hamming loss: weighted share of wrong labels."""
        wrong = (np.asarray(predicted) > 0) != (examples.labels > 0)
        return float(np.average(wrong.mean(axis=1), weights=examples.weights))
