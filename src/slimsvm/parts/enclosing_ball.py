r"""The common part of core and ball vector machines: the L2-loss SVM as a ball around all rows.

    P(w, b) = ½ (‖w‖² + b²) + (C/2) Σ ω_i max(0, 1 − y_i f(x_i))²

Its dual, max Σ a_i − ½ a'Qa over a ≥ 0, Q_ij = y_i y_j (k(x_i, x_j) + 1) + δ_ij/(C ω_i), is that of the smallest ball
around points φ̃_i with φ̃_i'φ̃_j = Q_ij: a = α/q with α ≥ 0, Σα = 1 the weights of its centre and q = α'Qα, at which the
dual is worth 1/(2q). (Without an intercept Q has no 1.) A row's squared distance from the centre is

    q − 2 (Qα)_i + η,       radius² of the smallest ball around the rows of the core set = η − q,

with η = Q_ii where that is the same for all rows. Elsewhere (weights, kernels with k(x, x) not constant) η is the
largest of them, as in Tsang, Kwok, Zurada, "Generalized Core Vector Machines", IEEE TNN 2006.

Rows outside the ball, widened by 1 + ε, are searched for among 59 random ones: with a probability of 95 % one of them
is among the 5 % farthest. If none is outside, all rows are checked, so that a fit only ends when none is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.core.products import add_transposed
from slimsvm.kernels import KernelRows
from slimsvm.parts.dual_ascent.dual import Box, DualState
from slimsvm.parts.dual_ascent.kernel_values import PIECE, KernelTable, ValueSettings
from slimsvm.parts.dual_ascent.smo import KernelBlock, SetSettings, solve_set
from slimsvm.parts.problem import RANDOM_ACCESS, TWO_CLASSES, Need, Problem, check_count, check_needs, no_free_intercept
from slimsvm.parts.rounding import RoundingErrors, in_float64
from slimsvm.parts.run import Fit, Run, Status, model_over, reported
from slimsvm.parts.solver import Solver
from slimsvm.rows import in_pieces
from slimsvm.tasks import losses

Array = np.ndarray
# Float64 sums may round a bound by this share of it.
ROUNDING = 1e-12
# The rows by which a model is scaled if there is no time for all.
FEW_ROWS = 1000


class BallRun(Run):
    """The run on one problem. Its state is the core set's rows, their weights α, and q.

    ``latest`` (rows, α, q) is replaced as a whole, so that an interrupt leaves a model.
    """

    doing = "rows of the core set"

    def __init__(self, problem: Problem, epsilon: float, sample_size: int, state: DualState | None):
        self.problem, self.epsilon, self.sample_size = problem, epsilon, sample_size
        self.kernel_rows: KernelRows = problem.bind()
        self.rng = problem.generator()
        self.y = problem.examples.labels.astype(np.float64)
        self.offset = float(problem.intercept == "regularized")
        self.ridge = 1.0 / (problem.C * problem.examples.weights)
        self.diagonal = self.kernel_rows.diag() + self.offset + self.ridge
        self.eta = float(self.diagonal.max())
        self.pool: Array | None = None  # rows outside the ball at the last check of all rows
        self.converged = False
        if state is None:
            rows = np.array([self.rng.choice(np.flatnonzero(self.y == sign)) for sign in (1, -1) if sign in self.y])
            alpha = np.full(len(rows), 1.0 / len(rows))
        else:
            rows = np.flatnonzero(state.v)
            alpha = np.abs(state.v[rows]) / np.abs(state.v).sum()
        self.keep(rows, alpha, float(alpha @ self.products(rows, rows, alpha)))

    def keep(self, rows: Array, alpha: Array, q: float) -> None:
        """Go on from this centre; rounding cannot take q below what the ridge alone gives."""
        self.latest = rows, alpha, max(float(q), float(self.ridge[rows] @ alpha**2))

    # -- distances --------------------------------------------------------------------------------------------------

    def products(self, of: Array, rows: Array, alpha: Array) -> Array:
        """Return (Qα)_i of some rows, with α on ``rows``."""
        coef, sums = (alpha * self.y[rows])[:, None], np.zeros((len(of), 1))
        for part in in_pieces(len(of), PIECE // len(rows)):
            block = self.kernel_rows.block(self.kernel_rows.points(of[part]), rows=rows)
            add_transposed(block, coef, sums[part], self.kernel_rows.n_jobs)
        values = (sums[:, 0] + self.offset * coef.sum()) * self.y[of]
        order = np.argsort(rows)
        place = order[np.minimum(np.searchsorted(rows, of, sorter=order), len(rows) - 1)]
        found: Array = values + np.where(rows[place] == of, self.ridge[of] * alpha[place], 0.0)
        return found

    def all_products(self) -> Array:
        """Return (Qα)_i of all rows, computed in one fused pass."""
        rows, alpha, _ = self.latest
        coef = (alpha * self.y[rows])[:, None]
        values = self.kernel_rows.scores(self.kernel_rows.points(rows), coef)[:, 0].astype(np.float64)
        values = self.y * (values + self.offset * coef.sum())
        values[rows] += self.ridge[rows] * alpha
        found: Array = values
        return found

    def excess(self, products: Array, radius_squared: float, epsilon: float) -> Array:
        """Return by how much squared distances exceed that of the ball widened by 1 + ε."""
        return self.latest[2] - 2.0 * products + self.eta - (1.0 + epsilon) ** 2 * radius_squared

    def find_outside(self, radius_squared: float, epsilon: float, thorough: bool) -> tuple[int, float] | None:
        """Return the farthest row of a sample and its (Qα)_i if it is outside; ``thorough`` goes on to all rows."""
        rows, alpha, _ = self.latest
        for pool in (self.pool, None):
            if pool is None:
                sample = self.rng.integers(0, self.kernel_rows.n_rows, self.sample_size)
            elif len(pool) <= self.sample_size:
                sample = pool
            else:
                sample = self.rng.choice(pool, self.sample_size, replace=False)
            products = self.products(sample, rows, alpha)
            excess = self.excess(products, radius_squared, epsilon)
            worst = int(np.argmax(excess))
            if excess[worst] > 0:
                return int(sample[worst]), float(products[worst])
            self.pool = None
        if not thorough:
            return None
        products = self.all_products()
        excess = self.excess(products, radius_squared, epsilon)
        worst = int(np.argmax(excess))
        if excess[worst] <= 0:
            return None
        self.pool = np.flatnonzero(excess > 0)
        return worst, float(products[worst])

    # -- the end ----------------------------------------------------------------------------------------------------

    def record(self, **more: Any) -> dict[str, Any]:
        """Return a record of the history, with bounds for the SVM's own problem."""
        _, alpha, q = self.latest
        return {
            "objective": None,
            "lower_bound": None,
            "gap": None,
            "own_lower_bound": 0.5 / q,
            "n_basis": int(np.count_nonzero(alpha)),
            "training_error": None,
        } | more

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the model scaled to the least P, its hinge objective, and objective and bound of its own problem."""
        problem, (rows, alpha, q) = self.problem, self.latest
        evals = self.kernel_rows.counter.n
        kept = np.argsort(rows)
        kept = kept[alpha[kept] > 0]
        rows, a = rows[kept], alpha[kept] / q
        coef = (a * self.y[rows])[:, None]
        intercept = self.offset * coef.sum()
        kernel_rows, plain, n = self.kernel_rows, np.zeros(0), self.kernel_rows.n_rows
        points, y, examples, share = kernel_rows.points(rows), self.y, problem.examples, 1.0

        def look(at: Array | None = None) -> Array:
            found: Array = kernel_rows.scores(points, coef, rows=at).astype(np.float64) + intercept
            return found

        scores: Any = reported(problem, status, len(rows), look)
        is_whole = scores is not None
        own = scores[rows] if is_whole else look(rows)
        if not is_whole:  # no time for more rows
            some = np.arange(0, n, -(-n // FEW_ROWS))
            scores, y, examples = look(some), y[some], examples.take(some)
            share = problem.examples.total_weight / examples.total_weight
        norm_squared = float(coef[:, 0] @ own[:, 0])  # of w and b
        scale = best_scale(y * scores[:, 0], norm_squared, share * problem.C * examples.weights)
        coef, intercept, scores, norm_squared = scale * coef, scale * intercept, scale * scores, scale**2 * norm_squared
        task = problem.task
        bound = self.own_bound(rows, a)
        loss = losses(task.augment(scores, plain, examples), scores, plain, examples)
        slack, unknown = np.maximum(0.0, 1.0 - y * scores[:, 0]), 0.0 if is_whole else np.nan
        own_objective = 0.5 * norm_squared + 0.5 * problem.C * float(examples.weights @ slack**2) + unknown
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": kernel_rows.counter.n - evals,
            "own_objective": own_objective,
            "own_lower_bound": min(bound, own_objective),  # rounding can make them cross
        }
        model = model_over(kernel_rows, kernel_rows.basis(rows), coef, np.array([intercept]))
        objective = 0.5 * norm_squared + problem.C * float(examples.weights @ loss) + unknown
        v = np.zeros(kernel_rows.n_rows)
        v[rows] = coef[:, 0]
        state = DualState(v, problem.C, task, problem.examples)
        return Fit(model, status, objective, None, history, counters, state, rows)

    def own_bound(self, rows: Array, a: Array) -> float:
        """Lower bound ½ (Σa)² / a'Qa of the own problem.

        Any a ≥ 0 gives one. Kernel values are float64 here: those of float32 can put it above the optimum.
        """
        exact, of = in_float64(self.kernel_rows, rows)
        coef = (a * self.y[rows])[:, None]
        scores = exact.scores(exact.points(of), coef, rows=of)[:, 0] + self.offset * coef.sum()
        square = float(coef[:, 0] @ scores) + float(self.ridge[rows] @ a**2) + RoundingErrors(exact, of).of(coef)
        return 0.5 * float(a.sum()) ** 2 / square * (1.0 - ROUNDING)


def best_scale(margins: Array, norm_squared: float, C_of_row: Array) -> float:
    """Return the s > 0 with the least ½ s² ‖w‖² + ½ Σ C_i max(0, 1 − s y_i f_i)²; at the optimum of P it is 1.

    Its slope is piecewise linear and increasing: Newton's steps within a bracket. Where no s > 0 is better than 0 the
    model stays as it is.
    """
    if float(C_of_row @ margins) <= 0.0:
        return 1.0
    low, high, scale = 0.0, np.inf, 1.0
    for _ in range(100):
        short = scale * margins < 1.0
        m, C = margins[short], C_of_row[short]
        curvature = norm_squared + float(C @ m**2)
        slope = scale * curvature - float(C @ m)
        if slope >= 0.0:
            high = scale
        if slope <= 0.0:
            low = scale
        if low == high or curvature <= 0.0:
            break
        target = scale - slope / curvature
        if not low < target < high:
            target = 0.5 * (low + high) if np.isfinite(high) else 2.0 * low
        if abs(target - scale) <= 1e-14 * scale:
            break
        scale = target
    return scale


NEEDS = (
    Need(
        lambda problem: not problem.task.has_costs,
        "{solver} solves two-class problems, found costs {problem.task.cost_negative}, {problem.task.cost_positive} "
        "that are not both 1; class_weight weighs the classes",
    ),
    no_free_intercept("the ball's centre has the intercept in it"),
)


class BallSolver(Solver):
    """The base class of both solvers: it holds the parameters and checks the problem."""

    takes_label_sets = False
    epsilon: float
    sample_size: int

    def check(self, problem: Problem, state: DualState | None) -> None:
        """Check the parameters, and that the problem is one of two classes."""
        name = type(self).__name__
        check_needs(name, problem, TWO_CLASSES, RANDOM_ACCESS)
        if state is not None:
            if not isinstance(state, DualState):
                raise ValueError(f"{name} can only be warm-started from its own fit, found {type(state).__name__}")
            state.check(problem.task, problem.examples)
        check_needs(name, problem, *NEEDS)
        if not 0 < self.epsilon < 1:
            raise ValueError(f"epsilon must be between 0 and 1, found {self.epsilon!r}")
        check_count("sample_size", self.sample_size)


# -- The smallest ball around all rows, found by growing a core set: what `CVM` does, and `BVM` at its end -------------

# Share of the memory limit for Q between the rows of the core set.
TABLE_SHARE = 0.75
# The ball around S is computed to this share of what ε allows.
INNER_SHARE = 0.5
STEPS_PER_ROW = 100


class SmallestBallRun(BallRun):
    """The run that grows a core set S. It keeps Q between the rows of S in a table, and g = −Qα."""

    def __init__(self, problem: Problem, epsilon: float, sample_size: int, state: DualState | None):
        super().__init__(problem, epsilon, sample_size, state)
        slots = problem.settings_of(ValueSettings).first_slots
        self.table = KernelTable(self.kernel_rows, int(TABLE_SHARE * problem.memory_limit), "CVM", slots)
        rows, alpha, _ = self.latest
        self.g = np.empty(len(rows))
        for part in in_pieces(len(rows), PIECE // len(rows)):
            self.insert(rows[part])
        for part in in_pieces(len(rows), PIECE // len(rows)):
            self.g[part] = -(self.table.values[part, : len(rows)].astype(np.float64) @ alpha)
        self.keep(rows, *self.solve(alpha))

    def insert(self, rows: Array) -> None:
        """Append rows to the table, and turn their part of K into Q."""
        old = self.table.top
        slots = self.table.add(rows, np.arange(old))
        Q, size = self.table.values, old + len(rows)
        y = self.y[self.table.row[:size]]
        new = Q[old:size, :size]
        new[:] = y[old:, None] * (new + self.offset) * y
        Q[:old, old:size] = new[:, :old].T
        Q[slots, slots] += self.ridge[rows]

    def solve(self, alpha: Array) -> tuple[Array, float]:
        """Find the smallest ball around S, starting from α; Σα stays 1."""
        size = len(alpha)
        alpha, g = alpha.copy(), self.g.copy()
        tol = INNER_SHARE * self.epsilon * (self.eta + min(float(alpha @ g), 0.0))
        solve_set(
            KernelBlock(self.table.values, np.arange(size)),
            g,
            alpha,
            Box(np.zeros(size), np.ones(size), balanced=1),
            tol=tol,
            max_steps=STEPS_PER_ROW * size,
            settings=self.problem.settings_of(SetSettings),
        )
        alpha /= alpha.sum()
        self.g = g
        return alpha, -float(alpha @ g)

    def step(self) -> dict[str, Any]:
        """Add one row to the core set, or end."""
        rows, alpha, q = self.latest
        radius_squared = self.eta - q
        found = self.find_outside(radius_squared, self.epsilon, thorough=True)
        # The farthest row is in S already: only rounding is left to gain.
        if found is None or found[0] in rows:
            self.converged = True
        else:
            row, product = found
            self.insert(np.array([row]))
            self.g = np.append(self.g[: len(rows)], -product)
            self.keep(np.append(rows, row), *self.solve(np.append(alpha, 0.0)))
        return self.record(radius=float(np.sqrt(max(self.eta - self.latest[2], 0.0))))
