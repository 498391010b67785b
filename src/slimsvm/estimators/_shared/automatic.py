"""What words stand for that parameters can be: "auto" of solver and multi_class, "scale" and "learn" of gamma.

"auto" goes by counts of rows and kernel evaluations, never by a clock. "learn" is one gamma for each feature. A solver
that learns vectors learns the gammas with them (`learning_metric`). Solvers that learn no vectors take the scales of a
small model of few learned vectors: it finds how fast the labels change along each feature, and the proportion of its
gammas is kept (`with_learned_scales`). `validating` has "validate".
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import no_limit
from slimsvm.kernels import Kernel
from slimsvm.kernels.outlying_rows import Bulk
from slimsvm.kernels.shift_invariant import KERNELS, RBF
from slimsvm.parts.cuts.score_books import prefers_weights
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import RANDOM_ACCESS, Problem, check_needs
from slimsvm.parts.run import Status
from slimsvm.parts.solver import Solver
from slimsvm.rows import ColumnSums, Rows, as_rows, in_pieces, is_sparse, is_text, keep_sums, parts_of
from slimsvm.size_search.compact import Compact
from slimsvm.size_search.reduced_models import with_task
from slimsvm.tasks import Binary, Regression

# Up to so many rows the exact SVM of pairs of classes and its moved vectors take about as long as learned vectors:
# docs/experiments/learned_bases.md, "Several classes".
MOST_REDUCED = 20_000
# The same of two classes ("Two classes" there) and of numbers ("Regression").
MOST_REDUCED_OF_TWO = 5_000
# Up to so many classes models have a column of coefficients for each pair. Those of 2,000 classes of two rows take
# 60 GB.
MOST_PAIRED = 500
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
    several labels, regression, one class); elsewhere exact cuts, or above 300,000 rows sampled ones, and sequences in
    explicit weights by block-coordinate Frank-Wolfe. If the exact solver would take too long (`exact_evals`),
    `next_best` takes its place, with a warning.

    With a number, that many vectors of the exact SVM are moved (`Compact`) for pairs of classes, and for two classes or
    numbers of up to 5,000 rows, where `reduces` says so. Else they are learned by descent where the kernel has a
    derivative, the loss is a sum over examples and rows are not sparse with many features; otherwise they are found by
    subspace pursuit. With "auto" their number is searched for (`Compact`). Where a metric is learned that is so without
    a number, too, and it is `Refine` with one, or with 100 vectors where there can be no search. Losses with two
    derivatives, and vectors of several targets, have a rule of their own, `solver_of_span`.

    A ValueError says if there is no room for the copy of the rows that "auto" needs, or if the rows are `Blocks` and
    the solver is the exact one or the search.
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
        is_one = task == Binary() or isinstance(task, Regression)
        is_reduced = rows.n_rows <= MOST_REDUCED_OF_TWO if is_one else bool(task.class_pairs())
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
    """The solver of a loss with two derivatives: Newton's method over all rows, up to ``most_spanned`` of them; of more
    rows over the unit vectors where the kernel is linear and there are at most ``few_spanned`` features, else over
    ``few_spanned`` drawn rows, with a warning. Learned vectors where their number is given, of any loss of several
    targets, too.
    """
    rows, own = problem.rows, problem.settings_of(ChoiceSettings)
    task: Any = problem.task
    what = f"loss={task.loss!r}" if task.is_smooth else f"{task.n_outputs} numbers for each row"
    if max_basis == "auto":
        raise ValueError(
            "max_basis='auto' compares with the exact SVM, which exists for the hinge loss and for one target; with "
            f"{what} give max_basis a number"
        )
    if learns_metric:
        return solvers.Refine() if max_basis is None else solvers.Refine(max_basis)
    if max_basis is not None:
        is_learned = problem.kernel.has_gradient and not is_text(rows)
        return solvers.Refine(max_basis) if is_learned else solvers.LowRank(max_basis)
    if rows.n_rows <= own.most_spanned:
        return solvers.LowRank(None, tol_relative=SPANNED_TOLERANCE)
    if isinstance(problem.kernel, kernels.Linear) and rows.n_features <= own.few_spanned:
        return solvers.LowRank(rows.n_features, np.eye(rows.n_features), tol_relative=SPANNED_TOLERANCE)
    warnings.warn(
        f"with {what} all rows are vectors only up to {own.most_spanned} rows, found {rows.n_rows}: "
        f"{own.few_spanned} random rows are the vectors instead; give max_basis a number, or "
        "solver=LowRank(None), which makes all rows vectors anyway",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solvers.LowRank(own.few_spanned)


def reduces(rows: Rows, kernel: Kernel) -> bool:
    """Whether the exact SVM is quick enough, and its kernel smooth enough, for its vectors to be moved."""
    is_near = kernel.has_gradient and kernel.is_inner_product
    return is_near and rows.n_rows <= MOST_REDUCED and not is_text(rows)


def resolve_multi_class(
    solver: Any, max_basis: Any, learns_metric: bool, has_costs: bool, is_reduced: bool = False, n_classes: int = 3
) -> str:
    """What ``multi_class="auto"`` stands for: "ovo", "ovr", "crammer-singer", or "either" for "ovo" or
    "crammer-singer", whichever errs less.

    Pairs of classes with solvers that follow LIBSVM, `choose_solver`'s without ``max_basis`` among them, and with a
    number of vectors where `reduces` says so (``is_reduced``); either where as few vectors as will do are searched for.
    Costs, and a metric that is learned with vectors, are of a score for each class; so are more than MOST_PAIRED
    classes, each against the rest where all rows are vectors.
    """
    if n_classes > MOST_PAIRED:
        found = resolve_multi_class(solver, max_basis, learns_metric, has_costs, is_reduced)
        is_small = max_basis is not None or getattr(solver, "max_basis", None) is not None
        return "crammer-singer" if found == "either" or is_small else "ovr" if found == "ovo" else found
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
        f"solver='auto' allows {most:.0e}: {what}; solver='exact' trains the exact SVM anyway",
        ConvergenceWarning,
        stacklevel=6,
    )
    return solver


# -- gamma="scale" and gamma="learn" -----------------------------------------------------------------------------------


# Values of a block in which the variance for gamma="scale" is summed. How many times the features' own variance that of
# all entries together may be, before a search for gamma begins with a larger one.
BLOCK_VALUES, APART = 1 << 20, 4.0
# How many times the median feature's variance the mean one may be before each has a gamma of its own where learning of
# scales begins (docs/experiments/learned_bases.md, "Features of other units"), and the share of the largest variance up
# to which a feature does not vary.
UNLIKE, TINY = 100.0, 1e-30


def scale_gamma(
    X: Any, weights: np.ndarray | None, bulk: Bulk | None = None, block_values: int = BLOCK_VALUES
) -> float:
    """scikit-learn's ``gamma="scale"``, 1 / (n_features · variance of all entries), of weighted rows, or only of those
    in a bulk. One pass adds up means and squared deviations of blocks of so many values (Chan, Golub, LeVeque 1983).
    """
    n, d = X.shape
    sparse = X.is_sparse if isinstance(X, Rows) else is_sparse(X)
    n_stored = (X.n_stored if isinstance(X, Rows) else X.nnz) if sparse else n * d
    step = max(1, block_values // max(1, -(-n_stored // n)))  # by values of a row, zeros of sparse rows are none
    bounds = parts_of(n)
    if not isinstance(X, Rows) and len(bounds) == 1 and n <= step and bulk is None:
        total, _, squares = _moments_of(X.astype(np.float64), weights)
    else:
        parts = [slice(*each) for each in bounds]
        owned = [None if weights is None else weights[part] for part in parts]
        if isinstance(X, Rows):
            adds = not (X.in_memory or X.is_sparse)
            both = X.map(partial(_moments_and_sums, step, adds, bulk), owned)
            found = [moments for moments, _ in both]
            if adds:  # which a kernel will want
                keep_sums(X, [sums for _, sums in both])
        else:
            found = [
                _moments(step, X if len(parts) == 1 else X[part], own, bulk=bulk) for part, own in zip(parts, owned)
            ]
        total, _, squares = _put_together(found)
    variance = squares / total
    if not 0 < (gamma := 1.0 / (d * variance) if variance > 0 else 1.0) < np.inf:
        raise ValueError(
            f"gamma='scale' is 1 / (n_features · variance of X), found a variance of {variance:.3g}: scale X, or give "
            "gamma as a number"
        )
    return gamma


def typical_gamma(X: Any, weights: np.ndarray | None) -> float:
    """The gamma that searches begin with: ``gamma="scale"`` without the rows that are far from all others, and larger
    if features are farther from each other than they are wide.
    """
    bulk = Bulk.of(as_rows(X))
    return scale_gamma(X, weights, bulk) * max(1.0, bulk.apart / APART)


def first_kernel(kernel: kernels.Kernel, X: Any) -> kernels.Kernel:
    """Return the kernel that scales are learned from: with a gamma for each feature, as of standardised ones, where a
    few vary so much more than the others that a kernel of one gamma sees nothing of these.
    """
    variances = Bulk.of(as_rows(X)).variances
    varies = variances > TINY * variances.max(initial=0.0)
    of_features: Any = type(kernel)
    if not isinstance(kernel, KERNELS) or not varies.any():
        return kernel
    mean, median = variances[varies].mean(), np.median(variances[varies])
    return of_features(1.0 / (X.shape[1] * np.where(varies, variances, mean))) if mean > UNLIKE * median else kernel


def _put_together(moments: list[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of several sets together."""
    if len(moments) == 1:
        return moments[0]
    total, mean, squares = np.zeros(3)  # NumPy's numbers, which may be infinite
    for weight, own_mean, own_squares in moments:
        if weight > 0:
            off, before = own_mean - mean, total
            total += weight
            mean += off * (weight / total)
            squares += own_squares
            if before > 0:
                squares += off**2 * (weight * (before / total))
    return total, mean, squares


