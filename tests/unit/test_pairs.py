"""Kernel values between few vectors: the short way and the long one give the same bits."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm.kernels import KERNELS, RBF, KernelRows, Laplacian, get_kernel
from slimsvm.kernels.operands import RowSizes, Sized
from slimsvm.kernels.pairs import between, with_few
from tests import naive

ROWS = np.random.default_rng(0).normal(size=(40, 6)) + 3.0
NAMES = sorted(set(KERNELS) - {"precomputed", "callable"})


@pytest.mark.parametrize("others", [None, ROWS[20:27]], ids=["themselves", "others"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_values_between_few_vectors_are_those_of_many(name, dtype, others, monkeypatch):
    kernel = get_kernel(name, gamma=0.1)
    rows, some = KernelRows(kernel, ROWS), ROWS[:9].astype(dtype)
    others = None if others is None else others.astype(dtype)
    found = between(rows, some, others)
    assert rows.counter.n == found.size
    np.testing.assert_allclose(found, naive.kernel_matrix(kernel, some, some if others is None else others), rtol=1e-6)
    monkeypatch.setattr(Sized, "sizes", RowSizes(few_bytes=0))
    np.testing.assert_array_equal(found, between(rows, some, others))
    sparse = between(KernelRows(kernel, csr_array(ROWS)), csr_array(some), others)
    np.testing.assert_allclose(found, sparse, rtol=1e-6)


def test_vectors_far_from_the_others_are_taken_about_one_of_their_own():
    far = np.vstack([ROWS[:5], 1e10 + ROWS[5:8]])
    kernel = get_kernel("rbf", gamma=0.1)
    found = between(KernelRows(kernel, far), far)
    np.testing.assert_allclose(found[5:, 5:], naive.kernel_matrix(kernel, far[5:], far[5:]), atol=1e-6)


@pytest.mark.parametrize("gamma", [0.1, np.linspace(0.05, 0.2, 6)], ids=["one", "of each feature"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_of_few_vectors_with_all_rows_are_those_of_the_core(dtype, gamma):
    rows, few = KernelRows(RBF(gamma), ROWS, dtype=dtype), ROWS[:9] + 0.5
    found = with_few(rows, few)
    assert found is not None
    assert rows.counter.n == 9 * 9 + 40 * 9
    assert found[0].dtype == np.float64
    assert found[1].dtype == dtype
    np.testing.assert_allclose(found[0], between(rows, few), rtol=1e-12)
    np.testing.assert_allclose(found[1], rows.block(rows.points_of(few)), rtol=1e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize(
    ("rows", "few"),
    [
        (KernelRows(Laplacian(0.1), ROWS), ROWS[:9]),
        (KernelRows(RBF(0.1), csr_array(ROWS)), ROWS[:9]),
        (KernelRows(RBF(0.1), ROWS, memory_limit=0), ROWS[:9]),
        (KernelRows(RBF(0.1), ROWS), 1e10 + ROWS[:9]),
        (KernelRows(RBF(0.1), ROWS), np.tile(ROWS, (100, 1))),
    ],
    ids=["another kernel", "sparse rows", "rows not kept", "far vectors", "many vectors"],
)
def test_other_vectors_have_the_cores_values(rows, few):
    assert with_few(rows, few) is None
