"""What a budget rule is."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from slimsvm.kernels import RBF, Kernel
from slimsvm.numerics.points import Rule

NO_TABLE = np.empty((0, 0, 2), np.float32)


class BudgetRule(BaseEstimator):
    """How a model that has one point too many loses it; the work is compiled (`slimsvm.numerics.budget`).

    Attributes
    ----------
    name : str
        Key of `slimsvm.budget.BUDGET_RULES`.
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
        if self.rbf_only and not isinstance(kernel, RBF):
            raise ValueError(
                f"maintenance={self.name!r} makes points that are no rows, for which it needs kernel='rbf'; found "
                f"{kernel!r}. maintenance='project' and 'remove' serve every kernel"
            )

    def compiled(self, max_basis: int) -> Any:
        """The rule as compiled code takes it, for models of at most ``max_basis`` points."""
        return Rule(self.code, max_basis, 1, False, NO_TABLE)
