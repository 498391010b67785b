"""Every registered kernel, over every kind of rows and both precisions, against one pair after the other."""

import functools
import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from kernel_cases import OF_DISTANCES, with_metric
from pairwise import crossed
from slimsvm.kernels import (
    KERNELS,
    Additive,
    CallableKernel,
    EvalCounter,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from slimsvm.rows import as_rows

N, K, D = 101, 150, 5  # neither a multiple of a tile's rows nor of a panel's points, and more than one of each


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def cubic(X, Z):
    """Pair by pair: a matrix product's bits may depend on how many rows there are."""
    return (np.einsum("id,jd->ij", np.ascontiguousarray(dense(X), float), dense(Z).astype(float)) + 0.5) ** 3


INSTANCES = {
    **with_metric(0.3, np.linspace(0.05, 0.6, D)),
    **{f"{name} far": kernel for name, kernel in with_metric(40.0).items()},
    "laplacian": Laplacian(0.2),
    "laplacian per feature": Laplacian(np.linspace(0.05, 0.6, D)),
    "additive": Additive(0.1),
    "additive laplacian per feature": Additive(np.linspace(0.05, 0.6, D), "laplacian", interaction=0.3),
    "additive matern32 groups": Additive(0.2, "matern32", [1, 3, 1], [1.0, 0.5, 3.0]),
    "additive rational_quadratic": Additive(np.linspace(0.05, 0.6, D), "rational_quadratic", shares=[0, 1, 1, 1, 2]),
    "poly": Polynomial(3, 0.5, 1.0),
    "poly of degree 1": Polynomial(1, 2.0, -1.0),
    "linear": Linear(),
    "sigmoid": Sigmoid(0.1, 0.2),
    "precomputed": Precomputed(),
    "callable": CallableKernel(cubic),
}


def csr64(X):
    X = sp.csr_array(X)
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)


def memmap(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


CONTAINERS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sp.csr_array, "csr64": csr64, "memmap": memmap}
AXES = {
    "name": list(INSTANCES),
    "container": list(CONTAINERS),
    "dtype": ["float32", "float64"],
    "seed": [0, pytest.param(1, marks=pytest.mark.full), pytest.param(2, marks=pytest.mark.full)],
}
everything = crossed(AXES)


@functools.lru_cache
def problem(name, seed):
    """Rows, vectors in the form a model keeps, and the kernel's values between them, in float64 (read-only)."""
    rng = np.random.default_rng(seed)
    density = (0.1, 0.5, 1.0)[seed]  # sparse points, dense points, no zero at all
    X = rng.standard_normal((N, D)).astype(np.float32).astype(float) * (rng.random((N, D)) < density)
    Z = rng.standard_normal((K, D)).astype(np.float32).astype(float) * (rng.random((K, D)) < density)
    if name == "precomputed":
        X = rng.standard_normal((N, N)).astype(np.float32).astype(float)
        Z = rng.integers(0, N, (K, 1))
    values = naive.kernel_matrix(INSTANCES[name], X, Z)
    for array in (X, Z, values):
        array.flags.writeable = False
    return X, Z, values


def curvature(kernel):
    """What 1 - k(x, z) is at small distances, over gamma |x - z|^2; 1 for kernels that have no metric."""
    if not kernel.has_metric:
        return 1.0
    return (1.0 - naive.kernel_matrix(type(kernel)(1.0), [[1e-4]], [[0.0]])[0, 0]) / 1e-8


class Case:
    def __init__(self, name, container, dtype, seed, folder):
        self.kernel, self.dtype, self.container = INSTANCES[name], np.dtype(dtype), container
        X, Z, self.values = problem(name, seed)
        wrap = functools.partial(memmap, folder=folder) if container == "memmap" else CONTAINERS[container]
        self.X, self.Z = wrap(X.astype(dtype)), Z
        if name != "precomputed" and container.startswith("csr"):
            self.Z = sp.csr_array(Z)
        self.rng = np.random.default_rng(seed + 10)
        radius = np.max(getattr(self.kernel, "gamma", 0.0)) * np.square(X).sum(axis=1).max() * curvature(self.kernel)
        self.tolerance = np.finfo(dtype).eps * max(1.0, np.abs(self.values).max()) * (32 + 4 * radius)

    def rows(self, **options):
        return KernelRows(self.kernel, self.X, **{"dtype": self.dtype, "n_jobs": 1, **options})

    def coef(self, m):
        return self.rng.standard_normal((K, m)).astype(np.float32).astype(float)

    def close(self, found, expected, terms=1.0):
        assert found.shape == expected.shape
        assert found.dtype == self.dtype
        assert np.abs(found - expected).max(initial=0.0) <= self.tolerance * terms


@pytest.fixture
def case(name, container, dtype, seed, tmp_path):
    return Case(name, container, dtype, seed, tmp_path)


