"""Converters for skl2onnx, so that pipelines with an estimator of this library become one ONNX graph.

The estimator's part is what ``to_onnx`` writes: products, exponentials and sums. docs/deploy/onnx.md shows its use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.deploy.decisions import ARRAYS, DECISIONS, NUMBERS
from slimsvm.deploy.onnx_graph import OPSET, Graph, add_prediction, check_rows
from slimsvm.deploy.onnx_numbers import DOUBLE, numbers_for
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.probes import LOST_SHARE, check_rows_in_float32, rows_type
from slimsvm.estimators import OF_ONE_MODEL
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.estimators.transformers import LearnedAxes

__all__ = ["register"]


def register() -> None:
    """Tell skl2onnx how to convert the estimators of this library, and `LearnedAxes` before one.

    Then ``skl2onnx.to_onnx(pipeline, X)`` and ``convert_sklearn`` take pipelines, column transformers and calibrated
    classifiers that contain one. The outputs are ``prediction``, for classifiers and outlier detectors ``scores``, and
    for classifiers that were fitted with ``probability=True`` ``probabilities``, as in `SVC.to_onnx`. A regressor's
    ``prediction`` has a column for each number.

    Raises
    ------
    ImportError
        skl2onnx is not installed: ``pip install 'slimsvm[onnx]'``.

    Examples
    --------
    >>> import slimsvm.onnx
    >>> slimsvm.onnx.register()                                     # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError("pipelines are converted by skl2onnx: pip install 'slimsvm[onnx]'") from error
    for estimator in OF_ONE_MODEL.values():
        # Others ask for raw scores, which of two classes have a column each, or else for probabilities; skl2onnx asks
        # all classifiers about maps of probabilities, which these are not.
        known = {"raw_scores": [True, False], "zipmap": [True, False, "columns"]}
        options = known if hasattr(estimator, "decision_function") else {}
        update_registered_converter(
            estimator, _alias(estimator), _check_types, _convert, parser=_declare_outputs, options=options
        )

    update_registered_converter(LearnedAxes, _alias(LearnedAxes), _check_axes_types, _convert_axes)


def _alias(estimator: type) -> str:
    return f"Slimsvm{estimator.__name__}"


