"""Leaps: all free variables of a working set are moved to where the dual is greatest."""

import numpy as np
import pytest

from slimsvm import SVC
from slimsvm.kernels import RBF
from slimsvm.solvers.decomposition import exact
from slimsvm.solvers.decomposition.leap import Leaps, leap
from slimsvm.solvers.decomposition.row_set import KernelBlock


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
@pytest.mark.parametrize(("balanced", "offset"), [(True, 0.0), (False, 0.0), (False, 1.0)])
@pytest.mark.parametrize("is_part", [False, True])
def test_a_leap_leaves_no_slope_in_what_is_free(C, epsilon, balanced, offset, is_part):
    K, target, lo, hi, v = problem(C=C, epsilon=epsilon, balanced=balanced)
    n = len(v)
    rows = np.random.default_rng(1).permutation(2 * n)[:n] if is_part else np.arange(n)
    lines = np.full((2 * n, 2 * n), np.nan)
    lines[np.ix_(rows, rows)] = K
    block = KernelBlock(lines, rows, rows) if is_part else KernelBlock(K, rows)
    g, free = target - (K + offset) @ v, np.flatnonzero((v > lo) & (v < hi) & (v != 0))
    before, sign = v.copy(), np.sign(v)
    value = dual(K, target, v, epsilon, offset)
    gain = leap(block, g, v, (lo, hi), free, balanced=balanced, offset=offset, epsilon=epsilon)
    assert gain >= 0
    assert dual(K, target, v, epsilon, offset) - value == pytest.approx(gain, abs=1e-9 * max(1.0, gain))
    np.testing.assert_allclose(g, target - (K + offset) @ v, atol=1e-9 * max(1.0, np.abs(v).max()))
    assert ((v >= lo) & (v <= hi) & (v * sign >= 0)).all()
    fixed = np.setdiff1d(np.arange(n), free)
    np.testing.assert_array_equal(v[fixed], before[fixed])
    if balanced:
        assert v.sum() == pytest.approx(before.sum(), abs=1e-9 * np.abs(v).sum())
    if gain == 0:
        np.testing.assert_array_equal(v, before)
        return
    still = free[(v[free] > lo[free]) & (v[free] < hi[free]) & (v[free] != 0)]
    slopes = g[still] - epsilon * sign[still]
    reference = slopes.mean() if balanced else 0.0
    np.testing.assert_allclose(slopes, reference, atol=1e-6 * max(1.0, np.abs(v).max()))


def test_rows_that_are_all_alike_are_no_error():
    v, g = np.array([0.5, -0.5, 0.5, -0.5]), np.array([0.3, -0.2, 0.1, 0.0])
    bounds = np.array([0.0, -1.0, 0.0, -1.0]), np.array([1.0, 0.0, 1.0, 0.0])
    for value in (1.0, 0.0, np.nan):
        block = KernelBlock(np.full((4, 4), value, np.float32), np.arange(4))
        gain = leap(block, g.copy(), v.copy(), bounds, np.arange(4), balanced=True, offset=0.0, epsilon=0.0)
        assert gain >= 0


def test_leaps_wait_as_long_as_they_take_and_longer_after_failures():
    leaps = Leaps(10**9)
    first = leaps.wait(1000, 500)
    assert leaps.wait(1000, 0) == leaps.wait(10_000, leaps.most_free + 1) == np.inf
    leaps.note(int(first) + 1)
    assert leaps.wait(1000, 500) <= 0
    leaps.made(0.0)
    assert leaps.wait(1000, 500) == 2 * first
    leaps.made(1.0)
    assert leaps.wait(1000, 500) == first
    assert Leaps(12 * 100**2).most_free == 100


def test_leaps_spare_most_steps_where_C_is_large(monkeypatch):
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
    monkeypatch.setattr(exact, "LEAP_SHARE", 0.0)
    assert estimator.fit(X, y).objective_ == pytest.approx(objective, rel=5e-3)
    assert seen[0] < 0.5 * seen[1]
