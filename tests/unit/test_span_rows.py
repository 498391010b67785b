"""Rows as a subspace sees them in another process: the same bits, in memory that is used again."""

import numpy as np

from slimsvm.core.products import SUM_ROWS
from slimsvm.kernels import RBF
from slimsvm.parts.span.whitened_span import RemoteSpanRows, Span
from slimsvm.rows import as_rows


def test_parts_after_one_another_have_their_values_in_the_same_memory():
    X = np.random.default_rng(0).normal(size=(3 * SUM_ROWS, 4)).astype(np.float32)
    span = Span(RBF(0.3), X[:20], np.zeros(4), np.float32, SUM_ROWS)
    kept, expected = [], []
    for lo in (0, SUM_ROWS):
        seen = RemoteSpanRows(span, as_rows(X[lo : lo + 2 * SUM_ROWS]))
        for _, _, values in seen.pieces():
            kept.append(values)
        expected.append(seen._rows.block(seen._rows.points_of(span.basis), rows=(SUM_ROWS, 2 * SUM_ROWS)))
    assert all(np.shares_memory(values, kept[0]) for values in kept)
    np.testing.assert_array_equal(kept[-1], expected[-1])
    few = RemoteSpanRows(span, as_rows(X[:3]))
    assert [values.shape for _, _, values in few.pieces()] == [(3, 20)]
