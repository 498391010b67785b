"""Lines of the kernel matrix that the exact solver keeps."""

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from slimsvm.kernels import RBF, KernelRows
from slimsvm.parts.dual_ascent.kernel_values import KernelCache, KernelValues, ValueSettings
from slimsvm.parts.problem import Room


@pytest.mark.parametrize("never_kept", [0, 64])
@pytest.mark.parametrize("form", ["in memory folded", "sparse", "folded on the way"])
def test_lines_are_kernel_values_whatever_became_of_the_columns(form, never_kept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    memory = {"memory_limit": 0} if form == "folded on the way" else {}
    kernel_rows = KernelRows(RBF(0.3), sp.csr_array(X) if form == "sparse" else X, dtype=np.float64, **memory)
    truth = naive.kernel_matrix(RBF(0.3), X, X)
    settings = ValueSettings(rows_at_once=7, columns_at_once=16, never_kept=never_kept)
    cache = KernelCache(kernel_rows, 8 * 100 * 30, rng.permutation(200)[:50], Room(), settings)
    assert cache.n_slots == 30
    for round_ in range(60):
        rows = rng.choice(cache.active, min(len(cache.active), 20), replace=False)
        slots = cache.of(rows)
        assert len(np.unique(slots)) == len(rows)
        np.testing.assert_allclose(cache.values[slots, : len(cache.active)], truth[np.ix_(rows, cache.active)])
        if round_ % 3 == 1:
            cache.extend(np.setdiff1d(rng.choice(200, 12), cache.active))
        elif round_ % 3 == 2:
            cache.keep(np.flatnonzero(rng.random(len(cache.active)) < 0.85))


def test_lines_are_computed_once_as_long_as_they_fit():
    X = np.random.default_rng(0).normal(size=(100, 3))
    kernel_rows = KernelRows(RBF(0.3), X)
    cache = KernelCache(kernel_rows, 4 * 100 * 20, np.arange(50), Room())
    for _ in range(3):
        cache.of(np.arange(20))
        assert kernel_rows.counter.n == 20 * 50
    cache.extend(np.arange(50, 60))
    cache.of(np.arange(10))
    assert kernel_rows.counter.n == 20 * 50 + 10 * 10
    cache.of(np.arange(40, 45))  # in place of five of those not used last
    cache.of(np.arange(10))
    assert kernel_rows.counter.n == 20 * 50 + 10 * 10 + 5 * 60


@pytest.mark.parametrize("is_dear", [False, True])
def test_a_block_is_computed_once_for_the_same_rows(is_dear):
    X = np.random.default_rng(0).normal(size=(60, 70 if is_dear else 3))
    kernel_rows, truth = KernelRows(RBF(0.01), X, dtype=np.float64), naive.kernel_matrix(RBF(0.01), X, X)
    everything = np.arange(60)
    cache = KernelValues(kernel_rows, 1 << 20, everything)
    assert cache.caches_rows == is_dear
    evaluations = []
    for places in (everything, everything[:20], everything[:20], everything[10:30], everything, everything[10:30]):
        block = cache.block(places)
        if block.growing is not None:
            block.growing.make(places)
        columns = np.arange(len(places)) if block.places is None else block.places
        found = block.values[block.slots][:, columns]
        np.testing.assert_allclose(found, truth[np.ix_(places, places)], rtol=1e-12)
        evaluations.append(kernel_rows.counter.n)
    assert evaluations[0] + 400 == evaluations[1] == evaluations[2] < evaluations[3]
    cache.keep(everything[5:])
    np.testing.assert_allclose(cache.block(everything[5:25]).values, truth[10:30, 10:30], rtol=1e-12)
    assert kernel_rows.counter.n == evaluations[-1]


@pytest.mark.parametrize("is_dear", [False, True])
def test_all_rows_as_one_set_are_those_that_are_active_now(is_dear):
    X = np.random.default_rng(0).normal(size=(60, 70 if is_dear else 3))
    kernel_rows, truth = KernelRows(RBF(0.01), X, dtype=np.float64), naive.kernel_matrix(RBF(0.01), X, X)
    cache = KernelValues(kernel_rows, 1 << 20, np.arange(30))
    changes = (lambda: None, lambda: cache.extend(np.arange(35, 45)), lambda: cache.keep(np.arange(0, 40, 2)))
    for change in changes:
        change()
        block = cache.block(np.arange(len(cache.active)))
        found = block.values[block.slots][:, : len(cache.active)]
        np.testing.assert_allclose(found, truth[np.ix_(cache.active, cache.active)], rtol=1e-12)
