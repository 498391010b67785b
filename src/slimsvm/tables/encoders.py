"""Columns of a table as features: numbers by rank, few levels one by one, many by their targets, times by cycles.

An encoder is plain data: names, levels and arrays. `features` of a column are float64 of shape (n_rows, width);
`TableEncoding` puts those of all columns side by side. Ranks bend what is straight: of linear models alone each number
is a feature in its own unit, too, and these straight ones come last, after the features of all columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from slimsvm.tables.containers import Column, Table, text_of
from slimsvm.tables.splines import normal_deviates
from slimsvm.tables.texts import ISO, ORDERS, STYLES, as_numbers, as_times, order_of, style_of

Array = np.ndarray

# Values of a column of numbers that are kept.
MOST_VALUES = 256
# Levels up to which each has a feature of its own; more share features of their targets.
MOST_LEVELS = 30
# A level of fewer rows is as one that was never seen.
FEWEST_ROWS = 2
# A straight number is its place in the range of the training rows, from 0 to 1. It goes on beyond by so many ranges.
BEYOND = 2.0
PLACES = np.array([-BEYOND, 1.0 + BEYOND])
# Parts of the rows, each of which has the features of many levels from the targets of the others.
PARTS = 5
DAY, DAYS_OF_YEAR = 86_400e6, 365.2425  # microseconds; days
# Texts of truth values. 1 and 0 are among them only where training has true and false.
TRUTH_VALUES = {"true": ("True", "true", "TRUE", "1"), "false": ("False", "false", "FALSE", "0")}
UNNAMED = re.compile(r"(Unnamed: \d+)?")


@dataclass(frozen=True)
class Encoder:
    """What a column becomes."""

    name: str
    kind: ClassVar[str] = ""

    @property
    def width(self) -> int:
        """Number of features that all models see."""
        return 0

    @property
    def n_straight(self) -> int:
        """Number of further features, that linear models alone see."""
        return 0

    @property
    def n_flags(self) -> int:
        """How many of the features that all models see, the last ones, are 0 or 1."""
        return 0

    def features(self, column: Column) -> Array:
        """Features of new rows, of shape (n_rows, width + n_straight)."""
        return np.zeros((len(column.values), 0))

    def told(self) -> str:
        """What the column was taken for, in words."""
        return ""


@dataclass(frozen=True)
class LeftOut(Encoder):
    """A column that says nothing."""

    reason: str = ""
    kind: ClassVar[str] = "left out"

    def told(self) -> str:
        """Why it was left out."""
        return f"left out: {self.reason}"


@dataclass(frozen=True)
class Numbers(Encoder):
    """A number by its rank among the training rows; a missing one is in the middle, and is flagged. It may be straight,
    too.
    """

    style: str
    flags_missing: bool
    values: Array
    deviates: Array
    straight: bool = False
    kind: ClassVar[str] = "numbers"

    @classmethod
    def of(cls, column: Column, style: str, weights: Array, most: int, straight: bool) -> Encoder:
        """Learn the ranks; the number is straight, too, if it may be and has a range."""
        numbers = as_numbers(column, style)
        present = ~np.isnan(numbers)
        if not present.any():
            return LeftOut(column.name, "no row has a value")
        values, deviates = ranks_of(numbers[present], weights[present], most)
        if len(values) == 1 and present.all():
            return LeftOut(column.name, "all rows have the same value")
        if UNNAMED.fullmatch(column.name) and len(values) == min(len(numbers), most) and _are_row_numbers(numbers):
            return LeftOut(column.name, "an index: it has no name, and a whole number of its own for each row")
        encoder = cls(column.name, style, not bool(present.all()), values, deviates, straight)
        return encoder if encoder.has_range else replace(encoder, straight=False)

    @property
    def line(self) -> tuple[Array, Array]:
        """Two numbers and their places, between which straight ones are interpolated; beyond them they are as these."""
        with np.errstate(over="ignore", invalid="ignore"):
            reach = BEYOND * (self.values[-1] - self.values[0])
            return np.array([self.values[0] - reach, self.values[-1] + reach]), PLACES

    @property
    def has_range(self) -> bool:
        """Whether numbers of training rows are apart, and not too far to be on a line."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            numbers, places = map(np.diff, self.line)
            slope = float((places / numbers)[0])
        return 0 < slope < np.inf

    @property
    def middle(self) -> float:
        """The number that a missing one is taken for: its rank is in the middle."""
        return float(np.interp(0.0, self.deviates, self.values))

    @property
    def width(self) -> int:
        """The rank, and whether the number is missing."""
        return 1 + self.flags_missing

    @property
    def n_straight(self) -> int:
        """The number itself, if it is straight, too."""
        return int(self.straight)

    @property
    def n_flags(self) -> int:
        """Whether the number is missing."""
        return int(self.flags_missing)

    def features(self, column: Column) -> Array:
        """Ranks interpolated between those of training rows, beyond them the last one's; then what else there is."""
        numbers = as_numbers(column, self.style)
        is_missing = np.isnan(numbers)
        numbers = np.where(is_missing, self.middle, numbers)
        found = [np.where(is_missing, 0.0, np.interp(numbers, self.values, self.deviates))]
        found += [is_missing] * self.flags_missing
        found += [np.interp(numbers, *self.line)] * self.straight
        return np.column_stack(found)

    def told(self) -> str:
        """Numbers, and whether some are missing."""
        read = "times of day" if self.style == "clock" else "numbers"
        return read + (", some missing" if self.flags_missing else "")


