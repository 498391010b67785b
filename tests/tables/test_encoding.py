"""What every awkward column becomes."""

import json
import warnings
from datetime import time

import numpy as np
import pandas as pd
import pytest

from slimsvm import NormalRanks
from slimsvm.tables import TableEncoding, table_of
from slimsvm.tables.encoders import MOST_LEVELS, Levels, ManyLevels, Numbers, Times


def learned(columns, targets=None, weights=None, **options):
    table = table_of(columns)
    targets = np.zeros((table.n_rows, 1)) if targets is None else targets
    weights = np.ones(table.n_rows) if weights is None else weights
    return TableEncoding.learn(table, targets, weights, **options)


def told(columns):
    return {encoder.name: encoder.told() for encoder in learned(columns)[0].encoders}


NUMBERS = np.random.default_rng(0).normal(size=200)


def test_numbers_are_those_of_normal_ranks():
    encoding, features = learned({"x": NUMBERS})
    expected = NormalRanks(256).fit_transform(NUMBERS[:, None])
    np.testing.assert_allclose(features, expected, rtol=1e-6)
    np.testing.assert_array_equal(encoding.features(table_of({"x": NUMBERS})), features)
    assert encoding.features(table_of({"x": [1e300, -1e300]})).ravel().tolist() == [features.max(), features.min()]


def test_weights_count_as_repeated_rows():
    weights = np.arange(200) % 3 + 1
    weighted, _ = learned({"x": NUMBERS}, weights=weights.astype(float))
    repeated, _ = learned({"x": np.repeat(NUMBERS, weights)})
    np.testing.assert_allclose(weighted.encoders[0].deviates, repeated.encoders[0].deviates, rtol=1e-12)


def test_missing_numbers_are_in_the_middle_and_flagged():
    numbers = np.where(np.arange(200) % 4 == 0, np.nan, NUMBERS)
    encoding, features = learned({"x": numbers})
    assert features.shape == (200, 2)
    assert encoding.are_flags.tolist() == [False, True]
    np.testing.assert_array_equal(features[::4], np.tile([0.0, 1.0], (50, 1)))
    assert not features[1::4, 1].any()


def test_a_number_that_is_missing_for_the_first_time_is_in_the_middle():
    encoding, _ = learned({"x": NUMBERS})
    assert encoding.features(table_of({"x": [None, 0.0]}))[0] == 0.0


def test_straight_numbers_are_places_in_the_range_and_come_last():
    """A missing one is in the middle."""
    columns = {"x": [2.0, np.nan, 6.0, 4.0], "level": ["a", "b", "a", "b"], "y": [10.0, 30.0, 20.0, 20.0]}
    encoding, features = learned(columns, straight=True)
    plain, ranked = learned(columns)
    assert encoding.n_features == 7
    assert plain.n_features == len(encoding.are_flags) == 5
    np.testing.assert_array_equal(features[:, :5], ranked)
    assert features[:, 5:].tolist() == [[0.0, 0.0], [0.5, 1.0], [1.0, 0.5], [0.5, 0.5]]
    assert encoding.columns.tolist() == [0, 0, 1, 1, 2, 0, 2]
    beyond = table_of({"y": [70.0, 0.0, -20.0, None], "level": ["a"] * 4, "x": [8.0, -2.0, 1e300, -1e300]})
    assert encoding.features(beyond)[:, 5:].tolist() == [[1.5, 3.0], [-1.0, -0.5], [3.0, -1.5], [-2.0, 0.5]]
    np.testing.assert_array_equal(encoding.without_straight().features(beyond), plain.features(beyond))


@pytest.mark.parametrize("numbers", [[1e308, -1e308], [0.0, 5e-324], [3.0, np.nan]])
def test_numbers_without_a_range_are_not_straight(numbers):
    assert learned({"x": numbers * 3}, straight=True)[0].encoders[0].n_straight == 0


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,234.5", "12", "-7e2", "1,000,000"], [1234.5, 12.0, -700.0, 1e6]),
        (["1.234,5", "12", "3,14"], [1234.5, 12.0, 3.14]),
        (["1,234", "5,678"], [1234.0, 5678.0]),
        (["0.5", ".5", "1.", None, "n/a"], [0.5, 0.5, 1.0, np.nan, np.nan]),
    ],
)
def test_texts_that_are_numbers(texts, numbers):
    with_texts, with_numbers = learned({"x": texts})[1], learned({"x": numbers})[1]
    np.testing.assert_array_equal(with_texts, with_numbers)


