"""Every way to choose a basis, over every kind of rows and both precisions."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.cluster

from naive import pivoted_cholesky
from slimsvm.bases import BASES, Basis, IncompleteCholesky, KMeans, Nystrom, get_basis
from slimsvm.kernels import RBF, CallableKernel, KernelRows, Laplacian, Linear, Polynomial, Precomputed, Sigmoid

CONTAINERS = {"dense": np.asarray, "fortran": np.asfortranarray, "csr": sp.csr_array}
DTYPES = (np.float32, np.float64)
everything = pytest.mark.parametrize(
    ("basis", "container", "dtype"), list(itertools.product(BASES.values(), CONTAINERS, DTYPES))
)


def rows(n=120, d=5, seed=0, container="dense", dtype=np.float64):
    X = np.random.default_rng(seed).standard_normal((n, d)) * (np.random.default_rng(seed + 1).random((n, d)) < 0.7)
    return CONTAINERS[container](X.astype(dtype))


def vectors(kernel_rows, chosen):
    """The chosen vectors as a dense array."""
    raw = kernel_rows.basis(chosen) if isinstance(chosen, np.ndarray) and chosen.ndim == 1 else chosen
    return raw.toarray() if sp.issparse(raw) else np.asarray(raw)


def choose(basis, X, k, seed=0, labels=None, dtype=np.float64, n_jobs=1, kernel=None):
    kernel_rows = KernelRows(kernel or RBF(0.3), X, dtype=dtype, n_jobs=n_jobs)
    chosen = basis.choose(kernel_rows, k, np.random.default_rng(seed), labels)
    return kernel_rows, chosen


@everything
def test_chooses_that_many_distinct_vectors(basis, container, dtype):
    X = rows(container=container, dtype=dtype)
    kernel_rows, chosen = choose(basis(), X, 17, dtype=dtype)
    found = vectors(kernel_rows, chosen)
    assert found.shape == (17, 5)
    assert len(np.unique(found, axis=0)) == 17
    assert np.isfinite(found).all()
    if chosen.ndim == 1:
        assert chosen.dtype == np.int64
    else:
        assert sp.issparse(chosen) == (container == "csr")
        assert chosen.dtype == np.float64  # new vectors: the same for equal numbers, whatever holds them


@everything
def test_same_choice_for_same_seed_any_threads_and_containers(basis, container, dtype):
    labels = np.arange(4000) % 3
    X = rows(n=4000, container=container, dtype=dtype)
    first = vectors(*choose(basis(), X, 40, seed=3, labels=labels, dtype=dtype, n_jobs=1))
    second = vectors(*choose(basis(), X, 40, seed=3, labels=labels, dtype=dtype, n_jobs=3))
    assert np.array_equal(first, second)
    if basis is not IncompleteCholesky:
        other = vectors(*choose(basis(), X, 40, seed=4, labels=labels, dtype=dtype))
        assert other.shape != first.shape or not np.allclose(first, other)


@everything
def test_duplicates_are_chosen_once_and_fewer_come_back(basis, container, dtype):
    X = CONTAINERS[container](np.repeat(rows(n=6, dtype=dtype), 20, axis=0))
    kernel_rows, chosen = choose(basis(), X, 30, dtype=dtype)
    found = vectors(kernel_rows, chosen)
    assert len(found) == len(np.unique(np.asarray(X.toarray() if sp.issparse(X) else X), axis=0)) == 6
    assert len(np.unique(found, axis=0)) == 6


@pytest.mark.parametrize("basis", BASES.values())
def test_more_vectors_than_rows(basis):
    kernel_rows, chosen = choose(basis(), rows(n=9), 50, labels=np.arange(9) % 2)
    assert len(vectors(kernel_rows, chosen)) == 9
    kernel_rows, chosen = choose(basis(), rows(n=9), 1)
    assert len(vectors(kernel_rows, chosen)) == 1


@pytest.mark.parametrize("basis", BASES.values())
def test_no_vectors_is_an_error(basis):
    with pytest.raises(ValueError, match="n_vectors must be at least 1"):
        choose(basis(), rows(), 0)


def test_names():
    assert get_basis("kmeans") == KMeans()
    mine = IncompleteCholesky(residual=0.1)
    assert get_basis(mine) is mine
    with pytest.raises(ValueError, match=r"'nystrom', 'kmeans', 'incomplete-cholesky'.*found 'random'"):
        get_basis("random")
    assert all(issubclass(basis, Basis) and basis.name == name for name, basis in BASES.items())


# -- Nyström ----------------------------------------------------------------------------------------------------------


def test_nystrom_draws_every_row_equally_often():
    kernel_rows = KernelRows(RBF(1.0), rows(n=20))
    rng = np.random.default_rng(0)
    counts = np.zeros(20)
    for _ in range(2000):
        counts[Nystrom().choose(kernel_rows, 5, rng)] += 1
    assert np.all(np.abs(counts - 500) < 5 * np.sqrt(2000 * 0.25 * 0.75))


def test_nystrom_takes_stored_zeros_and_negative_zeros_as_zeros():
    csr = sp.csr_array((np.array([1.0, 0.0, 1.0, -0.0]), np.array([0, 1, 0, 1]), np.array([0, 2, 3, 4])), shape=(3, 2))
    assert len(choose(Nystrom(), csr, 3)[1]) == 2
    assert len(choose(Nystrom(), np.array([[0.0], [-0.0], [1.0]]), 3)[1]) == 2


# -- k-means ----------------------------------------------------------------------------------------------------------


def test_kmeans_finds_the_clusters_of_each_class():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])
    X = np.repeat(centres, 50, axis=0) + 0.1 * rng.standard_normal((200, 2))
    labels = np.repeat([0, 0, 1, 1], 50)
    found = choose(KMeans(), X, 4, labels=labels)[1]
    assert np.abs(found[np.lexsort((found[:, 0], found[:, 1].round()))] - centres).max() < 0.1
    unequal = choose(KMeans(), np.concatenate([X[:100], X[100:103]]), 8, labels=np.repeat([0, 1], [100, 3]))[1]
    assert np.sum(unequal[:, 1] > 5) == 3
    assert len(unequal) == 8


def spread(X, centres):
    """The mean squared distance of rows from the nearest centre."""
    return np.mean(np.min(np.sum((X[:, None] - centres) ** 2, axis=2), axis=1))


@pytest.mark.parametrize("k", [3, 25])
def test_kmeans_is_as_good_as_another_implementation(k):
    X = rows(n=400, d=3)
    ours = np.mean([spread(X, choose(KMeans(), X, k, seed=seed)[1]) for seed in range(8)])
    theirs = [
        sklearn.cluster.KMeans(k, n_init=1, max_iter=10, random_state=seed).fit(X).cluster_centers_ for seed in range(8)
    ]
    assert ours < 1.05 * np.mean([spread(X, centres) for centres in theirs])


def test_kmeans_measures_distance_as_the_kernel_does():
    X = np.array([[0.0, 0.0], [0.0, 30.0], [1.0, 0.0], [1.0, 30.0]])
    found = choose(KMeans(), X, 2, kernel=RBF(np.array([1.0, 1e-6])))[1]
    assert np.allclose(found[np.argsort(found[:, 0])], [[0.0, 15.0], [1.0, 15.0]])


def test_kmeans_of_a_sample_and_of_64_bit_columns():
    X = rows(n=3000)
    assert len(choose(KMeans(sample_size=100), X, 7)[1]) == 7
    csr = sp.csr_array(X)
    csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
    assert np.allclose(choose(KMeans(), csr, 7)[1].toarray(), choose(KMeans(), sp.csr_array(X), 7)[1].toarray())
    many = sp.csr_array(np.tile(X, (2, 1)))  # in mini-batches
    many.indices, many.indptr = many.indices.astype(np.int64), many.indptr.astype(np.int64)
    assert choose(KMeans(), many, 7)[1].shape == (7, X.shape[1])
    with pytest.raises(ValueError, match="sample_size must be at least 1"):
        KMeans(sample_size=0)


def test_kmeans_says_where_it_cannot_go():
    K = np.eye(5)
    with pytest.raises(ValueError, match="precomputed kernel only knows training rows"):
        choose(KMeans(), K, 2, kernel=Precomputed())
    wide = sp.csr_array((np.ones(3), (np.arange(3), np.arange(3))), shape=(3, 10**9))
    with pytest.raises(ValueError, match="3 centres of rows with 1000000000 features take 24000 MB"):
        choose(KMeans(), wide, 3)


# -- incomplete Cholesky ----------------------------------------------------------------------------------------------

KERNELS = {
    "rbf": RBF(0.3),
    "laplacian": Laplacian(0.2),
    "poly": Polynomial(2, 0.5, 1.0),
    "linear": Linear(),
    "callable": CallableKernel(lambda X, Z: (X @ Z.T) ** 2),
}


def dense_kernel(kernel, X):
    return np.asarray(kernel.block(X, X).toarray() if sp.issparse(kernel.block(X, X)) else kernel.block(X, X))


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", KERNELS)
def test_incomplete_cholesky_is_the_pivoted_one(name, container):
    X, kernel = rows(n=60), KERNELS[name]
    if name == "callable" and container == "csr":
        kernel = CallableKernel(lambda X, Z: (X @ Z.T).toarray() ** 2)
    K = KERNELS[name].block(X, X)
    kernel_rows = KernelRows(kernel, CONTAINERS[container](X), dtype=np.float64)
    pivots, factor, residuals = IncompleteCholesky().factorise(kernel_rows, 25)
    expected_pivots, expected_factor = pivoted_cholesky(K, 25, 1e-10)
    assert np.array_equal(pivots, expected_pivots)
    assert np.abs(factor - expected_factor).max() < 1e-6 * np.abs(expected_factor).max()
    assert np.all(np.diff(residuals) <= 1e-9 * residuals[0])
    assert residuals[0] == K.diagonal().max()


def test_incomplete_cholesky_of_a_precomputed_kernel():
    X = rows(n=40)
    K = RBF(0.3).block(X, X)
    for given in (K, sp.csr_array(K)):
        kernel_rows = KernelRows(Precomputed(), given, dtype=np.float64)
        assert np.array_equal(
            IncompleteCholesky().choose(kernel_rows, 12, np.random.default_rng(0)), pivoted_cholesky(K, 12, 0.0)[0]
        )


def test_incomplete_cholesky_spans_many_tiles():
    X = rows(n=2500, d=3)
    kernel_rows = KernelRows(RBF(0.5), X, dtype=np.float64, n_jobs=2)
    pivots, factor, _ = IncompleteCholesky().factorise(kernel_rows, 15)
    assert np.array_equal(pivots, pivoted_cholesky(RBF(0.5).block(X, X), 15, 0.0)[0])
    assert factor.shape == (2500, 15)


@pytest.mark.parametrize("dtype", DTYPES)
def test_incomplete_cholesky_stops_at_the_rank(dtype):
    kernel_rows = KernelRows(Linear(), rows(n=200, d=4, dtype=dtype), dtype=dtype)
    pivots, factor, _ = IncompleteCholesky().factorise(kernel_rows, 50)
    assert len(pivots) == 4
    K = kernel_rows.block(kernel_rows.points(np.arange(200)))
    assert np.abs(factor @ factor.T - K).max() < 1e-5 * np.abs(K).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(5))
def test_incomplete_cholesky_takes_no_pivot_twice(seed, dtype):
    """Even where nothing but rounding is left to choose by: three features, and no residual too small."""
    kernel_rows = KernelRows(Linear(), rows(n=60, d=3, seed=seed, dtype=dtype), dtype=dtype)
    pivots, _, _ = IncompleteCholesky(residual=0.0).factorise(kernel_rows, 60)
    assert len(pivots) >= 3
    assert len(np.unique(pivots)) == len(pivots)


def test_incomplete_cholesky_stops_at_the_residual():
    X = rows(n=200)
    K = RBF(0.3).block(X, X)
    pivots, factor, residuals = IncompleteCholesky(residual=0.2).factorise(
        KernelRows(RBF(0.3), X, dtype=np.float64), 200
    )
    left = np.diagonal(K - factor @ factor.T)
    assert 5 < len(pivots) < 150
    assert left.max() <= 0.2 < residuals.min()
    with pytest.raises(ValueError, match="residual must be a number from 0 to 1"):
        IncompleteCholesky(residual=2.0)


def test_incomplete_cholesky_of_a_sample():
    X = rows(n=500)
    chosen = choose(IncompleteCholesky(sample_size=50), X, 20, seed=1)[1]
    sample = np.sort(np.random.default_rng(1).choice(500, 50, replace=False))
    assert set(chosen) <= set(sample)
    K = RBF(0.3).block(X[sample], X[sample])
    np.fill_diagonal(K, 1.0)  # as `Kernel.diag` has it: rounding would choose the first of pivots that are alike
    assert np.array_equal(chosen, sample[pivoted_cholesky(K, 20, 0.0)[0]])
    kernel_rows = KernelRows(RBF(0.3), X)
    assert IncompleteCholesky(sample_size=50).bytes_needed(kernel_rows, 20) == 50 * 20 * 4
    assert IncompleteCholesky().bytes_needed(kernel_rows, 1000) == 500 * 500 * 4
    assert Nystrom().bytes_needed(kernel_rows, 20) == 0
    with pytest.raises(ValueError, match="sample_size must be at least 1"):
        IncompleteCholesky(sample_size=0)


def test_incomplete_cholesky_of_a_kernel_that_is_not_positive_definite():
    X = rows(n=50)
    pivots, factor, _ = IncompleteCholesky().factorise(KernelRows(Sigmoid(0.5, -0.5), X, dtype=np.float64), 50)
    assert 0 < len(pivots) <= 50
    assert np.isfinite(factor).all()


def test_incomplete_cholesky_counts_its_evaluations():
    kernel_rows = KernelRows(RBF(0.3), rows(n=100))
    pivots = IncompleteCholesky().choose(kernel_rows, 7, np.random.default_rng(0))
    assert kernel_rows.counter.n == 100 * len(pivots)
