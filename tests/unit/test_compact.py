"""As few vectors as do as well as the exact SVM: the search and its end, and a number that is given."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_moons
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info

import slimsvm
from kernel_cases import NO_DERIVATIVE
from slimsvm import SVC, SVR, Compact, Exact, Refine, rows
from slimsvm.bases.distance import Distance, descend
from slimsvm.datasets import checkerboard
from slimsvm.kernels import RBF, EvalCounter
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.size_search import compact, reduced_models, size_search, trials
from slimsvm.size_search.reduced_models import MoveSettings
from slimsvm.size_search.trials import (
    FOLDS,
    SizeSettings,
    Trial,
)
from slimsvm.tasks import Binary, OneVsOne, Regression


def moons(n=2500, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X.astype(np.float32), y


def three_classes(n=1500, seed=0):
    X, y = moons(n, seed)
    return X, y + 2 * ((X[:, 0] > 0.5) & (y == 1))


def stages(clf):
    return list(dict.fromkeys(record["stage"] for record in clf.history_))


@pytest.fixture(scope="module")
def fitted():
    return SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(*moons())


def none_will_do(monkeypatch):
    monkeypatch.setattr(size_search, "allowed_error", lambda *args: -1.0)


def test_few_vectors_do_as_well(fitted):
    X, y = moons()
    X_test, y_test = moons(5000, 1)
    exact = SVC(C=10.0, gamma=1.0).fit(X, y)
    assert stages(fitted)[0] == f"exact SVM of a part 1 of {FOLDS}"
    assert "25 vectors" in stages(fitted)
    assert stages(fitted)[-2:] == ["exact SVM", "all rows"]
    assert fitted.n_basis_ <= exact.n_basis_ / 5
    assert fitted.score(X_test, y_test) > exact.score(X_test, y_test) - 0.005
    assert fitted.status_ == "converged"
    assert fitted.intercept_kind_ == "free"


def test_what_was_tried_is_told(fitted, capsys):
    last = fitted.validation_[-1]
    numbers = ["error", "extra_error", "standard_error", "allowed", "missed_by"]
    assert list(last) == ["n_basis", "vectors", "multi_class", *numbers]
    assert last["extra_error"] + last["standard_error"] <= last["allowed"] <= 0.0025
    assert all(trial["extra_error"] + trial["standard_error"] > trial["allowed"] for trial in fitted.validation_[:-1])
    assert [trial["missed_by"] > 0 for trial in fitted.validation_] == [True] * (len(fitted.validation_) - 1) + [False]
    errors = [record["held_out_error"] for record in fitted.history_ if "held_out_error" in record]
    assert errors[1:] == [trial["error"] for trial in fitted.validation_]
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0, verbose=1).fit(X, y)
    assert clf.history_[-1]["search"] in capsys.readouterr().err


def test_what_is_said_of_the_model_is_of_all_rows(fitted):
    X, y = moons()
    assert fitted.objective_ == pytest.approx(fitted.certificate(X, y, max_seconds=10).objective, rel=1e-5)
    exact = SVC(C=10.0, gamma=1.0).fit(X, y)
    assert fitted.lower_bound_ == pytest.approx(exact.objective_, rel=1e-3)
    assert fitted.lower_bound_ <= exact.objective_ <= fitted.objective_
    seconds, evals = ([record[name] for record in fitted.history_] for name in ("seconds", "kernel_evals"))
    assert seconds == sorted(seconds)
    assert evals == sorted(evals)
    assert fitted.n_kernel_evals_ >= evals[-1]


def test_the_same_model_again_for_any_number_of_threads(fitted):
    again = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0, n_jobs=2).fit(*moons())
    np.testing.assert_array_equal(again.basis_vectors_, fitted.basis_vectors_)
    np.testing.assert_array_equal(again.basis_coef_, fitted.basis_coef_)


def test_all_is_done_by_one_thread_of_the_linear_algebra(monkeypatch):
    """Others would spin beside ours, and have other bits."""
    seen, descend = [], reduced_models.descend

    def noting(*args):
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return descend(*args)

    monkeypatch.setattr(reduced_models, "descend", noting)
    SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(*moons(300))
    assert set(seen) == {1}


def test_without_such_vectors_the_exact_svm_of_all_rows(monkeypatch):
    none_will_do(monkeypatch)
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(X, y)
    exact = SVC(C=10.0, gamma=1.0).fit(X, y)
    assert stages(clf)[-1] == "exact SVM"
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-4)
    np.testing.assert_array_equal(np.sort(clf.support_), np.sort(exact.support_))
    assert "none does" in clf.history_[-1]["search"]
    several = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(*three_classes())
    pairs = SVC(C=10.0, gamma=1.0).fit(*three_classes())
    assert several.multi_class_ == "ovo"
    np.testing.assert_array_equal(several.predict(X), pairs.predict(X))


def test_the_exact_svm_of_all_rows_begins_at_that_of_a_part(monkeypatch):
    begun, solve = [], Exact.solve

    def noting(solver, problem, state=None, callbacks=()):
        begun.append(state)
        return solve(solver, problem, state, callbacks)

    none_will_do(monkeypatch)
    monkeypatch.setattr(Exact, "solve", noting)
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(X, y)
    assert len(begun) > 1
    assert set(begun[:-1]) == {None}
    v = np.zeros(len(X))
    v[clf.support_] = clf.dual_coef_[0]
    assert np.linalg.norm(begun[-1].v - v) < 0.7 * np.linalg.norm(v)


@pytest.mark.parametrize(("data", "first"), [(moons, 8), (three_classes, 4)])
def test_newtons_method_begins_near_to_the_exact_svm_of_the_same_task(data, first, monkeypatch, settings_of_estimators):
    begun, solve = [], size_search.LowRank.solve

    def noting(solver, problem, state=None, callbacks=()):
        begun.append((problem, state))
        return solve(solver, problem, state, callbacks)

    monkeypatch.setattr(size_search.LowRank, "solve", noting)
    monkeypatch.setattr(size_search.SizeSearch, "_may_ascend", lambda *args: False)
    settings_of_estimators(SizeSettings(first, 1))  # so few that of several classes a score each is tried, too
    X, y = data()
    SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(X, y)
    assert begun
    for problem, state in begun:
        if data is three_classes:
            assert state is None  # three pairs are as many outputs as three scores, and something else
        else:
            scores = state.model.scores(problem.rows)[:, 0]
            assert np.mean((scores > 0) == (problem.examples.labels == 1)) > 0.85


def test_a_tolerance_of_the_users(fitted):
    X, y = moons(600)
    strict, lax = (SVC(C=10.0, gamma=1.0, solver=Compact(extra), random_state=0).fit(X, y) for extra in (0.0, 0.2))
    assert len(lax.validation_) == 1 < len(strict.validation_)
    assert lax.validation_[0]["allowed"] > strict.validation_[0]["allowed"] == 0.0


def test_the_search_ends_where_it_has_taken_what_it_may(monkeypatch):
    none_will_do(monkeypatch)
    X, y = moons(2000)
    settings = {"C": 10.0, "gamma": 1.0, "random_state": 0}
    short, long = (SVC(solver=Compact(search_factor=f), **settings).fit(X, y) for f in (1e-6, 100.0))
    sizes = [len({trial["n_basis"] for trial in clf.validation_}) for clf in (short, long)]
    assert sizes[0] == 1 < sizes[1]
    assert short.n_kernel_evals_ < long.n_kernel_evals_


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_what_a_search_takes_is_foreseen(monkeypatch, factor, settings_of_estimators):
    """Sizes for which there is no room are not begun; what they take is foreseen but for some preparation."""
    seen, try_sizes = [], compact._Search.try_sizes

    def noting(search):
        try_sizes(search)
        seen.append((search._taken(), search._left(), len(search.trials)))

    none_will_do(monkeypatch)
    settings_of_estimators(MoveSettings(quick_work=0.0))
    monkeypatch.setattr(compact._Search, "try_sizes", noting)
    X, y = moons(6000)
    SVC(C=10.0, gamma=1.0, solver=Compact(search_factor=factor), random_state=0).fit(X, y)
    ((taken, left, n_trials),) = seen
    assert n_trials == 1 or taken <= 1.1 * (taken + left)


def test_vectors_of_a_later_part_begin_at_those_of_the_first(monkeypatch):
    begun, moved = [], reduced_models.Mover.moved

    def noting(mover, distance, basis, k, room):
        begun.append(basis)
        return moved(mover, distance, basis, k, room)

    monkeypatch.setattr(reduced_models.Mover, "moved", noting)
    monkeypatch.setattr(Trial, "is_decided", lambda *args: False)
    search_of_moons = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(*moons(600))
    assert begun[0] is None
    assert begun[1] is begun[2]
    assert len(begun[1]) == search_of_moons.validation_[0]["n_basis"]


def test_the_best_of_models_that_will_not_do_is_told(monkeypatch):
    none_will_do(monkeypatch)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(*moons(600))
    best = min(clf.validation_, key=lambda trial: trial["missed_by"])
    assert best["missed_by"] == best["extra_error"] + best["standard_error"] + 1.0
    told = f"none does (best {best['n_basis']} {best['vectors']}, {best['extra_error']:.2g} ± "
    assert told in clf.history_[-1]["search"]


@pytest.mark.parametrize("has_directions", [True, False])
def test_vectors_of_many_features_move_along_directions(has_directions):
    """Rows of 240 features that vary along a few, and rows that vary along all."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(2500, 2))
    X = Z @ rng.normal(size=(2, 240)) + (0.01 if has_directions else 3.0) * rng.normal(size=(2500, 240))
    X, labels = X.astype(np.float32), np.where(Z[:, 0] * Z[:, 1] > 0, 1, -1)
    task, kernel = Binary(), RBF(1 / (240 * X.var()))
    problem = Problem(as_rows(X), task.encode(labels, None), task, kernel)
    fit = Exact().solve(problem)
    exact, mover = fit.model, reduced_models.Mover(problem, np.random.default_rng(0), EvalCounter())
    assert (mover.along is not None) == has_directions
    moved, plain = mover.moved(mover.distance(fit), None, 10, 1e12), Distance(exact, None, 1, EvalCounter())
    distances = [plain.at(np.float64(basis))[0] for basis in (exact.basis[:10], moved)]
    assert moved.shape == (10, 240)
    assert distances[1] < 0.8 * distances[0]
    if has_directions:
        seen = mover.along[0].of_vectors(moved)
        np.testing.assert_allclose(mover.along[0].lifted(seen), moved, atol=1e-4)
        value, gradient, _ = mover.distance(fit).at(seen)
        assert value == pytest.approx(distances[1], rel=0.01)
        assert not gradient[:, -1].any()


