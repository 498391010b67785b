"""The kernel values that decomposition needs over its active rows: blocks, and changes of Kv.

A kernel value costs a constant plus a cost per feature of a dense row; with some 50 features, reading a cached one
costs about as much. So `KernelValues` caches kernel rows (rows of K) if values cost more than
that, otherwise only while all active rows are one working set. `KernelCache` holds them; `KernelTable` holds all values
between the few rows of an online solver, which come and go.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

from slimsvm import core
from slimsvm.core.clock import check_time
from slimsvm.kernels import KernelRows, Points
from slimsvm.parts.dual_ascent.dual import Slopes
from slimsvm.parts.dual_ascent.smo import KernelBlock
from slimsvm.parts.problem import Kept, Room
from slimsvm.rows import in_pieces

Array = np.ndarray


@dataclass(frozen=True)
class CacheSettings:
    """Settings of how kernel rows grow; docs/experiments/exact_solver.md, "Few rows as one working set"."""

    # Kernel rows that are computed together: at least, at most, and as a share of those in the cache.
    least: int = 128
    most: int = 256
    share: float = 0.5
    # Up to this many rows have all kernel rows computed at once: choosing the next ones would take longer.
    few_rows: int = 1024
    # Kernel rows are computed for rows whose slope is this near to the greatest, as a share of the violation.
    near: float = 0.5


@dataclass(frozen=True)
class ValueSettings:
    """Settings of which kernel values are kept, and of how many rows a working set has.

    docs/experiments/exact_solver.md settles the sizes of sets ("Working sets that hold the free rows"), and how many
    kernel rows and columns are computed together ("Which side of a block"). The others were chosen, not measured.
    """

    cache: CacheSettings = CacheSettings()
    # Dense rows of at most this many numbers have no values cached, and no blocks gathered from kernel rows: both are
    # computed each time.
    never_kept: int = 64
    never_gathered: int = 160
    # The size of a working set whose block is gathered, or computed, and its limit.
    gathered_set: int = 1024
    computed_set: int = 2048
    largest_set: int = 8192
    # Up to this many active rows are one working set without a cache: kernel rows are computed as steps need them.
    whole_set: int = 4096
    # Kernel rows per call if rows are folded in passing: enough for every thread, with a small temporary array.
    rows_per_block: int = 96
    # If rows are folded in memory, this many kernel rows by columns are computed, then copied to their places. The
    # kernel rows' own rows are the points then and stay in the processor's caches; the columns are read once for all.
    rows_at_once: int = 256
    columns_at_once: int = 2048
    # The first number of slots in an online solver's table.
    first_slots: int = 256


# The default settings.
USUAL = ValueSettings()

# About how many entries of kernel rows one thread adds up, or copies, in a microsecond: they tell when to wake threads.
ADDED, COPIED = 2000, 500


def caches_rows(kernel_rows: KernelRows, settings: ValueSettings) -> bool:
    """Return whether kernel values cost enough to be cached."""
    return numbers_per_value(kernel_rows) > settings.never_kept


def numbers_per_value(kernel_rows: KernelRows) -> float:
    """Return how many float32 numbers a kernel value of dense rows reads; infinite if no folded copy is in memory."""
    if kernel_rows.rows.is_sparse or not kernel_rows.is_kept:
        return np.inf
    return float(kernel_rows.n_features * kernel_rows.dtype.itemsize / 4)


# -- Values that are kept ---------------------------------------------------------------------------------------------


class KernelCache:
    """Kernel rows K(x_i, active rows), computed when they are asked for; the least recently used are replaced first.

    A cache that ``grows`` takes further columns and replaces kernel rows; another has room for all (`add`). ``values``
    (n_slots, capacity) has the columns in the order of ``active``; `of` says how far they are computed.
    """

    def __init__(
        self,
        kernel_rows: KernelRows,
        memory_limit: int,
        active: Array,
        room: Room,
        settings: ValueSettings = USUAL,
        grows: bool = True,
    ):
        self.kernel_rows, self.settings, self.grows = kernel_rows, settings, grows
        self.memory_limit, self.room = memory_limit, room
        # Values that cost little are computed in place, which is faster than copying them.
        self._puts_rows = kernel_rows.is_kept and caches_rows(kernel_rows, settings)
        self._restart(active)

    def _restart(self, active: Array) -> None:
        n, itemsize = self.kernel_rows.n_rows, self.kernel_rows.dtype.itemsize
        self.active = active
        capacity = max(1, min(n, 2 * len(active)) if self.grows else len(active))
        self.n_slots = n_slots = min(capacity, self.memory_limit // (itemsize * capacity))
        self.values = self.room.array((n_slots, capacity), self.kernel_rows.dtype)
        # The buffer is used again and again: new memory costs as much as computing the values in it.
        size = min(self.settings.rows_per_block, n_slots) * capacity if self.grows else 0
        if self._puts_rows:
            size = min(self.settings.rows_at_once, n_slots) * min(self.settings.columns_at_once, capacity)
        self._buffer = np.empty(size, self.kernel_rows.dtype)
        self._parts = [(0, len(active), self._columns(active))]
        self._slot_of = np.full(n, -1)
        self._owner = np.full(n_slots, -1)
        self._valid = np.zeros(n_slots, np.int64)
        self._stamp = np.zeros(n_slots, np.int64)
        self._clock = self._n_added = 0

    def _columns(self, rows: Array) -> Points | None:
        """Return the points of the columns, unless kernel rows are computed from the rows themselves."""
        return None if self._puts_rows else self.kernel_rows.points(rows)

    def extend(self, rows: Array) -> None:
        """Let rows be columns too, after those there are."""
        lo, hi = len(self.active), len(self.active) + len(rows)
        active = np.concatenate([self.active, rows])
        if hi > self.values.shape[1]:
            self._restart(active)
        elif len(rows):
            self.active = active
            self._parts.append((lo, hi, self._columns(rows)))

    def keep(self, places: Array) -> None:
        """Keep only the columns at these places, which rise."""
        used = np.flatnonzero(self._valid)
        values, valid = self.values, self._valid[used]
        core.keep_columns(
            values=values,
            slots=used,
            valid=valid,
            keep=places,
            n_threads=self.kernel_rows.n_jobs,
            microseconds=len(used) * len(places) / COPIED,
        )
        self._valid[used] = np.searchsorted(places, valid)
        bounds = np.searchsorted(places, [hi for _, hi, _ in self._parts])
        self.active = self.active[places]
        self._parts = [
            (lo, hi, self._columns(self.active[lo:hi]))
            for lo, hi in zip([0, *bounds[:-1]], bounds, strict=True)
            if hi > lo
        ]

    def of(self, rows: Array) -> Array:
        """Return the slots of the kernel rows of these distinct rows, at most `n_slots`, with all columns computed."""
        self._clock += 1
        slots = self._slot_of[rows]
        self._stamp[slots[slots >= 0]] = self._clock
        missing = np.flatnonzero(slots < 0)
        if len(missing):
            slots[missing] = free = np.argsort(self._stamp, kind="stable")[: len(missing)]
            self._slot_of[self._owner[free][self._owner[free] >= 0]] = -1
            self._owner[free], self._slot_of[rows[missing]] = rows[missing], free
            self._valid[free], self._stamp[free] = 0, self._clock
        for lo, hi, points in self._parts:
            wanting = np.flatnonzero(self._valid[slots] <= lo)
            at_once = self.settings.rows_at_once if points is None else self.settings.rows_per_block
            for piece in in_pieces(len(wanting), at_once):
                part = wanting[piece]
                if points is None:
                    self._put(rows[part], slots[part], lo, hi)
                else:
                    self._compute(rows[part], slots[part], lo, hi, points)
                self._valid[slots[part]] = hi
        found: Array = slots
        return found

    def add(self, rows: Array) -> Array:
        """Compute kernel rows in the next free slots of a cache that never replaces any; return the slots."""
        ((_, hi, points),) = self._parts
        assert points is not None
        added = slice(self._n_added, self._n_added + len(rows))
        self.kernel_rows.block(points, rows=rows, out=self.values[added])
        self._n_added = added.stop
        slots = np.arange(added.start, added.stop)
        self._slot_of[rows], self._owner[slots], self._valid[slots] = slots, rows, hi
        return slots

    def _compute(self, rows: Array, slots: Array, lo: int, hi: int, points: Points) -> None:
        """Compute columns lo to hi of some kernel rows, with the columns as points."""
        block = self._buffer[: len(rows) * (hi - lo)].reshape(len(rows), hi - lo)
        self.values[slots, lo:hi] = self.kernel_rows.block(points, rows=rows, out=block)

    def _put(self, rows: Array, slots: Array, lo: int, hi: int) -> None:
        """Compute columns lo to hi of some kernel rows, with these rows as points, and copy them into their slots."""
        points, values, k, step = self.kernel_rows.points(rows), self.values, len(rows), self.settings.columns_at_once
        for first in range(lo, hi, step):
            columns = self.active[first : min(hi, first + step)]
            block = self._buffer[: len(columns) * k].reshape(len(columns), k)
            self.kernel_rows.block(points, rows=columns, out=block)
            core.put_kernel_rows(
                block=block,
                slots=slots,
                first=first,
                values=values,
                n_threads=self.kernel_rows.n_jobs,
                microseconds=block.size / COPIED,
            )


# Steps on pairs change the v of rows in this cache, and update g of all rows. Once the cached rows are nearly solved
# for, the rows that violate most get kernel rows, too. So few kernel rows are computed in vain, none twice, and g never
# again: these are most of what working sets cost on problems that take few steps per row.


class GrowingCache:
    """Kernel rows of one working set of all active rows: only rows that violate have theirs computed.

    The cache has room for all of them. ``slots`` says where the kernel row of each active row is, or -1, and
    ``is_whole`` whether all are computed; there is no ``diagonal`` if they were computed at once.
    """

    def __init__(self, cache: KernelCache):
        n, self.cache, self.settings = len(cache.active), cache, cache.settings.cache
        self.slots, self.n_computed = np.full(n, -1), 0
        self.diagonal: Array | None = None
        self.is_whole = not n
        if n <= self.settings.few_rows:
            self.make(np.arange(n))
        else:
            self.diagonal = cache.kernel_rows.diag(cache.active).astype(cache.kernel_rows.dtype)

    @property
    def values(self) -> Array:
        """Return the kernel rows, in the order in which they were computed."""
        return self.cache.values

    def make(self, rows: Array) -> None:
        """Compute the kernel rows at these places that are missing."""
        places = rows[self.slots[rows] < 0]
        if len(places):
            self.slots[places] = self.cache.add(self.cache.active[places])
            self.n_computed += len(places)
            self.is_whole = self.n_computed == len(self.slots)

    def make_worst(self, found: Slopes) -> int:
        """Compute kernel rows of rows that violate most and lack them; return how many."""
        own, missing = self.settings, np.flatnonzero(self.slots < 0)
        near = own.near * (found.highest - found.lowest)
        up, down = found.up[missing], found.down[missing]
        most = max(own.least, min(own.most, int(own.share * self.n_computed))) // 2
        tops, bottoms = np.flatnonzero(up >= found.highest - near), np.flatnonzero(down <= found.lowest + near)
        if len(tops) > most:
            tops = tops[np.argpartition(-up[tops], most)[:most]]
        if len(bottoms) > most:
            bottoms = bottoms[np.argpartition(down[bottoms], most)[:most]]
        before = self.n_computed
        if len(tops) or len(bottoms):
            self.make(missing[np.union1d(tops, bottoms)])
        return self.n_computed - before


# -- Values that working sets ask for ---------------------------------------------------------------------------------


class KernelValues:
    """Kernel values among active rows, from stored kernel rows or computed again, whichever is faster for these rows.

    In ``kept``, kernel rows of all rows stay for the next fit, if they fit; ``room`` is memory for other kernel rows
    and blocks. Changes of g come from kernel rows if ``caches_rows``. The block, or kernel rows, of ``n_slots`` rows
    fit. Up to ``whole_size`` active rows begin as one working set.
    """

    def __init__(
        self,
        kernel_rows: KernelRows,
        memory_limit: int,
        active: Array,
        kept: Kept | None = None,
        room: Room | None = None,
        settings: ValueSettings = USUAL,
    ):
        self.kernel_rows, self.memory_limit, self.active, self.settings = kernel_rows, memory_limit, active, settings
        self.room = Room() if room is None else room
        n, itemsize = kernel_rows.n_rows, kernel_rows.dtype.itemsize
        has_room = kept is not None and n * n * itemsize * kept.n_parts <= memory_limit
        self.kept = kept if has_room and len(active) == n else None
        self.caches_rows = caches_rows(kernel_rows, settings)
        self.cache: KernelCache | None = None
        self._growing: GrowingCache | None = None  # the cache of all active rows if there is no other
        self._latest: tuple[Array, Array] | None = None  # the last working set, and its block if it was computed
        if not self.caches_rows:
            self.n_slots, self.whole_size = isqrt(memory_limit // itemsize), settings.whole_set
            return
        if self.kept is not None:
            self.cache = self.kept.once("cache", lambda: self._new_cache(Room(), grows=True))
        else:
            self.cache = self._new_cache(self.room, grows=True)
        self.n_slots, self.whole_size = self.cache.n_slots, 0

    def _new_cache(self, room: Room, grows: bool) -> KernelCache:
        return KernelCache(self.kernel_rows, self.memory_limit, self.active, room, self.settings, grows)

    @property
    def best_size(self) -> int:
        """Return a sixth of the active rows within limits, or fewer if blocks are gathered from kernel rows."""
        own = self.settings
        if not self.caches_rows:
            return min(own.largest_set, max(own.computed_set, len(self.active) // 6))
        return own.computed_set if self._computes_blocks else own.gathered_set

    @property
    def _computes_blocks(self) -> bool:
        """Whether blocks are computed rather than gathered from kernel rows."""
        return not self.caches_rows or numbers_per_value(self.kernel_rows) <= self.settings.never_gathered

    def extend(self, rows: Array) -> None:
        """Let rows be active too, after those there are."""
        self.active = np.concatenate([self.active, rows])
        self._growing = None
        if self.cache is not None:
            self.cache.extend(rows)
            self.n_slots = self.cache.n_slots

    def keep(self, places: Array) -> None:
        """Keep only the active rows at these places, which rise."""
        self.active = self.active[places]
        self._growing = None
        if self.cache is not None:
            self.cache.keep(places)

    def block(self, places: Array) -> KernelBlock:
        """Return kernel values among the active rows at places; of all rows, some kernel rows may still be missing."""
        if len(places) < len(self.active):
            if self._computes_blocks:
                return KernelBlock(self._computed(self.active[places]), np.arange(len(places)))
            return KernelBlock(self._gathered(places), np.arange(len(places)))
        if self.cache is not None:
            slots = self.cache.of(self.active)
            return KernelBlock(self.cache.values, slots)
        self._latest = None  # its memory is used again
        if self._growing is None:
            is_of_all = len(places) == self.kernel_rows.n_rows and np.array_equal(self.active, np.arange(len(places)))
            if self.kept is not None and is_of_all:
                self._growing = self.kept.once("cache", lambda: GrowingCache(self._new_cache(Room(), grows=False)))
            else:
                self._growing = GrowingCache(self._new_cache(self.room, grows=False))
        found = self._growing
        growing = None if found.diagonal is None else found
        return KernelBlock(found.values, found.slots, diagonal=found.diagonal, growing=growing)

    def _computed(self, rows: Array) -> Array:
        """Return the values among a working set, computed again unless it is the last one."""
        if self._latest is None or not np.array_equal(rows, self._latest[0]):
            self._growing, out = None, None
            if not self.caches_rows:  # these have the memory
                out = self.room.array((len(rows), len(rows)), self.kernel_rows.dtype)
            self._latest = rows, self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows, out=out)
        return self._latest[1]

    def _gathered(self, places: Array) -> Array:
        """Return the values among a working set, gathered from kernel rows."""
        assert self.cache is not None
        slots, values = self.cache.of(self.active[places]), self.cache.values
        found = np.empty((len(places), len(places)), values.dtype)
        core.gather_kernel_rows(
            values=values,
            slots=slots,
            places=places,
            out=found,
            n_threads=self.kernel_rows.n_jobs,
            microseconds=found.size / COPIED,
        )
        return found

    def descend(self, g: Array, places: Array, change: Array, constant: float) -> None:
        """Subtract from g of all active rows what a change of v at places adds to Kv, and a constant."""
        if self.cache is None:
            points = self.kernel_rows.points(self.active[places])
            g -= self.kernel_rows.scores(points, change[:, None], rows=self.active)[:, 0]
        else:
            for part in in_pieces(len(places), self.n_slots):
                slots, values = self.cache.of(self.active[places[part]]), self.cache.values
                core.subtract_kernel_rows(
                    values=values,
                    slots=slots,
                    change=change[part].astype(values.dtype),
                    g=g,
                    n_threads=self.kernel_rows.n_jobs,
                    microseconds=len(slots) * len(g) / ADDED,
                )
        g -= constant


# -- Kernel values between the rows that an online solver keeps, all of them, as rows come and go ----------------------

# Kernel values computed in one piece, in some 10 ms: Ctrl-C is checked between pieces.
PIECE = 1 << 21


class KernelTable:
    """K between rows in slots: a new row costs one kernel value per row in the table, and none later.

    `KernelCache` drops kernel rows and computes them again; here none is dropped while its row is in use, since every
    step of an online solver needs the values between all rows that it keeps. ``name`` says whose table it is when it is
    full.
    """

    def __init__(self, kernel_rows: KernelRows, memory_limit: int, name: str, first_slots: int):
        self.kernel_rows, self.name = kernel_rows, name
        # Both tables are in memory while it grows, and the old one is at least half as wide.
        self.most = isqrt(4 * memory_limit // (5 * kernel_rows.dtype.itemsize))
        size = min(first_slots, self.most)
        # Symmetric; entries between slots that are not in use are old ones, or 0.
        self.values = np.zeros((size, size), kernel_rows.dtype)
        self.row = np.full(size, -1)  # the row in every slot
        self.top = 0  # no slot in use is beyond

    def add(self, rows: Array, used: Array) -> Array:
        """Add these rows, compute their kernel values, and return their slots; the slots ``used`` stay as they are."""
        taken = np.zeros(self.top + len(rows), bool)
        taken[used] = True
        slots = np.flatnonzero(~taken)[: len(rows)]
        self._reserve(int(slots.max(initial=-1)) + 1)
        self.row[slots] = rows
        others = np.concatenate([used, slots])
        for part in in_pieces(len(rows), PIECE // len(others)):
            block = self.kernel_rows.block(self.kernel_rows.points(rows[part]), rows=self.row[others])
            self.values[others[:, None], slots[part]] = block
            self.values[slots[part, None], others] = block.T
        self.top = max(self.top, int(slots.max(initial=-1)) + 1)
        return slots

    def _reserve(self, size: int) -> None:
        if size > self.most:
            raise ValueError(
                f"{self.name} keeps the kernel values between all its vectors, and memory_limit leaves room for "
                f"{self.most} of them; {size} are needed: raise memory_limit, or lower C"
            )
        if size > len(self.values):
            new = min(self.most, max(size, 2 * len(self.values)))
            values, row = np.zeros((new, new), self.values.dtype), np.full(new, -1)
            for part in in_pieces(self.top, PIECE // new):
                check_time()
                values[part, : self.top] = self.values[part, : self.top]
            row[: self.top] = self.row[: self.top]
            self.values, self.row = values, row
