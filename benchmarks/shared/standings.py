"""Who stands where after many sets: ranks, pairs won, ratios and Elo, from one loss for each method and set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

Array = np.ndarray

RESAMPLED, INTERVAL = 1000, (2.5, 97.5)
ROUNDS = 500  # of the fixed point of strengths, which then moves by less than one of Elo
ELO_OF_ANCHOR = 1000.0


class Standing(NamedTuple):
    """Of one method; pairs and Elo with an interval over sets drawn again."""

    rank: float
    beaten: tuple[float, float, float]
    ratio: float
    elo: tuple[float, float, float]


def standings(losses: Array, ours: int, beside: int, anchor: int) -> list[Standing]:
    """Where every method stands.

    Parameters
    ----------
    losses : ndarray of shape (n_sets, n_methods)
        Infinite where a method failed: it comes last, and the set does not count in its ratio.
    ours, beside, anchor : int
        The methods whose share of wins against each other one is told, whose losses are 1 in ratios (geometric means),
        and whose Elo is 1000.
    """
    order = rankdata(losses, axis=1)
    wins = (losses[:, :, None] < losses[:, None, :]) + 0.5 * (losses[:, :, None] == losses[:, None, :])
    drawn = np.random.default_rng(0).integers(len(losses), size=(RESAMPLED, len(losses)))
    shares = np.concatenate([wins.mean(axis=0)[None], wins[drawn].mean(axis=1)])
    elos = elo(len(losses) * shares, anchor)
    return [
        Standing(
            float(order[:, j].mean()),
            with_interval(shares[:, ours, j]),
            ratio_of(losses[:, j], losses[:, beside]),
            with_interval(elos[:, j]),
        )
        for j in range(losses.shape[1])
    ]


def with_interval(values: Array) -> tuple[float, float, float]:
    """The first value, and an interval of the others."""
    low, high = np.percentile(values[1:], INTERVAL)
    return float(values[0]), float(low), float(high)


def ratio_of(losses: Array, others: Array) -> float:
    """Geometric mean of the ratios where both are finite; NaN where that is nowhere."""
    both = np.isfinite(losses) & np.isfinite(others)
    return float(np.exp(np.mean(np.log(losses[both] / others[both])))) if both.any() else float("nan")


def elo(wins: Array, anchor: int) -> Array:
    """Elo of the Bradley-Terry model, in which each pair has one more game that nobody wins.

    Parameters
    ----------
    wins : ndarray of shape (..., n, n)
        Games that the row's method won against the column's.
    anchor : int
        The method whose Elo is `ELO_OF_ANCHOR`.

    Returns
    -------
    ndarray of shape (..., n)
    """
    n = wins.shape[-1]
    won = (wins + 0.5) * (1.0 - np.eye(n))
    games = won + np.swapaxes(won, -1, -2)
    strength = np.ones(wins.shape[:-1])
    for _ in range(ROUNDS):
        strength = won.sum(axis=-1) / (games / (strength[..., :, None] + strength[..., None, :])).sum(axis=-1)
        strength /= strength[..., anchor, None]
    return ELO_OF_ANCHOR + 400.0 * np.log10(strength)
