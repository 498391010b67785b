"""Types of options for argparse: their errors say what was found and what is accepted."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def positive(text: str) -> float:
    """Parse a finite number > 0."""
    number = _number(text)
    if number is None or not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, found {text!r}")
    return number


def not_negative(text: str) -> float:
    """Parse a finite number >= 0."""
    number = _number(text)
    if number is None or not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number >= 0, found {text!r}")
    return number


def finite(text: str) -> float:
    """Parse a finite number."""
    number = _number(text)
    if number is None or not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"must be a finite number, found {text!r}")
    return number


def positive_integer(text: str) -> int:
    """Parse an integer >= 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer >= 1, found {text!r}")
    return int(text)


def folds(text: str) -> int:
    """Parse an integer >= 2."""
    if positive_integer(text) < 2:
        raise argparse.ArgumentTypeError(f"must be an integer >= 2, found {text!r}")
    return int(text)


def size_or_auto(text: str) -> int | str:
    """Parse an integer >= 1, or `auto`."""
    if text == "auto":
        return text
    return _or_word(positive_integer, text, "'auto'")


def not_negative_integer(text: str) -> int:
    """Parse an integer >= 0."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, found {text!r}")
    return int(text)


def seed(text: str) -> int:
    """Parse an integer that random generators take."""
    if not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"must be an integer from 0 to 2**32 - 1, found {text!r}")
    return int(text)


def jobs(text: str) -> int:
    """Parse a number of threads; negative ones are counted from all cores as joblib does."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number == 0:
        raise argparse.ArgumentTypeError(f"must be an integer other than 0, found {text!r}")
    return number


def positive_or_none(text: str) -> float | None:
    """Parse a finite number > 0, or `none`."""
    return None if text.lower() == "none" else _or_word(positive, text, "'none'")


def positive_or_validate(text: str) -> float | str:
    """Parse a finite number > 0, or `validate`."""
    return text if text == "validate" else _or_word(positive, text, "'validate'")


def gamma(text: str) -> Any:
    """Parse `scale`, `auto`, `learn`, `validate`, a number > 0, or several with commas between, one per feature."""
    if text in ("scale", "auto", "learn", "validate"):
        return text
    values = [_number(part) for part in text.split(",")]
    if any(value is None or not 0 < value < math.inf for value in values):
        wanted = "a positive number, several with commas between, 'scale', 'auto', 'learn' or 'validate'"
        raise argparse.ArgumentTypeError(f"must be {wanted}; found {text!r}")
    return values[0] if len(values) == 1 else values


def class_weight(text: str) -> Any:
    """Parse `balanced`, or `label:weight` with commas between."""
    if text == "balanced":
        return text
    weights: dict[Any, float] = {}
    for part in text.split(","):
        label, colon, number = part.rpartition(":")
        if not colon or not label:
            raise argparse.ArgumentTypeError(f"must be 'balanced' or LABEL:WEIGHT,LABEL:WEIGHT,...; found {text!r}")
        weights[literal(label)] = positive(number)
    return weights


def assignment(text: str) -> tuple[str, Any]:
    """Parse `name=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, found {text!r}")
    return name, literal(value)


def literal(text: str) -> Any:
    """Return the number, truth value or None that a text stands for, or the text itself.

    Examples
    --------
    >>> literal("3"), literal("1e-3"), literal("true"), literal("none"), literal("full")
    (3, 0.001, True, None, 'full')
    """
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _or_word(convert: Callable[[str], Any], text: str, word: str) -> Any:
    """Return the converted value; an error message adds the word that the option accepts, too."""
    try:
        return convert(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(str(error).replace(", found", f" or {word}, found")) from None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
