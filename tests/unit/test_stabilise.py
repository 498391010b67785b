"""The line search between the best point and the QP's solution."""

from types import SimpleNamespace

import numpy as np
import pytest

from slimsvm import SVC, ExactCuts
from slimsvm.kernels import Sigmoid
from slimsvm.parts.cuts.line_search import BestPoint
from slimsvm.parts.cuts.oracles import Point, Solution
from slimsvm.tasks import Binary


def best_point(scores, norm_squared):
    """The best point of 20 rows with these margins."""
    task, y = Binary(), np.where(np.arange(20) < 10, -1, 1)
    best = BestPoint(task, task.encode(y), 1.0, 0.1, Point(np.zeros((20, 1)), np.zeros(0)), 1)
    best.start_at(Solution((), np.zeros(0), norm_squared, None, Point((y * scores)[:, None], np.zeros(0))))
    return best, y


def solution_of_qp(norm_squared, inner):
    """A working set of one cut whose solution has this length, and this product with the best point."""
    return SimpleNamespace(
        alpha=np.ones(1), best_products=np.array([inner]), norm_squared=norm_squared, cuts=[object()],
        qp=SimpleNamespace(G=np.array([[norm_squared]])),
    )  # fmt: skip


def test_goes_to_the_minimum():
    """½ t² + max(0, 1 − 2t): at t = ½, a quarter of the way to 2."""
    best, y = best_point(np.zeros(20), 0.0)
    target = Point((4.0 * y)[:, None], np.zeros(0))
    best.move(solution_of_qp(4.0, 0.0), target)
    assert best.step == pytest.approx(0.25, rel=1e-2)
    assert best.now.objective == pytest.approx(0.125, rel=1e-2)


@pytest.mark.parametrize("rounding", [1e-7, 1e-9, 1e-12])
def test_makes_no_more_of_rounding_than_there_is(rounding):
    """Scores of 32 bits that rounding alone tells from the best point's may promise less loss without end."""
    best, y = best_point(np.full(20, 0.5), 1.0)
    target = Point((y * (0.5 + rounding))[:, None], np.zeros(0))
    best.move(solution_of_qp(1.0, 1.0), target)
    assert best.step <= 1.0
    np.testing.assert_allclose(best.now.point.scores, target.scores, atol=2 * rounding)
    assert best.now.norm_squared == pytest.approx(1.0)


def test_the_objective_of_a_kernel_that_is_no_inner_product_is_that_of_the_model():
    """Its ‖w‖² may be negative, and counts as it is."""
    rng = np.random.default_rng(32)
    x = 100 * rng.normal(size=60)
    y = np.digitize(np.sin(x / 50) + 0.007 * x + 0.5 * rng.normal(size=60), [-0.5, 0.5])
    clf = SVC(kernel=Sigmoid(0.01, 0.0), solver=ExactCuts()).fit(x[:, None], y)
    scores = clf.decision_function(x[:, None])
    loss = (1 - np.eye(3)[y] + scores - scores[np.arange(60), y][:, None]).max(axis=1).sum()
    norm_squared = clf.model_.norm_squared() + clf.intercept_ @ clf.intercept_
    assert norm_squared < 0
    assert clf.objective_ == pytest.approx(0.5 * norm_squared + loss, rel=1e-9)


def test_cuts_are_forgotten_only_where_rounding_loses_them_too():
    """At C = 100 and 900 rows traces of a 10¹¹th, of hundreds of cuts, had made 3·10⁻⁷ of the objective."""
    best, _ = best_point(0.5, 1.0)
    now = SimpleNamespace(cuts=("large", "trace", "nothing"), alpha=np.array([1e5, 1e-8, 1e-12]))
    best.now = now
    cuts, alpha = best._mixed(SimpleNamespace(cuts=(), alpha=np.zeros(0)), 0.0)
    assert cuts == ("large", "trace")
    np.testing.assert_array_equal(alpha, now.alpha[:2])
