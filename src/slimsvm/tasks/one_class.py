"""One class: where most rows are."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, RowDual, Task


@dataclass(frozen=True)
class OneClass(Task):
    """Rows without labels, of which a share of at most ν is to be left outside: LIBSVM's one-class SVM.

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