SELECTIONS = {"all": None, "range": (13, 77), "index": np.array([100, 3, 3, 50, 0, 99]), "none": np.array([], np.int64)}


def chosen(array, rows):
    return array if rows is None else array[slice(*rows)] if isinstance(rows, tuple) else array[rows]


def test_every_registered_kernel_is_here():
    assert {kernel.name for kernel in INSTANCES.values()} == set(KERNELS)


@everything
def test_block(case):
    rows = case.rows()
    points = rows.points_of(case.Z)
    assert len(points) == K
    case.close(case.kernel.block(case.X, case.Z, dtype=case.dtype), case.values)
    for selection in SELECTIONS.values():
        case.close(rows.block(points, rows=selection), chosen(case.values, selection))


@everything
@pytest.mark.parametrize("m", [1, 3])
def test_scores(case, m):
    rows, coef = case.rows(), case.coef(m)
    points = rows.points_of(case.Z)
    expected, terms = case.values @ coef, np.abs(coef).sum()
    case.close(case.kernel.scores(case.X, case.Z, coef, dtype=case.dtype), expected, terms)
    for selection in SELECTIONS.values():
        case.close(rows.scores(points, coef, rows=selection), chosen(expected, selection), terms)
    out = np.empty((N, m), case.dtype)
    assert rows.scores(points, coef, out=out) is out
    case.close(out, expected, terms)


@everything
@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.turns("offsets")
@pytest.mark.parametrize("offsets", [(0, K), (0, 0, 1, 70, 70, 130, K, K), tuple(range(K + 1))])
def test_segments_are_summed_apart(case, m, offsets):
    rows, coef = case.rows(), case.coef(m)
    found = rows.scores(rows.points_of(case.Z), coef, rows=(5, 60), segments=np.array(offsets))
    expected = np.stack([case.values[:, a:b] @ coef[a:b] for a, b in itertools.pairwise(offsets)], axis=1)
    case.close(found, expected[5:60], np.abs(coef).sum())


@everything
@pytest.mark.turns("memory_limit")
@pytest.mark.parametrize("memory_limit", [0, 1 << 30])
def test_same_bits_for_a_row_in_any_company_and_for_any_threads(case, memory_limit, request):
    rows, coef = case.rows(memory_limit=memory_limit), case.coef(2)
    points = rows.points_of(case.Z)
    for scores, whole in [
        (functools.partial(rows.scores, points, coef), rows.scores(points, coef)),
        (functools.partial(rows.scores, points, coef[:, :1]), rows.scores(points, coef[:, :1])),
        (functools.partial(rows.block, points), rows.block(points)),
    ]:
        order = case.rng.permutation(N)
        assert np.array_equal(scores(rows=order), whole[order])
        assert np.array_equal(scores(rows=(17, 90)), whole[17:90])
        for i in (0, 47, 48, N - 1):
            assert np.array_equal(scores(rows=(i, i + 1))[0], whole[i])
            assert np.array_equal(scores(rows=np.array([i]))[0], whole[i])
    request.getfixturevalue("threads_for_all")
    for n_jobs in (2, 4):
        other = case.rows(memory_limit=memory_limit, n_jobs=n_jobs)
        assert np.array_equal(other.scores(points, coef), rows.scores(points, coef))
        assert np.array_equal(other.block(points), rows.block(points))


@everything
def test_a_row_scored_on_its_own_has_the_bits_it_has_among_others(case):
    coef = case.coef(1)
    whole = case.kernel.scores(case.X, case.Z, coef, dtype=case.dtype)
    for i in (0, 50, N - 1):
        assert np.array_equal(case.kernel.scores(case.X[i : i + 1], case.Z, coef, dtype=case.dtype)[0], whole[i])


@everything
def test_evaluations_are_counted_exactly(case):
    counter = EvalCounter()
    rows = case.rows(counter=counter)
    points = rows.points_of(case.Z)
    assert rows.counter is counter
    assert counter.n == 0
    rows.scores(points, case.coef(3), rows=(5, 60), segments=np.array([0, 7, K]))
    assert counter.n == 55 * K
    rows.block(points, rows=np.arange(7))
    assert counter.n == 62 * K
    rows.scores(points, case.coef(1))
    assert counter.n == (62 + N) * K


@everything
def test_points_by_index_are_the_basis(case):
    rows, index = case.rows(), np.array([7, 0, 100, 7])
    basis = rows.basis(index)
    assert basis.shape[0] == 4
    if case.kernel == Precomputed():
        assert basis.tolist() == [[7], [0], [100], [7]]
    else:
        assert sp.issparse(basis) == case.container.startswith("csr")
        assert basis.dtype == case.dtype
        assert np.array_equal(dense(basis), dense(case.X)[index])
    assert np.array_equal(rows.block(rows.points(index)), rows.block(rows.points_of(basis)))


