"""Cuts projected onto a small basis that grows with them (cutting-plane subspace pursuit).

Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training", 2009. With K_BB = L Lᵀ a cut g = Σ_i coef_i φ(x_i) has
the whitened coordinates z = L⁻¹ K_BX coef, its projection is Σ_j β_j φ(b_j) with β = L⁻ᵀ z, and ⟨ĝ_j, ĝ_k⟩ = z_j · z_k.
A new basis vector adds one row to L and one entry to every z: nothing is computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from slimsvm.kernels import KernelRows
from slimsvm.kernels.pairs import between, squared_lengths
from slimsvm.parts.cuts.cut import Cut

Array = np.ndarray

FindVector = Callable[[Cut, Any, Array], Any]
IsExplained = Callable[[Cut, float], bool]


def never(cut: Cut, projected: float) -> bool:
    """Return False: no cut is explained by the basis."""
    return False


class ProjectedScores:
    """The score book over a growing basis: it computes scores from cuts projected onto it.

    Parameters
    ----------
    kernel_rows : KernelRows
    n_outputs : int
    intercept : bool
        True adds the constant feature, which is never projected.
    max_basis, vectors_per_cut : int
    find : callable (cut, basis, coefficients of the projection) -> raw vectors (1, d)
        Finds the next basis vector; it has shape (0, d) if nothing is left to explain.
    is_explained : callable (cut, squared length of its projection) -> bool
        Whether a cut needs no further vector.

    Attributes
    ----------
    n_basis : int
    basis : raw vectors (n_basis, d) or None
    coordinates, constant : float64 ndarrays of shape (max_basis, n_outputs) and (n_outputs,)
        Whitened coordinates and constant of what `combine` was last called for.
    L : float64 ndarray; the factor is its leading (n_basis, n_basis) part.
    gained : float
        Squared length of the last cut's part along the vectors it brought: how much its residual fell.
    refused : int
        Vectors in a row that were left out because they lay in the span of the basis up to rounding.
    """

    full = False

    def __init__(
        self,
        kernel_rows: KernelRows,
        n_outputs: int,
        intercept: bool,
        max_basis: int,
        vectors_per_cut: int,
        find: FindVector,
        is_explained: IsExplained = never,
    ):
        self.kernel_rows, self.n_outputs, self.intercept = kernel_rows, n_outputs, intercept
        self.max_basis, self.vectors_per_cut, self.find = max_basis, vectors_per_cut, find
        self.is_explained = is_explained
        self.scores = np.zeros((kernel_rows.n_rows, n_outputs))
        self.basis: Any = None
        self.refused, self.gained = 0, 0.0
        self.L = np.zeros((max_basis, max_basis))
        self.z = np.zeros((0, max_basis, n_outputs))
        self.coordinates = np.zeros((max_basis, n_outputs))
        self.constants, self.constant = np.zeros((0, n_outputs)), np.zeros(n_outputs)
        self.points: Any = None
        self.smallest_pivot = 1e-10 if kernel_rows.dtype == np.float64 else 1e-6

    @property
    def n_basis(self) -> int:
        """Return the number of vectors in the basis."""
        return 0 if self.basis is None else self.basis.shape[0]

    @property
    def is_full(self) -> bool:
        """Return whether the basis grows no more."""
        return self.n_basis >= self.max_basis

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Let the basis grow by the new cut's residual; return the inner products (t + 1,) of its projection.

        If the basis has grown, all projections have: then the inner products of all, (t + 1, t + 1).
        """
        cuts = [*live, cut]
        z = np.zeros((1, self.max_basis, self.n_outputs))
        k = self.n_basis
        if k:
            inner = self.kernel_rows.block(self.points, rows=cut.rows).astype(np.float64).T @ cut.coef
            z[0, :k] = solve_triangular(self.L[:k, :k], inner, lower=True)
        self.z = np.concatenate([self.z, z])
        for _ in range(self.vectors_per_cut):
            if self.is_full or self.is_explained(cut, float(np.sum(self.z[-1] ** 2))) or not self._grow(cuts):
                break
        self.gained = float(np.sum(self.z[-1, k:] ** 2))
        self.constants = np.vstack([self.constants, cut.intercept if self.intercept else np.zeros(self.n_outputs)])
        flat = self.z[:, : self.n_basis].reshape(len(cuts), -1)
        gram = flat @ flat.T + self.constants @ self.constants.T
        if len(cut.plain):
            plain = np.stack([one.plain for one in cuts])
            gram += plain @ plain.T
        return gram if self.n_basis > k and live else gram[-1]

    def _grow(self, cuts: list[Cut]) -> bool:
        """Add the vector found for the last cut's residual; False if it lies in the span of the basis already."""
        k, cut = self.n_basis, cuts[-1]
        vector = self.find(cut, self.basis, -self.coefficients(self.z[-1]))
        if not vector.shape[0]:
            self.refused += 1
            return False
        own = float(squared_lengths(self.kernel_rows, vector)[0])
        row = np.zeros(k)
        if k:
            row = solve_triangular(self.L[:k, :k], between(self.kernel_rows, self.basis, vector)[:, 0], lower=True)
        pivot = own - float(row @ row)
        if not pivot > self.smallest_pivot * own:
            self.refused += 1
            return False
        self.refused = 0
        root = np.sqrt(pivot)
        self.L[k, :k], self.L[k, k] = row, root
        column = self.kernel_rows.block(self.kernel_rows.points_of(vector))[:, 0].astype(np.float64)
        for j, live in enumerate(cuts):
            inner = column[live.rows] @ live.coef
            self.z[j, k] = (inner - row @ self.z[j, :k]) / root
        stack = sp.vstack if sp.issparse(vector) else np.concatenate
        self.basis = vector if self.basis is None else stack([self.basis, vector])
        self.points = self.kernel_rows.points_of(self.basis)
        return True

    def coefficients(self, z: Array) -> Array:
        """Return β = L⁻ᵀ z over the present basis, (n_basis, n_outputs)."""
        k = self.n_basis
        if not k:
            return np.zeros((0, self.n_outputs))
        return solve_triangular(self.L[:k, :k], z[:k], lower=True, trans="T")

    def combine(self, alpha: Array) -> None:
        """Set ``coordinates``, ``constant`` and ``scores`` by Σ α_j ĝ_j."""
        self.coordinates = np.einsum("j,jkc->kc", alpha, self.z)
        self.constant = alpha @ self.constants
        self.scores = np.zeros_like(self.scores) + self.constant
        if self.n_basis:
            self.scores += self.kernel_rows.scores(self.points, self.coefficients(self.coordinates))

    def keep(self, index: Array) -> None:
        """Forget the projections of all cuts but ``index``."""
        self.z, self.constants = self.z[index], self.constants[index]
