"""Learned bases: starts, limits, and what the descent must reach."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning

import naive
from kernel_cases import NO_DERIVATIVE
from slimsvm import SVC, SVR, Refine
from slimsvm.kernels import RBF, CallableKernel, Laplacian, Linear, Polynomial, Precomputed, kernels_with
from slimsvm.parts.descent.basis_descent import StepSettings, step_sizes
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary, Multiclass
from tasks_for_tests import CASES

# ---- what it reaches


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(3000, noise=0.25, random_state=0)
    return X, np.where(y > 0, 1, -1)


def solve(X, y, solver, **options):
    task = options.pop("task", Binary())
    settings = {"C": 10.0, "random_state": 0} | options
    kernel = settings.pop("kernel", RBF(1.0))
    problem = Problem(as_rows(X), task.encode(y), task, kernel, **settings)
    return solver.solve(problem), problem


def board(seed):
    """A board of five by five fields."""
    X = np.random.default_rng(seed).uniform(0, 5, (3000, 2))
    return X, np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1)


def test_learned_vectors_beat_chosen_ones():
    """Twelve vectors on 25 fields: too few for one in each, so that their places matter.

    Which fields they settle in is chance, and worth up to a tenth of the objective: the mean of some runs is compared.
    """
    ratios = {"kmeans": [], "nystrom": []}
    for board_seed, random_state in itertools.product(range(4), range(2)):
        X, y = board(board_seed)
        fit, _ = solve(X, y, Refine(12), kernel=RBF(2.0), random_state=random_state)
        assert fit.status == Status.CONVERGED
        assert fit.counters["bound_in_basis"] <= fit.objective <= 1.0011 * fit.counters["bound_in_basis"]
        for initial, found in ratios.items():
            solver = Refine(12, initial=initial, rate=1e-9, epochs=1)
            chosen, _ = solve(X, y, solver, kernel=RBF(2.0), random_state=random_state)
            found.append(fit.objective / chosen.objective)
            assert found[-1] < 0.85
        estimates = [record["objective_estimate"] for record in fit.history]
        assert estimates[-1] == pytest.approx(fit.objective, rel=0.02)
        assert estimates[-1] < 0.7 * estimates[0]
    for found in ratios.values():
        assert np.mean(found) < 0.75


def test_the_objective_is_that_of_the_model(moons):
    X, y = moons
    for solver in (Refine(6, epochs=10), Refine(6, epochs=10, finish=False), Refine(6, epochs=10, learn_metric=True)):
        fit, _ = solve(X, y, solver, precision="float64")
        basis, kernel = fit.model.basis, fit.model.kernel
        scores = naive.kernel_matrix(kernel, X, basis) @ fit.model.coef + fit.model.intercept
        norm = np.sum(fit.model.coef * (naive.kernel_matrix(kernel, basis, basis) @ fit.model.coef))
        hinge = np.maximum(0, 1 - y * scores[:, 0]).sum()
        truth = 0.5 * (norm + np.sum(fit.model.intercept**2)) + 10 * hinge
        assert fit.objective == pytest.approx(truth, rel=1e-8)


def test_finish_lowers_the_objective_and_bounds_it_within_the_basis(moons):
    rough, _ = solve(*moons, Refine(6, epochs=3, finish=False, averaging=0.0))
    smooth, _ = solve(*moons, Refine(6, epochs=3, averaging=0.0))
    np.testing.assert_allclose(smooth.model.basis, rough.model.basis)
    assert smooth.objective < rough.objective
    assert rough.counters["bound_in_basis"] is None
    assert smooth.counters["bound_in_basis"] == smooth.history[-1]["bound_in_basis"] <= smooth.objective
    assert smooth.lower_bound is None


def test_small_problems_are_finished_to_rounding():
    X, y = make_classification(200, 5, random_state=0)
    fit, problem = solve(X, np.where(y > 0, 1, -1), Refine(5, epochs=20))
    assert problem.is_small
    assert fit.objective - fit.counters["bound_in_basis"] <= 1e-9 * fit.objective


def test_the_whole_data_as_a_basis_reaches_the_optimum():
    """With as many vectors as rows the bound in the basis is below the optimum's neighbourhood, and the model at it."""
    X, y = make_classification(40, 3, n_informative=3, n_redundant=0, random_state=0)
    y = np.where(y > 0, 1, -1)
    fit, _ = solve(X, y, Refine(40, rate=1e-9, epochs=1), C=1.0, kernel=RBF(0.5), intercept="none")
    K = naive.kernel_matrix(RBF(0.5), X, X)
    parts = [(np.array([i]), naive.binary_options(y[i]), 1.0) for i in range(40)]
    primal, dual = naive.optimum(K, parts, 1.0, False)
    assert fit.objective == pytest.approx(primal, rel=1e-6)
    assert fit.counters["bound_in_basis"] == pytest.approx(dual, rel=1e-6)


