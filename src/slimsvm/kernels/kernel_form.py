"""How a kernel reads from folded rows and points, and which of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slimsvm.core import EXP2, IDENTITY, POWER, TANH

__all__ = ["EXP2", "IDENTITY", "POWER", "TANH", "Folding", "Selection"]


@dataclass(frozen=True)
class Folding:
    """k(x, z) = map(<x', z'> + h(x') + h(z')) with x' = (x - centre) * row_scale, z' = (z - centre) * point_scale.

    Attributes
    ----------
    code : int
        Map: EXP2, POWER, IDENTITY or TANH of `slimsvm.core`.
    row_scale, point_scale : float or ndarray of shape (d,)
        Factors of each feature.
    degree : int
        Of the map POWER.
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
    def shift_invariant(self) -> bool:
        """Whether centring leaves the kernel as it is."""
        return self.norms or self.manhattan


@dataclass(frozen=True)
class Selection:
    """Which rows: those at ``index``, or if that is empty ``n`` consecutive ones from ``first``."""

    n: int
    first: int = 0
    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
