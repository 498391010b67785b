"""Core and ball vector machines: within ε of their own problem's optimum, and where they are known to fail."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from sklearn.metrics.pairwise import rbf_kernel

from slimsvm import BVM, CVM, SVC
from slimsvm.parts.enclosing_ball import best_scale

BOTH = pytest.mark.parametrize("solver", [CVM, BVM])


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.4 * rng.normal(size=n) > 0.2, 1, -1)
    y[:2] = -1, 1
    return X, y


def svc(solver, C=1.0, **options):
    return SVC(C=C, gamma=0.5, solver=solver, random_state=0, **options)


def plain_Q(X, y, C, weights=1.0, constant=1.0):
    """Q of the L2-loss dual, as the formula has it."""
    return np.outer(y, y) * (rbf_kernel(X, gamma=0.5) + constant) + np.diag(1 / (C * weights) * np.ones(len(y)))


def centre_of(model, n):
    """α of a fitted model: its coefficients' sizes, of sum 1."""
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    return alpha / alpha.sum()


def smallest(Q):
    """min α'Qα over the simplex: by nonnegative least squares on the dual scaled to max Σa − ½ a'Qa."""
    n = len(Q)
    bounds = [(0, None)] * n
    options = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1), np.zeros(n), jac=True, bounds=bounds,
                     method="L-BFGS-B", options=options)  # fmt: skip
    return 0.5 / -found.fun


@lru_cache
def smallest_of(seed, C):
    return smallest(plain_Q(*data(120, seed), C))


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.05])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_the_cores_ball_is_within_epsilon_of_the_smallest(C, epsilon):
    for seed in range(2):
        X, y = data(120, seed)
        Q = plain_Q(X, y, C)
        model = svc(CVM(epsilon), C).fit(X, y)
        alpha = centre_of(model, 120)
        q, eta, best = alpha @ Q @ alpha, Q[0, 0], smallest_of(seed, C)
        tolerance = 1e-9 * eta
        assert best <= q + tolerance
        assert eta - best <= (1 + epsilon) ** 2 * (eta - q) * (1 + epsilon) + tolerance
        assert (q - 2 * Q @ alpha + eta).max() <= (1 + epsilon) ** 2 * (eta - q) * (1 + epsilon) + tolerance
        counters = model.counters_
        assert counters["own_lower_bound"] == pytest.approx(0.5 / q, rel=1e-9)
        assert counters["own_lower_bound"] <= 0.5 / best * (1 + 1e-9)
        slack = np.maximum(0, 1 - y * model.decision_function(X))
        v = model.dual_coef_[0]
        norm = v @ rbf_kernel(X[model.support_], gamma=0.5) @ v + v.sum() ** 2
        assert counters["own_objective"] == pytest.approx(0.5 * norm + 0.5 * C * slack @ slack)
        assert counters["own_objective"] >= 0.5 / best * (1 - 1e-9)
        if epsilon == 1e-6 and C <= 1:
            assert counters["own_objective"] <= 0.5 / best * 1.001


@pytest.mark.parametrize("epsilon", [1e-4, 1e-2])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_all_rows_lie_in_the_given_ball(C, epsilon):
    """The paper's BVM: a centre from which no row is farther than (1 + ε) r."""
    X, y = data(150)
    Q = plain_Q(X, y, C)
    model = svc(BVM(epsilon, shrink=False), C).fit(X, y)
    alpha = centre_of(model, 150)
    distances = alpha @ Q @ alpha - 2 * Q @ alpha + Q[0, 0]
    assert distances.max() <= (1 + epsilon) ** 2 * Q[0, 0] * (1 + 1e-9)
    assert model.history_[-1]["epsilon"] == epsilon
    assert all(record["radius"] == pytest.approx(Q[0, 0] ** 0.5) for record in model.history_)
    scales = [record["epsilon"] for record in model.history_]
    assert scales == sorted(scales, reverse=True)


def random_problem(draw):
    """Rows, labels, C and ε of all sizes."""
    rng = np.random.default_rng(draw)
    X, y = data(int(rng.integers(5, 80)), draw)
    return X, y, 10.0 ** rng.uniform(-1, 2), 10.0 ** rng.uniform(-4, -1)


