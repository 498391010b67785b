"""Files of named arrays and a JSON header. Nothing in a file is ever executed.

Layout, integers little-endian:

    magic             8 bytes  "slimsvm" and a line feed
    format version    uint32   1, 2 where rows are scaled first, 3 where they are encoded first (docs/model_files.md)
    SHA-256          32 bytes  of everything that follows
    file size         uint64   bytes in all
    header length     uint64
    header                     JSON: {"header": what the caller gave, "arrays": [{name, dtype, shape, offset}, ...]}
    arrays                     raw, C order, little-endian, each at a multiple of 64 bytes from the start of the file
"""

import hashlib
import json
import math
import os
import re
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from slimsvm.whole_file import write_whole

MAGIC = b"slimsvm\n"
VERSIONS = 1, 2, 3

_BEFORE_HASH = struct.Struct("<8sI32s")
_AFTER_HASH = struct.Struct("<QQ")
_PREFIX = _BEFORE_HASH.size + _AFTER_HASH.size
_ALIGNMENT = 64
_DTYPES = re.compile(r"\|[biu]1|<[iu][248]|<f[248]|<U[1-9][0-9]*")


class ModelFileError(ValueError):
    """A file is not a model file, is of a newer format, or was truncated or altered."""


def write_model(
    path: str | os.PathLike, header: dict[str, Any], arrays: dict[str, np.ndarray], version: int = 1
) -> None:
    """Write a model file: whole, or not at all.

    See `slimsvm.whole_file.write_whole`.

    Parameters
    ----------
    path : str or path-like
    header : dict
        JSON values: dicts with str keys, lists, str, int, finite float, bool, None.
    arrays : dict of str to ndarray
        Integers, floats up to 64 bits, booleans, fixed-width strings; any shape, order and byte order.
    version : {1, 2, 3}, default=1
        Readers of earlier versions alone shall refuse the file, since they would misread what it says.

    Raises
    ------
    TypeError, ValueError
        The header or an array holds what a file cannot; the message says where.
    OSError
        The file could not be written (`FileNotFoundError`, `PermissionError`, disk full, ...); it names `path`.

    Examples
    --------
    >>> import tempfile, os, numpy as np
    >>> path = os.path.join(tempfile.mkdtemp(), "model.slim")
    >>> write_model(path, {"kernel": "rbf"}, {"coef": np.ones((2, 1))})
    >>> read_model(path)
    ({'kernel': 'rbf'}, {'coef': array([[1.],
           [1.]])})
    """
    write_whole(path, model_parts(header, arrays, version))


def model_parts(header: dict[str, Any], arrays: dict[str, np.ndarray], version: int = 1) -> list[bytes | memoryview]:
    """Return the bytes of the file that `write_model` writes, in pieces; that function lists the errors."""
    _check_json(header, "header")
    return _parts(header, {name: _storable(name, array) for name, array in arrays.items()}, version)


