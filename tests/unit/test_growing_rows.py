"""Working sets whose kernel rows are made when they are needed."""

from dataclasses import replace

import numpy as np
import pytest

import naive
from slimsvm import core
from slimsvm.kernels import RBF, KernelRows
from slimsvm.parts.dual_ascent.dual import Box, Slopes
from slimsvm.parts.dual_ascent.kernel_values import CacheSettings, GrowingCache, KernelCache, ValueSettings
from slimsvm.parts.dual_ascent.smo import KernelBlock, solve_set
from slimsvm.parts.problem import Problem, Room
from slimsvm.rows import as_rows
from slimsvm.solvers.exact import Exact
from slimsvm.tasks import Binary, Regression


def rows_of(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def growing_rows(X, rows=None, dtype=np.float64, few_rows=0, **settings):
    kernel_rows, rows = KernelRows(RBF(0.3), X, dtype=dtype), np.arange(len(X)) if rows is None else rows
    own = ValueSettings(cache=CacheSettings(few_rows=few_rows, **settings))
    return GrowingCache(KernelCache(kernel_rows, 1 << 20, rows, Room(), own, grows=False)), kernel_rows


def test_they_are_kernel_values_and_are_made_once():
    X, rows = rows_of(), np.random.default_rng(1).permutation(60)[:40]
    growing, kernel_rows = growing_rows(X, rows)
    truth = naive.kernel_matrix(RBF(0.3), X[rows], X[rows])
    np.testing.assert_allclose(growing.diagonal, np.diagonal(truth))
    for places in ([3, 1, 7], [7, 30, 3], [1]):
        growing.make(np.array(places))
    assert kernel_rows.counter.n == 4 * 40
    made = np.flatnonzero(growing.slots >= 0)
    np.testing.assert_array_equal(made, [1, 3, 7, 30])
    np.testing.assert_allclose(growing.values[growing.slots[made]], truth[made])


def test_of_few_rows_all_kernel_rows_are_made_at_once():
    X = rows_of()
    growing, kernel_rows = growing_rows(X, few_rows=60)
    assert kernel_rows.counter.n == 60 * 60
    assert growing.diagonal is None
    np.testing.assert_allclose(growing.values[growing.slots], naive.kernel_matrix(RBF(0.3), X, X))


def test_rows_that_violate_most_get_kernel_rows():
    growing, _ = growing_rows(rows_of(), least=6)
    up, down = np.linspace(-1.0, 1.0, 60), np.linspace(-0.9, 1.1, 60)
    assert growing.make_worst(Slopes(up, down, 1.0, -0.9, 1.9)) == 6
    np.testing.assert_array_equal(np.flatnonzero(growing.slots >= 0), [0, 1, 2, 57, 58, 59])
    assert growing.make_worst(Slopes(up, down, 1.0, -0.9, 1.9)) == 6
    assert growing.n_computed == 12
    up[:], down[:] = -0.1, 0.1
    up[30], down[40] = 1.0, -1.0
    assert growing.make_worst(Slopes(up, down, 1.0, -1.0, 2.0)) == 2
    assert growing.n_computed == 14  # none for rows that are far from violating as much
    assert growing.make_worst(Slopes(up, down, 1.0, -1.0, 2.0)) == 0
    assert not growing.is_whole
    growing.make(np.arange(60))
    assert growing.is_whole
    assert growing.make_worst(Slopes(up, down, 1.0, -1.0, 2.0)) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("balanced", [True, False])
def test_rows_without_kernel_rows_stay_as_they_are(balanced, dtype):
    """The same as if they had no room, but that g follows."""
    rng, X = np.random.default_rng(0), rows_of(50)
    K, t = naive.kernel_matrix(RBF(0.3), X, X), np.where(rng.random(50) > 0.5, 1.0, -1.0)
    fixed, slots = rng.random(50) < 0.5, np.arange(50)
    slots[fixed] = -1
    found = []
    for lo, hi, slots_of_set in (
        (np.minimum(t, 0.0), np.maximum(t, 0.0), slots),
        (np.where(fixed, 0.0, np.minimum(t, 0.0)), np.where(fixed, 0.0, np.maximum(t, 0.0)), np.arange(50)),
    ):
        g, v = t.copy(), np.zeros(50)
        values = K.astype(dtype)
        diagonal = np.diagonal(values).copy()
        values[slots_of_set < 0] = np.nan
        block = KernelBlock(values, slots_of_set, diagonal=diagonal)
        solved = solve_set(block, g, v, Box(lo, hi, balanced), tol=1e-6, max_steps=10_000)
        assert solved.violation <= 1e-6
        assert not v[fixed].any()
        assert np.count_nonzero(v) > 10
        np.testing.assert_allclose(g, t - K @ v, atol=1e-5)
        found.append(v)
    np.testing.assert_array_equal(*found)


def test_a_line_that_is_not_there_needs_the_diagonal():
    block = KernelBlock(np.eye(3), np.array([0, -1, 2]))
    with pytest.raises(core.CoreError):
        solve_set(block, np.ones(3), np.zeros(3), Box(np.zeros(3), np.ones(3), 0), tol=1e-3, max_steps=9)


def test_a_set_whose_kernel_rows_do_not_grow_is_left():
    class Nothing:
        def make(self, rows):
            pass

        is_whole = False

        def make_worst(self, found):
            return 0

    t = np.array([1.0, -1.0, 1.0, -1.0])
    block = KernelBlock(np.eye(4), np.array([0, 1, -1, -1]), diagonal=np.ones(4), growing=Nothing())
    v = np.zeros(4)
    bounds = Box(np.minimum(t, 0.0), np.maximum(t, 0.0), balanced=1)
    solved = solve_set(block, t.copy(), v, bounds, tol=1e-3, max_steps=1000)
    assert solved.n_steps == 1
    np.testing.assert_allclose(v, [1.0, -1.0, 0.0, 0.0])


@pytest.mark.parametrize("intercept", ["free", "regularized"])
@pytest.mark.parametrize("kind", ["classes", "targets"])
def test_few_rows_are_one_working_set_with_few_kernel_rows(kind, intercept):
    rng, X = np.random.default_rng(0), rows_of(2500, 2)
    y = np.where(X[:, 0] + 0.1 * rng.normal(size=2500) > 0, 1, -1) if kind == "classes" else np.sin(2 * X[:, 0])
    task = Binary() if kind == "classes" else Regression(0.1)
    problem = Problem(
        as_rows(X), task.encode(y), task, RBF(0.5), intercept=intercept, tol=1e-5, precision="float64", n_jobs=1
    )
    few_are_none = CacheSettings(few_rows=0)
    grown = Exact().solve(replace(problem, settings=(ValueSettings(cache=few_are_none),)))
    parted = Exact().solve(replace(problem, settings=(ValueSettings(cache=few_are_none, whole_set=0),)))
    assert sum(record["objective"] is None for record in grown.history) < 4
    assert grown.counters["kernel_evals"] < 0.5 * 2500**2 < parted.counters["kernel_evals"]
    assert grown.objective == pytest.approx(parted.objective, rel=1e-5)
    assert grown.lower_bound == pytest.approx(parted.lower_bound, rel=1e-6)
    np.testing.assert_allclose(grown.model.scores(X), parted.model.scores(X), atol=1e-3)


@pytest.mark.parametrize("balanced", [0, 1])
def test_a_row_without_a_kernel_row_is_left_however_steep_it_is(balanced):
    v, g = np.zeros(2), np.array([0.0, 1e200])
    how = {"balanced": balanced, "offset": 0.0, "epsilon": 0.0, "tol": 1e-3, "max_steps": 5, "places": None}
    steps, gain, _, _ = core.smo(
        values=np.ones((1, 2)), slots=np.array([0, -1]), diagonal=np.ones(2), lo=np.zeros(2) - balanced, hi=np.ones(2),
        g=g, v=v, **how
    )  # fmt: skip
    assert (steps, gain, v.tolist()) == (0, 0.0, [0.0, 0.0])
