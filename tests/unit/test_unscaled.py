"""Data that nobody scaled: the exact SVM converges where steps on pairs of rows take millions, and obeys limits."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from slimsvm import LASVM, SVC, SVR, Exact, OneClassSVM
from slimsvm.datasets import checkerboard
from slimsvm.kernels import KernelRows, Linear
from slimsvm.parts.dual_ascent.dual import Dual
from slimsvm.parts.dual_ascent.interior_point import DenseNewton, InteriorPoint, LowRankNewton
from slimsvm.rows import as_rows

CANCER = load_breast_cancer(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True, scaled=False)


def gallery(seed):
    """Rows of scikit-learn's example of support vector regression."""
    rng = np.random.RandomState(seed)
    X = np.sort(5 * rng.rand(40, 1), axis=0)
    y = np.sin(X).ravel()
    y[::5] += 3 * (0.5 - rng.rand(8))
    return X, y


def check_converged(estimator):
    """The fit says so without a warning, and its two sides agree."""
    assert estimator.status_ == "converged"
    assert estimator.objective_ - estimator.lower_bound_ <= 1e-3 * abs(estimator.objective_)


CASES = {
    "linear, C=10": (SVC(kernel="linear", C=10), CANCER),
    "linear, C=100": (SVC(kernel="linear", C=100), CANCER),
    "linear, C=1000": (SVC(kernel="linear", C=1000), CANCER),
    "linear, intercept in the norm": (SVC(kernel="linear", C=100, solver="exact", intercept="regularized"), CANCER),
    "linear, no intercept": (SVC(kernel="linear", C=100, solver="exact", intercept="none"), CANCER),
    "degree 1": (SVC(kernel="poly", degree=1, gamma=1, C=100), CANCER),
    "degree 2": (SVC(kernel="poly", degree=2, gamma="auto", coef0=1, C=0.1), CANCER),
    "balanced classes": (SVC(kernel="linear", C=100, class_weight="balanced"), CANCER),
    "CSR": (SVC(kernel="linear", C=100), (sp.csr_array(CANCER[0]), CANCER[1])),
    "equal rows": (SVC(kernel="linear", C=100), (np.repeat(CANCER[0][::4], 3, axis=0), np.repeat(CANCER[1][::4], 3))),
    "precomputed": (SVC(kernel="precomputed", C=100), (CANCER[0] @ CANCER[0].T, CANCER[1])),
    "rbf of tiny gamma": (SVC(gamma=1e-9, C=1e6), CANCER),
    "pairs of classes": (SVC(kernel="linear", C=1000), WINE),
    "pairs of classes, degree 2": (SVC(kernel="poly", degree=2, gamma="auto", coef0=1), WINE),
    "regression": (SVR(kernel="linear", C=1000), DIABETES),
    "regression, degree 2": (SVR(kernel="poly", degree=2, gamma="auto", C=0.1), DIABETES),
    "regression without a tube": (SVR(kernel="linear", C=100, epsilon=0.0), DIABETES),
    "one class": (OneClassSVM(kernel="poly", degree=2, gamma=1, nu=0.1), WINE[:1]),
}


@pytest.mark.parametrize("case", CASES)
def test_unscaled_rows_converge(case):
    estimator, data = CASES[case]
    check_converged(estimator.fit(*data))


@pytest.mark.parametrize("seed", range(4))
def test_a_cubic_regression_of_few_rows_converges(seed):
    check_converged(SVR(kernel="poly", C=100, gamma="auto", degree=3, epsilon=0.1, coef0=1).fit(*gallery(seed)))


