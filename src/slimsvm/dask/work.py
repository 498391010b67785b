"""What workers do: a function of each part of a block of rows, and of what was kept of it."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from slimsvm.core import isa
from slimsvm.core.threads import one_blas_thread
from slimsvm.rows import as_rows
from slimsvm.tasks import Examples


@dataclass(frozen=True)
class Made:
    """What a task made of its parts, and who had a hand in it.

    Parameters
    ----------
    values : list
        One for each part.
    makers : frozenset of (str, str)
        Instruction set and address of the worker, and of those whose results went into this one.
    """

    values: list[Any]
    makers: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Work:
    """What is asked of a task.

    Parameters
    ----------
    function : bytes
        Pickled, as are all the values below: no one between client and worker looks into them.
    bounds : list of (int, int)
        The parts of the block.
    own : list of (list or None)
        Further arguments, of each a value for each part; None where they are what was kept.
    """

    function: bytes
    bounds: list[tuple[int, int]]
    own: list[list[Any] | None]


def on_parts(packed: bytes, shared: Any, block: np.ndarray | None, *kept: Made) -> Made:
    """function([shared,] [rows,] *own) of each part."""
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
    """Instruction set and address of the worker that this runs on."""
    from distributed import get_worker

    return isa(), get_worker().address


def aligned(item: Any) -> Any:
    """What came from another worker may begin at any byte: arrays, and those of examples, as compiled code has them.

    Functions and what they hold are packed in one piece, which is read anew.
    """
    if isinstance(item, Examples):
        further: Any = {
            name: {key: aligned(values) for key, values in getattr(item, name).items()}
            for name in ("per_row", "per_example")
        }
        return replace(item, labels=aligned(item.labels), weights=aligned(item.weights), **further)
    return np.require(item, requirements=["A"]) if isinstance(item, np.ndarray) else item


def taken(block: np.ndarray, index: Any) -> np.ndarray:
    """Some rows of a block."""
    return block[index]


# -- what parts have from the client, on its way to a worker -----------------------------------------------------------


def packed_items(items: list[Any]) -> bytes:
    """Arrays or examples of several parts; of weights that are alike one."""
    return pickle.dumps([replace(i, weights=_thin(i.weights)) if isinstance(i, Examples) else i for i in items])


def placed_items(packed: bytes) -> Made:
    """What was packed, with all weights."""
    items = pickle.loads(packed)
    full = [replace(i, weights=_full(i.weights, i.n_rows)) if isinstance(i, Examples) else i for i in items]
    return Made(full, frozenset())


def _thin(weights: np.ndarray) -> np.ndarray:
    return weights[:1] if len(weights) and (weights == weights[0]).all() else weights


def _full(weights: np.ndarray, n: int) -> np.ndarray:
    return np.full(n, weights[0]) if len(weights) == 1 else weights
