"""Products of whitened rows in register tiles, against NumPy's."""

import numpy as np
import pytest

from slimsvm.kernels import RBF, KernelRows
from slimsvm.parts.span.whitened_span import GrowingSubspace, Subspace

TILE, CHUNK = 48, 256  # rows of a task, and rows that squares are summed over in the working type
SIZES = [(1, 1), (5, 3), (TILE, 64), (TILE + 1, 65), (CHUNK + 7, 33), (Subspace.chunk_rows + 50, 130)]


def spaces(n, k, dtype, n_jobs=1):
    rng = np.random.default_rng(n + k)
    X = rng.standard_normal((max(n, k), 3)).astype(dtype)
    rows = KernelRows(RBF(0.7), X, dtype=dtype, n_jobs=n_jobs)
    vectors = rng.standard_normal((k, 3))
    growing = GrowingSubspace(rows, 1.0, k, 1 << 30)
    growing.extend(vectors)
    return rows, vectors, growing, Subspace(rows, vectors, 1.0, 1 << 30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "k"), SIZES)
def test_whitened_rows_and_their_squares(n, k, dtype):
    rng = np.random.default_rng(0)
    index, weights = rng.permutation(max(n, k))[:n], rng.random(n)
    rows, vectors, *found = spaces(n, k, dtype)
    tolerance = 2e-3 if dtype == np.float32 else 1e-9
    for space in found:
        z = space.whitened(index)
        kept = (
            vectors[space.kept]
            if isinstance(space, Subspace) and not isinstance(space, GrowingSubspace)
            else space.basis
        )
        expected = (
            RBF(0.7).block(np.asarray(rows.rows.slice(0, rows.n_rows, dtype), float)[index], kept) @ space._to_coef
        )
        assert z.shape == (n, space.rank + 1)
        np.testing.assert_allclose(z[:, :-1], expected, atol=tolerance * max(1.0, np.abs(space._to_coef).max()) * 0.1)
        np.testing.assert_array_equal(z[:, -1], 1.0)
        square = space.gram(z, weights)
        wide = z.astype(np.float64)
        np.testing.assert_allclose(
            np.tril(square), np.tril(wide.T @ (weights[:, None] * wide)), rtol=1e-4 if dtype == np.float32 else 1e-11,
            atol=1e-4 if dtype == np.float32 else 1e-12,
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_bits_for_any_number_of_threads(dtype, threads_for_all):
    found = []
    for n_jobs in (1, 4):
        _, _, growing, _ = spaces(Subspace.chunk_rows + 50, 130, dtype, n_jobs)
        z = growing.whitened(np.arange(Subspace.chunk_rows + 50))
        found.append((z, growing.gram(z, np.linspace(0, 1, len(z))), growing.times(np.ones((growing.rank + 1, 1)))))
    for one, four in zip(*found, strict=True):
        np.testing.assert_array_equal(one, four)


def test_vectors_that_depend_on_each_other_are_left_out():
    rows, _, _, _ = spaces(30, 2, np.float64)
    vectors = np.random.default_rng(1).standard_normal((6, 3))
    space = GrowingSubspace(rows, 0.0, 6, 1 << 30)
    assert space.extend(vectors[[0, 1, 0, 2, 1]]).tolist() == [0, 1, 3]
    assert space.extend(vectors[3:]).tolist() == [0, 1, 2]
    np.testing.assert_allclose(space.L @ space.L.T, RBF(0.7).block(space.basis, space.basis), atol=1e-12)
