r"""Coefficients over given vectors for hinge losses: two classes, or all pairs of several.

    max over 0 ≤ α_i ≤ C_i of each pair   Σ_i α_i − ½‖u‖²,   u = Σ_i α_i y_i z_i

with z_i the whitened coordinates of row i (`parts.span.whitened_span`) and a constant, so that ‖u‖ is the norm of
the function and of the intercept. Rows are solved for one after another (dual coordinate ascent), until the derivatives
of a pair are within a tolerance or its sweeps are spent: nothing bounds what is left.

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A Dual Coordinate Descent Method for Large-scale Linear SVM", ICML 2008.

Parts: `core/ascent/linear.cc`, `parts.span.whitened_span`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm import core
from slimsvm.core.threads import run_tiles
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.span.smoothed_newton import subspace

Array = np.ndarray


@dataclass(frozen=True)
class AscentSettings:
    """Settings of when a pair is solved; docs/experiments/automatic_choice.md: 50 sweeps do not always suffice."""

    # A pair is solved when its derivatives are this small; the margin is 1. Chosen, not measured.
    tol: float = 0.1
    # The most sweeps over the rows of each pair. Late sweeps are short: they leave out rows at a bound, which are most.
    sweeps: int = 1000
    # The most numbers that one compiled call goes through: Ctrl-C is checked between calls.
    call_work: int = 1 << 27


@dataclass(frozen=True)
class PairsInSpan:
    """The model of all pairs, with its counters.

    Parameters
    ----------
    model : KernelExpansion
        Without the vectors that lie in the span of the others.
    n_kernel_evals : int
    converged : bool
        Whether the derivatives of every pair are within the tolerance.
    """

    model: KernelExpansion
    n_kernel_evals: int
    converged: bool


def pair_coefficients(problem: Problem, basis: Any) -> PairsInSpan:
    """Return the model of two classes, or of all pairs of several, over given vectors.

    Parameters
    ----------
    problem : Problem
        Of hinge losses: its task has `class_pairs`, or the labels -1 and +1. A free intercept is taken to be a
        regularised one.
    basis : raw vectors of shape (k, d)

    Returns
    -------
    PairsInSpan
    """
    kernel_rows, examples, pairs = problem.bind(), problem.examples, problem.task.class_pairs() or [(1, -1)]
    space = subspace(problem, kernel_rows, basis)
    rows = _Rows(space, problem.memory_limit // 2)
    seeds, own = problem.generator().integers(1, 2**62, len(pairs)), problem.settings_of(AscentSettings)
    members = {label: np.flatnonzero(examples.labels == label) for label in np.unique(pairs).tolist()}
    u, converged = np.zeros((space.rank + 1, len(pairs))), np.zeros(len(pairs), dtype=bool)

    def solve(lo: int, hi: int) -> None:
        for k in range(lo, hi):
            index = np.sort(np.concatenate([members[label] for label in pairs[k]]))
            sign = np.where(examples.labels[index] == pairs[k][0], 1.0, -1.0)
            C_of_row = problem.C * examples.weights[index]
            u[:, k], converged[k] = _two_classes(*rows.of(index), sign, C_of_row, int(seeds[k]), own)

    run_tiles(solve, len(pairs), kernel_rows.n_jobs)
    coef, intercept = space.coefficients(u)
    used = coef.any(axis=1)
    model = KernelExpansion(
        basis=basis[used],
        coef=coef[used],
        intercept=intercept,
        plain=np.zeros(0),
        kernel=problem.kernel,
        dtype=np.dtype(kernel_rows.dtype).name,
    )
    return PairsInSpan(model, kernel_rows.counter.n, bool(converged.all()))


class _Rows:
    """Whitened coordinates of rows and their squared lengths; those of all rows are stored if memory allows."""

    def __init__(self, space: Any, memory_limit: int):
        self.space, self.whole = space, None
        if space.n_rows * (space.rank + 1) * space.kernel_rows.dtype.itemsize <= memory_limit:
            Z = space.whitened(np.arange(space.n_rows))
            self.whole = Z, _squares(Z)

    def of(self, index: Array) -> tuple[Array, Array, Array]:
        """Return coordinates that contain the rows at ``index``, squared lengths, and where these rows are in them."""
        if self.whole is not None:
            return self.whole[0], self.whole[1][index], index
        Z = self.space.whitened(index)
        return Z, _squares(Z), np.arange(len(index))


def _squares(Z: Array) -> Array:
    found: Array = np.maximum(np.einsum("ij,ij->i", Z, Z, dtype=np.float64), 1e-12)
    return found


def _two_classes(
    Z: Array, square: Array, rows: Array, sign: Array, C_of_row: Array, seed: int, own: AscentSettings
) -> tuple[Array, bool]:
    """Return one pair's weights u, and whether the sweeps converged."""
    n, d = len(rows), Z.shape[1]
    w, at_once = np.zeros(d), int(max(1, min(own.sweeps, own.call_work // (n * d))))
    call = core.ascend_linear.prepare(
        Z=Z, rows=rows, sign=sign, C_of_row=C_of_row, square=square, alpha=np.zeros(n), w=w,
        active=np.zeros(n, dtype=np.int64), tol=own.tol, max_sweeps=at_once,
    )  # fmt: skip
    for _ in range(-(-own.sweeps // at_once)):
        seed, _, violation = call(random=seed)
        if violation <= own.tol:
            return w, True
    return w, False
