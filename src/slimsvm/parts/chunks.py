"""Rows that come in chunks: what tells whether a chunk comes again, and rows of earlier chunks on top of it."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.parts.problem import Problem
from slimsvm.rows import is_sparse


def digest_of(problem: Problem) -> bytes:
    """What tells chunks of rows apart."""
    rows, total = problem.rows, hashlib.blake2b(digest_size=16)
    for lo, hi in rows.blocks(10_000):
        block: Any = rows.slice(lo, hi, rows.exact_dtype)
        for part in (block.indptr, block.indices, block.data) if is_sparse(block) else (block,):
            total.update(np.ascontiguousarray(part).tobytes())
    return total.digest()


def stacked(earlier: Any, chunk: Problem) -> Any:
    """Earlier rows on top of the chunk's, in the chunk's format."""
    own: Any = chunk.rows.slice(0, chunk.rows.n_rows, chunk.rows.exact_dtype)
    if is_sparse(own):
        return sp.csr_array(sp.vstack([sp.csr_array(earlier), own], format="csr"))
    return np.vstack([earlier.toarray() if is_sparse(earlier) else earlier, own])
