"""What ``solver="auto"`` stands for."""

from __future__ import annotations

import numpy as np

from slimsvm import kernels, solvers, tasks
from slimsvm.rows import Rows

# Rows up to which a fit without a cap is exact, and up to which it is where few vectors cannot be looked for: above,
# cuts over all violated rows get too long.
MAX_SMALL_N, MAX_EXACT_N = 5_000, 300_000
# Sparse rows of more features than this are text and the like: moving dense vectors among them costs too much.
MAX_SPARSE_FEATURES = 1000


def choose_solver(
    rows: Rows,
    kernel: kernels.Kernel,
    task: tasks.Task,
    max_basis: int | None,
    learns_metric: bool,
    memory_limit: float = np.inf,
) -> solvers.Solver:
    """The solver for a problem of that kind.

    With a cap on vectors they are learned by descent where the kernel has a derivative, the loss is a sum over examples
    (that of sequences is) and rows are not sparse with many features; otherwise found by subspace pursuit. Without a
    cap, up to 5,000 rows are solved for by exact cuts. More, of two classes or several, are left to `Compact`, which
    learns as few vectors as do as well as the exact SVM on rows held out, and solves exactly where none do, unless the
    kernel is a function or a matrix, or a copy of the rows does not fit into memory: then, and for other losses, the
    problem is solved by exact cuts, or above 300,000 rows by sampled ones. So is regression: what few vectors lose
    shows in every target, not only near a boundary, and the search costs more than the exact solution. A linear machine
    without a cap, where explicit weights are cheaper (`solvers.cutting.explicit_weights`), is solved by exact cuts in
    them, and sequences by block-coordinate Frank-Wolfe. Where a metric is to be learned it is `Refine` with a cap or
    where there can be no search, and `Compact` otherwise.

    Parameters
    ----------
    rows : Rows
    kernel : Kernel
    task : Task
    max_basis : int or None
    learns_metric : bool
    memory_limit : float
        Bytes that a copy of the rows may take.

    Returns
    -------
    Solver
    """
    if learns_metric and max_basis is not None:
        return solvers.Refine(max_basis)
    n_bytes = rows.n_stored * (rows.exact_dtype.itemsize + (8 if rows.is_sparse else 0))
    has_room = rows.in_memory and n_bytes <= memory_limit
    may_search = rows.n_rows > MAX_SMALL_N and task.has_class_scores and task.is_smoothable and has_room
    if learns_metric:
        return solvers.Compact("refine", learn_metric=True) if may_search else solvers.Refine()
    folding = kernel.folding(rows.n_features)
    is_text = rows.is_sparse and rows.n_features > MAX_SPARSE_FEATURES
    if max_basis is None and solvers.prefers_weights(rows, kernel, task.n_outputs, memory_limit):
        return solvers.BCFW() if task.decomposes and task.n_plain else solvers.ExactCuts()
    preimage = "fixed-point" if kernel.is_gaussian else "training-rows"
    is_learned = kernel.has_gradient and task.decomposes and not is_text
    if max_basis is not None:
        return solvers.Refine(max_basis) if is_learned else solvers.CPSP(max_basis, preimage)
    if may_search and folding is not None:
        return solvers.Compact("refine" if is_learned else preimage)
    return solvers.ExactCuts() if rows.n_rows <= MAX_EXACT_N else solvers.ViolatedCuts()
