r"""Cutting-plane subspace pursuit.

Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training", ECML/MLJ 2009, Algorithm 2.

Problem: min ½‖w‖² + C₁ · mean loss over w in the span of at most `max_basis` vectors φ(b_j), found while training:

    repeat
        g = exact cut at w, ŵ its point; while the basis B has room: add the preimage of g − ĝ to B
        ĝ_j = projections of all live cuts onto span(B); G_jk = ⟨ĝ_j, ĝ_k⟩; solve the QP; w = Σ α_j ĝ_j
    until B is full (or nothing new is found; the paper does not wait for that) and objective − QP value ≤ tolerance

Since ⟨w, g⟩ = ⟨w, ĝ⟩ for every w in span(B), the QP's value bounds the objective *within that span* from below; the
history has it as ``bound_in_basis``. Against the kernel's own optimum the paper guarantees objective ≤ optimum +
C₁ (δ √(2 C₁) + ε), δ the largest residual ‖g − ĝ‖.

This is ``method="cutting-planes"``. The default takes Newton's method in span(B) in place of cuts, where the task has a
smoothed loss.

Parts of both: a preimage strategy of `bases.preimage`. Of cutting planes: the exact oracle, the loop and the line
search of `parts.cuts.cutting_plane_loop`; `parts.cuts.score_books` for projections and Cholesky factor. Of
Newton's method: `parts.pursuit`, with a closing descent, and `parts.principal_directions` for wide rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from slimsvm.bases.preimage import Residual, get_preimage
from slimsvm.model import KernelExpansion
from slimsvm.parts.cuts import Cut, CutsState, ExactOracle, Point, ProjectedScores
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneRun, CuttingPlaneSolver, Plan
from slimsvm.parts.descent.first_basis import learning_part
from slimsvm.parts.principal_directions import search_for
from slimsvm.parts.problem import Problem, check_choice, check_flag, check_number, has_smoothed_rows
from slimsvm.parts.pursuit import (
    ClosingSettings,
    OverAllRows,
    PursuitPlan,
    PursuitRun,
    PursuitState,
    most_lost,
    n_sweeps,
)
from slimsvm.parts.run import Best, Fit, Status, model_over

Array = np.ndarray

# Vectors in a row that lie in the span of the basis before it counts as complete.
MAX_REFUSED = 10


class CPSPRun(CuttingPlaneRun):
    """The cutting-plane loop of `CuttingPlaneRun`, with cuts projected onto a basis."""

    def __init__(self, problem: Problem, solver: CPSP, state: CutsState | None):
        self.solver, self.preimage = solver, get_preimage(solver.preimage)
        self.measured: tuple[Cut, float] | None = None  # a cut and its squared length
        plan = Plan(solver.tol_relative, solver.max_idle, solver.step == "line-search", solver.overshoot)
        super().__init__(problem, ExactOracle(), plan, None)
        # Whitened coordinates, constant and point of the best point: one tuple, which an interrupt cannot tear.
        self.whole = np.zeros_like(self.book.coordinates), np.zeros(self.task.n_outputs), self.point
        # Full steps may lead away from the best point: this keeps the lowest objective, and the point that has it.
        self.lowest = Best(np.inf, self.whole)
        self.lower_bound = None
        if state is not None:
            self.restore(state)

    def make_book(self, intercept: bool) -> ProjectedScores:
        """Make the book of cuts projected over a basis that grows by preimages of their residuals."""

        def find(cut: Cut, basis: Any, basis_coef: Array) -> Any:
            residual = Residual(self.kernel_rows, cut.rows, cut.coef, basis, basis_coef)
            return self.preimage.find(residual, self.rng)

        most, per_cut = self.solver.max_basis, self.solver.vectors_per_cut
        if per_cut is None:
            per_cut = 1 if self.solver.delta is None else most
        return ProjectedScores(
            self.kernel_rows, self.task.n_outputs, intercept, most, per_cut, find, self._is_explained
        )

    def _is_explained(self, cut: Cut, projected: float) -> bool:
        """Return whether the cut's residual is no longer than ``delta``."""
        delta = self.solver.delta
        if delta is None:
            return False
        if self.measured is None or self.measured[0] is not cut:  # a value for each pair of its rows
            whole = Residual(self.kernel_rows, cut.rows, cut.coef, None, np.zeros((0, self.task.n_outputs)))
            self.measured = cut, whole.squared_norm(0.0)
        return bool(self.measured[1] - projected <= delta**2)

    def step(self) -> dict[str, Any]:
        """Do one iteration; the record adds the basis, the bound within it, and what the last cut's vectors gained."""
        here = self.whole
        record = super().step()
        if self.centre is None:
            self.lowest = self.lowest.or_lower(record["objective"], here, or_equal=True)
        record["bound_in_basis"] = record["model_value"]
        record["n_basis"] = self.book.n_basis
        record["residual_gain"], record["refused"] = self.book.gained, self.book.refused
        record["delta"] = None
        if self.solver.record_delta and not self.converged:
            cut, z = self.working_set.cuts[-1], self.book.z[-1]
            residual = Residual(self.kernel_rows, cut.rows, cut.coef, None, z)
            record["delta"] = np.sqrt(residual.squared_norm(float(np.sum(z**2))))
        return record

    def within_tolerance(self, objective: float, factor: float = 1.0) -> bool:
        """Apply the usual rule; a basis that must be filled meets it only once it is full or nothing new is found."""
        exhausted = not self.solver.fill_basis or self.book.is_full or self.book.refused >= MAX_REFUSED
        return exhausted and super().within_tolerance(objective, factor)

    def resolve(self) -> None:
        """Solve the QP and move; the best point's coordinates follow its step."""
        super().resolve()
        k = self.centre.step if self.centre is not None else 1.0
        coordinates, constant, _ = self.whole
        coordinates = (1 - k) * coordinates + k * self.book.coordinates
        constant = (1 - k) * constant + k * self.book.constant
        self.whole = coordinates, constant, self.target if self.centre is None else self.centre.now.point

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """Return the best point over the basis, or the last one."""
        only_last = self.centre is not None or self.solver.keep == "last"
        ends = (self.whole,) if only_last else (self.whole, self.lowest.found)
        objective, (coordinates, constant, point) = min(
            ((self._objective(end), end) for end in ends), key=itemgetter(0)
        )
        basis = self.book.basis
        if basis is None:
            basis = self.kernel_rows.basis(np.zeros(0, dtype=np.int64))
        model = model_over(self.kernel_rows, basis, self.book.coefficients(coordinates), constant, point.plain)
        counters = {"kernel_evals": self.kernel_rows.counter.n, "bound_in_basis": self.working_set.value}
        return Fit(model, status, objective, None, history, counters, self.state())

    def _objective(self, whole: tuple[Array, Array, Point]) -> float:
        """Return ½‖w‖² + C Σ ω_e ℓ_e at a point given by whitened coordinates and constant."""
        coordinates, constant, point = whole
        loss = self.task.along((point.scores, point.plain), (point.scores, point.plain), 0.0, self.examples)[0]
        norm_squared = float(np.sum(coordinates**2) + constant @ constant + point.plain @ point.plain)
        return 0.5 * norm_squared + self.problem.C * loss


