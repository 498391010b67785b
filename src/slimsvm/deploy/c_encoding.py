"""What the steps of a pipeline do to a row's columns, as C: ``NAME_encode`` makes what ``NAME_scores`` takes."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from slimsvm.deploy.c_text import array, named, number, string
from slimsvm.deploy.steps import (
    Encoding,
    Filled,
    Flagged,
    InTurn,
    Levelled,
    Ranked,
    Replaced,
    Scaled,
    SideBySide,
    Step,
    Turned,
)

Array = np.ndarray

CODE = """
#define NAME_N_COLUMNS {n_columns}

/* The places of levels in their columns: NAME_code(column, text), text NULL where the value is missing, is the number
 * that NAME_encode takes; -1 for a text that was not there in training. */
static const char *const NAME_levels[] = {{{levels}}};
static const int NAME_first_level[NAME_N_COLUMNS + 1] = {{{starts}}};

static inline double NAME_code(int column, const char *text)
{{
    int k;
    for (k = NAME_first_level[column]; k < NAME_first_level[column + 1]; ++k) {{
        const char *a = NAME_levels[k], *b = text;
        if (!a || !b) {{
            if (a == b) break;
            continue;
        }}
        while (*a && *a == *b) ++a, ++b;
        if (*a == *b) break;
    }}
    return k < NAME_first_level[column + 1] ? (double)(k - NAME_first_level[column]) : -1.0;
}}
"""
RANK = """
/* Between the ranks of training values, and beyond them the last one's. */
static inline {real} NAME_rank(double value, int n, const double *values, const double *deviates)
{{
    int lo = 0, hi = n - 1;
    if (value <= values[0]) return ({real})deviates[0];
    if (value >= values[hi]) return ({real})deviates[hi];
    while (hi - lo > 1) {{
        const int middle = (lo + hi) / 2;
        if (values[middle] <= value) lo = middle;
        else hi = middle;
    }}
    return ({real})(deviates[lo] + (value - values[lo]) * (deviates[hi] - deviates[lo]) / (values[hi] - values[lo]));
}}
"""
FIND = """
/* The place of a value among levels, `missing` where it is NaN; n where it is none of them. */
static inline int NAME_find(double value, int n, const double *levels, int missing)
{
    int k;
    if (value != value) return missing;
    for (k = 0; k < n; ++k)
        if (levels[k] == value) break;
    return k;
}
"""
ENCODE = """
/* What NAME_scores takes, of the columns in the order of training: numbers, NaN where missing, and NAME_code of texts.
 * Returns 0; or 1 where the model refuses a value: a level that was not there in training, or a number that is missing.
 */
static inline int NAME_encode(const double *values, {real} *x)
{{
    static const int from[NAME_N_FEATURES] = {{{outputs}}};
    double a[{n_numbers}];
    int f, g, k, refused = 0;
    (void)f, (void)g, (void)k;
{body}    for (f = 0; f < NAME_N_FEATURES; ++f) {{
        const double found = a[from[f]];
        if (!(found - found == 0.0)) refused = 1;
        x[f] = ({real})found;
    }}
    return refused;
}}
"""


class Place(NamedTuple):
    """A column in C: its place in ``a``, and the number of the texts' column whose codes it holds, None of numbers."""

    at: int
    texts: int | None


