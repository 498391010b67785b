"""Numbers, arrays, strings and decisions as C has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from slimsvm.deploy.plain_model import texts, whole_numbers

Array = np.ndarray

LINE_WIDTH = 110


TYPES = {"float32": "float", "float64": "double", "int16": "int16_t"}


def number(value: float, dtype: str = "float32") -> str:
    """A constant of C: the shortest that is the same float32 or float64, or a whole number."""
    if dtype == "int16":
        return str(int(value))
    with np.errstate(over="ignore"):
        rounded = np.dtype(dtype).type(value)
    if not np.isfinite(rounded):
        raise ValueError(f"the model holds {value:.3g}, which is beyond {dtype}: scale the features, or train with a "
                         "smaller C")  # fmt: skip
    return f"{rounded!s}f" if dtype == "float32" else repr(float(rounded))


def array(name: str, values: Array, shape: str, dtype: str = "float32") -> str:
    """A constant array."""
    lines = [f"static const {TYPES[dtype]} NAME_{name}{shape} = {{"]
    for row in np.atleast_2d(values):
        words, line = [number(value, dtype) for value in row], "    "
        if np.ndim(values) == 2:
            words[0] = "{" + words[0]
            words[-1] += "}"
        for word in words:
            if len(line) + len(word) > LINE_WIDTH:
                lines.append(line.rstrip())
                line = "    "
            line += word + ", "
        lines.append(line.rstrip())
    return "\n".join([*lines, "};\n"])


def classes_array(classes: Array) -> str:
    """The labels of the classes, as numbers of their type or strings."""
    if classes.dtype.kind in "biu":
        kind, words = "int64_t ", list(map(str, whole_numbers(classes, 2**63 - 1, "a C header")))
        words = ["-9223372036854775807 - 1" if word == str(-(2**63)) else word for word in words]
    elif classes.dtype.kind == "f":
        kind, words = "double ", [repr(float(label)) for label in classes]
    else:
        labels = texts(classes, "a C header")
        if ended := [label for label in labels if "\0" in label]:
            raise ValueError(f"a text of C ends at its first zero byte, found the label {ended[0]!r}")
        kind, words = "char *const ", list(map(string, labels))
    return f"static const {kind}NAME_classes[NAME_N_CLASSES] = {{{', '.join(words)}}};\n"


def string(text: str) -> str:
    """A string of C in UTF-8; octal escapes, unlike hexadecimal ones, end after three digits."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return '"' + "".join(plain) + '"'


class Values(NamedTuple):
    """Numbers of one row: the C expression of the number at an index, and the number of them."""

    at: Callable[[str], str]
    n: str


class OfC:
    """Functions of a row's scores for `slimsvm.deploy.decisions`, which write C: `lines` compute what they return."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.lines: list[str] = []

    def column(self, scores: Values) -> Values:
        """The only number."""
        return Values(lambda _: scores.at("0"), "1")

    def above(self, scores: Values) -> Values:
        """1 where a score is positive, else 0."""
        return Values(lambda c: f"{scores.at(c)} > 0.0f", scores.n)

    def at_least(self, scores: Values, least: float) -> Values:
        """1 where a score is no less, else 0."""
        return Values(lambda c: f"{scores.at(c)} >= {number(least, self.dtype)}", scores.n)

    def less(self, scores: Values, thresholds: Array) -> Values:
        """The score minus each threshold."""
        return Values(lambda c: f"({scores.at('0')} - NAME_thresholds[{c}])", "NAME_N_CLASSES - 1")

    def running_sums(self, values: Values, n_classes: int) -> Values:
        """Sums of no number, the first, the first two, …"""
        self.lines += [
            "float sums[NAME_N_CLASSES] = {0.0f};",
            f"for (int c = 1; c < NAME_N_CLASSES; ++c) sums[c] = sums[c - 1] + {values.at('c - 1')};",
        ]
        return Values(lambda c: f"sums[{c}]", "NAME_N_CLASSES")

    def votes(self, is_first: Values, n_classes: int) -> Values:
        """The number of pairs that each class wins."""
        self.lines += [
            "int votes[NAME_N_CLASSES] = {0}, pair = 0;",
            "for (int a = 0; a < NAME_N_CLASSES; ++a)",
            f"    for (int b = a + 1; b < NAME_N_CLASSES; ++b, ++pair) ++votes[{is_first.at('pair')} ? a : b];",
        ]
        return Values(lambda c: f"votes[{c}]", "NAME_N_CLASSES")

    def greatest(self, values: Values) -> Values:
        """The index of the greatest number, the first of equals."""
        self.lines += [
            "int best = 0;",
            f"for (int c = 1; c < {values.n}; ++c) if ({values.at('c')} > {values.at('best')}) best = c;",
        ]
        return Values(lambda _: "best", "1")
