"""CSV: one column is the label, every other one a number."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from slimsvm.datasets.files import DataError, quote
from slimsvm.datasets.header import UNNAMED, Asked, Layout, layout_of, number, strict_float, warn
from slimsvm.datasets.label_texts import EXACT, labels_of


class Table(NamedTuple):
    """Rows as they were read, their labels, and what the columns are called.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,) or None
    names : list of str or None
        The features, where they have names.
    label : str or None
        The column of the labels, where it has a name.
    qid : ndarray of shape (n,), int64, or None
    """

    X: Any
    y: np.ndarray | None
    names: list[str] | None = None
    label: str | None = None
    qid: np.ndarray | None = None


def parse_csv(content: bytes, name: str, asked: Asked) -> Table:
    """Parse CSV (commas, semicolons or tabs), with or without a header.

    Parameters
    ----------
    content : bytes
        The text, UTF-8.
    name : str
        The file's name, for messages.
    asked : Asked

    Returns
    -------
    Table
        Of float64; labels as `labels_of` gives them.

    Raises
    ------
    DataError
        For any other text; names the line and the column.
    """
    text = _decoded(content, name)
    reader, rows = _rows_of(text, name)
    first = [field.strip() for field in next(rows)]
    layout = layout_of(first, lambda: _rows_after_first(text, name), asked, name, reader.line_num)
    if layout.names is None:
        reader, rows = _rows_of(text, name)
    X, labels, line_of_row = _read(reader, rows, layout, len(first), "_" in text, name)
    layout, X = _without_index(layout, X, asked, name)
    if asked.n_features is not None and len(layout.features) != asked.n_features:
        raise DataError(f"{name}: found {len(layout.features)} feature columns, {asked.n_features} are expected")
    if not layout.features:
        raise DataError(f"{name}: holds the label's column {layout.called(layout.label_at or 0)} but not one feature")
    if not np.isfinite(X).all():
        row_at, at = np.argwhere(~np.isfinite(X))[0]
        where = f"{name}, line {line_of_row[row_at]}, column {layout.called(layout.features[at])}"
        raise DataError(f"{where}: found {X[row_at, at]}, values must be finite")
    if np.abs(X).max() >= EXACT:
        _warn_of_rounding(text, layout, name)
    y = None if labels is None else labels_of(labels, name, line_of_row)
    names = layout.names
    if names is None:
        return Table(X, y)
    label = None if layout.label_at is None else names[layout.label_at]
    return Table(X, y, [names[at] for at in layout.features], label)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{name}, line {line}: found the byte {content[error.start]:#04x}, not UTF-8 text") from None


def _rows_of(text: str, name: str) -> tuple[Any, Iterator[list[str]]]:
    """A csv.reader, and its rows without blank lines."""
    first = text.lstrip("\r\n").partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    return reader, _filled_rows(reader, name)


def _filled_rows(reader: Any, name: str) -> Iterator[list[str]]:
    """Yield the rows of a csv.reader, blank lines left out."""
    try:
        yield from (row for row in reader if row)
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not CSV: {error}") from None


def _rows_after_first(text: str, name: str) -> Iterator[list[str]]:
    rows = _rows_of(text, name)[1]
    next(rows)
    return rows


def _read(
    reader: Any, rows: Iterator[list[str]], layout: Layout, n_columns: int, has_underscores: bool, name: str
) -> tuple[np.ndarray, list[str] | None, array]:
    """Features, texts of the labels, and the line that each row ends in."""
    values, line_of_row, labels = array("d"), array("q"), []
    # Python reads 1_000 as a number, other programs do not: look closer only if a row may have an underscore.
    convert: Callable[[str], float] = strict_float if has_underscores else float
    label_at, features = layout.label_at, layout.features
    for row in rows:
        line = reader.line_num
        if len(row) != n_columns:
            known = "the first line" if layout.names is None else "the header"
            raise DataError(f"{name}, line {line}: found {len(row)} fields, {known} has {n_columns}")
        if label_at is not None:
            label = row[label_at].strip()
            if not label:
                raise DataError(f"{name}, line {line}: the label is missing (column {layout.called(label_at)})")
            labels.append(label)
        try:
            values.extend([convert(row[at]) for at in features])
        except ValueError:
            at = next(at for at in features if number(row[at]) is None)
            found = quote(row[at]) if row[at].strip() else "an empty field"
            where = f"{name}, line {line}, column {layout.called(at)}"
            raise DataError(f"{where}: found {found} where a number belongs") from None
        line_of_row.append(line)
    if not line_of_row:
        raise DataError(f"{name}: holds a header but no rows")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(line_of_row), len(features))
    return X, None if label_at is None else labels, line_of_row


def _without_index(layout: Layout, X: np.ndarray, asked: Asked, name: str) -> tuple[Layout, np.ndarray]:
    """The features without columns that number the rows and have no name, which pandas writes where nobody asked for
    them; where the number of features is known, only if there are too many.
    """
    if layout.names is None or asked.columns is not None or len(layout.features) == asked.n_features:
        return layout, X
    kept = [k for k, at in enumerate(layout.features) if not is_index(layout.names[at], X[:, k])]
    if len(kept) < len(layout.features):
        say_index(name, [layout.names[at] for at in layout.features if at not in [layout.features[k] for k in kept]])
        layout = layout._replace(features=[layout.features[k] for k in kept])
        X = np.ascontiguousarray(X[:, kept])
    return layout, X


def is_index(column: str, values: np.ndarray) -> bool:
    """Whether a column has no name and a whole number of its own in each row."""
    if UNNAMED.fullmatch(column) is None or not (np.isfinite(values) & (values == np.floor(values))).all():
        return False
    return len(np.unique(values)) == len(values)


def say_index(name: str, columns: list[str]) -> None:
    """Say that columns are ignored."""
    shown = " and ".join(map(quote, columns))
    warn(f"{name}: the column {shown} without a name numbers the rows and is ignored; a name makes it a feature")


def _warn_of_rounding(text: str, layout: Layout, name: str) -> None:
    """Say which whole number is not one of float64."""
    reader, rows = _rows_of(text, name)
    if layout.names is not None:
        next(rows)
    for row in rows:
        for at in layout.features:
            value = row[at].strip()
            if value.lstrip("+-").isdecimal() and int(float(value)) != int(value):
                warn(
                    f"{name}, line {reader.line_num}, column {layout.called(at)}: {value} is rounded to "
                    f"{int(float(value))}: features have 53 binary digits. Leave out numbers that only name rows"
                )
                return
