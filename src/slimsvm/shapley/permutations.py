"""Shapley values of kernels that are no products, as means over random permutations.

A permutation adds the features one by one; each gets what the score gains when it comes (Castro, Gómez and Tejada,
Computers & Operations Research, 2009). With each permutation goes its reverse, which takes away much of the variance
(Mitchell et al., JMLR 2022). The gains of every permutation add up to the score less the base value, so the means do.
"""

from __future__ import annotations

import numpy as np

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.shapley.plain_scores import terms_of

Array = np.ndarray

# Sums of features that are mapped at a time.
BLOCK_NUMBERS = 1 << 20


def sampled_values(
    model: PlainModel, coef: Array, X: Array, background: Array | None, n_pairs: int, rng: np.random.RandomState
) -> tuple[Array, Array]:
    """Shapley values (n, d, n_outputs) of scaled rows, and their standard errors, by the same permutations for all."""
    terms, vectors, d = terms_of(model), model.dense_vectors(), model.n_features
    permutations = np.array([rng.permutation(d) for _ in range(n_pairs)])
    orders = np.concatenate([permutations, permutations[:, ::-1]])
    absent = np.zeros((d, 1, len(vectors))) if background is None else terms.of(background, vectors)
    n_absent, n_outputs = absent.shape[1], coef.shape[1]
    gains = np.empty((2 * n_pairs, d, n_outputs))
    values, errors = np.empty((len(X), d, n_outputs)), np.empty((len(X), d, n_outputs))
    step = max(1, BLOCK_NUMBERS // ((d + 1) * n_absent * len(vectors)))
    for i, row in enumerate(X):
        change = terms.of(row[None], vectors) - absent  # (d, n_absent, n_vectors)
        for lo in range(0, 2 * n_pairs, step):
            some = orders[lo : lo + step]
            sums = np.empty((len(some), d + 1, n_absent, len(vectors)))
            sums[:, 0] = absent.sum(axis=0)
            np.cumsum(change[some], axis=1, out=sums[:, 1:])
            sums[:, 1:] += sums[:, :1]
            scores = terms.map(sums).mean(axis=2) @ coef
            np.put_along_axis(gains[lo : lo + step], some[:, :, None], np.diff(scores, axis=1), axis=1)
        pairs = 0.5 * (gains[:n_pairs] + gains[n_pairs:])
        values[i] = pairs.mean(axis=0)
        errors[i] = pairs.std(axis=0, ddof=1) / np.sqrt(n_pairs)
    return values, errors
