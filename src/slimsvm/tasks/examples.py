"""Examples: rows grouped into the units that the loss counts, and whether an earlier fit had the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np

from slimsvm.lazy import made_once

Array = np.ndarray


@dataclass(frozen=True)
class Examples:
    """Rows grouped into weighted examples, which the loss counts.

    Parameters
    ----------
    labels : ndarray of shape (n_rows,)
        One label per row, as the task's ``encode`` made it.
    weights : ndarray of shape (n_examples,), float64
        ω_e > 0.
    offsets : int64 ndarray of shape (n_examples + 1,) or None
        Example e owns rows ``offsets[e]:offsets[e + 1]``. None: every row is an example (nothing is stored).
    per_row, per_example : mappings of name to ndarray
        Further structure a task needs; cut up together with the labels or the weights.
    shared : dict
        What a task keeps for these examples and all parts of them; no part of what they are.
    """

    labels: Array
    weights: Array
    offsets: Array | None = None
    per_row: Mapping[str, Array] = field(default_factory=dict)
    per_example: Mapping[str, Array] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def n_rows(self) -> int:
        """Return the number of rows in all examples together."""
        return len(self.labels)

    @property
    def n_examples(self) -> int:
        """Return the number N of examples."""
        return len(self.weights)

    @property
    def row_offsets(self) -> Array:
        """Return ``offsets``, written out if every row is an example."""
        return np.arange(self.n_rows + 1) if self.offsets is None else self.offsets

    @made_once
    def made(self) -> dict[str, Any]:
        """Return the cache of objects that tasks make from these examples."""
        return {}

    @made_once
    def total_weight(self) -> float:
        """Return Ω = Σ ω_e."""
        return float(self.weights.sum())

    @made_once
    def are_alike(self) -> bool:
        """Whether all weights are the same."""
        return bool(np.all(self.weights == self.weights[0]))

    @made_once
    def _cumulative_weights(self) -> Array | None:
        """Return the running sums of the weights; None if all weights are equal."""
        return None if self.are_alike else np.cumsum(self.weights)

    @made_once
    def lengths(self) -> Array:
        """Return the number of rows of every example, given ``offsets``."""
        return np.diff(self.row_offsets)

    @made_once
    def _example_of_rows(self) -> Array:
        """Return `example_of_rows`, given ``offsets``."""
        found = np.repeat(np.arange(self.n_examples), self.lengths)
        found.flags.writeable = False
        return found

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw ``size`` examples with replacement, ∝ their weights."""
        cumulative = self._cumulative_weights
        if cumulative is None:
            return rng.integers(0, self.n_examples, size)
        return np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right")

    def rows_of(self, index: Array) -> Array:
        """Return the row numbers of the examples ``index``, in that order."""
        if self.offsets is None:
            return np.asarray(index, dtype=np.int64)
        starts, lengths = self.offsets[index], self.lengths[index]
        ends = np.cumsum(lengths)
        return np.repeat(starts - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)

    def example_of_rows(self) -> Array:
        """Return the example number of every row."""
        if self.offsets is None:
            return np.arange(self.n_rows)
        return self._example_of_rows

    def take(self, index: Array) -> Examples:
        """Return the examples ``index`` (repeats allowed) with their rows, in that order."""
        rows = self.rows_of(index)
        offsets = None
        if self.offsets is not None:
            offsets = np.concatenate([[0], np.cumsum(self.lengths[index])])
        return replace(
            self,
            labels=self.labels[rows],
            weights=self.weights[index],
            offsets=offsets,
            per_row={name: values[rows] for name, values in self.per_row.items()},
            per_example={name: values[index] for name, values in self.per_example.items()},
        )

    def part(self, lo: int, hi: int) -> Examples:
        """Return the examples lo, …, hi − 1 of one row each, without copying their arrays."""
        return replace(
            self,
            labels=self.labels[lo:hi],
            weights=self.weights[lo:hi],
            per_row={name: values[lo:hi] for name, values in self.per_row.items()},
            per_example={name: values[lo:hi] for name, values in self.per_example.items()},
        )

    def take_rows(self, rows: Array) -> Examples:
        """Return one example of some rows of a single example: the smaller problem of a loss over all rows."""
        if self.n_examples != 1:
            raise ValueError(f"take_rows needs exactly one example, found {self.n_examples}")
        return replace(
            self,
            labels=self.labels[rows],
            offsets=np.array([0, len(rows)], dtype=np.int64),
            per_row={name: values[rows] for name, values in self.per_row.items()},
        )


def unit_weights(sample_weight: Array | None, n: int) -> Array:
    """Return weights of n one-row examples: ones, or ``sample_weight`` checked for shape and sign."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), found {weights.shape}")
    if len(weights) and not (weights.min() > 0 and weights.max() < np.inf):
        raise ValueError("the weights of a task's examples must be positive and finite")
    return weights


def check_same_loss(earlier: Any, task: Any, examples: Examples, consequence: str) -> None:
    """Refuse a warm start from a fit (with ``task`` and ``examples``) of other rows, labels, weights or another loss;
    the message ends with the consequence.
    """
    if earlier.examples.n_rows != examples.n_rows:
        raise ValueError(
            f"warm start: the earlier fit had {earlier.examples.n_rows} rows, this one has {examples.n_rows}; "
            "a warm start needs the same rows"
        )
    if not (same_fields(earlier.examples, examples) and same_fields(earlier.task, task)):
        raise ValueError(f"warm start: labels, weights or the loss are not those of the earlier fit{consequence}")


def same_fields(a: Any, b: Any) -> bool:
    """Whether two objects of one class have equal attributes, arrays included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same_fields(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.shape == b.shape and all(same_fields(x, y) for x, y in zip(a.flat, b.flat))
    if not hasattr(a, "__dict__"):
        return np.array_equal(a, b)
    names = [field.name for field in fields(a) if field.compare] if is_dataclass(a) else vars(a)
    return all(same_fields(getattr(a, name), getattr(b, name, None)) for name in names)
