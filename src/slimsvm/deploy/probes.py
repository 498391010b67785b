"""Rows near a model's own vectors: what a shipped form's errors are measured on where there are no others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from slimsvm.deploy.plain_model import PlainModel

Array = np.ndarray

PROBES = 256
# What errors of scores are promised to be over the largest score. On test rows of the benchmark's sets they were up to
# three times those of the rows here, so these must be better.
PROMISED_SHARE, GOOD_SHARE = 5e-6, 1.5e-6
# Rows whose scores are all smaller than this share of the others' are not judged by their own largest one.
LEAST_SHARE = 0.1
SHIFT_INVARIANT = {"rbf": 2.0, "matern32": 6.0}


def probes(model: PlainModel) -> list[Array]:
    """Rows in float32, before any scaling: at most `PROBES` near vectors, and as many near the middle of them all.

    Near a vector its kernel value and that one's error are the largest; in the middle many are large at a time. Without
    vectors the rows are normal numbers.
    """
    if model.vectors is None:
        return [_before_scaling(model, np.random.default_rng(0).standard_normal((PROBES, model.n_features)))]
    if not len(model.coef):
        return []
    every, vectors = slice(None, None, -(-len(model.coef) // PROBES)), model.dense_vectors()
    middle = vectors.mean(axis=0)
    # On the vectors themselves errors would cancel.
    aside = vectors + _step_aside(model)
    return [_before_scaling(model, rows[every]) for rows in (aside, middle + 0.3 * (vectors - middle))]


def share_of_error(model: PlainModel, scores: Callable[[Array], Array]) -> float:
    """The largest error of these scores of `probes`, over the largest score of the same rows."""
    return max((share for share, _ in errors_on(model, scores, probes(model))), default=0.0)


def errors_on(model: PlainModel, scores: Callable[[Array], Array], groups: list[Array]) -> list[tuple[float, Array]]:
    """For each group of rows the largest error over the largest score, and the rows, in float64."""
    groups = [rows.astype(np.float32).astype(np.float64) for rows in groups if len(rows)]
    exact = [model.scores(rows) for rows in groups]
    largest = [max(float(np.abs(part).max()), np.finfo(np.float64).tiny) for part in exact]
    out = []
    for rows, part, size in zip(groups, exact, largest, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.nan_to_num(np.abs(scores(rows) - part), nan=np.inf).max())
        out.append((error / max(size, LEAST_SHARE * max(largest)), rows))
    return out


def _before_scaling(model: PlainModel, rows: Array) -> Array:
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
    """A step of about length 1 as the kernel measures it, or of a thousandth of each feature's mean magnitude."""
    d = model.n_features
    signs = 1.0 - 2.0 * (np.arange(d) % 2)
    if model.kernel in ("poly", "sigmoid"):
        return 1e-3 * signs * np.abs(model.dense_vectors()).mean(axis=0)
    scale, _, _ = folded(model)
    return signs / scale / (d if model.kernel == "laplacian" else np.sqrt(d))
