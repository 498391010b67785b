"""Rows that are dictionaries of named features, as sklearn-crfsuite takes them, or lists of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray
NAMES = (list, tuple, set, frozenset)


def are_dictionaries(rows: Any) -> bool:
    """Whether rows are dictionaries, or lists or sets of names; the first one tells."""
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not len(rows):
        return False
    first = rows[0]
    return isinstance(first, Mapping) or (
        isinstance(first, NAMES) and len(first) > 0 and all(isinstance(name, str) for name in first)
    )


def rows_of_dictionaries(rows: Sequence[Any], names: Sequence[str] | None = None) -> tuple[Any, Array]:
    """Return sparse float64 rows with a column for each name, and the names.

    A number counts as it is, True as 1. A text is a feature of its own: ``{"word": "the"}`` is ``{"word=the": 1}``. So
    is each text of a list or set: ``{"ends": ["e", "he"]}`` is ``{"ends:e": 1, "ends:he": 1}``. A dictionary within a
    dictionary has names ``outer:inner``.

    If ``names`` are given, features of other names are left out; else all that occur are columns, in alphabetical
    order. A ValueError names row and feature: a row is no dictionary, a name no text, or a value neither number nor
    text.
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
    parts = np.array(values, np.float64), place[np.array(columns, np.int64)], np.array(ends, np.int64)
    matrix = sp.csr_array(parts, shape=(len(rows), len(found)))
    matrix.sum_duplicates()
    return matrix, found


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
