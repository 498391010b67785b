"""A kernel expansion with a limit on its points, to which compiled code adds rows, and the parameters of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm import core
from slimsvm.budget.rules import BudgetRule
from slimsvm.core import CSR_INNER, CSR_MANHATTAN, GIVEN, INNER, MANHATTAN, aligned_zeros, panel_of
from slimsvm.kernels import KernelRows
from slimsvm.kernels.pairs import between
from slimsvm.lazy import made_once
from slimsvm.rows import is_sparse

DUAL, PRIMAL = range(2)  # methods, as in slimsvm.h


@dataclass(frozen=True)
class Steps:
    """The parameters of steps with a method on a loss.

    Parameters
    ----------
    method, loss : int
        DUAL or PRIMAL; HINGE, ONE_VS_REST or EPSILON_INSENSITIVE of `slimsvm.core`.
    labels : float64 ndarray of shape (n,)
        -1 and +1, classes, or numbers.
    epsilon : float
        Half the width of the tube.
    cost_negative, cost_positive : float
        Margins asked of the classes -1 and +1.
    C_of_row : float64 ndarray of shape (n,)
        C ω_i of every row; n times it is a gradient's.
    constant : float
        1 with an intercept, 0 without.
    damping : float
        Dual steps are divided by 1 + damping times the number of points that the budget has taken away.
    """

    method: int
    loss: int
    labels: np.ndarray
    epsilon: float
    cost_negative: float
    cost_positive: float
    C_of_row: np.ndarray
    constant: float
    damping: float

    @property
    def is_against_the_rest(self) -> bool:
        """Whether steps train each class against the rest, instead of the task's own loss."""
        return self.loss == core.ONE_VS_REST

    @made_once
    def compiled(self) -> core.Structure:
        """Return the steps as compiled code takes them."""
        return core.RowSteps(
            method=self.method,
            loss=self.loss,
            labels=self.labels,
            epsilon=self.epsilon,
            cost_negative=self.cost_negative,
            cost_positive=self.cost_positive,
            C_of_row=self.C_of_row,
            constant=self.constant,
            damping=self.damping,
        )


Array = np.ndarray

# The multiply-adds in one compiled call, 1 to 50 ms of one core: Ctrl-C is checked between calls. If every step merges
# points of ten outputs, there are 400 per microsecond.
CALL_WORK = 20_000_000
# The cost per feature of merging two points: for sparse rows most features are in no processor cache.
MERGED_WORK, MERGED_SPARSE_WORK = 8, 64
# The length of the core's array of counts, the fields of `Counts`, and the place of kernel evaluations in it.
N_COUNTS, KERNEL_EVALS = 10, 6
# Added to the diagonal of the points' kernel matrix before it is inverted, as a share of the diagonal's mean.
RIDGE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}


@dataclass(frozen=True)
class Counts:
    """The counts of the steps over some rows.

    Parameters
    ----------
    steps, changed : int
        Rows met, and those that changed the model.
    added, merged, removed, projected, kernel_evals : int
        Points that came in; mergers; points removed and projected away; kernel evaluations.
    degradation : float
        Sum of the ‖Δ‖² that the budget took away.
    loss : float
        Sum of C ω_i ℓ_i of the rows as they were met.
    errors : float
        Sum of their errors (wrong labels, or absolute residuals).
    """

    steps: int
    changed: int
    added: int
    merged: int
    removed: int
    projected: int
    kernel_evals: int
    degradation: float
    loss: float
    errors: float

    @classmethod
    def of(cls, counts: Array) -> Counts:
        """Read the counts from the array that compiled code uses."""
        return cls(*map(int, counts[:7]), *map(float, counts[7:]))


