"""NewtonSteps: all free variables of a working set are moved to where the dual is greatest."""

import numpy as np
import pytest

from slimsvm import SVC
from slimsvm.kernels import RBF
from slimsvm.parts.dual_ascent import smo
from slimsvm.parts.dual_ascent.dual import Box
from slimsvm.parts.dual_ascent.smo import FIRST, STEP, KernelBlock, NewtonSteps, SetSettings, newton_step
from slimsvm.solvers import exact


def problem(n=60, C=1.0, epsilon=0.0, balanced=True, seed=0):
    """K, targets, and a dual point with variables on their bounds and free ones."""
    rng = np.random.default_rng(seed)
    K = RBF(0.5).block(X := rng.normal(size=(n, 3)), X)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    lo, hi = (np.full(n, -C), np.full(n, C)) if epsilon else (np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0))
    v = rng.choice([0.0, 0.3, 0.5, 1.0], size=n) * C * y
    if balanced:
        v[v > 0] *= min(1.0, -v[v < 0].sum() / v[v > 0].sum())
        v[v < 0] *= min(1.0, v[v > 0].sum() / -v[v < 0].sum())
    return K, 2.0 * y, lo, hi, v


def dual(K, target, v, epsilon, offset):
    """D(v)."""
    return target @ v - epsilon * np.abs(v).sum() - 0.5 * v @ (K + offset) @ v


