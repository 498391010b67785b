"""What an estimator chooses by itself: C on a validation part (``C="validate"``), the metric (``gamma="learn"``)."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from slimsvm.kernels import Precomputed
from slimsvm.rows import as_rows
from slimsvm.solvers import Problem, Refine, Solver
from slimsvm.tasks import Examples, Task

# Prices that are tried, from the lowest; no more after so many in a row without a lower error.
PRICES, PATIENCE = (0.1, 1.0, 10.0, 100.0, 1000.0), 2
# One row in so many validates, which takes at least so many rows; and the most rows of either part.
EVERY, MIN_ROWS, MAX_TRAINING, MAX_VALIDATION = 5, 20, 50_000, 20_000
# Of max_seconds, the share of one trial.
TRIAL_SHARE = 0.1


def learning_metric(solver: Solver, is_sparse: bool) -> Solver:
    """The solver that learns the metric as well; an error if it cannot, or if the rows are sparse."""
    if not isinstance(solver, Refine):
        raise ValueError(
            f"gamma='learn' needs solver='refine' (or 'auto', which takes it then), found solver={solver!r}"
        )
    if is_sparse:
        raise ValueError("gamma='learn' needs dense rows, found a sparse matrix")
    return solver if solver.learn_metric else clone(solver).set_params(learn_metric=True)


def choose_C(problem: Problem, solver: Solver) -> tuple[float, list[dict[str, Any]]]:
    """The price C whose model has the lowest error on a fifth of the rows, and a record of every trial.

    The parts have the same share of every class (or, for regression, of every range of targets). Ties go to the lower
    price.

    Parameters
    ----------
    problem : Problem
        Its C is ignored.
    solver : Solver

    Returns
    -------
    C : float
    trials : list of dict
        ``C``, ``error`` (share of wrong labels, or mean absolute error) and ``seconds``.

    Raises
    ------
    ValueError
        There are fewer than 20 rows, or the kernel is a matrix.
    """
    rows, examples, task = problem.rows, problem.examples, problem.task
    if isinstance(problem.kernel, Precomputed):
        raise ValueError("C='validate' cuts the rows in two and needs a kernel of rows, found kernel='precomputed'")
    if rows.n_rows < MIN_ROWS:
        raise ValueError(f"C='validate' needs at least {MIN_ROWS} rows, found {rows.n_rows}")
    labels = examples.labels
    if labels.ndim == 2:  # rows of the same labels are alike
        labels = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
    training, validating = _parts(labels, problem.generator())
    dtype, others = rows.exact_dtype, _some(task, examples, validating)
    block = rows.take(validating, dtype)
    part = replace(
        problem, rows=as_rows(rows.take(training, dtype)), examples=_some(task, examples, training), verbose=0
    )
    if problem.max_seconds is not None:
        part = replace(part, max_seconds=TRIAL_SHARE * problem.max_seconds)
    trials: list[dict[str, Any]] = []
    best = 0
    for C in PRICES:
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = solver.solve(replace(part, C=C)).model
        scores = model.scores(block, n_jobs=problem.n_jobs)
        error = float(task.error(task.decode(scores, model.plain, others), others))
        trials.append({"C": C, "error": error, "seconds": time.perf_counter() - begun})
        if error < trials[best]["error"]:
            best = len(trials) - 1
        if len(trials) - 1 - best >= PATIENCE:
            break
    return trials[best]["C"], trials


def _some(task: Task, examples: Examples, index: np.ndarray) -> Examples:
    """Some rows as a smaller problem, at the same price of one row."""
    if task.decomposes:
        return examples.take(index)
    part = examples.take_rows(index)
    return replace(part, weights=part.weights * (len(index) / examples.n_rows))


def _parts(labels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions of training and validating rows: every fifth in the order of labels, rows of one label shuffled."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    is_held = np.arange(len(labels)) % EVERY == EVERY // 2
    parts = []
    for index, limit in ((order[~is_held], MAX_TRAINING), (order[is_held], MAX_VALIDATION)):
        parts.append(np.sort(index if len(index) <= limit else rng.choice(index, limit, replace=False)))
    return parts[0], parts[1]
