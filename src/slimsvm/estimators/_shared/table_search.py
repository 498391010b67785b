"""The models that a table's mean is made of: tried on shared folds, chosen greedily by their loss out of fold.

Every fold encodes the columns by its own rows. A mean of models is chosen one by one, each time the one with which
the loss of the mean out of fold is lowest, the same one again as often as it helps: how often is its weight. The
models that were chosen are trained on all rows, and calibrated by their scores out of fold.
docs/experiments/tables.md has what else was tried.

Caruana, Niculescu-Mizil, Crew, Ksikes: Ensemble Selection from Libraries of Models, ICML 2004.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from slimsvm import kernels
from slimsvm.core.clock import OutOfTimeError, check_time, is_time_over, no_limit, share_of_time, time_limit
from slimsvm.estimators._shared.automatic import learned_factors
from slimsvm.estimators._shared.table_additive import additive_models
from slimsvm.estimators._shared.table_goals import Goal
from slimsvm.estimators._shared.validating import evenly, shuffled_by_kind
from slimsvm.lazy import made_once
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.vector_descent import SweepSettings
from slimsvm.parts.problem import Kept, Problem, Room
from slimsvm.parts.run import Status
from slimsvm.parts.solver import one_by_one
from slimsvm.parts.values_of_C import fit_on_trial
from slimsvm.rows import as_rows
from slimsvm.solvers import Exact
from slimsvm.tables import Table, TableEncoding
from slimsvm.tables.encoders import MOST_VALUES
from slimsvm.tables.splines import AdditiveModel

Array = np.ndarray

# docs/experiments/tables.md settles these.
N_FOLDS, N_GAMMAS, N_PICKS = 5, 2, 10
GAMMA_FACTORS = (1 / 16, 1 / 4, 1.0, 4.0)
VALUES_OF_C, ADDITIVE_C = (1.0, 100.0), (0.1, 1.0, 10.0, 100.0)
# Kinds of fewer rows have none held out; where most rows would not be, or there are fewer than FEW_ROWS, kinds of fewer
# than FEWEST_OF_FEW. Of so few rows equal ones are one.
FEWEST_OF_KIND, FEWEST_OF_FEW, FEW_ROWS = N_FOLDS, 2, 100
# Rows that the search takes at most, and those that the models that stay are trained on.
MOST_SEARCHED, MOST_TRAINED = 5000, 30_000
# The violation of a row's margin at which a model's training ends.
TOL = 0.01
# Scales of features are learned from so many rows on, as `automatic` does in a sixth of the steps.
LEAST_SCALED, STEPS = 500, SweepSettings(steps=500, steps_power=0.0, batch_epochs=10)
EXACT = Exact()
# Rows whose predictions tell the importance of columns. Chosen, not measured.
MOST_MOVED = 200
# Misfits of rows held out that are kept: sets and intervals are right to a half of a hundredth.
MOST_MISFITS = 199
# Those of each class, which are exact for whole hundredths.
MOST_OF_CLASS = 99
# Of the time limit, the share of the search.
SEARCH_SHARE = 0.6


@dataclass(frozen=True)
class Recipe:
    """A kernel, its gamma as a multiple of the typical one, C, and the loss: the task's own, "hinge", or "mean", which
    is of the mean's predictions.
    """

    kernel: str
    gamma_factor: float
    C: float
    loss: str = "hinge"

    def told(self) -> str:
        """The recipe in words."""
        if self.kernel not in KERNELS:
            return f"{self.kernel} model with C={self.C:g}"
        name, _, scales = self.kernel.partition(" in ")
        kernel = f"{name} kernel" + (f" in {scales}" if scales else "")
        loss = ", trained on predictions of the mean" if self.loss == "mean" else ""
        return f"{kernel}, {self.gamma_factor:g} times the typical gamma, C={self.C:g}{loss}"


# One line each: the kernel of some rows for a multiple of the typical gamma.
KERNELS: dict[str, Callable[[Rows, float], kernels.Kernel]] = {
    "matern32": lambda rows, factor: kernels.Matern32(factor * rows.gamma()),
    "rbf": lambda rows, factor: kernels.RBF(factor * rows.gamma()),
    "laplacian": lambda rows, factor: kernels.Laplacian(factor * rows.gamma()),
    "laplacian in learned scales": lambda rows, factor: kernels.Laplacian(factor * rows.gamma(True) * rows.scales),
    "matern32 in learned scales": lambda rows, factor: kernels.Matern32(factor * rows.gamma(True) * rows.scales**2),
}
# Those whose vectors can be learned. RBF with a small gamma has coefficients of thousands there.
SMOOTH = "matern32", "matern32 in learned scales"
# The lines that are no kernel's: `table_additive`.
ADDITIVE, LINEAR = "additive", "linear"
# What is tried with fewer than LEAST_SCALED rows, and with more.
OF_FEW_ROWS = "matern32", ADDITIVE, LINEAR, "rbf", "laplacian"
OF_MANY_ROWS = "matern32", ADDITIVE, LINEAR, "laplacian in learned scales", "matern32 in learned scales"
# What is taken where there are too few rows to choose by.
DEFAULT = Recipe("matern32", 0.25, 1.0)


@dataclass(frozen=True)
class Member:
    """One model of the mean."""

    recipe: Recipe
    weight: float
    model: KernelExpansion | AdditiveModel
    calibration: Array

    def told(self) -> str:
        """The model in words."""
        model = self.model
        size = f"{model.n_basis} vectors" if isinstance(model, KernelExpansion) else f"{model.weights.size} weights"
        return f"{self.weight:.2f} of {self.recipe.told()}: {size}"


@dataclass(frozen=True)
class Rows:
    """Features of training rows with what they are trained for, which of those that all models see are flags, the
    column that each comes from, and how hard to try.
    """

    features: Array
    y: Array
    weights: Array
    are_flags: Array
    columns: Array
    goal: Goal
    n_jobs: int | None

    def take(self, index: Array) -> Rows:
        """The rows at these positions."""
        return replace(self, features=self.features[index], y=self.y[index], weights=self.weights[index])

    @made_once
    def seen_by_all(self) -> Array:
        """The features without straight ones."""
        return np.ascontiguousarray(self.features[:, : len(self.are_flags)])

    def problem(self, kernel: str, factor: float) -> Problem:
        """The problem of a model, with C = 1."""
        # Few rows are solved to the last digit, so that weights and repeated rows do the same.
        is_rough = len(self.y) >= FEW_ROWS
        roughly: dict[str, Any] = {"tol": TOL, "precision": "float32", "to_compare": True} if is_rough else {}
        return Problem(
            rows=as_rows(self.seen_by_all),
            examples=self.goal.task.encode(self.y, self.weights),
            task=self.goal.task,
            kernel=KERNELS[kernel](self, factor),
            intercept="free",
            random_state=0,
            n_jobs=self.n_jobs,
            **roughly,
        )

    def gamma(self, is_scaled: bool = False) -> float:
        """One over the sum of the features' variances, half the mean squared distance; or of scaled features."""
        mean = np.average(self.seen_by_all, axis=0, weights=self.weights)
        variances = np.average((self.seen_by_all - mean) ** 2, axis=0, weights=self.weights)
        total = float((variances * self.scales**2 if is_scaled else variances).sum())
        return 1.0 / total if total > 0 else 1.0

    @made_once
    def scales(self) -> Array:
        """Factors of the features, from how fast y changes along each."""
        return learned_factors(self.problem("matern32", 1.0), STEPS)