def _moments_and_sums(
    step: int, adds: bool, bulk: Bulk | None, X: Rows, weights: np.ndarray | None
) -> tuple[tuple[float, float, float], ColumnSums]:
    sums = ColumnSums(X.n_features, has_box=True)
    return _moments(step, X, weights, sums if adds else None, bulk), sums


def _moments(
    step: int, X: Any, weights: np.ndarray | None, sums: ColumnSums | None = None, bulk: Bulk | None = None
) -> tuple[float, float, float]:
    """Weight, mean and sum of squared deviations of all entries, of rows in a bulk if it is given, ``step`` rows at a
    time. The rows are added to ``sums``.
    """
    found = []
    for part in in_pieces(X.shape[0], step):
        block: Any = X.slice(part.start, part.stop, X.exact_dtype) if isinstance(X, Rows) else X[part]
        if sums is not None:
            sums.add(block)
        block, own = block.astype(np.float64), None if weights is None else weights[part]
        if bulk is not None and not (held := bulk.holds(block)).all():
            block, own = block[held], None if own is None else own[held]
        found.append(_moments_of(block, own))
    return _put_together(found)


def _moments_of(block: Any, weights: np.ndarray | None) -> tuple[float, float, float]:
    total = (block.shape[0] if weights is None else float(weights.sum())) * float(block.shape[1])
    if not total:
        return 0.0, 0.0, 0.0
    if is_sparse(block):
        sums = [_weighted(weights, np.asarray(part.sum(axis=1)).ravel()) for part in (block, block.power(2))]
        return total, sums[0] / total, sums[1] - sums[0] ** 2 / total
    mean = _weighted(weights, block.sum(axis=1)) / total
    block -= mean
    with np.errstate(over="ignore"):  # an infinite variance is an error of its own
        return total, mean, _weighted(weights, np.square(block, out=block).sum(axis=1))


