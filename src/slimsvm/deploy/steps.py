"""What the steps of a pipeline make of a row's columns before a model scores it, as data: ranks, levels, gaps, axes.

A step takes named columns and returns named columns; it is arrays and texts, and nothing of scikit-learn is needed to
take it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from slimsvm.tables.containers import frame_of, is_missing, values_of_any_series

Array = np.ndarray
# A column with its name; values are numbers, or objects where some are texts or None.
Columns = list[tuple[str, Array]]


@dataclass(frozen=True, eq=False)
class Step(ABC):
    """A step of a pipeline; it holds arrays, numbers, texts and tuples of these, or of steps."""

    kind: ClassVar[str] = ""

    @abstractmethod
    def n_outputs(self, n_inputs: int) -> int:
        """Count the columns made of ``n_inputs``; raise ValueError if the parts do not go together."""

    @abstractmethod
    def take(self, columns: Columns) -> Columns:
        """Make the columns."""

    def needed(self, n_inputs: int) -> set[int]:
        """Return the numbers of the columns that the step looks at."""
        return set(range(n_inputs))


def _check(is_right: bool, kind: str, n_inputs: int) -> None:
    if not is_right:
        raise ValueError(f"a step ({kind}) has parts that do not go together, or with {n_inputs} columns")


@dataclass(frozen=True, eq=False)
class Scaled(Step):
    """Offset and factor of each column; low and high where scalers clip."""

    offset: Array
    factor: Array
    low: Array | None
    high: Array | None
    kind: ClassVar[str] = "scaling"

    def n_outputs(self, n_inputs: int) -> int:
        """Count one for each column."""
        parts = [self.offset, self.factor, *(() if self.low is None else (self.low, self.high))]
        _check(all(np.shape(part) == (n_inputs,) for part in parts), self.kind, n_inputs)
        return n_inputs

    def take(self, columns: Columns) -> Columns:
        """Scale the columns."""
        found = (matrix_of(columns) - self.offset) * self.factor
        found = found if self.low is None else np.clip(found, self.low, self.high)
        return list(zip(names_of(columns), found.T, strict=True))


@dataclass(frozen=True, eq=False)
class Ranked(Step):
    """Numbers interpolated between a column's values and their deviates."""

    values: tuple[Array, ...]
    deviates: tuple[Array, ...]
    kind: ClassVar[str] = "ranks"

    def n_outputs(self, n_inputs: int) -> int:
        """Count one for each column."""
        _check(len(self.values) == len(self.deviates) == n_inputs, self.kind, n_inputs)
        for values, deviates in zip(self.values, self.deviates, strict=True):
            is_right = values.ndim == 1 and values.shape == deviates.shape and len(values) > 0
            _check(is_right and bool((np.diff(values) > 0).all()), self.kind, n_inputs)
        return n_inputs

    def take(self, columns: Columns) -> Columns:
        """Make deviates; values that are not finite become NaN, which `Encoding.features` refuses."""
        pairs = zip(columns, self.values, self.deviates, strict=True)
        return [(name, self._of(numbers_of(name, values), *known)) for (name, values), *known in pairs]

    @staticmethod
    def _of(numbers: Array, values: Array, deviates: Array) -> Array:
        return np.where(np.isfinite(numbers), np.interp(numbers, values, deviates), np.nan)


@dataclass(frozen=True, eq=False)
class Turned(Step):
    """Numbers along axes: (x − mean) · axisₐ."""

    mean: Array
    axes: Array
    kind: ClassVar[str] = "axes"

    def n_outputs(self, n_inputs: int) -> int:
        """Count one for each axis."""
        is_right = self.axes.ndim == 2 and self.axes.shape[1] == n_inputs and self.mean.shape == (n_inputs,)
        _check(is_right, self.kind, n_inputs)
        return len(self.axes)

    def take(self, columns: Columns) -> Columns:
        """Make a column for each axis."""
        found = (matrix_of(columns) - self.mean) @ self.axes.T
        return [(f"axis {a} of {', '.join(names_of(columns)[:3])}, …", values) for a, values in enumerate(found.T)]