@pytest.mark.parametrize("texts", [["007", "008"], ["1-2", "3-4"], ["1,23,4", "5"], ["inf", "1"]])
def test_texts_that_are_no_numbers(texts):
    assert isinstance(learned({"x": texts * 20})[0].encoders[0], Levels)


def test_few_texts_among_numbers_count_as_missing_and_are_said():
    with pytest.warns(UserWarning, match=r"column 'x' has numbers, and texts such as 'unknown'"):
        encoding, features = learned({"x": [*map(str, range(50)), "unknown"]})
    assert isinstance(encoding.encoders[0], Numbers)
    assert features[-1].tolist() == [0.0, 1.0]
    with pytest.warns(UserWarning, match="'many'"):
        encoding.features(table_of({"x": ["many", "3"]}))


def test_levels_have_flags_and_rare_or_unseen_ones_have_none():
    levels = ["b", "a", "b", None, "a", None, "once"]
    encoding, features = learned({"x": levels})
    assert encoding.encoders[0].levels == ("a", "b", None)
    assert features.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert encoding.features(table_of({"x": ["new", None, "a"]})).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]


def test_categories_may_be_numbers_and_come_back_as_any_type():
    encoding, _ = learned(pd.DataFrame({"x": pd.Categorical([1, 2, 1, 2])}))
    assert encoding.encoders[0].levels == ("1", "2")
    for values in ([1, 2], [1.0, 2.0], ["1", "2"]):
        assert encoding.features(table_of({"x": values})).tolist() == [[1, 0], [0, 1]]


def test_truth_values_are_those_of_files():
    truth = learned({"x": [True, False, True, False]})
    assert truth[0].encoders[0] == learned({"x": ["True", "False", "True", "False"]})[0].encoders[0]


@pytest.mark.parametrize("given", [[True, False], ["true", "false"], ["TRUE", "FALSE"]])
def test_truth_values_are_known_as_any_type(given):
    encoding, features = learned({"x": given * 3})
    for again in (
        [True, False],
        ["true", "false"],
        ["TRUE", "FALSE"],
        ["True", "False"],
        [1, 0],
        [1.0, 0.0],
        ["1", "0"],
    ):
        np.testing.assert_array_equal(encoding.features(table_of({"x": again})), features[:2])
    others = learned({"x": ["true", "false", "maybe"] * 3})[0]
    assert not others.features(table_of({"x": [1, True]})).any()


def test_many_levels_become_their_mean_target_from_other_rows():
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 2 * MOST_LEVELS, 2000)
    effect = rng.normal(size=2 * MOST_LEVELS)
    y = effect[levels] + 0.1 * rng.normal(size=2000)
    encoding, features = learned({"x": [f"level {k}" for k in levels]}, y[:, None])
    encoder = encoding.encoders[0]
    assert isinstance(encoder, ManyLevels)
    assert features.shape == (2000, 1)
    assert np.corrcoef(features[:, 0], effect[levels])[0, 1] > 0.99
    new = encoding.features(table_of({"x": ["never seen", "level 3", None]}))[:, 0]
    assert new[0] == new[2] == 0.0
    assert new[1] == pytest.approx((effect[3] - y.mean()) / encoder.spread[0], abs=0.1)


def test_ten_thousand_levels_of_noise_do_not_leak_the_target():
    rng = np.random.default_rng(0)
    levels, y = rng.integers(0, 10_000, 20_000), rng.normal(size=20_000)
    features = learned({"x": [f"level {k}" for k in levels]}, y[:, None])[1]
    if features.shape[1]:
        assert abs(np.corrcoef(features[:, 0], y)[0, 1]) < 0.03


def test_times_have_ranks_and_cycles():
    days = np.datetime64("2020-01-01") + np.arange(1000)
    encoding, features = learned({"x": days})
    encoder = encoding.encoders[0]
    assert isinstance(encoder, Times)
    assert encoder.cycles == ("year", "week")
    a_day = np.sum(features[1:, 3:5] * features[:-1, 3:5], axis=1)  # turns by a seventh of the week
    np.testing.assert_allclose(a_day, np.cos(2 * np.pi / 7), atol=1e-5)
    np.testing.assert_allclose(features[366, 1:3], features[0, 1:3], atol=1e-2)  # the year
    hours = np.datetime64("2020-01-01") + np.arange(100).astype("timedelta64[h]")
    encoding, features = learned({"x": hours})
    assert encoding.encoders[0].cycles == ("day",)
    np.testing.assert_allclose(np.sum(features[1:, 1:] * features[:-1, 1:], axis=1), np.cos(2 * np.pi / 24), atol=1e-5)


