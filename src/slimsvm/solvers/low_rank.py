r"""Low-rank training: a basis chosen beforehand, then the convex problem in its coefficients.

Problem, convex, over the span of b_1, …, b_k:

    min over β, b   ½ Σ_c β_cᵀ K_BB β_c + ½ b² + C Σ_e ω_e ℓ_e(K_XB β + b)

    choose b_1, …, b_k: uniformly drawn rows (Nyström), k-means centres, pivots of an incomplete Cholesky factor
    K_BB = L Lᵀ; coordinates z_i = L⁻¹ k_B(x_i), so that ½‖u‖² with β = L⁻ᵀ u is the penalty
    Newton's method on smoothed losses, first on a sample of the rows, until objective − bound ≤ tolerance

Stopping rule: objective − bound within the span ≤ tol·C₁ and ≤ tol_relative·objective. The bound holds for all models
over this basis (``bound_in_basis``); nothing here bounds the kernel's own optimum.

Williams and Seeger, "Using the Nyström Method to Speed Up Kernel Machines", NIPS 2000; Fine and Scheinberg, "Efficient
SVM Training Using Low-Rank Kernel Representations", JMLR 2001; Zhang, Tsang and Kwok, "Improved Nyström Low-Rank
Approximation and Error Analysis", ICML 2008 (the bases); `parts.span.smoothed_newton` (the method).

Parts: `bases`, `parts.span.whitened_span` (coordinates, in memory or computed again on every pass),
`parts.span.smoothed_newton`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slimsvm.bases import get_basis
from slimsvm.lazy import made_once
from slimsvm.model import KernelExpansion
from slimsvm.parts.certificate import residuals
from slimsvm.parts.problem import Problem, check_count, check_number, check_smoothable, check_vectors
from slimsvm.parts.resuming import RunState, asked_of, generator_at
from slimsvm.parts.rounding import DualPoint
from slimsvm.parts.run import GAP_ROUNDING, Best, Fit, Run, Status, model_over, reported_objective, warn_of_a_gap
from slimsvm.parts.solver import Solver
from slimsvm.parts.span.smoothed_newton import ConvexFinish
from slimsvm.parts.span.whitened_span import subspace
from slimsvm.rows import is_sparse

Array = np.ndarray


@dataclass(frozen=True)
class LowRankState:
    """The model of a fit, for a warm start, and the training rows that its vectors are (None: new vectors)."""

    model: KernelExpansion
    basis_rows: Array | None


class LowRankRun(Run):
    """The run: Newton steps over a fixed basis. A large problem begins with steps on a sample of its rows."""

    doing = "solving for coefficients"
    can_go_on = True

    def __init__(self, problem: Problem, solver: LowRank, state: LowRankState | RunState | None):
        self.is_whole = solver.max_basis is None
        self.max_basis = problem.rows.n_rows if solver.max_basis is None else solver.max_basis
        self.problem, self.solver = problem, solver
        exact = replace(problem, precision="float64") if self.is_whole and problem.precision == "auto" else problem
        self.kernel_rows = exact.bind()
        self.rng, start, newton = problem.generator(), None, None
        if isinstance(state, RunState):
            self.basis, self.basis_rows = state.values["basis"], state.values["basis_rows"]
            self.rng, newton = generator_at(state.values["random"]), state.values["newton"]
        elif state is None:
            self.basis, self.basis_rows = self._choose(self.rng)
        else:
            self.basis, self.basis_rows = state.model.basis, self._still_rows(state)
            self._check_size(state.model.n_basis, state.model.basis.shape[1], "the earlier fit")
            start = state.model.coef, state.model.intercept
            if start[0].shape[1] != problem.task.n_outputs:
                raise ValueError(
                    f"the earlier fit had {start[0].shape[1]} outputs, this problem has {problem.task.n_outputs}"
                )
        space = subspace(problem, self.kernel_rows, self.basis)
        self.tolerances = problem.tolerances(solver.tol_relative, space.n_vectors)
        self.finisher = ConvexFinish(problem, space, self.rng, *self.tolerances, start, saved=newton)
        self.bound, self.converged = -np.inf, False
        self.point: DualPoint | None = None
        self.known: Best | None = None  # whose objective is over all rows at the problem's C

    def distance(self, record: dict[str, Any]) -> float | None:
        """Return the gap after an iteration, in units of the tolerance."""
        gap, allowed = record["gap_in_basis"], self.finisher.tolerance()
        return None if gap is None or not allowed > 0 else gap / allowed

    # -- the basis ------------------------------------------------------------------------------------------------

    def _choose(self, rng: np.random.Generator) -> tuple[Any, Array | None]:
        """Choose the basis vectors; return them with their training rows, if they are rows."""
        rows, k, basis = self.kernel_rows, self.max_basis, self.solver.basis
        if isinstance(basis, np.ndarray) or is_sparse(basis):
            basis = rows.kernel.check_basis(basis, rows.n_features)
            check_vectors("basis", basis)
            self._check_size(basis.shape[0], basis.shape[1], "basis")
            return basis, None
        chooser = get_basis(basis)
        needed = chooser.bytes_needed(rows, k)
        if needed > self.problem.memory_limit:
            raise ValueError(
                f"{chooser!r} needs {needed / 1e6:.0f} MB to choose {k} of {rows.n_rows} rows, memory_limit allows "
                f"{self.problem.memory_limit / 1e6:.0f}: choose basis='nystrom', a smaller max_basis or, for "
                "IncompleteCholesky, a sample_size"
            )
        labels = self.problem.examples.labels if self.problem.task.has_class_scores else None
        chosen = chooser.choose(rows, k, rng, labels)
        return (rows.basis(chosen), chosen) if chosen.ndim == 1 else (chosen, None)

    def _check_size(self, k: int, d: int, name: str) -> None:
        if not 1 <= k <= self.max_basis:
            raise ValueError(f"{name} has {k} vectors, max_basis={self.max_basis}")
        expected = self.kernel_rows.basis(np.zeros(0, np.int64)).shape[1]
        if d != expected:
            raise ValueError(f"{name} has vectors of {d} features, the rows have {expected}")

    def _still_rows(self, state: LowRankState) -> Array | None:
        """Return which training rows an earlier fit's vectors are, if this problem has the same rows there."""
        index, basis = state.basis_rows, state.model.basis
        if index is None or index.max(initial=-1) >= self.kernel_rows.n_rows:
            return None
        now: Any = self.kernel_rows.basis(index)
        if now.shape != basis.shape:
            return None
        same = (now != basis).nnz == 0 if is_sparse(now) and is_sparse(basis) else np.array_equal(now, basis)
        return index if same else None

    # -- steps ----------------------------------------------------------------------------------------------------

    def step(self) -> dict[str, Any]:
        """Take one Newton step; on a sample of the rows its objective and bound are not known."""
        known = self.finisher.step()
        gap = known.pop("gap")
        record = known | {"lower_bound": None, "gap": None, "gap_in_basis": gap, "training_error": None}
        record["n_basis"] = self.finisher.whole.rank
        if gap is not None:
            record["training_error"] = self.finisher.training_error()
            self.bound, self.converged, self.known = self.finisher.bound, self.finisher.converged, self.finisher.best
        return record

    @made_once
    def _asked(self) -> dict[str, Any]:
        return asked_of(self.problem, "LowRank", self.solver.get_params(deep=False))

    def so_far(self) -> Fit:
        """Return the best point as a model without an objective, with the state to resume from; see `Run`."""
        newton, state = self.finisher.saved_state(), None
        if newton is not None:
            random = self.rng.bit_generator.state
            values = {"basis": self.basis, "basis_rows": self.basis_rows, "random": random, "newton": newton}
            state = RunState(self._asked, values)
        counters = {"kernel_evals": self.kernel_rows.counter.n}
        model = self._model(*self.finisher.whole.coefficients(self.finisher.best.found.u))
        return Fit(model, Status.STOPPED, np.nan, None, [], counters, state)

    def _model(self, coef: Array, intercept: Array) -> KernelExpansion:
        return model_over(self.kernel_rows, self.basis, coef, intercept)

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best point as a model, without vectors that lie in the span of the others."""
        finisher, evals = self.finisher, self.kernel_rows.counter.n
        u = finisher.best.found.u
        if finisher.best is self.known:
            objective = finisher.best.objective
        else:
            look = partial(self._objective, u)
            objective = reported_objective(self.problem, status, finisher.whole.rank, look)
        if self.converged:
            warn_of_a_gap("LowRank", objective, self.bound, self.tolerances[1], self.kernel_rows.dtype, 3)
        coef, intercept = finisher.whole.coefficients(u)
        used = coef.any(axis=1)
        rows = None if self.basis_rows is None else self.basis_rows[used]
        whole = self._model(coef, intercept)
        model = replace(whole, basis=self.basis[used], coef=coef[used])
        counters = {
            "kernel_evals": evals,
            "report_kernel_evals": self.kernel_rows.counter.n - evals,
            "bound_in_basis": self.bound if np.isfinite(self.bound) else None,
        }
        bound = None if not self.is_whole else self._bound_of_all(status)
        return Fit(model, status, objective, bound, history, counters, LowRankState(whole, self.basis_rows), rows)

    def _bound_of_all(self, status: Status) -> float:
        """Return a lower bound on the objective of all models: the dual value of the residuals at the last point. A fit
        that was cut short has 0, which is below every loss.
        """
        if status.is_cut or self.finisher.on_the_way:
            return 0.0
        finisher, rows = self.finisher, self.kernel_rows
        V, constant = residuals(self.problem, finisher.passes.joined(finisher.point.scores), finisher.tau)
        F = rows.scores(rows.points(np.arange(rows.n_rows)), V)
        offset = float(self.problem.intercept == "regularized") * float(np.sum(V.sum(axis=0) ** 2))
        seen = float(np.sum(V * F))
        t = min(1.0, max(0.0, constant / (seen + offset))) if seen + offset > 0 else 1.0
        used = np.flatnonzero(V.any(axis=1))
        self.point = DualPoint(used, t * V[used], t * constant - 0.5 * t**2 * offset, t**2 * seen)
        return self.point.rest - 0.5 * self.point.seen

    def dual_point(self) -> DualPoint | None:
        """Return the dual point that the bound on all models belongs to."""
        return self.point

    def allowed(self, objective: float) -> float:
        """Return the gap within the basis that the tolerance, or rounding, allows."""
        return max(self.tolerances[1], GAP_ROUNDING[self.kernel_rows.dtype]) * abs(objective)

    def _objective(self, u: Array) -> float:
        """Return ½‖w‖² + C Σ ω_e ℓ_e over all rows."""
        norm = 0.5 * float(np.sum(self.finisher.penalty * u * u))
        return norm + self.problem.C * self.finisher.loss_at(u)


@dataclass(eq=False, repr=False)
class LowRank(Solver):
    """A basis fixed before training, and the convex problem in its coefficients, solved to a gap.

    For every kernel; two classes, several (Crammer and Singer, one basis for all) and regression; all three kinds of
    intercept (a free one for two classes and regression). If the kernel values of all rows exceed half of
    ``memory_limit``, they are computed again in every pass.

    Parameters
    ----------
    max_basis : int or None, default=500
        Number of basis vectors; fewer if the data have fewer distinct rows, or if vectors lie in the others' span.
        None: all rows, in float64. The model is then the kernel's own optimum, and ``lower_bound_`` bounds it.
    basis : {"nystrom", "kmeans", "incomplete-cholesky"}, Basis or array of shape (k, d), default="nystrom"
        Uniformly drawn rows, k-means centres of each class, greedy pivots, an object of `slimsvm.bases` with
        its own parameters, or the vectors themselves (at most ``max_basis``).
    tol_relative : float, default=1e-3
        Gap between the objective and the bound on all models over this basis, as a share of the objective. Up to
        2,000 rows with ``precision="auto"`` the problem is solved to 1e-10. It is solved to 1e-3 or less if rows times
        outputs are more than 2,000, or if there are several outputs and vectors times outputs are more than 500.

    Notes
    -----
    Records in ``history_`` have ``bound_in_basis`` and ``gap_in_basis``. Both, and ``objective``, are None while steps
    use a sample of the rows (``sampled_rows``). A warm start keeps the basis of the earlier fit.

    References
    ----------
    Williams, Seeger: Using the Nyström Method to Speed Up Kernel Machines, NIPS 2000.

    Fine, Scheinberg: Efficient SVM Training Using Low-Rank Kernel Representations, JMLR 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import SVC, LowRank
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=LowRank(max_basis=30, basis="kmeans"), random_state=0).fit(scale(X), y)
    >>> clf.n_basis_, bool(clf.score(scale(X), y) > 0.97)
    (30, True)
    """

    takes_smooth = True

    max_basis: int | None = 500
    basis: Any = "nystrom"
    tol_relative: float = 0.001

    def start(self, problem: Problem, state: LowRankState | RunState | None = None) -> LowRankRun:
        """Check parameters and set the run up."""
        if self.max_basis is not None:
            check_count("max_basis", self.max_basis)
        check_number("tol_relative", self.tol_relative, "a positive number", positive=True)
        if isinstance(state, RunState):
            state.check(problem, "LowRank", self.get_params(deep=False))
        elif state is not None and not isinstance(state, LowRankState):
            raise ValueError(f"LowRank can only be warm-started from a LowRank fit, found {type(state).__name__}")
        check_smoothable(problem)
        return LowRankRun(problem, self, state)
