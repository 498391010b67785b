"""Losses with two derivatives: formulas, Newton's method and learned vectors over them, bounds, probabilities."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression

import naive
from slimsvm import CPSP, SVC, SVR, Compact, Exact, ExactCuts, LowRank, Refine, load, load_predictor, tasks
from slimsvm.kernels import RBF
from slimsvm.parts.descent.basis_descent import StepSettings
from slimsvm.parts.descent.batch_gradient import GradientSettings
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows

CLASSES, NUMBERS = sorted(tasks.CLASS_LOSSES), sorted(tasks.NUMBER_LOSSES)
N_RANDOM = 200


def labels_of(loss, rng, f):
    """Labels or targets for scores."""
    if loss in CLASSES:
        return np.where(f + rng.normal(size=f.shape) > 0, 1.0, -1.0)
    if loss == "poisson":
        return rng.poisson(np.exp(np.minimum(f, 5.0))).astype(float)
    return f + rng.normal(size=f.shape)


def task_of(loss):
    return tasks.SmoothBinary(loss) if loss in CLASSES else tasks.SmoothRegression(loss, epsilon=0.5)


@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_a_loss_its_slope_and_its_curvature_are_those_of_the_formula(loss):
    rng = np.random.default_rng(0)
    far = 30.0 if loss == "poisson" else 800.0
    f = np.concatenate([3 * rng.normal(size=2000), [-far, far, 0.0]])[:, None]
    y = labels_of(loss, rng, f[:, 0])
    task, weights = task_of(loss), rng.uniform(0.5, 2, len(f))
    examples, expected = task.encode(y, weights), naive.SMOOTH_LOSSES[loss]
    for tau in (1e-6, 1.0, 10.0):
        found = task.smooth(f, tau, examples)
        value, slope, bend = (weights * part for part in expected(y, f[:, 0]))
        assert found.loss == found.value == pytest.approx(value.sum(), rel=1e-12)
        np.testing.assert_allclose(found.residual[:, 0], -slope, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(found.curvature[:, 0], bend, rtol=1e-9, atol=1e-12)
        assert sum(found.dual) == pytest.approx(np.sum(value - slope * f[:, 0]), rel=1e-12)
        again = task.smooth(f, tau, examples, n_jobs=2)
        np.testing.assert_array_equal(again.residual, found.residual)
        assert again.value == found.value
    loss_there, along = task.along((f, np.zeros(0)), (f, np.zeros(0)), 0.5, examples)
    value, slope, _ = (weights * part for part in expected(y, 1.5 * f[:, 0]))
    assert loss_there == pytest.approx(value.sum(), rel=1e-12)
    assert along == pytest.approx(slope @ f[:, 0], rel=1e-12)
    step = 1e-5
    ahead, behind = (expected(y, f[:, 0] + s)[0] for s in (step, -step))
    np.testing.assert_allclose((ahead - behind) / (2 * step), expected(y, f[:, 0])[1], rtol=1e-6, atol=1e-5)


def test_beyond_any_count_the_loss_of_counts_goes_on_as_its_tangent():
    """So far that f − 80 is f, too: another slope than the tangent's would be no dual point, its bound no bound."""
    f, y = np.array([81.0, 1e3, 1e19, 1e150])[:, None], np.array([0.0, 2.0, 2.0, 9.0])
    task = tasks.SmoothRegression("poisson")
    found = task.smooth(f, 1.0, task.encode(y))
    np.testing.assert_allclose(found.residual[:, 0], y - np.exp(80.0), rtol=1e-12)
    assert found.value == pytest.approx(np.sum(np.exp(80.0) * (f[:, 0] - 79.0)), rel=1e-12)


def test_however_far_a_target_is_hubers_slope_is_epsilon():
    r = np.array([-1e150, -1e19, -1e10, 1e10, 1e19])
    task = tasks.SmoothRegression("huber", epsilon=0.1)
    found = task.smooth(-r[:, None], 1.0, task.encode(np.zeros(5)))
    np.testing.assert_array_equal(found.residual[:, 0], 0.1 * np.sign(r))