@dataclass(frozen=True, eq=False)
class Filled(Step):
    """A value in place of a missing one; then a flag for each of some columns, 1 where a value is missing."""

    missing: Any  # what is missing besides nothing at all; None: nothing else
    values: tuple[Any, ...]  # None: the column is left out
    flagged: tuple[int, ...]
    kind: ClassVar[str] = "gaps"

    def n_outputs(self, n_inputs: int) -> int:
        """Count one for each column that is kept, and the flags."""
        is_right = len(self.values) == n_inputs and all(0 <= j < n_inputs for j in self.flagged)
        is_right &= all(value is None or isinstance(value, str | int | float) for value in self.values)
        _check(is_right, self.kind, n_inputs)
        return sum(value is not None for value in self.values) + len(self.flagged)

    def take(self, columns: Columns) -> Columns:
        """Fill the columns, and add flags."""
        gaps = [self.gaps(values) for _, values in columns]
        found = [
            (name, self._with(values, gap, value))
            for (name, values), gap, value in zip(columns, gaps, self.values, strict=True)
            if value is not None
        ]
        return found + [(columns[j][0], gaps[j].astype(np.float64)) for j in self.flagged]

    def gaps(self, values: Array) -> Array:
        """Find where a value is missing."""
        if values.dtype.kind != "O":
            gaps = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
            return gaps if self.missing is None or isinstance(self.missing, str) else gaps | (values == self.missing)
        return np.array([is_missing(v) or (self.missing is not None and v == self.missing) for v in values], bool)

    @staticmethod
    def _with(values: Array, gap: Array, value: Any) -> Array:
        """Fill the gaps with one value."""
        found = values.astype(object if isinstance(value, str) or values.dtype.kind == "O" else np.float64)
        found[gap] = value
        return found


@dataclass(frozen=True, eq=False)
class Levelled(Step):
    """Base of those that know a column's levels: texts, numbers, None for a missing value."""

    levels: tuple[tuple[Any, ...], ...]
    refuses: bool  # whether other levels are an error

    def codes(self, j: int, name: str, values: Array) -> Array:
        """Find the places of the values among the levels of column j; −1 for others, or an error that names one."""
        place = {level: k for k, level in enumerate(self.levels[j])}
        plain = values.tolist() if values.dtype.kind in "iuf" else [plain_level(name, value) for value in values]
        # NaN is equal to nothing.
        codes = np.array([place.get(None if level != level else level, -1) for level in plain], np.int64)
        if self.refuses and (codes < 0).any():
            found = values[int(np.argmin(codes))]
            raise ValueError(f"column {name!r} has the level {found!r}, which was not there in training")
        return codes

    def check_levels(self, n_inputs: int) -> None:
        """Raise ValueError if levels are not distinct texts or numbers."""
        right = (str, int, float, type(None))
        _check(len(self.levels) == n_inputs, self.kind, n_inputs)
        _check(all(isinstance(level, right) for levels in self.levels for level in levels), self.kind, n_inputs)
        _check(all(len(set(levels)) == len(levels) for levels in self.levels), self.kind, n_inputs)


@dataclass(frozen=True, eq=False)
class Flagged(Levelled):
    """A flag for each level of a column, or for several levels together."""

    places: tuple[Array, ...]  # for each column the flag of each level, and the one of other levels; −1 is none
    widths: tuple[int, ...]  # flags of each column
    kind: ClassVar[str] = "flags"

    def n_outputs(self, n_inputs: int) -> int:
        """Count the flags of all columns."""
        self.check_levels(n_inputs)
        _check(len(self.places) == len(self.widths) == n_inputs, self.kind, n_inputs)
        for levels, places, width in zip(self.levels, self.places, self.widths, strict=True):
            is_right = places.shape == (len(levels) + 1,) and places.dtype.kind in "iu"
            _check(is_right and bool((places >= -1).all() and (places < width).all()), self.kind, n_inputs)
        return sum(self.widths)

    def take(self, columns: Columns) -> Columns:
        """Make columns of 0 and 1."""
        found: Columns = []
        for j, (name, values) in enumerate(columns):
            places = self.places[j][self.codes(j, name, values)]
            flags = np.zeros((self.widths[j], len(values)))
            has_one = np.flatnonzero(places >= 0)
            flags[places[has_one], has_one] = 1.0
            found += [(name, flag) for flag in flags]
        return found


