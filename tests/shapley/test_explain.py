"""Shapley values: equal to the sum over all coalitions, and add up to the scores."""

import sys
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import factorial

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from fixtures.make_models import MODELS
from kernel_cases import WITH_FORMULA
from slimsvm import SVC, SVR, OrdinalSVC, RankSVM, SequenceSVM
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.kernels import Additive, get_kernel
from slimsvm.shapley import explain_scores

KERNELS = {
    "rbf": lambda x, z, gamma: np.exp(-np.sum(gamma * (x - z) ** 2)),
    "laplacian": lambda x, z, gamma: np.exp(-np.sum(gamma * np.abs(x - z))),
    "matern32": lambda x, z, gamma: (lambda s: (1 + s) * np.exp(-s))(np.sqrt(6 * np.sum(gamma * (x - z) ** 2))),
    "rational_quadratic": lambda x, z, gamma: 1 / (1 + np.sum(gamma * (x - z) ** 2)),
    "poly": lambda x, z, gamma: (np.sum(gamma * x * z) + 0.5) ** 3,
    "sigmoid": lambda x, z, gamma: np.tanh(np.sum(gamma * x * z) + 0.5),
    "linear": lambda x, z, gamma: np.sum(x * z),
}
EXACT = "rbf", "laplacian", "linear"


def test_every_kernel_with_a_formula_is_here():
    assert {*KERNELS, "additive"} == set(WITH_FORMULA)


def a_model(kernel, d, gamma=0.3, n_vectors=6, n_outputs=1, kind="regression", **options):
    rng = np.random.default_rng(d)
    vectors, coef = rng.normal(size=(n_vectors, d)), rng.normal(size=(n_vectors, n_outputs))
    model = PlainModel(kind, get_kernel(kernel, gamma=gamma, coef0=0.5, degree=3), d, vectors, coef,
                       rng.normal(size=n_outputs), np.zeros(0), np.arange(n_outputs), options)  # fmt: skip
    if kernel == "linear":
        return PlainModel(**vars(model) | {"vectors": None, "coef": vectors.T @ coef}), vectors, coef
    return model, vectors, coef


def explained(model, X, background=None, n_permutations=100):
    return explain_scores(model, X, background, n_permutations, np.random.RandomState(0), None)


def value_of(kernel, gamma, vectors, coef, intercept, x, present, background):
    """Score of the features that are present: without background the others are left out of every sum."""
    gamma = np.broadcast_to(gamma, len(x))
    if background is None:
        rows, vectors, gamma = [x[present]], vectors[:, present], gamma[present]
    else:
        rows = [np.where(np.isin(np.arange(len(x)), present), x, row) for row in background]
    values = [[KERNELS[kernel](row, z, gamma) for z in vectors] for row in rows]
    return np.mean(values, axis=0) @ coef + intercept


def by_coalitions(kernel, gamma, vectors, coef, intercept, x, background):
    """Shapley values (d, n_outputs) by their definition, 2^d coalitions."""
    return by_definition(
        len(x), lambda some: value_of(kernel, gamma, vectors, coef, intercept, x, list(some), background)
    )


def by_definition(d, score_of):
    scores = {some: score_of(some) for size in range(d + 1) for some in combinations(range(d), size)}
    phi = np.zeros((d, len(scores[()])))
    for some, score in scores.items():
        for i in set(range(d)) - set(some):
            weight = factorial(len(some)) * factorial(d - len(some) - 1) / factorial(d)
            phi[i] += weight * (scores[tuple(sorted((*some, i)))] - score)
    return phi


@pytest.mark.parametrize("has_background", [False, True], ids=["absent", "background"])
@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("kernel", EXACT)
def test_values_are_those_of_all_coalitions(kernel, d, has_background):
    rng = np.random.default_rng(0)
    gamma = 0.3 if d == 2 else rng.uniform(0.1, 1.0, d)
    model, vectors, coef = a_model(kernel, d, gamma, n_vectors=3, n_outputs=2, kind="classes")
    X, background = rng.normal(size=(2, d)), rng.normal(size=(3, d)) if has_background else None
    found = explained(model, X, background)
    assert found.standard_errors is None
    for x, values in zip(X, found.values, strict=True):
        expected = by_coalitions(kernel, gamma, vectors, coef, model.intercept, x, background)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("has_background", [False, True], ids=["absent", "background"])
