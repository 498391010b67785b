"""Kernels: parameters, accuracy, errors, memory, compiled code."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from slimsvm.kernels import (
    KERNELS,
    RBF,
    CallableKernel,
    Kernel,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    get_kernel,
)
from slimsvm.numerics import folding, panels

rng = np.random.default_rng(0)


# ---- names and parameters


def test_get_kernel():
    assert get_kernel("rbf", gamma=0.5) == RBF(0.5)
    assert get_kernel("linear", gamma=0.5, degree=3, coef0=1.0) == Linear()
    assert get_kernel("poly", gamma=0.5, degree=2, coef0=1.0) == Polynomial(2, 0.5, 1.0)
    assert get_kernel("precomputed") == Precomputed()
    kernel = Sigmoid(0.5)
    assert get_kernel(kernel) is kernel
    assert get_kernel(np.dot) == CallableKernel(np.dot)
    assert KERNELS["laplacian"] is Laplacian


def test_unknown_kernel_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown kernel 'rfb'; known kernels: callable, laplacian, .*rbf, sigmoid"):
        get_kernel("rfb")
    with pytest.raises(TypeError, match="kernel must be a name, a Kernel object or a function, got 3"):
        get_kernel(3)
    with pytest.raises(TypeError, match="the kernel 'rbf' has no parameter width"):
        get_kernel("rbf", width=3)
    with pytest.raises(ValueError, match="give its parameters to it"):
        get_kernel(RBF(1.0), gamma=2.0)


def test_kernels_are_compared_and_hashed_by_their_parameters():
    assert RBF([0.5, 1.0]) == RBF(np.array([0.5, 1.0]))
    assert RBF(1) == RBF(np.float32(1.0))
    assert RBF(1.0) != RBF(2.0)
    assert RBF(1.0) != Laplacian(1.0)
    assert len({RBF([0.5, 1.0]), RBF((0.5, 1.0)), RBF(0.5)}) == 2
    assert eval(repr(RBF([0.5, 1.0]))) == RBF([0.5, 1.0])


@pytest.mark.parametrize(
    "kernel", [RBF, Laplacian, lambda gamma: Polynomial(gamma=gamma), lambda gamma: Sigmoid(gamma=gamma)]
)
@pytest.mark.parametrize("gamma", [0, -1.0, np.inf, np.nan, [1.0, -2.0], [[1.0]], []])
def test_gamma_must_be_positive(kernel, gamma):
    with pytest.raises(ValueError, match="gamma must be a positive finite number"):
        kernel(gamma)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: RBF("scale"), TypeError, "gamma must be a positive finite number, or a 1-D array"),
        (lambda: RBF([1.0, 0.0]), ValueError, "got 0.0 for feature 1"),
        (lambda: Polynomial(gamma=[1.0, 2.0]), ValueError, "gamma must be a positive finite number, got an array"),
        (lambda: Polynomial(degree=0), ValueError, "degree must be an integer of at least 1, got 0"),
        (lambda: Polynomial(degree=None), ValueError, "degree must be an integer of at least 1, got None"),
        (lambda: Polynomial(degree=np.inf), ValueError, "degree must be an integer of at least 1, got inf"),
        (lambda: Polynomial(degree=1.5), ValueError, "degree must be an integer of at least 1, got 1.5"),
        (lambda: Polynomial(degree="3"), ValueError, "degree must be an integer of at least 1, got '3'"),
        (lambda: Polynomial(coef0=np.nan), ValueError, "coef0 must be a finite number, got nan"),
        (lambda: Sigmoid(coef0="x"), TypeError, "coef0 must be a finite number, got 'x'"),
        (lambda: CallableKernel(3), TypeError, "must be callable, got 3"),
    ],
)
def test_bad_parameters_are_named(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_gamma_of_every_feature():
    with pytest.raises(ValueError, match="gamma has 3 values, the rows have 2 features"):
        KernelRows(RBF([1.0, 2.0, 3.0]), np.zeros((4, 2)))


def test_a_header_is_json_and_arrays():
    header, arrays = RBF([0.1, 1.0]).to_header()
    assert json.loads(json.dumps(header)) == {"kernel": "rbf"}
    assert arrays["kernel_gamma"].tolist() == [0.1, 1.0]
    header, arrays = Polynomial(2, 0.5, 1.0).to_header()
    assert json.loads(json.dumps(header)) == {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0}
    assert arrays == {}


# ---- a kernel of one's own


class Cosine(Kernel):
    name = "cosine"

    def block(self, X, Z, dtype=np.float64):
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        return (X @ Z.T).astype(dtype)


def test_a_kernel_of_ones_own_is_one_method():
    X, coef = rng.standard_normal((40, 3)), rng.standard_normal((7, 2))
    rows = KernelRows(Cosine(), X, dtype=np.float64)
    expected = Cosine().block(X, X[:7])
    assert rows.scores(rows.points(np.arange(7)), coef) == pytest.approx(expected @ coef)
    assert Cosine().scores(X, X[:7], coef) == pytest.approx(expected @ coef)
    assert Cosine().scores(X, X[:7], coef[:, 0]) == pytest.approx(expected @ coef[:, 0])
    assert rows.diag() == pytest.approx(np.ones(40))
    assert rows.radius == 0
    with pytest.raises(TypeError, match="Cosine does not define to_header"):
        Cosine().to_header()
    with pytest.raises(TypeError, match="Cosine does not define from_header"):
        Cosine.from_header({}, {})


def test_a_callable_gets_blocks_of_the_rows_as_they_are():
    X, seen = rng.standard_normal((30_000, 4)).astype(np.float32), []

    def function(X, Z):
        seen.append((X.copy(), Z.dtype))
        return X @ Z.T

    rows = KernelRows(CallableKernel(function), X)
    rows.scores(rows.points(np.arange(100)), np.ones((100, 1)))
    assert len(seen) > 1
    assert np.array_equal(np.concatenate([block for block, _ in seen]), X)
    assert {dtype for _, dtype in seen} == {np.dtype("float32")}


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (np.zeros((3, 2)), ValueError, r"must return an array of shape \(5, 2\), got \(3, 2\)"),
        (np.zeros(5), ValueError, r"must return an array of shape \(5, 2\), got \(5,\)"),
        (np.full((5, 2), "a"), TypeError, "must return real numbers, got dtype <U1"),
        (np.full((5, 2), 1j), TypeError, "must return real numbers, got dtype complex128"),
    ],
)
def test_what_a_callable_must_not_return(result, error, text):
    rows = KernelRows(CallableKernel(lambda X, Z: result), np.ones((5, 3)))
    with pytest.raises(error, match=text):
        rows.block(rows.points(np.arange(2)))


def test_precomputed_positions_are_checked():
    rows = KernelRows(Precomputed(), rng.standard_normal((4, 6)))
    for bad in ([[6]], [[-1]]):
        with pytest.raises(ValueError, match=r"positions in 0..5 \(the columns of the kernel matrix\)"):
            rows.points_of(np.array(bad))
    with pytest.raises(ValueError, match=r"must have shape \(k, 1\), got \(2, 3\)"):
        rows.points_of(np.zeros((2, 3)))
    tall = KernelRows(Precomputed(), rng.standard_normal((6, 4)))
    with pytest.raises(ValueError, match="a precomputed kernel has a diagonal for training rows only: row 5 is none"):
        tall.diag()


# ---- accuracy


@pytest.mark.parametrize(("dtype", "lowest", "bound"), [("float32", -79.0, 2e-7), ("float64", -899.0, 1e-15)])
def test_exp2_is_accurate(dtype, lowest, bound):
    """Kernel values of the origin: 2**base to the last bits, base being what is stored."""
    x = np.sqrt(np.linspace(0, -lowest, 200_001) * np.log(2))[:, None].astype(dtype)
    rows = KernelRows(RBF(1.0), np.zeros((1, 1), dtype), dtype=dtype, centre=np.zeros(1))
    points = rows.points_of(x)
    exact = np.exp2(points.data.base[: len(x)].astype(np.longdouble))
    values = rows.block(points)[0]
    assert values[0] == 1.0
    assert np.max(np.abs(values / exact - 1)) <= bound
    scores = np.array(
        [rows.scores(rows.points_of(x[i : i + 1]), np.ones((1, 1)))[0, 0] for i in range(0, len(x), 4001)]
    )
    assert np.max(np.abs(scores / exact[::4001] - 1)) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 2e-7), ("float64", 1e-14)])
def test_a_rows_own_norm_is_as_accurate(dtype, bound):
    """Scores of one point at the origin: 2**half, which goes into the rounding and the row's factor."""
    x = np.sqrt(np.linspace(0, 54, 100_001))[:, None].astype(dtype)
    rows = KernelRows(RBF(1.0), x, dtype=dtype, centre=np.zeros(1))
    folded = rows._kept.data.values.astype(np.longdouble)
    exact = np.exp2(-folded * folded / 2)
    scores = rows.scores(rows.points_of(np.zeros((1, 1))), np.ones((1, 1)))[:, 0]
    assert scores[0] == pytest.approx(1.0, rel=bound)
    assert np.max(np.abs(scores / exact - 1)) <= bound


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [RBF(3.0), Laplacian(3.0)])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_far_points_give_nothing(dtype, kernel, wrap):
    X = np.array([[0.0, 0.5], [1e3, 0.0], [-1e3, 0.0], [1e6, 1.0], [1e9, 1.0], [1e15, -1e15], [1e18, 0.0]])
    rows = KernelRows(kernel, wrap(X), dtype=dtype, centre=np.zeros(2))
    points = rows.points(np.arange(7))
    values = rows.block(points)
    others = values[~np.eye(7, dtype=bool)]
    assert others.min() >= 0
    assert others.max() <= 1e-20
    assert values[0, 0] == 1.0
    scores = rows.scores(points, np.ones((7, 1)))
    assert scores[0, 0] == pytest.approx(1.0, rel=1e-6)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    assert scores.max() <= 1.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_values_are_at_most_one(dtype):
    X = rng.standard_normal((300, 30)).astype(dtype)
    for kernel in (RBF(0.5), Laplacian(0.1)):
        rows = KernelRows(kernel, np.concatenate([X, X]), dtype=dtype)
        values = rows.block(rows.points(np.arange(600)))
        assert values.max() == 1.0
        assert np.diagonal(values).min() >= 1 - 100 * np.finfo(dtype).eps


