"""Rows of Dask collections, cut anew into parts of fixed bounds, so that partitions leave no trace in results."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.core.threads import one_blas_thread
from slimsvm.dask.cluster import Cluster
from slimsvm.rows import Rows, as_rows, find_not_finite, say_not_finite
from slimsvm.tasks import Examples


class DaskRows(Rows):
    """Rows of a Dask array or dataframe.

    Parts of 262,144 rows lie with the workers; passes are tasks, one for each part, whose sums come back.

    Parameters
    ----------
    X : dask array of shape (n, d) with known chunks, or dask dataframe
    cluster : Cluster

    Raises
    ------
    TypeError
        Values are not real numbers.
    ValueError
        X has not two dimensions, has chunks of unknown size, or a partition has other columns, another type or other
        rows than it should, or a NaN or an infinity; the message names partition and row.
    """

    in_memory = False
    has_random_access = False
    is_remote = True
    is_sparse = False

    def __init__(self, X: Any, cluster: Cluster):
        self.cluster = cluster
        partitions, self.feature_names = blocks_of(X, cluster)
        shapes = cluster.gather([cluster.submit(_described, part) for part in partitions])
        self.dtype, self.n_features = _alike(shapes)
        sizes = [shape[0] for shape, _ in shapes]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_rows = int(bounds[-1])
        if not self.n_rows:
            raise ValueError(f"X must have rows, found {len(sizes)} partitions without any")
        self.n_stored = self.n_rows * self.n_features
        found = cluster.gather([cluster.submit(_bad_number, part) for part in partitions])
        self._check_finite(found, bounds)
        self._parts = [self._cut(partitions, bounds, lo, hi) for lo, hi in self.parts()]

    def _check_finite(self, found: list[Any], bounds: np.ndarray) -> None:
        for i, bad in enumerate(found):
            if bad is not None:
                raise ValueError(say_not_finite(bad, int(bounds[i]), f"partition {i}", self.feature_names))

    def _cut(self, partitions: list[Any], bounds: np.ndarray, lo: int, hi: int) -> Any:
        """The rows lo, …, hi − 1 as one array on a worker."""
        first, last = np.searchsorted(bounds, [lo, hi - 1], side="right") - 1
        cuts, pieces = [], []
        for i in range(first, last + 1):
            if bounds[i] < bounds[i + 1]:
                cuts.append((max(0, lo - int(bounds[i])), min(hi, int(bounds[i + 1])) - int(bounds[i])))
                pieces.append(partitions[i])
        return self.cluster.submit(_joined, cuts, self.dtype, *pieces)

    # -- tasks --------------------------------------------------------------------------------------------------------

    def place(self, items: list[Any]) -> list[Any]:
        """Something of each part, brought to a worker once; a lost one is brought there again."""
        return [self.cluster.submit(pickle.loads, pickle.dumps(item)) for item in items]

    def map(self, function: Callable[..., Any], *items: list[Any], keep: bool = False) -> list[Any]:
        """See `Rows.map`: a task for each part."""
        packed, own = pickle.dumps(function), zip(self._parts, *items, strict=True)
        return self._results([self.cluster.submit(_on_rows, packed, *parts) for parts in own], keep)

    def each(self, function: Callable[..., Any], *items: list[Any], keep: bool = False) -> list[Any]:
        """As `map`, of items alone."""
        packed, own = pickle.dumps(function), zip(*items, strict=True)
        return self._results([self.cluster.submit(_apart, packed, *parts) for parts in own], keep)

    def _results(self, futures: list[Any], keep: bool) -> list[Any]:
        return futures if keep else self.cluster.gather(futures)

    # -- rows here ----------------------------------------------------------------------------------------------------

    def take(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """See `Rows.take`."""
        index = np.asarray(index, np.int64)
        starts = np.array([lo for lo, _ in self.parts()])
        out, owner = np.empty((len(index), self.n_features), dtype), np.searchsorted(starts, index, side="right") - 1
        asked = np.unique(owner)
        places = [np.flatnonzero(owner == i) for i in asked]
        futures = [self.cluster.submit(_taken, self._parts[i], index[at] - starts[i]) for i, at in zip(asked, places)]
        for at, rows in zip(places, self.cluster.gather(futures)):
            out[at] = rows
        return out

    def slice(self, lo: int, hi: int, dtype: Any) -> np.ndarray:
        """See `Rows.slice`."""
        return self.take(np.arange(lo, min(hi, self.n_rows)), dtype)


def blocks_of(X: Any, cluster: Cluster) -> tuple[list[Any], list[str] | None]:
    """Futures of the partitions as arrays, one after another, and the names of columns."""
    if hasattr(X, "to_delayed") and hasattr(X, "columns"):
        with cluster.heard():
            futures = cluster.client.compute([part for part in X.to_delayed()])
        return [cluster.submit(np.asarray, future) for future in futures], [str(name) for name in X.columns]
    if not hasattr(X, "chunks") or not hasattr(X, "to_delayed"):
        raise TypeError(f"X must be a dask array or dataframe, found {type(X).__name__}; slimsvm.SVC takes others")
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions (rows, features), found {X.ndim}")
    if np.isnan(X.shape).any():
        unknown = int(np.flatnonzero(np.isnan(X.chunks[0]))[0]) if np.isnan(X.chunks[0]).any() else 0
        raise ValueError(f"X has chunks of unknown size, the first is chunk {unknown}: call X.compute_chunk_sizes()")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: X.shape[1]})
    with cluster.heard():
        return cluster.client.compute(X.to_delayed().ravel().tolist()), None


def vector_of(values: Any, cluster: Cluster) -> Any:
    """Labels or weights of a Dask collection as an array in this process; others as they are."""
    if not hasattr(values, "dask") and not hasattr(values, "to_delayed"):
        return values
    with cluster.heard():
        return np.asarray(cluster.client.compute(values).result())


def _alike(shapes: list[tuple[tuple[int, ...], np.dtype]]) -> tuple[np.dtype, int]:
    """Type and columns that all partitions with rows have."""
    first = next((i for i, (shape, _) in enumerate(shapes) if shape[0]), 0)
    like, dtype = shapes[first]
    for i, (shape, own) in enumerate(shapes):
        if len(shape) != 2:
            raise ValueError(f"partition {i} has {len(shape)} dimensions, accepted are two (rows, features)")
        if own.kind not in "buif":
            raise TypeError(f"X must hold real numbers, found dtype {own} in partition {i}")
        if shape[0] and (shape[1] != like[1] or own != dtype):
            raise ValueError(
                f"partition {i} has {shape[1]} columns of {own}, expected are {like[1]} of {dtype}, as in partition "
                f"{first}"
            )
    return dtype, like[1]


def _described(block: Any) -> tuple[tuple[int, ...], np.dtype]:
    return block.shape, block.dtype


def _bad_number(block: Any) -> tuple[int, int, Any] | None:
    return find_not_finite(np.asarray(block))


def _joined(cuts: list[tuple[int, int]], dtype: np.dtype, *pieces: Any) -> np.ndarray:
    return np.concatenate([np.asarray(piece[lo:hi], dtype) for (lo, hi), piece in zip(cuts, pieces)])


def _on_rows(packed: bytes, block: np.ndarray, *own: Any) -> Any:
    with one_blas_thread():  # as in a fit
        return pickle.loads(packed)(as_rows(_aligned(block)), *map(_aligned, own))


def _apart(packed: bytes, *own: Any) -> Any:
    with one_blas_thread():
        return pickle.loads(packed)(*map(_aligned, own))


def _aligned(item: Any) -> Any:
    """What came from another worker may begin at any byte: arrays, and those of examples, as compiled code has them.

    Functions and what they hold are packed in one piece, which is read anew.
    """
    if isinstance(item, Examples):
        further: Any = {
            name: {key: _aligned(values) for key, values in getattr(item, name).items()}
            for name in ("per_row", "per_example")
        }
        return replace(item, labels=_aligned(item.labels), weights=_aligned(item.weights), **further)
    return np.require(item, requirements=["A"]) if isinstance(item, np.ndarray) else item


def _taken(block: np.ndarray, index: np.ndarray) -> np.ndarray:
    return block[index]
