"""Data files: they are opened, compressed or not, and their numbers and labels are read from text; errors name the
file.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import math
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
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
    """The error for a data file or data set that cannot be used; the message says where, and what was found."""


class DataWarning(UserWarning):
    """The warning that a data file could have been meant otherwise; the message says what was done with it."""


def quote(value: bytes | str) -> str:
    """Return what was found in a file, in quotes, as one short printable piece."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return repr(text if len(text) <= 40 else text[:37] + "...")


def warn(text: str) -> None:
    """Say what was done with a file that could have been meant otherwise."""
    warnings.warn(text, DataWarning, stacklevel=2)


def is_archive(path: str | os.PathLike) -> bool:
    """Whether a file is an `.npz` file, by its first bytes; nothing is read of a pipe, which has them only once."""
    return os.path.isfile(os.fspath(path)) and read_start(path).startswith(b"PK")


def read_start(path: str | os.PathLike) -> bytes:
    """Return the first eight bytes of a file; a DataError names a file that is missing, empty or cannot be read."""
    try:
        with open(path, "rb") as file:
            start = file.read(8)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be read: {error.strerror or error}") from None
    if not start:
        raise DataError(f"{os.fspath(path)}: the file is empty")
    return start


def read_content(path: str | os.PathLike) -> bytes:
    """Return the whole content of a file, decompressed where its first bytes say gzip, bzip2 or xz."""
    name = os.fspath(path)
    try:
        content = Path(path).read_bytes()  # once: the file may be a pipe
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror or error}") from None
    for magic, (kind, decompress, _) in _DECOMPRESSORS.items():
        if content.startswith(magic):
            try:
                content = decompress(content)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise DataError(f"{name}: the {kind} data are damaged or cut short: {error}") from None
    content = in_utf_8(content, name)
    if not content.strip():
        raise DataError(f"{name}: the file is empty")
    if b"\x00" in content:
        raise DataError(f"{name}: found a zero byte, which no text file has; accepted are LIBSVM text, CSV and .npz")
    return content


def encoding_of(start: bytes) -> str:
    """The encoding of a text that begins so: UTF-16 if it says so, as Excel's "Unicode text" does, else UTF-8."""
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


def in_utf_8(content: bytes, name: str) -> bytes:
    """A text without byte order mark in UTF-8, whose characters are not looked at if it was in UTF-8 before."""
    if encoding_of(content) == "utf-8-sig":
        return content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: begins as UTF-16 text, but is none: {error.reason}") from None


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


# Whole numbers up to this one are all numbers of float64.
EXACT = 2.0**53

_WHOLE = re.compile(r"[+-]?[0-9]+(\.0*)?")

_PADDED = re.compile(r"[+-]?0[0-9]+(\.0*)?")


def number(field: str) -> float | None:
    """Return the number in a field; None if it holds no number."""
    try:
        return strict_float(field)
    except ValueError:
        return None


def strict_float(field: str) -> float:
    """Parse a number as other programs read it, too: Python alone accepts 1_000."""
    if "_" in field:
        raise ValueError
    return float(field)


def labels_of(texts: list[str], name: str, lines: Sequence[int]) -> np.ndarray:
    """Return labels of rows: int64 if all are whole numbers, float64 if all are numbers, else the texts as they stand.

    Texts stay where numbers would not tell them apart or lose digits: 007 and 7, +1 and 1, 1e3 and 1000, whole numbers
    beyond int64. (1.0 is the same label as 1.) A DataError names the line, of ``lines``, of a number that is not
    finite.
    """
    different = set(texts)
    values = {text: value for text in different if (value := number(text)) is not None}
    if len(values) < len(different):
        return np.array(texts)
    if not all(map(math.isfinite, values.values())):
        at = next(k for k, text in enumerate(texts) if not math.isfinite(values[text]))
        raise DataError(f"{name}, line {lines[at]}: found {quote(texts[at])} as the label, which must be finite")
    if not are_texts(different, name):
        exact = as_whole(different)
        if exact is not None:
            return np.array([exact[text] for text in texts], np.int64)
        return np.array([values[text] for text in texts], np.float64)
    return np.array(texts)


def are_texts(different: Iterable[str], name: str) -> bool:
    """Whether labels, which are numbers, have to stay texts; where two would be one number, this warns."""
    seen: dict[float | int, str] = {}
    whole = True
    padded, equal = [], []
    for text in sorted(different):
        value = float(text)
        whole = whole and value == math.floor(value)
        exact = int(text.partition(".")[0]) if _WHOLE.fullmatch(text) else value
        if _PADDED.fullmatch(text):
            padded.append(text)
        form = re.sub(r"\.0*$", "", text)
        if seen.setdefault(exact, form) != form:
            equal.append((seen[exact], form))
        if isinstance(exact, int) and not -(2**63) <= exact < 2**63:
            padded.append(text)
    if not whole:  # numbers to predict, no classes
        return False
    if equal and not padded:
        one, other = equal[0]
        warn(f"{name}: found the labels {quote(one)} and {quote(other)}, which are one number: they are taken as "
             "texts, and are different labels")  # fmt: skip
    return bool(equal or padded)


def as_whole(different: Iterable[str]) -> dict[str, int] | None:
    """Return labels as exact whole numbers; None if one is not whole."""
    whole = {}
    for text in different:
        if _WHOLE.fullmatch(text):
            whole[text] = int(text.partition(".")[0])
        elif float(text) == math.floor(float(text)) and abs(float(text)) < EXACT:
            whole[text] = int(float(text))
        else:
            return None
    return whole
