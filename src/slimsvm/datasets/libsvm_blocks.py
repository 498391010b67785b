"""LIBSVM text of any size, read block by block: `read_libsvm_blocks`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, Any, Literal

import numpy as np
from scipy.sparse import csr_array

from slimsvm.datasets.files import DataError, open_content
from slimsvm.datasets.readers import DENSE_FROM
from slimsvm.datasets.svmlight import ZeroBased, label_tokens, labels_of_rows, parse_svmlight
from slimsvm.rows import Blocks
from slimsvm.rows.files import Stamp

BLOCK_BYTES, CACHE_BYTES = 1 << 24, 256_000_000
# Columns that are allowed for while the number of features is not known.
MOST_FEATURES = np.iinfo(np.int32).max


class _TextFile:
    """A file that stays open, so that reading on takes no decompression of what is before."""

    def __init__(self, path: str | os.PathLike):
        self.name = os.fspath(path)
        self._file: IO[bytes] | None = None
        self._stamp: Stamp | None = None

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def pieces(self, n_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Offset and content of pieces of about that size, which end with a line."""
        with open_content(self.name) as file:
            self._stamp, offset = Stamp.of(self.name), 0
            while content := file.read(n_bytes):
                content += file.readline()
                yield offset, content
                offset += len(content)

    def read(self, offset: int, n_bytes: int) -> bytes:
        """The content from there on."""
        if self._file is None:
            self._file = open_content(self.name)
        self._file.seek(offset)
        content = self._file.read(n_bytes)
        if len(content) < n_bytes:
            raise DataError(f"{self.name}: ends after {offset + len(content)} bytes of text, had {offset + n_bytes}")
        if self._stamp is not None:
            self._stamp.check()
        return content


@dataclass(frozen=True)
class _Piece:
    """Lines of a file, and what was found in them."""

    file: _TextFile
    offset: int
    n_bytes: int
    line: int
    n_rows: int
    n_stored: int
    first_index: int
    last_index: int

    @property
    def name(self) -> str:
        return self.file.name if self.line == 0 else f"{self.file.name} from line {self.line + 1} on"

    def content(self) -> bytes:
        """The lines, read once more."""
        return _unmarked(self.file.read(self.offset, self.n_bytes), self.offset)

    def rows(self, n_features: int, zero_based: bool, dense: bool) -> Any:
        """The rows, read once more."""
        X, _ = _parsed(self.content(), self.offset, self.line, self.file.name, n_features, zero_based)
        return X.toarray() if dense else X


def _unmarked(content: bytes, offset: int) -> bytes:
    """The text without a mark of its byte order."""
    return content.removeprefix(b"\xef\xbb\xbf") if offset == 0 else content


def _parsed(
    content: bytes, offset: int, line: int, name: str, n_features: int, zero_based: ZeroBased
) -> tuple[csr_array, np.ndarray]:
    """Rows and labels of a piece, of which ``line`` lines are before."""
    if b"\x00" in content:
        raise DataError(f"{name}: found a zero byte, which no LIBSVM text has")
    text = _unmarked(content, offset)
    try:
        X, y, _ = parse_svmlight(text, name, n_features, zero_based, False)
    except DataError:
        parse_svmlight(b"\n" * line + text, name, n_features, zero_based, False)  # counts from the file's first line
        raise
    return X, y


def _has_rows(content: bytes) -> bool:
    return any(line.removeprefix(b"\xef\xbb\xbf").split(b"#", 1)[0].strip() for line in content.splitlines())


