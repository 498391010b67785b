"""Kernels: every shape, errors, memory, compiled code."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm.kernels import (
    RBF,
    CallableKernel,
    KernelRows,
    Laplacian,
    Linear,
)
from slimsvm.kernels.operands import cut_weights

rng = np.random.default_rng(0)


# ---- shapes and memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_few_points_have_the_values_they_have_among_many(dtype):
    """To the last bit, though fewer vectors of a panel are gone through."""
    X = np.random.default_rng(0).standard_normal((101, 33))
    rows = KernelRows(RBF(0.02), X, dtype=dtype, n_jobs=1)
    whole = rows.block(rows.points_of(X[:70]))
    np.testing.assert_allclose(whole, RBF(0.02).block(X, X[:70]), rtol=1e-5)
    for k in (1, 4, 5, 8, 9, 15, 16, 17, 33, 65, 67):
        np.testing.assert_array_equal(rows.block(rows.points_of(X[:k])), whole[:, :k])


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 64, 97, 500])
@pytest.mark.parametrize("k", [1, 5, 64, 65, 700])
@pytest.mark.parametrize("n", [1, 47, 48, 49])
def test_every_size(n, k, d):
    X, Z, coef = rng.standard_normal((n, d)), rng.standard_normal((k, d)), rng.standard_normal((k, 1))
    gamma = 0.5 / d
    distances = np.square(X).sum(axis=1)[:, None] + np.square(Z).sum(axis=1) - 2 * X @ Z.T
    expected = np.exp(-gamma * distances)
    for dtype, tolerance in (("float32", 2e-6), ("float64", 2e-14)):
        rows = KernelRows(RBF(gamma), X, dtype=dtype)
        points = rows.points_of(Z)
        assert np.abs(rows.block(points) - expected).max() < tolerance
        assert np.abs(rows.scores(points, coef) - expected @ coef).max() < tolerance * (1 + np.abs(coef).sum())


def test_points_and_their_coefficients_begin_where_a_vector_does():
    """Else every vector lies across two cache lines, which takes up to a fifth more time."""
    X = rng.standard_normal((70, 5))
    for dtype in (np.float32, np.float64):
        for wrap in (np.asarray, sp.csr_array):
            rows = KernelRows(RBF(1.0), wrap(X), dtype=dtype)
            for points in (rows.points_of(X), rows.points(np.arange(70))):
                for array in (points.data.panels, points.data.base):
                    assert array.ctypes.data % 64 == 0
        weights = cut_weights(np.ones((70, 2), dtype), np.array([0, 30, 70]))
        assert weights.values.ctypes.data % 64 == 0


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "kernel", [RBF(1.0), Laplacian(1.0), Linear(), CallableKernel(lambda X, Z: np.zeros((X.shape[0], Z.shape[0])))]
)
def test_no_points_and_no_rows(wrap, kernel):
    X = wrap(rng.standard_normal((4, 3)))
    rows = KernelRows(kernel, X)
    nothing = rows.points(np.array([], np.int64))
    assert rows.scores(nothing, np.empty((0, 2))).tolist() == [[0, 0]] * 4
    assert rows.scores(nothing, np.empty((0, 1)), segments=np.array([0, 0, 0])).shape == (4, 2, 1)
    assert rows.block(nothing).shape == (4, 0)
    none = KernelRows(kernel, X[:0])
    assert none.scores(none.points_of(X), np.ones((4, 1))).shape == (0, 1)
    assert none.radius == 0
    assert none.diag().shape == (0,)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda rows, p: rows.scores(p, np.ones((4, 1))), ValueError, r"coef must have shape \(3, m\), got \(4, 1\)"),
        (lambda rows, p: rows.scores(p, np.ones(3)), ValueError, r"coef must have shape \(3, m\), got \(3,\)"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), segments=[0, 2]), ValueError, "segments must be"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), segments=[0, 2, 1, 3]), ValueError, "segments must be"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), segments=[1, 3]), ValueError, "segments must be"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), rows=(0, 6)), IndexError, r"within 0..5, got \(0, 6\)"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), rows=np.array([5])), IndexError, "must be in 0..4, got 5"),
        (lambda rows, p: rows.points(np.array([-1])), IndexError, "row indices must be in 0..4, got -1..-1"),
        (lambda rows, p: rows.points(np.array([[1]])), ValueError, "an index of rows must be 1-D"),
        (lambda rows, p: rows.points(np.array([0.5])), TypeError, "an index of rows must be integers, got float64"),
        (lambda rows, p: rows.block(p, rows=np.array([True] * 5)), TypeError, "must be integers, got bool"),
        (lambda rows, p: rows.points_of(np.ones((2, 3))), ValueError, r"2 features, the basis has shape \(2, 3\)"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), out=np.empty((5, 1))), ValueError, "out must be a writ"),
        (lambda rows, p: rows.scores(p, np.ones((3, 1)), out=np.empty((4, 1), "f4")), ValueError, "out must be"),
        (lambda rows, p: KernelRows(Linear(), np.ones((5, 2)), dtype="float16"), ValueError, "dtype must be"),
        (lambda rows, p: KernelRows(Linear(), np.ones((5, 2)), n_jobs=0), ValueError, "n_jobs must not be 0"),
        (lambda rows, p: KernelRows(Linear(), np.ones(5)), ValueError, "X must have two dimensions"),
    ],
)  # fmt: skip
def test_errors_say_what_was_found(call, error, text):
    rows = KernelRows(RBF(1.0), rng.standard_normal((5, 2)))
    with pytest.raises(error, match=text):
        call(rows, rows.points(np.arange(3)))


def test_read_only_unaligned_and_foreign_arrays_are_taken():
    X = rng.standard_normal((60, 3))
    expected = RBF(1.0).block(X, X)
    frozen = X.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float64).reshape(60, 3)
    assert not unaligned.flags.aligned
    for same in (frozen, unaligned, X.astype(">f8"), np.asfortranarray(X), X[::-1][::-1]):
        rows = KernelRows(RBF(1.0), same, dtype=np.float64)
        index = np.arange(60)
        index.flags.writeable = False
        coef = np.ones((60, 1))
        coef.flags.writeable = False
        assert np.array_equal(rows.block(rows.points(index)), expected)
        assert rows.scores(rows.points(index), coef, rows=index) == pytest.approx(expected @ coef)


def test_wide_sparse_rows_are_never_made_dense():
    """A million features: dense rows would take 16 GB, and dense points 400 MB."""
    n, d = 2000, 1_000_000
    columns = np.sort(rng.integers(0, d // 30, (n, 30)) * 30 + np.arange(30), axis=1)
    X = sp.csr_array((rng.standard_normal(n * 30), columns.ravel(), np.arange(n + 1) * 30), shape=(n, d))
    coef = rng.standard_normal((50, 1))
    for kernel in (RBF(0.5), Laplacian(0.5), Linear()):
        rows = KernelRows(kernel, X, dtype=np.float64)
        points = rows.points(np.arange(50))
        assert points.data.panels.size == X[:50].nnz
        used = np.unique(X.indices[: 50 * 30])
        narrow = sp.hstack([X[:50, used], sp.csr_array(X[:50].power(2 if kernel.name == "rbf" else 1))], format="csr")[
            :, : len(used)
        ]
        assert narrow.shape[1] == len(used)
        expected = kernel.block(X[:50, used].toarray(), X[:50, used].toarray())
        assert np.abs(rows.block(points, rows=(0, 50)) - expected).max() < 1e-12
        assert np.abs(rows.scores(points, coef, rows=(0, 50)) - expected @ coef).max() < 1e-11


def test_points_that_share_their_features_are_not_made_dense_either():
    n, d = 300, 1_000_000
    X = sp.csr_array((rng.standard_normal(n * 3), np.tile([5, 70_000, 999_999], n), np.arange(n + 1) * 3), shape=(n, d))
    rows = KernelRows(RBF(0.5), X, dtype=np.float64)
    points = rows.points(np.arange(n))
    assert points.data.panels.size == X.nnz
    dense = X[:, [5, 70_000, 999_999]].toarray()
    assert np.abs(rows.block(points) - RBF(0.5).block(dense, dense)).max() < 1e-12


def test_memory_limit_decides_what_is_kept():
    X = rng.standard_normal((5000, 20))
    assert KernelRows(RBF(0.1), X)._kept is not None
    assert KernelRows(RBF(0.1), X, memory_limit=5000 * 20 * 4)._kept is None
    assert KernelRows(RBF(0.1), sp.csr_array(X), memory_limit=1000)._kept is None


MEMORY = """
    import sys
    import numpy as np
    from slimsvm.kernels import RBF, Laplacian, KernelRows
    def anonymous():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024
    X = np.load(sys.argv[1], mmap_mode="r")
    small = KernelRows(RBF(1.0), np.ones((500, X.shape[1]), np.float32), n_jobs=2)
    small.scores(small.points(np.arange(400)), np.ones((400, 1)))
    before = anonymous()
    rows = KernelRows(RBF(1.0), X, n_jobs=2)
    points = rows.points(np.arange(0, rows.n_rows, rows.n_rows // 16))
    rows.scores(points, np.ones((len(points), 1)))
    rows.block(points, rows=np.arange(0, rows.n_rows, 1000))
    rows.radius
    print(anonymous() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_memory_map_is_scored_in_a_fifth_of_its_size(tmp_path):
    """400 MB on disk (sparse: zeros), under 80 MB of memory that is not the file's own pages."""
    np.lib.format.open_memmap(tmp_path / "X.npy", mode="w+", dtype=np.float32, shape=(2_000_000, 50)).flush()
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), str(tmp_path / "X.npy")]
    grown = float(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
    assert grown < 80