def ranks_of(numbers: Array, weights: Array, most: int) -> tuple[Array, Array]:
    """Values and their deviates, which float32 holds, as files do."""
    values, deviates = normal_deviates(numbers, weights, most)
    return values, deviates.astype(np.float32).astype(np.float64)


def _are_row_numbers(numbers: Array) -> bool:
    return bool(np.array_equal(numbers, np.round(numbers)) and len(np.unique(numbers)) == len(numbers))


@dataclass(frozen=True)
class Levels(Encoder):
    """A flag for each level, None being a missing value; others have none."""

    levels: tuple[str | None, ...]
    kind: ClassVar[str] = "levels"

    @property
    def width(self) -> int:
        """A feature for each level."""
        return len(self.levels)

    n_flags = width

    def features(self, column: Column) -> Array:
        """The flags."""
        place = places_of(self.levels)
        flags = np.zeros((len(column.values), len(self.levels)))
        for row, level in enumerate(level_texts(column)):
            if (j := place.get(level)) is not None:
                flags[row, j] = 1.0
        return flags

    def told(self) -> str:
        """How many levels there are."""
        n, with_missing = len(self.levels), None in self.levels
        n -= with_missing
        return f"category of {n} level{'s' * (n != 1)}" + (", some missing" if with_missing else "")


@dataclass(frozen=True)
class ManyLevels(Encoder):
    """The mean target of a level, drawn to that of all rows the more, the fewer rows it has; others have that one."""

    levels: tuple[str | None, ...]
    means: Array
    prior: Array
    spread: Array
    kind: ClassVar[str] = "many levels"

    @classmethod
    def of(
        cls, column: Column, levels: tuple[str | None, ...], targets: Array, weights: Array
    ) -> tuple[Encoder, Array]:
        """Learn the means; features of the training rows, each from the targets of other rows."""
        codes = _codes(column, levels)
        found, part = np.empty(targets.shape), np.arange(len(codes)) % PARTS
        for k in range(PARTS):
            others = part != k
            means, prior = level_means(codes[others], targets[others], weights[others], len(levels))
            found[~others] = np.vstack([means, prior])[codes[~others]]
        means, prior = level_means(codes, targets, weights, len(levels))
        spread = np.sqrt(np.average((found - prior) ** 2, axis=0, weights=weights))
        if not (spread > 0).all():
            return LeftOut(column.name, "its levels say nothing of the target"), np.zeros((len(codes), 0))
        return cls(column.name, levels, means, prior, spread), (found - prior) / spread

    @property
    def width(self) -> int:
        """A feature for each target."""
        return len(self.prior)

    @property
    def features_of_levels(self) -> Array:
        """The features of each level, and in the last row those of others: means above that of all rows, in units of
        their spread.
        """
        return (np.vstack([self.means, self.prior]) - self.prior) / self.spread

    def features(self, column: Column) -> Array:
        """The features of the rows' levels."""
        return self.features_of_levels[_codes(column, self.levels)]

    def told(self) -> str:
        """How many levels there are."""
        return f"category of {len(self.levels)} levels that occur more than once, by their targets"