def read_model(path: str | os.PathLike) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file that `write_model` wrote.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    header : dict
    arrays : dict of str to ndarray

    Raises
    ------
    ModelFileError
        It is not a model file, has a newer format, was truncated or altered, or comes through a pipe.
    OSError
        It cannot be read, `FileNotFoundError` if there is none.
    """
    with open(os.fspath(path), "rb") as file:  # a number would be a file that is open, and be closed
        if not file.seekable():
            raise ModelFileError(f"{path} is a pipe: a model file is read where it lies")
        start = file.read(_PREFIX)
        if start[: len(MAGIC)] != MAGIC:
            raise ModelFileError(f"{path} is not a slimsvm model file")
        if len(start) < _PREFIX:
            raise ModelFileError(f"{path} is truncated: {len(start)} bytes are less than a model file begins with")
        _, version, digest = _BEFORE_HASH.unpack_from(start)
        size, header_length = _AFTER_HASH.unpack_from(start, _BEFORE_HASH.size)
        if version not in VERSIONS:
            known = " and ".join(", ".join(map(str, VERSIONS)).rsplit(", ", 1))
            raise ModelFileError(f"{path} has format version {version}; this version of slimsvm reads {known}")
        found = os.fstat(file.fileno()).st_size
        if found != size:
            raise ModelFileError(f"{path} is truncated or altered: it has {found} bytes and should have {size}")
        file.seek(0)
        content = np.fromfile(file, np.uint8)
    if hashlib.sha256(content[_BEFORE_HASH.size :].data).digest() != digest:
        raise ModelFileError(f"{path} was altered: its checksum does not match")
    with damage_named(f"{path} is not as a model file should be"):
        index = json.loads(content[_PREFIX : _PREFIX + header_length].tobytes())
        header, entries = index["header"], index["arrays"]
        arrays = {entry["name"]: _array(content, entry) for entry in entries}
        if not isinstance(header, dict) or len(arrays) != len(entries) or not all(type(n) is str for n in arrays):
            raise ValueError("the header is no object, or arrays have no names of their own")
        return header, arrays


@contextmanager
def damage_named(sentence: str) -> Iterator[None]:
    """Make a ModelFileError of every error that a file which contradicts itself leads to."""
    try:
        yield
    except (ModelFileError, OSError):
        raise
    except Exception as error:
        raise ModelFileError(f"{sentence} ({str(error) or type(error).__name__})") from error


def _parts(header: dict[str, Any], arrays: dict[str, np.ndarray], version: int) -> list[bytes | memoryview]:
    """Return the bytes of the file in order, in pieces."""
    # The offsets are part of the header whose length they depend on: it is padded to the size of the longest possible.
    entries: list[dict[str, Any]] = [
        {"name": name, "dtype": array.dtype.str, "shape": array.shape, "offset": 10**18}
        for name, array in arrays.items()
    ]
    room = len(json.dumps({"header": header, "arrays": entries}, allow_nan=False))
    at = _aligned(_PREFIX + room)
    for entry, array in zip(entries, arrays.values(), strict=True):
        entry["offset"] = at
        at = _aligned(at + array.nbytes)
    text = json.dumps({"header": header, "arrays": entries}, allow_nan=False).encode("ascii").ljust(room)
    size = at
    parts: list[bytes | memoryview] = [_AFTER_HASH.pack(size, len(text)), text]
    at = _PREFIX + len(text)
    for entry, array in zip(entries, arrays.values(), strict=True):
        parts += [bytes(entry["offset"] - at), array.reshape(-1).view(np.uint8).data]
        at = entry["offset"] + array.nbytes
    parts.append(bytes(size - at))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return [_BEFORE_HASH.pack(MAGIC, version, digest.digest()), *parts]


def _aligned(n: int) -> int:
    return -(-n // _ALIGNMENT) * _ALIGNMENT


def _storable(name: str, array: np.ndarray) -> np.ndarray:
    """Return the array in C order, little-endian, of a type that files hold."""
    array = np.asarray(array)
    dtype = array.dtype.newbyteorder("<")
    if not _DTYPES.fullmatch(dtype.str):
        raise TypeError(
            f"array {name!r} has dtype {array.dtype}; a model file holds integers and floats up to 64 bits, booleans "
            "and fixed-width strings"
        )
    return np.asarray(array, dtype, order="C")


def _array(content: np.ndarray, entry: dict[str, Any]) -> np.ndarray:
    """Return the array that an entry of the header describes."""
    if not _DTYPES.fullmatch(entry["dtype"]):
        raise ValueError(f"dtype {entry['dtype']!r}")
    dtype = np.dtype(entry["dtype"])
    shape = tuple(entry["shape"])
    first, n_bytes = entry["offset"], math.prod(shape) * dtype.itemsize
    if not all(type(n) is int for n in (first, *shape)):
        raise ValueError(f"array {entry['name']!r} has no whole numbers as its shape and place")
    if min((first, *shape)) < 0 or max((first + n_bytes, *shape[:1])) > len(content):
        raise ValueError(f"array {entry['name']!r} lies outside the file")
    part = content[first : first + n_bytes]
    if dtype.kind == "b" and part.max(initial=0) > 1:
        raise ValueError(f"array {entry['name']!r} holds truth values that are neither 0 nor 1")
    if dtype.kind == "U" and part.view("<u4").max(initial=0) > sys.maxunicode:
        raise ValueError(f"array {entry['name']!r} holds texts of what are no letters")
    raw = part.view(dtype).reshape(shape)
    return raw.astype(dtype.newbyteorder("="), copy=False)


def _check_json(value: Any, where: str) -> None:
    """Raise an error that says where a header holds what JSON does not give back unchanged."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}; keys must be str")
            _check_json(item, f"{where}[{key!r}]")
    elif isinstance(value, list | tuple):
        for k, item in enumerate(value):
            _check_json(item, f"{where}[{k}]")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{where} is {value}; a model file holds finite numbers only")
    elif not (value is None or isinstance(value, str | int | float)):
        raise TypeError(f"{where} is a {type(value).__name__}, which is not a JSON value")
