"""The base of all estimators: from parameters to a problem, from a fit to attributes, prediction."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from slimsvm import kernels, solvers, tasks
from slimsvm.core.clock import Limit, no_limit, present_limit, under
from slimsvm.deploy.decisions import ARRAYS, DECISIONS, ESTIMATORS, Decision, Outputs, kind_of
from slimsvm.estimators._shared.around_fit import CallbackSupportMixin, Iterations
from slimsvm.estimators._shared.automatic import (
    choose_solver,
    first_kernel,
    learning_metric,
    learns_with_vectors,
    scale_gamma,
    typical_gamma,
    with_learned_scales,
)
from slimsvm.estimators._shared.calibrating import MOST_HELD, has_probability, out_of_sample, scores_of
from slimsvm.estimators._shared.conformal import (
    HELD_OUT,
    NONE,
    HeldOut,
    Unseen,
    has_guarantee,
    hold_out,
    rounding_of,
    rows_held,
    scores_held_out,
)
from slimsvm.estimators._shared.fitted import Fitted, Support, Trained
from slimsvm.estimators._shared.input_checks import (
    Objects,
    are_objects,
    check_blocks,
    check_C,
    check_cap,
    check_finite,
    check_limit,
    check_numbers,
    check_option,
    check_positive,
    check_rows_of_numbers,
    check_sample_weight,
    checked_target,
    is_chosen,
    is_plain,
    is_plain_target,
    n_rows,
    naming_columns_of,
    naming_rows_of,
    takes_several,
    target_of,
    wants_probability,
)
from slimsvm.estimators._shared.streams import has_partial_fit
from slimsvm.estimators._shared.validating import choose, kernels_tried
from slimsvm.model import others_by
from slimsvm.parts.problem import Problem, check_flag
from slimsvm.parts.run import Fit, timed
from slimsvm.parts.solver import Solver, reading
from slimsvm.parts.values_of_C import VALUES_OF_C
from slimsvm.rows import ChosenRows, Rows, as_rows, check_mask, files_of, is_sparse
from slimsvm.rows.columns import Columns
from slimsvm.size_search.compact import Compact, CompactState
from slimsvm.size_search.reduced_models import exact_solver
from slimsvm.sparse_parts import check_sparse

if TYPE_CHECKING:
    from slimsvm.model import KernelExpansion

Array = np.ndarray


@cache
def library_name(cls: type) -> str:
    """The name of an estimator's class, or of the library's class that it derives from."""
    return next(base.__name__ for base in cls.__mro__ if base.__name__ in ESTIMATORS)


class KernelEstimator(Fitted, CallbackSupportMixin, BaseEstimator):
    """Base of the estimators: kernel, solver and problem of a fit, its attributes, scores of new rows."""

    # Whether y may be an indicator matrix, or several targets; rows may be `Blocks`, or objects that only the kernel
    # function understands.
    _takes_labels = _takes_targets = _takes_blocks = _takes_objects = False
    # The objects of this fit; what a warm start goes on from; the columns that occur in wide sparse rows.
    _objects: Objects | None = None
    _state: Any = None
    _columns: Columns | None = None
    # Settings of parts whose constants are to be others than their defaults (`Problem.settings`).
    _settings: tuple[Any, ...] = ()
    # What is added to the scores.
    _centre = 0.0
    # Whether fits are of parts, whose models are not the estimator's.
    _is_of_parts = False
    # Parameters that say what scores and the objective mean: predictions, certificates and files go by those of the
    # fit, whatever `set_params` says.
    _decisive: tuple[str, ...] = ()
    # How many rows nothing is learned from; None for estimators that hold none out.
    calibration_size: Any = None
    validation_: list[dict[str, Any]]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed
        return tags

    def __getattr__(self, name: str) -> Any:
        """Say what to do without a method of scikit-learn's; Python asks only if there is no such attribute."""
        own = getattr(type(self), name, None)
        if isinstance(own, property):  # it has said why there is none, which Python does not pass on
            return own.__get__(self)
        if name == "partial_fit" and own is not None:
            has_partial_fit(self)
        if name in ("predict_proba", "predict_log_proba") and own is not None:
            has_probability(self)
        if name in ("predict_set", "predict_interval", "p_values") and own is not None:
            has_guarantee(self)
        if name in ("predict_proba", "predict_log_proba") and is_classifier(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name}: its scores are not probabilities. For probabilities wrap it: "
                f"sklearn.calibration.CalibratedClassifierCV({type(self).__name__}(...), ensemble=False)"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def _learns_metric(self) -> bool:
        """Whether gamma is "learn"."""
        return isinstance(self.gamma, str) and self.gamma == "learn"

    @property
    def _is_precomputed(self) -> bool:
        """Whether X is a matrix of kernel values."""
        is_name = isinstance(self.kernel, str)
        return self.kernel == "precomputed" if is_name else not getattr(self.kernel, "has_features", True)

    # -- from parameters to a problem ---------------------------------------------------------------------------

    def _check_X(self, X: Any, reset: bool, y: Any = "no_validation", finite: bool = True) -> Any:
        """Check X, and y if given; return X as an array or CSR matrix of numbers, or `Blocks` as they are.

        ``finite=False`` leaves NaN and infinity to others.
        """
        if isinstance(y, str) and y != "no_validation":
            raise ValueError(f"y must have a target for each row, found the text {y!r}: pass the column itself")
        has_objects = self._objects is not None if not reset else callable(self.kernel) and are_objects(self.kernel, X)
        if self._takes_objects and has_objects:
            return self._check_objects(X, reset, y)
        if not reset and isinstance(y, str) and self._is_plain(X):
            if finite:
                check_finite(X)
            return X
        if reset:
            self.__dict__.pop("_read_from", None)
            if files := files_of(X):
                self._read_from = files  # which no model may overwrite
        if isinstance(X, Rows):
            if reset:
                self.shape_fit_: tuple[int, ...] = (X.n_rows, X.n_features)
            return check_blocks(self, X, reset, y)
        if reset and finite and is_plain(X) and is_plain_target(y, len(X)):
            self.n_features_in_, self.shape_fit_ = X.shape[1], X.shape
            check_finite(X)
            return X, y
        check_rows_of_numbers(X)
        check_sparse(X)
        check_sparse(y, "y")
        check_mask(X)
        columns = getattr(X, "columns", None)
        options: dict[str, Any] = dict(accept_sparse="csr", dtype="numeric", ensure_all_finite=False, reset=reset)
        if isinstance(y, str):
            with naming_columns_of(X):
                X = check_numbers(validate_data(self, X, **options))
        else:
            y = checked_target(y)
            several = takes_several(self, y)
            with naming_columns_of(X), naming_rows_of(y):
                X, y = validate_data(self, X, y, y_numeric=self._y_numeric, multi_output=several, **options)
                check_numbers(X)
            y = y.toarray() if is_sparse(y) else y
        if finite or columns is not None:
            check_finite(X, columns=columns)
        if reset:
            self.shape_fit_ = X.shape
        return X if isinstance(y, str) else (X, y)

    def _check_objects(self, X: Any, reset: bool, y: Any) -> Any:
        """The kernel's values between X and the objects of the fit (or of the model), and y if given."""
        name = type(self).__name__
        has_y = not isinstance(y, str)
        if has_y:
            y = target_of(self, y, n_rows(X, name))
        if reset:
            self.shape_fit_ = np.shape(X) if hasattr(X, "shape") else (n_rows(X, name),)
            self._objects = Objects(X, kernels.CallableKernel(self.kernel))
        assert self._objects is not None
        values = self._objects.values(X, name)
        return (values, y) if has_y else values

    def _is_plain(self, X: Any) -> bool:
        """Whether scikit-learn's checks, which take longer than a row's scores, would let X pass as it is."""
        own = vars(self)  # `hasattr` would go through `__getattr__`, a tenth of a row's scores
        return "feature_names_in_" not in own and is_plain(X) and X.shape[1] == own.get("n_features_in_", -1)

    def _resolve_kernel(self, X: Any, weights: Array | None) -> kernels.Kernel:
        """The kernel object that ``kernel``, ``gamma``, ``degree`` and ``coef0`` stand for; with ``gamma="learn"`` the
        one that learning starts from.
        """
        if self._is_precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square matrix to fit, found shape {X.shape}")
        if isinstance(self.kernel, kernels.Kernel):
            return self.kernel
        if callable(self.kernel):
            return kernels.CallableKernel(self.kernel) if self._objects is None else self._objects.kernel_of_values
        if isinstance(self.gamma, str):
            names = ("scale", "auto", "learn", "validate")
            check_option("gamma", self.gamma, names, "a positive number", "an array with one for each feature")
            scale = scale_gamma if self.gamma == "scale" else typical_gamma
            gamma: Any = 1.0 / X.shape[1] if self.gamma == "auto" else scale(X, weights)
        else:
            gamma = self.gamma
        kernel = kernels.get_kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        return first_kernel(kernel, X) if self._learns_metric else kernel

    def _resolve_solver(self, problem: Problem) -> Solver:
        """The solver object that ``solver``, ``max_basis`` and ``gamma="learn"`` stand for."""
        learns_metric = self._learns_metric
        solver = self._named_solver(problem, learns_metric)
        return learning_metric(solver, problem) if learns_metric else solver

    @property
    def _cap(self) -> int | str | None:
        """The solver's limit on vectors."""
        return self.max_basis

    def _named_solver(self, problem: Problem, learns_metric: bool) -> Solver:
        """The solver object that ``solver`` and ``max_basis`` stand for."""
        max_basis, name = self._cap, self.solver
        if isinstance(name, Solver):
            cap = name.get_params(deep=False).get("max_basis")
            if max_basis is not None and max_basis != cap:
                found = "has no limit on vectors" if cap is None else f"has max_basis={cap}"
                raise ValueError(f"max_basis={max_basis} and a solver object that {found}: set it on {name!r} alone")
            return name
        is_auto = isinstance(name, str) and name == "auto"
        check_cap(max_basis)
        if isinstance(max_basis, str) and not is_auto:
            raise ValueError(f"max_basis='auto' goes with solver='auto', found solver={name!r}")
        if is_auto:
            return choose_solver(problem, max_basis, learns_metric)
        if not isinstance(name, str) or name not in solvers.SOLVERS:
            known = ", ".join(["'auto'", *map(repr, solvers.SOLVERS)])
            raise ValueError(f"solver must be one of {known} or a solver object; found {name!r}")
        solver = solvers.SOLVERS[name]()
        if max_basis is None:
            return solver
        if "max_basis" not in solver.get_params(deep=False):
            capped = [known for known, cls in solvers.SOLVERS.items() if "max_basis" in cls().get_params(deep=False)]
            raise ValueError(
                f"solver={name!r} has no limit on vectors, found max_basis={max_basis}; these have one: "
                f"{', '.join(map(repr, capped))}"
            )
        return solver.set_params(max_basis=max_basis)

    def _weighted_rows(self, X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Array | None, Array | None]:
        """X, y and weights of the rows of positive weight, and their positions; None if these are all rows."""
        if sample_weight is None:
            return X, y, None, None
        weights = check_sample_weight(sample_weight, X.shape[0], negative_is_zero=True)
        if weights is None or weights.all():
            return X, y, weights, None
        index = np.flatnonzero(weights)
        if isinstance(X, Rows):
            return ChosenRows(X, index), y[index], weights[index], index
        kept = X[index]
        if self._is_precomputed or self._objects is not None:
            kept = kept[:, index]
        return kept, y[index], weights[index], index

    def _training_rows(self, X: Any, y: Array, sample_weight: Any) -> tuple[Any, Array, Array | None, Array | None]:
        """The rows of `_weighted_rows`, but for those that ``calibration_size`` holds out, which wait for `_solve`."""
        X, y, weights, index = self._weighted_rows(X, y, sample_weight)
        count = None if self.calibration_size is None else rows_held(self.calibration_size, len(y))
        if self.calibration_size is not None and y.ndim == 2:
            raise ValueError(f"calibration_size is for one label or target of each row, found y of shape {y.shape}")
        if count is None:
            return X, y, weights, index
        labels = y if is_classifier(self) else None
        train, held, lent = hold_out(count, len(y), labels, self.random_state)
        self.calibration_indices_ = np.sort(held) if index is None else index[np.sort(held)]
        kept, rows = np.sort(held[:MOST_HELD]), as_rows(X)
        block = rows.take(kept, rows.exact_dtype)
        if self._is_precomputed or self._objects is not None:
            X, block = X[train][:, train], block[:, train]
        else:
            X = X[train] if rows.in_memory and not isinstance(X, Rows) else ChosenRows(rows, train)
        self._held = HeldOut(block, y[kept], y[lent])
        return X, y[train], None if weights is None else weights[train], train if index is None else index[train]

    def _set_up(self, X: Any, examples: tasks.Examples, task: tasks.Task, weights: Array | None) -> Problem:
        """The problem that the parameters stand for, with C a unit if it is to be chosen; sets kernel_ and solver_."""
        check_option("intercept", self.intercept, ("auto", "regularized", "free", "none"))
        check_option("precision", self.precision, ("auto", "float32", "float64"))
        check_positive("cache_size", getattr(self, "cache_size", 1))
        if not isinstance(self.random_state, np.random.Generator):
            check_random_state(self.random_state)
        rows, chooses_C = as_rows(X), is_chosen(self.C)
        self.kernel_ = self._resolve_kernel(X, weights)
        self._sparse = rows.is_sparse and self.kernel_.has_formula
        asked = "regularized" if self.intercept == "auto" else self.intercept
        problem = Problem(
            rows=rows,
            examples=examples,
            task=task,
            kernel=self.kernel_,
            C=1.0 if chooses_C else check_C("C", self.C, " or 'validate'"),
            intercept=asked if task.has_threshold else "none",
            tol=check_positive("tol", self.tol),
            precision=self.precision,
            max_iter=check_limit("max_iter", self.max_iter, integer=True, least=0),
            max_seconds=check_limit("max_seconds", self.max_seconds, integer=False),
            random_state=self.random_state,
            memory_limit=int(1e6 * check_positive("memory_limit", self.memory_limit)),
            n_jobs=self.n_jobs,
            verbose=int(self.verbose),
            settings=self._settings,
        )
        if chooses_C:
            problem = replace(problem, C=problem.unit_of_C)
        self.solver_ = self._resolve_solver(problem)
        is_of_two = task.n_outputs == 1 or bool(task.class_pairs())
        is_of_two = is_of_two or (task.has_columns and isinstance(self.solver_, solvers.Exact))
        may_be_free = task.has_threshold and is_of_two
        if self.intercept == "auto" and may_be_free and self.solver_.follows_libsvm:
            problem = replace(problem, intercept="free")
        self.intercept_kind_ = problem.intercept
        return problem

    def _by_columns(self, problem: Problem) -> Problem:
        """The problem with only the columns that occur, if rows are sparse and wide. Warm starts, and vectors that are
        given, know columns by their numbers.
        """
        given = any(hasattr(value, "shape") or hasattr(value, "basis") for value in vars(self.solver_).values())
        if self.warm_start or given or others_by(problem.kernel, problem.rows.n_features) is None:
            return problem
        self._columns = Columns.of_rows(problem.rows)
        if self._columns is None:
            return problem
        rows = problem.rows.slice(0, problem.rows.n_rows, problem.rows.dtype)
        return replace(problem, rows=as_rows(self._columns.narrow(rows)))

    def _widened(self, model: KernelExpansion) -> KernelExpansion:
        """The model of the columns that occur, with all columns of the rows."""
        columns = self._columns
        assert columns is not None
        if model.basis.shape[1] == columns.n_features:
            return model
        return replace(model, basis=columns.widen(model.basis))

    def _with_metric(self, problem: Problem, X: Any, weights: Array | None) -> Problem:
        """The problem in the scales that ``gamma="learn"`` finds for solvers that learn none themselves."""
        if learns_with_vectors(self.solver_):
            return problem
        given = self.kernel.gamma if isinstance(self.kernel, kernels.Kernel) else None
        problem = with_learned_scales(problem, X, weights, None if given is None else float(np.mean(given)))
        self.kernel_ = problem.kernel
        return problem

    def _with_chosen(self, problem: Problem) -> Problem:
        """The problem with the C and the gamma that C="validate" and gamma="validate" find."""
        judge = self.solver_
        if isinstance(judge, Compact):
            # Few vectors are looked for once, with the C that the exact SVM does best with, or 100 with their metric.
            judge = solvers.Refine(learn_metric=True) if judge.learn_metric else exact_solver(problem.task)
        C_values = tuple(problem.C * C for C in VALUES_OF_C) if is_chosen(self.C) else (problem.C,)
        tried = kernels_tried(problem.kernel) if is_chosen(self.gamma) else [problem.kernel]
        problem, self.validation_ = choose(problem, judge, C_values, tried)
        self.kernel_ = problem.kernel
        return problem

    def _prepare(
        self, X: Any, examples: tasks.Examples, task: tasks.Task, weights: Array | None
    ) -> tuple[Problem, Any, Limit]:
        """The problem to solve, with C and gamma chosen, the state that the solver starts from, and the time limit."""
        check_flag("warm_start", self.warm_start)
        before, self._columns = self._columns, None
        limit = Limit(check_limit("max_seconds", self.max_seconds, integer=False), present_limit())
        problem = self._set_up(X, examples, task, weights)
        if problem.rows.is_sparse:
            problem = self._by_columns(problem)
        self.validation_ = []
        learns_metric, chooses_gamma = self._learns_metric, is_chosen(self.gamma)
        if learns_metric:
            with under(limit):
                problem = self._with_metric(problem, X, weights)
        if chooses_gamma or is_chosen(self.C):
            with under(limit):
                problem = self._with_chosen(problem)
        self.C_ = problem.C
        state = self._state if self.warm_start and before is None else None
        if isinstance(self.solver, str) and isinstance(state, CompactState) != isinstance(self.solver_, Compact):
            state = None  # more rows, or another max_basis, have another solver, which begins anew
        earlier = self.__dict__.pop("_earlier", None)  # of the candidate before in a grid search
        if earlier is not None and isinstance(self.solver_, solvers.Exact) and not (learns_metric or chooses_gamma):
            state = earlier.get("state")
            problem = replace(problem, kept=earlier, to_compare=True)
            problem = replace(problem, rows=earlier.once("rows", partial(getattr, problem, "rows")))
        return problem, state, limit

    def _solve(
        self,
        X: Any,
        y: Array,
        examples: tasks.Examples,
        task: tasks.Task,
        weights: Array | None = None,
        index: Array | None = None,
        shift: Any = 0.0,
        codes: Array | None = None,
    ) -> Fit:
        """Set the problem up, solve it, and keep the attributes that all estimators have.

        ``index`` has the rows' positions in the X given (None: all), ``codes`` their classes; ``shift`` is added to
        the scores.
        """
        trained, held = Trained(index, codes), self.__dict__.pop("_held", None)
        is_conformed = self.calibration_size is not None
        is_calibrated = wants_probability(self) or (is_conformed and self._sets_need_odds)
        with reading(X, self.verbose):
            problem, state, limit = self._prepare(X, examples, task, weights)
            has_callbacks = bool(vars(self).get("_skl_callbacks"))
            # A meta-estimator with callbacks gives a parent context. To make one of our own takes a fiftieth of a small
            # fit.
            is_watched = has_callbacks or "_parent_callback_ctx" in vars(self)
            # How many iterations there will be is not known: ``max_iter`` counts those of each part or stage.
            context: Any = self._init_callback_context(max_subtasks=None) if is_watched else None
            metadata = {} if weights is None else {"sample_weight": weights}
            seen = {"estimator": self, "X": X, "y": y, "metadata": metadata}
            if is_watched:
                context.call_on_fit_task_begin(**seen)
            self._centre = shift
            callbacks = (Iterations(self, context, seen, trained),) if has_callbacks else ()
            with under(limit):
                fit = self.solver_.solve(problem, state=state, callbacks=callbacks)
            fit = timed(fit, limit, type(self).__name__)
        if fit.solved is not None:
            task, examples, self.intercept_kind_ = fit.solved.task, fit.solved.examples, fit.solved.intercept
        if fit.trials:
            self.validation_ = [*self.validation_, *fit.trials]
        if not task.decomposes and fit.objective > 0 and not (fit.model.coef.any() or fit.model.plain.any()):
            warnings.warn(
                f"the fit ended with the model that is 0 everywhere: with C={problem.C:g} {self.solver_!r} found no "
                f"model with an objective below its {fit.objective:.6g}; raise C, or max_basis if it is given",
                ConvergenceWarning,
                stacklevel=5,
            )
        if task.has_shift:
            model = fit.model if self._columns is None else self._widened(fit.model)
            self._centre = task.shift(model.scores(X, n_jobs=self.n_jobs), examples)
        found, unseen = None, None
        if is_calibrated:
            with under(limit):
                found = self._calibrate(fit, problem)
        if is_conformed and held is None and found is None:
            with under(limit):
                found = out_of_sample(self.solver_, problem, fit)
        if self._columns is not None:
            fit.model = self._widened(fit.model)
        if is_conformed:
            with under(limit):
                unseen = self._unseen(fit, problem, X, y, held, found)
        if problem.kept is not None:
            problem.kept.put("state", fit.state)
            fit.lower_bound = None  # no one has made sure of it
        self._keep(fit, trained)
        if unseen is not None:
            self._conform(unseen)
        if is_watched:
            context.call_on_fit_task_end(**seen, reconstruction_attributes={})
        return fit

    def _calibrate(self, fit: Fit, problem: Problem) -> Any:
        """Calibrate the scores of a fit; estimators that have ``probability`` say how."""

    def _unseen(self, fit: Fit, problem: Problem, X: Any, y: Array, held: HeldOut | None, found: Any) -> Unseen:
        """Scores and labels of rows held out, or of rows that were trained on."""
        if held is not None:
            # By the model that predicts new rows, so that rows alike have scores alike to the bit.
            shifted = replace(fit, model=fit.model.shifted(self._centre))
            scores, labels = scores_held_out(shifted, problem, held)
            return Unseen(scores, labels, held.lent, HELD_OUT, rounding_of(shifted, problem, held.X))
        rows, scores = found
        unknown = np.isnan(scores)
        if unknown.any():  # of pairs of other classes, which never saw the row
            trained = as_rows(X)
            with no_limit():
                own = scores_of(fit, problem, trained.take(rows, trained.exact_dtype))
            scores = np.where(unknown, own, scores)
        return Unseen(scores + self._centre, y[rows], y[:0], NONE)

    def _calibrate_on(self, model: KernelExpansion, problem: Problem, is_first: bool) -> None:
        """Calibrate on the rows of a chunk."""

    def _keep(self, fit: Fit, trained: Trained) -> None:
        """Set the attributes of a fit."""
        index, codes = trained
        if np.any(self._centre):
            fit.model = fit.model.shifted(self._centre)
        if not fit.model.kernel.has_features:
            columns = fit.model.basis.astype(np.int64)
            fit.model = replace(fit.model, basis=columns if index is None else index[columns])
        self.basis_vectors_, self.basis_coef_ = fit.model.basis, fit.model.coef
        if self._objects is not None and getattr(self.solver_, "max_basis", None) is not None:
            self._objects, fit.model = self._objects.of_basis(fit.model)
        self.model_, self.kernel_ = fit.model, fit.model.kernel
        self.n_basis_ = fit.model.n_basis
        self.intercept_ = fit.model.intercept
        self.objective_, self.lower_bound_ = fit.objective, fit.lower_bound
        self.status_, self.history_ = str(fit.status), fit.history
        self.n_iter_ = self._iterations(fit.n_iter, fit.history)
        self.n_kernel_evals_ = fit.counters["kernel_evals"]
        self.counters_ = fit.counters
        self.precision_ = fit.model.dtype
        self._at_fit = {name: getattr(self, name) for name in self._decisive} if self._decisive else {}
        self._state = fit.state
        rows = fit.basis_rows
        self._support = None
        if rows is not None:
            positions = rows if index is None else index[rows]
            self._support = Support(fit.model, positions, None if codes is None else codes[rows])

    def _iterations(self, n_iter: int, history: list[dict[str, Any]]) -> Any:
        """The value of ``n_iter_``."""
        return n_iter

    # -- prediction ---------------------------------------------------------------------------------------------

    def _check_fitted(self) -> None:
        """Raise a NotFittedError before ``fit``. scikit-learn's check takes longer than a row's scores."""
        if not hasattr(self, "model_"):
            check_is_fitted(self, "model_")

    def _kind(self) -> str:
        """The kind of decision that the fitted model makes."""
        own = vars(self)
        cls: type = type(self)
        params = own.get("_at_fit") or own
        return kind_of(library_name(cls), params, own, own.get("classes_"), len(self.model_.intercept))

    def _as_fitted(self) -> Self:
        """A copy with the decisive parameters of the fit, which hold for its model after ``set_params`` too."""
        check_is_fitted(self, "model_")
        found = copy(self)
        found.__dict__.update(vars(self).get("_at_fit", {}))
        return found

    def _fitted_with(self, name: str) -> Any:
        """A parameter that says what scores mean, as the fit had it; before a fit as it is."""
        return vars(self).get("_at_fit", {}).get(name, getattr(self, name))

    def _decision(self) -> Decision:
        """The rule that makes labels, decision values and probabilities of scores."""
        self._check_fitted()
        own, model = vars(self), self.model_
        outputs = Outputs(self._kind(), own.get("classes_"), own, model.intercept, model.plain, own.get("calibration_"))
        return DECISIONS[outputs.kind](outputs, ARRAYS)

    def _scores(self, X: Any) -> Array:
        """Scores (n, m) of new rows."""
        self._check_fitted()
        return self.model_.scores(self._check_X(X, reset=False, finite=False), self.n_jobs, check_finite)

    def __getstate__(self):
        state = super().__getstate__().copy()
        # A warm start needs the cuts of the fit, which may be larger than the model: they do not travel with it.
        state.pop("_state", None)
        state.pop("_columns", None)
        return state

    # -- how good it is -----------------------------------------------------------------------------------------

    @property
    def gap_(self) -> float | None:
        """Largest share by which the objective could be lowered; None without a lower bound (sampled cuts)."""
        check_is_fitted(self, "model_")
        if self.lower_bound_ is None:
            return None
        return (self.objective_ - self.lower_bound_) / abs(self.objective_) if self.objective_ else 0.0

    def _encode(self, y: Array, weights: Array | None) -> tuple[tasks.Task, tasks.Examples, float]:
        """The task, its examples of labels y, and the number that is subtracted from targets and scores."""
        raise TypeError(f"{type(self).__name__} must define _encode(y, weights)")
