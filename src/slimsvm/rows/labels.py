"""Labels of blocks, with their weights; labels that are missing, or of two kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from slimsvm.rows.arrays import is_sparse


@dataclass(frozen=True)
class Labelled:
    """The arguments of a `Blocks` object, with the labels and weights of its rows."""

    blocks: Sequence[Any]
    n_rows: list[int]
    options: dict[str, Any]  # further arguments by name
    labels: np.ndarray | None  # shape (n,)
    weights: np.ndarray | None

    def beside(self, blocks: Any) -> Any:
        """Return the blocks, with the labels and weights that they have."""
        others = [values for values in (self.labels, self.weights) if values is not None]
        return (blocks, *others) if others else blocks


def where_is(i: int, names: Sequence[str] | None) -> str:
    """Return the name of block i in messages."""
    return f"block {i}" + ("" if names is None else f" ({names[i]})")


def made_by(source: Callable[[], Any], where: str) -> Any:
    """Call a function; its error, a ValueError or else a RuntimeError, names the block."""
    try:
        return source()
    except MemoryError:
        raise
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"{where} could not be made: {str(error) or type(error).__name__}") from error


def read_labels(sources: Sequence[Any], names: Sequence[str] | None) -> Labelled:
    """Go through all blocks once, and keep their labels and weights.

    A source is (X, y) or (X, y, weights), or a function that returns one. A ValueError names the block that is no such
    pair or triple, has not as many parts as the first, or not one label (or weight) for each of its rows, or labels of
    another kind than the others.
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
    options = {"names": names, "n_stored": n_stored}
    return Labelled(blocks, n_rows, options, _joined(read[0]), _joined(read[1]) if n_parts == 3 else None)


def _joined(read: list[np.ndarray]) -> np.ndarray:
    """Return labels of all blocks in one array; blocks without rows do not decide its type."""
    return np.concatenate([values for values in read if len(values)] or read)


def _rows_of(source: Callable[[], Any]) -> Any:
    return source()[0]


def _checked(values: Any, n: int, what: str, where: str, others: list[np.ndarray]) -> np.ndarray:
    """Return the labels or weights of a block's n rows."""
    missing, is_masked = first_missing(values), isinstance(values, np.ma.MaskedArray)
    if missing is None:
        check_one_kind(values, f"{where}: {what}")
    values = np.asarray(values)
    if missing is not None and is_masked:
        raise ValueError(f"{where} has {what} that are masked: the one of its row {missing[0]} is missing")
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


def check_one_kind(y: Any, name: str = "y", place: str = "row") -> None:
    """Refuse labels of which some are texts and others are not: they have no order, and a list's would become texts."""
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    values: list[Any] = list(y) if isinstance(y, list | tuple) else y.tolist() if kind == "O" else []
    if len({issubclass(each, str) for each in set(map(type, values))}) < 2:
        return
    other = next(row for row, value in enumerate(values) if isinstance(value, str) != isinstance(values[0], str))
    raise ValueError(
        f"{name} must hold strings or numbers; found both, {values[0]!r} in {place} 0 and {values[other]!r} in {place} "
        f"{other}"
    )


def first_missing(y: Any) -> tuple[int, str] | None:
    """Return the row of the first missing label, and its value; None if no label is missing."""
    if y is None or is_sparse(y):
        return None
    if hasattr(y, "isna"):
        mask, values = np.asarray(y.isna(), dtype=bool), np.asarray(y, dtype=object)
    else:
        # An array of the list's own type would have the text "nan" for a NaN among texts.
        values = y if isinstance(y, np.ndarray) else _of_objects(y)
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else _missing(values)
    if not mask.any():
        return None
    at = tuple(np.argwhere(mask)[0])
    value = values[at]
    is_nan = isinstance(value, float | np.floating)
    return int(at[0]), "NaN" if is_nan else str(value)


def _of_objects(y: Any) -> np.ndarray:
    try:
        return np.array(y, dtype=object)
    except (TypeError, ValueError):  # rows of several lengths, which other checks refuse
        return np.zeros(0)


def _missing(values: np.ndarray) -> np.ndarray:
    """Return True where a value is missing."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, bool)
    return np.array([_is_missing(value) for value in values.ravel()], bool).reshape(values.shape)


def _is_missing(value: Any) -> bool:
    """Return whether it is None, pandas' NA (which answers no comparison), or not equal to itself."""
    if value is None or type(value).__name__ == "NAType":
        return True
    if isinstance(value, str | int):
        return False
    differs = value != value  # NumPy's own boolean, for NumPy values
    return isinstance(differs, bool | np.bool_) and bool(differs)
