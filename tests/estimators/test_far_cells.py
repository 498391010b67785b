"""Cells far from all others: models of learned vectors and learned scales are as good as without them."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import CPSP, SVC, SVR, GridSearchSVC, LearnedAxes, LowRank, OrdinalSVC, Refine
from slimsvm.kernels import RBF, KernelRows

N = 400
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
PRODUCT = X[:, 0] * X[:, 1]
BOARD, LEVELS = np.where(PRODUCT > 0, 1, -1), np.digitize(PRODUCT, [-0.4, 0.4])
LABEL_SETS = np.column_stack([PRODUCT > 0, X[:, 2] > 0]).astype(int)
REFINE = Refine(20, epochs=150)
LEAST = 0.03


def cell(value):
    rows = X.copy()
    rows[7, 2] = value
    return rows


def opposite():
    rows = cell(1e6)
    rows[9, 2] = -1e6
    return rows


def whole_row():
    rows = X.copy()
    rows[7] = [1e7, -1e7, 1e7]
    return rows


def cluster():
    rows = X.copy()
    rows[100:105] += 1e6
    return rows


def scattered():
    """More far rows than vectors, no two of them near to each other."""
    rows, local = X.copy(), np.random.default_rng(1)
    rows[local.choice(N, 24, replace=False), 2] = 1e6 * local.normal(size=24)
    return rows


def score(estimator, rows, y, seen=X):
    return estimator.fit(rows, y).score(seen, y)


def is_borne(estimator, rows, y, seen=X):
    """Accuracy is that of the fit without the far cells, less at most LEAST."""
    clean = score(estimator, X if seen is X else seen, y, seen)
    assert clean > 0.8
    return score(estimator, rows, y, seen) > clean - LEAST


FAR = {
    "1e5": cell(1e5),
    "1e10": cell(-1e10),
    "1e30": cell(1e30),
    "opposite signs": opposite(),
    "a whole row": whole_row(),
    "a cluster": cluster(),
    "scattered": scattered(),
    "float32": cell(1e8).astype(np.float32),
    "CSR": sp.csr_array(cell(1e6)),
    "Fortran's order": np.asfortranarray(cell(1e6)),
}


@pytest.mark.parametrize("rows", FAR.values(), ids=FAR)
def test_learned_vectors_of_two_classes(rows):
    assert is_borne(SVC(gamma=0.5, solver=REFINE, random_state=0, n_jobs=1), rows, BOARD)


ESTIMATORS = {
    "several classes": (SVC(gamma=0.5, solver=REFINE, random_state=0, n_jobs=1), LEVELS),
    "several labels": (SVC(gamma=0.5, solver=REFINE, random_state=0, n_jobs=1), LABEL_SETS),
    "another kernel": (SVC(kernel="matern32", gamma=0.5, solver=REFINE, random_state=0, n_jobs=1), BOARD),
    "a gamma for each feature": (SVC(gamma=[0.5, 0.5, 0.1], solver=REFINE, random_state=0, n_jobs=1), BOARD),
    "regression": (SVR(gamma=0.5, C=10, solver=REFINE, random_state=0, n_jobs=1), PRODUCT),
    "levels": (OrdinalSVC(gamma=0.5, solver=REFINE, random_state=0, n_jobs=1), LEVELS),
    "k-means": (SVC(gamma=0.5, solver=LowRank(20, "kmeans"), random_state=0, n_jobs=1), BOARD),
    "gamma is learned": (SVC(gamma="learn", solver=REFINE, random_state=0, n_jobs=1), BOARD),
    "gamma is learned before": (SVC(gamma="learn", solver="exact", random_state=0, n_jobs=1), BOARD),
    "gamma is tried": (SVC(gamma="validate", solver="exact", random_state=0, n_jobs=1), BOARD),
    "grid of gammas": (GridSearchSVC(cv=2, n_jobs=1), BOARD),
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_other_estimators(kind):
    assert is_borne(ESTIMATORS[kind][0], cell(1e7), ESTIMATORS[kind][1])


@pytest.mark.parametrize("n", [12, 40])
def test_few_rows(n):
    y = np.where(X[:n, 0] > 0, 1, -1)
    estimator = SVC(gamma=0.3, C=10, solver=Refine(4, epochs=300), random_state=0, n_jobs=1)
    assert score(estimator, cell(1e6)[:n], y, X[:n]) >= score(estimator, X[:n], y, X[:n]) - 1.5 / n


def test_a_number_for_missing_in_a_fifth_of_the_rows():
    """These rows are many, and have vectors of their own."""
    rows = X.copy()
    rows[::5, 2] = -999999.0
    estimator = SVC(gamma=0.5, solver=Refine(40, epochs=150), random_state=0, n_jobs=1)
    assert score(estimator, rows, BOARD, rows) > score(estimator, X, BOARD) - LEAST


@pytest.mark.parametrize("solver", [REFINE, "exact"])
@pytest.mark.parametrize("offset", [1e6, [0.0, 0.0, 1e6]])
def test_offsets_where_gamma_is_learned(solver, offset):
    rows = X + np.array(offset)
    assert score(SVC(gamma="learn", solver=solver, random_state=0, n_jobs=1), rows, BOARD, rows) > 0.9


def test_a_feature_in_another_unit_that_its_gamma_knows():
    """Steps are as long in each feature as the kernel has it."""
    gamma = np.array([0.5, 0.5, 0.1])
    clean = score(SVC(gamma=gamma, solver=REFINE, random_state=0, n_jobs=1), X, BOARD)
    units = np.array([1.0, 1e6, 1.0])
    found = score(SVC(gamma=gamma / units**2, solver=REFINE, random_state=0, n_jobs=1), X * units, BOARD, X * units)
    assert found == pytest.approx(clean, abs=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_learned_axes(dtype):
    estimator = SVC(gamma=0.5, solver="exact", n_jobs=1)
    clean, found = (LearnedAxes(estimator).fit(rows.astype(dtype), BOARD) for rows in (X, cell(1e9)))
    np.testing.assert_allclose(found.transform(X.astype(dtype)).var(axis=0), clean.transform(X).var(axis=0), rtol=0.1)
    np.testing.assert_allclose(found.mean_, X.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("value", [1e6, 1e30])
def test_principal_directions_of_a_pursuit(value):
    local = np.random.default_rng(0)
    wide = local.normal(size=(N, 8)) @ local.normal(size=(8, 200)) / 8 + 0.01 * local.normal(size=(N, 200))
    y = np.where(wide[:, 0] * wide[:, 1] > 0, 1, -1)
    far = wide.copy()
    far[5, 3] = value
    estimator = SVC(gamma=0.05, C=10, solver=CPSP(20, directions=8), random_state=0, n_jobs=1)
    assert score(estimator, far, y, wide) > score(estimator, wide, y, wide) - LEAST


def test_single_far_rows_have_no_centre_and_many_have_their_share():
    from slimsvm.bases import KMeans

    def far_centres(rows):
        centres = KMeans().choose(KernelRows(RBF(0.5), rows), 20, np.random.default_rng(0), (BOARD > 0).astype(int))
        assert len(centres) == 20
        return int((np.abs(centres).max(axis=1) > 1e3).sum())

    many = X.copy()
    many[::5, 2] = -999999.0
    assert far_centres(cluster()) == 0
    assert 2 <= far_centres(many) <= 4


CONSTANT = {
    "two classes": (SVC(gamma=0.5, C=10.0, solver="refine", max_basis=40, random_state=0), lambda s: s > 0),
    "log odds": (SVC(gamma=0.5, C=10.0, loss="logistic", max_basis=40, random_state=0), lambda s: s > 0),
    "another kernel": (SVR(kernel="matern32", gamma=0.5, C=10.0, max_basis=40, random_state=0), lambda s: s),
    "centres": (SVC(gamma=0.5, C=10.0, solver=LowRank(40, basis="kmeans"), random_state=0), lambda s: s > 0),
    "labels": (
        SVC(kernel="rational_quadratic", gamma=0.5, C=10.0, max_basis=40, random_state=0),
        lambda s: np.stack([s > 0, s > 0.7], axis=1).astype(int),
    ),
}


@pytest.mark.parametrize("value", [1e9, 1e12])
@pytest.mark.parametrize("name", sorted(CONSTANT))
def test_a_column_that_is_large_and_constant_changes_nothing(name, value):
    """Distances between its rows and centres of k-means are small differences of large squares."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    estimator, target = CONSTANT[name]
    y = target(np.sin(2.0 * X[:, 0]) + X[:, 1] * (X[:, 0] > 0))
    scores = [estimator.fit(rows, y).score(rows, y) for rows in (X, np.c_[X, np.full(150, value)])]
    assert scores[1] > scores[0] - 0.02
