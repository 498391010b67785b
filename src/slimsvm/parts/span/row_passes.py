"""Passes over the rows for Newton's method: sums over all rows, made part by part.

Parts have fixed bounds, and their sums are added in their order, so that it does not matter where a part is worked on
or which is done first. Vectors with a number for each row (scores, slopes) stay in parts; where parts are worked on
elsewhere they stay there, and only sums and the few rows of a direction come back.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.parts.span.whitened_span import SpanRows, Subspace
from slimsvm.rows import Block, is_sparse
from slimsvm.tasks import Examples, Smoothed, Task

Array = np.ndarray
# A list with an entry for each part, or an object that stands for entries kept in other processes.
Parts = Any


@dataclass(frozen=True)
class SmoothedRows:
    """Smoothed losses at some scores: their sums, and the data to compute them again."""

    # loss, value, dual: the sums of `tasks.Smoothed` over all rows
    loss: float
    value: float
    dual: tuple[float, float]
    product: float  # Σ residual · direction, where a direction was given
    scores: Parts  # the scores in parts; None if they were computed along a direction
    tau: float
    kept: Parts  # a `Smoothed` for each part, or None where they were not kept
    largest: float | None = None  # the largest curvature of a row; None where what was kept says it


@dataclass(frozen=True)
class Near:
    """Rows near the margin, or a sample of them."""

    n: int  # how many there are
    index: Array  # int64 (b,): those that were drawn, in rising order
    curvature: Array  # float64 (b, m)
    share: Array | None  # float64 (b, m): soft argmax
    own: list[Array]  # list of int64: the numbers of each part's rows within it


@dataclass(frozen=True)
class Slope:
    """Sums over the residuals a: Σ aᵢ scoresᵢ, Zᵀ a (r + 1, ·) and Σ aᵢ; the last two have (m,) entries, or (2m,) for
    positive parts followed by negative ones. Also the largest curvature of a row, and the copied rows.
    """

    product: float
    coordinates: Array
    totals: Array
    largest: float
    taken: Any


class RowPasses:
    """Passes over the rows of a subspace.

    Parameters
    ----------
    examples : Examples
        One for each row.
    kept_rows : int
        Up to this many rows, smoothed losses are stored between passes.
    """

    def __init__(self, space: Subspace, task: Task, examples: Examples, kept_rows: int):
        self.space, self.task, self.whole = space, task, examples
        bounds = space.parts()
        parts = [examples] if len(bounds) == 1 else [examples.part(lo, hi) for lo, hi in bounds]
        self.starts = np.array([lo for lo, _ in bounds])
        self.examples = space.place(parts)
        self.keeps = not space.is_remote and examples.n_rows <= kept_rows

    def times(self, u: Array) -> Parts:
        """Return Z u, in parts."""
        return self.space.map(partial(_scores, *self.space.product_form(u)), keep=True)

    def at(self, scores: Parts, step: float, along: Parts) -> Parts:
        """Return the scores plus ``step`` times ``along``."""
        return self.space.each(partial(_moved, step), scores, along, keep=True)

    def shifted(self, scores: Parts, shift: float) -> Parts:
        """Return the scores plus a constant."""
        return self.space.each(partial(operator.add, shift), scores, keep=True)

    def smooth(self, scores: Parts, tau: float) -> SmoothedRows:
        """Compute the smoothed losses at scores."""
        work = partial(_smoothed_sums, self.task, tau, self.space.n_threads, self.keeps, 0.0)
        return _smoothed_rows(self.space.each(work, scores, self.examples), scores, tau)

    def smooth_along(self, scores: Parts, step: float, along: Parts, tau: float) -> SmoothedRows:
        """Compute the smoothed losses at scores plus ``step`` times ``along``, and their slope along ``along``."""
        work = partial(_smoothed_sums, self.task, tau, self.space.n_threads, self.keeps, step)
        return _smoothed_rows(self.space.each(work, scores, self.examples, along), None, tau)

    def total(self, scores: Parts, tau: float, shift: float) -> float:
        """Return Σ of the residuals at the scores plus ``shift``."""
        work = partial(_total, self.task, tau, self.space.n_threads, shift)
        return float(_added(self.space.each(work, scores, self.examples)))

    def slope(
        self, scores: Parts, tau: float, by_sign: bool, known: SmoothedRows | None, near: Near | None = None
    ) -> tuple[SmoothedRows, Slope]:
        """Compute the smoothed losses at scores, unless they are given, and sums of the residuals, on request apart for
        those above and below 0; copy the rows that the next direction needs.
        """
        work = partial(_slope, self.task, tau, by_sign, self.keeps)
        kept, own = self._nothing if known is None else known.kept, self._nothing if near is None else near.own
        found = self.space.map(work, scores, self.examples, kept, own)
        if known is None:
            smoothed = _smoothed_rows([part[:3] for part in found], scores, tau)
        else:
            smoothed = replace(known, scores=scores)
        largest = max(part[1] for part in found)
        product, sums, totals = (_added([part[i] for part in found]) for i in range(3, 6))
        taken = None if near is None else _stacked([block for part in found for block in part[6]])
        return smoothed, Slope(float(product), self.space.coordinates_of_sums(sums, totals), totals, largest, taken)

    def largest(self, smoothed: SmoothedRows) -> float:
        """Return the largest curvature of a row."""
        if smoothed.largest is not None:
            return smoothed.largest
        work = partial(_largest, self.task, smoothed.tau)
        return float(max(self.space.each(work, smoothed.scores, self.examples, smoothed.kept)))

    def near_margin(self, smoothed: SmoothedRows, least: float, limit: float, rng: np.random.Generator) -> Near:
        """Return the rows whose curvature is above ``least``, or a sample if they are more than ``limit``."""
        if len(self.starts) == 1 and not self.space.is_remote:
            return self._near_in_one_part(smoothed, least, limit, rng)
        of = smoothed.scores, self.examples, smoothed.kept
        basics = self.task, smoothed.tau
        counts = np.array(self.space.each(partial(_count, *basics, least), *of))
        n, ends = int(counts.sum()), np.cumsum(counts)
        chosen = np.arange(n) if n <= limit else np.sort(rng.choice(n, int(limit), replace=False))
        cuts = np.searchsorted(chosen, ends[:-1])
        own = [part - start for part, start in zip(np.split(chosen, cuts), ends - counts)]
        found = self.space.each(partial(_picked, *basics, least), *of, own)
        places, curvature, shares = map(list, zip(*found))
        index = np.concatenate([rows + lo for rows, lo in zip(places, self.starts)])
        share = None if shares[0] is None else np.concatenate(shares)
        return Near(n, index, np.concatenate(curvature), share, places)

    def _near_in_one_part(self, smoothed: SmoothedRows, least: float, limit: float, rng: np.random.Generator) -> Near:
        """Return `near_margin` from one pass, where counting the rows first would take longer."""
        own = _again(self.task, smoothed.tau, smoothed.scores[0], self.examples[0], smoothed.kept[0])
        rows = np.flatnonzero(_sizes(own) > least)
        n = len(rows)
        if n > limit:
            rows = rows[np.sort(rng.choice(n, int(limit), replace=False))]
        return Near(n, rows, own.curvature[rows], None if own.share is None else own.share[rows], [rows])

    def error(self, scores: Parts) -> float:
        """Return the task's error of the predictions that the scores give."""
        found = self.space.each(partial(_error, self.task), scores, self.examples)
        if len(found) == 1:
            return float(found[0][0])
        errors, weights = np.array(found).T
        return float(errors @ weights / weights.sum())

    def residual(self, smoothed: SmoothedRows) -> Array:
        """Return the residuals of all rows in one array."""
        work = partial(_residual, self.task, smoothed.tau)
        return _joined(self.space.each(work, smoothed.scores, self.examples, smoothed.kept))

    def joined(self, scores: Parts) -> Array:
        """Join scores of all rows to one array."""
        return _joined(self.space.each(np.asarray, scores))

    def parted(self, scores: Array) -> Parts:
        """Split scores of all rows into parts."""
        return self.space.place([np.ascontiguousarray(part) for part in np.split(scores, self.starts[1:])])

    @property
    def _nothing(self) -> Parts:
        return [None] * len(self.starts)


