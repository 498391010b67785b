"""What every registered budget rule promises: never more points than allowed, and the degradation it reports."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive
from kernel_cases import with_metric
from slimsvm import core
from slimsvm.budget import BUDGET_RULES, BudgetedModel, Merge, MultiMerge, Project, Remove, get_budget_rule
from slimsvm.budget.rules import merge_table
from slimsvm.kernels import RBF, CallableKernel, KernelRows, Laplacian, Linear, Polynomial, Precomputed, Sigmoid

KERNELS = {**with_metric(0.3), "laplacian": Laplacian(0.4), "linear": Linear(), "poly": Polynomial(2, 0.5, 1.0)}
VARIANTS = {name: rule() for name, rule in BUDGET_RULES.items()}
VARIANTS["golden-section"] = Merge(search="golden-section")
VARIANTS["one-sign"] = Merge(two_signs=False)
SUITABLE = [
    (rule, kernel)
    for rule in sorted(VARIANTS)
    for kernel in sorted(KERNELS)
    if kernel == "rbf" or not VARIANTS[rule].rbf_only
]
RBF_ONLY = sorted(name for name, rule in VARIANTS.items() if rule.rbf_only)
DTYPES = {"float32": np.float32, "float64": np.float64}
NEAR_LOSS = 1.02  # of core/budget/merging.h


def data(seed=0, n=60, d=3):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(-2, 3, (n, d)).astype(float) + 0.1 * rng.standard_normal((n, d))


def model_of(X, rule="merge", kernel="rbf", budget=8, m=1, dtype=np.float64):
    kernel = KERNELS.get(kernel, kernel)
    return BudgetedModel(KernelRows(kernel, X, dtype=dtype), budget, m, VARIANTS.get(rule, rule))


def squared_difference(model, before, X, i, delta):
    """‖w_before + delta φ(x_i) − w_after‖² by the naive kernel matrix."""
    basis, coef = before
    now = model.basis.toarray() if sp.issparse(model.basis) else model.basis
    points = np.vstack([basis, X[i : i + 1], now])
    weights = np.vstack([coef, delta[None], -model.coef])
    return float(np.sum(weights * (naive.kernel_matrix(model.kernel_rows.kernel, points, points) @ weights)))


@pytest.mark.parametrize("container", ["dense", "csr"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rule", "kernel"), SUITABLE)
def test_the_budget_is_kept_and_the_degradation_is_the_true_one(rule, kernel, dtype, container):
    for m in (1, 3):
        rng, X = data(m)
        model = model_of(sp.csr_array(X) if container == "csr" else X, rule, kernel, 8, m, DTYPES[dtype])
        basis, coef = np.zeros((0, 3)), np.zeros((0, m))
        for i in range(len(X)):
            delta = rng.standard_normal(m)
            counts = model.add(np.array([i]), delta[None])
            assert model.n_basis <= 8
            truth = squared_difference(model, (basis, coef), X, i, delta)
            scale = float(np.sum(model.coef**2) + 1) * max(1.0, model.diagonal.max())
            rounding = scale * (1e-4 if dtype == "float32" else 1e-6)
            if counts.merged > 1:  # the sum of the mergers' ‖Δ‖², not that of the sum of their Δ
                assert truth <= counts.merged * counts.degradation + rounding
            else:
                assert counts.degradation == pytest.approx(truth, rel=1e-3, abs=rounding)
            basis, coef = model.basis, model.coef
            basis = basis.toarray() if sp.issparse(basis) else basis
        assert model.n_basis >= 3


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(SUITABLE), st.integers(1, 12), st.integers(1, 3), st.sampled_from(sorted(DTYPES)),
    st.lists(st.tuples(st.integers(0, 29), st.floats(-1e6, 1e6)), min_size=1, max_size=40), st.integers(0, 3),
)  # fmt: skip
@example(("golden-section", "rbf"), 1, 1, "float32", [(0, 3.3e-284), (1, 1.0)], 0)
def test_never_more_points_than_allowed(rule_and_kernel, budget, m, dtype, steps, seed):
    rule, kernel = rule_and_kernel
    X = data(seed, 30)[1]
    X[10:20] = X[:10]
    model = model_of(X, rule, kernel, budget, m, DTYPES[dtype])
    for i, coef in steps:
        model.add(np.array([i]), np.full((1, m), coef))
        assert model.n_basis <= budget
        origin = model.basis_rows
        known = origin[origin >= 0]
        assert len(np.unique(known)) == len(known)
        np.testing.assert_array_equal(model.points.slot_of[known], np.flatnonzero(origin >= 0))
        assert np.sum(model.points.slot_of >= 0) == len(known)
        assert np.isfinite(model.coef).all()
        assert m > 1 or not model.rule.rbf_only or model.points.least[0] <= np.abs(model.coef).min(initial=np.inf)


@pytest.mark.parametrize("rule", RBF_ONLY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_merging_two_identical_points_is_exact(rule, dtype):
    X = np.array([[0.3, -7.1, 1e3], [2.0, 2.0, 2.0], [0.3, -7.1, 1e3]])
    model = model_of(X, rule, "rbf", 2, 2, DTYPES[dtype])
    counts = model.add(np.arange(3), np.array([[0.1, 0.2], [-5.0, -6.0], [0.3, 0.4]]))
    assert (counts.merged, counts.degradation) == (1, 0.0)
    np.testing.assert_array_equal(np.sort(model.coef, axis=0), [[-5.0, -6.0], [0.1 + 0.3, 0.2 + 0.4]])
    assert {tuple(row) for row in model.basis} == {tuple(X[0]), tuple(X[1])}


@pytest.mark.turns("kernel")
@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - {"rbf"}))
@pytest.mark.parametrize("rule", RBF_ONLY)
def test_rules_for_one_kernel_say_so(rule, kernel):
    others = "maintenance='project'.* and '.*' work with every kernel"
    message = f"makes points that are not rows, and needs kernel='rbf' for that; found .*{others}"
    with pytest.raises(ValueError, match=message):
        model_of(data()[1], rule, kernel)


@pytest.mark.parametrize("rule", sorted(set(VARIANTS) - set(RBF_ONLY)))
def test_kernels_given_as_a_function_or_a_matrix(rule):
    rng, X = data()
    coef = rng.standard_normal((60, 2))
    expected = model_of(X, rule, "rbf", 10, 2)
    expected.add(np.arange(60), coef)
    function = CallableKernel(lambda A, B: RBF(0.3).block(A, B))
    matrix = RBF(0.3).block(X, X)
    for kernel, rows in ((function, X), (Precomputed(), matrix)):
        model = model_of(rows, rule, kernel, 10, 2)
        model.add(np.arange(60), coef)
        np.testing.assert_array_equal(model.basis_rows, expected.basis_rows)
        np.testing.assert_allclose(model.coef, expected.coef, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="all kernel values of a kernel given as a function or matrix take 0 MB"):
        BudgetedModel(KernelRows(function, X, dtype=np.float64), 10, 1, Remove(), memory_limit=1000)


def test_a_row_that_is_in_the_model_adds_to_its_coefficient():
    X = data()[1]
    for rule in sorted(VARIANTS):
        model = model_of(X, rule, budget=5)
        model.add(np.array([3, 4, 3]), np.array([[1.0], [2.0], [0.5]]))
        assert model.n_basis == 2
        np.testing.assert_allclose(model.coef.ravel(), [1.5, 2.0])
    model = model_of(X, "remove", budget=5)
    model.add(np.array([3, 4, 3]), np.array([[1.0], [2.0], [-1.0]]))
    assert model.basis_rows.tolist() == [4]


def test_rows_are_folded_chunk_by_chunk_where_they_are_not_kept(tmp_path):
    rng, X = data()
    coef = rng.standard_normal((60, 1))
    np.save(tmp_path / "rows.npy", X)
    whole, cut = (model_of(rows, "merge") for rows in (X, np.load(tmp_path / "rows.npy", mmap_mode="r")))
    order = rng.permutation(60)
    cut.chunk_rows = 7
    for model in (whole, cut):
        model.add(order, coef)
    np.testing.assert_array_equal(whole.coef, cut.coef)
    np.testing.assert_array_equal(whole.basis, cut.basis)


# ---- the table and golden section


class Pairs:
    """What the merge rule makes of pairs of points; κ = 2**exponent."""

    def __init__(self, a, b, cosine, exponent):
        pairs = [np.ascontiguousarray(x, np.float64) for x in np.broadcast_arrays(a, b, cosine, exponent)]
        n = len(pairs[0])
        self.place, self.kept, self.loss, self.light, self.nearness = np.empty((5, n))
        self.polished = np.empty((n, 3))
        core.merge_pairs(table=merge_table(), **dict(zip(("a", "b", "cosine", "exponent"), pairs)), **vars(self))


def kept_square(a, b, cosine, log_kappa, t):
    """Squared norm of the coefficients of a point at t that stands for the masses b at 0 and a at 1."""
    first, second = b * np.exp(log_kappa * t * t), a * np.exp(log_kappa * (1.0 - t) * (1.0 - t))
    return first * first + second * second + 2.0 * cosine * first * second


def test_golden_section_finds_the_best_of_a_fine_grid():
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 2001)
    for i in range(300):
        a, b, cosine, log_kappa = rng.random() * 0.5, 0.5 + rng.random(), rng.random(), -3 * rng.exponential()
        if i % 3 == 2:
            b, cosine = 2 * a + rng.exponential(), -1.0
        pair = Pairs([a], b, cosine, log_kappa / np.log(2))
        t, kept = pair.place[0], pair.kept[0]
        assert (0 <= t <= 0.5) if cosine > 0 else (-1 <= t <= 0)
        assert kept == pytest.approx(kept_square(a, b, cosine, log_kappa, t), rel=1e-12)
        places = grid if cosine > 0 else np.concatenate((grid, -3 * grid))
        assert kept >= kept_square(a, b, cosine, log_kappa, places).max() * (1 - 1e-6)


def test_table_and_golden_section_agree():
    rng = np.random.default_rng(1)
    for k in range(2400):
        m, kappa = 0.5 * rng.random(), rng.random() ** (1, 3, 0.2)[k % 3]
        if k % 2:  # near the point where two peaks become one
            m, kappa = 0.5 - 0.05 * rng.random() ** 4, np.clip(np.exp(-2) + 0.05 * rng.standard_normal(), 1e-6, 1)
        side = -1.0 if k % 4 == 0 else 1.0  # of two signs
        a, b = (m, 1.0 - m) if side > 0 else (m / 1.5, 1 - m / 1.5)
        u = side * a / (side * a + b)
        assert -1 <= u <= 0.5
        whole = a * a + b * b + 2 * side * a * b * kappa
        pair = Pairs([a], b, side, np.log2(kappa))
        kept, (t, from_b, from_a) = pair.kept[0], pair.polished[0]
        assert (from_b, from_a) == pytest.approx((kappa ** (t * t), kappa ** ((1 - t) ** 2)), rel=1e-12)
        by_table = kept_square(a, b, side, np.log(kappa), t)
        assert kept - 1e-5 <= by_table <= kept + 1e-12
        assert (a * pair.loss[0]) ** 2 == pytest.approx(whole - kept, abs=1e-4)
        assert a * pair.loss[0] == pytest.approx(np.sqrt(max(0, whole - kept)), rel=0.02, abs=1e-6)


def test_light_points_bound_what_mergers_lose():
    u = np.linspace(-1, 0.5, 61)
    for kappa in np.linspace(0, 1, 60):
        pairs = Pairs(np.abs(u), 1 - u, np.sign(u), np.log2(max(kappa, 1e-300)))
        assert (pairs.light * (1 - np.maximum(u, 0)) <= 1.02 * pairs.loss + 1e-9).all()  # as the table may be off
        assert ((u <= 0) | (pairs.loss <= NEAR_LOSS * pairs.light + 1e-3)).all()


def test_the_least_nearness_is_below_what_loses_as_much():
    kappa = np.linspace(0, 1, 301)
    lowest = Pairs(0.1, 1.0, 1.0, np.log2(np.maximum(kappa, 1e-300))).nearness
    assert (kappa - 0.014 * (1 - kappa) - 1e-12 <= lowest).all()
    assert (lowest <= kappa + 1e-15).all()  # 2**exponent is κ but for its rounding


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_two_greatest_of_the_first_numbers(dtype):
    rng, panel = np.random.default_rng(2), core.panel_of(DTYPES[dtype])
    for n in [*range(1, 2 * panel + 3), 500, 501]:
        values = rng.random(-(-n // panel) * panel).astype(DTYPES[dtype])
        values[n:] = 2.0
        if n % 3 == 0:
            values[rng.integers(n)] = -1.0  # a point beside itself
        if n % 5 == 0:
            values[rng.integers(n, size=2)] = 1.0
        place, other = core.greatest_two(values=values, n=n)
        assert values[place] == values[:n].max() or n == 1
        assert place < n
        assert other == np.delete(values[:n], place).max(initial=-1.0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("signs", [(1, 1), (-1, 1)])
def test_the_search_finds_what_trying_all_finds(signs, dtype):
    rng, same = np.random.default_rng(4), 0
    for trial in range(100):
        n = int(rng.integers(2, 200))
        X = rng.normal(size=(n, 3)) * rng.choice([0.3, 1, 3])
        X[n // 2 :] = X[: n - n // 2] if trial % 10 == 0 else X[n // 2 :]
        model = model_of(X, "merge", "rbf", n, 1, DTYPES[dtype])
        coef = rng.choice(signs, n) * rng.choice([1.0, 0.1 + rng.random(), 10 ** rng.uniform(-3, 0)], n)
        model.add(np.arange(n), (coef * (1 + rng.random(n)))[:, None])
        r, partner = core.merge_search(points=model.points, rule=model.compiled_rule)
        losses = model.points.v[:n]
        assert abs(model.coef[r, 0]) == np.abs(model.coef).min()
        assert model.points.least[0] <= np.abs(np.delete(model.coef, r)).min()
        if partner < 0:
            assert (losses == np.inf).all()
            continue
        assert losses[partner] <= 1.04 * losses.min() + 1e-12  # the square of how far the table is off
        same += losses[partner] <= losses.min() * (1 + 1e-5) + 1e-12
    assert same > 83


@pytest.mark.parametrize("m", [1, 2])
def test_models_by_table_and_by_golden_section_lose_as_much(m):
    rng, X = data(5, 200, 4)
    coef = np.abs(rng.standard_normal((200, m)))
    lost = []
    for rule in ("merge", "golden-section"):
        model = model_of(X, rule, "rbf", 40, m)
        lost.append(model.add(np.arange(200), coef).degradation)
    assert lost[0] == pytest.approx(lost[1], rel=0.02)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_partner_is_taken(seed):
    """The merger's loss is that of the best pair with the smallest point, found by trying all; of either sign."""
    rng, X = data(seed, 12, 2)
    coef = rng.standard_normal((12, 1))
    lost = [model_of(X, rule, "rbf", 11).add(np.arange(12), coef).degradation for rule in ("golden-section", "merge")]
    r = int(np.argmin(np.abs(coef)))
    losses = []
    for j in range(12):
        if j != r and (coef[j] * coef[r] > 0 or abs(coef[j]) >= 2 * abs(coef[r])):
            kappa = naive.kernel_matrix(KERNELS["rbf"], X[[r]], X[[j]])[0, 0]
            h = np.linspace(0, 2, 40001)  # of the weight of j; beyond 1 on the side away from r
            kept = coef[r] * kappa ** (h**2) + coef[j] * kappa ** ((1 - h) ** 2)
            losses.append(np.min(coef[r] ** 2 + coef[j] ** 2 + 2 * coef[r] * coef[j] * kappa - kept**2))
    assert lost[0] == pytest.approx(min(losses), rel=1e-5, abs=1e-9)
    assert lost[1] == pytest.approx(min(losses), rel=1e-3, abs=1e-9)


