"""LIBSVM text: one row per line, `label index:value index:value ...`, indices increasing, `#` starts a comment.
Blanks may follow a colon, as LIBSVM itself has it.

scikit-learn's compiled parser does the reading. When it fails, or something looks wrong with what it read, the lines
are read again, first in blocks by the same parser, then the lines of the block at fault one by one, to say which line
it is and what was found there. `read_libsvm_blocks` reads text of any size block by block.
"""

from __future__ import annotations

import codecs
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import IO, Any, Literal

import numpy as np
from scipy.sparse import csr_array

from slimsvm.datasets.files import EXACT, DataError, are_texts, as_whole, open_content, quote, warn
from slimsvm.rows import Blocks
from slimsvm.rows.arrays import Stamp

ZeroBased = Literal["auto"] | bool

_PARSER_ERRORS = (ValueError, OverflowError, IndexError, TypeError)
# Indices are int32 in sparse rows, queries int64.
_LAST_INDEX, _QUERIES = 2**31 - 1, range(-(2**63), 2**63)


def parse_svmlight(
    content: bytes, name: str, n_features: int | None, zero_based: ZeroBased, query_id: bool
) -> tuple[csr_array, np.ndarray, np.ndarray | None]:
    """Parse LIBSVM text: return rows (csr_array of float64), labels (float64), and queries (int64) or None.

    ``name`` is the file's, for messages. Without ``n_features`` there are as many columns as the largest index says;
    ``zero_based="auto"`` counts indices from 0 if index 0 occurs. With ``query_id`` every row must have a `qid:`, which
    is skipped otherwise. A DataError names the line of any other text.
    """
    content = _without_blanks(content)
    try:
        X, y, qid = _parse_fast(content)
    except _PARSER_ERRORS as error:
        _raise_first_fault(content, name, n_features, zero_based, query_id)
        raise DataError(f"{name}: not LIBSVM text: {error}") from None
    if zero_based == "auto":
        zero_based = X.nnz > 0 and int(X.indices.min()) == 0
    first = 0 if zero_based else 1
    if _is_doubtful(content, X, y, qid if query_id else None, n_features, first):
        _raise_first_fault(content, name, n_features, zero_based, query_id)
    if len(y) == 0:
        raise DataError(f"{name}: holds no rows (comments only)")
    width = int(X.indices.max()) + 1 - first if X.nnz else 0
    if n_features is None and width == 0:
        raise DataError(f"{name}: holds labels but not one feature")
    if X.nnz and np.abs(X.data).max() >= EXACT:
        _warn_of_rounding(content, name)
    X = csr_array((X.data, X.indices - first, X.indptr), shape=(len(y), n_features or width))
    return X, y, qid if query_id else None


def _without_blanks(content: bytes) -> bytes:
    """Return the text without blanks between a colon and its value."""
    return re.sub(rb":[ \t]+(?=[^\s#])", b":", content) if b": " in content or b":\t" in content else content


def _warn_of_rounding(content: bytes, name: str) -> None:
    """Say which whole number among the values is not one of float64."""
    for number, line in enumerate(io.BytesIO(content), start=1):
        for token in line.split(b"#", 1)[0].split()[1:]:
            index, _, value = token.partition(b":")
            if value.lstrip(b"+-").isdigit() and int(value) != int(float(value)) and index != b"qid":
                shown = value.decode()
                warn(f"{name}, line {number}: the value {shown} of feature {index.decode()} is rounded to "
                     f"{int(float(value))}: features have 53 binary digits")  # fmt: skip
                return


def label_tokens(content: bytes) -> list[bytes]:
    """Return the label of every row, as the text has it."""
    begun = (line.split(None, 1)[:1] for line in content.splitlines())
    tokens = (parts[0].partition(b"#")[0] for parts in begun if parts)
    return [token for token in tokens if token]


