"""Reading a data file of any supported kind: `read_data`; sequences of words in columns: `read_columns`."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from scipy.sparse import csr_array

from slimsvm.datasets.csv_tables import Asked, Table, parse_csv
from slimsvm.datasets.files import COMPRESSED_SUFFIXES, EXACT, DataError, is_archive, quote, read_arrays, read_content
from slimsvm.datasets.libsvm_text import (
    DENSE_FROM,
    ZeroBased,
    label_tokens,
    labels_of_rows,
    looks_like_svmlight,
    parse_svmlight,
)


# Most of its lines are the docstring.
def read_data(
    path: str | os.PathLike,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    target: str | Literal[False] | None = None,
    *,
    dense: bool | Literal["auto"] = False,
    query_id: bool = False,
    header: bool | Literal["auto"] = "auto",
) -> Any:
    r"""Read rows and labels from LIBSVM text, CSV, or `.npz`.

    Text may be compressed (gzip, bzip2, xz; the file's first bytes tell). Text is CSV if the file's name ends in
    .csv or .tsv, or if its first line has commas, semicolons or tabs and no `index:value`; else it is LIBSVM text.

    Parameters
    ----------
    path : str or path-like
        The file.
    n_features : int, optional
        LIBSVM text: the number of columns, if the file may lack the last ones (a test set). Other files: the
        required number of columns.
    zero_based : {"auto", True, False}
        LIBSVM text: whether indices count from 0. "auto": they do if index 0 occurs in this file. Give it if a
        training and a test file could differ.
    target : str or False, optional
        CSV: the label's column, without a header its number from 1 on; None: the column called label, target, y or
        class (any case), or else the last (without a header the first, if only that is a text). A column without a name
        that numbers the rows is ignored.
        `.npz`: the labels' array, by default "y". False: there are no labels, all columns are features (CSV, `.npz`).
    dense : {False, True, "auto"}
        Whether sparse rows are returned as an ndarray; "auto": if at least one value in 20 is non-zero.
    query_id : bool
        LIBSVM text: also return the `qid:` of each row, which must then be in the file.
    header : {"auto", True, False}
        CSV: whether the first line names the columns. "auto": it is a row if its features are numbers and its label is
        one of other rows, or a number as theirs are; a `DataWarning` says what was taken where that is not certain.

    Returns
    -------
    X : ndarray or csr_array of shape (n, d)
        float64 from text, the stored type from `.npz`. LIBSVM text is returned as csr_array unless `dense` says not.
    y : ndarray of shape (n,) or None
        int64 if every label is a whole number, float64 if every label is a number, else strings: also where numbers
        would lose what the text says (007; +1 beside 1; beyond int64). None without labels.
    qid : ndarray of shape (n,), int64
        Only with `query_id=True`.

    Raises
    ------
    DataError
        A ValueError; one sentence that names the file, the line (or row and column) and what was found.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from slimsvm.datasets import read_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tiny.txt"
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = read_data(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1, -1])
    """
    _check_options(n_features, zero_based, target, dense, header)
    asked = Asked(n_features, target, None if header == "auto" else header)
    found = read_table(path, asked, zero_based, dense=dense, query_id=query_id)
    return (found.X, found.y, found.qid) if query_id else (found.X, found.y)


def read_table(
    path: str | os.PathLike,
    asked: Asked,
    zero_based: ZeroBased = "auto",
    *,
    dense: bool | Literal["auto"] = False,
    query_id: bool = False,
) -> Table:
    """Read rows, labels and names of a file; `read_data` lists the errors."""
    name = os.fspath(path)
    if is_archive(path):
        found = _read_npz(path, asked)
    else:
        content = read_content(path)
        if _is_csv(PurePath(path), content):
            found = parse_csv(content, name, asked)
        elif asked.target is not None:
            raise DataError(f"{name}: target={asked.target!r} does not apply to LIBSVM text: labels begin the line")
        else:
            X, y, qid = parse_svmlight(content, name, _n_features(asked), zero_based, query_id)
            if not query_id:  # queries come with labels that are numbers
                tokens = label_tokens(content)
                y = labels_of_rows(y, set(tokens), lambda: tokens, name)
            found = Table(X, y, qid=qid)
    if query_id and found.qid is None:
        raise DataError(f"{name}: query_id needs LIBSVM text, which alone has qid:")
    X = found.X
    if not isinstance(X, np.ndarray) and (
        dense is True or (dense == "auto" and X.nnz >= DENSE_FROM * X.shape[0] * X.shape[1])
    ):
        found = found._replace(X=X.toarray())
    if found.y is not None and found.y.dtype.kind == "f":
        found = found._replace(y=whole_numbers(found.y))
    return found


def _n_features(asked: Asked) -> int | None:
    """Return the number of features that there must be."""
    return asked.n_features if asked.columns is None else len(asked.columns)


def whole_numbers(y: np.ndarray) -> np.ndarray:
    """Return float labels as int64 where all of them are whole numbers (and small enough to be exact)."""
    return y.astype(np.int64) if (np.abs(y) < EXACT).all() and (y == np.floor(y)).all() else y


def _check_options(n_features: Any, zero_based: Any, target: Any, dense: Any, header: Any) -> None:
    if n_features is not None and n_features < 1:
        raise DataError(f"n_features must be None or at least 1, found {n_features}")
    if zero_based not in ("auto", True, False):
        raise DataError(f"zero_based must be 'auto', True or False, found {zero_based!r}")
    if target is not None and target is not False and not isinstance(target, str):
        raise DataError(f"target must be None, False or the name of a column, found {target!r}")
    if dense not in ("auto", True, False):
        raise DataError(f"dense must be 'auto', True or False, found {dense!r}")
    if header not in ("auto", True, False):
        raise DataError(f"header must be 'auto', True or False, found {header!r}")


def _is_csv(path: PurePath, content: bytes) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    if suffixes and suffixes[-1] == ".npz":
        raise DataError(f"{path}: found {quote(content[:8])} where the zip archive of an .npz file begins")
    if suffixes and suffixes[-1] in {".csv", ".tsv"}:
        return True
    return not looks_like_svmlight(_first_row(content))


def _first_row(content: bytes) -> bytes:
    return next((line for line in io.BytesIO(content) if line.strip() and not line.startswith(b"#")), b"")


def has_queries(path: str | os.PathLike) -> bool:
    r"""Whether a file is LIBSVM text whose first row names its query: `label qid:query index:value ...`.

    Parameters
    ----------
    path : str or path-like
        The file, compressed or not.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from slimsvm.datasets import has_queries
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "tiny.txt"
    ...     _ = path.write_text("2 qid:1 1:0.5\n1 qid:1 2:1\n")
    ...     has_queries(path)
    True
    """
    if is_archive(path):
        return False
    content = read_content(path)
    return not _is_csv(PurePath(path), content) and b"qid:" in _first_row(content).split(b"#")[0]


def _read_npz(path: str | os.PathLike, asked: Asked) -> Table:
    """Read X (or data, indices, indptr, shape of CSR) and the labels."""
    name = os.fspath(path)
    found = read_arrays(path)
    X: Any
    if "X" in found:
        X = found["X"]
        if X.ndim != 2:
            raise DataError(f"{name}: found X of shape {X.shape}, a matrix is needed")
        values = X
    elif {"data", "indices", "indptr", "shape"} <= set(found):
        try:
            X = csr_array((found["data"], found["indices"], found["indptr"]), shape=tuple(found["shape"]))
            X.check_format(full_check=True)
        except (ValueError, TypeError, IndexError) as error:
            raise DataError(f"{name}: data, indices, indptr and shape are no CSR matrix: {error}") from None
        values = X.data
    else:
        raise DataError(f"{name}: found {sorted(found)}, needed are X, or data, indices, indptr and shape")
    if values.dtype.kind not in "biuf":
        raise DataError(f"{name}: found X of type {values.dtype}, numbers are needed")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise DataError(f"{name}: found X of shape {X.shape}, it is empty")
    n_features, key = _n_features(asked), asked.target or "y"
    if n_features is not None and X.shape[1] != n_features:
        raise DataError(f"{name}: found {X.shape[1]} columns, {n_features} are expected")
    _check_finite(X, values, name)
    if asked.target is False or (not asked.labels_needed and asked.target is None and key not in found):
        return Table(X, None)
    return Table(X, _npz_labels(found, key, X.shape[0], name))


def _npz_labels(found: dict[str, np.ndarray], key: str, n_rows: int, name: str) -> np.ndarray:
    if key not in found:
        raise DataError(f"{name}: found {sorted(found)}, the labels {quote(key)} are missing")
    y = found[key]
    if y.shape != (n_rows,):
        raise DataError(f"{name}: found labels {quote(key)} of shape {y.shape} for {n_rows} rows")
    if y.dtype.kind not in "biufU":
        raise DataError(f"{name}: found labels {quote(key)} of type {y.dtype}, numbers or texts are needed")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        at = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataError(f"{name}, row {at}: found {y[at]} as the label, which must be finite (rows count from 0)")
    return y


def _check_finite(X: Any, values: np.ndarray, name: str) -> None:
    if np.isfinite(values).all():
        return
    if not isinstance(X, np.ndarray):
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        value = values[at]
    else:
        row, column = (int(k) for k in np.argwhere(~np.isfinite(X))[0])
        value = X[row, column]
    raise DataError(f"{name}, row {row}, column {column}: found {value}, values must be finite (both count from 0)")


# ---- sequences from CoNLL-style columns: a row per line, columns between blanks, an empty line between sequences. The
# last column is the label. The others become binary features by hashing, so that another file can be read the same way
# by anyone who knows the number of features.


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
    """Return words as binary features, by hashing.

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
    from sklearn.feature_extraction import FeatureHasher  # imported here: it takes longer than all of this package

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
    """Yield features of the first column."""
    yield f"0={word}"
    yield f"lower={word.lower()}"
    for k in range(1, min(MAX_AFFIX, len(word) - 1) + 1):
        yield f"begins={word[:k]}"
        yield f"ends={word[-k:]}"
    shape = _UPPER.sub("X", _LOWER.sub("x", _DIGIT.sub("0", word)))
    yield "shape=" + _REPEATED.sub(r"\1", shape)
