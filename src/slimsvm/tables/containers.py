"""Any table as named columns of plain values: data frames, Arrow tables, dicts of columns, arrays.

A column has one of four kinds, whatever held it: "numbers" (float64, NaN where missing), "times" (datetime64[us] in
UTC, NaT where missing), "texts" (str, None where missing), or "categories", which are texts that stand for no number
even where they look like one. Truth values are the texts "True" and "False". So the same values from pandas, polars or
Arrow are the same columns, to the bit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np

Array = np.ndarray

# What files write where a value is missing; letters count in either case.
MISSING_TEXTS = frozenset(("", "?", "-", "na", "n/a", "nan", "nat", "none", "null", "<na>", "<null>", "#n/a"))


@dataclass(frozen=True)
class Column:
    """Values of one column, in one of the four kinds."""

    name: str
    kind: str
    values: Array

    @property
    def has_texts(self) -> bool:
        """Whether values are texts."""
        return self.kind in ("texts", "categories")

    @property
    def is_missing(self) -> Array:
        """Where there is no value."""
        if self.has_texts:
            return np.array([value is None for value in self.values], bool)
        return np.isnat(self.values) if self.kind == "times" else np.isnan(self.values)

    def take(self, rows: Array) -> Column:
        """Some rows of it."""
        return Column(self.name, self.kind, self.values[rows])


@dataclass(frozen=True)
class Table:
    """Columns in order, their number of rows, and whether the container had names for them."""

    columns: tuple[Column, ...]
    n_rows: int
    has_names: bool

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def take(self, rows: Array) -> Table:
        """Some rows of it."""
        return Table(tuple(column.take(rows) for column in self.columns), len(rows), self.has_names)


def table_of(data: Any, needed: Collection[str] | None = None) -> Table:
    """The columns of a table: a data frame of pandas, polars or another library that narwhals knows, an Arrow table, a
    dict of columns, a structured array, or an array of shape (n_rows, n_columns), whose names are x0, x1, …

    ``needed`` names the columns that are taken, if the table has names; what others hold does not matter. A TypeError
    names a column with a value that is neither a number, a text, a truth value nor a time, or says that the table is
    sparse or lazy. A ValueError names what is missing, is there twice or has another length.
    """
    if hasattr(data, "tocsr"):
        raise TypeError("a table of columns is dense, found a sparse matrix: use SVC, or X.toarray()")
    has_names = True
    if isinstance(data, Mapping):
        named = [(str(name), values) for name, values in data.items()]
    elif isinstance(data, np.ndarray) and data.dtype.names:
        named = [(name, data[name]) for name in data.dtype.names]
    elif (frame := frame_of(data)) is not None:
        named = frame
    else:
        has_names, named = False, _columns_of_array(data)
    names = [name for name, _ in named]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"every column needs a name of its own; found more than once: {', '.join(map(repr, twice))}")
    if has_names and needed is not None:
        if missing := [name for name in needed if name not in names]:
            raise ValueError(
                f"columns that the model was fitted with are missing: {', '.join(map(repr, missing))}; found "
                f"{', '.join(map(repr, names))}"
            )
        # Where none is needed, the first tells how many rows there are.
        named = [(name, values) for name, values in named if name in needed] or named[:1]
    columns = tuple(column_of(name, values) for name, values in named)
    lengths = {len(column.values) for column in columns}
    if len(lengths) > 1:
        told = ", ".join(f"{column.name!r} has {len(column.values)}" for column in columns)
        raise ValueError(f"columns must have the same number of rows; {told}")
    if not lengths:
        raise ValueError("0 feature(s) (shape=(0, 0)) while a minimum of 1 is required: the table has no columns")
    return Table(columns, lengths.pop(), has_names)


def frame_of(data: Any) -> list[tuple[str, Any]] | None:
    """The named columns of a data frame; None if it is none."""
    import narwhals as nw

    if isinstance(data, np.ndarray | list | tuple):
        return None
    if type(data).__name__ == "RecordBatch":  # of Arrow, of which narwhals knows tables
        from pyarrow import Table as ArrowTable

        data = ArrowTable.from_batches([data])
    if isinstance(nw.from_native(data, pass_through=True, series_only=True), nw.Series):
        raise TypeError("a table is a data frame, a dict of columns or an array, found one column: call its to_frame()")
    is_pandas = hasattr(data, "iloc") and hasattr(data, "set_axis")
    names = [str(name) for name in (data.columns if is_pandas else getattr(data, "column_names", ()))]
    if len(set(names)) < len(names):  # which narwhals refuses by messages of its own
        return [(name, []) for name in names]
    if is_pandas and names:  # which may be numbers
        data = data.set_axis(names, axis=1)
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("a table must be in memory, found a lazy one: call its collect() first")
    if not isinstance(frame, nw.DataFrame):
        return None
    return [(series.name, series) for series in frame.iter_columns()]


def _values_of_series(series: Any) -> Any:
    """A column of a data frame as an array of NumPy, or as a list of Python's objects."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_float():
        return np.asarray(series.cast(nw.Float64).to_numpy(), np.float64)
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):  # by NumPy, as Arrow casts none beyond 2^53
        numbers = np.asarray(series.fill_null(0).to_numpy()).astype(np.float64)
        return np.where(np.asarray(series.is_null().to_numpy(), bool), np.nan, numbers)
    if dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    elif isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if isinstance(series.dtype, nw.Datetime):
        return np.asarray(series.to_numpy(), "datetime64[us]")
    values = series.to_list()
    return Categories(values) if dtype in (nw.Categorical, nw.Enum) else values


