"""Cross-training: the paper's algorithm written out, and how the last estimator comes to few vectors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.svm import SVC as TheirSVC

from cross_training_for_tests import PLAIN, fitted, noisy
from slimsvm import SVC, CrossTrainedSVC, Exact, UniformCuts
from slimsvm.datasets import checkerboard, two_gaussians
from slimsvm.editing import cross_training
from slimsvm.editing.cross_training_stages import Path, Settings, best_threshold, split, worthwhile_threshold
from slimsvm.tasks import Binary


def solved(X, y, settings, **parameters):
    """The fit that `fitted` makes, with other settings of the solver behind it."""
    clf = CrossTrainedSVC(random_state=0, n_jobs=1, **parameters)
    X, y, codes = clf._check_data(X, y)
    problem = clf._set_up(X, Binary().encode(codes), Binary(), None)
    return clf.solver_.set_params(settings=settings).solve(problem)


@pytest.mark.parametrize("variances", [1.0, 0.0, 2.5])
@pytest.mark.parametrize("n_subsets", [2, 5])
def test_the_kept_rows_are_those_of_algorithm_3(variances, n_subsets):
    """LIBSVM's estimators of the same subsets, means and variances as the paper writes them, row by row."""
    X, y = noisy()
    parameters = {**PLAIN, "variances": variances, "n_subsets": n_subsets, "subset_size": 80, "balance": False}
    edited = CrossTrainedSVC(random_state=0, n_jobs=1, tol=1e-6, precision="float64", **parameters).edit(X, y)
    estimators = []
    for subset in edited.split.subsets:
        assert np.sum(y[subset] > 0) == np.sum(y[subset] < 0) == 40
        estimators.append(TheirSVC(C=1.0, gamma=0.3, tol=1e-6).fit(X[subset].astype(float), y[subset]))
    kept = []
    for i in range(len(X)):
        margins = [y[i] * estimator.decision_function(X[i : i + 1].astype(float))[0] for estimator in estimators]
        m = sum(margins) / n_subsets
        v = sum((m - margin) ** 2 for margin in margins) / n_subsets
        assert edited.mean[i] == pytest.approx(m, abs=1e-4)
        assert edited.variance[i] == pytest.approx(v, abs=1e-4)
        if not (m + variances * v < 0 or m - variances * v > 1):
            kept.append(i)
    np.testing.assert_array_equal(edited.kept, kept)
    assert edited.n_wrong + edited.n_sure + len(kept) == len(X)


def test_fits_at_rising_values_of_C_begin_where_others_ended():
    """They end at the optimum of each C, and compute a kernel value once."""
    X, y = noisy()
    clf = CrossTrainedSVC(gamma=0.3, tol=1e-6, random_state=0, n_jobs=1)
    X, y, codes = clf._check_data(X, y)
    problem = clf._set_up(X, Binary().encode(codes), Binary(), None)
    path, evals = Path(problem, Exact()), {"path": 0, "apart": 0}
    for C in (0.1, 1.0, 10.0):
        fit, apart = path.fit(C, None), Exact().solve(replace(problem, C=C))
        assert fit.objective == pytest.approx(apart.objective, rel=1e-5)
        evals["path"] += fit.counters["kernel_evals"]
        evals["apart"] += apart.counters["kernel_evals"]
    assert evals["path"] <= 0.4 * evals["apart"]
    cuts = Path(replace(problem, intercept="regularized"), UniformCuts(sample_size=50))
    assert [cuts.fit(C, None).model.n_basis > 0 for C in (0.1, 1.0)] == [True, True]


def test_the_last_estimator_is_the_svm_of_the_kept_rows():
    X, y = noisy()
    clf = fitted(X, y, **PLAIN, subset_size=100, tol=1e-6)
    kept = clf.sample_indices_
    theirs = TheirSVC(C=1.0, gamma=0.3, tol=1e-6).fit(X[kept].astype(float), y[kept])
    np.testing.assert_allclose(clf.decision_function(X), theirs.decision_function(X.astype(float)), atol=1e-3)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    assert np.isin(clf.support_, kept).all()
    np.testing.assert_array_equal(clf.n_support_, [np.sum(y[clf.support_] == c) for c in (-1, 1)])
    assert clf.objective_ - clf.lower_bound_ <= 1e-4 * clf.objective_
    assert clf.certificate(X[kept], y[kept]).gap < 1e-3


