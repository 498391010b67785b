"""A Dask cluster: its tasks and their results, and the partitions of its collections.

Workers or a scheduler that are lost end in clear errors. Workers look at partitions before any work; rows are cut into
blocks of other bounds, and labels come to the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np

from slimsvm.rows import find_not_finite, first_missing, is_sparse, say_not_finite


def client_of(given: Any) -> Any:
    """Return the given client, or the connected one; a ValueError says that none is, or that what was given is no
    client.
    """
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("slimsvm.dask needs Dask: pip install 'slimsvm[dask]'") from error
    if given is not None and not hasattr(given, "submit"):
        raise ValueError(f"client must be a distributed.Client or None, found {given!r}")
    if given is not None:
        return given
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "no Dask client is connected: make one, distributed.Client(address), or distributed.Client() for a cluster "
            "on this machine, or give client="
        ) from None


@contextmanager
def large_graphs() -> Iterator[None]:
    """Silence the warning of large graphs: labels and bases travel with tasks, so that any worker can run them."""
    from dask import config

    with config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        yield


class Cluster:
    """The tasks of one client. They are pure: a task that is lost with its worker runs again on another one."""

    def __init__(self, client: Any):
        self.client = client

    def n_threads(self) -> int:
        """Return the number of threads of all present workers, at least 1."""
        with self.heard():
            return max(1, sum(self.client.nthreads().values()))

    def submit(self, function: Callable[..., Any], *own: Any) -> Any:
        """Return a future of function(*own), where own may be futures."""
        return self.submit_all(function, *([item] for item in own))[0]

    def submit_all(self, function: Callable[..., Any], *columns: list[Any]) -> list[Any]:
        """Return futures of function(*own) for each line of the columns, in one message."""
        name, run = function.__name__.strip("_"), uuid4().hex
        keys = [f"slimsvm-{name}-{run}-{i}" for i in range(len(columns[0]))]
        with self.heard(), large_graphs():
            return self.client.map(function, *columns, key=keys, pure=False)

    def compute(self, delayed: list[Any]) -> list[Any]:
        """Return futures of delayed values."""
        with self.heard(), large_graphs():
            return self.client.compute(delayed)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return the values of futures, in order."""
        with self.heard():
            return self.client.gather(futures)

    def gather_partitions(self, name: str, futures: list[Any], partitions: list[Any]) -> list[Any]:
        """Return values of futures that depend on one partition each; an error names the partition that failed."""
        try:
            return self.gather(futures)
        except ConnectionError:
            raise
        except Exception as error:
            failed = [i for i, partition in enumerate(partitions) if partition.status == "error"]
            if not failed:
                raise
            kind = ValueError if isinstance(error, ValueError) else RuntimeError
            raise kind(f"partition {failed[0]} of {name} could not be made: {error}") from error

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Raise one clear error where the scheduler is gone, or a task kills its workers again and again."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        gone = CommClosedError, CancelledError, asyncio.CancelledError, TimeoutError
        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                f"workers of the Dask cluster died again and again at the same task ({error}): if they ran out of "
                "memory, give them more, or start more of them"
            ) from error
        except gone as error:
            raise ConnectionError(self._lost()) from error
        except (RuntimeError, OSError) as error:
            if self.client.status in ("running", "connecting"):
                raise
            raise ConnectionError(self._lost()) from error

    def _lost(self) -> str:
        address = getattr(getattr(self.client, "scheduler", None), "address", "")
        return (
            f"the Dask scheduler {address} is gone, or has forgotten this fit: nothing was changed; connect to a "
            "scheduler, and fit again"
        )


@dataclass(frozen=True)
class Partitions:
    """The partitions as arrays in the workers' memory."""

    cluster: Cluster
    arrays: list[Any]  # futures
    bounds: np.ndarray  # partition i has the rows bounds[i], …, bounds[i + 1] − 1
    n_features: int
    dtype: np.dtype
    names: list[str] | None  # of the columns, if they have names

    def cut(self, lo: int, hi: int) -> Any:
        """Return the rows lo, …, hi − 1 as one array on a worker."""
        first, last = np.searchsorted(self.bounds, [lo, hi - 1], side="right") - 1
        cuts, pieces = [], []
        for i in range(first, last + 1):
            start, stop = int(self.bounds[i]), int(self.bounds[i + 1])
            if start < stop:
                cuts.append((max(0, lo - start), min(hi, stop) - start))
                pieces.append(self.arrays[i])
        return self.cluster.submit(_joined, cuts, self.dtype, *pieces)


