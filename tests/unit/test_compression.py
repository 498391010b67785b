import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import NotFittedError

import slimsvm
from kernel_cases import with_metric
from slimsvm import SVC, SVR, KernelExpansion, compress
from slimsvm.bases import distance as distance_of_models
from slimsvm.bases.distance import Distance, DistanceSettings, descend
from slimsvm.bases.preimage import TrainingRows
from slimsvm.bases.reduced_set import ReducedSettings, greedy, own_vectors, reduce_model
from slimsvm.kernels import (
    RBF,
    CallableKernel,
    EvalCounter,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)  # fmt: skip

KERNELS = {
    **with_metric(0.3, (0.3, 0.1, 0.5, 0.2, 0.4)),
    "poly": Polynomial(3, 0.5, 1.0),
    "linear": Linear(),
    "sigmoid": Sigmoid(0.3, 0.1),
}


def expansion(kernel, n=40, d=5, m=2, sparse=False, seed=0, dtype="float64"):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(n, d))
    return KernelExpansion(
        csr_array(basis) if sparse else basis, rng.normal(size=(n, m)), rng.normal(size=m), np.zeros(0), kernel, dtype
    )


@pytest.fixture(scope="module")
def moons():
    return make_moons(600, noise=0.2, random_state=0)


# -- the distance and its gradient ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("with_rows", [False, True], ids=["norm", "rows"])
@pytest.mark.parametrize("name", KERNELS)
def test_gradient_is_that_of_the_distance(name, with_rows, sparse):
    if name == "sigmoid" and not with_rows:
        return
    model, rng = expansion(KERNELS[name], sparse=sparse), np.random.default_rng(1)
    rows = rng.normal(size=(30, 5))
    distance = Distance(model, (csr_array(rows) if sparse else rows) if with_rows else None, 1, EvalCounter())
    basis = rng.normal(size=(3, 5))
    gradient = distance.at(basis)[1]
    numerical = np.zeros_like(basis)
    for at in np.ndindex(basis.shape):
        step = np.zeros_like(basis)
        step[at] = 1e-5
        ahead, behind = (distance.at(basis + s * step)[0] for s in (1, -1))
        numerical[at] = (ahead - behind) / 2e-5
    np.testing.assert_allclose(gradient, numerical, atol=1e-6 * np.abs(numerical).max())


def test_distance_and_coefficients_are_those_of_dense_algebra():
    model, rng = expansion(RBF(0.3)), np.random.default_rng(1)
    basis, rows = rng.normal(size=(4, 5)), rng.normal(size=(30, 5))

    def k(a, b):
        return np.exp(-0.3 * ((a[:, None] - b[None]) ** 2).sum(axis=2))

    distance = Distance(model, None, 1, EvalCounter())
    coef, value = distance.coefficients(basis), distance.at(basis)[0]
    expected = np.linalg.solve(k(basis, basis), k(basis, model.basis) @ model.coef)
    np.testing.assert_allclose(coef, expected, rtol=1e-9)
    together, both = np.vstack([model.basis, basis]), np.vstack([model.coef, -coef])
    assert value == pytest.approx(np.sum(both * (k(together, together) @ both)), rel=1e-9)
    assert distance.parts(basis, coef) == (0.0, pytest.approx(np.sqrt(value), rel=1e-9))
    assert distance.norm_squared == pytest.approx(np.sum(model.coef * (k(model.basis, model.basis) @ model.coef)))

    distance = Distance(model, rows, 1, EvalCounter())
    coef, value = distance.coefficients(basis), distance.at(basis)[0]
    error, residual = distance.parts(basis, coef)
    scores = k(rows, model.basis) @ model.coef
    assert error == pytest.approx(np.sqrt(np.mean(np.sum((scores - k(rows, basis) @ coef) ** 2, axis=1))), rel=1e-9)
    assert value == pytest.approx(1e-5 * residual**2 + error**2, rel=1e-9)


def test_blocks_and_threads_leave_no_trace():
    model, rng = expansion(RBF(0.3), n=300), np.random.default_rng(1)
    basis, rows = rng.normal(size=(130, 5)), rng.normal(size=(500, 5))
    value, gradient, _ = Distance(model, rows, 1, EvalCounter()).at(basis)
    again = Distance(model, rows, 3, EvalCounter()).at(basis)
    assert again[0] == value
    np.testing.assert_array_equal(again[1], gradient)
    own = DistanceSettings(block_values=130 * 70, kept_bytes=0)
    cut = Distance(model, rows, 1, EvalCounter(), settings=own).at(basis)
    assert cut[0] == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(cut[1], gradient, atol=1e-6 * np.abs(gradient).max())


