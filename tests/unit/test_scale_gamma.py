"""gamma="scale": the value, and blocks by the values that sparse rows hold."""

import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl

from slimsvm.estimators._shared.automatic import scale_gamma


class Counted(sp.csr_array):
    """Sparse rows that count how often some of them are taken."""

    def __getitem__(self, key):
        COUNTS.append(key)
        return super().__getitem__(key)


COUNTS: list = []


@pytest.mark.parametrize("weighted", [False, True])
def test_wide_sparse_rows_are_read_in_blocks_of_stored_values(weighted):
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 500), density=0.006, rng=rng, format="csr") + 0
    weights = rng.integers(0, 3, 100).astype(float) if weighted else None
    COUNTS.clear()
    found = scale_gamma(Counted(X), weights, block_values=60)
    repeated = np.repeat(X.toarray(), np.ones(100, int) if weights is None else weights.astype(int), axis=0)
    assert found == pytest.approx(1 / (500 * repeated.var()), rel=1e-12)
    # Three values a row, twenty rows a block, five blocks, each read once.
    assert X.nnz == 300
    assert len(COUNTS) == 5


@pytest.mark.parametrize("weighted", [False, True])
def test_blocks_whose_means_are_far_apart(weighted):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3)) + 1e6 * np.arange(100)[:, None] // 20
    weights = rng.integers(0, 3, 100).astype(float) if weighted else None
    repeated = np.repeat(X, np.ones(100, int) if weights is None else weights.astype(int), axis=0)
    assert scale_gamma(X, weights, block_values=30) == pytest.approx(1 / (3 * repeated.var()), rel=1e-13)
    assert scale_gamma(X + 1e9, weights, block_values=30) == pytest.approx(1 / (3 * repeated.var()), rel=1e-6)


def test_sparse_rows_without_a_value():
    assert scale_gamma(sp.csr_array((7, 3)), None) == 1.0


@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_a_variance_that_is_no_number_is_told(size):
    X = size * np.random.default_rng(0).normal(size=(20, 3))
    if size > 1:
        with pytest.raises(ValueError, match=r"variance of inf: scale X"):
            scale_gamma(X, None)
    else:  # nothing but zeros, as far as squares can tell
        assert scale_gamma(X, None) == 1.0


def test_the_same_bits_with_any_number_of_blas_threads():
    rng = np.random.default_rng(0)
    for n in (100_000, 300_000, 500_000):
        X, found = rng.normal(size=(n, 2)), []
        for threads in (1, 2):
            with threadpoolctl.threadpool_limits(threads):
                found.append(scale_gamma(X, None))
        assert found[0] == found[1]
