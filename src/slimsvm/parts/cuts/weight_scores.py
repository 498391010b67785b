"""Scores while cuts are added to a linear machine of explicit weights."""

from __future__ import annotations

import numpy as np

from slimsvm.kernels import FeatureRows, KernelRows
from slimsvm.parts.cuts.cut import Cut, weighted_sum
from slimsvm.parts.cuts.score_books import plain_products

Array = np.ndarray


class WeightScores:
    """Score book of the linear kernel: directions are weights u = Σ_i coef_i x_i, not expansions over rows.

    A new cut costs one product with the rows' transpose and one with the rows, as does a new w; no kernel value is
    computed, and nothing is kept beside the cuts themselves.

    Parameters
    ----------
    kernel_rows : KernelRows
    n_outputs : int
    intercept : bool
        True adds the constant feature to every product.
    """

    full = False

    def __init__(self, kernel_rows: KernelRows, n_outputs: int, intercept: bool):
        self.features = FeatureRows(kernel_rows.rows, kernel_rows.n_jobs)
        self.n_outputs, self.intercept = n_outputs, intercept
        self.scores = np.zeros((kernel_rows.n_rows, n_outputs))
        self.cuts: list[Cut] = []

    def weights(self, cut: Cut) -> Array:
        """G of a cut as weights, shape (n_features, n_outputs)."""
        coef = np.zeros_like(self.scores)
        coef[cut.rows] = cut.coef
        return self.features.gather(coef)

    def _scores(self, cut: Cut) -> Array:
        """⟨g, φ(x_i)⟩ of all rows."""
        return self.features.scores(self.weights(cut), cut.intercept if self.intercept else None)

    def add(self, cut: Cut, live: list[Cut], products: Array | None = None, exact: bool = False) -> Array:
        """Add a cut; return its inner products (t + 1,) with the live cuts and with itself."""
        scores = self._scores(cut)
        self.cuts.append(cut)
        found: Array = np.array([np.vdot(one.coef, scores[one.rows]) for one in self.cuts]) + plain_products(cut, live)
        return found

    def combine(self, alpha: Array) -> None:
        """Set ``scores`` to those of Σ α_j g_j."""
        used = np.flatnonzero(alpha)
        if not len(used):
            self.scores = np.zeros_like(self.scores)
            return
        self.scores = self._scores(weighted_sum([self.cuts[j] for j in used], alpha[used]))

    def keep(self, index: Array) -> None:
        """Forget all cuts but ``index``."""
        self.cuts = [self.cuts[j] for j in index]