def labels_of_rows(
    y: np.ndarray, different: Iterable[bytes], tokens: Callable[[], Iterable[bytes]], name: str
) -> np.ndarray:
    """Return labels as int64 if all are whole numbers, as texts if numbers would lose what the texts say.

    ``y`` has them as float64, ``different`` the different texts; ``tokens()`` reads the text of each row.
    """
    if not (y == np.floor(y)).all():
        return y
    texts = {token.decode("ascii", "replace") for token in different}
    if are_texts(texts, name):
        return np.array([token.decode("ascii", "replace") for token in tokens()])
    if np.abs(y).max() < EXACT:
        return y.astype(np.int64)
    exact = as_whole(texts)
    return y if exact is None else np.array([exact[token.decode("ascii", "replace")] for token in tokens()])


def looks_like_svmlight(line: bytes) -> bool:
    """Whether a file's first line is LIBSVM text rather than a line of CSV."""
    tokens = line.split(b"#", 1)[0].split()
    return any(b":" in token for token in tokens[1:2]) or not any(mark in line for mark in b",;\t")


def _parse_fast(content: bytes) -> tuple[csr_array, np.ndarray, np.ndarray]:
    """Return (X, y, qid) as scikit-learn reads them, column k of X being index k; raises one of _PARSER_ERRORS."""
    from sklearn.datasets import load_svmlight_file  # imported here: it takes longer than all of this package

    X, y, qid = load_svmlight_file(io.BytesIO(content), dtype=np.float64, zero_based=True, query_id=True)
    return csr_array(X), y, qid


def _is_doubtful(
    content: bytes, X: csr_array, y: np.ndarray, qid: np.ndarray | None, n_features: int | None, first: int
) -> bool:
    """Whether the text that the parser accepted may still be wrong; `first` is the lowest valid index."""
    return bool(
        b"_" in content  # Python reads 1_000 as a number, other programs do not; in a comment it is no fault
        or not (np.isfinite(X.data).all() and np.isfinite(y).all())
        or (qid is not None and len(qid) != len(y))
        or (X.nnz > 0 and int(X.indices.min()) < first)
        or (X.nnz > 0 and n_features is not None and int(X.indices.max()) - first >= n_features)
    )


def _raise_first_fault(
    content: bytes, name: str, n_features: int | None, zero_based: ZeroBased, query_id: bool, block_lines: int = 4096
) -> None:
    """Raise a DataError for the first line with a fault: find the block that has one, then the line in it."""
    lines = io.BytesIO(content)
    n_before = 0
    while block := list(islice(lines, block_lines)):
        text = b"".join(block)
        try:
            X, y, qid = _parse_fast(text)
            search = _is_doubtful(text, X, y, qid if query_id else None, n_features, 1 if zero_based is False else 0)
        except _PARSER_ERRORS:
            search = True
        if search:
            for number, line in enumerate(block, start=n_before + 1):
                tokens = line.split(b"#", 1)[0].split()
                if tokens:
                    for fault in _faults(tokens, n_features, zero_based, query_id):
                        raise DataError(f"{name}, line {number}: {fault}")
        n_before += len(block)


def _faults(tokens: list[bytes], n_features: int | None, zero_based: ZeroBased, query_id: bool) -> Iterator[str]:
    """Yield what is wrong with one line's tokens, first fault first."""
    label, *features = tokens
    if b":" in label:
        yield f"the label is missing: the line begins with {quote(label)}"
    if b"," in label:
        yield f"found several labels, {quote(label)}, where one number belongs"
    if (value := _number(label)) is None:
        yield f"found {quote(label)} where the label, a number, belongs"
    elif not math.isfinite(value):
        yield f"found {quote(label)} as the label, which must be finite"
    if features and features[0].startswith(b"qid:"):
        if (query := _integer(features[0][4:])) is None:
            yield f"found {quote(features[0])}, where qid: and an integer belong"
        elif query not in _QUERIES:
            yield f"found {quote(features[0])}, which is too large: a query is a number from -2**63 to 2**63 - 1"
        features = features[1:]
    elif query_id:
        yield "qid: is missing"
    previous = None
    for token in features:
        left, colon, right = token.partition(b":")
        if not colon:
            yield f"found {quote(token)} where index:value belongs (no colon)"
        if (index := _integer(left)) is None:
            yield f"found {quote(left)} where a feature's index, an integer, belongs"
            continue
        if index < 0:
            yield f"found the negative feature index {index}"
        if index == 0 and zero_based is False:
            yield "found feature index 0, indices count from 1 here"
        if previous is not None and index <= previous:
            yield f"found feature index {index} after {previous}, indices must increase"
        previous = index
        if index > _LAST_INDEX:
            yield f"found feature index {index}, which is too large: the largest is {_LAST_INDEX}"
        last = None if n_features is None else n_features - (zero_based is True)
        if last is not None and index > last:
            yield f"found feature index {index}, but the last of {n_features} features has index {last}"
        if (value := _number(right)) is None:
            yield f"found {quote(right)} where the value of feature {index}, a number, belongs"
        elif not math.isfinite(value):
            yield f"found {quote(right)} as the value of feature {index}, which must be finite"


