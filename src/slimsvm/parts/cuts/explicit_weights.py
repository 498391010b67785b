"""The choice between explicit weights of the features and coefficients of rows for linear models."""

from __future__ import annotations

from typing import Any

from slimsvm.kernels import Kernel
from slimsvm.parts.problem import SMALL_N, Problem
from slimsvm.rows import Rows


def prefers_weights(rows: Rows, kernel: Kernel, n_outputs: int, memory_limit: float) -> bool:
    """Whether explicit weights are the cheaper form.

    With the linear kernel above 2,000 rows (up to there a fit goes to 1e-10, and its kernel matrix is small), where a
    row has on average no more features stored than there are rows, so that a product with the weights costs less than
    reading the kernel values of the rows, and the weights take at most a quarter of the memory limit.
    """
    fits = 8 * rows.n_features * n_outputs <= memory_limit / 4
    return kernel.has_weights and rows.n_rows > SMALL_N and rows.n_stored <= rows.n_rows**2 and fits


def resolve_weights(weights: Any, problem: Problem) -> bool:
    """Whether to keep explicit weights, of a solver's parameter: "auto" (`prefers_weights`), True or False.

    Raises
    ------
    ValueError
        It is something else, or True with another kernel.
    """
    if not (isinstance(weights, bool) or (isinstance(weights, str) and weights == "auto")):
        raise ValueError(f"weights must be 'auto', True or False, found {weights!r}")
    if weights is True and not problem.kernel.has_weights:
        raise ValueError(f"weights=True needs kernel='linear', found {problem.kernel!r}")
    if isinstance(weights, bool):
        return weights
    return prefers_weights(problem.rows, problem.kernel, problem.task.n_outputs, problem.memory_limit)