def test_texts_of_dates_are_times_whatever_their_zone():
    days = ["2020-01-01", "2020-03-05T10:00:00Z", "2021-01-01 00:00:00+01:00", None] * 10
    encoding, features = learned({"x": days})
    assert isinstance(encoding.encoders[0], Times)
    assert features[3].tolist() == [0.0] * (features.shape[1] - 1) + [1.0]
    same = table_of({"x": [np.datetime64("2020-03-05T10:00:00")]})
    np.testing.assert_array_equal(encoding.features(same)[0], features[1])
    assert isinstance(learned({"x": ["2020-13-40", "2020-01-01"] * 9})[0].encoders[0], Levels)


@pytest.mark.parametrize(
    "texts",
    [
        ["00:00", "9:30", "12:05", "21:45", None],
        ["12:00 AM", "9:30am", "12:05 PM", "9:45 pm", None],
        ["0:00:00", "09:30:00.0", "12:05:00", "21:45:00", ""],
    ],
)
def test_texts_of_times_of_day_are_seconds(texts):
    encoding, features = learned({"x": texts * 10})
    assert encoding.told() == ["x: times of day, some missing"]
    times = [time(0), time(9, 30), time(12, 5), time(21, 45), None] * 10
    np.testing.assert_array_equal(features, learned({"x": times})[1])
    np.testing.assert_array_equal(encoding.features(table_of({"x": times})), features)
    assert np.all(np.diff(features[:4, 0]) > 0)
    arrays = {}
    packed = encoding.pack(arrays)
    np.testing.assert_array_equal(TableEncoding.unpack(packed, arrays).features(table_of({"x": times})), features)


@pytest.mark.parametrize("texts", [["10:75", "10:80"], ["1:2", "1:3"], ["a:30", "b:30"], ["10:30 XM", "10:30 YM"]])
def test_other_texts_with_colons_are_levels(texts):
    assert isinstance(learned({"x": texts * 10})[0].encoders[0], Levels)


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["27.11.2026", "3.1.2026 10:30", None], "day.month.year"),
        (["11/27/2026", "1/3/2026 10:30 AM"], "month/day/year"),
        (["27/11/2026", "03/01/2026 10:30"], "day/month/year"),
        (["2026/11/27", "2026/1/3 10:30"], "year/month/day"),
        (["27 Nov 2026", "3 January 2026 10:30"], "day month year"),
        (["27-Nov-2026", "3-jan-2026 10:30"], "day month year"),
        (["Nov. 27, 2026", "January 3, 2026, 10:30"], "month day, year"),
    ],
)
def test_dates_may_be_written_in_other_orders(texts, order):
    encoding, features = learned({"x": texts * 10})
    assert encoding.encoders[0].order == order
    assert order in encoding.told()[0]
    in_iso = [None if text is None else iso for text, iso in zip(texts, ["2026-11-27", "2026-01-03 10:30", None])]
    np.testing.assert_array_equal(features, learned({"x": in_iso * 10})[1])
    np.testing.assert_array_equal(encoding.features(table_of({"x": in_iso * 10})), features)
    with pytest.raises(ValueError, match="column 'x' had times when the model was fitted, and has 'tomorrow' now"):
        encoding.features(table_of({"x": [texts[0], "tomorrow"]}))
    arrays = {}
    assert TableEncoding.unpack(encoding.pack(arrays), arrays).encoders[0].order == order


@pytest.mark.parametrize(
    "texts",
    [
        ["1/2/2026", "3/4/2026"],  # of March or of April
        ["27.11.2026", "2026-11-27"],
        ["31.2.2026", "27.11.2026"],
        ["11/27/2026", "27/11/2026"],
        ["27 Nob 2026", "27 Nov 2026"],
        ["1/30/2026 13:00 PM", "1/30/2026 11:00 PM"],
    ],
)
def test_texts_that_are_no_dates_for_sure_are_levels(texts):
    assert isinstance(learned({"x": texts * 9})[0].encoders[0], Levels)


