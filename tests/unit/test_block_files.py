"""`Blocks` of files: Parquet, Arrow tables and LIBSVM text, read again whenever they are asked for."""

import gzip

import numpy as np
import pytest

from slimsvm import SVC, Blocks
from slimsvm.datasets import DataError, read_data, read_libsvm_blocks
from slimsvm.rows.arrays import Stamp

ROWS = (10 * np.random.default_rng(0).normal(size=(100, 3))).astype(np.float32)
LABELS = np.where(ROWS[:, 0] > 0, "yes", "no")
WEIGHTS = np.arange(100) % 3 + 0.5


# ---- Parquet and Arrow


def table_of(X=ROWS, y=LABELS, **others):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {name: X[:, j] for j, name in enumerate("abc"[: X.shape[1]])}
    return pyarrow.table(columns | {"label": y[: len(X)], "weight": WEIGHTS[: len(X)]} | others)


def write(table, path, rows_of_group=30):
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, path, row_group_size=rows_of_group)
    return path


def test_parquet_is_read_by_row_groups(tmp_path):
    write(table_of(ROWS[:70]), tmp_path / "b-1.parquet")
    write(table_of(ROWS[70:], LABELS[70:], weight=WEIGHTS[70:]), tmp_path / "b-2.parquet")
    write(table_of(ROWS[:0]), tmp_path / "b-3.parquet")
    X, y, weights = Blocks.from_parquet(tmp_path, label="label", weight="weight", cache_bytes=1)
    assert X.bounds.tolist() == [0, 30, 60, 70, 100, 100]  # an empty row group
    assert (X.feature_names, X.dtype) == (["a", "b", "c"], np.float32)
    np.testing.assert_array_equal(X.slice(0, 100, np.float32), ROWS)
    np.testing.assert_array_equal(X.take(np.array([99, 3, 65, 3]), np.float64), ROWS[[99, 3, 65, 3]])
    np.testing.assert_array_equal(y, LABELS)
    np.testing.assert_array_equal(weights, WEIGHTS)
    files = [tmp_path / "b-2.parquet", str(tmp_path / "b-1.parquet")]
    X = Blocks.from_parquet(files, columns=["c", "a"])
    np.testing.assert_array_equal(X.slice(0, 100, np.float32), np.vstack([ROWS[70:], ROWS[:70]])[:, [2, 0]])


def test_tables_are_read_by_batches():
    table = table_of(ROWS)
    for tables in (table, [table.slice(0, 20), table.slice(20)], table.to_batches(max_chunksize=17)):
        X, y = Blocks.from_arrow(tables, columns=["a", "b", "c"], label="label")
        np.testing.assert_array_equal(X.slice(0, 100, np.float32), ROWS)
        np.testing.assert_array_equal(y, LABELS)
    with pytest.raises(TypeError, match="tables must be tables or record batches of pyarrow, found ndarray"):
        Blocks.from_arrow([ROWS])


def test_same_bits_from_parquet(tmp_path):
    X, y, weights = Blocks.from_parquet(write(table_of(), tmp_path / "a.parquet"), label="label", weight="weight")
    one = SVC(max_basis=10, random_state=0).fit(ROWS, LABELS, WEIGHTS)
    other = SVC(max_basis=10, random_state=0).fit(X, y, weights)
    assert other.basis_coef_.tobytes() == one.basis_coef_.tobytes()
    assert (other.predict(X) == one.predict(ROWS)).all()


def test_columns_are_of_numbers_of_one_type_without_an_index(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "flag": [True, False], "y": pandas.Categorical(["u", "v"])}, index=[7, 8])
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "a.parquet")
    X, y = Blocks.from_parquet(tmp_path / "a.parquet", label="y")
    assert (X.feature_names, X.dtype, y.tolist()) == (["a", "flag"], np.int64, ["u", "v"])
    np.testing.assert_array_equal(X.slice(0, 2, np.float64), [[1, 1], [2, 0]])


