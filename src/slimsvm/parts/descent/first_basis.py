"""Where a descent starts: centres, chosen rows, given vectors, or an earlier model, which may grow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.bases import KMeans, get_basis
from slimsvm.kernels import Kernel, KernelRows
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.basis_descent import Expansion
from slimsvm.parts.problem import Problem, check_vectors
from slimsvm.parts.span.smoothed_newton import sampled
from slimsvm.rows import Rows, as_rows, is_sparse

Array = np.ndarray

# -- The rows that vectors are learned from: all of them, or a sample in memory, drawn by row number -------------------
# Steps on random batches read rows at random places, which is slow beyond memory, so rows of blocks or of a cluster are
# copied where a copy of all is small; of very many rows a sample has vectors as good. Which rows are drawn depends on
# their number, their size and the seed, never on where they lie.
# Coefficients, objective and bound come from all rows afterwards.


@dataclass(frozen=True)
class SampleSettings:
    """How many rows vectors are learned from. Chosen, not measured."""

    # Rows at most, and at least where memory is scarce.
    most_rows: int = 1_000_000
    fewest_rows: int = 100_000
    # Share of memory_limit that a copy of them may take.
    memory_share: float = 0.25
    # Rows of the sample that coefficients are solved for first, before all of it and then all rows.
    near_rows: int = 100_000


def learning_part(problem: Problem, rng: np.random.Generator) -> Problem:
    """Return the problem itself, or of very many rows a sample in memory, weighted to stand for all.

    Of the problem itself the rows are in memory, where a row at a random place costs far more than its neighbours; its
    examples are the same object.
    """
    part, rows = part_of(problem, most_rows(problem), rng), problem.rows
    if part is problem and not rows.has_random_access:
        return replace(problem, rows=as_rows(rows.slice(0, rows.n_rows, rows.exact_dtype)))
    return part


def most_rows(problem: Problem) -> int:
    """Return the most rows that vectors are learned from."""
    own = problem.settings_of(SampleSettings)
    fitting = int(own.memory_share * problem.memory_limit / bytes_of_a_row(problem.rows))
    return min(own.most_rows, max(own.fewest_rows, fitting))


def bytes_of_a_row(rows: Rows) -> float:
    """Return how many bytes a copy of a row takes, in its own type of float."""
    size = rows.exact_dtype.itemsize
    return max(1.0, rows.n_stored / max(1, rows.n_rows) * (size + 8) if rows.is_sparse else rows.n_features * size)


def part_of(problem: Problem, n_rows: int, rng: np.random.Generator) -> Problem:
    """Return the problem of about so many of its rows, whole examples, drawn and weighted to stand for all."""
    examples = problem.examples
    if examples.n_rows <= n_rows:
        return problem
    size = max(1, n_rows * examples.n_examples // examples.n_rows)
    index = np.sort(rng.choice(examples.n_examples, size, replace=False))
    rows = problem.rows.take(examples.rows_of(index), problem.rows.exact_dtype)
    return replace(problem, rows=as_rows(rows), examples=sampled(examples, index))


# Rows per vector that k-means centres are made of, with a minimum. Chosen, not measured.
KMEANS_ROWS, MIN_KMEANS_ROWS = 20, 5_000


def expansion_of(
    initial: Any,
    max_basis: int,
    problem: Problem,
    kernel_rows: KernelRows,
    rng: np.random.Generator,
    learn_metric: bool = False,
) -> Expansion:
    """Return the expansion that a descent starts from: the name of a basis, a `Basis`, vectors (k, d) or a model.

    A model of fewer than ``max_basis`` vectors is joined by rows that it has losses on, with coefficients 0. If the
    metric is learned, feature scales start where they make a model's kernel of the problem's.
    """
    m, d = problem.task.n_outputs, kernel_rows.n_features
    if isinstance(initial, KernelExpansion):
        _check_size(initial.n_basis, max_basis)
        if initial.coef.shape[1] != m or initial.basis.shape[1] != d:
            raise ValueError(
                f"initial: the model has {initial.basis.shape[1]} features and {initial.coef.shape[1]} outputs, "
                f"the problem {d} and {m}"
            )
        basis, coef = _grown(initial, max_basis, problem, kernel_rows, rng)
        log_scale = _log_scale(initial.kernel, problem.kernel, d) if learn_metric else np.zeros(d)
        return Expansion(basis, coef, initial.intercept, log_scale, initial.plain)
    if isinstance(initial, np.ndarray) or is_sparse(initial):
        basis = kernel_rows.kernel.check_basis(initial, d)
        check_vectors("initial", basis)
        _check_size(basis.shape[0], max_basis)
    else:
        chooser = get_basis(initial)
        if isinstance(initial, str) and initial == "kmeans":
            chooser = KMeans(max(MIN_KMEANS_ROWS, KMEANS_ROWS * max_basis))
        labels = problem.examples.labels if problem.task.has_class_scores else None
        basis = chooser.choose(kernel_rows, max_basis, rng, labels)
        basis = kernel_rows.basis(basis) if basis.ndim == 1 else basis
    return Expansion(basis, np.zeros((basis.shape[0], m)), np.zeros(m), np.zeros(d), np.zeros(problem.task.n_plain))


def _grown(
    model: KernelExpansion, size: int, problem: Problem, kernel_rows: KernelRows, rng: np.random.Generator
) -> tuple[Any, Array]:
    """Return the basis and coefficients of a model, up to the size with rows that it has losses on."""
    missing = size - model.n_basis
    if not missing:
        return model.basis, model.coef
    rows = replace(problem, kernel=model.kernel).bind()
    rows.counter = kernel_rows.counter
    scores = rows.scores(rows.points_of(model.basis), model.coef) + model.intercept
    augmented = problem.task.augment(scores.astype(np.float64), model.plain, problem.examples)
    lossy = np.flatnonzero(augmented.coef.any(axis=1))
    if len(lossy) < missing:
        lossy = np.arange(rows.n_rows)
    more: Any = kernel_rows.basis(np.sort(rng.choice(lossy, min(missing, len(lossy)), replace=False)))
    if is_sparse(more) and not is_sparse(model.basis):  # vectors that were learned of sparse rows are dense
        more = more.toarray()
    stack = sp.vstack if is_sparse(model.basis) else np.vstack
    coef = np.vstack([model.coef, np.zeros((more.shape[0], model.coef.shape[1]))])
    return stack([model.basis, more]), coef


def _check_size(k: int, max_basis: int) -> None:
    if not 1 <= k <= max_basis:
        raise ValueError(f"initial has {k} vectors, max_basis={max_basis}")


def _log_scale(kernel: Kernel, own: Kernel, d: int) -> Array:
    """Return feature scales that make the model's kernel of the problem's ``own``."""
    if not (own.has_metric and type(kernel) is type(own)):
        return np.zeros(d)
    ratio = np.asarray(kernel.gamma) / np.asarray(own.gamma)
    return np.broadcast_to(0.5 * np.log(ratio), d)