def test_several_classes_share_one_basis():
    X, y = load_iris(return_X_y=True)
    clf = SVC(C=10.0, solver=Refine(4), random_state=0).fit(X, y)
    assert clf.basis_coef_.shape == (4, 3)
    assert clf.score(X, y) > 0.96


def test_regression_at_any_scale_of_the_targets():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (2500, 1))
    y = np.sinc(X[:, 0]) + 0.05 * rng.normal(size=2500)
    for scale in (1e-3, 1.0, 1e4):
        reg = SVR(C=10.0 * scale, gamma=1.0, epsilon=0.05 * scale, solver=Refine(8), random_state=0).fit(X, scale * y)
        assert np.abs(reg.predict(X) / scale - np.sinc(X[:, 0])).mean() < 0.02


def test_features_in_any_unit():
    """Start and steps follow the features' units: scaled rows with a scaled gamma make the same model."""
    X, y = make_moons(2500, noise=0.25, random_state=0)
    plain = SVC(C=10.0, gamma=1.0, solver=Refine(6, epochs=20), random_state=0).fit(X, y)
    scaled = SVC(C=10.0, gamma=1e-8, solver=Refine(6, epochs=20), random_state=0).fit(1e4 * X, y)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=0.02)


def test_learned_metric_finds_the_features_that_matter(moons):
    X, y = moons
    rng = np.random.default_rng(0)
    noisy = np.hstack([X, rng.normal(size=(len(X), 6))])
    plain = SVC(C=1.0, solver=Refine(20), random_state=0).fit(noisy[:2000], y[:2000])
    learned = SVC(C=1.0, solver=Refine(20, learn_metric=True), random_state=0).fit(noisy[:2000], y[:2000])
    gamma = np.array(learned.model_.kernel.gamma)
    assert gamma[:2].min() > 5 * gamma[2:].max()
    assert learned.score(noisy[2000:], y[2000:]) > plain.score(noisy[2000:], y[2000:])
    assert learned.objective_ < 0.8 * plain.objective_


def test_a_strong_pull_leaves_the_scales_alike(moons):
    fit, _ = solve(*moons, Refine(6, epochs=5, learn_metric=True, metric_pull=1e6))
    gamma = np.array(fit.model.kernel.gamma)
    assert gamma[0] == pytest.approx(gamma[1], rel=1e-2)