def test_centring_keeps_float32_accurate_far_from_the_origin():
    near = rng.standard_normal((200, 4))
    for raw in (np.float64, np.float32):
        X = (near + 1000.0).astype(raw)
        exact = naive.kernel_matrix(RBF(0.5), X[:20], X)
        rows = KernelRows(RBF(0.5), X, dtype=np.float32)
        assert np.abs(rows.block(rows.points(np.arange(200)), rows=(0, 20)) - exact).max() < 2e-6


def test_float32_error_grows_with_the_radius_as_stated():
    X = rng.standard_normal((300, 10))
    for gamma in (0.1, 10.0, 100.0):
        single = KernelRows(RBF(gamma), X, dtype=np.float32)
        exact = KernelRows(RBF(gamma), X, dtype=np.float64)
        X0 = X - X.mean(axis=0)
        assert single.radius == pytest.approx(gamma * np.square(X0).sum(axis=1).max(), rel=1e-5)
        assert exact.radius == pytest.approx(single.radius, rel=1e-5)
        index = np.arange(300)
        error = np.abs(single.block(single.points(index)) - exact.block(exact.points(index))).max()
        assert error < 1e-6 * (1 + single.radius)
    assert KernelRows(RBF(0.5), sp.csr_array(X)).radius == pytest.approx(0.5 * np.square(X).sum(axis=1).max(), rel=1e-5)
    assert KernelRows(Laplacian(0.5), X).radius == 0
    assert KernelRows(RBF(0.5), X, memory_limit=0).radius == KernelRows(RBF(0.5), X).radius


