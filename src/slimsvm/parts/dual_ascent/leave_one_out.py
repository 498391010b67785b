r"""Scores of training rows by the exact machine without them, in closed form.

With v the dual variables, F the rows whose loss has curvature, and K̃ the kernel matrix with what the intercept adds,
leaving out row i changes its score by

    f^{−i}(x_i) = f(x_i) − v_i S_i²,      S_i² = K̃_ii − K̃_iF (K̃_FF + (2δ/C) I)⁻¹ K̃_Fi,

the squared distance of row i from the span of the others in F (for a row of F, 1/[(…)⁻¹]_ii − 2δ/C). A free intercept
borders K̃_FF by ones.

With δ = 0 F is the set of free support vectors, and this is the span rule. It lets no other row become free. Where
moves come out larger than a margin, as where few directions are all there are, the loss is smoothed over the band
|1 − y f(x)| ≤ δ, with δ a share of how far support vectors move.

Chapelle, Vapnik, "Model selection for support vector machines", NIPS 1999 (the span rule); Wang, Zhou, Lu, Maleki,
Mirrokni, "Approximate leave-one-out for fast parameter tuning in high dimensions", ICML 2018 (smoothed losses).
docs/experiments/probabilities.md compares it with five folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

from slimsvm import core
from slimsvm.kernels import KernelRows
from slimsvm.parts.dual_ascent.dual import LAST, Dual
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit

Array = np.ndarray

# A dual variable this close to its bound, as a share of it, is there.
AT_BOUND = 1e-9
# Added to the diagonal of a kernel matrix, as a share of its largest entry: copies of a row make it singular.
RIDGE = 1e-10


@dataclass(frozen=True)
class LeaveOneOutSettings:
    """What bounds the work; docs/experiments/probabilities.md has ``large`` and ``of_residual``, others were chosen."""

    # Most rows that are left out, in turn, and rows of F.
    most_rows: int = 3000
    most_free: int = 2000
    # Moves whose mean is larger, in units of the margin (for targets, of this share of the mean residual), are found
    # again by a band of this share of them, and again where that makes them less than half as large.
    large: float = 1.0
    of_residual: float = 0.25
    band: float = 0.5
    most_bands: int = 8
    # Pairs of classes share the kernel values of all support vectors where these are at most so many for each pair: a
    # call takes as long.
    values_of_call: int = 1 << 16


class Values:
    """Kernel values between training rows, with what a regularised intercept adds.

    Parameters
    ----------
    kernel_rows : KernelRows
        In float64.
    added : float
    K : float64 ndarray of shape (n, n), or None
        The values of some rows, if they are there.
    places : int64 ndarray of shape (n_rows,), or None
        Where rows are in K; -1: nowhere.
    """

    def __init__(
        self, kernel_rows: KernelRows, added: float, K: Array | None = None, places: Array | None = None
    ) -> None:
        self.kernel_rows, self.added, self.K = kernel_rows, added, K
        self.own = None if K is None else K.diagonal() + added
        self.places = np.full(kernel_rows.n_rows, -1) if places is None else places

    def between(self, left: Array, right: Array) -> Array:
        """Kernel values of rows, ``left`` among ``right``, with others."""
        places = self.places[right]
        if self.K is None or places.min() < 0:
            values = self.kernel_rows.block(self.kernel_rows.points(right), rows=left)
        else:
            values = np.empty((len(left), len(right)))
            slots = self.places[left]
            core.gather_lines(lines=self.K, slots=slots, places=places, out=values, n_threads=1, microseconds=0.0)
        if self.added:
            values += self.added
        return values

    def diagonal(self, rows: Array) -> Array:
        """Kernel values of rows with themselves."""
        places = self.places[rows]
        if self.own is None or places.min(initial=0) < 0:
            return self.kernel_rows.diag(rows) + self.added
        found: Array = self.own[places]
        return found


@dataclass(frozen=True)
class OneProblem:
    """One column of scores: a two-class problem, a pair of classes or a regression.

    Parameters
    ----------
    values : Values
    has_border : bool
        Whether the intercept is free.
    rows : int64 ndarray
        Numbers of its rows, ascending.
    v, size, scores, off : ndarrays
        Their dual variables, the largest that these may be, their scores, and how far these are from where the loss has
        its kink.
    unit : float
        What moves are large or small beside.
    """

    values: Values
    has_border: bool
    rows: Array
    v: Array
    size: Array
    scores: Array
    off: Array
    unit: float = 1.0

    def moves(self, places: Array, own: LeaveOneOutSettings, rng: np.random.Generator) -> Array:
        """v_i S_i² of the rows at ``places``, support vectors."""
        if not len(places):
            return np.zeros(0)
        free = ((self.v != 0) & (np.abs(self.v) < (1.0 - AT_BOUND) * self.size)).nonzero()[0]
        if len(free) < 2:  # a free intercept needs one, and a machine at its bounds has none
            free = np.union1d(free, np.argsort(self.off, kind="stable")[:2])
        moves = self.v[places] * self.squares(places, thinned(free, own.most_free, rng))
        return self.softened(moves, places, free, own, rng)

    def softened(
        self, moves: Array, places: Array, free: Array, own: LeaveOneOutSettings, rng: np.random.Generator
    ) -> Array:
        """Moves by bands, where they are so large that rows far from the kink would become free."""
        mean = float(np.abs(moves).mean())
        for _ in range(own.most_bands):
            if mean <= own.large * self.unit:
                break
            delta = own.band * mean
            is_near = self.off <= delta
            is_near[free] = True
            near = thinned(np.flatnonzero(is_near), own.most_free, rng)
            softness = 2.0 * delta / float(np.median(self.size[places]))
            found = self.v[places] * self.squares(places, near, softness)
            before, mean = mean, float(np.abs(found).mean())
            moves = found if mean < before else moves
            if mean > 0.5 * before:
                break
        return moves

    def squares(self, places: Array, span: Array, softness: float = 0.0) -> Array:
        """S² of the rows at ascending places, in F or not; F is at ``span``, ascending, ``softness`` is 2δ/C."""
        m, at = len(span), np.minimum(np.searchsorted(span, places), len(span) - 1)
        is_own = span[at] == places
        others = self.rows[places[~is_own]]
        values = self.values.between(self.rows[span], np.concatenate([self.rows[span], others]))
        K, across = values[:, :m], values[:, m:]
        own = self.values.diagonal(others)
        if self.has_border:  # about the mean of F, which changes no distance: far from 0 it would drown in rounding
            means, means_across = K.sum(axis=0) / m, across.sum(axis=0) / m
            total = float(means.sum() / m)
            values += (total - means)[:, None]
            K -= means
            across -= means_across
            own += total - 2.0 * means_across
        half = inverse_factor(K, softness)
        diagonal = np.einsum("ij,ij->j", half, half)  # of the inverse, L⁻ᵀ L⁻¹
        across = half @ across
        rest = own - np.einsum("ij,ij->j", across, across)
        if self.has_border:
            border = half.sum(axis=1)
            square = float(border @ border)
            diagonal -= (border @ half) ** 2 / square
            rest += (1.0 - border @ across) ** 2 / square
        found = np.empty(len(places))
        found[~is_own] = rest
        found[is_own] = (1.0 / np.maximum(diagonal, np.finfo(float).tiny) - softness)[at[is_own]]
        return np.maximum(found, 0.0)


def inverse_factor(K: Array, softness: float) -> Array:
    """L⁻¹ of LLᵀ = K + (softness + a little) I."""
    K = np.array(K, order="F")
    np.einsum("ii->i", K)[:] += softness + RIDGE * float(K.diagonal().max())
    L, failed = dpotrf(K, lower=1, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("kernel values of no inner product")
    half, _ = dtrtri(L, lower=1, overwrite_c=1)
    found: Array = half
    return found


def thinned(places: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many of the places, ascending."""
    return places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))


