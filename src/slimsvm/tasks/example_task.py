"""A user's own task, written example by example in Python.

Its methods depend on their arguments alone, so that a fit asks once and remembers what they returned (`Known`).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from itertools import islice, pairwise
from threading import RLock
from typing import Any

import numpy as np

from slimsvm.core.clock import check_time
from slimsvm.tasks.examples import Examples, unit_weights
from slimsvm.tasks.task import Augmented, Task

Array = np.ndarray


class ExampleTask(Task):
    """Base of a user's own task: what a labelling is, what it costs, which one is best.

    A labelling is any Python object: a number, a tuple, an array. Its score is the sum of ``features(y)`` times the
    scores of the example's rows (and times the plain parameters, where there are some). A subclass sets ``n_outputs``
    (and ``n_plain``), and defines `features`, `loss`, and `labels` or `best`; `slimsvm.check_task` says whether they
    belong together. What they return must depend on their arguments alone: a fit asks once for the features of a
    labelling and for the loss of a pair, and keeps up to 64 MB of the answers.

    Where `StructuredSVM.fit` is given ``structure`` (one object per example: a shape, a list of edges), all four get
    the example's own as a keyword argument ``structure``.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.tasks import ExampleTask
    >>> class Grades(ExampleTask):
    ...     n_outputs = 4
    ...     def features(self, y):
    ...         return np.eye(4)[[y]]
    ...     def loss(self, y, other):
    ...         return abs(y - other)
    ...     def labels(self, n_rows):
    ...         return range(4)
    >>> task = Grades()
    >>> task.augment(np.zeros((1, 4)), np.zeros(0), task.encode([1])).coef
    array([[ 0.,  1.,  0., -1.]])
    """

    has_object_labels = True

    def features(self, y: Any) -> Any:
        """Return the features of the labelling y: coefficients (n_rows, n_outputs); with plain parameters a pair of
        these and coefficients (n_plain,).
        """
        raise TypeError(f"{type(self).__name__} must define features(y)")

    def loss(self, y: Any, other: Any) -> float:
        """Return the cost of predicting ``other`` if y is right: at least 0, and 0 for y itself."""
        raise TypeError(f"{type(self).__name__} must define loss(y, other)")

    def labels(self, n_rows: int) -> Iterable[Any]:
        """Return all labellings of ``n_rows`` rows, lowest first. Needed if there is no `best`, and by `check_task`."""
        raise TypeError(f"{type(self).__name__} must define labels(n_rows), or best(scores, plain, y=None)")

    def best(self, scores: Array, plain: Array, y: Any = None, **structure: Any) -> Any:
        """Return the labelling with the greatest score; if y is given, ``loss(y, labelling)`` is added to the score.

        Parameters
        ----------
        scores : ndarray of shape (n_rows, n_outputs)
            The scores of one example's rows.
        plain : ndarray of shape (n_plain,)
        y : labelling or None
        **structure
            The example's ``structure``, where `StructuredSVM.fit` is given one.

        Notes
        -----
        Unless overridden it tries all `labels`; of equal ones the first is taken.
        """
        return known_by(self).find(self, scores, plain, structure, y)

    # -- what the library asks ------------------------------------------------------------------------------------

    def encode(self, y: Any, sample_weight=None, structure: Any = None) -> Examples:
        """Encode a list of labellings, one per example; each may have a weight and a structure."""
        labellings = list(y)
        if not labellings:
            raise ValueError("y must hold at least one example, found none")
        per_example = {"y": as_objects(labellings)}
        if structure is not None:
            per_example["structure"] = as_objects(list(structure))
            if len(per_example["structure"]) != len(labellings):
                raise ValueError(
                    f"structure must have one entry per example: {len(labellings)} examples, found {len(structure)}"
                )
        known, lengths = Known(), []
        for e, labelling in enumerate(labellings):
            known.add_name(labelling)
            coef, _ = known.parts(self, labelling, keywords_of(per_example, e), f"example {e}: ")
            lengths.append(len(coef))
        return Examples(
            labels=np.zeros(sum(lengths), dtype=np.int8),
            weights=unit_weights(sample_weight, len(labellings)),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            per_example=per_example,
            shared={"known": known},
        )

    def augment(self, scores, plain, examples: Examples) -> Augmented:
        """Return the labelling that `best` finds for every example, with its `loss` and `features`."""
        delta, coef = np.empty(examples.n_examples), np.empty((examples.n_rows, self.n_outputs))
        part = np.empty((examples.n_examples, self.n_plain)) if self.n_plain else None
        known = known_of(examples)
        for e, (lo, hi) in enumerate(bounds_of(examples)):
            y, keywords = examples.per_example["y"][e], keywords_of(examples.per_example, e)
            other = self.find(scores[lo:hi], plain, keywords, y, known)
            own, wrong = known.parts(self, y, keywords), known.parts(self, other, keywords)
            delta[e] = known.loss(self, y, other, keywords)
            coef[lo:hi] = own[0] - wrong[0]
            if part is not None:
                part[e] = own[1] - wrong[1]
        return Augmented(delta, coef, part)

    def decode(self, scores, plain, examples=None):
        """Return the best labelling of every example, an object ndarray (n_examples,)."""
        if examples is None:
            return as_objects([self.find(scores, plain, {})])
        known = known_of(examples)
        return as_objects(
            [
                self.find(scores[lo:hi], plain, keywords_of(examples.per_example, e), known=known)
                for e, (lo, hi) in enumerate(bounds_of(examples))
            ]
        )

    def error(self, predicted, examples: Examples) -> float:
        """Return the weighted mean of the losses of predicted labellings."""
        known = known_of(examples)
        costs = [
            known.loss(self, y, other, keywords_of(examples.per_example, e))
            for e, (y, other) in enumerate(zip(examples.per_example["y"], predicted))
        ]
        return float(np.average(costs, weights=examples.weights))

    # -- one example ------------------------------------------------------------------------------------------------

    def find(
        self, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None, known: Known | None = None
    ) -> Any:
        """Return `best` of one example."""
        check_time()
        with (Known() if known is None else known).of(self):
            return self.best(scores, plain, y=y, **keywords)

    def worth(self, other: Any, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None) -> float:
        """Return the score of a labelling, plus its loss if y is given."""
        coef, part = self.parts(other, keywords)
        cost = 0.0 if y is None else self.loss(y, other, **keywords)
        return float(np.sum(coef * scores) + part @ plain) + cost

    def parts(self, y: Any, keywords: dict[str, Any], where: str = "") -> tuple[Array, Array]:
        """Return `features` as a pair of arrays, checked."""
        found = self.features(y, **keywords)
        coef, part = found if self.n_plain else (found, np.zeros(0))
        coef, part = np.asarray(coef, dtype=np.float64), np.asarray(part, dtype=np.float64)
        if coef.ndim != 2 or coef.shape[1] != self.n_outputs or part.shape != (self.n_plain,):
            raise ValueError(
                f"{where}features({y!r}) must have shape (n_rows, {self.n_outputs})"
                + (f" and ({self.n_plain},)" if self.n_plain else "")
                + f", found {coef.shape}"
                + (f" and {part.shape}" if self.n_plain else "")
            )
        return coef, part


def as_objects(items: list[Any]) -> Array:
    """Return a 1-D array of any objects, arrays among them."""
    return np.fromiter(items, object, len(items))


def known_of(examples: Examples) -> Known:
    """Return the cache of a task's answers about the labellings of these examples."""
    known: Known = examples.shared.setdefault("known", Known())
    return known


