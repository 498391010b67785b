"""The form in which the core evaluates a kernel, and the kinds of numbers that a kernel's formula takes."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from slimsvm import core

__all__ = ["NUMPY", "Expression", "Folding", "Functions", "Selection"]


class Functions(Protocol):
    """The functions that `FoldedKernel.formula` may use beside ``+ - * /``."""

    def exp(self, z: Any) -> Any:
        """Return e^z."""

    def sqrt(self, z: Any) -> Any:
        """Return the square root, or 0 if rounding left z below 0."""

    def tanh(self, z: Any) -> Any:
        """Return the hyperbolic tangent."""

    def power(self, z: Any, degree: int) -> Any:
        """Return z^degree."""


# `Functions` for arrays.
NUMPY: Any = SimpleNamespace(exp=np.exp, sqrt=lambda z: np.sqrt(np.maximum(z, 0.0)), tanh=np.tanh, power=operator.pow)


@dataclass(frozen=True)
class Folding:
    """k(x, z) = map(<x', z'> + h(x') + h(z')) with x' = (x - centre) * row_scale, z' = (z - centre) * point_scale.

    Attributes
    ----------
    code : int
        Map: one of those that slimsvm.h lists, by its name in `slimsvm.core`.
    row_scale, point_scale : float or ndarray of shape (d,)
        Factors of each feature.
    degree : int
        The degree of the map POWER.
    norms : bool
        Whether h(v) = -|v|^2 / 2 on both sides; otherwise h is 0 for rows and ``shift`` for points.
    shift : float
        Constant added to every inner product.
    manhattan : bool
        Whether -|x' - z'|_1 stands in place of the inner product and h.
    """

    code: int
    row_scale: float | np.ndarray = 1.0
    point_scale: float | np.ndarray = 1.0
    degree: int = 1
    norms: bool = False
    shift: float = 0.0
    manhattan: bool = False

    @property
    def metric(self) -> float | np.ndarray:
        """Return the weight of each raw feature in the folded product: the derivative in z_c is slope · metric_c · x_c.

        With ``norms`` the derivative is slope · metric_c · (x_c - z_c).
        """
        return self.row_scale * self.point_scale

    def map_with_slopes(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the map of any numbers z, and its derivatives there; float64, C-contiguous."""
        values, slopes = np.empty_like(z), np.empty_like(z)
        core.map_with_slopes(
            code=self.code, degree=self.degree, z=z.reshape(-1), values=values.reshape(-1), slopes=slopes.reshape(-1)
        )
        return values, slopes

    @property
    def steepness(self) -> float:
        """Return the slope of the map at 0; with ``norms`` it is the greatest, since no z is above 0."""
        return float(self.map_with_slopes(np.zeros(1))[1][0])

    @property
    def slope_is_value(self) -> bool:
        """Whether the slope is `steepness` times the kernel value, wherever z is."""
        return self.code == core.EXP2

    @property
    def shift_invariant(self) -> bool:
        """Whether centring leaves the kernel as it is."""
        return self.norms or self.manhattan


NO_INDEX = np.empty(0, np.int64)


@dataclass(frozen=True)
class Selection:
    """A choice of rows: the rows at ``index``, or, if that is empty, ``n`` consecutive rows from ``first``."""

    n: int
    first: int = 0
    index: np.ndarray = field(default_factory=NO_INDEX.view)


class Expression(ABC):
    """A number of `FoldedKernel.formula` that is no array; two methods define what ``+ - * /`` and minus make."""

    @abstractmethod
    def joined(self, sign: str, left: Any, right: Any) -> Any:
        """Return ``left sign right``; one of the two may be a float."""

    @abstractmethod
    def __neg__(self) -> Any: ...

    def __add__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __sub__(self, other: Any) -> Any:
        return self.joined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.joined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self.joined("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.joined("/", other, self)
