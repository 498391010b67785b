"""Rows drawn so that each class, or each range of targets, has its share."""

from __future__ import annotations

import numpy as np


def shuffled_by_kind(kinds: np.ndarray, rng: np.random.Generator | np.random.RandomState) -> np.ndarray:
    """Positions in the order of kinds, those of one kind shuffled: any that are at even distances have all kinds'
    shares.
    """
    order = rng.permutation(len(kinds))
    return order[np.argsort(kinds[order], kind="stable")]


def evenly(n: int, most: int) -> np.ndarray:
    """Positions of at most so many of n, at even distances."""
    n_chosen = min(n, max(1, most))
    return np.arange(n_chosen) * n // n_chosen
