"""CSV tables: which columns hold the labels and the features, with or without a header, and the rows."""

from __future__ import annotations

import csv
import io
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from slimsvm.datasets.files import EXACT, DataError, labels_of, number, quote, strict_float, warn


class Table(NamedTuple):
    """Rows as they were read, their labels, and the names of the columns."""

    X: Any  # ndarray or csr_array of shape (n, d)
    y: np.ndarray | None  # shape (n,)
    names: list[str] | None = None  # of the features, if they have names
    label: str | None = None  # the column of the labels, if it has a name
    qid: np.ndarray | None = None  # int64, of each row


def parse_csv(content: bytes, name: str, asked: Asked) -> Table:
    """Parse CSV (commas, semicolons or tabs) in UTF-8, with or without a header; ``name`` is the file's, for messages.

    Rows are float64, labels as `labels_of` gives them. A DataError names the line and the column of any other text.
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
        found = f"{name}, line {line}: found the byte {content[error.start]:#04x}, not UTF-8 text"
        raise DataError(f"{found}: save the file as CSV in UTF-8") from None


def _rows_of(text: str, name: str) -> tuple[Any, Iterator[list[str]]]:
    """Return a csv.reader, and its rows without blank lines."""
    first = text.lstrip("\r\n").partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(first), strict=True)
    return reader, _filled_rows(reader, name)


def delimiter_of(line: str) -> str:
    """The comma, semicolon or tab that separates the fields of a line: the most frequent one outside of quotes."""
    return max(",;\t", key=re.sub(r'"[^"]*"', "", line).count)


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
    """Read features, texts of the labels, and the line that each row ends in."""
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
            hint = "TableClassifier, and `slimsvm train --task table`, take texts and missing values"
            raise DataError(f"{where}: found {found} where a number belongs; {hint}") from None
        line_of_row.append(line)
    if not line_of_row:
        raise DataError(f"{name}: holds a header but no rows")
    X = np.frombuffer(values, dtype=np.float64).reshape(len(line_of_row), len(features))
    return X, None if label_at is None else labels, line_of_row


def _without_index(layout: Layout, X: np.ndarray, asked: Asked, name: str) -> tuple[Layout, np.ndarray]:
    """Drop columns without a name that number the rows, which pandas writes unasked; if the number of features is
    known, drop them only if there are too many.
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


# ---- the header, and what the columns are


LABEL_NAMES = ("label", "target", "y", "class")
# What pandas calls the column of an index: nothing where it writes it, by its place where it reads it again.
UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)?)?")
_WHOLE = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True)
class Asked:
    """The columns that a file of rows must have."""

    n_features: int | None = None  # the number there must be
    # The label's column, or its array; None: the usual one; False: there are no labels.
    target: str | Literal[False] | None = None
    header: bool | None = None  # whether the first line of a CSV file names the columns; None: the line decides
    columns: Sequence[str] | None = None  # the features by name, in the order in which they are wanted
    label: str | None = None  # the label's column if ``target`` is None and the file has it
    labels_needed: bool = True  # False: there may be no labels


class Layout(NamedTuple):
    """The columns of a file: all names (if it has names), places of the features and of the label."""

    names: list[str] | None
    features: list[int]
    label_at: int | None

    def called(self, at: int) -> str:
        """Return the name or the number by which messages call a column."""
        return str(at + 1) if self.names is None else quote(self.names[at])


def layout_of(first: list[str], rows: Callable[[], Iterable[list[str]]], asked: Asked, name: str, line: int) -> Layout:
    """Return the columns of a file, from the fields of its first line, without blanks around them.

    ``rows()`` begins to go through the rows after this line; ``name`` and ``line``, its number, are for messages. A
    DataError says which columns that are asked for are not in the file.
    """
    is_header = asked.header if asked.header is not None else _has_header(first, rows, asked, f"{name}, line {line}")
    if not is_header:
        return _unnamed(first, asked, name)
    for column in first:
        if first.count(column) > 1:
            raise DataError(f"{name}, line {line}: found two columns named {quote(column)}")
    return by_name(first, asked, name)


def by_name(names: list[str], asked: Asked, name: str) -> Layout:
    """Return the features and the label of a table whose columns have names; a DataError names a column that is
    missing, or says that there is another number of columns.
    """
    label_at = _label_at(names, asked, name)
    if asked.columns is None:
        features = [at for at in range(len(names)) if at != label_at]
        return Layout(names, features, label_at)
    missing = [column for column in asked.columns if column.strip() not in names]
    if missing:
        raise DataError(
            f"{name}: lacks the {_listed('column', missing)}, from which the model was trained; "
            f"it has {_listed('', names)}"
        )
    features = [names.index(column.strip()) for column in asked.columns]
    others = [column for at, column in enumerate(names) if at != label_at and at not in set(features)]
    if others:
        warn(f"{name}: the {_listed('column', others)} {'is' if len(others) == 1 else 'are'} ignored: the model was "
             "trained without")  # fmt: skip
    return Layout(names, features, label_at)