# -- what is done with a part ---------------------------------------------------------------------------------------


def _scores(coef: Array, shift: Array, seen: SpanRows) -> Array:
    return seen.scores(coef, shift)


def _moved(step: float, scores: Array, along: Array) -> Array:
    return scores + step * along


def _smoothed_sums(
    task: Task,
    tau: float,
    n_threads: int,
    keep: bool,
    step: float,
    scores: Array,
    examples: Examples,
    along: Array | None = None,
) -> tuple[list[float], float | None, Smoothed | None]:
    there = scores if along is None else _moved(step, scores, along)
    return _sums_of(task.smooth(there, tau, examples, n_threads), along, keep)


def _sums_of(smoothed: Smoothed, along: Array | None, keep: bool) -> tuple[list[float], float | None, Smoothed | None]:
    """Return the sums, and either the smoothed losses themselves or their largest curvature."""
    product = 0.0 if along is None else _product(smoothed.residual, along)
    sums = [smoothed.loss, smoothed.value, *smoothed.dual, product]
    return (sums, None, smoothed) if keep else (sums, _largest_of(smoothed), None)


def _product(a: Array, b: Array) -> float:
    """Return Σ a b without BLAS, whose sums depend on the processor beyond what SLIMSVM_ISA fixes."""
    return float((a * b).sum())