class Categories(list[Any]):
    """Values of a column that its container says are categories, which may be numbers."""


def _columns_of_array(data: Any) -> list[tuple[str, Array]]:
    """The columns of an array-like."""
    if not isinstance(data, np.ndarray):
        data = np.asarray(data) if hasattr(data, "__array__") else _array_of_rows(data)
    if data.ndim != 2:
        raise ValueError(
            f"a table has rows and columns, found an array of shape {data.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single column or array.reshape(1, -1) if it is a single row."
        )
    if data.dtype.kind == "c":
        raise ValueError("Complex data not supported: a table holds real numbers, texts and times")
    if 0 in data.shape:
        what = "sample(s)" if data.shape[0] == 0 else "feature(s)"
        raise ValueError(f"Found array with 0 {what} (shape={data.shape}) while a minimum of 1 is required.")
    return [(f"x{j}", data[:, j]) for j in range(data.shape[1])]


def _array_of_rows(rows: Any) -> Array:
    """Lists of rows as an array; texts and numbers side by side stay what they are."""
    if not isinstance(rows, Sequence) or isinstance(rows, str | bytes):
        raise TypeError(f"a table is a data frame, a dict of columns or an array, found {type(rows).__name__}")
    if any(isinstance(row, Mapping) for row in rows):
        raise TypeError(
            "a table has columns, found a list of dicts, one for each row: pandas.DataFrame(rows) is a table"
        )
    plain = np.array(rows) if len({np.size(row) for row in rows}) <= 1 else None
    if plain is None:
        raise ValueError("rows of a table must all have the same number of columns")
    return plain if plain.dtype.kind in "biufc" else np.array(rows, object)


# -- one column --------------------------------------------------------------------------------------------------------


def column_of(name: str, values: Any) -> Column:
    """A column in one of the four kinds."""
    mask = None
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), np.asarray(values.data)
    if hasattr(values, "to_numpy") and not isinstance(values, np.ndarray):  # a series in a dict of columns
        values = values_of_any_series(values)
    are_categories = isinstance(values, Categories)
    if isinstance(values, str | bytes | Set | Mapping) or not isinstance(values, Collection | np.ndarray):
        raise TypeError(
            f"column {name!r} is of type {type(values).__name__}; accepted are a list, an array or a series of values"
        )
    if not isinstance(values, np.ndarray):
        values = np.fromiter(values, object, len(values))
    if values.ndim != 1:
        raise ValueError(f"column {name!r} must have one value for each row, found shape {values.shape}")
    try:
        kind, found = ("categories", _texts(name, values)) if are_categories else _plain(name, values)
    except OverflowError as error:
        raise ValueError(f"column {name!r} has a value that is too large: {error}") from None
    if mask is not None:
        nothing: Any = {"numbers": np.nan, "times": np.datetime64("NaT")}.get(kind)
        found = np.where(mask, nothing, found)
    if kind == "numbers" and np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        raise ValueError(
            f"column {name!r} has an infinite value in row {row}; accepted are finite ones and missing ones"
        )
    return Column(name, kind, found)


