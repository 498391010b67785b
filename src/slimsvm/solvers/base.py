"""What every solver shares: the problem it is given, the fit it returns, and the only iteration loop."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import prod, sqrt
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from slimsvm.core.clock import LEAST_SECONDS, Limit, OutOfTimeError, is_time_over, no_limit, present_limit, time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.kernels import EvalCounter, Kernel, KernelRows
from slimsvm.kernels.kernel import largest_entry
from slimsvm.model import KernelExpansion
from slimsvm.rows import Rows, as_rows
from slimsvm.rows.columns import advice_to_scale
from slimsvm.solvers.objectives import float64_objective
from slimsvm.solvers.progress import Bar
from slimsvm.solvers.rounding import sure_bound, warn_of_doubt
from slimsvm.tasks import Examples, Task

Array = np.ndarray
Told = TypeVar("Told")

# Up to SMALL_N rows all is float64. Such a problem is solved to SMALL_TOLERANCE where it has one output, or at most
# SMALL_N rows times outputs and, in a given basis, SMALL_BASIS vectors times outputs. Others would take minutes: they
# are solved to NEARLY_TOLERANCE. Losses written in Python cost too much for either, and a tol above the default is
# obeyed.
SMALL_N, SMALL_BASIS = 2000, 500
SMALL_TOLERANCE, NEARLY_TOLERANCE, DEFAULT_TOL = 1e-10, 1e-3, 1e-3
# Beyond this γ·max‖x − mean‖² float32 kernel values lose more than three digits.
MAX_FLOAT32_RADIUS = 500.0
# Kernel values above this are computed in float64 under precision="auto". Those that a type cannot work with: float32
# holds 3e38, and sums are to have room.
MAX_FLOAT32_VALUE = 1e15
# And where they are so many times squared distances: a few rows are far from the origin, or all, on one side. Distances
# are those of how many rows.
MAX_FLOAT32_OFFSET, OFFSET_ROWS = 1e4, 64
MAX_VALUE = {"float32": 1e30, "float64": 1e150}
# (C · sum of weights)² · largest kernel value, which no norm and no loss is above.
MAX_NORM = 1e300
# Where float64 values of the kernel change the dual value by more than this share of the objective, the float32 ones of
# a fit were too coarse for its model, too; by more than a hundredth of that, for the digits of its objective.
TOO_COARSE = 1e-3
# Gaps, as shares of the objective, that are rounding errors of the kernel values; objectives below the share NOTHING
# of C₁ are rounding errors themselves.
GAP_ROUNDING, NOTHING = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}, 1e-6
# Gaps up to this share of the objective have a status of their own, but no warning.
GAP_WORTH_SAYING = 0.01
# Multiply-adds that a fit may take for its report when it is cut short: a tenth of a second. At the end of max_seconds
# it may take this share of them, if that is more.
REPORT_WORK, REPORT_SHARE = 1 << 32, 0.05
# Rows or examples that a model is made of where there was no time to look at all.
FEW_EXAMPLES = 500


class Status(StrEnum):
    """Why a fit ended."""

    CONVERGED = "converged"
    GAP = "gap above tolerance"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped by a callback"

    @property
    def is_cut(self) -> bool:
        """Whether a fit ended somewhere within its work, and is to return at once."""
        return self in (Status.INTERRUPTED, Status.TIME_LIMIT)


class Kept:
    """What a fit leaves for the next of the same rows, kernel and precision, as along a path over C.

    Whoever hands it on sees to it that they are the same. Fits that are only to be compared are its users: they end at
    ``tol``, however wide the gap is, and their lower bounds are as rounding left them.

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
        """What ``make()`` returned the first time."""
        if name not in self._things:
            self._things[name] = make()
        return self._things[name]

    def part(self, name: Any, n_parts: int) -> Kept:
        """The same for one of several parts of the rows."""
        return self.once(name, lambda: Kept(self.room, n_parts))

    def put(self, name: Any, thing: Any) -> None:
        """Leave something in the place of what is there."""
        self._things[name] = thing

    def get(self, name: Any) -> Any:
        """What is there, or None."""
        return self._things.get(name)


