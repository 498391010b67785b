"""Types of options for argparse: their errors say what was found and what is accepted."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def _parser(convert: Callable[[str], Any], is_accepted: Callable[[Any], Any], wanted: str) -> Callable[[str], Any]:
    """Return a type of option, which converts a text and refuses what is not accepted."""

    def parse(text: str) -> Any:
        try:
            value = convert(text)
        except ValueError:
            value = None
        if value is None or not is_accepted(value):
            raise argparse.ArgumentTypeError(f"must be {wanted}, found {text!r}")
        return value

    return parse


def _or_word(parse: Callable[[str], Any], word: str, value: Any) -> Callable[[str], Any]:
    """Return a type of option that takes a word, too, which stands for a value."""

    def parse_or(text: str) -> Any:
        if text.lower() == word:
            return value
        try:
            return parse(text)
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentTypeError(str(error).replace(", found", f" or {word!r}, found")) from None

    return parse_or


def _digits(text: str) -> int:
    """Parse an integer without a sign."""
    if not text.isascii() or not text.isdigit():
        raise ValueError(text)
    return int(text)


positive = _parser(float, lambda number: 0 < number < math.inf, "a positive number")
not_negative = _parser(float, lambda number: 0 <= number < math.inf, "a number >= 0")
finite = _parser(float, math.isfinite, "a finite number")
positive_integer = _parser(_digits, lambda number: number >= 1, "an integer >= 1")
not_negative_integer = _parser(_digits, lambda number: True, "an integer >= 0")
folds = _parser(_digits, lambda number: number >= 2, "an integer >= 2")
seed = _parser(_digits, lambda number: number < 2**32, "an integer from 0 to 2**32 - 1")  # what generators take
jobs = _parser(int, bool, "an integer other than 0")  # negative ones are counted from all cores as joblib does
size_or_auto = _or_word(positive_integer, "auto", "auto")
positive_or_none = _or_word(positive, "none", None)
positive_or_validate = _or_word(positive, "validate", "validate")


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


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