def test_what_is_taken_off_a_point_moves_it_away():
    X = np.array([[0.0], [1.0]])
    model = model_of(X, "merge", "rbf", 1)
    counts = model.add(np.arange(2), np.array([[5.0], [-1.0]]))
    assert (counts.merged, counts.removed, model.n_basis) == (1, 0, 1)
    assert -0.3 < model.basis[0, 0] < -0.1
    assert 4.0 < model.coef[0, 0] < 4.6
    assert counts.degradation < 0.25 * squared_difference(
        model_of(X, "merge", "rbf", 1), (X[:1], np.array([[5.0]])), X, 1, np.array([-1.0])
    )


@pytest.mark.parametrize(
    "rule", [Merge(two_signs=False), Merge("golden-section", False), MultiMerge(2, two_signs=False)]
)
def test_points_of_two_signs_are_left_apart_where_that_is_asked_for(rule):
    X = np.array([[0.0], [0.1], [3.0]])
    model = model_of(X, rule, "rbf", 1)
    counts = model.add(np.arange(2), np.array([[5.0], [-1.0]]))
    assert (counts.merged, counts.removed, model.n_basis) == (0, 1, 1)
    np.testing.assert_array_equal(model.basis, X[:1])
    counts = model.add(np.array([2]), np.array([[0.5]]))
    assert (counts.merged, counts.removed) == (1, 0)
    assert 0 < model.basis[0, 0] < 3


