"""CSV with a header line: one column is the label, every other one a number."""

from __future__ import annotations

import csv
import io
import math
from array import array
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from slimsvm.datasets.files import DataError, quote

LABEL_NAMES = ("label", "target", "y", "class")


def parse_csv(
    content: bytes, name: str, n_features: int | None, target: str | Literal[False] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Parse CSV (commas, semicolons or tabs) with a header.

    Parameters
    ----------
    content : bytes
        The text, UTF-8.
    name : str
        The file's name, for messages.
    n_features : int or None
        The number of feature columns the file must have; None: any.
    target : str, False or None
        The label's column; None: the column called label, target, y or class, or else the last; False: there is none.

    Returns
    -------
    X : ndarray of shape (n, d), float64
    y : ndarray of shape (n,) of float64 if every label is a number, else of strings; None if `target` is False

    Raises
    ------
    DataError
        For any other text; names the line and the column.
    """
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}, line {line}: found the byte {content[error.start]:#04x}, not UTF-8 text") from None
    first = text.lstrip("\r\n").partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    rows = _filled_rows(reader, name)
    header = [column.strip() for column in next(rows)]
    if all(_number(column) is not None for column in header):
        raise DataError(f"{name}, line {reader.line_num}: found only numbers, expected the names of the columns")
    for column in header:
        if header.count(column) > 1:
            raise DataError(f"{name}, line {reader.line_num}: found two columns named {quote(column)}")
    label_at = None if target is False else _find_label(header, target, name)
    columns = [column for at, column in enumerate(header) if at != label_at]
    if n_features is not None and len(columns) != n_features:
        raise DataError(f"{name}: found {len(columns)} feature columns, {n_features} are expected")
    if not columns:
        raise DataError(f"{name}: holds the label's column {quote(header[label_at or 0])} but not one feature")

    labels: list[str] = []
    values, line_of_row = array("d"), array("q")
    # Python reads 1_000 as a number, other programs do not: look closer only if a row has an underscore.
    convert: Callable[[str], float] = _strict_float if "_" in text.partition(first)[2] else float
    for row in rows:
        line = reader.line_num
        if len(row) != len(header):
            raise DataError(f"{name}, line {line}: found {len(row)} fields, the header has {len(header)}")
        if label_at is not None:
            label = row.pop(label_at).strip()
            if not label:
                raise DataError(f"{name}, line {line}: the label is missing (column {quote(header[label_at])})")
            labels.append(label)
        try:
            values.extend(map(convert, row))
        except ValueError:
            at = next(at for at, field in enumerate(row) if _number(field) is None)
            found = quote(row[at]) if row[at].strip() else "an empty field"
            where = f"{name}, line {line}, column {quote(columns[at])}"
            raise DataError(f"{where}: found {found} where a number belongs") from None
        line_of_row.append(line)
    if not line_of_row:
        raise DataError(f"{name}: holds a header but no rows")
    X = np.frombuffer(values, dtype=np.float64).reshape(-1, len(columns))
    if not np.isfinite(X).all():
        row_at, at = np.argwhere(~np.isfinite(X))[0]
        where = f"{name}, line {line_of_row[row_at]}, column {quote(columns[at])}"
        raise DataError(f"{where}: found {X[row_at, at]}, values must be finite")
    return X, None if label_at is None else _convert_labels(labels, line_of_row, name)


def _filled_rows(reader: Any, name: str) -> Iterator[list[str]]:
    """Yield the rows of a csv.reader, blank lines left out."""
    try:
        yield from (row for row in reader if row)
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not CSV: {error}") from None


def _find_label(header: list[str], target: str | None, name: str) -> int:
    if target is not None:
        if target not in header:
            known = ", ".join(map(quote, header[:20])) + (", ..." if len(header) > 20 else "")
            raise DataError(f"{name}: found no column named {quote(target)} for the label; the columns are {known}")
        return header.index(target)
    named = [at for at, column in enumerate(header) if column.lower() in LABEL_NAMES]
    if len(named) > 1:
        found = " and ".join(quote(header[at]) for at in named)
        raise DataError(f"{name}: found the columns {found}; say with target which one is the label")
    return named[0] if named else len(header) - 1


def _convert_labels(labels: list[str], line_of_row: array, name: str) -> np.ndarray:
    numbers = list(_leading_numbers(labels))
    if len(numbers) < len(labels):
        return np.array(labels)
    for number, label, line in zip(numbers, labels, line_of_row):
        if not math.isfinite(number):
            raise DataError(f"{name}, line {line}: found {quote(label)} as the label, which must be finite")
    return np.array(numbers)


def _leading_numbers(labels: list[str]) -> Iterator[float]:
    for label in labels:
        number = _number(label)
        if number is None:
            return
        yield number


def _strict_float(field: str) -> float:
    if "_" in field:
        raise ValueError
    return float(field)


def _number(field: str) -> float | None:
    try:
        return _strict_float(field)
    except ValueError:
        return None