@pytest.mark.parametrize("kernel", [Additive(0.3, "matern32"), Additive(0.2, "laplacian", [2, 1, 2], [1, 0, 3], 0.4)])
def test_values_of_sums_over_columns_are_those_of_all_coalitions(kernel, has_background):
    """Without a background an absent feature of a row is that of the vector: its distance is 0."""
    rng = np.random.default_rng(0)
    vectors, coef, X = rng.normal(size=(3, 5)), rng.normal(size=(3, 2)), rng.normal(size=(2, 5))
    model = PlainModel("classes", kernel, 5, vectors, coef, np.zeros(2), np.zeros(0), np.arange(2), {})
    background = rng.normal(size=(4, 5)) if has_background else None

    def score_of(x, some):
        present = np.isin(np.arange(5), some)
        if background is None:
            return [kernel.block(np.where(present, x, z)[None], z[None])[0, 0] for z in vectors] @ coef
        return kernel.block(np.where(present, x, background), vectors).mean(axis=0) @ coef

    found = explained(model, X, background)
    assert found.standard_errors is None
    for x, values in zip(X, found.values, strict=True):
        np.testing.assert_allclose(values, by_definition(5, partial(score_of, x)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("has_background", [False, True], ids=["absent", "background"])
@pytest.mark.parametrize("kernel", sorted(set(KERNELS) - set(EXACT)))
def test_sampled_values_are_within_their_errors(kernel, has_background):
    rng = np.random.default_rng(1)
    model, vectors, coef = a_model(kernel, 6)
    X, background = rng.normal(size=(4, 6)), rng.normal(size=(3, 6)) if has_background else None
    found, more = explained(model, X, background, 200), explained(model, X, background, 20000)
    expected = np.stack([by_coalitions(kernel, 0.3, vectors, coef, model.intercept, x, background)[:, 0] for x in X])
    # Unbiased, and the errors are right: 24 values of about a normal distribution, a tenth for 100 times as many.
    assert (np.abs(found.values - expected) <= 4.0 * found.standard_errors + 1e-12).all()
    assert np.abs(found.values - expected).max() > 1e-6
    assert (np.abs(more.values - expected) <= 4.0 * more.standard_errors + 1e-12).all()
    np.testing.assert_allclose(more.standard_errors, found.standard_errors / 10, rtol=0.5, atol=1e-12)


@pytest.mark.parametrize("has_background", [False, True], ids=["absent", "background"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_values_add_up_to_the_score(kernel, has_background):
    rng = np.random.default_rng(2)
    model, _, _ = a_model(kernel, 30, 1 / 30, n_vectors=20)
    X, background = rng.normal(size=(7, 30)), rng.normal(size=(5, 30)) if has_background else None
    found = explained(model, X, background)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.scores(X)[:, 0], rtol=1e-9)
    base = model.scores(np.zeros((1, 30)))[0] if background is None else model.scores(background).mean(axis=0)
    if has_background or kernel in ("poly", "sigmoid", "linear"):
        np.testing.assert_allclose(found.base_values, base[0], rtol=1e-12)
    else:
        np.testing.assert_allclose(found.base_values, model.coef.sum() + model.intercept[0], rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("d", [101, 600])
def test_hundreds_of_features_lose_no_digits(kernel, d):
    """Rows near the vectors and far from them: factors from 1 to where they underflow."""
    rng = np.random.default_rng(3)
    model, vectors, _ = a_model(kernel, d, 1.0 / d)
    X = np.stack([vectors[0] + 1e-3, vectors[1] * (1 + 100 * (np.arange(d) == 7)), 30 * rng.normal(size=d)])
    for background in (None, rng.normal(size=(2, d))):
        found = explained(model, X, background)
        np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), model.scores(X)[:, 0], rtol=1e-9)


def test_the_same_in_blocks(monkeypatch):
    model, _, _ = a_model("rbf", 9, n_vectors=11)
    X, background = np.random.default_rng(0).normal(size=(2, 8, 9))
    whole = [explained(model, X, rows).values for rows in (None, background)]
    monkeypatch.setattr("slimsvm.shapley.PRODUCT_NUMBERS", 100)
    for rows, expected in zip((None, background), whole, strict=True):
        np.testing.assert_allclose(explained(model, X, rows).values, expected, rtol=1e-12, atol=1e-14)


def classes_of(X, k):
    """Classes along the first feature."""
    return np.array(list("abcdefgh"))[np.digitize(X[:, 0], np.linspace(-1, 1, k + 1)[1:-1])]


@pytest.mark.parametrize("gamma", [0.5, np.array([0.5, 0.1, 2.0]), "learn"], ids=["one", "each", "learned"])
def test_an_estimator_explains_its_decision_function(gamma):
    X = np.random.default_rng(0).normal(size=(80, 3))
    clf = SVC(gamma=gamma, max_basis=10 if isinstance(gamma, str) else None, random_state=0).fit(X, classes_of(X, 2))
    found = clf.explain(X[:9], background=X[10:20])
    assert found.values.shape == (9, 3)
    assert (found.output_names, found.feature_names) == (None, None)
    np.testing.assert_array_equal(found.data, X[:9])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), clf.decision_function(X[:9]), atol=1e-9)
    np.testing.assert_allclose(found.base_values, clf.decision_function(X[10:20]).mean(), atol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (SVC(multi_class="crammer-singer"), ["a", "b", "c"]),
        (SVC(multi_class="crammer-singer", decision_function_shape="ovo"), ["a - b", "a - c", "b - c"]),
        (SVC(multi_class="ovo", decision_function_shape="ovo"), ["a - b", "a - c", "b - c"]),
    ],
    ids=["classes", "differences", "pairs"],
)
def test_several_classes_have_values_each(estimator, names):
    X = np.random.default_rng(0).normal(size=(60, 3))
    clf = estimator.fit(X, classes_of(X, 3))
    found = clf.explain(X[:7])
    assert (found.values.shape, found.output_names) == ((7, 3, 3), names)
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), clf.decision_function(X[:7]), atol=1e-9)
    for at, name in enumerate(names):
        np.testing.assert_array_equal(found.of(name).values, found.values[:, :, at])
        np.testing.assert_array_equal(found.of(at).base_values, found.base_values[:, at])
    with pytest.raises(ValueError, match=r"output must be one of a.*found 'z'"):
        found.of("z")


