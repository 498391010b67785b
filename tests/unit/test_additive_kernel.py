"""The additive kernel: its parameters, its terms, and what an additive model is good for."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import naive
import slimsvm
from slimsvm import SVC, SVR
from slimsvm.kernels import RBF, Additive, KernelRows, get_kernel
from slimsvm.modelfile import read_model, write_model


def rows(n=120, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"family": "poly"}, "family must be one of 'rbf', 'matern32', 'rational_quadratic', 'laplacian', got 'poly'"),
        ({"gamma": -1.0}, "gamma must be a positive finite number"),
        ({"widths": []}, "widths must be numbers of columns of the terms, at least 1 each"),
        ({"widths": [1, 0]}, "widths must be numbers of columns"),
        ({"widths": [1.5]}, "widths must be numbers of columns"),
        ({"widths": [2**62] * 4 + [4]}, "widths must be at most 16,384, found 4,611,686,018,427,387,904"),
        ({"shares": [1.0, -1.0]}, "shares must be finite numbers of the terms, at least 0 and not all 0"),
        ({"shares": [0.0, 0.0]}, "not all 0"),
        ({"shares": [np.nan]}, "finite"),
        ({"shares": "many"}, "shares must be"),
        ({"interaction": 1.5}, "interaction must be a share from 0 to 1, got 1.5"),
        ({"interaction": None}, "interaction must be a share"),
        ({"widths": [1, 3], "shares": [1.0]}, "shares must be one for each term: 2 widths, 1 shares"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        Additive(**parameters)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Additive(widths=[1, 2]), "widths add up to 3 columns, the rows have 4 features"),
        (Additive(shares=[1, 2, 3]), "there are 3 shares for 4 terms"),
        (Additive(gamma=[1.0, 2.0]), "gamma has 2 values, the rows have 4 features"),
    ],
)
def test_a_fit_says_what_does_not_go_with_the_rows(kernel, message):
    X = rows()
    with pytest.raises(ValueError, match=message):
        SVC(kernel=kernel).fit(X, X[:, 0] > 0)


def test_terms_add_up_to_the_kernel():
    X, kernel = rows(), Additive([0.1, 0.2, 0.3, 0.4], "matern32", [1, 2, 1], [1, 0, 2], 0.25)
    terms = kernel.terms(4)
    assert [(term.columns.start, term.columns.stop) for term in terms] == [(0, 1), (3, 4), (0, 4)]
    assert sum(term.share for term in terms) == pytest.approx(1.0)
    total = sum(term.share * term.kernel.block(X[:, term.columns], X[:, term.columns]) for term in terms)
    np.testing.assert_allclose(total, kernel.block(X, X), rtol=1e-12)


def test_special_cases_are_other_kernels():
    X = rows()
    for same in (Additive(0.3, interaction=1.0), Additive(0.3, widths=[4])):
        np.testing.assert_allclose(same.block(X, X), RBF(0.3).block(X, X), rtol=0, atol=1e-14)
    np.testing.assert_allclose(Additive(0.3).block(X[:, :1], X[:, :1]), RBF(0.3).block(X[:, :1], X[:, :1]), atol=1e-14)


def test_objects_are_values():
    kernel = Additive(0.5, "laplacian", [1, 2], [1, 3], 0.5)
    assert pickle.loads(pickle.dumps(kernel)) == kernel == Additive(0.5, "laplacian", (1, 2), (1.0, 3.0), 0.5)
    assert kernel != Additive(0.5, "laplacian", [2, 1], [1, 3], 0.5) != Additive(0.5, "laplacian", [2, 1])
    assert len({kernel, Additive(0.5, "laplacian", [1, 2], [1, 3], 0.5), Additive(0.5)}) == 2
    assert repr(kernel) == "Additive(gamma=0.5, family='laplacian', widths=[1, 2], shares=[1.0, 3.0], interaction=0.5)"
    assert eval(repr(kernel)) == kernel
    assert get_kernel("additive", gamma=2.0, degree=3, coef0=1.0) == Additive(2.0)
    assert clone(SVC(kernel=kernel)).kernel == kernel


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e4, 1e30, 1e200])
def test_rows_far_apart_have_finite_values(dtype, scale):
    """A row has the value 1 with itself, and with one that differs in two of four columns half of it."""
    X = rows(6)
    X[0] = scale * np.array([1.0, -1.0, 0.5, 1.0])
    X[1] = X[0] * np.array([1.0, 1.0, -1.0, -1.0])
    for family in ("rbf", "matern32", "rational_quadratic", "laplacian"):
        K = KernelRows(Additive(0.3, family), X, dtype=dtype, n_jobs=1)
        K = K.block(K.points_of(X))
        assert np.isfinite(K).all()
        np.testing.assert_allclose(np.diagonal(K), 1.0, rtol=1e-6)
        assert K[0, 1] == pytest.approx(0.5, abs=1e-3)


def test_float32_keeps_digits_of_rows_far_from_the_origin():
    X = 1e5 + rows()
    K = KernelRows(Additive(0.2), X, dtype=np.float32, n_jobs=1)
    np.testing.assert_allclose(K.block(K.points_of(X)), naive.kernel_matrix(Additive(0.2), X, X), rtol=0, atol=2e-5)


@pytest.mark.parametrize("cell", [1e8, 1e12, 1e15])
@pytest.mark.parametrize("interaction", [0.0, 1.0])
@pytest.mark.parametrize("family", ["rbf", "matern32", "rational_quadratic", "laplacian"])
def test_one_far_cell_costs_others_no_digits(family, interaction, cell):
    """It pulls the mean of its column away from all other rows."""
    X, kernel = rows(20), Additive(0.6, family, interaction=interaction)
    X[3, 1] = cell
    others = np.arange(20) != 3
    exact = naive.kernel_matrix(kernel, X[others], X[others])
    for dtype, room in ((np.float64, 1e-14), (np.float32, 1e-6)):
        K = KernelRows(kernel, X, dtype=dtype, n_jobs=1)
        K = K.block(K.points_of(X))[others][:, others]
        np.testing.assert_allclose(K, exact, rtol=0, atol=room)


def test_sparse_rows_are_cut_in_parts(monkeypatch):
    X = sp.random_array((50, 7), density=0.3, rng=np.random.default_rng(0), format="csr")
    whole = Additive(0.2, interaction=0.2).block(X, X)
    monkeypatch.setattr("slimsvm.kernels.term_points.DENSE_NUMBERS", 30)
    assert np.array_equal(Additive(0.2, interaction=0.2).block(X, X), whole)
    assert np.array_equal(Additive(0.2, interaction=0.2).block(X, X[:0]), np.empty((50, 0)))
    numbers = np.arange(6).reshape(2, 3)
    K = Additive(0.2).block(sp.csr_array(numbers), sp.csr_array(numbers))
    np.testing.assert_allclose(K, Additive(0.2).block(numbers, numbers), rtol=1e-14)


def test_an_additive_model_finds_additive_functions_from_few_rows():
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, (150, 8)), rng.uniform(-1, 1, (1000, 8))

    def truth(X):
        return np.sin(3 * X[:, 0]) + X[:, 1] ** 2 - np.abs(X[:, 2])

    errors = {}
    for kernel in ("additive", "rbf"):
        model = SVR(kernel=kernel, C=10, epsilon=0.01).fit(X, truth(X))
        errors[kernel] = np.abs(model.predict(Z) - truth(Z)).mean()
    assert errors["additive"] < 0.5 * errors["rbf"]


def test_an_interaction_is_found_with_a_share_of_the_product_alone():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    y = X[:, 0] * X[:, 1] > 0
    scores = [SVC(kernel=Additive(2.0, interaction=share), C=10).fit(X, y).score(X, y) for share in (0.0, 0.5)]
    assert scores[0] < 0.8 < 0.95 < scores[1]


def test_solvers_that_need_derivatives_refuse():
    X = rows()
    for parameters in ({"max_basis": 5, "solver": "refine"}, {"gamma": "learn"}, {"gamma": "learn", "solver": "exact"}):
        with pytest.raises(ValueError, match="needs kernel"):
            SVC(kernel="additive", **parameters).fit(X, X[:, 0] > 0)


def test_gamma_is_chosen_and_the_rest_stays():
    X = rows(300)
    chosen = SVC(kernel=Additive(0.2, "laplacian", interaction=0.5), gamma="validate").fit(X, X[:, 0] > 0).kernel_
    assert (chosen.family, chosen.interaction) == ("laplacian", 0.5)


def test_a_file_has_the_whole_kernel(tmp_path):
    X = rows()
    kernel = Additive([0.1, 0.2, 0.3, 0.4], "matern32", [1, 2, 1], [1, 0, 2], 0.25)
    model = SVC(kernel=kernel, probability=True, random_state=0).fit(X, X[:, 0] > 0)
    model.save(tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    assert loaded.kernel_ == kernel
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    np.testing.assert_allclose(predictor.decision_function(X), model.decision_function(X), rtol=0, atol=1e-10)
    np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("family", None, "the kernel has no family"),
        ("family", "poly", "family must be one of"),
        ("interaction", "much", "interaction must be a share"),
        ("kernel_widths", np.array([1, 1]), "widths add up to 2 columns, the rows have 3 features"),
        ("kernel_widths", np.array([1.0, 2.0]), "the array kernel_widths must not have dtype float64"),
        ("kernel_shares", np.array([1.0, -1.0]), "shares must be finite numbers of the terms"),
        ("kernel_shares", np.ones(3), "shares must be one for each term"),
    ],
)
def test_a_file_with_other_terms_is_damaged(entry, value, message, tmp_path):
    X, path = rows(40, 3), tmp_path / "model.slim"
    SVC(kernel=Additive(0.3, widths=[1, 2], shares=[1, 3])).fit(X, X[:, 0] > 0).save(path)
    header, arrays = read_model(path)
    if entry in arrays:
        arrays = arrays | {entry: value}
    else:
        header["kernel"] = {name: part for name, part in header["kernel"].items() if name != entry or value is not None}
        header["kernel"] |= {} if value is None else {entry: value}
    write_model(path, header, arrays)
    for load in (slimsvm.load, slimsvm.load_predictor):
        with pytest.raises(slimsvm.ModelFileError, match=message):
            load(path)


@pytest.mark.parametrize("family", ["rbf", "matern32"])
def test_shapley_values_of_single_columns_are_their_terms(family):
    X = rows()
    model = SVR(kernel=Additive(0.3, family)).fit(X, X[:, 0] ** 2 + X[:, 1])
    found = model.explain(X[:5], background=X)
    assert found.standard_errors is None
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X[:5]), atol=1e-9)
    for term in model.kernel_.terms(4):
        own = term.share * term.kernel.block(X[:, term.columns], model.basis_vectors_[:, term.columns])
        values = own @ model.model_.coef[:, 0]
        np.testing.assert_allclose(found.values[:, term.columns.start], values[:5] - values.mean(), atol=1e-9)


@pytest.mark.parametrize(("family", "is_exact"), [("rbf", True), ("matern32", False)])
def test_shapley_values_with_groups_and_a_product(family, is_exact):
    X = rows()
    model = SVR(kernel=Additive(0.3, family, [2, 1, 1], interaction=0.3)).fit(X, X[:, 0] * X[:, 1])
    for background in (None, X[:7]):
        found = model.explain(X[:3], background=background)
        assert (found.standard_errors is None) == is_exact
        np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.predict(X[:3]), atol=1e-9)
