r"""Leave-one-out scores of training rows by the exact solver, in closed form.

With v the dual variables, F the rows whose loss has curvature, and K̃ the kernel matrix with what the intercept adds,
leaving out row i changes its score by

    f^{−i}(x_i) = f(x_i) − v_i S_i²,      S_i² = K̃_ii − K̃_iF (K̃_FF + (2δ/C) I)⁻¹ K̃_Fi,

the squared distance of row i from the span of the others in F (for a row of F, 1/[(…)⁻¹]_ii − 2δ/C). A free intercept
borders K̃_FF by ones. One compiled call has all pairs of classes (`core/decomposition/leave_one_out.cc`).

With δ = 0 F is the set of free support vectors, and this is the span rule. It lets no other row become free. Where
changes come out larger than a margin, as where few directions are all there are, the loss is smoothed over the band
|1 − y f(x)| ≤ δ, with δ a share of how far support vectors move.

Chapelle, Vapnik, "Model selection for support vector machines", NIPS 1999 (the span rule); Wang, Zhou, Lu, Maleki,
Mirrokni, "Approximate leave-one-out for fast parameter tuning in high dimensions", ICML 2018 (smoothed losses).
docs/experiments/probabilities.md compares it with five folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.kernels import KernelRows
from slimsvm.parts.dual_ascent.dual import LAST, Dual
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit

Array = np.ndarray

# A dual variable is at its bound if it is this close to it, as a share of the bound: sweeps of text end with one class
# scaled down by up to some 1e-4, and all its rows would be free.
AT_BOUND = 1e-3


@dataclass(frozen=True)
class LeaveOneOutSettings:
    """Limits of the work; docs/experiments/probabilities.md has ``large`` and ``of_residual``, others were chosen."""

    # The most rows that are left out, in turn, and the most rows of F.
    most_rows: int = 3000
    most_free: int = 2000
    # Changes of scores whose mean is larger than ``large``, in units of the margin (for targets, of ``of_residual``
    # times the mean residual), are computed again with a band of ``band`` times their mean, and again while that halves
    # them.
    large: float = 1.0
    of_residual: float = 0.25
    band: float = 0.5
    most_bands: int = 8
    # Several columns share the kernel values of all support vectors if these are at most this many for each: one call
    # takes as long as computing this many.
    values_of_call: int = 1 << 16
    # The most multiply-adds of a call, if it may be split: Ctrl-C waits for its end.
    work_of_call: float = 1e9


class Values:
    """Kernel values between training rows, plus the constant of a regularised intercept; the fit's counter has them."""

    def __init__(self, problem: Problem, fit: Fit) -> None:
        assert fit.kept is not None
        assert fit.basis_rows is not None
        self.added, self.has_border = float(problem.intercept == "regularized"), problem.intercept == "free"
        self.own, self.counters = problem.settings_of(LeaveOneOutSettings), fit.counters
        self.kernel_rows: KernelRows = fit.kept.get("kernel rows")
        if self.kernel_rows.dtype != np.float64:
            self.kernel_rows = replace(problem, precision="float64", kept=None).bind()
        self.K, n, used = fit.kept.get("K"), problem.rows.n_rows, fit.basis_rows
        self.places = np.arange(n)  # places of rows in K; -1: not in it
        if self.K is None or self.K.dtype != np.float64:
            n_columns = fit.model.coef.shape[1]
            most = min(self.own.values_of_call * (n_columns if n_columns > 1 else 0), problem.memory_limit // 32)
            self.places, is_shared = np.full(n, -1), len(used) ** 2 <= most
            self.places[used] = np.arange(len(used)) if is_shared else -1
            self.K = self.block(used, used) if is_shared else None
        self.diagonal = None if self.K is None else self.K.diagonal() + self.added

    def block(self, rows: Array, others: Array) -> Array:
        """Return kernel values of rows with others."""
        before = self.kernel_rows.counter.n
        found: Array = self.kernel_rows.block(self.kernel_rows.points(others), rows=rows)
        self.counters["kernel_evals"] += self.kernel_rows.counter.n - before
        return found

    def squares(self, rows: Array, starts: Array, in_span: Array, softness: float) -> Array:
        """Return S² of the rows of several sets, one set after another, in F or not; ``softness`` is 2δ/C."""
        places, found = self.places[rows], np.empty(len(rows))
        if self.diagonal is None or places.min(initial=0) < 0:
            for first, last in pairwise(starts):
                part = slice(first, last)
                K, at = self.block(rows[part], rows[part][in_span[part]]), np.cumsum(in_span[part]) - 1
                arrays = {"K": K, "kernel_rows": np.arange(len(K)), "places": np.maximum(at, 0)}
                arrays["diagonal"] = self.kernel_rows.diag(rows[part]) + self.added
                self.distances(in_span[part], np.array([0, len(K)]), softness, found[part], **arrays)
            return found
        work, first = np.cumsum(np.diff(starts).astype(np.float64) ** 3), 0
        while first < len(work):
            most = work[first] + self.own.work_of_call
            last = int(np.searchsorted(work, most, side="right"))
            part = slice(starts[first], starts[last])
            arrays = {"K": self.K, "kernel_rows": places[part], "places": places[part]}
            arrays["diagonal"] = self.diagonal[places[part]]
            self.distances(in_span[part], starts[first : last + 1] - starts[first], softness, found[part], **arrays)
            first = last
        return found

    def distances(self, in_span: Array, starts: Array, softness: float, squares: Array, **arrays: Array) -> None:
        """Write S² of the rows of some sets, by a compiled call."""
        is_solved = np.zeros(len(starts) - 1, bool)
        core.span_distances(
            starts=starts,
            is_in_span=in_span,
            softness=np.full(len(is_solved), softness),
            balanced=self.has_border,
            offset=self.added,
            squares=squares,
            is_solved=is_solved,
            **arrays,
        )
        if not is_solved.all():
            raise np.linalg.LinAlgError("kernel values of no inner product")


class Columns:
    """The score columns of a fit, one after another: two classes, pairs of classes, labels or a regression.

    Attributes
    ----------
    rows : int64 ndarray of shape (n,)
        Numbers of their rows, ascending in each.
    v, size, scores, off : float64 ndarrays of shape (n,)
        Dual variables, the largest that these may be, scores, and how far these are from where the loss has its kink.
    sizes, starts : int64 ndarrays of shape (n_columns,) and (n_columns + 1,)
        How many rows each has, and where they begin.
    unit : float
        The scale of large and small changes of scores.
    """

    def __init__(self, problem: Problem, fit: Fit) -> None:
        pairs, self.unit, has_total = problem.task.class_pairs(), 1.0, False
        assert fit.kept is not None
        if pairs:
            labels = problem.examples.labels
            of_class = [labels == c for c in range(pairs[-1][1] + 1)]
            parts = [(of_class[a] | of_class[b]).nonzero()[0] for a, b in pairs]
            self.rows, self.sizes = np.concatenate(parts), np.array([len(part) for part in parts])
            points = zip(*(fit.kept.get((LAST, pair)) for pair in pairs), strict=True)
            self.v, scores = (np.concatenate(part) for part in points)
            target = np.where(labels[self.rows] == np.repeat([a for a, _ in pairs], self.sizes), 1.0, -1.0)
            C_of_row = np.repeat(problem.C * problem.task.pair_factors(), self.sizes)
            self.size, epsilon = problem.examples.weights[self.rows] * C_of_row, np.zeros(len(self.rows))
        else:
            columns, n = problem.task.columns(problem.examples), problem.rows.n_rows
            duals = [Dual.of(problem, *column) for column in columns] or [Dual.of(problem)]
            names: list[Any] = [(LAST, k) for k in range(len(columns))] or [LAST]
            self.rows, self.sizes = np.tile(np.arange(n), len(duals)), np.full(len(duals), n)
            self.v, scores = (np.concatenate(part) for part in zip(*map(fit.kept.get, names), strict=True))
            target, epsilon = np.concatenate([dual.target for dual in duals]), np.repeat([d.epsilon for d in duals], n)
            self.size = np.concatenate([np.maximum(dual.hi, -dual.lo) for dual in duals])
            has_total = duals[0].total > 0
        is_free = problem.intercept == "free"
        self.scores = scores + np.repeat(fit.model.intercept, self.sizes) if is_free else scores
        residuals = np.abs(self.scores - target)
        self.off = np.abs(residuals - epsilon)
        if problem.task.has_targets or has_total:  # targets and one class have no margin
            self.unit = problem.settings_of(LeaveOneOutSettings).of_residual * float(residuals.mean())
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])

    def part(self, column: int) -> slice:
        """Return the slice of a column."""
        return slice(self.starts[column], self.starts[column + 1])


