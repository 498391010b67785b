"""LIBSVM text: one row per line, `label index:value index:value ...`, indices increasing, `#` starts a comment.
Blanks may follow a colon, as LIBSVM itself has it.

scikit-learn's compiled parser does the reading. When it fails, or something looks wrong with what it read, the lines
are gone through again, first in blocks by the same parser, then those of the block at fault one by one, to say which
line it is and what was found there.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from slimsvm.datasets.files import DataError, quote
from slimsvm.datasets.header import warn
from slimsvm.datasets.label_texts import EXACT, are_texts, as_whole

ZeroBased = Literal["auto"] | bool

_PARSER_ERRORS = (ValueError, OverflowError, IndexError, TypeError)
# Lines per block in the search for a fault.
_BLOCK = 4096
# Indices are int32 in sparse rows, queries int64.
_LAST_INDEX, _QUERIES = 2**31 - 1, range(-(2**63), 2**63)


def parse_svmlight(
    content: bytes, name: str, n_features: int | None, zero_based: ZeroBased, query_id: bool
) -> tuple[csr_array, np.ndarray, np.ndarray | None]:
    """Parse LIBSVM text.

    Parameters
    ----------
    content : bytes
        The text.
    name : str
        The file's name, for messages.
    n_features : int or None
        Columns of the result; None: the largest index found.
    zero_based : "auto" or bool
        Whether indices count from 0; "auto": they do if index 0 occurs.
    query_id : bool
        Whether every row must have a `qid:`, which is then returned; otherwise `qid:` is skipped.

    Returns
    -------
    X : csr_array of shape (n, d), float64
    y : ndarray of shape (n,), float64
    qid : ndarray of shape (n,), int64, or None

    Raises
    ------
    DataError
        For any other text; names the line.
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
    """The text without blanks between a colon and its value."""
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
    """The label of every row, as the text has it."""
    begun = (line.split(None, 1)[:1] for line in content.splitlines())
    tokens = (parts[0].partition(b"#")[0] for parts in begun if parts)
    return [token for token in tokens if token]


def labels_of_rows(
    y: np.ndarray, different: Iterable[bytes], tokens: Callable[[], Iterable[bytes]], name: str
) -> np.ndarray:
    """Labels as int64 where all are whole numbers, as texts where numbers would not say what the texts do.

    Parameters
    ----------
    y : ndarray of shape (n,), float64
        The labels as numbers.
    different : iterable of bytes
        The different labels.
    tokens : callable
        Gives the label of each row.
    name : str
        The file's name, for messages.
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
    from sklearn.datasets import load_svmlight_file  # here: it takes longer to import than all of this package

    X, y, qid = load_svmlight_file(io.BytesIO(content), dtype=np.float64, zero_based=True, query_id=True)
    return csr_array(X), y, qid


def _is_doubtful(
    content: bytes, X: csr_array, y: np.ndarray, qid: np.ndarray | None, n_features: int | None, first: int
) -> bool:
    """Whether what the parser accepted still has to be looked at: `first` is the first index there may be."""
    return bool(
        b"_" in content  # Python reads 1_000 as a number, other programs do not; in a comment it is no fault
        or not (np.isfinite(X.data).all() and np.isfinite(y).all())
        or (qid is not None and len(qid) != len(y))
        or (X.nnz > 0 and int(X.indices.min()) < first)
        or (X.nnz > 0 and n_features is not None and int(X.indices.max()) - first >= n_features)
    )


def _raise_first_fault(
    content: bytes, name: str, n_features: int | None, zero_based: ZeroBased, query_id: bool
) -> None:
    """Raise a DataError for the first line with a fault: find the block that has one, then the line in it."""
    lines = io.BytesIO(content)
    n_before = 0
    while block := list(islice(lines, _BLOCK)):
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