# Rows that train, and rows that are held out.
Part = tuple[Rows, Rows]


@dataclass(frozen=True)
class Found:
    """What a search has found: recipes with their weights and calibrations, the best one that is smooth, the folds, and
    losses out of fold: the mean's, the best model's, and the one without columns; and what the picks' losses out of
    fold need.
    """

    picks: dict[Recipe, tuple[float, Array | None]]
    n_tried: int
    smooth: Recipe
    parts: list[Part]
    losses: tuple[float, float, float] | None = None
    was_cut: bool = False
    evidences: dict[Recipe, Array] = field(default_factory=dict)


def merged(rows: Rows) -> Rows:
    """Few rows with equal ones as one that has all their weight, in an order of their own."""
    if len(rows.y) >= FEW_ROWS:
        return rows
    keys = np.column_stack([rows.features.astype(np.float64), rows.y])
    different, index = np.unique(keys, axis=0, return_inverse=True)
    weights = np.bincount(index.ravel(), rows.weights)
    y = different[:, -1].astype(rows.y.dtype)
    return replace(rows, features=different[:, :-1].astype(np.float32), y=y, weights=weights)


def folds_of(kinds: Array, rng: np.random.RandomState) -> Array:
    """The fold of every row, each with its share of every kind; −1 for rows of rare kinds, which are never held out."""
    order = shuffled_by_kind(kinds, rng)
    folds = np.empty(len(kinds), np.int64)
    folds[order] = np.arange(len(kinds)) % N_FOLDS
    sizes = np.bincount(kinds)[kinds]
    are_few = len(kinds) < FEW_ROWS or np.mean(sizes < FEWEST_OF_KIND) > 0.5
    folds[sizes < (FEWEST_OF_FEW if are_few else FEWEST_OF_KIND)] = -1
    return folds