def _weighted(weights: np.ndarray | None, values: np.ndarray) -> float:
    """Σ weights · values, without BLAS, whose sums depend on how many threads it has."""
    return float((values if weights is None else weights * values).sum())


# Vectors of the small model that learns scales, its steps and their rate: half the default steps, at twice the rate,
# on batches of the usual size.
# Models in its scales err as much as in scales that took twice the time (docs/experiments/learned_bases.md, "Scales in
# fewer steps").
VECTORS, RATE, SHORT = 100, 0.2, SweepSettings(steps=3000, steps_power=0.0, batch_epochs=10)
# Of max_seconds, the share of the small model. Chosen, not measured.
SMALL_MODEL_SHARE = 0.3


def learns_with_vectors(solver: Solver) -> bool:
    """Whether the solver learns a metric together with its vectors."""
    return hasattr(solver, "learn_metric")


def learning_metric(solver: Solver, problem: Problem) -> Solver:
    """The solver, set to learn the metric if it learns vectors; others take scales that are learned before.

    A ValueError says if the kernel, the rows or the loss allow neither.
    """
    if not learns_with_vectors(solver):
        check_scales(problem)
        return solver
    kernel = problem.kernel
    if not kernel.has_metric:
        hint = "; solver='exact' takes scales learned before" if kernel.form == "absolute" else ""
        raise ValueError(f"gamma='learn' needs kernel={kernels.kernels_with('has_metric')}, found {kernel!r}{hint}")
    if problem.rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    return solver if solver.learn_metric else clone(solver).set_params(learn_metric=True)


