"""Pipelines of scalers and a machine: what of them files and exports hold."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from slimsvm.deploy.plain_model import PlainModel, plain_model
from slimsvm.estimators._shared.estimator_files import file_parts
from slimsvm.estimators._shared.scalers import SCALERS, Steps
from slimsvm.estimators._shared.written import Written


def plain_model_of(model: Any) -> PlainModel:
    """What prediction needs of a fitted estimator, or of a pipeline of scalers and one.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    TypeError, ValueError
        See `parts_of`; or the model labels by a task, or scores by a kernel, of Python.
    """
    scalers, name, machine = parts_of(model)
    return plain_model(*file_parts(machine, scalers, name))


def parts_of(model: Any) -> tuple[Steps, str, Any]:
    """The scalers of a pipeline with their names, the name of the estimator behind them, and the estimator.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    TypeError
        It is neither an estimator of slimsvm nor a pipeline of scalers and one; the message says what to do.
    """
    if hasattr(model, "best_estimator_"):
        raise TypeError(
            f"a file holds one machine, found a {type(model).__name__}: give its best_estimator_, or keep the whole "
            "object by joblib.dump"
        )
    name, machine = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    scalers = _scalers(model) if isinstance(model, Pipeline) else []
    if not isinstance(machine, Written):
        raise TypeError(f"a file holds a fitted estimator of slimsvm, found {type(machine).__name__}")
    check_is_fitted(machine, "model_")
    if scalers and (hasattr(machine, "window") or type(machine).__name__ == "StructuredSVM"):
        raise TypeError(f"a file cannot hold scalers before a {type(machine).__name__}, whose X are not single rows: "
                        "save pipeline[-1], and scale new rows like the training rows")  # fmt: skip
    if scalers and not machine.kernel_.has_features:  # type: ignore[attr-defined]
        raise TypeError("a file cannot hold scalers before a matrix of kernel values: save pipeline[-1]")
    return scalers, name, machine


def _scalers(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """The steps before the last one that do anything."""
    scalers = [(name, step) for name, step in pipeline.steps[:-1] if step not in (None, "passthrough")]
    for _, step in scalers:
        if type(step) not in SCALERS.values():
            raise TypeError(
                f"a file holds the last step of a pipeline and the scalers before it ({', '.join(SCALERS)}), found a "
                f"{type(step).__name__}: slimsvm.save(pipeline[-1], path) saves the last step, for rows that "
                "the other steps have transformed; joblib.dump(pipeline, path) keeps the whole pipeline"
            )
    return scalers
