"""Cutting-plane subspace pursuit: projections, preimages, and the optimum it must reach."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from slimsvm import CPSP, SVC, ExactCuts
from slimsvm.bases.preimage import PREIMAGES, FixedPoint, GradientAscent, Residual, TrainingRows, best_rows
from slimsvm.cuts import Cut, ProjectedScores, WorkingSet
from slimsvm.kernels import RBF, KernelRows, Laplacian, Linear, Polynomial, Sigmoid


@pytest.fixture
def problem():
    X, y = make_classification(150, 6, n_informative=4, flip_y=0.1, random_state=3)
    return X, y


def residual_of(X, kernel, seed, with_basis=True):
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.choice(len(X) if not sp.issparse(X) else X.shape[0], 60, replace=False))
    kernel_rows = KernelRows(kernel, X, dtype=np.float64)
    dense = X.toarray() if sp.issparse(X) else X
    basis = dense[:3] + 0.1 if with_basis else None
    return Residual(kernel_rows, rows, rng.standard_normal((60, 2)), basis, rng.standard_normal((3, 2)) * 0.1)


def test_projections_are_least_squares(problem):
    X, _ = problem
    rng = np.random.default_rng(0)
    kernel_rows = KernelRows(RBF(0.1), X, dtype=np.float64)
    vectors = iter(rng.standard_normal((5, 1, 6)))
    book = ProjectedScores(kernel_rows, 2, False, 5, 1, lambda *_: next(vectors))
    working_set = WorkingSet()
    for _ in range(7):
        rows = np.sort(rng.choice(150, 40, replace=False))
        book.add(Cut(1.0, rows, rng.standard_normal((40, 2)), np.zeros(0)), working_set)
    gram = RBF(0.1).block(book.basis, book.basis)
    assert book.is_full
    for j, cut in enumerate(working_set.cuts):
        expected = np.linalg.solve(gram, RBF(0.1).block(book.basis, X[cut.rows]) @ cut.coef)
        np.testing.assert_allclose(book.coefficients(book.z[j]), expected, atol=1e-8)
    beta = [book.coefficients(z) for z in book.z]
    expected = [[np.sum(b * (gram @ c)) for c in beta] for b in beta]
    np.testing.assert_allclose(working_set.qp.G, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("preimage", ["fixed-point", "training-rows", "gradient"])
@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_reaches_the_optimum_when_the_basis_has_room(problem, preimage, intercept):
    X, y = problem
    options = {"C": 2.0, "gamma": 0.1, "intercept": intercept, "random_state": 0}
    exact = SVC(solver=ExactCuts(), **options).fit(X, y)
    # Training rows span the solution; vectors from elsewhere come as close as their number allows.
    max_basis, tolerance = (150, 1e-7) if preimage == "training-rows" else (250, 5e-3)
    cpsp = SVC(solver=CPSP(max_basis=max_basis, preimage=preimage), **options).fit(X, y)
    assert cpsp.status_ == "converged"
    assert cpsp.objective_ >= exact.lower_bound_ * (1 - 1e-9)
    assert cpsp.objective_ <= exact.objective_ * (1 + tolerance)


def test_better_bases_cost_less(problem):
    X, y = problem
    exact = SVC(C=2.0, gamma=0.1).fit(X, y).objective_
    values = [SVC(C=2.0, gamma=0.1, solver=CPSP(k), random_state=0).fit(X, y).objective_ for k in (2, 8, 32)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1.1 * exact


def test_objective_is_that_of_the_model(problem):
    X, y = problem
    clf = SVC(C=2.0, gamma=0.1, solver=CPSP(10), random_state=0).fit(X, y)
    hinge = np.maximum(0, 1 - np.where(y == 1, 1, -1) * clf.decision_function(X)).sum()
    norm = clf.model_.norm_squared() + clf.intercept_ @ clf.intercept_
    assert clf.objective_ == pytest.approx(0.5 * norm + 2.0 * hinge, rel=1e-9)
    assert clf.history_[-1]["bound_in_basis"] <= clf.objective_ * (1 + 1e-12)


@pytest.mark.parametrize("strategy", [FixedPoint(), TrainingRows(), GradientAscent()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_preimage_is_never_worse_than_its_best_start(problem, strategy, sparse, seed):
    X = sp.csr_array(problem[0]) if sparse else problem[0]
    residual = residual_of(X, RBF(0.1), seed)
    _, values = best_rows(residual, strategy.n_candidates, 1, np.random.default_rng(seed))
    found = strategy.find(residual, np.random.default_rng(seed))
    assert residual.value(found)[0] >= values[0] * (1 - 1e-9)


@pytest.mark.parametrize(
    "kernel", [RBF(0.1), RBF(tuple(np.linspace(0.05, 0.2, 6))), Polynomial(3, 0.1, 1.0), Linear(), Sigmoid(0.05, 0.2)]
)
def test_gradient_of_the_value(problem, kernel):
    from slimsvm.bases.preimage import value_and_gradient

    X, _ = problem
    rng = np.random.default_rng(0)
    coef, b = rng.standard_normal((150, 2)), rng.standard_normal(6)
    value, slope = value_and_gradient(kernel, X, coef, b)
    steps = 1e-6 * np.eye(6)
    numeric = [
        (value_and_gradient(kernel, X, coef, b + s)[0] - value_and_gradient(kernel, X, coef, b - s)[0]) / 2e-6
        for s in steps
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-7 * abs(value))


def test_impossible_combinations_name_what_is_missing(problem):
    X, y = problem
    with pytest.raises(ValueError, match="fixed-point' is for the RBF kernel, found Laplacian"):
        SVC(kernel=Laplacian(0.1), solver=CPSP(5)).fit(X, y)
    with pytest.raises(ValueError, match="needs a differentiable kernel"):
        SVC(kernel=Laplacian(0.1), solver=CPSP(5, preimage="gradient")).fit(X, y)
    with pytest.raises(ValueError, match="preimage must be one of 'fixed-point'"):
        SVC(solver=CPSP(5, preimage="magic")).fit(X, y)
    with pytest.raises(ValueError, match="max_basis must be an integer >= 1, found 0"):
        SVC(solver=CPSP(0)).fit(X, y)
    assert set(PREIMAGES) == {"fixed-point", "training-rows", "gradient"}


@pytest.mark.parametrize("kernel", ["laplacian", "precomputed", "callable"])
def test_training_rows_serve_every_kernel(problem, kernel):
    X, y = problem
    gram = Laplacian(0.1).block(X, X)
    options = {
        "laplacian": ("laplacian", X),
        "precomputed": ("precomputed", gram),
        "callable": (Laplacian(0.1).block, X),
    }
    name, data = options[kernel]
    clf = SVC(kernel=name, gamma=0.1, solver=CPSP(12, preimage="training-rows"), random_state=0).fit(data, y)
    assert clf.n_basis_ == 12
    assert clf.score(data, y) > 0.8


def test_sparse_rows_and_dense_ones_agree(problem):
    X, y = problem
    dense = SVC(C=2.0, gamma=0.1, solver=CPSP(20), random_state=0).fit(X, y)
    sparse = SVC(C=2.0, gamma=0.1, solver=CPSP(20), random_state=0).fit(sp.csr_array(X), y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=0.05)