class Room:
    """Memory for blocks of numbers that is used again: new memory costs more than the values it takes."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array, whose values are those of earlier ones; it takes the place of all of them."""
        dtype = np.dtype(dtype)
        n_bytes = prod(shape) * dtype.itemsize
        if n_bytes > len(self._bytes):
            self._bytes = np.empty(0, np.uint8)
            self._bytes = np.empty(2 * n_bytes, np.uint8)  # what is not written to takes no memory
        return self._bytes[:n_bytes].view(dtype).reshape(shape)


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
        Price of one example's loss; C₁ = C·Ω prices the mean loss.
    intercept : {"regularized", "free", "none"}
    tol : float
        What a solver makes of it is in its docstring.
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
        What earlier fits of the same rows, kernel and precision left.
    room : Room or None
        Memory that earlier fits used; not where there is `kept`, which has its own.
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
    room: Room | None = None

    @property
    def C1(self) -> float:
        """C·Ω, the price of the weighted mean loss."""
        return self.C * self.examples.total_weight

    @property
    def is_small(self) -> bool:
        """Whether ``precision="auto"`` means float64 and the solution that `tolerances` says."""
        return self.precision == "auto" and self.rows.n_rows <= SMALL_N

    def tolerances(self, tol_relative: float, n_vectors: int = 0) -> tuple[float, float]:
        """(tol, tol_relative) of the stopping rule, where these are asked for; n_vectors: of a given basis."""
        if not self.is_small or self.tol > DEFAULT_TOL or self.task.has_object_labels:
            return self.tol, tol_relative
        m = self.task.n_outputs
        is_least = m == 1 or (m * self.rows.n_rows <= SMALL_N and m * n_vectors <= SMALL_BASIS)
        tol = self.tol if self.tol < DEFAULT_TOL else np.inf
        return tol, min(tol_relative, SMALL_TOLERANCE if is_least else NEARLY_TOLERANCE)

    def bind(self) -> KernelRows:
        """The rows seen through the kernel, in the precision the problem asks for."""
        if self.kept is None:
            return self._bound()
        bound: KernelRows = self.kept.once("kernel rows", self._bound)
        return bound

    def _bound(self) -> KernelRows:

        def kernel_rows(dtype):
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
        if self.precision == "auto" and (
            self.kernel.largest(self.rows) > MAX_FLOAT32_VALUE or self._offset() > MAX_FLOAT32_OFFSET
        ):
            return kernel_rows(np.float64)
        bound = kernel_rows(np.float32)
        if self.precision == "auto" and bound.is_wider_than(MAX_FLOAT32_RADIUS):
            return kernel_rows(np.float64)
        return bound

    def _offset(self) -> float:
        """The largest kernel value of all rows for the squared distance of two, of some the median."""
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
        """Refuse what leads to numbers beyond float64, or beyond float32 where that is asked for, and name it."""
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
        """A fresh random generator, the same for the same ``random_state`` number."""
        if isinstance(self.random_state, np.random.Generator):
            return self.random_state
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))