def many_rows(n, n_classes=2):
    """Features of scales 1 to 10⁵ that matter alike, and a target, or classes, of their sum."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n, 6))
    y = Z.sum(axis=1) + 0.3 * rng.normal(size=n)
    return Z * 10.0 ** np.arange(6), y if n_classes == 0 else np.digitize(y, [[0.0], [-1.0, 1.0]][n_classes - 2])


MANY = {
    "two classes": (SVC(kernel="linear"), 5000, 2, 0.95),
    "few enough to keep all kernel values": (SVC(kernel="linear"), 2500, 2, 0.95),
    "pairs of classes": (SVC(kernel="linear"), 4500, 3, 0.92),
    "regression": (SVR(kernel="linear"), 5000, 0, 0.98),
    "no intercept": (SVC(kernel="linear", solver="exact", intercept="none"), 5000, 2, 0.95),
    "intercept in the norm": (SVC(kernel="linear", solver="exact", intercept="regularized"), 5000, 2, 0.95),
}


@pytest.mark.parametrize("case", MANY)
def test_many_unscaled_rows_converge(case):
    """In float32 features of a hundred-thousandth of the largest scale were lost, and steps on pairs never ended."""
    estimator, n, n_classes, least = MANY[case]
    X, y = many_rows(n, n_classes)
    clf = estimator.fit(X, y)
    check_converged(clf)
    assert clf.model_.dtype == "float64"
    assert clf.score(X, y) > least


@pytest.mark.parametrize(("balanced", "offset"), [(1, 0.0), (0, 0.0), (0, 1.0)])
def test_the_factor_of_many_rows_stands_for_all_kernel_values(balanced, offset):
    X, y = many_rows(400)
    rows = KernelRows(Linear(), as_rows(X / 1e3), dtype=np.float64)
    dual = Dual(target=2.0 * y - 1, lo=y - 1.0, hi=y * 1.0, epsilon=0.0, balanced=balanced, offset=offset)
    dense, factor = DenseNewton(rows.block(rows.points(np.arange(400))), dual), LowRankNewton(rows, dual, 1e9)
    assert not factor.has_rank(5)
    assert not factor.has_rank(9)  # not looked at again before the rank has doubled
    assert factor.has_rank(10)
    assert dense.has_rank(10)
    rng = np.random.default_rng(1)
    v, theta = rng.normal(size=400), rng.uniform(1e-6, 1e-5, 400) * (rng.random(400) < 0.9)
    v -= balanced * v.mean()
    np.testing.assert_allclose(factor.times(v), dense.times(v), rtol=1e-9, atol=1e-9 * np.abs(dense.times(v)).max())
    apart = factor.scores(v) - dense.scores(v)
    apart -= balanced * apart.mean()  # where K is centred they may differ by a constant
    assert np.abs(apart).max() < 1e-9 * np.abs(dense.scores(v)).max()
    for few in (theta, np.where(np.arange(400) < 20, theta, 0.0)):
        expected = dense.solver(few)(v)
        np.testing.assert_allclose(factor.solver(few)(v), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_a_factor_that_memory_has_no_room_for_is_none():
    X, y = many_rows(400)
    rows = KernelRows(Linear(), as_rows(X), dtype=np.float64)
    dual = Dual(target=2.0 * y - 1, lo=y - 1.0, hi=y * 1.0, epsilon=0.0)
    assert not LowRankNewton(rows, dual, 5 * 400 * 24).has_rank(10)
    assert LowRankNewton(rows, dual, 6 * 400 * 24).has_rank(10)


@pytest.mark.parametrize("C", [10, 100, 1000])
def test_rows_held_out_are_told_apart(C):
    X, X_test, y, y_test = train_test_split(*CANCER, random_state=0)
    assert SVC(kernel="linear", C=C).fit(X, y).score(X_test, y_test) >= 0.93


def test_coefficients_are_at_their_bounds_or_between_and_the_same_for_any_number_of_threads():
    models = [SVC(kernel="linear", C=100, n_jobs=n_jobs).fit(*CANCER) for n_jobs in (1, 2)]
    size = np.abs(models[0].basis_coef_[:, 0])
    assert 0 < np.count_nonzero(size < 100) <= 31  # 30 features and the intercept
    assert size.max() == 100
    assert models[0].basis_coef_.sum() == pytest.approx(0, abs=1e-8)
    np.testing.assert_array_equal(models[0].basis_coef_, models[1].basis_coef_)
    assert models[0].intercept_ == models[1].intercept_


def test_another_C_goes_on_from_there():
    model = SVC(kernel="linear", C=10, warm_start=True).fit(*CANCER)
    warm = model.set_params(C=100).fit(*CANCER).objective_
    assert warm == pytest.approx(SVC(kernel="linear", C=100).fit(*CANCER).objective_, rel=1e-4)


@pytest.mark.parametrize("solver", ["exact", Exact(50)], ids=["whole", "small sets"])
def test_a_limit_is_obeyed_and_leaves_a_model_that_tells_the_classes_apart(solver):
    few = SVC(kernel="linear", C=1000, solver=solver, intercept="free", max_iter=1)
    with pytest.warns(ConvergenceWarning, match="stopped at the iteration limit after 1 iterations"):
        few.fit(*CANCER)
    assert few.status_ == "iteration limit"
    assert few.n_iter_ == 1
    assert few.score(*CANCER) > 0.8
    assert few.lower_bound_ < SVC(kernel="linear", C=1000, max_iter=10**8).fit(*CANCER).lower_bound_


def test_a_limit_is_that_of_each_pair_of_classes():
    few = SVC(kernel="linear", C=1000, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="iteration limit for 3 of 3 pairs of classes"):
        few.fit(*WINE)
    assert (few.basis_coef_ != 0).any(axis=0).all()
    assert few.score(*WINE) > 0.7
    assert few.lower_bound_ <= few.objective_


SCALES = re.escape("widths of the features (largest minus smallest value) range from ")


@pytest.mark.parametrize(
    ("estimator", "data", "widths"),
    [
        (SVC(kernel="linear", C=100, max_iter=1), CANCER, "0.0289 to 4.07e+03"),
        (SVC(kernel="linear", C=100, max_iter=1), (sp.csr_array(CANCER[0]), CANCER[1]), "0.0298 to 4.25e+03"),
        (SVC(kernel="linear", C=100, max_iter=1), WINE, "0.53 to 1.4e+03"),
        (SVR(kernel="linear", C=1000, max_iter=1), DIABETES, "1 to 204"),
        (OneClassSVM(gamma=1e-6, solver=Exact(20), max_iter=1), WINE[:1], "0.53 to 1.4e+03"),
        (SVC(solver="exact-cuts", kernel="linear", C=100, max_iter=2), CANCER, "0.0289 to 4.07e+03"),
        (SVC(solver=LASVM(), kernel="linear", C=100, max_iter=2), CANCER, "0.0289 to 4.07e+03"),
    ],
    ids=["two classes", "sparse", "pairs", "regression", "one class", "cuts", "online"],
)
def test_the_warning_names_the_range_of_the_features(estimator, data, widths):
    with pytest.warns(ConvergenceWarning, match=SCALES + re.escape(f"{widths}: scale them")):
        estimator.fit(*data)


def test_the_warning_says_nothing_of_scaled_features_and_of_kernel_values():
    X, y = checkerboard(300, random_state=0)
    for estimator, data in (
        (SVC(C=1e4, gamma=10.0, max_iter=1, tol=1e-9, solver=Exact(20)), (X, y)),
        (SVC(kernel="precomputed", C=100, max_iter=1), (CANCER[0] @ CANCER[0].T, CANCER[1])),
    ):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", ConvergenceWarning)
            estimator.fit(*data)
        assert "stopped at the iteration limit" in str(warned[-1].message)
        assert "scale them" not in str(warned[-1].message)


@pytest.mark.parametrize("intercept", ["regularized", "free", "none"])
@pytest.mark.parametrize("solver", [Exact(), LASVM()], ids=["exact", "lasvm"])
def test_any_C_is_taken(solver, intercept):
    X, y = checkerboard(150, random_state=0)
    y = np.where(np.random.default_rng(0).random(150) < 0.1, -y, y)
    clf = SVC(solver=solver, C=1e10, gamma=10.0, intercept=intercept, random_state=0).fit(X, y)
    assert clf.status_ == "converged"
    assert clf.gap_ <= (0.01 if isinstance(solver, LASVM) else 1e-3)
    assert np.isfinite(clf.decision_function(X)).all()
    assert 0 < clf.lower_bound_ <= clf.objective_ < np.inf


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_variables_of_the_interior_point_keep_their_sum_and_end_on_their_bounds(epsilon):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1, 30, 1000]
    y = X[:, 0] + X[:, 2] / 1000 + 0.3 * rng.normal(size=60)
    lo, hi = np.full(60, -2.0), np.full(60, 2.0)
    if epsilon == 0:  # classes
        y = np.where(y > -0.5, 1.0, -1.0)
        lo, hi = np.where(y > 0, 0.0, lo), np.where(y > 0, hi, 0.0)
    K, dual = X @ X.T / 1000, Dual(target=y, lo=lo, hi=hi, epsilon=epsilon)
    point = InteriorPoint(DenseNewton(K, dual), dual)
    while point.gap > 1e-5:
        assert point.step() > 0
    assert abs(point.v.sum()) < 1e-9
    found = point.on_bounds()
    assert abs(found.v.sum()) < 1e-9
    assert found.violation < 2e-3