def bounds_of(examples: Examples) -> list[tuple[int, int]]:
    """Return the first row and the end of every example."""
    return list(pairwise(examples.row_offsets.tolist()))


def keywords_of(per_example: Any, e: int) -> dict[str, Any]:
    """Return the keyword arguments of example e."""
    return {"structure": per_example["structure"][e]} if "structure" in per_example else {}


# ---- what a task's methods returned


# The most bytes that one fit's cache holds. Other answers are asked for again.
ROOM = 1 << 26
# The bytes of the Python objects around an array.
OVERHEAD = 400
ATOMS = (int, float, complex, bool, str, bytes, type(None))


@dataclass
class Listed:
    """The labellings of examples with one number of rows and one structure."""

    items: list[Any]  # the first of ``task.labels``, in that order
    coefs: Array  # shape (n_items, n_rows · n_outputs)
    plains: list[Array]  # each of shape (n_plain,)
    is_all: bool  # whether all labellings had room
    costs: dict[Any, Array] = field(default_factory=dict)  # the losses of all items, by the right labelling's name


class Known:
    """A cache of one task's answers about labellings; a fit's examples and all parts of them share it."""

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
        """Let ``task.best`` use the cache within this context, even if a subclass calls its parent's."""
        token = CURRENT.set((task, self))
        try:
            yield
        finally:
            CURRENT.reset(token)

    def parts(self, task: ExampleTask, y: Any, keywords: dict[str, Any], where: str = "") -> tuple[Array, Array]:
        """Return `ExampleTask.parts` from the cache."""

        def ask() -> tuple[Array, Array]:
            coef, part = task.parts(y, keywords, where)
            return coef.copy(), part.copy()

        found: tuple[Array, Array] = self._value((self.name(y),), keywords, ask)
        return found

    def loss(self, task: ExampleTask, y: Any, other: Any, keywords: dict[str, Any]) -> float:
        """Return `ExampleTask.loss` from the cache."""
        return float(self._value((self.name(y), self.name(other)), keywords, lambda: task.loss(y, other, **keywords)))

    def find(self, task: ExampleTask, scores: Array, plain: Array, keywords: dict[str, Any], y: Any = None) -> Any:
        """Return the labelling with the greatest score, plus its loss if y is given, of all that the task lists."""
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
        """Return the key of a labelling; None if only the user's code could tell whether two are the same."""
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
        """Return the key of examples with one structure, whose labellings of one name are the same."""
        if "structure" not in keywords:
            return None
        structure = keywords["structure"]
        if id(structure) not in self._names:
            self.add_name(structure)
        return id(structure)

    def _value(self, names: tuple[Any, ...], keywords: dict[str, Any], ask: Any) -> Any:
        """Return what ``ask()`` returned for these labellings the first time."""
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
    """Return the data of a task that its ``best`` is called with."""
    current = CURRENT.get()
    return current[1] if current is not None and current[0] is task else Known()


def copied(labelling: Any) -> Any:
    """Return a copy of a labelling that may change: a task may fill one array again and again."""
    return labelling if type(labelling).__hash__ is not None else copy.copy(labelling)


def key_of(thing: Any) -> Any:
    """Return a key that is equal for equal labellings of plain values; None for objects of unknown classes.

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