class Writer:
    """Lines that take steps one after the other; every column is a number of an array ``a``."""

    def __init__(self, encoding: Encoding) -> None:
        self.constants, self.lines, self.n_numbers, self.n_parts = "", list[str](), encoding.n_columns, 0
        self.texts: list[list[str | None]] = [[None, *sorted(texts)] if texts else [] for texts in encoding.texts()]
        columns = [Place(j, j if self.texts[j] else None) for j in range(encoding.n_columns)]
        self.lines.append(f"for (f = 0; f < {encoding.n_columns}; ++f) a[f] = values[f];")
        self.outputs = self.take(InTurn(tuple(step for _, _, step in encoding.steps)), columns)

    def take(self, step: Step, columns: list[Place]) -> list[Place]:
        """The columns that a step makes."""
        if isinstance(step, InTurn):
            for each in step.steps:
                columns = self.take(each, columns)
            return columns
        if isinstance(step, SideBySide):
            pairs = zip(step.columns, step.steps, strict=True)
            return [made for some, each in pairs for made in self.take(each, [columns[j] for j in some])]
        writers: dict[type[Step], Any] = {
            Scaled: self._scaled, Ranked: self._ranked, Turned: self._turned, Filled: self._filled,
            Flagged: self._flagged, Replaced: self._replaced,
        }  # fmt: skip
        made: list[Place] = writers[type(step)](step, columns)
        return made

    def _room(self, n: int) -> int:
        """The place of the first of n new numbers."""
        self.n_numbers += n
        return self.n_numbers - n

    def _constant(self, name: str, values: Array, dtype: str) -> str:
        """The name of a constant array."""
        self.n_parts += 1
        shape = "".join(f"[{n}]" for n in values.shape)
        self.constants += array(f"{name}{self.n_parts}", values, shape, dtype)
        return f"NAME_{name}{self.n_parts}"

    def _in_a_row(self, columns: list[Place]) -> int:
        """The place of the first of the columns, beside each other."""
        places = [self._number(column) for column in columns]
        if places == list(range(places[0], places[0] + len(places))):
            return places[0]
        at = self._room(len(places))
        self.lines += [f"a[{at + f}] = a[{place}];" for f, place in enumerate(places)]
        return at

    @staticmethod
    def _number(column: Place) -> int:
        if column.texts is not None:
            raise ValueError("a step that takes numbers was given a column of texts, which a C header does not convert")
        return column.at

    def _scaled(self, step: Scaled, columns: list[Place]) -> list[Place]:
        start, n = self._in_a_row(columns), len(columns)
        at = self._room(n)
        offset, factor = (self._constant("scaling", part, "float64") for part in (step.offset, step.factor))
        self.lines.append(f"for (f = 0; f < {n}; ++f) a[{at} + f] = (a[{start} + f] - {offset}[f]) * {factor}[f];")
        for bound, sign in ((step.low, "<"), (step.high, ">")):
            if bound is not None:
                largest = np.finfo(np.float64).max
                bounds = self._constant("bounds", np.clip(bound, -largest, largest), "float64")
                self.lines.append(
                    f"for (f = 0; f < {n}; ++f) if (a[{at} + f] {sign} {bounds}[f]) a[{at} + f] = {bounds}[f];"
                )
        return [Place(at + f, None) for f in range(n)]

    def _ranked(self, step: Ranked, columns: list[Place]) -> list[Place]:
        at = self._room(len(columns))
        for f, (column, values, deviates) in enumerate(zip(columns, step.values, step.deviates, strict=True)):
            known = (self._constant("ranks", part.astype(np.float64), "float64") for part in (values, deviates))
            value = f"a[{self._number(column)}]"
            self.lines.append(
                f"a[{at + f}] = {value} - {value} == 0.0 ? NAME_rank({value}, {len(values)}, {', '.join(known)}) "
                f": {value} - {value};"
            )
        return [Place(at + f, None) for f in range(len(columns))]

    def _turned(self, step: Turned, columns: list[Place]) -> list[Place]:
        start, n, n_axes = self._in_a_row(columns), len(columns), len(step.axes)
        at = self._room(n_axes)
        mean, axes = (self._constant("axes", part, "float64") for part in (step.mean, step.axes))
        self.lines.append(
            f"for (g = 0; g < {n_axes}; ++g) for (f = 0, a[{at} + g] = 0.0; f < {n}; ++f) "
            f"a[{at} + g] += (a[{start} + f] - {mean}[f]) * {axes}[g][f];"
        )
        return [Place(at + g, None) for g in range(n_axes)]

    def _filled(self, step: Filled, columns: list[Place]) -> list[Place]:
        made, n_kept = list[Place](), sum(value is not None for value in step.values)
        gaps = [self._gap(column, step.missing) for column in columns]
        at = self._room(n_kept + len(step.flagged))
        for column, gap, value in zip(columns, gaps, step.values, strict=True):
            if value is None:
                continue
            plain = self._code(column, value) if isinstance(value, str) else number(float(value), "float64")
            place = at + len(made)
            self.lines.append(f"a[{place}] = {gap} ? {plain} : a[{column.at}];")
            made.append(Place(place, column.texts))
        for f, j in enumerate(step.flagged):
            self.lines.append(f"a[{at + n_kept + f}] = {gaps[j]} ? 1.0 : 0.0;")
        return made + [Place(at + n_kept + f, None) for f in range(len(step.flagged))]

    def _code(self, column: Place, text: str | None) -> str:
        """The number that stands for a text of a column."""
        if column.texts is None:
            raise ValueError(f"a column of a C header holds numbers or texts, found numbers and the text {text!r}")
        return f"{self.texts[column.texts].index(text)}.0"

    def _gap(self, column: Place, missing: Any) -> str:
        """An expression that is true where a column's value is missing."""
        value = f"a[{column.at}]"
        tests = [f"{value} != {value}"]
        if column.texts is not None:
            tests = [f"{value} == {self._code(column, None)}"]
            tests += [f"{value} == {self._code(column, missing)}"] * isinstance(missing, str)
        elif missing is not None and not isinstance(missing, str):
            tests.append(f"{value} == {number(float(missing), 'float64')}")
        return f"({' || '.join(tests)})"

    def _level(self, step: Levelled, j: int, column: Place) -> Array:
        """Lines that set k; for each value of k the place of the level, that of other levels being the last."""
        levels = step.levels[j]
        if column.texts is not None:
            texts = self.texts[column.texts]
            places = {level: k for k, level in enumerate(levels)}
            value = f"a[{column.at}]"
            self.lines.append(f"k = {value} >= 0.0 && {value} < {len(texts)}.0 ? (int){value} : {len(texts)};")
            found = np.array([*(places.get(text, len(levels)) for text in texts), len(levels)])
        else:
            if any(isinstance(level, int) and int(float(level)) != level for level in levels):
                raise ValueError("a C header holds numeric levels in float64, found a whole number beyond 2^53")
            known = np.array([0.0 if level is None else float(level) for level in levels])
            # A missing level is found by itself alone; where its number would be there is one that equals nothing else.
            if None in levels:
                known[levels.index(None)] = np.finfo(np.float64).max
            missing = levels.index(None) if None in levels else len(levels)
            name = self._constant("level_numbers", known, "float64")
            self.lines.append(f"k = NAME_find(a[{column.at}], {len(levels)}, {name}, {missing});")
            found = np.arange(len(levels) + 1)
        if step.refuses:
            others = self._constant("refuses", (found == len(levels)).astype(np.int64), "int16")
            self.lines.append(f"refused |= {others}[k];")
        return found

    def _flagged(self, step: Flagged, columns: list[Place]) -> list[Place]:
        at, made = self._room(sum(step.widths)), list[Place]()
        for j, (column, width) in enumerate(zip(columns, step.widths, strict=True)):
            places = self._constant("places", step.places[j][self._level(step, j, column)], "int32")
            start = at + len(made)
            self.lines.append(f"for (f = 0; f < {width}; ++f) a[{start} + f] = {places}[k] == f ? 1.0 : 0.0;")
            made += [Place(start + f, None) for f in range(width)]
        return made

    def _replaced(self, step: Replaced, columns: list[Place]) -> list[Place]:
        made: list[Place] = []
        for j, column in enumerate(columns):
            numbers = step.numbers[j].copy()
            if step.refuses:  # they count nothing, as NAME_encode says that it refuses
                numbers[-1] = 0.0
            if np.isnan(numbers).any():
                raise ValueError("a C header needs a number for each level, found NaN for one: give "
                                 "encoded_missing_value")  # fmt: skip
            width, start = numbers.shape[1], self._room(numbers.shape[1])
            name = self._constant("numbers", numbers[self._level(step, j, column)], "float64")
            self.lines.append(f"for (f = 0; f < {width}; ++f) a[{start} + f] = {name}[k][f];")
            made += [Place(start + f, None) for f in range(width)]
        return made


def codes_in_c(levels: list[list[str | None]], name: str) -> str:
    """``NAME_code``, for the levels of each column."""
    words = ["(const char *)0" if level is None else string(level) for column in levels for level in column]
    starts = np.cumsum([0, *map(len, levels)])
    return named(CODE, name).format(
        n_columns=len(levels), levels=", ".join(words) or '""', starts=", ".join(map(str, starts))
    )


def encoding_in_c(encoding: Encoding, name: str, real: str) -> str:
    """The constants and functions that encode a row, whose features are of type ``real``; ValueError where C cannot."""
    written = Writer(encoding)
    body = "".join(f"    {line}\n" for line in written.lines)
    outputs = ", ".join(str(Writer._number(column)) for column in written.outputs)
    functions = RANK.format(real="double") + FIND
    functions += ENCODE.format(real=real, body=body, outputs=outputs, n_numbers=written.n_numbers)
    text = named(written.constants + functions, name)
    return "\n" + codes_in_c(written.texts, name) + re.sub(r" +\n", "\n", text)
