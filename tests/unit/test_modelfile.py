"""Model files: what was written comes back, anything else is one clear error, and a failed write leaves no trace."""

import builtins
import errno
import hashlib
import json
import os
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from slimsvm import whole_file
from slimsvm.modelfile import MAGIC, ModelFileError, read_model, write_model

HEADER = {"kernel": "rbf", "gamma": 0.1, "n": 3, "names": ["a", "ü"], "nested": {"none": None, "yes": True}}
ARRAYS = {
    "coef": np.array([[1.5, -2.0], [0.0, np.inf], [np.nan, 3.0]]),
    "basis": np.arange(6, dtype=np.float32).reshape(3, 2),
    "index": np.array([1, -2, 3]),
    "classes": np.array(["no", "yes, ü"]),
    "flags": np.array([True, False, True]),
    "scalar": np.array(2.5),
    "empty": np.zeros((0, 4)),
}


def assert_same(found, expected):
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.slim"


def test_comes_back(path):
    write_model(path, HEADER, ARRAYS)
    header, arrays = read_model(path)
    assert header == HEADER
    assert_same(arrays, ARRAYS)
    arrays["coef"][0, 0] = 7  # ours to change


def test_arrays_start_at_multiples_of_64_bytes(path):
    write_model(path, HEADER, ARRAYS)
    content = path.read_bytes()
    length = struct.unpack_from("<Q", content, 52)[0]
    entries = json.loads(content[60 : 60 + length])["arrays"]
    assert [entry["name"] for entry in entries] == list(ARRAYS)
    assert all(entry["offset"] % 64 == 0 for entry in entries)
    offset = entries[0]["offset"]
    assert content[offset : offset + 48] == ARRAYS["coef"].tobytes()


DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="?"),
    npst.unsigned_integer_dtypes(endianness="?"),
    npst.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    npst.unicode_string_dtypes(endianness="?", max_len=5),
)


@given(
    array=DTYPES.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0))), data=st.data()
)
def test_any_array_comes_back(tmp_path_factory, array, data):
    if array.ndim:
        array = array[:: data.draw(st.sampled_from([1, 2, -1]))].T
    path = tmp_path_factory.getbasetemp() / "any.slim"
    write_model(path, {}, {"array": array})
    found = read_model(path)[1]["array"]
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(header=st.dictionaries(st.text(), JSON, max_size=4))
def test_any_header_comes_back(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "header.slim"
    write_model(path, header, {})
    assert read_model(path) == (header, {})


def test_every_flipped_byte_is_found(path):
    write_model(path, {"kernel": "rbf"}, {"coef": np.arange(3.0), "names": np.array(["a", "b"])})
    content = path.read_bytes()
    for at in range(len(content)):
        for flip in (0x01, 0x80, 0xFF):
            altered = bytearray(content)
            altered[at] ^= flip
            path.write_bytes(altered)
            with pytest.raises(ModelFileError, match=r"model\.slim "):
                read_model(path)


def test_every_truncation_is_found(path):
    write_model(path, {"kernel": "rbf"}, {"coef": np.arange(3.0)})
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"truncated|not a slimsvm model file"):
            read_model(path)


def sealed(payload, version=1):
    return MAGIC + struct.pack("<I", version) + hashlib.sha256(payload).digest() + payload


def with_index(text):
    text = text.encode()
    return sealed(struct.pack("<QQ", 60 + len(text), len(text)) + text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a slimsvm model file"),
        (b"1 1:0.5 2:0.7\n" * 20, "is not a slimsvm model file"),
        (b"\x80\x04\x95 a pickle", "is not a slimsvm model file"),
        (MAGIC, "truncated"),
        (sealed(struct.pack("<QQ", 60, 0), version=4), "format version 4; this version of slimsvm reads 1, 2 and 3"),
        (with_index("{"), "not as a model file should be"),
        (with_index("[]"), "not as a model file should be"),
        (with_index("[" * 100_000), "not as a model file should be"),
        (with_index('{"header": {}}'), "not as a model file should be"),
        (with_index('{"header": {}, "arrays": [3]}'), "not as a model file should be"),
    ],
)
def test_what_is_not_a_model_file(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        read_model(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "|O"},
        {"dtype": "<f8,<f8"},
        {"dtype": "<M8[s]"},
        {"dtype": "<U99999999999999"},
        {"dtype": 8},
        {"shape": [10**9]},
        {"shape": [-1]},
        {"shape": [10**40]},
        {"shape": ["1"]},
        {"shape": [1.0]},
        {"offset": -64},
        {"offset": 10**30},
        {"offset": None},
    ],
)
def test_entries_that_no_writer_makes(path, entry):
    """Sealed with the right checksum: what is read from a file is trusted no further than that."""
    entry = {"name": "a", "dtype": "<f8", "shape": [1], "offset": 0} | entry
    path.write_bytes(with_index(json.dumps({"header": {}, "arrays": [entry]})))
    with pytest.raises(ModelFileError, match="not as a model file should be"):
        read_model(path)


