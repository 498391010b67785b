r"""An interior-point method for the dual, for problems on which steps on pairs of rows take too many.

A kernel matrix is ill-conditioned where features have very different scales, and then pairs take millions of steps for
some hundred rows. Newton's steps on the conditions of optimality do not mind. With v = Σ ± z in variables
0 ≤ z ≤ room, two for a row where −ε Σ |v| has a kink, these are

    ±(g − y) − ε = x − w,    w z = μ,    x (room − z) = μ,    balanced: Σ v = total,    μ → 0.

All but the rows is eliminated: (K + Θ⁻¹) dv = ρ − dy 1 with Θ diagonal. Of K = LL', a pivoted Cholesky factor, the rank
is small for linear kernels of few features and for many others, and with A = Θ^½ L

    (K + Θ⁻¹)⁻¹ = Θ^½ (I − A (I + A'A)⁻¹ A') Θ^½.

Where Σ v is kept, K is centred: g changes by a constant, and features far from 0 cost no digits. At the end variables
next to a bound are put on it, and the others are solved for.

Mehrotra, "On the Implementation of a Primal-Dual Interior Point Method", SIAM J. Optimization 1992; Fine, Scheinberg,
"Efficient SVM Training Using Low-Rank Kernel Representations", JMLR 2001.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from slimsvm.bases import IncompleteCholesky
from slimsvm.core.clock import is_time_over
from slimsvm.core.factors import PivotedCholesky, cholesky
from slimsvm.kernels import KernelRows
from slimsvm.lazy import made_once
from slimsvm.parts.dual_ascent.dual import Dual

Array = np.ndarray

# No recorded experiment settles these numbers. The most Newton steps, and the share of the way to the nearest bound
# that one takes.
ROUNDS, SHARE = 100, 0.99
# A step lowers μ to this share of itself, at most.
LEAST_SHARE = 1e-6
# Variables are put on their bounds once the gap is NEARLY times the objective. The method ends after PATIENCE rounds
# without a lower violation, which rounding then rules, or at ENOUGH times the tolerance.
NEARLY, PATIENCE, ENOUGH = 1e-4, 4, 1e-3
# How often the variables between their bounds are solved for with the others fixed.
POLISHES = 3
# The factor L replaces K if rows are more than FEW_ROWS and more than RANKS times its rank.
FEW_ROWS, RANKS = 128, 2
# Steps on pairs come first: at least STEPS_PER_ROW per row, and as many as take WAIT times as long as the method, whose
# cost is 2 n rank² + WORK entries of kernel rows.
STEPS_PER_ROW, WAIT, WORK = 20, 4, 2_500_000
# The most rows, and the bytes per kernel value: K as it is and centred, its factor twice, and that of Newton steps.
MOST_ROWS, BYTES = 4096, 48
# Of more rows L alone is kept: the bytes per number of it, with two copies; and the residual of a kernel value at which
# L ends, in roundings of the largest. Chosen, not measured.
COPIES, RESIDUAL = 24, 64
TINY = 1e-300


class FinalPoint(NamedTuple):
    """A dual point near the optimum."""

    # v, g: float64 (n,)
    v: Array
    g: Array
    violation: float


class Newton(ABC):
    """The linear systems of Newton steps, for a kernel matrix K that is centred or has the offset.

    ``mean`` (n,) is the mean kernel value of each row with all rows.
    """

    mean: Array
    keeps_values: ClassVar[bool]

    @property
    @abstractmethod
    def L(self) -> Array:
        """Return the low-rank factor of K: L Lᵀ = K up to rounding."""

    @abstractmethod
    def has_rank(self, most: float) -> bool:
        """Return whether the rank of K, up to rounding of kernel values, is at most so large."""

    @abstractmethod
    def block(self, rows: Array) -> Array:
        """Return K of some rows."""

    @abstractmethod
    def times(self, v: Array) -> Array:
        """Return K v."""

    @abstractmethod
    def scores(self, v: Array) -> Array:
        """Return the kernel values, without the offset, times v; where K is centred, up to a constant."""

    def solver(self, theta: Array) -> Callable[[Array], Array] | None:
        """Return a function that solves (K + Θ⁻¹) d = b, d_i = 0 where θ_i = 0; None if rounding leaves no factor."""
        rows = np.flatnonzero(theta)
        has_low_rank = len(rows) > max(FEW_ROWS, RANKS * self.L.shape[1])
        root = np.sqrt(theta[rows])
        A = self.L[rows] * root[:, None] if has_low_rank else np.zeros((0, 0))
        if has_low_rank:
            M = blas.dsyrk(1.0, A, trans=1, lower=1)
        else:
            M = self.block(rows) * root
            M *= root[:, None]
        M.flat[:: len(M) + 1] += 1.0
        factor = cholesky(M if has_low_rank else M.T, overwrite=True)
        if factor is None:
            return None

        def solve(b: Array) -> Array:
            x = root * b[rows]
            inner = lapack.dpotrs(factor, A.T @ x if has_low_rank else x, lower=1)[0]
            d = np.zeros(len(theta))
            d[rows] = root * (x - A @ inner if has_low_rank else inner)
            return d

        return solve


class DenseNewton(Newton):
    """The systems of so few rows that all values are kept, without the offset, and a low-rank factor if there is."""

    keeps_values = True

    def __init__(self, values: Array, dual: Dual):
        n, eps = len(values), np.finfo(values.dtype).eps
        self.values = np.asarray(values, np.float64)
        self.mean = self.values.mean(axis=0)
        if dual.balanced:
            self.K = self.values - self.mean
            self.K -= self.K.mean(axis=1)[:, None]
        else:
            self.K = self.values + dual.offset
        least = n * eps * float(np.diagonal(self.K).max(initial=0.0))
        self._factor = PivotedCholesky(self.K, least)

    def has_rank(self, most: float) -> bool:
        """Factor K as far as that."""
        self._factor.extend(int(most) + 1)
        return self._factor.rank is not None and self._factor.rank <= most

    @made_once
    def L(self) -> Array:
        """Return all columns of the factor."""
        self._factor.extend(len(self.K))
        rank = self._factor.n_columns
        L = np.empty((len(self.K), rank), order="F")
        L[self._factor.order] = np.tril(self._factor.L[:, :rank])
        del self._factor
        return L

    def block(self, rows: Array) -> Array:
        """Return their part of K."""
        found: Array = self.K if len(rows) == len(self.K) else self.K[np.ix_(rows, rows)]
        return found

    def times(self, v: Array) -> Array:
        """Return K v."""
        found: Array = self.K @ v
        return found

    def scores(self, v: Array) -> Array:
        """Return the kernel values times v."""
        found: Array = self.values @ v
        return found


class LowRankNewton(Newton):
    """The systems of many rows: L is computed from the kernel rows of its pivots, and stands for K.

    The memory is for L and two copies of it.
    """

    keeps_values = False

    def __init__(self, kernel_rows: KernelRows, dual: Dual, memory: float):
        self.kernel_rows, self.dual = kernel_rows, dual
        self._largest, self._tried = memory / (COPIES * kernel_rows.n_rows), 0
        self._L: Array = np.zeros((0, 0))

    def has_rank(self, most: float) -> bool:
        """Compute L if its rank is at most so large; it is looked for again once that has doubled."""
        n_columns = int(min(most, self._largest))
        if n_columns < max(1, 2 * self._tried):
            return False
        self._tried = n_columns
        rounding = RESIDUAL * float(np.finfo(self.kernel_rows.dtype).eps)
        factor = IncompleteCholesky(rounding).factorise(self.kernel_rows, n_columns + 1)[1]
        if factor.shape[1] > n_columns:
            return False
        L = factor.astype(np.float64)
        centre = L.mean(axis=0)
        self.mean = L @ centre
        if self.dual.balanced:
            L -= centre
        elif self.dual.offset:
            L = np.column_stack([L, np.full(len(L), np.sqrt(self.dual.offset))])
        self._L = L
        return True

    @property
    def L(self) -> Array:
        """Return the factor of a rank that `has_rank` found."""
        return self._L

    def block(self, rows: Array) -> Array:
        """Return their part of L Lᵀ."""
        L = self.L[rows]
        found: Array = L @ L.T
        return found

    def times(self, v: Array) -> Array:
        """Return K v."""
        found: Array = self.L @ (v @ self.L)
        return found

    def scores(self, v: Array) -> Array:
        """Return L Lᵀ v without what centring, or the offset, adds to it."""
        found: Array = self.times(v) + (self.mean if self.dual.balanced else -self.dual.offset) * v.sum()
        return found


class InteriorPoint:
    """The variables of the method; the module's docstring defines them, with g of the centred K."""

    def __init__(self, newton: Newton, dual: Dual):
        self.newton, self.dual = newton, dual
        # If Σ v is not 0, centring subtracts more than a constant from g.
        self.target = dual.target - dual.total * newton.mean if dual.total else dual.target
        sides = [np.flatnonzero(dual.hi > 0), np.flatnonzero(dual.lo < 0)]
        self.row = np.concatenate(sides)
        self.sign = np.repeat([1.0, -1.0], [len(side) for side in sides])
        self.room = np.concatenate([dual.hi[sides[0]], -dual.lo[sides[1]]])
        self.z, self.y = self.room * self._first_share(), 0.0
        self._note()
        self.y = float(np.median(self.g)) if dual.balanced else 0.0
        slopes = self._slopes()
        size = float(np.abs(slopes).mean()) or 1.0
        self.x, self.w = np.maximum(slopes, 0.0) + size, np.maximum(-slopes, 0.0) + size
        self.before = self.z, self.w, self.x

    def _first_share(self) -> float:
        """Return the share of every room to start with: the one that Σ v needs, or one that balances D's two parts."""
        if self.dual.total:
            return float(self.dual.total / self.room.sum())
        v = self._sums(self.sign * self.room)
        linear, square = abs(float(self.target @ v)), float(v @ self.newton.times(v))
        return 0.5 * float(np.sqrt(linear / square)) if 0 < linear < square else 0.5

    def _sums(self, values: Array) -> Array:
        """Return, for each row, the sum of ``values`` over its variables."""
        return np.bincount(self.row, weights=values, minlength=len(self.dual.target))

    def _slopes(self) -> Array:
        """Return the derivatives of D by z, without the bounds' part."""
        found: Array = self.sign * (self.g[self.row] - self.y) - self.dual.epsilon
        return found

    def _note(self) -> None:
        self.v = self._sums(self.sign * self.z)
        self.g = self.target - self.newton.times(self.v)

    @property
    def gap(self) -> float:
        """Return the gap between primal and dual value, relative to the dual's."""
        value = abs(self.dual.value(self.v, self.g))
        return float(self.w @ self.z + self.x @ (self.room - self.z)) / max(value, TINY)

    def step(self) -> float:
        """Take a predictor-corrector step; return its length as a share, 0 if rounding ends the method."""
        z, w, x, sign, row = self.z, self.w, self.x, self.sign, self.row
        left, slopes, missing = self.room - z, self._slopes(), self.dual.total - float(self.v.sum())
        D = w / z + x / left
        theta = self._sums(1.0 / D)
        solve = self.newton.solver(theta)
        if solve is None:
            return 0.0
        ones = solve(np.ones(len(theta))) if self.dual.balanced else None

        def direction(goal_w: Array, goal_x: Array) -> tuple[Array, Array, Array, float]:
            """Return the direction to w z = goal_w and x left = goal_x, to first order."""
            c, dy = slopes + goal_w / z - goal_x / left, 0.0
            pull = self._sums(sign * c / D)
            dv = solve(pull / np.maximum(theta, TINY))
            if ones is not None:
                dy = float((dv.sum() - missing) / ones.sum())
                dv -= dy * ones
            # K dv would multiply the rounding of variables far from their bounds, whose D is small.
            dz = (c - sign * ((pull - dv) / np.maximum(theta, TINY))[row]) / D
            return dz, (goal_w - w * dz) / z - w, (goal_x + x * dz) / left - x, dy

        def longest(dz: Array, dw: Array, dx: Array) -> float:
            return 1.0 / max(TINY, *(float(part.max()) for part in (-dz / z, dz / left, -dw / w, -dx / x)))

        zero = np.zeros_like(z)
        dz, dw, dx, _ = direction(zero, zero)
        share, mu = min(1.0, longest(dz, dw, dx)), float(w @ z + x @ left)
        after = float((w + share * dw) @ (z + share * dz) + (x + share * dx) @ (left - share * dz))
        goal = max((after / mu) ** 3, LEAST_SHARE) * mu / (2 * len(z))
        dz, dw, dx, dy = direction(goal - dw * dz, goal + dx * dz)
        share = min(1.0, SHARE * longest(dz, dw, dx))
        if not np.isfinite(share):
            return 0.0
        self.before = z, w, x
        self.z, self.w, self.x, self.y = z + share * dz, w + share * dw, x + share * dx, self.y + share * dy
        self._note()
        return share

    def on_bounds(self) -> FinalPoint:
        """Return the point with variables put on the bounds that they approach, and the others solved for."""
        dual, sign, row, room = self.dual, self.sign, self.row, self.room
        z, w, x = self.before
        is_low = (self.z / z < self.w / w) & (2 * self.z < room)
        is_high = ((room - self.z) / (room - z) < self.x / x) & (2 * self.z > room)
        free = ~(is_low | is_high)
        z = np.where(is_low, 0.0, np.where(is_high, room, self.z))
        if not self.newton.keeps_values:
            return self._with_weights(z, free)
        theta = self._sums(free / (self.w / self.z + self.x / (room - self.z)))
        solve = self.newton.solver(theta) if free.any() else None
        ones = solve(np.ones(len(theta))) if solve is not None and dual.balanced else None
        kink = dual.epsilon * self._sums(sign * free)
        best = self._outside(z)
        for _ in range(POLISHES):
            if solve is None:
                break
            pull = self._outside(z).g - kink
            pull -= np.average(pull, weights=theta) if dual.balanced else 0.0
            dv = solve(pull)
            if ones is not None:
                missing = dual.total - float(self._sums(sign * z).sum())
                dv -= (dv.sum() - missing) / ones.sum() * ones
            z = np.where(free, np.clip(z + sign * dv[row], 0.0, room), z)
            found = self._outside(z)
            best = found if found.violation < best.violation else best
        return best

    def _with_weights(self, z: Array, free: Array) -> FinalPoint:
        """Return the best point with Lᵀv as it is now, where others than the free variables are on their bounds.

        Lᵀv gives the margins of all rows, and where K is ill-conditioned the method knows it to more digits than v.
        """
        L, sign, row, room = self.newton.L, self.sign, self.row, self.room
        weights, scale = self.v @ L, np.linalg.norm(L, axis=0)
        best = self._outside(z)
        for _ in range(POLISHES):
            few = np.flatnonzero(free & (z > 0) & (z < room))
            reach = np.minimum(z, room - z)[few]
            v = self._sums(sign * z)
            sides = np.column_stack([L[row[few]] / scale, np.ones(len(few))]) * (sign[few] * reach)[:, None]
            missing = np.append((weights - v @ L) / scale, self.dual.total - v.sum())
            if not self.dual.balanced:
                sides, missing = sides[:, :-1], missing[:-1]
            change = np.linalg.lstsq(sides.T, missing, rcond=None)[0]
            z = z.copy()
            z[few] = np.clip(z[few] + reach * change, 0.0, room[few])
            found = self._outside(z)
            best = found if found.violation < best.violation else best
        return best

    def _outside(self, z: Array) -> FinalPoint:
        """Return the dual point of these variables, with its sum put right and g computed from kernel values."""
        dual = self.dual
        v = dual.feasible(self._sums(self.sign * z))
        g = dual.target - self.newton.scores(v) - dual.offset * v.sum()
        return FinalPoint(v, g, dual.slopes(v, g).violation)


