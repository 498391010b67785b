r"""BSCA: dual coordinate ascent on a budget.

Problem: the box-constrained dual of `parts.budgeted.box_dual`. Algorithm 1 of the paper, on a random row i per step,
with f̃ the score of the budgeted model (points x̃_j, coefficients β_j):

    δ = clip(α_i + (1 − y_i f̃(x_i)) / k(x_i, x_i), 0, C ω_i) − α_i
    if δ ≠ 0:   α_i ← α_i + δ,   add δ y_i φ(x_i) to the model      (the paper leaves y_i out here)
    if there are more than B points: the maintenance rule makes room

δ is damped: k(x_i, x_i) stands for itself times 1 + damping M / n, where M points have been taken away so far.

Regression takes θ_i ← clip(S_ε(θ_i k_ii + y_i − f̃(x_i)) / k_ii, −C ω_i, C ω_i), S_ε the soft threshold; several
classes, each against the rest, share the points and the kernel values. It stops after a number of epochs or on a
plateau; then the convex problem in the coefficients of the final points is solved.

Qaadan, Schüler, Glasmachers, "Dual SVM Training on a Budget", 2018.

Parts: `parts.budgeted.budgeted_solver`, `parts.budgeted.epochs`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from slimsvm.budget.budgeted_model import DUAL
from slimsvm.docstrings import described
from slimsvm.parts.budgeted.budgeted_solver import BudgetedSolver


@described(BudgetedSolver.__doc__)
@dataclass(eq=False, repr=False)
class BSCA(BudgetedSolver):
    """Budgeted stochastic coordinate ascent: the dual, one row at a time, with at most ``max_basis`` vectors.

    For two classes, several (each against the rest; the finish solves Crammer and Singer's problem over the vectors),
    and regression; dense and sparse rows. Problems with at most ``max_basis`` rows are solved by plain dual
    coordinate ascent to a relative gap of 1e-10.

    Parameters
    ----------
    max_basis, epochs, maintenance, finish, descent_epochs
    selection : {"permutation", "uniform", "adaptive"}, default="permutation"
        "permutation": every row once per epoch in random order. "uniform": rows drawn with replacement, as in the
        paper. "adaptive": the rows whose α moved last time, in random order, and of those at rest for k epochs one in
        1 + k.
    damping : float or "auto", default="auto"
        A step is divided by 1 + damping M / n, where M is the number of vectors that the budget has removed so far.
        The loss of a merge grows with the square of the step, and α does not know about it. Without merges nothing is
        damped; 0 takes the paper's steps. "auto" is 4 for classes, 1 for regression and 0 for one class, whose C
        changes. `partial_fit` damps nothing, because it sees its rows once.
    patience, average
    reports : {"sample", "exact"}, default="sample"
        Whether the objectives and the training error of each epoch are estimated from 2,000 rows or exact. Exact dual
        objectives are lower bounds; they cost one kernel evaluation for each pair of rows with α > 0.
    tol_relative

    Notes
    -----
    Records in ``history_`` describe the model before the finish: ``primal``; ``dual``, D(α) = Σα − ½‖Σ α_i y_i φ(x_i)‖²
    (a true bound if ``is_exact``); ``dual_of_model``, Σα − ½‖w̃‖² with the budgeted w̃, which is not a bound;
    ``steps``, and their shares ``merge_fraction`` (the budget removed a vector afterwards) and ``zero_step_fraction``;
    ``degradation`` (the sum of all ‖Δ‖² removed), ``training_error``, ``online_loss`` and ``online_error`` (of rows
    at the time of their step), ``seconds`` since the fit began. With two classes and at most 2,000 rows also
    ``relative_error``, the paper's E(w, w̃): from 1 on its theorem 1 guarantees no further progress.
    With several classes primal and duals are those of one class against the rest.

    References
    ----------
    Qaadan, Schüler, Glasmachers: Dual SVM Training on a Budget, 2018, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import BSCA, SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=BSCA(max_basis=20), random_state=0).fit(scale(X), y)
    >>> clf.n_basis_ <= 20, bool(clf.score(scale(X), y) > 0.97)
    (True, True)
    """

    method = DUAL

    _: KW_ONLY
    damping: Any = "auto"
