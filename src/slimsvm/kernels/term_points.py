"""Points of an additive kernel in the form that its terms take, and the values of rows with them.

A distance in one column is a difference of two numbers: there are no norms, and nothing cancels that both of them hold.
Sparse rows and points are made dense here, some at a time, since columns where both are 0 count, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm import core
from slimsvm.core import aligned_zeros, panel_of
from slimsvm.core.products import in_calls
from slimsvm.core.threads import resolve_n_jobs
from slimsvm.kernels.kernel import Folding
from slimsvm.kernels.operands import WORK_PER_MICROSECOND, DenseFolder
from slimsvm.rows import FLOATS, as_csr, in_pieces, is_sparse

if TYPE_CHECKING:
    from slimsvm.kernels.additive import Additive

SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
# About the multiply-adds that take as long as the map of a term.
MAP_WORK = 24
# The numbers of sparse rows or points that are made dense together.
DENSE_NUMBERS = 1 << 20
# Folded points beyond this are compared in float64: float32 would lose digits of differences. Chosen, not measured.
FAR = 1024.0
# Folded numbers are cut at this, so that differences are finite.
LARGEST = {SINGLE: 1e18, DOUBLE: 1e150}


@dataclass(frozen=True, eq=False)
class TermPoints:
    """The points, centred and scaled, in panels."""

    folding: Folding  # units of the columns
    centre: np.ndarray  # float64 (d,)
    dtype: np.dtype  # the type in which values are computed
    panels: list[tuple[int, np.ndarray]]  # list of (int, ndarray): numbers of points, and these points side by side
    call: dict[str, Any]  # the other arguments of the core

    @classmethod
    def of(cls, kernel: Additive, Z: Any, dtype: np.dtype) -> TermPoints:
        """Make the points of some vectors in this type, or in float64 if they are far from each other."""
        n_features = Z.shape[1]
        offsets = kernel.offsets(n_features)
        n_terms = len(offsets) - 1
        folding, centre = kernel.of_terms(n_terms).folding(n_features), _centre(Z, np.mean)
        parts = [_folded(folding, centre, part, DOUBLE) for part in _dense_parts(Z)]
        if any(part.size and np.abs(part).max() > FAR for part in parts):
            dtype, centre = DOUBLE, _centre(Z, np.median)  # a single far cell pulls a mean away from all others
            parts = [_folded(folding, centre, part, DOUBLE) for part in _dense_parts(Z)]
        panels = []
        for part in parts:
            n_slots = -(-len(part) // panel_of(dtype)) * panel_of(dtype)
            panels.append((len(part), aligned_zeros(n_slots * n_features, dtype)))
            core.pack_dense(values=part.astype(dtype), panels=panels[-1][1])
        call = {
            "is_absolute": int(folding.manhattan), "code": folding.code, "offsets": offsets,
            "shares": kernel.term_shares(n_terms), "whole": kernel.interaction, "ratio": 1.0 / max(1, n_terms),
        }  # fmt: skip
        return cls(folding, centre, dtype, panels, call)

    def fill(self, X: Any, out: np.ndarray, n_jobs: int | None) -> None:
        """Set out, of the type that the points are in, to kernel values of rows."""
        row_work, threads, first = len(self.centre) + MAP_WORK * len(self.call["shares"]), resolve_n_jobs(n_jobs), 0
        for part in _dense_parts(X):
            rows, at = _folded(self.folding, self.centre, part, self.dtype), 0
            for k, panels in self.panels:
                per_row = k * row_work / WORK_PER_MICROSECOND
                for some in in_calls(len(rows), per_row):
                    values = out[first + some.start : first + some.stop, at : at + k]
                    core.sum_terms(rows=rows[some], panels=panels, out=values, n_threads=threads,
                                   microseconds=per_row * len(values), **self.call)  # fmt: skip
                at += k
            first += len(rows)


def _dense_parts(X: Any) -> Iterator[np.ndarray]:
    """Yield rows as dense arrays of floats, part by part."""
    if not is_sparse(X):
        yield _floats(X)
        return
    X = as_csr(X)
    for part in in_pieces(X.shape[0], max(1, DENSE_NUMBERS // max(1, X.shape[1]))):
        yield _floats(X[part].toarray())


def _floats(X: Any) -> np.ndarray:
    X = np.asarray(X)
    return np.ascontiguousarray(X, X.dtype if X.dtype in FLOATS else np.float64)


def _centre(Z: Any, middle: Callable[..., Any]) -> np.ndarray:
    """Return a middle of dense points. Folded numbers about it are small if the points are near each other."""
    if is_sparse(Z) or not len(Z):
        return np.zeros(Z.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        found = middle(np.asarray(Z, np.float64), axis=0)
    return np.where(np.isfinite(found), found, 0.0)


def _folded(folding: Folding, centre: np.ndarray, part: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return rows centred, scaled, and cut at `LARGEST`."""
    folder = DenseFolder(Folding(core.IDENTITY, row_scale=folding.row_scale), centre, len(part), dtype)
    folder.add(part, 0)
    return np.clip(folder.values, -LARGEST[dtype], LARGEST[dtype], out=folder.values)