@dataclass(frozen=True, eq=False)
class Replaced(Levelled):
    """One or more numbers for each level of a column."""

    # For each column the numbers of each level, and in the last row those of other levels: (n_levels + 1, width).
    numbers: tuple[Array, ...]
    kind: ClassVar[str] = "numbers of levels"

    def n_outputs(self, n_inputs: int) -> int:
        """Count the numbers of all columns."""
        self.check_levels(n_inputs)
        _check(len(self.numbers) == n_inputs, self.kind, n_inputs)
        for levels, numbers in zip(self.levels, self.numbers, strict=True):
            _check(numbers.ndim == 2 and len(numbers) == len(levels) + 1, self.kind, n_inputs)
        return sum(numbers.shape[1] for numbers in self.numbers)

    def take(self, columns: Columns) -> Columns:
        """Make columns of numbers."""
        found: Columns = []
        for j, (name, values) in enumerate(columns):
            found += [(name, column) for column in self.numbers[j][self.codes(j, name, values)].T]
        return found


@dataclass(frozen=True, eq=False)
class InTurn(Step):
    """Steps one after the other; none leaves columns as they are."""

    steps: tuple[Step, ...]
    kind: ClassVar[str] = "in turn"

    def n_outputs(self, n_inputs: int) -> int:
        """Count what the last step makes."""
        for step in self.steps:
            n_inputs = step.n_outputs(n_inputs)
        return n_inputs

    def needed(self, n_inputs: int) -> set[int]:
        """Return the columns of the first step."""
        return self.steps[0].needed(n_inputs) if self.steps else super().needed(n_inputs)

    def take(self, columns: Columns) -> Columns:
        """Take the steps in turn; the result is that of the last one."""
        for step in self.steps:
            columns = step.take(columns)
        return columns


@dataclass(frozen=True, eq=False)
class SideBySide(Step):
    """Steps that each take some of the columns; what they make is put side by side."""

    columns: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]
    kind: ClassVar[str] = "side by side"

    def n_outputs(self, n_inputs: int) -> int:
        """Count what all steps make."""
        _check(len(self.columns) == len(self.steps), self.kind, n_inputs)
        _check(all(0 <= j < n_inputs for columns in self.columns for j in columns), self.kind, n_inputs)
        return sum(step.n_outputs(len(some)) for some, step in zip(self.columns, self.steps, strict=True))

    def needed(self, n_inputs: int) -> set[int]:
        """Return the columns of all steps."""
        pairs = zip(self.columns, self.steps, strict=True)
        return {some[j] for some, step in pairs for j in step.needed(len(some))}

    def take(self, columns: Columns) -> Columns:
        """Join what all steps make, in their order."""
        pairs = zip(self.columns, self.steps, strict=True)
        return [made for some, step in pairs for made in step.take([columns[j] for j in some])]


KINDS: dict[str, type[Step]] = {
    cls.kind: cls for cls in (Scaled, Ranked, Turned, Filled, Flagged, Replaced, InTurn, SideBySide)
}


# -- columns -----------------------------------------------------------------------------------------------------------


def names_of(columns: Columns) -> list[str]:
    """The names of columns."""
    return [name for name, _ in columns]


def numbers_of(name: str, values: Array) -> Array:
    """A column as float64; an error that names it where a value is no number."""
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in values], np.float64)
    except (TypeError, ValueError):
        strange = next(value for value in values if not (is_missing(value) or _is_number(value)))
        raise ValueError(f"column {name!r} must hold numbers, found {strange!r}") from None


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def matrix_of(columns: Columns) -> Array:
    """Columns side by side, float64."""
    return np.column_stack([numbers_of(name, values) for name, values in columns])


