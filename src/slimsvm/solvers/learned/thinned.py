r"""A model of many vectors made to do with fewer: centres of its vectors, then a descent on the loss of the rows.

    b_1, …, b_k = k-means centres of the vectors of each sign
    β = (K_BB + ridge)⁻¹ ⟨φ(b), w⟩, the projection of the model w onto their span
    blocks = vectors that the kernel connects, each with the rows that are next to them
    in every block the descent of `solvers.learned.refine` on b and β, from there; the intercept stays

This is for kernels that need thousands of vectors. Such kernels are narrow: over rows of several categories the values
between vectors of different ones are 0 for all purposes, so that the blocks can be learned one by one, with the rows of
each only, in the features that differ there.

Beyond where it starts, where coefficients are large and of both signs, the descent differs from that of
`solvers.learned.refine` in five things. The price of the losses is twice that of the problem: few vectors need a longer
w than many for the same function, so that at its own price the model would be held back more than the exact one. The
gradient of the norm is estimated from a quarter of the vectors at each step: of a few the chance outweighs what the
rows say. A vector moves in every feature in units of the mean distance of rows from the vector next to them: where no
row differs from it (the indicator of a category) there is no gradient but rounding, which Adam would make steps of.
Rates are not lowered when the loss rises far above that of the start: at high rates it does, and comes down to less.
And they rise for a tenth of the steps.

Parts: `bases.kmeans`, `solvers.learned.refine`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from slimsvm.bases import KMeans
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import EvalCounter, KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.model import KernelExpansion
from slimsvm.rows import as_rows
from slimsvm.solvers.base import Fit, Problem, Solver, Status, exact_objective
from slimsvm.solvers.learned.adam import Rates
from slimsvm.solvers.learned.basis_descent import Schedule
from slimsvm.solvers.learned.batch_gradient import NORM_ROWS
from slimsvm.solvers.learned.refine import Refine, RefineRun

Array = np.ndarray

# Of the projection, as a share of k(b, b) = 1.
RIDGE = 1e-3
# Sweeps, steps in each, the share of the steps in which rates rise, and that of the vectors that a step estimates the
# norm's gradient from.
EPOCHS, BATCHES, RISING, NORM_SHARE = 180, 40, 0.1, 1 / 4
# Sizes of a step at the top of the schedule: of a vector, in mean distances of rows from the vector next to them; of
# coefficients, in units of the zero model's loss.
STEP, COEF_STEP = 0.1, 0.03
# Of the losses in the descent, in units of C; objectives are those at the price C.
PRICE = 2.0
# Rows that these distances are the means of.
DISTANCE_ROWS = 4000
# Vectors with a kernel value above this are of one block, and so are few vectors, connected or not; a feature with a
# factor of the kernel nearer to 1 than the other is left out.
CONNECTED, BLOCK_VECTORS, ALIKE = 1e-6, 64, 1e-9
# Rows whose nearest vectors are looked for at a time.
NEAREST_ROWS = 4096
# The matrix of all vectors, its factor and the connections, in float64.
BYTES_PER_PAIR = 24


def can_thin(problem: Problem, k: int) -> bool:
    """Whether a model of such a problem can be thinned to k vectors."""
    task, is_gaussian = problem.task, problem.kernel.is_gaussian and not problem.rows.is_sparse
    return task.is_compiled and task.has_two_classes and is_gaussian and BYTES_PER_PAIR * k * k <= problem.memory_limit


@dataclass(frozen=True)
class Projection:
    """A model of few vectors near one of many, and the block that each vector is in."""

    model: KernelExpansion
    block: Array


def projected(
    model: KernelExpansion, k: int, rng: np.random.Generator, counter: EvalCounter, n_jobs: int | None
) -> Projection:
    """Centres of the vectors of each sign, at most k, with the coefficients that come nearest to the model."""
    parts, is_positive = [], model.coef[:, 0] > 0
    for vectors in (model.basis[is_positive], model.basis[~is_positive]):
        rows = KernelRows(model.kernel, vectors, dtype=model.dtype, n_jobs=n_jobs, counter=counter)
        if len(vectors):
            size = max(1, round(k * len(vectors) / model.n_basis))
            parts.append(_unmixed(rows, vectors, KMeans().choose(rows, size, rng)))
    # In a random order: the norm's gradient is estimated from vectors that follow each other.
    basis = rng.permutation(np.concatenate(parts))
    gram = between(rows, basis, basis)
    connections: Any = csr_matrix(gram > CONNECTED)
    block = _blocks(connected_components(connections, directed=False)[1])
    gram.flat[:: len(gram) + 1] += RIDGE
    aims = model.scores(basis, n_jobs) - model.intercept
    counter.add(len(basis) * model.n_basis)
    with one_blas_thread():
        coef = cho_solve(cho_factor(gram, overwrite_a=True), aims)
    return Projection(replace(model, basis=basis, coef=coef), block)


def _unmixed(rows: KernelRows, vectors: Array, centres: Array) -> Array:
    """Centres of the vectors of a cluster that the kernel connects with the one in its middle.

    A centre between two categories would be near to neither, and connect them.
    """
    owner, near = nearest(rows, centres, np.arange(len(vectors)))
    by_owner = np.lexsort((near, owner))
    found, number = np.unique(owner, return_inverse=True)
    middle = by_owner[np.searchsorted(owner[by_owner], found, side="right") - 1]
    kernel: Any = rows.kernel
    distance = (vectors - vectors[middle[number]]) ** 2 @ np.broadcast_to(kernel.gamma, vectors.shape[1])
    is_member = np.exp(-distance) > CONNECTED
    sums = csr_matrix((is_member * 1.0, (number, np.arange(len(vectors))))) @ vectors
    return sums / np.bincount(number, weights=is_member)[:, None]


def _blocks(component: Array) -> Array:
    """Numbers of blocks: components, small ones together."""
    sizes = np.bincount(component)
    order = np.argsort(-sizes, kind="stable")
    before = np.cumsum(np.where(sizes[order] < BLOCK_VECTORS, sizes[order], 0)) // BLOCK_VECTORS
    number = np.empty(len(sizes), np.int64)
    number[order] = np.where(
        sizes[order] < BLOCK_VECTORS, (sizes >= BLOCK_VECTORS).sum() + before, np.arange(len(sizes))
    )
    return np.unique(number[component], return_inverse=True)[1]


class BlockRun(RefineRun):
    """The descent of one block."""

    def __init__(self, problem: Problem, start: KernelExpansion):
        batch_size = -(-problem.rows.n_rows // BATCHES)
        options: dict[str, Any] = {"epochs": EPOCHS, "batch_size": batch_size, "noise": 0.0, "finish": False}
        super().__init__(problem, Refine(start.n_basis, initial=start, **options), None)
        self.schedule = Schedule(self.n_epochs, self.solver.averaging, RISING)

    def _rates(self, basis: Array) -> Rates:
        """Step sizes of vectors in the units of the rows around them."""
        n, rows = self.kernel_rows.n_rows, self.kernel_rows
        index = np.arange(n) if n <= DISTANCE_ROWS else np.sort(self.rng.choice(n, DISTANCE_ROWS, replace=False))
        distance = np.abs(rows.rows.take(index, np.float64) - basis[nearest(rows, basis, index)[0]]).mean(axis=0)
        self.rate, self.unit = STEP, self._mean_loss(np.zeros((n, 1)), np.zeros(0))
        return Rates(STEP * distance, COEF_STEP * self.unit, 0.0)

    def _norm_tiles(self, k: int) -> int:
        return max(1, int(NORM_SHARE * k) // NORM_ROWS)

    def _watch(self, value: float) -> None:
        """No limit: the loss may rise."""

    def _fit_into_time(self, seconds: float) -> None:
        """Of one block nothing is planned."""

    def plan(self, seconds: float) -> None:
        """As many sweeps as there is time for when one takes so long."""
        super()._fit_into_time(seconds)

    def learned(self) -> KernelExpansion:
        """The model so far."""
        return self._learned()[0]


def nearest(rows: KernelRows, basis: Array, index: Array) -> tuple[Array, Array]:
    """The nearest vector of every row, and the value with it, for an RBF kernel."""
    points, number, value = rows.points_of(basis), np.empty(len(index), np.int64), np.empty(len(index))
    for a in range(0, len(index), NEAREST_ROWS):
        block = rows.block(points, rows=index[a : a + NEAREST_ROWS])
        number[a : a + NEAREST_ROWS] = block.argmax(axis=1)
        value[a : a + NEAREST_ROWS] = block.max(axis=1)
    return number, value


class ThinnedRun:
    """All blocks, sweep by sweep."""

    doing = "learning vectors"

    def __init__(self, problem: Problem, start: Projection):
        self.problem, self.start = problem, start
        self.kernel_rows, self.converged = problem.bind(), False
        rng, n = problem.generator(), problem.rows.n_rows
        owner = np.zeros(n, np.int64)
        if start.block.any():
            owner = start.block[nearest(self.kernel_rows, start.model.basis, np.arange(n))[0]]
        self.blocks: list[tuple[BlockRun, Array, Array]] = []
        for number in np.unique(owner):
            of_rows, of_vectors = np.flatnonzero(owner == number), np.flatnonzero(start.block == number)
            self.blocks.append((*self._block(of_rows, of_vectors, int(rng.integers(2**31 - 1))), of_vectors))

    @property
    def share_done(self) -> float:
        """See `solvers.progress`."""
        return min((run.share_done for run, _, _ in self.blocks), default=0.0)

    def _block(self, of_rows: Array, of_vectors: Array, seed: int) -> tuple[BlockRun, Array]:
        """The descent of some vectors with some rows, and the features it is in."""
        problem, model = self.problem, self.start.model
        rows: Any = problem.rows.take(of_rows, problem.rows.exact_dtype)
        vectors, gamma = model.basis[of_vectors], 0.0
        if model.kernel.is_gaussian and np.ndim(model.kernel.gamma) == 0:
            gamma = model.kernel.gamma
        width = np.maximum(rows.max(axis=0), vectors.max(axis=0)) - np.minimum(rows.min(axis=0), vectors.min(axis=0))
        differs = gamma * width**2 > ALIKE
        if not differs.any():
            differs[:] = True
        part = replace(
            problem,
            rows=as_rows(np.ascontiguousarray(rows[:, differs])),
            examples=problem.examples.take(of_rows),
            C=PRICE * problem.C,
            intercept="none",
            precision=np.dtype(self.kernel_rows.dtype).name,
            random_state=seed,
        )
        run = BlockRun(part, replace(model, basis=vectors[:, differs], coef=model.coef[of_vectors]))
        run.kernel_rows.counter = self.kernel_rows.counter
        return run, np.flatnonzero(differs)

    def step(self) -> dict[str, Any]:
        """One sweep over all rows."""
        begun = time.perf_counter()
        records = [run.step() for run, _, _ in self.blocks]
        seconds = time.perf_counter() - begun
        shares = np.array([run.kernel_rows.n_rows for run, _, _ in self.blocks]) / self.problem.rows.n_rows
        above = [(1.0 - 1.0 / PRICE) * run.problem.C1 * each["loss"] for (run, _, _), each in zip(self.blocks, records)]
        record = dict.fromkeys(("objective", "lower_bound", "gap", "bound_in_basis")) | {
            "objective_estimate": float(sum(each["objective_estimate"] for each in records) - sum(above)),
            "loss": float(shares @ [each["loss"] for each in records]),
            "training_error": float(shares @ [each["training_error"] for each in records]),
            "rate": records[0]["rate"],
            "n_basis": self.start.model.n_basis,
        }
        for run, _, _ in self.blocks:
            run.plan(seconds)
        self.converged = all(run.converged for run, _, _ in self.blocks)
        return record

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """The model of all blocks with its objective over all rows."""
        start, evals = self.start.model, self.kernel_rows.counter.n
        basis, coef = start.basis.copy(), start.coef.copy()
        for run, features, of_vectors in self.blocks:
            learned = run.learned()
            basis[np.ix_(of_vectors, features)], coef[of_vectors] = learned.basis, learned.coef
        used = coef.any(axis=1)
        model = replace(start, basis=basis[used], coef=coef[used], dtype=np.dtype(self.kernel_rows.dtype).name)
        objective = exact_objective(self.problem, self.kernel_rows, model)
        counters = {"kernel_evals": evals, "report_kernel_evals": self.kernel_rows.counter.n - evals}
        return Fit(model, status, objective, None, history, counters | {"bound_in_basis": None})


class Thinned(Solver):
    """The descent from where a projection ends.

    Parameters
    ----------
    initial : Projection
    """

    def __init__(self, initial):
        self.initial = initial

    def start(self, problem: Problem, state: Any = None) -> ThinnedRun:
        """Set the run up."""
        return ThinnedRun(problem, self.initial)
