r"""Scores of training rows by the exact machine without them, in closed form.

With v the dual variables, F the rows whose loss has curvature, and K̃ the kernel matrix with what the intercept adds,
leaving out row i changes its score by

    f^{−i}(x_i) = f(x_i) − v_i S_i²,      S_i² = K̃_ii − K̃_iF (K̃_FF + (2δ/C) I)⁻¹ K̃_Fi,

the squared distance of row i from the span of the others in F (for a row of F, 1/[(…)⁻¹]_ii − 2δ/C). A free intercept
borders K̃_FF by ones.

With δ = 0 F is the set of free support vectors, and this is the span rule. It lets no other row become free, which
overstates the move where more support vectors are bounded than free. There the loss is smoothed over the band
|1 − y f(x)| ≤ δ, with δ a share of how far bounded support vectors move by the span rule.

Chapelle, Vapnik, "Model selection for support vector machines", NIPS 1999 (the span rule); Wang, Zhou, Lu, Maleki,
Mirrokni, "Approximate leave-one-out for fast parameter tuning in high dimensions", ICML 2018 (smoothed losses).
docs/experiments/probabilities.md compares it with five folds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from slimsvm.kernels import KernelRows
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit

Array = np.ndarray

# A dual variable this close to its bound, as a share of it, is there.
AT_BOUND = 1e-9
# Added to the diagonal of a kernel matrix, as a share of its largest entry: copies of a row make it singular.
RIDGE = 1e-10


@dataclass(frozen=True)
class LeaveOneOutSettings:
    """What bounds the work; docs/experiments/probabilities.md settles ``band``, the others were chosen."""

    # Most rows that are left out, in turn, and rows of F.
    most_rows: int = 3000
    most_free: int = 2000
    # δ, as a share of the median move of bounded support vectors, and how many of them tell it; the first pair of
    # classes that has a band tells it for all. 0: the span rule alone.
    band: float = 0.5
    sample: int = 64
    # Moves whose mean is larger, in units of the margin (of targets: of the mean residual), are found again by a band
    # as wide as they are, and again where that makes them less than half as large.
    large: float = 1.0
    most_bands: int = 8
    # Pairs of classes share kernel values where there are at most so many: calls for each take longer than few values.
    most_values: int = 1 << 22


class Values:
    """Kernel values between training rows, with what a regularised intercept adds; those of named rows are kept.

    Parameters
    ----------
    kernel_rows : KernelRows
    added : float
    kept : int64 ndarray or None
        Ascending numbers of rows.
    """

    def __init__(self, kernel_rows: KernelRows, added: float, kept: Array | None) -> None:
        self.kernel_rows, self.added, self.K = kernel_rows, added, None
        if kept is not None:
            self.places = np.zeros(kernel_rows.n_rows, np.int64)
            self.places[kept] = np.arange(len(kept))
            self.K = kernel_rows.block(kernel_rows.points(kept), rows=kept)
            self.K += added

    def between(self, left: Array, right: Array) -> Array:
        """Kernel values of rows with others."""
        if self.K is not None:
            kept: Array = self.K[self.places[left][:, None], self.places[right]]
            return kept
        values = self.kernel_rows.block(self.kernel_rows.points(right), rows=left)
        values += self.added
        return values

    def diagonal(self, rows: Array) -> Array:
        """Kernel values of rows with themselves."""
        if self.K is not None:
            kept: Array = self.K.diagonal()[self.places[rows]]
            return kept
        return self.kernel_rows.diag(rows) + self.added


class Span:
    """The span of some rows, from which others have a distance.

    Parameters
    ----------
    values : Values
    rows : int64 ndarray
        F, ascending.
    softness : float
        2δ/C.
    has_border : bool
        Whether the intercept is free.
    """

    def __init__(self, values: Values, rows: Array, softness: float, has_border: bool) -> None:
        self.values, self.rows, self.softness = values, rows, softness
        K = values.between(rows, rows)
        if has_border:  # about the mean of F, which changes no distance: values far from 0 would drown it in rounding
            self.means = K.mean(axis=0)
            self.total = float(self.means.mean())
            K += self.total - self.means[:, None] - self.means
        K.ravel()[:: len(rows) + 1] += softness + RIDGE * float(K.diagonal().max())
        self.L = cholesky(K, lower=True, overwrite_a=True, check_finite=False)
        self.border = None
        if has_border:
            self.border = solve_triangular(self.L, np.ones(len(rows)), lower=True, check_finite=False)

    def squares(self, rows: Array) -> Array:
        """S² of ascending rows, in F or not."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        is_own = self.rows[at] == rows
        found = np.empty(len(rows))
        if not is_own.all():
            found[~is_own] = self._of_others(rows[~is_own])
        if is_own.any():
            found[is_own] = self._of_own()[at[is_own]]
        return np.maximum(found, 0.0)

    def _of_others(self, rows: Array) -> Array:
        across, own = self.values.between(self.rows, rows), self.values.diagonal(rows)
        if self.border is not None:
            means = across.mean(axis=0)
            across += self.total - self.means[:, None] - means
            own = own - 2.0 * means + self.total
        across = solve_triangular(self.L, across, lower=True, overwrite_b=True, check_finite=False)
        rest: Array = own - np.einsum("ij,ij->j", across, across)
        if self.border is not None:
            rest += (1.0 - self.border @ across) ** 2 / (self.border @ self.border)
        return rest

    def _of_own(self) -> Array:
        half, _ = dtrtri(self.L, lower=1)
        diagonal = np.einsum("ij,ij->j", half, half)  # of the inverse, L⁻ᵀ L⁻¹
        if self.border is not None:
            diagonal -= (self.border @ half) ** 2 / (self.border @ self.border)
        found: Array = 1.0 / np.maximum(diagonal, np.finfo(float).tiny) - self.softness
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
        Support vectors and rows that are left out, ascending.
    v, size, off : ndarrays
        Their dual variables, the largest that these may be, and how far scores are from where the loss has its kink
        (support vectors that are not left out: infinite).
    unit : float
        What moves are large or small beside.
    """

    values: Values
    has_border: bool
    rows: Array
    v: Array
    size: Array
    off: Array
    unit: float = 1.0

    def moves(
        self, places: Array, band: tuple[float, float] | None, own: LeaveOneOutSettings, rng: np.random.Generator
    ) -> tuple[Array, tuple[float, float] | None]:
        """v_i S_i² of the rows at ``places``, and the band (δ, 2δ/C) that was found or given."""
        moves, moved = np.zeros(len(places)), np.flatnonzero(self.v[places])
        if not len(moved):
            return moves, band
        at_bound = np.abs(self.v) >= (1.0 - AT_BOUND) * self.size
        free, bounded = np.flatnonzero((self.v != 0) & ~at_bound), np.flatnonzero(at_bound)
        is_soft = own.band > 0 and len(bounded) > len(free)
        if len(free) < 2:  # a free intercept needs one, and a machine at its bounds has none
            free = np.union1d(free, np.argsort(self.off, kind="stable")[:2])
        span = None
        if not is_soft or band is None:
            span = Span(self.values, self.rows[thinned(free, own.most_free, rng)], 0.0, self.has_border)
        if is_soft and band is None and span is not None:
            some = thinned(bounded, own.sample, rng)
            found = np.abs(self.v[some]) * span.squares(self.rows[some])
            delta = own.band * float(np.median(found))
            band = delta, 2.0 * delta / float(np.median(self.size[some]))
        if is_soft and band is not None:
            span = self.soft_span(*band, free, own, rng)
        assert span is not None
        found = self.v[places[moved]] * span.squares(self.rows[places[moved]])
        moves[moved] = self.softened(places[moved], found, free, own, rng)
        return moves, band

    def soft_span(
        self, delta: float, softness: float, free: Array, own: LeaveOneOutSettings, rng: np.random.Generator
    ) -> Span:
        """The span of the rows within a band, and of those that are free."""
        is_near = self.off <= delta
        is_near[free] = True
        near = thinned(np.flatnonzero(is_near), own.most_free, rng)
        return Span(self.values, self.rows[near], softness, self.has_border)

    def softened(
        self, places: Array, moves: Array, free: Array, own: LeaveOneOutSettings, rng: np.random.Generator
    ) -> Array:
        """Moves by wider bands, where they are so large that rows far from the kink would become free."""
        mean = float(np.abs(moves).mean())
        for _ in range(own.most_bands):
            if not own.band or mean <= own.large * self.unit:
                break
            delta = own.band * mean
            span = self.soft_span(delta, 2.0 * delta / float(np.median(self.size[places])), free, own, rng)
            found = self.v[places] * span.squares(self.rows[places])
            before, mean = mean, float(np.abs(found).mean())
            moves = found if mean < before else moves
            if mean > 0.5 * before:
                break
        return moves


def thinned(places: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many of the places, ascending."""
    return places if len(places) <= most else np.sort(rng.choice(places, most, replace=False))