def test_numbers_ranks_and_orders_are_explained():
    X = np.random.default_rng(0).normal(size=(60, 3))
    svr, rank = SVR().fit(X, X[:, 0]), RankSVM().fit(X, np.arange(60) % 3, groups=np.arange(60) // 6)
    found = svr.explain(X[:4])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), svr.predict(X[:4]), atol=1e-9)
    found = rank.explain(X[:4])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), rank.predict(X[:4]), atol=1e-9)
    ordinal = OrdinalSVC().fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    found = ordinal.explain(X[:4])
    first = ordinal.decision_function(X[:4])[:, 1] + ordinal.model_.plain[0]
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), first, atol=1e-9)


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True)], ids=repr)
def test_a_pipeline_is_explained_in_its_own_features(scaler):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)) * [1.0, 100.0, 0.1] + 20.0
    pipeline = make_pipeline(scaler, SVC()).fit(X, X[:, 0] > 20)
    found = slimsvm.explain(pipeline, X[:5], background=X[5:9])
    np.testing.assert_array_equal(found.data, X[:5])
    total = found.base_values + found.values.sum(axis=1)
    np.testing.assert_allclose(total, pipeline.decision_function(X[:5]), atol=1e-9)
    inner = pipeline[-1].explain(pipeline[:-1].transform(X[:5]), background=pipeline[:-1].transform(X[5:9]))
    np.testing.assert_allclose(found.values, inner.values, atol=1e-9)


def test_rows_may_be_sparse_or_named():
    pd = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    clf = SVC().fit(frame, X[:, 0] > 0)
    found = clf.explain(frame[:5], background=frame[5:])
    assert found.feature_names == clf.explain(X[:5]).feature_names == ["age", "height", "weight"]
    again = clf.explain(sp.csr_array(X[:5]), background=sp.csr_array(X[5:]))
    np.testing.assert_allclose(found.values, again.values, rtol=1e-12, atol=1e-12)


