"""Attributes that code for scikit-learn's estimators reads: as the installed scikit-learn has them."""

import copy
import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context, get_config, svm
from sklearn.metrics.pairwise import rbf_kernel

import slimsvm
from fixtures.make_models import CASES, DATA, get_data, loaded, outputs
from slimsvm import SVC, SVR, CrossTrainedSVC, OneClassSVM

TIGHT = {"tol": 1e-7}
COMMON = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "fit_status_",
    "shape_fit_",
    "n_iter_",
    "offset_",
    "class_weight_",
    "classes_",
    "coef_",
    "_dual_coef_",
    "_intercept_",
    "_gamma",
)
OURS = {"SVC": SVC, "SVR": SVR, "OneClassSVM": OneClassSVM}


def rows(n=90, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def classes_of(X, k):
    return np.argmax(X[:, :k] if k > 2 else X[:, :2], axis=1)


def words(codes):
    return np.array(["pear", "fig", "apple", "kiwi"])[codes]


def product(A, B):
    return np.asarray((A @ B.T).toarray() if sp.issparse(A) else A @ B.T) + 1.0


X = rows()
WEIGHTS = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(X))
# name: estimator, parameters, rows, targets, weights
FITS = {
    "two classes": ("SVC", {}, X, classes_of(X, 2), None),
    "two texts": ("SVC", {}, X, words(classes_of(X, 2)), None),
    "three classes": ("SVC", {}, X, classes_of(X, 3), None),
    "four texts, shifted": ("SVC", {"C": 5.0}, rows(120, 3), words(np.arange(120) % 4), None),
    "weights, some zero": ("SVC", {"gamma": 0.4}, X, classes_of(X, 3), WEIGHTS),
    "class weights": ("SVC", {"class_weight": {0: 3.0}}, X, classes_of(X, 3), None),
    "balanced": ("SVC", {"class_weight": "balanced"}, X, classes_of(X, 3), None),
    "linear": ("SVC", {"kernel": "linear"}, X, classes_of(X, 3), None),
    "linear, two": ("SVC", {"kernel": "linear"}, X, classes_of(X, 2), None),
    "poly": ("SVC", {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2}, X, classes_of(X, 3), None),
    "precomputed": ("SVC", {"kernel": "precomputed"}, X @ X.T + 1.0, classes_of(X, 3), None),
    "a function": ("SVC", {"kernel": product}, X, classes_of(X, 3), None),
    "CSR": ("SVC", {"gamma": 0.4}, sp.csr_array(X), classes_of(X, 3), None),
    "CSR, two, linear": ("SVC", {"kernel": "linear"}, sp.csr_matrix(X), classes_of(X, 2), None),
    "CSC, linear": ("SVC", {"kernel": "linear"}, sp.csc_array(X), classes_of(X, 3), None),
    "function of CSR": ("SVC", {"kernel": product}, sp.csr_array(X), classes_of(X, 2), None),
    "F-order": ("SVC", {}, np.asfortranarray(X), classes_of(X, 3), None),
    "every second row": ("SVC", {}, rows(180)[::2], classes_of(rows(180)[::2], 3), None),
    "regression": ("SVR", {"C": 3.0}, X, np.sin(X[:, 0]), None),
    "regression, weights": ("SVR", {"C": 3.0, "gamma": 0.4}, X, np.sin(X[:, 0]), WEIGHTS),
    "regression, CSR, linear": ("SVR", {"kernel": "linear"}, sp.csr_array(X), X[:, 0] + 0.2 * X[:, 1] ** 2, None),
    "regression without vectors": ("SVR", {"epsilon": 99.0}, X, X[:, 0], None),
    "CSR without vectors": ("SVR", {"epsilon": 99.0}, sp.csr_array(X), X[:, 0], None),
    "one class": ("OneClassSVM", {"nu": 0.3, "gamma": 0.5}, X, None, None),
    "one class, CSR": ("OneClassSVM", {"nu": 0.3, "gamma": 0.5}, sp.csr_array(X), None, None),
}


def fitted(estimator, params, X, y, weights, **more):
    return estimator(**TIGHT | params | more).fit(X, y, sample_weight=weights)


def plain(value):
    return value.toarray() if sp.issparse(value) else np.asarray(value)


@pytest.mark.parametrize("name", FITS)
def test_as_scikit_learn_has_them(name):
    kind, *fit = FITS[name]
    ours, theirs = fitted(OURS[kind], *fit), fitted(getattr(svm, kind), *fit)
    for attribute in COMMON:
        if not hasattr(theirs, attribute):
            assert not hasattr(ours, attribute), attribute
            continue
        own, known = getattr(ours, attribute), getattr(theirs, attribute)
        if attribute == "support_vectors_" and callable(ours.kernel):  # scikit-learn has none
            np.testing.assert_array_equal(plain(own), plain(fit[1])[ours.support_])
            continue
        if attribute == "support_" and fit[3] is not None:  # scikit-learn's count rows of positive weight
            known = np.flatnonzero(fit[3])[known].astype(np.int32)
        if name == "CSR without vectors" and attribute == "n_support_":  # scikit-learn's is whatever memory had
            known = np.array([0], np.int32)
        if attribute == "_gamma" and ours.kernel == "linear":
            continue
        assert type(own) is type(known) or attribute == "_gamma", attribute
        assert np.shape(own) == np.shape(known), attribute
        assert getattr(own, "dtype", None) == getattr(known, "dtype", None) or attribute == "_gamma", attribute
        if attribute in ("n_iter_", "shape_fit_", "classes_"):
            continue
        np.testing.assert_allclose(plain(own), plain(known), atol=2e-3, err_msg=attribute)