def test_the_smaller_class_gets_the_surest_rows_nearest_the_margin_back():
    rng = np.random.default_rng(0)
    X, y = two_gaussians(1500, 2, 2.0, random_state=0)
    part = np.flatnonzero((y < 0) | (rng.random(1500) < 0.3))
    X, y = X[part], y[part]
    without, balanced = (fitted(X, y, **PLAIN, subset_size=200, balance=balance) for balance in (False, True))
    returned = np.setdiff1d(balanced.sample_indices_, without.sample_indices_)
    sizes = [np.sum(y[without.sample_indices_] == c) for c in (-1, 1)]
    assert without.n_returned_ == 0
    assert balanced.n_returned_ == len(returned) > 0
    assert len(returned) <= abs(sizes[0] - sizes[1])
    smaller = -1 if sizes[0] < sizes[1] else 1
    assert (y[returned] == smaller).all()
    doubt = balanced.margin_mean_ - balanced.margin_variance_
    left_out = np.setdiff1d(np.flatnonzero((y == smaller) & (doubt > 1)), returned)
    assert doubt[returned].min() > 1
    if len(left_out):
        assert doubt[returned].max() <= doubt[left_out].min()
        assert np.ptp([np.sum(y[balanced.sample_indices_] == c) for c in (-1, 1)]) == 0


def test_the_last_C_comes_from_rows_that_are_not_trained_on_until_it_is_chosen():
    X, y = noisy(900)
    clf = fitted(X, y, gamma=2.0, max_basis=None)
    parts = clf.edit(X, y).split
    assert len(parts.validating) == pytest.approx(150, abs=2)
    assert [trial["C"] for trial in clf.validation_] == [0.1, 1.0, 10.0, 100.0, 1000.0][: len(clf.validation_)]
    least = min(trial["error"] for trial in clf.validation_)
    chosen = next(trial for trial in clf.validation_ if trial["C"] == clf.C_)
    assert chosen["error"] <= least + 4 * np.sqrt(least / 150)
    kept = np.intersect1d(clf.edit(X, y).kept, parts.training)
    estimator = SVC(C=clf.C_, gamma=2.0, solver="exact", intercept="free", n_jobs=1).fit(X[kept], y[kept])
    assert estimator.n_basis_ == chosen["n_basis"]
    assert np.mean(estimator.predict(X[parts.validating]) != y[parts.validating]) == pytest.approx(chosen["error"])
    assert np.isin(parts.validating, clf.sample_indices_).any()


def test_validation_rows_that_do_not_rejoin_only_choose():
    """As in the paper: the last model is the one that the validation rows chose."""
    X, y = noisy(900)
    parameters = {"gamma": 2.0, "max_basis": None, "deviations": 0.0}
    clf, joined = (fitted(X, y, **parameters, rejoin=rejoin) for rejoin in (False, True))
    edited = clf.edit(X, y)
    validating = edited.split.validating
    assert not np.isin(validating, clf.sample_indices_).any()
    assert np.isin(validating, joined.sample_indices_).any()
    assert clf.n_wrong_ + clf.n_sure_ - clf.n_returned_ + len(clf.sample_indices_) == len(edited.split.training)
    chosen = next(trial for trial in clf.validation_ if trial["C"] == clf.C_)
    assert clf.n_basis_ == chosen["n_basis"]
    assert np.mean(clf.predict(X[validating]) != y[validating]) == pytest.approx(chosen["error"])


