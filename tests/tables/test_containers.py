"""Any container, the same columns to the bit."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from slimsvm.tables import table_of

N = 40


def a_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=N),
            "whole": rng.integers(0, 9, N),
            "category": pd.Categorical(rng.choice(list("abc"), N)),
            "text": rng.choice(["u", "v", "w"], N),
            "truth": rng.random(N) < 0.5,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, N), "D"),
            "zoned": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9999, N), "h")).tz_localize("UTC"),
            "length": pd.to_timedelta(rng.integers(0, 1000, N), "s"),
            "nothing": [None] * N,
        }
    )
    frame["zoned"] = frame["zoned"].dt.tz_convert("Europe/Berlin")
    frame["nullable"] = frame["whole"].astype("Int64")
    frame["maybe"] = frame["truth"].astype("boolean")
    frame.loc[::7, "number"] = np.nan
    frame.loc[::5, "text"] = None
    frame.loc[3, ["day", "zoned", "length"]] = pd.NaT
    frame.loc[9, ["nullable", "maybe", "category"]] = pd.NA
    return frame


def of_polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


CONTAINERS = {
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "polars": of_polars,
    "pandas of arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "dict of series": lambda frame: {name: frame[name] for name in frame},
    "dict of lists": lambda frame: {name: frame[name].tolist() for name in frame},
    "objects": lambda frame: frame.astype(object),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_container_has_the_columns_of_pandas(container):
    expected, found = table_of(a_frame()), table_of(CONTAINERS[container](a_frame()))
    assert found.names == expected.names
    for own, other in zip(found.columns, expected.columns, strict=True):
        knows_categories = container not in ("dict of lists", "objects")  # which hold them as texts
        assert own.kind == (other.kind if knows_categories or other.kind != "categories" else "texts"), own.name
        assert own.values.dtype == other.values.dtype, own.name
        if own.has_texts:
            assert own.values.tolist() == other.values.tolist(), own.name
        else:
            np.testing.assert_array_equal(own.values, other.values, own.name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64, object])
def test_arrays_have_columns_without_names(dtype):
    table = table_of(np.arange(6, dtype=dtype).reshape(3, 2))
    assert (table.names, table.has_names, table.n_rows) == (["x0", "x1"], False, 3)
    assert table.columns[1].values.tolist() == [1.0, 3.0, 5.0]


def test_arrays_of_objects_and_lists_of_rows_keep_their_types():
    rows = [[1, "a", None], [2.5, "b", True], [None, "", False]]
    for data in (np.array(rows, object), rows):
        number, text, truth = table_of(data).columns
        np.testing.assert_array_equal(number.values, [1.0, 2.5, np.nan])
        assert text.values.tolist() == ["a", "b", None]
        assert truth.values.tolist() == [None, "True", "False"]


def test_structured_and_masked_arrays():
    records = np.array([(1, "a"), (2, "b")], [("number", "i4"), ("text", "U1")])
    assert table_of(records).names == ["number", "text"]
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(table_of({"x": masked[:, 1]}).columns[0].values, [np.nan, 4.0])
    np.testing.assert_array_equal(table_of(masked).columns[1].values, [np.nan, 4.0])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, Decimal("2.5"), None], "numbers", [1.0, 2.5, np.nan]),
        ([True, 2.5], "numbers", [1.0, 2.5]),
        ([dt.timedelta(seconds=90), None], "numbers", [90.0, np.nan]),
        ([dt.time(1, 0, 30)], "numbers", [3630.0]),
        ([1, "a", 2.0, 2.5, True, dt.date(2020, 1, 2)], "texts", ["1", "a", "2", "2.5", "True", "2020-01-02"]),
        (["x ", " NA", "n/a", "", "NULL", "?"], "texts", ["x", None, None, None, None, None]),
        ([None, np.nan, pd.NA, pd.NaT], "numbers", [np.nan] * 4),
    ],
)
def test_python_objects(values, kind, expected):
    column = table_of({"x": values}).columns[0]
    assert column.kind == kind
    if kind == "texts":
        assert column.values.tolist() == expected
    else:
        np.testing.assert_array_equal(column.values, expected)


@pytest.mark.parametrize("values", [[2**62 + 1, 1, 7], [2**62 + 1, None, 7]])
def test_large_integers_are_the_same_in_any_container(values):
    for data in (pa.table({"x": values}), pa.RecordBatch.from_pydict({"x": values}),
                 pd.DataFrame({"x": pd.array(values, dtype="Int64")}), {"x": values}):  # fmt: skip
        table = table_of(data)
        expected = [np.nan if value is None else float(value) for value in values]
        assert (table.names, table.columns[0].kind) == (["x"], "numbers")
        np.testing.assert_array_equal(table.columns[0].values, expected)


def test_what_pandas_alone_has():
    cut = pd.DataFrame({"x": pd.cut([1.0, 2.0, 3.0], [0, 2, 4])})
    assert table_of(cut).columns[0].values.tolist() == ["(0, 2]", "(0, 2]", "(2, 4]"]
    months = table_of({"x": pd.period_range("2020-01", periods=2, freq="M")}).columns[0]
    assert months.values.astype("M8[D]").astype(str).tolist() == ["2020-01-01", "2020-02-01"]
    ids = table_of({"x": pd.Categorical([10**17, 10**17 + 1])}).columns[0]
    assert (ids.kind, ids.values.tolist()) == ("categories", [str(10**17), str(10**17 + 1)])


DAYS = [dt.date(2020, 1, 1), None, dt.date(2020, 3, 1)]
LENGTHS = [dt.timedelta(hours=1), None, dt.timedelta(days=2)]
PRICES = [Decimal("1.25"), None, Decimal("-3")]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array(["p", None, "q"]).dictionary_encode(), "categories", ["p", None, "q"]),
        (pa.array([3, None, 1]).dictionary_encode(), "categories", ["3", None, "1"]),
        (pa.array(["p", None, "q"], pa.large_string()), "texts", ["p", None, "q"]),
        (pa.array(["p", None, "q"], pa.string_view()), "texts", ["p", None, "q"]),
        (pa.array([True, None, False]), "texts", ["True", None, "False"]),
        (pa.array(DAYS, pa.date32()), "times", ["2020-01-01", "NaT", "2020-03-01"]),
        (pa.array(DAYS, pa.date64()), "times", ["2020-01-01", "NaT", "2020-03-01"]),
        (pa.array(LENGTHS), "numbers", [3600.0, np.nan, 172800.0]),
        (pa.array(PRICES), "numbers", [1.25, np.nan, -3.0]),
        (pa.nulls(3), "numbers", [np.nan] * 3),
        (pa.array([1.0, None, 2.0], pa.float16()), "numbers", [1.0, np.nan, 2.0]),
        (pd.array([1, None, 2], "UInt8"), "numbers", [1.0, np.nan, 2.0]),
        (pd.array([True, None, False], "boolean"), "texts", ["True", None, "False"]),
        (pd.array(["p", None, "q"], "string"), "texts", ["p", None, "q"]),
        (pd.array(DAYS, "date32[pyarrow]"), "times", ["2020-01-01", "NaT", "2020-03-01"]),
        (pd.Categorical(["p", None, "q"], ["r", "q", "p"], ordered=True), "categories", ["p", None, "q"]),
        (pd.Categorical([0.5, None, 2.0]), "categories", ["0.5", None, "2"]),
        (pd.arrays.SparseArray([0.0, np.nan, 2.0], fill_value=0.0), "numbers", [0.0, np.nan, 2.0]),
        (pd.PeriodIndex(["2020-01", None, "2020-03"], freq="M"), "times", ["2020-01-01", "NaT", "2020-03-01"]),
        (pd.to_timedelta(LENGTHS), "numbers", [3600.0, np.nan, 172800.0]),
    ],
)
def test_types_of_columns_in_frames(values, kind, expected):
    frame = pa.table({"x": values}) if isinstance(values, pa.Array) else pd.DataFrame({"x": values})
    check_column(table_of(frame).columns[0], kind, expected)


@pytest.mark.parametrize(
    ("values", "dtype", "kind", "expected"),
    [
        (["p", None, "q"], lambda pl: pl.Enum(["r", "q", "p"]), "categories", ["p", None, "q"]),
        (["p", None, "q"], lambda pl: pl.Categorical, "categories", ["p", None, "q"]),
        (LENGTHS, lambda pl: pl.Duration, "numbers", [3600.0, np.nan, 172800.0]),
        (PRICES, lambda pl: pl.Decimal(10, 2), "numbers", [1.25, np.nan, -3.0]),
        (DAYS, lambda pl: pl.Date, "times", ["2020-01-01", "NaT", "2020-03-01"]),
        ([2**70, None, 1], lambda pl: pl.Int128, "numbers", [2.0**70, np.nan, 1.0]),
        ([None] * 3, lambda pl: pl.Null, "numbers", [np.nan] * 3),
    ],
)
def test_types_of_columns_in_polars(values, dtype, kind, expected):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype(pl))})
    check_column(table_of(frame).columns[0], kind, expected)


def check_column(column, kind, expected):
    assert (column.name, column.kind) == ("x", kind)
    if kind == "times":
        assert column.values.astype("M8[D]").astype(str).tolist() == expected
    elif kind == "numbers":
        np.testing.assert_array_equal(column.values, expected)
    else:
        assert column.values.tolist() == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([0, "b"], ["0", "b"]),
        (["index", ""], ["index", ""]),
        ([("u", "v"), ("u", "w")], ["('u', 'v')", "('u', 'w')"]),
        (pd.MultiIndex.from_tuples([("u", "v"), ("u", "w")]), ["('u', 'v')", "('u', 'w')"]),
        ([None, "b"], ["nan", "b"]),
    ],
)
def test_names_of_columns_are_texts(names, expected):
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], index=[7, 7])
    frame.columns = names
    assert table_of(frame).names == expected


def test_columns_that_are_not_needed_are_not_looked_at():
    data = {"a": [1.0, 2.0], "vector": [[1], [2]], "infinite": [np.inf, 1.0]}
    assert table_of(data, needed=["a"]).names == ["a"]
    assert table_of({"a": [1.0, 2.0]}, needed=[]).n_rows == 2
    with pytest.raises(ValueError, match=r"missing: 'b'; found 'a', 'vector', 'infinite'"):
        table_of(data, needed=["a", "b"])


def test_times_are_in_utc():
    berlin = dt.timezone(dt.timedelta(hours=1))
    column = table_of({"x": [dt.datetime(2020, 1, 1, 1, tzinfo=berlin), dt.date(2020, 1, 2), None]}).columns[0]
    assert column.values.astype(str).tolist() == ["2020-01-01T00:00:00.000000", "2020-01-02T00:00:00.000000", "NaT"]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "found more than once: 'a'"),
        (lambda: pa.table([[1], [2]], names=["a", "a"]), ValueError, "found more than once: 'a'"),
        (lambda: pd.DataFrame([[1, 2]], columns=[1, "1"]), ValueError, "found more than once: '1'"),
        (lambda: {"a": [1, 2], "b": [1]}, ValueError, "'a' has 2, 'b' has 1"),
        (lambda: {"a": [1.0, np.inf]}, ValueError, "column 'a' has an infinite value in row 1"),
        (lambda: {"a": [[1], [2]]}, TypeError, "column 'a' has a value of type list"),
        (lambda: {"a": [b"x"]}, TypeError, "column 'a' has a value of type bytes"),
        (lambda: {"a": [UUID(int=1)]}, TypeError, "column 'a' has a value of type UUID"),
        (lambda: pa.table({"a": [{"b": 1}]}), TypeError, "column 'a' has a value of type dict"),
        (lambda: pd.DataFrame({"a": [(1, 2)]}), TypeError, "column 'a' has a value of type tuple"),
        (lambda: {"a": np.zeros((2, 2))}, ValueError, "column 'a' must have one value for each row"),
        (lambda: [{"a": 1}, {"a": 2}], TypeError, "a list of dicts, one for each row"),
        (lambda: {"a": 5, "b": [1]}, TypeError, "column 'a' is of type int"),
        (lambda: {"a": "abc"}, TypeError, "column 'a' is of type str"),
        (lambda: {"a": {1, 2}}, TypeError, "column 'a' is of type set"),
        (lambda: {"a": [10**400, 1]}, ValueError, "column 'a' has a value that is too large"),
        (lambda: {"a": [dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))]}, ValueError, "column 'a'"),
        (lambda: pd.Series([1, 2]), TypeError, "found one column"),
        (lambda: {}, ValueError, "no columns"),
        (lambda: np.zeros(3), ValueError, "Reshape your data"),
        (lambda: np.zeros((3, 1), complex), ValueError, "Complex data not supported"),
        (lambda: [[1, 2], [3]], ValueError, "same number of columns"),
        (lambda: "a", TypeError, "found str"),
        (lambda: __import__("scipy.sparse").sparse.eye(3), TypeError, "sparse"),
        (lambda: pytest.importorskip("polars").LazyFrame({"a": [1]}), TypeError, "collect"),
    ],
)
def test_what_is_no_table_is_refused_by_name(data, error, message):
    with pytest.raises(error, match=message):
        table_of(data())
