"""The search along C that every choice of C makes."""

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm.parts.run import Status
from slimsvm.parts.values_of_C import VALUES_OF_C, AlongC, fit_on_trial


@pytest.mark.parametrize(
    ("helps", "n_tried"),
    [((1, 1, 1, 1, 1), 5), ((1, 0, 0, 1, 1), 3), ((1, 0, 1, 0, 0), 5), ((1, 1, 0, 0, 1), 4), ((0, 0, 1, 1, 1), 2)],
)
def test_two_values_in_a_row_that_do_not_help_end_it(helps, n_tried):
    along_C, tried = AlongC(VALUES_OF_C, "values of C"), []
    for C in along_C:
        along_C.judge(bool(helps[len(tried)]))
        tried.append(C)
    assert tried == list(VALUES_OF_C[:n_tried])


class Solver:
    def __init__(self, status):
        self.status = status

    def solve(self, problem, state=None):
        warnings.warn("not converged", ConvergenceWarning, stacklevel=2)
        self.seen = problem, state
        return self


def test_a_trial_is_silent_and_its_interrupt_is_the_search_s():
    solver = Solver(Status.TIME_LIMIT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_on_trial(solver, "problem", "state") is solver
    assert solver.seen == ("problem", "state")
    with pytest.raises(KeyboardInterrupt):
        fit_on_trial(Solver(Status.INTERRUPTED), "problem")
