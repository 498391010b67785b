"""read_data on .npz files, on files that cannot be read at all, and on options that make no sense."""

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from input_for_tests import check_fault
from slimsvm.datasets import DataError, read_data


@pytest.fixture
def save(tmp_path):
    def save(**arrays):
        np.savez_compressed(tmp_path / "rows.npz", **arrays)
        return tmp_path / "rows.npz"

    return save


CSR = {
    "data": np.array([1.0, 2.0]),
    "indices": np.array([1, 0]),
    "indptr": np.array([0, 1, 2]),
    "shape": np.array([2, 2]),
}


def test_npz_dense_keeps_its_type(save):
    X, y = read_data(save(X=np.arange(6, dtype=np.int16).reshape(3, 2), y=np.array(["a", "b", "c"])))
    assert X.dtype == np.int16
    np.testing.assert_array_equal(X, [[0, 1], [2, 3], [4, 5]])
    assert y.tolist() == ["a", "b", "c"]


def test_npz_sparse_other_target_and_none(save):
    X, y = read_data(save(**CSR, kind=np.array([1, 0])), target="kind")
    assert isinstance(X, csr_array)
    np.testing.assert_array_equal(X.toarray(), [[0, 1], [2, 0]])
    np.testing.assert_array_equal(y, [1, 0])
    assert read_data(save(X=np.ones((2, 2))), target=False)[1] is None


@pytest.mark.parametrize(
    ("arrays", "options", "sentence"),
    [
        ({"X": np.ones((2, 2))}, {}, "found ['X'], the labels 'y' are missing"),
        ({"A": np.ones(2)}, {}, "found ['A'], needed are X, or data, indices, indptr and shape"),
        ({"X": np.ones(2), "y": np.ones(2)}, {}, "found X of shape (2,), a matrix is needed"),
        ({"X": np.ones((0, 2)), "y": np.ones(0)}, {}, "found X of shape (0, 2), it is empty"),
        ({"X": np.array([["a"]]), "y": np.ones(1)}, {}, "found X of type <U1, numbers are needed"),
        ({"X": np.ones((2, 2)), "y": np.ones(3)}, {}, "found labels 'y' of shape (3,) for 2 rows"),
        (
            {"X": np.array([[1, 2], [3, np.nan]]), "y": np.ones(2)},
            {},
            "row 1, column 1: found nan, values must be finite",
        ),
        ({"X": np.ones((2, 1)), "y": np.array([1, np.inf])}, {}, "row 1: found inf as the label"),
        ({"X": np.ones((2, 2)), "y": np.ones(2)}, {"n_features": 3}, "found 2 columns, 3 are expected"),
        ({"X": np.array([[None]]), "y": np.ones(1)}, {}, "cannot be read as .npz"),
        (CSR | {"y": np.ones(2), "indices": np.array([5, 0])}, {}, "are no CSR matrix"),
        (CSR | {"y": np.ones(2), "data": np.array([1, np.inf])}, {}, "row 1, column 0: found inf"),
    ],
)
def test_npz_faults(save, arrays, options, sentence):
    check_fault(save(**arrays), sentence, **options)


def test_npz_runs_nothing_from_the_file(save, tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    with pytest.raises(DataError):
        read_data(save(X=np.array([[Trap()]], dtype=object), y=np.ones(1)))
    assert not (tmp_path / "sprung").exists()


# ---- files that cannot be read at all


@pytest.mark.parametrize(
    ("content", "name", "sentence"),
    [
        (b"", "rows.txt", "the file is empty"),
        (b"", "rows.npz", "the file is empty"),
        (b" \n\n", "rows.csv", "the file is empty"),
        (gzip.compress(b"", mtime=0), "rows.gz", "the file is empty"),
        (gzip.compress(b"1 1:1\n" * 1000, mtime=0)[:-9], "rows.gz", "the gzip data are damaged or cut short"),
        (bz2.compress(b"1 1:1\n")[:-4], "rows.bz2", "the bzip2 data are damaged or cut short"),
        (lzma.compress(b"1 1:1\n")[:-4], "rows.xz", "the xz data are damaged or cut short"),
        (b"1 1:1\n\x00\n", "rows", "found a zero byte"),
        (b"PK\x03\x04 no zip", "rows.npz", "cannot be read as .npz"),
        (b"1 1:1\n", "rows.npz", "found '1 1:1\\n' where the zip archive of an .npz file begins"),
    ],
)
def test_file_faults(write, content, name, sentence):
    check_fault(write(content, name), sentence)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataError, match="nowhere: cannot be read: No such file"):
        read_data(tmp_path / "nowhere")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_data(tmp_path)


def test_every_cut_of_an_npz_file_is_one_error(save, tmp_path):
    whole = save(X=np.arange(6.0).reshape(3, 2), y=np.arange(3)).read_bytes()
    path = tmp_path / "cut.npz"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError):
            read_data(path)


def test_an_npz_file_with_a_bit_turned_round_is_one_error_or_none(save, tmp_path):
    whole = save(X=np.arange(6.0).reshape(3, 2), y=np.arange(3)).read_bytes()
    path = tmp_path / "altered.npz"
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        try:
            X, _ = read_data(path)
        except DataError:
            continue
        np.testing.assert_array_equal(X, np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"n_features": 0}, "n_features must be None or at least 1, found 0"),
        ({"zero_based": "maybe"}, "zero_based must be 'auto', True or False, found 'maybe'"),
        ({"target": 3}, "target must be None, False or the name of a column, found 3"),
        ({"dense": "maybe"}, "dense must be 'auto', True or False, found 'maybe'"),
    ],
)
def test_options_are_checked(write, option, sentence):
    with pytest.raises(DataError) as caught:
        read_data(write("1 1:1\n"), **option)
    assert str(caught.value) == sentence