def test_trailing_bytes_are_found(path):
    write_model(path, HEADER, ARRAYS)
    n = path.stat().st_size
    with open(path, "ab") as file:
        file.write(b"x")
    with pytest.raises(ModelFileError, match=f"it has {n + 1} bytes and should have {n}"):
        read_model(path)


def test_no_file(path):
    with pytest.raises(FileNotFoundError, match=r"model\.slim"):
        read_model(path)


@pytest.mark.parametrize(
    ("header", "error", "message"),
    [
        ({"a": {"b": [0.0, float("nan")]}}, ValueError, r"header\['a'\]\['b'\]\[1\] is nan"),
        ({"a": -np.inf}, ValueError, r"header\['a'\] is -inf"),
        ({"a": np.int64(3)}, TypeError, r"header\['a'\] is a int64"),
        ({"a": {1: 2}}, TypeError, r"header\['a'\] has the key 1"),
        ({"a": print}, TypeError, r"header\['a'\] is a builtin_function"),
    ],
)
def test_headers_that_json_does_not_hold(path, header, error, message):
    with pytest.raises(error, match=message):
        write_model(path, header, {})
    assert not path.exists()


@pytest.mark.parametrize(
    "array", [np.array([None, 1]), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, complex), np.array([b"a"])]
)
def test_arrays_that_a_file_does_not_hold(path, array):
    with pytest.raises(TypeError, match=rf"array 'a' has dtype {array.dtype}".replace("[", r"\[").replace("|", r"\|")):
        write_model(path, {}, {"a": array})
    assert not path.exists()


class FullDisk:
    """A file on a disk that fills up after some bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, part):
        if self.room < len(part):
            self.file.write(bytes(part)[: self.room])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(part)
        return self.file.write(part)


def old_model_is_alone_and_intact(path):
    assert os.listdir(path.parent) == [path.name]
    assert read_model(path)[0] == {"old": True}


@pytest.mark.parametrize("room", [0, 10, 100, 1000])
def test_disk_full_while_writing(path, monkeypatch, room):
    write_model(path, {"old": True}, {})
    real_open = builtins.open
    monkeypatch.setattr(
        whole_file,
        "open",
        lambda p, mode: FullDisk(real_open(p, mode), room) if "x" in mode else real_open(p, mode),
        raising=False,
    )
    with pytest.raises(OSError, match=r"No space left on device: '.*model\.slim'") as info:
        write_model(path, HEADER, {"big": np.zeros(1000)})
    assert info.value.errno == errno.ENOSPC
    old_model_is_alone_and_intact(path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_failure_of_the_last_steps(path, monkeypatch, call):
    write_model(path, {"old": True}, {})

    def fail(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match=r"model\.slim"):
        write_model(path, HEADER, ARRAYS)
    old_model_is_alone_and_intact(path)


def test_interrupt_leaves_no_trace(path, monkeypatch):
    write_model(path, {"old": True}, {})

    def interrupt(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_model(path, HEADER, ARRAYS)
    old_model_is_alone_and_intact(path)


LIMITED = """
import resource, sys
import numpy as np
from slimsvm.modelfile import write_model
sys.dont_write_bytecode = True  # Python would leave compiled modules cut off at the limit
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_model(sys.argv[1], {"new": True}, {"big": np.zeros(1_000_000)})
except OSError as error:
    print(type(error).__name__, error.filename)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the operating system has no limit on file sizes")
def test_real_limit_on_file_size(path):
    write_model(path, {"old": True}, {})
    run = subprocess.run([sys.executable, "-c", LIMITED, path], capture_output=True, text=True, check=True)
    assert run.stdout == f"OSError {path}\n", run.stderr
    old_model_is_alone_and_intact(path)


def test_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.model\.slim"):
        write_model(tmp_path / "nowhere" / "model.slim", {}, {})


def test_path_that_is_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder'"):
        write_model(tmp_path / "folder", {}, {})
    assert os.listdir(tmp_path) == ["folder"]


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_link_stays_a_link(tmp_path, path):
    write_model(path, {"old": True}, {})
    link = tmp_path / "latest.slim"
    link.symlink_to(path)
    write_model(link, {"new": True}, {})
    assert link.is_symlink()
    assert read_model(path)[0] == {"new": True}