def test_single_precision_does_not_take_rounding_for_nearness():
    """Values between many near vectors are alike: without enough on the diagonal D falls far below zero."""
    X, y = make_moons(3000, noise=0.25, random_state=0)
    model = SVC(C=10.0, gamma=1.0).fit(X, y).model_
    start = model.basis[np.sort(np.random.default_rng(0).choice(model.n_basis, 100, replace=False))]
    rough, true = (Distance(model, None, 1, EvalCounter(), dtype) for dtype in (np.float32, np.float64))
    for basis in (start, descend(rough, start, 15)[0]):
        assert rough.at(basis)[0] > true.at(basis)[0] - 1e-3 * true.total


def test_curvatures_are_bounded_where_coefficients_cancel(monkeypatch):
    """Of orthogonal vectors they sum to 2 at most; coefficients of pairs of near vectors are many times as long."""
    found = []

    def ask(share, points, max_iter, enough):
        found.append(share(points)[2])
        return points, [0.0]

    monkeypatch.setattr(distance_of_models, "least_by_lbfgs", ask)
    model, rng = expansion(RBF(0.3)), np.random.default_rng(1)
    basis = np.repeat(rng.normal(size=(5, 5)), 2, axis=0) + 1e-3 * rng.normal(size=(10, 5))
    distance = Distance(model, None, 1, EvalCounter())
    descend(distance, basis, 5)
    assert np.abs(distance.coefficients(basis)).max() > 100
    assert found[0].shape == (10, 1)
    assert 0 < found[0].sum() <= 2


def test_kernel_evaluations_are_counted():
    model, counter = expansion(RBF(0.3), n=30), EvalCounter()
    distance = Distance(model, np.ones((7, 5)), 1, counter)
    distance.coefficients(np.ones((2, 5)) * [[0.0], [1.0]])
    assert counter.n == 2 * 2 + 2 * (30 + 7)


# -- the start --------------------------------------------------------------------------------------------------------


def test_greedy_finds_the_vectors_a_model_is_made_of():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3))
    coef = np.zeros((50, 1))
    coef[[3, 8, 20], 0] = 5.0, -4.0, 3.0
    found = greedy(KernelRows(RBF(10.0), rows, dtype=np.float64), coef, 3, TrainingRows(), rng)
    np.testing.assert_array_equal(found, rows[[3, 8, 20]])


