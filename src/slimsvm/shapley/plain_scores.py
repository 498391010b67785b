"""Scores as functions of features that are there or not.

Every kernel here is h(Σ_f u_f(x_f, z_f)): an absent feature's u_f is 0, or with a background row r that of r_f.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import PlainModel

Array = np.ndarray


class Terms(NamedTuple):
    """u_f(x_f, z_f) of rows and vectors, and h."""

    of: Callable[[Array, Array], Array]
    map: Callable[[Array], Array]


def terms_of(model: PlainModel) -> Terms:
    """The two of a model's kernel; ``of(X, Z)`` has shape (n_features, n_rows, n_vectors)."""
    gamma, kernel = model.parameters.get("gamma", 1.0), model.kernel
    if kernel in ("rbf", "laplacian", "matern32"):
        weight = np.broadcast_to(np.asarray(gamma, np.float64), (model.n_features,))[:, None, None]
        if kernel == "laplacian":
            return Terms(lambda X, Z: weight * np.abs(_differences(X, Z)), lambda u: np.exp(-u))
        if kernel == "rbf":
            return Terms(lambda X, Z: weight * _differences(X, Z) ** 2, lambda u: np.exp(-u))
        return Terms(lambda X, Z: 6.0 * weight * _differences(X, Z) ** 2, _matern32)
    coef0 = model.parameters["coef0"]
    if kernel == "sigmoid":
        return Terms(lambda X, Z: gamma * _products(X, Z), lambda u: np.tanh(u + coef0))
    degree = model.parameters["degree"]
    return Terms(lambda X, Z: gamma * _products(X, Z), lambda u: (u + coef0) ** degree)


def _differences(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] - Z.T[:, None, :]


def _products(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] * Z.T[:, None, :]


def _matern32(squares: Array) -> Array:
    """Squares that were added up and taken away again may be a little below 0."""
    s = np.sqrt(np.maximum(squares, 0.0))
    return (1.0 + s) * np.exp(-s)
