"""What the methods of an `ExampleTask` returned: a fit asks once, since they depend on their arguments alone."""

from __future__ import annotations

import copy
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from slimsvm.tasks.example_task import ExampleTask

Array = np.ndarray

# Bytes that one fit keeps. What does not fit is asked again.
ROOM = 1 << 26
# Bytes of the Python objects around an array.
OVERHEAD = 400
ATOMS = (int, float, complex, bool, str, bytes, type(None))


@dataclass
class Listed:
    """The labellings of examples of so many rows and one structure.

    Parameters
    ----------
    items : list
        The first of ``task.labels``, in that order.
    coefs : float64 ndarray of shape (n_items, n_rows · n_outputs)
    plains : list of float64 ndarrays of shape (n_plain,)
    is_all : bool
        Whether all labellings had room.
    costs : dict of array
        The losses of all items, by the right labelling's name.
    """

    items: list[Any]
    coefs: Array
    plains: list[Array]
    is_all: bool
    costs: dict[Any, Array] = field(default_factory=dict)


class Known:
    """What one task has said about labellings; shared by a fit's examples and all parts of them."""

    def __init__(self) -> None:
        self._lists: dict[Any, Listed] = {}
        self._values: dict[Any, Any] = {}
        self._names: dict[int, tuple[Any, Any]] = {}
        self._room, self._spent = ROOM, 0
        self._lock = RLock()

    def __reduce__(self) -> tuple[type[Known], tuple[()]]:
        return Known, ()

    @contextmanager
    def of(self, task: ExampleTask) -> Iterator[None]:
        """Within it ``task.best`` finds what is known, also where a subclass calls its parent's."""
        token = CURRENT.set((task, self))
        try:
            yield
        finally:
            CURRENT.reset(token)

    def parts(self, task: ExampleTask, y: Any, keywords: dict[str, Any], where: str = "") -> tuple[Array, Array]:
        """`ExampleTask.parts`."""

        def ask() -> tuple[Array, Array]:
            coef, part = task.parts(y, keywords, where)
            return coef.copy(), part.copy()

        found: tuple[Array, Array] = self._value((self.name(y),), keywords, ask)
        return found

    def loss(self, task: ExampleTask, y: Any, other: Any, keywords: dict[str, Any]) -> float:
        """`ExampleTask.loss`."""
        return float(self._value((self.name(y), self.name(other)), keywords, lambda: task.loss(y, other, **keywords)))

    def find(self, task: ExampleTask, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None) -> Any:
        """The labelling of the greatest score, plus its loss where y is given, of all that the task lists."""
        listed = self._listed(task, len(scores), keywords)
        best, best_worth = None, -np.inf
        if listed.items:
            worths = (listed.coefs * scores.ravel()).sum(axis=1)
            worths += [part @ plain for part in listed.plains]
            if y is not None:
                worths += self._costs(task, listed, y, keywords)
            worths[np.isnan(worths)] = -np.inf
            k = int(worths.argmax())
            if worths[k] > best_worth:
                best, best_worth = listed.items[k], worths[k]
        if not listed.is_all:
            for other in islice(task.labels(len(scores), **keywords), len(listed.items), None):
                worth = task.worth(other, scores, plain, keywords, y)
                if worth > best_worth:
                    best, best_worth = copied(other), worth
        if best_worth == -np.inf:
            raise ValueError(f"{type(task).__name__}: labels({len(scores)}) has no labelling of a finite score")
        return best

    def add_name(self, thing: Any) -> None:
        """Know a right labelling or a structure again, for as long as the fit lasts, whatever it is."""
        key = key_of(thing)
        self._names[id(thing)] = thing, ("object", id(thing)) if key is None else key

    def name(self, thing: Any) -> Any:
        """What tells labellings apart; None where only the user's code could say whether two are the same."""
        found = self._names.get(id(thing))
        return key_of(thing) if found is None else found[1]

    def _listed(self, task: ExampleTask, n_rows: int, keywords: dict[str, Any]) -> Listed:
        place = (n_rows, self._place(keywords))
        with self._lock:
            if place not in self._lists:
                self._lists[place] = self._list(task, n_rows, keywords)
            return self._lists[place]

    def _list(self, task: ExampleTask, n_rows: int, keywords: dict[str, Any]) -> Listed:
        """Ask for all labellings, as many as have room, and for the features of each."""
        items, coefs, plains = [], [], []
        is_all = True
        for item in task.labels(n_rows, **keywords):
            other = copied(item)
            self.add_name(other)
            coef, part = self.parts(task, other, keywords)
            if len(coef) != n_rows:
                raise ValueError(f"features({other!r}) has {len(coef)} rows, the example {n_rows}")
            if not self._take(coef.nbytes + part.nbytes + sys.getsizeof(other) + OVERHEAD):
                is_all = False
                break
            items.append(other)
            coefs.append(coef.ravel())
            plains.append(part)
        return Listed(items, np.array(coefs).reshape(len(items), n_rows * task.n_outputs), plains, is_all)

    def _costs(self, task: ExampleTask, listed: Listed, y: Any, keywords: dict[str, Any]) -> Array:
        name = self.name(y)
        with self._lock:
            costs = None if name is None else listed.costs.get(name)
            if costs is None:
                costs = np.array([self.loss(task, y, other, keywords) for other in listed.items], dtype=np.float64)
                if name is not None and self._take(costs.nbytes + OVERHEAD):
                    listed.costs[name] = costs
            return costs

    def _place(self, keywords: dict[str, Any]) -> Any:
        """Where labellings of one name are the same: examples of one structure."""
        if "structure" not in keywords:
            return None
        structure = keywords["structure"]
        if id(structure) not in self._names:
            self.add_name(structure)
        return id(structure)

    def _value(self, names: tuple[Any, ...], keywords: dict[str, Any], ask: Any) -> Any:
        """What ``ask()`` returned for these labellings the first time."""
        if None in names:
            return ask()
        key = (self._place(keywords), *names)
        with self._lock:
            if key not in self._values:
                value = ask()
                size = OVERHEAD + (sum(part.nbytes for part in value) if isinstance(value, tuple) else 0)
                if size > self._room:
                    self._values.clear()
                    self._room, self._spent = self._room + self._spent, 0
                if self._take(size):
                    self._spent += size
                    self._values[key] = value
                return value
            return self._values[key]

    def _take(self, n_bytes: int) -> bool:
        fits = n_bytes <= self._room
        if fits:
            self._room -= n_bytes
        return fits