@dataclass(frozen=True)
class Look:
    """The report of a worker about a partition."""

    shape: tuple[int, ...]
    dtype: np.dtype
    bad: tuple[int, int, Any] | None = None  # row, column and value of the first number that is not finite
    names: list[str] | None = None  # the partition's columns, if they differ from the collection's
    text: tuple[str, str] | None = None  # a column that holds no numbers, and its type
    sparse: str | None = None  # the type of a sparse matrix
    masked: int | None = None  # the row of the first masked entry


def partitions_of(X: Any, cluster: Cluster) -> Partitions:
    """Return the partitions of a collection, after workers have checked all of them; `DaskRows` lists the errors."""
    futures, names = _computed(X, cluster)
    arrays = futures if names is None else [cluster.submit(_values_of, future) for future in futures]
    looks = cluster.gather_partitions("X", cluster.submit_all(_look, futures, [names] * len(futures)), futures)
    for i, look in enumerate(looks):
        _check_kind(i, look, names)
    sizes = [look.shape[0] for look in looks]
    if not sum(sizes):
        raise ValueError(f"X must have rows, found {len(sizes)} partitions without any")
    _check_alike(looks)
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    _check_finite(looks, bounds, names)
    like = next(look for look in looks if look.shape[0])
    return Partitions(cluster, arrays, bounds, like.shape[1], like.dtype, names)


def _computed(X: Any, cluster: Cluster) -> tuple[list[Any], list[str] | None]:
    """Return futures of the partitions, one after another, and the names of a dataframe's columns."""
    is_frame = hasattr(X, "to_delayed") and hasattr(X, "columns")
    if not is_frame and not (hasattr(X, "chunks") and hasattr(X, "to_delayed")):
        raise TypeError(f"X must be a dask array or dataframe, found {type(X).__name__}; slimsvm.SVC takes others")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, features), found {X.ndim}")
    if is_frame:
        return cluster.compute(list(X.to_delayed())), [str(name) for name in X.columns]
    if np.isnan(X.shape).any():
        unknown = int(np.flatnonzero(np.isnan(X.chunks[0]))[0]) if np.isnan(X.chunks[0]).any() else 0
        raise ValueError(f"X has chunks of unknown size, the first is chunk {unknown}: call X.compute_chunk_sizes()")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: X.shape[1]})
    return cluster.compute(X.to_delayed().ravel().tolist()), None


# -- checks ----------------------------------------------------------------------------------------------------------
def _check_kind(i: int, look: Look, names: list[str] | None) -> None:
    if look.names is not None:
        raise ValueError(f"partition {i} has the columns {look.names}, expected are {names}")
    if look.sparse is not None:
        raise TypeError(
            f"partition {i} is sparse ({look.sparse}), only dense arrays are accepted; slimsvm.SVC takes both"
        )
    if len(look.shape) != 2:
        raise ValueError(f"partition {i} has {len(look.shape)} dimensions, accepted are two (rows, features)")
    if look.masked is not None:
        raise ValueError(f"partition {i} has a masked entry in its row {look.masked}; only finite numbers are accepted")
    if look.shape[0] and not look.shape[1]:
        raise ValueError(f"X must have columns, found none in partition {i}")
    if look.text is not None:
        raise TypeError(f"X must hold real numbers, found {look.text[1]} in column {look.text[0]!r} of partition {i}")
    if look.shape[0] and look.dtype.kind not in "buif":
        raise TypeError(f"X must hold real numbers, found dtype {look.dtype} in partition {i}")


def _check_alike(looks: list[Look]) -> None:
    """Refuse partitions whose columns or type differ from the first one with rows."""
    first = next(i for i, look in enumerate(looks) if look.shape[0])
    like = looks[first]
    for i, look in enumerate(looks):
        if look.shape[0] and (look.shape[1] != like.shape[1] or look.dtype != like.dtype):
            raise ValueError(
                f"partition {i} has {look.shape[1]} columns of {look.dtype}, expected are {like.shape[1]} of "
                f"{like.dtype}, as in partition {first}"
            )


def _check_finite(looks: list[Look], bounds: np.ndarray, names: list[str] | None) -> None:
    for i, look in enumerate(looks):
        if look.bad is not None:
            raise ValueError(say_not_finite(look.bad, int(bounds[i]), f"partition {i}", names))