def test_the_rows_held_out_are_the_same_whatever_the_vectors_are():
    X, y = moons(600)
    fits = [SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=seed).fit(X, y) for seed in (0, 1)]
    first, second = (next(r["held_out_error"] for r in clf.history_ if "held_out_error" in r) for clf in fits)
    assert first == second


# -- several classes ----------------------------------------------------------------------------------------------


def test_pairs_of_classes_or_a_score_each_whichever_errs_less(settings_of_estimators):
    settings_of_estimators(SizeSettings(4, 1))  # so few that pairs do not do, and both are tried
    X, y = three_classes()
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(X, y)
    tried = {trial["multi_class"]: trial["error"] for trial in clf.validation_}
    assert set(tried) == {"ovo", "crammer-singer"}
    assert clf.multi_class_ == min(tried, key=lambda name: tried[name])
    assert clf.basis_coef_.shape[1] == 3
    X_test, y_test = three_classes(4000, 1)
    assert clf.score(X_test, y_test) > SVC(C=10.0, gamma=1.0).fit(X, y).score(X_test, y_test) - 0.01
    assert clf.objective_ == pytest.approx(clf.certificate(X, y, max_seconds=10).objective, rel=1e-5)


@pytest.mark.parametrize("estimator", ["ovo", "crammer-singer"])
def test_the_estimator_that_was_asked_for(estimator, tmp_path):
    X, y = three_classes(600)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", multi_class=estimator, random_state=0).fit(X, y)
    assert clf.multi_class_ == estimator
    assert {trial["multi_class"] for trial in clf.validation_} == {estimator}
    assert clf.intercept_kind_ == ("free" if estimator == "ovo" else "regularized")
    assert (clf.lower_bound_ is not None) == (estimator == "ovo" or stages(clf)[-1] == "exact SVM")
    clf.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(slimsvm.load(tmp_path / "model.slim").predict(X), clf.predict(X))


