"""What every estimator promises to scikit-learn and to its users."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_predict
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import SVR as TheirSVR
from sklearn.utils.estimator_checks import check_estimator

import naive
from contracts.estimator_cases import BOTH, outputs, problem
from slimsvm import BSCA, BSGD, SVC, SVR, ExactCuts, OrdinalSVC, UniformCuts, ViolatedCuts
from slimsvm.estimators import ESTIMATORS
from slimsvm.kernels import RBF, Precomputed
from slimsvm.solvers import SOLVERS
from tasks_for_tests import NOT_FOR, TWO_CLASSES

SAMPLED = "a sampled cut of repeated rows is another sample than one of weighted rows; exact cuts pass"
EXPECTED = {f"check_sample_weight_equivalence_on_{kind}_data": SAMPLED for kind in ("dense", "sparse")}
COPIES = "a row is left out with all its weight: two copies are not one row of twice the weight"
OF_PROBABILITIES = dict.fromkeys(EXPECTED, COPIES)
OTHER_CLASS = "predict compares scores with thresholds; the largest probability may be another class's"


# ---- scikit-learn's own checks


@BOTH
def test_scikit_learns_checks_pass_without_exception(name):
    check_estimator(ESTIMATORS[name](), on_skip=None)


@pytest.mark.parametrize(
    "estimator",
    [SVC(solver=ViolatedCuts(sample_size=50), random_state=0), SVR(solver=UniformCuts(sample_size=50), random_state=0)],
    ids=repr,
)
def test_scikit_learns_checks_pass_with_sampled_cuts(estimator):
    check_estimator(estimator, on_skip=None, expected_failed_checks=EXPECTED)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (SVC(probability=True), OF_PROBABILITIES),
        (OrdinalSVC(probability=True, random_state=0), OF_PROBABILITIES | {"check_classifiers_train": OTHER_CLASS}),
    ],
    ids=["SVC", "OrdinalSVC"],
)
def test_scikit_learns_checks_pass_with_probabilities(estimator, expected):
    check_estimator(estimator, on_skip=None, expected_failed_checks=expected)


@pytest.mark.parametrize("solver", [BSCA(), BSGD()], ids=repr)
def test_scikit_learns_checks_pass_on_a_budget(solver):
    check_estimator(SVR(solver=solver, random_state=0), on_skip=None)


@pytest.mark.full
@pytest.mark.parametrize("solver", [BSCA(), BSGD()], ids=repr)
def test_scikit_learns_checks_of_classifiers_pass_on_a_budget(solver):
    check_estimator(SVC(solver=solver, random_state=0), on_skip=None)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "solver"),
    [(name, solver) for name in sorted(ESTIMATORS) for solver in sorted(set(SOLVERS) - NOT_FOR[name] - TWO_CLASSES)],
)
def test_scikit_learns_checks_pass_with_every_solver(name, solver):
    """Of those that train three classes, as the checks have them."""
    expected = {} if solver == "exact-cuts" else EXPECTED
    check_estimator(ESTIMATORS[name](solver=solver, random_state=0), on_skip=None, expected_failed_checks=expected)


# ---- the optimum, and what is reported of it


@BOTH
def test_default_fits_are_certified(name):
    X, y = problem(name)
    estimator = ESTIMATORS[name]().fit(X, y)
    assert estimator.status_ == "converged"
    assert 0 <= estimator.objective_ - estimator.lower_bound_ <= 1e-9 * estimator.objective_
    assert np.sum(estimator.n_iter_) == len(estimator.history_)
    assert estimator.n_basis_ == len(estimator.basis_vectors_) == len(estimator.basis_coef_)
    assert estimator.n_kernel_evals_ > 0
    np.testing.assert_array_equal(estimator.support_vectors_, X[estimator.support_])
    assert estimator.dual_coef_.sum() == pytest.approx(estimator.basis_coef_.sum(), abs=1e-9)
    assert not hasattr(estimator, "coef_")
    if name == "SVC":
        np.testing.assert_array_equal(estimator.n_support_, np.bincount(y[estimator.support_]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_the_expansion(n_classes):
    X, y = problem(n_classes=n_classes)
    clf = SVC(gamma=0.7, multi_class="crammer-singer").fit(X, y)
    scores = rbf_kernel(X, clf.basis_vectors_, gamma=0.7) @ clf.basis_coef_ + clf.intercept_
    np.testing.assert_allclose(clf.decision_function(X), scores[:, 0] if n_classes == 2 else scores, atol=1e-12)


def test_the_same_classifier_as_scikit_learns_where_the_problem_is_the_same():
    """Without an intercept on either side: theirs is a constant feature of weight nought here."""
    X, y = problem(n=150)
    for C in (0.5, 20.0):
        K = rbf_kernel(X, gamma=0.5)
        theirs = TheirSVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
        # Their free intercept is 0 where both signs weigh the same: symmetrise the data by its negative.
        ours = SVC(C=C, gamma=0.5, intercept="none").fit(X, y)
        agree = np.mean(ours.predict(X) == theirs.predict(K))
        assert agree > 0.95
        margin = 1 - (2 * y - 1) * ours.decision_function(X)
        alpha = ours.dual_coef_[0] * (2 * y[ours.support_] - 1)
        assert (alpha > -1e-6 * C).all()
        assert (alpha < C * (1 + 1e-6)).all()
        # KKT: free vectors lie on the margin, bounded ones within, others beyond.
        free = (alpha > 1e-4 * C) & (alpha < C * (1 - 1e-4))
        np.testing.assert_allclose(margin[ours.support_][free], 0, atol=1e-3)
        others = np.setdiff1d(np.arange(len(X)), ours.support_)
        assert (margin[others] < 1e-3).all()


def test_rare_classes_are_balanced_as_by_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=1500) > 2.2, "rare", "usual")
    assert 20 < np.sum(y == "rare") < 60
    ours, theirs = (estimator(class_weight="balanced").fit(X[:1000], y[:1000]) for estimator in (SVC, TheirSVC))
    assert np.sum(ours.predict(X) != theirs.predict(X)) <= 2


def plain(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_weights_of_a_linear_estimator_are_those_of_scikit_learn(container):
    X, y = problem(n_classes=3)
    for ours, theirs, target in (
        (SVC(kernel="linear"), TheirSVC(kernel="linear"), y),
        (SVC(kernel="linear"), TheirSVC(kernel="linear"), y > 0),
        (SVR(kernel="linear"), TheirSVR(kernel="linear"), X[:, 0] + 0.1 * y),
    ):
        expected = theirs.set_params(tol=1e-8).fit(X, target)
        fitted = ours.set_params(tol=1e-8).fit(container(X), target)
        np.testing.assert_allclose(plain(fitted.coef_), expected.coef_, atol=1e-5)
    cuts = SVC(kernel="linear", solver=ExactCuts(weights=True)).fit(container(X), y)
    assert cuts.coef_.shape == (3, 3)
    np.testing.assert_allclose(
        X @ plain(cuts.coef_).T + cuts.intercept_, cuts.decision_function(container(X)), atol=1e-9
    )


def test_weights_are_those_of_a_linear_kernel_alone():
    clf = SVC().fit(*problem())
    with pytest.raises(AttributeError, match=r"coef_ exists only for kernel='linear', found RBF\(gamma="):
        clf.coef_  # noqa: B018
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SVC(kernel="linear").coef_  # noqa: B018


def test_svr_takes_targets_far_from_zero():
    X, y = problem("SVR")
    near, far = SVR().fit(X, y), SVR().fit(X, y + 1e6)
    np.testing.assert_allclose(far.predict(X) - 1e6, near.predict(X), atol=1e-6)
    assert far.objective_ == pytest.approx(near.objective_, rel=1e-6)
    np.testing.assert_allclose(far.intercept_, far.model_.intercept)


def test_no_intercept():
    X, y = problem("SVR")
    assert not SVR(intercept="none").fit(X, y).intercept_.any()
    assert not SVC(intercept="none").fit(*problem()).intercept_.any()


# ---- weights


@pytest.mark.parametrize("n_classes", [2, 3])
@BOTH
def test_weights_are_repeats_and_zero_is_removal(name, n_classes):
    X, y = problem(name, n_classes=n_classes)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = ESTIMATORS[name](gamma=0.5).fit(X, y, sample_weight=weights)
    repeated = ESTIMATORS[name](gamma=0.5).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(outputs(weighted, X), outputs(repeated, X), atol=1e-4)
    assert (weights[weighted.support_] > 0).all()
    np.testing.assert_array_equal(weighted.support_vectors_, X[weighted.support_])
    kept = weights > 0
    removed = ESTIMATORS[name](gamma=0.5).fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_array_equal(outputs(weighted, X), outputs(removed, X))


@BOTH
def test_one_number_as_weight_scales_C(name):
    X, y = problem(name)
    one = ESTIMATORS[name](C=3.0, tol=1e-9).fit(X, y, sample_weight=1.0)
    three = ESTIMATORS[name](C=1.0, tol=1e-9).fit(X, y, sample_weight=3.0)
    assert three.objective_ == pytest.approx(one.objective_, rel=1e-9)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 2.0, 1: 0.5}])
def test_class_weights_are_sample_weights(class_weight):
    X, y = problem(n=120)
    y[X[:, 2] > 0] = 0
    of_class = {0: len(y) / 2 / np.sum(y == 0), 1: len(y) / 2 / np.sum(y == 1)}
    by_row = np.array([(of_class if class_weight == "balanced" else class_weight)[label] for label in y])
    # gamma="scale" knows sample weights (a repeated row counts twice) and no class weights.
    by_class = SVC(class_weight=class_weight, gamma=0.5).fit(X, y)
    by_sample = SVC(gamma=0.5).fit(X, y, sample_weight=by_row)
    assert by_class.objective_ == pytest.approx(by_sample.objective_, rel=1e-12)
    np.testing.assert_array_equal(by_class.decision_function(X), by_sample.decision_function(X))
    np.testing.assert_allclose(by_class.class_weight_, [by_row[y == 0][0], by_row[y == 1][0]])
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    both = SVC(class_weight=class_weight, gamma=0.5).fit(X, y, sample_weight=weights)
    product = SVC(gamma=0.5).fit(X, y, sample_weight=both.class_weight_[y.astype(int)] * weights)
    np.testing.assert_array_equal(both.decision_function(X), product.decision_function(X))


def test_weights_are_repeated_rows_and_scikit_learns_estimator_where_that_looks_at_them():
    """As docs/which_estimator.md says: gamma="scale" and "balanced" look at weights here, and not in scikit-learn."""
    X, y = problem(n=120)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    ours = SVC(class_weight="balanced", tol=1e-9)
    scores = ours.fit(X, y, sample_weight=weights).decision_function(X)
    of_all = SVC(class_weight="balanced", tol=1e-9).fit(X[repeated], y[repeated]).decision_function(X)
    np.testing.assert_allclose(scores, of_all, atol=1e-6)
    gamma, factors = ours.kernel_.gamma, dict(zip(ours.classes_, ours.class_weight_, strict=True))
    theirs = TheirSVC(gamma=gamma, class_weight=factors, tol=1e-9).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(scores, theirs.decision_function(X), atol=1e-6)


# ---- labels and outputs


@pytest.mark.parametrize(
    "labels", [["no", "yes"], [-1, 1], [False, True], [10.0, 20.0], ["c", "a", "b"], [7, 3, 5]], ids=repr
)
def test_any_labels(labels):
    X, codes = problem(n_classes=len(labels))
    y = np.array(labels)[codes]
    clf = SVC().fit(X, y)
    np.testing.assert_array_equal(clf.classes_, np.unique(y))
    predicted = clf.predict(X)
    assert predicted.dtype == y.dtype
    assert clf.score(X, y) > 0.8
    scores = clf.decision_function(X)
    best = (scores > 0).astype(int) if len(labels) == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(predicted, clf.classes_[best])


def test_labels_of_python_strings():
    X, codes = problem()
    y = np.array(["one", "another"], dtype=object)[codes]
    clf = SVC().fit(X, y)
    assert set(clf.predict(X)) == {"one", "another"}


def test_two_columns_for_three_classes():
    X, y = problem(n_classes=3)
    ovr, ovo = (SVC(multi_class="crammer-singer", decision_function_shape=shape).fit(X, y) for shape in ("ovr", "ovo"))
    scores = ovr.decision_function(X)
    assert scores.shape == (len(X), 3)
    pairs = ovo.decision_function(X)
    differences = [scores[:, a] - scores[:, b] for a, b in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_array_equal(pairs, np.stack(differences, axis=1))
    np.testing.assert_array_equal(ovo.predict(X), ovr.predict(X))


def test_ties_go_to_the_lowest_label():
    """Rows that say nothing: equal scores for all."""
    X, y = np.zeros((6, 2)), np.array([0, 1, 2, 0, 1, 2])
    clf = SVC(intercept="none", kernel="linear", multi_class="crammer-singer").fit(X, y)
    np.testing.assert_array_equal(clf.predict(X), 0)
    clf = SVC(intercept="none", kernel="linear").fit(X[:4], ["b", "a", "b", "a"])
    np.testing.assert_array_equal(clf.predict(X), "a")


@pytest.mark.parametrize("labels", [["x", "y"], ["z", "x", "y"]], ids=len)
def test_cost_matrix(labels):
    """Δ(y, ŷ) in the order of `classes_`: the optimum of the problem written out with it."""
    X, codes = problem(n=50, n_classes=len(labels))
    y = np.array(labels)[codes]
    cost = np.array([[0.0, 0.5, 2.0], [3.0, 0.0, 1.5], [1.0, 0.25, 0.0]])[: len(labels), : len(labels)]
    asked = {"gamma": 0.5, "intercept": "regularized", "multi_class": "crammer-singer", "tol": 1e-9}
    clf = SVC(cost_matrix=cost, C=2.0, **asked).fit(X, y)
    written_out = []
    for i, label in enumerate(y):
        c = list(clf.classes_).index(label)
        if len(labels) == 2:
            options = naive.binary_options(2 * c - 1, cost[0, 1], cost[1, 0])
        else:
            options = naive.multiclass_options(c, cost)
        written_out.append((np.array([i]), options, 1.0))
    primal, _ = naive.optimum(rbf_kernel(X, gamma=0.5), written_out, 2.0)
    assert clf.objective_ == pytest.approx(primal, rel=1e-8)
    usual = SVC(cost_matrix=1 - np.eye(len(labels)), **asked).fit(X, y)
    np.testing.assert_array_equal(usual.decision_function(X), SVC(**asked).fit(X, y).decision_function(X))


# ---- kernels


@BOTH
def test_precomputed_callable_and_named_kernels_agree(name):
    X, y = problem(name)
    new = problem(name, seed=1)[0]
    named = ESTIMATORS[name](gamma=0.3, kernel="rbf").fit(X, y)
    by_object = ESTIMATORS[name](kernel=RBF(0.3)).fit(X, y)
    np.testing.assert_array_equal(outputs(by_object, new), outputs(named, new))
    by_function = ESTIMATORS[name](kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3)).fit(X, y)
    np.testing.assert_allclose(outputs(by_function, new), outputs(named, new), atol=1e-4)
    K, K_new = rbf_kernel(X, gamma=0.3), rbf_kernel(new, X, gamma=0.3)
    for kernel in ("precomputed", Precomputed()):
        precomputed = ESTIMATORS[name](kernel=kernel).fit(K, y)
        assert precomputed.objective_ == pytest.approx(named.objective_, rel=1e-9)
        np.testing.assert_allclose(outputs(precomputed, K_new), outputs(named, new), atol=1e-4)


@pytest.mark.parametrize("kernel", ["precomputed", Precomputed()], ids=repr)
@BOTH
def test_precomputed_kernels_with_rows_of_no_weight(name, kernel):
    X, y = problem(name)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    K = rbf_kernel(X, gamma=0.3)
    precomputed = ESTIMATORS[name](kernel=kernel).fit(K, y, sample_weight=weights)
    named = ESTIMATORS[name](gamma=0.3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(outputs(precomputed, K), outputs(named, X), atol=1e-4)
    assert (weights[precomputed.support_] > 0).all()


@BOTH
def test_precomputed_kernels_are_cross_validated(name):
    X, y = problem(name)
    by_matrix = cross_val_predict(ESTIMATORS[name](kernel="precomputed"), rbf_kernel(X, gamma=0.3), y, cv=3)
    by_rows = cross_val_predict(ESTIMATORS[name](gamma=0.3), X, y, cv=3)
    np.testing.assert_allclose(by_matrix, by_rows, atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "same"),
    [
        ({"gamma": "auto"}, {"gamma": 1 / 3}),
        ({"gamma": np.full(3, 0.4)}, {"gamma": 0.4}),
        ({"kernel": "poly", "degree": 1, "coef0": 0.0, "gamma": 1.0}, {"kernel": "linear"}),
        ({"gamma": "scale"}, {}),
    ],
    ids=repr,
)
def test_parameters_of_kernels(parameters, same):
    X, y = problem()
    np.testing.assert_allclose(
        SVC(**parameters).fit(X, y).decision_function(X), SVC(**same).fit(X, y).decision_function(X), atol=1e-6
    )


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("container", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix, pd.DataFrame])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_gamma_scale_is_that_of_scikit_learn(container, dtype):
    X = np.random.default_rng(0).integers(-3, 4, (50, 4)).astype(dtype)
    X[np.abs(X) == 1] = 0
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    gamma = SVC().fit(container(X), y).kernel_.gamma
    assert gamma == pytest.approx(1 / (4 * np.var(X.astype(float))), rel=1e-12)