@dataclass(frozen=True)
class ScoreChanges:
    """The changes of training rows' scores as each row is left out, for some columns."""

    columns: Columns
    values: Values
    is_left_out: Array  # bool (n,): the rows whose changes are asked for
    own: LeaveOneOutSettings
    rng: np.random.Generator  # chooses among too many rows of F

    def found(self) -> Array:
        """Return v_i S_i² of the rows asked for, 0 for others."""
        columns, own = self.columns, self.own
        in_span = (columns.v != 0) & (np.abs(columns.v) < (1.0 - AT_BOUND) * columns.size)
        n_free = np.add.reduceat(in_span, columns.starts[:-1], dtype=np.int64)
        for column in np.flatnonzero((n_free < 2) | (n_free > own.most_free)).tolist():
            part = columns.part(column)
            if n_free[column] < 2:  # a free intercept needs one free row, which a solution at its bounds has not
                in_span[part][np.argsort(columns.off[part], kind="stable")[:2]] = True
            in_span[part] = self.thinned(in_span[part])
        changes = self.by(slice(None), in_span, columns.starts)
        n_left_out = np.add.reduceat(self.is_left_out, columns.starts[:-1], dtype=np.int64)
        means = np.add.reduceat(np.abs(changes), columns.starts[:-1]) / np.maximum(n_left_out, 1)
        for column in np.flatnonzero(means > own.large * columns.unit).tolist():
            part = columns.part(column)
            changes[part] = self.softened(part, changes[part], in_span[part], float(means[column]))
        return changes

    def by(self, part: slice, in_span: Array, starts: Array, softness: float = 0.0) -> Array:
        """Return changes of scores in some columns, computed from the rows F."""
        columns, is_left_out = self.columns, self.is_left_out[part]
        listed = is_left_out | in_span
        starts = np.concatenate([[0], np.cumsum(listed)])[starts]
        squares = np.zeros(len(listed))
        squares[listed] = self.values.squares(columns.rows[part][listed], starts, in_span[listed], softness)
        return np.where(is_left_out, columns.v[part] * squares, 0.0)

    def softened(self, part: slice, changes: Array, free: Array, mean: float) -> Array:
        """Compute large changes of scores in a column again, with bands that let rows off the kink become free."""
        own, columns, is_left_out = self.own, self.columns, self.is_left_out[part]
        whole, n_left_out = np.array([0, len(changes)]), int(np.count_nonzero(is_left_out))
        for _ in range(own.most_bands):
            if mean <= own.large * columns.unit:
                break
            delta = own.band * mean
            near = self.thinned(free | (columns.off[part] <= delta))
            softness = 2.0 * delta / float(np.median(columns.size[part][is_left_out]))
            found = self.by(part, near, whole, softness)
            before, mean = mean, float(np.abs(found).sum()) / n_left_out
            changes = found if mean < before else changes
            if mean > 0.5 * before:
                break
        return changes

    def thinned(self, chosen: Array) -> Array:
        """Draw ``most_free`` of the chosen rows, if there are more."""
        places, most = np.flatnonzero(chosen), self.own.most_free
        if len(places) > most:
            chosen = np.zeros_like(chosen)
            chosen[self.rng.choice(places, most, replace=False)] = True
        return chosen


def leave_one_out(problem: Problem, fit: Fit, rows: Array) -> Array:
    """Return scores (len(rows), n_outputs) of training rows, each by approximately the model trained without it.

    ``fit`` solved the problem exactly, one of two classes, pairs of classes, labels or a regression, and has its
    ``kept`` store; its counter has the kernel evaluations. The numbers of rows ascend. The column of a pair of classes
    has scores of their rows; the other rows have NaN there.
    """
    columns, own = Columns(problem, fit), problem.settings_of(LeaveOneOutSettings)
    place = np.full(problem.rows.n_rows, -1)
    place[rows] = np.arange(len(rows))
    at = place[columns.rows]
    is_left_out = (at >= 0) & (columns.v != 0)
    changes = ScoreChanges(columns, Values(problem, fit), is_left_out, own, np.random.default_rng(0)).found()
    scores = np.full((len(rows), len(columns.sizes)), np.nan)
    column = np.repeat(np.arange(len(columns.sizes)), columns.sizes)
    scores[at[at >= 0], column[at >= 0]] = (columns.scores - changes)[at >= 0]
    return scores