@dataclass
class Fit:
    """What a solver returns.

    Parameters
    ----------
    model : KernelExpansion
    status : Status
    objective : float
        ½‖w‖² + C Σ ω_e ℓ_e of the model over all rows (sums in float64); NaN if the solver was told not to compute it.
    lower_bound : float or None
        A bound no model of this problem can be under, where the solver has one.
    history : list of dict
        One record per iteration or epoch.
    counters : dict
        Kernel evaluations and the like.
    state : object
        Plain data for a warm start.
    basis_rows : int64 ndarray of shape (n_basis,) or None
        Training rows the basis vectors are; None where they are not rows of the data.
    solved : Problem or None
        The problem that the model is of, where the solver had a choice; None: the one it was given.
    trials : list of dict
        What was tried on rows held out.
    is_too_coarse : bool
        Whether float32 kernel values were too coarse for the problem.
    """

    model: KernelExpansion
    status: Status
    objective: float
    lower_bound: float | None
    history: list[dict[str, Any]]
    counters: dict[str, Any]
    state: Any = None
    basis_rows: Array | None = None
    solved: Problem | None = None
    trials: list[dict[str, Any]] = field(default_factory=list)
    is_too_coarse: bool = False

    @property
    def n_iter(self) -> int:
        """Iterations (or epochs) done."""
        return len(self.history)


@dataclass(frozen=True)
class Best:
    """What had the lowest objective so far. Another takes its place as a whole, so that an interrupt cannot tear it."""

    objective: float = np.inf
    found: Any = None

    def or_lower(self, objective: float, found: Any, or_equal: bool = False) -> Best:
        """What was found, if its objective is lower (or, where asked for, as low); the best so far otherwise."""
        is_lower = objective <= self.objective if or_equal else objective < self.objective
        return Best(objective, found) if is_lower else self


class Run(Protocol):
    """One solver at work on one problem."""

    kernel_rows: KernelRows
    converged: bool

    def step(self) -> dict[str, Any]:
        """One iteration; returns its record and sets ``converged``.

        An interrupt inside leaves `finish` usable; so does the end of time (`core.clock`), which comes between calls
        into the core and parts of passes over rows. A run of parts that each have ``max_iter`` for themselves has an
        attribute ``most_records`` in its place. Of a run with a true attribute ``has_models`` `finish` may be asked
        after every step, and the run goes on. ``so_far()`` is a quick answer, with
        an objective of NaN and a state from which a fit goes on to the same bits (`solvers.halfway`); a run whose steps
        have parts calls ``between`` after each, where somebody set it. A run with a limit of its own says
        in ``spent`` which one it has come to. A run with a bound says in ``dual_point()`` which dual point it is
        that of, or in ``sure_bound()`` what is sure of it (`solvers.rounding`), once `finish` was asked. What a bar
        shows is ``doing``, in words for users, with ``share_done`` or ``distance(record)`` (`solvers.progress`).
        """

    def finish(self, status: Status, history: list[dict[str, Any]]) -> Fit:
        """The best model so far and what is known of it."""


Callback = Callable[[dict[str, Any]], Any]


