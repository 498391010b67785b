"""The problem that every solver is given, and what a solver needs of it and of its own parameters.

Rows, examples, a task, a kernel, C, and how hard to try. `check_needs` refuses a problem that lacks something.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod, sqrt
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_random_state

from slimsvm.kernels import EvalCounter, Kernel, KernelRows
from slimsvm.kernels.kernel import largest_entry
from slimsvm.rows import Rows, is_sparse
from slimsvm.tasks import Examples, Task

Array = np.ndarray
Settings = TypeVar("Settings")

# docs/experiments/newton_in_a_fixed_basis.md has what a gap of 1e-10 takes; the numbers of rows were chosen.
# Up to SMALL_N rows all is float64. Such a problem is solved to SMALL_TOLERANCE where it has one output, numbers as
# targets, a loss with two derivatives, or at most SMALL_N rows times outputs and, in a given basis, SMALL_BASIS vectors
# times outputs. Others would take minutes: they are solved to NEARLY_TOLERANCE. Losses written in Python cost too much
# for either, and a tol above the default is obeyed.
SMALL_N, SMALL_BASIS = 2000, 500
SMALL_TOLERANCE, NEARLY_TOLERANCE, DEFAULT_TOL = 1e-10, 1e-3, 1e-3
# From this γ·max‖x − mean‖² on float32 kernel values lose more than three digits.
MAX_FLOAT32_RADIUS = 500.0
# Kernel values above this are computed in float64 under precision="auto". MAX_VALUE are the largest values that a type
# works with: float32 holds 3e38, and sums need room.
MAX_FLOAT32_VALUE = 1e15
# So are those that reach this over the largest C of a row: margins are sums of C times kernel values, and should keep a
# digit in float32. Features of scales 1 to 10^5 have margins of 10^11 with the linear kernel. Chosen, not measured.
MAX_FLOAT32_MARGIN = 1e6
# Float64 is used, too, if kernel values are this many times squared distances: a few rows are far from the origin, or
# all are on one side of it. OFFSET_ROWS rows give the distances.
MAX_FLOAT32_OFFSET, OFFSET_ROWS = 1e4, 64
MAX_VALUE = {"float32": 1e30, "float64": 1e150}
# (C · sum of weights)² · largest kernel value, which no norm and no loss is above.
MAX_NORM = 1e300


class Kept:
    """A store of what a fit leaves for the next fit of the same rows, kernel and precision, as along a path over C.

    Whoever hands it on sees to it that they are the same.

    Parameters
    ----------
    room : Room or None
        Memory that fits of other rows use again, too.
    n_parts : int, default=1
        Parts of the rows that each have what is kept of them.
    """

    def __init__(self, room: Room | None = None, n_parts: int = 1) -> None:
        self.room = Room() if room is None else room
        self.n_parts = n_parts
        self._things: dict[Any, Any] = {}

    def once(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return the value of ``name``, which ``make()`` computes the first time."""
        if name not in self._things:
            self._things[name] = make()
        return self._things[name]

    def part(self, name: Any, n_parts: int) -> Kept:
        """Return the store for one of several parts of the rows."""
        found: Kept = self.once(name, lambda: Kept(self.room, n_parts))
        return found

    def put(self, name: Any, thing: Any) -> None:
        """Store something in place of the present value."""
        self._things[name] = thing

    def get(self, name: Any) -> Any:
        """Return the stored value, or None."""
        return self._things.get(name)


class Room:
    """Memory for large arrays that is used again: new memory costs more than computing the values in it."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """Return an array in the memory of earlier ones, whose values are lost."""
        dtype = np.dtype(dtype)
        n_bytes = prod(shape) * dtype.itemsize
        if n_bytes > len(self._bytes):
            self._bytes = np.empty(0, np.uint8)
            self._bytes = np.empty(2 * n_bytes, np.uint8)  # memory that is never written to is never provided
        found: Array = self._bytes[:n_bytes].view(dtype).reshape(shape)
        return found


@cache
def _defaults(kind: type[Any]) -> Any:
    """Return a part's default settings, made once: making them takes a fiftieth of a small fit."""
    return kind()


