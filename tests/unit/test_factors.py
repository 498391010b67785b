"""Cholesky factors in panels: those of LAPACK, and how much work lies between two looks at the clock."""

import numpy as np
import pytest
from scipy.linalg import lapack, solve_triangular

from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.core.factors import (
    WHOLE,
    PivotedCholesky,
    cholesky,
    lower_inverse,
    pivoted_cholesky,
    scaled,
    solve_factored,
    solve_positive,
)

K = WHOLE + 300
# Multiply-adds between two looks at the clock.
PIECE = 1e8


def kernel_values(k, rank=None, seed=0):
    X = np.random.default_rng(seed).normal(size=(k, 6 if rank is None else rank))
    if rank is not None:
        return X @ X.T
    return np.exp(-0.3 * np.sum((X[:, None] - X) ** 2, axis=2)) + 0.1 * np.eye(k)


@pytest.fixture(scope="module")
def values():
    return kernel_values(K)


@pytest.fixture
def looks(monkeypatch):
    """How often somebody has looked at the clock: the seconds it shows."""
    looked = [0]

    def look():
        looked[0] += 1
        return float(looked[0])

    monkeypatch.setattr("time.perf_counter", look)
    return looked


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_factor_in_panels_reads_one_triangle(values, upper, overwrite):
    keep = np.triu if upper else np.tril
    A = np.asfortranarray(keep(values) + np.where(keep(np.ones_like(values)) > 0, 0.0, np.nan))
    L = keep(cholesky(A, overwrite=overwrite, upper=upper))
    np.testing.assert_allclose(L.T @ L if upper else L @ L.T, values, atol=1e-12)
    right = np.random.default_rng(1).normal(size=(K, 2))
    np.testing.assert_allclose(values @ solve_positive(values, right), right, atol=1e-10)


def test_a_matrix_that_is_not_positive_has_no_factor(values):
    for k in (20, K):
        bad = values[:k, :k].copy()
        bad[k - 5, k - 5] = -1.0
        assert cholesky(bad) is None
        with pytest.raises(np.linalg.LinAlgError):
            solve_positive(bad, np.ones((k, 1)))


@pytest.mark.parametrize("rank", [40, 150])
@pytest.mark.parametrize("k", [60, K])
def test_pivots_end_at_the_rank(k, rank):
    A = kernel_values(k, rank)
    L, order, found = pivoted_cholesky(A, 1e-8)
    L = np.tril(L)[:, :found]
    assert found == min(k, rank)
    assert sorted(order) == list(range(k))
    np.testing.assert_allclose(L @ L.T, A[np.ix_(order, order)], atol=1e-9 * rank)
    assert np.all(np.diff(np.diagonal(L)) <= 1e-12)


def test_pivots_are_those_of_lapack(values):
    theirs, order, rank, _ = lapack.dpstrf(values, lower=1, tol=1e-10)
    L, own, found = pivoted_cholesky(values, 1e-10)
    assert found == rank
    np.testing.assert_array_equal(own, order - 1)
    np.testing.assert_allclose(np.tril(L), np.tril(theirs), atol=1e-12)


def test_columns_with_pivots_are_computed_as_far_as_asked(values):
    whole, parts = PivotedCholesky(values, 1e-10), PivotedCholesky(values, 1e-10)
    parts.extend(100)
    assert 100 <= parts.n_columns < 200
    assert parts.rank is None
    whole.extend(K)
    parts.extend(parts.n_columns)
    parts.extend(10 * K)
    assert parts.rank == whole.rank == parts.n_columns
    np.testing.assert_array_equal(parts.order, whole.order)
    np.testing.assert_array_equal(np.tril(parts.L), np.tril(whole.L))


@pytest.mark.parametrize("k", [0, 5, K])
def test_the_inverse_of_a_triangle(k, values):
    L = np.linalg.cholesky(values[:k, :k]) if k else np.zeros((0, 0))
    inverse = lower_inverse(L + np.triu(np.full((k, k), 7.0), 1))
    np.testing.assert_allclose(np.tril(inverse) @ L, np.eye(k), atol=1e-11)
    assert not np.triu(inverse, 1).any()


def test_right_sides_in_parts(values):
    L = cholesky(values)
    right = np.random.default_rng(2).normal(size=(K, 700))
    there = solve_triangular(L, right, lower=True)
    np.testing.assert_allclose(solve_factored(L, right), solve_triangular(L, there, lower=True, trans=1), atol=1e-10)


@pytest.mark.parametrize(
    "function",
    [cholesky, lambda A: pivoted_cholesky(A, 1e-9)[0], lower_inverse],
    ids=["factor", "pivots", "inverse"],
)
def test_no_piece_between_two_looks_at_the_clock_is_large(function, values, looks):
    with time_limit(1e9):
        limited, n_looks = function(values), looks[0]
    assert K**3 / 3 / PIECE <= n_looks < 100
    looks[0] = 0
    with time_limit(n_looks / 2), pytest.raises(OutOfTimeError):
        function(values)
    np.testing.assert_array_equal(limited, function(values))


def test_few_numbers_are_written_between_two_looks_at_the_clock(looks):
    """A matrix of 2,500 rows and columns has twice as many as 30 ms allow."""
    A, weights = np.arange(2500.0**2).reshape(2500, 2500), 1.0 / np.arange(1.0, 2501.0)
    with time_limit(1e9):
        before, found = looks[0], scaled(A.T, weights, weights)
    assert looks[0] - before == 3
    np.testing.assert_array_equal(found, A.T * weights * weights[:, None])
    assert found.flags.c_contiguous
