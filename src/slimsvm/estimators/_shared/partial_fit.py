"""`partial_fit`: chunks of rows, one call each, for solvers that have `partial_solve`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from slimsvm import solvers, tasks
from slimsvm.estimators._shared.afresh import forget, unchanged_by_failure
from slimsvm.estimators._shared.support import Trained
from slimsvm.estimators._shared.validation import class_codes, is_chosen
from slimsvm.rows import Rows

Array = np.ndarray


def has_partial_fit(estimator: Any) -> bool:
    """Whether the estimator's solver takes rows in chunks."""
    known = {
        name: cls for name, cls in solvers.SOLVERS.items() if issubclass(cls, getattr(estimator, "_solvers", object))
    }
    solver = known.get(estimator.solver) if isinstance(estimator.solver, str) else type(estimator.solver)
    if solver not in known.values() or not hasattr(solver, "partial_solve"):
        streaming = ", ".join(repr(name) for name, cls in known.items() if hasattr(cls, "partial_solve"))
        raise AttributeError(
            f"partial_fit needs a solver that takes rows in chunks ({streaming}), found {estimator.solver!r}; "
            f"{type(estimator).__name__}(solver='bsgd', max_basis=500) keeps at most 500 vectors"
        )
    return True


# What chunks keep of the fit that they go on from.
OF_STREAM = ("classes_", "multi_class_", "multilabel_", "n_features_in_", "feature_names_in_", "_centre")


def meet_chunk(
    machine: Any, X: Any, y: Array, examples: tasks.Examples, task: tasks.Task, weights: Array | None
) -> None:
    """One pass over the chunk, from where the last one ended; sets the fitted attributes."""
    if isinstance(X, Rows):
        raise ValueError(
            "partial_fit takes the rows of one chunk, an array or a sparse matrix, found Blocks: call it with each "
            "block in turn, or fit with all of them"
        )
    for name in ("C", "gamma"):
        if is_chosen(getattr(machine, name)):
            raise ValueError(f"{name}='validate' tries values on all rows, which partial_fit never sees: give a number")
    if machine._learns_metric:
        raise ValueError(
            "gamma='learn' finds scales of the features on all rows, which partial_fit never sees: give a number "
            "for each feature"
        )
    problem = machine._set_up(X, examples, task, weights)
    if not machine.kernel_.has_formula:
        raise ValueError(
            f"partial_fit needs a kernel with a formula, found {machine.kernel_!r}, which has values of the rows "
            "at hand only"
        )
    if not hasattr(machine, "_stream"):
        machine._stream, machine._stream_parts = None, (machine.kernel_, machine.solver_, None)
    machine.kernel_, solver, generator = machine._stream_parts
    machine.solver_ = machine.solver_ if solver is None else solver  # None: the stream was read from a file
    # One generator for all calls: a number would repeat the first chunk's order.
    generator = problem.generator() if generator is None else generator
    machine._stream_parts = machine.kernel_, machine.solver_, generator
    problem = replace(problem, kernel=machine.kernel_, random_state=generator)
    fit = machine.solver_.partial_solve(problem, machine._stream)
    machine._stream, machine.C_ = fit.state, problem.C
    machine.__dict__.pop("shape_fit_", None)  # of one chunk
    machine._keep(fit, Trained(np.arange(len(y))))


def begin(machine: Any) -> bool:
    """Whether this is the first chunk; after a fit of a budgeted solver chunks go on from its model."""
    if hasattr(machine, "_stream"):
        return False
    if not hasattr(machine, "model_"):
        return True
    solver: Any = getattr(machine, "solver_", None)
    state = getattr(machine, "_state", None)
    if state is None or not hasattr(solver, "after_fit"):
        raise ValueError(
            "partial_fit continues earlier calls of partial_fit and fits by 'bsca' and 'bsgd', but this "
            "estimator was trained by another solver, or read from a file: begin with sklearn.base.clone of it"
        )
    model = replace(machine.model_, intercept=machine.model_.intercept - machine._centre)
    parts = machine.kernel_, solver, None
    forget(machine, OF_STREAM)
    machine._stream, machine._stream_parts = solver.after_fit(model, state), parts
    return False


