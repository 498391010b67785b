"""The arrays of sparse matrices: checks that they do not contradict each other, since compiled code would read beyond
memory; and wide rows reduced to the columns that a model's vectors have.
"""

from typing import Any

import numpy as np

# Whether rows, or else columns, are compressed in each format.
_COMPRESSED = {"csr": True, "csc": False, "bsr": True}


def check_sparse(X: Any, name: str = "X") -> None:
    """Raise a ValueError that says what is wrong with the index arrays of a sparse matrix; let anything else pass.

    SciPy builds such matrices without looking at their values, and anyone may change these later.
    """
    form = getattr(X, "format", None)
    if not hasattr(X, "tocsr") or form not in (*_COMPRESSED, "coo"):
        return
    n_rows, n_columns = X.shape
    if form == "coo":
        rows, columns = _whole_numbers(X.row, f"{name}.row"), _whole_numbers(X.col, f"{name}.col")
        if not len(rows) == len(columns) == len(X.data):
            raise ValueError(f"{name} is no matrix: it has {len(rows)} rows, {len(columns)} columns and {len(X.data)} "
                             "values of entries")  # fmt: skip
        _check_range(rows, n_rows, f"{name}.row")
        _check_range(columns, n_columns, f"{name}.col")
        return
    height, width = X.blocksize if form == "bsr" else (1, 1)
    lines = n_rows // height, n_columns // width
    n, n_others = lines if _COMPRESSED[form] else lines[::-1]
    ends, indices = _whole_numbers(X.indptr, f"{name}.indptr"), _whole_numbers(X.indices, f"{name}.indices")
    if len(ends) != n + 1:
        raise ValueError(f"{name}.indptr must have {n + 1} entries for shape {X.shape}, found {len(ends)}")
    if ends[0] != 0:
        raise ValueError(f"{name}.indptr must begin with 0, found {ends[0]}")
    falls = ends[1:] < ends[:-1]
    if falls.any():
        at = int(np.argmax(falls)) + 1
        raise ValueError(f"{name}.indptr must not decrease, found {ends[at]} at position {at}, after {ends[at - 1]}")
    if ends[-1] > min(len(indices), len(X.data)):
        at = int(np.argmax(ends > min(len(indices), len(X.data))))
        raise ValueError(f"{name}.indptr must end within the stored values, {len(X.data)} of {len(indices)} indices, "
                         f"found {ends[at]} at position {at}")  # fmt: skip
    _check_range(indices[: ends[-1]], n_others, f"{name}.indices")


def _whole_numbers(values: Any, name: str) -> np.ndarray:
    """Return one dimension of whole numbers."""
    values = np.asarray(values)
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers in one dimension, found {values.dtype} of shape {values.shape}")
    return values


def _check_range(values: np.ndarray, n: int, name: str) -> None:
    """Raise an error that names the first value outside 0, …, n − 1."""
    if len(values) and (values.min() < 0 or values.max() >= n):
        at = int(np.argmax((values < 0) | (values >= n)))
        raise ValueError(f"{name} must lie between 0 and {n - 1}, found {values[at]} at position {at}")


# For more columns than this, memory depends on those that occur.
WIDE_FEATURES = 1 << 14
# Up to this many columns per stored number, a table of all columns takes less time than sorting those that occur, or
# searching them: 24,000 numbers in 2²⁰ columns take 0.4 ms, by searching 0.7.
TABLE_SHARE = 64
# The squares of the number that stands for other columns must be finite.
LARGEST = 1e150


def places_of(columns: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return the place of each index among increasing columns, int32; −1 for other indices."""
    width = 1 + max(int(columns.max(initial=-1)), int(indices.max(initial=-1)))
    if len(columns) and width > TABLE_SHARE * len(indices):
        places = np.minimum(np.searchsorted(columns, indices), len(columns) - 1)
        return np.where(columns[places] == indices, places, -1).astype(np.int32)
    table = np.full(width, -1, np.int32)
    table[columns] = np.arange(len(columns))
    return table[indices]


def seen_by(
    columns: np.ndarray, foreign: str, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Reduce CSR rows to the columns that vectors have: return data, indices and indptr in the order of these columns.

    Parameters
    ----------
    columns : int64 ndarray, increasing
    foreign : {"products", "squares", "absolute"}
        What other columns are to the kernel: nothing to inner products; to distances they are one more column, the last
        one, of the same sum of squares or of absolute values.
    data, indices, indptr
        The rows as CSR; columns are distinct and increasing in each row.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.sparse_parts import seen_by
    >>> [part.tolist() for part in seen_by(np.array([2, 9]), "squares", np.array([1.0, 3.0, 4.0]), np.array([2, 5, 7]),
    ...                                    np.array([0, 3]))]
    [[1.0, 5.0], [0, 2], [0, 2]]
    """
    n, end = len(indptr) - 1, int(indptr[-1])
    data, indices = data[:end].astype(np.float64), indices[:end]
    places = places_of(columns, indices)
    known = places >= 0
    if known.all():
        return data, places, indptr.astype(np.int64)
    row = np.repeat(np.arange(n), np.diff(indptr))
    rest = np.zeros(n)
    if foreign != "products":
        others, of = np.minimum(np.abs(data[~known]), LARGEST), row[~known]
        largest = np.zeros(n)
        np.maximum.at(largest, of, others)
        unit = np.where(largest > 0, largest, 1.0)
        sums = np.bincount(of, (others / unit[of]) ** (2 if foreign == "squares" else 1), n)
        rest = np.minimum(unit * (np.sqrt(sums) if foreign == "squares" else sums), LARGEST)
    has_rest = rest > 0
    ends = np.concatenate([[0], np.cumsum(np.bincount(row[known], minlength=n) + has_rest)]).astype(np.int64)
    values, numbers = np.empty(ends[-1]), np.full(ends[-1], len(columns), np.int32)
    is_known = np.ones(ends[-1], bool)
    is_known[ends[1:][has_rest] - 1] = False  # last in its row
    values[is_known], numbers[is_known] = data[known], places[known]
    values[~is_known] = rest[has_rest]
    return values, numbers, ends
