"""Rows as blocks: arrays of every kind, CSR, memory maps."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.core.clock import OutOfTimeError, time_limit
from slimsvm.rows import DenseRows, SparseRows, as_rows, taken
from slimsvm.rows.arrays import TAKEN_VALUES

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint64", "float16", "float32", "float64", ">f4")


def matrix(dtype="float64", n=23, d=4):
    values = np.random.default_rng(0).integers(-3, 4, (n, d))
    return (np.abs(values) if np.dtype(dtype).kind in "bu" else values).astype(dtype)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wanted", [np.float32, np.float64])
def test_dense_blocks(dtype, order, wanted):
    X = np.array(matrix(dtype), order=order)
    rows = as_rows(X)
    assert isinstance(rows, DenseRows)
    assert (rows.n_rows, rows.n_features, rows.n_stored, rows.is_sparse, rows.in_memory) == (23, 4, 92, False, True)
    index = np.array([22, 0, 3, 3])
    for block, expected in [(rows.take(index, wanted), X[index]), (rows.slice(5, 17, wanted), X[5:17])]:
        assert type(block) is np.ndarray
        assert block.dtype == wanted
        assert block.flags.c_contiguous
        assert np.array_equal(block, expected.astype(wanted))


@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64"])
@pytest.mark.parametrize("wanted", [np.float32, np.float64])
def test_csr_blocks(dtype, wide, wanted):
    X = matrix(dtype)
    csr = sp.csr_array(X)
    csr = sp.csr_array((csr.data, csr.indices.astype(wide), csr.indptr.astype(wide)), shape=csr.shape)
    rows = as_rows(csr)
    assert isinstance(rows, SparseRows)
    assert (rows.n_rows, rows.n_features, rows.n_stored, rows.is_sparse, rows.in_memory) == (23, 4, csr.nnz, True, True)
    index = np.array([22, 0, 3, 3])
    for block, expected in [(rows.take(index, wanted), X[index]), (rows.slice(5, 17, wanted), X[5:17])]:
        assert isinstance(block, sp.csr_array)
        assert block.dtype == wanted
        assert block.has_canonical_format
        assert np.array_equal(block.toarray(), expected.astype(wanted))
    assert rows.slice(7, 7, wanted).shape == (0, 4)


@pytest.mark.parametrize("form", ["csc", "coo", "lil", "dok", "bsr"])
def test_other_sparse_forms_become_csr(form):
    X = matrix()
    for made in (sp.csr_array(X).asformat(form), sp.csr_matrix(X).asformat(form)):
        assert np.array_equal(as_rows(made).slice(0, 23, np.float64).toarray(), X)


def test_unsorted_and_repeated_columns_are_put_right_in_a_copy():
    data, indices, indptr = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4])
    csr = sp.csr_array((data, indices, indptr), shape=(2, 3))
    block = as_rows(csr).slice(0, 2, np.float64)
    assert block.has_canonical_format
    assert block.toarray().tolist() == [[2, 0, 4], [0, 4, 0]]
    assert csr.data.tolist() == [1, 2, 3, 4]
    assert csr.indices.tolist() == [2, 0, 2, 1]


def test_memory_maps_are_known_through_views(tmp_path):
    np.save(tmp_path / "X.npy", matrix())
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    for view in (X, X[3:], X.T, np.asarray(X)[::2]):
        assert not as_rows(view).in_memory
    assert as_rows(np.array(X)).in_memory
    block = as_rows(X).take(np.array([1, 0]), np.float64)
    assert type(block) is np.ndarray
    assert np.array_equal(block, matrix()[[1, 0]])


@pytest.mark.parametrize("max_rows", [1, 5, 23, 100])
def test_blocks_cover_all_rows(max_rows):
    bounds = list(as_rows(matrix()).blocks(max_rows))
    assert all(0 < hi - lo <= max_rows for lo, hi in bounds)
    assert [i for lo, hi in bounds for i in range(lo, hi)] == list(range(23))


def test_blocks_of_no_rows():
    assert list(as_rows(np.empty((0, 3))).blocks(5)) == []
    with pytest.raises(ValueError, match="max_rows must be at least 1"):
        list(as_rows(matrix()).blocks(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_exact_dtype_loses_nothing(dtype):
    exact = as_rows(matrix(dtype)).exact_dtype
    assert exact == (
        np.float32
        if np.dtype(dtype).itemsize <= 2 or (np.dtype(dtype).kind + "4" == "f4" and np.dtype(dtype).itemsize == 4)
        else np.float64
    )


def test_a_slice_of_the_type_asked_for_is_no_copy():
    X = matrix()
    assert np.shares_memory(as_rows(X).slice(3, 9, np.float64), X)


def test_rows_come_back_as_they_are():
    rows = as_rows(matrix())
    assert as_rows(rows) is rows


@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((2, 2, 2)), 5.0])
def test_only_two_dimensions(X):
    with pytest.raises(ValueError, match="X must have two dimensions"):
        as_rows(X)


@pytest.mark.parametrize("X", [np.array([["a"]]), np.array([[1j]]), np.array([[None]]), sp.csr_array(np.array([[1j]]))])
def test_only_real_numbers(X):
    with pytest.raises(TypeError, match="X must hold real numbers, got dtype"):
        as_rows(X)


def test_lists_are_taken():
    for X, dtype in itertools.product(([[1, 2], [3, 4]],), (np.float32, np.float64)):
        assert as_rows(X).slice(0, 2, dtype).tolist() == X


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_many_rows_are_taken_with_looks_at_the_clock(make, monkeypatch):
    """A clock that goes on by a second whenever somebody looks at it."""
    looked, X = [0], np.random.default_rng(0).normal(size=(70, 500)).astype(np.float32)
    rows, index = as_rows(make(X)), np.random.default_rng(1).integers(70, size=2 * TAKEN_VALUES // 500 + 9)

    def look():
        looked[0] += 1
        return float(looked[0])

    monkeypatch.setattr("time.perf_counter", look)
    with time_limit(1e9):
        found = taken(rows, index, np.float64)
    assert looked[0] >= 3
    np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, X[index])
    with time_limit(1.0), pytest.raises(OutOfTimeError):
        taken(rows, index, np.float64)
