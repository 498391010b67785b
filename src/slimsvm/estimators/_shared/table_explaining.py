"""Shapley values of a table's columns: what each adds to a prediction, others being there or not.

A column that is not there has the values of background rows, and the mean over these is taken. A permutation adds the
columns one by one; each gets what the prediction gains when it comes. With each permutation goes its reverse. The gains
of a permutation add up to the prediction less the background's mean, so the means do (`slimsvm.shapley`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slimsvm.core.clock import check_time

Array = np.ndarray


def column_values(
    predict: Callable[[Array], Array],
    X: Array,
    background: Array,
    columns: Array,
    n_columns: int,
    n_pairs: int,
    rng: np.random.RandomState,
) -> tuple[Array, Array, Array]:
    """Shapley values (n, n_columns, n_outputs) of encoded rows, their standard errors, and base values (n_outputs,).

    Parameters
    ----------
    predict : callable
        Predictions (n, n_outputs) of encoded rows.
    X, background : ndarrays of shape (n, n_features) and (n_background, n_features)
    columns : int64 ndarray of shape (n_features,)
        The column that each feature comes from.
    n_columns, n_pairs : int
        ``n_pairs`` of permutations and their reverses, the same ones for all rows.
    rng : RandomState
    """
    used, n_absent = np.unique(columns), len(background)
    permutations = [rng.permutation(used) for _ in range(n_pairs)]
    base = predict(background).mean(axis=0)
    values, errors = (np.zeros((len(X), n_columns, len(base))) for _ in range(2))
    for i, row in enumerate(X):
        gains = np.zeros((n_pairs, n_columns, len(base)))
        for pair, permutation in enumerate(permutations):
            check_time()
            for order in (permutation, permutation[::-1]):
                mixed = np.tile(background, (len(order) + 1, 1, 1))
                for step, column in enumerate(order, 1):
                    mixed[step:, :, columns == column] = row[columns == column]
                found = predict(mixed.reshape(-1, X.shape[1])).reshape(len(order) + 1, n_absent, -1).mean(axis=1)
                gains[pair, order] += 0.5 * np.diff(found, axis=0)
        values[i] = gains.mean(axis=0)
        errors[i] = gains.std(axis=0, ddof=1) / np.sqrt(n_pairs)
    return values, errors, base