@pytest.mark.parametrize("rejoin", [False, True])
def test_what_chose_C_is_not_trained_again(rejoin, monkeypatch):
    X, y = noisy(900)
    rows, solve = [], Exact.solve

    def counted(self, problem, *rest, **others):
        fit = solve(self, problem, *rest, **others)
        rows.append((problem.rows.n_rows, problem.C, fit.counters["kernel_evals"]))
        return fit

    monkeypatch.setattr(Exact, "solve", counted)
    clf = fitted(X, y, gamma=2.0, max_basis=None, first_C=1.0, deviations=0.0, rejoin=rejoin)
    last = rows[clf.n_subsets :]
    assert [C for _, C, _ in last] == [trial["C"] for trial in clf.validation_] + [clf.C_] * rejoin
    assert clf.counters_["kernel_evals"] > sum(evals for _, _, evals in rows)  # and those of scores


def test_validation_rows_that_do_not_rejoin_have_no_part_in_the_coefficients():
    X, y = noisy(2000)
    parameters = {"gamma": 2.0, "C": 1.0, "first_C": 1.0, "deviations": 1e9}  # no threshold moves
    other = X.copy()
    other[fitted(X, y, **parameters).edit(X, y).split.validating] = 0.5
    for rejoin in (True, False):
        one, two = (fitted(rows, y, **parameters, rejoin=rejoin).decision_function(X[:50]) for rows in (X, other))
        assert np.array_equal(one, two) == (not rejoin)


def test_few_validation_rows_do_not_judge_the_last_C_alone():
    """Every row is judged once, by an estimator that was not trained on it."""
    X, y = noisy(400)
    errors = np.array([trial["error"] for trial in fitted(X, y, gamma=2.0).validation_])
    np.testing.assert_allclose(400 * errors, np.round(400 * errors), atol=1e-9)
    alone = np.array([trial["error"] for trial in solved(X, y, Settings(enough=1), gamma=2.0).state.trials])
    np.testing.assert_allclose(66 * alone, np.round(66 * alone), atol=1e-9)
    assert errors[0] != pytest.approx(alone[0])


def test_the_other_rows_come_in_parts_of_as_many():
    validating, training = np.arange(50), np.arange(50, 330)
    parts = cross_training.further_parts(validating, training, np.random.default_rng(0), 300)
    assert [len(part) for part in parts] == [56] * 5
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), training)
    assert all((np.diff(part) > 0).all() for part in parts)
    assert cross_training.further_parts(np.arange(300), np.arange(300, 900), np.random.default_rng(0), 300) == []
    assert len(cross_training.further_parts(validating, np.arange(50, 60), np.random.default_rng(0), 300)) == 1


def test_the_first_C_is_the_highest_of_those_that_err_alike_on_rows_not_seen():
    X, y = noisy(900)
    edited = CrossTrainedSVC(gamma=2.0, random_state=0, n_jobs=1).edit(X, y)
    unseen = np.ones_like(edited.first.margins, bool)
    for mask, subset in zip(unseen, edited.split.subsets, strict=True):
        mask[subset] = False
    judged = unseen.any(axis=0)
    wrong = (edited.first.margins * unseen).sum(axis=0)[judged] <= 0
    trials = {trial["C"]: trial["error"] for trial in edited.first.trials}
    assert trials[edited.first.C] == pytest.approx(np.mean(wrong))
    least = min(trials.values())
    spread = np.sqrt(2 * len(wrong) * least) / len(wrong)  # were errors those of other rows
    assert trials[edited.first.C] <= least + spread
    assert min(trials, key=trials.get) <= edited.first.C


