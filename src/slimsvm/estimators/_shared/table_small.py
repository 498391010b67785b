"""One machine of few learned vectors that predicts what the mean of machines does: the mean is its teacher.

It is trained on the mean's predictions in place of y (the log loss of probabilities, the squared loss of numbers), with
scales of its own, on the training rows and on as many made rows, whose numbers are those of two training rows. It needs
neither calibration nor rows held out, and C may be large, as there is no noise in what it learns.
docs/experiments/tables.md has what else was tried.

Buciluă, Caruana, Niculescu-Mizil: Model Compression, KDD 2006. Hinton, Vinyals, Dean: Distilling the Knowledge in a
Neural Network, 2015.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slimsvm.core.clock import no_limit, share_of_time, time_limit
from slimsvm.estimators._shared.table_goals import ClassGoal
from slimsvm.estimators._shared.table_search import (
    Found,
    Machine,
    Misfits,
    Rows,
    machines_of,
    mean_of,
    misfits_of,
    rounded,
)
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import Problem
from slimsvm.parts.values_of_C import fit_on_trial
from slimsvm.rows import as_rows
from slimsvm.solvers import Refine
from slimsvm.tasks import Task
from slimsvm.tasks.smooth import SmoothRegression, task_of_classes

Array = np.ndarray

# docs/experiments/tables.md settles C and the steps. The share of numbers that a made row has of another row, the most
# rows that are made, and the least probability of a class that a row counts for: chosen, not measured.
C, STEPS = 1000.0, SweepSettings(steps=4000, steps_power=0.0, batch_epochs=10)
OTHER_SHARE, MOST_MADE, LEAST_PROBABILITY = 0.3, 10_000, 1e-3
# How far rounded vectors may move a score: log odds, or deviations of y. Chosen, not measured.
HALF_ERROR = 0.01
# Of the time that is left after the search, the share of the mean. Chosen, not measured.
TEACHER_SHARE = 0.5


def small_machine(found: Found, rows: Rows, columns: Array, max_basis: int) -> tuple[Machine, Misfits]:
    """The machine, in the kernel of the best smooth recipe with scales of its own; misfits of rows held out.

    Parameters
    ----------
    found : Found
    rows : Rows
        To train on.
    columns : int64 ndarray
        The number of the column that each feature comes from.
    max_basis : int
    """
    goal = rows.goal
    with time_limit(share_of_time(TEACHER_SHARE)):
        teacher = machines_of(found, rows)
    with no_limit():
        X, weights = with_made_rows(rows, columns)
        problem = problem_of(rows, found, X, mean_of(teacher, goal, X, rows.n_jobs), weights)
    fit = fit_on_trial(Refine(max_basis, learn_metric=True), problem)
    with no_limit():
        model = halved(of_pairs(fit.model, problem), rows.features)
        machine = Machine(replace(found.smooth, C=C, loss="mean"), 1.0, model, goal.no_calibration())
        return machine, misfits_of_small(found, teacher, machine, rows)


def with_made_rows(rows: Rows, columns: Array) -> tuple[Array, Array]:
    """Rows and their weights, and as many in which some numbers are those of other rows.

    Flags stay together: combinations of levels that do not occur teach nothing.
    """
    X, rng, n = rows.features, np.random.RandomState(0), min(len(rows.y), MOST_MADE)
    first, second = rng.randint(len(X), size=(2, n))
    is_other = rng.random_sample((n, 1 + columns.max(initial=0))) < OTHER_SHARE
    made = np.where(is_other[:, columns] & ~rows.are_flags, X[second], X[first]) if len(columns) else X[first]
    return np.concatenate([X, made]), np.concatenate([rows.weights, rows.weights[first]])


def problem_of(rows: Rows, found: Found, X: Array, taught: Array, weights: Array) -> Problem:
    """The problem of the mean's predictions ``taught`` for rows X; a row is of every class that it may be of."""
    goal = rows.goal
    problem = replace(rows.problem(found.smooth.kernel, found.smooth.gamma_factor), C=C, intercept="regularized",
                      tol=1e-3)  # fmt: skip
    problem = replace(problem, settings=(STEPS, *problem.settings))
    if not isinstance(goal, ClassGoal):
        task: Task = SmoothRegression("squared")
        return replace(problem, rows=as_rows(X), task=task, examples=task.encode(taught[:, 0], weights))
    taught = taught / taught.sum(axis=1, keepdims=True)
    row, label = np.nonzero(taught > LEAST_PROBABILITY)
    task = task_of_classes("logistic", goal.n_classes, False)
    labels = np.where(label > 0, 1, -1) if goal.n_classes == 2 else label
    examples = task.encode(labels, weights[row] * taught[row, label])
    return replace(problem, rows=as_rows(X[row]), task=task, examples=examples)


def of_pairs(model: KernelExpansion, problem: Problem) -> KernelExpansion:
    """The model with differences of classes' scores, which are those of pairs."""
    if not problem.task.has_class_scores or model.coef.shape[1] == 1:
        return model
    first, second = np.triu_indices(model.coef.shape[1], 1)
    coef, intercept = model.coef, model.intercept
    return replace(model, coef=coef[:, first] - coef[:, second], intercept=intercept[first] - intercept[second])


def halved(model: KernelExpansion, X: Array) -> KernelExpansion:
    """The model with vectors that float16 holds, if that moves no score of rows X by more than HALF_ERROR."""
    half = rounded(replace(model, basis=model.basis.astype(np.float16)))
    own, theirs = rounded(model).scores(X), half.scores(X)
    return half if np.abs(own - theirs).max() <= HALF_ERROR else rounded(model)


def misfits_of_small(found: Found, teacher: list[Machine], machine: Machine, rows: Rows) -> Misfits:
    """The mean's misfits of rows held out; of numbers, in squares, with how far the machine is from the mean.

    Probabilities are about as good as the mean's, and their distance on rows that the mean was trained on would count
    what the mean knows by heart.
    """
    misfits, goal = misfits_of(found, teacher, rows.goal), rows.goal
    if isinstance(goal, ClassGoal):
        return misfits
    own, theirs = (mean_of(which, goal, rows.features, rows.n_jobs) for which in ([machine], teacher))
    apart = np.average((own - theirs)[:, 0] ** 2, weights=rows.weights)
    return misfits._replace(of_all=np.sqrt(misfits.of_all**2 + apart).astype(np.float32))
