"""Work on many rows in short calls: Python hears Ctrl-C between two, so that none takes longer than 50 ms.

Products of many rows with a few columns, and with each other, have the same bits for any number of threads and any cut
of the rows (`add_transposed`: any cut at multiples of SUM_ROWS).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from slimsvm import core

Array = np.ndarray

CALL_MICROSECONDS = 30_000.0
SUM_ROWS = 512  # rows that `add_transposed` sums over in one piece
# About how many multiplications one thread does in a microsecond: of values that come from memory, and in dense
# products of float32 (half as many in float64). And about how many numbers it writes to memory that is new.
FROM_MEMORY, DENSE, NEW = 5_000, 50_000, 100


def in_calls(n: int, microseconds: float, multiple: int = 1) -> Iterator[slice]:
    """Yield slices of n things, each small enough for one call.

    Parameters
    ----------
    n : int
    microseconds : float
        About how long one of them takes one thread.
    multiple : int
        Their number in all slices but the last is a multiple of this.

    Examples
    --------
    >>> from slimsvm.core.products import in_calls
    >>> list(in_calls(5, 10_000.0, multiple=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, int(CALL_MICROSECONDS / max(microseconds, 1e-9)) // multiple) * multiple
    for lo in range(0, n, step):
        yield slice(lo, min(n, lo + step))


def multiply_rows(values: Array, right: Array, out: Array, n_threads: int, is_upper: bool = False) -> None:
    """Set out (n, k) = values (n, r) @ right (r, k), in their own type; where is_upper, right is upper triangular."""
    call = core.multiply_rows.prepare(right=right, is_upper=int(is_upper), n_threads=n_threads)
    per_row = right.size / _dense(right)
    for part in in_calls(len(out), per_row):
        call(values=values[part], out=out[part], microseconds=per_row * len(out[part]))


def _dense(factor: Array) -> float:
    """Return about how many multiplications of this type one thread does in a microsecond in dense products."""
    return DENSE * 4.0 / factor.itemsize


def squares(rows: Array, weights: Array, n_threads: int) -> Array:
    """Return Σ_i weights_i x_i x_iᵀ in float64 of rows (n, k): the lower triangle is set, column by column."""
    n, k = rows.shape
    upper = np.zeros((k, k))
    call = core.add_squares.prepare(weights=weights.astype(rows.dtype), is_upper=1, n_threads=n_threads)
    per_microsecond = _dense(rows)
    for part in in_calls(k, n * k / per_microsecond):
        out = upper[part, part.start :]
        call(left=rows[:, part], right=rows[:, part.start :], out=out, microseconds=n * out.size / per_microsecond)
    return upper.T


def multiply_wide(values: Array, coef: Array, out: Array, n_threads: int) -> None:
    """Set out (n, m) = values (n, k) @ coef (k, m), in float64."""
    per_row = coef.size / FROM_MEMORY
    for part in in_calls(len(out), per_row):
        one_thread = per_row * (part.stop - part.start)
        core.multiply_wide(values=values[part], coef=coef, out=out[part], n_threads=n_threads, microseconds=one_thread)


def add_transposed(values: Array, coef: Array, out: Array, n_threads: int) -> None:
    """Add valuesᵀ (k, n) @ coef (n, m) to out (k, m), in float64."""
    per_row = out.size / FROM_MEMORY
    for part in in_calls(len(coef), per_row, SUM_ROWS):
        one_thread = per_row * (part.stop - part.start)
        core.multiply_transposed(
            values=values[part], coef=coef[part], out=out, n_threads=n_threads, microseconds=one_thread
        )
