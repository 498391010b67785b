r"""Sampled cuts: cutting-plane training in which a cut is made of r sampled examples.

Yu and Joachims, "Training Structural SVMs with Kernels Using Sampled Cuts", KDD 2008, Algorithms 2 and 3; Algorithm 1,
exact cuts, is that of Joachims, Finley and Yu (2009).

Problem: min ½‖w‖² + C₁ · mean_e ℓ_e(w), C₁ = C Σ_e ω_e, ℓ_e = max_ŷ Δ(y_e, ŷ) − ⟨w, δΨ_e(ŷ)⟩:

    repeat
        w, ξ = solution of the QP over the cuts (c_j, g_j) so far
        Algorithm 1 (`ExactCuts`):     c', g' = means of Δ(y_e, ŷ_e) and δΨ_e(ŷ_e) over all examples
        Algorithm 2 (`UniformCuts`):   the means over r examples drawn from all
        Algorithm 3 (`ViolatedCuts`):  c' exact; g' from r examples drawn from those with a loss, which are a share s of
                                       all, times s; drawn again until the cut is violated by more than ε
        add the cut; drop cuts that were idle for `max_idle` iterations
    until c' − ⟨w, g'⟩ ≤ ξ + ε         (Algorithm 2: of `patience` samples in a row)

Parts: `parts.cuts.oracles` (``find`` of each oracle makes the cut of one algorithm), `parts.cuts.working_set` with its
QP, `parts.cuts.cutting_plane_loop` (the loop; its stopping rule is ``within_tolerance``, written as objective − QP
value ≤ ε C₁, which is the same at the QP's solution) and, with ``step="line-search"``, `parts.cuts.line_search`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from slimsvm.parts.cuts import CutsState, ExactOracle, UniformOracle, ViolatedOracle
from slimsvm.parts.cuts.cutting_plane_loop import CuttingPlaneSolver, Plan
from slimsvm.parts.cuts.example_planes import ExampleCutsRun, PlanesState
from slimsvm.parts.cuts.score_books import resolve_weights
from slimsvm.parts.problem import SMALL_N, Problem, check_choice, check_flag
from slimsvm.parts.run import Run


@dataclass(eq=False, repr=False)
class ExactCuts(CuttingPlaneSolver):
    """Algorithm 1: every cut is the mean over all examples, so the fit ends with a computed gap to the optimum.

    With ``slacks="each"`` a cut belongs to one example, and every iteration adds one cut per example
    (`parts.cuts.example_planes`).

    Parameters
    ----------
    tol_relative : float or None, default=0.01
        Largest gap as a share of the objective, in addition to ``tol`` (ε on the mean loss). None is the
        paper's rule. Up to 2,000 rows with ``precision="auto"`` the fit goes on to a relative gap of 1e-10
        (1e-3 if rows times outputs are more than 2,000), unless ``tol`` is above its default of 1e-3 or the task is an
        `ExampleTask`.
    step : {"line-search", "full"}, default="line-search"
        "full" goes to the QP's solution, as in the paper; "line-search" to the best point on the way (OCAS).
    overshoot : float, default=0.05
        μ: with "line-search" the next cut is taken at (1 − μ)·best point + μ·QP's solution.
    warm_up : int or None, default=400
        Above 2,000 rows, start with cuts of this many sampled violated examples, until few rows are violated. None
        starts with exact cuts; the first of them costs n² kernel evaluations.
    max_idle : int, default=20
        A cut inactive for this many iterations is dropped.
    weights : {"auto"} or bool, default="auto"
        Whether a linear kernel's model is stored as weights of features. "auto" does so above 2,000 rows that have
        on average no more features than there are rows. There is no warm-up then.
    slacks : {"auto", "one", "each"}, default="auto"
        Whether all examples share one slack or each has its own, for losses that are sums over examples. "each" needs
        tens of iterations instead of hundreds, but keeps a cut of every example. "auto" is "each" for sequences,
        queries and other examples of several rows if the model is stored as weights; a warm start keeps the earlier
        choice. ``step``, ``overshoot`` and ``warm_up`` are for one slack.
    keep : {"best", "last"}, default="best"
        Which iterate is the model: the one with the lowest objective, or the QP's last solution, as in the paper.
        "last" needs ``step="full"``.

    Raises
    ------
    ValueError
        ``slacks="each"`` with a loss over all rows, or a warm start from a fit of the other kind.

    References
    ----------
    Joachims, Finley, Yu: Cutting-Plane Training of Structural SVMs, Machine Learning 2009, Algorithms 1 and 3 (each
    example's slack, one slack).

    Examples
    --------
    >>> from slimsvm import SVC, ExactCuts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVC(solver=ExactCuts(), C=10).fit(X, y)
    >>> bool(clf.objective_ - clf.lower_bound_ <= 1e-9 * clf.objective_)
    True
    """

    states: ClassVar[tuple[type, ...]] = (CutsState, PlanesState)

    tol_relative: float | None = 0.01
    step: str = "line-search"
    overshoot: float = 0.05
    warm_up: int = 400
    max_idle: int = 20
    weights: Any = "auto"
    slacks: str = "auto"
    keep: str = "best"

    def make_run(self, problem: Problem, state: Any) -> Run:
        """Make the run with one slack, or with a slack for each example."""
        each = self.has_slack_each(problem, state)
        if state is not None and isinstance(state, PlanesState) != each:
            kinds = "a slack of each example", "one slack"
            raise ValueError(
                f"warm start: the earlier fit had {kinds[each]}, slacks={self.slacks!r} asks for {kinds[not each]}"
            )
        return ExampleCutsRun(problem, self, state) if each else super().make_run(problem, state)

    def has_slack_each(self, problem: Problem, state: Any) -> bool:
        """Return whether each example has its own slack."""
        check_choice("slacks", self.slacks, "auto", "one", "each")
        if self.slacks == "each" and not problem.task.decomposes:
            raise ValueError(
                f"slacks='each' needs a loss that is a sum over examples, found {type(problem.task).__name__}"
            )
        if self.slacks == "auto" and state is not None:
            return isinstance(state, PlanesState)
        of_several_rows = problem.task.decomposes and problem.examples.offsets is not None
        return self.slacks == "each" or (
            self.slacks == "auto" and of_several_rows and resolve_weights(self.weights, problem)
        )

    def oracle(self, problem: Problem) -> ExactOracle:
        """Make the `ExactOracle`."""
        return ExactOracle()

    def plan(self, problem: Problem) -> Plan:
        """Plan line search and warm-up as the parameters say; the warm-up needs a line search's best point."""
        search = self.step == "line-search"
        weights = resolve_weights(self.weights, problem)
        warm_up = self.warm_up if search and problem.rows.n_rows > SMALL_N and not weights else None
        return Plan(self.tol_relative, self.max_idle, search, self.overshoot, warm_up, weights=weights, keep=self.keep)


@dataclass(eq=False, repr=False)
class ViolatedCuts(CuttingPlaneSolver):
    """Algorithm 3 ("linear time"): every cut is sampled from the examples that violate their margin.

    Parameters
    ----------
    sample_size : int, default=400
        r, the number of examples in a cut.
    constant : {"sample", "all"}, default="sample"
        Whether a cut's constant is that of the drawn examples or, as in the paper, that of all violated ones. For 0/1
        losses both are equal. For regression, cost matrices and sequences "sample" comes closer to the optimum.
    tol_relative : float or None, default=0.01
        Largest distance of objective and QP value as a share of the objective, in addition to ``tol`` (ε on the mean
        loss). None is the paper's rule. With sampled cuts the QP's value is an estimate, not a bound.
    step : {"line-search", "full"}, default="line-search"
        "full" goes to the QP's solution, as in the paper; "line-search" to the best point on the way (OCAS).
    overshoot : float, default=0.1
        μ: with "line-search" the next cut is taken at (1 − μ)·best point + μ·QP's solution.
    max_idle : int, default=20
        A cut inactive for this many iterations is dropped.

    keep : {"best", "last"}, default="best"
        Which iterate is the model: the one with the lowest objective, or the QP's last solution, as in the paper.
        "last" needs ``step="full"``.
    max_draws : int, default=1001
        Largest number of samples drawn for a cut until one is violated by more than ε. If none is, the most violated
        sample is taken; if this happens repeatedly, the fit ends. The paper sets no limit.

    Examples
    --------
    >>> from slimsvm import SVC, ViolatedCuts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SVC(solver=ViolatedCuts(sample_size=50), C=10, random_state=0).fit(X, y).score(X, y) > 0.95)
    True
    """

    sample_size: int = 400
    constant: str = "sample"
    tol_relative: float | None = 0.01
    step: str = "line-search"
    overshoot: float = 0.1
    max_idle: int = 20
    keep: str = "best"
    max_draws: int = 1001

    def oracle(self, problem: Problem) -> ViolatedOracle:
        """Make the `ViolatedOracle`."""
        return ViolatedOracle(self.sample_size, constant=self.constant, max_draws=self.max_draws)

    def plan(self, problem: Problem) -> Plan:
        """Plan the line search as the parameters say."""
        return Plan(self.tol_relative, self.max_idle, self.step == "line-search", self.overshoot, keep=self.keep)


@dataclass(eq=False, repr=False)
class UniformCuts(CuttingPlaneSolver):
    """Algorithm 2 ("constant time"): cuts and stopping rule use new uniform samples; work is independent of n.

    Parameters
    ----------
    sample_size : int, default=1000
        r, the number of examples in a sample.
    patience : int, default=4
        p, the number of new samples in a row that must satisfy the stopping rule.
    max_idle : int, default=20
        A cut inactive for this many iterations is dropped.
    final_objective : bool, default=True
        Compute the model's objective over all rows at the end. This is one pass over the data, which training itself
        never makes. Its evaluations are counted separately, as ``report_kernel_evals``.

    Examples
    --------
    >>> from slimsvm import SVC, UniformCuts
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(SVC(solver=UniformCuts(sample_size=100), C=10, random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """

    sample_size: int = 1000
    patience: int = 4
    max_idle: int = 20
    final_objective: bool = True

    def oracle(self, problem: Problem) -> UniformOracle:
        """Make the `UniformOracle`."""
        return UniformOracle(self.sample_size, self.patience)

    def plan(self, problem: Problem) -> Plan:
        """Plan full steps: a line search would need the scores of all rows."""
        check_flag("final_objective", self.final_objective)
        return Plan(None, self.max_idle, final_objective=self.final_objective)
