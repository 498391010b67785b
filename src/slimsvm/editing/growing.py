"""The last machine of cross-training with few vectors: where they come from, and their coefficients.

Where labels are right an SVM still has more vectors the more rows it sees (on MNIST 3 against 8 as n^0.7). Hart's rule,
by the machine itself:

    train on a sample
    repeat: rows that are no vectors go, some of those with y_i f(x_i) < 0 come (where there are none, below ½, then
            below 1); train;   until the limit is reached or no row is left to come

The limit follows from the data: with "auto" the sample is what is kept of 2,000 rows, and there are to be as many
vectors as these are rows. So their number is about the same whatever n is.

What that machine knows is little: it saw few rows, and none that the first machines call wrong. So it gives its vectors
alone; their coefficients are the best over all rows, those with wrong labels too (`solvers.low_rank`: a convex
problem of few numbers). Hence it matters little at which price the vectors were found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from slimsvm.editing.first_stage import Clock, scores_of, some_rows
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Status
from slimsvm.solvers import LowRank
from slimsvm.solvers.low_rank import LowRankState

Array = np.ndarray

# max_basis="auto": the number of rows that are kept of REFERENCE_ROWS, where at least LEAST_ROWS can be used (what
# 2,000 rows leave beside validation rows).
REFERENCE_ROWS, LEAST_ROWS = 2000, 1500
# A given number of vectors: the first sample has this share of it in rows.
FIRST_SHARE = 0.25
# Most rows that come in one round, as a share of the vectors there are.
GROWTH = 0.3
# Rows below these margins come, below a later one only where there are none below those before it.
COMING = 0.0, 0.5, 1.0
# The rounds end within this share of the limit.
NEAR = 0.02
MOST_ROUNDS = 100


@dataclass(frozen=True)
class Limit:
    """Rows to begin with, and the most vectors there may be.

    ``filled``: rows that are no support vectors make up for missing ones.
    """

    sample: Array
    most: int
    filled: bool

    @classmethod
    def of(cls, max_basis: int | str, kept: Array, usable: Array, labels: Array, rng) -> Limit | None:
        """The limit that ``max_basis`` stands for; None where it rules nothing out."""
        if isinstance(max_basis, str):
            if len(usable) < LEAST_ROWS:
                return None
            drawn = rng.choice(usable, min(REFERENCE_ROWS, len(usable)), replace=False)
            most = max(2, int(REFERENCE_ROWS * len(kept) / len(usable)))
            return cls(_of_both(np.intersect1d(kept, drawn), kept, labels, 1, rng), most, filled=True)
        if len(kept) <= max_basis:
            return None
        size = max(2, int(FIRST_SHARE * max_basis))
        return cls(_of_both(np.zeros(0, np.int64), kept, labels, size // 2, rng), max_basis, filled=False)


class Found(NamedTuple):
    """Vectors, the rows they are (None: they are none), and evaluations of all that led to them."""

    basis: Any
    basis_rows: Array | None
    kernel_evals: int

    @classmethod
    def of(cls, rows: Array, fit: Fit, kernel_evals: int) -> Found:
        """The vectors of a machine that was trained on ``rows``."""
        return cls(fit.model.basis, None if fit.basis_rows is None else rows[fit.basis_rows], kernel_evals)


class Spanned:
    """The best coefficients of vectors that were found, over some rows and at any price.

    Parameters
    ----------
    problem : Problem
    index : int64 ndarray
        Positions of the rows that count, ascending; vectors that are rows are among them.
    found : Found
    clock : Clock
    verbose : int, default=0
    """

    def __init__(self, problem: Problem, index: Array, found: Found, clock: Clock, verbose: int = 0):
        part, self.index, self.clock = replace(some_rows(problem, index), verbose=verbose), index, clock
        # Few rows are not solved for to rounding as elsewhere: the threshold moves afterwards, and prices are many.
        self.part = replace(part, precision="float64") if part.is_small else part
        rows, n_basis = found.basis_rows, found.basis.shape[0]
        dtype = np.dtype(self.part.bind().dtype).name
        start = KernelExpansion(found.basis, np.zeros((n_basis, 1)), np.zeros(1), np.zeros(0), problem.kernel, dtype)
        self.solver = LowRank(max_basis=n_basis)
        self.start = LowRankState(start, None if rows is None else np.searchsorted(index, rows))

    def fit(self, price: float, callbacks: tuple = ()) -> Fit:
        """The machine of this price; `Fit.basis_rows` are positions in the whole problem."""
        part = replace(self.part, C=price, max_seconds=self.clock.left())
        fit = self.solver.solve(part, self.start, callbacks)
        fit.basis_rows = None if fit.basis_rows is None else self.index[fit.basis_rows]
        return fit


def grow(
    problem: Problem, offered: Array, limit: Limit, fit_to: Callable[[Array], Fit], rng: np.random.Generator
) -> Found:
    """Train on more and more of the offered rows.

    Parameters
    ----------
    problem : Problem
    offered : int64 ndarray
        Positions of rows, ascending.
    limit : Limit
    fit_to : callable
        Trains on rows, given by their positions.
    rng : numpy.random.Generator

    Returns
    -------
    Found
    """
    everything, labels = some_rows(problem, offered).rows, problem.examples.labels
    rows, fit = limit.sample, fit_to(limit.sample)
    kernel_evals = fit.counters["kernel_evals"]
    for _ in range(MOST_ROUNDS):
        vectors = fit.model.n_basis
        room = min(limit.most - vectors, max(1, int(GROWTH * vectors)))
        if fit.status in (Status.INTERRUPTED, Status.TIME_LIMIT) or room <= NEAR * limit.most:
            break
        margins = labels[offered] * scores_of(fit.model, everything, problem.n_jobs)
        kernel_evals += len(offered) * vectors
        margins[np.isin(offered, rows)] = np.inf
        coming = next((below for margin in COMING if len(below := offered[margins < margin])), None)
        if coming is None:
            break
        stay = rows if fit.basis_rows is None else rows[fit.basis_rows]
        tried = np.union1d(stay, rng.choice(coming, min(room, len(coming)), replace=False))
        if len(np.unique(labels[tried])) < 2:
            break
        larger = fit_to(tried)
        kernel_evals += larger.counters["kernel_evals"]
        if larger.model.n_basis > limit.most:
            break
        rows, fit = tried, larger
    found = Found.of(rows, fit, kernel_evals)
    if limit.filled and found.basis_rows is not None and found.basis.shape[0] < limit.most:
        others = np.setdiff1d(offered, found.basis_rows)
        others = rng.choice(others, min(limit.most - len(found.basis_rows), len(others)), replace=False)
        joined = np.union1d(found.basis_rows, others)
        found = Found(problem.rows.take(joined, problem.rows.exact_dtype), joined, kernel_evals)
    return found


def _of_both(rows: Array, kept: Array, labels: Array, least: int, rng: np.random.Generator) -> Array:
    """Rows with at least that number of kept ones of either class, where there are enough."""
    for sign in (-1, 1):
        own = kept[labels[kept] == sign]
        lacking = least - int(np.sum(labels[rows] == sign))
        if lacking > 0:
            more = np.setdiff1d(own, rows)
            rows = np.union1d(rows, rng.choice(more, min(lacking, len(more)), replace=False))
    return rows
