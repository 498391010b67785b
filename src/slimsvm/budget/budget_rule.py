"""What a budget rule is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from slimsvm import core
from slimsvm.kernels import Kernel


class BudgetRule(BaseEstimator):
    """How a model that has one point too many loses it; the work is compiled (``core/budget/rules.h``).

    Attributes
    ----------
    name : str
        Key of `slimsvm.budget.BUDGET_RULES`.
    code : int
        The rule's in ``core/budget/rules.h``.
    rbf_only : bool
        Whether the rule makes new points, which only the RBF kernel has a formula for.
    keeps_inverse : bool
        Whether the rule needs the inverse of the points' kernel matrix.
    """

    name: ClassVar[str]
    code: ClassVar[int]
    rbf_only: ClassVar[bool] = False
    keeps_inverse: ClassVar[bool] = False

    def check(self, kernel: Kernel) -> None:
        """Raise a ValueError where parameters are out of range or the kernel does not suit the rule."""
        if self.rbf_only and not kernel.is_gaussian:
            from slimsvm.budget import BUDGET_RULES

            *others, last = [repr(name) for name, rule in BUDGET_RULES.items() if not rule.rbf_only]
            raise ValueError(
                f"maintenance={self.name!r} makes points that are not rows, and needs kernel='rbf' for that; found "
                f"{kernel!r}. maintenance={', '.join(others)} and {last} work with every kernel"
            )

    def compiled(self, max_basis: int) -> core.Structure:
        """The rule as compiled code takes it, for models of at most ``max_basis`` points."""
        return core.BudgetRule(code=self.code, max_points=max_basis, pairs=1, contrast=np.inf)

    def work(self, n_basis: int) -> int:
        """Multiply-adds, about, of making room among ``n_basis`` points, beside their kernel values."""
        return 10 * n_basis