def level_means(codes: Array, targets: Array, weights: Array, n_levels: int) -> tuple[Array, Array]:
    """Means of the levels (n_levels, m), drawn to that of all rows (m,) by empirical Bayes.

    A level's mean of n rows counts n τ² / (n τ² + σ²), where σ² is the variance of a target within levels and τ² the
    one of the levels' means.
    """
    prior = np.average(targets, axis=0, weights=weights)
    known = codes < n_levels
    totals = np.bincount(codes[known], weights[known], n_levels)[:, None]
    sums = np.stack([np.bincount(codes[known], weights[known] * t[known], n_levels) for t in targets.T], axis=1)
    squares = np.stack([np.bincount(codes[known], weights[known] * t[known] ** 2, n_levels) for t in targets.T], axis=1)
    own = np.divide(sums, totals, out=np.tile(prior, (n_levels, 1)), where=totals > 0)
    total, n_seen = totals.sum(), max((totals > 0).sum(), 1)
    within = np.maximum(squares - totals * own**2, 0.0).sum(axis=0) / max(total - n_seen, 1.0)
    between = np.maximum(
        (totals * (own - prior) ** 2).sum(axis=0) / max(total, 1.0) - within * n_seen / max(total, 1.0), 0.0
    )
    drawn = totals * between + within
    share = np.divide(totals * between, drawn, out=np.zeros_like(own), where=drawn > 0)
    return prior + share * (own - prior), prior


@dataclass(frozen=True)
class Times(Encoder):
    """The rank of a time, and where it stands in the year, the week and the day, if the times span one."""

    flags_missing: bool
    cycles: tuple[str, ...]
    values: Array
    deviates: Array
    order: str = ISO
    kind: ClassVar[str] = "times"

    @classmethod
    def of(cls, column: Column, order: str, weights: Array, most: int) -> Encoder:
        """Learn the ranks, and which cycles there are."""
        times = as_times(column, order)
        present = ~np.isnat(times)
        if not present.any():
            return LeftOut(column.name, "no row has a value")
        days = times[present].astype(np.int64) / DAY
        values, deviates = ranks_of(days, weights[present], most)
        if len(values) == 1 and present.all():
            return LeftOut(column.name, "all rows have the same value")
        span = values[-1] - values[0]
        at_midnight = bool((days == np.floor(days)).all())
        has = {"year": span > 366, "week": span > 7, "day": span > 1 and not at_midnight}
        return cls(column.name, not bool(present.all()), tuple(c for c in has if has[c]), values, deviates, order)

    @property
    def width(self) -> int:
        """The rank, sine and cosine of each cycle, and whether the time is missing."""
        return 1 + 2 * len(self.cycles) + self.flags_missing

    @property
    def n_flags(self) -> int:
        """Whether the time is missing."""
        return int(self.flags_missing)

    def features(self, column: Column) -> Array:
        """Rank and cycles; a missing time is in the middle of all."""
        times = as_times(column, self.order)
        is_missing = np.isnat(times)
        times = np.where(is_missing, np.datetime64(0, "us"), times)
        days = times.astype(np.int64) / DAY
        turns = {
            "year": (times - times.astype("datetime64[Y]")).astype(np.int64) / DAY / DAYS_OF_YEAR,
            "week": days / 7.0,
            "day": days,
        }
        found = [np.interp(days, self.values, self.deviates)]
        found += [wave(2.0 * np.pi * turns[cycle]) for cycle in self.cycles for wave in (np.sin, np.cos)]
        features = np.where(is_missing[:, None], 0.0, np.column_stack(found))
        return np.column_stack([features, is_missing]) if self.flags_missing else features

    def told(self) -> str:
        """Times, with their cycles."""
        cycles = f" with the {', the '.join(self.cycles)}" if self.cycles else ""
        written = "" if self.order == ISO else f", written {self.order}"
        return "times" + cycles + written + (", some missing" if self.flags_missing else "")


KINDS: dict[str, type[Encoder]] = {cls.kind: cls for cls in (LeftOut, Numbers, Levels, ManyLevels, Times)}


def encoder_of(column: Column, targets: Array, weights: Array, most: int, straight: bool) -> tuple[Encoder, Array]:
    """The encoder of a column, with so many values of numbers and times, and the features of the training rows; numbers
    may be straight, too.
    """
    style = style_of(column) if column.kind == "texts" else "point" if column.kind == "numbers" else None
    order = ISO if column.kind == "times" else order_of(column) if column.kind == "texts" else None
    encoder: Encoder
    if style is not None:
        encoder = Numbers.of(column, style, weights, most, straight)
    elif order is not None:
        encoder = Times.of(column, order, weights, most)
    else:
        levels, different = levels_of(column), set(column.values)
        if different == {None}:
            encoder = LeftOut(column.name, "no row has a value")
        elif len(different) == 1:
            encoder = LeftOut(column.name, "all rows have the same value")
        elif not levels:
            encoder = LeftOut(column.name, "no text occurs more than once")
        elif len(levels) > MOST_LEVELS:
            return ManyLevels.of(column, levels, targets, weights)
        else:
            encoder = Levels(column.name, levels)
    return encoder, encoder.features(column)


