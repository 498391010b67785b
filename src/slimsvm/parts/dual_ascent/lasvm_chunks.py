r"""LASVM on rows that come in chunks: the state between chunks, and the joined problem of state and chunk.

What is left of all rows met so far is S, with its dual variables. The next chunk's problem has the rows of S and its
own; all others have v = 0, so that D(v) is the dual value over every row met, and a bound on their problem.

The same chunk given again is another pass over it: its rows in S are known by their places, and none counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slimsvm.parts.dual_ascent.dual import Dual
from slimsvm.parts.problem import Problem
from slimsvm.parts.resuming import digest_of, stacked
from slimsvm.rows import as_rows
from slimsvm.tasks import Examples, Task
from slimsvm.tasks.examples import same_fields

Array = np.ndarray


@dataclass(frozen=True)
class OnlineState:
    """The set S after a chunk, with its dual variables.

    Parameters
    ----------
    rows : ndarray or csr_array of shape (k, d)
    labels, weights, v : ndarray of shape (k,)
    place : int64 ndarray of shape (k,)
        Positions in the last chunk; −1 for rows of earlier ones.
    C : float
    task, examples, digest
        The digest of the last chunk, to recognise it when it comes again.
    """

    rows: Any
    labels: Array
    weights: Array
    v: Array
    place: Array
    C: float
    task: Task
    examples: Examples
    digest: bytes


@dataclass(frozen=True)
class Joined:
    """The problem of S's rows from earlier chunks, followed by the chunk.

    Parameters
    ----------
    problem : Problem
    v : ndarray of shape (n_rows,)
        The dual point so far.
    kept : int64 ndarray
        Rows that are in S.
    n_earlier : int
        Rows before the chunk's.
    chunk : Problem
    digest : bytes
    """

    problem: Problem
    v: Array
    kept: Array
    n_earlier: int
    chunk: Problem
    digest: bytes

    @classmethod
    def of(cls, chunk: Problem, state: OnlineState | None) -> Joined:
        """Join a chunk to the state that earlier ones left."""
        digest, chunk = digest_of(chunk), replace(chunk, max_iter=None)
        if state is None:
            return cls(chunk, np.zeros(chunk.rows.n_rows), np.zeros(0, np.int64), 0, chunk, digest)
        same = (state.task, chunk.task), (state.examples, chunk.examples)
        is_again = digest == state.digest and all(same_fields(a, b) for a, b in same)
        place = state.place if is_again else np.full(len(state.v), -1)
        is_earlier = place < 0
        k = int(is_earlier.sum())
        kept = np.where(is_earlier, np.cumsum(is_earlier) - 1, k + place)
        examples = replace(
            chunk.examples,
            labels=np.concatenate([state.labels[is_earlier], chunk.examples.labels]),
            weights=np.concatenate([state.weights[is_earlier], chunk.examples.weights]),
        )
        problem = replace(chunk, rows=as_rows(stacked(state.rows[is_earlier], chunk)), examples=examples)
        v = np.zeros(problem.rows.n_rows)
        v[kept] = state.v * (chunk.C / state.C)
        return cls(problem, Dual.of(problem).feasible(v), kept, k, chunk, digest)

    def left(self, rows: Array, v: Array) -> OnlineState:
        """Return the state after this chunk; S is these rows of the joined problem."""
        joint, place = self.problem, rows - self.n_earlier
        return OnlineState(
            rows=joint.rows.take(rows, joint.rows.exact_dtype),
            labels=joint.examples.labels[rows],
            weights=joint.examples.weights[rows],
            v=v,
            place=np.where(place < 0, -1, place),
            C=joint.C,
            task=self.chunk.task,
            examples=self.chunk.examples,
            digest=self.digest,
        )
