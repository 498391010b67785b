"""Rows in uneven blocks, made by functions that forget them."""

from itertools import pairwise

import numpy as np

from slimsvm import Blocks

# Solvers that take no blocks, by name.
NO_BLOCKS = ("bcfw", "bvm", "cvm", "exact", "lasvm")


def pieces(X, n_blocks, seed=0):
    """X in blocks of random sizes, one of them without rows."""
    inner = np.sort(np.random.default_rng(seed).integers(0, X.shape[0] + 1, n_blocks - 2))
    bounds = [0, *inner, *inner[-1:], X.shape[0]]
    return [X[lo:hi] for lo, hi in pairwise(bounds)]


def in_blocks(X, n_blocks, cache_bytes=20_000):
    """`Blocks` of the same rows, of which a few at most are kept."""
    return Blocks([lambda piece=piece: piece.copy() for piece in pieces(X, n_blocks)], cache_bytes=cache_bytes)
