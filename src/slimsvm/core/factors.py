"""Cholesky factors of many vectors' kernel values in short calls: the time limit is checked between panels of columns.

Up to WHOLE vectors LAPACK takes one call, which is then short enough. The upper triangles of factors hold anything.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from slimsvm.core.clock import check_time
from slimsvm.core.products import DENSE, FROM_MEMORY, in_calls

Array = np.ndarray

# LAPACK's calls for this many vectors take some 15 ms. Beyond, panels have PANEL columns, those with pivots fewer:
# within them every column is a step of Python.
WHOLE, PANEL, PIVOTED_PANEL = 768, 256, 64
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
            L[rows, lo:hi] -= L[rows, :lo] @ L[lo:hi, :lo].T
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
        found: Array = lapack.dpotrs(factor, right, lower=1)[0]
        return found
    found = np.empty(right.shape, order="F")
    for part in in_calls(right.shape[1], 2 * len(factor) ** 2 / DENSE):
        check_time()
        found[:, part] = lapack.dpotrs(factor, right[:, part], lower=1)[0]
    return found


def _copied(A: Array) -> Array:
    """Return a copy in Fortran's order."""
    copy = np.empty(A.shape, order="F")
    for part in in_calls(len(A), A.shape[0] / FROM_MEMORY):
        check_time()
        copy[:, part] = A[:, part]
    return copy


def pivoted_cholesky(A: Array, least: float) -> tuple[Array, Array, int]:
    """Return the lower factor of a matrix whose rows are ordered by their pivots, this order, and the rank.

    Parameters
    ----------
    A : float64 ndarray of shape (k, k)
        Symmetric.
    least : float
        Pivots are above this; the factor has as many columns as there are such (``rank``), the others hold anything.
    """
    k = len(A)
    if k <= WHOLE:
        factor, order, rank, _ = lapack.dpstrf(A, lower=1, tol=least)
        return factor, order.astype(np.int64) - 1, rank
    L, order = _copied(A), np.arange(k)
    for lo in range(0, k, PIVOTED_PANEL):
        check_time()
        hi = min(k, lo + PIVOTED_PANEL)
        left = np.diagonal(L)[lo:].copy()
        for j in range(lo, hi):
            pivot = j + int(np.argmax(left[j - lo :]))
            square = left[pivot - lo]
            if not square > max(least, 0.0):
                return L, order, j
            if pivot > j:
                _exchange(L, j, pivot)
                order[[j, pivot]], left[pivot - lo] = order[[pivot, j]], left[j - lo]
            L[j, j], below = np.sqrt(square), L[j + 1 :, j]
            below -= L[j + 1 :, lo:j] @ L[j, lo:j]
            below /= L[j, j]
            left[j + 1 - lo :] -= below * below
        for part in in_calls(k - hi, k * PIVOTED_PANEL / DENSE):
            check_time()
            a, b = hi + part.start, hi + part.stop
            L[a:b, hi:b] -= L[a:b, lo:hi] @ L[hi:b, lo:hi].T
    return L, order, k


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
        found: Array = solve_triangular(L, np.eye(k), lower=True) if k else np.eye(k)
        return found
    inverse = np.zeros((k, k))
    for lo in range(0, k, PANEL):
        hi = min(k, lo + PANEL)
        corner = solve_triangular(L[lo:hi, lo:hi], np.eye(hi - lo), lower=True)
        inverse[lo:hi, lo:hi] = corner
        for part in in_calls(lo, (hi - lo) * hi / DENSE):
            check_time()
            inverse[lo:hi, part] = -corner @ (L[lo:hi, part.start : lo] @ inverse[part.start : lo, part])
    return inverse