class Columns:
    """The columns of scores of a fit, each a problem of its own.

    Parameters
    ----------
    problem : Problem
    fit : Fit
    """

    def __init__(self, problem: Problem, fit: Fit) -> None:
        self.problem, self.fit, self.pairs = problem, fit, problem.task.class_pairs()
        assert fit.kept is not None
        self.kept, self.C_of_row = fit.kept, problem.C * problem.examples.weights
        kernel_rows = self.kept.get("kernel rows")
        if kernel_rows.dtype != np.float64:
            kernel_rows = replace(problem, precision="float64", kept=None).bind()
        self.prices = problem.task.pair_prices()
        self.n_before = kernel_rows.counter.n
        self.values = self.shared(kernel_rows)
        n_classes = 1 + max((second for _, second in self.pairs), default=-1)
        self.of_class = [problem.examples.labels == c for c in range(n_classes)]

    def shared(self, kernel_rows: KernelRows) -> Values:
        """Kernel values; of few rows, or for many pairs, all are computed at once."""
        added, K, n = float(self.problem.intercept == "regularized"), self.kept.get("K"), self.problem.rows.n_rows
        if K is not None and K.dtype == np.float64:
            return Values(kernel_rows, added, K, np.arange(n))
        basis, own = self.fit.basis_rows, self.problem.settings_of(LeaveOneOutSettings)
        assert basis is not None
        most = min(own.values_of_call * len(self.pairs), self.problem.memory_limit // 32)
        if not self.pairs or len(basis) ** 2 > most:
            return Values(kernel_rows, added)
        places = np.full(n, -1)
        places[basis] = np.arange(len(basis))
        return Values(kernel_rows, added, kernel_rows.block(kernel_rows.points(basis), rows=basis), places)

    def problem_of(self, column: int) -> OneProblem:
        """The problem of a column."""
        problem, intercept = self.problem, float(self.fit.model.intercept[column])
        if self.pairs:
            a, b = self.pairs[column]
            rows = (self.of_class[a] | self.of_class[b]).nonzero()[0]
            v, scores = self.kept.get((LAST, (a, b)))
            target, epsilon = np.where(self.of_class[a][rows], 1.0, -1.0), 0.0
            size = self.C_of_row[rows] * self.prices[column]
            has_margin = True
        else:
            has_columns, task = problem.task.has_columns, problem.task
            of_column = task.columns(problem.examples)[column] if has_columns else (task, problem.examples)
            rows, dual = np.arange(problem.rows.n_rows), Dual.of(problem, *of_column)
            v, scores = self.kept.get((LAST, column) if has_columns else LAST)
            target, size, epsilon = dual.target, np.maximum(dual.hi, -dual.lo), dual.epsilon
            has_margin = not (task.has_targets or dual.total)
        is_free = problem.intercept == "free"
        scores = scores + intercept if is_free else scores
        residuals = np.abs(scores - target)
        of_residual = problem.settings_of(LeaveOneOutSettings).of_residual
        unit = 1.0 if has_margin else of_residual * float(residuals.mean())
        return OneProblem(self.values, is_free, rows, v, size, scores, np.abs(residuals - epsilon), unit)


def leave_one_out(problem: Problem, fit: Fit, rows: Array) -> Array:
    """Scores (len(rows), n_outputs) of training rows, each by about the machine that was trained without it.

    In the column of a pair of classes only rows of these have one; others have NaN.

    Parameters
    ----------
    problem : Problem
        What ``fit`` solved exactly: two classes, pairs of classes or a regression.
    fit : Fit
        With what it has ``kept``. Its kernel evaluations are counted on.
    rows : int64 ndarray
        Ascending numbers of rows.
    """
    columns, rng, own = Columns(problem, fit), np.random.default_rng(0), problem.settings_of(LeaveOneOutSettings)
    place = np.full(problem.rows.n_rows, -1)
    place[rows] = np.arange(len(rows))
    scores = np.full((len(rows), fit.model.coef.shape[1]), np.nan)
    for column in range(scores.shape[1]):
        one = columns.problem_of(column)
        at, found = place[one.rows], one.scores.copy()
        moved = ((at >= 0) & (one.v != 0)).nonzero()[0]
        found[moved] -= one.moves(moved, own, rng)
        scores[at[at >= 0], column] = found[at >= 0]
    fit.counters["kernel_evals"] += columns.values.kernel_rows.counter.n - columns.n_before
    return scores
