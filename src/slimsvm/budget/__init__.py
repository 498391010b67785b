"""Budget rules: how a model with one point too many loses it."""

from __future__ import annotations

from slimsvm.budget.budgeted_model import BudgetedModel, Counts
from slimsvm.budget.rules import BudgetRule, Merge, MultiMerge, Project, Remove
from slimsvm.lazy import named

BUDGET_RULES: dict[str, type[BudgetRule]] = {rule.name: rule for rule in (Merge, MultiMerge, Project, Remove)}

__all__ = [
    "BUDGET_RULES",
    "BudgetRule",
    "BudgetedModel",
    "Counts",
    "Merge",
    "MultiMerge",
    "Project",
    "Remove",
    "get_budget_rule",
]


def get_budget_rule(rule: str | BudgetRule) -> BudgetRule:
    """Return the rule of a name, or the object itself.

    Parameters
    ----------
    rule : str or BudgetRule
        A key of `BUDGET_RULES`, or an object.

    Returns
    -------
    BudgetRule

    Raises
    ------
    ValueError
        There is no rule of that name; the message lists the names.

    Examples
    --------
    >>> from slimsvm.budget import get_budget_rule
    >>> get_budget_rule("remove")
    Remove()
    """
    return named(rule, BudgetRule, BUDGET_RULES, "maintenance")