def test_costs_are_of_a_score_for_each_class():
    X, y = three_classes(600)
    cost = np.array([[0, 1, 5], [1, 0, 1], [1, 1, 0]], dtype=float)
    clf = SVC(C=10.0, gamma=1.0, max_basis="auto", cost_matrix=cost, random_state=0).fit(X, y)
    assert clf.multi_class_ == "crammer-singer"
    assert clf.score(X, y) > 0.7


# -- kernels, rows, losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_every_way_to_vectors(kernel, form):
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, kernel=kernel, max_basis="auto", random_state=0).fit(form(X), y)
    assert clf.score(form(X), y) > 0.85
    assert clf.lower_bound_ <= clf.objective_


def test_vectors_of_text_stay_sparse_where_many_are_needed(monkeypatch, settings_of_estimators):
    monkeypatch.setattr(rows.arrays, "MAX_SPARSE_FEATURES", 1)
    settings_of_estimators(MoveSettings(most_preimages=0))
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(0.02), random_state=0).fit(sp.csr_array(X), y)
    assert stages(clf)[-1] == "all rows"
    assert sp.issparse(clf.basis_vectors_)


def test_a_metric_of_their_own():
    """Six features of noise, which the exact SVM's kernel counts like the others."""
    X, y = moons(1500)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    isotropic = SVC(C=10.0, kernel=RBF(0.3), max_basis="auto", random_state=0).fit(X, y)
    clf = SVC(C=10.0, kernel=RBF(0.3), gamma="learn", random_state=0).fit(X, y)
    gamma = np.array(clf.kernel_.gamma)
    assert gamma[:2].min() > 3 * gamma[2:].max()
    X_test, y_test = moons(5000, 1)
    X_test = np.column_stack([X_test, np.random.default_rng(1).normal(size=(len(X_test), 6))])
    assert clf.score(X_test, y_test) > isotropic.score(X_test, y_test) + 0.01
    assert stages(clf)[-1] == "all rows"
    assert clf.lower_bound_ is None
    norm = clf.model_.norm_squared() + clf.intercept_[0] ** 2
    hinge = np.maximum(0, 1 - np.where(y > 0, 1, -1) * clf.decision_function(X)).sum()
    assert clf.objective_ == pytest.approx(0.5 * norm + 10 * hinge, rel=1e-6)
    assert 0.99 * clf.objective_ < clf.counters_["bound_in_basis"] <= clf.objective_


