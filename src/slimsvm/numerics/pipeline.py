"""Scores of dense rows as they are: folded and multiplied part by part, each while it is in the nearest caches.

Every thread is in one call from beginning to end, and takes parts by an atomic counter: large ones first, small ones
towards the end, so that all are ready at about the same time. A row's score does not depend on the part it is in.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.folding import fold_rows
from slimsvm.numerics.panels import ROWS_PER_TILE, kernel_tiles
from slimsvm.numerics.team import NEXT, SYNC_SIZE, load, swap_if
from slimsvm.numerics.tiles import RowData

# Numbers that a thread folds at a time, and the fewest tiles of rows: a part has a cost of its own.
PART_NUMBERS, LEAST_TILES = 1 << 15, 3
# Parts that a thread would have if all were as large as the next.
PARTS_AHEAD = 3


@njit(nogil=True)
def take_tiles(sync, n_tiles, most, n_threads):
    """Bounds of the tiles that are the caller's next; empty when there are no more."""
    while True:
        lo = load(sync, NEXT)
        left = n_tiles - lo
        size = min(left, most, max(LEAST_TILES, left // (PARTS_AHEAD * n_threads)))
        if size <= 0:
            return n_tiles, n_tiles
        if swap_if(sync, NEXT, lo, lo + size):
            return lo, lo + size


@njit(cache=True, nogil=True, error_model="numpy")
def score_rows(
    raw, centre, feature_scale, norm, scale, points, weights, n_segments, m, form, code, degree, n_threads, sync, out
):
    """Set out[i, s, c] as `kernel_tiles` does, for raw rows not folded yet; returns how many are far or not finite.

    ``sync`` are SYNC_SIZE zeros that all threads share; each makes this call.
    """
    n, d = raw.shape
    n_tiles, most = -(-n // ROWS_PER_TILE), max(1, PART_NUMBERS // (ROWS_PER_TILE * max(1, d)))
    size, n_far = min(n, most * ROWS_PER_TILE), 0
    values, half, factor = np.empty((size, d), out.dtype), np.empty(size, out.dtype), np.empty(size)
    everything, nothing, no_offsets = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
    zero = np.int64(0)  # for a literal 0 Numba would compile both functions below once more
    rows = RowData(values.reshape(size * d), half, factor, nothing, no_offsets, d)
    while True:
        a, b = take_tiles(sync, n_tiles, most, n_threads)
        if a == b:
            return n_far
        lo, hi = a * ROWS_PER_TILE, min(n, b * ROWS_PER_TILE)
        n_far += fold_rows(raw[lo:hi], centre, feature_scale, norm, scale, zero, hi - lo, values, half, factor)
        part = out[lo:hi]
        kernel_tiles(rows, points, everything, zero, weights, n_segments, m, form, code, degree, zero, b - a, part)


def new_counter() -> np.ndarray:
    """What the threads of one `score_rows` share."""
    return np.zeros(SYNC_SIZE, np.int64)