def test_a_small_class_is_not_forgotten_by_those_who_judge():
    """Few rows are positive, and in every subset: by rows not seen the estimator of the larger class were best."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    y = np.where(np.hypot(X[:, 0] - 1, X[:, 1] - 1) < 0.6, 1, -1)
    clf = fitted(X, y, gamma=2.0)
    assert np.mean(clf.predict(X[y > 0]) > 0) > 0.85
    assert clf.score(X, y) > 0.97


def test_thresholds_move_only_for_more_than_chance():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=400)
    labels = np.where(rng.random(400) < 0.5, 1, -1)
    assert worthwhile_threshold(scores, labels) == 0.0
    labels = np.where(scores + 0.1 * rng.normal(size=400) > 0.7, 1, -1)
    assert worthwhile_threshold(scores, labels) == pytest.approx(0.7, abs=0.1)
    assert worthwhile_threshold(np.zeros(0), np.zeros(0)) == 0.0


def test_without_caution_the_best_C_and_threshold_are_taken():
    """As the paper does; of values of C that err the same, the first SVMs take the highest."""
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=400), np.where(rng.random(400) < 0.5, 1, -1)
    threshold = worthwhile_threshold(scores, labels, 0.0)
    assert threshold == best_threshold(scores, labels)[0] != 0.0
    for gamma in (2.0, 0.5):
        X, y = noisy(900)
        clf = fitted(X, y, gamma=gamma, max_basis=None, deviations=0.0)
        assert min(clf.validation_, key=lambda trial: trial["error"])["error"] == next(
            trial["error"] for trial in clf.validation_ if trial["C"] == clf.C_
        )
        least = min(trial["error"] for trial in clf.first_validation_)
        assert clf.first_C_ == max(trial["C"] for trial in clf.first_validation_ if trial["error"] == least)
    with pytest.raises(ValueError, match="deviations must be a number >= 0, found -1"):
        fitted(X, y, deviations=-1)


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_there_is(seed):
    rng = np.random.default_rng(seed)
    scores, labels = np.round(rng.normal(size=12), 1), rng.choice([-1, 1], 12)
    threshold, error = best_threshold(scores, labels)
    assert error == np.mean(np.where(scores > threshold, 1, -1) != labels)
    values = np.sort(scores)
    candidates = [values[0] - 1, 0.0, values[-1] + 1, *(values[1:] + values[:-1]) / 2]
    errors = [np.mean(np.where(scores > t, 1, -1) != labels) for t in candidates]
    assert error == min(errors)
    assert abs(threshold) <= min(abs(t) for t, e in zip(candidates, errors) if e == error) + 1e-12


def test_thresholds_that_need_not_move_do_not():
    assert best_threshold(np.array([-2.0, -0.1, 0.1, 3.0]), np.array([-1, -1, 1, 1])) == (0.0, 0.0)
    threshold, error = best_threshold(np.array([1.0, 2.0, 3.0]), np.array([-1, -1, -1]))
    assert threshold >= 3
    assert error == 0


def test_subsets_and_validation_rows():
    labels = np.where(np.arange(1000) < 100, 1, -1)
    parts = split(labels, 5, 200, None, np.random.default_rng(0))
    assert len(parts.validating) == 66
    assert np.sum(labels[parts.validating] > 0) == 7
    np.testing.assert_array_equal(np.union1d(parts.validating, parts.training), np.arange(1000))
    for subset in parts.subsets:
        assert np.sum(labels[subset] > 0) == 93  # all there are beside the validation rows
        assert np.sum(labels[subset] < 0) == 100
        assert not np.isin(subset, parts.validating).any()
    assert len({tuple(subset) for subset in parts.subsets}) == 5


def test_subsets_are_at_least_a_thousand_rows_or_half():
    rng = np.random.default_rng(0)
    for n, size in ((400, 200), (3000, 1000), (9000, 1800)):
        parts = split(np.tile([-1, 1], n // 2), 5, None, 0, rng)
        assert [len(subset) for subset in parts.subsets] == [size] * 5


def test_the_mean_of_the_estimators():
    X, y = noisy()
    clf = fitted(X, y, **PLAIN, subset_size=100, second_stage=False)
    edited = clone(clf).edit(X, y)
    scores = np.mean([estimator.scores(X)[:, 0] for estimator in edited.first.models], axis=0)
    np.testing.assert_allclose(clf.decision_function(X), scores, atol=1e-6)
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    assert np.isnan(clf.objective_)
    assert clf.first_C_ == clf.C_


# ---- what it is for


def test_vectors_stay_few_where_an_svm_has_more_and_more():
    """The paper's figure 3 in small, as it is by default: noise makes the SVM's vectors grow with n, not these."""
    X_new, y_new = two_gaussians(5000, 10, 5**0.5, random_state=1)
    counts = {}
    for n in (2000, 12_000):
        X, y = two_gaussians(n, 10, 5**0.5, random_state=0)
        clf = fitted(X, y, kernel="linear", first_C=1.0)
        whole = SVC(kernel="linear", solver="exact", intercept="free", precision="float32", n_jobs=1).fit(X, y)
        counts[n] = clf.n_basis_, whole.n_basis_
        assert clf.score(X_new, y_new) > whole.score(X_new, y_new) - 0.01
    assert counts[12_000][1] > 5 * counts[2000][1]
    assert max(counts[2000][0], counts[12_000][0]) < 25 < 0.1 * counts[2000][1]


def test_a_number_of_vectors_is_kept_to_at_little_cost():
    X, y = noisy(3000)
    X_new, y_new = checkerboard(3000, side=2, random_state=1)
    parameters = {"gamma": 2.0, "first_C": 10.0, "C": 10.0}
    whole, few = (fitted(X, y, **parameters, max_basis=most) for most in (None, 60))
    assert few.n_basis_ <= 60 < 0.7 * whole.n_basis_
    assert few.score(X_new, y_new) > whole.score(X_new, y_new) - 0.025
    # Where it does not bind, the estimator is that of all kept rows, from fewer of them.
    enough = fitted(X, y, **parameters, max_basis=whole.n_basis_ + 50)
    assert enough.score(X_new, y_new) == pytest.approx(whole.score(X_new, y_new), abs=0.005)
    assert enough.n_basis_ <= whole.n_basis_ + 50


@pytest.mark.parametrize("n", [1900, 5000])
def test_there_are_as_many_vectors_as_rows_are_kept_of_two_thousand(n):
    X, y = noisy(n)
    clf = fitted(X, y, gamma=2.0, first_C=10.0, C=10.0, kernel="laplacian")
    training = clf.edit(X, y).split.training
    kept = np.isin(clf.sample_indices_, training).sum()
    assert clf.n_basis_ == pytest.approx(min(kept, 2000 * kept / len(training)), abs=2)
    assert np.isin(clf.support_, clf.sample_indices_).all()
    X_new, y_new = checkerboard(3000, side=2, random_state=1)
    assert clf.score(X_new, y_new) > 0.95


def test_coefficients_are_the_best_for_all_rows():
    """Those of the convex problem over the vectors that were found, solved by other means."""
    X, y = noisy()
    clf = fitted(X, y, gamma=2.0, first_C=10.0, C=3.0, precision="float64", kernel="laplacian", intercept="none")
    values = np.exp(-2.0 * np.abs(X[:, None] - clf.basis_vectors_[None]).sum(axis=2))
    penalty = np.exp(-2.0 * np.abs(clf.basis_vectors_[:, None] - clf.basis_vectors_[None]).sum(axis=2))

    def objective(coef):
        return 0.5 * coef @ penalty @ coef + 3.0 * np.maximum(0, 1 - y * (values @ coef)).sum()

    assert clf.objective_ == pytest.approx(objective(clf.basis_coef_[:, 0]), rel=1e-6)
    step = minimize(objective, clf.basis_coef_[:, 0], method="L-BFGS-B", options={"maxiter": 500})
    assert step.fun > 0.998 * clf.objective_
    assert clf.C_ == 3.0


def test_where_few_vectors_will_not_do_there_are_more():
    """A board of 64 squares: what is kept of 400 rows knows it badly, what is kept of 2,500 well."""
    settings = Settings(reference_rows=400, least_rows=300)
    X, y = checkerboard(2500, side=8, random_state=0)
    X_new, y_new = checkerboard(2000, side=8, random_state=1)
    parameters = {"gamma": 10.0, "first_C": 100.0, "subset_size": 1200}
    more, few = (solved(X, y, settings, **parameters, **others) for others in ({}, {"C": 100.0, "validation_size": 0}))
    assert more.model.n_basis > 1.5 * few.model.n_basis
    right = [np.mean(np.sign(fit.model.scores(X_new)[:, 0]) == y_new) for fit in (more, few)]
    assert right[0] > right[1] + 0.05
    published = fitted(X, y, **parameters, variances=1.0, max_basis=None)
    np.testing.assert_array_equal(more.state.edited.kept, published.sample_indices_)
    np.testing.assert_array_equal(more.model.scores(X_new)[:, 0], published.decision_function(X_new))