class InteriorSwitch:
    """The switch from steps on pairs to the interior-point method, which is tried once.

    The factor of K is computed as far as a rank that the steps were many enough for, so that it never takes much longer
    than they did.

    Parameters
    ----------
    memory : float
        Bytes for kernel values and factors.
    kernel_rows : KernelRows or None, default=None
        Of more rows than all kernel values have room for; None: the method is for fewer.
    """

    def __init__(self, dual: Dual, memory: float, kernel_rows: KernelRows | None = None):
        n = len(dual.target)
        self.dual, self.memory, self.kernel_rows = dual, memory, kernel_rows
        self.newton: Newton | None = None
        self.keeps_values = n <= MOST_ROWS and BYTES * n**2 <= memory
        # The mass is no constraint here.
        self.is_open = not dual.mass and (self.keeps_values or kernel_rows is not None)

    def is_due(self, n_steps: int, work: int, values: Callable[[], Array]) -> bool:
        """Return whether the steps were many enough to switch; they went through ``work`` entries of kernel rows.

        ``values()`` are the kernel values of all rows, without the offset.
        """
        n = len(self.dual.target)
        if not self.is_open or n_steps < STEPS_PER_ROW * n or work < WAIT * WORK:
            return False
        if self.newton is None and self.keeps_values:
            self.newton = DenseNewton(values(), self.dual)
        elif self.newton is None:
            assert self.kernel_rows is not None
            self.newton = LowRankNewton(self.kernel_rows, self.dual, self.memory)
        return self.newton.has_rank(np.sqrt((work / WAIT - WORK) / (2 * n)))

    def solve(self, tol: float, gradient: Callable[[Array], Array] | None = None) -> FinalPoint | None:
        """Return the dual point with the least violation that the method reaches; None if it finds none in time.

        ``gradient`` returns g of a dual point, computed from kernel values; where there is none, the method has them.
        """
        newton, since = self.newton, 0
        best: FinalPoint | None = None
        self.newton, self.is_open = None, False
        assert newton is not None
        with np.errstate(all="ignore"):
            point = InteriorPoint(newton, self.dual)
            for _ in range(ROUNDS):
                if is_time_over():
                    break
                if since == PATIENCE or not point.step():
                    break
                if point.gap <= NEARLY:
                    found = point.on_bounds()
                    if best is None or found.violation < best.violation:
                        best, since = found, 0
                    else:
                        since += 1
                    if found.violation <= ENOUGH * tol:
                        break
        if best is None or gradient is None or newton.keeps_values:
            return best
        g = gradient(best.v)
        return FinalPoint(best.v, g, self.dual.slopes(best.v, g).violation)