def plain_level(name: str, value: Any) -> Any:
    """A level as text or number, None where it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    raise TypeError(f"column {name!r} has a value of type {type(value).__name__}; accepted are numbers and texts")


# -- all steps of a pipeline -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Encoding:
    """The steps before an estimator, and the columns that rows have."""

    # Of the columns, where the training rows had names; rows with names are then found by them, in any order.
    names: tuple[str, ...] | None
    n_columns: int
    steps: tuple[tuple[str, str, Step], ...]  # each with its name in the pipeline and the name of its class there

    @property
    def n_features(self) -> int:
        """Count the features of encoded rows; raise ValueError if the steps contradict each other."""
        return InTurn(tuple(step for _, _, step in self.steps)).n_outputs(self.n_columns)

    @property
    def needed(self) -> set[int]:
        """Return the numbers of the columns that steps look at; rows may hold anything in others, or lack them."""
        return InTurn(tuple(step for _, _, step in self.steps)).needed(self.n_columns)

    @property
    def takes_a_table(self) -> bool:
        """Whether rows may hold what is no number."""
        return any(self.texts()) or len(self.needed) < self.n_columns

    def columns(self, X: Any) -> Columns:
        """Return the columns of rows that a user gave: a data frame, a dict of columns, or an array; those that no step
        looks at are zeros.

        A TypeError or ValueError says if X is sparse, or if columns are missing, are more or fewer, or have different
        lengths.
        """
        needed = self.needed
        if hasattr(X, "tocsr"):
            raise TypeError("the steps of this model take dense rows, found a sparse matrix: give X.toarray()")
        is_array = isinstance(X, np.ndarray | list | tuple)
        named = list(X.items()) if isinstance(X, Mapping) else None if is_array else frame_of(X)
        if named is not None and self.names is not None:
            given = {str(name): values for name, values in named}
            if len(given) < len(named):
                raise ValueError("every column needs a name of its own, found one more than once")
            if missing := [name for j, name in enumerate(self.names) if name not in given and j in needed]:
                raise ValueError(f"columns of training are missing: {', '.join(map(repr, missing))}; "
                                 f"found {', '.join(map(repr, given))}")  # fmt: skip
            named = [(name, given.get(name)) for name in self.names]
        if named is None:
            rows = X if isinstance(X, np.ndarray) or hasattr(X, "__array__") else np.array(X, object)
            rows = np.asarray(rows)
            if rows.ndim != 2:
                raise ValueError(f"X must have two dimensions, rows and columns; found shape {rows.shape}")
            names = self.names or [f"x{j}" for j in range(rows.shape[1])]
            named = [(names[j] if j < len(names) else f"x{j}", rows[:, j]) for j in range(rows.shape[1])]
        if len(named) != self.n_columns:
            raise ValueError(f"X must have {self.n_columns} features as in training, found {len(named)}")
        used = {j: array_of(str(name), values) for j, (name, values) in enumerate(named) if j in needed}
        if len({len(values) for values in used.values()}) > 1:
            told = ", ".join(f"{str(named[j][0])!r} has {len(values)}" for j, values in used.items())
            raise ValueError(f"columns must have the same number of rows; {told}")
        zeros = np.zeros(len(next(iter(used.values()))), np.int64)
        return [(str(name), used.get(j, zeros)) for j, (name, _) in enumerate(named)]

    def features(self, columns: Columns, lo: int = 0, hi: int | None = None) -> Array:
        """Encode rows lo, …, hi − 1 as float64; an error names a column with a missing or infinite value."""
        taken: Columns = [(name, values[lo:hi]) for name, values in columns]
        for _, _, step in self.steps:
            taken = step.take(taken)
        found = matrix_of(taken)
        if not np.isfinite(found).all():
            row, feature = np.argwhere(~np.isfinite(found))[0]
            raise ValueError(
                f"X must hold finite numbers: column {taken[feature][0]!r} has a missing or infinite value in row "
                f"{lo + row}"
            )
        return found

    def texts(self) -> list[set[str]]:
        """Return for each column the texts that steps know; none for a column of numbers."""
        found: list[set[str]] = [set() for _ in range(self.n_columns)]

        def look(step: Step, sources: list[int | None]) -> list[int | None]:
            """Add what a step knows of the columns with these numbers; the numbers of what it leaves as texts."""
            if isinstance(step, InTurn):
                for each in step.steps:
                    sources = look(each, sources)
                return sources
            if isinstance(step, SideBySide):
                pairs = zip(step.columns, step.steps, strict=True)
                return [made for some, each in pairs for made in look(each, [sources[j] for j in some])]
            known: list[Any] = [()] * len(sources)
            if isinstance(step, Filled):
                known = [(step.missing, value) for value in step.values]
            elif isinstance(step, Levelled):
                known = list(step.levels)
            for source, values in zip(sources, known, strict=True):
                if source is not None:
                    found[source] |= {value for value in values if isinstance(value, str)}
            if isinstance(step, Filled):
                kept = [source for source, value in zip(sources, step.values, strict=True) if value is not None]
                return [*kept, *[None] * len(step.flagged)]
            return [None] * step.n_outputs(len(sources))

        look(InTurn(tuple(step for _, _, step in self.steps)), list(range(self.n_columns)))
        return found

    def pack(self, arrays: dict[str, Array]) -> dict[str, Any]:
        """Return the encoding as JSON; arrays join ``arrays``."""
        steps = [{"name": name, "class": cls, "does": _packed(step, arrays)} for name, cls, step in self.steps]
        return {"names": None if self.names is None else list(self.names), "n_columns": self.n_columns, "steps": steps}

    @classmethod
    def unpack(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> Encoding:
        """Read the encoding that `pack` wrote; an error if it contradicts itself."""
        steps = tuple((step["name"], step["class"], _unpacked(step["does"], arrays)) for step in facts["steps"])
        names, n_columns = facts["names"], facts["n_columns"]
        is_right = names is None or (len(names) == n_columns and all(isinstance(name, str) for name in names))
        is_right &= all(isinstance(part, str) for name, of_class, _ in steps for part in (name, of_class))
        if not (steps and is_right and all(isinstance(step, Step) for _, _, step in steps)):
            raise ValueError("an encoding has steps, and a name for each column or none")
        found = cls(None if names is None else tuple(names), n_columns, steps)
        if not found.n_features > 0:
            raise ValueError("an encoding makes no feature")
        return found

    def told(self) -> str:
        """Return the names and classes of the steps."""
        return ", ".join(f"{name!r} ({cls})" for name, cls, _ in self.steps)


def array_of(name: str, values: Any) -> Array:
    """A column of numbers or objects; times are refused, as no step knows them."""
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):
        values = values_of_any_series(values)
    if isinstance(values, str | bytes) or not isinstance(values, Collection | np.ndarray):
        raise TypeError(f"column {name!r} is of type {type(values).__name__}; accepted are lists, arrays and series")
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values, object, len(values))
    if values.ndim != 1 or values.dtype.kind not in "biufOUT":
        raise TypeError(f"column {name!r} must hold numbers or texts, found {values.dtype} of shape {values.shape}")
    if values.dtype.kind == "b":
        return values.astype(np.int64)
    return values if values.dtype.kind in "iuf" else values.astype(object)


def _packed(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"encoding_{sum(key.startswith('encoding_') for key in arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Step):
        own = {field.name: _packed(getattr(value, field.name), arrays) for field in fields(value)}
        return {"kind": value.kind} | own
    if isinstance(value, tuple):
        return [_packed(each, arrays) for each in value]
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(value, list):
        return tuple(_unpacked(each, arrays) for each in value)
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    own = {name: _unpacked(part, arrays) for name, part in value.items() if name != "kind"}
    return KINDS[value["kind"]](**own)


# What a form that has no place for steps says.
FORMS_WITH_STEPS = "export to='c' or to='json', or pipeline[-1] alone, for rows that the steps have transformed"


def refuse(encoding: Encoding | None, form: str, but: str) -> None:
    """Raise ValueError, which names the steps, if a form has no place for them."""
    if encoding is not None:
        raise ValueError(f"{form} has no place for what the steps {encoding.told()} do: {but}")
