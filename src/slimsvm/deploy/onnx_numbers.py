"""Choose the types of an ONNX graph: the cheapest ones that are right for the model, tried on rows near its vectors.

Exponentials make float64 slow: ONNX Runtime needs thirty times as long for one as in float32, and twice as long for a
product of matrices. If coefficients cancel, the sums need float64 first, and distances, which are differences of
squares; for exponentials seven digits suffice far longer. ONNX Runtime adds up the terms of a score one after another,
so that in float32 the sum alone would be off by 1e-5 of it with 500 vectors: there a score is the sum in float64 of
some sums in float32. A vector's share of the error is proportional to its coefficient: often only the vectors with the
largest coefficients need float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import PlainModel, of_term
from slimsvm.deploy.probes import (
    GOOD_SHARE,
    check_rows_in_float32,
    check_scores_in_float32,
    errors_on,
    folded,
    probes,
    share_of_error,
)
from slimsvm.kernels.kernel import NUMPY

Array = np.ndarray


class Numbers(NamedTuple):
    """Types of a graph's numbers: of scaling and distances, of the step from these to kernel values, and of sums.

    They hold for the share ``exact_eighths`` / 8 of the vectors, the ones with the largest coefficients. The other
    vectors are in float32, or if these are all in float64, have only their kernel values in float32.
    """

    distances: type
    values: type
    sums: type
    exact_eighths: int = 8

    def __str__(self) -> str:
        names = [np.dtype(kind).name for kind in self[:3]]
        said = ", ".join(f"{part} in {name}" for part, name in zip(("distances", "kernel values", "sums"), names))
        said = names[0] if len(set(names)) == 1 else said
        if self.exact_eighths == 8:
            return said
        others = "kernel values of the others" if self.values == np.float64 else "others"
        return f"{said}; of {self.exact_eighths} vectors in 8, {others} in float32"


SINGLE, DOUBLE = (Numbers(kind, kind, kind) for kind in (np.float32, np.float64))
ONE_TYPE = {"float32": SINGLE, "float64": DOUBLE}
EXACT_DISTANCES = Numbers(np.float64, np.float32, np.float32)
EXACT_SUMS = Numbers(np.float64, np.float32, np.float64)
# Fewer vectors are not divided: twice as many operators would take longer than their numbers.
LEAST_DIVIDED = 128
# The cheapest first.
CHOICES = [
    SINGLE,
    *(numbers._replace(exact_eighths=k) for k in (2, 3, 4, 8) for numbers in (EXACT_DISTANCES, EXACT_SUMS)),
    *(DOUBLE._replace(exact_eighths=k) for k in (2, 3, 4)),
]
# Parts of a score's sum in float32, and columns that all parts of all scores may have.
MOST_PARTS, MOST_COLUMNS = 16, 64


def numbers_for(model: PlainModel, rows: type = np.float32) -> Numbers:
    """The cheapest whose scores of rows in this type are right to `GOOD_SHARE` of the largest one."""
    if model.is_one_product:  # which float64 does not make slow
        return DOUBLE
    if model.kind == "one class" and rows == np.float64:  # the boundary goes through training rows
        return DOUBLE
    for numbers in CHOICES:
        if numbers.exact_eighths < 8 and len(model.coef) < LEAST_DIVIDED:
            continue
        if share_of_error(model, partial(scores_in, model, numbers=numbers), rows) <= GOOD_SHARE:
            return numbers
    return DOUBLE


def check_in_float32(model: PlainModel) -> None:
    """An error where a graph in float32, which somebody asked for, loses too much."""
    check_rows_in_float32(model)
    if not model.is_one_product:
        check_scores_in_float32(model, partial(scores_in, model, numbers=SINGLE))


def said_of_errors(model: PlainModel, numbers: Numbers) -> str:
    """Describe the error of scores near the vectors in these types; nothing where a score is one product."""
    if model.is_one_product:
        return ""
    groups = errors_on(model, partial(scores_in, model, numbers=numbers), probes(model))
    error = max((found.error / found.largest for found in groups), default=0.0)
    if not np.isfinite(error):
        raise ValueError("scores of rows near the vectors are beyond float32: scale the features, or take float64")
    return f"; on rows near the vectors scores differ by at most {error:.1e} of the largest" if groups else ""


def parts_of_sums(n_outputs: int) -> int:
    """In how many parts the terms of a score are added up in float32."""
    return max(1, min(MOST_PARTS, MOST_COLUMNS // n_outputs))


def parts_of(model: PlainModel, numbers: Numbers) -> list[tuple[PlainModel, Numbers]]:
    """Models whose scores add up to this one's, and the numbers of each."""
    if numbers.exact_eighths == 8:
        return [(model, numbers)]
    order, vectors = np.argsort(-np.abs(model.coef).max(axis=1), kind="stable"), model.dense_vectors()
    n_exact = len(order) * numbers.exact_eighths // 8
    of_others = EXACT_SUMS if numbers.values == np.float64 else SINGLE
    largest, others = np.sort(order[:n_exact]), np.sort(order[n_exact:])
    return [
        (replace(model, vectors=vectors[largest], coef=model.coef[largest]), numbers._replace(exact_eighths=8)),
        (
            replace(model, vectors=vectors[others], coef=model.coef[others], intercept=np.zeros(model.n_outputs)),
            of_others,
        ),
    ]