@everything
def test_diagonal(case):
    rows, index = case.rows(), np.array([7, 0, 100, 7])
    X = dense(case.X)
    expected = np.array(
        [
            naive.kernel_matrix(case.kernel, X[i : i + 1], [[i]] if case.kernel == Precomputed() else X[i : i + 1])[
                0, 0
            ]
            for i in range(N)
        ]
    )
    found = rows.diag()
    assert found.dtype == np.float64
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert np.array_equal(rows.diag(index), found[index])
    assert np.array_equal(rows.diag((13, 77)), found[13:77])
    assert case.kernel.diag(case.X) == pytest.approx(found, rel=1e-14)


@crossed(AXES | {"name": [name for name in INSTANCES if name != "precomputed"]})
def test_mixed_rows_and_basis(case):
    rows = case.rows()
    case.close(rows.block(rows.points_of(dense(case.Z))), case.values)
    case.close(rows.block(rows.points_of(sp.csr_array(dense(case.Z)))), case.values)


def without_files(concerned=lambda name: True):
    """Every instance that is concerned, once: what there is to see does not depend on the container."""
    return pytest.mark.parametrize("name", [name for name in INSTANCES if concerned(name)])


@without_files()
def test_the_file_form_gives_the_kernel_back(name):
    kernel = INSTANCES[name]
    if isinstance(kernel, CallableKernel):
        with pytest.raises(TypeError, match="cannot be saved"):
            kernel.to_header()
        return
    header, arrays = kernel.to_header()
    assert header["kernel"] == kernel.name
    assert KERNELS[kernel.name].from_header(header, arrays) == kernel


@without_files()
def test_derivatives_are_those_of_the_values(name):
    kernel, (X, Z, values) = INSTANCES[name], problem(name, 0)
    if not kernel.has_gradient:
        assert name.split()[0] in ("laplacian", "precomputed", "callable", "additive")
        return
    Z, values, step = Z[:20], values[:, :20], 1e-5
    for wrap in (np.asarray, sp.csr_array):
        found, slopes = kernel.block_with_slopes(wrap(X), wrap(Z))
        np.testing.assert_allclose(found, values, rtol=1e-11, atol=1e-13)
        folding = kernel.folding(D)
        metric = np.broadcast_to(folding.metric, D)
        for c in range(D):
            ahead, behind = (naive.kernel_matrix(kernel, X, Z + s * step * np.eye(D)[c]) for s in (1, -1))
            numeric = (ahead - behind) / (2 * step)
            gradient = slopes * metric[c] * (X[:, c, None] - Z[:, c] if folding.norms else X[:, c, None])
            tolerance = 1e-7 * max(1.0, np.abs(numeric).max()) + 20 * step * np.max(metric) * ("far" in name)
            assert np.abs(gradient - numeric).max() <= tolerance


@without_files(lambda name: INSTANCES[name].has_metric)
def test_values_and_derivatives_of_a_row_with_itself(name):
    kernel, (X, _, _) = INSTANCES[name], problem(name, 0)
    for rows in (X, sp.csr_array(X)):
        values, slopes = kernel.block_with_slopes(rows, rows)
        own = np.diagonal(slopes)
        assert np.isfinite(slopes).all()
        np.testing.assert_allclose(own, kernel.folding(D).steepness, rtol=1e-6)
        assert slopes.max() <= kernel.folding(D).steepness
        assert slopes.min() >= 0
        assert values.max() <= 1.0
        np.testing.assert_allclose(np.diagonal(values), 1.0, rtol=1e-12)


@without_files(lambda name: name not in ("sigmoid", "precomputed", "poly of degree 1", "callable"))  # they need not be
def test_kernel_matrices_are_positive_semidefinite(name):
    X = problem(name, 2)[0]
    K = INSTANCES[name].block(X, X)
    assert np.linalg.eigvalsh((K + K.T) / 2).min() >= -1e-12 * np.trace(K)


@everything
def test_user_data_stay_as_they_are(case):
    before = dense(case.X).copy()
    rows = case.rows()
    rows.scores(rows.points_of(case.Z), case.coef(1))
    rows.diag()
    assert np.array_equal(dense(case.X), before)
    assert as_rows(case.X).in_memory == (case.container != "memmap")


@pytest.mark.parametrize(
    "kernel", [*(KERNELS[name] for name in OF_DISTANCES), Additive], ids=lambda kernel: kernel.name
)
def test_gammas_are_an_array_and_one_gamma_is_a_number(kernel):
    given = np.array([0.5, 2.0])
    several = kernel(given)
    given[0] = 7.0
    assert several.gamma.tolist() == [0.5, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        several.gamma[0] = 1.0
    assert type(kernel(np.float32(0.5)).gamma) is float
    assert several == kernel([0.5, 2.0]) != kernel([0.5, 2.5]) != kernel(0.5)
    assert len({several, kernel((0.5, 2.0)), kernel(0.5), kernel(0.5)}) == 2
    assert repr(several) == f"{kernel.__name__}(gamma=[0.5, 2.0])"
