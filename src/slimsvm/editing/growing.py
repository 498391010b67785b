"""The last machine of cross-training on few of the rows it might have: until it has so many vectors.

Where labels are right an SVM still has more vectors the more rows it sees (on MNIST 3 against 8 as n^0.7). Hart's rule,
by the machine itself:

    train on a sample
    repeat: rows that are no vectors go, some of those with y_i f(x_i) < 0 come (where there are none, below ½, then
            below 1); train;   until the limit is reached or no row is left to come

The limit follows from the data: with "auto" the sample is what is kept of 2,000 rows, and its machine may grow by three
fifths. So the number of vectors is that of 2,000 rows, within a quarter more or less, whatever n is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slimsvm.editing.first_stage import scores_of, some_rows
from slimsvm.solvers import Fit, Problem, Status

Array = np.ndarray

# "auto": rows whose kept ones make the first sample, and by which factor its machine's vectors may grow.
REFERENCE_ROWS, FACTOR = 2000, 1.6
# A given number of vectors: the first sample has this share of it in rows.
FIRST_SHARE = 0.25
# Rows that come in one round: at most this share of the vectors there are.
GROWTH = 0.3
# Rows below these margins come, below a later one only where there are none below those before it.
COMING = 0.0, 0.5, 1.0
# So near to the limit is near enough.
NEAR = 0.02
MOST_ROUNDS = 100


@dataclass(frozen=True)
class Limit:
    """Rows to begin with, and how many vectors there may be: ``most``, or `FACTOR` times as many as at first."""

    sample: Array
    most: int | None

    @classmethod
    def of(cls, max_basis: int | str | None, kept: Array, usable: Array, labels: Array, rng) -> Limit | None:
        """The limit that ``max_basis`` stands for; None where it rules nothing out."""
        if max_basis is None:
            return None
        if isinstance(max_basis, str):
            if len(usable) <= REFERENCE_ROWS:
                return None
            drawn = rng.choice(usable, REFERENCE_ROWS, replace=False)
            return cls(_of_both(np.intersect1d(kept, drawn), kept, labels, 1, rng), None)
        if len(kept) <= max_basis:
            return None
        size = max(2, int(FIRST_SHARE * max_basis))
        return cls(_of_both(np.zeros(0, np.int64), kept, labels, size // 2, rng), max_basis)


def grow(
    problem: Problem, offered: Array, limit: Limit, fit_to: Callable[[Array], Fit], rng: np.random.Generator
) -> tuple[Array, Fit, int]:
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
    rows, fit, kernel_evals
        The rows of the last training, ascending.
    """
    everything, labels = some_rows(problem, offered).rows, problem.examples.labels
    rows, fit = limit.sample, fit_to(limit.sample)
    kernel_evals = fit.counters["kernel_evals"]
    most = int(FACTOR * fit.model.n_basis) if limit.most is None else limit.most
    for _ in range(MOST_ROUNDS):
        vectors = fit.model.n_basis
        room = min(most - vectors, max(1, int(GROWTH * vectors)))
        if fit.status == Status.INTERRUPTED or room <= NEAR * most:
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
        if larger.model.n_basis > most:
            break
        rows, fit = tried, larger
    return rows, fit, kernel_evals


def _of_both(rows: Array, kept: Array, labels: Array, least: int, rng: np.random.Generator) -> Array:
    """Rows with at least so many kept ones of either class, where there are so many."""
    for sign in (-1, 1):
        own = kept[labels[kept] == sign]
        lacking = least - int(np.sum(labels[rows] == sign))
        if lacking > 0:
            more = np.setdiff1d(own, rows)
            rows = np.union1d(rows, rng.choice(more, min(lacking, len(more)), replace=False))
    return rows
