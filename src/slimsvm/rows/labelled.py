"""Blocks that come with their labels, and perhaps with weights: what they are called, made from and checked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from slimsvm.rows.arrays import is_sparse
from slimsvm.rows.missing import first_missing


@dataclass(frozen=True)
class Labelled:
    """Blocks of rows alone, their sizes and names, and the labels and weights that came with them."""

    blocks: list[Any]
    n_rows: list[int]
    n_stored: int
    labels: np.ndarray
    weights: np.ndarray | None

    def of(self, blocks: Any) -> Any:
        """The blocks, with the labels and weights that there are."""
        return (blocks, self.labels) if self.weights is None else (blocks, self.labels, self.weights)


def where_is(i: int, names: Sequence[str] | None) -> str:
    """What messages call block i."""
    return f"block {i}" + ("" if names is None else f" ({names[i]})")


def made_by(source: Callable[[], Any], where: str) -> Any:
    """What a function returns; its error says which block could not be made.

    Raises
    ------
    ValueError, RuntimeError
        The function failed, with a ValueError or otherwise.
    """
    try:
        return source()
    except MemoryError:
        raise
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"{where} could not be made: {error}") from error


def read_labels(sources: Sequence[Any], names: Sequence[str] | None) -> Labelled:
    """Go through all blocks once, and keep their labels and weights.

    Parameters
    ----------
    sources : sequence of (pair, triple or callable)
        (X, y) or (X, y, weights), or functions that return one.
    names : sequence of str or None

    Raises
    ------
    ValueError
        A block is no such pair or triple, or has not as many parts as the first, or not one label (or weight) for each
        of its rows, or labels of another kind than the others. The message names the block.
    """
    if not sources:
        raise ValueError("Blocks must have rows, found 0 blocks without any")
    blocks, n_rows, n_stored, n_parts = [], [], 0, 0
    read: list[list[np.ndarray]] = [[], []]
    for i, source in enumerate(sources):
        where = where_is(i, names)
        parts = made_by(source, where) if callable(source) else source
        found = len(parts) if isinstance(parts, tuple | list) else type(parts).__name__
        if found not in ((n_parts,) if n_parts else (2, 3)):
            raise ValueError(
                f"{where} must be (rows, labels) or (rows, labels, weights), the same in all blocks; found "
                f"{f'{found} parts' if isinstance(found, int) else found}"
            )
        X, n_parts = parts[0], int(found)
        n = X.shape[0] if is_sparse(X) else len(X)
        for what, values, others in zip(("labels", "weights"), parts[1:], read):
            others.append(_checked(values, n, what, where, others))
        blocks.append(partial(_rows_of, source) if callable(source) else X)
        n_rows.append(n)
        n_stored += X.nnz if is_sparse(X) else 0
    return Labelled(blocks, n_rows, n_stored, _joined(read[0]), _joined(read[1]) if n_parts == 3 else None)


def _joined(read: list[np.ndarray]) -> np.ndarray:
    """Labels of all blocks, whose type those of blocks without rows have no part in."""
    return np.concatenate([values for values in read if len(values)] or read)


def _rows_of(source: Callable[[], Any]) -> Any:
    return source()[0]


def _checked(values: Any, n: int, what: str, where: str, others: list[np.ndarray]) -> np.ndarray:
    """The labels or weights of a block's n rows."""
    missing, values = first_missing(values), np.asarray(values)
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values.ravel()):
        values = values.astype(str)
    if values.shape[:1] != (n,):
        raise ValueError(f"{where} has {what} of shape {values.shape}, expected is one for each of its {n} rows")
    accepted = "biuf" if what == "weights" else "biufU"
    if values.dtype.kind not in accepted:
        kinds = "numbers" if what == "weights" else "numbers or strings"
        found = "" if missing is None else f"; the one of its row {missing[0]}, {missing[1]}, is missing"
        raise ValueError(f"{where} has {what} of dtype {values.dtype}, accepted are {kinds}{found}")
    like = next((other for other in others if len(other)), values)
    if n and (values.shape[1:] != like.shape[1:] or (values.dtype.kind == "U") != (like.dtype.kind == "U")):
        raise ValueError(
            f"{where} has other {what} than the blocks before it: found shape {values.shape} of {values.dtype}, "
            f"expected is {(n, *like.shape[1:])} of {like.dtype}"
        )
    return values
