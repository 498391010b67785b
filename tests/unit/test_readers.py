"""read_data: what it accepts, and the one sentence it says about everything else."""

import bz2
import csv
import gzip
import io
import lzma
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from input_for_tests import check_fault
from slimsvm.datasets import DataError, has_queries, libsvm_text, read_data, read_libsvm_blocks

SMALL = "+1 1:0.5 3:2\n-1 2:1 # a comment\n\n# another\n+1\n"
SMALL_X = [[0.5, 0, 2], [0, 1, 0], [0, 0, 0]]


# ---- LIBSVM text


def test_svmlight_rows_and_labels(write):
    X, y = read_data(write(SMALL))
    assert isinstance(X, csr_array)
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    np.testing.assert_array_equal(X.toarray(), SMALL_X)
    np.testing.assert_array_equal(y, [1, -1, 1])


@pytest.mark.turns("name")
@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("name", ["rows", "rows.txt", "rows.bz2"])
def test_compression_is_seen_in_the_content_whatever_the_name(write, compress, name):
    X, _ = read_data(write(compress(SMALL.encode()), name))
    np.testing.assert_array_equal(X.toarray(), SMALL_X)


@pytest.mark.parametrize("text", [SMALL.replace("\n", "\r\n"), "\ufeff" + SMALL, SMALL.rstrip("\n"), "\n\n" + SMALL])
def test_line_ends_and_byte_order_mark_do_not_matter(write, text):
    X, y = read_data(write(text))
    np.testing.assert_array_equal(X.toarray(), SMALL_X)
    np.testing.assert_array_equal(y, [1, -1, 1])


def test_labels_that_are_not_whole_stay_floats(write):
    _, y = read_data(write("0.5 1:1\n2 1:1\n"))
    assert y.dtype == np.float64
    np.testing.assert_array_equal(y, [0.5, 2])


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("1 1:5 2:6\n", {}, [[5, 6]]),
        ("1 0:5 2:6\n", {}, [[5, 0, 6]]),
        ("1 1:5 2:6\n", {"zero_based": True}, [[0, 5, 6]]),
        ("1 1:5 2:6\n", {"zero_based": False}, [[5, 6]]),
        ("1 1:5\n", {"n_features": 3}, [[5, 0, 0]]),
        ("1 1:5\n", {"n_features": 3, "zero_based": True}, [[0, 5, 0]]),
        ("1\n2\n", {"n_features": 2}, [[0, 0], [0, 0]]),
    ],
)
def test_indices_and_width(write, text, options, expected):
    X, _ = read_data(write(text), **options)
    np.testing.assert_array_equal(X.toarray(), expected)


@pytest.mark.parametrize("blank", [" ", "\t", "  "])
def test_blanks_after_a_colon(write, blank):
    """LIBSVM's "protein" has them."""
    spaced = SMALL.replace(":", f":{blank}")
    X, y = read_data(write(spaced))
    expected = read_data(write(SMALL))
    np.testing.assert_array_equal(X.toarray(), expected[0].toarray())
    assert y.tolist() == expected[1].tolist()
    X, y = read_libsvm_blocks(write(spaced))
    np.testing.assert_array_equal(X.slice(0, len(y), float).toarray(), expected[0].toarray())
    assert has_queries(write(f"1 qid:{blank}3 1:{blank}2\n"))
    assert read_data(write(f"1 qid:{blank}3 1:{blank}2\n"), query_id=True)[2].tolist() == [3]


def test_query_ids(write):
    path = write("1 qid:3 1:5\n0 qid:7 2:6\n")
    X, y = read_data(path)
    np.testing.assert_array_equal(X.toarray(), [[5, 0], [0, 6]])
    X, y, qid = read_data(path, query_id=True)
    np.testing.assert_array_equal(qid, [3, 7])
    np.testing.assert_array_equal(y, [1, 0])


