"""What ``solver="auto"`` stands for."""

from __future__ import annotations

from slimsvm.kernels import RBF, Kernel
from slimsvm.rows import Rows
from slimsvm.solvers import CPSP, ExactCuts, Refine, Solver, ViolatedCuts
from slimsvm.tasks import Task

# Rows up to which a fit without a cap solves to a computed gap; above, cuts over all violated rows get too long.
MAX_EXACT_N = 300_000
# Sparse rows of more features than this are text and the like: moving dense vectors among them costs too much.
MAX_SPARSE_FEATURES = 1000


def choose_solver(rows: Rows, kernel: Kernel, task: Task, max_basis: int | None, learns_metric: bool) -> Solver:
    """The solver for a problem of that kind.

    With a cap on vectors they are learned by descent where the kernel has a derivative, the loss is a sum over examples
    (that of sequences is) and rows are not sparse with many features; otherwise found by subspace pursuit. Without a
    cap the problem is solved by exact cuts, or above 300,000 rows by sampled ones.

    Parameters
    ----------
    rows : Rows
    kernel : Kernel
    task : Task
    max_basis : int or None
    learns_metric : bool

    Returns
    -------
    Solver
    """
    if learns_metric:
        return Refine() if max_basis is None else Refine(max_basis)
    if max_basis is None:
        return ExactCuts() if rows.n_rows <= MAX_EXACT_N else ViolatedCuts()
    folding = kernel.folding(rows.n_features)
    has_derivative = folding is not None and not folding.manhattan
    is_text = rows.is_sparse and rows.n_features > MAX_SPARSE_FEATURES
    if has_derivative and task.decomposes and not is_text:
        return Refine(max_basis)
    return CPSP(max_basis, "fixed-point" if isinstance(kernel, RBF) else "training-rows")
