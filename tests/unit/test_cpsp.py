"""Cutting-plane subspace pursuit: projections, preimages, and the optimum it must reach."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from kernel_cases import with_metric
from pairwise import crossed
from slimsvm import CPSP, SVC, ExactCuts
from slimsvm.bases.preimage import (
    PREIMAGES,
    FixedPoint,
    GradientAscent,
    Residual,
    TrainingRows,
    best_rows,
    value_and_gradient,
)
from slimsvm.kernels import RBF, KernelRows, Laplacian, Linear, Polynomial, Sigmoid
from slimsvm.parts.cuts import Cut, ProjectedScores, WorkingSet
from slimsvm.parts.span.whitened_span import GrowingSubspace, LocalSpanRows


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
    book = ProjectedScores(kernel_rows, 2, False, 5, 1, lambda *_: next(vectors), lambda *_: False)
    working_set = WorkingSet()
    for _ in range(7):
        rows = np.sort(rng.choice(150, 40, replace=False))
        cut = Cut(1.0, rows, rng.standard_normal((40, 2)), np.zeros(0))
        working_set.add(cut, book.add(cut, working_set.cuts))
    gram = RBF(0.1).block(book.basis, book.basis)
    assert book.is_full
    for j, cut in enumerate(working_set.cuts):
        expected = np.linalg.solve(gram, RBF(0.1).block(book.basis, X[cut.rows]) @ cut.coef)
        np.testing.assert_allclose(book.coefficients(book.z[j]), expected, atol=1e-8)
    beta = [book.coefficients(z) for z in book.z]
    expected = [[np.sum(b * (gram @ c)) for c in beta] for b in beta]
    np.testing.assert_allclose(working_set.qp.G, expected, rtol=1e-8, atol=1e-10)


AXES = {
    "preimage": ["fixed-point", "training-rows", "gradient"],
    "intercept": ["none", "regularized"],
    "method": ["newton", "cutting-planes"],
}


@crossed(AXES)
def test_reaches_the_optimum_when_the_basis_has_room(problem, preimage, intercept, method):
    X, y = problem
    options = {"C": 2.0, "gamma": 0.1, "intercept": intercept, "random_state": 0}
    exact = SVC(solver=ExactCuts(), **options).fit(X, y)
    # Training rows span the solution; vectors from elsewhere come as close as their number allows.
    max_basis, tolerance = (150, 1e-6) if preimage == "training-rows" else (250, 5e-3)
    solver = CPSP(max_basis, preimage, method=method)
    cpsp = SVC(solver=solver, **options).fit(X, y)
    assert cpsp.status_ == "converged"
    assert cpsp.objective_ >= exact.lower_bound_ * (1 - 1e-9)
    assert cpsp.objective_ <= exact.objective_ * (1 + tolerance)


@pytest.mark.parametrize("method", ["newton", "cutting-planes"])
def test_better_bases_cost_less(problem, method):
    X, y = problem
    exact = SVC(C=2.0, gamma=0.1).fit(X, y).objective_
    solvers = [CPSP(k, method=method) for k in (2, 8, 32)]
    values = [SVC(C=2.0, gamma=0.1, solver=solver, random_state=0).fit(X, y).objective_ for solver in solvers]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 1.1 * exact


@pytest.mark.parametrize("method", ["newton", "cutting-planes"])
def test_objective_is_that_of_the_model(problem, method):
    X, y = problem
    clf = SVC(C=2.0, gamma=0.1, solver=CPSP(10, method=method), random_state=0).fit(X, y)
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
    started = best_rows(residual, strategy.n_candidates, 1, 1, np.random.default_rng(seed)).vectors
    found = strategy.find(residual, np.random.default_rng(seed))
    assert residual.value(found)[0] >= residual.value(started)[0] * (1 - 1e-9)


@pytest.mark.parametrize(
    "kernel",
    [*with_metric(0.1, np.linspace(0.05, 0.2, 6)).values(), Polynomial(3, 0.1, 1.0), Linear(), Sigmoid(0.05, 0.2)],
)
def test_gradient_of_the_value(problem, kernel):
    X, _ = problem
    rng = np.random.default_rng(0)
    coef, b = rng.standard_normal((150, 2)), rng.standard_normal(6)
    parts = [(X[:100], coef[:100]), (X[100:], coef[100:])]
    value, slope = value_and_gradient(kernel, parts, b)
    steps = 1e-6 * np.eye(6)
    numeric = [
        (value_and_gradient(kernel, parts, b + s)[0] - value_and_gradient(kernel, parts, b - s)[0]) / 2e-6
        for s in steps
    ]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-7 * abs(value))


def test_sigmoid_derivatives_are_0_where_the_kernel_is_flat():
    """Without a word of an overflow, which cosh² has there."""
    folding = Sigmoid(2.0, 1.0).folding(1)
    _, slopes = folding.map_with_slopes(2.0 * np.array([-1e4, 0.0, 1e4]) + 1.0)
    assert (folding.metric * slopes).tolist() == [
        0.0,
        2.0 * (1 - np.tanh(1.0) ** 2),
        0.0,
    ]


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
    with pytest.raises(ValueError, match="method must be 'auto', 'newton' or 'cutting-planes', found 'simplex'"):
        SVC(solver=CPSP(5, method="simplex")).fit(X, y)
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


# ---- several vectors at a time


def dense(vectors):
    return vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors)


def explained_by(residual, vectors):
    """Squared length of the residual's part within the span of some vectors, when it is orthogonal to the basis."""
    kernel, inside = residual.kernel_rows.kernel, dense(residual.basis)
    together = np.vstack([inside, vectors])
    rho = np.vstack([np.zeros((len(inside), residual.coef.shape[1])), residual.at(vectors).rho])
    return float(np.sum(rho * np.linalg.solve(kernel.block(together, together), rho)))