def random_problem(seed, far=True):
    """Rows, a loss and its labels, and parameters of an estimator; ``far``: one row may be far from the others."""
    rng = np.random.default_rng(seed)
    loss = [*CLASSES, *NUMBERS][seed % (len(CLASSES) + len(NUMBERS))]
    n, d = int(rng.integers(20, 60)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X[: n // 4] = X[n // 4 : 2 * (n // 4)]  # equal rows
    if rng.random() < 0.2 and far:
        X[0] *= 1e3
    y = labels_of(loss, rng, 2 * np.sin(2 * X[:, 0]))
    y[:2] = 1.0, (-1.0 if loss != "poisson" else 0.0)
    weights = np.ones(n) if rng.random() < 0.5 else 10.0 ** rng.uniform(-2, 2, n)
    kernel = str(rng.choice(["rbf", "linear", "poly"]))
    params = {"kernel": kernel, "C": float(10.0 ** rng.uniform(-2, 3)), "gamma": float(10.0 ** rng.uniform(-1, 0.5))}
    params |= {"degree": 2, "coef0": 1.0, "loss": loss, "intercept": str(rng.choice(["regularized", "free", "none"]))}
    if loss not in CLASSES:
        params["epsilon"] = 0.5
    if kernel == "poly" or np.abs(X).max() > 100:
        params["gamma"] = 0.1
    return X, y, weights, params


def estimator_of(params, **others):
    return (SVC if params["loss"] in CLASSES else SVR)(random_state=0, n_jobs=1, **params | others)


def kernel_of(params, X, Z):
    if params["kernel"] == "rbf":
        return np.exp(-params["gamma"] * ((X[:, None] - Z) ** 2).sum(axis=2))
    return X @ Z.T if params["kernel"] == "linear" else (params["gamma"] * X @ Z.T + 1.0) ** 2


def reference_of(params, X, y, weights, basis=None):
    """The least objective, by the slow Newton method of the tests."""
    row_C, is_centred = params["C"] * weights, params["intercept"] == "regularized"
    if params["loss"] == "poisson":  # exp(f + c) − y (f + c), c the logarithm of the mean
        mean = np.average(y, weights=weights) if params["intercept"] != "none" else 1.0
        y, row_C = y / mean, row_C * mean
    elif params["loss"] in NUMBERS and is_centred:
        y = y - np.average(y, weights=weights)
    if basis is None:
        features = naive.features_of(kernel_of(params, X, X))
    else:
        root = np.linalg.cholesky(kernel_of(params, basis, basis))
        features = np.linalg.solve(root, kernel_of(params, basis, X)).T
    return naive.smooth_optimum(params["loss"], features, y, row_C, params["intercept"])


@pytest.mark.parametrize("seed", range(60))
def test_the_estimator_of_all_rows_has_the_objective_of_a_slow_newton_method(seed):
    X, y, weights, params = random_problem(seed, far=False)
    model = estimator_of(params).fit(X, y, sample_weight=weights)
    least = reference_of(params, X, y, weights)
    assert model.solver_.max_basis is None
    assert model.objective_ == pytest.approx(least, rel=1e-6)
    assert model.lower_bound_ == pytest.approx(least, rel=1e-5)
    assert model.status_ == "converged"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_bound_is_above_the_least_objective():
    """Of the estimator of all rows, of one within its vectors, and of certificates of either and of learned vectors."""
    wrong = []
    for seed in range(1000, 1000 + N_RANDOM * (len(CLASSES) + len(NUMBERS))):
        X, y, weights, params = random_problem(seed)
        least = reference_of(params, X, y, weights)
        few = X[:8]
        solver = [LowRank(None), LowRank(8, few), Refine(4, epochs=3)][seed // 2 % 3]
        model = estimator_of(params, solver=solver).fit(X, y, sample_weight=weights)
        most = least + 1e-8 * abs(least)  # features of a far row have that error
        if model.lower_bound_ is not None and not model.lower_bound_ <= most:
            wrong.append((seed, "lower_bound_", model.lower_bound_, least))
        sizes = np.linalg.eigvalsh(kernel_of(params, few, few))
        if isinstance(solver, LowRank) and solver.max_basis == 8 and sizes[0] > 1e-8 * sizes[-1]:  # all are kept
            of_few = reference_of(params, X, y, weights, few)
            if not model.counters_["bound_in_basis"] <= of_few + 1e-9 * abs(of_few):
                wrong.append((seed, "bound_in_basis", model.counters_["bound_in_basis"], of_few))
        sure = model.certificate(X, y, sample_weight=weights)
        if not sure.lower_bound <= most:
            wrong.append((seed, "certificate", sure.lower_bound, least))
        if not sure.objective >= least - 1e-8 * abs(least):
            wrong.append((seed, "objective", sure.objective, least))
    assert wrong == []


def wrong_bounds(seed, params, solvers, X, y, weights, least):
    """What is said to be below the least objective and is above it, by solver; of the first one what is not it."""
    wrong = []
    for at, solver in enumerate(solvers):
        model = estimator_of(params, solver=solver).fit(X, y, sample_weight=weights)
        sure, most = model.certificate(X, y, sample_weight=weights), least + 1e-9 * least
        for name, bound in (("lower_bound_", model.lower_bound_), ("certificate", sure.lower_bound)):
            if bound is not None and not bound <= most:
                wrong.append((seed, name, str(model.solver_), bound, least))
        if not (1 - 1e-8) * least <= model.objective_ <= (np.inf if at else (1 + 1e-6) * least):
            wrong.append((seed, "objective_", str(model.solver_), model.objective_, least))
    return wrong


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_bound_of_quantiles_is_above_the_least_objective():
    """Of the exact SVM and of Newton's method, whose objective it is, and of few vectors."""
    wrong = []
    for seed in range(N_RANDOM):
        X, _, weights, params = random_problem(seed, far=False)
        rng = np.random.default_rng(seed)
        y, q = np.sin(2 * X[:, 0]) + rng.normal(size=len(X)), rng.uniform(0.05, 0.95)
        params |= {"loss": "quantile", "quantile": q, "intercept": ["regularized", "none"][seed % 2], "tol": 1e-6}
        has_intercept = seed % 2 == 0
        centred = y - np.average(y, weights=weights) if has_intercept else y
        examples = [([i], naive.quantile_options(centred[i], q), weights[i]) for i in range(len(X))]
        least, _ = naive.optimum(kernel_of(params, X, X), examples, params["C"], has_intercept)
        solvers = [Exact(), LowRank(None)][seed // 2 % 2], [LowRank(8), Refine(4, epochs=3)][seed // 4 % 2]
        wrong += wrong_bounds(seed, params, solvers, X, y, weights, least)
    assert wrong == []


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_bound_of_several_classes_is_above_the_least_objective():
    wrong = []
    for seed in range(N_RANDOM):
        X, _, weights, params = random_problem(seed, far=False)
        rng = np.random.default_rng(seed)
        codes = np.where(rng.random(len(X)) < 0.6, np.digitize(X[:, 0], [-0.5, 0.5]), rng.integers(0, 3, len(X)))
        codes[:3] = 0, 1, 2
        params |= {"loss": "logistic", "intercept": ["regularized", "none"][seed % 2]}
        params.pop("epsilon", None)
        features = naive.features_of(kernel_of(params, X, X))
        least = naive.softmax_optimum(features, codes, params["C"] * weights, params["intercept"])
        solvers = LowRank(None), [LowRank(8), Refine(4, epochs=3)][seed // 2 % 2]
        wrong += wrong_bounds(seed, params, solvers, X, codes, weights, least)
    assert wrong == []


def two_moons(n, seed=0, noise=0.25):
    rng = np.random.default_rng(seed)
    t, y = rng.uniform(0, np.pi, n), rng.integers(0, 2, n)
    X = np.column_stack([np.cos(t) + y, np.where(y, 0.5 - np.sin(t), np.sin(t))])
    return X + noise * rng.normal(size=X.shape), np.where(y > 0, "yes", "no")


def test_a_certificate_of_few_vectors_is_near_the_truth():
    X, y = two_moons(300)
    few = SVC(loss="logistic", gamma=1.0, max_basis=8, random_state=0).fit(X, y)
    whole = SVC(loss="logistic", gamma=1.0).fit(X, y)
    sure = few.certificate(X, y)
    assert sure.objective == pytest.approx(few.objective_, rel=1e-6)
    assert sure.lower_bound <= whole.objective_
    assert sure.lower_bound > 0.999 * whole.objective_
    assert sure.gap < 0.05


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed", "function", "poly", "linear"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "huber"])
def test_a_certificate_where_kernel_values_have_no_factor(loss, kernel):
    """Of no inner product; or of rows far from 0, which rounding leaves indefinite."""
    rng = np.random.default_rng(0)
    X = 3.0 * rng.normal(size=(150, 3))
    y = (X[:, 0] + X[:, 1] ** 2 > 1) if loss in CLASSES else X[:, 0]
    rows = X + 1e7 if kernel in ("poly", "linear") else X
    values = np.tanh(2.0 * X @ X.T - 1.0)
    shape = {
        "sigmoid": {"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0},
        "precomputed": {"kernel": "precomputed"},
        "function": {"kernel": lambda one, other: np.tanh(2.0 * one @ other.T - 1.0)},
        "poly": {"kernel": "poly", "gamma": 1.0},
        "linear": {"kernel": "linear"},
    }[kernel]
    rows = values if kernel == "precomputed" else rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in ({}, {"solver": LowRank(20), "random_state": 0}):
            estimator = (SVC if loss in CLASSES else SVR)(loss=loss, **shape, **one).fit(rows, y)
            found = estimator.certificate(rows, y)
            assert np.isfinite(found.lower_bound)
            assert found.lower_bound <= found.objective


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_scikit_learns_logistic_regression_has_the_same_objective(fit_intercept):
    X, y = two_moons(200)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    C = 3.0
    peer = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-12, max_iter=10_000).fit(features, y)
    scores = peer.decision_function(features)
    least = 0.5 * np.sum(peer.coef_**2) + C * np.sum(np.logaddexp(0.0, -np.where(y == "yes", scores, -scores)))
    ours = SVC(loss="logistic", C=C, gamma=1.0, intercept="free" if fit_intercept else "none").fit(X, y)
    assert ours.objective_ == pytest.approx(least, rel=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(features), atol=1e-5)


def test_kernel_ridge_is_the_squared_loss_without_an_intercept():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=120)
    ours = SVR(loss="squared", C=5.0, gamma=0.7, intercept="none").fit(X, y)
    peer = KernelRidge(alpha=1 / 5.0, kernel="rbf", gamma=0.7).fit(X, y)
    Z = rng.uniform(-2, 2, size=(50, 2))
    np.testing.assert_allclose(ours.predict(Z), peer.predict(Z), atol=1e-6)


@pytest.mark.parametrize("metric", [False, True])
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_learned_vectors_come_near_the_estimator_of_all_rows(loss, metric):
    X, y = two_moons(500)
    if loss in NUMBERS:
        y = np.sin(2 * X[:, 0]) * X[:, 1]
        y = np.exp(y) if loss == "poisson" else y
    params = {"loss": loss, "C": 2.0, "gamma": "learn" if metric else 1.0}
    few = estimator_of(params, max_basis=12).fit(X, y)
    whole = estimator_of(params | {"gamma": 1.0}).fit(X, y)
    assert isinstance(few.solver_, Refine)
    assert few.solver_.learn_metric == metric
    assert few.n_basis_ <= 12
    assert few.counters_["bound_in_basis"] == pytest.approx(few.objective_, rel=1e-6)
    if metric:
        assert few.score(X, y) > whole.score(X, y) - 0.03
    else:
        assert whole.objective_ <= few.objective_ < 1.15 * whole.objective_


def test_many_threads_give_the_same_bits():
    X, y = two_moons(3000)
    one, many = (
        SVC(loss="logistic", gamma=1.0, max_basis=20, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 3)
    )
    np.testing.assert_array_equal(one.basis_vectors_, many.basis_vectors_)
    np.testing.assert_array_equal(one.basis_coef_, many.basis_coef_)


def test_probabilities_are_those_of_training():
    X, y = two_moons(300)
    clf = SVC(loss="logistic", gamma=1.0).fit(X, y)
    scores = clf.decision_function(X)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[clf.predict_proba(X).argmax(axis=1)])
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(clf.predict_proba(X)))
    assert hasattr(SVC(loss="logistic"), "predict_proba")
    assert not hasattr(SVC(), "predict_proba")
    # The mean of p is the share of the class, as a free intercept makes it.
    free = SVC(loss="logistic", gamma=1.0, intercept="free").fit(X, y)
    assert free.predict_proba(X)[:, 1].mean() == pytest.approx(np.mean(y == "yes"), abs=1e-6)


@pytest.mark.parametrize("size", [0.3, "out-of-fold"])
def test_sets_and_intervals_of_smooth_losses(size):
    X, y = two_moons(400)
    for labels in (y, np.where(X[:, 0] > 1.2, "third", y)):
        clf = SVC(loss="logistic", gamma=1.0, calibration_size=size, random_state=0).fit(X[:300], labels[:300])
        found = clf.predict_set(X[300:], alpha=0.2)
        right = found[np.arange(100), np.searchsorted(clf.classes_, labels[300:])]
        assert 0.65 < right.mean() <= 1.0
    counts = np.random.default_rng(0).poisson(np.exp(1 + X[:, 0]))
    for params in ({"loss": "poisson"}, {"loss": "quantile"}, {"loss": "quantile", "quantile": [0.1, 0.9]}):
        reg = SVR(gamma=1.0, calibration_size=size, random_state=0, **params).fit(X[:300], counts[:300])
        ends = reg.predict_interval(X[300:], alpha=0.2)
        assert 0.65 < np.mean((ends[:, 0] <= counts[300:]) & (counts[300:] <= ends[:, 1])) <= 1.0


def test_labels_have_a_logistic_loss_each():
    X, _ = two_moons(200)
    Y = np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.2, X.sum(axis=1) > 0]).astype(int)
    whole = SVC(loss="logistic", gamma=1.0).fit(X, Y)
    apart = [SVC(loss="logistic", gamma=1.0).fit(X, Y[:, j]) for j in range(3)]
    assert whole.objective_ == pytest.approx(sum(each.objective_ for each in apart), rel=1e-6)
    for j, each in enumerate(apart):
        np.testing.assert_allclose(whole.predict_proba(X)[:, j], each.predict_proba(X)[:, 1], atol=1e-5)
    few = SVC(loss="logistic", gamma=1.0, max_basis=10, random_state=0).fit(X, Y)
    assert few.score(X, Y) > 0.8


