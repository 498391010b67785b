"""The small QP over the cuts: optimal, always feasible, warm-started, and unshaken by degenerate cuts."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from slimsvm import core
from slimsvm.parts.cuts.working_set import SimplexQP


def solve_simplex_qp(G, h, C, alpha=None, **options):
    """Return alpha, slack, KKT residual and pivots of one problem."""
    qp = SimplexQP.from_gram(G, h, alpha, **options)
    xi, kkt, n_pivots = qp.solve(C)
    return qp.alpha, xi, kkt, n_pivots


def value(G, h, a):
    return h @ a - 0.5 * a @ G @ a


def rounding(G, h, a):
    """How far the value at `a` can be told in float64."""
    return 1e-14 * (abs(h) @ a + a @ abs(G) @ a)


def check_solution(G, h, C, a, xi, kkt, tol=1e-8):
    """Feasible; xi and kkt are what they claim to be; the residual is within tol, or at the limit of rounding."""
    assert np.isfinite(a).all()
    assert (a >= 0).all()
    assert a.sum() <= C * (1 + 1e-14)
    r = h - G @ a
    scale = max(abs(h).max(), abs(G @ a).max(), 1e-300)
    blur = 1e-15 * (abs(h).max() + (abs(G) @ a).max())
    expected_xi = max(0.0, r.max())
    assert abs(xi - expected_xi) <= 10 * blur
    residual = (expected_xi - r)[a > 0].max(initial=0.0)
    if C - a.sum() > 1e-12 * C:
        residual = max(residual, expected_xi)
    assert abs(residual - kkt * scale) <= 10 * blur
    assert residual <= tol * scale + 10 * blur


def random_problem(rng, t, kind):
    """Return (G, h, C) of one of the kinds of trouble that cuts make."""
    A = rng.normal(size=(t, rng.integers(1, 2 * t + 1)))
    h = rng.normal(size=t)
    C = 10 ** rng.uniform(-2, 3)
    if kind == "duplicates":  # the same g several times, with different h
        A = A[rng.integers(0, max(1, t // 3), size=t)]
    elif kind == "integers":  # ties everywhere
        A, h = np.round(A), np.round(h)
    elif kind == "zero G":
        A = np.zeros_like(A)
    elif kind == "negative h":
        h = -abs(h)
    elif kind == "zero h":
        h = np.zeros(t)
    elif kind == "tiny C":
        C = 1e-10
    elif kind == "huge C":
        C = 1e12
    elif kind == "scales":
        A = A * 10 ** rng.uniform(-3, 3, size=(t, 1))
    elif kind == "opposite":
        A = np.vstack([A, 1e-7 * rng.normal(size=A.shape) - A])[:t]
        C = 10 ** rng.uniform(-2, 5)
    elif kind == "nearly equal":
        A = A[0] + 1e-6 * A
    G = A @ A.T
    if kind == "float32 noise":
        noise = 1e-7 * rng.normal(size=G.shape) * abs(G).max()
        G = G + (noise + noise.T) / 2
    elif kind == "float32 Gram":
        A = (A[0] + 1e-4 * A).astype(np.float32)
        G = (A @ A.T).astype(np.float64)
        G = (G + G.T) / 2
    return G, h, C


KINDS = [
    "plain",
    "duplicates",
    "integers",
    "zero G",
    "negative h",
    "zero h",
    "tiny C",
    "huge C",
    "scales",
    "opposite",
    "nearly equal",
    "float32 noise",
    "float32 Gram",
]
CONVEX = [kind for kind in KINDS if not kind.startswith("float32")]


@pytest.mark.parametrize("kind", CONVEX)
def test_reaches_the_best_of_all_active_sets(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(10):
        G, h, C = random_problem(rng, rng.integers(1, 7), kind)
        a, xi, kkt, _ = solve_simplex_qp(G, h, C)
        check_solution(G, h, C, a, xi, kkt)
        best = naive.simplex_qp(G, h, C)
        slack = 1e-9 * value(G, h, best) + rounding(G, h, a) + rounding(G, h, best)
        assert value(G, h, a) >= value(G, h, best) - slack


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), t=st.integers(1, 40), start=st.floats(0, 1.5))
def test_feasible_optimal_and_never_below_the_start(kind, seed, t, start):
    rng = np.random.default_rng(seed)
    G, h, C = random_problem(rng, t, kind)
    a0 = rng.random(t) * (rng.random(t) < 0.5)
    a0 *= start * C / max(a0.sum(), 0.1)
    a, xi, kkt, n_pivots = solve_simplex_qp(G, h, C, a0)
    check_solution(G, h, C, a, xi, kkt)
    assert n_pivots <= 20 * (t + 1)
    if a0.sum() <= C:
        assert value(G, h, a) >= value(G, h, a0) - rounding(G, h, a) - rounding(G, h, a0)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=st.integers(0, 2**32 - 1), t=st.integers(2, 30), max_pivots=st.integers(1, 40))
def test_cut_short_it_is_no_worse_than_the_start(kind, seed, t, max_pivots):
    rng = np.random.default_rng(seed)
    G, h, C = random_problem(rng, t, kind)
    before = rng.random(t) * (rng.random(t) < 0.5)
    before *= rng.random() * C / max(before.sum(), 0.1)
    qp = SimplexQP.from_gram(G, h, before)._compiled
    limits = {"max_pivots": max_pivots, "max_work": 10**9}
    core.maximise_on_simplex(qp=qp, n=t + 1, C=C, tol=1e-10, is_start=1, **limits)
    a = qp.a[: t + 1]
    assert (a >= 0).all()
    assert a.sum() == pytest.approx(C, rel=1e-13)
    assert value(G, h, a[1:]) >= value(G, h, before) - rounding(G, h, a[1:]) - rounding(G, h, before)


@pytest.mark.parametrize("kind", KINDS)
def test_many_short_calls_come_to_the_same_end(kind):
    rng = np.random.default_rng(0)
    G, h, C = random_problem(rng, 40, kind)
    start = rng.random(40) * C / 100
    at_once, _, _, n_pivots = solve_simplex_qp(G, h, C, start)
    a, other_xi, kkt, other_pivots = solve_simplex_qp(G, h, C, start, max_work=1)
    check_solution(G, h, C, a, other_xi, kkt)
    slack = rounding(G, h, a) + rounding(G, h, at_once)
    assert value(G, h, a) == pytest.approx(value(G, h, at_once), rel=1e-9, abs=slack)
    assert other_pivots <= 2 * n_pivots + 10


@given(seed=st.integers(0, 2**32 - 1))
def test_value_rises_as_cuts_are_appended(seed):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(25, rng.integers(1, 30))) + 0.3
    h = rng.normal(size=25)
    C = 10 ** rng.uniform(-2, 2)
    qp = SimplexQP(capacity=1)
    values = []
    for j in range(25):
        qp.append(g[:j] @ g[j], g[j] @ g[j], h[j])
        xi, kkt, _ = qp.solve(C)
        check_solution(g[: j + 1] @ g[: j + 1].T, h[: j + 1], C, qp.alpha, xi, kkt)
        values.append(qp.value)
    assert (np.diff(values) >= -1e-12 * max(abs(values[-1]), 1e-12)).all()


def cutting_planes(qp, X, C1, epsilon, idle_max=20):
    """Train a linear SVM by exact cuts; yields after each solution, with the cuts' g and h."""
    g, h, idle = np.zeros((0, X.shape[1])), np.zeros(0), np.zeros(0, int)
    w, xi = np.zeros(X.shape[1]), 0.0
    while True:
        margin = X @ w
        if np.maximum(0, 1 - margin).mean() <= xi + epsilon:
            return
        violated = margin < 1
        new, c = X[violated].sum(0) / len(X), violated.mean()
        qp.append(g @ new, new @ new, c)
        g, h, idle = np.vstack([g, new]), np.append(h, c), np.append(idle, 0)
        solution = qp.solve(C1)
        w, xi = qp.alpha @ g, solution.xi
        yield g, h, solution
        idle = np.where(qp.alpha > 0, 0, idle + 1)
        kept = np.flatnonzero(idle < idle_max)
        qp.keep(kept)
        g, h, idle = g[kept], h[kept], idle[kept]


