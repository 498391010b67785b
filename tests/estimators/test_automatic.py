"""What solver="auto" stands for."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons

from slimsvm import BCFW, CPSP, SVC, SVR, ExactCuts, Refine, ViolatedCuts
from slimsvm.estimators._shared.automatic import MAX_EXACT_N, MAX_SMALL_N, MAX_SPARSE_FEATURES, choose_solver
from slimsvm.kernels import RBF, CallableKernel, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from slimsvm.rows import as_rows
from slimsvm.solvers import Compact
from slimsvm.tasks import Binary, Multiclass, Regression
from tasks_for_tests import Chain, ErrorRate

ROWS = as_rows(np.zeros((10, 3)))


@pytest.mark.parametrize(
    "kernel", [RBF(1.0), RBF((1.0, 2.0, 3.0)), Polynomial(2, 1.0, 1.0), Linear(), Sigmoid(1.0, 0.0)], ids=repr
)
@pytest.mark.parametrize(
    "task", [Binary(), Multiclass(3), Regression(0.1), Chain(3)], ids=lambda task: type(task).__name__
)
def test_vectors_are_learned_where_there_are_derivatives(kernel, task):
    solver = choose_solver(ROWS, kernel, task, 7, False)
    assert (type(solver), solver.max_basis) == (Refine, 7)


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Precomputed(), CallableKernel(np.dot)], ids=lambda k: k.name)
def test_other_kernels_are_pursued_with_training_rows(kernel):
    solver = choose_solver(ROWS, kernel, Binary(), 7, False)
    assert (type(solver), solver.max_basis, solver.preimage) == (CPSP, 7, "training-rows")


def test_losses_over_all_rows_are_pursued():
    solver = choose_solver(ROWS, RBF(1.0), ErrorRate(), 7, False)
    assert (type(solver), solver.max_basis, solver.preimage) == (CPSP, 7, "fixed-point")


def test_text_is_pursued_other_sparse_rows_are_learned():
    few, many = (as_rows(sp.csr_array((10, MAX_SPARSE_FEATURES + more))) for more in (0, 1))
    assert type(choose_solver(few, RBF(1.0), Binary(), 7, False)) is Refine
    assert type(choose_solver(many, RBF(1.0), Binary(), 7, False)) is CPSP
    dense = as_rows(np.zeros((10, MAX_SPARSE_FEATURES + 1)))
    assert type(choose_solver(dense, RBF(1.0), Binary(), 7, False)) is Refine


def test_without_a_cap_few_rows_are_solved_for():
    few, many = (as_rows(np.zeros((MAX_SMALL_N + more, 1))) for more in (0, 1))
    assert type(choose_solver(few, RBF(1.0), Binary(), None, False)) is ExactCuts
    assert type(choose_solver(many, RBF(1.0), Binary(), None, False)) is Compact


@pytest.mark.parametrize("task", [Binary(), Multiclass(3)], ids=lambda task: type(task).__name__)
@pytest.mark.parametrize(
    ("kernel", "n_sparse", "vectors"),
    [
        (RBF(1.0), 0, "refine"),
        (Polynomial(2, 1.0, 1.0), 0, "refine"),
        (Laplacian(1.0), 0, "training-rows"),
        (RBF(1.0), MAX_SPARSE_FEATURES, "refine"),
        (RBF(1.0), MAX_SPARSE_FEATURES + 1, "fixed-point"),
        (Polynomial(2, 1.0, 1.0), MAX_SPARSE_FEATURES + 1, "training-rows"),
    ],
)
def test_without_a_cap_few_vectors_are_looked_for(kernel, n_sparse, vectors, task):
    X = sp.csr_array((MAX_SMALL_N + 1, n_sparse)) if n_sparse else np.zeros((MAX_SMALL_N + 1, 3))
    assert choose_solver(as_rows(X), kernel, task, None, False).vectors == vectors


def test_without_a_cap_cuts_solve_what_cannot_be_searched(tmp_path):
    X = np.zeros((MAX_SMALL_N + 1, 2))
    rows, mapped = as_rows(X), as_rows(np.memmap(tmp_path / "X", mode="w+", shape=X.shape))
    for kernel, task, seen in (
        (Precomputed(), Binary(), rows),
        (CallableKernel(np.dot), Binary(), rows),
        (RBF(1.0), Chain(3), rows),
        (RBF(1.0), ErrorRate(), rows),
        (RBF(1.0), Regression(0.1), rows),
        (RBF(1.0), Binary(), mapped),
    ):
        assert type(choose_solver(seen, kernel, task, None, False)) is ExactCuts
    assert type(choose_solver(rows, RBF(1.0), Binary(), None, False, X.nbytes)) is Compact
    assert type(choose_solver(rows, RBF(1.0), Binary(), None, False, X.nbytes - 1)) is ExactCuts
    many = as_rows(np.zeros((MAX_EXACT_N + 1, 1)))
    assert type(choose_solver(many, RBF(1.0), Binary(), None, False)) is Compact
    assert type(choose_solver(many, CallableKernel(np.dot), Binary(), None, False)) is ViolatedCuts


def test_a_metric_is_learned_by_refine():
    assert choose_solver(ROWS, RBF(1.0), Binary(), None, True).get_params() == Refine().get_params()
    assert choose_solver(ROWS, RBF(1.0), Binary(), 7, True).max_basis == 7


def test_with_a_metric_to_be_learned_many_rows_are_searched_too():
    X = np.zeros((MAX_SMALL_N + 1, 2))
    chosen = choose_solver(as_rows(X), RBF(1.0), Binary(), None, True)
    assert chosen.get_params() == Compact("refine", learn_metric=True).get_params()
    assert choose_solver(as_rows(X), RBF(1.0), Binary(), 7, True).get_params() == Refine(7).get_params()
    assert type(choose_solver(as_rows(X), RBF(1.0), Binary(), None, True, X.nbytes - 1)) is Refine
    assert type(choose_solver(as_rows(X), RBF(1.0), Regression(), None, True)) is Refine


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
    assert type(clf.solver_) is (Refine if kernel in ("rbf", "poly", "linear") else CPSP)
    reg = SVR(kernel=kernel, gamma=gamma, C=10.0, coef0=1.0, max_basis=12, random_state=0).fit(X[:, :1], X[:, 0] ** 2)
    assert reg.n_basis_ <= 12


def test_the_cap_is_checked():
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=r"max_basis must be a positive integer.* found 0"):
        SVC(max_basis=0).fit(X, y)


def test_linear_machines_without_a_cap_have_weights_where_they_are_cheaper():
    many, few = as_rows(np.zeros((3000, 5))), as_rows(np.zeros((2000, 5)))
    wide = as_rows(np.zeros((2500, 4)))
    for task, solver in ((Binary(), ExactCuts), (ErrorRate(), ExactCuts), (Chain(3), BCFW)):
        assert type(choose_solver(many, Linear(), task, None, False)) is solver
        assert type(choose_solver(few, Linear(), task, None, False)) is ExactCuts
    assert type(choose_solver(many, Linear(), Chain(3), 7, False)) is Refine
    # The weights take more than a quarter of the memory.
    assert type(choose_solver(wide, Linear(), Chain(3), None, False, memory_limit=300)) is ExactCuts
