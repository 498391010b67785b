"""The rows that vectors are learned from: all of them, or a sample in memory, drawn by row number.

Steps on random batches read rows at random places, which is slow beyond memory, so rows of blocks or of a cluster are
copied where a copy of all is small; of very many rows a sample has vectors as good. Which rows are drawn depends on
their number, their size and the seed, never on where they lie.
Coefficients, objective and bound come from all rows afterwards.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm.parts.problem import Problem
from slimsvm.parts.span.smoothed_newton import sampled
from slimsvm.rows import Rows, as_rows

# Rows that vectors are learned from at most, and at least where memory is scarce: a copy of them takes this share of
# memory_limit.
LEARNING_ROWS, FEWEST_ROWS, MEMORY_SHARE = 1_000_000, 100_000, 0.25


def learning_part(problem: Problem, rng: np.random.Generator) -> Problem:
    """The problem itself, or where it has very many rows a sample of them in memory, weighted to stand for all.

    Of the problem itself the rows are in memory, where a row at a random place costs far more than its neighbours; its
    examples are the same object.
    """
    part, rows = part_of(problem, most_rows(problem), rng), problem.rows
    if part is problem and not rows.has_random_access:
        return replace(problem, rows=as_rows(rows.slice(0, rows.n_rows, rows.exact_dtype)))
    return part


def most_rows(problem: Problem) -> int:
    """Rows that vectors are learned from at most."""
    fitting = int(MEMORY_SHARE * problem.memory_limit / bytes_of_a_row(problem.rows))
    return min(LEARNING_ROWS, max(FEWEST_ROWS, fitting))


def bytes_of_a_row(rows: Rows) -> float:
    """Of a copy in the rows' own type of float."""
    size = rows.exact_dtype.itemsize
    return max(1.0, rows.n_stored / max(1, rows.n_rows) * (size + 8) if rows.is_sparse else rows.n_features * size)


def part_of(problem: Problem, n_rows: int, rng: np.random.Generator) -> Problem:
    """The problem with about so many of its rows, examples whole, which are drawn and weighted to stand for all."""
    examples = problem.examples
    if examples.n_rows <= n_rows:
        return problem
    size = max(1, n_rows * examples.n_examples // examples.n_rows)
    index = np.sort(rng.choice(examples.n_examples, size, replace=False))
    rows = problem.rows.take(examples.rows_of(index), problem.rows.exact_dtype)
    return replace(problem, rows=as_rows(rows), examples=sampled(examples, index))