def levels_of(column: Column) -> tuple[str | None, ...]:
    """Levels of a column of texts in order, a missing value last; those of a single row are left out."""
    texts = [text for text in column.values if text is not None]
    levels, counts = np.unique(np.array(texts, dtype=str), return_counts=True)
    kept: list[str | None] = [str(level) for level in levels[counts >= FEWEST_ROWS]]
    return (*kept, None) if len(column.values) - len(texts) >= FEWEST_ROWS else tuple(kept)


def places_of(levels: tuple[str | None, ...]) -> dict[str | None, int]:
    """Places of levels by their texts; of truth values, which containers and files write in several ways, by any."""
    place = {level: j for j, level in enumerate(levels)}
    if all(level is None or level.lower() in TRUTH_VALUES for level in levels):
        for j, level in enumerate(levels):
            for text in TRUTH_VALUES[level.lower()] if level is not None else ():
                place.setdefault(text, j)
    return place


def level_texts(column: Column) -> Any:
    """The levels of new rows, which may be numbers or times now."""
    if column.has_texts:
        return column.values
    values = column.values.astype(object) if column.kind == "times" else column.values
    return [
        None if gone else text_of(value, column.name) for value, gone in zip(values, column.is_missing, strict=True)
    ]


def _codes(column: Column, levels: tuple[str | None, ...]) -> Array:
    """Places of the rows' levels; the number of levels for one that is not among them."""
    place = places_of(levels)
    return np.array([place.get(text, len(levels)) for text in level_texts(column)], np.int64)


# -- files -------------------------------------------------------------------------------------------------------------


def facts_of(encoder: Encoder) -> dict[str, Any]:
    """The parts of an encoder; arrays have float32 where that holds their numbers."""
    facts: dict[str, Any] = {"kind": encoder.kind}
    for field in fields(encoder):
        value = getattr(encoder, field.name)
        if isinstance(value, np.ndarray):
            with np.errstate(over="ignore"):
                short = value.astype(np.float32)
            value = short if np.array_equal(short, value) else value
        facts[field.name] = list(value) if isinstance(value, tuple) else value
    return facts


def pack_encoder(encoder: Encoder, numbers: dict[str, list[Array]]) -> dict[str, Any]:
    """An encoder as JSON; its arrays, whose types and shapes this has, join those of all columns by their type."""
    facts = facts_of(encoder)
    for name, value in facts.items():
        if isinstance(value, np.ndarray):
            numbers.setdefault(value.dtype.name, []).append(value.ravel())
            facts[name] = {value.dtype.name: list(value.shape)}
    return facts


def unpack_encoder(facts: Mapping[str, Any], numbers: dict[str, Array]) -> Encoder:
    """The encoder that `pack_encoder` wrote, which takes its numbers from the first that are left; an error if it
    contradicts itself. Files from before a part was added have its default.
    """
    cls = KINDS[facts["kind"]]
    parts: dict[str, Any] = {}
    for field in fields(cls):
        if field.name not in facts and field.default is not MISSING:
            continue
        value = facts[field.name]
        if isinstance(value, dict):
            ((dtype, shape),) = value.items()
            n = int(np.prod(shape))
            value, numbers[dtype] = numbers[dtype][:n].reshape(shape).astype(np.float64), numbers[dtype][n:]
        parts[field.name] = tuple(value) if isinstance(value, list) else value
    encoder = cls(**parts)
    check_encoder(encoder)
    return encoder


def check_encoder(encoder: Encoder) -> None:
    """A ValueError if a file's encoder contradicts itself."""
    is_right = isinstance(encoder.name, str)
    if isinstance(encoder, Numbers | Times):
        values, deviates = encoder.values, encoder.deviates
        is_right &= values.ndim == 1 and values.shape == deviates.shape and len(values) > 0
        is_right &= bool((np.diff(values) > 0).all() and np.isfinite(deviates).all())
    if isinstance(encoder, Numbers):
        is_right &= encoder.style in STYLES
        is_right &= encoder.straight is False or (encoder.straight is True and encoder.has_range)
    if isinstance(encoder, Times):
        is_right &= encoder.order in (ISO, *ORDERS)
    if isinstance(encoder, Levels | ManyLevels):
        is_right &= all(level is None or isinstance(level, str) for level in encoder.levels)
    if isinstance(encoder, ManyLevels):
        parts = encoder.means, encoder.prior[None], encoder.spread[None]
        is_right &= len(encoder.means) == len(encoder.levels) and all(part.ndim == 2 for part in parts)
    if not is_right:
        raise ValueError(f"column {encoder.name!r} has parts that do not fit together")


