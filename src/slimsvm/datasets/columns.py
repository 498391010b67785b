"""Sequences from CoNLL-style columns: one row per line, columns between blanks, an empty line between sequences.

The last column is the label. The others become binary features by hashing, so that nothing but their number has to be
known to read another file the same way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array

from slimsvm.datasets.files import DataError, quote, read_content

Array = np.ndarray

# Letters of a word's beginning and end that are features.
MAX_AFFIX = 4
_DIGIT, _LOWER, _UPPER = re.compile(r"\d"), re.compile(r"[^\W\d_A-Z]"), re.compile(r"[A-Z]")
_REPEATED = re.compile(r"(.)\1+")


def read_columns(path: str | os.PathLike, labels: bool = True) -> tuple[Array, Array | None, Array]:
    r"""Read sequences of rows of words.

    Parameters
    ----------
    path : str or path-like
        UTF-8 text; may be compressed (gzip, bzip2, xz).
    labels : bool, default=True
        Whether the last column is the label.

    Returns
    -------
    columns : ndarray of str of shape (n_rows, n_columns)
        Without the label.
    y : ndarray of str of shape (n_rows,) or None
    lengths : ndarray of shape (n_sequences,), int64

    Raises
    ------
    DataError
        The file cannot be read, or a line has another number of columns than the first.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from slimsvm.datasets import read_columns
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tiny.txt"
    ...     _ = path.write_text("He PRP B-NP\nreckons VBZ B-VP\n\nYes UH O\n")
    ...     columns, y, lengths = read_columns(path)
    >>> columns[1].tolist(), y.tolist(), lengths.tolist()
    (['reckons', 'VBZ'], ['B-NP', 'B-VP', 'O'], [2, 1])
    """
    name = os.fspath(path)
    try:
        text = read_content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 text: {error}") from None
    rows: list[list[str]] = []
    lengths, length = [], 0
    for number, line in enumerate(text.splitlines(), start=1):
        row = line.split()
        if row:
            if rows and len(row) != len(rows[0]):
                raise DataError(f"{name}, line {number}: found {len(row)} columns, the first line has {len(rows[0])}")
            rows.append(row)
            length += 1
        elif length:
            lengths.append(length)
            length = 0
    if length:
        lengths.append(length)
    if labels and len(rows[0]) < 2:
        raise DataError(f"{name}, line 1: found the one column {quote(rows[0][0])}; a word and a label are needed")
    table = np.array(rows)
    columns, y = (table[:, :-1], table[:, -1]) if labels else (table, None)
    return columns, y, np.array(lengths, dtype=np.int64)


def hash_columns(columns: Array, n_features: int = 1 << 18) -> csr_array:
    """Words as binary features, by hashing.

    A row has one feature for each of its words (with the number of the column). The first column also adds the word's
    lower case, its prefixes and suffixes of up to four letters, and its shape, such as ``Xx`` or ``d-X``.

    Parameters
    ----------
    columns : ndarray of str of shape (n_rows, n_columns)
    n_features : int, default=262144
        Number of features that the words are hashed to; colliding words add up with random signs.

    Returns
    -------
    csr_array of shape (n_rows, n_features), float32
        Rows of length 1.
    """
    from sklearn.feature_extraction import FeatureHasher  # here: it takes longer to import than all of this package

    words, where = np.unique(columns[:, 0], return_inverse=True)
    hasher = FeatureHasher(n_features=n_features, input_type="string", dtype=np.float32)
    total = csr_array(hasher.transform(_of_word(word) for word in words.tolist()))[where]
    for k in range(1, columns.shape[1]):
        words, where = np.unique(columns[:, k], return_inverse=True)
        total = total + csr_array(hasher.transform([f"{k}={word}"] for word in words.tolist()))[where]
    length = np.sqrt(np.asarray(total.multiply(total).sum(axis=1)).ravel())
    total.data /= np.repeat(np.where(length > 0, length, 1), np.diff(total.indptr)).astype(np.float32)
    return total


def _of_word(word: str) -> Iterator[str]:
    """Features of the first column."""
    yield f"0={word}"
    yield f"lower={word.lower()}"
    for k in range(1, min(MAX_AFFIX, len(word) - 1) + 1):
        yield f"begins={word[:k]}"
        yield f"ends={word[-k:]}"
    shape = _UPPER.sub("X", _LOWER.sub("x", _DIGIT.sub("0", word)))
    yield "shape=" + _REPEATED.sub(r"\1", shape)