# -- the search --------------------------------------------------------------------------------------------------------


def search(
    table: Table,
    y: Array,
    weights: Array,
    goal: Goal,
    rng: np.random.RandomState,
    n_jobs: int | None,
    verbose: int,
    most_values: int = MOST_VALUES,
) -> tuple[Found, TableEncoding, Rows]:
    """The recipes whose mean has the lowest loss out of fold; the encoding of all rows, which keeps so many values of a
    column, and rows to train on, encoded.

    Of many rows some are taken. A time limit and Ctrl-C end the search early: what was tried until then counts; Ctrl-C
    ends the fit where nothing was tried.
    """
    encoding, features = TableEncoding.learn(table, goal.targets(y), weights, most_values, straight=True)
    rows = merged(Rows(features, y, weights, encoding.are_flags, encoding.columns, goal, n_jobs))
    if len(y) < FEW_ROWS:
        parts = list(_folds_of_few(rows, rng))
    else:
        some = goal.some_rows(y, MOST_SEARCHED)
        parts = list(_folds(table.take(some), y[some], weights[some], goal, rng, n_jobs))
        rows = rows.take(goal.some_rows(y, MOST_TRAINED))
    tried, was_cut = _tried(parts, verbose) if parts else ({}, False)
    if not tried:
        return Found({DEFAULT: (1.0, None)}, 0, DEFAULT, parts, was_cut=was_cut), encoding, rows
    y, weights = held_out(parts)
    evidences = {recipe: evidence for recipe, (evidence, _) in tried.items()}
    chosen, loss = greedy_mean(evidences, y, weights, goal)
    losses = {recipe: goal.loss(evidence, y, weights) for recipe, evidence in evidences.items()}
    picks = {recipe: (weight, tried[recipe][1]) for recipe, weight in chosen.items()}
    smooth = min((recipe for recipe in losses if recipe.kernel in SMOOTH), key=losses.__getitem__, default=DEFAULT)
    told = loss, min(losses.values()), goal.loss_without_columns(y, weights)
    of_picks = {recipe: evidences[recipe] for recipe in picks}
    return Found(picks, len(tried), smooth, parts, told, was_cut, of_picks), encoding, rows


def held_out(parts: list[Part]) -> tuple[Array, Array]:
    """What the rows held out have as y, and their weights."""
    return np.concatenate([held.y for _, held in parts]), np.concatenate([held.weights for _, held in parts])


def _tried(parts: list[Part], verbose: int) -> tuple[dict[Recipe, Any], bool]:
    """What the loss out of fold needs, and the calibration, of every recipe; whether the search was cut short.

    Of each kernel all gammas are tried on the first fold, and the best ones on the others.
    """
    (y, weights), goal = held_out(parts), parts[0][0].goal
    n_first = len(parts[0][1].y)
    tried: dict[Recipe, Any] = {}
    was_cut = True
    try:
        with time_limit(share_of_time(SEARCH_SHARE)), suppress(OutOfTimeError):
            for kernel in one_by_one(kinds_for(parts[0][0], len(y)), "kinds of models, on held-out rows", verbose):
                factors = GAMMA_FACTORS if kernel in KERNELS else (1.0,)
                first = {factor: scores_along(parts[0], kernel, factor) for factor in factors}
                own = goal, y[:n_first], weights[:n_first]
                losses = {factor: min(judged(scores, *own)[0] for scores in first[factor]) for factor in factors}
                for factor in sorted(factors, key=lambda factor: losses[factor])[:N_GAMMAS]:
                    others = [scores_along(part, kernel, factor) for part in parts[1:]]
                    scores = np.concatenate([first[factor], *others], axis=1)
                    for C, of_C in zip(values_of_C(kernel), scores, strict=True):
                        tried[Recipe(kernel, factor, C)] = judged(of_C, goal, y, weights)[1:]
            was_cut = False
    except KeyboardInterrupt:
        if not tried:
            raise KeyboardInterrupt("stopped before a model was trained on all folds: nothing to keep") from None
    return tried, was_cut


def kinds_for(rows: Rows, n_rows: int) -> tuple[str, ...]:
    """What is tried with so many rows; without straight numbers a linear model is an additive one, or little else."""
    kinds = OF_FEW_ROWS if n_rows < LEAST_SCALED else OF_MANY_ROWS
    has_straight = rows.features.shape[1] > len(rows.are_flags)
    return tuple(kind for kind in kinds if kind != LINEAR or has_straight)