def values_of_any_series(series: Any) -> Any:
    """A series of any library, or of narwhals, as an array or a list."""
    import narwhals as nw

    found = nw.from_native(series, series_only=True, pass_through=True)
    if isinstance(found, nw.Series):
        return _values_of_series(found)
    return Categories(series) if hasattr(series, "categories") else np.asarray(series)


def _plain(name: str, values: Array) -> tuple[str, Array]:
    """Kind and plain values of an array of any type."""
    kind = values.dtype.kind
    if kind in "iuf":
        return "numbers", values.astype(np.float64)
    if kind == "b":
        return "texts", values.astype(str).astype(object)
    if kind == "M":
        return "times", values.astype("datetime64[us]")
    if kind == "m":
        seconds = values.astype("timedelta64[us]").astype(np.float64) / 1e6
        return "numbers", np.where(np.isnat(values), np.nan, seconds)
    if kind in "UT":
        return "texts", _texts(name, values.astype(object))
    if kind != "O":
        raise TypeError(
            f"column {name!r} has dtype {values.dtype}; accepted are numbers, texts, truth values and times"
        )
    return _plain_of_objects(name, values)


def _plain_of_objects(name: str, values: Array) -> tuple[str, Array]:
    """Kind and plain values of Python's objects: numbers or times if all are, else texts."""
    present = [value for value in values if not is_missing(value)]
    if all(isinstance(value, bool | np.bool_) for value in present):
        return ("texts" if present else "numbers"), _filled(values, str, object if present else np.float64)
    if all(_is_number(value) for value in present):
        return "numbers", _filled(values, float, np.float64)
    if all(type(value).__name__ == "Period" for value in present):  # of pandas: a month is the time when it begins
        return "times", _filled(values, lambda value: _instant(value.to_timestamp()), "datetime64[us]")
    if all(isinstance(value, date | np.datetime64) for value in present):
        return "times", _filled(values, _instant, "datetime64[us]")
    if all(isinstance(value, timedelta | np.timedelta64) for value in present):
        return "numbers", _filled(
            values, lambda value: np.timedelta64(value, "us") / np.timedelta64(1, "s"), np.float64
        )
    if all(isinstance(value, time) for value in present):
        return "numbers", _filled(values, lambda t: 3600.0 * t.hour + 60 * t.minute + t.second + 1e-6 * t.microsecond)
    return "texts", _texts(name, values)


def _filled(values: Array, make: Any, dtype: Any = np.float64) -> Array:
    """What ``make`` makes of the present values; missing ones are None, NaN or NaT."""
    nothing: Any = None if dtype is object else np.nan if dtype is np.float64 else np.datetime64("NaT")
    return np.array([nothing if is_missing(value) else make(value) for value in values], dtype)


def _texts(name: str, values: Array) -> Array:
    found = np.empty(len(values), object)
    found[:] = [None if is_missing(value) else text_of(value, name) for value in values]
    return found


def _is_number(value: Any) -> bool:
    is_real = isinstance(value, Real) or type(value).__name__ == "Decimal"
    return is_real and not isinstance(value, timedelta | np.timedelta64)


def _instant(value: Any) -> np.datetime64:
    """A time in UTC, without a zone."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")


def text_of(value: Any, name: str) -> str | None:
    """A value as a text; None for a text that says that it is missing. Whole numbers have no point: 1.0 is "1"."""
    if isinstance(value, str):
        text = value.strip()
        return None if text.lower() in MISSING_TEXTS else text
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, Integral):  # floats beyond 2^53 would be equal
        return str(int(value))
    if _is_number(value):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, date):
        return value.isoformat()
    if type(value).__name__ == "Interval":  # of pandas' cut()
        return str(value)
    raise TypeError(
        f"column {name!r} has a value of type {type(value).__name__}; accepted are numbers, texts, truth values, times"
    )


def is_missing(value: Any) -> bool:
    """None, NaN, NaT, pandas' NA, NumPy's masked."""
    if value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, float | np.floating):
        return bool(value != value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    return type(value).__name__ == "Decimal" and bool(value.is_nan())
