"""`Compact(max_basis=k)`, behind `SVC(max_basis=k)` for several classes: moved vectors of the exact SVM."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning

from slimsvm import SVC, SVR, Blocks, Compact, Refine, load
from slimsvm.estimators._shared import automatic
from slimsvm.kernels import RBF
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Status
from slimsvm.rows import as_rows
from slimsvm.size_search import reduced_models, size_search
from slimsvm.tasks import OneVsOne


def digits(n=600):
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16, y[:n], X[n:] / 16, y[n:]


@pytest.fixture(scope="module")
def fitted():
    X, y, *_ = digits()
    return SVC(max_basis=30, random_state=0).fit(X, y)


def test_few_vectors_err_like_the_exact_svm(fitted):
    X, y, X_test, y_test = digits()
    exact = SVC().fit(X, y)
    assert fitted.n_basis_ == 30 < exact.n_basis_ / 5
    assert fitted.score(X_test, y_test) > exact.score(X_test, y_test) - 0.01
    assert fitted.multi_class_ == "ovo"
    assert fitted.basis_coef_.shape == (30, 45)
    assert fitted.status_ == "converged"
    assert fitted.lower_bound_ <= exact.objective_ * (1 + 1e-9) <= fitted.objective_


def test_the_objective_is_that_of_the_pairs(fitted):
    X, y, *_ = digits()
    scores, objective, pair = fitted.model_.scores(X), 0.5 * fitted.model_.norm_squared(), 0
    for a in range(10):
        for b in range(a + 1, 10):
            own = (y == a) | (y == b)
            objective += np.maximum(0, 1 - np.where(y[own] == a, 1, -1) * scores[own, pair]).sum()
            pair += 1
    assert fitted.objective_ == pytest.approx(objective, rel=1e-6)


def test_the_same_bits_for_any_number_of_threads_and_from_a_file(fitted, tmp_path):
    X, y, *_ = digits()
    other = SVC(max_basis=30, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(other.basis_vectors_, fitted.basis_vectors_)
    np.testing.assert_array_equal(other.basis_coef_, fitted.basis_coef_)
    fitted.save(tmp_path / "model.slim")
    np.testing.assert_array_equal(load(tmp_path / "model.slim").predict(X), fitted.predict(X))
    refined = SVC(solver=Compact(max_basis=30), random_state=0).fit(X, y)
    np.testing.assert_array_equal(refined.basis_coef_, fitted.basis_coef_)
    refined.save(tmp_path / "model.slim")
    assert load(tmp_path / "model.slim").solver.max_basis == 30


def test_an_estimator_of_no_more_vectors_is_the_exact_one():
    X, y, X_test, _ = digits()
    few, exact = SVC(max_basis=599, random_state=0).fit(X, y), SVC().fit(X, y)
    assert few.n_basis_ == exact.n_basis_
    assert few.objective_ == exact.objective_
    np.testing.assert_array_equal(few.predict(X_test), exact.predict(X_test))
    np.testing.assert_array_equal(few.support_, exact.support_)


def test_sparse_rows_and_other_kernels():
    X, y, X_test, y_test = digits()
    for kernel, rows, test in (("rbf", sp.csr_array(X), sp.csr_array(X_test)), ("poly", X, X_test)):
        clf = SVC(kernel=kernel, max_basis=30, random_state=0).fit(rows, y)
        assert (type(clf.solver_), clf.n_basis_) == (Compact, 30)
        assert clf.score(test, y_test) > 0.93


@pytest.mark.filterwarnings("ignore:Refine stopped at the iteration limit")
def test_what_decides_between_moved_and_learned_vectors(monkeypatch):
    X, y, *_ = digits(60)
    monkeypatch.setattr(automatic, "MOST_REDUCED", 60)
    found = {
        "fits": SVC(max_basis=10),
        "scores": SVC(max_basis=10, multi_class="crammer-singer"),
        "costs": SVC(max_basis=10, cost_matrix=1 - np.eye(10)),
        "no inner product": SVC(max_basis=10, kernel="sigmoid"),
        "a metric": SVC(max_basis=10, gamma="learn"),
        "a name": SVC(max_basis=10, solver="refine"),
    }
    kinds = {name: type(clf.set_params(random_state=0, max_iter=5).fit(X, y).solver_) for name, clf in found.items()}
    assert kinds == {"fits": Compact} | dict.fromkeys(list(found)[1:], Refine)
    more = SVC(max_basis=10, random_state=0, max_iter=5).fit(np.vstack([X, X[:1]]), np.append(y, y[0]))
    assert (type(more.solver_), more.multi_class_) == (Refine, "crammer-singer")


@pytest.mark.parametrize(("C", "largest"), [(1.0, 4.0), (5.0, 10.0), (20.0, 20.0)])
def test_the_C_of_coefficients_has_a_limit(monkeypatch, C, largest):
    seen = []

    def note(problem, basis, pair_coefficients=size_search.pair_coefficients):
        seen.append(problem.C)
        return pair_coefficients(problem, basis)

    monkeypatch.setattr(size_search, "pair_coefficients", note)
    X, y, *_ = digits(200)
    SVC(C=C, max_basis=10, random_state=0).fit(X, y)
    assert seen == [largest]


def test_an_interrupt_leaves_vectors_of_the_exact_svm(monkeypatch):
    def press_ctrl_c(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(reduced_models, "descend", press_ctrl_c)
    X, y, *_ = digits()
    with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\): 30 vectors of the exact SVM"):
        clf = SVC(max_basis=30, random_state=0).fit(X, y)
    assert (clf.status_, clf.n_basis_) == ("interrupted", 30)
    assert all(any(np.allclose(vector, row) for row in X) for vector in clf.basis_vectors_)


def test_a_callback_and_the_end_of_time_leave_no_more_vectors():
    X, y, *_ = digits()
    task = OneVsOne(10)
    problem = Problem(as_rows(X), task.encode(y), task, RBF(0.1), random_state=0, intercept="free")
    fit = Compact(max_basis=30).solve(problem, callbacks=(lambda record: record.get("pair") == (7, 9),))
    assert (fit.status, fit.model.n_basis) == (Status.STOPPED, 30)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        clf = SVC(max_basis=30, random_state=0, max_seconds=1e-9).fit(X, y)
    assert clf.status_ == "time limit"
    assert clf.n_basis_ <= 30


def test_scores_of_classes_have_the_vectors_of_the_pairs():
    X, y, X_test, y_test = digits()
    clf = SVC(multi_class="crammer-singer", solver=Compact(max_basis=30), random_state=0).fit(X, y)
    assert (clf.multi_class_, clf.basis_coef_.shape, clf.lower_bound_) == ("crammer-singer", (30, 10), None)
    assert clf.score(X_test, y_test) > 0.9


def test_two_classes_and_few_rows():
    X, y, X_test, y_test = digits()
    clf = SVC(solver=Compact(max_basis=10), random_state=0).fit(X, y > 4)
    assert clf.n_basis_ == 10
    assert clf.score(X_test, y_test > 4) > 0.85
    assert SVC(max_basis=2, random_state=0).fit(X[:5], [0, 1, 2, 0, 1]).n_basis_ == 2


def test_a_wrong_number_is_refused():
    X, y, *_ = digits(100)
    with pytest.raises(ValueError, match="max_basis must be an integer >= 1, found 0"):
        SVC(solver=Compact(max_basis=0)).fit(X, y)
    with pytest.raises(ValueError, match=r"use Refine\(5, learn_metric=True\)"):
        SVC(solver=Compact(learn_metric=True, max_basis=5)).fit(X, y)


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("max_iter", [-1, 5])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_on_disk_and_blocks_have_the_same_bits(n_classes, dtype, max_iter, tmp_path):
    X, y, *_ = digits()
    X, y = X.astype(dtype), y % n_classes
    np.save(tmp_path / "rows.npy", X)
    settings = {"max_basis": 30, "random_state": 0, "max_iter": max_iter}
    one = SVC(**settings).fit(X, y)
    assert type(one.solver_) is Compact
    parts = Blocks([lambda lo=lo: X[lo : lo + 200] for lo in range(0, 600, 200)])
    for rows in (parts, np.load(tmp_path / "rows.npy", mmap_mode="r")):
        other = SVC(**settings).fit(rows, y)
        np.testing.assert_array_equal(other.basis_vectors_, one.basis_vectors_)
        np.testing.assert_array_equal(other.basis_coef_, one.basis_coef_)


def test_numbers_have_moved_vectors_too():
    """Thirty err about as the exact SVM does, whose bound is the model's."""
    X, y = make_friedman1(900, noise=1.0, random_state=0)
    X, y, X_test, y_test = X[:600], y[:600], X[600:], y[600:]
    few, exact = (SVR(C=10, max_basis=k, random_state=0).fit(X, y) for k in (30, None))
    assert type(few.solver_) is Compact
    assert few.n_basis_ <= 30
    assert few.lower_bound_ <= exact.objective_ <= few.objective_
    assert few.score(X_test, y_test) > exact.score(X_test, y_test) - 0.03


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_exact_svm_cut_short_by_max_iter_is_no_model_of_two_classes():
    """Few of its vectors are there after some steps, and it errs like chance: vectors are learned instead."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = X[:, 0] * X[:, 1] > 0
    settings = {"max_basis": 10, "random_state": 0, "max_iter": 3, "memory_limit": 0.05}
    few, learned = SVC(**settings).fit(X, y), SVC(solver="refine", **settings).fit(X, y)
    assert few.history_[-1]["stage"] == "learned vectors"
    assert few.score(X, y) > learned.score(X, y) - 0.05 > 0.7