@pytest.mark.parametrize("C", [0.05, 0.3, 100.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize(("balanced", "offset"), [(2, 0.0), (1, 0.0), (0, 0.0), (0, 1.0)])
@pytest.mark.parametrize("is_part", [False, True])
@pytest.mark.parametrize("n", [20, 60])
def test_a_newton_step_leaves_no_slope_in_what_is_free(C, epsilon, balanced, offset, is_part, n):
    K, target, lo, hi, v = problem(n=n, C=C, epsilon=epsilon, balanced=balanced)
    n = len(v)
    rows = np.random.default_rng(1).permutation(2 * n)[:n] if is_part else np.arange(n)
    lines = np.full((2 * n, 2 * n), np.nan)
    lines[np.ix_(rows, rows)] = K
    block = KernelBlock(lines, rows, rows) if is_part else KernelBlock(K, rows)
    g, free = target - (K + offset) @ v, np.flatnonzero((v > lo) & (v < hi) & (v != 0))
    before, sign = v.copy(), np.sign(v)
    value = dual(K, target, v, epsilon, offset)
    gain = newton_step(block, g, v, Box(lo, hi, balanced, offset, epsilon), free)
    assert gain >= 0
    assert dual(K, target, v, epsilon, offset) - value == pytest.approx(gain, abs=1e-9 * max(1.0, gain))
    np.testing.assert_allclose(g, target - (K + offset) @ v, atol=1e-9 * max(1.0, np.abs(v).max()))
    assert ((v >= lo) & (v <= hi) & (v * sign >= 0)).all()
    fixed = np.setdiff1d(np.arange(n), free)
    np.testing.assert_array_equal(v[fixed], before[fixed])
    if balanced:
        assert v.sum() == pytest.approx(before.sum(), abs=1e-9 * np.abs(v).sum())
    if balanced == 2:
        assert np.abs(v).sum() == pytest.approx(np.abs(before).sum(), rel=1e-9)
    if gain == 0:
        np.testing.assert_array_equal(v, before)
        return
    still = free[(v[free] > lo[free]) & (v[free] < hi[free]) & (v[free] != 0)]
    slopes = g[still] - epsilon * sign[still]
    for side in (sign[still] > 0, sign[still] < 0) if balanced == 2 else (slice(None),):
        reference = slopes[side].mean() if balanced and len(slopes[side]) else 0.0
        np.testing.assert_allclose(slopes[side], reference, atol=1e-6 * max(1.0, np.abs(v).max()))


def test_few_variables_meet_one_bound_after_the_other():
    """To put all that would go beyond their bounds on them at a time is no rise here: D falls on the way."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(8, 3)) * [1.0, 30.0, 900.0]
        K, target = X @ X.T + 1e-6 * np.eye(8), np.where(rng.random(8) < 0.5, 1.0, -1.0)
        v, C = rng.uniform(0.2, 0.8, size=8) * target, 1.0
        bounds = Box(np.where(target > 0, 0.0, -C), np.where(target > 0, C, 0.0), balanced=0)
        g, before = target - K @ v, v.copy()
        gain = newton_step(KernelBlock(K, np.arange(8)), g, v, bounds, np.arange(8))
        along = np.linalg.solve(K, target - K @ before)
        reach = np.where(along > 0, bounds[1] - before, bounds[0] - before) / along
        first = before + min(1.0, reach.min()) * along
        start = dual(K, target, before, 0.0, 0.0)
        assert gain >= (dual(K, target, first, 0.0, 0.0) - start) * (1 - 1e-6) > 0


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("has_places", [False, True])
def test_steps_among_few_rows_are_steps_among_all(balanced, epsilon, dtype, has_places, monkeypatch):
    """Most rows end at a bound; where steps are made among the others alone, g of all is that of v, and D no less."""
    K, target, lo, hi, _ = problem(n=300, C=50.0, epsilon=epsilon, balanced=balanced)
    lines, rows = K.astype(dtype), np.arange(300)
    if has_places:
        rows = np.random.default_rng(2).permutation(400)[:300]
        lines = np.zeros((400, 400), dtype)
        lines[np.ix_(rows, rows)] = K
    block = KernelBlock(lines, rows, rows if has_places else None)
    few, steps_among = [], smo._steps_among

    def noted(chosen, *rest, **how):
        few.append(len(chosen))
        return steps_among(chosen, *rest, **how)

    monkeypatch.setattr(smo, "_steps_among", noted)
    box, options = Box(lo, hi, balanced, 0.0 if balanced else 1.0, epsilon), {"tol": 1e-4}
    values = []
    for soon in (1, 1000):
        own = SetSettings(soon=soon)
        v, g = np.zeros(300), target.copy()
        solved = smo.solve_set(block, g, v, box, **options, max_steps=10**6, settings=own)
        assert solved.violation <= 1e-4
        np.testing.assert_allclose(g, target - (K + box.offset) @ v, atol=1e-2 if dtype == np.float32 else 1e-9)
        values.append(dual(K, target, v, epsilon, box.offset))
        assert solved.gain == pytest.approx(values[-1], rel=1e-3)
    assert few
    assert max(few) <= 150
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    cut = smo.solve_set(block, target.copy(), np.zeros(300), box, **options, max_steps=700, settings=own)
    assert cut.n_steps == 700


@pytest.mark.parametrize("n", [5, 30, 300])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_on_one_side_keep_both_sums(n, epsilon, dtype):
    """Pairs of one side of 0, and Newton steps: Σ v and Σ |v| stay, and the rest of each side has one slope."""
    K, target, lo, hi, v = problem(n=n, C=1.0, epsilon=epsilon, seed=n)
    g, before = target - K @ v, v.copy()
    block, bounds = KernelBlock(K.astype(dtype), np.arange(n)), Box(lo, hi, 2, epsilon=epsilon)
    own, newton = {"tol": 1e-6, "max_steps": 10**6}, NewtonSteps(10**8)
    solved = smo.solve_set(block, g, v, bounds, newton=newton, **own)
    assert solved.violation <= 1e-6
    assert v.sum() == pytest.approx(before.sum(), abs=1e-10 * n)
    assert np.abs(v).sum() == pytest.approx(np.abs(before).sum(), rel=1e-10)
    assert ((v >= lo) & (v <= hi)).all()
    gain = dual(K, target, v, epsilon, 0.0) - dual(K, target, before, epsilon, 0.0)
    assert solved.gain == pytest.approx(gain, rel=1e-4, abs=1e-6)
    assert gain >= 0
    g = target - K @ v
    for rises, falls in (((v >= 0) & (v < hi), v > 0), (v < 0, (v <= 0) & (v > lo))):
        assert g[rises].max(initial=-np.inf) - g[falls].min(initial=np.inf) <= (1e-6 if dtype == np.float64 else 1e-4)


def test_rows_that_are_all_alike_are_no_error():
    v, g = np.array([0.5, -0.5, 0.5, -0.5]), np.array([0.3, -0.2, 0.1, 0.0])
    bounds = Box(np.array([0.0, -1.0, 0.0, -1.0]), np.array([1.0, 0.0, 1.0, 0.0]), balanced=1)
    for value in (1.0, 0.0, np.nan):
        block = KernelBlock(np.full((4, 4), value, np.float32), np.arange(4))
        gain = newton_step(block, g.copy(), v.copy(), bounds, np.arange(4))
        assert gain >= 0


def test_newton_steps_wait_as_long_as_they_take_and_longer_after_failures():
    newton = NewtonSteps(10**9)
    first = newton.wait(1000, 500)
    assert newton.wait(1000, 0) == newton.wait(10_000, newton.most_free + 1) == np.inf
    newton.note(int(first) // (1000 + STEP) + 1, 1000, 0.5)
    assert newton.wait(1000, 500) <= 0
    newton.made(0.0)
    assert newton.wait(1000, 500) == 2 * (first - FIRST)
    newton.made(1.0)
    assert newton.wait(1000, 500) == first - FIRST
    newton.note(10, 1000, 2.0)
    newton.made(1.0)  # less than steps have gained in as long
    assert newton.wait(1000, 500) == 2 * (first - FIRST)
    newton.note(10**6, 1000, 2.0)
    newton.made(3.0)
    newton.hurry()
    assert newton.wait(1000, 500) <= 0
    assert NewtonSteps(12 * 100**2).most_free == 100


def test_newton_steps_spare_most_steps_where_C_is_large(monkeypatch, settings_of_estimators):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 5))
    y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=500) > 0.3
    seen, finish = [], exact.ExactRun.finish

    def seen_at_its_end(run, *rest):
        seen.append(run.active.n_steps)
        return finish(run, *rest)

    monkeypatch.setattr(exact.ExactRun, "finish", seen_at_its_end)
    estimator = SVC(C=1e4, gamma=0.02)
    objective = estimator.fit(X, y).objective_
    settings_of_estimators(exact.ExactSettings(newton_share=0.0))
    assert estimator.fit(X, y).objective_ == pytest.approx(objective, rel=5e-3)
    assert seen[0] < 0.5 * seen[1]