@pytest.mark.parametrize(("C1", "enough"), [(10.0, 5), (100.0, 25), (1e5, 100)])
def test_sequence_of_cutting_planes(C1, enough):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(400, 30)) + 0.2) / 5
    qp = SimplexQP(capacity=2)
    n_iterations = n_pivots = 0
    for g, h, solution in cutting_planes(qp, X, C1, epsilon=1e-6):
        np.testing.assert_allclose(qp.G, g @ g.T, atol=1e-14)
        check_solution(g @ g.T, h, C1, qp.alpha, solution.xi, solution.kkt, tol=1e-9)
        n_iterations += 1
        n_pivots += solution.n_pivots
    assert n_iterations >= enough
    assert n_pivots < 15 * n_iterations
    cold, _, _, _ = solve_simplex_qp(g @ g.T, h, C1)
    assert value(g @ g.T, h, cold) == pytest.approx(value(g @ g.T, h, qp.alpha), rel=1e-9)


def test_cuts_that_shrink_by_orders_of_magnitude():
    """The factor follows the size of the cuts, of which the first are far larger than the last."""
    rng = np.random.default_rng(1)
    g, qp = np.zeros((0, 20)), SimplexQP()
    for j in range(80):
        g = np.vstack([g, 10 ** (-j / 8) * (rng.normal(size=20) + 0.3)])
        qp.append(g[:-1] @ g[-1], g[-1] @ g[-1], 10 ** (-j / 4) * rng.random())
        kept = np.arange(max(0, len(g) - 12), len(g))
        qp.keep(kept)
        g = g[kept]
        xi, kkt, n_pivots = qp.solve(10.0)
        check_solution(g @ g.T, qp.h, 10.0, qp.alpha, xi, kkt, tol=1e-9)
        assert n_pivots < 30


