"""Files that shrink or change while they are read: an error that names the block, and nothing half-written."""

import bz2
import gzip
import mmap
import os
import pickle

import numpy as np
import pytest

from block_rows_cases import pieces
from slimsvm import SVC, Blocks
from slimsvm.cli import main
from slimsvm.datasets import read_libsvm_blocks
from slimsvm.rows import as_rows
from slimsvm.rows.arrays import Stamp

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N = 40_000  # of some hundred kilobytes: pages of the file are gone when it shrinks
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = np.where(X[:, 0] * X[:, 1] > 0, 1, 2)


def estimator():
    return SVC(max_basis=5, random_state=0, max_iter=2)


def mapped(path, mode="r"):
    np.save(path, X)
    return np.load(path, mmap_mode=mode)


SHORTER = r"the file of a memory map has become shorter while it was in use: it has 200000 bytes, 480128 are mapped"


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_a_memory_map_whose_file_shrinks_does_not_end_the_process(mode, tmp_path):
    path = tmp_path / "rows.npy"
    rows = Blocks(pieces(mapped(path, mode), 7), names=[f"part {i}" for i in range(7)])
    rows.slice(0, N, np.float32)
    os.truncate(path, 200_000)
    with pytest.raises(ValueError, match=rf"block 0 \(part 0\): {SHORTER}"):
        estimator().fit(rows, Y)
    with pytest.raises(ValueError, match=r"block 6 \(part 6\): the file of a memory map has become shorter"):
        rows.take(np.array([N - 1]), np.float32)


def through_a_memoryview(values):
    return np.frombuffer(memoryview(values.reshape(-1)), values.dtype).reshape(values.shape)


@pytest.mark.parametrize("work", ["fit", "predict", "take", "slice"])
@pytest.mark.parametrize("seen", [np.asarray, through_a_memoryview], ids=["array", "memoryview"])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_so_it_is_without_blocks(mode, seen, work, tmp_path):
    clf, whole = estimator().fit(X[:2000], Y[:2000]), seen(mapped(tmp_path / "rows.npy", mode))
    rows = as_rows(whole)
    os.truncate(tmp_path / "rows.npy", 200_000)
    calls = {
        "fit": lambda: estimator().fit(whole, Y),
        "predict": lambda: clf.predict(whole),
        "take": lambda: rows.take(np.array([3]), np.float64),
        "slice": lambda: rows.slice(3, 4, np.float64),
    }
    with pytest.raises(ValueError, match=SHORTER):
        calls[work]()


def test_maps_that_are_whole_and_those_of_no_file():
    for values in (X, np.frombuffer(bytearray(X.tobytes()), np.float32).reshape(X.shape)):
        np.testing.assert_array_equal(as_rows(values).slice(0, 5, np.float32), X[:5])
    nowhere = mmap.mmap(-1, X.nbytes)
    values = np.frombuffer(nowhere, np.float32).reshape(X.shape)
    values[:] = X
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(as_rows(X[:10]))).slice(0, 5, np.float32), X[:5])
    np.testing.assert_array_equal(as_rows(values).slice(0, 5, np.float32), X[:5])


def table(rows=X):
    import pyarrow

    return pyarrow.table({"a": rows[:, 0], "b": rows[:, 1], "c": rows[:, 2], "y": Y[: len(rows)]})


def later(path):
    """The same file, written a moment later, whatever the clock of the file system shows."""
    found = os.stat(path)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1_000_000))


def test_parquet_of_the_same_size_and_other_values(tmp_path):
    parquet, path = pytest.importorskip("pyarrow.parquet"), tmp_path / "rows.parquet"
    plain = {"row_group_size": 5_000, "compression": "none", "use_dictionary": False}
    parquet.write_table(table(), path, **plain)
    rows, y = Blocks.from_parquet(path, label="y", cache_bytes=1)
    estimator().fit(rows, y)
    parquet.write_table(table(X[::-1]), path, **plain)
    later(path)
    with pytest.raises(ValueError, match=r"block \d+ \(.*row group \d+\) could not be made: the file .* has changed"):
        estimator().fit(rows, y)


@pytest.mark.parametrize("n_bytes", [0, 4, 100_000])
def test_parquet_that_is_cut_off(n_bytes, tmp_path):
    parquet, path = pytest.importorskip("pyarrow.parquet"), tmp_path / "rows.parquet"
    parquet.write_table(table(), path, row_group_size=5_000)
    rows, y = Blocks.from_parquet(path, label="y", cache_bytes=1)
    os.truncate(path, n_bytes)
    with pytest.raises((ValueError, RuntimeError), match=r"block \d+ \(.*row group \d+\) could not be made"):
        estimator().fit(rows, y)
    os.unlink(path)
    with pytest.raises(RuntimeError, match=r"block \d+ \(.*row group \d+\) could not be made: .*rows\.parquet"):
        estimator().fit(rows, y)


def text(rows=X[:3000]):
    return "".join(f"{y} 1:{a:.3f} 2:{b:.3f} 3:{c:.3f}\n" for (a, b, c), y in zip(rows, Y)).encode()


@pytest.mark.turns("packed")
@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress], ids=["plain", "gz", "bz2"])
@pytest.mark.parametrize("change", ["cut off", "other values", "gone"])
def test_text(packed, change, tmp_path):
    path = tmp_path / "rows.txt"
    path.write_bytes(packed(text()))
    rows, y = read_libsvm_blocks(path, block_bytes=1_000, cache_bytes=1)
    if change == "cut off":
        os.truncate(path, 7_000)
    elif change == "gone":
        os.unlink(path)
    else:
        path.write_bytes(packed(text().replace(b"1:0", b"1:5")))
        later(path)
    with pytest.raises((ValueError, RuntimeError), match=r"block \d+ \(.*rows\.txt.*\) could not be made"):
        estimator().fit(rows, y)


def test_the_command_writes_nothing_half(tmp_path, monkeypatch, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table(X[:9_000]), tmp_path / "rows.parquet", row_group_size=1_000)
    check, seen = Stamp.check, []

    def check_later(self):
        seen.append(self)
        if len(seen) == 14:  # in the pass after that for the labels
            later(self.path)
        check(self)

    monkeypatch.setattr(Stamp, "check", check_later)
    model = tmp_path / "model.slim"
    model.write_bytes(b"earlier")
    command = ["train", str(tmp_path / "rows.parquet"), str(model), "--label", "y", "--max-basis", "5", "--quiet"]
    assert main(command) == 1
    assert "has changed since it was first read" in capsys.readouterr().err
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.slim", "rows.parquet"]
    assert model.read_bytes() == b"earlier"
