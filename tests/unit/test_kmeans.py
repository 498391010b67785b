"""K-means centres: which are distinct, and how they are found: far from 0, and looking at the clock."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.bases import KMeans, kmeans
from slimsvm.bases.kmeans import CENTRE_NUMBERS, _centres, _distinct, _of_batches
from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.kernels import RBF, KernelRows


def test_distinct_centres_are_those_of_numpy():
    rng = np.random.default_rng(0)
    centres = rng.integers(-2, 3, size=(400, 4)) * np.array([1.0, 0.5, 1e-300, 1e300])
    centres[::7, 1] = -0.0
    centres = np.concatenate([centres, rng.normal(size=(50, 4)), centres[:20]])
    np.testing.assert_array_equal(_distinct(centres), np.unique(centres, axis=0))


@pytest.mark.parametrize("n", [2000, 6000])
def test_the_clock_is_looked_at_for_every_first_centre(n, monkeypatch):
    """A clock that goes on by a second whenever somebody looks at it."""
    looked = [0]

    def look():
        looked[0] += 1
        return float(looked[0])

    monkeypatch.setattr("time.perf_counter", look)
    X = np.random.default_rng(0).normal(size=(n, 3))
    with time_limit(1e9):
        _centres(X, 60, None, 0)
    assert looked[0] > 60
    with time_limit(looked[0] / 3.0), pytest.raises(OutOfTimeError):
        _centres(X, 60, None, 0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_batches_find_the_means_of_clusters(make):
    rng = np.random.default_rng(0)
    means = 10.0 * rng.normal(size=(12, 5))
    rows = np.repeat(means, 600, axis=0) + rng.normal(size=(7200, 5))
    found = _of_batches(make(rows[rng.permutation(7200)]), 24, 0)
    nearest = np.min(np.linalg.norm(rows[:, None] - found, axis=2) ** 2, axis=1)
    assert nearest.mean() < 5.0  # the variance within clusters


def test_centres_of_wide_rows_are_moved_and_compared_in_pieces(monkeypatch):
    """Between two looks no more than CENTRE_NUMBERS numbers of centres are read or written."""
    n, width, k, looked = 5000, 40_000, 150, [0]

    def look():
        looked[0] += 1

    monkeypatch.setattr(kmeans, "check_time", look)
    rng = np.random.default_rng(0)
    columns = rng.integers(width, size=(n, 3)).ravel()
    block = sp.csr_array((np.ones(3 * n), columns, np.arange(0, 3 * n + 1, 3)), shape=(n, width))
    _of_batches(block, k, 0)
    in_a_batch = (looked[0] - k) / (kmeans.PASSES * n // kmeans.BATCH_SIZE)
    assert in_a_batch > 2 * k * width / CENTRE_NUMBERS


@pytest.mark.parametrize("n", [200, 5000])
def test_rows_far_from_0_have_the_centres_of_rows_near_it(n):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(n, 2)) * 64) / 64  # shifted, the same numbers
    near, far = (
        KMeans(sample_size=n).choose(KernelRows(RBF(0.5), rows), 20, np.random.default_rng(0))
        for rows in (X, X + 2.0**32)
    )
    spread = [np.sum((X[:, None] - centres) ** 2, axis=2).min(axis=1).mean() for centres in (near, far - 2.0**32)]
    assert spread[1] < 1.1 * spread[0]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("exponent", [-600, 600])
def test_centres_of_rows_whose_squares_have_no_place_are_those_of_other_units(exponent, container):
    X, far = np.random.default_rng(0).normal(size=(300, 3)), 2.0**exponent
    centres, same = (
        KMeans().choose(KernelRows(RBF(1.0), container(rows)), 5, np.random.default_rng(0)) for rows in (X, far * X)
    )
    if sp.issparse(same):
        centres, same = centres.toarray(), same.toarray()
    np.testing.assert_allclose(same / far, centres, rtol=1e-12)
