"""Objectives of models, computed from nothing but the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.kernels import KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.rows import in_pieces
from slimsvm.tasks import losses

Array = np.ndarray

# Kernel values of the basis vectors among themselves that are computed at a time for ‖w‖²: some 20 ms.
NORM_PIECE = 1 << 22
# Rows that are scored at a time.
SCORED_ROWS = 1 << 16


def exact_objective(problem: Any, rows: KernelRows, model: KernelExpansion) -> float:
    """½‖w‖² + C Σ ω_e ℓ_e of the task itself, over all rows."""
    scores = np.tile(model.intercept, (rows.n_rows, 1))
    norm = float(model.intercept @ model.intercept) if problem.intercept == "regularized" else 0.0
    if model.n_basis:
        scores += rows.scores(rows.points_of(model.basis), model.coef)
        basis = model.basis
        for part in in_pieces(model.n_basis, NORM_PIECE // model.n_basis):
            norm += float(np.sum(model.coef[part] * (between(rows, basis[part], basis) @ model.coef)))
    plain = np.zeros(0)
    augmented = problem.task.augment(scores, plain, problem.examples)
    found: float = 0.5 * norm + problem.C * float(
        problem.examples.weights @ losses(augmented, scores, plain, problem.examples)
    )
    return found


def float64_objective(problem: Any, model: KernelExpansion, scores: Array | None = None) -> float:
    """½‖w‖² + C Σ ω_e ℓ_e of a model, with the price of its intercept where that has one, in float64.

    ``scores`` of all rows, where they are known.
    """
    if scores is None:
        model = replace(model, dtype="float64")
        scores = np.empty((problem.rows.n_rows, problem.task.n_outputs))
        for lo, hi in problem.rows.blocks(SCORED_ROWS):
            scores[lo:hi] = model.scores(problem.rows.slice(lo, hi, problem.rows.exact_dtype), problem.n_jobs)
    gram = None
    if not problem.kernel.has_features:
        gram = problem.rows.slice(0, problem.rows.n_rows, np.float64)
    norm_squared = model.norm_squared(gram, problem.n_jobs)
    if problem.intercept == "regularized":
        norm_squared += float(np.sum(model.intercept**2))
    loss = losses(problem.task.augment(scores, model.plain, problem.examples), scores, model.plain, problem.examples)
    total = problem.C * float(problem.examples.weights @ loss)
    if problem.task.intercept_price:
        total += problem.task.intercept_price * problem.C1 * float(model.intercept[0])
    found: float = 0.5 * norm_squared + total
    return found
