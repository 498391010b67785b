"""Rows that are dictionaries of named features, as sklearn-crfsuite takes them, or lists of names; without SciPy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from numbers import Real
from typing import Any

import numpy as np

Array = np.ndarray
Parts = tuple[Array, Array, Array]
NAMES = (list, tuple, set, frozenset)


def are_dictionaries(rows: Any) -> bool:
    """Whether rows are dictionaries, or lists or sets of names; the first one tells."""
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not len(rows):
        return False
    first = rows[0]
    return isinstance(first, Mapping) or (
        isinstance(first, NAMES) and len(first) > 0 and all(isinstance(name, str) for name in first)
    )


def dictionaries_of(X: Any, lengths: Any) -> list[Any] | None:
    """Return all rows of sequences, one after another, if they are dictionaries or lists of names; else None."""
    if lengths is not None:
        return list(X) if are_dictionaries(X) else None
    is_listed = isinstance(X, (list, tuple)) and all(isinstance(sequence, (list, tuple)) for sequence in X)
    return list(chain.from_iterable(X)) if is_listed and are_dictionaries(next(filter(None, X), None)) else None


def check_named(names: Sequence[str] | None) -> None:
    """Refuse rows of dictionaries where the rows of training had no names."""
    if names is None:
        raise ValueError("X has dictionaries of features, but the training rows had no names; give arrays")


def parts_of_dictionaries(rows: Sequence[Any], names: Sequence[str] | None = None) -> tuple[Parts, Array]:
    """Return the arrays of sparse rows with a column for each name, and the names.

    A number counts as it is, True as 1. A text is a feature of its own: ``{"word": "the"}`` is ``{"word=the": 1}``. So
    is each text of a list or set: ``{"ends": ["e", "he"]}`` is ``{"ends:e": 1, "ends:he": 1}``. A dictionary within a
    dictionary has names ``outer:inner``.

    If ``names`` are given, features of other names are left out; else all that occur are columns, in alphabetical
    order. The arrays are those of CSR: data (float64), indices and indptr (int64); a feature that a row has twice is
    there twice. A ValueError names row and feature: a row is no dictionary, a name no text, or a value neither number
    nor text.
    """
    known = {} if names is None else {name: column for column, name in enumerate(names)}
    columns: list[int] = []
    values: list[float] = []
    ends = [0]
    for i, row in enumerate(rows):
        for name, value in _features(row, i):
            column = known.setdefault(name, len(known)) if names is None else known.get(name)
            if column is not None:
                columns.append(column)
                values.append(value)
        ends.append(len(columns))
    found = np.array(list(known), dtype=object)
    place = np.arange(len(found))
    if names is None:
        order = np.argsort(found.astype(str)) if len(found) else place  # a set's own order differs between processes
        place[order], found = np.arange(len(found)), found[order]
    return (np.array(values, np.float64), place[np.array(columns, np.int64)], np.array(ends, np.int64)), found


def _features(row: Any, i: int, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield names and values of one row."""
    if isinstance(row, NAMES):
        for name in row:
            yield _named(name, i, prefix), 1.0
        return
    if not isinstance(row, Mapping):
        raise ValueError(f"row {i} must be a dictionary of features or a list of their names, found {row!r:.60}")
    for name, value in row.items():
        full = _named(name, i, prefix)
        if isinstance(value, str):
            yield f"{full}={value}", 1.0
        elif isinstance(value, (Real, np.bool_)):
            yield full, float(value)
        elif isinstance(value, (Mapping, *NAMES)):
            yield from _features(value, i, f"{full}:")
        else:
            raise ValueError(
                f"feature {full!r} of row {i} must be a number, a text, a truth value, a list of texts or a "
                f"dictionary, found {value!r:.60}"
            )


def _named(name: Any, i: int, prefix: str) -> str:
    if not isinstance(name, str):
        raise ValueError(f"names of features must be texts, found {name!r:.60} in row {i}")
    return prefix + name