class BudgetedModel:
    """A model of points with coefficients, at most ``max_basis`` after every added row.

    Points are kept as the kernel reads them, feature after feature. A point that is a training row is exactly that row
    in `basis`; a point made by mergers is right to the kernel's type.

    Parameters
    ----------
    kernel_rows : KernelRows
        Training rows seen through the kernel. Of a kernel that is only a function, all values are computed at once.
    max_basis : int
        At least 1.
    n_outputs : int
    rule : BudgetRule
    memory_limit : int
        Bytes that the points, and the values of a kernel that is only a function, may take.

    Attributes
    ----------
    n_basis : int
    coef : float64 ndarray of shape (n_basis, n_outputs)
    basis_rows : int64 ndarray of shape (n_basis,)
        Training rows the points are, -1 for points made by mergers.
    chunk_rows : int
        Rows that are folded together if the folded rows are not all kept in memory.

    Raises
    ------
    ValueError
        The rule does not suit the kernel, or memory does not suffice.

    Examples
    --------
    >>> import numpy as np
    >>> from slimsvm.budget import BudgetedModel, Merge
    >>> from slimsvm.kernels import RBF, KernelRows
    >>> rows = KernelRows(RBF(0.1), np.array([[0.0], [1.0], [9.0]]), dtype=np.float64)
    >>> model = BudgetedModel(rows, 2, 1, Merge())
    >>> counts = model.add(np.arange(3), np.array([[1.0], [1.0], [2.0]]))
    >>> model.n_basis, counts.merged, model.basis.ravel().round(6).tolist()
    (2, 1, [9.0, 0.5])
    """

    chunk_rows = 20_000

    def __init__(
        self,
        kernel_rows: KernelRows,
        max_basis: int,
        n_outputs: int,
        rule: BudgetRule,
        memory_limit: int = 1 << 30,
    ):
        rule.check(kernel_rows.kernel)
        self.kernel_rows, self.max_basis, self.rule = kernel_rows, max_basis, rule
        self.memory_limit = memory_limit
        self.compiled_rule = rule.compiled(max_basis)
        self.folding = kernel_rows.kernel.folding(kernel_rows.n_features)
        self._given: core.Structure | None = None
        if self.folding is None:
            self._given = self._all_values()
        n, dtype, panel = kernel_rows.n_rows, kernel_rows.dtype, panel_of(kernel_rows.dtype)
        d = 0 if self.folding is None else kernel_rows.n_features
        slots = -(-(max_basis + 2) // panel) * panel
        self._check_memory("the points", slots * d * dtype.itemsize)
        self.diagonal = kernel_rows.diag()
        if (self.diagonal < 0).any():
            i = int(np.argmax(self.diagonal < 0))
            raise ValueError(
                f"training on a budget needs a kernel with k(x, x) >= 0, found {self.diagonal[i]:.6g} in row {i}"
            )
        ratio: Any = 1.0 if self.folding is None else self.folding.point_scale / self.folding.row_scale
        form, code, degree = self.kernel_codes
        self.points = core.BudgetPoints(
            form=form,
            code=code,
            degree=degree,
            n_features=d,
            ratio=np.broadcast_to(np.asarray(ratio, dtype), d).copy(),
            diagonal=self.diagonal,
            panels=aligned_zeros(slots * d, dtype),
            base=aligned_zeros(slots, dtype),
            own=np.zeros(slots),
            beta=aligned_zeros(n_outputs * slots, np.float64).reshape(n_outputs, slots),
            origin=np.full(slots, -1, np.int64),
            slot_of=np.full(n, -1, np.int32),
            used=np.zeros(1, np.int64),
            inverse=np.zeros((slots, slots) if rule.keeps_inverse else (0, 0)),
            sums=np.zeros((n_outputs, slots)),
            mean=np.zeros(2 + n_outputs),
            least=np.zeros(1),
            x=np.empty(d, dtype),
            y=np.empty(d, dtype),
            k=aligned_zeros(slots, dtype),
            v=np.zeros(slots),
            step=np.zeros((2, n_outputs)),
        )
        self._take_steps = core.take_steps.prepare(points=self.points, rule=self.compiled_rule)
        self.end_mean()
        self.points.base[:] = 0.0 if self.folding is None else self.folding.shift

    @property
    def kernel_codes(self) -> tuple[int, int, int]:
        """Return the form of the products, the map and its degree, for compiled code."""
        if self.folding is None:
            return GIVEN, 0, 1
        sparse, manhattan = self.kernel_rows.rows.is_sparse, self.folding.manhattan
        form = (CSR_MANHATTAN if manhattan else CSR_INNER) if sparse else (MANHATTAN if manhattan else INNER)
        return form, self.folding.code, self.folding.degree

    @property
    def n_basis(self) -> int:
        """Return the number of points."""
        return int(self.points.used[0])

    @property
    def coef(self) -> Array:
        """Return a copy of the coefficients."""
        return self.points.beta[:, : self.n_basis].T.copy()

    def begin_mean(self) -> None:
        """Let `mean_of_steps` be over the steps from here on."""
        self.points.sums[:], self.points.mean[:] = 0.0, 0.0

    def end_mean(self) -> None:
        """Take no mean of the steps from here on, and let points go that only a mean had a use for."""
        self.points.sums[:], self.points.mean[:], self.points.mean[1] = 0.0, 0.0, -1.0
        if not self.rule.keeps_inverse:
            core.drop_idle(points=self.points)

    def mean_of_steps(self, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients (n_basis, n_outputs) and intercept of the mean of all models since `begin_mean`.

        Budget rules change the points of the mean as they change the models' points.
        """
        points, n = self.points, self.n_basis
        units, steps = points.mean[0], max(1.0, points.mean[1])
        coef = (units * points.beta[:, :n] - points.sums[:, :n]).T / steps
        return coef, (units * intercept - points.mean[2:]) / steps

    @property
    def basis_rows(self) -> Array:
        """Return the training rows that the points are, or -1."""
        return self.points.origin[: self.n_basis].copy()

    @property
    def basis(self) -> Any:
        """Return the points as vectors for a model: data rows as they are, merged points converted back."""
        origin = self.basis_rows
        if (origin >= 0).all():
            return self.kernel_rows.basis(origin)
        rows, merged = np.flatnonzero(origin >= 0), np.flatnonzero(origin < 0)
        parts = [self.kernel_rows.basis(origin[rows]), *self._merged(merged)]
        order = np.argsort(np.concatenate([rows, merged]))
        if self.kernel_rows.rows.is_sparse:
            return sp.csr_array(sp.vstack(parts, format="csr", dtype=np.float64)[order])
        return np.concatenate(parts, dtype=np.float64)[order]

    def _merged(self, at: Array) -> Iterator[Any]:
        """Yield merged points as vectors, panel by panel, since sparse rows are dense meanwhile."""
        assert self.folding is not None
        d, panel = self.kernel_rows.n_features, panel_of(self.kernel_rows.dtype)
        panels = self.points.panels.reshape(-1, d, panel)
        for p in np.unique(at // panel):
            folded = np.ascontiguousarray(panels[p].T[at[at // panel == p] % panel], np.float64)
            vectors = folded / self.folding.point_scale + self.kernel_rows.centre
            yield sp.csr_array(vectors) if self.kernel_rows.rows.is_sparse else vectors

    def chunks(self, index: Array):
        """Yield parts of ``index`` with the folded rows and the places of the part's rows in them."""
        if self._given is not None:
            yield index, self._given, index
            return
        size = max(1, len(index)) if self.kernel_rows.is_kept else self.chunk_rows
        for lo in range(0, len(index), size):
            part = index[lo : lo + size]
            yield part, *self.kernel_rows.folded_rows(part)

    def add(self, index: Array, coef: Array) -> Counts:
        """Add coef[s] times row index[s], one row after another, within the budget.

        Parameters
        ----------
        index : int64 ndarray of shape (s,)
        coef : float64 ndarray of shape (s, n_outputs)

        Returns
        -------
        Counts
        """
        coef = np.require(coef, np.float64, ["C", "W", "A"])
        counts, at = np.zeros(N_COUNTS), 0
        for part, rows, places in self.chunks(np.ascontiguousarray(index, np.int64)):
            self.take_steps(None, part, rows, places, coef[at : at + len(part)], np.zeros(coef.shape[1]), counts)
            at += len(part)
        return Counts.of(counts)

    def take_steps(
        self, steps: Steps | None, index: Array, rows: core.Structure, places: Array, alpha: Array, intercept: Array,
        counts: Array, t: Array | None = None,
    ) -> None:  # fmt: skip
        """Take steps on the rows ``index``, a part from `chunks`; see ``take_steps`` of slimsvm.h."""
        t = np.zeros(2, np.int64) if t is None else t
        for lo in range(0, len(index), self._call_rows):
            part, before = slice(lo, lo + self._call_rows), counts[KERNEL_EVALS]
            self._take_steps(
                steps=None if steps is None else steps.compiled,
                rows=rows,
                index=index[part],
                places=places[part],
                alpha=alpha[part] if steps is None else alpha,
                intercept=intercept,
                t=t,
                counts=counts,
            )
            self.kernel_rows.counter.add(counts[KERNEL_EVALS] - before)

    @property
    def _call_rows(self) -> int:
        """Return the number of rows for one compiled call."""
        rows, m = self.kernel_rows, self.points.beta.shape[0]
        d, sparse = 0 if self.folding is None else rows.n_features, rows.rows.is_sparse
        entries = rows.rows.n_stored // max(1, rows.n_rows) if sparse else d
        merged = d * (MERGED_SPARSE_WORK if sparse else MERGED_WORK)
        work = self.max_basis * (entries + 16 + 2 * m) + merged + self.rule.work(self.max_basis)
        return max(1, CALL_WORK // work)

    def load(self, basis: Any, coef: Array, basis_rows: Array) -> None:
        """Take these vectors and coefficients in place of what there is.

        Parameters
        ----------
        basis : raw vectors of shape (k, d)
        coef : float64 ndarray of shape (k, n_outputs)
        basis_rows : int64 ndarray of shape (k,)
            Training rows they are, -1 for vectors that are none.
        """
        points, n = self.points, len(coef)
        if n > self.max_basis:
            raise ValueError(f"the model to go on from has {n} vectors, max_basis={self.max_basis}")
        if self.folding is not None and n:
            d, panel = self.kernel_rows.n_features, panel_of(self.kernel_rows.dtype)
            raw = np.asarray(basis.toarray() if is_sparse(basis) else basis, np.float64)
            folded = np.zeros((len(points.base), d))
            folded[:n] = (raw - self.kernel_rows.centre) * self.folding.point_scale
            by_panel = folded.reshape(-1, panel, d).transpose(0, 2, 1)
            points.panels[:] = by_panel.reshape(-1)
            if self.folding.norms:
                points.base[:n] = -0.5 * np.einsum("ij,ij->i", folded[:n], folded[:n])
            elif self.folding.manhattan and self.kernel_rows.rows.is_sparse:
                points.base[:n] = -np.abs(folded[:n]).sum(axis=1)
        points.used[0], points.slot_of[:], points.origin[:], points.least[0] = n, -1, -1, 0.0
        points.origin[:n], points.beta[:, :n] = basis_rows, np.asarray(coef, np.float64).T
        own = np.flatnonzero(np.asarray(basis_rows) >= 0)
        points.slot_of[basis_rows[own]] = own
        others = np.flatnonzero(np.asarray(basis_rows) < 0)
        points.own[own] = self.diagonal[basis_rows[own]]
        if len(others):
            points.own[others] = self.kernel_rows.kernel.diag(basis[others])
        self.refresh_inverse()

    def norm_squared(self) -> Array:
        """Return the squared norm of every output's expansion, with the points' kernel values in float64."""
        coef = self.coef
        return np.sum(coef * (self.gram() @ coef), axis=0)

    def gram(self) -> Array:
        """Return the kernel matrix of the points in float64."""
        basis = self.basis
        return between(self.kernel_rows, basis)

    def refresh_inverse(self) -> None:
        """Invert the points' kernel matrix again, if the rule keeps its inverse: updates add up rounding errors."""
        n = self.n_basis
        if not self.rule.keeps_inverse or n == 0:
            return
        gram = self.gram()
        gram[np.diag_indices(n)] += RIDGE[self.kernel_rows.dtype] * np.mean(np.diagonal(gram))
        self.points.inverse[:n, :n] = np.linalg.inv(gram)

    def _all_values(self) -> core.Structure:
        """Return all values of a kernel that compiled code cannot compute."""
        rows = self.kernel_rows
        self._check_memory("all kernel values of a kernel given as a function or matrix", rows.n_rows**2 * 8)
        values = rows.block(rows.points(np.arange(rows.n_rows)))
        half = np.zeros(rows.n_rows, rows.dtype)
        return core.Rows(n_features=rows.n_rows, values=values.reshape(-1), half=half, factor=np.ones(rows.n_rows))

    def _check_memory(self, what: str, n_bytes: int) -> None:
        limit = self.memory_limit
        if n_bytes > limit:
            raise ValueError(
                f"{what} take {n_bytes / 1e6:.0f} MB, more than the {limit / 1e6:.0f} MB that memory_limit leaves"
            )