def blobs(n, k=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    angle = 2 * np.pi * codes / k
    X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.45 * rng.normal(size=(n, 2))
    return X, np.array(list("dbca"))[codes]


def test_several_classes_have_the_objective_of_scikit_learns_multinomial_regression():
    X, y = blobs(150)
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    values, vectors = np.linalg.eigh(K)
    features = vectors * np.sqrt(np.maximum(values, 0.0))
    peer = LogisticRegression(C=3.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(features, y)
    scores = peer.decision_function(features)
    own = scores[np.arange(150), np.searchsorted(peer.classes_, y)]
    least = 0.5 * np.sum(peer.coef_**2) + 3.0 * np.sum(np.log(np.exp(scores).sum(axis=1)) - own)
    ours = SVC(loss="logistic", C=3.0, gamma=1.0, intercept="none").fit(X, y)
    assert ours.objective_ == pytest.approx(least, rel=1e-6)
    assert ours.lower_bound_ == pytest.approx(least, rel=1e-5)
    assert ours.lower_bound_ <= least * (1 + 1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(features), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(X), ours.classes_[ours.predict_proba(X).argmax(axis=1)])
    sure = ours.certificate(X, y)
    assert least * (1 - 1e-6) <= sure.lower_bound <= least * (1 + 1e-9)


def test_the_softmax_at_random_scores():
    rng = np.random.default_rng(0)
    task, scores = tasks.Softmax(5), 4 * rng.normal(size=(300, 5))
    scores[0], scores[1] = [800, -800, 0, 0, 0], 0.0
    codes, weights = rng.integers(0, 5, 300), rng.uniform(0.5, 2, 300)
    examples, at = task.encode(codes, weights), np.arange(300)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    expected = -np.log(np.maximum(shares[at, codes], 1e-300))
    if codes[0] != 0:
        expected[0] = 800 - scores[0, codes[0]]
    found = task.smooth(scores, 1e-3, examples)
    assert found.loss == found.value == pytest.approx(weights @ expected, rel=1e-12)
    own = np.eye(5)[codes]
    np.testing.assert_allclose(found.residual, weights[:, None] * (own - shares), atol=1e-12)
    np.testing.assert_allclose(found.curvature, weights[:, None] * shares * (1 - shares), atol=1e-12)
    product = np.sum(found.residual * scores)
    assert found.dual[0] == pytest.approx(weights @ expected + product, rel=1e-9)
    augmented = task.augment(scores, np.zeros(0), examples)
    np.testing.assert_allclose(augmented.coef, own - shares, atol=1e-12)
    np.testing.assert_allclose(tasks.losses(augmented, scores, np.zeros(0), examples), expected, rtol=1e-10, atol=1e-12)
    direction, step = rng.normal(size=(300, 5)), 1e-6
    plain = np.zeros(0)
    values = [task.along((scores, plain), (direction, plain), k, examples)[0] for k in (-step, step)]
    slope = task.along((scores, plain), (direction, plain), 0.0, examples)[1]
    assert slope == pytest.approx((values[1] - values[0]) / (2 * step), rel=1e-6)


def test_the_squared_hinge_of_several_classes_tells_each_from_the_rest():
    X, y = blobs(150)
    whole = SVC(loss="squared_hinge", gamma=1.0).fit(X, y)
    apart = [SVC(loss="squared_hinge", gamma=1.0).fit(X, y == label) for label in whole.classes_]
    assert whole.objective_ == pytest.approx(sum(each.objective_ for each in apart), rel=1e-6)
    np.testing.assert_allclose(
        whole.decision_function(X), np.column_stack([each.decision_function(X) for each in apart]), atol=1e-5
    )
    assert whole.score(X, y) > 0.8
    assert not hasattr(whole, "predict_proba")
    asked = SVC(loss="squared_hinge", gamma=1.0, probability=True).fit(X, y)
    assert asked.predict_proba(X).shape == (150, 4)


@pytest.mark.parametrize("loss", CLASSES)
def test_learned_vectors_of_several_classes(loss):
    X, y = blobs(400)
    few = SVC(loss=loss, gamma=1.0, max_basis=12, random_state=0).fit(X, y)
    whole = SVC(loss=loss, gamma=1.0).fit(X, y)
    assert whole.objective_ <= few.objective_ < 1.15 * whole.objective_
    assert few.score(X, y) > whole.score(X, y) - 0.03
    with pytest.raises(ValueError, match="multi_class='ovo' goes with loss='hinge'"):
        SVC(loss=loss, multi_class="ovo").fit(X, y)


def test_compiled_gradients_are_those_that_python_makes():
    """Descent on losses that the core knows, and the same where it does not: `is_compiled` is False of own classes."""

    class OwnBinary(tasks.SmoothBinary):
        is_smooth = True

    class OwnSoftmax(tasks.Softmax):
        is_smooth = True

    X, _ = blobs(300)
    codes, weights = np.arange(300) % 3, 1.0 + np.arange(300) % 2
    X[:, 0] += codes
    for known, own, labels in (
        (tasks.SmoothBinary("squared_hinge"), OwnBinary("squared_hinge"), codes > 0),
        (tasks.Softmax(3), OwnSoftmax(3), codes),
    ):
        models, settings = [], (StepSettings(most_push=1e9), GradientSettings(thinned=0.0))
        for task in (known, own):
            given = {"precision": "float64", "random_state": 0, "settings": settings}
            problem = Problem(as_rows(X), task.encode(labels, weights), task, RBF(1.0), **given)
            models.append(Refine(6, epochs=6, batch_size=300, rate=0.01, finish=False).solve(problem).model)
        np.testing.assert_allclose(models[0].coef, models[1].coef, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(models[0].basis, models[1].basis, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_file_has_the_probabilities(n_classes, tmp_path):
    X, y = two_moons(200) if n_classes == 2 else blobs(200)
    clf = SVC(loss="logistic", gamma=1.0, max_basis=10, random_state=0).fit(X, y)
    clf.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict_proba(X), clf.predict_proba(X))
    np.testing.assert_allclose(
        load_predictor(tmp_path / "model.slim").predict_proba(X), clf.predict_proba(X), atol=1e-5
    )


@pytest.mark.parametrize("container", ["csr", "float32", "blocks"])
def test_other_containers_of_rows(container, tmp_path):
    from slimsvm.rows import Blocks

    X, y = two_moons(300)
    given = {"csr": sp.csr_array(X), "float32": X.astype(np.float32)}.get(container)
    if given is None:
        given = Blocks([X[:100], X[100:]])
    clf = SVC(loss="logistic", gamma=1.0).fit(given, y)
    expected = SVC(loss="logistic", gamma=1.0).fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), expected.decision_function(X), atol=1e-4)


@pytest.mark.parametrize(
    "solver", ["exact", "exact-cuts", "violated-cuts", "cpsp", "bsgd", "bsca", "lasvm", "cvm", "bvm"]
)
def test_other_solvers_say_which_can(solver):
    X, y = two_moons(60)
    with pytest.raises(ValueError, match=r"does not train the loss 'logistic'.*'refine'.*'low-rank'"):
        SVC(loss="logistic", solver=solver).fit(X, y)
    if solver not in ("lasvm", "cvm", "bvm"):
        with pytest.raises(ValueError, match="does not train the loss 'squared'"):
            SVR(loss="squared", solver=solver).fit(X, X[:, 0])


@pytest.mark.parametrize("solver", ["bsca", "lasvm"])
def test_chunks_are_refused_by_name(solver):
    X, y = two_moons(60)
    with pytest.raises(ValueError, match="does not train the loss 'logistic'"):
        SVC(loss="logistic", solver=solver).partial_fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC(loss="logistic", max_basis="auto"), "give max_basis a number"),
        (SVR(loss="squared", max_basis="auto"), "give max_basis a number"),
        (SVC(loss="logistic", solver=Compact(max_basis=5)), "Compact does not train the loss 'logistic'"),
        (SVC(loss="logistic", cost_matrix=[[0, 1], [2, 0]]), "cost_matrix goes with loss='hinge'"),
        (SVC(loss="logit"), "loss must be .*'logistic'"),
        (SVR(loss="absolute"), "loss must be .*'squared'"),
    ],
)
def test_what_cannot_be_is_named(estimator, message):
    X, y = two_moons(60)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y if isinstance(estimator, SVC) else X[:, 0])


