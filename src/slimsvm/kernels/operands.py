"""Rows and points folded for one kernel, and the compiled calls on them.

A kernel that is a function of inner products (or of |x - z|_1) says how in a `Folding`. Rows and points are folded by it
once: centred, scaled, with their norms. What is then left per pair is an inner product, two additions and a map.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from slimsvm.numerics import dense, maps
from slimsvm.numerics.threads import run_tiles
from slimsvm.rows.arrays import Block

SMALL_WORK = 100_000  # multiply-adds below which handing tiles to threads costs more than it saves


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
        Whether -|x' - z'|_1 stands in place of the inner product.
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
    """Which of an operand's rows: those at ``index``, or if that is empty ``n`` consecutive ones from ``first``."""

    n: int
    first: int = 0
    index: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True)
class Chunks:
    """Points in chunks that fit the nearest cache: chunk q is cuts[q], …, cuts[q + 1] - 1 and belongs to owner[q]."""

    n_segments: int
    cuts: np.ndarray
    owner: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray) -> Chunks:
        """Chunks of each segment, of even width."""
        cuts, owner = [0], []
        for s, (lo, hi) in enumerate(zip(segments[:-1].tolist(), segments[1:].tolist())):
            if hi > lo:
                n_chunks = -(-(hi - lo) // dense.CHUNK)
                width = -(-(hi - lo) // (16 * n_chunks)) * 16
                ends = [min(hi, lo + width * (i + 1)) for i in range(n_chunks)]
                cuts += ends
                owner += [s] * n_chunks
        return cls(len(segments) - 1, np.array(cuts, np.int64), np.array(owner, np.int64))


class DensePoints:
    """Points prepared as the right-hand side of dense rows."""

    def __init__(self, folding: Folding, data: np.ndarray, half: np.ndarray):
        self.data = data
        self.half = half if folding.norms else np.full(len(data), folding.shift, data.dtype)

    def __len__(self) -> int:
        return len(self.data)


class DenseOperand:
    """Dense rows folded for a kernel."""

    def __init__(self, folding: Folding, n_rows: int, n_features: int, dtype: np.dtype):
        self.folding = folding
        self.data = np.empty((n_rows, n_features), dtype)
        self.half = np.empty(n_rows, dtype)

    def fold(self, raw: np.ndarray, centre: np.ndarray, at: int, n_jobs: int) -> None:
        """Fold the rows of a block into the places from ``at`` on."""
        out, half = self.data[at : at + len(raw)], self.half[at : at + len(raw)]
        _fold(raw, centre, self.folding.row_scale, self.folding.norms, out, half, n_jobs)

    def scores(
        self, rows: Selection, points: DensePoints, coef: np.ndarray, chunks: Chunks, out: np.ndarray, n_jobs: int
    ) -> None:
        """out[i, s] = sum over the points j of segment s of k(x_i, p_j) coef[j], for the selected rows."""
        operands = (self.data, self.half, rows.index, rows.first, points.data, points.half, coef)
        tail = (chunks.cuts, chunks.owner, self.folding.manhattan, self.folding.code, self.folding.degree)
        out[:, np.setdiff1d(np.arange(chunks.n_segments), chunks.owner)] = 0
        self._run(lambda lo, hi: dense.score_tiles(*operands, *tail, lo, hi, out), rows.n, len(points), n_jobs)

    def block(self, rows: Selection, points: DensePoints, out: np.ndarray, n_jobs: int) -> None:
        """out[i, j] = k(x_i, p_j) for the selected rows."""
        operands = (self.data, self.half, rows.index, rows.first, points.data, points.half)
        tail = (self.folding.manhattan, self.folding.code, self.folding.degree)
        self._run(lambda lo, hi: dense.block_tiles(*operands, *tail, lo, hi, out), rows.n, len(points), n_jobs)

    def _run(self, function, n_rows: int, n_points: int, n_jobs: int) -> None:
        if n_rows * n_points * (self.data.shape[1] + 8) < SMALL_WORK:
            n_jobs = 1
        run_tiles(function, -(-n_rows // dense.TILE), n_jobs)


def _fold(raw: np.ndarray, centre: np.ndarray, scale, norms: bool, out: np.ndarray, half: np.ndarray, n_jobs: int):
    raw = np.require(raw, requirements="CWA")
    scale = np.broadcast_to(np.asarray(scale, np.float64), centre.shape).copy()
    step = max(1, SMALL_WORK // max(1, raw.shape[1]))
    n = len(raw)
    run_tiles(
        lambda lo, hi: dense.fold_rows(raw, centre, scale, norms, lo * step, min(n, hi * step), out, half),
        -(-n // step),
        n_jobs,
    )


def dense_points(folding: Folding, raw: Block, centre: np.ndarray, dtype: np.dtype) -> DensePoints:
    """Fold basis vectors as points for dense rows."""
    if sp.issparse(raw):
        raw = raw.toarray()
    data, half = np.empty(raw.shape, dtype), np.empty(len(raw), dtype)
    _fold(raw, centre, folding.point_scale, folding.norms, data, half, 1)
    return DensePoints(folding, data, half)


EXP2, POWER, IDENTITY, TANH = maps.EXP2, maps.POWER, maps.IDENTITY, maps.TANH
