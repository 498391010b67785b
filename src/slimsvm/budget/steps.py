"""The parameters that all steps on single rows share: the method, the loss, row weights and costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm import core
from slimsvm.lazy import made_once

DUAL, PRIMAL = range(2)  # methods, as in slimsvm.h


@dataclass(frozen=True)
class Steps:
    """The parameters of steps with a method on a loss.

    Parameters
    ----------
    method, loss : int
        DUAL or PRIMAL; HINGE, ONE_VS_REST or EPSILON_INSENSITIVE of `slimsvm.core`.
    labels : float64 ndarray of shape (n,)
        -1 and +1, classes, or numbers.
    epsilon : float
        Half the width of the tube.
    cost_negative, cost_positive : float
        Margins asked of the classes -1 and +1.
    price : float64 ndarray of shape (n,)
        C ω_i of every row; n times it is a gradient's.
    constant : float
        1 with an intercept, 0 without.
    damping : float
        Dual steps are divided by 1 + damping times the number of points that the budget has taken away.
    """

    method: int
    loss: int
    labels: np.ndarray
    epsilon: float
    cost_negative: float
    cost_positive: float
    price: np.ndarray
    constant: float
    damping: float

    @property
    def is_against_the_rest(self) -> bool:
        """Whether steps train each class against the rest, instead of the task's own loss."""
        return self.loss == core.ONE_VS_REST

    @made_once
    def compiled(self) -> core.Structure:
        """Return the steps as compiled code takes them."""
        return core.RowSteps(
            method=self.method,
            loss=self.loss,
            labels=self.labels,
            epsilon=self.epsilon,
            cost_negative=self.cost_negative,
            cost_positive=self.cost_positive,
            price=self.price,
            constant=self.constant,
            damping=self.damping,
        )
