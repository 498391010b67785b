r"""Block-coordinate Frank-Wolfe: the dual of a structured SVM, one example at a time.

Problem (δΨ_e(y) and c_e(y) are the plane that labelling y is to example e, see `tasks.task`):

    max_{α ≥ 0}  Σ_e Σ_y α_e(y) c_e(y) − ½‖w‖²,   w = Σ_e Σ_y α_e(y) δΨ_e(y),   Σ_y α_e(y) ≤ C ω_e

    repeat for all examples in random order, batch by batch:
        oracle: the loss-augmented argmax of each example of the batch at w: a plane
        step, one example after the other, at w as it is then:
            "line-search"  w_e ← (1 − γ) w_e + γ C ω_e δΨ_e(ŷ_e), γ the best (Lacoste-Julien et al., Algorithm 4)
            "corrective"   the best α_e over the planes of e that were met so far
        `cached_passes` times: the steps alone, without an oracle
    stop when P(w) − D(α) is within the tolerances

D(α) bounds the optimum from below. w is kept as weights where features are explicit (`kernel="linear"`), else as dual
coefficients of the rows with the scores of all rows; both know where the planes of an example meet.

Lacoste-Julien, Jaggi, Schmidt, Pletscher, "Block-Coordinate Frank-Wolfe Optimization for Structural SVMs", ICML 2013;
Shah, Kolmogorov, Lampert, "A Multi-Plane Block-Coordinate Frank-Wolfe Algorithm", CVPR 2015 (planes that are kept);
Osokin et al., "Minding the Gaps for Block Frank-Wolfe", ICML 2016 (steps between two planes of an example).

Parts: `parts.cuts.example_planes`, `parts.cuts.plane_store`, `core/cuts/block_steps.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimsvm.parts.cuts.example_planes import BlockSteps, PlanesRun, PlanesState
from slimsvm.parts.problem import (
    RANDOM_ACCESS,
    Need,
    Problem,
    check_choice,
    check_count,
    check_flag,
    check_needs,
    no_free_intercept,
)
from slimsvm.parts.solver import Solver


@dataclass(frozen=True)
class ObjectiveSettings:
    """Settings of when the objective is computed, which takes a pass over all rows. Chosen, not measured."""

    # The objective is computed in the first passes, once the gap is ``near`` times the tolerance, and every so many
    # passes.
    first_passes: int = 3
    near: float = 3.0
    every: int = 5


NEEDS = (
    no_free_intercept("blocks cannot share an equality constraint"),
    Need(
        lambda problem: problem.task.decomposes,
        "BCFW needs a loss that is a sum over examples, found {task}; solver='exact-cuts' trains losses over all rows",
    ),
)
# A plane is dropped after this many passes with weight 0.
MAX_IDLE = 10


class BCFWRun(PlanesRun):
    """The run on one problem; a step is a pass over all examples."""

    def step(self) -> dict[str, Any]:
        """Make one pass over all examples with the oracle, and the passes over stored planes."""
        self.in_step, self.judged = True, None
        loss = self.oracle_pass()
        for _ in range(self.solver.cached_passes):
            self.each_batch()
        self.in_step = False
        self.n_passes += 1
        self.planes.age(MAX_IDLE)
        if self.solver.averaging:
            self.take_average()
        norm = self.book.norm_squared
        self.lower_bound = max(self.lower_bound, self.planes.constants - 0.5 * norm)
        estimate = 0.5 * norm + self.problem.C * loss
        self.left = max(estimate - self.lower_bound, 0.0)
        own = self.problem.settings_of(ObjectiveSettings)
        near = self.left <= own.near * self.allowed(estimate)
        objective, error = None, None
        if near or self.n_passes <= own.first_passes or self.n_passes % own.every == 0:
            objective, error = self.judge()
            self.left = max(objective - self.lower_bound, 0.0)
            self.converged = self.left <= self.allowed(objective)
        return {
            "objective": objective,
            "lower_bound": self.lower_bound,
            "gap": None if objective is None else objective - self.lower_bound,
            "loss": loss / self.examples.total_weight,
            "training_error": error,
            "n_planes": int(self.planes.n[0]),
            "n_basis": self.book.n_basis,
        }


@dataclass(eq=False, repr=False)
class BCFW(Solver):
    """Block-coordinate Frank-Wolfe: solves the structured dual, one example at a time, to a computed gap.

    For every task whose loss is a sum over examples, and any kernel. With ``kernel="linear"`` weights are explicit.

    Parameters
    ----------
    tol_relative : float or None, default=0.01
        Largest gap as a share of the objective, in addition to ``tol`` (on the mean loss).
    step : {"corrective", "line-search"}, default="corrective"
        "line-search" is the paper's step towards the plane that the oracle found. "corrective" solves for the best mix
        of all planes of the example met so far, and needs far fewer passes to small gaps.
    cached_passes : int, default=2
        Passes over the stored planes after each pass with the oracle; 0 is the paper's algorithm.
    averaging : bool, default=False
        Return the weighted average of the iterates after each pass, in which the k-th counts k times. The gap is
        computed for its objective. It helps line searches, whose last iterate is poor, and harms corrective steps.
    weights : {"auto"} or bool, default="auto"
        Whether a linear kernel's model is stored as weights of features. "auto" does so above 2,000 rows that have
        on average no more features than there are rows.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher: Block-Coordinate Frank-Wolfe Optimization for Structural SVMs, ICML
    2013, Algorithm 4.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm import BCFW, SequenceSVM
    >>> X = [np.array([[0.0], [1.0], [0.0]]), np.array([[1.0], [1.0]])]
    >>> y = [["a", "b", "a"], ["b", "b"]]
    >>> clf = SequenceSVM(C=10.0, kernel="linear", solver=BCFW(tol_relative=1e-3), random_state=0).fit(X, y)
    >>> bool(clf.objective_ - clf.lower_bound_ <= 1e-3 * clf.objective_)
    True
    """

    tol_relative: float | None = 0.01
    step: str = "corrective"
    cached_passes: int = 2
    averaging: bool = False
    weights: Any = "auto"

    def start(self, problem: Problem, state: PlanesState | None = None) -> BCFWRun:
        """Check parameters and set the run up."""
        check_needs("BCFW", problem, RANDOM_ACCESS, *NEEDS)
        if state is not None and not isinstance(state, PlanesState):
            raise ValueError(f"BCFW can only be warm-started from a BCFW fit, found {type(state).__name__}")
        if self.tol_relative is not None and not self.tol_relative > 0:
            raise ValueError(f"tol_relative must be a positive number or None, found {self.tol_relative!r}")
        check_choice("step", self.step, "corrective", "line-search")
        if self.cached_passes != 0:
            check_count("cached_passes", self.cached_passes)
        check_flag("averaging", self.averaging)
        steps = BlockSteps(self.tol_relative, self.step, self.cached_passes, self.averaging, self.weights)
        return BCFWRun(problem, steps, state)