def values_of_C(kernel: str) -> tuple[float, ...]:
    """The values of C that are tried with a kernel, or of models without one."""
    return VALUES_OF_C if kernel in KERNELS else ADDITIVE_C


def judged(scores: Array, goal: Goal, y: Array, weights: Array) -> tuple[float, Array, Array]:
    """Loss, evidence and calibration of scores of rows held out."""
    calibration = goal.calibrate(scores, y, weights)
    evidence = goal.evidence(goal.predictions(scores, calibration), y)
    return goal.loss(evidence, y, weights), evidence, calibration


def _folds(
    table: Table, y: Array, weights: Array, goal: Goal, rng: np.random.RandomState, n_jobs: int | None
) -> Iterator[Part]:
    """For each fold the rows that train and those held out.

    No fold is held out that leaves a class without rows.
    """
    folds = folds_of(goal.kinds(y), rng)
    for fold in range(N_FOLDS):
        held, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held) and goal.has_all(y[train]):
            own = table.take(train), goal.targets(y[train]), weights[train]
            encoding, features = TableEncoding.learn(*own, straight=True)
            flags, columns = encoding.are_flags, encoding.columns
            rows = Rows(features, y[train], weights[train], flags, columns, goal, n_jobs)
            yield rows, replace(rows, features=encoding.features(table.take(held)), y=y[held], weights=weights[held])


def _folds_of_few(rows: Rows, rng: np.random.RandomState) -> Iterator[Part]:
    """Folds of few rows, which are encoded together: rows of the same features are held out together."""
    kinds = rows.goal.kinds(rows.y)
    groups = np.unique(rows.features, axis=0, return_inverse=True)[1].ravel()
    rarest_first = np.lexsort((np.bincount(kinds)[kinds], groups))
    firsts = rarest_first[np.unique(groups[rarest_first], return_index=True)[1]]
    folds = folds_of(rows.goal.kinds(rows.y[firsts]), rng)[groups]
    for fold in range(N_FOLDS):
        held, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held) and rows.goal.has_all(rows.y[train]):
            yield rows.take(train), rows.take(held)


def scores_along(part: Part, kernel: str, factor: float) -> Array:
    """Scores (n_C, n, m) of the rows held out by models of every C; time over is an error."""
    rows, held = part
    models = models_along(rows, kernel, factor, values_of_C(kernel))
    found = [scores_of(model, held.features, rows.n_jobs) for model in models]
    check_time()
    return np.stack(found)


def models_along(
    rows: Rows, kernel: str, factor: float, tried_C: Sequence[float]
) -> Iterator[KernelExpansion | AdditiveModel]:
    """The models of every C, each model trained from the one before; time over is an error."""
    if kernel not in KERNELS:
        X, as_they_are = rows.seen_by_all, rows.are_flags
        if kernel == LINEAR:
            X, as_they_are = rows.features, np.ones(rows.features.shape[1], bool)
        yield from additive_models(X, rows.y, rows.weights, as_they_are, rows.goal, tried_C)
        return
    problem, state = replace(rows.problem(kernel, factor), kept=Kept(Room())), None
    for C in tried_C:
        fit = fit_on_trial(EXACT, replace(problem, C=C), state)
        check_time()
        state = fit.state
        yield fit.model


def greedy_mean(
    evidences: dict[Recipe, Array], y: Array, weights: Array, goal: Goal
) -> tuple[dict[Recipe, float], float]:
    """Weights of the recipes in the mean with the lowest loss, and that loss."""
    picks: Counter[Recipe] = Counter()
    total: Any = 0.0
    for n in range(1, N_PICKS + 1):
        losses = {recipe: goal.loss((total + own) / n, y, weights) for recipe, own in evidences.items()}
        best = min(losses, key=lambda recipe: losses[recipe])
        picks[best] += 1
        total = total + evidences[best]
    return {recipe: count / N_PICKS for recipe, count in picks.items()}, losses[best]


# -- the models that stay ---------------------------------------------------------------------------------------------


