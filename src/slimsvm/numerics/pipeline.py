"""Scores and labels of dense rows as they are: folded, multiplied and judged part by part, each part while it is in
the nearest caches.

Every thread is in one call from beginning to end, and takes parts by an atomic counter: large ones first, small ones
towards the end, so that all are ready at about the same time. A row's score does not depend on the part it is in.
Nothing is left for Python afterwards, which would do it in one thread, reading what the others have in their caches.
Counters of ``sync``: NEXT and DONE as in `slimsvm.numerics.team`, of tiles, and FAR, rows that are far or not finite.
"""

from __future__ import annotations

import numpy as np

from slimsvm.numerics.compiling import njit
from slimsvm.numerics.folding import fold_rows
from slimsvm.numerics.panels import ROWS_PER_TILE, PanelData, Weights, kernel_tiles
from slimsvm.numerics.team import DONE, LIMIT, NEXT, SYNC_SIZE, add, load, swap_if
from slimsvm.numerics.tiles import RowData

# Numbers that a thread folds at a time, and the fewest tiles of rows: a part has a cost of its own.
PART_NUMBERS, LEAST_TILES = 1 << 15, 3
# Parts that a thread would have if all were as large as the next.
PARTS_AHEAD = 2
FAR = LIMIT  # all tiles may be taken from the start
# Looks at the counter before a thread goes to sleep until the others are ready: a tenth of a millisecond or two.
PATIENCE = 100_000


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


@njit(nogil=True)
def _judge(sums, lo, intercept, scores, classes, labels):
    """Scores and labels of the rows lo, … from the sums of their only segment; what has no rows is not asked for."""
    m = sums.shape[2]
    for i in range(sums.shape[0] if scores.size else 0):
        for c in range(m):
            scores[lo + i, c] = sums[i, 0, c] + intercept[c]
    for i in range(sums.shape[0] if labels.size else 0):
        best, most = 0, sums[i, 0, 0] + intercept[0]
        if m == 1 and most > 0:
            best = 1
        for c in range(1, m):
            score = sums[i, 0, c] + intercept[c]
            if score > most:
                best, most = c, score
        for w in range(labels.shape[1]):
            labels[lo + i, w] = classes[best, w]


@njit(cache=True, nogil=True, error_model="numpy")
def score_rows(
    raw,
    centre,
    feature_scale,
    norm,
    scale,
    panels,
    base,
    weight,
    entries,
    entry_segment,
    n_segments,
    m,
    form,
    code,
    degree,
    near_half,
    intercept,
    n_threads,
    sync,
    out,
    scores,
    classes,
    labels,
):
    """Set out[i, s, c] as `kernel_tiles` does, scores[i, c] = out[i, 0, c] + intercept[c], and labels[i] to the line of
    ``classes`` of the greatest score, or of the only score's sign, for raw rows not folded yet.

    What has no rows is not asked for. ``sync`` are zeros that all threads share; each makes this call. Arrays come one
    by one: inside of tuples they take Python longer to hand over.
    """
    n, d = raw.shape
    n_tiles, most = -(-n // ROWS_PER_TILE), max(1, PART_NUMBERS // (ROWS_PER_TILE * max(1, d)))
    size = min(n, most * ROWS_PER_TILE)
    sums = np.empty((0 if out.size else size, n_segments, m), out.dtype)
    values, half, factor = np.empty((size, d), out.dtype), np.empty(size, out.dtype), np.empty(size)
    everything, nothing, no_offsets = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
    points, weights = PanelData(panels, base, nothing, no_offsets), Weights(weight, entries, entry_segment)
    zero = np.int64(0)  # for a literal 0 Numba would compile both functions below once more
    rows = RowData(values.reshape(size * d), half, factor, nothing, no_offsets, d)
    while True:
        a, b = take_tiles(sync, n_tiles, most, n_threads)
        if a == b:
            return
        lo, hi = a * ROWS_PER_TILE, min(n, b * ROWS_PER_TILE)
        n_far = fold_rows(raw[lo:hi], centre, feature_scale, norm, scale, zero, hi - lo, values, half, factor)
        part = out[lo:hi] if out.size else sums[: hi - lo]
        kernel_tiles(
            rows, points, everything, zero, weights, n_segments, m, form, code, degree, near_half, zero, b - a, part
        )
        _judge(part, lo, intercept, scores, classes, labels)
        if n_far:
            add(sync, FAR, n_far)
        add(sync, DONE, b - a)


@njit(cache=True, nogil=True)
def all_done(sync, n_tiles):
    """Whether all tiles are done, or soon are."""
    looks = 0
    while load(sync, DONE) < n_tiles and looks < PATIENCE:
        looks += 1
    return looks < PATIENCE


def new_counter() -> np.ndarray:
    """What the threads of one `score_rows` share."""
    return np.zeros(SYNC_SIZE, np.int64)