def nulls(n, at):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.array([None if i == at else i for i in range(n)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"numbers \(booleans, integers, floats\), found the columns 'label' \(string\): convert them to numbers"),
        ({"label": "lable"}, r"there is no column 'lable': there are \['a', 'b', 'c', 'label', 'weight'\]"),
        ({"columns": ["a", "z"]}, "there is no column 'z'"),
        ({"columns": ["a", "label"], "label": "label"}, "columns must name features, each once, without"),
        ({"columns": []}, "columns must name features"),
        ({"columns": ["a"], "weight": "weight"}, "weight='weight' goes with a label"),
        ({"label": "label", "weight": "label"}, "label and weight must be two columns, found 'label' for both"),
        ({"label": "weight", "weight": "label"}, "weights must be numbers, found string in 'label'"),
    ],
    ids=str,
)
def test_columns_that_are_none_are_named(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Blocks.from_parquet(write(table_of(), tmp_path / "a.parquet"), **options)


def test_values_that_are_none_are_named_by_row(tmp_path):
    X = ROWS.copy()
    X[74, 1] = np.nan
    path = write(table_of(X), tmp_path / "a.parquet", 10)
    with pytest.raises(ValueError, match=r"NaN at row 74, column 'b', .* row 4 of block 7 \(.*a\.parquet, row group 7"):
        SVC(max_basis=5).fit(*Blocks.from_parquet(path, label="label"))
    write(table_of(c=nulls(100, 74)), path, 10)
    with pytest.raises(ValueError, match=r"block 7 \(.*could not be made: column 'c' is null at row 74"):
        SVC(max_basis=5).fit(*Blocks.from_parquet(path, label="label"))
    write(table_of(label=nulls(100, 74)), path, 10)
    with pytest.raises(ValueError, match=r"block 7 \(.*: column 'label' is null at row 74"):
        Blocks.from_parquet(path, label="label")


def test_files_that_do_not_belong_together_are_named(tmp_path):
    write(table_of(), tmp_path / "1.parquet")
    write(table_of(c=np.arange(100)), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"block 4 \(.*2\.parquet, row group 0\).*'c' is int64, expected is float"):
        Blocks.from_parquet(tmp_path, label="label")
    write(table_of().drop_columns(["b"]), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"block 4 \(.*2\.parquet, row group 0\).*'b' is missing"):
        Blocks.from_parquet(tmp_path, label="label")
    table = table_of()
    write(table.append_column("a", table["a"]), tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"block 4 \(.*2\.parquet, row group 0\).*'a' is there twice"):
        Blocks.from_parquet(tmp_path, label="label")
    with pytest.raises(ValueError, match=r"the parts hold no rows: .*none\.parquet"):
        Blocks.from_parquet(write(table[:0], tmp_path / "none.parquet"), label="label")
    (tmp_path / "none.parquet").unlink()
    (tmp_path / "2.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match=r"2\.parquet: cannot be read as Parquet"):
        Blocks.from_parquet(tmp_path, label="label")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"empty: the folder has no file whose name ends in \.parquet"):
        Blocks.from_parquet(tmp_path / "empty")


def test_a_parquet_file_that_shrinks_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(Stamp, "check", lambda stamp: None)  # as where nobody sees that the file was written to
    path = write(table_of(), tmp_path / "a.parquet")
    X, y = Blocks.from_parquet(path, label="label", cache_bytes=1)
    write(table_of(ROWS[:95]), path)
    with pytest.raises(ValueError, match=r"block 3 \(.*a\.parquet, row group 3\) has 5 rows, expected are 10"):
        SVC(max_basis=5).fit(X, y)
    write(table_of(ROWS[:50]), path)
    with pytest.raises(ValueError, match=r"block 1 .*could not be made: the file has 2 row groups now, and had 4"):
        X.slice(30, 31, np.float32)


# ---- LIBSVM text

COUNTS = np.random.default_rng(1).integers(-2, 3, (100, 6)).clip(0)
SIGNS = np.where(COUNTS.sum(axis=1) > 2, 1, -1)


def text_of(rows=COUNTS, labels=SIGNS, first=1):
    lines = (
        f"{y:+d} " + " ".join(f"{j + first}:{v}" for j, v in enumerate(x) if v)
        for x, y in zip(rows, labels, strict=False)
    )
    return "# made for tests\n" + "\n".join(lines) + "\n\n# the end\n"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("dense", [False, True, "auto"])
@pytest.mark.parametrize("compressed", [False, True])
def test_text_is_read_in_blocks(compressed, dense, first, tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, part in zip(paths, (slice(0, 60), slice(60, 100)), strict=True):
        content = text_of(COUNTS[part], SIGNS[part], first).encode()
        path.write_bytes(gzip.compress(content) if compressed else content)
    X, y = read_libsvm_blocks(paths, dense=dense, block_bytes=200, cache_bytes=1)
    assert X.n_blocks == 7
    assert (X.shape, X.is_sparse, X.dtype) == (COUNTS.shape, dense is False, np.float64)
    assert X.n_stored == (np.count_nonzero(COUNTS) if X.is_sparse else COUNTS.size)
    np.testing.assert_array_equal(y, SIGNS, strict=True)
    for index in (np.arange(100), np.array([99, 0, 61, 0, 30])):
        block = X.take(index, np.float64)
        np.testing.assert_array_equal(block.toarray() if X.is_sparse else block, COUNTS[index])
    if not compressed:
        whole, labels = read_data(paths[0])
        X, y = read_libsvm_blocks(paths[0], block_bytes=300)
        np.testing.assert_array_equal(X.slice(0, 60, np.float64).toarray(), whole.toarray())
        np.testing.assert_array_equal(y, labels, strict=True)


def test_one_file_counts_from_0_and_so_do_the_others(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1 3:1\n-1 2:1\n")
    (tmp_path / "b.txt").write_text("1 0:1\n-1 \n")
    X, _ = read_libsvm_blocks([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert X.slice(0, 4, np.float64).toarray().tolist() == [[0, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("line", "options", "message"),
    [
        ("1 2:x", {}, r"a\.txt, line 104: found 'x' where the value of feature 2"),
        ("1 2:1 1:1", {}, "found feature index 1 after 2, indices must increase"),
        ("1 2:nan", {}, "found 'nan' as the value of feature 2, which must be finite"),
        ("1 9:1", {"n_features": 6}, "found feature index 9, but the last of 6 features has index 6"),
        ("1 0:1", {"zero_based": False}, "found feature index 0, indices count from 1 here"),
        ("1 1:\0", {}, "found a zero byte"),
    ],
    ids=str,
)
def test_lines_at_fault_are_named(line, options, message, tmp_path):
    (tmp_path / "a.txt").write_text(text_of() + line + "\n")
    with pytest.raises(DataError, match=message):
        read_libsvm_blocks(tmp_path / "a.txt", block_bytes=200, **options)


def test_text_without_rows_or_features(tmp_path):
    (tmp_path / "a.txt").write_text("# nothing\n")
    with pytest.raises(DataError, match="hold no rows"):
        read_libsvm_blocks(tmp_path / "a.txt")
    (tmp_path / "a.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match="holds labels but not one feature"):
        read_libsvm_blocks(tmp_path / "a.txt")
    with pytest.raises(DataError, match=r"b\.txt: cannot be read"):
        read_libsvm_blocks(tmp_path / "b.txt")


@pytest.mark.parametrize("compressed", [False, True])
def test_text_that_shrinks_is_found_out(compressed, tmp_path, monkeypatch):
    monkeypatch.setattr(Stamp, "check", lambda stamp: None)

    def put(content):
        (tmp_path / "a.txt").write_bytes(gzip.compress(content.encode()) if compressed else content.encode())

    put(text_of())
    X, y = read_libsvm_blocks(tmp_path / "a.txt", block_bytes=200, cache_bytes=1)
    put(text_of(COUNTS[:50]))
    with pytest.raises(ValueError, match=r"block \d+ \(.*a\.txt from line \d+ on\) could not be made: .*ends after"):
        SVC(max_basis=5).fit(X, y)