@dataclass(eq=False, repr=False)
class CPSP(CuttingPlaneSolver):
    """Cutting-plane subspace pursuit: at most ``max_basis`` learned vectors, whatever the number of rows.

    Parameters
    ----------
    max_basis : int, default=500
        Largest number of vectors in the model.
    preimage : {"fixed-point", "training-rows", "gradient"} or object, default="fixed-point"
        How vectors are found: "fixed-point" anywhere in input space (RBF kernel), "training-rows" as the best of 59
        random rows (every kernel), "gradient" by ascent (differentiable kernels). Objects with their own settings are
        in `slimsvm.bases.preimage`.
    vectors_per_cut : int or None, default=None
        Vectors added with every cut until the basis is full. None: with cutting planes 1, as in the paper. With
        Newton's method a quarter of the present number, at least 8, up to 60 % of ``max_basis``, then 5 % of
        ``max_basis`` (below 80 vectors always 4). Before sweeps it is half of the present number, at least 8.
    method : {"auto", "newton", "cutting-planes"}, default="auto"
        Solver of the problem within the basis while it grows. "cutting-planes" is the paper's, for every task.
        "newton" smooths the losses; it is faster and reaches lower objectives, for binary, multiclass and regression
        tasks. "auto" takes it if the task has a smoothed loss.
    tol_relative : float or None, default=0.01
        Largest distance of objective and bound within the basis, as a share, in addition to ``tol`` (ε on the mean
        loss). None is the paper's rule.
    step : {"line-search", "full"}, default="line-search"
        With cutting planes, as in `ExactCuts`.
    overshoot : float, default=0.1
        With cutting planes, as in `ExactCuts`.
    max_idle : int, default=20
        A cut inactive for this many iterations is dropped.
    sweeps : int or "auto", default="auto"
        With Newton's method: sweeps over the rows that move all vectors together at the end, as `Refine` does. Then
        coefficients are solved again, and the result is kept if its objective is lower. "auto": 20 (proportionally
        more above 500 vectors) for 25,600 dense rows and more if they can be expected to help, else 0. With 0, and
        always with cutting planes and training rows, a vector stays where the pursuit found it, as in the paper.
    directions : int or "auto", default="auto"
        With Newton's method, the RBF kernel, dense rows and the fixed point: vectors are searched for in the span of
        about this many principal directions of the rows, where kernel values cost less. Coefficients use the full rows.
        "auto": 64 and one more for every 16 vectors, at most a sixth of the features, from 192 features and 2,001
        rows on, if these hold 80 % of the variance and leave at most 1/2 of it times γ (and memory allows it).
        Otherwise, with 0, from an earlier fit, and with ``record_delta``: the whole input space.
    record_delta : bool, default=False
        Record δ, the length of the latest cut's residual, as ``delta``. With Newton's method also record the lower
        bound on the kernel's own optimum that follows. A cut then costs one kernel value for each pair of its rows.
    delta : float or None, default=None
        With cutting planes: vectors are added with a cut while its residual ‖g − ĝ‖ is longer than this, at most
        ``vectors_per_cut`` if that is given. This is the paper's other rule; it costs as much as ``record_delta``.
    fill_basis : bool, default=True
        Whether a fit continues until the basis is full even if the tolerance is met with fewer vectors. False, with
        cutting planes, is the paper's rule, which ends there.
    keep : {"best", "last"}, default="best"
        Which iterate is the model: the one with the lowest objective, or the QP's last solution, as in the paper.
        "last" needs cutting planes and ``step="full"``.

    Notes
    -----
    With Newton's method and more than a million rows, or more than fit in a quarter of ``memory_limit`` (at least
    100,000), vectors are searched for on a sample of that size, as in `Refine`. Coefficients, objective and bound are
    those of all rows. ``record_delta`` and cutting planes always use all rows.

    Examples
    --------
    >>> from slimsvm import CPSP, SVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(solver=CPSP(max_basis=5), C=10, random_state=0).fit(X, y)
    >>> clf.n_basis_, bool(clf.score(X, y) > 0.9)
    (5, True)
    """

    max_basis: int = 500
    preimage: Any = "fixed-point"
    vectors_per_cut: Any = None
    method: str = "auto"
    tol_relative: float | None = 0.01
    step: str = "line-search"
    overshoot: float = 0.1
    max_idle: int = 20
    sweeps: Any = "auto"
    directions: Any = "auto"
    record_delta: bool = False
    delta: Any = None
    fill_basis: bool = True
    keep: str = "best"

    def make_run(self, problem: Problem, state: CutsState | None) -> CPSPRun | PursuitRun | OverAllRows:
        """Make a run by Newton's method, or one over projected cuts."""
        preimage = get_preimage(self.preimage)
        preimage.check(problem.kernel, problem.rows.is_sparse)
        check_choice("method", self.method, "auto", "newton", "cutting-planes")
        newton = self.method == "newton" or (self.method == "auto" and has_smoothed_rows(problem))
        if self.delta is not None:
            check_number("delta", self.delta, "a finite number from 0, or None")
        for name in ("fill_basis", "record_delta"):
            check_flag(name, getattr(self, name))
        of_cuts = {"delta": self.delta is not None, "fill_basis": not self.fill_basis, "keep": self.keep == "last"}
        for name, is_set in of_cuts.items():
            if newton and is_set:
                raise ValueError(f"{name}={getattr(self, name)!r} needs method='cutting-planes', found Newton's method")
        if state is not None and isinstance(state, PursuitState) != newton:
            raise ValueError(
                f"CPSP with method={'newton' if newton else 'cutting-planes'!r} can only be warm-started from a CPSP "
                "fit by the same method"
            )
        sweeps = n_sweeps(self.sweeps, problem, preimage, self.max_basis)
        search = search_for(self.directions, self.max_basis, problem, preimage)
        if newton:
            tol_relative = np.inf if self.tol_relative is None else self.tol_relative
            lost = most_lost(self.max_basis, problem.settings_of(ClosingSettings))
            plan = PursuitPlan(
                preimage,
                self.max_basis,
                self.vectors_per_cut,
                tol_relative=tol_relative,
                record_delta=self.record_delta,
                sweeps=sweeps,
                most_lost=lost if isinstance(self.sweeps, str) else np.inf,
                search=search,
            )
            return self._pursuit(problem, plan, state)
        if sweeps and self.sweeps != "auto":
            raise ValueError(
                f"sweeps={self.sweeps!r} needs method='newton', found cutting planes; use sweeps=0 or Refine"
            )
        if search and self.directions != "auto":
            raise ValueError(
                f"directions={self.directions!r} needs method='newton', found cutting planes; use directions=0"
            )
        return CPSPRun(problem, self, state)

    def _pursuit(self, problem: Problem, plan: PursuitPlan, state: Any) -> PursuitRun | OverAllRows:
        """Make a run by Newton's method. It uses a sample of very many rows, unless δ and its bound are asked for."""
        rng = problem.generator()
        problem = replace(problem, random_state=rng)  # others may share the generator
        sample = problem if plan.record_delta else learning_part(problem, rng)
        if sample.examples is problem.examples:
            return PursuitRun(sample, plan, state)
        if state is not None:
            state.check(problem.task, problem.examples)
            state = replace(state, examples=sample.examples)
        run = PursuitRun(sample, plan, state)

        def state_of(fit: Fit, model: KernelExpansion) -> PursuitState:
            found: PursuitState = replace(fit.state, examples=problem.examples, model=model)
            return found

        tol_relative = min(plan.tol_relative, 1.0)
        return OverAllRows(problem, run, lambda: run.newton.tau, tol_relative, rng, state_of)
