"""Opening data files, compressed or not, and the error and the warning that all readers have."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

_DECOMPRESSORS: dict[bytes, tuple[str, Callable[[bytes], bytes], Callable[..., Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress, gzip.open),
    b"BZh": ("bzip2", bz2.decompress, bz2.open),
    b"\xfd7zXZ\x00": ("xz", lzma.decompress, lzma.open),
}
COMPRESSED_SUFFIXES = {".gz", ".bz2", ".xz"}


class DataError(ValueError):
    """A data file or data set that cannot be used; the message says which, where in it, and what was found."""


class DataWarning(UserWarning):
    """A data file could have been meant otherwise; the message says what was done with it."""


def quote(value: bytes | str) -> str:
    """Return what was found in a file, in quotes, as one short printable piece."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return repr(text if len(text) <= 40 else text[:37] + "...")


def warn(text: str) -> None:
    """Say what was done with a file that could have been meant otherwise."""
    warnings.warn(text, DataWarning, stacklevel=2)


def read_start(path: str | os.PathLike, n_bytes: int = 8) -> bytes:
    """Return the first bytes of a file; a DataError names a file that is missing, empty or cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(n_bytes)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    if not start:
        raise DataError(f"{os.fspath(path)}: the file is empty")
    return start


def read_content(path: str | os.PathLike) -> bytes:
    """Return the whole content of a file, decompressed where its first bytes say gzip, bzip2 or xz."""
    name = os.fspath(path)
    start = read_start(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}") from None
    for magic, (kind, decompress, _) in _DECOMPRESSORS.items():
        if start.startswith(magic):
            try:
                content = decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise DataError(f"{name}: the {kind} data are damaged or cut short: {error}") from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise DataError(f"{name}: the file is empty")
    if b"\x00" in content:
        raise DataError(f"{name}: found a zero byte, which no text file has; accepted are LIBSVM text, CSV and .npz")
    return content


def open_content(path: str | os.PathLike) -> IO[bytes]:
    """Open a file to be read in pieces, decompressed where its first bytes say gzip, bzip2 or xz."""
    start = read_start(path)
    for magic, (_, _, open_it) in _DECOMPRESSORS.items():
        if start.startswith(magic):
            return open_it(path)
    return open(path, "rb")


def read_arrays(path: str | os.PathLike, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of an `.npz` file whose names begin with `prefix`; nothing pickled is ever loaded."""
    try:
        # Opened here, because NumPy leaves a file open that turns out not to be what it should.
        with open(path, "rb") as file:
            if file.read(2) != b"PK":
                raise ValueError("it is no zip archive")
            file.seek(0)
            arrays = np.load(file, allow_pickle=False)
            return {key: arrays[key] for key in arrays.files if key.startswith(prefix)}
    except (ValueError, OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{os.fspath(path)}: cannot be read as .npz: {error}") from None
