"""The optimiser of a descent: Adam, with a rate for each kind of parameter.

Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slimsvm import core

Array = np.ndarray

# Moments forget as 0.95^t and 0.99^t: the second faster than usual, since gradients shrink as rows get right.
BETAS = 0.95, 0.99


@dataclass(frozen=True)
class Rates:
    """Sizes of a step at the top of the schedule: of every feature of the basis (d,), in the rows' own units, and of
    coefficients, intercept, log_scale and plain; the pull of log_scale to its mean, against the mean loss; and the
    standard deviation of the noise that rows get at every step, by feature (d,) in their own units (None: no noise).
    """

    basis: Array
    coef: float
    intercept: float
    scale: float = 0.0
    plain: float = 0.0
    pull: float = 0.0
    noise: Array | None = None

    def halved(self) -> Rates:
        """Steps of half the size."""
        halves = {name: 0.5 * getattr(self, name) for name in ("basis", "coef", "intercept", "scale", "plain")}
        return replace(self, **halves)


class Adam:
    """Moments of the gradient, and the running mean of the parameters.

    Parameters
    ----------
    n, dtype
        Number and type of the parameters.
    unit : ndarray of shape (d,)
        What a step of 1 in a feature of the rows is in the parameters.
    rates : Rates

    Attributes
    ----------
    first, second, mean : ndarrays of shape (n,)
    data : core.Structure
        What compiled code reads.
    """

    def __init__(self, n: int, dtype: np.dtype, unit: Array, rates: Rates):
        self.first, self.second, self.mean = (np.zeros(n, dtype) for _ in range(3))
        self._unit = unit
        self.set_rates(rates)

    def set_rates(self, rates: Rates) -> None:
        """Fix the step sizes that the schedule's factors multiply."""
        self.rates = rates
        self.data = core.Adam(
            basis_rates=np.ascontiguousarray(rates.basis * self._unit, np.float64),
            coef_rate=rates.coef,
            intercept_rate=rates.intercept,
            scale_rate=rates.scale,
            plain_rate=rates.plain,
            pull=rates.pull,
            beta1=BETAS[0],
            beta2=BETAS[1],
            first=self.first,
            second=self.second,
            mean=self.mean,
        )

    def slow_down(self) -> None:
        """Halve all step sizes, and forget the moments as at the first step."""
        self.set_rates(self.rates.halved())
        self.first[:] = 0
        self.second[:] = 0
