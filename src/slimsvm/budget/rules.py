"""Budget rules: a model with one point too many loses it by a merger, a projection or a removal."""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from slimsvm import core
from slimsvm.kernels import Kernel


class BudgetRule(BaseEstimator):
    """A rule that removes one point from a model with too many; the core does the work (``core/budget/rules.h``).

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
        """Return the rule as compiled code takes it, for models of at most ``max_basis`` points."""
        return core.BudgetRule(code=self.code, max_points=max_basis, pairs=1, contrast=np.inf)

    def work(self, n_basis: int) -> int:
        """Return about how many multiply-adds making room among ``n_basis`` points takes, without kernel values."""
        return 10 * n_basis


TABLE_SHAPE = (601, 201, 2)

# Points of different signs merge if one coefficient is this many times the other.
LEAST_CONTRAST = 2.0

TABLE_COLUMNS = 20  # the columns that one compiled call fills, in some 10 ms


@lru_cache(maxsize=1)
def merge_table() -> np.ndarray:
    """Return losses and places of mergers (``fill_merge_table`` of slimsvm.h). Callers share it: do not change it."""
    table = np.empty(TABLE_SHAPE, np.float32)
    for lo in range(0, TABLE_SHAPE[1], TABLE_COLUMNS):
        core.fill_merge_table(lo=lo, hi=min(lo + TABLE_COLUMNS, TABLE_SHAPE[1]), table=table)
    table.setflags(write=False)
    return table


class Merge(BudgetRule):
    """The point of the smallest coefficient merges with the one that this costs least.

    The new point z = (1 − h) x_i + h x_j has the coefficient β_i κ^(h²) + β_j κ^((1−h)²), κ = k(x_i, x_j), and h is
    what makes ‖Δ‖² = β_i² + β_j² + 2 β_i β_j κ − β_z² least. Points of two signs merge where ``|β_j| ≥ 2 |β_i|``, with
    h > 1: what is taken off a point moves it away. With several outputs β² stands for the sum over them, and points
    merge where their coefficients have a positive inner product. Where nothing can be merged the point is removed.

    Parameters
    ----------
    search : {"table", "golden-section"}, default="table"
        Where h and ‖Δ‖² come from: a table made beforehand (losses right to 4e-5 of ``(|β_i| + |β_j|)²``), or golden
        section search for every candidate, many times as slow. With several outputs the table sorts out candidates
        that cannot win, and golden section does the rest.
    two_signs : bool, default=True
        Whether points of a single output whose coefficients have two signs merge, too. The paper's merge only points of
        one sign: False.

    References
    ----------
    Wang, Crammer, Vucetic: Breaking the Curse of Kernelization, JMLR 2012. Glasmachers, Qaadan: Speeding Up Budgeted
    Stochastic Gradient Descent SVM Training with Precomputed Golden Section Search, 2018.

    Examples
    --------
    >>> from slimsvm.budget import Merge
    >>> Merge(search="golden-section")
    Merge(search='golden-section')
    """

    name = "merge"
    code = 0
    rbf_only = True

    def __init__(self, search="table", two_signs=True):
        self.search = search
        self.two_signs = two_signs

    def check(self, kernel):
        """Check the kernel, ``search`` and ``two_signs``."""
        super().check(kernel)
        if self.search not in ("table", "golden-section"):
            raise ValueError(f"search must be 'table' or 'golden-section', found {self.search!r}")
        if not isinstance(self.two_signs, (bool, np.bool_)):
            raise ValueError(f"two_signs must be True or False, found {self.two_signs!r}")

    def compiled(self, max_basis):
        """Return the rule for one merger at a time."""
        return self._rule(max_basis, 1)

    def _rule(self, max_basis: int, pairs: int) -> core.Structure:
        table = merge_table() if self.search == "table" else None
        contrast = LEAST_CONTRAST if self.two_signs else np.inf
        return core.BudgetRule(code=self.code, max_points=max_basis, pairs=pairs, contrast=contrast, table=table)

    def work(self, n_basis):
        """Return the work of a table look-up or a golden section search for each candidate."""
        return (20 if self.search == "table" else 4000) * n_basis


class MultiMerge(Merge):
    """`Merge` of several pairs at a time: one search over the points then makes room for several steps.

    The point of the smallest coefficient merges with its best partner, the result with the next best, and so on.

    Parameters
    ----------
    pairs : int, default=3
        Mergers in one search, at least 2.
    search : {"table", "golden-section"}, default="table"
    two_signs : bool, default=True
        The same as in `Merge`.

    References
    ----------
    Qaadan, Glasmachers: Multi-Merge Budget Maintenance for Stochastic Gradient Descent SVM Training, 2018.

    Examples
    --------
    >>> from slimsvm.budget import MultiMerge
    >>> MultiMerge(pairs=2)
    MultiMerge(pairs=2)
    """

    name = "multi-merge"

    def __init__(self, pairs=3, search="table", two_signs=True):
        super().__init__(search, two_signs)
        self.pairs = pairs

    def check(self, kernel):
        """Check also ``pairs``."""
        super().check(kernel)
        if isinstance(self.pairs, bool) or not isinstance(self.pairs, Integral) or self.pairs < 2:
            raise ValueError(f"pairs must be an integer >= 2, found {self.pairs!r}")

    def compiled(self, max_basis):
        """Return the rule for ``pairs`` mergers at a time."""
        return self._rule(max_basis, self.pairs)


class Project(BudgetRule):
    """The point whose projection onto the span of the others loses least goes: ‖Δ‖² = β_j² / (K⁻¹)_jj.

    The inverse of the points' kernel matrix is kept up to date, O(B²) per new point. A new point within the span of
    the others (up to rounding) never comes in: its coefficient goes to them. For every kernel.

    References
    ----------
    Orabona, Keshet, Caputo: Bounded Kernel-Based Online Learning, JMLR 2009. Wang, Crammer, Vucetic: Breaking the
    Curse of Kernelization, JMLR 2012.

    Examples
    --------
    >>> from slimsvm.budget import Project
    >>> Project()
    Project()
    """

    name = "project"
    code = 1
    keeps_inverse = True

    def work(self, n_basis):
        """Count the multiply-adds that update the inverse."""
        return 4 * n_basis**2


class Remove(BudgetRule):
    """The point of the smallest β² k(x, x) goes, and is lost: ‖Δ‖² = β² k(x, x). For every kernel.

    References
    ----------
    Wang, Crammer, Vucetic: Breaking the Curse of Kernelization, JMLR 2012.

    Examples
    --------
    >>> from slimsvm.budget import Remove
    >>> Remove()
    Remove()
    """

    name = "remove"
    code = 2
