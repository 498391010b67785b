"""Sums of columns and boxes about rows: the same wherever parts begin, and of rows beyond memory found once."""

import numpy as np
import pytest

from block_rows_cases import in_blocks
from slimsvm import SVC, LowRank
from slimsvm.rows import ColumnSums, as_rows, keep_sums, sums_of
from slimsvm.rows.columns import occurring
from slimsvm.sparse_parts import places_of


@pytest.mark.parametrize(("n", "d"), [(1, 1), (203, 20), (5_000, 3), (410, 4_097)])
def test_least_and_greatest_values(n, d):
    X = np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)
    sums = ColumnSums(d, has_box=True)
    sums.add(X)
    np.testing.assert_array_equal(sums.box, [X.min(axis=0), X.max(axis=0)])
    np.testing.assert_allclose(sums.total, X.sum(axis=0, dtype=np.float64), atol=1e-9)


def test_parts_one_after_the_other():
    X = np.random.default_rng(0).normal(size=(1_000, 3))
    rows = as_rows(X)
    one, parts = sums_of(rows, 77, True), [sums_of(as_rows(X[lo : lo + 250]), 100, True) for lo in range(0, 1_000, 250)]
    both = keep_sums(rows, parts)
    np.testing.assert_array_equal(both.box, one.box)
    np.testing.assert_allclose(both.total, one.total)
    assert rows.column_sums is None  # of rows in memory they are not kept


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_goes_through_blocks_once_for_its_width_and_its_centre(monkeypatch):
    X = np.random.default_rng(0).normal(size=(2_000, 3))
    blocks, passes = in_blocks(X, 5), []
    monkeypatch.setattr("slimsvm.kernels.kernel_rows.sums_of", lambda *of, **how: passes.append(of))
    fit = SVC(solver=LowRank(5), max_iter=1, random_state=0).fit(blocks, X[:, 0] > 0)
    monkeypatch.undo()
    assert not passes
    assert blocks.column_sums is not None
    other = SVC(solver=LowRank(5), max_iter=1, random_state=0).fit(X, X[:, 0] > 0)
    np.testing.assert_array_equal(fit.basis_coef_, other.basis_coef_)


@pytest.mark.parametrize("width", [50, 400, 1_000_000])
def test_columns_that_occur_are_found_by_a_table_and_by_sorting(width):
    columns = np.random.default_rng(0).integers(width, size=100).astype(np.int32)
    found = occurring(columns)
    expected = np.unique(columns, return_inverse=True)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, expected[0])
    np.testing.assert_array_equal(places_of(found, columns), expected[1])
    some = np.arange(0, width, 3)
    np.testing.assert_array_equal(places_of(some, columns), np.where(columns % 3, -1, columns // 3))
    assert (places_of(found[:0], columns) == -1).all()
    assert not len(places_of(found, columns[:0]))
