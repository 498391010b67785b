"""Cholesky factors of many vectors' kernel values in short calls: the time limit is checked between panels of columns.

Up to WHOLE vectors LAPACK takes one call, which is then short enough. The upper triangles of factors hold anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack, solve_triangular

from slimsvm.core.clock import check_time
from slimsvm.core.products import DENSE, NEW, in_calls

Array = np.ndarray

# LAPACK's calls for this many vectors take some 15 ms. Beyond, panels have PANEL columns, those with pivots fewer:
# within them every column is a step of Python.
WHOLE, PANEL, PIVOTED_PANEL = 768, 256, 64
# The rows and columns of products that are subtracted at once: half a megabyte.
TILE = 256
# The most multiply-adds of right sides with a factor in one call.
MOST_SOLVED = 1 << 29


def cholesky(A: Array, overwrite: bool = False, upper: bool = False) -> Array | None:
    """Return the lower factor L of a matrix L Lᵀ in Fortran's order; None if it is not positive definite.

    Parameters
    ----------
    A : float64 ndarray of shape (k, k)
        Symmetric; only the triangle is read that the factor has.
    overwrite : bool
        Whether the factor may take the place of the matrix.
    upper : bool
        Whether the factor is the upper one, Lᵀ.
    """
    k = len(A)
    if k <= WHOLE:
        factor, failed = lapack.dpotrf(A, lower=not upper, overwrite_a=overwrite, clean=0)
        return None if failed else factor
    L = A.T if upper else A
    L = L if overwrite and L.flags.f_contiguous else _copied(L)
    for lo in range(0, k, PANEL):
        hi = min(k, lo + PANEL)
        for part in in_calls(k - lo, lo * (hi - lo) / DENSE):
            check_time()
            rows = slice(lo + part.start, lo + part.stop)
            L[rows, lo:hi] -= (L[lo:hi, :lo] @ L[rows, :lo].T).T
        corner, failed = lapack.dpotrf(L[lo:hi, lo:hi], lower=1)
        if failed:
            return None
        L[lo:hi, lo:hi] = corner
        for part in in_calls(k - hi, (hi - lo) ** 2 / DENSE):
            check_time()
            rows = slice(hi + part.start, hi + part.stop)
            L[rows, lo:hi] = solve_triangular(corner, L[rows, lo:hi].T, lower=True).T
    return L.T if upper else L


def solve_positive(A: Array, right: Array) -> Array:
    """Return A⁻¹ right of a positive definite matrix (k, k)."""
    factor = cholesky(A)
    if factor is None:
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    return solve_factored(factor, right)


def solve_factored(factor: Array, right: Array) -> Array:
    """Return (L Lᵀ)⁻¹ right (k, m) for the lower factor L (k, k)."""
    if right.size * len(factor) <= MOST_SOLVED:
        return lapack.dpotrs(factor, right, lower=1)[0]
    found = np.empty(right.shape, order="F")
    for part in in_calls(right.shape[1], 2 * len(factor) ** 2 / DENSE):
        check_time()
        found[:, part] = lapack.dpotrs(factor, right[:, part], lower=1)[0]
    return found


def _copied(A: Array) -> Array:
    """Return a copy in Fortran's order."""
    copy = np.empty(A.shape, order="F")
    for part in in_calls(len(A), A.shape[0] / NEW):
        check_time()
        copy[:, part] = A[:, part]
    return copy


def scaled(A: Array, rows: Array, columns: Array | float = 1.0) -> Array:
    """Return a matrix in C's order whose rows and columns are multiplied by numbers."""
    out = np.empty(A.shape)
    for part in in_calls(len(A), A.shape[1] / NEW):
        check_time()
        np.multiply(A[part], columns, out=out[part])
        out[part] *= rows[part, None]
    return out