def check_scales(problem: Problem) -> None:
    """Raise a ValueError if no scales can be learned for the kernel, the rows or the loss."""
    kernel, rows, task = problem.kernel, problem.rows, problem.task
    if not isinstance(kernel, KERNELS):
        names = ", ".join(repr(known.name) for known in KERNELS)
        raise ValueError(f"gamma='learn' with a solver that learns no vectors needs kernel={names}, found {kernel!r}")
    if rows.is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    if not rows.in_memory:
        raise ValueError("gamma='learn' with a solver that learns no vectors needs rows in memory, found rows on disk")
    if not task.decomposes and not task.class_pairs():
        raise ValueError(f"gamma='learn' needs a loss that is a sum over examples, found {task!r}")


def with_learned_scales(
    problem: Problem, X: np.ndarray, weights: np.ndarray | None, mean_gamma: float | None
) -> Problem:
    """The problem with a gamma for each feature of its rows X, in the proportion that a small model has learned.

    `check_scales` lets the problem pass. The mean of the gammas is ``mean_gamma``; None: what ``gamma="scale"`` is for
    features in the learned scales. An interrupted small model ends the fit, as there is no model with the kernel asked
    for.
    """
    scales, first = learned_factors(problem), np.asarray(problem.kernel.gamma)
    if mean_gamma is None and first.ndim:  # of features in units of their standard deviations, too
        scales /= np.sqrt(np.mean(scales**2 / (first * len(first))))
    # Absolute differences grow with a scale, squares with its square.
    gamma = scales if problem.kernel.form == "absolute" else scales**2
    with no_limit():
        gamma = gamma * (typical_gamma(X * scales, weights) if mean_gamma is None else mean_gamma / gamma.mean())
    of_features: Any = type(problem.kernel)
    return replace(problem, kernel=of_features(gamma))


def learned_factors(problem: Problem, sweeps: SweepSettings = SHORT) -> np.ndarray:
    """Factors of the features, of mean square 1, from the gammas of the small model: an RBF of few vectors."""
    task = problem.task
    small = replace(
        problem,
        kernel=RBF(problem.kernel.gamma),
        intercept="regularized" if task.has_threshold else "none",
        max_iter=None,
        max_seconds=None if problem.max_seconds is None else SMALL_MODEL_SHARE * problem.max_seconds,
        settings=(sweeps, *problem.settings),
    )
    if pairs := task.class_pairs():
        small = with_task(small, tasks.Multiclass(1 + max(map(max, pairs))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fit = solvers.Refine(VECTORS, rate=RATE, learn_metric=True, finish=False).solve(small)
    if fit.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    gamma = np.asarray(fit.model.kernel.gamma, np.float64)
    return np.sqrt(gamma / gamma.mean())
