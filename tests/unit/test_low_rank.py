"""Low-rank training: the optimum within the basis, its bound, memory, threads, starts."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as TheirSVC
from sklearn.svm import SVR as TheirSVR

import naive
from low_rank_cases import problem_of
from slimsvm import SVC, SVR, LowRank
from slimsvm.bases import BASES, IncompleteCholesky, Nystrom
from slimsvm.kernels import RBF, CallableKernel, Laplacian, Precomputed
from slimsvm.parts.run import Status
from slimsvm.parts.span.smoothed_newton import NewtonSettings, values_up_to
from slimsvm.rows import as_rows
from tasks_for_tests import CASES

TASKS = ("binary-costs", "multiclass-costs", "regression")


def seen_from(basis, X, kernel):
    """The kernel matrix of the projections of all φ(x) on the span of the basis."""
    cross = naive.kernel_matrix(kernel, X, basis)
    return cross @ np.linalg.solve(naive.kernel_matrix(kernel, basis, basis), cross.T)


def check_same_bits(fit, other):
    for name in ("coef", "intercept", "basis"):
        np.testing.assert_array_equal(getattr(fit.model, name), getattr(other.model, name), strict=True)
    assert fit.objective == other.objective
    assert fit.counters["bound_in_basis"] == other.counters["bound_in_basis"]


# ---- the optimum within the basis


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("intercept", ["regularized", "none"])
@pytest.mark.parametrize("task", TASKS)
def test_the_optimum_is_that_of_the_projected_kernel(task, intercept, C):
    problem, X, _ = problem_of(task, intercept=intercept, C=C, weighted=True)
    fit = LowRank(max_basis=15).solve(problem)
    assert fit.status == Status.CONVERGED
    assert fit.model.n_basis == len(fit.basis_rows) == 15
    K = seen_from(fit.model.basis, X, problem.kernel)
    primal, dual = naive.optimum(K, CASES[task].written_out(problem.examples), C, intercept == "regularized")
    assert dual * (1 - 1e-8) <= fit.objective <= primal * (1 + 1e-8)
    bound = fit.counters["bound_in_basis"]
    assert fit.objective * (1 - 1e-10) <= bound <= primal * (1 + 1e-9)
    assert fit.lower_bound is None


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_free_intercept_is_libsvms(C):
    problem, X, y = problem_of("binary", intercept="free", C=C)
    fit = LowRank(max_basis=15).solve(problem)
    K = seen_from(fit.model.basis, X, problem.kernel)
    theirs = TheirSVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    offset = fit.model.scores(X)[:, 0] - theirs.decision_function(K)  # the best intercepts may be a whole interval
    assert np.ptp(offset) < 1e-4
    dual = np.abs(theirs.dual_coef_).sum() - 0.5 * theirs.dual_coef_ @ K[theirs.support_][:, theirs.support_] @ (
        theirs.dual_coef_.T
    )
    assert fit.objective == pytest.approx(dual.item(), rel=1e-7)


def test_a_free_intercept_of_regression_is_libsvms():
    problem, X, y = problem_of("regression", intercept="free")
    shifted = replace(problem, examples=replace(problem.examples, labels=problem.examples.labels + 1.0))
    fit = LowRank(max_basis=15).solve(shifted)
    K = seen_from(fit.model.basis, X, problem.kernel)
    theirs = TheirSVR(C=2.0, epsilon=0.25, kernel="precomputed", tol=1e-9).fit(K, y + 1.0)
    np.testing.assert_allclose(fit.model.scores(X)[:, 0], theirs.predict(K), atol=1e-4)


def test_all_rows_as_basis_are_the_kernels_own_optimum():
    problem, X, _ = problem_of("binary", n=40)
    fit = LowRank(max_basis=40).solve(problem)
    K = naive.kernel_matrix(problem.kernel, X, X)
    primal, dual = naive.optimum(K, CASES["binary"].written_out(problem.examples), 2.0)
    assert dual * (1 - 1e-7) <= fit.objective <= primal * (1 + 1e-7)


@pytest.mark.parametrize("kernel", [Laplacian(0.4), CallableKernel(lambda X, Z: (1 + X @ Z.T) ** 2)], ids=["l1", "own"])
@pytest.mark.parametrize("basis", ["nystrom", "incomplete-cholesky"])
def test_every_kernel(basis, kernel):
    problem, X, _ = problem_of("binary", kernel=kernel)
    fit = LowRank(max_basis=10, basis=basis).solve(problem)
    K = seen_from(fit.model.basis, X, kernel)
    primal, _ = naive.optimum(K, CASES["binary"].written_out(problem.examples), 2.0)
    assert fit.objective == pytest.approx(primal, rel=1e-7)


def test_a_precomputed_kernel():
    problem, X, _ = problem_of("binary", kernel=RBF(0.4))
    K = naive.kernel_matrix(RBF(0.4), X, X)
    fits = [LowRank(max_basis=10).solve(replace(problem, rows=rows, kernel=kernel))
            for rows, kernel in ((as_rows(X), RBF(0.4)), (as_rows(K), Precomputed()))]  # fmt: skip
    np.testing.assert_array_equal(fits[0].basis_rows, fits[1].basis_rows)
    np.testing.assert_array_equal(fits[1].model.basis[:, 0], fits[1].basis_rows)
    assert fits[1].objective == pytest.approx(fits[0].objective, rel=1e-9)


def test_weights_are_repeats():
    problem, X, _ = problem_of("multiclass")
    weights = np.random.default_rng(1).integers(1, 4, 60)
    basis, rows = X[:12], np.repeat(np.arange(60), weights)
    weighted = replace(problem, examples=replace(problem.examples, weights=weights.astype(float)))
    repeated = replace(problem, rows=as_rows(X[rows]), examples=problem.examples.take(rows))
    fits = [LowRank(basis=basis).solve(p) for p in (weighted, repeated)]
    np.testing.assert_allclose(fits[0].model.coef, fits[1].model.coef, atol=1e-4)
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-9)


def test_vectors_in_the_span_of_the_others_are_left_out():
    problem, X, _ = problem_of("binary")
    fit = LowRank(basis=np.vstack([X[:8], X[:5], X[3:4] + 1e-9])).solve(problem)
    assert fit.model.n_basis == 8
    assert fit.objective == pytest.approx(LowRank(basis=X[:8]).solve(problem).objective, rel=1e-9)


# ---- how the rows are held, memory, threads


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("basis", sorted(BASES))
def test_sparse_rows_are_dense_ones(basis, task):
    problem, X, _ = problem_of(task, sparse=True, weighted=True)
    sparse, dense = (LowRank(15, basis).solve(replace(problem, rows=as_rows(Z))) for Z in (sp.csr_array(X), X))
    assert sp.issparse(sparse.model.basis)
    np.testing.assert_allclose(sparse.model.basis.toarray(), dense.model.basis, atol=1e-12)
    assert sparse.objective == pytest.approx(dense.objective, rel=1e-8)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("task", TASKS)
def test_out_of_core_gives_the_same_bits(task, precision):
    """Kernel values computed again on every pass, in small blocks, and none kept."""
    problem, _, _ = problem_of(task, n=300, precision=precision, weighted=True)
    kept = LowRank(40).solve(problem)
    n_bytes = 300 * 40 * (4 if precision == "float32" else 8)
    streamed = LowRank(40).solve(replace(problem, memory_limit=n_bytes))
    check_same_bits(kept, streamed)
    assert streamed.counters["kernel_evals"] > 5 * kept.counters["kernel_evals"]
    assert kept.counters["kernel_evals"] == 40 * 300 + 40**2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_same_bits_for_any_number_of_threads(task, sparse, threads_for_all):
    settings = (NewtonSettings(fewest_sampled=100),)
    problem, _, _ = problem_of(task, n=3000, sparse=sparse, precision="float32", settings=settings)
    one = LowRank(150).solve(replace(problem, n_jobs=1))
    assert not threads_for_all
    four = LowRank(150).solve(replace(problem, n_jobs=4))
    assert threads_for_all
    assert one.history[0]["sampled_rows"]
    if sparse:
        one.model, four.model = (replace(fit.model, basis=fit.model.basis.toarray()) for fit in (one, four))
    check_same_bits(one, four)


@pytest.mark.parametrize("task", TASKS)
def test_a_sample_first_changes_no_optimum(task):
    problem, _, _ = problem_of(task, n=1000, precision="float64", weighted=True)
    solver = LowRank(30, tol_relative=1e-7)
    problem = replace(problem, tol=np.inf)
    plain = solver.solve(problem)
    sampled = solver.solve(replace(problem, settings=(NewtonSettings(fewest_sampled=50),)))
    assert plain.history[0]["sampled_rows"] is None
    first = sampled.history[0]
    assert (first["sampled_rows"], first["objective"], first["gap_in_basis"]) == (62, None, None)
    assert sampled.objective == pytest.approx(plain.objective, rel=2e-7)


def test_too_small_a_limit_for_a_choice_says_what_helps():
    problem, _, _ = problem_of(n=300, memory_limit=10_000)
    with pytest.raises(ValueError, match=r"IncompleteCholesky.* MB to choose 50 of 300 rows, memory_limit allows"):
        LowRank(50, "incomplete-cholesky").solve(problem)
    LowRank(4, IncompleteCholesky(sample_size=50)).solve(problem)


# ---- what is reported


@pytest.mark.parametrize("task", TASKS)
def test_records_speak_of_the_model(task):
    problem, X, _ = problem_of(task, weighted=True)
    fit = LowRank(15).solve(problem)
    bounds = [record["bound_in_basis"] for record in fit.history]
    assert bounds == sorted(bounds)
    last = fit.history[-1]
    assert last["objective"] == fit.objective
    assert last["gap_in_basis"] == fit.objective - fit.counters["bound_in_basis"]
    predicted = problem.task.decode(fit.model.scores(X), np.zeros(0), problem.examples)
    assert last["training_error"] == pytest.approx(problem.task.error(predicted, problem.examples))


def test_a_limit_on_the_sample_still_gives_the_objective_over_all_rows():
    settings = (NewtonSettings(fewest_sampled=50),)
    problem, X, _ = problem_of(n=1000, precision="float64", max_iter=1, settings=settings)
    with pytest.warns(ConvergenceWarning, match="iteration limit after 1 iterations"):
        fit = LowRank(30).solve(problem)
    assert fit.counters["bound_in_basis"] is None
    cross, K = (naive.kernel_matrix(problem.kernel, A, fit.model.basis) for A in (X, fit.model.basis))
    parts = CASES["binary"].written_out(problem.examples)
    truth = naive.objective(K, cross, fit.model.coef, fit.model.intercept, fit.model.plain, parts, 2.0)
    assert fit.objective == pytest.approx(truth, rel=1e-9)


def test_a_gap_that_rounding_leaves_open_is_told():
    problem, _, _ = problem_of(n=400, C=1e8, precision="float32", tol=np.inf)
    with pytest.warns(ConvergenceWarning, match="LowRank ended with a gap of .*precision='float64' or a lower C may"):
        fit = LowRank(100, tol_relative=1e-12).solve(problem)
    assert fit.status == Status.CONVERGED


# ---- starts


def test_a_warm_start_keeps_the_basis_and_saves_steps():
    problem, _, _ = problem_of("multiclass", n=200, C=5.0)
    first = LowRank(20).solve(problem)
    again = LowRank(20).solve(problem, state=first.state)
    assert again.n_iter < first.n_iter
    np.testing.assert_array_equal(again.basis_rows, first.basis_rows)
    for change in ({"C": 6.0}, {"kernel": RBF(0.45)}):
        other = replace(problem, **change)
        warm, cold = LowRank(20).solve(other, state=first.state), LowRank(20).solve(other)
        assert warm.objective == pytest.approx(cold.objective, rel=1e-8)


def test_a_warm_start_on_other_rows_claims_no_rows_of_them():
    problem, X, _ = problem_of(n=60)
    state = LowRank(10).solve(problem).state
    other = replace(problem, rows=as_rows(X + 1.0))
    assert LowRank(10).solve(other, state=state).basis_rows is None
    fewer = replace(problem, rows=as_rows(X[:20]), examples=problem.examples.take(np.arange(20)))
    assert LowRank(10).solve(fewer, state=state).basis_rows is None


def test_starts_that_do_not_fit_are_named():
    problem, X, _ = problem_of()
    state = LowRank(10).solve(problem).state
    with pytest.raises(ValueError, match="the earlier fit has 10 vectors, max_basis=9"):
        LowRank(9).solve(problem, state=state)
    with pytest.raises(ValueError, match="the earlier fit has vectors of 4 features, the rows have 3"):
        LowRank(10).solve(replace(problem, rows=as_rows(X[:, :3])), state=state)
    with pytest.raises(ValueError, match="the earlier fit had 1 outputs, this problem has 3"):
        LowRank(10).solve(problem_of("multiclass")[0], state=state)
    with pytest.raises(ValueError, match="can only be warm-started from a LowRank fit, found dict"):
        LowRank(10).solve(problem, state={})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_basis": 0}, "max_basis must be an integer >= 1, found 0"),
        ({"max_basis": 3, "basis": np.eye(4)}, "basis has 4 vectors, max_basis=3"),
        ({"basis": np.full((3, 4), np.inf)}, "basis must hold finite numbers, found NaN or infinity"),
        ({"basis": np.eye(3)}, "the rows have 4 features, the basis has shape"),
        ({"basis": "random"}, "basis must be one of 'nystrom', 'kmeans', 'incomplete-cholesky'"),
        ({"tol_relative": 0.0}, "tol_relative must be a positive number, found 0.0"),
    ],
    ids=["none", "too-many", "infinite", "features", "name", "tol"],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        LowRank(**parameters).solve(problem_of()[0])


def test_several_free_intercepts_are_refused():
    with pytest.raises(ValueError, match="intercept='free' is for one score column"):
        LowRank(10).solve(problem_of("multiclass", intercept="free")[0])


# ---- through the estimators


def test_names_objects_and_caps():
    X, y = load_iris(return_X_y=True)
    clf = SVC(solver="low-rank", max_basis=20, C=10.0, random_state=0).fit(X, y)
    assert clf.n_basis_ == 20
    np.testing.assert_array_equal(clf.support_vectors_, X[clf.support_])
    assert clf.score(X, y) > 0.95
    assert clf.lower_bound_ is None
    assert SVC(solver=LowRank(10, Nystrom()), random_state=0).fit(X, y).n_basis_ == 10
    reg = SVR(solver=LowRank(20, "kmeans"), C=10.0, random_state=0).fit(X[:, :3], X[:, 3])
    assert reg.score(X[:, :3], X[:, 3]) > 0.9


def test_a_warm_start_through_the_estimator():
    X, y = load_iris(return_X_y=True)
    clf = SVC(solver=LowRank(20), warm_start=True, gamma=0.3, random_state=0).fit(X, y)
    first, basis = clf.n_iter_, clf.basis_vectors_
    clf.fit(X, y)
    assert clf.n_iter_ < first
    np.testing.assert_array_equal(clf.basis_vectors_, basis)


@pytest.mark.parametrize("C", [1e-10, 1e10])
def test_extreme_C_have_an_answer(C):
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(solver=LowRank(20), C=C, random_state=0).fit(X, y)
    assert np.isfinite(clf.decision_function(X)).all()
    assert 0 <= clf.objective_ <= C * len(y) * (1 + 1e-9)


def test_a_very_large_C_is_reached_from_lower_ones(settings_of_estimators):
    """At once it ends after 200 steps at one τ, with a wider gap."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    clf = SVC(C=1e10, solver=LowRank(200), intercept="free", precision="float64", random_state=0, n_jobs=1)
    bound, share = {}, {}
    for first in (1e3, 1e10):
        settings_of_estimators(NewtonSettings(first_C=first))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(X, y)
        bound[first] = clf.counters_["bound_in_basis"]
        share[first] = 1 - bound[first] / clf.objective_
    assert clf.objective_ >= bound[1e3] * (1 - 1e-9)
    assert share[1e3] <= 0.06
    assert share[1e10] > 0.5


def test_C_rises_to_the_one_asked_for():
    assert values_up_to(1e-10, NewtonSettings()) == [1e-10]
    assert values_up_to(1e3, NewtonSettings()) == [1e3]
    assert values_up_to(2e3, NewtonSettings()) == [1e3, 2e3]
    assert values_up_to(1e5, NewtonSettings()) == [1e3, 1e4, 1e5]
    assert values_up_to(0.5, NewtonSettings(), unit=2.0**-13) == [1e3 / 2**13, 0.5]
