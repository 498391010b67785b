"""Scores as functions of features that are there or not.

Every kernel here is h(Σ_f u_f(x_f, z_f)), by its formula: an absent feature's u_f is 0, or with a background row r that
of r_f.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.kernels.kernel_form import NUMPY

Array = np.ndarray


class Terms(NamedTuple):
    """u_f(x_f, z_f) of rows and vectors, and h."""

    of: Callable[[Array, Array], Array]
    map: Callable[[Array], Array]


def terms_of(model: PlainModel) -> Terms:
    """The two of a model's kernel; ``of(X, Z)`` has shape (n_features, n_rows, n_vectors)."""
    kernel = model.kernel
    gamma = np.broadcast_to(np.asarray(kernel.gamma, np.float64), (model.n_features,))[:, None, None]
    if kernel.form == "products":
        return Terms(lambda X, Z: gamma * _products(X, Z), lambda u: kernel.formula(u + kernel.coef0, NUMPY))
    of_difference = OF_DIFFERENCE[kernel.form]
    weight = (-0.5 if kernel.form == "squares" else -1.0) * kernel.unit * gamma
    return Terms(lambda X, Z: weight * of_difference(_differences(X, Z)), lambda u: kernel.formula(u, NUMPY))


OF_DIFFERENCE = {"squares": np.square, "absolute": np.abs}


def _differences(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] - Z.T[:, None, :]


def _products(X: Array, Z: Array) -> Array:
    return X.T[:, :, None] * Z.T[:, None, :]
