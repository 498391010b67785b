"""Copies of arrays within compiled code.

Numba compiles for ``out[a:b] = values`` also the text of the error of two lengths that differ: a fifth of all the time
that the first fit spends on compiling. Here the lengths are the caller's matter.
"""

from __future__ import annotations

from slimsvm.numerics.compiling import njit


@njit(nogil=True)
def copy_row(values, out):
    """Set out[i] = values[i]."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@njit(nogil=True)
def copy_rows(values, out):
    """Set out[i, j] = values[i, j]."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = values[i, j]
