"""Rows folded by compiled code against NumPy: all lengths of a row's rest, both types, rows that are too far out."""

from __future__ import annotations

import numpy as np
import pytest

from slimsvm import core
from slimsvm.core import NO_NORM, SQUARED

ROWS = 9
# What -h is of rows too far out to be folded.
FAR_FLOAT32, FAR_FLOAT64 = 2.0**20, 2.0**50


@pytest.mark.parametrize("d", [0, 1, 3, 4, 7, 8, 9, 15, 16, 22])
@pytest.mark.parametrize("raw_type", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_centred_scaled_and_measured(d, raw_type, dtype):
    rng = np.random.default_rng(d)
    raw, centre, scale = rng.normal(size=(ROWS, d)).astype(raw_type), rng.normal(size=d), rng.uniform(0.5, 2, d)
    bad = np.zeros(ROWS, bool)
    if d:
        bad[[2, 5]] = True
        raw[2, -1], raw[5, 0] = np.nan, 1e30
    values, half, factor = _folded(raw, centre, scale, SQUARED, 0.5, dtype)
    expected = ((raw.astype(np.float64) - centre) * scale).astype(dtype)
    expected[bad] = 0
    total = 0.5 * (expected.astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_allclose(half[~bad], -total[~bad], rtol=1e-6 if dtype == np.float32 else 1e-14)
    rest = 2.0 ** (-np.rint(half[~bad].astype(np.float64)) - total[~bad]) / 0.5
    np.testing.assert_allclose(factor[~bad], rest, rtol=1e-13)
    assert (half[bad] == -(FAR_FLOAT32 if dtype == np.float32 else FAR_FLOAT64)).all()
    assert not factor[bad].any()


def test_without_norms_only_the_numbers_change():
    raw = np.arange(18.0).reshape(2, 9)
    values, half, factor = _folded(raw, np.ones(9), np.full(9, 2.0), NO_NORM, 0.5, np.float64)
    np.testing.assert_array_equal(values, 2 * (raw - 1))
    assert not half.any()
    assert (factor == 2).all()


@pytest.mark.parametrize("d", [5, 13])
def test_a_row_is_the_same_alone_and_others_are_left_alone(d):
    rng = np.random.default_rng(0)
    raw, centre, scale = rng.normal(size=(ROWS, d)), rng.normal(size=d), np.ones(d)
    together = _folded(raw, centre, scale, SQUARED, 1.0, np.float32)
    for i in range(ROWS):
        alone = _folded(raw[i : i + 1], centre, scale, SQUARED, 1.0, np.float32)
        for all_of_it, one in zip(together, alone, strict=True):
            assert all_of_it[i].tobytes() == one[0].tobytes()
    values, half, factor = np.full((ROWS, d), 7, np.float32), np.full(ROWS, 7, np.float32), np.full(ROWS, 7.0)
    _fold(raw[3:5], centre, scale, SQUARED, 1.0, values[3:5], half[3:5], factor[3:5])
    for array in (values, half, factor):
        assert (np.delete(array, [3, 4], axis=0) == 7).all()
    assert (values[3:5] != 7).all()


def _folded(raw, centre, scale, norm, constant, dtype):
    values, half, factor = np.empty(raw.shape, dtype), np.empty(len(raw), dtype), np.empty(len(raw))
    _fold(raw, centre, scale, norm, constant, values, half, factor)
    return values, half, factor


def _fold(raw, centre, scale, norm, constant, values, half, factor):
    core.fold_rows(
        raw=raw, centre=centre, feature_scale=scale, norm=norm, scale=constant, out=values, half=half, factor=factor
    )
