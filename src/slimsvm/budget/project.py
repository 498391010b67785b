"""A point goes, its projection onto the span of the others stays."""

from __future__ import annotations

from slimsvm.budget.budget_rule import BudgetRule


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
