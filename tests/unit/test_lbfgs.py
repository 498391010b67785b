"""The least of a function by L-BFGS, where curvatures are roughly known."""

import numpy as np
import pytest

from slimsvm.bases.distance import MOST_TRIED, least_by_lbfgs

START = np.random.default_rng(0).normal(size=(20, 3))


class Bowl:
    """½ Σ_j h_j |x_j|² with h from 1 to 1000, whose curvatures are told to be ``told``."""

    def __init__(self, told=1.0):
        self.h, self.told, self.asked = np.logspace(0, 3, 20)[:, None], told, 0

    def __call__(self, x):
        self.asked += 1
        return 0.5 * float(np.sum(self.h * x * x)), self.h * x, np.broadcast_to(self.told, self.h.shape)


def test_known_curvatures_are_newtons_method():
    bowl = Bowl()
    bowl.told = bowl.h
    found, values = least_by_lbfgs(bowl, START, 5, 0.0)
    assert len(values) == 2
    assert bowl.asked == 2
    np.testing.assert_allclose(found, 0.0, atol=1e-12)


def test_the_least_is_found_without_them_and_later():
    """Curvatures that are roughly right spare half of the steps."""
    rough, plain = Bowl(), Bowl()
    rough.told = rough.h * np.where(np.arange(20) % 2, 2.0, 0.5)[:, None]
    steps = []
    for bowl in (rough, plain):
        found, values = least_by_lbfgs(bowl, START, 200, 0.0)
        np.testing.assert_allclose(found, 0.0, atol=1e-3)
        assert all(np.diff(values) < 0)
        steps.append(len(values) - 1)
    assert 2 * steps[0] < steps[1] < 200


def test_a_value_that_is_good_enough_ends_it():
    values = least_by_lbfgs(Bowl(), START, 200, 1.0)[1]
    assert values[-1] <= 1.0 < values[-2]
    assert len(least_by_lbfgs(Bowl(), START, 3, 0.0)[1]) == 4
    assert len(least_by_lbfgs(Bowl(), 0.0 * START, 3, -1.0)[1]) == 1


@pytest.mark.parametrize("told", [1e-3, 1e3])
def test_wrong_curvatures_do_no_harm(told):
    values = least_by_lbfgs(Bowl(told), START, 200, 0.0)[1]
    assert all(np.diff(values) < 0)
    assert values[-1] < 1e-6 * values[0]


def test_points_stay_where_no_step_lowers_the_value():
    asked = []

    def lying(x):
        asked.append(x)
        return float(np.sum(np.abs(x - START))), -np.ones_like(x), np.ones((20, 1))

    found, values = least_by_lbfgs(lying, START, 10, -1.0)
    assert found is START
    assert values == [0.0]
    assert len(asked) == 1 + MOST_TRIED


def test_steps_along_which_the_slope_does_not_rise_are_left_out_of_the_curvature():
    """−cos is concave near its top, where s·y is negative."""

    def cosine(x):
        return float(-np.cos(x).sum()), np.sin(x), np.ones((1, 1))

    found, values = least_by_lbfgs(cosine, np.array([[3.0]]), 50, -2.0)
    assert all(np.diff(values) < 0)
    assert values[-1] == pytest.approx(-1.0)
    assert np.cos(found).item() == pytest.approx(1.0)