@pytest.mark.parametrize("draw", range(30))
def test_within_epsilon_of_the_optimum(draw):
    """Both end with a ball at most 1 + ε times the smallest, and with as much of P proved as follows from that.

    No row's product with the centre is below ρ = q − e, e = ((1 + ε)² − 1) (η − q) / 2: scaled to ρ = 1 the model
    has slacks of at most α_i/(C ρ), so that P ≤ q / (2 ρ²), where the least P is at least 1 / (2 q).
    """
    X, y, C, epsilon = random_problem(draw)
    Q = plain_Q(X, y, C)
    best = smallest(Q)
    for solver in (BVM(epsilon, final_epsilon=epsilon), CVM(epsilon)):
        model = svc(solver, C).fit(X, y)
        alpha = centre_of(model, len(y))
        q, eta = alpha @ Q @ alpha, Q[0, 0]
        farthest = np.sqrt((q - 2 * Q @ alpha + eta).max())
        assert farthest <= (1 + epsilon) * np.sqrt(eta - best) * (1 + 1e-6)
        least = q - 0.5 * ((1 + epsilon) ** 2 * (1 + 1e-6) - 1) * (eta - q)
        if least > 0:
            assert model.counters_["own_objective"] <= (q / least) ** 2 * 0.5 / best * (1 + 1e-6)


@pytest.mark.parametrize("draw", range(15))
def test_the_papers_ball_vector_machine_may_be_four_times_off(draw):
    """With r² = η: a ball at most (1 + ε) √(1 + q*/R*²) times the smallest, products of at least q/2 − e."""
    X, y, C, epsilon = random_problem(draw)
    Q = plain_Q(X, y, C)
    best = smallest(Q)
    model = svc(BVM(epsilon, shrink=False), C).fit(X, y)
    alpha = centre_of(model, len(y))
    q, eta = alpha @ Q @ alpha, Q[0, 0]
    farthest = np.sqrt((q - 2 * Q @ alpha + eta).max())
    smallest_radius = np.sqrt(eta - best)
    assert farthest <= (1 + epsilon) * np.sqrt(1 + best / (eta - best)) * smallest_radius * (1 + 1e-9)
    least = 0.5 * q - 0.5 * ((1 + epsilon) ** 2 - 1) * eta
    if least > 0:
        assert model.counters_["own_objective"] <= (q / least) ** 2 * model.counters_["own_lower_bound"] * (1 + 1e-6)


def test_the_given_ball_leaves_the_objective_far_off_and_the_smaller_one_does_not():
    X, y = data(150)
    Q = plain_Q(X, y, 1.0)
    papers, ours = (svc(BVM(1e-4, shrink=shrink)).fit(X, y).counters_["own_objective"] for shrink in (False, True))
    assert papers > 1.05 * 0.5 / smallest(Q) > 1.04 * ours


@BOTH
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_the_own_objective_is_proved_to_a_thousandth_by_default(solver, C):
    X, y = data(400)
    model = svc(solver(), C).fit(X, y)
    assert model.counters_["own_lower_bound"] >= (1 - 1e-3) * model.counters_["own_objective"]


def test_the_ball_vector_machine_goes_on_from_its_own_core_set():
    X, y = data(300)
    model = svc(BVM()).fit(X, y)
    papers = svc(BVM(shrink=False)).fit(X, y)
    scales = [record["epsilon"] for record in model.history_]
    n = len(papers.history_)
    assert scales[:n] == [record["epsilon"] for record in papers.history_]
    assert set(scales[n:]) == {1e-6}
    assert len(scales) - n < len(svc(CVM()).fit(X, y).history_)
    assert [r["n_basis"] for r in model.history_[: n - 1]] == [r["n_basis"] for r in papers.history_[: n - 1]]
    assert model.n_kernel_evals_ > papers.n_kernel_evals_


@pytest.mark.parametrize("draw", range(20))
def test_the_model_has_the_best_scale(draw):
    rng = np.random.default_rng(draw)
    margins, row_C, norm = rng.normal(0.5, 1, 30), rng.uniform(0, 5, 30), rng.uniform(0.01, 10)

    def own(scale):
        return 0.5 * scale**2 * norm + 0.5 * row_C @ np.maximum(0, 1 - scale * margins) ** 2

    found = minimize_scalar(own, bounds=(0, 50), method="bounded", options={"xatol": 1e-10})
    assert row_C @ margins > 0
    assert own(best_scale(margins, norm, row_C)) <= found.fun * (1 + 1e-9)


def test_a_move_puts_the_row_on_the_ball():
    X, y = data(60)
    Q = plain_Q(X, y, 1.0)
    one, two = (svc(BVM(shrink=False), max_iter=k) for k in (20, 21))
    with pytest.warns(UserWarning, match="BVM stopped at the iteration limit"):
        before, after = (centre_of(model.fit(X, y), 60) for model in (one, two))
    moved = np.flatnonzero(after > before + 1e-12)
    assert len(moved) == 1
    assert (after @ Q @ after - 2 * Q @ after + Q[0, 0])[moved[0]] == pytest.approx(Q[0, 0])


