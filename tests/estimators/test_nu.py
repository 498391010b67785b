"""NuSVC and NuSVR: scikit-learn's estimators and checks, weights, the C and ε found, files, limits, refusals."""

import pickle
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_classification, make_moons, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import NuSVC as TheirNuSVC
from sklearn.svm import NuSVR as TheirNuSVR
from sklearn.utils.estimator_checks import check_estimator

import slimsvm
from slimsvm import SVC, SVR, NuSVC, NuSVR
from slimsvm.estimators._shared.exact_of_nu import NuSettings
from slimsvm.solvers.exact import ExactRun

INFEASIBLE = {
    name: "the weights of the check's classes differ so much that nu=0.5 is infeasible; scikit-learn's fails them too"
    for name in (
        "check_class_weight_classifiers",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
}
X2, Y2 = make_classification(200, 5, n_informative=3, flip_y=0.1, random_state=0)
XR, YR = make_regression(150, 4, noise=5.0, random_state=0)
X3, Y3 = load_iris(return_X_y=True)


def share(estimator, k=0):
    """Σ |v| / C of two classes or a regression."""
    return np.abs(estimator.dual_coef_).sum() / estimator.C_


# ---- scikit-learn


def test_scikit_learns_checks_pass():
    check_estimator(NuSVR(), on_skip=None)
    check_estimator(NuSVC(), on_skip=None, expected_failed_checks=INFEASIBLE)


@pytest.mark.parametrize("seed", range(8))
def test_two_classes_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    X, y = make_classification(int(rng.integers(40, 300)), 6, n_informative=4, flip_y=0.1, random_state=seed)
    nu, gamma = rng.uniform(0.03, 0.85) * 2 * np.bincount(y).min() / len(y), 10 ** rng.uniform(-1.5, -0.5)
    weights = rng.choice([0.5, 1.0, 2.0], len(y)) if seed % 2 else None
    nu = nu if weights is None else 0.5 * nu
    theirs = TheirNuSVC(nu=nu, gamma=gamma, tol=1e-9).fit(X, y, weights)
    ours = NuSVC(nu=nu, gamma=gamma, tol=1e-7).fit(X, y, weights)
    size = np.abs(theirs.decision_function(X)).max()
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4 * size)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-4 * np.abs(theirs.dual_coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4 * size)
    total = len(y) if weights is None else weights.sum()
    assert share(ours) == pytest.approx(nu * total, rel=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_regression_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    X, y = make_regression(int(rng.integers(40, 300)), 5, noise=10.0, random_state=seed)
    nu, gamma, C = rng.uniform(0.05, 0.95), 10 ** rng.uniform(-1.5, 0), 10 ** rng.uniform(-1, 2)
    weights = rng.choice([0.5, 1.0, 2.0], len(y)) if seed % 2 else None
    theirs = TheirNuSVR(nu=nu, gamma=gamma, C=C, tol=1e-7).fit(X, y, weights)
    ours = NuSVR(nu=nu, gamma=gamma, C=C, tol=1e-7).fit(X, y, weights)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4 * np.ptp(y))
    big = theirs.support_[np.abs(theirs.dual_coef_[0]) > 1e-4 * C]  # scikit-learn keeps coefficients of rounding's size
    assert set(big) <= set(ours.support_) <= set(theirs.support_)
    total = len(y) if weights is None else weights.sum()
    assert share(ours) == pytest.approx(nu * total, rel=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_any_feasible_nu_is_scikit_learns(seed):
    """Two to five classes, noise, weights; at many small ν C is in the thousands."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(40, 250)), int(rng.integers(2, 6))
    X, y = make_classification(
        n, 8, n_informative=5, n_classes=n_classes, flip_y=rng.uniform(0, 0.3), class_sep=1.5, random_state=seed
    )
    weights = rng.choice([0.5, 1.0, 2.0], n) if seed % 2 else None
    totals = np.bincount(y, weights)
    pairs = [(a, b) for a in range(n_classes) for b in range(a + 1, n_classes)]
    most = min(2 * min(totals[a], totals[b]) / (totals[a] + totals[b]) for a, b in pairs)
    nu, own = rng.uniform(0.02, 0.98) * most, {"gamma": 10 ** rng.uniform(-1.5, 0.5), "decision_function_shape": "ovo"}
    theirs, ours = TheirNuSVC(nu=nu, tol=1e-9, **own), NuSVC(nu=nu, tol=1e-7, **own)
    theirs.fit(X, y, weights)
    ours.fit(X, y, weights)
    found, asked = (each.decision_function(X).reshape(n, -1) for each in (ours, theirs))
    np.testing.assert_allclose(found / np.abs(asked).max(axis=0), asked / np.abs(asked).max(axis=0), atol=1e-3)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.99
    sizes = np.abs(ours.model_.coef).sum(axis=0) / np.atleast_1d(ours.C_)
    np.testing.assert_allclose(sizes, [nu * (totals[a] + totals[b]) for a, b in pairs], rtol=1e-9)
    for share in (0.98 * most, 1.02 * most):
        is_refused = []
        for estimator in (theirs, ours):
            try:
                estimator.set_params(nu=min(share, 1.0), tol=1e-2).fit(X, y, weights)
                is_refused.append(False)
            except ValueError as error:
                is_refused.append("specified nu is infeasible" in str(error))
        assert is_refused == [share > most and share <= 1] * 2


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_several_classes_are_scikit_learns(container, shape):
    X, y = load_digits(n_class=4, return_X_y=True)
    parameters = {"nu": 0.17, "gamma": 0.001, "decision_function_shape": shape, "break_ties": shape == "ovr"}
    theirs = TheirNuSVC(tol=1e-8, **parameters).fit(X, y)
    ours = NuSVC(tol=1e-6, **parameters).fit(container(X), y)
    np.testing.assert_allclose(ours.decision_function(container(X)), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(container(X)), theirs.predict(X))
    assert ours.C_.shape == (6,)
    dual = ours.dual_coef_.toarray() if sp.issparse(ours.dual_coef_) else ours.dual_coef_
    assert dual.shape == (3, ours.n_support_.sum())


@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 0.1, "coef0": 1.0},
        {"kernel": "precomputed"},
        {"kernel": lambda A, B: A @ B.T + 1},
    ],
    ids=["linear", "poly", "precomputed", "function"],
)
def test_other_kernels(parameters):
    X = X2 @ X2.T if parameters["kernel"] == "precomputed" else X2
    theirs = TheirNuSVC(nu=0.803, tol=1e-6, **parameters).fit(X, Y2)
    ours = NuSVC(nu=0.803, tol=1e-6, **parameters).fit(X, Y2)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_each_pair_has_the_C_of_its_two_classes():
    """Pairs that are solved side by side are those that are solved alone."""
    together = NuSVC(nu=0.3, gamma=0.1, tol=1e-6, decision_function_shape="ovo").fit(X3, Y3)
    for k, pair in enumerate(combinations(range(3), 2)):
        rows = np.isin(Y3, pair)
        alone = NuSVC(nu=0.3, gamma=0.1, tol=1e-6).fit(X3[rows], Y3[rows])
        assert together.C_[k] == pytest.approx(alone.C_, rel=1e-4)
        scores = together.decision_function(X3[rows])[:, k]
        np.testing.assert_allclose(scores, -alone.decision_function(X3[rows]), atol=1e-4 * np.abs(scores).max())


def test_the_middle_of_what_a_class_without_free_vectors_allows():
    """ν n / 2 is a whole number: scikit-learn's ρ is the middle, where its sums leave no rounding error."""
    X, y = X3[:100], Y3[:100]
    theirs, ours = TheirNuSVC(nu=0.5, tol=1e-9).fit(X, y), NuSVC(nu=0.5, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


# ---- the C and the ε that are found


def test_it_is_the_estimator_of_the_C_found():
    ours = NuSVC(nu=0.4, gamma=0.2, tol=1e-7).fit(X2, Y2)
    theirs = TheirSVC(C=ours.C_, gamma=0.2, tol=1e-7).fit(X2, Y2)
    np.testing.assert_allclose(ours.decision_function(X2), theirs.decision_function(X2), atol=1e-5)
    same = SVC(C=ours.C_, gamma=0.2, tol=1e-7).fit(X2, Y2)
    assert ours.objective_ == pytest.approx(same.objective_, rel=1e-6)
    assert 0 <= ours.gap_ < 1e-3


def test_it_is_the_estimator_of_the_epsilon_found():
    ours = NuSVR(nu=0.4, C=10.0, gamma=0.2).fit(XR, YR)
    same = SVR(epsilon=ours.epsilon_, C=10.0, gamma=0.2).fit(XR, YR)
    np.testing.assert_allclose(ours.predict(XR), same.predict(XR), atol=1e-4)
    assert ours.gap_ < 1e-3


def test_nu_bounds_the_shares_of_errors_and_of_support_vectors():
    X, y = make_classification(600, 6, n_informative=4, flip_y=0.2, random_state=1)
    for nu in (0.7, 0.8, 0.9):
        clf = NuSVC(nu=nu, kernel="linear", tol=1e-6).fit(X, y)
        margins = np.where(y, 1, -1) * clf.decision_function(X)
        assert np.mean(margins < 1 - 1e-4) <= nu <= len(clf.support_) / len(y)
    for nu in (0.1, 0.5, 0.9):
        reg = NuSVR(nu=nu, C=10.0, gamma=0.2, tol=1e-5).fit(XR, YR)
        outside = np.abs(YR - reg.predict(XR)) > reg.epsilon_ * (1 + 1e-4)
        assert outside.mean() <= nu <= len(reg.support_) / len(YR)


def test_certificates_are_of_the_problem_that_was_solved():
    for clf in (NuSVC(nu=0.2).fit(X3, Y3), NuSVC(nu=0.3, gamma=0.2).fit(X2, Y2)):
        X, y = (X3, Y3) if len(clf.classes_) == 3 else (X2, Y2)
        found = clf.certificate(X, y)
        assert found.objective == pytest.approx(clf.objective_, rel=1e-6)
        assert found.gap < 1e-3
    reg = NuSVR(nu=0.3, C=10.0).fit(XR, YR)
    assert reg.certificate(XR, YR).objective == pytest.approx(reg.objective_, rel=1e-6)


# ---- weights


def test_class_weights_are_weights_of_rows():
    by_class = NuSVC(nu=0.3, gamma=0.2, class_weight={0: 2.0}, tol=1e-7).fit(X2, Y2)
    by_row = NuSVC(nu=0.3, gamma=0.2, tol=1e-7).fit(X2, Y2, np.where(Y2 == 0, 2.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X2), by_row.decision_function(X2), atol=1e-8)
    rare = np.arange(200) % 4 == 0
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.9).fit(X2, rare)
    NuSVC(nu=0.9, class_weight="balanced").fit(X2, rare)


@pytest.mark.parametrize(("estimator", "X", "y"), [(NuSVC(nu=0.3), X2, Y2), (NuSVR(nu=0.3), XR, YR)], ids=repr)
def test_whole_numbers_as_weights_are_repeats(estimator, X, y):
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    estimator = clone(estimator).set_params(gamma=0.2, tol=1e-8)
    weighted = clone(estimator).fit(X, y, weights)
    repeated = clone(estimator).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    score = "decision_function" if estimator is NuSVC else "predict"
    np.testing.assert_allclose(getattr(weighted, score)(X), getattr(repeated, score)(X), atol=1e-5 * np.ptp(y))


# ---- probabilities, files, searches


@pytest.mark.parametrize("kernel", ["rbf", "sigmoid"])
def test_probabilities(kernel):
    clf = NuSVC(nu=0.7, gamma=0.05, kernel=kernel, probability=True).fit(X2, Y2)
    p = clf.predict_proba(X2)
    np.testing.assert_array_equal(clf.classes_[p.argmax(axis=1)], clf.predict(X2))
    assert not hasattr(NuSVC().fit(X2, Y2), "predict_proba")
    assert NuSVC(nu=0.2, probability=True).fit(X3, Y3).predict_proba(X3).shape == (150, 3)


@pytest.mark.parametrize(
    ("estimator", "X", "y"),
    [(NuSVC(nu=0.2, probability=True), X3, Y3), (NuSVC(nu=0.3), X2, Y2), (NuSVR(nu=0.3, C=10.0), XR, YR)],
    ids=["classes", "two classes", "regression"],
)
def test_files_and_copies(estimator, X, y, tmp_path):
    fitted = clone(estimator).fit(X, y)
    fitted.save(tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    assert type(loaded) is type(fitted)
    assert loaded.get_params() == fitted.get_params()
    for again in (loaded, pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        np.testing.assert_array_equal(again.C_, fitted.C_)
        np.testing.assert_array_equal(again.support_, fitted.support_)
        assert getattr(again, "epsilon_", None) == getattr(fitted, "epsilon_", None)
        assert again.certificate(X, y).objective == pytest.approx(fitted.objective_, rel=1e-6)
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    np.testing.assert_allclose(predictor.predict(X), fitted.predict(X), rtol=1e-12)
    fitted.to_json(tmp_path / "model.json")
    fitted.to_c(tmp_path / "model.h")
    assert fitted.explain(X[:2], X[::20]).values.shape[0] == 2


def test_searches_over_nu():
    assert GridSearchCV(NuSVC(), {"nu": [0.1, 0.3]}, cv=3).fit(X3, Y3).best_params_["nu"] in (0.1, 0.3)
    grid = {"nu": [0.1, 0.3], "gamma": [0.1, 1.0]}
    found, theirs = slimsvm.GridSearchSVC(NuSVC(), grid, cv=3).fit(X3, Y3), GridSearchCV(NuSVC(), grid, cv=3)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], theirs.fit(X3, Y3).cv_results_["mean_test_score"], atol=0.01
    )
    slimsvm.GridSearchSVR(NuSVR(), {"nu": [0.1, 0.3], "C": [1.0, 10.0]}, cv=3).fit(XR, YR)


def test_warm_starts_come_to_the_same_estimator():
    warm = NuSVC(nu=0.2, gamma=0.1, warm_start=True).fit(X3, Y3).set_params(nu=0.3).fit(X3, Y3)
    np.testing.assert_allclose(warm.C_, NuSVC(nu=0.3, gamma=0.1).fit(X3, Y3).C_, rtol=1e-3)
    warm = NuSVR(nu=0.2, C=10.0, warm_start=True).fit(XR, YR).set_params(nu=0.3).fit(XR, YR)
    assert warm.epsilon_ == pytest.approx(NuSVR(nu=0.3, C=10.0).fit(XR, YR).epsilon_, rel=1e-3)


@pytest.mark.parametrize("n_rows", [300, 2500])
def test_threads_change_no_bit(n_rows):
    X, y = make_classification(n_rows, 6, n_informative=4, n_classes=3, random_state=2)
    one, two = (NuSVC(nu=0.3, n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.basis_coef_, two.basis_coef_)
    one, two = (NuSVR(nu=0.3, n_jobs=n).fit(X, X[:, 0]) for n in (1, 2))
    np.testing.assert_array_equal(one.basis_coef_, two.basis_coef_)


def test_many_rows_share_what_is_kept_of_each_pair():
    """Pairs of more than 2,000 rows are solved one by one, in float32."""
    X, y = make_classification(5200, 5, n_informative=4, n_redundant=0, n_classes=3, flip_y=0.1, random_state=3)
    X[y == 0] += 1.0
    theirs, ours = TheirNuSVC(nu=0.4, gamma=0.2, tol=1e-5).fit(X, y), NuSVC(nu=0.4, gamma=0.2, tol=1e-4).fit(X, y)
    assert np.mean(ours.predict(X) == theirs.predict(X)) > 0.999
    assert ours.precision_ == "float32"
    assert ours.gap_ < 1e-3


@pytest.mark.parametrize("n_classes", [2, 3, None])
def test_many_rows_begin_near_the_estimator_of_some(n_classes):
    X, y = make_classification(600, 6, n_informative=4, n_classes=n_classes or 2, flip_y=0.1, random_state=4)
    y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=600) if n_classes is None else y
    found = []
    for many in (600, 300):
        estimator = NuSVC(nu=0.4, tol=1e-6) if n_classes else NuSVR(nu=0.4, tol=1e-6)
        estimator._settings = (NuSettings(many_rows=many, sample_rows=150),)
        found.append(estimator.fit(X, y))
    first, second = (getattr(each, "decision_function", each.predict)(X) for each in found)
    np.testing.assert_allclose(first, second, atol=1e-4 * np.abs(first).max())


# ---- limits, ends of the range, refusals


def test_limits_end_the_search():
    X = np.random.default_rng(0).normal(size=(20_000, 10))
    for estimator, y in ((NuSVC(max_seconds=0.05), X[:, 0] * X[:, 1] > 0), (NuSVR(max_seconds=0.05), X[:, 0])):
        with pytest.warns(ConvergenceWarning, match="time"):
            estimator.fit(X, y)
        assert estimator.status_ == "time limit"
        assert estimator.predict(X[:5]).shape == (5,)
    with pytest.warns(ConvergenceWarning, match="iteration"):
        assert NuSVC(max_iter=1).fit(X2, Y2).fit_status_ == 1


def test_a_small_nu_on_noisy_labels_is_met():
    """C is 2,000: LIBSVM's tolerance is 2 in units of the margin there, and the gap is said."""
    X, y = make_classification(3000, 10, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="nu=0.1 is small for classes that overlap: C is"):
        clf = NuSVC(nu=0.1).fit(X, y)
    assert clf.C_ > 1000
    assert share(clf) == pytest.approx(0.1 * 3000, rel=1e-9)
    assert clf.score(X, y) > 0.97
    assert clf.lower_bound_ > 0


def test_classes_that_overlap_have_a_least_nu():
    X, y = make_classification(200, 3, n_informative=2, n_redundant=0, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="nu=0.05 is too small for classes that overlap"):
        clf = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert clf.score(X, y) > 0.6


def test_a_nu_that_no_C_reaches_is_said_where_the_share_never_falls():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), rng.integers(0, 3, 60)
    with pytest.warns(ConvergenceWarning, match="nu=0.05 is too small for classes that overlap") as said:
        clf = NuSVC(nu=0.05, kernel="linear").fit(X, y)
    assert len(said) == len(clf.C_) == 3


