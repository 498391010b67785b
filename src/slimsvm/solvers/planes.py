"""The planes of block-coordinate ascent in memory, and where the scores of the rows come from while α changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slimsvm.kernels import FeatureRows, KernelRows
from slimsvm.model import KernelExpansion, LinearModel
from slimsvm.numerics import planes as steps
from slimsvm.numerics.threads import run_tiles
from slimsvm.tasks import Augmented, Examples, Task

Array = np.ndarray


class Planes:
    """All planes with their weights α, as flat arrays for `numerics.planes`.

    Parameters
    ----------
    n_examples : int
    """

    def __init__(self, n_examples: int):
        self.n = np.zeros(2, np.int64)
        self.first = np.full(n_examples, -1)
        self.following, self.where, self.idle = (np.zeros(1, np.int64) for _ in range(3))
        self.row, self.column = (np.zeros(0, np.int32) for _ in range(2))
        self.value, self.constant, self.alpha = np.zeros(0), np.zeros(1), np.zeros(1)

    @property
    def arrays(self) -> Any:
        """What compiled steps take."""
        return self.first, self.following, self.where, self.row, self.column, self.value, self.constant, self.alpha

    @property
    def constants(self) -> float:
        """Σ α_k c_k."""
        k = self.n[0]
        return float(self.alpha[:k] @ self.constant[:k])

    def copy(self, factor: float = 1.0) -> Planes:
        """The same planes, their weights times a factor."""
        other = Planes(len(self.first))
        for name, array in vars(self).items():
            setattr(other, name, array.copy())
        other.alpha *= factor
        return other

    def add(self, index: Array, examples: Examples, augmented: Augmented) -> None:
        """Enter the loss-augmented argmax of some examples; ``examples`` are those."""
        starts = np.arange(len(index) + 1) if examples.offsets is None else examples.offsets
        part = np.zeros((len(index), 0)) if augmented.plain is None else augmented.plain
        self._reserve(len(index), int(np.count_nonzero(augmented.coef) + np.count_nonzero(part)))
        found = (np.ascontiguousarray(array, np.float64) for array in (augmented.delta, augmented.coef, part))
        entered: Any = (index, starts, *found, *self.arrays, self.idle, self.n)
        steps.add_planes(*entered)

    def _reserve(self, n_planes: int, n_entries: int) -> None:
        """Make room for further planes."""
        for names, needed in (
            (("following", "where", "idle", "constant", "alpha"), int(self.n[0]) + n_planes + 1),
            (("row", "column", "value"), int(self.n[1]) + n_entries),
        ):
            if needed > len(getattr(self, names[0])):
                for name in names:
                    old = getattr(self, name)
                    new = np.zeros(2 * needed, old.dtype)
                    new[: len(old)] = old
                    setattr(self, name, new)

    def age(self, max_idle: int) -> None:
        """Forget the planes that had no weight for so many passes."""
        every: Any = (max_idle, *self.arrays, self.idle, self.n)
        steps.kept_planes(*every)

    def coefficients(self, examples: Examples, task: Task) -> tuple[Array, Array]:
        """Σ α_k g_k: coefficients over rows and outputs, and the plain parameters."""
        coef, v = np.zeros((examples.n_rows, task.n_outputs)), np.zeros(task.n_plain)
        first, following, where, row, column, value, _, alpha = self.arrays
        steps.coefficients(first, following, where, row, column, value, alpha, starts_of(examples), coef, v)
        return coef, v


def starts_of(examples: Examples) -> Array:
    """Where the rows of each example begin, and the last one's end."""
    return np.arange(examples.n_rows + 1) if examples.offsets is None else examples.offsets


@dataclass
class Step:
    """How examples are to be improved: the rule, and the violation below which they are left alone."""

    method: int
    tol: float


