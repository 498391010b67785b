"""Numbers and labels written as text: labels become numbers where these say all that the texts say."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from slimsvm.datasets.files import DataError, quote, warn

# Whole numbers up to this one are all numbers of float64.
EXACT = 2.0**53
_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")
_PADDED = re.compile(r"[+-]?0[0-9]+(\.0*)?")


def number(field: str) -> float | None:
    """The number in a field; None where it holds no number."""
    try:
        return strict_float(field)
    except ValueError:
        return None


def strict_float(field: str) -> float:
    """A number as other programs read it, too: Python alone accepts 1_000."""
    if "_" in field:
        raise ValueError
    return float(field)


def labels_of(texts: list[str], name: str, lines: Sequence[int]) -> np.ndarray:
    """Labels of rows: int64 if all are whole numbers, float64 if all are numbers, else the texts as they stand.

    Texts stay where numbers would not tell them apart or lose digits: 007 and 7, +1 and 1, 1e3 and 1000, whole numbers
    beyond int64. (1.0 is the same label as 1.)

    Parameters
    ----------
    texts : list of str
    name : str
        The file's name, for messages.
    lines : sequence of int
        The line of each label, for messages.

    Raises
    ------
    DataError
        All labels are numbers, and one is not finite.
    """
    different = set(texts)
    values = {text: value for text in different if (value := number(text)) is not None}
    if len(values) < len(different):
        return np.array(texts)
    if not all(map(math.isfinite, values.values())):
        at = next(k for k, text in enumerate(texts) if not math.isfinite(values[text]))
        raise DataError(f"{name}, line {lines[at]}: found {quote(texts[at])} as the label, which must be finite")
    if not are_texts(different, name):
        exact = as_whole(different)
        if exact is not None:
            return np.array([exact[text] for text in texts], np.int64)
        return np.array([values[text] for text in texts], np.float64)
    return np.array(texts)


def are_texts(different: Iterable[str], name: str) -> bool:
    """Whether labels, which are numbers, have to stay texts; where two would be one number, this warns."""
    seen: dict[float | int, str] = {}
    whole = True
    padded, equal = [], []
    for text in sorted(different):
        value = float(text)
        whole = whole and value == math.floor(value)
        exact = int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else value
        if _PADDED.fullmatch(text):
            padded.append(text)
        form = re.sub(r"\.0*$", "", text)
        if seen.setdefault(exact, form) != form:
            equal.append((seen[exact], form))
        if isinstance(exact, int) and not -(2**63) <= exact < 2**63:
            padded.append(text)
    if not whole:  # numbers to predict, no classes
        return False
    if equal and not padded:
        one, other = equal[0]
        warn(f"{name}: found the labels {quote(one)} and {quote(other)}, which are one number: they are taken as "
             "texts, and are different labels")  # fmt: skip
    return bool(equal or padded)


def as_whole(different: Iterable[str]) -> dict[str, int] | None:
    """Labels as exact whole numbers; None where one is not whole."""
    whole = {}
    for text in different:
        if _WHOLE.fullmatch(text):
            whole[text] = int(text.partition(".")[0])
        elif float(text) == math.floor(float(text)) and abs(float(text)) < EXACT:
            whole[text] = int(float(text))
        else:
            return None
    return whole