def votes(model, values):
    """Labels as a program reads them that knows LIBSVM's form: n_support_, dual_coef_ in lines, intercept_."""
    k, ends = len(model.n_support_), np.cumsum(model.n_support_)
    part = [slice(end - n, end) for n, end in zip(model.n_support_, ends, strict=True)]
    won, coef = np.zeros((len(values), k), int), plain(model._dual_coef_)
    for pair, (a, b) in enumerate(combinations(range(k), 2)):
        score = values[:, part[a]] @ coef[b - 1, part[a]] + values[:, part[b]] @ coef[a, part[b]]
        score += model._intercept_[pair]
        won[:, a] += score > 0
        won[:, b] += score <= 0
    return model.classes_[np.argmax(won, axis=1)]


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_a_program_that_knows_libsvms_form_predicts_alike(k, container):
    X, new = rows(150), rows(200, seed=5)
    rng = np.random.default_rng(2)
    y = rng.integers(0, k, 150) + 10
    model = SVC(gamma=0.5, C=3.0).fit(container(X), y)
    np.testing.assert_array_equal(
        votes(model, rbf_kernel(new, plain(model.support_vectors_), gamma=0.5)), model.predict(new)
    )


@pytest.mark.parametrize("solver", ["exact-cuts", "violated-cuts", "lasvm", "bvm", "cvm", "low-rank"])
def test_other_solvers_of_two_classes_have_the_order(solver):
    y = words(classes_of(X, 2))
    model = SVC(solver=solver, gamma=0.5, random_state=0).fit(X, y)
    if not hasattr(model, "support_"):
        assert not hasattr(model, "dual_coef_")
        return
    np.testing.assert_array_equal(y[model.support_], np.repeat(model.classes_, model.n_support_))
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    scores = rbf_kernel(X, model.support_vectors_, gamma=0.5) @ model.dual_coef_[0] + model.intercept_
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-5)


