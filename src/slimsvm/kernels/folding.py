"""How a kernel reads from folded rows and points, and which of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from slimsvm.numerics.maps import EXP2, IDENTITY, POWER, TANH
from slimsvm.numerics.tiles import CHUNK

__all__ = ["EXP2", "IDENTITY", "POWER", "TANH", "Chunks", "Folding", "Selection"]


@dataclass(frozen=True)
class Folding:
    """k(x, z) = map(<x', z'> + h(x') + h(z')) with x' = (x - centre) * row_scale, z' = (z - centre) * point_scale.

    Attributes
    ----------
    code : int
        Map: EXP2, POWER, IDENTITY or TANH of `slimsvm.numerics.maps`.
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


@dataclass(frozen=True)
class Chunks:
    """Points in chunks that fit the nearest cache: chunk q is cuts[q], …, cuts[q + 1] - 1 and belongs to owner[q].

    ``empty`` are the segments without points.
    """

    n_segments: int
    cuts: np.ndarray
    owner: np.ndarray
    empty: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray) -> Chunks:
        """Chunks of each segment, of even width."""
        cuts, owner = [0], []
        for s, (lo, hi) in enumerate(zip(segments[:-1].tolist(), segments[1:].tolist())):
            if hi > lo:
                n_chunks = -(-(hi - lo) // CHUNK)
                width = -(-(hi - lo) // (16 * n_chunks)) * 16
                ends = [min(hi, lo + width * (i + 1)) for i in range(n_chunks)]
                cuts += ends
                owner += [s] * n_chunks
        empty = np.flatnonzero(segments[1:] == segments[:-1])
        return cls(len(segments) - 1, np.array(cuts, np.int64), np.array(owner, np.int64), empty)