def test_regression():
    X, _ = moons(1000)
    rng = np.random.default_rng(0)
    target = np.sin(3 * X[:, 0]) + rng.normal(0, 0.3, len(X))
    reg = SVR(C=10.0, gamma=1.0, max_basis="auto", random_state=0).fit(X, target)
    exact = SVR(C=10.0, gamma=1.0).fit(X, target)
    truth = np.sin(3 * X[:, 0])
    assert reg.score(X, truth) > exact.score(X, truth) - 0.01
    assert reg.n_basis_ < exact.n_basis_ / 4
    assert reg.validation_[0]["multi_class"] is None


def test_no_vectors_may_do():
    """All targets lie within epsilon of each other: the exact SVM has no vectors then."""
    X, y = moons(600)
    reg = SVR(max_basis="auto", gamma=1.0, epsilon=0.5, random_state=0).fit(X, y)
    assert stages(reg)[-1] == "exact SVM"
    assert reg.n_basis_ == 0
    np.testing.assert_allclose(reg.predict(X), SVR(gamma=1.0, epsilon=0.5).fit(X, y).predict(X), rtol=1e-8)


def test_weights_count_in_the_errors():
    """Rows of the wrong label that weigh next to nothing change neither the errors nor the model much."""
    X, y = moons(1000)
    wrong = np.arange(1000) % 10 == 0
    weights = np.where(wrong, 1e-6, 1.0)
    settings = {"C": 10.0, "gamma": 1.0, "max_basis": "auto", "random_state": 0}
    clf = SVC(**settings).fit(X, np.where(wrong, 1 - y, y), weights)
    assert clf.history_[-1]["search"].startswith("error on rows held out: exact SVM")
    assert clf.validation_[-1]["error"] < 0.1


