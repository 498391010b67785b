"""What solver="auto" stands for."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

from slimsvm import BCFW, CPSP, SVC, SVR, Exact, ExactCuts, Refine, ViolatedCuts
from slimsvm.estimators._shared import automatic
from slimsvm.estimators._shared.automatic import (
    MOST_REDUCED_OF_TWO,
    ChoiceSettings,
    choose_solver,
    exact_evals,
)
from slimsvm.kernels import RBF, CallableKernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from slimsvm.parts.problem import Problem
from slimsvm.rows import MAX_SPARSE_FEATURES, as_rows
from slimsvm.size_search.compact import Compact
from slimsvm.tasks import Binary, Examples, Multiclass, Multilabel, OneClass, OneVsOne, Regression
from tasks_for_tests import Chain, ErrorRate

ROWS = np.zeros((10, 3))


def problem_of(X, kernel, task, labels=None, memory_limit=10**9):
    """A problem whose labels do not matter, or are given."""
    labels = np.zeros(X.shape[0]) if labels is None else labels
    examples = Examples(labels=labels, weights=np.ones(X.shape[0]))
    return Problem(as_rows(X), examples, task, kernel, memory_limit=memory_limit)


def chosen(X, kernel=None, task=None, max_basis=None, learns_metric=False, memory_limit=10**9):
    """The solver for such rows; two classes and the RBF kernel where nothing is said."""
    problem = problem_of(X, kernel or RBF(1.0), task or Binary(), memory_limit=memory_limit)
    return choose_solver(problem, max_basis, learns_metric)


@pytest.mark.parametrize(
    "kernel", [RBF(1.0), RBF((1.0, 2.0, 3.0)), Polynomial(2, 1.0, 1.0), Linear(), Sigmoid(1.0, 0.0)], ids=repr
)
@pytest.mark.parametrize(
    "task", [Binary(), Multiclass(3), Regression(0.1), Chain(3)], ids=lambda task: type(task).__name__
)
def test_vectors_are_learned_where_there_are_derivatives(kernel, task):
    solver = chosen(ROWS, kernel, task, 7)
    is_moved = isinstance(task, Binary | Regression) and kernel.is_inner_product
    assert (type(solver), solver.max_basis) == (Compact if is_moved else Refine, 7)


def test_two_classes_and_numbers_of_many_rows_are_learned():
    few, many = np.zeros((MOST_REDUCED_OF_TWO, 1)), np.zeros((MOST_REDUCED_OF_TWO + 1, 1))
    for task in (Binary(), Regression(0.1)):
        assert type(chosen(few, task=task, max_basis=7)) is Compact
        assert type(chosen(many, task=task, max_basis=7)) is Refine
    assert type(chosen(few, task=Binary(cost_positive=2.0), max_basis=7)) is Refine


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Precomputed(), CallableKernel(np.dot)], ids=lambda k: k.name)
def test_other_kernels_are_pursued_with_training_rows(kernel):
    solver = chosen(ROWS, kernel, max_basis=7)
    assert (type(solver), solver.max_basis, solver.preimage) == (CPSP, 7, "training-rows")


def test_losses_over_all_rows_are_pursued():
    solver = chosen(ROWS, task=ErrorRate(), max_basis=7)
    assert (type(solver), solver.max_basis, solver.preimage) == (CPSP, 7, "fixed-point")


def test_text_is_pursued_other_sparse_rows_are_learned():
    few, many = (sp.csr_array((10, MAX_SPARSE_FEATURES + more)) for more in (0, 1))
    assert type(chosen(few, max_basis=7)) is Compact
    assert type(chosen(many, max_basis=7)) is CPSP
    dense = np.zeros((10, MAX_SPARSE_FEATURES + 1))
    assert type(chosen(dense, max_basis=7)) is Compact


@pytest.mark.parametrize(
    ("task", "solver"),
    [
        (Binary(), Exact),
        (Binary(cost_positive=2.0), Exact),
        (OneVsOne(3), Exact),
        (Regression(0.1), Exact),
        (OneClass(0.5), Exact),
        (Multiclass(3), ExactCuts),
        (Multilabel(3), Exact),
        (Chain(3), ExactCuts),
        (ErrorRate(), ExactCuts),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "kernel",
    [RBF(1.0), RBF((1.0, 2.0, 3.0)), Linear(), Laplacian(1.0), Precomputed(), CallableKernel(np.dot)],
    ids=lambda kernel: type(kernel).__name__,
)
def test_without_a_cap_the_estimator_is_the_exact_one(kernel, task, solver):
    for X in (np.zeros((10, 3)), np.zeros((30_000, 3)), sp.csr_array((30_000, 3))):
        in_weights = X.shape[0] > 10 and isinstance(kernel, Linear) and isinstance(task, Chain)
        assert type(chosen(X, kernel, task)) is (BCFW if in_weights else solver)


def test_rows_on_disk_are_solved_for_exactly(tmp_path):
    mapped = np.memmap(tmp_path / "X", mode="w+", shape=(5001, 2))
    assert type(chosen(mapped)) is Exact


def test_cuts_of_very_many_rows_are_sampled():
    few, many = (np.zeros((ChoiceSettings.most_cut_rows + more, 1)) for more in (0, 1))
    assert type(chosen(few, task=Multiclass(3))) is ExactCuts
    assert type(chosen(many, task=Multiclass(3))) is ViolatedCuts


@pytest.mark.parametrize("overlap", [0.0, 3.0])
def test_what_the_exact_svm_would_take_is_estimated_by_a_sample(overlap):
    own = ChoiceSettings(most_evals=2e7, sample=200)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 3))
    y = np.where(X[:, 0] + overlap * rng.normal(size=len(X)) > 0, 1, -1)
    problem = replace(problem_of(X, RBF(0.1), Binary(), y), settings=(own,))
    estimate = exact_evals(problem)
    assert estimate <= own.per_vector * len(X) ** 2
    if not overlap:
        assert estimate <= own.most_evals
        assert type(choose_solver(problem, None, False)) is Exact
        return
    with pytest.warns(
        ConvergenceWarning, match=r"exact solver takes some 4e.07 kernel evaluations for 4000 rows.*max_basis='auto'"
    ):
        assert type(choose_solver(problem, None, False)) is Compact
    function = replace(problem, kernel=CallableKernel(lambda A, B: A @ B.T))
    with pytest.warns(ConvergenceWarning, match="solver='violated-cuts'"):
        assert type(choose_solver(function, None, False)) is ViolatedCuts
    matrix = replace(problem_of(np.eye(4000), Precomputed(), Binary(), y), settings=(own,))
    assert type(choose_solver(matrix, None, False)) is Exact


@pytest.mark.parametrize("task", [Binary(), OneVsOne(3), Regression(0.1)], ids=lambda task: type(task).__name__)
@pytest.mark.parametrize("kernel", [RBF(1.0), Polynomial(2, 1.0, 1.0), Laplacian(1.0)], ids=lambda k: k.name)
def test_a_cap_of_auto_searches_for_few_vectors(kernel, task):
    for X in (np.zeros((50, 3)), sp.csr_array((50, MAX_SPARSE_FEATURES + 1))):
        assert chosen(X, kernel, task, "auto").get_params() == Compact().get_params()


@pytest.mark.parametrize(
    ("solver", "max_basis", "learns_metric", "has_costs", "estimator"),
    [
        ("auto", None, False, False, "ovo"),
        ("auto", "auto", False, False, "either"),
        ("auto", 100, False, False, "crammer-singer"),
        ("auto", None, True, False, "crammer-singer"),
        ("auto", None, False, True, "crammer-singer"),
        ("exact", None, False, False, "ovo"),
        (Compact(), None, False, False, "either"),
        (Compact(max_basis=10), None, False, False, "ovo"),
        (Exact(), None, False, False, "ovo"),
        ("refine", None, False, False, "crammer-singer"),
        (Refine(), None, False, False, "crammer-singer"),
        ("no solver", None, False, False, "crammer-singer"),
    ],
)
def test_the_estimator_of_several_classes(solver, max_basis, learns_metric, has_costs, estimator):
    assert automatic.resolve_multi_class(solver, max_basis, learns_metric, has_costs) == estimator


@pytest.mark.parametrize(
    ("solver", "max_basis", "machine"),
    [
        ("auto", None, "ovr"),
        ("exact", None, "ovr"),
        (Exact(), None, "ovr"),
        ("auto", "auto", "crammer-singer"),
        ("auto", 100, "crammer-singer"),
        (Compact(), None, "crammer-singer"),
        (Compact(max_basis=10), None, "crammer-singer"),
        ("refine", None, "crammer-singer"),
    ],
)
def test_very_many_classes_are_not_paired(solver, max_basis, machine):
    most = automatic.MOST_PAIRED
    given = (solver, max_basis, False, False, max_basis == 100)
    assert automatic.resolve_multi_class(*given, n_classes=most + 1) == machine
    assert automatic.resolve_multi_class(*given, n_classes=most) == automatic.resolve_multi_class(*given)


def test_a_search_needs_room_for_a_copy_of_the_rows(tmp_path):
    X = np.zeros((100, 2))
    mapped = np.memmap(tmp_path / "X", mode="w+", shape=X.shape)
    assert type(chosen(X, max_basis="auto", memory_limit=X.nbytes)) is Compact
    with pytest.raises(ValueError, match=r"max_basis='auto' copies the rows .* 1,600 bytes.*memory_limit"):
        chosen(X, max_basis="auto", memory_limit=X.nbytes - 1)
    with pytest.raises(ValueError, match="max_basis='auto' copies the rows"):
        chosen(mapped, max_basis="auto")


def test_auto_is_for_the_automatic_solver():
    X, y = make_moons(60, random_state=0)
    with pytest.raises(ValueError, match=r"max_basis='auto' goes with solver='auto', found solver='exact'"):
        SVC(max_basis="auto", solver="exact").fit(X, y)
    with pytest.raises(ValueError, match="max_basis"):
        SVC(max_basis="few").fit(X, y)


def test_a_metric_is_learned_by_refine():
    assert chosen(ROWS, learns_metric=True).get_params() == Refine().get_params()
    assert chosen(ROWS, max_basis=7, learns_metric=True).max_basis == 7


def test_with_a_metric_to_be_learned_few_vectors_are_searched_for_too():
    X = np.zeros((ChoiceSettings.least_searched, 2))
    for task in (Binary(), Multiclass(3), Regression()):
        for max_basis in (None, "auto"):
            found = chosen(X, task=task, max_basis=max_basis, learns_metric=True)
            assert found.get_params() == Compact(learn_metric=True).get_params()
    assert type(chosen(X[1:], learns_metric=True)) is Refine
    assert chosen(X, max_basis=7, learns_metric=True).get_params() == Refine(7).get_params()
    assert type(chosen(X, learns_metric=True, memory_limit=X.nbytes - 1)) is Refine
    assert type(chosen(X, task=Multilabel(3), learns_metric=True)) is Refine


@pytest.mark.parametrize(
    "kernel",
    ["rbf", "poly", "linear", "laplacian", lambda X, Z: (X @ Z.T + 1.0) ** 2],
    ids=["rbf", "poly", "linear", "laplacian", "own"],
)
def test_a_cap_alone_gives_a_good_small_model(kernel):
    X, y = make_moons(300, noise=0.15, random_state=0)
    gamma = 1.0 if kernel in ("rbf", "laplacian") else "scale"
    clf = SVC(kernel=kernel, gamma=gamma, C=10.0, coef0=1.0, max_basis=12, random_state=0).fit(X, y)
    assert 1 <= clf.n_basis_ <= 12
    assert clf.score(X, y) > 0.8
    assert type(clf.solver_) is (Compact if kernel in ("rbf", "poly", "linear") else CPSP)
    reg = SVR(kernel=kernel, gamma=gamma, C=10.0, coef0=1.0, max_basis=12, random_state=0).fit(X[:, :1], X[:, 0] ** 2)
    assert reg.n_basis_ <= 12


def test_the_cap_is_checked():
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=r"max_basis must be a positive integer.* found 0"):
        SVC(max_basis=0).fit(X, y)


def test_linear_estimators_without_a_cap_have_weights_where_they_are_cheaper():
    many, few, wide = np.zeros((3000, 5)), np.zeros((2000, 5)), np.zeros((2500, 4))
    for task, solver in ((Multiclass(3), ExactCuts), (ErrorRate(), ExactCuts), (Chain(3), BCFW)):
        assert type(chosen(many, Linear(), task)) is solver
        assert type(chosen(few, Linear(), task)) is ExactCuts
    assert type(chosen(many, Linear(), Chain(3), 7)) is Refine
    # The weights take more than a quarter of the memory.
    assert type(chosen(wide, Linear(), Chain(3), memory_limit=300)) is ExactCuts


def test_a_warm_start_begins_anew_where_more_rows_have_another_solver(monkeypatch):
    monkeypatch.setattr(automatic, "MOST_REDUCED_OF_TWO", 60)
    X, y = make_moons(80, noise=0.2, random_state=0)
    clf = SVC(max_basis=5, random_state=0, warm_start=True)
    for n, solver in ((60, Compact), (80, Refine), (50, Compact), (50, Compact)):
        clf.fit(X[:n], y[:n])
        alone = SVC(max_basis=5, random_state=0).fit(X[:n], y[:n])
        assert type(clf.solver_) is solver
        np.testing.assert_array_equal(clf.basis_coef_, alone.basis_coef_)