def orthogonal_residual(X, kernel, seed):
    """A residual whose basis part is minus the projection of its rows, and the whitening that goes with it."""
    start = residual_of(X, kernel, seed)
    basis = start.basis
    L = np.linalg.cholesky(kernel.block(basis, basis))
    rows = dense(X)[start.rows]
    inner = kernel.block(basis, rows) @ start.coef
    projection = np.linalg.solve(kernel.block(basis, basis), inner)

    def whiten(values):
        return np.linalg.solve(L, values.T).T

    return Residual(start.kernel_rows, start.rows, start.coef, basis, -projection, whiten)


def test_greedy_takes_what_explains_most_of_the_rest(problem):
    X, _ = problem
    residual = orthogonal_residual(X, RBF(0.1), 0)
    candidates = X[60:80]
    best = residual.best(residual.at(candidates), 6)
    chosen = [int(np.flatnonzero((candidates == vector).all(axis=1))[0]) for vector in best.vectors]
    assert len(chosen) == 6
    for t in range(6):
        others = np.setdiff1d(np.arange(20), chosen[:t])
        gains = [explained_by(residual, candidates[[*chosen[:t], j]]) for j in others]
        assert others[np.argmax(gains)] == chosen[t]


@pytest.mark.parametrize("strategy", [FixedPoint(), TrainingRows(), GradientAscent()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("sparse", [False, True])
def test_several_preimages_explain_more_than_one(problem, strategy, sparse):
    X = sp.csr_array(problem[0]) if sparse else problem[0]
    residual = orthogonal_residual(X, RBF(0.1), 1)
    gains = []
    for n in (1, 3, 8):
        found = strategy.find(residual, np.random.default_rng(0), n)
        assert found.shape == (n, 6)
        assert sp.issparse(found) == (sparse and isinstance(strategy, TrainingRows))
        gains.append(explained_by(residual, dense(found)))
    assert gains == sorted(gains)
    assert gains[-1] > 1.5 * gains[0]
    assert gains[-1] <= residual.squared_norm(0.0) * (1 + 1e-9)


@pytest.mark.parametrize("strategy", [FixedPoint(), TrainingRows(), GradientAscent()], ids=lambda s: type(s).__name__)
def test_nothing_is_found_where_nothing_is_left(problem, strategy):
    kernel_rows = KernelRows(RBF(0.1), problem[0], dtype=np.float64)
    residual = Residual(kernel_rows, np.arange(5), np.zeros((5, 1)), None, np.zeros((0, 1)))
    assert strategy.find(residual, np.random.default_rng(0), 3).shape == (0, 6)


@pytest.mark.parametrize("gamma", [0.1, tuple(np.linspace(0.05, 0.2, 6))], ids=["one", "each"])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_fixed_point_is_one(problem, gamma, sparse):
    """Where it ends the value has no slope, up to float32."""
    X = sp.csr_array(problem[0]) if sparse else problem[0]
    residual = residual_of(X, RBF(gamma), 2)
    started = problem[0][:4].astype(float)
    moved = FixedPoint(max_iter=500, tol=0.0).moved(residual, started, np.random.default_rng(0))
    parts = residual.terms(np.random.default_rng(0))
    for before, after in zip(started, moved, strict=True):
        slope = [np.abs(value_and_gradient(residual.kernel_rows.kernel, parts, b)[1]).max() for b in (before, after)]
        assert slope[1] < 1e-3 * slope[0]


# ---- the growing span


@pytest.mark.parametrize("memory_limit", [10**9, 0], ids=["kept", "computed again"])
def test_a_span_that_grows_is_the_span(problem, memory_limit):
    X, _ = problem
    rng = np.random.default_rng(0)
    kernel_rows = KernelRows(RBF(0.1), X, dtype=np.float64)
    vectors = rng.standard_normal((150, 6))
    vectors[7] = vectors[3]
    growing = GrowingSubspace(kernel_rows, 1.0, 200, memory_limit)
    kept = [growing.extend(part) for part in (vectors[:5], vectors[5:9], vectors[9:10], vectors[10:])]
    assert [len(positions) for positions in kept] == [5, 3, 1, 140]
    assert list(kept[1]) == [0, 1, 3]
    gram = RBF(0.1).block(growing.basis, growing.basis)
    np.testing.assert_allclose(growing.L @ growing.L.T, gram, atol=1e-12)
    u, v = rng.standard_normal((150, 2)), rng.standard_normal((150, 2))
    Z = np.hstack([np.linalg.solve(growing.L, RBF(0.1).block(growing.basis, X)).T, np.ones((150, 1))])
    np.testing.assert_allclose(growing.times(u), Z @ u, atol=1e-8)
    np.testing.assert_allclose(
        growing.coordinates_of_sums(LocalSpanRows(growing, 0, growing.n_rows).transposed(v)[0], v.sum(axis=0)),
        Z.T @ v,
        atol=1e-8,
    )
    np.testing.assert_allclose(growing.whitened(np.array([3, 100])), Z[[3, 100]], atol=1e-8)
    np.testing.assert_allclose(growing.coordinates(*growing.coefficients(u)), u, atol=1e-8)


# ---- the theory's quantities


@pytest.mark.parametrize("method", ["newton", "cutting-planes"])
def test_delta_bounds_the_distance_to_the_optimum(problem, method):
    X, y = problem
    options = {"C": 2.0, "gamma": 0.1, "random_state": 0, "intercept": "none"}
    exact = SVC(**options).fit(X, y)
    C1 = 2.0 * len(X)
    for k in (4, 16, 64):
        clf = SVC(solver=CPSP(k, method=method, record_delta=True), **options).fit(X, y)
        deltas = [record["delta"] for record in clf.history_ if record["delta"] is not None]
        assert max(deltas) > 0
        assert clf.objective_ <= exact.objective_ + C1 * max(deltas) * np.sqrt(2 * C1)
        if method == "newton":
            assert 0 < clf.lower_bound_ <= exact.objective_ * (1 + 1e-9)
            last = clf.history_[-1]
            assert clf.lower_bound_ >= last["bound_in_basis"] - 0.5 * (C1 * last["delta"]) ** 2 - 1e-6
    if method == "newton":
        assert clf.lower_bound_ > 0.9 * exact.objective_


def test_delta_is_the_length_of_the_residual(problem):
    X, _ = problem
    residual = orthogonal_residual(X, RBF(0.1), 3)
    rows = X[residual.rows]
    together, coef = np.vstack([rows, residual.basis]), np.vstack([residual.coef, residual.basis_coef])
    truth = float(np.sum(coef * (RBF(0.1).block(together, together) @ coef)))
    inside = residual.basis_coef
    projected = float(np.sum(inside * (RBF(0.1).block(residual.basis, residual.basis) @ inside)))
    assert residual.squared_norm(projected) == pytest.approx(truth, rel=1e-9)


# ---- text


@pytest.mark.parametrize("preimage", ["fixed-point", "training-rows", "gradient"])
@pytest.mark.parametrize("method", ["newton", "cutting-planes"])
def test_text_is_never_made_dense(preimage, method, monkeypatch):
    """Rows of 20,000 features: only a few vectors at a time may be written out."""
    rng = np.random.default_rng(0)
    X = sp.random_array((3000, 20_000), density=5e-4, rng=rng, format="csr")
    y = np.where(X[:, :10_000].sum(axis=1) > X[:, 10_000:].sum(axis=1), 1, -1)
    for name in ("toarray", "todense"):
        original = getattr(sp.csr_array, name)

        def counted(self, *args, original=original, **kwargs):
            assert self.shape[0] <= 100 or self.shape[1] < 1000, f"{self.shape} made dense"
            return original(self, *args, **kwargs)

        monkeypatch.setattr(sp.csr_array, name, counted)
    solver = CPSP(6, preimage, method=method)
    clf = SVC(C=1.0, gamma=0.2, solver=solver, random_state=0)
    clf.fit(X, y)
    assert clf.n_basis_ == 6
    assert sp.issparse(clf.basis_vectors_) == (preimage == "training-rows")


# ---- the paper's rules: when vectors are added, and when a fit ends


PAPERS = {"method": "cutting-planes", "step": "full", "tol_relative": None}


def test_vectors_are_added_until_the_residual_is_short(problem):
    X, y = problem
    options = {"C": 2.0, "gamma": 0.1, "intercept": "none", "random_state": 0}
    for delta, most in ((0.05, None), (0.02, None), (0.02, 2)):
        solver = CPSP(200, delta=delta, vectors_per_cut=most, record_delta=True, **PAPERS)
        history = SVC(solver=solver, **options).fit(X, y).history_
        deltas = np.array([record["delta"] for record in history if record["delta"] is not None])
        n_basis = np.array([record["n_basis"] for record in history])
        assert np.diff(n_basis).max() <= (most or 200)
        if most is None:
            assert deltas.max() <= delta * (1 + 1e-6)
        assert n_basis[-1] < 200
    many, few = (SVC(solver=CPSP(200, delta=delta, **PAPERS), **options).fit(X, y).n_basis_ for delta in (0.02, 0.1))
    assert many > few


def test_the_papers_rule_ends_a_fit_before_the_basis_is_full(problem):
    """Where the new cut is violated by no more than ε of the mean loss."""
    X, y = problem
    options = {"C": 0.1, "gamma": 0.1, "intercept": "none", "random_state": 0, "tol": 0.05}
    full, papers = (
        SVC(solver=CPSP(100, fill_basis=fill_basis, **PAPERS), **options).fit(X, y) for fill_basis in (True, False)
    )
    assert papers.status_ == full.status_ == "converged"
    assert papers.n_basis_ < full.n_basis_ == 100
    records = papers.history_
    C1 = 0.1 * len(y)
    assert records[-1]["objective"] - records[-1]["bound_in_basis"] <= 0.05 * C1
    assert all(r["objective"] - r["bound_in_basis"] > 0.05 * C1 for r in records[:-1])


@pytest.mark.filterwarnings("ignore:.*stopped at the iteration limit:sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_cut_short_keeps_the_best_iterate_or_the_last(problem):
    X, y = problem

    def fit(keep, max_iter):
        solver = CPSP(30, keep=keep, **PAPERS)
        options = {"C": 2.0, "gamma": 0.1, "intercept": "none", "random_state": 0, "max_iter": max_iter}
        return SVC(solver=solver, **options).fit(X, y)

    objectives = [record["objective"] for record in fit("best", 40).history_]
    # A record holds the objective before its cut is added: record t holds the last iterate of a fit of t iterations.
    worse = next(t for t in range(2, len(objectives)) if objectives[t] > 1.01 * min(objectives[:t]))
    last, best = fit("last", worse), fit("best", worse)
    assert last.objective_ == pytest.approx(objectives[worse], rel=1e-6)
    assert best.objective_ == pytest.approx(min(objectives[: worse + 1]), rel=1e-6)
    hinge = np.maximum(0, 1 - np.where(y == last.classes_[1], 1, -1) * last.decision_function(X)).sum()
    assert last.objective_ == pytest.approx(0.5 * last.model_.norm_squared() + 2.0 * hinge, rel=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"delta": -1.0, **PAPERS}, "delta must be a finite number from 0, or None, found -1.0"),
        ({"fill_basis": "no", **PAPERS}, "fill_basis must be True or False, found 'no'"),
        ({"delta": 0.1}, "delta=0.1 needs method='cutting-planes', found Newton's method"),
        ({"fill_basis": False}, "fill_basis=False needs method='cutting-planes', found Newton's method"),
        ({"keep": "last", "step": "full"}, "keep='last' needs method='cutting-planes', found Newton's method"),
        ({**PAPERS, "keep": "last", "step": "line-search"}, "keep='last' goes with step='full'"),
        ({**PAPERS, "keep": "first"}, "keep must be 'best' or 'last', found 'first'"),
    ],
)
def test_the_papers_rules_are_for_cutting_planes(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        SVC(solver=CPSP(5, **parameters)).fit(*problem)
