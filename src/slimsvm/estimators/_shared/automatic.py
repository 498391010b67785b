"""What ``solver="auto"`` stands for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import solvers
from slimsvm.parts.checks import RANDOM_ACCESS, check_needs
from slimsvm.parts.cuts.explicit_weights import prefers_weights
from slimsvm.parts.problem import Problem
from slimsvm.parts.solver import Solver
from slimsvm.rows import Rows, as_rows, is_text
from slimsvm.size_search.compact import Compact

# Kernel evaluations that the exact machine may take: some twenty minutes of two cores. They are estimated as PER_VECTOR
# times rows times vectors. Where that could be more, the share of rows that are vectors is that of a sample.
MAX_EVALS, PER_VECTOR, SAMPLE = 1e12, 3, 2000
# Of max_seconds, the share of that sample.
SHARE = 0.1
# Rows up to which a loss without a decomposition is solved for by exact cuts: of more rows they get too long.
MAX_CUTS_N = 300_000
# Rows from which the number of vectors with a metric of their own is searched for.
LEAST_SEARCH_N = 50


def choose_solver(problem: Problem, max_basis: Any, learns_metric: bool) -> Solver:
    """The solver for a problem of that kind.

    Without ``max_basis`` it is the exact one: `Exact` where the loss has its dual (two classes, pairs of classes,
    regression, one class); elsewhere exact cuts, or above 300,000 rows sampled ones, and sequences in explicit weights
    by block-coordinate Frank-Wolfe. More rows than the exact machine can be had of (`exact_evals`) are left to
    `next_best`, with a warning.

    With a number, that many vectors are learned by descent where the kernel has a derivative, the loss is a sum over
    examples and rows are not sparse with many features; otherwise they are found by subspace pursuit. With "auto" their
    number is searched for (`Compact`). Where a metric is learned that is so without a number, too, and it is `Refine`
    with one, or with 100 vectors where there can be no search.

    Parameters
    ----------
    problem : Problem
    max_basis : int, "auto" or None
    learns_metric : bool

    Returns
    -------
    Solver

    Raises
    ------
    ValueError
        There is no room for the copy of the rows that "auto" needs; or the rows are `Blocks`, and the machine is the
        exact one or searched for.

    Warns
    -----
    ConvergenceWarning
        The exact machine would take more kernel evaluations than this rule allows.
    """
    rows, task = problem.rows, problem.task
    is_exact = max_basis is None and not learns_metric and (task.has_dual or task.class_pairs())
    if is_exact or max_basis == "auto":
        machine = "the exact machine" if is_exact else "the search of max_basis='auto'"
        check_needs(machine, problem, RANDOM_ACCESS)
    is_searched_for = max_basis == "auto" or (learns_metric and max_basis is None)
    if is_searched_for and not learns_metric:
        if not has_room(problem):
            raise ValueError(
                f"max_basis='auto' copies the rows in memory, {bytes_of(rows):,} bytes; found "
                f"memory_limit={problem.memory_limit:,} bytes or rows on disk: give max_basis a number"
            )
        return Compact()
    if learns_metric:
        may_search = (task.has_class_scores or task.has_targets) and task.is_smoothable and has_room(problem)
        if is_searched_for and may_search and rows.n_rows >= LEAST_SEARCH_N:
            return Compact(learn_metric=True)
        return solvers.Refine() if is_searched_for else solvers.Refine(max_basis)
    if max_basis is not None:
        is_learned = problem.kernel.has_gradient and task.decomposes and not is_text(rows)
        return solvers.Refine(max_basis) if is_learned else solvers.CPSP(max_basis, preimage(problem))
    if task.has_dual:
        n_evals = exact_evals(problem)
        return solvers.Exact() if n_evals <= MAX_EVALS else next_best(problem, n_evals)
    if task.class_pairs():
        return solvers.Exact()
    if prefers_weights(rows, problem.kernel, task.n_outputs, problem.memory_limit):
        return solvers.BCFW() if task.decomposes and task.n_plain else solvers.ExactCuts()
    return solvers.ExactCuts() if rows.n_rows <= MAX_CUTS_N else solvers.ViolatedCuts()


def machine_of_classes(solver: Any, max_basis: Any, learns_metric: bool, has_costs: bool) -> str:
    """What ``multi_class="auto"`` stands for: "ovo", "crammer-singer", or "either" for the one that errs less.

    Pairs of classes with solvers that follow LIBSVM, `choose_solver`'s without ``max_basis`` among them; either where
    as few vectors as will do are searched for. Costs, and a metric that is learned with vectors, are of a score for
    each class.
    """
    is_auto = isinstance(solver, str) and solver == "auto"
    if is_auto and (learns_metric or has_costs):
        return "crammer-singer"
    if is_auto:
        return "ovo" if max_basis is None else "either" if max_basis == "auto" else "crammer-singer"
    known = solvers.SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    if known is Compact:
        return "crammer-singer" if learns_metric else "either"
    return "ovo" if getattr(known, "follows_libsvm", False) else "crammer-singer"


def preimage(problem: Problem) -> str:
    """How subspace pursuit finds a vector."""
    return "fixed-point" if problem.kernel.is_gaussian else "training-rows"


def has_room(problem: Problem) -> bool:
    """Whether a copy of the rows can be made."""
    return problem.rows.in_memory and bytes_of(problem.rows) <= problem.memory_limit


def bytes_of(rows: Rows) -> int:
    """Bytes of a copy of rows."""
    return rows.n_stored * (rows.exact_dtype.itemsize + (8 if rows.is_sparse else 0))


def exact_evals(problem: Problem) -> float:
    """Kernel evaluations that `Exact` takes, or something above: no more than where all rows are vectors."""
    n = problem.rows.n_rows
    most = PER_VECTOR * float(n) ** 2
    if most <= MAX_EVALS or not problem.kernel.has_features:
        return min(most, MAX_EVALS)
    index = np.sort(np.random.default_rng(0).choice(n, SAMPLE, replace=False))
    labels = problem.examples.labels[index]
    if problem.task.has_two_classes and len(np.unique(labels)) < 2:
        return 0.0  # a class so rare leaves few vectors
    rows = as_rows(problem.rows.take(index, problem.rows.exact_dtype))
    sample = replace(problem, rows=rows, examples=problem.examples.take(index), max_iter=None)
    sample = replace(sample, max_seconds=None if problem.max_seconds is None else SHARE * problem.max_seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Exact().solve(replace(sample, precision="float32", verbose=0, random_state=0))
    return most * fit.model.n_basis / SAMPLE


def next_best(problem: Problem, n_evals: float) -> Solver:
    """What takes the place of the exact machine of very many rows."""
    if problem.task.has_class_scores and has_room(problem) and problem.kernel.folding(problem.rows.n_features):
        solver: Solver = Compact()
        what = "it searches for few learned vectors instead (max_basis='auto')"
    else:
        solver, what = solvers.ViolatedCuts(), "it takes cuts of sampled rows instead (solver='violated-cuts')"
    warnings.warn(
        f"the exact machine of {problem.rows.n_rows} rows takes some {n_evals:.0e} kernel evaluations, and "
        f"solver='auto' allows {MAX_EVALS:.0e}: {what}; solver='exact' trains the exact machine nevertheless",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solver
