"""Products of many rows with a few columns, and with themselves, in register tiles that threads can share out.

They take a third to two thirds of the time that BLAS takes for such tiles.

Panels are as wide as those of `numerics.panels`: of a matrix they hold the columns q panel, …, one row after another.
Sums over rows run in the working type over CHUNK of them, in float64 over chunks.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.crew import share_out
from slimsvm.numerics.panels import aligned
from slimsvm.numerics.simd import ROWS, inner_tile
from slimsvm.numerics.vectors import panel_of

TILE, CHUNK = 8 * ROWS, 1024


def in_panels(matrix: np.ndarray) -> tuple[np.ndarray, int]:
    """The panels of a matrix (n, k), flat, and their width for its type; zeros beyond the last column."""
    panel, (n, k) = panel_of(matrix.dtype), matrix.shape
    panels = np.zeros((-(-k // panel), n, panel), matrix.dtype)
    for q, part in enumerate(panels):
        columns = matrix[:, q * panel : (q + 1) * panel]
        part[:, : columns.shape[1]] = columns
    return panels.reshape(-1), panel


def lower_tiles(k: int, panel: int) -> np.ndarray:
    """Tiles of `square_tiles` that cover the lower triangle of (k, k)."""
    return np.array([(j, q) for q in range(-(-k // panel)) for j in range(q * panel, k, TILE)], dtype=np.int64)


@njit(nogil=True)
def product_tiles(values, panels, panel, k, is_upper, lo, hi, out):
    """out[i, :k] = values[i] @ B for the tiles of rows lo, …, hi - 1; values (n, r), B (r, k) in panels.

    Where ``is_upper``, below its diagonal B counts as zero.
    """
    n, r = values.shape
    flat, nothing, S = values.reshape(values.size), aligned(panel, values), aligned(ROWS * panel, values)
    offsets = np.zeros(TILE, np.int64)
    for tile in range(lo, hi):
        start, size = tile * TILE, min(TILE, n - tile * TILE)
        for i in range(TILE):
            offsets[i] = (start + min(i, size - 1)) * r
        for first in range(0, k, panel):
            width = min(panel, k - first)
            depth = first + width if is_upper else r
            for b in range(0, size, ROWS):
                inner_tile(flat, offsets, b, panels, first * r, nothing, 0, depth, S)
                for i in range(min(ROWS, size - b)):
                    for c in range(width):
                        out[start + b + i, first + c] = S[i * panel + c]


@njit(cache=True, nogil=True)
def share_product_tiles(work, before, after):
    """`product_tiles` by a crew."""
    share_out(product_tiles, work, before, after)


@njit(nogil=True)
def square_tiles(columns, panels, panel, tiles, lo, hi, out):
    """out[j, c] += Σ_i columns[j, i] rows[i, c] for the tiles lo, …, hi - 1 of ``tiles``.

    A tile t is the columns from tiles[t, 0] on, TILE at most, times the panel tiles[t, 1]. The rows (n, k) are in
    panels; columns is (k, n).
    """
    k, n = columns.shape
    flat, nothing, S = columns.reshape(columns.size), aligned(panel, columns), aligned(ROWS * panel, columns)
    offsets, total = np.zeros(TILE, np.int64), np.empty(TILE * panel)
    for t in range(lo, hi):
        start, first = tiles[t, 0], tiles[t, 1] * panel
        size, width = min(TILE, k - start), min(panel, k - first)
        total[:] = 0.0
        for at in range(0, n, CHUNK):
            for i in range(TILE):
                offsets[i] = (start + min(i, size - 1)) * n + at
            for b in range(0, size, ROWS):
                inner_tile(flat, offsets, b, panels, first * n + at * panel, nothing, 0, min(CHUNK, n - at), S)
                for i in range(ROWS * panel):
                    total[b * panel + i] += S[i]
        for i in range(size):
            for c in range(width):
                out[start + i, first + c] += total[i * panel + c]


@njit(cache=True, nogil=True)
def share_square_tiles(work, before, after):
    """`square_tiles` by a crew."""
    share_out(square_tiles, work, before, after)