def _label_at(names: list[str], asked: Asked, name: str) -> int | None:
    """Return the place of the labels; None without labels."""
    if asked.target is False:
        return None
    if asked.target is not None:
        if asked.target not in names:
            raise DataError(
                f"{name}: found no column named {quote(asked.target)} for the label; "
                f"the columns are {_listed('', names)}"
            )
        return names.index(asked.target)
    features = {column.strip() for column in asked.columns or ()}
    if asked.label is not None and asked.label in names and asked.label not in features:
        return names.index(asked.label)
    named = [at for at, column in enumerate(names) if column.lower() in LABEL_NAMES and column not in features]
    if len(named) > 1:
        found = " and ".join(quote(names[at]) for at in named)
        raise DataError(f"{name}: found the columns {found}; say with target which one is the label")
    if named:
        return named[0]
    if asked.label is None and names[-1] not in features and not _is_unlabelled(len(names), asked):
        return len(names) - 1
    if asked.labels_needed:
        known = asked.label or "label"
        raise DataError(f"{name}: found no column named {quote(known)} for the label; the columns are "
                        f"{_listed('', names)}")  # fmt: skip
    return None


def _is_unlabelled(n_columns: int, asked: Asked) -> bool:
    """Whether there are as many columns as there must be features, and labels need not be."""
    n_features = asked.n_features if asked.columns is None else len(asked.columns)
    return not asked.labels_needed and n_columns == n_features


def _unnamed(first: list[str], asked: Asked, name: str) -> Layout:
    """Return a file's columns without a header: the label is the last one, or the first if that alone is a text."""
    n = len(first)
    label_at = _place_of_label(first, asked)
    if label_at is not None and not 0 <= label_at < n:
        raise DataError(
            f"{name}: has no header, so target must be the number of the label's column, from 1 to {n}; found "
            f"{quote(str(asked.target))}"
        )
    if asked.columns is not None:
        if n - (label_at is not None) == len(asked.columns):
            warn(f"{name}: has no header, so its columns are taken in the order of training: "
                 f"{_listed('', asked.columns)}")  # fmt: skip
        asked = replace(asked, n_features=len(asked.columns))
    return Layout(None, [at for at in range(n) if at != label_at], label_at)


def _place_of_label(first: list[str], asked: Asked) -> int | None:
    """Return the label's column in lines without names; -1 if `target` is no number of a column."""
    if asked.target is False or (asked.target is None and _is_unlabelled(len(first), asked)):
        return None
    if asked.target is not None:
        return int(asked.target) - 1 if asked.target.isdecimal() else -1
    return 0 if [at for at, cell in enumerate(first) if number(cell) is None] == [0] else len(first) - 1


def _has_header(first: list[str], rows: Callable[[], Iterable[list[str]]], asked: Asked, where: str) -> bool:
    """Whether the first line names the columns; where the file does not tell for certain, this warns."""
    wanted = {column.strip() for column in asked.columns or ()}
    if (wanted and 2 * len(wanted & set(first)) > len(wanted)) or asked.target in first:
        return True
    label_at = _place_of_label(first, asked)
    features = [cell for at, cell in enumerate(first) if at != label_at]
    if any(number(cell) is None for cell in features) or not features:
        return True
    is_header, is_sure = _evidence(first, features, label_at, rows)
    if not is_sure:
        taken, other, option = ("names of columns", "a row", "--no-header, header=False")
        if not is_header:
            taken, other, option = "a row", "names of columns", "--header, header=True"
        shown = quote(",".join(first))
        warn(f"{where}: {shown} is taken for {taken}; if it is {other}, say so ({option})")
    return is_header


def _evidence(
    first: list[str], features: list[str], label_at: int | None, rows: Callable[[], Iterable[list[str]]]
) -> tuple[bool, bool]:
    """Whether a line whose features are all numbers is a header, and whether that is certain.

    Names that are numbers count the columns or ascend by equal steps (years, wave lengths); names differ, and nothing
    is called as a class is.
    """
    others = [row for row in rows() if len(row) == len(first)]
    if len(set(features)) < len(features):
        return False, True
    if label_at is None:
        counts = _counts(features, others)
        return counts, not counts
    label, labels = first[label_at], {row[label_at].strip() for row in others}
    are_numbers = all(number(other) is not None for other in labels)
    if number(label) is not None and are_numbers:
        counts = _counts(first, others)
        return counts, not counts
    if label in labels:
        return False, True
    if label.lower() in LABEL_NAMES or are_numbers:
        return True, True
    return _counts(first, others) if number(label) is not None else _ascend(features), False


def _counts(cells: list[str], others: list[list[str]]) -> bool:
    """Whether cells are whole numbers that ascend by equal steps, and the next line's cells are not."""
    return _ascend_evenly(cells) and not (others and _ascend_evenly([cell.strip() for cell in others[0]]))


def _ascend_evenly(cells: list[str]) -> bool:
    if len(cells) < 2 or not all(_WHOLE.fullmatch(cell) for cell in cells):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(cells)}
    if len(cells) == 2:  # which have equal steps in any case
        return steps == {1} and cells[0] in ("0", "1")
    return len(steps) == 1 and steps.pop() > 0


def _ascend(cells: list[str]) -> bool:
    values = [float(cell) for cell in cells]
    return all(before < after for before, after in pairwise(values))


def _listed(noun: str, names: Sequence[str]) -> str:
    """Return names in quotes, the first twenty of them."""
    shown = ", ".join(map(quote, names[:20])) + (", ..." if len(names) > 20 else "")
    return f"{noun}{'s' * (len(names) != 1)} {shown}" if noun else shown