def _total(task: Task, tau: float, n_threads: int, shift: float, scores: Array, examples: Examples) -> float:
    return float(task.smooth(scores + shift, tau, examples, n_threads).residual.sum())


def _slope(
    task: Task,
    tau: float,
    by_sign: bool,
    keep: bool,
    seen: SpanRows,
    scores: Array,
    examples: Examples,
    kept: Smoothed | None,
    near: Array | None,
) -> tuple[list[float], float, Smoothed | None, float, Array, Array, list[Block]]:
    smoothed = _again(task, tau, scores, examples, kept, seen.n_threads)
    sums, largest, own = _sums_of(smoothed, None, keep)
    residual = smoothed.residual
    largest, product = _largest_of(smoothed) if largest is None else largest, _product(residual, scores)
    if by_sign:
        residual = np.hstack([np.maximum(residual, 0.0), np.minimum(residual, 0.0)])
    coordinates, taken = seen.transposed(residual, near)
    return sums, largest, own, product, coordinates, residual.sum(axis=0), taken


def _largest(task: Task, tau: float, scores: Array, examples: Examples, kept: Smoothed | None) -> float:
    return _largest_of(_again(task, tau, scores, examples, kept))


def _again(
    task: Task, tau: float, scores: Array, examples: Examples, kept: Smoothed | None, n_threads: int = 1
) -> Smoothed:
    """Return the smoothed losses that were kept, or compute them again."""
    return task.smooth(scores, tau, examples, n_threads) if kept is None else kept


def _largest_of(smoothed: Smoothed) -> float:
    return float(_sizes(smoothed).max(initial=0.0))


def _sizes(smoothed: Smoothed) -> Array:
    """Return each row's curvature, summed over several outputs."""
    curvature = smoothed.curvature
    return curvature[:, 0] if curvature.shape[1] == 1 else curvature.sum(axis=1)


def _count(task: Task, tau: float, least: float, scores: Array, examples: Examples, kept: Smoothed | None) -> int:
    return int(np.count_nonzero(_sizes(_again(task, tau, scores, examples, kept)) > least))


def _picked(
    task: Task, tau: float, least: float, scores: Array, examples: Examples, kept: Smoothed | None, chosen: Array
) -> tuple[Array, Array, Array | None]:
    smoothed = _again(task, tau, scores, examples, kept)
    rows = np.flatnonzero(_sizes(smoothed) > least)[chosen]
    return rows, smoothed.curvature[rows], None if smoothed.share is None else smoothed.share[rows]


def _error(task: Task, scores: Array, examples: Examples) -> tuple[float, float]:
    return task.error(task.decode(scores, np.zeros(0), examples), examples), examples.total_weight


def _residual(task: Task, tau: float, scores: Array, examples: Examples, kept: Smoothed | None) -> Array:
    return _again(task, tau, scores, examples, kept).residual


def _smoothed_rows(found: list[Any], scores: Parts, tau: float) -> SmoothedRows:
    """Return the smoothed rows made of the parts' sums and what was kept."""
    sums, sizes, kept = zip(*found)
    loss, value, dual, rest, product = _added([np.array(own) for own in sums]).tolist()
    largest = None if None in sizes else max(sizes)
    return SmoothedRows(loss, value, (dual, rest), product, scores, tau, list(kept), largest)


def _added(parts: Parts) -> Any:
    """Return the sum of the parts, added in their order."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _stacked(blocks: list[Any]) -> Block:
    return sp.csr_array(sp.vstack(blocks, format="csr")) if is_sparse(blocks[0]) else np.concatenate(blocks)


def _joined(parts: Parts) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