@pytest.mark.parametrize("C", [1e8, 1e11])
def test_two_nearly_opposite_cuts_and_a_huge_C(C):
    """The curvature along a_1 = a_2 is 1e-14 of G, and yet it decides where the solution lies."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        g = rng.normal(size=(1, 40))
        g = np.vstack([g, 1e-7 * rng.normal(size=40) - g])
        G, h = g @ g.T, np.array([0.3, -0.299])
        a, xi, kkt, n_pivots = solve_simplex_qp(G, h, C)
        check_solution(G, h, C, a, xi, kkt, tol=1e-9)
        assert a.sum() == pytest.approx(min(C, 2 * 1e-3 / G.sum()), rel=0.2)
        assert n_pivots < 10


def test_gram_far_from_positive_semidefinite_still_ends():
    rng = np.random.default_rng(0)
    for t in [1, 2, 20]:
        A = rng.normal(size=(t, t))
        G, h = -(A @ A.T), rng.normal(size=t) + 1
        a, _, kkt, n_pivots = solve_simplex_qp(G, h, 2.0)
        assert (a >= 0).all()
        assert a.sum() == pytest.approx(2.0)
        assert np.isfinite(kkt)
        assert n_pivots < 20 * t + 120


def random_qp(t, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.normal(size=(t, t // 2)) + 0.5
    h = rng.random(t)
    return g, SimplexQP.from_gram(g @ g.T, h)


def test_solving_again_changes_nothing_and_takes_no_pivot():
    _, qp = random_qp(60)
    first = qp.solve(3.0)
    alpha = qp.alpha
    assert first.n_pivots > 10
    assert qp.solve(3.0).n_pivots == 0
    np.testing.assert_allclose(qp.alpha, alpha, rtol=1e-14)


def test_path_over_C_equals_cold_solutions():
    _, qp = random_qp(40)
    for C in [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3, 5.0, 0.05, 1e-4, 2.0]:
        xi, kkt, _ = qp.solve(C)
        check_solution(qp.G, qp.h, C, qp.alpha, xi, kkt, tol=1e-9)
        cold, _, _, _ = solve_simplex_qp(qp.G, qp.h, C)
        assert qp.value == pytest.approx(value(qp.G, qp.h, cold), rel=1e-10)


def test_keep_forgets_the_other_cuts_free_ones_included():
    g, qp = random_qp(50)
    qp.solve(2.0)
    kept = np.setdiff1d(np.arange(50), np.append(np.flatnonzero(qp.alpha)[:3], [1, 7, 49]))
    h, alpha = qp.h[kept], qp.alpha[kept]
    qp.keep(kept)
    assert len(qp) == len(kept)
    np.testing.assert_array_equal(qp.alpha, alpha)
    np.testing.assert_array_equal(qp.h, h)
    np.testing.assert_allclose(qp.G, g[kept] @ g[kept].T, rtol=1e-12)
    xi, kkt, _ = qp.solve(2.0)
    check_solution(qp.G, qp.h, 2.0, qp.alpha, xi, kkt, tol=1e-9)


def test_merge_leaves_the_value_unchanged():
    g, qp = random_qp(50)
    qp.solve(2.0)
    before, w = qp.value, qp.alpha @ g
    index = np.append(np.flatnonzero(qp.alpha)[:4], np.flatnonzero(qp.alpha == 0)[:2])
    weights = qp.merge(index)
    assert weights.sum() == pytest.approx(1)
    g = np.vstack([np.delete(g, index, axis=0), weights @ g[index]])
    assert len(qp) == 45
    np.testing.assert_allclose(qp.G, g @ g.T, atol=1e-12)
    np.testing.assert_allclose(qp.alpha @ g, w, rtol=1e-12)
    assert qp.value == pytest.approx(before, rel=1e-12)
    xi, kkt, _ = qp.solve(2.0)
    check_solution(qp.G, qp.h, 2.0, qp.alpha, xi, kkt, tol=1e-9)
    assert qp.value <= before * (1 + 1e-12)


def test_merge_of_inactive_cuts_weighs_them_equally():
    g, qp = random_qp(10)
    weights = qp.merge([2, 5])
    np.testing.assert_array_equal(weights, [0.5, 0.5])
    assert qp.G[-1, -1] == pytest.approx(((g[2] + g[5]) ** 2).sum() / 4)
    assert qp.alpha[-1] == 0


def test_large_problem_to_tolerance():
    rng = np.random.default_rng(3)
    g = rng.normal(size=(1000, 500)) * 0.3 + np.eye(1, 500)
    h = 1 + 0.05 * rng.random(1000)
    a, xi, kkt, n_pivots = solve_simplex_qp(g @ g.T, h, 50.0)
    check_solution(g @ g.T, h, 50.0, a, xi, kkt, tol=1e-9)
    assert n_pivots > 200


def test_one_cut():
    for G, h, C, expected, xi in [(2.0, 1.0, 10.0, 0.5, 0.0), (2.0, 1.0, 0.1, 0.1, 0.8), (2.0, -1.0, 1.0, 0.0, 0.0)]:
        a, found_xi, kkt, _ = solve_simplex_qp([[G]], [h], C)
        assert a[0] == pytest.approx(expected)
        assert found_xi == pytest.approx(xi)
        assert kkt <= 1e-15


def test_no_cut():
    qp = SimplexQP()
    assert qp.solve(1.0).xi == 0
    assert qp.alpha.shape == (0,)
    assert qp.value == 0


def test_equal_cuts_share_no_more_than_one_needs():
    a, xi, _, _ = solve_simplex_qp(np.ones((4, 4)), [0.2, 0.9, 0.9, 0.1], 10.0)
    assert a.sum() == pytest.approx(0.9)
    assert a[[0, 3]].max() == 0
    assert abs(xi) < 1e-15


def test_state_copies_and_pickles():
    _, qp = random_qp(30)
    qp.solve(1.0)
    for other in (copy.deepcopy(qp), pickle.loads(pickle.dumps(qp))):
        other.append(np.zeros(30), 1.0, 2.0)
        other.solve(1.0)
        assert len(qp) == 30
        assert other.value > qp.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda qp: qp.solve(0.0), "C must be positive"),
        (lambda qp: qp.solve(np.inf), "C must be positive"),
        (lambda qp: qp.append([1.0], 1.0, 1.0), "one inner product per cut, 2 in all"),
        (lambda qp: qp.append([1.0, np.nan], 1.0, 1.0), "finite"),
        (lambda qp: qp.append([1.0, 1.0], 1.0, np.inf), "finite"),
        (lambda qp: qp.keep([1, 0]), "increasing"),
        (lambda qp: qp.keep([0, 2]), "the 2 cuts"),
        (lambda qp: qp.keep([-2, 0]), "increasing"),
        (lambda qp: solve_simplex_qp(np.eye(2), [1.0, 1.0, 1.0], 1.0), r"G of shape \(3, 3\)"),
        (lambda qp: solve_simplex_qp(np.eye(2), [1.0, np.nan], 1.0), "finite"),
        (lambda qp: solve_simplex_qp(np.eye(2), [1.0, 1.0], 1.0, [1.0]), "2 multipliers"),
    ],
)
def test_bad_input_is_named(call, message):
    qp = SimplexQP.from_gram(np.eye(2), [1.0, 0.5])
    with pytest.raises(ValueError, match=message):
        call(qp)
    assert len(qp) == 2