def test_the_ends_of_the_range():
    assert NuSVC(nu=1.0).fit(X3, Y3).score(X3, Y3) > 0.9  # all rows at their bounds; scikit-learn refuses it
    assert NuSVR(nu=1.0).fit(XR, YR).epsilon_ == 0
    np.testing.assert_array_equal(NuSVR(nu=0.5).fit(XR, np.ones(150)).predict(XR[:2]), [1, 1])
    assert NuSVR().fit([[1.0]], [3.0]).predict([[2.0]]) == [3.0]
    assert NuSVC().fit([[0.0], [1.0]], ["a", "b"]).predict([[0.2], [0.8]]).tolist() == ["a", "b"]


def test_refusals_name_the_parameter():
    for nu in (0, -0.1, 1.1, True, "half", None, np.nan):
        with pytest.raises(ValueError, match=r"nu must be a number in \(0, 1\], found"):
            NuSVC(nu=nu).fit(X2, Y2)
        with pytest.raises(ValueError, match=r"nu must be a number in \(0, 1\], found"):
            NuSVR(nu=nu).fit(XR, YR)
    with pytest.raises(ValueError, match="specified nu is infeasible"):
        NuSVC(nu=0.5).fit(X2, Y2, sample_weight=Y2)
    with pytest.raises(ValueError, match="gamma='learn' goes with SVC"):
        NuSVC(gamma="learn").fit(X2, Y2)
    with pytest.raises(ValueError, match="C='validate' goes with SVC and SVR"):
        NuSVR(C="validate").fit(XR, YR)
    with pytest.raises(ValueError, match="NuSVC takes one class for each row"):
        NuSVC().fit(X2, np.eye(2, dtype=int)[Y2])
    with pytest.raises(ValueError, match="nu needs"):
        NuSVC().fit(slimsvm.Blocks([X2[:100], X2[100:]]), Y2)
    for estimator in (NuSVC(), NuSVR()):
        assert not hasattr(estimator, "partial_fit")
        with pytest.raises(AttributeError, match="nu is a share of all rows"):
            estimator.partial_fit(X2, Y2)


