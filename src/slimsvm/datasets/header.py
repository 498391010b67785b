"""Whether the first line of a CSV file names its columns or is a row, and which column holds the labels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from slimsvm.datasets.files import DataError, DataWarning, quote

LABEL_NAMES = ("label", "target", "y", "class")
# What pandas calls the column of an index: nothing where it writes it, by its place where it reads it again.
UNNAMED = re.compile(r"(Unnamed: \d+(\.\d+)?)?")
_WHOLE = re.compile(r"0|[1-9][0-9]*")


@dataclass(frozen=True)
class Asked:
    """What is asked of a file of rows.

    Parameters
    ----------
    n_features : int or None
        The number of features there must be.
    target : str, False or None
        The label's column, or its array. None: the usual one. False: there are no labels.
    header : bool or None
        Whether the first line of a CSV file names the columns. None: by what it looks like.
    columns : sequence of str or None
        The features by name, in the order in which they are wanted.
    label : str or None
        The label's column where `target` is None, if the file has it.
    labels_needed : bool
        False: there may be no labels.
    """

    n_features: int | None = None
    target: str | Literal[False] | None = None
    header: bool | None = None
    columns: Sequence[str] | None = None
    label: str | None = None
    labels_needed: bool = True


class Layout(NamedTuple):
    """Which columns of a file are what: names of all, where there are any, places of features and of the label."""

    names: list[str] | None
    features: list[int]
    label_at: int | None

    def called(self, at: int) -> str:
        """What messages call a column: its name, or its number."""
        return str(at + 1) if self.names is None else quote(self.names[at])


def layout_of(first: list[str], rows: Callable[[], Iterable[list[str]]], asked: Asked, name: str, line: int) -> Layout:
    """The columns of a file, of which ``first`` is the first line.

    Parameters
    ----------
    first : list of str
        Its fields, without blanks around them.
    rows : callable
        Begins to go through the rows after the first line.
    asked : Asked
    name : str
        The file's name, for messages.
    line : int
        The number of the first line, for messages.

    Raises
    ------
    DataError
        The columns that are asked for are not in the file.
    """
    is_header = asked.header if asked.header is not None else _has_header(first, rows, asked, f"{name}, line {line}")
    if not is_header:
        return _unnamed(first, asked, name)
    for column in first:
        if first.count(column) > 1:
            raise DataError(f"{name}, line {line}: found two columns named {quote(column)}")
    return by_name(first, asked, name)


def by_name(names: list[str], asked: Asked, name: str) -> Layout:
    """The features and the label of a table whose columns have names.

    Raises
    ------
    DataError
        A column that is asked for is missing, or there is another number of columns.
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
    """The place of the labels; None without labels."""
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
    """The columns of a file without a header: the label is the last one, or the first where that alone is a text."""
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
    """Where the label of a line without names is; -1 where `target` is no number of a column."""
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
    """Whether cells are whole numbers that ascend by equal steps, and those of the next line are not."""
    return _ascend_evenly(cells) and not (others and _ascend_evenly([cell.strip() for cell in others[0]]))


def _ascend_evenly(cells: list[str]) -> bool:
    if len(cells) < 2 or not all(_WHOLE.fullmatch(cell) for cell in cells):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(cells)}
    if len(cells) == 2:  # which have equal steps whatever they are
        return steps == {1} and cells[0] in ("0", "1")
    return len(steps) == 1 and steps.pop() > 0


def _ascend(cells: list[str]) -> bool:
    values = [float(cell) for cell in cells]
    return all(before < after for before, after in pairwise(values))


def number(field: str) -> float | None:
    """The number that a field holds; None where it holds none."""
    try:
        return strict_float(field)
    except ValueError:
        return None


def strict_float(field: str) -> float:
    """A number as every program reads it: Python takes 1_000, too."""
    if "_" in field:
        raise ValueError
    return float(field)


def warn(text: str) -> None:
    """Say what was done with a file that could have been meant otherwise."""
    warnings.warn(text, DataWarning, stacklevel=2)


def _listed(noun: str, names: Sequence[str]) -> str:
    """Names in quotes, the first twenty of them."""
    shown = ", ".join(map(quote, names[:20])) + (", ..." if len(names) > 20 else "")
    return f"{noun}{'s' * (len(names) != 1)} {shown}" if noun else shown
