r"""BSGD: stochastic subgradient descent on a budget.

Problem: min ½‖w‖² + C Σ_i ω_i ℓ_i(w). Step t on a random row i, with f̃ the score of the budgeted model:

    w̃ ← (1 − 1/t) w̃;   where ℓ_i has a slope at f̃(x_i):  w̃ ← w̃ + (n C ω_i / t) y_i φ(x_i)
    if there are more than B points: the maintenance rule makes room

Regression adds (n C ω_i / t) sign(y_i − f̃(x_i)) φ(x_i) where |y_i − f̃(x_i)| > ε. It stops after a number of epochs or
on a plateau; then the convex problem in the coefficients of the final points is solved.

Wang, Crammer, Vucetic, "Breaking the Curse of Kernelization", JMLR 2012; Shalev-Shwartz, Singer, Srebro, "Pegasos",
ICML 2007.

Parts: `parts.budgeted.budgeted_solver`, `parts.budgeted.epochs`.
"""

from __future__ import annotations

from slimsvm.budget.budgeted_model import PRIMAL
from slimsvm.docstrings import described
from slimsvm.parts.budgeted.budgeted_solver import BudgetedSolver


@described(BudgetedSolver.__doc__)
class BSGD(BudgetedSolver):
    """Budgeted stochastic gradient descent: the primal, one row at a time, with at most ``max_basis`` vectors.

    Tasks, rows, and problems with at most ``max_basis`` rows: as in `BSCA`.

    Parameters
    ----------
    max_basis, epochs, maintenance, finish, descent_epochs
    selection : {"permutation", "uniform"}, default="permutation"
        "permutation": every row once per epoch in random order. "uniform": rows drawn with replacement, as in the
        papers.
    patience, average
    reports : {"sample", "exact"}, default="sample"
        Whether the objective and the training error of each epoch are estimated from 2,000 rows or exact.
    tol_relative

    Notes
    -----
    Records in ``history_`` are those of `BSCA` without ``dual``, because the method's steps leave the box.
    ``dual_of_model`` is Σα − ½‖w̃‖², where α_i is n C / t times the number of steps in which row i had a loss. It is
    None except for two classes with equal row weights.

    References
    ----------
    Wang, Crammer, Vucetic: Breaking the Curse of Kernelization, JMLR 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from slimsvm import BSGD, SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = SVC(solver=BSGD(max_basis=20), random_state=0).fit(scale(X), y)
    >>> clf.n_basis_ <= 20, bool(clf.score(scale(X), y) > 0.95)
    (True, True)
    """

    method = PRIMAL