class Distances(NamedTuple):
    """The kernel's z is −factor · |y − z|² / 2 or, with factor 1, −|y − z|₁; y = x · scale − centre.

    ``scale`` is None where rows need none.
    """

    scale: Array | None
    centre: Array
    vectors: Array
    factor: float


def distances_of(model: PlainModel) -> Distances:
    """The constants by which a graph computes distances; one number that scales all features goes into them."""
    scale, centre, Z = folded(model)
    if model.kernel.form == "absolute" or np.ptp(scale) > 0:
        return Distances(scale, centre, Z, 1.0)
    return Distances(None, centre / scale, Z / scale, float(scale[0]) ** 2)


def points_of(form: Distances) -> Array:
    """Points whose product with (y, −factor · |y|² / 2, 1) is −factor · |y − z|² / 2."""
    Z, factor = form.vectors, form.factor
    return np.column_stack([factor * Z, np.ones(len(Z)), -0.5 * factor * np.sum(Z * Z, axis=1)])


def scores_in(model: PlainModel, rows: Array, numbers: Numbers) -> Array:
    """Compute with NumPy what the graph computes, also the rounding of scores."""
    scores = np.sum([_scores_of_part(part, rows, of_part) for part, of_part in parts_of(model, numbers)], axis=0)
    return scores.astype(numbers.distances).astype(np.float64)


def _scores_of_part(model: PlainModel, rows: Array, numbers: Numbers) -> Array:
    real = np.dtype(numbers.distances).type
    rows = rows.astype(real)
    if model.scaling is not None:
        rows = model.scaling.in_type(real).rows(rows)
    values = _values_in(model, rows, numbers)
    if numbers.sums == np.float64:
        return values.astype(np.float64) @ model.coef + model.intercept
    n_parts = parts_of_sums(model.n_outputs)
    sums = np.zeros((len(rows), n_parts, model.n_outputs), np.float32)
    for j, coef in enumerate(model.coef.astype(np.float32)):
        sums[:, j % n_parts] += values[:, j : j + 1] * coef
    return sums.sum(axis=1, dtype=np.float64) + model.intercept


def _values_in(model: PlainModel, rows: Array, numbers: Numbers) -> Array:
    """Kernel values of scaled rows, in the type that they have in the graph."""
    real, kernel = rows.dtype.type, model.kernel
    if kernel.form == "terms":
        of_terms = (
            np.dtype(numbers.values).type(term.share) * _values_in(of_term(model, term), rows[:, term.columns], numbers)
            for term in kernel.terms(model.n_features)
        )
        return reduce(np.add, of_terms)
    if kernel.form == "products":
        z = rows @ (kernel.gamma * model.dense_vectors()).astype(real).T + real(kernel.coef0)
    else:
        form = distances_of(model)
        if form.scale is not None:
            rows = rows * form.scale.astype(real)
        z = Z_IN[kernel.form](rows - form.centre.astype(real), form)
    return kernel.formula(z.astype(numbers.values), NUMPY)


def _minus_magnitudes(rows: Array, form: Distances) -> Array:
    return -np.stack([np.abs(rows - z).sum(axis=1) for z in form.vectors.astype(rows.dtype)], axis=1)


def _minus_half_squares(rows: Array, form: Distances) -> Array:
    """Constants are rounded once, as in the graph."""
    norms = np.sum(rows * rows, axis=1)[:, None] * rows.dtype.type(-0.5 * form.factor)
    points = points_of(form).astype(rows.dtype)
    return rows @ points[:, :-2].T + norms + points[:, -1]


# z of folded rows, as the graph has it.
Z_IN = {"squares": _minus_half_squares, "absolute": _minus_magnitudes}
