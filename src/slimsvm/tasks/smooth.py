"""Losses with two derivatives, which need no smoothing: of classes, of labels, of numbers.

A loss is a number of the core, whose formula is in core/losses/smooth.h, and a line here. Its tangent at a score stands
for the loss-augmented argmax: with v minus the derivative, ℓ + v f = −ℓ*(−v) is the constant, and v a dual point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.tasks.examples import Examples
from slimsvm.tasks.task import (
    SeveralClasses,
    SeveralLabels,
    Targets,
    Task,
    TwoClasses,
    mean_loss_of,
    row_loss,
    signs_of_classes,
    spread_of,
    targets_of,
)

Array = np.ndarray

# The losses of labels −1 and +1, those among them whose scores are log odds, and the losses of targets.
CLASS_LOSSES = {"logistic": core.LOGISTIC, "squared_hinge": core.SQUARED_HINGE}
LOSSES_OF_LOG_ODDS = ("logistic",)
NUMBER_LOSSES = {"squared": core.SQUARED_ERROR, "huber": core.HUBER, "poisson": core.POISSON}
# Targets whose squares, times C and numbers of rows, are finite.
LARGEST_TARGET = 1e140


def task_of_classes(loss: str, n_classes: int, has_labels: bool) -> Task:
    """Return the task of a loss of `CLASS_LOSSES` for classes, or for the labels of an indicator matrix."""
    if has_labels:
        return SmoothLabels(n_classes, loss)
    if n_classes <= 2:
        return SmoothBinary(loss)
    return Softmax(n_classes) if loss == "logistic" else OneVsRest(n_classes, loss)


def _known(loss: str, among: dict[str, int]) -> None:
    if loss not in among:
        raise ValueError(f"loss must be one of {', '.join(map(repr, among))}; found {loss!r}")


@dataclass(frozen=True)
class SmoothBinary(TwoClasses):
    """Two classes, with a smooth loss of y f(x).

    Parameters
    ----------
    loss : {"logistic", "squared_hinge"}, default="logistic"
        log(1 + exp(−y f)), or max(0, 1 − y f)².

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import SmoothBinary
    >>> task = SmoothBinary()
    >>> examples = task.encode(np.array([-1, 1]))
    >>> task.smooth(np.zeros((2, 1)), 1.0, examples).residual.ravel()
    array([-0.5,  0.5])
    """

    loss: str = "logistic"
    has_class_scores = is_compiled = is_smooth = True
    bounded_by = "residuals"

    def __post_init__(self):
        _known(self.loss, CLASS_LOSSES)

    @property
    def has_log_odds(self) -> bool:  # type: ignore[override]
        return self.loss in LOSSES_OF_LOG_ODDS

    def core_loss(self, examples: Examples):
        return row_loss(CLASS_LOSSES[self.loss], examples, 1, signs=np.ascontiguousarray(examples.labels))


@dataclass(frozen=True)
class SmoothLabels(SeveralLabels):
    """A smooth loss for each label of a row, added up.

    Parameters
    ----------
    n_labels : int
    loss : {"logistic", "squared_hinge"}, default="logistic"
        As of `SmoothBinary`.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import SmoothLabels
    >>> task = SmoothLabels(2)
    >>> examples = task.encode(np.array([[1, 0]]))
    >>> task.smooth(np.zeros((1, 2)), 1.0, examples).residual
    array([[ 0.5, -0.5]])
    """

    n_labels: int
    loss: str = "logistic"
    is_compiled = is_smooth = True
    bounded_by = "residuals"

    def __post_init__(self):
        _known(self.loss, CLASS_LOSSES)

    @property
    def has_log_odds(self) -> bool:  # type: ignore[override]
        return self.loss in LOSSES_OF_LOG_ODDS

    def core_loss(self, examples: Examples):
        signs = np.ascontiguousarray(examples.labels).reshape(-1)
        return row_loss(CLASS_LOSSES[self.loss], examples, self.n_labels, signs=signs)


@dataclass(frozen=True)
class OneVsRest(SeveralClasses):
    """A score for each class, which tells it from all others, with a smooth loss each; the greatest score's class.

    Parameters
    ----------
    n_classes : int
    loss : {"logistic", "squared_hinge"}, default="squared_hinge"
        As of `SmoothBinary`.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import OneVsRest
    >>> task = OneVsRest(3)
    >>> examples = task.encode(np.array([2]))
    >>> task.smooth(np.zeros((1, 3)), 1.0, examples).residual
    array([[-2., -2.,  2.]])
    """

    n_classes: int
    loss: str = "squared_hinge"
    has_class_scores = is_compiled = is_smooth = True
    bounded_by = "residuals"

    def __post_init__(self):
        _known(self.loss, CLASS_LOSSES)

    def core_loss(self, examples: Examples):
        signs = signs_of_classes(examples, self.n_classes)
        return row_loss(CLASS_LOSSES[self.loss], examples, self.n_classes, signs=signs)


@dataclass(frozen=True)
class Softmax(SeveralClasses):
    """The logistic loss of several classes, ℓ = log Σ_c exp(s_c − s_y).

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import Softmax
    >>> task = Softmax(4)
    >>> examples = task.encode(np.array([1]))
    >>> task.smooth(np.zeros((1, 4)), 1.0, examples).residual
    array([[-0.25,  0.75, -0.25, -0.25]])
    """

    n_classes: int
    loss = "logistic"
    has_share = has_class_scores = has_log_odds = is_compiled = is_smooth = True
    bounded_by = "residuals"

    def core_loss(self, examples: Examples):
        return row_loss(
            core.SOFTMAX, examples, self.n_classes, self.n_classes, classes=np.ascontiguousarray(examples.labels)
        )


@dataclass(frozen=True)
class SmoothRegression(Targets):
    """Numbers, with a smooth loss.

    Parameters
    ----------
    loss : {"squared", "huber", "poisson"}, default="squared"
        With r = y − f: ½ r²; ½ r² up to abs(r) = ε and ε abs(r) − ½ ε² beyond; exp(f) − y f + y log y − y for counts
        y ≥ 0, whose prediction is exp(f).
    epsilon : float, default=0.1
        ε of "huber", in the units of y.
    n_targets : int, default=1
        Targets of a row, whose losses are added up.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import SmoothRegression
    >>> task = SmoothRegression()
    >>> task.smooth(np.zeros((2, 1)), 1.0, task.encode(np.array([0.2, -3.0]))).residual.ravel()
    array([ 0.2, -3. ])
    """

    loss: str = "squared"
    epsilon: float = 0.1
    n_targets: int = 1
    has_targets = is_compiled = is_smooth = True
    bounded_by = "residuals"

    def __post_init__(self):
        _known(self.loss, NUMBER_LOSSES)
        if self.loss == "huber" and not (np.isfinite(self.epsilon) and self.epsilon > 0):
            raise ValueError(f"epsilon must be a number > 0 with loss='huber', found {self.epsilon!r}")

    @property
    def has_log_link(self) -> bool:  # type: ignore[override]
        return self.loss == "poisson"

    def units(self, examples: Examples):
        """The spread of the targets, also of slopes, which ε limits; 1 for counts, which have no other units."""
        if self.has_log_link:
            return 1.0, 1.0
        spread = spread_of(examples)
        return spread, min(spread, self.epsilon) if self.loss == "huber" else spread

    def encode(self, y, sample_weight=None) -> Examples:
        """Encode targets and weights as one-row examples."""
        examples = super().encode(y, sample_weight)
        if self.has_log_link:
            check_counts(examples.labels)
        elif (largest := np.abs(examples.labels).max(initial=0.0)) > LARGEST_TARGET:
            raise ValueError(
                f"loss={self.loss!r} takes squares: targets are at most {LARGEST_TARGET:.0e}, found {largest:.3g}"
            )
        return examples

    def core_loss(self, examples: Examples):
        own: dict[str, Any] = {"cost": np.array([self.epsilon], np.float64)} if self.loss == "huber" else {}
        return row_loss(NUMBER_LOSSES[self.loss], examples, self.n_targets, targets=targets_of(examples), **own)

    def decode(self, scores, plain, examples=None):
        """Return the scores themselves, or their exponentials."""
        return super().decode(np.exp(scores) if self.has_log_link else scores, plain)

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean loss."""
        tiny = np.finfo(np.float64).tiny
        return mean_loss_of(self, np.log(np.maximum(predicted, tiny)) if self.has_log_link else predicted, examples)


def check_counts(y: Array, index: Array | None = None) -> None:
    """Raise a ValueError that names the first row with a target below 0, by ``index`` if rows are some of all."""
    below = (y < 0) if y.ndim == 1 else (y < 0).any(axis=1)
    if below.any():
        row = int(np.argmax(below))
        raise ValueError(
            f"loss='poisson' needs targets >= 0, found {np.min(y[row])} in row {row if index is None else index[row]}"
        )