def _number(text: bytes) -> float | None:
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def _integer(text: bytes) -> int | None:
    try:
        return None if b"_" in text else int(text)
    except ValueError:
        return None


# ---- text that need not fit in memory


# Rows with at least this share of nonzeros are faster to multiply as dense ones.
DENSE_FROM = 1 / 20
BLOCK_BYTES, CACHE_BYTES = 1 << 24, 256_000_000
# The columns that are allowed for while the number of features is not known.
MOST_FEATURES = np.iinfo(np.int32).max


class _TextFile:
    """A file that stays open, so that reading on need not decompress its beginning again."""

    def __init__(self, path: str | os.PathLike):
        self.name = os.fspath(path)
        self._file: IO[bytes] | None = None
        self._stamp: Stamp | None = None

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def pieces(self, n_bytes: int) -> Iterator[tuple[int, bytes]]:
        """Yield offset and content of pieces of about that size, which end with a line."""
        with open_content(self.name) as file:
            self._stamp, offset = Stamp.of(self.name), 0
            while content := file.read(n_bytes):
                content += file.readline()
                yield offset, content
                offset += len(content)

    def read(self, offset: int, n_bytes: int) -> bytes:
        """Return the content from ``offset`` on."""
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
    """The place of some lines in a file, and the counts and indices found in them."""

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
        """Read the lines once more."""
        return _unmarked(self.file.read(self.offset, self.n_bytes), self.offset)

    def rows(self, n_features: int, zero_based: bool, dense: bool) -> Any:
        """Read the rows once more."""
        X, _ = _parsed(self.content(), self.offset, self.line, self.file.name, n_features, zero_based)
        return X.toarray() if dense else X


def _unmarked(content: bytes, offset: int) -> bytes:
    """Return the text without a mark of its byte order."""
    return content.removeprefix(codecs.BOM_UTF8) if offset == 0 else content


def _parsed(
    content: bytes, offset: int, line: int, name: str, n_features: int, zero_based: ZeroBased
) -> tuple[csr_array, np.ndarray]:
    """Return rows and labels of a piece that begins after ``line`` lines."""
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
    return any(line.removeprefix(codecs.BOM_UTF8).split(b"#", 1)[0].strip() for line in content.splitlines())


def read_libsvm_blocks(
    paths: str | os.PathLike | Iterable[str | os.PathLike],
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    *,
    dense: bool | Literal["auto"] = False,
    block_bytes: int = BLOCK_BYTES,
    cache_bytes: int = CACHE_BYTES,
) -> tuple[Blocks, np.ndarray]:
    r"""Return rows and labels of LIBSVM text that need not fit in memory.

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
    """Read the label of every row once more, as the text has it."""
    for piece in pieces:
        yield from label_tokens(piece.content())


def _gone_through(
    files: list[_TextFile], n_features: int | None, zero_based: ZeroBased, block_bytes: int
) -> tuple[list[_Piece], list[np.ndarray], set[bytes] | None]:
    """Return all pieces with rows, and their labels; if these are whole numbers, also the set of their spellings."""
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
    """Return the smallest and the largest index as the text has them."""
    first = 0 if zero_based is not False else 1
    return (int(X.indices.min()) + first, int(X.indices.max()) + first) if X.nnz else (0, 0)