CURRENT: ContextVar[tuple[Any, Known] | None] = ContextVar("known_labellings", default=None)


def known_by(task: ExampleTask) -> Known:
    """What is known of a task where its ``best`` is called."""
    current = CURRENT.get()
    return current[1] if current is not None and current[0] is task else Known()


def copied(labelling: Any) -> Any:
    """A copy of a labelling that may change: a task may fill one array again and again."""
    return labelling if type(labelling).__hash__ is not None else copy.copy(labelling)


def key_of(thing: Any) -> Any:
    """A key that is equal for equal labellings of plain values; None for objects of classes unknown here.

    Types are part of it: 1, True and 1.0 are equal, and may have other features.
    """
    kind = type(thing)
    if kind in ATOMS or isinstance(thing, Enum):
        return kind, thing
    if isinstance(thing, np.generic) or kind is np.ndarray:
        return None if thing.dtype.hasobject else (kind, thing.dtype.str, thing.shape, thing.tobytes())
    inner: Any = None
    if kind is list or (isinstance(thing, tuple) and not hasattr(thing, "__dict__")):
        inner = tuple(map(key_of, thing))
    elif kind is dict:
        inner = tuple(map(key_of, thing.items()))
    elif kind in (set, frozenset):
        inner = frozenset(map(key_of, thing))
    elif is_dataclass(thing) and not isinstance(thing, type):
        names = {each.name for each in fields(thing)}.union(getattr(thing, "__dict__", ()))
        inner = tuple(key_of((name, getattr(thing, name, None))) for name in sorted(names))
    return None if inner is None or None in inner else (kind, inner)
