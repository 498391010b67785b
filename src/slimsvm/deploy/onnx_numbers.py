"""Which numbers an ONNX graph computes in: the cheapest that are right for the model, tried on rows near its vectors.

What float64 costs is exponentials: ONNX Runtime needs thirty times as long for one as in float32, and twice as long
for a product of matrices. Where coefficients cancel it is the sums that need float64, and distances, which are
differences of squares; exponentials do far longer with seven digits. ONNX Runtime adds up the terms of a score one
after another, so that in float32 the sum alone would be off by 1e-5 of it with 500 vectors: there a score is the sum in
float64 of some sums in float32.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.probes import GOOD_SHARE, folded, share_of_error

Array = np.ndarray


class Numbers(NamedTuple):
    """Types of a graph's numbers: of scaling and distances, of the step from these to kernel values, and of sums."""

    distances: type
    values: type
    sums: type

    def __str__(self) -> str:
        names = [np.dtype(kind).name for kind in self]
        if len(set(names)) == 1:
            return names[0]
        return ", ".join(f"{part} in {name}" for part, name in zip(("distances", "kernel values", "sums"), names))


SINGLE, DOUBLE = Numbers(*3 * [np.float32]), Numbers(*3 * [np.float64])
EXACT_DISTANCES = Numbers(np.float64, np.float32, np.float32)
EXACT_SUMS = Numbers(np.float64, np.float32, np.float64)
# Parts of a score's sum in float32, and columns that all parts of all scores may have.
MOST_PARTS, MOST_COLUMNS = 16, 64


def numbers_for(model: PlainModel) -> Numbers:
    """The cheapest whose scores are right to `GOOD_SHARE` of the largest one."""
    if model.kernel in ("linear", "precomputed"):  # one product, which float64 does not make slow
        return DOUBLE
    for numbers in (SINGLE, EXACT_DISTANCES, EXACT_SUMS):
        if share_of_error(model, partial(scores_in, model, numbers=numbers)) <= GOOD_SHARE:
            return numbers
    return DOUBLE


def parts_of_sums(n_outputs: int) -> int:
    """In how many parts the terms of a score are added up in float32."""
    return max(1, min(MOST_PARTS, MOST_COLUMNS // n_outputs))


def scores_in(model: PlainModel, rows: Array, numbers: Numbers) -> Array:
    """What the graph computes of rows, as NumPy has it."""
    real = np.dtype(numbers.distances).type
    rows = rows.astype(real)
    if model.scaling is not None:
        rows = model.scaling.in_type(real).rows(rows)
    if model.kernel in ("poly", "sigmoid"):
        inner = rows @ (model.parameters["gamma"] * model.dense_vectors()).astype(real).T
        inner = (inner + real(model.parameters["coef0"])).astype(numbers.values)
        values = np.tanh(inner) if model.kernel == "sigmoid" else inner ** numbers.values(model.parameters["degree"])
    else:
        scale, centre, Z = (part.astype(real) for part in folded(model))
        values = _of_distances(model.kernel, rows * scale - centre, Z, numbers.values)
    if numbers.sums == np.float64:
        return values.astype(np.float64) @ model.coef + model.intercept
    n_parts = parts_of_sums(model.n_outputs)
    sums = np.zeros((len(rows), n_parts, model.n_outputs), np.float32)
    for j, coef in enumerate(model.coef.astype(np.float32)):
        sums[:, j % n_parts] += values[:, j : j + 1] * coef
    return sums.sum(axis=1, dtype=np.float64) + model.intercept


def _of_distances(kernel: str, rows: Array, Z: Array, values: type) -> Array:
    """Kernel values of folded rows and vectors."""
    if kernel == "laplacian":
        return np.exp(-np.stack([np.abs(rows - z).sum(axis=1) for z in Z], axis=1).astype(values))
    minus_half = rows @ Z.T - 0.5 * np.sum(rows * rows, axis=1)[:, None] - 0.5 * np.sum(Z * Z, axis=1)
    minus_half = minus_half.astype(values)
    if kernel == "rbf":
        return np.exp(minus_half)
    s = np.sqrt(np.maximum(values(-2) * minus_half, values(0)))
    return (1 + s) * np.exp(-s)