def read_libsvm_blocks(
    paths: str | os.PathLike | Iterable[str | os.PathLike],
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    *,
    dense: bool | Literal["auto"] = False,
    block_bytes: int = BLOCK_BYTES,
    cache_bytes: int = CACHE_BYTES,
) -> tuple[Blocks, np.ndarray]:
    r"""Rows and labels of LIBSVM text that need not fit in memory.

    The text is read once to find the labels, the number of features and where blocks begin, and again in every pass
    over the rows. Compressed text is decompressed from the start of its file whenever a block lies before the last
    one read.

    Parameters
    ----------
    paths : str or path-like, or several
        Files, one after another; compressed (gzip, bzip2, xz) or not.
    n_features : int or None, default=None
        Number of columns, if the files may lack the last ones.
    zero_based : {"auto", True, False}
        Whether indices count from 0. "auto": they do if index 0 occurs in any of the files.
    dense : {False, True, "auto"}
        Whether blocks are arrays instead of CSR; "auto": if at least one value in 20 is non-zero.
    block_bytes : int, default=16_777_216
        Size of the text of one block, about.
    cache_bytes : int, default=256_000_000
        See `slimsvm.Blocks`.

    Returns
    -------
    X : Blocks
        float64.
    y : ndarray of shape (n,)
        int64 if all labels are whole numbers, otherwise float64.

    Raises
    ------
    DataError
        A ValueError; names the file, the line and what was found.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from slimsvm.datasets import read_libsvm_blocks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tiny.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = read_libsvm_blocks(path)
    ...     block = X.slice(0, 2, float)
    >>> X, y.tolist()
    (Blocks(2 rows, 3 features, 1 CSR blocks of float64), [1, -1])
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    pieces, labels, different = _gone_through(
        [_TextFile(path) for path in several], n_features, zero_based, block_bytes
    )
    if not pieces:
        raise DataError(f"{', '.join([os.fspath(path) for path in several])}: hold no rows")
    stored = [piece for piece in pieces if piece.n_stored]
    if zero_based == "auto":
        zero_based = any(piece.first_index == 0 for piece in stored)
    first = 0 if zero_based else 1
    width = max((piece.last_index for piece in stored), default=first - 1) + 1 - first
    if n_features is None and width == 0:
        raise DataError(f"{pieces[0].file.name}: holds labels but not one feature")
    n, n_stored = sum(piece.n_rows for piece in pieces), sum(piece.n_stored for piece in pieces)
    d = n_features or width
    for piece in stored:
        if piece.last_index - first >= d:
            piece.rows(d, zero_based, False)  # says in which line
    is_dense = dense is True or (dense == "auto" and n_stored >= DENSE_FROM * n * d)
    X = Blocks(
        [partial(piece.rows, d, zero_based, is_dense) for piece in pieces],
        n_rows=[piece.n_rows for piece in pieces],
        names=[piece.name for piece in pieces],
        n_stored=n_stored,
        cache_bytes=cache_bytes,
    )
    X.files = tuple(str(os.fspath(path)) for path in several)
    y = np.concatenate(labels)
    tokens = partial(_label_tokens, pieces)
    return X, y if different is None else labels_of_rows(y, different, tokens, pieces[0].file.name)


def _label_tokens(pieces: list[_Piece]) -> Iterator[bytes]:
    """The label of every row as the text has it, read once more."""
    for piece in pieces:
        yield from label_tokens(piece.content())


def _gone_through(
    files: list[_TextFile], n_features: int | None, zero_based: ZeroBased, block_bytes: int
) -> tuple[list[_Piece], list[np.ndarray], set[bytes] | None]:
    """All pieces that have rows, and their labels; if all are whole numbers, the different ones as they are written."""
    pieces, labels = [], []
    different: set[bytes] | None = set()
    columns = MOST_FEATURES if n_features is None or zero_based == "auto" else n_features
    for file in files:
        line = 0
        for offset, content in file.pieces(block_bytes):
            if _has_rows(content):
                X, y = _parsed(content, offset, line, file.name, columns, zero_based is not False)
                indices = _indices(X, zero_based)
                pieces.append(_Piece(file, offset, len(content), line, len(y), X.nnz, *indices))
                labels.append(y)
                if different is not None:
                    is_whole = (y == np.floor(y)).all()
                    different = different.union(label_tokens(_unmarked(content, offset))) if is_whole else None
            line += content.count(b"\n")
    return pieces, labels, different


def _indices(X: csr_array, zero_based: ZeroBased) -> tuple[int, int]:
    """The smallest and the largest index as the text has them."""
    first = 0 if zero_based is not False else 1
    return (int(X.indices.min()) + first, int(X.indices.max()) + first) if X.nnz else (0, 0)