# -- what workers do -------------------------------------------------------------------------------------------------
def _look(part: Any, names: list[str] | None) -> Look:
    if names is not None:
        found = [str(name) for name in part.columns]
        if found != names:
            return Look(part.shape, np.dtype(object), names=found)
        for name, dtype in part.dtypes.items():
            if len(part) and _number_type(dtype) is None:
                return Look(part.shape, np.dtype(object), text=(str(name), str(dtype)))
        part = _values_of(part)
    if is_sparse(part):
        return Look(part.shape, part.dtype, sparse=type(part).__name__)
    part = np.asanyarray(part)
    has_numbers = part.ndim == 2 and part.shape[1] > 0 and part.dtype.kind in "buif"
    bad = find_not_finite(part) if has_numbers else None
    return Look(part.shape, part.dtype, bad, masked=_first_masked(part))


def _first_masked(values: Any) -> int | None:
    """Return the row of the first masked entry, None without one."""
    missing = first_missing(values) if isinstance(values, np.ma.MaskedArray) else None
    return None if missing is None else missing[0]


def _values_of(frame: Any) -> np.ndarray:
    """Return columns as one array of their common type; missing values are NaN."""
    types = [_number_type(dtype) for dtype in frame.dtypes]
    if all(isinstance(dtype, np.dtype) for dtype in frame.dtypes) or any(kind is None for kind in types):
        return np.asarray(frame)
    has_gaps = bool(frame.isna().to_numpy().any())
    common = np.result_type(*types, np.float32) if has_gaps else np.result_type(*types)
    return frame.to_numpy(common, na_value=np.nan) if has_gaps else frame.to_numpy(common)


def _number_type(dtype: Any) -> np.dtype | None:
    """Return the NumPy type of a column of numbers, also for types of pandas and Arrow."""
    plain = getattr(dtype, "numpy_dtype", dtype)
    return plain if isinstance(plain, np.dtype) and plain.kind in "buif" else None


def _joined(cuts: list[tuple[int, int]], dtype: np.dtype, *pieces: Any) -> np.ndarray:
    if len(pieces) == 1:
        (lo, hi), piece = cuts[0], np.asarray(pieces[0])
        return np.ascontiguousarray(piece if hi - lo == len(piece) else piece[lo:hi].copy(), dtype)
    return np.concatenate([np.asarray(piece[lo:hi], dtype) for (lo, hi), piece in zip(cuts, pieces)])


# -- labels, targets and weights, brought to the client ----------------------------------------------------------------
def vector_of(name: str, values: Any, cluster: Cluster) -> Any:
    """Return labels or weights of a Dask collection as an array in this process; other values come back as they are.

    A ValueError names a partition with another kind of labels than the first, or with a NaN or an infinity.
    """
    if not hasattr(values, "to_delayed"):
        return values
    if hasattr(values, "chunks") and getattr(values, "ndim", 1) == 2 and len(values.chunks[1]) > 1:
        values = values.rechunk({1: values.shape[1]})
    delayed = values.to_delayed()
    futures = cluster.compute(delayed.ravel().tolist() if isinstance(delayed, np.ndarray) else list(delayed))
    parts = [
        coded[codes] if coded is not None else codes
        for coded, codes in cluster.gather_partitions(name, cluster.submit_all(_coded, futures), futures)
    ]
    _check_parts(name, parts)
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


def _check_parts(name: str, parts: list[np.ndarray]) -> None:
    """Refuse a mixture of partitions with and without numbers, and numbers that are not finite."""
    first, start = next((i for i, part in enumerate(parts) if len(part)), 0), 0
    for i, part in enumerate(parts):
        if not len(part):
            continue
        if (part.dtype.kind in "buif") != (parts[first].dtype.kind in "buif"):
            raise ValueError(
                f"{name} has values of {part.dtype} in partition {i}, expected are such as the {parts[first].dtype} of "
                f"partition {first}"
            )
        if (row := _first_masked(part)) is not None:
            raise ValueError(f"{name} is masked at row {start + row}, which is row {row} of partition {i}")
        bad = find_not_finite(part.reshape(len(part), -1))
        if bad is not None:
            row, _, value = bad
            raise ValueError(say_not_finite((row, None, value), start, f"partition {i}", of=name))
        start += len(part)


def _coded(part: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """Return a column's distinct objects (strings) and each row's index in them, or None and the values of numbers."""
    values = np.asanyarray(part) if isinstance(part, np.ma.MaskedArray) else np.asarray(part)
    if values.dtype.kind != "O" or values.ndim != 1:
        return None, values
    import pandas

    codes, each = pandas.factorize(values)
    if (codes < 0).any():  # something is missing: said where all is checked
        return None, values
    return np.asarray(each, object), codes.astype(np.min_scalar_type(len(each)))
