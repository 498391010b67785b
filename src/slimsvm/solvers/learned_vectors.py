r"""Learned bases: descent on basis vectors and coefficients together.

Problem, convex in β and the intercept b, not in the basis vectors:

    min over (b_1..b_k), β, b   ½ Σ_c β_cᵀ K_BB β_c + ½ b² + C Σ_e ω_e ℓ_e(K_XB β + b)

(and ½ ‖v‖² + … for the plain parameters v of tasks that have them)

    start: k-means centres of each class, or other vectors, or an earlier model
    repeat for every batch of `epochs` sweeps over the rows in random order:
        r = gradient of the batch's losses in its scores; a step of Adam along, for the RBF kernel,
        ∂/∂β = Kᵀ r + λ K_BB β,   ∂/∂b_j = 2γ β_j [Σ_i r_i K_ij x_i − b_j Σ_i r_i K_ij] + λ-term
        with rates that rise and fall once; the mean of the last iterates counts
    finish: the convex problem in β and b alone, solved to its gap

With ``learn_metric`` the log of one scale per feature is learned in the same steps, pulled towards their mean, and the
kernel becomes an RBF of one gamma per feature. The descent stops after its last sweep. The finish bounds all models
over the final basis from below (``bound_in_basis``); nothing here bounds the kernel's own optimum.

Wu, Schölkopf, Bakır, "A Direct Method for Building Sparse Kernel Learning Algorithms", JMLR 2006 (the problem); Kingma
and Ba, "Adam", ICLR 2015; Smith and Topin, "Super-Convergence", 2017 (rates that rise and fall once); Polyak and
Juditsky, "Acceleration of Stochastic Approximation by Averaging", 1992.

Parts: `parts.descent.first_basis` for the rows that vectors are learned from and, with `bases`, for the
start, `parts.descent.basis_descent` for the steps,
`parts.span.best_coefficients` for the finish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slimsvm.parts.descent.vector_descent import LearnedState, Learning, VectorDescent
from slimsvm.parts.problem import Problem, check_count, check_flag, check_number
from slimsvm.parts.resuming import RunState
from slimsvm.parts.solver import Solver
from slimsvm.parts.span.best_coefficients import check_finish


@dataclass(eq=False, repr=False)
class Refine(Learning, Solver):
    """Learned bases: all basis vectors and coefficients move together, then the coefficients are solved for.

    For the kernels "rbf", "poly", "linear" and "sigmoid", dense and sparse rows, and every task whose loss is a sum
    over examples: two classes, several (Crammer and Singer, one basis for all), regression, sequences (transitions are
    learned in the same steps), and tasks of your own.

    Parameters
    ----------
    max_basis : int, default=100
        Number of basis vectors (fewer if the data have fewer distinct rows).
    initial : str, Basis, array or KernelExpansion, default="kmeans"
        The starting vectors: a name or an object of `slimsvm.bases` ("kmeans", "nystrom", …), vectors of shape
        (k, d), or an earlier model with at most ``max_basis`` vectors. Rows on which that model has losses join it,
        up to ``max_basis``. A warm start continues from the last fit's model in the same way.
    epochs : int or "auto", default="auto"
        Passes (sweeps) over the rows. "auto": the number that makes 6,000 steps (times (max_basis/100)^0.75 above 100
        vectors, and times 1.6 for losses with two derivatives), but at least 10 and at most 1,000. If examples have
        several rows, it is at most 80, and at most the number that makes 1,000 steps. The estimator's ``max_iter`` and
        ``max_seconds`` reduce the number; the rate still falls to its end.
    batch_size : int or "auto", default="auto"
        Examples per step. "auto": the number that has 512 rows, or a 300th of the examples if that is more, because
        noisy labels need it.
    rate : float, default=0.1
        Size of a step at the top of the schedule, in standard deviations of the features, with up to 25 vectors. With
        more vectors it falls with the square root of their number. If the objective doubles during a sweep, the
        descent returns to its best sweep and continues with half the rate.
    learn_metric : bool, default=False
        Learn one scale per feature as well (kernel "rbf", dense rows). The model's kernel is then
        ``RBF(gamma=array)``, and ``gamma`` is only the start.
    metric_pull : float, default=1.0
        How strongly the learned log scales are pulled to their mean. The penalty is ½ times this, times their variance,
        in units of an eighth of the loss at the start (times √(50/max_basis) above 50 vectors). With few rows (fewer
        than eight per feature), it acts on each feature, in units of one row's loss.
    noise : float or "auto", default="auto"
        Standard deviation of the noise added to the rows, drawn anew at every step, in standard deviations of each
        feature. It prevents vectors that fit single rows (dense rows only). "auto": 0.4 for classification with 200
        features and more, all with one gamma; otherwise 0.
    averaging : float, default=0.05
        Share of the steps, at the end, over which the parameters are averaged.
    finish : bool, default=True
        Solve the convex problem in the coefficients of the learned basis (and the task's plain parameters). Newton's
        method does it if the loss of every row can be smoothed, otherwise exact cuts. Needed for ``bound_in_basis``.
    directions : int or "auto", default="auto"
        Learn the vectors in the span of about this many principal directions of the rows (RBF kernel with a given
        gamma, dense rows), where a step costs less and vectors fit single rows less. Kernel values are exact, and the
        finish uses the full rows. "auto": 64 and one more for every 16 vectors, at most a sixth of the features, from
        192 features and 2,001 rows on, if these hold 80 % of the variance and leave at most 1/2 of it times γ (and
        memory allows it). Otherwise, with 0, and from given vectors or an earlier fit: the whole input space.
    tol_relative : float or "auto", default="auto"
        Gap of the finish, as a share of the objective. Up to 2,000 rows it is solved to 1e-10 (1e-3 with many
        rows or vectors times outputs, see `LowRank`). "auto": 1e-3, or 1e-2 if the finish is by cuts.

    Notes
    -----
    With more than a million rows, or more than fit in a quarter of ``memory_limit`` (at least 100,000), vectors are
    learned from a sample of that size. Coefficients, objective and bound are those of all rows.

    Records in ``history_``: ``loss``, ``training_error`` and ``objective_estimate`` are means over the sweep's batches,
    each at the time of its step. The last record also has ``objective`` and ``bound_in_basis`` of the finish.

    References
    ----------
    Wu, Schölkopf, Bakır: A Direct Method for Building Sparse Kernel Learning Algorithms, JMLR 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import SVC, Refine
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=Refine(max_basis=5, epochs=50), random_state=0).fit(scale(X), y)
    >>> clf.n_basis_, bool(clf.score(scale(X), y) > 0.97)
    (5, True)
    """

    takes_smooth = True

    def start(self, problem: Problem, state: LearnedState | RunState | None = None) -> VectorDescent:
        """Check parameters and set the run up."""
        check_count("max_basis", self.max_basis)
        for name in ("epochs", "batch_size"):
            if not _is_auto(getattr(self, name)):
                check_count(name, getattr(self, name))
        for name in ("rate",) if _is_auto(self.tol_relative) else ("rate", "tol_relative"):
            check_number(name, getattr(self, name), "a positive number", positive=True)
        for name in ("metric_pull",) if _is_auto(self.noise) else ("metric_pull", "noise"):
            check_number(name, getattr(self, name), "a number >= 0")
        if not _is_auto(self.noise) and self.noise and problem.rows.is_sparse:
            raise ValueError(f"noise={self.noise!r} needs dense rows, found a sparse matrix")
        check_number("averaging", self.averaging, "between 0 and 1", most=1.0)
        for name in ("learn_metric", "finish"):
            check_flag(name, getattr(self, name))
        task = problem.task
        if not task.decomposes:
            raise ValueError(
                f"Refine needs a loss that is a sum over examples; that of {type(task).__name__} is over all rows at "
                "once: solver='cpsp' trains it with few vectors"
            )
        learning = Learning(**self.get_params(deep=False))
        if isinstance(state, RunState):
            state.check(problem, "Refine", vars(learning))
            return VectorDescent(problem, learning, None, state)
        if state is not None and not isinstance(state, LearnedState):
            raise ValueError(f"Refine can only be warm-started from a Refine fit, found {type(state).__name__}")
        if self.learn_metric and not _is_auto(self.directions) and self.directions:
            raise ValueError(
                f"directions={self.directions!r} belong to one metric, which learn_metric=True changes: use "
                "directions=0"
            )
        if self.finish:
            check_finish(problem)
        return VectorDescent(problem, learning, None if state is None else state.model)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
