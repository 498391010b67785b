"""The kernel expansion: scores, norm, merging of duplicates, and the way into a file and back."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from kernel_cases import with_metric
from slimsvm.kernels import (
    RBF,
    CallableKernel,
    Kernel,
    KernelRows,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from slimsvm.kernels.operands import RowSizes, Sized
from slimsvm.model import KernelExpansion
from slimsvm.modelfile import read_model, write_model

KERNELS = [
    *with_metric(0.3, (0.1, 0.2, 0.3, 0.4, 0.5)).values(),
    Laplacian(0.2),
    Polynomial(degree=3, gamma=0.5, coef0=1.0),
    Linear(),
    Sigmoid(gamma=0.1, coef0=0.2),
    CallableKernel(lambda X, Z: np.asarray((X @ Z.T).todense() if sp.issparse(X) else X @ Z.T) ** 2),
]
FORMS = [np.asarray, sp.csr_array]


def expansion(kernel, form=np.asarray, K=7, m=2, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(K, 5)) * (rng.random((K, 5)) < 0.7)
    return KernelExpansion(form(basis), rng.normal(size=(K, m)), rng.normal(size=m), rng.normal(size=3), kernel, dtype)


def rows(n=50, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.7)


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("basis_form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize(("dtype", "tol"), [("float32", 2e-5), ("float64", 1e-12)])
def test_scores_are_the_sum_over_the_basis(kernel, form, basis_form, dtype, tol):
    model = expansion(kernel, basis_form, dtype=dtype)
    X = rows()
    scores = model.scores(form(X))
    assert scores.dtype == np.float64
    expected = naive.kernel_matrix(kernel, X, dense(model.basis)) @ model.coef + model.intercept
    np.testing.assert_allclose(scores, expected, rtol=tol, atol=tol * abs(expected).max())


def test_dtype_is_that_of_the_kernel_values():
    single, double = (
        KernelExpansion(rows(9), np.ones((9, 1)), np.zeros(1), np.zeros(0), RBF(0.3), dtype).scores(rows(20))
        for dtype in ("float32", "float64")
    )
    np.testing.assert_array_equal(single, single.astype(np.float32))
    assert not (double == double.astype(np.float32)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scores_are_the_same_bits_in_any_batch_and_for_any_number_of_threads(kernel, form, dtype):
    rng = np.random.default_rng(0)
    model = expansion(kernel, form, K=300, dtype=dtype)
    X = np.vstack([rows(1000), 5 + rows(5)])
    scores = model.scores(form(X), n_jobs=1)
    np.testing.assert_array_equal(model.scores(form(X), n_jobs=4), scores)
    if isinstance(kernel, CallableKernel):
        return  # what the user's function returns for other batches is up to the user
    for index in ([3], [999, 3, 1001], np.arange(17, 300), rng.permutation(len(X))):
        np.testing.assert_array_equal(model.scores(form(X[index]), n_jobs=2), scores[index])


@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=lambda kernel: kernel.name)
def test_vectors_are_prepared_once_for_each_kind_of_rows(kernel, monkeypatch):
    asked = []
    points_of = KernelRows.points_of
    monkeypatch.setattr(KernelRows, "points_of", lambda self, basis: asked.append(1) or points_of(self, basis))
    model, X = expansion(kernel, K=30), rows(7)
    first = [model.scores(form(X)) for form in FORMS]
    assert len(asked) == len(FORMS)
    for scores, form in zip(first, FORMS, strict=True):
        np.testing.assert_array_equal(model.scores(form(X)), scores)
        np.testing.assert_array_equal(expansion(kernel, K=30).scores(form(X)), scores)
    assert len(asked) == 2 * len(FORMS)
    with pytest.raises(ValueError, match="features"):
        model.scores(X[:, :3])


def test_what_was_prepared_is_not_pickled_and_threads_may_prepare_at_once():
    model, X = expansion(RBF(0.3), K=300), rows(50)
    before, fresh = pickle.dumps(model), [pickle.loads(pickle.dumps(model)) for _ in range(20)]
    scores = model.scores(X, n_jobs=1)
    assert pickle.dumps(model) == before
    with ThreadPoolExecutor(4) as pool:
        for other in fresh:
            for found in pool.map(lambda _, other=other: other.scores(X, n_jobs=1), range(4)):
                np.testing.assert_array_equal(found, scores)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_folded_in_small_parts_have_the_same_scores(dtype, monkeypatch):
    model, X = expansion(RBF(0.3), K=300, dtype=dtype), rows(5000)
    scores = model.scores(X, n_jobs=1)
    monkeypatch.setattr(Sized, "sizes", RowSizes(folded_bytes=1000))
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(model.scores(X, n_jobs=n_jobs), scores)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=lambda kernel: kernel.name)
def test_norm_is_that_of_the_gram_matrix(kernel, form):
    model = expansion(kernel, form, K=40, dtype="float32")
    B = dense(model.basis)
    K_BB = naive.kernel_matrix(kernel, B, B)
    expected = np.trace(model.coef.T @ K_BB @ model.coef) + model.plain @ model.plain
    assert model.norm_squared() == pytest.approx(expected, rel=1e-12)


def precomputed(n=20):
    X = rows(n)
    gram = naive.kernel_matrix(RBF(0.3), X, X)
    basis = np.array([[3], [8], [3], [0]])
    coef = np.array([[1.0], [-2.0], [0.5], [0.0]])
    return gram, KernelExpansion(basis, coef, np.array([0.25]), np.zeros(0), Precomputed(), "float64")


def test_precomputed_kernel():
    gram, model = precomputed()
    np.testing.assert_allclose(model.scores(gram), 1.5 * gram[:, [3]] - 2 * gram[:, [8]] + 0.25, rtol=1e-14)
    assert model.norm_squared(gram) == pytest.approx(1.5**2 + 4 - 6 * gram[3, 8])
    merged = model.merged()
    np.testing.assert_array_equal(merged.basis, [[3], [8]])
    np.testing.assert_array_equal(merged.coef, [[1.5], [-2.0]])
    assert merged.norm_squared(gram) == pytest.approx(model.norm_squared(gram))


def test_norm_asks_for_the_gram_matrix_where_it_needs_one():
    gram, model = precomputed()
    with pytest.raises(ValueError, match=r"gram.*there is none"):
        model.norm_squared()
    with pytest.raises(ValueError, match=r"gram.*RBF\(gamma=0\.3\)"):
        expansion(RBF(0.3)).norm_squared(gram)


@pytest.mark.parametrize("form", FORMS)
def test_merged_keeps_the_order_of_first_occurrence(form):
    basis = form(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, -0.0], [3.0, 0.0], [0.0, 2.0], [4.0, 1.0], [0.0, 0.0]]))
    coef = np.array([[1.0, 2], [5, 5], [10, 20], [0, 0], [-5, -5], [0, 7], [1, 0]])
    merged = KernelExpansion(basis, coef, np.array([1.0, 2.0]), np.array([3.0]), Linear(), "float32").merged()
    assert sp.issparse(merged.basis) == (form is sp.csr_array)
    np.testing.assert_array_equal(dense(merged.basis), [[1, 0], [4, 1], [0, 0]])
    np.testing.assert_array_equal(merged.coef, [[11, 22], [0, 7], [1, 0]])
    assert (merged.intercept, merged.plain, merged.dtype) == (pytest.approx([1, 2]), pytest.approx([3]), "float32")


def test_merged_sees_through_explicit_zeros_and_unsorted_columns():
    basis = sp.csr_array((np.array([2.0, 0.0, 1.0, 2.0, 1.0]), [1, 2, 0, 1, 0], [0, 3, 5]), shape=(2, 3))
    merged = KernelExpansion(basis, np.ones((2, 1)), np.zeros(1), np.zeros(0), Linear(), "float64").merged()
    np.testing.assert_array_equal(merged.basis.toarray(), [[1, 2, 0]])
    np.testing.assert_array_equal(merged.coef, [[2]])


@given(seed=st.integers(0, 2**32 - 1), form=st.sampled_from(FORMS))
def test_merged_is_the_same_function(seed, form):
    rng = np.random.default_rng(seed)
    basis = rng.integers(-1, 2, size=(rng.integers(0, 30), 3)).astype(rng.choice([np.float32, np.float64]))
    coef = rng.integers(-1, 2, size=(len(basis), 2)).astype(float)
    model = KernelExpansion(form(basis), coef, np.zeros(2), np.zeros(0), RBF(0.5), "float64")
    merged = model.merged()
    vectors = [tuple(vector) for vector in dense(merged.basis)]
    assert len(set(vectors)) == len(vectors) == merged.n_basis
    assert merged.coef.any(axis=1).all()
    assert merged.basis.dtype == model.basis.dtype
    X = rng.normal(size=(4, 3))
    np.testing.assert_allclose(merged.scores(X), model.scores(X), atol=1e-12)
    assert merged.norm_squared() == pytest.approx(model.norm_squared(), abs=1e-9)


def same(a, b):
    assert type(a.basis) is type(b.basis)
    assert a.basis.dtype == b.basis.dtype
    assert a.basis.shape == b.basis.shape
    np.testing.assert_array_equal(dense(a.basis), dense(b.basis))
    np.testing.assert_array_equal(a.coef, b.coef)
    np.testing.assert_array_equal(a.intercept, b.intercept)
    np.testing.assert_array_equal(a.plain, b.plain)
    assert (a.kernel, a.dtype) == (b.kernel, b.dtype)


MODELS = [(kernel.name, expansion(kernel, form)) for kernel in KERNELS[:-1] for form in FORMS]
MODELS += [("precomputed", precomputed()[1]), ("empty", expansion(RBF(0.3), K=0))]
MODELS += [("empty csr", expansion(Laplacian(0.3), sp.csr_array, K=0))]


@pytest.mark.parametrize(("name", "model"), MODELS)
def test_file_and_pickle_give_the_model_back(tmp_path, name, model):
    path = tmp_path / "model.slim"
    write_model(path, *model.to_file_parts())
    back = KernelExpansion.from_file_parts(*read_model(path))
    same(back, model)
    same(pickle.loads(pickle.dumps(model)), model)
    if name != "precomputed":
        np.testing.assert_array_equal(back.scores(rows(3)), model.scores(rows(3)))


def test_others_may_add_to_header_and_arrays():
    model = expansion(RBF((0.1, 0.2, 0.3, 0.4, 0.5)))
    header, arrays = model.to_file_parts()
    back = KernelExpansion.from_file_parts(header | {"estimator": "SVC"}, arrays | {"classes": np.array([0, 1])})
    same(back, model)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_hold_what_is_not_zero_of_dense_vectors(tmp_path, dtype):
    rng = np.random.default_rng(0)
    basis = np.where(rng.random((40, 200)) < 0.1, rng.normal(size=(40, 200)), 0.0).astype(dtype)
    model = KernelExpansion(basis, rng.normal(size=(40, 1)), np.ones(1), np.zeros(0), RBF(0.3), "float32")
    path = tmp_path / "model.slim"
    write_model(path, *model.to_file_parts())
    assert path.stat().st_size < 0.35 * basis.nbytes + 3000
    again = KernelExpansion.from_file_parts(*read_model(path))
    assert type(again.basis) is np.ndarray
    assert again.basis.dtype == dtype
    np.testing.assert_array_equal(again.basis, basis)
    X = rng.normal(size=(20, 200))
    np.testing.assert_array_equal(again.scores(X), model.scores(X))


def test_functions_do_not_go_into_files():
    with pytest.raises(TypeError, match=r"a function of yours cannot be saved: a model file holds no code"):
        expansion(KERNELS[-1]).to_file_parts()


class Cosine(Kernel):
    name = "cosine"

    def block(self, X, Z, dtype=np.float64):
        return (X @ Z.T / np.outer(np.linalg.norm(X, axis=1), np.linalg.norm(Z, axis=1))).astype(dtype)


def test_a_kernel_class_without_a_header_does_not_go_into_files():
    with pytest.raises(TypeError, match="Cosine does not define to_header"):
        expansion(Cosine()).to_file_parts()


def test_headers_that_name_no_known_kernel():
    header, arrays = expansion(RBF(0.3)).to_file_parts()
    with pytest.raises(ValueError, match=r"unknown kernel 'cosine'; known kernels: .*rbf"):
        KernelExpansion.from_file_parts(header | {"kernel": {"kernel": "cosine"}}, arrays)


def test_parts_that_do_not_make_a_model():
    header, arrays = expansion(RBF(0.3), sp.csr_array).to_file_parts()
    with pytest.raises(KeyError, match="coef"):
        KernelExpansion.from_file_parts(header, {name: arrays[name] for name in arrays if name != "coef"})
    with pytest.raises(ValueError, match="indices"):
        KernelExpansion.from_file_parts(header, arrays | {"basis_indices": arrays["basis_indices"] + 1})


def test_empty_model_scores_its_intercept():
    model = expansion(RBF(0.3), K=0)
    np.testing.assert_array_equal(model.scores(rows(3)), np.tile(model.intercept, (3, 1)))
    assert model.norm_squared() == pytest.approx(model.plain @ model.plain)
    assert model.merged().n_basis == 0


def test_rows_with_other_features_are_refused():
    with pytest.raises(ValueError, match="the rows have 4 features"):
        expansion(RBF(0.3)).scores(np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"coef": np.ones((6, 2))}, r"\(7, 5\), \(6, 2\), \(2,\), \(3,\)"),
        ({"coef": np.ones(7)}, r"\(K, m\)"),
        ({"intercept": np.ones(1)}, r"\(m,\)"),
        ({"intercept": np.ones((1, 2))}, r"\(m,\)"),
        ({"plain": np.ones((3, 1))}, r"\(p,\)"),
        ({"basis": np.ones(7)}, r"\(K, d\)"),
        ({"dtype": "float16"}, "dtype must be one of float32, float64, got 'float16'"),
    ],
)
def test_shapes_that_do_not_fit(changes, message):
    model = expansion(Linear())
    parts = {name: getattr(model, name) for name in ("basis", "coef", "intercept", "plain", "kernel", "dtype")}
    with pytest.raises(ValueError, match=message):
        KernelExpansion(**parts | changes)


def test_sparse_vectors_in_which_most_of_many_columns_occur():
    """To leave out the other columns would leave as many: scores were a RecursionError."""
    n = 40_000
    basis = sp.csr_array((np.ones(n), np.arange(n), [0, n]), shape=(1, n))
    model = KernelExpansion(basis, np.ones((1, 1)), np.zeros(1), np.zeros(0), Linear(), "float64")
    rows = sp.csr_array(([1.0, 2.0], [3, 39_000], [0, 1, 2]), shape=(2, n))
    np.testing.assert_allclose(model.scores(rows), [[1.0], [2.0]])