def test_cross_trained_vectors_have_the_order():
    X, y = rows(200), words(classes_of(rows(200), 2))
    model = CrossTrainedSVC(max_basis=None, C=1.0, first_C=1.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(y[model.support_], np.repeat(model.classes_, model.n_support_))
    assert model.dual_coef_.shape == (1, model.n_basis_)


def test_what_has_not_libsvms_form_has_no_dual_coefficients():
    """A program that reads them would write another model, without a word."""
    y = classes_of(X, 3)
    joint = SVC(multi_class="crammer-singer").fit(X, y)
    np.testing.assert_array_equal(y[joint.support_], np.repeat([0, 1, 2], joint.n_support_))
    with pytest.raises(AttributeError, match="two classes and for pairs of classes"):
        joint.dual_coef_  # noqa: B018
    labels = SVC().fit(X, (X > 0).astype(int))
    np.testing.assert_array_equal(labels.support_vectors_, X[labels.support_])
    for name in ("dual_coef_", "n_support_"):
        assert not hasattr(labels, name)
    small = SVC(max_basis=5, random_state=0).fit(X, y)
    for name in ("support_", "support_vectors_", "dual_coef_", "n_support_"):
        with pytest.raises(AttributeError, match="exists only if the basis vectors are training rows"):
            getattr(small, name)
    assert not hasattr(SVC(), "n_support_")


@pytest.mark.skipif("sparse_interface" not in get_config(), reason="scikit-learn before 1.9 has matrices only")
def test_sparse_attributes_are_arrays_where_scikit_learn_is_told_so():
    with config_context(sparse_interface="sparray"):
        model = SVC(kernel="linear").fit(sp.csr_array(X), classes_of(X, 3))
        assert {type(m) for m in (model.coef_, model.dual_coef_, model.support_vectors_)} == {sp.csr_array}


def test_weights_cannot_be_written_to():
    model = SVC(kernel="linear").fit(X, classes_of(X, 2))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 0


@pytest.mark.parametrize(
    "name", ["two texts", "three classes", "linear", "precomputed", "CSR", "regression", "one class"]
)
def test_files_and_copies_keep_them(name, tmp_path):
    kind, *fit = FITS[name]
    model = fitted(OURS[kind], *fit)
    model.save(tmp_path / "model.slim")
    for again in (slimsvm.load(tmp_path / "model.slim"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        for attribute in COMMON:
            if not hasattr(model, attribute):
                assert not hasattr(again, attribute)
                continue
            own, known = getattr(again, attribute), getattr(model, attribute)
            assert type(own) is type(known), attribute
            np.testing.assert_array_equal(plain(own), plain(known), err_msg=attribute)


@pytest.mark.parametrize(
    "name", ["svc-three-exact", "svc-three-exact-ovo", "svc-exact", "svc-frame", "svr-exact", "one-class"]
)
def test_files_of_earlier_versions_have_what_their_coefficients_tell(name):
    model = loaded(name)
    with np.load(DATA) as stored:
        data = get_data(dict(stored), CASES[name].data)
    assert not hasattr(model, "support_")
    assert model.n_support_.sum() == model.n_basis_ == len(model.support_vectors_)
    values = model.kernel_.block(np.asarray(data.queries, float), model.support_vectors_)
    if name.startswith("svc"):
        np.testing.assert_array_equal(votes(model, values), outputs(model, data)[1])
    else:
        own = model.decision_function(data.queries) if name == "one-class" else model.predict(data.queries)
        np.testing.assert_allclose(values @ model.dual_coef_[0] + model.intercept_, own, atol=1e-6)


def test_a_search_for_few_vectors_that_keeps_the_exact_svm_has_its_order():
    model = SVC(multi_class="ovo").fit(X, classes_of(X, 3))
    small = slimsvm.compress(model, max_basis=4, random_state=0)
    assert not hasattr(small, "support_")
    assert not hasattr(small, "dual_coef_")
    assert small.n_iter_.dtype == np.int32


# ---- parameters and weights that scikit-learn takes


SIGNED = np.random.default_rng(3).normal(size=len(X))


@pytest.mark.turns("kernel")
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("name", ["two classes", "three classes", "regression", "one class"])
def test_gamma_may_be_zero(kernel, name):
    kind, params, rows, y, _ = FITS[name]
    own, known = (
        fitted(cls, params | {"gamma": 0.0, "kernel": kernel}, rows, y, None)
        for cls in (OURS[kind], getattr(svm, kind))
    )
    method = "predict" if kind == "SVR" else "decision_function"
    np.testing.assert_allclose(getattr(own, method)(rows), getattr(known, method)(rows), atol=1e-5)


@pytest.mark.filterwarnings("ignore:the fit ended with an objective")
@pytest.mark.parametrize("name", ["two classes", "three classes", "regression"])
def test_c_may_be_infinite(name):
    kind, _, rows, y, _ = FITS[name]
    own, known = (cls(C=np.inf, gamma=2.0).fit(rows, y) for cls in (OURS[kind], getattr(svm, kind)))
    assert np.mean(np.abs(own.predict(rows) - known.predict(rows)) < 2e-3) == 1
    np.testing.assert_array_equal(own.predict(rows), OURS[kind](C=1e10, gamma=2.0).fit(rows, y).predict(rows))


@pytest.mark.parametrize("name", ["two classes", "three classes", "CSR", "precomputed", "regression", "one class"])
def test_rows_of_negative_weight_are_left_out(name):
    kind, params, rows, y, _ = FITS[name]
    own, known = (fitted(cls, {"gamma": 0.4} | params, rows, y, SIGNED) for cls in (OURS[kind], getattr(svm, kind)))
    zero = fitted(OURS[kind], {"gamma": 0.4} | params, rows, y, np.maximum(SIGNED, 0))
    np.testing.assert_array_equal(own.support_, zero.support_)
    np.testing.assert_array_equal(plain(own.dual_coef_), plain(zero.dual_coef_))
    np.testing.assert_allclose(plain(own.dual_coef_), plain(known.dual_coef_), atol=2e-3)
    with pytest.raises(ValueError, match="Invalid input - all samples have zero or negative weights"):
        fitted(OURS[kind], params, rows, y, -np.abs(SIGNED))


def test_weights_must_leave_two_classes():
    y = classes_of(X, 2)
    with pytest.raises(ValueError, match="all samples with positive weights belong to the same class"):
        SVC().fit(X, y, sample_weight=2 * y - 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["two classes", "three classes", "regression", "one class"])
def test_no_iteration_at_all(name):
    kind, params, rows, y, _ = FITS[name]
    own, known = (fitted(cls, params, rows, y, None, max_iter=0) for cls in (OURS[kind], getattr(svm, kind)))
    np.testing.assert_array_equal(own.n_iter_, known.n_iter_)
    assert (own.fit_status_, own.status_) == (1, "iteration limit")
    assert name == "one class" or len(own.support_) == len(known.support_) == 0
    assert np.isfinite(own.predict(rows)).all()


@pytest.mark.parametrize(
    ("name", "value"), [("cache_size", -1), ("cache_size", 0), ("max_iter", -2), ("C", -np.inf), ("gamma", -1.0)]
)
@pytest.mark.parametrize("kind", ["SVC", "SVR"])
def test_what_scikit_learn_refuses_is_refused(kind, name, value):
    for cls in (OURS[kind], getattr(svm, kind)):
        with pytest.raises(ValueError, match=name):
            cls(**{name: value}).fit(X, classes_of(X, 2))