def test_sparse_rows_make_the_same_model_as_dense_ones():
    """Without centring (a kernel of the inner product) they are the same problem to rounding."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * (rng.random((300, 4)) < 0.5)
    examples, kernel = Binary().encode(rng.choice([-1, 1], 300)), Polynomial(2, 0.5, 1.0)
    fits = [
        Refine(5, epochs=5, initial="nystrom").solve(
            Problem(as_rows(rows), examples, Binary(), kernel, C=0.3, precision="float64", random_state=0)
        )
        for rows in (sp.csr_array(X), X)
    ]
    np.testing.assert_allclose(fits[0].model.basis, fits[1].model.basis, atol=1e-6)
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-6)


# ---- starts


def test_a_model_of_sparse_rows_grows(moons):
    """Its vectors are dense, the rows that join them are not."""
    X, y = moons
    ends = []
    for rows in (sp.csr_array(X), X):
        clf = SVC(C=10.0, gamma=1.0, solver=Refine(epochs=5), warm_start=True, random_state=0)
        for k in (5, 12):
            clf.set_params(solver__max_basis=k).fit(rows, y)
        ends.append(clf)
    assert not sp.issparse(ends[0].basis_vectors_)
    assert ends[0].n_basis_ == ends[1].n_basis_ == 12
    assert ends[0].objective_ == pytest.approx(ends[1].objective_, rel=1e-3)


def test_start_from_vectors_and_from_a_model(moons):
    X, y = moons
    first, _ = solve(X, y, Refine(6, epochs=3))
    on, _ = solve(X, y, Refine(8, epochs=10, initial=first.model, rate=0.02))
    assert on.model.n_basis == 8  # two rows that the model has losses on have joined it
    assert on.objective < first.objective
    still, _ = solve(X, y, Refine(8, epochs=1, initial=first.model, rate=1e-9))
    np.testing.assert_allclose(still.model.basis[:6], first.model.basis, atol=1e-6)
    scores = first.model.scores(X)[:, 0]
    for vector in still.model.basis[6:]:
        i = np.abs(X - vector).sum(axis=1).argmin()
        np.testing.assert_allclose(vector, X[i], atol=1e-6)
        assert y[i] * scores[i] < 1
    same, _ = solve(X, y, Refine(6, epochs=10, initial=first.model, rate=0.02))
    assert same.model.n_basis == 6
    vectors, _ = solve(X, y, Refine(8, epochs=3, initial=X[:5]))
    assert vectors.model.n_basis == 5
    with pytest.raises(ValueError, match="initial has 9 vectors, max_basis=8"):
        solve(X, y, Refine(8, initial=X[:9]))
    with pytest.raises(ValueError, match="the model has 2 features and 1 outputs, the problem 2 and 3"):
        solve(X, np.arange(len(y)) % 3, Refine(8, initial=first.model), task=Multiclass(3))


def test_a_fit_goes_on_from_its_state(moons):
    X, y = moons
    clf = SVC(C=10.0, gamma=1.0, solver=Refine(6, epochs=3, rate=0.03), random_state=0, warm_start=True).fit(X, y)
    before = clf.objective_
    assert clf.fit(X, y).objective_ < before
    learned = Refine(6, epochs=3, rate=0.03, learn_metric=True)
    clf = SVC(C=10.0, gamma=1.0, solver=learned, random_state=0, warm_start=True).fit(X, y)
    before, gamma = clf.objective_, clf.model_.kernel.gamma
    clf.fit(X, y)
    assert clf.objective_ < before
    np.testing.assert_allclose(np.log(clf.model_.kernel.gamma), np.log(gamma), atol=1.0)


def test_a_warm_start_grows_along_a_path(moons):
    X, y = moons
    clf = SVC(C=10.0, gamma=1.0, solver=Refine(epochs=10), random_state=0, warm_start=True)
    objectives = []
    for k in (2, 4, 8):
        clf.set_params(solver__max_basis=k).fit(X, y)
        assert clf.n_basis_ == k
        objectives.append(clf.objective_)
    assert objectives[0] > objectives[1] > objectives[2]


def test_fewer_rows_than_vectors():
    X, y = np.array([[0.0], [1.0], [2.0], [2.0]]), np.array([-1, 1, -1, -1])
    fit, _ = solve(X, y, Refine(10, epochs=5))
    assert 1 <= fit.model.n_basis <= 3


# ---- ends before the end


def test_max_iter_brings_the_rates_to_their_end(moons):
    with pytest.warns(ConvergenceWarning, match="stopped at the iteration limit after 5 iterations"):
        fit, _ = solve(*moons, Refine(6), max_iter=5)
    assert fit.n_iter == 5
    assert fit.history[-1]["rate"] < 0.2 * max(record["rate"] for record in fit.history)
    assert fit.counters["bound_in_basis"] is not None


def test_max_seconds_plans_fewer_sweeps(moons):
    X, y = moons
    solve(X, y, Refine(6, epochs=2))
    with pytest.warns(ConvergenceWarning, match="less time .* before the time limit"):
        fit, _ = solve(X, y, Refine(6, epochs=100_000), max_seconds=1.0)
    assert fit.status == Status.TIME_LIMIT
    assert fit.counters["seconds"] < 3.0
    assert 3 < fit.n_iter < 100_000
    assert fit.history[-1]["rate"] < 0.5 * fit.history[fit.n_iter // 2]["rate"]


def test_an_interrupt_returns_the_model_so_far(moons):
    def press_ctrl_c(record):
        raise KeyboardInterrupt

    problem = solve(*moons, Refine(6, epochs=1))[1]
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 iterations"):
        fit = Refine(6, epochs=50).solve(problem, callbacks=[press_ctrl_c])
    assert fit.status == Status.INTERRUPTED
    assert fit.objective < problem.C1
    assert fit.counters["bound_in_basis"] is None


def test_a_rate_that_is_too_high_is_halved(moons):
    fit, problem = solve(*moons, Refine(6, epochs=60, rate=100.0))
    assert fit.counters["restarts"] > 0
    assert fit.objective < 0.9 * problem.C1
    modest, _ = solve(*moons, Refine(6, epochs=60))
    assert modest.counters["restarts"] == 0


def test_evaluations_are_counted(moons):
    X, y = moons
    fit, _ = solve(X, y, Refine(6, epochs=4, finish=False))
    # 500 rows for the sizes of steps. Every sweep sees each row once, and all six vectors at each of its six steps.
    assert fit.history[-1]["kernel_evals"] == 500 * 6 + 4 * (3000 * 6 + 6 * 6 * 6)
    assert fit.counters["report_kernel_evals"] == 3000 * 6


# ---- bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_basis": 0}, "max_basis must be an integer >= 1, found 0"),
        ({"initial": "best"}, "basis must be one of .* found 'best'"),
        ({"initial": np.zeros((3, 5))}, "the rows have 2 features, the basis has shape"),
        ({"initial": np.full((3, 2), np.nan)}, "initial must hold finite numbers, found NaN or infinity"),
        ({"epochs": 0}, "epochs must be an integer >= 1, found 0"),
        ({"epochs": "many"}, "epochs must be an integer >= 1, found 'many'"),
        ({"batch_size": 1.5}, "batch_size must be an integer >= 1, found 1.5"),
        ({"rate": 0.0}, "rate must be a positive number, found 0.0"),
        ({"rate": np.nan}, "rate must be a positive number, found nan"),
        ({"metric_pull": -1.0}, "metric_pull must be a number >= 0, found -1.0"),
        ({"noise": -0.5}, "noise must be a number >= 0, found -0.5"),
        ({"averaging": 2.0}, "averaging must be between 0 and 1, found 2.0"),
        ({"rate": "fast"}, "rate must be a positive number, found 'fast'"),
        ({"noise": "some"}, "noise must be a number >= 0, found 'some'"),
        ({"averaging": "all"}, "averaging must be between 0 and 1, found 'all'"),
        ({"metric_pull": None}, "metric_pull must be a number >= 0, found None"),
        ({"tol_relative": 0.0}, "tol_relative must be a positive number, found 0.0"),
    ],
)
def test_bad_parameters(moons, parameters, message):
    with pytest.raises(ValueError, match=message):
        solve(*moons, Refine(**parameters))


@pytest.mark.parametrize("kernel", [Laplacian(1.0), CallableKernel(lambda X, Z: X @ Z.T), Precomputed()])
def test_kernels_without_a_known_derivative(kernel):
    X, y = np.eye(4), np.array([-1, 1, -1, 1])
    with pytest.raises(ValueError, match=f"it {NO_DERIVATIVE}"):
        solve(X, y, Refine(2), kernel=kernel)


def test_a_metric_needs_an_rbf_kernel_and_dense_rows(moons):
    with pytest.raises(ValueError, match=f"learn_metric=True needs kernel {kernels_with('has_metric')}, found Linear"):
        solve(*moons, Refine(2, learn_metric=True), kernel=Linear())
    with pytest.raises(ValueError, match="learn_metric=True needs dense rows"):
        solve(sp.csr_array(moons[0]), moons[1], Refine(2, learn_metric=True))


def test_losses_that_are_no_sums_over_examples():
    task, X, _, examples = CASES["f1"].problem(0)
    problem = Problem(as_rows(X), examples, task, RBF(0.3))
    with pytest.raises(ValueError, match="needs a loss that is a sum over examples; that of FBeta is over all rows"):
        Refine(2).solve(problem)


def test_warm_start_only_from_a_refine_fit(moons):
    problem = solve(*moons, Refine(2, epochs=1))[1]
    with pytest.raises(ValueError, match="can only be warm-started from a Refine fit, found str"):
        Refine(2).solve(problem, state="yesterday's")


def test_coefficients_take_larger_steps_where_few_vectors_move_a_score():
    """As if there were as many vectors as kernel values have a norm of; one for each row at least."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    coef = []
    for gamma in (1e-6, 1e-3, 100.0, 1e6):
        problem = Problem(as_rows(X), Binary().encode(np.where(X[:, 0] > 0, 1, -1)), Binary(), RBF(gamma), C=1.0)
        rows, basis = problem.bind(), X[rng.permutation(400)[:100]]
        coef.append(step_sizes(problem, rows, Refine(100), basis, 1.0, rng).coef)
    own = StepSettings()
    assert coef[0] == coef[1] == pytest.approx(0.1 / 2 * own.coef_rate / 10)  # as if all values were 1
    assert coef[3] == pytest.approx(coef[0] * 10 / own.usual_ratio)
    assert coef[1] < coef[2] <= coef[3]