@BOTH
def test_weights_and_no_intercept_and_kernels_of_any_diagonal(solver):
    """Weights are the ridge's; the ball then is that around rows brought to one length."""
    X, y = data(120)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 120)
    model = svc(solver(1e-5), intercept="none").fit(X, y, weights)
    used = np.flatnonzero(weights)
    Q = plain_Q(X[used], y[used], 1.0, weights[used], 0.0)
    alpha = centre_of(model, 120)[used]
    q, eta = alpha @ Q @ alpha, Q.diagonal().max()
    assert q == pytest.approx(smallest(Q), rel=0.01)
    assert (q - 2 * Q @ alpha + eta).max() <= (1 + 1e-5) ** 2 * (eta - q) * (1 + 1e-9)
    assert model.intercept_ == 0
    linear = SVC(kernel="linear", solver=solver(1e-4), random_state=0).fit(X + 2 * y[:, None], y)
    assert linear.score(X + 2 * y[:, None], y) > 0.9


@BOTH
def test_warm_starts_go_on_from_the_core_set(solver):
    X, y = data(300)
    model = svc(solver(1e-4), warm_start=True).fit(X, y)
    first = model.n_iter_
    assert model.set_params(C=1.1).fit(X, y).n_iter_ < first


# ---- documented failures


@pytest.mark.parametrize("solver", [CVM, lambda epsilon: BVM(epsilon, final_epsilon=epsilon)], ids=["CVM", "BVM"])
def test_large_C_stops_far_from_the_optimum(solver):
    """ε is a share of the ball's radius, in which ½/q, the margin, is lost: at C = 1e4 ε = 1e-3 means nothing."""
    X, y = data(600)
    ratios = []
    for C in (1.0, 1e4):
        counters = svc(solver(1e-3), C).fit(X, y).counters_
        ratios.append(counters["own_objective"] / counters["own_lower_bound"])
    assert ratios[1] > 20 * ratios[0]
    tight = svc(CVM(1e-6), 1e4).fit(X, y).counters_
    assert tight["own_objective"] / tight["own_lower_bound"] < 0.1 * ratios[1]


def test_small_gamma_stops_far_from_the_optimum():
    X, y = data(600)
    ratios = []
    for gamma in (0.5, 1e-4):
        model = SVC(C=30.0, gamma=gamma, solver=CVM(1e-3), random_state=0).fit(X, y)
        ratios.append(model.counters_["own_objective"] / model.counters_["own_lower_bound"])
    assert ratios[1] > 2 * ratios[0] > 20


@BOTH
@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C_end(solver, C):
    X, y = data(100)
    model = svc(solver(), C).fit(X, y)
    assert model.status_ == "converged"
    assert np.isfinite(model.objective_)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.counters_["own_lower_bound"] <= model.counters_["own_objective"]


@BOTH
def test_repeated_rows_and_two_rows(solver):
    X, y = data(40)
    repeated = svc(solver()).fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    weighted = svc(solver()).fit(X, y, np.full(40, 4.0))
    assert repeated.counters_["own_lower_bound"] == pytest.approx(weighted.counters_["own_lower_bound"], rel=0.01)
    assert np.mean(repeated.predict(X) == weighted.predict(X)) > 0.95
    assert svc(solver()).fit([[0.0], [3.0]], [0, 1]).predict([[0.0], [3.0]]).tolist() == [0, 1]


@BOTH
def test_bad_input_is_named(solver):
    X, y = data(20)
    for model, message in [
        (svc(solver(epsilon=0)), "epsilon must be between 0 and 1, found 0"),
        (svc(solver(sample_size=0)), "sample_size must be an integer >= 1, found 0"),
        (svc(BVM(shrink=1)), "shrink must be True or False, found 1"),
        (svc(BVM(final_epsilon=1)), "final_epsilon must be between 0 and 1, found 1"),
        (svc(solver(), cost_matrix=[[0, 1], [2, 0]]), "found costs 1.0, 2.0 that are not both 1; class_weight"),
        (svc(solver(), intercept="free"), "found 'free': the ball's centre has the intercept in it"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match="solves two-class problems, found Multiclass"):
        svc(solver()).fit(X, np.arange(20) % 3)


def test_a_model_that_no_scale_makes_better_stays_as_it_is():
    assert best_scale(np.zeros(3), 0.0, np.ones(3)) == 1.0
    assert best_scale(np.array([-1.0, 0.5]), 1.0, np.ones(2)) == 1.0
    assert best_scale(np.array([2.0, 4.0]), 0.0, np.ones(2)) >= 0.5
