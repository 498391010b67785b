"""Columns of texts that say numbers or times, as files have them."""

from __future__ import annotations

import re
import warnings
from datetime import UTC, datetime
from typing import Any

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
# A time of day or a duration, as the number of its seconds.
CLOCK = re.compile(
    r"(?P<hours>\d{1,6}):(?P<minutes>[0-5]\d)(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?(?: ?(?P<half>[AaPp])[Mm])?"
)
STYLES = {"point": POINT, "comma": COMMA, "clock": CLOCK}
# What may stand before or behind a number; the same in all of a column.
MARKS = frozenset("%$€£¥")
ISO = "year-month-day"
TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
OF_DAY = r"(?:,? (?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d))?(?: ?(?P<half>[AaPp])[Mm])?)?"
YEAR, MONTH, DAY = r"(?P<year>\d{4})", r"(?P<month>\d\d?)", r"(?P<day>\d\d?)"
NAMED = r"(?P<name>[A-Za-z]{3,9})\.?"
# How dates may be written besides.
ORDERS = {
    order: re.compile(pattern + OF_DAY)
    for order, pattern in {
        "year/month/day": f"{YEAR}/{MONTH}/{DAY}",
        "day.month.year": rf"{DAY}\.{MONTH}\.{YEAR}",
        "month/day/year": f"{MONTH}/{DAY}/{YEAR}",
        "day/month/year": f"{DAY}/{MONTH}/{YEAR}",
        "day month year": f"{DAY}[ -]{NAMED}[ -]{YEAR}",
        "month day, year": f"{NAMED} {DAY}, {YEAR}",
    }.items()
}
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
          "december")  # fmt: skip


def style_of(column: Column) -> str | None:
    """How texts write numbers: "point" (1,234.5), "comma" (1.234,5), "clock" (10:30), or None if they are no numbers.

    Where the first two are possible, as for 1,234 alone, it is "point". A number may have a sign of percent or of a
    currency.
    """
    present = [text for text in column.values if text is not None]
    if len({mark for text in present for mark in MARKS.intersection(text)}) == 1:
        present = [without_mark(text) for text in present]
    shares = {
        style: sum(pattern.fullmatch(text) is not None for text in present) / max(len(present), 1)
        for style, pattern in STYLES.items()
    }
    best = max(shares, key=lambda style: shares[style])
    return best if shares[best] >= MOSTLY else None


def as_numbers(column: Column, style: str) -> Array:
    """Numbers of a column, NaN where there is none; a ValueError if it has times.

    A text that is no number counts as missing, with a UserWarning.
    """
    if column.kind == "numbers":
        return column.values
    if column.kind == "times":
        raise ValueError(f"column {column.name!r} had numbers when the model was fitted, and has times now")
    numbers, strange = np.full(len(column.values), np.nan), None
    for row, text in enumerate(column.values):
        if text is None:
            continue
        if STYLES[style].fullmatch(plain := without_mark(text)):
            numbers[row] = _number(plain, style)
        else:
            strange = text if strange is None else strange
    if strange is not None:
        warnings.warn(
            f"column {column.name!r} has numbers, and texts such as {strange!r} that are none: these count as missing",
            UserWarning,
            stacklevel=2,
        )
    return numbers


def without_mark(text: str) -> str:
    """A text without the sign of percent or of a currency before or behind its number: -$5 is -5, 5 % is 5."""
    sign = text[:1] if text[:1] in ("+", "-") else ""
    number = text[len(sign) :]
    if number[:1] in MARKS:
        return sign + number[1:].lstrip()
    return sign + number[:-1].rstrip() if number[-1:] in MARKS else text


def _number(text: str, style: str) -> float:
    if style == "clock":
        return _seconds(text)
    plain = text.replace(",", "") if style == "point" else text.replace(".", "").replace(",", ".")
    number = float(plain)
    return number if np.isfinite(number) else np.nan


def _seconds(text: str) -> float:
    parts: Any = CLOCK.fullmatch(text)
    hours, half = int(parts["hours"]), (parts["half"] or "").lower()
    hours = hours % 12 + 12 * (half == "p") if half else hours
    return 3600.0 * hours + 60.0 * int(parts["minutes"]) + float(parts["seconds"] or 0.0)


def order_of(column: Column) -> str | None:
    """How texts write dates and times: "year-month-day" of ISO 8601, another one of `ORDERS`, or None if some are none.

    Where day and month may be either in every text, they are no times.
    """
    present = {text for text in column.values if text is not None}
    first = next(iter(present), "")
    orders = [ISO] if TIME.fullmatch(first) else [each for each in ORDERS if ORDERS[each].fullmatch(first)]
    found = [order for order in orders if all(_time(text, order) is not None for text in present)]
    return found[0] if len(found) == 1 else None


def as_times(column: Column, order: str) -> Array:
    """Times of a column in UTC, NaT where there is none; a ValueError if it has numbers or other texts."""
    if column.kind == "times":
        return column.values
    if column.is_missing.all():
        return np.full(len(column.values), np.datetime64("NaT"), "datetime64[us]")
    if column.kind == "numbers":
        raise ValueError(f"column {column.name!r} had times when the model was fitted, and has numbers now")
    known: dict[str | None, np.datetime64 | None] = {None: np.datetime64("NaT")}
    for text in column.values:
        if text not in known:
            known[text] = _time(text, ISO) or _time(text, order)
        if known[text] is None:
            raise ValueError(f"column {column.name!r} had times when the model was fitted, and has {text!r} now")
    return np.array([known[text] for text in column.values], "datetime64[us]")


def _time(text: str, order: str) -> np.datetime64 | None:
    """The time that a text says, in UTC; None if it says none."""
    try:
        if order == ISO:
            found = datetime.fromisoformat(text) if TIME.fullmatch(text) else None
        else:
            found = _time_of_parts(ORDERS[order].fullmatch(text))
    except ValueError:
        return None
    if found is not None and found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return None if found is None else np.datetime64(found, "us")


def _time_of_parts(match: re.Match[str] | None) -> datetime | None:
    """The time of a pattern's groups; a ValueError if there is no such day."""
    if match is None:
        return None
    parts = match.groupdict()
    if (name := parts.get("name")) is not None:
        months = [k for k, month in enumerate(MONTHS, 1) if name.lower() in (month, month[:3], month[:4])]
        parts["month"] = str(months[0]) if months else "0"
    hour, half = int(parts["hour"] or 0), (parts["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(f"there is no hour {hour} of half a day")
        hour = hour % 12 + 12 * (half == "p")
    day = int(parts["year"]), int(parts["month"]), int(parts["day"])
    return datetime(*day, hour, int(parts["minute"] or 0), int(parts["second"] or 0))