@pytest.mark.parametrize(
    ("d", "form"), [(1, panels.INNER), (1, panels.CSR_INNER), (1000, panels.CSC_INNER)], ids=["dense", "mixed", "csc"]
)
def test_sums_over_many_points_are_in_float64(d, form):
    """A tenth summed 300,000 times in float32 would be 0.3 % off."""
    k = 300_000

    def ones(n):
        if form == panels.INNER:
            return np.ones((n, 1))
        return sp.csr_array((np.ones(n), np.zeros(n, np.int64), np.arange(n + 1)), shape=(n, d))

    rows = KernelRows(Linear(), ones(1), dtype=np.float32)
    coef = np.full((k, 2), np.float32(0.1))
    expected = k * float(np.float32(0.1))
    points = rows.points_of(ones(k))
    assert points.form == form
    assert rows.scores(points, coef[:, :1])[0, 0] == pytest.approx(expected, rel=5e-7)
    assert rows.scores(points, coef)[0] == pytest.approx([expected, expected], rel=5e-7)


# ---- shapes and memory


@pytest.mark.parametrize("d", [1, 2, 3, 7, 8, 64, 300])
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


# ---- compiled code


SECOND_PROCESS = """
    import numpy as np
    import scipy.sparse as sp
    from slimsvm.kernels import *
    from slimsvm.numerics import folding, panels
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    for dtype in (np.float32, np.float64):
        for raw in (X, X.astype(np.float32), sp.csr_array(X), sp.csr_array(X * (X > 1.5))):
            for kernel in (RBF(1.0), Laplacian(1.0), Polynomial(2)):
                rows = KernelRows(kernel, raw, dtype=dtype)
                points = rows.points(np.arange(20))
                rows.scores(points, np.ones((20, 2)), segments=np.array([0, 3, 20]))
                rows.block(points, rows=np.arange(5))
        rows = KernelRows(Precomputed(), X, dtype=dtype)
        rows.scores(rows.points(np.arange(3)), np.ones((3, 1)))
    functions = [value for module in (panels, folding) for value in vars(module).values() if hasattr(value, "stats")]
    cached = [function for function in functions if function.stats.cache_path]
    print(sum(sum(function.stats.cache_misses.values()) for function in cached))
    print({function.__name__: len(function.signatures) for function in cached})
"""


def test_a_second_process_compiles_nothing_and_there_are_few_versions():
    for _ in range(2):
        command = [sys.executable, "-c", textwrap.dedent(SECOND_PROCESS)]
        misses, versions = subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=600
        ).stdout.splitlines()
    assert misses == "0"
    versions = eval(versions)
    assert versions["kernel_tiles"] == 2  # float32, float64
    assert max(versions.values()) == 4  # of stored and working type


def test_compiled_functions_are_cached():
    for module in (panels, folding):
        for name, function in vars(module).items():
            if hasattr(function, "py_func") and not name.startswith("_") and name != "aligned":
                assert function.stats.cache_path, name
