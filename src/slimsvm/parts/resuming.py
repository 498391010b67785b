"""Checkpoints: the state of a fit that was cut off, from which it goes on to the same bits."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.parts.problem import Problem
from slimsvm.rows import Rows, is_sparse

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
# The number of first rows that are compared with those of the fit that was cut off.
COMPARED_ROWS = 1000
# The parts that are compared by their digests.
DIGESTS = ("rows", "labels", "weights")
PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class RunState:
    """The state of a run between two steps: arrays, JSON values and dicts of these, which a file can hold."""

    asked: dict[str, Any]  # what identifies the fit, by name (`asked_of`)
    values: dict[str, Any]  # the state of the run

    def check(self, problem: Problem, solver: str, parameters: dict[str, Any]) -> None:
        """Refuse a problem or a solver other than the interrupted fit had.

        Raises
        ------
        ValueError
            Names what has changed.
        """
        for name, now in asked_of(problem, solver, parameters).items():
            if self.asked.get(name) != now:
                found = "these are others" if name in DIGESTS else f"found {now}, was {self.asked.get(name)}"
                raise ValueError(
                    "a fit that was cut off goes on with the same rows, labels, weights and parameters; "
                    f"{name}: {found}"
                )


def asked_of(problem: Problem, solver: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return what identifies a fit: parameters, sizes, and digests of the first rows and of all labels and weights.

    ``solver`` is the name of the solver's class, ``parameters`` are its own.
    """
    examples, rows = problem.examples, problem.rows
    return {
        "number of rows": rows.n_rows,
        "number of features": rows.n_features,
        "rows": _digest_of_rows(rows),
        "labels": _digest(examples.labels),
        "weights": _digest(examples.weights),
        "solver": _described(solver, parameters),
        "kernel": _described(type(problem.kernel).__name__, vars(problem.kernel)),
        "C": float(problem.C),
        "loss": _described(type(problem.task).__name__, vars(problem.task)),
        "intercept": problem.intercept,
        "precision": problem.precision,
        "tol": float(problem.tol),
        "max_iter": problem.max_iter,
        "settings": repr(problem.settings) if problem.settings else None,
    }


def _described(name: str, parameters: dict[str, Any]) -> str:
    """Return a type's name and parameters as text that is the same in every process; objects count by their types."""
    said = {name: value for name, value in parameters.items() if isinstance(value, PLAIN)}
    said |= {name: _digest(value)[:8] for name, value in parameters.items() if isinstance(value, np.ndarray)}
    return f"{name}({', '.join(f'{name}={said[name]!r}' for name in sorted(said))})"


def _digest_of_rows(rows: Rows) -> str:
    block: Any = rows.slice(0, min(rows.n_rows, COMPARED_ROWS), np.float64)
    return _digest(*((block.data, block.indices.astype(np.int64)) if is_sparse(block) else (block,)))


def _digest(*arrays: np.ndarray) -> str:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator in the state that its ``bit_generator.state`` described.

    Raises
    ------
    KeyError
        It is of no kind that is known here.
    """
    if state["bit_generator"] not in GENERATORS:
        raise KeyError(state["bit_generator"])
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def digest_of(problem: Problem) -> bytes:
    """Return a digest that tells chunks of rows apart."""
    rows, total = problem.rows, hashlib.blake2b(digest_size=16)
    for lo, hi in rows.blocks(10_000):
        block: Any = rows.slice(lo, hi, rows.exact_dtype)
        for part in (block.indptr, block.indices, block.data) if is_sparse(block) else (block,):
            total.update(np.ascontiguousarray(part).tobytes())
    return total.digest()


def stacked(earlier: Any, chunk: Problem) -> Any:
    """Return earlier rows on top of the chunk's, in the chunk's format."""
    own: Any = chunk.rows.slice(0, chunk.rows.n_rows, chunk.rows.exact_dtype)
    if is_sparse(own):
        return sp.csr_array(sp.vstack([sp.csr_array(earlier), own], format="csr"))
    return np.vstack([earlier.toarray() if is_sparse(earlier) else earlier, own])
