"""The base class of all solvers, the only iteration loop, and its progress bar under ``verbose``.

A `Run` says how far it has come in one of two ways: ``share_done`` of the work that it has planned, or how many times
the tolerance it is away, ``distance(record)``, which falls to 1 about evenly on a log scale. Limits of iterations and
seconds count likewise, and the bar shows what ends first.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from math import isfinite, log
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from slimsvm.core.clock import LEAST_SECONDS, OutOfTimeError, is_time_over, no_limit, time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.problem import Problem
from slimsvm.parts.run import Fit, Run, Status, finite, timed, warn_of_time, with_safe_bound
from slimsvm.rows import Rows, as_rows
from slimsvm.rows.columns import advice_to_scale

FORMAT = "{desc}: {percentage:3.0f}%|{bar:20}| {elapsed}<{remaining}{postfix}"
BLOCK_FORMAT = "{desc}: {n_fmt} of {total_fmt} blocks|{bar:20}|{postfix}"


def one_by_one(things: Sequence[Any], doing: str, verbose: int) -> Iterable[Any]:
    """Return the things to iterate over, with a bar of how many are done under ``verbose``."""
    if not verbose:
        return things
    from tqdm import tqdm

    found: Iterable[Any] = tqdm(things, desc=doing, bar_format=FORMAT)
    return found


def reading(rows: Any, verbose: int) -> AbstractContextManager[None]:
    """Show, under ``verbose``, which block a pass over the rows has come to."""
    return _block_bar(rows) if verbose and isinstance(rows, Rows) else nullcontext()


@contextmanager
def _block_bar(rows: Rows) -> Iterator[None]:
    from tqdm import tqdm

    bar: Any = None

    def listener(i: int, n_blocks: int, name: str) -> None:
        nonlocal bar
        if bar is None:
            bar = tqdm(desc="reading rows", total=n_blocks, unit="block", leave=False, bar_format=BLOCK_FORMAT)
        bar.set_postfix_str(name, refresh=False)
        if i + 1 < bar.n:
            bar.reset()
        bar.update(i + 1 - bar.n)

    rows.tell(listener)
    try:
        yield
    finally:
        rows.tell(None)
        if bar is not None:
            bar.close()


class Bar:
    """A tqdm bar on standard error, in percent.

    Parameters
    ----------
    run : Run
        The run; its ``doing`` is the bar's text.
    name : str
        The bar's text if the run has none.
    max_iter, max_seconds : int or None, float or None
        Limits of the fit.
    """

    def __init__(self, run: Run, name: str, max_iter: int | None, max_seconds: float | None):
        from tqdm import tqdm  # 10 ms that a silent fit is spared

        self.run, self.max_iter, self.max_seconds = run, max_iter, max_seconds
        self.bar = tqdm(desc=run.doing or name, total=100, bar_format=FORMAT)
        self.farthest = 1.0

    def update(self, record: dict[str, Any], n_iter: int) -> None:
        """Show an iteration's record."""
        shown = {name: record[name] for name in ("objective", "gap") if record.get(name) is not None}
        if "gap" in shown:
            objective = abs(shown.get("objective", 0.0))
            shown["gap"] = f"{shown['gap'] / objective:.2g} of it" if objective else f"{shown['gap']:.2g}"
        if record.get("n_basis") is not None:
            shown["vectors"] = record["n_basis"]
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(max(0.0, 100.0 * min(1.0, self._share(record, n_iter)) - self.bar.n))

    def _share(self, record: dict[str, Any], n_iter: int) -> float:
        """Return how far the fit has come; 1 is its end."""
        share = self.run.share_done
        if self.max_iter is not None:
            share = max(share, n_iter / self.max_iter)
        if self.max_seconds is not None:
            share = max(share, record["seconds"] / self.max_seconds)
        distance = self.run.distance(record)
        if distance is not None and isfinite(distance):
            distance = max(distance, 1.0)
            self.farthest = max(self.farthest, distance)
            if self.farthest > 1.0:
                share = max(share, 1.0 - log(distance) / log(self.farthest))
        return share

    def close(self, is_done: bool) -> None:
        """Leave the bar at its present place, or at its end."""
        if is_done:
            self.bar.update(max(0.0, 100.0 - self.bar.n))
        self.bar.close()


# The number of rows or examples of a model for which there was no time to read all rows.
FEW_EXAMPLES = 500

Callback = Callable[[dict[str, Any]], Any]