@pytest.mark.parametrize(("estimator", "y"), [(NuSVC(nu=0.4), Y2), (NuSVR(), X2[:, 0])], ids=repr)
def test_an_interrupt_leaves_the_estimator_so_far(estimator, y, monkeypatch):
    step, calls = ExactRun.step, []

    def interrupted(self):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(ExactRun, "step", interrupted)
    estimator = clone(estimator)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        estimator.fit(X2, y)
    assert estimator.status_ == "interrupted"
    assert np.isfinite(estimator.predict(X2)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # sigmoid's bound is in doubt
@pytest.mark.parametrize("kernel", ["sigmoid", "rbf", "precomputed", "function"])
def test_a_kernel_of_equal_values_predicts_one_number(kernel):
    """Far rows have tanh = 1 with all others; dual variables that add up to 0 then have no norm to divide by."""
    one = {"precomputed": {"kernel": "precomputed"}, "function": {"kernel": lambda X, Z: np.ones((len(X), len(Z)))}}
    rows = {"sigmoid": XR + 1e8, "rbf": np.ones_like(XR), "precomputed": np.ones((len(XR), len(XR)))}.get(kernel, XR)
    for estimator in (NuSVR(), NuSVR(C=1e-10), NuSVR(C=1e10), SVR(epsilon=0.1)):
        estimator.set_params(**one.get(kernel, {"kernel": kernel}))
        found = estimator.fit(rows, YR).predict(rows)
        assert np.ptp(found) <= 1e-6 * np.ptp(YR)
        assert YR.min() <= found[0] <= YR.max()


def test_a_margin_that_no_tolerance_tells_from_0_is_said():
    """scikit-learn's ρ is below 0 here, and it takes each class for the other."""
    X, y = make_moons(2500, noise=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="nu=0.1 is too small for classes that overlap"):
        clf = NuSVC(nu=0.1).fit(X, y)
    assert clf.score(X, y) > 0.9
    assert TheirNuSVC(nu=0.1).fit(X, y).score(X, y) < 0.5


def test_a_tube_far_below_tol_is_said():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    with pytest.warns(ConvergenceWarning, match=r"the tube of nu=0.5 is so narrow, epsilon=.*; lower tol"):
        reg = NuSVR(nu=0.5).fit(X, np.sin(X.sum(axis=1)))
    assert 0 < reg.epsilon_ < 1e-4
    assert share(reg) == pytest.approx(0.5 * 1500, rel=1e-9)


@pytest.mark.parametrize("nu", [0.9, 1.0])
def test_the_tube_of_a_share_that_no_tube_has_is_the_least(nu):
    """At a large C a smooth target is met so well that even no tube has a smaller share."""
    X = np.linspace(0, 1, 60)[:, None]
    reg = NuSVR(nu=nu, C=1e6, kernel="linear").fit(X, X[:, 0] + 1e-3 * np.sign(np.sin(40 * X[:, 0])) * (X[:, 0] < 0.1))
    assert reg.epsilon_ <= 2e-6
    assert reg.status_ == "converged"
