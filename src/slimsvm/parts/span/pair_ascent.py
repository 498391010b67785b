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
from slimsvm.parts.span.whitened_span import subspace

Array = np.ndarray

# Columns that processors take at once.
AT_ONCE = 8


@dataclass(frozen=True)
class AscentSettings:
    """Settings of when a pair is solved; docs/experiments/automatic_choice.md: 50 sweeps do not always suffice."""

    # A pair is solved when its derivatives are this small; the margin is 1 (learned_bases.md, "Several classes class by
    # class": 0.2 errs more).
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
    sizes = [sum(len(members[label]) for label in pair) for pair in pairs]
    together = _together([size * rows.width for size in sizes], own)

    def solve(lo: int, hi: int) -> None:
        for some in together[lo:hi]:
            index = np.concatenate([np.sort(np.concatenate([members[a], members[b]])) for a, b in pairs[some]])
            first = np.repeat([pair[0] for pair in pairs[some]], sizes[some])
            sign, C_of_row = np.where(examples.labels[index] == first, 1.0, -1.0), problem.C * examples.weights[index]
            starts = np.cumsum([0, *sizes[some]])
            w, violation = _ascend(*rows.of(index), starts, sign, C_of_row, seeds[some], own)
            u[:, some], converged[some] = w[:, : space.rank + 1].T, violation <= own.tol

    run_tiles(solve, len(together), kernel_rows.n_jobs)
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
    """Whitened coordinates of rows and their squared lengths; those of all rows are stored if memory allows.

    Columns of 0 fill the last numbers that a processor takes at once: ``width`` is that of all.
    """

    def __init__(self, space: Any, memory_limit: int):
        self.space, self.whole = space, None
        self.width = -(-(space.rank + 1) // AT_ONCE) * AT_ONCE
        if space.n_rows * self.width * space.kernel_rows.dtype.itemsize <= memory_limit:
            Z = self._filled(np.arange(space.n_rows))
            self.whole = Z, _squares(Z)

    def _filled(self, index: Array) -> Array:
        Z = np.zeros((len(index), self.width), self.space.kernel_rows.dtype)
        Z[:, : self.space.rank + 1] = self.space.whitened(index)
        return Z

    def of(self, index: Array) -> tuple[Array, Array, Array]:
        """Return coordinates that contain the rows at ``index``, squared lengths, and where these rows are in them."""
        if self.whole is not None:
            return self.whole[0], self.whole[1][index], index
        Z = self._filled(index)
        return Z, _squares(Z), np.arange(len(index))


def _squares(Z: Array) -> Array:
    found: Array = np.maximum(np.einsum("ij,ij->i", Z, Z, dtype=np.float64), 1e-12)
    return found


def _together(work: list[int], own: AscentSettings) -> list[slice]:
    """Return the pairs that one compiled call solves: as many as it may go through in all their sweeps."""
    found, lo, total = list[slice](), 0, 0
    for k, of_sweep in enumerate(work):
        if k > lo and (total + of_sweep) * own.sweeps > own.call_work:
            found.append(slice(lo, k))
            lo, total = k, 0
        total += of_sweep
    return [*found, slice(lo, len(work))]


def _ascend(
    Z: Array,
    square: Array,
    rows: Array,
    starts: Array,
    sign: Array,
    C_of_row: Array,
    seeds: Array,
    own: AscentSettings,
) -> tuple[Array, Array]:
    """Return the weights u of some pairs, a row each, and their violations (within ``tol`` where sweeps converged)."""
    n, d = len(rows), Z.shape[1]
    w, violation, at_once = np.zeros((len(seeds), d)), np.zeros(len(seeds)), own.call_work // (n * d)
    at_once = int(max(1, min(own.sweeps, at_once)))
    call = core.ascend_linear.prepare(
        Z=Z, starts=starts, rows=rows, sign=sign, C_of_row=C_of_row, square=square, alpha=np.zeros(n), w=w,
        active=np.zeros(n, dtype=np.int64), tol=own.tol, max_sweeps=at_once, random=seeds.copy(), violation=violation,
    )  # fmt: skip
    for _ in range(-(-own.sweeps // at_once)):
        call()
        if violation.max() <= own.tol:
            break
    return w, violation