def _declare_outputs(scope: Any, estimator: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the outputs of an estimator, by name and type."""
    model = plain_model_of(estimator)
    check_rows(model)
    operator = scope.declare_local_operator(_alias(type(estimator)), estimator)
    operator.inputs = inputs
    for name, kind in _types(model, inputs[0].type).items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _types(model: PlainModel, rows: Any) -> dict[str, Any]:
    """Return types of the outputs, in skl2onnx's terms."""
    from skl2onnx.common import data_types as types

    number = types.DoubleTensorType if isinstance(rows, types.DoubleTensorType) else types.FloatTensorType
    if model.kind in NUMBERS:
        return {"prediction": number([None, 1 if _is_single(model) else model.n_outputs])}
    values = {"scores": number([None, None])}
    if model.calibration is not None:
        values["probabilities"] = number([None, None])
    if model.kind == "labels":
        return {"prediction": types.Int64TensorType([None, model.n_outputs])} | values
    kinds = {"b": types.BooleanTensorType, "f": types.DoubleTensorType, "i": types.Int64TensorType,
             "u": types.Int64TensorType}  # fmt: skip
    code = "i" if model.classes is None else model.classes.dtype.kind
    label = kinds.get(code, types.StringTensorType)
    if code == "f" and model.classes is not None and model.classes.dtype == np.float32:
        label = types.FloatTensorType
    return {"prediction": label([None])} | values


def _is_single(model: PlainModel) -> bool:
    """Whether a row has one prediction."""
    return DECISIONS[model.kind](model, ARRAYS).is_single


def _check_types(operator: Any) -> None:
    """Set shapes and types of the outputs; classifiers that contain this one declare them otherwise."""
    kinds = _types(plain_model_of(operator.raw_operator), operator.inputs[0].type)
    for output, kind in zip(operator.outputs, kinds.values(), strict=False):
        output.type = kind


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add an estimator's nodes and constants to a graph."""
    import onnx
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    opset = container.target_opset
    if opset < OPSET:
        raise ValueError(f"target_opset must be at least {OPSET}, found {opset}")
    estimator, rows = operator.raw_operator, operator.inputs[0]
    model, is_double = plain_model_of(estimator), isinstance(rows.type, DoubleTensorType)
    check_rows(model)
    if isinstance(rows.type, FloatTensorType):
        check_rows_in_float32(model)
        numbers = numbers_for(model)
    else:  # whole numbers have more digits than float32, too
        numbers = DOUBLE if is_double else numbers_for(model, rows_type(model))
    graph = Graph(numbers, np.float64 if is_double else np.float32, opset, scope.get_unique_variable_name)
    outputs = add_prediction(graph, model, rows.full_name, rows_type=None)
    asked = _asked_for(operator, list(outputs), scope, container)
    names = dict(zip(asked, (output.full_name for output in operator.outputs), strict=True))
    plain = {name: scope.get_unique_variable_name(f"{names.get(name, name)}_plain") for name in outputs}
    for constant in graph.constants:
        content = constant if constant.data_type != onnx.TensorProto.STRING else list(constant.string_data)
        container.add_initializer(constant.name, constant.data_type, list(constant.dims), content)
    for node in graph.nodes:
        attributes = {part.name: onnx.helper.get_attribute_value(part) for part in node.attribute}
        made = [plain.get(name, name) for name in node.output]
        container.add_node(node.op_type, list(node.input), made, name=scope.get_unique_operator_name(node.op_type),
                           **attributes)  # fmt: skip
    for name, target in names.items():
        _finish(container, model, plain[name], target, _form(scope, estimator, model, name))


def _asked_for(operator: Any, names: list[str], scope: Any, container: Any) -> list[str]:
    """Return an operator's outputs: all, or, if another classifier contains this one, the prediction and one other."""
    if len(operator.outputs) == len(names):
        return names
    is_raw = any(_is_raw(options, operator.raw_operator) for options in (scope, container))
    return ["prediction", "scores" if is_raw else "probabilities"]


def _is_raw(options: Any, estimator: Any) -> bool:
    """Whether the options of a scope or a container ask for raw scores."""
    return options.get_options(estimator, {"raw_scores": False})["raw_scores"]


def _form(scope: Any, estimator: Any, model: PlainModel, name: str) -> str:
    """Declare an output to skl2onnx."""
    if name == "prediction":
        return "column" if model.kind in NUMBERS and _is_single(model) else "same"
    is_of_two = name == "scores" and model.classes is not None and len(model.classes) == 2
    return "both signs" if is_of_two and _is_raw(scope, estimator) else "same"


def _finish(container: Any, model: PlainModel, found: str, target: str, form: str) -> None:
    """Add the last node of an output."""
    if form == "same":
        container.add_node("Identity", [found], [target], name=f"{target}_end")
    elif form == "column":
        shape = f"{target}_shape"
        container.add_initializer(shape, 7, [2], [-1, 1])
        container.add_node("Reshape", [found, shape], [target], name=f"{target}_end")
    else:
        minus = f"{target}_minus"
        container.add_node("Neg", [found], [minus], name=f"{minus}_node")
        container.add_node("Concat", [minus, found], [target], axis=1, name=f"{target}_end")


def _check_axes_types(operator: Any) -> None:
    """Set shape and type of features along axes: float64 if the rows are, and float32 otherwise."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    kind = DoubleTensorType if isinstance(operator.inputs[0].type, DoubleTensorType) else FloatTensorType
    operator.outputs[0].type = kind([None, len(operator.raw_operator.components_)])


def _check_axes_in_float32(axes: LearnedAxes) -> None:
    """Raise an error if rounding changes features along axes too much; their mean variance is 1."""
    step = 0.5 * np.spacing(np.abs(axes.mean_).astype(np.float32)).astype(np.float64)
    if (lost := np.abs(axes.components_ * step).sum(axis=1).max()) > LOST_SHARE:
        raise ValueError(
            f"float32 cannot hold the rows of LearnedAxes: their rounding moves features along axes by {lost:.1g} of "
            "their deviation. Convert with float64 rows, or subtract an offset from the features before training"
        )


def _convert_axes(scope: Any, operator: Any, container: Any) -> None:
    """Add the product of rows, less their mean, with the axes."""
    import onnx
    from skl2onnx.common.data_types import DoubleTensorType

    axes, (rows,), (out,) = operator.raw_operator, operator.inputs, operator.outputs
    kinds = onnx.TensorProto
    kind = kinds.DOUBLE if isinstance(rows.type, DoubleTensorType) else kinds.FLOAT
    if kind == kinds.FLOAT:
        _check_axes_in_float32(axes)
    numbers, mean, components, centred = (
        scope.get_unique_variable_name(f"axes_{name}") for name in ("rows", "mean", "components", "centred")
    )
    d = len(axes.mean_)
    container.add_initializer(mean, kind, [1, d], axes.mean_.tolist())
    container.add_initializer(components, kind, [d, len(axes.components_)], axes.components_.T.ravel().tolist())
    for op, inputs, made, attributes in (
        ("Cast", [rows.full_name], numbers, {"to": kind}),
        ("Sub", [numbers, mean], centred, {}),
        ("MatMul", [centred, components], out.full_name, {}),
    ):
        container.add_node(op, inputs, [made], name=scope.get_unique_operator_name(op), **attributes)