@dataclass(frozen=True)
class Problem:
    """min ½‖w‖² + C Σ_e ω_e ℓ_e(w) over rows seen through a kernel, and how hard to try.

    Parameters
    ----------
    rows : Rows
    examples : Examples
    task : Task
    kernel : Kernel
    C : float
        Factor of one example's loss; C₁ = C·Ω is that of the mean loss.
    intercept : {"regularized", "free", "none"}
    tol : float
        The tolerance; each solver's docstring says of what.
    precision : {"auto", "float32", "float64"}
    max_iter : int or None
        None: no limit.
    max_seconds : float or None
        None: no limit. Looked at wherever something takes long (`core.clock`).
    random_state : int, RandomState, Generator or None
    memory_limit : int
        Bytes a solver may take beyond the data and the model.
    n_jobs : int or None
    verbose : int
        1 shows a progress bar on standard error.
    kept : Kept or None
        The store that earlier fits of the same rows, kernel and precision filled.
    to_compare : bool
        Whether the fit is one of several that are only compared: it ends at ``tol``, however wide the gap is, and its
        lower bound is as rounding left it.
    room : Room or None
        Memory that earlier fits used; not where there is `kept`, which has its own.
    settings : tuple of settings objects
        Settings of parts that are not the defaults, such as ``(GradientSettings(tile_rows=16),)``.
        Smaller problems that a solver makes of this one have them too.
    """

    rows: Rows
    examples: Examples
    task: Task
    kernel: Kernel
    C: float = 1.0
    intercept: str = "regularized"
    tol: float = 1e-3
    precision: str = "auto"
    max_iter: int | None = None
    max_seconds: float | None = None
    random_state: Any = None
    memory_limit: int = 2_000_000_000
    n_jobs: int | None = None
    verbose: int = 0
    kept: Kept | None = None
    to_compare: bool = False
    room: Room | None = None
    settings: tuple[Any, ...] = ()

    def settings_of(self, kind: type[Settings]) -> Settings:
        """Return the settings of a part: the given ones, or its defaults."""
        for given in self.settings:
            if isinstance(given, kind):
                return given
        found: Settings = _defaults(kind)  # type: ignore[arg-type]  # mypy takes the hash of its instances for the class's
        return found

    @property
    def C1(self) -> float:
        """Return C·Ω, the factor of the weighted mean loss."""
        return self.C * self.examples.total_weight

    @property
    def units(self) -> tuple[float, float]:
        """Return what scores, and the slopes of losses, are measured in, see `Task.units`."""
        return self.task.units(self.examples)

    @property
    def loss_unit(self) -> float:
        """Return what losses are measured in."""
        score, slope = self.units
        return score * slope

    @property
    def unit_of_C(self) -> float:
        """Return what C is measured in: C times a slope is a dual variable, which has the units of scores."""
        score, slope = self.units
        return score / slope

    @property
    def is_small(self) -> bool:
        """Return whether ``precision="auto"`` means float64 and the tolerance of `tolerances`."""
        return self.precision == "auto" and self.rows.n_rows <= SMALL_N

    def tolerances(self, tol_relative: float, n_vectors: int = 0) -> tuple[float, float]:
        """Return (tol, tol_relative) of the stopping rule, given the tol_relative asked for and a basis's n_vectors."""
        if not self.is_small or self.tol > DEFAULT_TOL or self.task.has_object_labels:
            return self.tol * self.loss_unit, tol_relative
        m = self.task.n_outputs
        may_be_least = m == 1 or self.task.is_smooth or self.task.has_targets
        is_least = may_be_least or (m * self.rows.n_rows <= SMALL_N and m * n_vectors <= SMALL_BASIS)
        tol = self.tol * self.loss_unit if self.tol < DEFAULT_TOL else np.inf
        return tol, min(tol_relative, SMALL_TOLERANCE if is_least else NEARLY_TOLERANCE)

    def bind(self) -> KernelRows:
        """Return the rows seen through the kernel, in the precision that the problem asks for."""
        if self.kept is None:
            return self._bound()
        bound: KernelRows = self.kept.once("kernel rows", self._bound)
        return bound

    def _bound(self) -> KernelRows:

        def kernel_rows(dtype: Any) -> KernelRows:
            return KernelRows(
                self.kernel,
                self.rows,
                dtype=dtype,
                n_jobs=self.n_jobs,
                memory_limit=self.memory_limit // 4,
                counter=EvalCounter(),
            )

        if self.precision == "float64" or self.is_small:
            return kernel_rows(np.float64)
        if self.precision == "auto":
            largest, most = self.kernel.largest(self.rows), self.C * float(self.examples.weights.max(initial=0.0))
            has_large = largest > MAX_FLOAT32_VALUE or largest * most > MAX_FLOAT32_MARGIN
            if has_large or self._offset() > MAX_FLOAT32_OFFSET:
                return kernel_rows(np.float64)
        bound = kernel_rows(np.float32)
        if self.precision == "auto" and bound.is_wider_than(MAX_FLOAT32_RADIUS):
            return kernel_rows(np.float64)
        return bound

    def _offset(self) -> float:
        """Return the largest kernel value of all rows, relative to the median squared distance of some rows."""
        folding, n = self.kernel.folding(self.rows.n_features), self.rows.n_rows
        if not n or (folding is not None and folding.shift_invariant):
            return 0.0
        rows = KernelRows(self.kernel, self.rows, dtype=np.float64, n_jobs=self.n_jobs, memory_limit=0)
        some = np.arange(min(n, OFFSET_ROWS)) * n // min(n, OFFSET_ROWS)
        values = rows.block(rows.points(some), rows=some)
        diagonal = np.diagonal(values)
        distances = diagonal[:, None] + diagonal - 2.0 * values
        positive = distances[distances > 0]
        largest = self.kernel.largest(self.rows) or float(rows.diag().max())
        return largest / float(np.median(positive)) if len(positive) else 0.0

    def check_range(self) -> None:
        """Refuse problems that lead to numbers beyond float64, or beyond float32 if asked for; name the cause."""
        value, dtype = self.kernel.largest(self.rows), "float32" if self.precision == "float32" else "float64"
        if not value <= MAX_VALUE[dtype]:
            raise ValueError(
                f"values of {self.kernel!r} reach {value:.3g}, features of X {largest_entry(self.rows):.3g}; accepted "
                f"are values of at most {MAX_VALUE[dtype]:.0e} in {dtype}: scale X, or lower degree, gamma or coef0"
            )
        with np.errstate(over="ignore"):
            C1 = self.C1
        if not C1 * sqrt(max(value, 1.0)) <= sqrt(MAX_NORM):
            raise ValueError(
                f"C={self.C:g} times the sum of sample weights is {C1:.3g}, kernel values reach {value:.3g}; accepted "
                f"is at most {MAX_NORM:.0e} for (C · sum of weights)² · kernel value, beyond which objectives are not "
                "finite: lower C or the weights, or scale X"
            )

    def generator(self) -> np.random.Generator:
        """Return a new random generator, the same for the same ``random_state`` number."""
        if isinstance(self.random_state, np.random.Generator):
            return self.random_state
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))


