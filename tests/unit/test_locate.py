"""Where data files are looked for, what is downloaded and what is said when one is nowhere."""

import bz2
import dataclasses
import hashlib

import numpy as np
import pytest

from slimsvm.datasets import DataError, available, find, fit_scaling, load, loading
from slimsvm.datasets.catalogue import SOURCES


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """No data anywhere: an empty working directory, cache and checkout."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.delenv("SLIMSVM_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "__file__", str(tmp_path / "a" / "b" / "c" / "d" / "loading.py"))
    return tmp_path


def test_folders_are_searched_in_order(nowhere, monkeypatch):
    checkout = nowhere / "a"
    (checkout / "b" / "c" / "d").mkdir(parents=True)
    monkeypatch.setattr(loading, "__file__", str(checkout / "src" / "slimsvm" / "datasets" / "loading.py"))
    checkout.joinpath("pyproject.toml").touch()
    (nowhere / "home").mkdir()
    (nowhere / "env").mkdir()
    monkeypatch.setenv("SLIMSVM_DATA", str(nowhere / "env"))
    (nowhere / "deeper" / "work").mkdir(parents=True)
    monkeypatch.chdir(nowhere / "deeper" / "work")
    expected = [
        nowhere / "home",
        nowhere / "env",
        nowhere / "deeper" / "shared" / "data",
        nowhere / "shared" / "data",
        nowhere / "cache" / "slimsvm",
    ]
    assert loading.search_folders(nowhere / "home") == expected
    for folder in reversed(expected):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mnist.npz").touch()
        assert find("mnist", nowhere / "home") == (folder / "mnist.npz",)


def test_an_installed_package_does_not_look_beside_its_own_folder(nowhere):
    assert loading.search_folders() == [nowhere / "shared" / "data", nowhere / "cache" / "slimsvm"]


def test_a_named_folder_must_exist(nowhere, monkeypatch):
    with pytest.raises(DataError, match=r"data_home is '.*missing', which is not a folder"):
        load("adult", nowhere / "missing")
    monkeypatch.setenv("SLIMSVM_DATA", str(nowhere / "missing"))
    with pytest.raises(DataError, match=r"SLIMSVM_DATA is '.*missing', which is not a folder"):
        find("adult")


def test_available_lists_every_set_and_where_it_is(nowhere):
    assert [info.name for info in available()] == list(SOURCES)
    assert not any(info.found or info.paths for info in available())
    assert find("adult") is None
    folder = nowhere / "shared" / "data"
    folder.mkdir(parents=True)
    (folder / "a9a.bz2").touch()
    (adult,) = (info for info in available() if info.name == "adult")
    assert (adult.found, adult.paths) == (False, (folder / "a9a.bz2",))
    assert find("adult") is None
    (folder / "a9a.t.bz2").touch()
    (adult,) = (info for info in available() if info.name == "adult")
    assert (adult.found, adult.paths) == (True, find("adult"))
    assert (adult.n_train, adult.n_test, adult.n_features, adult.n_classes) == (32_561, 16_281, 123, 2)


def test_unknown_names(nowhere):
    with pytest.raises(DataError, match="found no data set named 'iris'; known are adult, banana, "):
        load("iris")
    with pytest.raises(DataError, match="banana has the realisations 1 to 10, found 11"):
        find("banana-11")
    for name in ("adult-1", "banana-", "banana-x", "mnist-5"):
        with pytest.raises(DataError, match="found no data set named"):
            find(name)


def test_a_set_that_is_nowhere_says_where_it_comes_from(nowhere):
    with pytest.raises(DataError, match=r"mnist\.npz is not on this machine and has no address .*LeCun.*SLIMSVM_DATA"):
        load("mnist")
    with pytest.raises(DataError, match=r"a9a\.bz2 is not on this machine; it comes from UCI Adult.* SLIMSVM_DATA"):
        load("adult", download=False)


def test_every_address_has_a_checksum_and_every_file_is_used():
    files = {file for source in SOURCES.values() for file in source.files}
    assert set(loading.URLS) <= set(loading.SHA256) == files


@pytest.fixture
def page(nowhere, monkeypatch):
    """Two small files in place of Adult's, with addresses on this machine and the checksums to fit."""
    text = {"a9a.bz2": b"-1 3:1 11:1\n+1 5:1\n", "a9a.t.bz2": b"-1 1:1\n"}
    for name, content in text.items():
        (nowhere / name).write_bytes(content)
        monkeypatch.setitem(loading.URLS, name, (nowhere / name).as_uri())
        monkeypatch.setitem(loading.SHA256, name, hashlib.sha256(bz2.compress(content, 9)).hexdigest())
    return nowhere


@pytest.mark.parametrize("pack", [bytes, bz2.compress, lambda text: text.replace(b"\n", b"\r\n")])
def test_download_checks_and_keeps(page, pack):
    (page / "a9a.bz2").write_bytes(pack((page / "a9a.bz2").read_bytes()))
    found = load("adult")
    assert found.X_train.shape == (2, 123)
    assert found.source == (page / "cache/slimsvm/a9a.bz2", page / "cache/slimsvm/a9a.t.bz2")
    (page / "a9a.bz2").unlink()
    assert load("adult", verify=True).X_train.shape == (2, 123)
    assert sorted(path.name for path in (page / "cache" / "slimsvm").iterdir()) == ["a9a.bz2", "a9a.t.bz2"]


def test_download_of_other_content_is_not_kept(page):
    (page / "a9a.bz2").write_bytes(b"-1 3:1 11:1\n-1 5:1\n")
    with pytest.raises(DataError, match=r"content of a9a\.bz2 has SHA-256 [0-9a-f]{64}, expected is .* SLIMSVM_DATA"):
        load("adult")
    assert not (page / "cache").exists()


def test_download_that_fails(page):
    (page / "a9a.bz2").unlink()
    with pytest.raises(DataError, match=r"a9a\.bz2: the download from file:.* failed: .*; it comes from UCI Adult"):
        load("adult")


def test_verify_compares_local_files(page):
    folder = page / "shared" / "data"
    folder.mkdir(parents=True)
    for name in ("a9a.bz2", "a9a.t.bz2"):
        (folder / name).write_bytes(bz2.compress(b"+1 3:1\n"))
    assert load("adult").X_train.shape == (1, 123)
    with pytest.raises(DataError, match="expected is"):
        load("adult", verify=True)


def test_local_files_have_the_checksums_on_record():
    paths = {path for name in SOURCES for path in find(name) or ()}
    if not paths:
        pytest.skip("no data set is on this machine (put the files in the folder SLIMSVM_DATA names)")
    for path in paths:
        loading.verify_file(path)


def test_downloads_are_compared_after_packing_as_the_files_on_record_were(data):
    for path in data("adult").source[:1]:
        assert loading._pack(bz2.decompress(path.read_bytes()).replace(b"\n", b"\r\n")) == path.read_bytes()


def test_scaling_is_checked(page, monkeypatch):
    with pytest.raises(DataError, match=r"scaling must be None or one of .*'minmax'.*, found 'log'"):
        load("adult", scaling="log")
    with pytest.raises(DataError, match="scaling must be None or one of"):
        fit_scaling(np.ones((2, 2)), "log")
    words = {"X_train": np.array([["a"]])}
    monkeypatch.setitem(SOURCES, "adult", dataclasses.replace(SOURCES["adult"], read=lambda paths: words))
    with pytest.raises(DataError, match="adult holds words, scaling='standard' does not apply to them"):
        load("adult", scaling="standard")