@pytest.mark.parametrize(
    "write",
    ["{:.1f}%".format, "{:.1f} %".format, lambda x: f"{x:.1f} €".replace(".", ","), "£{:.1f}".format,
     lambda x: f"{'-' if x < 0 else ''}${abs(x):,.1f}", lambda x: f"$ {x:.1f}"],
)  # fmt: skip
def test_numbers_may_have_a_sign_of_percent_or_a_currency(write):
    numbers = (100 * NUMBERS).round(1)
    encoding, features = learned({"x": list(map(write, numbers))})
    np.testing.assert_array_equal(features, learned({"x": numbers})[1])
    np.testing.assert_array_equal(encoding.features(table_of({"x": numbers})), features)


def test_numbers_with_several_signs_are_levels():
    assert isinstance(learned({"x": ["5 €", "5 $", "5%"] * 9})[0].encoders[0], Levels)


def test_columns_that_say_nothing_are_left_out():
    n = 40
    columns = {
        "": np.arange(n),
        "Unnamed: 0": np.random.default_rng(0).permutation(n),
        "constant": [7.0] * n,
        "same": ["x"] * n,
        "nothing": [None] * n,
        "name": [f"person {k} of many" for k in range(n)],
        "used": NUMBERS[:n],
    }
    found = told(columns)
    assert found[""].startswith("left out: an index")
    assert found["Unnamed: 0"].startswith("left out: an index")
    assert found["constant"] == found["same"] == "left out: all rows have the same value"
    assert found["nothing"] == "left out: no row has a value"
    assert found["name"] == "left out: no text occurs more than once"
    assert found["used"] == "numbers"
    encoding, features = learned(columns)
    assert encoding.columns.tolist() == [6]
    np.testing.assert_array_equal(encoding.features(table_of({"used": NUMBERS[:n]})), features)


def test_columns_are_found_by_name_and_others_ignored():
    encoding, features = learned({"a": NUMBERS, "b": NUMBERS**2})
    turned = table_of({"more": ["x"] * 200, "b": NUMBERS**2, "a": NUMBERS})
    np.testing.assert_array_equal(encoding.features(turned), features)
    with pytest.raises(ValueError, match=r"missing: 'b'; found 'a', 'c'"):
        table_of({"a": [1.0], "c": [2.0]}, encoding.needed)


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (NUMBERS, np.array(["2020-01-01"], "M8[D]"), "column 'x' had numbers when the model was fitted"),
        (np.datetime64("2020-01-01") + np.arange(9), [1.0], "column 'x' had times when the model was fitted"),
        (np.datetime64("2020-01-01") + np.arange(9), ["x"], "column 'x' had times when the model was fitted"),
    ],
)
def test_another_kind_of_column_is_refused_by_name(fitted, given, message):
    encoding, _ = learned({"x": fitted})
    with pytest.raises(ValueError, match=message):
        encoding.features(table_of({"x": given}))


def test_an_encoding_survives_as_json_and_arrays():
    rng = np.random.default_rng(0)
    n = 400
    columns = {
        "number": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        "level": rng.choice(["a", "b", None], n),
        "levels": [f"level {k}" for k in rng.integers(0, 50, n)],
        "time": np.datetime64("2020-01-01") + rng.integers(0, 999, n),
        "constant": [1] * n,
    }
    encoding, _ = learned(columns, rng.normal(size=(n, 2)), straight=True)
    arrays = {}
    facts = json.loads(json.dumps(encoding.pack(arrays)))
    read = TableEncoding.unpack(facts, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(read.features(table_of(columns)), encoding.features(table_of(columns)))
    assert read.told() == encoding.told()
    assert set(arrays) <= {"columns_float32", "columns_float64"}  # whose places take no more room with each column
    for part in (arrays["columns_float32"][:-1], np.append(arrays["columns_float32"], 0)):
        with pytest.raises(ValueError, match=r"reshape|more numbers"):
            TableEncoding.unpack(facts, arrays | {"columns_float32": part})
    facts["columns"][0]["straight"] = "yes"
    with pytest.raises(ValueError, match="column 'number' has parts that do not fit together"):
        TableEncoding.unpack(facts, arrays)
    del facts["columns"][0]["straight"]  # as in files from before there was one
    assert TableEncoding.unpack(facts, arrays).told() == encoding.told()
    assert TableEncoding.unpack(facts, arrays).encoders[0].n_straight == 0
