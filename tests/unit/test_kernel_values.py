"""Kernels: parameters, accuracy, errors, memory, compiled code."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import naive
from kernel_cases import with_metric
from slimsvm import core
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
    kernels_with,
)

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


def test_what_kernels_can_do_is_listed_by_name():
    listed = kernels_with("has_gradient")
    assert listed.startswith("'rbf', ")
    assert listed.endswith("'poly', 'linear' or 'sigmoid'")
    assert not any(name in listed for name in ("laplacian", "precomputed", "callable"))
    assert kernels_with("has_metric").startswith("'rbf'")
    assert "poly" not in kernels_with("has_metric")


def test_unknown_kernel_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown kernel 'rfb'; known kernels: additive, callable, lap.*rbf, sigmoid"):
        get_kernel("rfb")
    with pytest.raises(TypeError, match="kernel must be a name, a Kernel object or a function, got 3"):
        get_kernel(3)
    with pytest.raises(TypeError, match="the kernel 'rbf' has no parameter width"):
        get_kernel("rbf", width=3)
    with pytest.raises(ValueError, match="give its parameters to the object itself"):
        get_kernel(RBF(1.0), gamma=2.0)


def test_kernels_are_compared_and_hashed_by_their_parameters():
    assert RBF([0.5, 1.0]) == RBF(np.array([0.5, 1.0]))
    assert RBF(1) == RBF(np.float32(1.0))
    assert RBF(1.0) != RBF(2.0)
    assert RBF(1.0) != Laplacian(1.0)
    assert len({RBF([0.5, 1.0]), RBF((0.5, 1.0)), RBF(0.5)}) == 2
    assert eval(repr(RBF([0.5, 1.0]))) == RBF([0.5, 1.0])


@pytest.mark.turns("kernel")
@pytest.mark.parametrize(
    "kernel", [RBF, Laplacian, lambda gamma: Polynomial(gamma=gamma), lambda gamma: Sigmoid(gamma=gamma)]
)
@pytest.mark.parametrize("gamma", [-1e-300, -1.0, np.inf, np.nan, [1.0, -2.0], [1.0, 0.0], [[1.0]], []])
def test_gamma_must_be_positive(kernel, gamma):
    with pytest.raises(ValueError, match="gamma must be a positive finite number"):
        kernel(gamma)


def test_a_gamma_of_zero_makes_a_kernel_constant():
    rows = np.random.default_rng(0).normal(size=(5, 3))
    for kernel, value in (
        (RBF(0), 1.0),
        (Laplacian(0.0), 1.0),
        (Polynomial(2, 0.0, 3.0), 9.0),
        (Sigmoid(0.0, 0.5), np.tanh(0.5)),
    ):
        for X in (rows, sp.csr_array(rows)):
            np.testing.assert_allclose(kernel.block(X, X), np.full((5, 5), value), rtol=1e-12)


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
    folded = rows._kept.rows.values.astype(np.longdouble)
    exact = np.exp2(-folded * folded / 2)
    scores = rows.scores(rows.points_of(np.zeros((1, 1))), np.ones((1, 1)))[:, 0]
    assert scores[0] == pytest.approx(1.0, rel=bound)
    assert np.max(np.abs(scores / exact - 1)) <= bound


@pytest.mark.parametrize("size", [1.0, 1e10, 1e14])
@pytest.mark.parametrize("points_at", [1.0, 8.0])
def test_near_rows_have_the_same_bits_by_fewer_instructions(size, points_at):
    """A single tile of rows is not asked whether it is near; among several tiles each group of rows is."""
    X = rng.standard_normal((400, 5)).astype(np.float32) * np.repeat([0.5, 4.0, 0.5, 9.0], 100)[:, None]
    P = points_at * rng.standard_normal((130, 5)).astype(np.float32)
    coef = size * rng.standard_normal((130, 1))
    rows = KernelRows(RBF(0.6), X, centre=np.zeros(5))
    points = rows.points_of(P)
    scores = rows.scores(points, coef)
    alone = np.concatenate([rows.scores(points, coef, rows=(lo, min(lo + 48, 400))) for lo in range(0, 400, 48)])
    np.testing.assert_array_equal(scores, alone)
    values = naive.kernel_matrix(RBF(0.6), X, P)
    bound = 2e-6 * (values * (1 + np.abs(X) @ np.abs(P).T)) @ np.abs(coef) + 1e-20 * size
    assert (np.abs(scores - values @ coef) <= bound).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", [*with_metric(3.0).values(), Laplacian(3.0)])
@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_far_points_give_nothing(dtype, kernel, wrap):
    X = np.array([[0.0, 0.5], [1e3, 0.0], [-1e3, 0.0], [1e6, 1.0], [1e9, 1.0], [1e15, -1e15], [1e18, 0.0]])
    rows = KernelRows(kernel, wrap(X), dtype=dtype, centre=np.zeros(2))
    points = rows.points(np.arange(7))
    values = rows.block(points)
    others = values[~np.eye(7, dtype=bool)]
    assert others.min() >= 0
    # Rows beyond a bound of their type lie on it: of kernels that fall off slowly there is something left.
    bound = np.array([[2.0**10 if dtype == "float32" else 2.0**25, 0.0]])
    least = naive.kernel_matrix(type(kernel)(1.0), bound, 0 * bound), naive.kernel_matrix(kernel, X[:1], X[1:2])
    assert others.max() <= 1.001 * np.max(least) + 1e-20
    assert values[0, 0] == 1.0
    scores = rows.scores(points, np.ones((7, 1)))
    assert scores[0, 0] == pytest.approx(values[0].sum(), rel=1e-6)
    assert np.isfinite(scores).all()
    assert scores.min() >= 0
    assert scores.max() <= 1.1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernel_values_are_at_most_one(dtype):
    X = rng.standard_normal((300, 30)).astype(dtype)
    for kernel in (*with_metric(0.5).values(), Laplacian(0.1)):
        rows = KernelRows(kernel, np.concatenate([X, X]), dtype=dtype)
        values = rows.block(rows.points(np.arange(600)))
        assert values.max() == 1.0
        assert np.diagonal(values).min() >= 1 - (20 + 3 * rows.radius) * np.finfo(dtype).eps


def test_centring_keeps_float32_accurate_far_from_the_origin():
    near = rng.standard_normal((200, 4))
    for raw in (np.float64, np.float32):
        X = (near + 1000.0).astype(raw)
        exact = naive.kernel_matrix(RBF(0.5), X[:20], X)
        rows = KernelRows(RBF(0.5), X, dtype=np.float32)
        assert np.abs(rows.block(rows.points(np.arange(200)), rows=(0, 20)) - exact).max() < 2e-6


@pytest.mark.parametrize("name", with_metric(1.0))
def test_float32_error_grows_with_the_radius_as_stated(name):
    X = rng.standard_normal((300, 10))
    for gamma in (0.1, 10.0, 100.0):
        single = KernelRows(with_metric(gamma)[name], X, dtype=np.float32)
        exact = KernelRows(with_metric(gamma)[name], X, dtype=np.float64)
        X0 = X - X.mean(axis=0)
        if name == "rbf":
            assert single.radius == pytest.approx(gamma * np.square(X0).sum(axis=1).max(), rel=1e-5)
        assert exact.radius == pytest.approx(single.radius, rel=1e-5)
        index = np.arange(300)
        error = np.abs(single.block(single.points(index)) - exact.block(exact.points(index))).max()
        assert error < 1e-6 * (1 + single.radius)
    assert KernelRows(RBF(0.5), sp.csr_array(X)).radius == pytest.approx(0.5 * np.square(X).sum(axis=1).max(), rel=1e-5)
    assert KernelRows(Laplacian(0.5), X).radius == 0
    assert KernelRows(RBF(0.5), X, memory_limit=0).radius == KernelRows(RBF(0.5), X).radius


@pytest.mark.parametrize(
    ("d", "form"), [(1, core.INNER), (1, core.CSR_INNER), (1000, core.CSC_INNER)], ids=["dense", "mixed", "csc"]
)
def test_sums_over_many_points_are_in_float64(d, form):
    """A tenth summed 300,000 times in float32 would be 0.3 % off."""
    k = 300_000

    def ones(n):
        if form == core.INNER:
            return np.ones((n, 1))
        return sp.csr_array((np.ones(n), np.zeros(n, np.int64), np.arange(n + 1)), shape=(n, d))

    rows = KernelRows(Linear(), ones(1), dtype=np.float32)
    coef = np.full((k, 2), np.float32(0.1))
    expected = k * float(np.float32(0.1))
    points = rows.points_of(ones(k))
    assert points.form == form
    assert rows.scores(points, coef[:, :1])[0, 0] == pytest.approx(expected, rel=5e-7)
    assert rows.scores(points, coef)[0] == pytest.approx([expected, expected], rel=5e-7)


@pytest.mark.parametrize("kernel", [RBF(0.3), RBF((0.1, 0.2, 0.3)), Laplacian(0.5), Polynomial(3, 0.5, 1.0), Linear()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_are_kept_are_the_same_points_as_rows_that_are_not(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(40, 3)) + 5.0
    kept, index = KernelRows(kernel, X, dtype=dtype, n_jobs=1), np.array([3, 30, 7])
    others = KernelRows(kernel, X, dtype=dtype, n_jobs=1, memory_limit=0)
    assert kept.is_kept
    assert not others.is_kept
    found, expected = kept.points(index), others.points(index)
    assert found.form == expected.form
    np.testing.assert_array_equal(found.raw, expected.raw)
    np.testing.assert_array_equal(found.data.panels, expected.data.panels)
    np.testing.assert_array_equal(found.data.base, expected.data.base)