@pytest.mark.parametrize(("dense", "is_dense"), [(False, False), (True, True), ("auto", False)])
def test_dense_on_request(write, dense, is_dense):
    X, _ = read_data(write("1 1:1 21:1\n1 30:1\n0\n"), dense=dense)
    assert isinstance(X, np.ndarray) == is_dense
    X, _ = read_data(write(SMALL), dense="auto")
    np.testing.assert_array_equal(X, SMALL_X)


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("1 1:1\n-1 1:abc\n", {}, "line 2: found 'abc' where the value of feature 1, a number, belongs"),
        ("1 1:1\n-1 1:1e\n", {}, "line 2: found '1e' where the value"),
        ("1 1:\n", {}, "line 1: found '' where the value"),
        ("1 1:1\nspam 1:1\n", {}, "line 2: found 'spam' where the label, a number, belongs"),
        ("1 1:1\n\n# x\n1 1:1 x:1\n", {}, "line 4: found 'x' where a feature's index, an integer, belongs"),
        ("1 1.5:1\n", {}, "line 1: found '1.5' where a feature's index"),
        ("1 1:1\n1 1:1 2:nan\n", {}, "line 2: found 'nan' as the value of feature 2, which must be finite"),
        ("1 1:1\n1 1:-inf\n", {}, "line 2: found '-inf' as the value of feature 1, which must be finite"),
        ("1 1:1\n1 1:1e999\n", {}, "line 2: found '1e999' as the value of feature 1, which must be finite"),
        ("nan 1:1\n", {}, "line 1: found 'nan' as the label, which must be finite"),
        ("1 1:1\n1 3:1 2:1\n", {}, "line 2: found feature index 2 after 3, indices must increase"),
        ("1 2:1 2:1\n", {}, "line 1: found feature index 2 after 2, indices must increase"),
        ("1 -1:1\n", {}, "line 1: found the negative feature index -1"),
        ("1 1:1\n1 0:1\n", {"zero_based": False}, "line 2: found feature index 0, indices count from 1 here"),
        ("1 1:1 3\n", {}, "line 1: found '3' where index:value belongs (no colon)"),
        ("1 2 3\n", {}, "line 1: found '2' where index:value belongs (no colon)"),
        ("1 1:1\n1:1 2:1\n", {}, "line 2: the label is missing: the line begins with '1:1'"),
        ("1 1:1\n1,2 1:1\n", {}, "line 2: found several labels, '1,2', where one number belongs"),
        ("1 1:1\n1 4:1\n", {"n_features": 3}, "line 2: found feature index 4, but the last of 3 features has index 3"),
        ("1 3:1\n", {"n_features": 3, "zero_based": True}, "line 1: found feature index 3, but the last of 3 features"),
        ("1 0:1 3:1\n", {"n_features": 3}, "line 1: found feature index 3, but the last of 3 features has index 2"),
        ("1 1:1\n1 1:1_0\n", {}, "line 2: found '1_0' where the value of feature 1"),
        ("1 1_0:1\n", {}, "line 1: found '1_0' where a feature's index"),
        ("1 99999999999999999999:1\n", {}, "line 1: found feature index 99999999999999999999, which is too large"),
        (
            "1 1:1\n1 2147483648:1\n",
            {},
            "line 2: found feature index 2147483648, which is too large: the largest is 2147483647",
        ),
        ("1 1:1\n1 4294967297:1\n", {}, "line 2: found feature index 4294967297, which is too large"),
        (
            "1 qid:1 1:1\n1 qid:9223372036854775808 1:1\n",
            {},
            "line 2: found 'qid:9223372036854775808', which is too large",
        ),
        (
            "1 qid:-9223372036854775809 1:1\n",
            {"query_id": True},
            "line 1: found 'qid:-9223372036854775809', which is too",
        ),
        ("1 1:1\n1 1: 2:1\n", {}, "line 2: found '2:1' where the value of feature 1"),
        ("1 1:1\n1 1: # none\n", {}, "line 2: found '' where the value of feature 1"),
        ("1 1 :1\n", {}, "line 1: found '1' where index:value belongs"),
        ("1 qid:x 1:1\n", {}, "line 1: found 'qid:x', where qid: and an integer belong"),
        ("1 qid:1 1:1\n1 1:1\n", {"query_id": True}, "line 2: qid: is missing"),
        ("1 1:1\n", {"target": "label"}, "target='label' does not apply to LIBSVM text"),
        ("# nothing\n", {}, "holds no rows"),
        ("1\n-1\n", {}, "holds labels but not one feature"),
    ],
)
def test_svmlight_faults(write, text, options, sentence):
    check_fault(write(text), sentence, **options)


def test_a_long_find_is_shortened(write):
    with pytest.raises(DataError, match=r"found 'x{37}\.\.\.' where the label"):
        read_data(write("x" * 1000 + " 1:1\n"))


def test_underscore_in_a_comment_is_no_fault(write):
    X, _ = read_data(write("1 1:2 # made_by hand\n"))
    np.testing.assert_array_equal(X.toarray(), [[2]])


def test_sound_text_is_not_gone_through_line_by_line(write, monkeypatch):
    def too_slow(*args):
        raise AssertionError("the slow search ran")

    monkeypatch.setattr(libsvm_text, "_raise_first_fault", too_slow)
    read_data(write(SMALL), n_features=3)
    with pytest.raises(AssertionError, match="the slow search ran"):
        read_data(write("1 1:x\n"))


@pytest.mark.parametrize("fault", ["1 1:x", "1 1:1_0", "1 1:nan", "1 9:1", "1 0:1", "1 1:1"])
def test_the_line_is_right_in_every_block(fault):
    for at in range(1, 13):
        lines = ["1 qid:1 1:1 8:1"] * 13
        lines[3] = "# a_comment"
        lines[at - 1] = fault
        text = "\n".join(lines).encode()
        with pytest.raises(DataError, match=f"line {at}: "):
            libsvm_text._raise_first_fault(text, "rows.txt", 8, False, True, block_lines=4)


finite = st.floats(allow_nan=False, allow_infinity=False)
sparse_rows = st.lists(
    st.tuples(finite, st.dictionaries(st.integers(1, 50), finite, max_size=6)), min_size=1, max_size=8
)