def test_more_rows_than_all_can_be_vectors_have_a_warning():
    from slimsvm.estimators._shared.automatic import ChoiceSettings

    X, y = two_moons(300)
    clf = SVC(loss="logistic", gamma=1.0, random_state=0)
    clf._settings = (ChoiceSettings(most_spanned=200, few_spanned=50),)
    with pytest.warns(ConvergenceWarning, match="only up to 200 rows, found 300: 50 random rows"):
        clf.fit(X, y)
    assert clf.n_basis_ <= 50
    assert clf.score(X, y) > 0.85


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("loss", [*CLASSES, *NUMBERS])
def test_a_linear_model_of_many_rows_is_the_best_one(loss, container):
    """Also where a column has so few values that drawn rows have none of them."""
    from slimsvm.estimators._shared.automatic import ChoiceSettings

    X, y = blobs(300)
    X = np.column_stack([X, np.arange(300) == 7, np.arange(300) == 8, np.zeros(300)])
    y = y if loss in CLASSES else X[:, 0] + 2.0 * X[:, 2] + 5.0
    estimator = estimator_of({"loss": loss, "kernel": "linear", "C": 100.0})
    least = estimator.fit(container(X), y).objective_
    estimator._settings = (ChoiceSettings(most_spanned=200, few_spanned=50),)
    few = estimator.fit(container(X), y)
    assert few.solver_.max_basis == 5
    assert few.objective_ == pytest.approx(least, rel=1e-5)
    assert few.coef_.shape == (4 if loss in CLASSES else 1, 5)