def members_of(found: Found, rows: Rows) -> list[Member]:
    """The chosen recipes, trained on all rows: those for which there is time, at least one."""
    members: list[Member] = []
    for recipe, (weight, calibration) in sorted(found.picks.items(), key=lambda pick: -pick[1][0]):
        if members and is_time_over():
            break
        try:
            model, is_whole = trained(recipe, rows)
        except OutOfTimeError:  # of a model without a kernel, which is of no use before its end
            if members:
                break
            with no_limit():
                model, is_whole = trained(recipe, rows)
        if members and not is_whole:
            break
        if not is_whole and len(rows.y) <= MOST_SEARCHED:  # as long as a fold's took: there must be one
            with no_limit():
                model, _ = trained(recipe, rows)
        if calibration is None:  # no row was held out
            with no_limit():
                scores = scores_of(model, rows.features, rows.n_jobs)
                calibration = rows.goal.calibrate(scores, rows.y, rows.weights)
        members.append(Member(recipe, weight, model, calibration))
    total = sum(member.weight for member in members)
    return [replace(member, weight=member.weight / total) for member in members]


class Misfits(NamedTuple):
    """How badly rows held out fit, ascending: of all, and of each class if there are classes."""

    of_all: Array
    of_classes: list[Array]


def misfits_of(found: Found, members: list[Member], goal: Goal) -> Misfits:
    """The misfits of rows held out in the mean of models that were not trained on them."""
    if not found.evidences:
        return kept_misfits(np.zeros(0), np.zeros(0), goal)
    return kept_misfits(evidence_of(found, members), held_out(found.parts)[0], goal)


def evidence_of(found: Found, members: list[Member]) -> Array:
    """What the loss out of fold of a mean of models needs."""
    evidence: Any = sum(member.weight * found.evidences[member.recipe] for member in members)
    return np.asarray(evidence)


def kept_misfits(evidence: Array, y: Array, goal: Goal) -> Misfits:
    """The misfits that are kept of all rows, and of those of each class."""
    misfits, n_classes = goal.misfits(evidence, y), getattr(goal, "n_classes", 0)
    of_classes = [some_in_order(misfits[y == c], MOST_OF_CLASS) for c in range(n_classes)]
    return Misfits(some_in_order(misfits), of_classes)


def some_in_order(misfits: Array, most: int = MOST_MISFITS) -> Array:
    """Misfits, ascending; of many the ones that are as large as shares j / (most + 1) of them."""
    misfits, n = np.sort(misfits), len(misfits)
    if n > most:
        places = -(-(n + 1) * np.arange(1, most + 1) // (most + 1))
        misfits = misfits[places - 1]
    return misfits.astype(np.float32)  # as files have them


def trained(recipe: Recipe, rows: Rows) -> tuple[KernelExpansion | AdditiveModel, bool]:
    """The recipe's model of all rows, and whether there was time for all of it."""
    if recipe.kernel not in KERNELS:
        return next(models_along(rows, recipe.kernel, 1.0, (recipe.C,))), True
    fit = fit_on_trial(EXACT, replace(rows.problem(recipe.kernel, recipe.gamma_factor), C=recipe.C))
    return rounded(fit.model), fit.status is not Status.TIME_LIMIT


def rounded(model: KernelExpansion) -> KernelExpansion:
    """The model with vectors and coefficients that float32 holds, as files have them."""
    coef = model.coef.astype(np.float32).astype(np.float64)
    return replace(model, basis=model.basis.astype(np.float32), coef=coef)


def mean_of(members: list[Member], goal: Goal, X: Array, n_jobs: int | None) -> Array:
    """The mean of the models' predictions for encoded rows."""
    first, *others = (
        member.weight * goal.predictions(scores_of(member.model, X, n_jobs), member.calibration) for member in members
    )
    return sum(others, start=first)


def scores_of(model: KernelExpansion | AdditiveModel, X: Array, n_jobs: int | None) -> Array:
    """Scores of encoded rows by a model, which sees the first of their features."""
    return model.scores(np.ascontiguousarray(X[:, : n_seen(model)]), n_jobs)


def n_seen(model: KernelExpansion | AdditiveModel) -> int:
    """How many features a model sees."""
    return model.n_features if isinstance(model, AdditiveModel) else model.basis.shape[1]


def importances_of(members: list[Member], encoding: TableEncoding, rows: Rows) -> Array:
    """How far predictions move, root mean squared over some rows, where a column is at its mean; shares of columns."""
    X = rows.features[evenly(len(rows.y), MOST_MOVED)]
    means = np.average(rows.features, axis=0, weights=rows.weights)
    own = mean_of(members, rows.goal, X, rows.n_jobs)
    moves = np.zeros(len(encoding.encoders))
    for column in np.unique(rows.columns):
        moved = np.where(rows.columns == column, means, X).astype(np.float32)
        moves[column] = np.sqrt(np.mean((mean_of(members, rows.goal, moved, rows.n_jobs) - own) ** 2))
    return moves / moves.sum() if moves.any() else moves
