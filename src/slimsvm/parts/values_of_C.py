"""The search along C that every choice of C makes, by validation, cross-training or tables.

Values come from the lowest, each fit of the exact solver from the one before; the search ends after PATIENCE values in
a row that do not help. Who searches says what helps: a lower error, or one that is lower by more than chance.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Status
from slimsvm.parts.solver import Solver, one_by_one

# Chosen, not measured. A single value that does not help is too few: at the lowest C a model that calls all rows the
# larger class may seem good.
VALUES_OF_C, PATIENCE = (0.1, 1.0, 10.0, 100.0, 1000.0), 2


class AlongC:
    """An iterator over values of C, which ends after PATIENCE of them in a row have not helped.

    Parameters
    ----------
    values : sequence of float
        The values of C, from the lowest.
    doing : str
        The bar's text under ``verbose``.
    verbose : int, default=0

    Examples
    --------
    >>> from slimsvm.parts.values_of_C import AlongC
    >>> search = AlongC((0.1, 1.0, 10.0, 100.0, 1000.0), "values of C")
    >>> for C, error in zip(search, (0.3, 0.1, 0.2, 0.1, 0.0)):
    ...     search.judge(has_helped=error < 0.2)
    >>> C
    1000.0
    """

    def __init__(self, values: Sequence[float], doing: str, verbose: int = 0) -> None:
        self.values, self.doing, self.verbose, self.in_vain = values, doing, verbose, 0

    def __iter__(self) -> Iterator[float]:
        for C in one_by_one(self.values, self.doing, self.verbose):
            yield C
            if self.in_vain >= PATIENCE:
                return

    def judge(self, has_helped: bool) -> None:
        """Count the last value of C as one that helped, or not."""
        self.in_vain = 0 if has_helped else self.in_vain + 1


def fit_on_trial(solver: Solver, problem: Problem, state: Any = None) -> Fit:
    """Fit for comparison only: warnings are hidden, and an interrupt of the fit interrupts the search."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solver.solve(problem, state=state)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return fit