def test_a_time_limit_and_a_clone():
    X, y = two_moons(1000)
    clf = SVC(loss="logistic", max_basis=50, max_seconds=0.05, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    assert clf.predict_proba(X).shape == (1000, 2)
    assert clone(clf).get_params()["loss"] == "logistic"


def test_columns_that_do_not_vary_and_rows_of_one_class():
    X, y = two_moons(50)
    clf = SVC(loss="logistic").fit(np.column_stack([X, np.ones(50)]), y)
    assert clf.score(np.column_stack([X, np.ones(50)]), y) > 0.7
    with pytest.raises(ValueError, match="at least two classes"):
        SVC(loss="logistic").fit(X, np.zeros(50))
    flat = SVR(loss="squared").fit(np.ones((20, 1)), np.arange(20.0))
    assert flat.predict([[1.0]])[0] == pytest.approx(9.5)


def test_the_weight_of_the_norm_is_that_of_the_problem():
    """`LowRank` and `ExactCuts` agree on what is minimised: the objective of a model from elsewhere is the same."""
    X, y = two_moons(80)
    task = tasks.SmoothBinary()
    problem = Problem(as_rows(X), task.encode(y == "yes"), task, RBF(1.0), C=2.0)
    fit = LowRank(None).solve(problem)
    from slimsvm.parts.run import float64_objective

    assert fit.objective == pytest.approx(float64_objective(problem, fit.model), rel=1e-9)
    for other in (ExactCuts(), CPSP()):
        with pytest.raises(ValueError, match="does not train"):
            other.solve(problem)