class KernelBook:
    """Scores of all rows in a kernel machine, kept up by one fused product for each batch of examples.

    Parameters
    ----------
    kernel_rows : KernelRows
    examples : Examples
    task : Task
    intercept : bool
    memory_limit : int
        Half of it may hold the kernel matrix.
    """

    def __init__(self, kernel_rows: KernelRows, examples: Examples, task: Task, intercept: bool, memory_limit: int):
        self.kernel_rows, self.examples, self.task, self.intercept = kernel_rows, examples, task, intercept
        self.starts = starts_of(examples)
        n = kernel_rows.n_rows
        self.matrix: Array | None = None
        if n * n * np.dtype(kernel_rows.dtype).itemsize <= memory_limit // 2:
            self.matrix = kernel_rows.block(kernel_rows.points(np.arange(n)))
        self.coef, self.plain = np.zeros((n, task.n_outputs)), np.zeros(task.n_plain)
        self.scores = np.zeros((n, task.n_outputs))

    def restore(self, planes: Planes) -> None:
        """Take the coefficients of the planes, and compute the scores anew."""
        self.coef, self.plain = planes.coefficients(self.examples, self.task)
        rows = np.flatnonzero(self.coef.any(axis=1))
        scores = self._products(rows, self.coef[rows])
        self.scores = scores + self.coef.sum(axis=0) if self.intercept else scores

    def _products(self, rows: Array, coef: Array) -> Array:
        if not len(rows):
            return np.zeros_like(self.scores)
        if self.matrix is not None:
            return self.matrix[rows].T.astype(np.float64) @ coef
        return self.kernel_rows.scores(self.kernel_rows.points(rows), coef).astype(np.float64)

    def scores_of(self, rows: Array) -> Array:
        """Scores of some rows."""
        return self.scores[rows]

    def step(self, planes: Planes, batch: Array, prices: Array, how: Step) -> None:
        """A step on each example of a batch."""
        rows = np.sort(self.examples.rows_of(batch))
        if self.matrix is not None:
            K = self.matrix[np.ix_(rows, rows)]
        else:
            K = self.kernel_rows.block(self.kernel_rows.points(rows), rows=rows)
        coef, scores = np.zeros((len(rows), self.task.n_outputs)), self.scores[rows]
        where: Any = (K, float(self.intercept), scores, rows, batch, self.starts, prices, *planes.arrays)
        every: Any = (*where, self.plain, how.method, how.tol, coef)
        steps.steps_by_kernel(*every)
        changed = np.flatnonzero(coef.any(axis=1))
        if len(changed):
            self.coef[rows] += coef
            self.scores += self._products(rows[changed], coef[changed])
            if self.intercept:
                self.scores += coef.sum(axis=0)

    def all_scores(self) -> Array:
        """Scores of all rows."""
        return self.scores

    @property
    def norm_squared(self) -> float:
        """‖w‖²."""
        return max(0.0, float(np.sum(self.coef * self.scores) + self.plain @ self.plain))

    @property
    def n_basis(self) -> int:
        """Rows with a coefficient."""
        return int(np.count_nonzero(self.coef.any(axis=1)))

    def parameters(self) -> tuple[Array, ...]:
        """What an average is taken of."""
        return self.coef, self.plain, self.scores

    def set(self, parameters: tuple[Array, ...]) -> None:
        """Become the machine of these parameters."""
        self.coef, self.plain, self.scores = parameters

    def model(self, kernel: Any) -> tuple[KernelExpansion, Array | None]:
        """The machine as a model, and the rows its vectors are."""
        rows = np.flatnonzero(self.coef.any(axis=1))
        intercept = self.coef.sum(axis=0) if self.intercept else np.zeros(self.task.n_outputs)
        basis = self.kernel_rows.basis(rows)
        dtype = np.dtype(self.kernel_rows.dtype).name
        return KernelExpansion(basis, self.coef[rows], intercept, self.plain.copy(), kernel, dtype), rows


class WeightBook:
    """The weights of a linear machine, kept up by every step; rows as CSR.

    Parameters
    ----------
    kernel_rows : KernelRows
    examples : Examples
    task : Task
    intercept : bool
    memory_limit : int
        A quarter of it may hold the inner products of the rows of each example with each other.
    """

    def __init__(self, kernel_rows: KernelRows, examples: Examples, task: Task, intercept: bool, memory_limit: int):
        self.kernel_rows, self.examples, self.task, self.intercept = kernel_rows, examples, task, intercept
        self.starts = starts_of(examples)
        self.features = FeatureRows(kernel_rows.rows, kernel_rows.n_jobs)
        d, m = kernel_rows.n_features, task.n_outputs
        self.weights, self.bias, self.plain = np.zeros((d, m)), np.zeros(m), np.zeros(task.n_plain)
        self.gram_offsets = np.concatenate([[0], np.cumsum(np.diff(self.starts) ** 2)])
        self.grams = np.zeros(0)
        if self.gram_offsets[-1] * self.grams.itemsize <= memory_limit // 4:
            self.grams = np.empty(self.gram_offsets[-1])
            rows = (*self.features.parts, self.starts, self.gram_offsets, self.grams)
            run_tiles(
                lambda lo, hi: steps.products_of_examples(*rows, lo, hi),
                examples.n_examples,
                kernel_rows.n_jobs,
            )

    def restore(self, planes: Planes) -> None:
        """Compute the weights of the planes anew."""
        coef, self.plain = planes.coefficients(self.examples, self.task)
        self.weights = self.features.gather(coef)
        self.bias = coef.sum(axis=0) if self.intercept else np.zeros_like(self.bias)

    def scores_of(self, rows: Array) -> Array:
        """Scores of some rows."""
        return self.features.scores_of(rows, self.weights, self.bias)

    def step(self, planes: Planes, batch: Array, prices: Array, how: Step) -> None:
        """A step on each example of a batch."""
        rows: Any = (*self.features.parts, self.grams, self.gram_offsets)
        machine: Any = (float(self.intercept), self.weights, self.bias, batch, self.starts, prices, *planes.arrays)
        every: Any = (*rows, *machine, self.plain, how.method, how.tol)
        steps.steps_by_weights(*every)

    def all_scores(self) -> Array:
        """Scores of all rows."""
        return self.features.scores(self.weights, self.bias)

    @property
    def norm_squared(self) -> float:
        """‖w‖²."""
        return float(sum(np.vdot(part, part) for part in (self.weights, self.bias, self.plain)))

    @property
    def n_basis(self) -> int:
        """Features with a weight."""
        return int(np.count_nonzero(self.weights.any(axis=1)))

    def parameters(self) -> tuple[Array, ...]:
        """What an average is taken of."""
        return self.weights, self.bias, self.plain

    def set(self, parameters: tuple[Array, ...]) -> None:
        """Become the machine of these parameters."""
        self.weights, self.bias, self.plain = parameters

    def model(self, kernel: Any) -> tuple[KernelExpansion, Array | None]:
        """The machine as a model, whose vectors are no rows."""
        dtype = np.dtype(self.kernel_rows.dtype).name
        return LinearModel.of_weights(self.weights, self.bias.copy(), self.plain.copy(), dtype), None
