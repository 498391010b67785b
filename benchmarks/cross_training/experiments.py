"""The experiments of Bakır, Bottou, Weston, "Breaking SVM Complexity with Cross-Training" (NIPS 2004), section 4.

Each experiment is a function that returns cases; `CASES` lists them. A case is a set, its size and its settings; its
rows are drawn anew with every seed.

Where the paper leaves something open, or differs:

- The paper does not say how large the subsets of figure 3 are. Its five subsets are a fifth of the rows each here, as
  in figure 4.
- The standard deviation of its Gaussians is 4 in the text. The errors of figure 3 begin at 13 %, which is the Bayes
  error for a variance of 4; a deviation of 4 would make it 28.8 %.
- Its figure 4 has ν-SVMs. C-SVMs have the same solutions, with C in place of ν.
- The first C is judged on rows that an SVM was not trained on, the last one on the validation rows. Of values of C that
  err equally little, the first SVMs take the highest, the last one the lowest that has about the fewest vectors.
  A search ends after two values that do not err less. So does `CrossTrainedSVC`; the paper says nothing of it.
- Forest is tested on 45,750 rows, the paper's on 58,100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cross_training.compared_solvers import COMPARED
from slimsvm.datasets import Dataset, load, two_gaussians

GAUSSIANS = (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000)
GAUSSIAN_TEST_ROWS = 20_000
DIGITS = (2000, 4000, 8000, 11_982)
NOISE = (0.0, 0.05, 0.10, 0.15)
OVERLAPS = (0.0, 0.1, 0.2, 0.4, 0.6, 0.8)
SUBSETS = 5  # their size is this share of the rows, unless table 1 says otherwise
COMPARED_TEST_ROWS = 20_000


class Setting(NamedTuple):
    """A row of table 1: the set, rows to train on, width of the kernel, number of subsets and their size."""

    data: str
    n: int
    gamma: float
    n_subsets: int
    subset_size: int


SETS = {
    "banana": Setting("banana", 400, 1.0, 5, 200),
    "waveform": Setting("waveform", 400, 0.05, 5, 200),
    "splice": Setting("splice", 1000, 0.0143, 5, 300),
    "adult-3185": Setting("adult", 3185, 0.025, 5, 700),
    "adult": Setting("adult", 32_560, 0.025, 5, 6000),
    "forest-50000": Setting("covtype-457k", 50_000, 8.0, 5, 10_000),
    "forest-90000": Setting("covtype-457k", 90_000, 8.0, 5, 18_000),
    "forest-200000": Setting("covtype-457k", 200_000, 8.0, 8, 30_000),
}


@dataclass(frozen=True)
class Trial:
    """Rows to train and test on, and how.

    Parameters
    ----------
    X, X_test : ndarray or sparse matrix
    y, y_test : ndarray
        Labels −1 and +1.
    clean : ndarray
        The test labels without noise.
    kernel : dict
        Parameters of the kernel.
    C : float or None
        C of the exact SVM; None: chosen by cross-validation.
    n_subsets, subset_size : int
        Those of the paper's recipe.
    """

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    clean: np.ndarray
    kernel: dict[str, Any]
    C: float | None
    n_subsets: int
    subset_size: int

    def head(self, n: int) -> Trial:
        """The trial with the first n training rows, and with subsets that are as large a share of them."""
        n = min(n, len(self.y))
        size = max(2, self.subset_size * n // len(self.y))
        return Trial(self.X[:n], self.y[:n], self.X_test, self.y_test, self.clean, self.kernel, self.C,
                     self.n_subsets, size)  # fmt: skip


class Case(NamedTuple):
    """A point of a figure or a row of a table: what records call it, and what draws its rows with a seed."""

    key: dict[str, Any]
    draw: Callable[[int], Trial]


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to run.

    Parameters
    ----------
    sizes : tuple of int or None
        Training rows of the Gaussians and the digits; None: all sizes.
    noise : tuple of float
        Shares of the digits' labels that are turned round.
    sets : tuple of str or None
        Sets of table 1 and of the comparison of solvers; None: all of them.
    rows : int
        Training rows of the comparison of solvers.
    overlaps : tuple of float
        Of the two squares.
    square_rows : int
        Training rows of the two squares.
    """

    sizes: tuple[int, ...] | None = None
    noise: tuple[float, ...] = NOISE
    sets: tuple[str, ...] | None = None
    rows: int = 5000
    overlaps: tuple[float, ...] = OVERLAPS
    square_rows: int = 2000


