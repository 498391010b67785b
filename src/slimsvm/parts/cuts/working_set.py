"""The live cuts and the small QP over them."""

from __future__ import annotations

import numpy as np

from slimsvm.parts.cuts.cut import Cut, weighted_sum
from slimsvm.parts.cuts.simplex_qp import SimplexQP

Array = np.ndarray

# Relative KKT residual asked of the QP. At large C₁ the gap of a fit is this times C₁ / objective: far below 1e-8
# (docs/experiments/sampled_cuts.md).
QP_TOLERANCE = 1e-14


class WorkingSet:
    """Live cuts with the dual solution α of

        max_α  hᵀα − ½ αᵀGα,   α ≥ 0,   Σα ≤ C₁,        G_jk = ⟨g_j, g_k⟩,  h_j = c_j.

    Attributes
    ----------
    cuts : list of Cut
    qp : SimplexQP
        G, h and the Cholesky factor kept between solutions.
    alpha : float64 ndarray of shape (t,)
        The last solution, 0 for cuts added since.
    idle : int64 ndarray of shape (t,)
        For how many solutions in a row α_j has been 0.
    best_products : float64 ndarray of shape (t,)
        ⟨w_b, g_j⟩ with the best point of a line search (0 where there is none).
    xi : float
        Mean loss as the cuts see it.
    kkt : float
        Relative KKT residual of the last solution.
    """

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self.qp = SimplexQP(tol=QP_TOLERANCE)
        self.alpha = np.zeros(0)
        self.best_products = np.zeros(0)
        self.idle = np.zeros(0, dtype=np.int64)
        self.xi = self.kkt = 0.0

    def __len__(self) -> int:
        return len(self.cuts)

    def add(self, cut: Cut, products: Array, best_product: float = 0.0) -> None:
        """Append a cut; ``products`` (t + 1,) are its inner products with the live cuts and with itself.

        If those between live cuts have changed, too, the inner products of all: (t + 1, t + 1).
        """
        if products.ndim == 2:
            self.qp = SimplexQP.from_gram(products[:-1, :-1], self.qp.h.copy(), self.alpha, tol=QP_TOLERANCE)
            products = products[-1]
        self.qp.append(products[:-1], float(products[-1]), cut.c)
        self.best_products = np.append(self.best_products, best_product)
        self.cuts.append(cut)
        self.alpha = self.qp.alpha
        self.idle = np.append(self.idle, 0)

    def solve(self, C1: float) -> None:
        """Solve the QP from the present α."""
        solution = self.qp.solve(C1)
        self.alpha, self.xi, self.kkt = self.qp.alpha, solution.xi, solution.kkt
        self.idle = np.where(self.alpha > 0, 0, self.idle + 1)

    def move_best(self, k: float) -> None:
        """Move the best point the share k of the way to the solution."""
        self.best_products += k * (self.qp.G @ self.alpha - self.best_products)

    def put_best_here(self) -> None:
        """Let the solution be the best point."""
        self.best_products = self.qp.G @ self.alpha

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.qp.keep(index)
        self.cuts = [self.cuts[j] for j in index]
        self.alpha, self.idle, self.best_products = self.qp.alpha, self.idle[index], self.best_products[index]

    def merge(self, index: Array) -> Array:
        """Replace some cuts by Σ α_j (c_j, g_j) / Σ α_j, appended at the end; return the weights of that mean.

        w and the QP's value stay as they are.
        """
        share = self.qp.merge(index)
        rest = np.setdiff1d(np.arange(len(self.cuts)), index)
        self.cuts = [self.cuts[j] for j in rest] + [weighted_sum([self.cuts[j] for j in index], share)]
        self.alpha, self.idle = self.qp.alpha, np.append(self.idle[rest], 0)
        self.best_products = np.append(self.best_products[rest], share @ self.best_products[index])
        return share

    @property
    def norm_squared(self) -> float:
        """Return ‖w‖² = αᵀGα; with kernels that are no inner products (sigmoid) it may be negative."""
        return float(self.alpha @ (self.qp.G @ self.alpha))

    @property
    def value(self) -> float:
        """Return the QP's value hᵀα − ½ αᵀGα: a lower bound on the objective if every cut is exact."""
        return self.qp.value

    @property
    def plain(self) -> Array:
        """Return the plain parameters v = Σ α_j plain_j."""
        found: Array = self.alpha @ np.stack([cut.plain for cut in self.cuts])
        return found
