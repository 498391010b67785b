"""Rows in chunks: `partial_fit`, for solvers that have `partial_solve`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm import solvers, tasks
from slimsvm.estimators._shared.around_fit import forget
from slimsvm.estimators._shared.fitted import Trained
from slimsvm.estimators._shared.input_checks import is_chosen, wants_probability
from slimsvm.parts.solver import check_loss
from slimsvm.rows import Rows

Array = np.ndarray

# What chunks keep of the fit that they go on from.
OF_STREAM = ("classes_", "multi_class_", "multilabel_", "n_features_in_", "feature_names_in_", "_centre", "_seen")


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


def fit_chunk(estimator: Any, X: Any, examples: tasks.Examples, task: tasks.Task, weights: Array | None) -> None:
    """Pass over one chunk, from where the last one ended, and set the fitted attributes."""
    if estimator.calibration_size is not None:
        raise ValueError(
            "calibration_size holds out some of all rows, which partial_fit never sees: give None, or fit; found "
            f"{estimator.calibration_size!r}"
        )
    if isinstance(X, Rows):
        raise ValueError(
            "partial_fit takes the rows of one chunk, an array or a sparse matrix, found Blocks: call it with each "
            "block in turn, or fit with all of them"
        )
    for name in ("C", "gamma"):
        if is_chosen(getattr(estimator, name)):
            raise ValueError(f"{name}='validate' tries values on all rows, which partial_fit never sees: give a number")
    if estimator._learns_metric:
        raise ValueError(
            "gamma='learn' finds scales of the features on all rows, which partial_fit never sees: give a number "
            "for each feature"
        )
    problem = estimator._set_up(X, examples, task, weights)
    check_loss(estimator.solver_, problem)
    if not estimator.kernel_.has_formula:
        raise ValueError(
            f"partial_fit needs a kernel with a formula, found {estimator.kernel_!r}, which has values of the rows "
            "at hand only"
        )
    if not hasattr(estimator, "_stream"):
        estimator._stream, estimator._stream_parts = None, (estimator.kernel_, estimator.solver_, None)
    estimator.kernel_, solver, generator = estimator._stream_parts
    estimator.solver_ = estimator.solver_ if solver is None else solver  # None: the stream was read from a file
    # One generator for all calls: a number would repeat the first chunk's order.
    generator = problem.generator() if generator is None else generator
    estimator._stream_parts = estimator.kernel_, estimator.solver_, generator
    problem = replace(problem, kernel=estimator.kernel_, random_state=generator)
    before = getattr(estimator, "model_", None)
    fit = estimator.solver_.partial_solve(problem, estimator._stream)
    if wants_probability(estimator):
        estimator._calibrate_on(fit.model if before is None else before, problem, before is None)
    estimator._stream, estimator.C_ = fit.state, problem.C
    estimator.__dict__.pop("shape_fit_", None)  # of one chunk
    estimator._keep(fit, Trained(None))


def begin_stream(estimator: Any) -> bool:
    """Return whether this is the first chunk. After a fit of a budgeted solver, make its model the stream's."""
    if hasattr(estimator, "_stream"):
        return False
    if not hasattr(estimator, "model_"):
        return True
    solver: Any = getattr(estimator, "solver_", None)
    state = getattr(estimator, "_state", None)
    if state is None or not hasattr(solver, "after_fit"):
        raise ValueError(
            "partial_fit continues earlier calls of partial_fit and fits by 'bsca' and 'bsgd', but this "
            "estimator was trained by another solver, or read from a file: begin with sklearn.base.clone of it"
        )
    model = estimator.model_.shifted(-estimator._centre)
    parts = estimator.kernel_, solver, None
    forget(estimator, OF_STREAM)
    estimator._stream, estimator._stream_parts = solver.after_fit(model, state), parts
    return False