def test_several_pairs_make_room_for_several_points():
    rng, X = data(3, 40)
    coef = np.abs(rng.standard_normal((40, 1)))
    model = model_of(X, MultiMerge(pairs=4), "rbf", 10)
    assert model.add(np.arange(11), coef[:11]).merged == 4
    assert model.n_basis == 7


# ---- evaluations, errors, names


@pytest.mark.parametrize("rule", sorted(VARIANTS))
def test_evaluations_are_counted(rule):
    rng, X = data()
    model = model_of(X, rule, budget=4)
    counts = model.add(np.arange(4), np.abs(rng.standard_normal((4, 1))))
    assert counts.kernel_evals == 0 + 1 + 2 + 3
    counts = model.add(np.array([30]), np.ones((1, 1)))
    search = {"merge": 5, "golden-section": 5, "one-sign": 5, "multi-merge": 5 + counts.merged - 1}.get(rule, 0)
    assert counts.kernel_evals == 4 + search
    assert model.kernel_rows.counter.n == 6 + counts.kernel_evals
    # The kernel values of the newest point are known: a search for its partner costs none.
    if rule != "multi-merge":
        assert model.add(np.array([31]), np.full((1, 1), 1e-9)).kernel_evals == 4


def test_projection_of_what_is_in_the_span_loses_nothing():
    rng, X = data(0, 30, 2)
    model = model_of(X, "project", "linear", 10)
    coef = rng.standard_normal((30, 1))
    counts = model.add(np.arange(30), coef)
    assert model.n_basis == 2
    assert counts.degradation < 1e-12
    np.testing.assert_allclose(model.basis.T @ model.coef, X.T @ coef, rtol=1e-9)
    model.refresh_inverse()
    inverse = model.points.inverse[:2, :2]
    np.testing.assert_allclose(inverse @ model.gram(), np.eye(2), atol=1e-8)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Merge(search="grid"), "search must be 'table' or 'golden-section', found 'grid'"),
        (Merge(two_signs=1), "two_signs must be True or False, found 1"),
        (MultiMerge(pairs=1), "pairs must be an integer >= 2, found 1"),
        (MultiMerge(pairs=2.5), "pairs must be an integer >= 2, found 2.5"),
    ],
)
def test_bad_parameters_are_named(rule, message):
    with pytest.raises(ValueError, match=message):
        model_of(data()[1], rule)


def test_a_negative_diagonal_and_unknown_names_are_refused():
    with pytest.raises(ValueError, match=r"needs a kernel with k\(x, x\) >= 0, found -0.\d+ in row 1"):
        model_of(np.array([[3.0], [0.0]]), "remove", Sigmoid(1.0, -1.0))
    assert isinstance(get_budget_rule("project"), Project)
    assert {"merge", "multi-merge", "project", "remove"} <= set(BUDGET_RULES)
    with pytest.raises(ValueError, match=f"maintenance must be one of {', '.join(map(repr, BUDGET_RULES))} or"):
        get_budget_rule("shrink")
    with pytest.raises(ValueError, match="the points take 1 MB, more than the 0 MB that memory_limit leaves"):
        BudgetedModel(KernelRows(RBF(1.0), np.zeros((2, 3000))), 50, 1, Remove(), memory_limit=1000)