def overlap(scope: Scope) -> list[Case]:
    """Figure 1: two uniform unit squares that overlap, linear kernel."""
    n = scope.square_rows
    return [
        Case({"data": "squares", "n_train": n, "overlap": share}, partial(draw_squares, n, share))
        for share in scope.overlaps
    ]


def draw_squares(n: int, share: float, seed: int) -> Trial:
    """Rows of two squares that share this much of their area."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((2 * n, 2)), np.where(np.arange(2 * n) % 2 == 0, 1, -1)
    X[:, 0] += (1 - share) * (y > 0)
    return Trial(X[:n], y[:n], X[n:], y[n:], y[n:], {"kernel": "linear"}, 10.0, SUBSETS, n // SUBSETS)


def gaussians(scope: Scope) -> list[Case]:
    """Figure 3: two Gaussians in ten dimensions, linear kernel."""
    return [Case({"data": "gaussians", "n_train": n}, partial(draw_gaussians, n)) for n in scope.sizes or GAUSSIANS]


def draw_gaussians(n: int, seed: int) -> Trial:
    """Rows of two Gaussians whose means are 2√5 apart, with variance 4; the test rows are always the same."""
    X, y = two_gaussians(n, 10, 5**0.5, random_state=seed)
    X_test, y_test = two_gaussians(GAUSSIAN_TEST_ROWS, 10, 5**0.5, random_state=10_000)
    return Trial(X, y, X_test, y_test, y_test, {"kernel": "linear"}, None, SUBSETS, n // SUBSETS)


def noise(scope: Scope) -> list[Case]:
    """Figure 4: MNIST 3 against 8, a share of the labels turned round."""
    return [
        Case({"data": "mnist-38", "n_train": n, "noise": share}, partial(draw_digits, n, share))
        for share in scope.noise
        for n in scope.sizes or DIGITS
    ]


def draw_digits(n: int, share: float, seed: int) -> Trial:
    """Rows of the digits; labels of training and test rows are turned round."""
    X, y, X_test, clean = signed("mnist-38")
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    rng = np.random.default_rng(1000 + seed)
    turned, turned_test = (np.where(rng.random(len(labels)) < share, -1, 1) for labels in (y, clean))
    labels, size = (y * turned)[rows], len(rows) // SUBSETS
    return Trial(X[rows], labels, X_test, clean * turned_test, clean, {"gamma": 0.005}, None, SUBSETS, size)


def sets(scope: Scope) -> list[Case]:
    """Table 1: real sets with the paper's numbers of rows and subsets."""
    names = [name for name in SETS if scope.sets is None or name in scope.sets]
    return [Case({"data": name, "n_train": SETS[name].n}, partial(draw_set, SETS[name])) for name in names]


def draw_set(setting: Setting, seed: int) -> Trial:
    """Random training rows of a set, and its test rows."""
    X, y, X_test, y_test = signed(setting.data)
    rows = np.random.default_rng(seed).permutation(len(y))[: setting.n]
    kernel, size = {"gamma": setting.gamma}, min(setting.subset_size, len(rows) // 2)
    return Trial(X[rows], y[rows], X_test, y_test, y_test, kernel, None, setting.n_subsets, size)


def comparators(scope: Scope) -> list[Case]:
    """Not in the paper: sets for solvers side by side."""
    names = [name for name in COMPARED if scope.sets is None or name in scope.sets]
    return [Case({"data": name, "n_train": scope.rows}, partial(draw_compared, name, scope.rows)) for name in names]


def draw_compared(name: str, n: int, seed: int) -> Trial:
    """Random training rows of a set with its C and γ, and its first test rows."""
    C, gamma = COMPARED[name]
    X, y, X_test, y_test = signed(name)
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    X_test, y_test = X_test[:COMPARED_TEST_ROWS], y_test[:COMPARED_TEST_ROWS]
    return Trial(X[rows], y[rows], X_test, y_test, y_test, {"gamma": gamma}, C, SUBSETS, len(rows) // SUBSETS)


@cache
def loaded(name: str) -> Dataset:
    """A set; the last ones stay in memory."""
    return load(name)


def signed(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Training rows and labels −1 and +1, test rows and labels of a set."""
    data = loaded(name)
    return data.X_train, np.where(data.y_train > 0, 1, -1), data.X_test, np.where(data.y_test > 0, 1, -1)


CASES: dict[str, Callable[[Scope], list[Case]]] = {
    "overlap": overlap,
    "gaussians": gaussians,
    "noise": noise,
    "sets": sets,
    "comparators": comparators,
}


def quick(scope: Scope) -> Scope:
    """A scope of seconds: few rows, three overlaps."""
    return Scope(scope.sizes or (300, 1200), scope.noise, scope.sets, scope.rows, OVERLAPS[::2], 400)
