"""The least point goes."""

from __future__ import annotations

from slimsvm.budget.budget_rule import BudgetRule


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