class PivotedCholesky:
    """The lower factor of a matrix whose rows are ordered by their pivots, computed a panel of columns at a time.

    Parameters
    ----------
    A : float64 ndarray of shape (k, k)
        Symmetric.
    least : float
        Pivots are above this; the factor has as many columns as there are such (``rank``), the others hold anything.

    Attributes
    ----------
    L : float64 ndarray of shape (k, k)
        The factor, of which ``n_columns`` are computed.
    order : int64 ndarray of shape (k,)
    rank : int or None
        None until all columns are computed.
    """

    def __init__(self, A: Array, least: float):
        k = len(A)
        self.least, self.n_columns, self.rank = max(least, 0.0), 0, None
        if k <= WHOLE:
            self.L, order, self.n_columns, _ = lapack.dpstrf(A, lower=1, tol=least)
            self.order, self.rank = order.astype(np.int64) - 1, self.n_columns
        else:
            self.L, self.order = _copied(A), np.arange(k)

    def extend(self, n_columns: int) -> None:
        """Compute at least so many columns, if the rank is not less."""
        while self.rank is None and self.n_columns < n_columns:
            check_time()
            lo, k = self.n_columns, len(self.L)
            hi = min(k, lo + PIVOTED_PANEL)
            self.n_columns = self._factor_panel(lo, hi)
            if self.n_columns < hi or hi == k:
                self.rank = self.n_columns
            else:
                self._subtract_panel(lo, hi)

    def _factor_panel(self, lo: int, hi: int) -> int:
        """Compute columns lo to hi; return the first one whose pivot is too small, or hi."""
        L, order = self.L, self.order
        left = np.diagonal(L)[lo:].copy()
        for j in range(lo, hi):
            pivot = j + int(np.argmax(left[j - lo :]))
            square = left[pivot - lo]
            if not square > self.least:
                return j
            if pivot > j:
                _exchange(L, j, pivot)
                order[[j, pivot]], left[pivot - lo] = order[[pivot, j]], left[j - lo]
            L[j, j], below = np.sqrt(square), L[j + 1 :, j]
            below -= L[j + 1 :, lo:j] @ L[j, lo:j]
            below /= L[j, j]
            left[j + 1 - lo :] -= below * below
        return hi

    def _subtract_panel(self, lo: int, hi: int) -> None:
        """Subtract the product of a panel with itself from the columns right of it."""
        L, k = self.L, len(self.L)
        for part in in_calls(k - hi, k * PIVOTED_PANEL / DENSE):
            check_time()
            for columns in _tiles(hi, hi + part.stop):
                first = max(hi + part.start, columns.start)
                for rows in _tiles(first, hi + part.stop):
                    # The product's transpose has Fortran's order, as L has.
                    L[rows, columns] -= (L[columns, lo:hi] @ L[rows, lo:hi].T).T


def _tiles(lo: int, hi: int) -> Iterator[slice]:
    """Yield slices of places, short enough for a square of values to stay in a processor's cache."""
    for start in range(lo, hi, TILE):
        yield slice(start, min(hi, start + TILE))


def pivoted_cholesky(A: Array, least: float) -> tuple[Array, Array, int]:
    """Return the factor, the order and the rank of `PivotedCholesky`, with all columns."""
    found = PivotedCholesky(A, least)
    found.extend(len(A))
    return found.L, found.order, found.n_columns


def _exchange(L: Array, j: int, p: int) -> None:
    """Exchange rows and columns j < p of a matrix of which the lower triangle is stored."""
    L[[j, p], :j] = L[[p, j], :j]
    L[j, j], L[p, p] = L[p, p], L[j, j]
    L[p + 1 :, [j, p]] = L[p + 1 :, [p, j]]
    between = L[j + 1 : p, j].copy()
    L[j + 1 : p, j], L[p, j + 1 : p] = L[p, j + 1 : p], between


def lower_inverse(L: Array) -> Array:
    """Return the inverse of a lower triangular matrix, whose upper triangle is not read."""
    k = len(L)
    if k <= WHOLE:
        return solve_triangular(L, np.eye(k), lower=True) if k else np.eye(k)
    inverse = np.zeros((k, k))
    for lo in range(0, k, PANEL):
        hi = min(k, lo + PANEL)
        corner = solve_triangular(L[lo:hi, lo:hi], np.eye(hi - lo), lower=True)
        inverse[lo:hi, lo:hi] = corner
        for part in in_calls(lo, (hi - lo) * hi / DENSE):
            check_time()
            inverse[lo:hi, part] = -corner @ (L[lo:hi, part.start : lo] @ inverse[part.start : lo, part])
    return inverse
