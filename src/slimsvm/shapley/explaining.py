"""What of a model is explained, and how."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from slimsvm.deploy.csr import as_rows, dense_rows
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.shapley.explanation import Explanation
from slimsvm.shapley.permutations import sampled_values
from slimsvm.shapley.plain_scores import terms_of
from slimsvm.shapley.product_kernels import product_values

Array = np.ndarray


def explain_scores(
    model: PlainModel, X: Any, background: Any, n_permutations: int, rng: np.random.RandomState, names: list[str] | None
) -> Explanation:
    """Shapley values of the model's scores; see `slimsvm.explain`."""
    if model.kind == "sequences" or model.kernel.form == "columns":
        found = f"{model.kind}, kernel {model.kernel.name}"
        raise ValueError(f"explain is for scores of rows of features, and there are none with {found}")
    data = _rows(X, "X", model)
    rows, absent = (
        _scaled(model, data),
        None if background is None else _scaled(model, _rows(background, "background", model)),
    )
    if absent is not None and not len(absent):
        raise ValueError("background must have at least one row, found none")
    output_names, mixing = _outputs(model)
    coef, intercept = model.coef @ mixing, model.intercept @ mixing
    errors = None
    if model.vectors is None:
        mean = np.zeros(model.n_features) if absent is None else absent.mean(axis=0)
        values = (rows - mean)[:, :, None] * coef
        base = mean @ coef + intercept
    else:
        base = _base(model, absent) @ coef + intercept
        if model.kernel.is_exponential:
            values = product_values(model, coef, rows, absent)
        else:
            values, errors = sampled_values(model, coef, rows, absent, -(-n_permutations // 2), rng)
    bases = np.tile(base, (len(rows), 1))
    if values.shape[2] == 1:
        values, bases, errors = values[:, :, 0], bases[:, 0], None if errors is None else errors[:, :, 0]
    return Explanation(values, bases, data, names, output_names, errors)


def _rows(X: Any, name: str, model: PlainModel) -> Array:
    """Rows of finite numbers as a float64 array."""
    rows = as_rows(X, name)
    if rows.shape[1] != model.n_features:
        raise ValueError(f"{name} must have {model.n_features} features as in training, found {rows.shape[1]}")
    dense = dense_rows(rows, 0, rows.shape[0])
    if not np.isfinite(dense).all():
        row, column = np.argwhere(~np.isfinite(dense))[0]
        raise ValueError(f"{name} must hold finite numbers, found {dense[row, column]} in row {row}, column {column}")
    return dense


def _scaled(model: PlainModel, rows: Array) -> Array:
    return rows if model.scaling is None else model.scaling.rows(rows)


def _base(model: PlainModel, absent: Array | None) -> Array:
    """Kernel values of all vectors where no feature is there: the mean over the background, or h(0)."""
    terms, vectors = terms_of(model), model.dense_vectors()
    if absent is None:
        return terms.map(np.zeros(len(vectors)))
    return np.mean([terms.map(terms.of(row[None], vectors).sum(axis=0))[0] for row in absent], axis=0)


def _outputs(model: PlainModel) -> tuple[list[str] | None, Array]:
    """Names of the outputs, None of a single one, and what makes them of the model's scores (n_scores, n_outputs)."""
    same = np.eye(model.n_outputs)
    if model.n_outputs == 1 or model.classes is None:
        return None, same
    classes = [str(label) for label in model.classes.tolist()]
    pairs = list(combinations(range(len(classes)), 2))
    if model.kind == "pairs":
        return [f"{classes[a]} - {classes[b]}" for a, b in pairs], same
    if model.kind == "classes" and model.options.get("decision_function_shape") == "ovo":
        differences = np.stack([same[a] - same[b] for a, b in pairs], axis=1)
        return [f"{classes[a]} - {classes[b]}" for a, b in pairs], differences
    return classes, same
