"""Rows near a model's own vectors: what a shipped form's errors are measured on where there are no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import PlainModel

Array = np.ndarray

PROBES = 256
# What errors of scores are promised to be over the largest score. On test rows of the benchmark's sets they were up to
# 1.7 times those of the rows here, so these must be better.
PROMISED_SHARE, GOOD_SHARE = 5e-6, 2.5e-6
# Scores of classifiers are margins, 2.7 to 6.5 at most on test rows of the benchmark's sets, but 15 on the rows here.
MARGINS, LARGEST_MARGIN = ("binary", "classes", "pairs", "labels", "ordinal", "ranking"), 4.0
# Rows whose scores are all smaller than this share of the others' are not judged by their own largest one.
LEAST_SHARE = 0.1
SHIFT_INVARIANT = {"rbf": 2.0, "matern32": 6.0}


def probes(model: PlainModel) -> list[Array]:
    """Rows in float32, before any scaling: at most `PROBES` vectors, as many a step aside, as many halfway to the mean.

    On a vector and near it its kernel value is the largest, and so is that one's error; in the middle many are large at
    a time. Without vectors the rows are normal numbers.
    """
    if model.vectors is None:
        return [_before_scaling(model, np.random.default_rng(0).standard_normal((PROBES, model.n_features)))]
    if not len(model.coef):
        return []
    every, vectors = slice(None, None, -(-len(model.coef) // PROBES)), model.dense_vectors()
    groups = vectors, vectors + _step_aside(model), 0.5 * (vectors + vectors.mean(axis=0))
    return [_before_scaling(model, rows[every]) for rows in groups]


def share_of_error(model: PlainModel, scores: Callable[[Array], Array]) -> float:
    """The largest error of these scores of `probes`, over the largest score that such rows and real ones have."""
    errors = errors_on(model, scores, probes(model))
    least = LEAST_SHARE * max((found.largest for found in errors), default=0.0)
    shares = [found.error / max(found.largest, least) for found in errors]
    if model.kind in MARGINS:
        shares += [found.error / LARGEST_MARGIN for found in errors if found.largest > LARGEST_MARGIN]
    return max(shares, default=0.0)


class Errors(NamedTuple):
    """Of scores of some rows: the largest error, the largest score, and the rows in float64."""

    error: float
    largest: float
    rows: Array


def errors_on(model: PlainModel, scores: Callable[[Array], Array], groups: list[Array]) -> list[Errors]:
    """What these scores are off by, for each group of rows."""
    out = []
    for rows in groups:
        rows = rows.astype(np.float32).astype(np.float64)
        exact = model.scores(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            error = np.nan_to_num(np.abs(scores(rows) - exact), nan=np.inf).max()
        out.append(Errors(float(error), max(float(np.abs(exact).max()), np.finfo(np.float64).tiny), rows))
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