class ScoreColumns:
    """The columns of scores of a fit, each a problem of its own.

    Parameters
    ----------
    problem : Problem
    fit : Fit
    rows : int64 ndarray
        Those to leave out, ascending.
    """

    def __init__(self, problem: Problem, fit: Fit, rows: Array) -> None:
        basis, self.problem, self.model = fit.basis_rows, problem, fit.model
        assert basis is not None
        self.own, self.pairs = problem.settings_of(LeaveOneOutSettings), problem.task.class_pairs()
        self.kernel_rows = replace(problem, precision="float64", kept=None).bind()
        self.known = np.union1d(rows, basis)
        self.is_kept = bool(self.pairs) and len(self.known) ** 2 <= self.own.most_values
        added = float(problem.intercept == "regularized")
        self.values = Values(self.kernel_rows, added, self.known if self.is_kept else None)
        self.of_basis = np.full(problem.rows.n_rows, -1)
        self.of_basis[basis] = np.arange(len(basis))
        self.place = np.full(problem.rows.n_rows, -1)
        self.place[rows] = np.arange(len(rows))
        if self.is_kept:
            self.scores = np.full((len(rows), self.model.coef.shape[1]), np.nan)
        else:
            points = self.kernel_rows.points(basis)
            self.scores = self.kernel_rows.scores(points, self.model.coef, rows=rows) + self.model.intercept

    def score(self, column: int, members: Array, v: Array) -> None:
        """Set the scores of a pair's own rows, from values that are kept."""
        rows, basis = members[self.place[members] >= 0], members[v != 0]
        found = self.values.between(rows, basis) @ v[v != 0]
        constant = self.model.intercept[column] - self.values.added * v.sum()
        self.scores[self.place[rows], column] = found + constant

    def problem_of(self, column: int) -> OneProblem:
        """The problem of a column."""
        labels, price = self.problem.examples.labels, self.problem.C * self.problem.examples.weights
        if self.pairs:
            a, b = self.pairs[column]
            members = self.known[(labels[self.known] == a) | (labels[self.known] == b)]
            target, size, epsilon, has_margin = np.where(labels[members] == a, 1.0, -1.0), price[members], 0.0, True
        else:
            members, dual = self.known, self.problem.task.row_dual(self.problem.examples, price)
            target, size = dual.target[members], np.maximum(dual.hi, -dual.lo)[members]
            epsilon, has_margin = dual.epsilon, not (self.problem.task.has_targets or dual.total)
        place, at = self.place[members], self.of_basis[members]
        v = np.where(at >= 0, self.model.coef[at, column], 0.0)
        if self.is_kept:
            self.score(column, members, v)
        residuals = np.abs(self.scores[place, column] - target)
        unit = 1.0 if has_margin else float(residuals[place >= 0].mean())
        off = np.where(place < 0, np.inf, np.abs(residuals - epsilon))
        is_free = self.problem.intercept == "free"
        return OneProblem(self.values, is_free, members, v, size, off, unit)


def leave_one_out(problem: Problem, fit: Fit, rows: Array) -> Array:
    """Scores (len(rows), n_outputs) of training rows, each by about the machine that was trained without it.

    In the column of a pair of classes only rows of these are sure to have one; others may have NaN.

    Parameters
    ----------
    problem : Problem
        What ``fit`` solved exactly: two classes, pairs of classes or a regression.
    fit : Fit
        With its ``basis_rows``. Its kernel evaluations are counted on.
    rows : int64 ndarray
        Ascending numbers of rows.
    """
    columns, rng = ScoreColumns(problem, fit, rows), np.random.default_rng(0)
    scores, band = columns.scores, None
    for column in range(scores.shape[1]):
        one = columns.problem_of(column)
        place = columns.place[one.rows]
        is_out = np.flatnonzero(place >= 0)
        moves, band = one.moves(is_out, band, columns.own, rng)
        scores[place[is_out], column] -= moves
    fit.counters["kernel_evals"] += columns.kernel_rows.counter.n
    return scores
