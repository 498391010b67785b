"""A file after every iteration of a fit, to predict with and to go on from."""

from __future__ import annotations

import os
from typing import Any

from slimsvm.estimators._shared.estimator_files import save
from slimsvm.estimators._shared.validation import check_at_least
from slimsvm.estimators._shared.written import check_target


class Checkpoint:
    """A callback (`set_callbacks`) that writes the model to a file during a fit, so that the fit can be resumed.

    It writes after every epoch of `BSCA` or `BSGD`, after every sweep of `Refine` (``max_basis`` a number), and after
    every step over all rows in which `Refine` and `LowRank` solve for coefficients. A file is replaced only once the
    new one is complete, so it is valid whatever ends the process. It is the file that ``save`` writes after the fit,
    plus what a warm start needs: ``slimsvm.load(path).set_params(warm_start=True).fit(X, y)`` continues from there.

    `Refine` and `LowRank` end with the same bits as an uninterrupted fit, for the same rows, labels, weights
    and parameters; others are refused. ``history_``, ``n_iter_`` and ``n_kernel_evals_`` count from the resumption,
    and so does ``max_seconds``. While coefficients are solved for, the file has 8 bytes for each row and output
    besides the model. `BSCA` and `BSGD` continue with the dual variables, the steps and the random numbers of the
    interrupted fit; the result differs from an uninterrupted fit.

    Parameters
    ----------
    path : str or path-like
        "{iteration}" in it becomes the number of the epoch, sweep or step (of the trial, for `OneClassSVM`), so that
        all files are kept. Python's format specifications such as "{iteration:03d}" work.
    every : int, default=1
        Iterations between two writings. Steps in which coefficients are solved for are always written.

    Raises
    ------
    FileNotFoundError
        When a fit begins: the folder does not exist.
    ValueError
        The path has other fields, or is a file that the rows are read from; or, in the first iteration, the solver has
        no model before its end.
    OSError
        A file cannot be written; an older file of that name is unchanged.

    Examples
    --------
    >>> import os, tempfile
    >>> import slimsvm
    >>> from slimsvm import BSGD, SVC, Checkpoint
    >>> from slimsvm.datasets import checkerboard
    >>> X, y = checkerboard(500, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "epoch-{iteration}.slim")
    >>> clf = SVC(gamma=10, solver=BSGD(30, epochs=4), random_state=0).set_callbacks(Checkpoint(path, every=2))
    >>> sorted(os.listdir(os.path.dirname(path))) if clf.fit(X, y) else None
    ['epoch-2.slim', 'epoch-4.slim']
    >>> slimsvm.load(path.format(iteration=2)).n_basis_
    30
    """

    def __init__(self, path, every=1):
        self.path = os.fspath(path)
        self.every = check_at_least("every", every, 1)
        try:
            self.path.format(iteration=1)
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"path may have the field {{iteration}} and no other, found {self.path!r}") from error

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse a folder that is not there, and a file of the rows, before any work."""
        check_target(estimator, self.path.format(iteration=1))
        folder = os.path.dirname(os.path.abspath(self.path.format(iteration=1)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"Checkpoint writes to {self.path!r}, but there is no folder {folder!r}")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left to do."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is there to write."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Write the model of the iteration that ended, or of a step of one."""
        if context.task_name not in ("iteration", "step"):
            return
        is_step = context.task_name == "step"
        iteration = (context.parent if is_step else context).task_id + 1
        if iteration % self.every and not is_step:
            return
        if fitted_estimator is None:
            raise ValueError(
                "Checkpoint needs a solver with a model after every iteration, 'bsca', 'bsgd', 'refine' or 'low-rank', "
                f"found {estimator.solver!r}"
            )
        save(fitted_estimator, self.path.format(iteration=iteration), with_state=True)