def check_count(name: str, value: Any) -> None:
    """Require an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")


def check_choice(name: str, value: Any, *known: str) -> None:
    """Require one of some texts."""
    if value not in known:
        raise ValueError(f"{name} must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}, found {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Require True or False: a text is true whatever it says."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, found {value!r}")


def check_number(name: str, value: Any, accepted: str, most: float = np.inf, positive: bool = False) -> None:
    """Require a finite number from 0, or above it, to ``most``."""
    is_number = isinstance(value, Real) and not isinstance(value, bool | np.bool_) and np.isfinite(float(value))
    if not is_number or not 0 <= value <= most or (positive and value == 0):
        raise ValueError(f"{name} must be {accepted}, found {value!r}")


def check_vectors(name: str, vectors: Any) -> None:
    """Require finite values in vectors, dense or CSR, that a parameter holds."""
    if not np.isfinite(vectors.data if is_sparse(vectors) else vectors).all():
        raise ValueError(f"{name} must hold finite numbers, found NaN or infinity")


@dataclass(frozen=True)
class Need:
    """A requirement of a solver, and the message for problems that do not meet it."""

    is_met: Callable[[Problem], bool]
    reason: str  # the message, with fields ``{solver}``, ``{problem}`` and ``{task}``, the name of the task's class


TWO_CLASSES = Need(
    lambda problem: problem.task.has_two_classes,
    "{solver} solves two-class problems, found {task}; for more classes wrap the estimator in "
    "sklearn.multiclass.OneVsOneClassifier",
)


RANDOM_ACCESS = Need(
    lambda problem: problem.rows.has_random_access,
    "{solver} needs all rows in memory, found Blocks, which are read one after another: give max_basis a number, such "
    "as 100 (with solver='auto', 'refine' or 'low-rank', or 'bsca' for one class), take solver='violated-cuts', or "
    "load the rows into memory",
)


def no_free_intercept(reason: str) -> Need:
    """Return whether the intercept is regularised or absent."""
    return Need(
        lambda problem: problem.intercept in ("regularized", "none"),
        "{solver} trains with intercept='regularized' or 'none', found {problem.intercept!r}: " + reason,
    )


def check_needs(solver: str, problem: Problem, *needs: Need) -> None:
    """Refuse a problem that lacks something, with the reason."""
    for need in needs:
        if not need.is_met(problem):
            raise ValueError(need.reason.format(solver=solver, problem=problem, task=type(problem.task).__name__))


def has_smoothed_rows(problem: Problem) -> bool:
    """Return whether the loss is a sum over rows that can be smoothed, as Newton's method needs."""
    return problem.task.is_smoothable and problem.examples.offsets is None


def check_smoothable(problem: Problem) -> None:
    """Require a smoothed loss over one-row examples, and a single output for a free intercept (Newton's method)."""
    task = problem.task
    if not has_smoothed_rows(problem):
        raise ValueError(
            f"the convex problem in the coefficients needs a task with a smoothed loss (binary, multiclass, "
            f"regression), found {type(task).__name__}"
        )
    check_choice("intercept", problem.intercept, "regularized", "free", "none")
    if problem.intercept == "free" and task.n_outputs > 1:
        raise ValueError(
            f"intercept='free' is for one score column (two classes or regression), found {task.n_outputs}: "
            "use 'regularized' or 'none'"
        )