@given(sparse_rows)
def test_svmlight_round_trip(rows):
    lines = [" ".join([repr(y), *(f"{k}:{x[k]!r}" for k in sorted(x))]) for y, x in rows]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.write_text("\n".join(lines))
        X, y = read_data(path, n_features=50, zero_based=False, dense=True)
    expected = np.zeros((len(rows), 50))
    for at, (_, x) in enumerate(rows):
        for k, value in x.items():
            expected[at, k - 1] = value
    np.testing.assert_array_equal(X, expected)
    np.testing.assert_array_equal(y, [y for y, _ in rows])


# ---- CSV


@pytest.mark.parametrize(
    ("text", "options", "X_expected", "y_expected"),
    [
        ("a,b,c\n1,2,3\n4,5,6\n", {}, [[1, 2], [4, 5]], [3, 6]),
        ("a,y,c\n1,2,3\n4,5,6\n", {}, [[1, 3], [4, 6]], [2, 5]),
        ("Label,b,c\n1,2,3\n", {}, [[2, 3]], [1]),
        ("a,y,c\n1,2,3\n", {"target": "a"}, [[2, 3]], [1]),
        ("a,b\n1,spam\n2,eggs\n", {}, [[1], [2]], ["spam", "eggs"]),
        ("a,b\n1,1.5\n2,2\n", {}, [[1], [2]], [1.5, 2]),
        ("a;b\n1;2\n", {}, [[1]], [2]),
        ("a\tb\n1\t2\n", {}, [[1]], [2]),
        ('"a, first",b\n"1",x_y\n', {}, [[1]], ["x_y"]),
        ("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", {}, [[1], [3]], [2, 4]),
        (" a , b \n 1 , 2 \n", {"target": "b"}, [[1]], [2]),
        ("a,b\n1,2\n", {"target": False}, [[1, 2]], None),
        ("a,b\n1,2\n", {"target": False, "n_features": 2}, [[1, 2]], None),
    ],
)
@pytest.mark.parametrize("name", ["rows.csv", "rows"])
def test_csv(write, name, text, options, X_expected, y_expected):
    X, y = read_data(write(text, name), **options)
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, X_expected)
    if y_expected is None:
        assert y is None
    else:
        assert y.tolist() == y_expected
        assert y.dtype.kind == np.array(y_expected).dtype.kind


def test_compressed_csv_and_one_column_of_labels(write):
    X, y = read_data(write(gzip.compress(b"a,b\n1,2\n"), "rows.csv.gz"))
    np.testing.assert_array_equal(X, [[1]])
    np.testing.assert_array_equal(y, [2])


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("a,b,y\n1,2,0\n1,abc,0\n", {}, "line 3, column 'b': found 'abc' where a number belongs"),
        ("a,b,y\n1,,0\n", {}, "line 2, column 'b': found an empty field where a number belongs"),
        ("a,y,b\n1,0,2\n\n1,0,1_0\n", {}, "line 4, column 'b': found '1_0' where a number belongs"),
        ("a,b,y\n1,2,0\n1,nan,0\n", {}, "line 3, column 'b': found nan, values must be finite"),
        ("a,b,y\n\n1,-inf,0\n", {}, "line 3, column 'b': found -inf, values must be finite"),
        ("a,y\n1,0\n1,inf\n", {}, "line 3: found 'inf' as the label, which must be finite"),
        ("a,b,y\n1,2,0\n1,2\n", {}, "line 3: found 2 fields, the header has 3"),
        ("a,b,y\n1,2,0,9\n", {}, "line 2: found 4 fields, the header has 3"),
        ("a,y\n1,0\n1,\n", {}, "line 3: the label is missing (column 'y')"),
        ("a,b\n1,2\n", {"target": "c"}, "found no column named 'c' for the label; the columns are 'a', 'b'"),
        ("a,y,label\n1,2,3\n", {}, "found the columns 'y' and 'label'; say with target which one is the label"),
        ("a,a,b\n1,2,3\n", {}, "line 1: found two columns named 'a'"),
        ("a,b,y\n1,2,0\n", {"n_features": 3}, "found 2 feature columns, 3 are expected"),
        ("a,b\n", {}, "holds a header but no rows"),
        ("y\n1\n", {}, "holds the label's column 'y' but not one feature"),
        ('a,b\n"1,2\n', {}, "not CSV: unexpected end of data"),
        ('a,b\n1,2\n"1"x,2\n', {}, "line 3: not CSV"),
        ("a,b\n1,2\n", {"query_id": True}, "query_id needs LIBSVM text"),
        (b"a,b\n1,\xff\n", {}, "line 2: found the byte 0xff, not UTF-8 text"),
    ],
)
def test_csv_faults(write, text, options, sentence):
    check_fault(write(text, "rows.csv"), sentence, **options)


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)


@given(st.lists(st.tuples(finite, finite, words.map("w{}".format)), min_size=1, max_size=8))
def test_csv_round_trip(rows):
    text = io.StringIO(newline="")
    csv.writer(text).writerows([("first", "second", "kind"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(text.getvalue(), encoding="utf-8", newline="")
        X, y = read_data(path)
    np.testing.assert_array_equal(X, [row[:2] for row in rows])
    assert y.tolist() == [row[2] for row in rows]
