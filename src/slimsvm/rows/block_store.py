"""A store of blocks: it keeps as many as fit, and during a pass makes the next one ahead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from slimsvm.core.threads import renew_lock_after_fork
from slimsvm.rows.arrays import Rows

# There is no block.
NONE: tuple[int, Rows | None] = -2, None


class BlockStore:
    """Blocks by number, which ``make(i)`` makes, one at a time.

    The first blocks that fit in ``max_bytes`` are kept for good, so that every pass over all blocks finds the same ones
    there; keeping the blocks used last would help no pass. Beside them the last two blocks used are kept where they are
    neighbours. Who asks for one block after another gets the next from a thread that makes it ahead.
    """

    def __init__(self, make: Callable[[int], Rows], n_blocks: int, max_bytes: int):
        self._make, self.n_blocks, self.max_bytes = make, n_blocks, max_bytes
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        renew_lock_after_fork(self)
        self._kept: dict[int, Rows] = {}
        self._bytes = 0
        self._last = self._before = NONE
        self._ahead: _Ahead | None = None

    def get(self, i: int) -> Rows:
        """Return block i."""
        with self._lock:
            last, block = self._last[0], self._kept.get(i)
            if block is None and i == self._before[0]:
                self._last, self._before = self._before, self._last
                block = self._last[1]
            elif block is None:
                block = self._last[1] if i == last else None
            if block is None:
                self._before = NONE  # freed before another is made
                block = self._awaited(i) or self._make(i)
                self._keep(i, block)
            self._use(i, block)
            if i == last + 1 and i + 1 < self.n_blocks and i + 1 not in self._kept and self._ahead is None:
                self._ahead = _Ahead(self._make, i + 1)
            return block

    def put(self, i: int, block: Rows) -> None:
        """Keep a block that was made elsewhere."""
        with self._lock:
            self._keep(i, block)
            self._last, self._before = (i, block), NONE

    def _use(self, i: int, block: Rows) -> None:
        """Remember the block as the last one used, and keep the one used before it where that is its neighbour."""
        if i != self._last[0]:
            self._before = self._last if i == self._last[0] + 1 else NONE
            self._last = i, block

    def _keep(self, i: int, block: Rows) -> None:
        size = bytes_of(block)
        if self._bytes + size <= self.max_bytes:
            self._kept[i] = block
            self._bytes += size

    def _awaited(self, i: int) -> Rows | None:
        """Return the block made ahead if it is block i; None if the thread failed, and the caller makes it."""
        if self._ahead is None:
            return None
        ahead, self._ahead = self._ahead, None
        block = ahead.wait()
        return block if ahead.i == i else None

    def __getstate__(self) -> dict[str, Any]:
        return {"_make": self._make, "n_blocks": self.n_blocks, "max_bytes": self.max_bytes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


class _Ahead:
    """A block that a thread is making."""

    def __init__(self, make: Callable[[int], Rows], i: int):
        self.i = i
        self._make = make
        self._made: Rows | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="slimsvm-next-block")
        self._thread.start()

    def _work(self) -> None:
        try:
            self._made = self._make(self.i)
        except Exception:  # the caller that needs the block meets the error again
            self._made = None

    def wait(self) -> Rows | None:
        """Wait for the block and return it, or None if it could not be made."""
        self._thread.join()
        return self._made


def bytes_of(rows: Rows) -> int:
    """Return about how many bytes a block takes."""
    return rows.n_stored * (rows.dtype.itemsize + (8 if rows.is_sparse else 0))