@runtime_checkable
class Watcher(Protocol):
    """A callback that gets the run before its first step."""

    def watch(self, run: Run) -> None:
        """Remember the run."""


class Solver(BaseEstimator):
    """The base class: it holds parameters only; ``solve`` never changes them.

    Attributes
    ----------
    takes_label_sets : bool
        Whether rows may have several labels.
    follows_libsvm : bool
        Whether what an estimator leaves to "auto" is what LIBSVM has: pairs of classes, and a free intercept.
    takes_smooth : bool
        Whether losses with two derivatives are trained, whose minimum is at no corner of a linear piece.
    final_objective : bool
        Whether the model's objective over all rows is computed at the end.
    """

    takes_label_sets: ClassVar[bool] = True
    follows_libsvm: ClassVar[bool] = False
    takes_smooth: ClassVar[bool] = False
    final_objective: bool = True

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
                check_loss(self, problem)
                run = self.start(problem, state)
            if run is None:
                return self._of_few(problem, begun)
            for callback in callbacks:
                if isinstance(callback, Watcher):
                    callback.watch(run)
            status, history = iterate(run, problem, begun, callbacks, type(self).__name__)
            with no_limit():  # the time limit is over, and little is left to do
                fit = finite(run.finish(status, history), problem, self.final_objective)
                if not problem.to_compare:
                    fit = with_safe_bound(fit, run, may_go_on=problem.precision == "auto")
            if fit.is_too_coarse and fit.status is Status.CONVERGED and problem.precision == "auto":
                fit = self._in_float64(problem, fit, callbacks)
            fit = timed(fit, limit, type(self).__name__)
        fit.counters["seconds"] = time.perf_counter() - begun
        return fit

    def _in_float64(self, problem: Problem, fit: Fit, callbacks: tuple[Callback, ...]) -> Fit:
        """Solve again in float64, from a fit whose float32 kernel values were too coarse."""
        most = None if problem.max_iter is None else max(problem.max_iter - fit.n_iter, 1)
        finer = self.solve(replace(problem, precision="float64", max_iter=most, kept=None), fit.state, callbacks)
        if np.isnan(finer.objective):  # there was no time for an iteration
            return replace(fit, status=finer.status)
        finer.history[:0] = fit.history
        for name in ("kernel_evals", "report_kernel_evals"):
            finer.counters[name] = finer.counters.get(name, 0) + fit.counters.get(name, 0)
        return finer

    def _of_few(self, problem: Problem, begun: float) -> Fit:
        """Return the fit for when time ended before the first iteration: the model of a few rows, or the zero model if
        there is no time for that either.
        """
        examples, n = problem.examples, problem.examples.n_examples
        task, rows = problem.task, problem.rows
        may_be_few = task.decomposes and not (task.has_columns or task.class_pairs()) and problem.kernel.has_features
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
            # Not to the many digits that few rows mean otherwise.
            few = replace(few, precision="float64") if few.is_small else few
            fit = self.solve(replace(few, max_seconds=LEAST_SECONDS))
        warn_of_time(type(self).__name__, f"the model of {len(index)} of the rows is returned")
        basis_rows = None if fit.basis_rows is None else index[fit.basis_rows]
        counters = {**fit.counters, "seconds": time.perf_counter() - begun}
        known: dict[str, Any] = {"objective": np.nan, "lower_bound": None, "history": [], "state": None, "solved": None}
        return replace(fit, status=Status.TIME_LIMIT, counters=counters, basis_rows=basis_rows, **known)


def check_loss(solver: Solver, problem: Problem) -> None:
    """Refuse a loss with two derivatives if the solver needs a piecewise linear one; name the solvers that take it."""
    task: Any = problem.task
    if task.is_smooth and not solver.takes_smooth:
        raise ValueError(
            f"{type(solver).__name__} does not train the loss {task.loss!r}: give max_basis a number or take "
            "solver='refine' (learned vectors) or 'low-rank' (vectors that are rows)"
        )


def nothing(problem: Problem, name: str, begun: float) -> Fit:
    """Return the zero model, for a fit without time for any other."""
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


def iterate(
    run: Run, problem: Problem, begun: float, callbacks: tuple[Callback, ...], name: str
) -> tuple[Status, list[dict[str, Any]]]:
    """Run the only loop: step until convergence, a limit, a callback's answer or Ctrl-C. Return status and history."""
    history: list[dict[str, Any]] = []
    most = run.max_records
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
            spent = run.spent
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
