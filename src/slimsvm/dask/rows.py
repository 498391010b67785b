"""Rows of Dask collections, cut anew into parts of fixed bounds, so that partitions leave no trace in results."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np

from slimsvm.core import isa
from slimsvm.dask.cluster import Cluster
from slimsvm.dask.partitions import partitions_of
from slimsvm.dask.work import Made, Work, on_parts, packed_items, placed_items, taken
from slimsvm.rows import Rows

# Parts are worked on several at a time, up to so many rows and bytes of them, where every thread of the workers still
# has so many tasks: a task costs about a millisecond, and the last ones should not be waited for long.
TASK_ROWS, TASK_BYTES, TASKS_PER_THREAD = 1 << 20, 1 << 28, 4


@dataclass(frozen=True)
class Kept:
    """Results that stay with the workers: the future of a `Made` for each task."""

    futures: list[Any]


class DaskRows(Rows):
    """Rows of a Dask array or dataframe.

    They lie with the workers in blocks of one or several parts; passes are tasks, one for each block, whose sums come
    back.

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
        found = partitions_of(X, cluster)
        self.dtype, self.n_features, self.feature_names = found.dtype, found.n_features, found.names
        self.n_rows = int(found.bounds[-1])
        self.n_stored = self.n_rows * self.n_features
        self._tasks = self._grouped(self.parts())
        self._starts = np.array([parts[0][0] for parts in self._tasks])
        self._blocks = [found.cut(parts[0][0], parts[-1][1]) for parts in self._tasks]
        self._has_warned = False

    def _grouped(self, parts: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
        """The parts of each task."""
        rows = parts[0][1] - parts[0][0]
        bytes_of_part = rows * self.n_features * self.dtype.itemsize
        size = min(len(parts) // (TASKS_PER_THREAD * self.cluster.n_threads()), TASK_ROWS // rows)
        size = max(1, min(size, TASK_BYTES // max(1, bytes_of_part)))
        return [parts[i : i + size] for i in range(0, len(parts), size)]

    # -- tasks --------------------------------------------------------------------------------------------------------

    def share(self, item: Any) -> Any:
        """Something that passes want of it all, brought to each worker once."""
        return self.cluster.submit(pickle.loads, cloudpickle.dumps(item))

    def place(self, items: list[Any]) -> Kept:
        """Examples or scores of each part, brought to a worker once; what is lost with it is brought there again."""
        packed = [packed_items(own) for own in self._by_task(items)]
        return Kept([self.cluster.submit(placed_items, own) for own in packed])

    def map(self, function: Callable[..., Any], *items: Any, keep: bool = False, shared: Any = None) -> Any:
        """function([shared,] rows, *own) for each part; items are lists with a value for each part, or results kept."""
        return self._done(function, items, keep, shared, self._blocks)

    def each(self, function: Callable[..., Any], *items: Any, keep: bool = False) -> Any:
        """As `map`, of items alone."""
        return self._done(function, items, keep, None, [None] * len(self._tasks))

    def _done(self, function: Callable[..., Any], items: Any, keep: bool, shared: Any, blocks: list[Any]) -> Any:
        own = [None if isinstance(item, Kept) else self._by_task(item) for item in items]
        kept = [item.futures for item in items if isinstance(item, Kept)]
        packed_function, packed = cloudpickle.dumps(function), []
        for i, parts in enumerate(self._tasks):
            bounds = [(lo - parts[0][0], hi - parts[0][0]) for lo, hi in parts]
            columns = [None if column is None else column[i] for column in own]
            packed.append(pickle.dumps(Work(packed_function, bounds, columns)))
        futures = self.cluster.submit_all(on_parts, packed, [shared] * len(packed), blocks, *kept)
        return Kept(futures) if keep else self._values(self.cluster.gather(futures))

    def _by_task(self, items: list[Any]) -> list[list[Any]]:
        ends = np.cumsum([len(parts) for parts in self._tasks])
        return [items[end - len(parts) : end] for end, parts in zip(ends, self._tasks)]

    def _values(self, found: list[Made]) -> list[Any]:
        """Values of all parts, made with the same instructions or with a warning."""
        others = {maker for made in found for maker in made.makers if maker[0] != isa()}
        if others and not self._has_warned:
            self._has_warned = True
            whose = ", ".join(f"{other} on {address}" for other, address in sorted(others))
            warnings.warn(
                f"workers round otherwise than this process, which uses the instruction set {isa()}: {whose}. Results "
                "may differ in their last digits from those of other runs: set SLIMSVM_ISA to one that all of them "
                "have, here and for the workers",
                stacklevel=2,
            )
        return [value for made in found for value in made.values]

    # -- rows here ----------------------------------------------------------------------------------------------------

    def take(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """Rows at the positions of ``index``, in that order."""
        index = np.asarray(index, np.int64)
        out, owner = np.empty((len(index), self.n_features), dtype), self._owners(index)
        asked = np.unique(owner)
        places = [np.flatnonzero(owner == i) for i in asked]
        own = [index[at] - self._starts[i] for i, at in zip(asked, places)]
        futures = self.cluster.submit_all(taken, [self._blocks[i] for i in asked], own)
        for at, rows in zip(places, self.cluster.gather(futures)):
            out[at] = rows
        return out

    def slice(self, lo: int, hi: int, dtype: Any) -> np.ndarray:
        """Rows lo, …, hi − 1."""
        hi = max(lo, min(hi, self.n_rows))
        if lo == hi:
            return np.empty((0, self.n_features), dtype)
        first, last = self._owners(np.array([lo, hi - 1]))
        starts = self._starts[first : last + 1]
        own = [slice(max(0, lo - int(start)), hi - int(start)) for start in starts]
        futures = self.cluster.submit_all(taken, self._blocks[first : last + 1], own)
        return np.ascontiguousarray(np.concatenate(self.cluster.gather(futures)), dtype)

    def _owners(self, index: np.ndarray) -> np.ndarray:
        """The blocks that rows are in."""
        return np.searchsorted(self._starts, index, side="right") - 1
