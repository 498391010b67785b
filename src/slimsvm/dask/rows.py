"""Rows of Dask collections, cut into parts of fixed bounds, so that partitions do not change results.

The client sends tasks, one for a block of parts; a worker applies a function to each part, and to what it kept of it.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import cloudpickle
import numpy as np

from slimsvm.core import isa
from slimsvm.core.threads import one_blas_thread
from slimsvm.dask.cluster import Cluster, partitions_of
from slimsvm.rows import Rows, as_rows
from slimsvm.tasks import Examples


@dataclass(frozen=True)
class TaskSizes:
    """Settings of the parts in one task: a task costs about a millisecond, and the last ones should end together."""

    rows: int = 1 << 20  # the most rows of a task
    n_bytes: int = 1 << 28  # the most bytes of them
    per_thread: int = 4  # the fewest tasks for each thread of the workers


TASK_SIZES = TaskSizes()


@dataclass(frozen=True)
class Kept:
    """Results that stay with the workers: the future of a `Made` for each task."""

    futures: list[Any]


class DaskRows(Rows):
    """Rows of a Dask array with known chunks, or of a dataframe.

    They lie with the workers in blocks of one or several parts; passes are tasks, one for each block, whose sums come
    back. A TypeError says that values are not real numbers. A ValueError names the partition and the row: X has not two
    dimensions, has chunks of unknown size, or a partition has other columns, another type or other rows than it should,
    or a NaN or an infinity.
    """

    in_memory = False
    has_random_access = False
    is_remote = True
    is_sparse = False

    def __init__(self, X: Any, cluster: Cluster, sizes: TaskSizes = TASK_SIZES):
        self.cluster = cluster
        found = partitions_of(X, cluster)
        self.dtype, self.n_features, self.feature_names = found.dtype, found.n_features, found.names
        self.n_rows = int(found.bounds[-1])
        self.n_stored = self.n_rows * self.n_features
        self._tasks = self._grouped(self.parts(), sizes)
        self._starts = np.array([parts[0][0] for parts in self._tasks])
        self._blocks = [found.cut(parts[0][0], parts[-1][1]) for parts in self._tasks]
        self._has_warned = False

    def _grouped(self, parts: list[tuple[int, int]], sizes: TaskSizes) -> list[list[tuple[int, int]]]:
        """Return the parts of each task."""
        rows = parts[0][1] - parts[0][0]
        bytes_of_part = rows * self.n_features * self.dtype.itemsize
        size = min(len(parts) // (sizes.per_thread * self.cluster.n_threads()), sizes.rows // rows)
        size = max(1, min(size, sizes.n_bytes // max(1, bytes_of_part)))
        return [parts[i : i + size] for i in range(0, len(parts), size)]

    # -- tasks --------------------------------------------------------------------------------------------------------

    def share(self, item: Any) -> Any:
        """Bring something that all tasks of a pass need to each worker once."""
        return self.cluster.submit(pickle.loads, cloudpickle.dumps(item))

    def place(self, items: list[Any]) -> Kept:
        """Bring the examples or scores of each part to a worker once, and again if that worker is lost."""
        packed = [packed_items(own) for own in self._by_task(items)]
        return Kept([self.cluster.submit(placed_items, own) for own in packed])

    def map(self, function: Callable[..., Any], *items: Any, keep: bool = False, shared: Any = None) -> Any:
        """Return function([shared,] rows, *own) for each part; items are lists with a value per part, or kept
        results.
        """
        return self._done(function, items, keep, shared, self._blocks)

    def each(self, function: Callable[..., Any], *items: Any, keep: bool = False) -> Any:
        """Return function(*own) for each part, without its rows."""
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
        """Return results of all parts; warn if workers used another instruction set."""
        others = {maker for made in found for maker in made.makers if maker[0] != isa()}
        if others and not self._has_warned:
            self._has_warned = True
            whose = ", ".join(f"{other} on {address}" for other, address in sorted(others))
            warnings.warn(
                f"workers round differently than this process, which uses the instruction set {isa()}: {whose}. "
                "Results may differ from other runs in their last digits: set SLIMSVM_ISA, here and for the workers, "
                "to an instruction set that all of them have",
                stacklevel=2,
            )
        return [value for made in found for value in made.values]

    # -- rows here ----------------------------------------------------------------------------------------------------

    def take(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """Return rows at the positions of ``index``, in that order."""
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
        """Return rows lo, …, hi − 1."""
        hi = max(lo, min(hi, self.n_rows))
        if lo == hi:
            return np.empty((0, self.n_features), dtype)
        first, last = self._owners(np.array([lo, hi - 1]))
        starts = self._starts[first : last + 1]
        own = [slice(max(0, lo - int(start)), hi - int(start)) for start in starts]
        futures = self.cluster.submit_all(taken, self._blocks[first : last + 1], own)
        return np.ascontiguousarray(np.concatenate(self.cluster.gather(futures)), dtype)

    def _owners(self, index: np.ndarray) -> np.ndarray:
        """Return the indices of the blocks that hold the rows."""
        return np.searchsorted(self._starts, index, side="right") - 1


# -- what workers do -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """The results of a task, and the workers that contributed."""

    values: list[Any]  # one for each part
    # Instruction set and address of the worker, and of those whose results went into this one.
    makers: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Work:
    """The work of a task."""

    function: bytes  # pickled, as are all the values below: no one between client and worker looks into them
    bounds: list[tuple[int, int]]  # the parts of the block
    # Further arguments: a list with a value for each part, or None if the worker kept the values.
    own: list[list[Any] | None]


def on_parts(packed: bytes, shared: Any, block: np.ndarray | None, *kept: Made) -> Made:
    """Return function([shared,] [rows,] *own) of each part."""
    work: Work = pickle.loads(packed)
    function, waiting = pickle.loads(work.function), iter(kept)
    if shared is not None:
        function = partial(function, shared)
    columns = [next(waiting).values if column is None else column for column in work.own]
    values = []
    with one_blas_thread():  # as in a fit
        for i, (lo, hi) in enumerate(work.bounds):
            rows = [] if block is None else [as_rows(aligned(block[lo:hi]))]
            values.append(function(*rows, *(aligned(column[i]) for column in columns)))
    return Made(values, frozenset().union({maker()}, *(item.makers for item in kept)))


def maker() -> tuple[str, str]:
    """Return instruction set and address of the worker that this runs on."""
    from distributed import get_worker

    return isa(), get_worker().address


def aligned(item: Any) -> Any:
    """Copy arrays, and the arrays of examples, that do not begin where compiled code needs it.

    An array from another worker may begin at any byte.
    """
    if isinstance(item, Examples):
        further: Any = {
            name: {key: aligned(values) for key, values in getattr(item, name).items()}
            for name in ("per_row", "per_example")
        }
        return replace(item, labels=aligned(item.labels), weights=aligned(item.weights), **further)
    return np.require(item, requirements=["A"]) if isinstance(item, np.ndarray) else item


def taken(block: np.ndarray, index: Any) -> np.ndarray:
    """Return some rows of a block."""
    return block[index]


# -- what parts have from the client, on its way to a worker -----------------------------------------------------------


def packed_items(items: list[Any]) -> bytes:
    """Return pickled arrays or examples of several parts; equal weights travel as one number."""
    return pickle.dumps([replace(i, weights=_thin(i.weights)) if isinstance(i, Examples) else i for i in items])


def placed_items(packed: bytes) -> Made:
    """Unpack items, with all their weights."""
    items = pickle.loads(packed)
    full = [replace(i, weights=_full(i.weights, i.n_rows)) if isinstance(i, Examples) else i for i in items]
    return Made(full, frozenset())


def _thin(weights: np.ndarray) -> np.ndarray:
    return weights[:1] if len(weights) and (weights == weights[0]).all() else weights


def _full(weights: np.ndarray, n: int) -> np.ndarray:
    return np.full(n, weights[0]) if len(weights) == 1 else weights
