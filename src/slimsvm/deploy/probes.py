"""Rows near a model's own vectors: what a shipped form's errors are measured on where there are no others."""

from __future__ import annotations

import numpy as np

from slimsvm.deploy.plain_model import PlainModel

Array = np.ndarray

PROBES = 256
SHIFT_INVARIANT = {"rbf": 2.0, "matern32": 6.0}


def rows_near_vectors(model: PlainModel) -> Array:
    """At most `PROBES` rows in float32, before any scaling, each a step away from a vector.

    There kernel values and their errors are the largest; on the vectors themselves errors would cancel. The step has
    about length 1 as the kernel measures it, or a thousandth of each feature's mean magnitude.
    """
    rows = (model.dense_vectors() + _step_aside(model))[:: -(-len(model.coef) // PROBES)]
    return (rows if model.scaling is None else model.scaling.unscaled(rows)).astype(np.float32)


def folded(model: PlainModel) -> tuple[Array, Array, Array]:
    """Scale, centre and vectors such that the kernel is one of |x' − z'|, x' = scale x − centre."""
    Z, gamma = model.dense_vectors(), model.parameters["gamma"]
    if model.kernel == "laplacian":
        scale = gamma * np.ones(model.n_features)
    else:
        scale = np.sqrt(SHIFT_INVARIANT[model.kernel] * gamma) * np.ones(model.n_features)
    centre = (Z * scale).mean(axis=0)
    return scale, centre, Z * scale - centre


def _step_aside(model: PlainModel) -> Array:
    d = model.n_features
    signs = 1.0 - 2.0 * (np.arange(d) % 2)
    if model.kernel in ("poly", "sigmoid"):
        return 1e-3 * signs * np.abs(model.dense_vectors()).mean(axis=0)
    scale, _, _ = folded(model)
    return signs / scale / (d if model.kernel == "laplacian" else np.sqrt(d))