class StreamingClassifier:
    """`partial_fit` of classifiers."""

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self: Any, X, y, classes=None, sample_weight=None):
        """Process one more chunk of rows, once, with steps of the budgeted or online solver; there is no finish.

        `LASVM` (two classes) keeps the rows of S with their dual variables; ``lower_bound_`` holds for all rows seen.
        `BSGD` minimises ½‖w‖² + C Σ ω ℓ over all rows seen so far. Its steps fall to C, so a C above 1 needs
        many passes. `BSCA` does not change the dual variables of rows from earlier chunks. For several passes over a
        chunk give it several times in a row; its dual variables then continue, as those of `LASVM` do.
        The first chunk determines ``gamma="scale"``. More than two classes are trained each against the rest. After
        ``fit`` with `BSCA` or `BSGD`, chunks continue from its model, of whose rows only the number is known. A stream
        continues after ``save`` and `slimsvm.load` as if it had not stopped.

        ``objective_`` is ½‖w‖² plus C Σ ω ℓ over the rows of this chunk (for `LASVM` also the rows in S), because
        earlier rows are not kept. Use it to compare passes over a chunk. It does not say how far the model is from
        the best one for all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,) or None, default=None
            All classes of the whole stream; needed in the first call unless its y has them all.
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        SVC
            The estimator itself.

        Raises
        ------
        AttributeError
            The solver takes no chunks.
        ValueError
            A value is out of range, a label is none of the classes, or the estimator was trained by `fit` with another
            solver.
        """
        is_first = begin(self)
        X, y = self._check_X(X, reset=is_first, y=y)
        check_classification_targets(y)
        if is_first:
            found = np.unique(y if classes is None else np.asarray(classes))
            if len(found) < 2:
                raise ValueError(f"classes must hold at least two classes, found {found.tolist()}")
            self.classes_, self._centre, self.multi_class_ = found, 0.0, self._machine_of_classes()
        elif classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes are {self.classes_.tolist()} since the first call, found {list(classes)}")
        if self.loss == "ramp":
            raise ValueError("loss='ramp' is trained on all rows at once; partial_fit takes loss='hinge'")
        if isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' counts all rows, which partial_fit never sees: give factors")
        codes = class_codes(y, self.classes_, hint="; classes= in the first call names all that will come")
        X, codes, weights, _ = self._weighted_rows(X, codes, sample_weight)
        self.class_weight_ = self._class_weights(self.classes_, None)
        task = self._task()
        meet_chunk(self, X, codes, task.encode(codes, self._row_weights(codes, weights)), task, weights)
        return self


class StreamingRegressor:
    """`partial_fit` of regressors."""

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self: Any, X, y, sample_weight=None):
        """Process one more chunk of rows, once, as `SVC.partial_fit` does. The intercept is measured from the mean of
        the first chunk's y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        SVR
            The estimator itself.

        Raises
        ------
        AttributeError
            The solver takes no chunks.
        ValueError
            A value is out of range, or the estimator was trained by `fit` with another solver.
        """
        is_first = begin(self)
        X, y = self._check_X(X, reset=is_first, y=y)
        X, y, weights, _ = self._weighted_rows(X, y, sample_weight)
        task, _, centre = self._encode(y, weights)
        if is_first:
            self._centre = centre
        meet_chunk(self, X, y, task.encode(np.asarray(y, np.float64) - self._centre, weights), task, weights)
        return self


class StreamingOutlierDetector:
    """`partial_fit` of one class."""

    @available_if(has_partial_fit)
    @unchanged_by_failure
    def partial_fit(self: Any, X, y=None, sample_weight=None):
        """Process one more chunk of rows: the first is fitted, every later one is processed once by the solver's steps.

        The problem is that of all rows seen so far. ``offset_`` is the ν-quantile of the scores of the last thousand
        rows, the only ones that are kept, or of the chunk's rows if there are more. So in a stream whose rows
        do not change, about a share ν is outside. ``objective_`` is that of all rows, estimated from these. There is
        no finish. For several passes over a chunk give it several times in a row; no row counts twice. The first chunk
        determines ``gamma="scale"``, and should have more than a handful of rows: `BSCA` learns badly from a stream
        that begins with few. A stream continues after ``save`` and `slimsvm.load` as if it had not stopped.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None

        Returns
        -------
        OneClassSVM
            The estimator itself.

        Raises
        ------
        AttributeError
            The solver takes no chunks.
        ValueError
            A value is out of range, or the estimator was trained by `fit` with another solver.

        Examples
        --------
        >>> import numpy as np
        >>> from slimsvm import BSGD, OneClassSVM
        >>> rng = np.random.default_rng(0)
        >>> clf = OneClassSVM(nu=0.1, solver=BSGD(max_basis=30), random_state=0)
        >>> for _ in range(10):
        ...     clf = clf.partial_fit(rng.normal(size=(100, 2)))
        >>> clf.predict([[0.0, 0.0], [5.0, 5.0]]).tolist()
        [1, -1]
        """
        X = self._check_X(X, reset=begin(self))
        self._centre = 0.0
        X, nothing, weights, _ = self._weighted_rows(X, np.zeros(X.shape[0]), sample_weight)
        task, examples, _ = self._encode(nothing, weights)
        meet_chunk(self, X, nothing, examples, task, weights)
        return self
