"""The solver and the multi_class that "auto" stands for, by counts of rows and kernel evaluations, never by a clock.

`choosing_gamma` has ``gamma="scale"`` and "learn", `trials` has "validate".
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm import solvers
from slimsvm.kernels import Kernel
from slimsvm.parts.cuts.score_books import prefers_weights
from slimsvm.parts.problem import RANDOM_ACCESS, Problem, check_needs
from slimsvm.parts.solver import Solver
from slimsvm.rows import Rows, as_rows, is_text
from slimsvm.size_search.compact import Compact
from slimsvm.tasks import Binary

# Up to so many rows the exact SVM of pairs of classes and its moved vectors take about as long as learned vectors:
# docs/experiments/learned_bases.md, "Several classes".
MOST_REDUCED = 20_000
# The same of two classes ("Two classes" there).
MOST_REDUCED_OF_TWO = 5_000
# The gap to which Newton's method over all rows goes where there are more than are solved to rounding.
SPANNED_TOLERANCE = 1e-6


@dataclass(frozen=True)
class ChoiceSettings:
    """By which counts ``solver="auto"`` chooses. Chosen, not measured."""

    # Kernel evaluations that the exact solver may take. They are estimated as ``per_vector`` times rows times vectors.
    # Where that could be more, a sample of so many rows tells the share of rows that are vectors.
    most_evals: float = 1e12
    per_vector: int = 3
    sample: int = 2000
    # Of max_seconds, the share of that sample.
    sample_share: float = 0.1
    # Rows up to which a loss without a decomposition is solved by exact cuts: with more rows they take too long.
    most_cut_rows: int = 300_000
    # Rows from which the number of vectors with a metric of their own is searched for.
    least_searched: int = 50
    # Rows up to which all are vectors of a loss with two derivatives, and how many are of more rows.
    # docs/experiments/smooth_losses.md has the times.
    most_spanned: int = 3000
    few_spanned: int = 1000


def choose_solver(problem: Problem, max_basis: Any, learns_metric: bool) -> Solver:
    """The solver that ``solver="auto"`` stands for.

    Without ``max_basis`` it is the exact one: `Exact` where the loss has its dual (two classes, pairs of classes,
    regression, one class); elsewhere exact cuts, or above 300,000 rows sampled ones, and sequences in explicit weights
    by block-coordinate Frank-Wolfe. If the exact solver would take too long (`exact_evals`), `next_best` takes
    its place, with a warning.

    With a number, that many vectors of the exact SVM are moved (`Compact`) for pairs of classes, and for two
    classes of up to 5,000 rows, where `reduces` says so. Else they are learned by descent where the kernel has a
    derivative, the loss is a sum over examples and rows are not sparse with many features; otherwise they are found by
    subspace pursuit. With "auto" their number is searched for (`Compact`). Where a metric is learned that is so without
    a number, too, and it is `Refine` with one, or with 100 vectors where there can be no search. Losses with two
    derivatives, and vectors of several targets, have a rule of their own, `solver_of_span`.

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
        There is no room for the copy of the rows that "auto" needs; or the rows are `Blocks`, and the solver is the
        exact one or the search.

    Warns
    -----
    ConvergenceWarning
        The exact solver would take more kernel evaluations than this rule allows.
    """
    rows, task, own = problem.rows, problem.task, problem.settings_of(ChoiceSettings)
    has_rule = max_basis is not None or learns_metric
    if task.is_smooth or (task.has_columns and task.has_targets and has_rule):
        return solver_of_span(problem, max_basis, learns_metric)
    has_exact = task.has_dual or task.has_columns or bool(task.class_pairs())
    is_exact = max_basis is None and not learns_metric and has_exact
    if is_exact or max_basis == "auto":
        solver = "the exact solver" if is_exact else "the search of max_basis='auto'"
        check_needs(solver, problem, RANDOM_ACCESS)
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
        if is_searched_for and may_search and rows.n_rows >= own.least_searched:
            return Compact(learn_metric=True)
        return solvers.Refine() if is_searched_for else solvers.Refine(max_basis)
    if max_basis is not None:
        is_reduced = rows.n_rows <= MOST_REDUCED_OF_TWO if task == Binary() else bool(task.class_pairs())
        if is_reduced and reduces(rows, problem.kernel):
            return Compact(max_basis=max_basis)
        is_learned = problem.kernel.has_gradient and task.decomposes and not is_text(rows)
        return solvers.Refine(max_basis) if is_learned else solvers.CPSP(max_basis, preimage(problem))
    if task.has_dual:
        n_evals = exact_evals(problem)
        return solvers.Exact() if n_evals <= own.most_evals else next_best(problem, n_evals)
    if task.has_columns or task.class_pairs():
        return solvers.Exact()
    if prefers_weights(rows, problem.kernel, task.n_outputs, problem.memory_limit):
        return solvers.BCFW() if task.decomposes and task.n_plain else solvers.ExactCuts()
    return solvers.ExactCuts() if rows.n_rows <= own.most_cut_rows else solvers.ViolatedCuts()


def solver_of_span(problem: Problem, max_basis: Any, learns_metric: bool) -> Solver:
    """The solver of a loss with two derivatives: Newton's method over all rows, up to ``most_spanned`` of them, and
    with a warning over ``few_spanned`` drawn rows where there are more; learned vectors where their number is given,
    of any loss of several targets, too.
    """
    rows, own = problem.rows, problem.settings_of(ChoiceSettings)
    task: Any = problem.task
    what = f"loss={task.loss!r}" if task.is_smooth else f"{task.n_outputs} numbers for each row"
    if max_basis == "auto":
        raise ValueError(
            "max_basis='auto' looks for few vectors that do as well as the exact SVM of the hinge loss or of one "
            f"target's; with {what} give max_basis a number"
        )
    if learns_metric:
        return solvers.Refine() if max_basis is None else solvers.Refine(max_basis)
    if max_basis is not None:
        is_learned = problem.kernel.has_gradient and not is_text(rows)
        return solvers.Refine(max_basis) if is_learned else solvers.LowRank(max_basis)
    if rows.n_rows <= own.most_spanned:
        return solvers.LowRank(None, tol_relative=SPANNED_TOLERANCE)
    warnings.warn(
        f"{what} has a model over all rows up to {own.most_spanned} of them, found {rows.n_rows}: "
        f"{own.few_spanned} rows that are drawn are its vectors; give max_basis a number, or take "
        "solver=LowRank(None), which has all rows as vectors nevertheless",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solvers.LowRank(own.few_spanned)


def reduces(rows: Rows, kernel: Kernel) -> bool:
    """Whether the exact SVM is quick enough, and its kernel smooth enough, for its vectors to be moved."""
    is_near = kernel.has_gradient and kernel.is_inner_product
    return is_near and rows.n_rows <= MOST_REDUCED and not is_text(rows)


def resolve_multi_class(
    solver: Any, max_basis: Any, learns_metric: bool, has_costs: bool, is_reduced: bool = False
) -> str:
    """What ``multi_class="auto"`` stands for: "ovo", "crammer-singer", or "either" for the one that errs less.

    Pairs of classes with solvers that follow LIBSVM, `choose_solver`'s without ``max_basis`` among them, and with a
    number of vectors where `reduces` says so (``is_reduced``); either where as few vectors as will do are searched for.
    Costs, and a metric that is learned with vectors, are of a score for each class.
    """
    is_auto = isinstance(solver, str) and solver == "auto"
    if is_auto and (learns_metric or has_costs):
        return "crammer-singer"
    if is_auto:
        if max_basis == "auto":
            return "either"
        return "ovo" if max_basis is None or is_reduced else "crammer-singer"
    known = solvers.SOLVERS.get(solver) if isinstance(solver, str) else type(solver)
    if known is Compact:
        return "crammer-singer" if learns_metric else "ovo" if solver.max_basis else "either"
    return "ovo" if getattr(known, "follows_libsvm", False) else "crammer-singer"


def preimage(problem: Problem) -> str:
    """How subspace pursuit (`CPSP`) finds a vector."""
    return "fixed-point" if problem.kernel.is_gaussian else "training-rows"


def has_room(problem: Problem) -> bool:
    """Whether a copy of the rows can be made."""
    return problem.rows.in_memory and bytes_of(problem.rows) <= problem.memory_limit


def bytes_of(rows: Rows) -> int:
    """Bytes of a copy of rows."""
    return rows.n_stored * (rows.exact_dtype.itemsize + (8 if rows.is_sparse else 0))


def exact_evals(problem: Problem) -> float:
    """Upper estimate of the kernel evaluations that `Exact` takes."""
    n, own = problem.rows.n_rows, problem.settings_of(ChoiceSettings)
    most = own.per_vector * float(n) ** 2
    if most <= own.most_evals or not problem.kernel.has_features:
        return min(most, own.most_evals)
    index = np.sort(np.random.default_rng(0).choice(n, own.sample, replace=False))
    labels = problem.examples.labels[index]
    if problem.task.has_two_classes and len(np.unique(labels)) < 2:
        return 0.0  # a class so rare leaves few vectors
    rows = as_rows(problem.rows.take(index, problem.rows.exact_dtype))
    sample = replace(problem, rows=rows, examples=problem.examples.take(index), max_iter=None)
    if problem.max_seconds is not None:
        sample = replace(sample, max_seconds=own.sample_share * problem.max_seconds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Exact().solve(replace(sample, precision="float32", verbose=0, random_state=0))
    return most * fit.model.n_basis / own.sample


def next_best(problem: Problem, n_evals: float) -> Solver:
    """The solver that takes the place of the exact one for very many rows; it warns."""
    if problem.task.has_class_scores and has_room(problem) and problem.kernel.folding(problem.rows.n_features):
        solver: Solver = Compact()
        what = "it searches for few learned vectors instead (max_basis='auto')"
    else:
        solver, what = solvers.ViolatedCuts(), "it takes cuts of sampled rows instead (solver='violated-cuts')"
    most = problem.settings_of(ChoiceSettings).most_evals
    warnings.warn(
        f"the exact solver takes some {n_evals:.0e} kernel evaluations for {problem.rows.n_rows} rows, and "
        f"solver='auto' allows {most:.0e}: {what}; solver='exact' takes the exact one nevertheless",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solver