# -- what cannot be ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("search", "changes", "message"),
    [
        (Compact(-0.1), {}, "max_extra_error must be a number >= 0"),
        (Compact(search_factor=0), {}, "search_factor must be a positive number"),
        (Compact(learn_metric=True), {"kernel": "laplacian"}, NO_DERIVATIVE + " Laplacian"),
        (Compact(), {"kernel": "precomputed"}, "needs a kernel of rows, found kernel='precomputed'"),
        (Compact(), {"kernel": "sigmoid"}, "needs a kernel that is an inner product, found Sigmoid"),
        (Compact(), {"loss": "f1"}, "two classes, several or regression, found FBeta"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_work(monkeypatch, search, changes, message):
    monkeypatch.setattr(compact._Search, "run", lambda self: pytest.fail("the search was begun"))
    X, y = moons(40)
    X = X @ X.T if "precomputed" in changes.values() else X
    with pytest.raises(ValueError, match=message):
        SVC(solver=search, **changes).fit(X, y)


def test_several_labels_and_few_rows_are_refused():
    X, y = moons(40)
    with pytest.raises(ValueError, match="found Multilabel"):
        SVC(solver=Compact()).fit(X, np.stack([y, 1 - y], axis=1))
    with pytest.raises(ValueError, match="holds out a part of the rows and needs at least 10, found 9"):
        SVC(solver=Compact()).fit(X[:9], y[:9])
    assert SVC(solver=Compact(), random_state=0).fit(X[:10], np.arange(10) == 0).n_basis_ >= 1


# -- cut short -----------------------------------------------------------------------------------------------------


def test_a_search_cut_short_at_the_exact_svm_returns_that():
    X, y = moons(600)
    problem = Problem(as_rows(X), Binary().encode(2 * y - 1), Binary(), RBF(1.0), C=10.0, random_state=0)
    fit = Compact().solve(problem, callbacks=(lambda record: True,))
    assert fit.status is Status.STOPPED
    np.testing.assert_allclose(fit.model.basis, X[fit.basis_rows])
    loss = np.maximum(0, 1 - np.where(y > 0, 1, -1) * fit.model.scores(X)[:, 0]).sum()
    norm = fit.model.norm_squared() + fit.model.intercept @ fit.model.intercept
    assert fit.objective == pytest.approx(0.5 * norm + 10 * loss, rel=1e-6)
    assert fit.lower_bound is None or fit.lower_bound <= fit.objective


def test_a_search_cut_short_returns_the_best_of_few_vectors():
    X, y = moons(600)
    problem = Problem(as_rows(X), Binary().encode(2 * y - 1), Binary(), RBF(1.0), C=10.0, random_state=0)
    fit = Compact(0.0).solve(problem, callbacks=(lambda record: "held_out_error" in record,))
    assert fit.status is Status.STOPPED
    assert fit.model.n_basis <= 25
    assert fit.trials[0]["n_basis"] == fit.model.n_basis
    assert np.mean(np.sign(fit.model.scores(X)[:, 0]) == 2 * y - 1) > 0.9


def test_time_runs_out():
    X, y = moons()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        clf = SVC(C=10.0, gamma=1.0, max_basis="auto", random_state=0, max_seconds=1e-3).fit(X, y)
    assert clf.status_ == "time limit"
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize("place", ["own_vectors", "descend"])
def test_an_interrupted_search_returns_the_exact_svm_of_a_part_and_warns(monkeypatch, place):
    def press_ctrl_c(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(reduced_models, place, press_ctrl_c)
    X, y = moons(600)
    settings = {"C": 10.0, "gamma": 1.0, "kernel": "laplacian" if place == "own_vectors" else "rbf"}
    with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\): the exact SVM of 400 of the rows"):
        clf = SVC(max_basis="auto", random_state=0, **settings).fit(X, y)
    assert clf.status_ == "interrupted"
    assert clf.lower_bound_ <= clf.objective_
    assert clf.score(X, y) > 0.9


def test_a_warm_start_goes_on_from_the_number_of_vectors_there_was():
    X, y = moons()
    problem = Problem(as_rows(X), Binary().encode(2 * y - 1), Binary(), RBF(1.0), C=10.0, random_state=0)
    fit = Compact().solve(problem, compact.CompactState(40))
    assert 30 < fit.trials[0]["n_basis"] <= 40  # without those that lie in the span of others
    assert fit.state.size == 40
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(0.2), random_state=0, warm_start=True).fit(X, y)
    assert clf._state.size == 25
    assert clf.set_params(C=12.0).fit(X, y)._state.size == 25
    other = SVC(C=10.0, gamma=1.0, solver="exact-cuts", warm_start=True).fit(X[:600], y[:600])
    with pytest.raises(ValueError, match="Compact can only be warm-started from a Compact fit, found CutsState"):
        other.set_params(solver=Compact()).fit(X[:600], y[:600])


def test_C_is_validated_with_the_exact_svm_or_with_a_metric():
    X, y = moons(400)
    clf = SVC(C="validate", gamma=1.0, solver=Compact(), random_state=0).fit(X, y)
    exact = SVC(C="validate", gamma=1.0, solver="exact", random_state=0).fit(X, y)
    chosen = [(trial["C"], trial["error"]) for trial in clf.validation_ if "C" in trial]
    assert chosen == [(trial["C"], trial["error"]) for trial in exact.validation_]
    assert clf.validation_[-1]["n_basis"] >= 1
    learned = {"C": "validate", "kernel": RBF(0.3), "gamma": "learn", "random_state": 0}
    clf = SVC(solver=Compact(), **learned).fit(X, y)
    capped = SVC(solver="refine", max_basis=100, **learned).fit(X, y)
    assert clf.C_ == capped.C_


def test_a_file_keeps_the_solver(tmp_path):
    SVC(solver=Compact(0.01), gamma=1.0).fit(*moons(300)).save(tmp_path / "model.slim")
    assert repr(slimsvm.load(tmp_path / "model.slim").solver) == "Compact(max_extra_error=0.01)"


# -- a number that is given ------------------------------------------------------------------------------------------


def pairs_of_seven_classes():
    X, y = make_classification(
        1500, 6, n_informative=6, n_redundant=0, n_classes=7, n_clusters_per_class=1, class_sep=3.0, random_state=0
    )
    task = OneVsOne(7)
    return X, y, Problem(as_rows(X[:1000]), task.encode(y[:1000]), task, RBF(0.1))


def test_many_pairs_are_moved_towards_by_some_random_sums(settings_of_estimators):
    """Seven classes have 21 functions, more than are moved towards; the error is that of few functions all the same."""
    X, y, _ = pairs_of_seven_classes()
    whole = SVC(max_basis="auto", multi_class="ovo", random_state=0).fit(X[:1000], y[:1000])
    settings_of_estimators(MoveSettings(most_outputs=5))
    mixed = SVC(max_basis="auto", multi_class="ovo", random_state=0).fit(X[:1000], y[:1000])
    assert abs(mixed.score(X[1000:], y[1000:]) - whole.score(X[1000:], y[1000:])) < 0.02


def test_the_distance_class_by_class_is_that_of_all_pairs():
    """Each vector of the exact SVM is in the 6 pairs of its class; coefficients of the others are 0."""
    X, _, problem = pairs_of_seven_classes()
    exact, seen = Exact().solve(problem), []
    for most_outputs in (100, 20):
        seen_by = replace(problem, settings=(MoveSettings(most_outputs=most_outputs),))
        mover = reduced_models.Mover(seen_by, np.random.default_rng(0), EvalCounter())
        seen.append(mover.distance(exact))
    assert [len(distance.own.parts) for distance in seen] == [1, 7]
    assert {len(part.outputs) for part in seen[1].own.parts} == {6}
    (value, gradient, coef), (own, own_gradient, own_coef) = (distance.at(np.float64(X[:20])) for distance in seen)
    assert own == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(own_gradient, gradient, atol=1e-5 * np.abs(gradient).max())
    np.testing.assert_allclose(own_coef, coef, atol=1e-4 * np.abs(coef).max())


@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_the_exact_svm_knows_its_norm(intercept):
    X, y, of_pairs = pairs_of_seven_classes()
    numbers, two = Regression(), Binary()
    for problem in (
        replace(of_pairs, intercept=intercept),
        Problem(as_rows(X), two.encode(np.where(y > 3, 1.0, -1.0)), two, RBF(0.1), intercept=intercept),
        Problem(as_rows(X), numbers.encode(np.float64(y)), numbers, RBF(0.1), intercept=intercept),
    ):
        fit = Exact().solve(problem)
        assert fit.norm_squared == pytest.approx(fit.model.norm_squared(), rel=1e-4)


def test_a_given_number_is_moved_if_that_is_near_and_learned_if_not():
    """Moved vectors have about the exact objective; five for a large C are nowhere near and are those of `Refine`."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    exact = SVC().fit(X, y)
    near = SVC(max_basis=40, random_state=0).fit(X, y)
    assert "learned vectors" not in [record["stage"] for record in near.history_]
    assert exact.objective_ * (1 - 1e-3) <= near.objective_ <= 1.01 * exact.objective_
    assert near.lower_bound_ <= exact.objective_
    far = SVC(C=1e3, max_basis=3, random_state=0).fit(X, y)
    assert far.history_[-1]["stage"] == "learned vectors"
    assert 1 <= far.n_basis_ <= 3
    assert far.lower_bound_ <= far.objective_
    learned = SVC(C=1e3, solver=Refine(3), random_state=0).fit(X, y)
    assert far.objective_ <= 1.2 * learned.objective_


def test_vectors_that_are_not_near_are_learned_from_where_they_are():
    """In a few sweeps; from the start only where these end far from the exact objective."""
    X, y = make_classification(400, 20, n_informative=10, random_state=0)
    fit = SVC(max_basis=10, random_state=0).fit(X, y)
    learned = [record for record in fit.history_ if record["stage"] == "learned vectors"]
    assert 1 <= len(learned) <= trials.SWEEPS + 2
    assert fit.objective_ <= 1.5 * SVC().fit(X, y).objective_


def test_vectors_are_learned_from_the_start_in_as_many_sweeps_as_take_little():
    """Three vectors for a large C end far from the exact SVM; those of the lower objective are kept."""
    X, y = make_moons(400, noise=0.2, random_state=0)
    task = Binary()
    problem = Problem(as_rows(X), task.encode(np.where(y == 1, 1, -1), None), task, RBF(1.0), C=1e3, random_state=0)
    found = []
    for quick_work in (MoveSettings.quick_work, 3e7, 0.0):
        fit = Compact(max_basis=3).solve(replace(problem, settings=(MoveSettings(quick_work=quick_work),)))
        found.append((len([record for record in fit.history if record["stage"] == "learned vectors"]), fit.objective))
    sweeps, objectives = zip(*found, strict=True)
    assert trials.FIRST_SWEEPS < sweeps[0] <= trials.FIRST_SWEEPS + trials.SWEEPS + 2
    assert sweeps[0] > sweeps[1] > sweeps[2] > 2 * trials.SWEEPS
    assert max(objectives[:2]) < objectives[2]


def test_a_checkerboard_of_few_vectors_has_few_errors():
    """Moved vectors of a narrow kernel, learned further or not, end far from the exact SVM."""
    X, y = checkerboard(1000, random_state=0)
    few = SVC(gamma=10, max_basis=40, random_state=0).fit(X, y)
    learned = SVC(gamma=10, solver=Refine(40), random_state=0).fit(X, y)
    assert few.objective_ <= 1.1 * learned.objective_


def test_vectors_of_many_features_take_as_many_steps_as_others():
    """Values of many features take long, and so does the exact SVM; what a step does beside them takes as long."""
    rng, task = np.random.default_rng(0), Binary()
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    settings = (MoveSettings(quick_work=0.0),)
    found = []
    for n_features in (10, 190):
        X = rng.normal(size=(400, n_features))
        problem = Problem(as_rows(X), task.encode(y), task, RBF(1.0), settings=settings)
        mover = reduced_models.Mover(problem, rng, EvalCounter())
        found.append(mover._steps(X, 0, 100, 1e6))
    assert found[1][0] > found[0][0]
    assert found[1][1] < 0.6 * found[0][1]


def test_the_last_vectors_of_text_are_found_as_those_before():
    """Up to 50 are preimages, and rows beyond."""
    X, y = sp.csr_array(np.eye(20, 2000)), np.arange(20) % 2
    task = Binary()
    problem = Problem(as_rows(X), task.encode(np.where(y > 0, 1.0, -1.0)), task, RBF(1.0))
    mover = reduced_models.Mover(problem, np.random.default_rng(0), EvalCounter())
    assert [mover.most_of_a_kind(X, have, 60) for have in (40, 50, 55)] == [50, 50, 60]
    assert mover.most_of_a_kind(X, 20, 40) == 40
    assert mover.most_of_a_kind(X.toarray(), 40, 60) == 60


@pytest.mark.parametrize(("C", "ascends"), [(10.0, True), (10.1, False)])
def test_two_classes_at_large_C_have_newtons_method(C, ascends):
    """A search solves at 2C, up to 20 by dual ascent."""
    X, y = moons(300)
    problem = Problem(as_rows(X), Binary().encode(2.0 * y - 1.0), Binary(), RBF(1.0), C=C, random_state=0)
    assert size_search.SizeSearch(problem, Compact(), None, ()).ascends == ascends
    assert size_search.SizeSearch(problem, Compact(max_basis=5), None, ()).ascends


@pytest.mark.parametrize("is_quick", [True, False])
def test_moved_vectors_follow_learned_ones_that_there_is_no_room_for(is_quick, monkeypatch):
    """Learned vectors that surely err less are the only ones to try, as long as their sweeps are quick."""
    X, y = moons(300)
    problem = Problem(as_rows(X), Binary().encode(2.0 * y - 1.0), Binary(), RBF(1.0), random_state=0)
    search = size_search.SizeSearch(problem, Compact(), None, ())
    monkeypatch.setattr(search, "_is_swept_quickly", lambda k, problem: is_quick)
    search.splits, search.leads = trials.parts(y, False, np.random.default_rng(0)), 2
    search._part(0)
    search.exact_evals = search._exact_work()
    assert [kind.way == reduced_models.LEARNED for kind in search._kinds(20)] == [is_quick]


@pytest.mark.parametrize(
    ("task", "steps"),
    [(Binary(), (20, 10)), (OneVsOne(4), (10, 8)), (Regression(), (30, 15))],
    ids=["2", "4", "numbers"],
)
def test_steps_of_the_first_vectors_and_of_those_that_join(task, steps):
    X, y = three_classes()  # labels 0, 1 and 3
    if task == Binary():
        X, y = X[y < 2], 2.0 * y[y < 2] - 1.0
    problem = Problem(as_rows(X), task.encode(y), task, RBF(1.0))
    mover = reduced_models.Mover(problem, np.random.default_rng(0), EvalCounter())
    assert tuple(mover._steps(X, have, 10, 1e12)[0] for have in (0, 5)) == steps


def test_vectors_that_are_near_enough_stay():
    X, y = make_moons(400, noise=0.2, random_state=0)
    exact = SVC().fit(X, y).model_
    distance = Distance(exact, None, 1, EvalCounter())
    begin = np.asarray(exact.basis[::12], dtype=np.float64)
    every = [record["objective"] for record in descend(distance, begin, 30)[1]]
    found, history, n_steps = descend(distance, begin, 30, enough=1e-3)
    first = next(i for i, share in enumerate(every) if share <= 1e-3)
    assert 0 < n_steps == first < len(every) - 1
    assert [record["objective"] for record in history] == every[: first + 1]
    assert distance.at(found)[0] <= 1e-3 * distance.total
