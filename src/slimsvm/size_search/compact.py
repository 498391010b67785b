r"""As few vectors as will do: what ``max_basis="auto"`` stands for.

    hold out a part of the rows; solve for the others exactly: errors e*_i on the rows held out, k* vectors
    for k = 25 (5 for each of many classes), …, k*/4, k*/3, each 2 to 6 times the one before, by how far that was from
    what is allowed:
        move k vectors, the ones before and some of the exact SVM's, until the model over them is near to that
        SVM; solve for their coefficients: errors e_i
        take k if mean(e − e*) + its standard error ≤ min(max_extra_error, mean(e*)/2)
        if they surely err more, learn them further, in a few sweeps over the rows, and see again
    solve for all rows exactly, move the vectors to be near to that SVM, solve for their coefficients;
    of learned vectors: learn them further from all rows
    without such k: the exact SVM of all rows

The errors are those of the same rows, so that what is chance in one is in the other too, and with few rows, where much
is chance, the standard error asks for more vectors. Up to 5,000 rows all of them are held out in turn, a third at a
time, until a trial is decided, and vectors of a later part begin at those of the first. Coefficients are those of the
convex problem over the vectors at twice C (pairs of classes: four times, at most 10): few vectors need a longer
w than many for the same function. Where that would take longer than the exact SVM they are those of the nearest
model (`bases.distance`). Where classes may have a score each instead of pairs, and that is quick, both are tried. Of
several kinds tried with as many vectors, a later one is taken only if it errs less than the first beyond chance: each
has its own chance to look good.

With ``max_basis`` there is no search: the exact SVM of all rows, so many vectors moved to be near to it, and their
coefficients, of pairs of classes at the higher C. Where moved vectors miss more than a sixth of the SVM's ‖w‖²,
one problem's are learned further from the rows.

With ``learn_metric`` vectors are learned from the rows with one scale per feature (`solvers.learned_vectors`). The
model is of another kernel then, without a bound. Nothing of this asks the clock: the same ``random_state`` gives the
same model, and the same rows are held out whatever it is. Sizes and parts that would take more than is left of
``search_factor`` times what the exact SVM of all rows takes are not begun.

Burges, "Simplified Support Vector Decision Rules", ICML 1996 (vectors moved to be near to an exact SVM).

Parts: `size_search.size_search` for the trials, `size_search.trials` for their statistics
and what they take, `size_search.reduced_models` for the vectors, `solvers.low_rank`
and `parts.span.best_coefficients` for the coefficients, `solvers.learned_vectors` for the sweeps,
`solvers.exact` for the exact SVM.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from slimsvm.core.clock import OutOfTimeError, no_limit, share_of_time, time_limit
from slimsvm.core.threads import one_blas_thread
from slimsvm.model import KernelExpansion
from slimsvm.parts.descent.batch_gradient import check_kernel
from slimsvm.parts.dual_ascent.dual import DualState
from slimsvm.parts.problem import (
    RANDOM_ACCESS,
    Need,
    Problem,
    check_count,
    check_flag,
    check_needs,
    check_number,
    check_smoothable,
)
from slimsvm.parts.run import Fit, Status, objective_of_model, reported_objective
from slimsvm.parts.solver import Callback, Solver, check_loss, nothing
from slimsvm.rows import as_rows, is_sparse
from slimsvm.size_search.reduced_models import LEARNED, SOLVED, ModelKind, exact_solver, measured_by, with_task
from slimsvm.size_search.size_search import CutShortError, Part, SizeSearch, in_few_digits
from slimsvm.size_search.trials import FIRST_SWEEPS, LARGE_SHARE, SWEEPS, Trial, nearest
from slimsvm.solvers.learned_vectors import Refine
from slimsvm.solvers.low_rank import LowRank, LowRankState
from slimsvm.solvers.sampled_cuts import ExactCuts, ViolatedCuts
from slimsvm.tasks import Task, losses

# The fewest rows there is a search for.
LEAST_ROWS = 10
# Rows up to which an exact solution takes the place of few vectors that do not do; sampled cuts above.
MAX_EXACT_ROWS = 300_000


@dataclass(frozen=True)
class CompactState:
    """The number of vectors that a fit tried last, for the next fit (None: it ended with the exact SVM)."""

    size: int | None


NEEDS = (
    Need(
        lambda problem: (
            bool(problem.task.class_pairs())
            or (problem.task.is_smoothable and (problem.task.has_class_scores or problem.task.has_dual))
        ),
        "Compact looks for few vectors for two classes, several or regression, found {task}",
    ),
    Need(
        lambda problem: problem.kernel.has_features,
        "Compact holds rows out and needs a kernel of rows, found kernel='precomputed'",
    ),
    Need(
        lambda problem: problem.kernel.is_inner_product,
        "Compact needs a kernel that is an inner product, found {problem.kernel!r}",
    ),
)
ENOUGH_ROWS = Need(
    lambda problem: problem.rows.n_rows >= LEAST_ROWS,
    f"Compact holds out a part of the rows and needs at least {LEAST_ROWS}, found {{problem.rows.n_rows}}",
)


@dataclass(eq=False, repr=False)
class Compact(Solver):
    """The smallest model that errs no more than the exact SVM on held-out rows; without one, the exact SVM.

    For classification and regression, and for rows that can be copied in memory.

    Parameters
    ----------
    max_extra_error : float, default=0.0025
        The error that the small model may have beyond the exact SVM's. For classes it is a share of the rows, by
        default a quarter of a percentage point. For regression it is a share of the error of the best constant. It is
        also limited by half of the exact SVM's error, and by a tenth of its gain over a constant. The estimated
        extra error plus one standard error must not exceed it, so few rows lead to more vectors.
    search_factor : float, default=5.0
        Budget of the search, in units of the work for the exact SVM of all rows, which is trained in addition. Work is
        counted in kernel evaluations; other work is converted to them. Sizes that do not fit are not tried.
    learn_metric : bool, default=False
        `Refine` learns the vectors with one scale per feature, from the given kernel on, and they are compared with
        the exact SVM of the given kernel. The objective is then that of the learned kernel; it has no lower bound.
    max_basis : int or None, default=None
        Number of vectors, without a search and without held-out rows. If the exact SVM has no more, it is the model.
        Otherwise vectors of the exact SVM are moved. For two classes and regression, `Refine` learns them further
        if they miss more than a sixth of the exact SVM's ‖w‖².

    Notes
    -----
    ``history_`` has the records of the solvers that were used, with ``stage``: "exact SVM of a part", "k vectors",
    and at the end "exact SVM" and "all rows". With ``max_basis`` the stages are "exact SVM" and "moved
    vectors", or "learned vectors" if the moved ones are too far from the exact SVM.
    Trials are in ``validation_`` of the estimator, with ``n_basis``, ``multi_class`` ("ovo" if coefficients belong to
    pairs of classes), ``error``, ``extra_error``, ``standard_error``, ``allowed`` and ``missed_by``: extra and standard
    error beyond what is allowed, 0 if they are within. In the last record, ``search`` says what was tried and with what
    result; ``verbose`` prints it.

    References
    ----------
    Burges: Simplified Support Vector Decision Rules, ICML 1996.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from slimsvm import SVC
    >>> X, y = make_moons(2000, noise=0.3, random_state=0)
    >>> X_new, y_new = make_moons(2000, noise=0.3, random_state=1)
    >>> clf = SVC(max_basis="auto", random_state=0).fit(X, y)
    >>> exact = SVC().fit(X, y)
    >>> bool(clf.n_basis_ < exact.n_basis_ / 5), bool(clf.score(X_new, y_new) > exact.score(X_new, y_new) - 0.01)
    (True, True)
    """

    max_extra_error: float = 0.0025
    search_factor: float = 5.0
    learn_metric: bool = False
    max_basis: int | None = None

    @property
    def follows_libsvm(self) -> bool:  # type: ignore[override]
        """Whether it does: as the exact estimator that few vectors are measured by."""
        return not self.learn_metric

    def solve(self, problem: Problem, state: CompactState | None = None, callbacks: Iterable[Callback] = ()) -> Fit:
        """Search for the size, where none is given, and solve for the model of all rows."""
        if state is not None and not isinstance(state, CompactState):
            raise ValueError(f"Compact can only be warm-started from a Compact fit, found {type(state).__name__}")
        check_number("max_extra_error", self.max_extra_error, "a number >= 0")
        check_number("search_factor", self.search_factor, "a positive number", positive=True)
        check_flag("learn_metric", self.learn_metric)
        if self.max_basis is not None and not problem.rows.in_memory:
            # The same bits as of these rows in memory, which the exact SVM of blocks needs.
            rows = problem.rows.slice(0, problem.rows.n_rows, problem.rows.exact_dtype)
            problem = replace(problem, rows=as_rows(rows if is_sparse(rows) else np.array(rows)))
        check_loss(self, problem)
        check_needs("Compact", problem, RANDOM_ACCESS, *NEEDS)
        if self.max_basis is None:
            check_needs("Compact", problem, ENOUGH_ROWS)
        else:
            check_count("max_basis", self.max_basis)
            if self.learn_metric:
                raise ValueError(
                    f"learn_metric=True with max_basis={self.max_basis!r} is no search: use Refine({self.max_basis!r}, "
                    "learn_metric=True)"
                )
        if self.learn_metric:
            check_smoothable(problem)
            check_kernel(problem.bind(), self.learn_metric)
        with one_blas_thread(), time_limit(problem.max_seconds):
            search = _Search(problem, self, None if state is None else state.size, tuple(callbacks))
            return search.run() if self.max_basis is None else search.of_size(self.max_basis)


class _Search(SizeSearch):
    """The result of a search: the chosen size and why it stopped."""

    def run(self) -> Fit:
        """Return the model of the fewest vectors that will do, or the exact one."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                with time_limit(share_of_time(self.settings.search_share)):
                    self.try_sizes()
            if self.best is not None and self.best[0].will_do:
                return self._small(*self.best)
        except CutShortError as end:
            return self._cut_short(end.status)
        except OutOfTimeError:
            return self._cut_short(Status.TIME_LIMIT)
        except KeyboardInterrupt:
            if not self.parts:
                raise
            return self._cut_short(Status.INTERRUPTED)
        self.search += f": none does ({nearest(self.trials)}), all rows are solved exactly"
        return self._end(self._exact_of_all(self.problem.task))

    def of_size(self, k: int) -> Fit:
        """Return moved vectors near to the exact SVM of all rows, or that SVM if it has no more."""
        task = measured_by(self.problem.task)
        problem = with_task(self.problem, task)
        exact = self.solve(exact_solver(task), problem, "exact SVM", self.settings.search_share)
        if exact.status is Status.ITERATION_LIMIT and not task.class_pairs():
            return self._learned(exact, problem, k, None)
        if exact.model.n_basis <= k:
            exact.solved = problem
            return self._end(exact)
        self.exact_evals = self._work_of([exact])
        if exact.status not in (Status.CONVERGED, Status.ITERATION_LIMIT):
            return self._unmoved(exact, problem, k, exact.status)
        kind = ModelKind(self.problem.task, SOLVED)
        try:
            basis = self.mover.moved(self.mover.distance(exact), None, k, self.exact_evals)
            self.note("moved vectors", k, None)
            small = self.solved(kind, self.problem, basis, "all rows", exact.model)
            if not task.class_pairs() and self.mover.missed(exact, basis) > self.settings.most_missed:
                return self._learned(exact, problem, k, small)
            bound = exact.lower_bound if task == kind.task else None
            return self._of_vectors(small, with_task(self.problem, kind.task), replace(exact, lower_bound=bound))
        except CutShortError as end:
            return self._unmoved(exact, problem, k, end.status)
        except OutOfTimeError:
            return self._unmoved(exact, problem, k, Status.TIME_LIMIT)
        except KeyboardInterrupt:
            return self._unmoved(exact, problem, k, Status.INTERRUPTED)

    def _learned(self, exact: Fit, problem: Problem, k: int, moved: KernelExpansion | None) -> Fit:
        """Learn vectors from all rows: from moved ones on, where there are any.

        Where these end far from the exact SVM, others are learned from the start, if that takes little.
        """
        stage = "learned vectors"
        if moved is None or not moved.n_basis:
            fit = self.solve(Refine(k), problem, stage, 1.0)
        else:
            kind = ModelKind(self.problem.task, LEARNED)
            fit = self.heed(self.refined(kind, problem, stage, moved.n_basis, moved))
            is_far = fit.objective > self.settings.most_objective * exact.objective
            sweeps = min(self._quick_sweeps(k, problem), FIRST_SWEEPS)
            if is_far and sweeps > SWEEPS:
                other = self.solve(Refine(k, epochs=sweeps), in_few_digits(problem), stage, 1.0)
                fit = min(fit, other, key=lambda found: found.objective)
                fit.status = other.status
        fit.solved, fit.basis_rows, fit.lower_bound = problem, None, exact.lower_bound
        return self._end(fit, CompactState(self.size))

    def _unmoved(self, exact: Fit, problem: Problem, k: int, status: Status) -> Fit:
        """Return some vectors of the exact SVM, where nothing is left of the time to move them."""
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            message = f"the fit ended early ({status}): {k} vectors of the exact SVM are returned as they are"
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        with no_limit():
            some = np.sort(self.rng.choice(exact.model.n_basis, k, replace=False))
            small = self.mover.near(exact.model, exact.model.basis[some])
            return self._of_vectors(small, problem, replace(exact, status=status))

    # -- the end ---------------------------------------------------------------------------------------------------

    def _small(self, trial: Trial, model: KernelExpansion, kind: ModelKind) -> Fit:
        """Return the chosen number of vectors for all rows."""
        if kind.way == LEARNED:
            return self._learned_from_all(model, kind)
        problem, basis = with_task(self.problem, kind.task), model.basis
        exact, bound = self.parts[0].exact, None
        if problem.rows.n_rows <= self.settings.most_rows:
            exact = self.heed(self._exact_of_all(measured_by(self.problem.task)))
            known = float(np.mean([part.exact.model.n_basis for part in self.parts]))
            growth = max(1.0, exact.model.n_basis / known) ** 0.5
            k = max(basis.shape[0], round(min(basis.shape[0] * growth, LARGE_SHARE * exact.model.n_basis)))
            k = self.mover.most_of_a_kind(exact.model.basis, basis.shape[0], k)
            begin, distance = None if is_sparse(basis) else basis, self.mover.distance(exact)
            basis = self.mover.moved(distance, begin, k, self.exact_evals)
            bound = exact.lower_bound if measured_by(self.problem.task) == kind.task else None
        if kind.way == SOLVED:
            small = self.solved(kind, self.problem, basis, "all rows", exact.model)
        else:
            small = self.mover.near(exact.model, basis)
        if self.history[-1]["stage"] != "all rows":
            self.note("all rows", small.n_basis, None)
        return self._of_vectors(small, problem, replace(exact, status=Status.CONVERGED, lower_bound=bound))

    def _of_vectors(self, small: KernelExpansion, problem: Problem, exact: Fit) -> Fit:
        """Return a small model's fit, with the status of an exact SVM and its bound, where that is of its problem."""
        fit = Fit(small, exact.status, 0.0, None, [], {})
        rows = replace(problem, precision="float64").bind()  # coefficients of moved vectors are large, and cancel
        fit.objective = objective_of_model(problem, exact.status, rows, small)
        fit.counters |= {"bound_in_basis": None, "report_kernel_evals": rows.counter.n}
        fit.lower_bound, fit.solved, fit.basis_rows = exact.lower_bound, problem, None
        return self._end(fit, CompactState(self.size))

    def _learned_from_all(self, model: KernelExpansion, kind: ModelKind) -> Fit:
        """Learn vectors from all rows; in a metric of their own, take those of the part with coefficients for all."""
        problem = replace(with_task(self.problem, kind.task), kernel=model.kernel)
        if self.solver.learn_metric:
            seed = LowRankState(model, None)
            fit = self.solve(LowRank(model.n_basis), problem, "all rows", 1.0, seed)
        else:
            fit = self.refined(kind, problem, "all rows", model.n_basis, model)
            part = self.parts[0].problem
            # Rows that are added at the same C can only raise the least objective.
            fit.lower_bound = self.parts[0].exact.lower_bound if part.task == kind.task else None
        fit.solved, fit.basis_rows = problem, None
        return self._end(fit, CompactState(self.size))

    def _exact_of_all(self, task: Task) -> Fit:
        """Solve for all rows exactly, by cuts that are sampled where there are very many rows."""
        problem, solver, state = with_task(self.problem, task), exact_solver(task), None
        part = self.parts[0]
        if isinstance(solver, ExactCuts) and problem.rows.n_rows > MAX_EXACT_ROWS:
            solver = ViolatedCuts()
        elif isinstance(part.exact.state, DualState) and part.problem.task == task:
            v = np.zeros(problem.rows.n_rows)
            v[part.index] = part.exact.state.v
            state = DualState(v, problem.C, problem.task, problem.examples)
        return self.solve(solver, problem, "exact SVM", 1.0, state)

    def _cut_short(self, status: Status) -> Fit:
        """Return the best of few vectors so far, or the exact SVM of a part, when a search is cut short."""
        if not self.parts:
            return self._end(nothing(self.problem, "Compact", self.begun))
        part = self.parts[0]
        if self.best is not None:
            trial, model, kind = self.best
            problem = replace(with_task(self.problem, kind.task), kernel=model.kernel)
            fit = Fit(model, status, 0.0, None, [], {})
            what = f"{trial.n_basis} vectors, which err {trial.extra_error:.2g} more than the exact SVM"
        else:
            fit, problem = part.exact, with_task(self.problem, part.problem.task)
            what = f"the exact SVM of {len(part.index)} of the rows"
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            message = f"the search for few vectors ended early ({status}): {what} is returned"
            warnings.warn(message, ConvergenceWarning, stacklevel=5)
        with no_limit():
            if self.best is not None:
                rows = replace(problem, precision="float64").bind()
                fit.objective = objective_of_model(problem, status, rows, fit.model)
                fit.counters["report_kernel_evals"] = rows.counter.n
            else:
                look = partial(self._losses_beside, part, problem)
                fit.objective += reported_objective(problem, status, fit.model.n_basis, look)
        fit.status = status
        if fit.basis_rows is not None:
            fit.basis_rows = part.index[fit.basis_rows]
        if fit.lower_bound is not None:
            fit.lower_bound = min(fit.lower_bound, fit.objective)
        fit.solved = problem
        return self._end(fit)

    def _losses_beside(self, part: Part, problem: Problem) -> float:
        """Return what the rows that a part does not have add to its SVM's objective."""
        others = np.setdiff1d(np.arange(problem.rows.n_rows), part.index)
        block, examples = problem.rows.take(others, problem.rows.exact_dtype), problem.examples.take(others)
        scores, plain = part.exact.model.scores(block, problem.n_jobs), np.zeros(0)
        self.counter.add(len(others) * part.exact.model.n_basis)
        augmented = problem.task.augment(scores, plain, examples)
        return problem.C * float(examples.weights @ losses(augmented, scores, plain, examples))

    def _end(self, fit: Fit, state: CompactState | None = None) -> Fit:
        """Return the fit that counts, with all that was done for it."""
        if self.history:
            self.history[-1]["search"] = self.search
        if self.problem.verbose and self.search:
            from tqdm import tqdm

            tqdm.write(self.search, file=sys.stderr)
        fit.state = CompactState(None) if state is None else state
        fit.history, fit.counters["kernel_evals"] = self.history, self.counter.n
        fit.counters["seconds"] = time.perf_counter() - self.begun
        fit.trials = [trial.as_dict() for trial in self.trials]
        if fit.lower_bound is not None:
            fit.lower_bound = min(fit.lower_bound, fit.objective)
        return fit