@pytest.mark.parametrize("at_once", [1, 4])
def test_vectors_found_together_are_as_many(at_once):
    rng = np.random.default_rng(0)
    rows = KernelRows(RBF(0.5), rng.normal(size=(60, 3)), dtype=np.float64)
    assert greedy(rows, rng.normal(size=(60, 2)), 10, TrainingRows(), rng, at_once).shape == (10, 3)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_own_vectors_explain_more_than_others_of_a_model(is_sparse):
    """Those of a function that has few; of one that has many, nearer to it than random ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    rows = KernelRows(RBF(0.3), csr_array(X) if is_sparse else X, dtype=np.float64)
    few = np.zeros((60, 2))
    few[[7, 30, 41]] = [[1.0, -2.0], [3.0, 1.0], [-2.0, 2.0]]
    found = own_vectors(rows, few, 3, rng)
    np.testing.assert_array_equal(found.toarray() if is_sparse else found, X[[7, 30, 41]])
    coef = rng.normal(size=(60, 2))

    def left(basis):
        K, own = rows.block(rows.points_of(basis)), RBF(0.3).block(basis, basis)
        T = K.T @ coef
        return -np.sum(T * np.linalg.solve(own, T))

    X64 = X.astype(np.float64)
    random = [left(X64[rng.choice(60, 10, replace=False)]) for _ in range(20)]
    found = own_vectors(rows, coef, 10, rng)
    assert left((found.toarray() if is_sparse else found).astype(np.float64)) < min(random)


def test_greedy_stops_at_the_rank():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    found = greedy(KernelRows(Linear(), rows, dtype=np.float64), rows[:, :1], 10, TrainingRows(),
                   np.random.default_rng(0))  # fmt: skip
    assert len(found) == 2


# -- models -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_basis", [40, 1000])
def test_a_small_enough_model_comes_back(max_basis):
    model = expansion(RBF(0.3))
    smaller, report = compress(model, max_basis, return_report=True)
    np.testing.assert_array_equal(smaller.basis, model.basis)
    np.testing.assert_array_equal(smaller.coef, model.coef)
    assert (report.residual_norm, report.n_basis, report.score_error) == (0.0, 40, None)
    assert report.norm == pytest.approx(np.sqrt(model.norm_squared()))
    twice = KernelExpansion(
        np.vstack([model.basis, model.basis]), np.vstack([model.coef, model.coef]), model.intercept, model.plain,
        model.kernel, "float64",
    )  # fmt: skip
    halved = compress(twice, max_basis)
    assert halved.n_basis == 40
    np.testing.assert_allclose(halved.coef, 2 * model.coef)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", KERNELS)
def test_more_vectors_come_nearer(name, sparse):
    model = expansion(KERNELS[name], sparse=sparse)
    rows = csr_array(model.basis) if sparse else model.basis
    found = [compress(model, k, rows, random_state=0, return_report=True) for k in (2, 12)]
    assert [smaller.n_basis for smaller, _ in found] == [2, 12 if name != "linear" else 5]
    (_, few), (smaller, many) = found
    assert many.score_error < 0.9 * few.score_error
    there = smaller.scores(rows) - model.scores(rows)
    assert many.score_error == pytest.approx(np.sqrt(np.mean(np.sum(there**2, axis=1))), rel=1e-5, abs=1e-6)
    np.testing.assert_array_equal(smaller.intercept, model.intercept)


def test_descent_improves_on_the_start_and_the_seed_decides():
    model = expansion(RBF(0.3), n=100)
    start, moved = (
        reduce_model(model, 8, max_iter=steps, rng=np.random.default_rng(0), n_jobs=1) for steps in (0, 100)
    )
    assert moved.residual_norm < 0.97 * start.residual_norm
    objectives = [record["objective"] for record in moved.history]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] == pytest.approx((start.residual_norm / start.norm) ** 2, rel=1e-6)
    assert objectives[-1] == pytest.approx((moved.residual_norm / moved.norm) ** 2, rel=1e-6)
    again = compress(model, 8, random_state=0)
    np.testing.assert_array_equal(again.coef, compress(model, 8, random_state=0).coef)
    assert not np.array_equal(again.coef, compress(model, 8, random_state=1).coef)


def squared(A, B):
    return (A @ B.T + 1.0) ** 2


@pytest.mark.parametrize("kernel", [Laplacian(0.3), CallableKernel(squared)], ids=["laplacian", "callable"])
def test_kernels_without_a_derivative_keep_their_own_vectors(kernel):
    model = expansion(kernel)
    smaller, report = compress(model, 6, random_state=0, return_report=True)
    own = {row.tobytes() for row in model.basis}
    assert all(row.tobytes() in own for row in smaller.basis)
    assert smaller.n_basis == 6
    assert report.residual_norm < report.norm


def test_sparse_vectors_stay_sparse_where_they_are_not_moved():
    model = expansion(RBF(0.3), sparse=True)
    smaller = compress(model, 6, preimage="training-rows", max_iter=0, random_state=0)
    assert issparse(smaller.basis)
    assert smaller.n_basis == 6
    assert not issparse(compress(model, 6, random_state=0).basis)


def test_many_rows_move_the_vectors_by_a_part_and_count_whole(moons):
    model = SVC(C=10.0, gamma=2.0).fit(*moons).model_
    settings = ReducedSettings(most_rows=200)
    report = reduce_model(model, 8, moons[0], rng=np.random.default_rng(0), settings=settings)
    there = report.model.scores(moons[0]) - model.scores(moons[0])
    assert report.score_error == pytest.approx(np.sqrt(np.mean(there**2)), rel=1e-6)
    assert report.score_error < 0.5 * np.std(model.scores(moons[0]))


def test_a_function_of_zero_norm():
    model = expansion(RBF(0.3))
    nothing = KernelExpansion(model.basis, 0 * model.coef, model.intercept, model.plain, model.kernel, "float64")
    smaller = compress(nothing, 5)
    assert smaller.n_basis == 0
    np.testing.assert_array_equal(smaller.scores(model.basis[:2]), [model.intercept, model.intercept])


# -- estimators -------------------------------------------------------------------------------------------------------


def test_our_svc_becomes_a_smaller_one(moons, tmp_path):
    X, y = moons
    names = np.where(y > 0, "up", "down")
    large = SVC(C=10.0, gamma=2.0).fit(X, names)
    before = large.n_basis_, large.objective_
    small = compress(large, 12, X, random_state=0)
    assert (large.n_basis_, large.objective_) == before
    assert isinstance(small, SVC)
    assert small is not large
    assert small.n_basis_ == len(small.basis_vectors_) == 12
    assert np.mean(small.predict(X) == large.predict(X)) > 0.98
    report = small.compression_
    assert (report.n_basis_before, report.n_basis) == (large.n_basis_, 12)
    assert (small.status_, np.isnan(small.objective_), small.lower_bound_) == ("compressed", True, large.lower_bound_)
    assert not hasattr(small, "support_")
    assert small.n_kernel_evals_ > 0
    small.save(tmp_path / "small.slim")
    again = slimsvm.load(tmp_path / "small.slim")
    np.testing.assert_array_equal(again.decision_function(X), small.decision_function(X))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(small)).predict(X), small.predict(X))
    assert compress(small, 5, X, random_state=0).n_basis_ == 5
    small.fit(X, names)
    assert small.status_ == "converged"


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "sigmoid"])
def test_svc_of_sklearn_is_taken_over_exactly(moons, kernel, sparse):
    X, y = moons
    clf = svm.SVC(kernel=kernel, gamma="scale", coef0=0.5).fit(csr_array(X) if sparse else X, y)
    whole = compress(clf, 10_000)
    assert isinstance(whole, SVC)
    np.testing.assert_allclose(whole.decision_function(X), clf.decision_function(X), atol=1e-9)
    np.testing.assert_array_equal(whole.predict(X), clf.predict(X))
    assert whole.compression_.residual_norm == 0


def test_small_models_of_sklearn_predict_alike(moons):
    X, y = moons
    clf = svm.SVC(C=10.0, gamma=2.0).fit(X, y)
    small = compress(clf, 10, X, random_state=0)
    assert small.n_basis_ == 10 < len(clf.support_)
    assert np.mean(small.predict(X) == clf.predict(X)) > 0.98
    reg = svm.SVR(C=10.0, gamma=2.0).fit(X, X[:, 0] ** 2)
    small = compress(reg, 15, X, random_state=0)
    assert isinstance(small, SVR)
    assert np.sqrt(np.mean((small.predict(X) - reg.predict(X)) ** 2)) < 0.1 * np.std(reg.predict(X))
    assert small.compression_.score_error == pytest.approx(
        np.sqrt(np.mean((small.predict(X) - reg.predict(X)) ** 2)), rel=1e-6
    )


@pytest.mark.parametrize("theirs", [svm.NuSVC(nu=0.3), svm.NuSVR(nu=0.4), svm.OneClassSVM(nu=0.2)], ids=str)
def test_other_estimators_of_sklearn_are_taken_over(theirs, moons, tmp_path):
    X, y = moons
    theirs = clone(theirs).fit(X, y)
    whole, small = compress(theirs, 10_000), compress(theirs, 20, X, random_state=0)
    assert type(whole).__name__ == type(theirs).__name__
    assert whole.get_params()["nu"] == theirs.nu
    name = "decision_function" if hasattr(theirs, "decision_function") else "predict"
    np.testing.assert_allclose(getattr(whole, name)(X), getattr(theirs, name)(X), atol=1e-9)
    np.testing.assert_array_equal(whole.predict(X).dtype, theirs.predict(X).dtype)
    assert small.n_basis_ == 20
    small.save(tmp_path / "small.slim")
    for read in (slimsvm.load, slimsvm.load_predictor):
        np.testing.assert_allclose(read(tmp_path / "small.slim").predict(X), small.predict(X))
    if hasattr(whole, "offset_"):
        assert whole.certificate(X).gap < 1e-3
    else:
        with pytest.raises(ValueError, match=r"does not keep the (C|epsilon) that nu"):
            small.certificate(X, y)
    clone(small).fit(X, y).certificate(X, y)


def test_pairwise_functions_of_sklearn_share_a_basis():
    X, y = load_digits(return_X_y=True)
    X, names = X / 16.0, np.array([f"digit {label}" for label in y])
    clf = svm.SVC(gamma=0.1, C=10.0, decision_function_shape="ovo").fit(X[:1000], names[:1000])
    whole = compress(clf, 10_000)
    assert isinstance(whole, SVC)
    np.testing.assert_allclose(whole.decision_function(X), clf.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(whole.predict(X), clf.predict(X))
    ovr = svm.SVC(gamma=0.1, C=10.0).fit(X[:300], names[:300])
    np.testing.assert_allclose(compress(ovr, 10_000).decision_function(X), ovr.decision_function(X), atol=1e-8)
    small = compress(clf, 60, X[:1000], max_iter=30, random_state=0)
    assert small.n_basis_ == 60
    assert small.basis_coef_.shape == (60, 45)
    assert np.mean(small.predict(X[1000:]) == clf.predict(X[1000:])) > 0.95
    assert small.score(X[1000:], names[1000:]) > clf.score(X[1000:], names[1000:]) - 0.03


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_a_small_model_of_sklearn_is_like_one_of_ours(shape, tmp_path):
    """Ties are broken the same way, and it can be saved, loaded and trained again."""
    rng = np.random.default_rng(0)
    X, y, grid = rng.normal(size=(80, 2)), rng.integers(5, size=80), rng.normal(size=(2000, 2))
    large = svm.SVC(gamma=0.5, decision_function_shape=shape, break_ties=shape == "ovr").fit(X, y)
    by_votes = svm.SVC(gamma=0.5).fit(X, y).predict(grid)
    assert np.any(large.predict(grid) != by_votes) == (shape == "ovr")
    np.testing.assert_array_equal(compress(large, 1000).predict(grid), large.predict(grid))
    small = compress(large, 20, random_state=0)
    small.save(tmp_path / "small.slim")
    loaded = slimsvm.load(tmp_path / "small.slim")
    np.testing.assert_array_equal(loaded.decision_function(grid), small.decision_function(grid))
    np.testing.assert_array_equal(loaded.predict(grid), small.predict(grid))
    certificate = small.certificate(X, y)
    again = clone(small).fit(X, y)
    assert certificate.lower_bound <= again.objective_ <= certificate.objective
    differs = np.abs(again.decision_function(grid) - large.decision_function(grid)).max(axis=1) > 0.05
    # Where a pair's score is near 0, rounding may give its vote to the other class.
    assert differs.mean() <= (0.001 if shape == "ovr" else 0.0)


def test_several_classes_of_ours():
    X, y = load_digits(return_X_y=True)
    clf = SVC(gamma=0.1, C=10.0, multi_class="crammer-singer").fit(X[:500] / 16.0, y[:500])
    small = compress(clf, 50, X[:500] / 16.0, max_iter=30, random_state=0)
    assert small.basis_coef_.shape == (50, 10)
    assert np.mean(small.predict(X[500:] / 16.0) == clf.predict(X[500:] / 16.0)) > 0.95


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(max_basis=0), "max_basis must be a positive integer, found 0"),
        (dict(max_basis=True), "max_basis must be a positive integer, found True"),
        (dict(max_iter=-1), "max_iter must be an integer >= 0 or 'auto', found -1"),
        (dict(max_iter="ten"), "max_iter must be an integer >= 0 or 'auto', found 'ten'"),
        (dict(preimage="nearest"), "preimage must be one of 'fixed-point', 'training-rows', 'gradient'"),
        (dict(X=np.ones((3, 4))), "X has 4 features, the model has 5"),
        (dict(X=[[0.0, 0.0, np.nan, 0.0, 0.0]]), "X contains NaN at row 0, column 2"),
    ],
    ids=["zero", "boolean", "negative", "word", "preimage", "features", "nan"],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        compress(expansion(RBF(0.3)), **{"max_basis": 3, **options})


@pytest.mark.parametrize(
    ("kernel", "options", "message"),
    [
        (Precomputed(), {}, "a model of a precomputed kernel cannot be compressed"),
        (Sigmoid(0.3), {}, "the sigmoid kernel is not an inner product.* give rows X"),
        (Laplacian(0.3), dict(max_iter=5), "max_iter=5: vectors are moved along the kernel's derivative"),
        (Linear(), dict(preimage="fixed-point"), "preimage='fixed-point' is for the RBF kernel, found Linear"),
    ],
    ids=["precomputed", "sigmoid", "laplacian", "fixed-point"],
)
def test_kernels_that_do_not_go_with_it(kernel, options, message):
    with pytest.raises(ValueError, match=message):
        compress(expansion(kernel, d=1 if isinstance(kernel, Precomputed) else 5), 3, **options)


def test_too_many_values_to_move():
    few = {"rng": np.random.default_rng(0), "settings": ReducedSettings(most_values=14)}
    with pytest.raises(ValueError, match="moving 3 vectors of 5 features is too much"):
        reduce_model(expansion(RBF(0.3)), 3, **few)
    assert reduce_model(expansion(RBF(0.3)), 3, preimage="training-rows", max_iter=0, **few).model.n_basis == 3


def test_models_that_are_none():
    with pytest.raises(TypeError, match=r"model must be a KernelExpansion.*found LinearSVC"):
        compress(svm.LinearSVC(), 3)
    for model in (svm.SVC(), SVC()):
        with pytest.raises(NotFittedError):
            compress(model, 3)
    with pytest.raises(ValueError, match="are accepted, found kernel='precomputed'"):
        compress(svm.SVC(kernel="precomputed").fit(np.eye(4), [0, 1, 0, 1]), 3)