# -- all columns of a table --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableEncoding:
    """Encoders of the columns that were there in training, in their order."""

    encoders: tuple[Encoder, ...]
    has_names: bool  # whether the training table had names: then columns are found by name, else by their order

    @classmethod
    def learn(
        cls, table: Table, targets: Array, weights: Array, most_values: int = MOST_VALUES, straight: bool = False
    ) -> tuple[TableEncoding, Array]:
        """The encoding of a table, and the features of its rows.

        For columns of many levels the features of a row come from the targets (n_rows, m) of other rows. Of a column of
        numbers, or of times, so many values are kept. Numbers may be straight, too.
        """
        found = [encoder_of(column, targets, weights, most_values, straight) for column in table.columns]
        encoding = cls(tuple(encoder for encoder, _ in found), table.has_names)
        return encoding, _joined(found, table.n_rows)

    def without_straight(self) -> TableEncoding:
        """The encoding of tables that no linear model sees."""
        encoders = (replace(e, straight=False) if isinstance(e, Numbers) else e for e in self.encoders)
        return replace(self, encoders=tuple(encoders))

    @property
    def n_features(self) -> int:
        """How many features there are: those that all models see, and straight ones."""
        return len(self.are_flags) + sum(encoder.n_straight for encoder in self.encoders)

    @property
    def columns(self) -> Array:
        """The number of the column that each feature comes from."""
        seen_by_all, straight = ([e.width for e in self.encoders], [e.n_straight for e in self.encoders])
        places = np.arange(len(self.encoders))
        return np.concatenate([np.repeat(places, seen_by_all), np.repeat(places, straight)])

    @property
    def are_flags(self) -> Array:
        """Which of the features that all models see are 0 or 1."""
        flags = np.concatenate([np.arange(e.width) >= e.width - e.n_flags for e in self.encoders])
        return flags if len(flags) else np.array([False])

    def features(self, table: Table) -> Array:
        """Features of new rows, float32 of shape (n_rows, n_features), of the columns that are `needed` at least; a
        ValueError names a column of times or numbers that has something else.
        """
        if table.has_names and self.has_names:
            by_name = {column.name: column for column in table.columns}
            found = [(encoder, by_name[encoder.name]) for encoder in self.encoders if encoder.width]
        else:
            found = [pair for pair in zip(self.encoders, table.columns, strict=True) if pair[0].width]
        return _joined([(encoder, encoder.features(column)) for encoder, column in found], table.n_rows)

    @property
    def needed(self) -> list[str] | None:
        """Names of the columns that features come from; None if there were no names in training."""
        return [encoder.name for encoder in self.encoders if encoder.width] if self.has_names else None

    def told(self) -> list[str]:
        """A line for each column: what it was taken for."""
        return [f"{encoder.name or '(no name)'}: {encoder.told()}" for encoder in self.encoders]

    # -- files --------------------------------------------------------------------------------------------------------

    def pack(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """The encoding as JSON; the numbers of all columns join ``arrays``, as one array of each type."""
        numbers: dict[str, list[Array]] = {}
        columns = [pack_encoder(encoder, numbers) for encoder in self.encoders]
        arrays |= {f"columns_{dtype}": np.concatenate(parts) for dtype, parts in numbers.items()}
        return {"has_names": self.has_names, "columns": columns}

    @classmethod
    def unpack(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> TableEncoding:
        """The encoding that `pack` wrote."""
        start = "columns_"
        numbers = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        columns = [unpack_encoder(part, numbers) for part in facts["columns"]]
        if any(map(len, numbers.values())):
            raise ValueError("columns have more numbers than their encoders")
        return cls(tuple(columns), bool(facts["has_names"]))


def _joined(found: list[tuple[Encoder, Array]], n_rows: int) -> Array:
    """Features side by side, the straight ones last; one that is 0 where there are none."""
    parts = [features[:, : encoder.width] for encoder, features in found]
    parts += [features[:, encoder.width :] for encoder, features in found if encoder.n_straight]
    features = np.concatenate([np.zeros((n_rows, 0)), *parts], axis=1).astype(np.float32)
    return features if features.shape[1] else np.zeros((n_rows, 1), np.float32)