def test_rows_of_an_explanation():
    X = np.random.default_rng(0).normal(size=(40, 3))
    found = SVC(kernel="poly").fit(X, X[:, 0] > 0).explain(X)
    some = found[[3, 5]]
    assert (len(found), len(some), len(found[3]), len(found[:7])) == (40, 2, 1, 7)
    for name in ("values", "base_values", "data", "standard_errors"):
        np.testing.assert_array_equal(getattr(some, name), getattr(found, name)[[3, 5]])
    with pytest.raises(ValueError, match="output must be None where there is one output"):
        found.of(0)


@pytest.mark.filterwarnings("ignore")
def test_shap_takes_it(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3))
    found = SVC().fit(X, classes_of(X, 3)).explain(X[:5])
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match="pip install shap"):
        found.to_shap()
    monkeypatch.undo()
    shap = pytest.importorskip("shap")
    theirs = found.to_shap()
    assert isinstance(theirs, shap.Explanation)
    np.testing.assert_array_equal(theirs[..., 1].values, found.of(1).values)
    assert theirs.shape == (5, 3, 3)


@pytest.mark.filterwarnings("ignore")
def test_shap_finds_the_same():
    """Its exact explainer asks for scores of 2^d masked rows."""
    shap = pytest.importorskip("shap")
    X = np.random.default_rng(0).normal(size=(60, 5))
    clf = SVC(gamma=np.linspace(0.1, 1.0, 5)).fit(X, X[:, 0] * X[:, 1] > 0)
    masker = shap.maskers.Independent(X[:10], max_samples=10)
    theirs = shap.explainers.ExactExplainer(clf.decision_function, masker)(X[10:14])
    found = clf.explain(X[10:14], background=X[:10])
    np.testing.assert_allclose(found.values, theirs.values, atol=1e-9)
    np.testing.assert_allclose(found.base_values, theirs.base_values, atol=1e-9)


def test_bad_input_is_refused():
    X = np.random.default_rng(0).normal(size=(40, 3))
    clf = SVC().fit(X, X[:, 0] > 0)
    for rows, words in (
        (X[:, :2], "X must have 3 features as in training, found 2"),
        (np.where(np.arange(3) == 1, np.nan, X), "X must hold finite numbers, found nan in row 0, column 1"),
        (X[0], "X must have two dimensions"),
    ):
        with pytest.raises(ValueError, match=words):
            clf.explain(rows)
        with pytest.raises(ValueError, match=words.replace("X", "background")):
            clf.explain(X, background=rows)
    with pytest.raises(ValueError, match="background must have at least one row"):
        clf.explain(X, background=X[:0])
    with pytest.raises(ValueError, match="n_permutations must be an integer >= 4, found 2"):
        clf.explain(X, n_permutations=2)
    with pytest.raises(
        ValueError, match="scores of rows of features, and there are none with binary, kernel precomputed"
    ):
        slimsvm.load(MODELS / "svc-precomputed.slim").explain(X)
    with pytest.raises(ValueError, match="there are none with sequences"):
        SequenceSVM().fit([X[:20], X[20:]], [np.arange(20) % 2] * 2).explain(X)
    own = SVC(kernel=lambda A, B: A @ B.T).fit(X, X[:, 0] > 0)
    with pytest.raises(TypeError, match=r"found a function of yours: use shap.PermutationExplainer"):
        own.explain(X)


@pytest.mark.parametrize("has_background", [False, True], ids=["absent", "background"])
def test_an_order_and_its_reverse_have_all_pairs_of_features(has_background):
    """So that polynomials of degree 2 are exact after any two of them."""
    model, _, _ = a_model("poly", 8)
    model = replace(model, kernel=replace(model.kernel, degree=2))
    X = np.random.default_rng(0).normal(size=(6, 8))
    background = X[3:] if has_background else None
    found, more = explained(model, X[:3], background, 4), explained(model, X[:3], background, 40)
    np.testing.assert_allclose(found.values, more.values, rtol=1e-9, atol=1e-12)
    assert found.standard_errors.max() < 1e-12
