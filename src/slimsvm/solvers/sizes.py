"""Rules of the search for as few vectors as will do: rows held out, sizes to try, what may be lost, when to give up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slimsvm.solvers.base import Problem
from slimsvm.tasks import Examples, Regression

Array = np.ndarray

# One row in so many is held out, at most so many.
EVERY, MAX_HELD = 5, 20_000
# Sizes: the first, the factor to the next, and the largest two as shares of the exact SVM's vectors.
FIRST_SIZE, FACTOR, SHARES = 25, 4, (1 / 14, 1 / 9)
# What a model may err more than the exact SVM: this share of what that gains over a constant answer; for classes at
# most so much, and at most this share of the exact SVM's error, unless that is less than so much; for regression at
# most that share of it.
GAIN_SHARE, MAX_SLACK, ERROR_SHARE, LEAST_SLACK = 0.05, 0.003, 0.25, 0.0005
REGRESSION_SHARE = 0.01
# The search is given up where more than so many times that is expected at the largest size; and the last but one, which
# is nearly as dear, is passed over where more than so many times that is expected of it.
HOPELESS, UNLIKELY = 2.5, 1.5


@dataclass(frozen=True)
class Trial:
    """A number of vectors and the error of their model on the rows held out, at this many times the price C."""

    n_basis: int
    error: float
    price: float = 1.0


def parts(labels: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Positions of training rows and of those held out, of every label (or range of targets) the same share."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    every = max(EVERY, -(-len(labels) // MAX_HELD))
    is_held = np.arange(len(labels)) % every == every // 2
    return np.sort(order[~is_held]), np.sort(order[is_held])


def slack(error: float, problem: Problem, examples: Examples) -> float:
    """How much more than the exact SVM's error will do."""
    labels, weights = examples.labels, examples.weights
    if isinstance(problem.task, Regression):
        constant = problem.task.error(np.full(len(labels), np.median(labels)), examples)
        return min(GAIN_SHARE * max(0.0, constant - error), REGRESSION_SHARE * error)
    _, codes = np.unique(labels, return_inverse=True)
    constant = 1.0 - np.bincount(codes, weights=weights).max() / weights.sum()
    return min(GAIN_SHARE * max(0.0, constant - error), MAX_SLACK, max(ERROR_SHARE * error, LEAST_SLACK))


def told(exact: Trial, trials: list[Trial], allowed: float) -> str:
    """What was tried, in a line."""
    tried = ", ".join(
        f"{trial.n_basis} vectors {'' if trial.price == 1.0 else f'(at {trial.price:g} C) '}{trial.error:.4g}"
        for trial in trials
    )
    most = f"at most {allowed:.2g} more will do"
    return f"error on rows held out: exact SVM ({exact.n_basis} vectors) {exact.error:.4g}, {most}; {tried}"


def sizes_for(n_exact: int) -> list[int]:
    """Numbers of vectors to try where the exact SVM has n_exact."""
    last = [max(1, int(share * n_exact)) for share in SHARES]
    sizes, k = [], FIRST_SIZE
    while 1.5 * k < last[0]:
        sizes.append(k)
        k *= FACTOR
    return sizes + last


def hopeless(trials: list[Trial], least: float, most: float, size: int) -> bool:
    """Whether the excess over the least error will still be over ``most`` with so many vectors."""
    if len(trials) < 2 or not trials[-2].n_basis:
        return False
    (k_1, before), (k_2, now) = ((trial.n_basis, trial.error - least) for trial in trials[-2:])
    if now >= before or k_2 <= k_1:
        return now > most
    expected = now * (now / before) ** (np.log(size / k_2) / np.log(k_2 / k_1))
    return bool(expected > most)
