"""One model of few vectors that predicts what the mean of models does: the mean is its teacher.

It is trained on the mean's predictions in place of y (the log loss of probabilities, the squared loss of numbers), with
scales of its own, on the training rows and, where that is better, on made rows, which have columns of two training
rows. It needs no calibration, and C may be large, as there is no noise in what it learns. A model of the mean is taken
in its place where it is better: one of few numbers as it is, and of many vectors those of them whose scores are nearest
to its own.

The first fold of the search tells which way is best, and how badly rows fit: a mean of the fold's rows teaches models
of its own, and they are judged on the rows held out. Where columns all move together, made rows leave the line on which
the rows lie; where all combinations of levels occur, they teach what the mean knows of those that are not there. The
first fold tells how far a model is from the model that it stands for, and all folds how good that model is.
docs/experiments/tables.md has what else was tried.

Buciluă, Caruana, Niculescu-Mizil: Model Compression, KDD 2006. Hinton, Vinyals, Dean: Distilling the Knowledge in a
Neural Network, 2015.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from slimsvm.bases.reduced_set import reduce_model
from slimsvm.core.clock import is_time_over, no_limit, share_of_time, time_limit
from slimsvm.estimators._shared.table_goals import LEAST, ClassGoal, Goal
from slimsvm.estimators._shared.table_search import (
    Found,
    Member,
    Misfits,
    Recipe,
    Rows,
    evidence_of,
    held_out,
    kept_misfits,
    mean_of,
    members_of,
    misfits_of,
    rounded,
)
from slimsvm.estimators._shared.validating import evenly
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import Problem
from slimsvm.parts.values_of_C import fit_on_trial
from slimsvm.rows import as_rows
from slimsvm.solvers import Refine
from slimsvm.tables.splines import AdditiveModel
from slimsvm.tasks import Task
from slimsvm.tasks.smooth import SmoothRegression, task_of_classes

Array = np.ndarray
# What a model learns from: the rows alone, made rows with numbers of two, or with columns of two; or the recipe of a
# model of the mean, which learned from y.
Way = str | Recipe
# Evidence of rows held out by a model and by its mean; None where no row was held out.
Apart = tuple[Array, Array] | None

# docs/experiments/tables.md settles C, the steps, and how many rows are made of each. The share of columns that a made
# row has of another row, the most rows that are made, and the least probability of a class that a row counts for:
# chosen, not measured.
C, STEPS = 1000.0, SweepSettings(steps=4000, steps_power=0.0, batch_epochs=10)
N_MADE = {"rows": 0, "numbers": 1, "columns": 3}
OTHER_SHARE, MOST_MADE, LEAST_PROBABILITY = 0.3, 10_000, 1e-3
# Numbers, of 4 bytes, that rows have which count once for each class that they may be of.
MOST_NUMBERS = 50_000_000
# How far rounded vectors may move a prediction: log odds, or deviations of y; and how far the vectors that are left of
# a mean of one model. Chosen, not measured.
HALF_ERROR, FEW_ERROR = 0.01, 0.1
# Vectors, in units of those that are left, up to which a model is one to leave vectors out of. Chosen, not measured.
MOST_LEFT_OUT = 10
# Rows of the first fold that tell how a model is apart from its mean. Chosen, not measured.
LEAST_APART = 20
# Of the time that is left after the search, the share of the mean, and then that of the first fold. Chosen, not
# measured.
TEACHER_SHARE, FOLD_SHARE = 0.3, 0.5


def small_member(found: Found, rows: Rows, max_basis: int) -> tuple[Member, Misfits]:
    """The model, and misfits of rows held out; the mean itself if it is one model of few numbers, or near to one."""
    with time_limit(share_of_time(TEACHER_SHARE)):
        teacher = members_of(found, rows)
    misfits = misfits_of(found, teacher, rows.goal)
    own = own_of(teacher, rows, max_basis)
    if len(teacher) == len(own) == 1:
        (member,) = own.values()
        if moved_by(member, teacher[0], rows) <= FEW_ERROR:
            return member, misfits
    with time_limit(share_of_time(FOLD_SHARE)):
        evidences = judged_on_a_fold(found, rows, max_basis)
    way = next(way for way in evidences if isinstance(way, str) or way in own)
    if isinstance(way, Recipe):
        return own[way], kept_misfits(found.evidences[way], held_out(found.parts)[0], rows.goal)
    return taught_by(teacher, found, rows, max_basis, way), misfits_of_small(misfits, evidences[way], rows.goal)


def own_of(teacher: list[Member], rows: Rows, max_basis: int) -> dict[Way, Member]:
    """The models of a mean, each as a mean of itself, which have few numbers or are near to one of few vectors."""
    few = {member.recipe: of_few(member, rows, max_basis) for member in teacher}
    return {recipe: member for recipe, member in few.items() if member is not None}


def of_few(member: Member, rows: Rows, max_basis: int) -> Member | None:
    """A model of the mean alone, if it has no more numbers than so many vectors, or some of its vectors will do."""
    model, alone = member.model, replace(member, weight=1.0)
    if isinstance(model, AdditiveModel):
        return alone if model.weights.size <= max_basis * rows.features.shape[1] else None
    if model.n_basis > max_basis:
        if model.n_basis > MOST_LEFT_OUT * max_basis or is_time_over():
            return None
        how: Any = {"preimage": "training-rows", "max_iter": 0, "rng": np.random.default_rng(0)}
        alone = replace(alone, model=rounded(reduce_model(model, max_basis, rows.seen_by_all, n_jobs=1, **how).model))
    return halved(alone, rows)


def judged_on_a_fold(found: Found, rows: Rows, max_basis: int) -> dict[Way, Apart]:
    """The ways from the best on, by the loss that is expected, with evidence of rows held out of the first fold; the
    usual one where there are none or there was no time.
    """
    if not found.evidences or is_time_over():
        return {"numbers" if has_numbers(rows) else "rows": None}
    (rows, held), goal = found.parts[0], rows.goal

    def evidence(members: list[Member]) -> Array:
        with no_limit():
            return goal.evidence(mean_of(members, goal, held.features, rows.n_jobs), held.y)

    teacher = members_of(found, rows)
    members = own_of(teacher, rows, max_basis)
    members |= {way: taught_by(teacher, found, rows, max_basis, way) for way in ways_of(rows)}
    own = {way: evidence([member]) for way, member in members.items()}

    def expected(way: Way) -> float:
        own_model = [replace(member, weight=1.0) for member in teacher if member.recipe == way]
        return goal.loss(own[way], held.y, held.weights) + beyond_a_fold(found, own_model or teacher, goal)

    theirs = evidence(teacher)
    return {way: (own[way], theirs) for way in sorted(own, key=expected)}


def beyond_a_fold(found: Found, members: list[Member], goal: Goal) -> float:
    """The loss of a mean of models out of all folds, less that out of the first one."""
    evidence, (y, weights), n = evidence_of(found, members), held_out(found.parts), len(found.parts[0][1].y)
    return goal.loss(evidence, y, weights) - goal.loss(evidence[:n], y[:n], weights[:n])


def ways_of(rows: Rows) -> list[str]:
    """What is tried. Classes want made rows of numbers, or do not mind (docs/experiments/tables.md)."""
    is_tried = {
        "rows": not (has_numbers(rows) and isinstance(rows.goal, ClassGoal)),
        "numbers": has_numbers(rows),
        "columns": bool(rows.are_flags.any()),
    }
    return [way for way, tried in is_tried.items() if tried]


def has_numbers(rows: Rows) -> bool:
    """Whether there are features that are no flags."""
    return bool(len(rows.columns)) and not rows.are_flags.all()


def taught_by(teacher: list[Member], found: Found, rows: Rows, max_basis: int, way: str) -> Member:
    """A model that predicts what the teacher does for rows, in the kernel of the best smooth recipe."""
    with no_limit():
        X, weights = with_made_rows(rows, way)
        problem = problem_of(rows, found, X, mean_of(teacher, rows.goal, X, rows.n_jobs), weights)
    fit = fit_on_trial(Refine(max_basis, learn_metric=True), problem)
    model = rounded(of_pairs(fit.model, problem))
    return halved(Member(replace(found.smooth, C=C, loss="mean"), 1.0, model, rows.goal.no_calibration()), rows)


def with_made_rows(rows: Rows, way: str) -> tuple[Array, Array]:
    """Rows and their weights, and some in which some columns, or numbers, are those of other rows."""
    X, rng, n = rows.features, np.random.RandomState(0), min(N_MADE[way] * len(rows.y), MOST_MADE)
    if not n or not len(rows.columns):
        return X, rows.weights
    first, second = rng.randint(len(X), size=(2, n))
    is_other = (rng.random_sample((n, 1 + rows.columns.max())) < OTHER_SHARE)[:, rows.columns]
    if way == "numbers":
        is_other[:, : len(rows.are_flags)] &= ~rows.are_flags
    made = np.where(is_other, X[second], X[first])
    return np.concatenate([X, made]), np.concatenate([rows.weights, rows.weights[first]])


def problem_of(rows: Rows, found: Found, X: Array, taught: Array, weights: Array) -> Problem:
    """The problem of the mean's predictions ``taught`` for rows X; a row is of every class that it may be of."""
    goal, X = rows.goal, np.ascontiguousarray(X[:, : len(rows.are_flags)])
    problem = replace(rows.problem(found.smooth.kernel, found.smooth.gamma_factor), C=C, intercept="regularized",
                      tol=1e-3)  # fmt: skip
    problem = replace(problem, settings=(STEPS, *problem.settings))
    if not isinstance(goal, ClassGoal):
        task: Task = SmoothRegression("squared")
        return replace(problem, rows=as_rows(X), task=task, examples=task.encode(taught[:, 0], weights))
    taught = taught / taught.sum(axis=1, keepdims=True)
    some = some_that_count(taught, X.shape[1])
    X, taught, weights = X[some], taught[some], weights[some]
    row, label = np.nonzero(taught > LEAST_PROBABILITY)
    task = task_of_classes("logistic", goal.n_classes, False)
    labels = np.where(label > 0, 1, -1) if goal.n_classes == 2 else label
    examples = task.encode(labels, weights[row] * taught[row, label])
    return replace(problem, rows=as_rows(X[row]), task=task, examples=examples)