class Solver(BaseEstimator):
    """Base class: holds parameters only; ``solve`` never changes them.

    Attributes
    ----------
    takes_label_sets : bool
        Whether rows may have several labels.
    follows_libsvm : bool
        Whether what an estimator leaves to "auto" is what LIBSVM has: pairs of classes, and a free intercept.
    """

    takes_label_sets: ClassVar[bool] = True
    follows_libsvm: ClassVar[bool] = False

    def start(self, problem: Problem, state: Any) -> Run:
        """Check that the problem suits this solver, and set the work up."""
        raise TypeError(f"{type(self).__name__} must define start(problem, state)")

    def solve(self, problem: Problem, state: Any = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """Solve the problem, from ``state`` of an earlier fit where given.

        Parameters
        ----------
        problem : Problem
        state : object, optional
            ``Fit.state`` of an earlier fit of the same rows.
        callbacks : iterable of callables
            Each is called with every iteration's record; a true answer stops the fit. Those with a method ``watch`` are
            shown the `Run` first.

        Returns
        -------
        Fit
        """
        begun = time.perf_counter()
        with one_blas_thread(), time_limit(problem.max_seconds) as limit:
            run, callbacks = None, tuple(callbacks)
            with suppress(OutOfTimeError):
                problem.check_range()
                run = self.start(problem, state)
            if run is None:
                return self._of_few(problem, begun)
            for callback in callbacks:
                if hasattr(callback, "watch"):
                    callback.watch(run)
            status, history = iterate(run, problem, begun, callbacks, type(self).__name__)
            with no_limit():  # little is left to do where the time is over
                fit = finite(run.finish(status, history), problem, getattr(self, "final_objective", True))
                if problem.kept is None:
                    fit = surely(fit, run, may_go_on=problem.precision == "auto")
            if fit.is_too_coarse and fit.status is Status.CONVERGED and problem.precision == "auto":
                fit = self._in_float64(problem, fit, callbacks)
            fit = timed(fit, limit, type(self).__name__)
        fit.counters["seconds"] = time.perf_counter() - begun
        return fit

    def _in_float64(self, problem: Problem, fit: Fit, callbacks: tuple[Callback, ...]) -> Fit:
        """What becomes of a fit whose float32 kernel values were too coarse."""
        most = None if problem.max_iter is None else max(problem.max_iter - fit.n_iter, 1)
        finer = self.solve(replace(problem, precision="float64", max_iter=most), fit.state, callbacks)
        if np.isnan(finer.objective):  # there was no time for an iteration
            return replace(fit, status=finer.status)
        finer.history[:0] = fit.history
        for name in ("kernel_evals", "report_kernel_evals"):
            finer.counters[name] = finer.counters.get(name, 0) + fit.counters.get(name, 0)
        return finer

    def _of_few(self, problem: Problem, begun: float) -> Fit:
        """What a fit returns whose time was over before its first iteration: the model of a few rows, or where there
        is no time for that either the one that is 0.
        """
        examples, n = problem.examples, problem.examples.n_examples
        task, rows = problem.task, problem.rows
        may_be_few = task.decomposes and not task.class_pairs() and problem.kernel.has_features
        if n <= FEW_EXAMPLES or not (may_be_few and rows.has_random_access):
            return nothing(problem, type(self).__name__, begun)
        # Evenly over the labels, so that there are some of every class.
        order = np.arange(n) if examples.offsets is not None else np.lexsort(np.atleast_2d(examples.labels.T))
        chosen = np.sort(order[np.arange(FEW_EXAMPLES) * n // FEW_EXAMPLES])
        index = examples.rows_of(chosen)
        with no_limit(), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            few = replace(problem, rows=as_rows(rows.take(index, rows.exact_dtype)))
            few = replace(few, examples=examples.take(chosen), kept=None, verbose=0)
            fit = self.solve(replace(few, max_seconds=LEAST_SECONDS))
        warn_of_time(type(self).__name__, f"the model of {len(index)} of the rows is returned")
        basis_rows = None if fit.basis_rows is None else index[fit.basis_rows]
        counters = {**fit.counters, "seconds": time.perf_counter() - begun}
        known: dict[str, Any] = {"objective": np.nan, "lower_bound": None, "history": [], "state": None, "solved": None}
        return replace(fit, status=Status.TIME_LIMIT, counters=counters, basis_rows=basis_rows, **known)


def timed(fit: Fit, limit: Limit, name: str) -> Fit:
    """The fit, which has not converged where the time ended a part of it."""
    if limit.was_reached and fit.status is Status.CONVERGED:
        fit.status = Status.TIME_LIMIT
        warnings.warn(
            f"{name} had less time for parts of its work than they asked for, to end before the time limit; raise "
            "max_seconds, or accept the model as it is",
            ConvergenceWarning,
            stacklevel=4,
        )
    return fit


def nothing(problem: Problem, name: str, begun: float) -> Fit:
    """The model that is 0, of a fit without time for any other."""
    task, kernel = problem.task, problem.kernel
    warn_of_time(name, "the model that is 0 everywhere is returned")
    model = KernelExpansion(
        basis=kernel.basis(problem.rows, np.zeros(0, np.int64)),
        coef=np.zeros((0, task.n_outputs)),
        intercept=np.zeros(task.n_outputs),
        plain=np.zeros(task.n_plain),
        kernel=kernel,
        dtype="float64",
    )
    counters = {"kernel_evals": 0, "seconds": time.perf_counter() - begun}
    return Fit(model, Status.TIME_LIMIT, np.nan, None, [], counters)


def warn_of_time(name: str, what: str) -> None:
    """Say that there was no time for an iteration."""
    warnings.warn(
        f"{name} stopped at the time limit before its first iteration: {what}; raise max_seconds, or accept it",
        ConvergenceWarning,
        stacklevel=5,
    )


def finite(fit: Fit, problem: Problem, has_objective: bool = True) -> Fit:
    """The fit, or an error where a number of its model, or its objective, is not finite."""
    model = fit.model
    is_finite = all(np.isfinite(part).all() for part in (model.coef, model.intercept, model.plain))
    has_objective = has_objective and not fit.status.is_cut  # see `reported`
    if is_finite and (np.isfinite(fit.objective) or not has_objective):
        return fit
    kernel = repr(problem.kernel)[:200]
    found = f"an objective of {fit.objective}" if is_finite else "coefficients that are NaN or infinite"
    raise ValueError(
        f"the fit ended with {found}: intermediate numbers exceeded {model.dtype}. Kernel values reach "
        f"{problem.kernel.largest(problem.rows):.3g}, C={problem.C:g} times the largest weight is "
        f"{problem.C * problem.examples.weights.max(initial=0.0):.3g}, {kernel}: scale X, lower C, the weights, "
        "degree, gamma or coef0"
    )


def reported(kernel_rows: KernelRows, status: Status, n_basis: int, looked: Callable[[], Told]) -> Told | None:
    """What a look at all rows tells of a fit that ends; None where it would take long after Ctrl-C, or at the end of
    ``max_seconds`` much beside them.
    """
    rows = kernel_rows.rows
    work = n_basis * (rows.n_stored + 8 * rows.n_rows)
    if not status.is_cut or work <= REPORT_WORK:
        return looked()
    limit = present_limit()
    if status is Status.INTERRUPTED or limit is None:
        return None
    try:
        with time_limit(REPORT_SHARE * limit.seconds):
            return looked()
    except OutOfTimeError:
        return None


def surely(fit: Fit, run: Any, may_go_on: bool = False) -> Fit:
    """The fit with the bound that is sure, the objective where that is in doubt, and "converged" only of a narrow gap.

    ``may_go_on``: whether a fit whose kernel values are too coarse goes on with others. Kernel evaluations are those of
    the report.
    """
    if fit.lower_bound is None:
        return fit
    problem, before, value = run.problem, run.kernel_rows.counter.n, fit.lower_bound
    size = max(abs(fit.objective), NOTHING * problem.C1)
    is_cut_short = fit.status.is_cut
    fit.lower_bound, change = sure_bound(run, value, is_cut_short=is_cut_short)
    may_be_coarse = run.kernel_rows.dtype == np.float32
    may_be_summed = may_be_coarse and not is_cut_short and not problem.task.class_pairs()
    objective = None
    if may_be_summed and (change > 0.01 * TOO_COARSE * size or has_dear_losses(problem, fit.model, TOO_COARSE * size)):
        objective = float64_objective(problem, fit.model)
        run.kernel_rows.counter.add(problem.rows.n_rows * fit.model.n_basis)
        change = max(change, abs(objective - fit.objective))
    fit.is_too_coarse = may_be_coarse and change > TOO_COARSE * size
    if not (fit.is_too_coarse and may_go_on and fit.status is Status.CONVERGED):
        if objective is not None:
            fit.objective = objective
        fit.lower_bound = min(fit.lower_bound, fit.objective)
        is_said = warn_of_doubt(run.kernel_rows, value, fit.lower_bound, size)
        fit.status = told_of_gap(fit, run, is_said)
    if n_evals := run.kernel_rows.counter.n - before:
        fit.counters["report_kernel_evals"] = fit.counters.get("report_kernel_evals", 0) + n_evals
    return fit


def has_dear_losses(problem: Problem, model: KernelExpansion, much: float) -> bool:
    """Whether what float32 rounds of a score is ``much`` where an example's loss is dearest."""
    error = float(np.finfo(np.float32).eps) * max(1.0, float(np.abs(model.coef).sum(axis=0).max(initial=0.0)))
    return problem.C * float(problem.examples.weights.max(initial=0.0)) * error > much


def told_of_gap(fit: Fit, run: Any, is_said: bool) -> Status:
    """The fit's status; another one than "converged" where the gap is above what the run's tolerance allows.

    A warning says why where the gap is wide, unless one has said it.
    """
    if fit.status is not Status.CONVERGED or fit.lower_bound is None or not hasattr(run, "allowed"):
        return fit.status
    gap, dtype = fit.objective - fit.lower_bound, run.kernel_rows.dtype
    if not gap > run.allowed(fit.objective):
        return fit.status
    if is_said or getattr(run, "has_said_of_gap", False) or gap <= GAP_WORTH_SAYING * abs(fit.objective):
        return Status.GAP
    advice = "precision='float64' or a lower C" if dtype == np.float32 else "a lower C, weights that are less apart"
    warnings.warn(
        f"the fit ended with an objective of {fit.objective:.6g} and a lower bound of {fit.lower_bound:.6g}, a wider "
        f"gap than its tolerance: rounding or the steps that are allowed leave no less; {advice} or features scaled "
        "to about 1 may",
        ConvergenceWarning,
        stacklevel=5,
    )
    return Status.GAP


def iterate(run: Run, problem: Problem, begun: float, callbacks: tuple[Callback, ...], name: str):
    """The one loop: steps until convergence, a limit, a callback's word or Ctrl-C. Returns status and history."""
    history: list[dict[str, Any]] = []
    most = getattr(run, "most_records", problem.max_iter)
    bar = Bar(run, name, most, problem.max_seconds) if problem.verbose > 0 else None
    spent = None
    status = Status.ITERATION_LIMIT if most == 0 else None
    try:
        while status is None:
            record = run.step()
            record["seconds"] = time.perf_counter() - begun
            record["kernel_evals"] = run.kernel_rows.counter.n
            history.append(record)
            if bar is not None:
                bar.update(record, len(history))
            if record.get("objective") is not None and np.isnan(record["objective"]):
                status = Status.STOPPED  # `finite` says why
                break
            stopped = False
            if callbacks:
                with no_limit():
                    stopped = any([callback(record) for callback in callbacks])
            spent = getattr(run, "spent", None)
            if run.converged:
                status = Status.CONVERGED
            elif stopped:
                status = Status.STOPPED
            elif spent or (most is not None and len(history) >= most):
                status = Status.ITERATION_LIMIT
            elif is_time_over():
                status = Status.TIME_LIMIT
    except OutOfTimeError:
        status = Status.TIME_LIMIT
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        warnings.warn(
            f"interrupted after {len(history)} iterations: the best model so far is returned",
            ConvergenceWarning,
            stacklevel=4,
        )
    finally:
        if bar is not None:
            bar.close(status is Status.CONVERGED)
    if status in (Status.ITERATION_LIMIT, Status.TIME_LIMIT):
        is_own = spent and problem.max_iter is None
        advice = "take a lower C or a larger tol" if is_own else "raise max_iter or max_seconds"
        scales = advice_to_scale(problem.rows) if problem.kernel.has_features else ""
        warnings.warn(
            f"{name} stopped at the {spent or status} after {len(history)} iterations, before its tolerance was "
            f"reached; {f'{scales}; ' if scales else ''}{advice}, or accept the model as it is",
            ConvergenceWarning,
            stacklevel=4,
        )
    return status, history
