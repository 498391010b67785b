"""Columns of texts that say numbers or times, as files have them."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime

import numpy as np

from slimsvm.tables.containers import Column

Array = np.ndarray

# A column of texts is one of numbers if at least this share of them are numbers; the others count as missing. Chosen,
# not measured.
MOSTLY = 0.9
# 007 is a code, not a number.
WHOLE = r"[+-]?(?:0|[1-9]\d*)"
POINT = re.compile(
    rf"{WHOLE}(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?|[+-]?[1-9]\d{{0,2}}(?:,\d{{3}})+(?:\.\d*)?"
)
COMMA = re.compile(rf"{WHOLE}(?:,\d*)?|[+-]?[1-9]\d{{0,2}}(?:\.\d{{3}})+(?:,\d*)?")
STYLES = {"point": POINT, "comma": COMMA}
TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")


def style_of(column: Column) -> str | None:
    """How texts write numbers: "point" (1,234.5), "comma" (1.234,5), or None if they are no numbers.

    Where both are possible, as for 1,234 alone, it is "point".
    """
    present = [text for text in column.values if text is not None]
    shares = {
        style: sum(pattern.fullmatch(text) is not None for text in present) / max(len(present), 1)
        for style, pattern in STYLES.items()
    }
    best = max(shares, key=lambda style: shares[style])
    return best if shares[best] >= MOSTLY else None


def as_numbers(column: Column, style: str) -> Array:
    """Numbers of a column, NaN where there is none.

    Raises
    ------
    ValueError
        The column has times.

    Warns
    -----
    UserWarning
        A text is no number: it counts as missing.
    """
    if column.kind == "numbers":
        return column.values
    if column.kind == "times":
        raise ValueError(f"column {column.name!r} had numbers when the model was fitted, and has times now")
    numbers, strange = np.full(len(column.values), np.nan), None
    for row, text in enumerate(column.values):
        if text is None:
            continue
        if STYLES[style].fullmatch(text):
            numbers[row] = _number(text, style)
        else:
            strange = text if strange is None else strange
    if strange is not None:
        warnings.warn(
            f"column {column.name!r} has numbers, and texts such as {strange!r} that are none: these count as missing",
            UserWarning,
            stacklevel=2,
        )
    return numbers


def _number(text: str, style: str) -> float:
    plain = text.replace(",", "") if style == "point" else text.replace(".", "").replace(",", ".")
    number = float(plain)
    return number if np.isfinite(number) else np.nan


def are_times(column: Column) -> bool:
    """Whether every text is a date or a time of ISO 8601, such as 2026-11-27 or 2026-11-27T20:25:00+01:00."""
    present = {text for text in column.values if text is not None}
    return bool(present) and all(TIME.fullmatch(text) is not None and _time(text) is not None for text in present)


def as_times(column: Column) -> Array:
    """Times of a column in UTC, NaT where there is none; a ValueError if it has numbers or other texts."""
    if column.kind == "times":
        return column.values
    if column.is_missing.all():
        return np.full(len(column.values), np.datetime64("NaT"), "datetime64[us]")
    if column.kind == "numbers" or not are_times(column):
        raise ValueError(f"column {column.name!r} had times when the model was fitted, and has {column.kind} now")
    return np.array([np.datetime64("NaT") if text is None else _time(text) for text in column.values], "datetime64[us]")


def _time(text: str) -> np.datetime64 | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(found, "us")