def some_that_count(taught: Array, n_features: int, most: int = MOST_NUMBERS) -> Array:
    """Places of the rows that there is room for: all, or some at equal distances where rows may be of many classes."""
    n_numbers = n_features * int(np.count_nonzero(taught > LEAST_PROBABILITY))
    return evenly(len(taught), max(1, len(taught) * most // max(n_numbers, most)))


def of_pairs(model: KernelExpansion, problem: Problem) -> KernelExpansion:
    """The model with differences of classes' scores, which are those of pairs."""
    if not problem.task.has_class_scores or model.coef.shape[1] == 1:
        return model
    first, second = np.triu_indices(model.coef.shape[1], 1)
    coef, intercept = model.coef, model.intercept
    return replace(model, coef=coef[:, first] - coef[:, second], intercept=intercept[first] - intercept[second])


def halved(member: Member, rows: Rows) -> Member:
    """The model with vectors that float16 holds, if that moves no prediction by more than HALF_ERROR."""
    model: Any = member.model
    half = replace(member, model=rounded(replace(model, basis=model.basis.astype(np.float16))))
    return half if moved_by(half, member, rows) <= HALF_ERROR else member


def moved_by(member: Member, other: Member, rows: Rows) -> float:
    """How far two models' predictions are apart, at most: log odds, or deviations of y."""
    with no_limit():
        own, theirs = (mean_of([replace(each, weight=1.0)], rows.goal, rows.features, rows.n_jobs)
                       for each in (member, other))  # fmt: skip
    if isinstance(rows.goal, ClassGoal):
        own, theirs = log_odds(own), log_odds(theirs)
    return float(np.abs(own - theirs).max())


def misfits_of_small(misfits: Misfits, apart: Apart, goal: Goal) -> Misfits:
    """The mean's misfits of rows held out, as a model has them that is apart from the mean as on the first fold.

    Squares of numbers' errors add up. Of classes the log odds of misfits are a line of the mean's, and no less than
    these: where classes are far apart, the line tells little of the best rows.
    """
    if apart is None or len(apart[0]) < LEAST_APART:
        return misfits
    own, theirs = apart
    if not isinstance(goal, ClassGoal):
        squares = misfits.of_all.astype(np.float64) ** 2 + np.mean((own - theirs) ** 2)
        return misfits._replace(of_all=np.sqrt(squares).astype(np.float32))
    own, theirs = log_odds(1.0 - own), log_odds(1.0 - theirs)
    slope = max(float(np.cov(own, theirs)[0, 1] / max(theirs.var(ddof=1), 1e-12)), 0.0)
    start = own.mean() - slope * theirs.mean()

    def moved(each: Array) -> Array:
        return np.maximum(each, expit(start + slope * log_odds(each.astype(np.float64)))).astype(np.float32)

    return Misfits(moved(misfits.of_all), [moved(each) for each in misfits.of_classes])


def log_odds(p: Array) -> Array:
    """Log odds of probabilities, none beyond those that a log loss counts."""
    return logit(np.clip(p, LEAST, 1.0 - LEAST))
