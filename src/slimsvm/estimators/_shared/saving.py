"""Fitted estimators, and pipelines of scalers and one, as files of arrays and a JSON header, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from slimsvm.deploy.decisions import multi_class_of
from slimsvm.deploy.plain_model import (
    PlainModel,
    check_feature_names,
    check_nonconformity,
    check_parts,
    plain_model,
    read_calibration,
    read_encoding,
)
from slimsvm.deploy.predictors import TRIED_FEATURES, try_row
from slimsvm.deploy.rows import read_scaling
from slimsvm.deploy.steps import refuse
from slimsvm.estimators._shared.calibrating import Seen
from slimsvm.estimators._shared.fitted import Fitted, Support, is_balanced, support_by_sign
from slimsvm.estimators._shared.input_checks import check_path, wants_probability
from slimsvm.estimators._shared.pipeline_steps import SCALERS, encoding_of, scaling_of, steps_from
from slimsvm.estimators._shared.table_saving import pack_classes, read_table_estimator
from slimsvm.model import KernelExpansion
from slimsvm.modelfile import damage_named, read_model, write_model
from slimsvm.parts.budgeted.box_dual import BudgetState
from slimsvm.parts.budgeted.budgeted_solver import OneClassState
from slimsvm.parts.resuming import GENERATORS, RunState, generator_at
from slimsvm.parts.solver import Solver
from slimsvm.rows import is_sparse
from slimsvm.size_search.compact import Compact
from slimsvm.solvers import SOLVERS
from slimsvm.solvers.lasvm import OnlineState
from slimsvm.tasks import TASKS, Examples, Task

Array = np.ndarray
Steps = Sequence[tuple[str, Any]]

PLAIN = (str, int, float, bool, type(None))
# What the attributes of a fit are, where anything reads them.
TEXTS = "status_", "intercept_kind_", "multi_class_", "guarantee_"
NUMBERS = "objective_", "lower_bound_", "C_", "epsilon_"
STATE_ARRAYS = ("coef", "intercept", "basis_rows", "alpha")
LISTS = ("n_iter_", "shape_fit_", "class_weight_")
CSR_PARTS = ("data", "indices", "indptr")
KNOWN = {known.__name__: known for known in (BudgetState, OneClassState, OnlineState, Examples, RunState)}
# Names of earlier versions.
EARLIER = {"Halfway": RunState}
UNSAVED = {"unsaved": True}


# -- an estimator -----------------------------------------------------------------------------------------------------


def save(estimator, path, with_state: bool = False, steps: Steps = (), name: str = "") -> None:
    """Write a fitted estimator, and the state that the next chunk of its stream starts from.

    ``with_state`` adds the state that a warm start needs, if the solver left one. ``steps`` are those before the
    estimator in a pipeline, ``name`` is its own name there.
    """
    check_path(estimator, path)
    header, arrays = file_parts(estimator, steps, name)
    if (stream := pack_stream(estimator, arrays)) is not None:
        header["stream"] = stream
    if with_state and isinstance(estimator._state, RunState):
        header["run_state"] = pack(estimator._state, arrays)
    elif with_state and estimator._state is not None:
        _pack_budget(estimator._state, header, arrays)
    # A reader that knows of no scaling, or of no other step, would predict from rows as they are.
    write_model(path, header, arrays, version=3 if "encoding" in header else 2 if steps else 1)


def _pack_budget(state: BudgetState, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Add the state that a budgeted solver's warm start needs."""
    header["state"] = {
        "C": state.C, "n_steps": state.n_steps, "n_taken": state.n_taken,
        "n_changed": state.n_changed, "task": _plain(state.task), "random": state.random,
    }  # fmt: skip
    basis = {"": state.basis}
    if is_sparse(state.basis):
        header["state"]["shape"] = list(state.basis.shape)
        basis = {"_" + name: getattr(state.basis, name) for name in CSR_PARTS}
    arrays |= {f"state_basis{name}": part for name, part in basis.items()}
    arrays |= {f"state_{name}": getattr(state, name) for name in STATE_ARRAYS if getattr(state, name) is not None}
    arrays |= {"state_labels": state.examples.labels, "state_weights": state.examples.weights}


def file_parts(estimator, steps: Steps = (), name: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a fitted estimator behind these steps."""
    header, arrays = estimator.model_.to_file_parts()
    encoders, scalers = split(steps)
    if encoders:
        header["encoding"] = encoding_of(encoders).pack(arrays) | {"machine": name}
    if scalers:
        header["scaling"] = pack_scalers(scalers, name, arrays, has_names=not encoders)
    # Not how many kernel values the fit computed: that depends on memory and workers, the file must not.
    told = ("n_features_in_", "objective_", "lower_bound_", "status_")
    fitted: dict[str, Any] = {name: getattr(estimator, name) for name in told} | pack_support(estimator, arrays)
    if getattr(estimator, "multilabel_", False):
        fitted["multilabel_"] = True
    fitted |= {
        name: getattr(estimator, name)
        for name in ("C_", "epsilon_", "intercept_kind_", "multi_class_", "label_name_")
        if hasattr(estimator, name)
    }
    if hasattr(estimator, "feature_names_in_") and not encoders:
        fitted["feature_names_in_"] = list(map(str, estimator.feature_names_in_))
    is_calibrated = wants_probability(estimator) or estimator.calibration_size is not None
    if is_calibrated and getattr(estimator, "calibration_", None) is not None:
        arrays["calibration"] = estimator.calibration_
    if estimator.calibration_size is not None and hasattr(estimator, "nonconformity_"):
        fitted["guarantee_"] = estimator.guarantee_
        arrays["nonconformity"] = estimator.nonconformity_
        if hasattr(estimator, "nonconformity_classes_"):
            arrays["nonconformity_classes"] = estimator.nonconformity_classes_
    if hasattr(estimator, "classes_"):
        fitted["classes_are_objects"], arrays["classes"] = pack_classes(estimator.classes_)
    header["estimator"] = type(estimator).__name__
    params, at_fit = estimator.get_params(deep=False), vars(estimator).get("_at_fit", {})
    header["params"] = {name: _plain(at_fit.get(name, value)) for name, value in params.items()}
    header["fitted"] = {name: _plain(value) for name, value in fitted.items()}
    return header, arrays


def read_estimator(path, by_name: dict[str, type], transformers: Mapping[str, Any]):
    """The fitted estimator, one of these classes by name, of a file that ``save`` wrote; see `slimsvm.load`.

    A Pipeline where the file has other steps; ``transformers`` are the library's own.
    """
    header, arrays = read_model(path)
    with damage_named(f"{path}: not a model this version knows"):
        if "table" in header:
            return read_table_estimator(header, arrays, by_name[header["estimator"]])
        estimator = _estimator(header, arrays, by_name)
        encoders: list[tuple[str, Any]] = []
        if (encoding := read_encoding(header, arrays)) is not None:
            encoders = steps_from(encoding, transformers)
        elif "scaling" not in header:
            return estimator
    with damage_named(f"{path}: not a scaling this version knows"):
        scalers: list[tuple[str, Any]] = []
        if "scaling" in header:
            scalers = unpack_scalers(header["scaling"], arrays, estimator.n_features_in_)
            _check_scaling(scalers, arrays, estimator.n_features_in_)
        steps, name = [*encoders, *scalers], (header.get("encoding") or header["scaling"])["machine"]
        if not all(isinstance(step, str) for step in (name, *(step for step, _ in steps))):
            raise ValueError("a step of the pipeline has no name")
        return Pipeline([*steps, (name, estimator)])


def _estimator(header: dict[str, Any], arrays: dict[str, np.ndarray], by_name: dict[str, type]) -> Any:
    """The fitted estimator that a file describes."""
    check_parts(header, arrays)
    estimator = by_name[header["estimator"]]()
    estimator.set_params(**{name: _object(value) for name, value in header["params"].items() if value != UNSAVED})
    estimator._at_fit = {name: getattr(estimator, name) for name in estimator._decisive}
    model = KernelExpansion.from_file_parts(header, arrays)
    fitted = dict(header["fitted"])
    if "classes" in arrays:
        classes = arrays["classes"]
        estimator.classes_ = classes.astype(object) if fitted.pop("classes_are_objects") else classes
    if "state" in header:
        estimator._state = _state(header["state"], arrays)
    for name in ("run_state", "halfway"):  # the second is of earlier versions
        if name in header:
            estimator._state = unpack(header[name], arrays)
    later = {name: fitted.pop(name) for name in (*LISTS, "_sparse") if name in fitted}
    if lacking := {"objective_", "lower_bound_", "status_"} - set(fitted):
        raise ValueError(f"a fit leaves {', '.join(sorted(lacking))}")
    for name, value in fitted.items():
        if not re.fullmatch(r"[A-Za-z]\w*_", name) or hasattr(getattr(type(estimator), name, None), "__get__"):
            raise ValueError(f"a fit leaves no attribute {name!r}")
        if name == "C_" and isinstance(value, dict) and "array" in value:  # of pairs of classes that differ in it
            value = np.array(value["array"], np.float64)
        _check_fitted(name, value, fitted["n_features_in_"])
        if isinstance(value, dict) and value == UNSAVED:  # an objective that was not computed
            value = float("nan")
        setattr(estimator, name, np.array(value, dtype=object) if name == "feature_names_in_" else value)
    if "multi_class" in header["params"] and "multi_class_" not in fitted:
        estimator.multi_class_ = multi_class_of(header["params"], header["fitted"])
    estimator.model_, estimator.kernel_, estimator.precision_ = model, model.kernel, model.dtype
    estimator.basis_vectors_, estimator.basis_coef_ = model.basis, model.coef
    estimator.n_basis_, estimator.intercept_ = model.n_basis, model.intercept
    if (calibration := read_calibration(header, arrays)) is not None:
        estimator.calibration_ = calibration
    _unpack_nonconformity(estimator, arrays)
    unpack_support(estimator, header, later, arrays)
    if "stream" in header:
        unpack_stream(estimator, header["stream"], arrays)
    if header["estimator"] != "StructuredSVM":  # whose task may be the user's, who gives it after this
        row = sp.csr_array((1, estimator.n_features_in_))
        # For a dense row sparse vectors would be made dense: seconds, where words are hashed.
        is_dense = estimator.n_features_in_ <= TRIED_FEATURES and not sp.issparse(model.basis)
        try_row(estimator.predict, row.toarray() if is_dense else row, hasattr(estimator, "window"))
    return estimator


def _unpack_nonconformity(estimator: Any, arrays: dict[str, np.ndarray]) -> None:
    """Set what sets, intervals and p-values come from; a ValueError where a file contradicts itself."""
    if ("nonconformity" in arrays) != hasattr(estimator, "guarantee_"):
        raise ValueError("guarantee_ and nonconformity go together")
    if "nonconformity" not in arrays:
        return
    check_nonconformity(arrays)
    estimator.nonconformity_ = arrays["nonconformity"]
    if hasattr(estimator, "classes_"):
        estimator.nonconformity_classes_ = arrays["nonconformity_classes"]


def _check_fitted(name: str, value: Any, n_features: int) -> None:
    """Raise a ValueError if no fit leaves an attribute with this value."""
    if name in TEXTS:
        is_right = isinstance(value, str)
    elif name in NUMBERS:
        is_right = isinstance(value, np.ndarray) or value in (None, UNSAVED) or type(value) in (int, float)
    else:
        if name == "feature_names_in_":
            check_feature_names(value, n_features)
        return
    if not is_right:
        raise ValueError(f"{name} is {value!r}, which no fit leaves")


def _check_scaling(steps: Steps, arrays: dict[str, np.ndarray], n_features: int) -> None:
    """Raise a ValueError if scalers and the scaling for readers without scikit-learn contradict each other."""
    told = read_scaling(arrays, n_features)
    for part, found in zip(told, scaling_of([scaler for _, scaler in steps]), strict=True):
        is_alike = part is found if part is None or found is None else np.allclose(part, found, rtol=1e-9, atol=0)
        if not is_alike:
            raise ValueError("the scalers and the scaling contradict each other")


def _state(header: dict[str, Any], arrays: dict[str, Any]) -> BudgetState:
    """The state that `_pack_budget` wrote."""
    if "shape" in header:
        parts = tuple(arrays[f"state_basis_{name}"] for name in CSR_PARTS)
        basis: Any = sp.csr_array(parts, shape=tuple(header["shape"]))
    else:
        basis = arrays["state_basis"]
    kept: dict[str, Any] = {name: arrays.get(f"state_{name}") for name in STATE_ARRAYS}
    return BudgetState(
        basis=basis,
        C=header["C"],
        n_steps=header["n_steps"],
        n_taken=header["n_taken"],
        n_changed=header.get("n_changed", 0),
        task=_object(header["task"]),
        examples=Examples(labels=arrays["state_labels"], weights=arrays["state_weights"]),
        random=header["random"],
        **kept,
    )


# -- parameters -------------------------------------------------------------------------------------------------------


def _solver_classes() -> dict[str, type[Solver]]:
    """Solvers that files know, by the names of their classes."""
    return {cls.__name__: cls for cls in (*SOLVERS.values(), Compact)}


def _plain(value: Any) -> Any:
    """A parameter as JSON; UNSAVED if a file cannot hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return UNSAVED
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(item, PLAIN) for item in value):
        return list(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and np.all(np.isfinite(value)):
        return {"array": value.tolist()}
    if isinstance(value, dict) and all(isinstance(item, PLAIN) for pair in value.items() for item in pair):
        return {"pairs": [list(pair) for pair in value.items()]}
    if isinstance(value, Solver) and type(value) in _solver_classes().values():
        params = {name: _plain(item) for name, item in value.get_params(deep=False).items()}
        return {"solver": type(value).__name__, "params": params}
    if isinstance(value, Task) and type(value) in TASKS.values():
        params = {name: _plain(item) for name, item in vars(value).items()}
        return {"task": next(name for name, cls in TASKS.items() if type(value) is cls), "params": params}
    return UNSAVED


def _object(value: Any) -> Any:
    """A parameter from its JSON; the inverse of `_plain`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(value["array"])
    if "pairs" in value:
        return {key: item for key, item in value["pairs"]}
    if "task" in value:
        return TASKS[value["task"]](**{name: _object(item) for name, item in value["params"].items()})
    solver = _solver_classes()[value["solver"]]
    return solver(**{name: _object(item) for name, item in value["params"].items() if item != UNSAVED})


# -- support vectors and what else scikit-learn has -------------------------------------------------------------------


def pack_support(estimator: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Attributes like scikit-learn's as JSON; rows and classes of the support vectors join ``arrays``."""
    fitted = {name: np.asarray(getattr(estimator, name)).tolist() for name in LISTS if hasattr(estimator, name)}
    if getattr(estimator, "_sparse", False):
        fitted["_sparse"] = True
    support = getattr(estimator, "_support", None)
    if support is not None and support.rows is not None:
        rows = np.asarray(support.rows)
        arrays["support_rows"] = rows.astype(np.min_scalar_type(int(rows.max(initial=0))))
        if support.classes is not None:
            arrays["support_classes"] = support.classes
    return fitted


def unpack_support(
    estimator: Any, header: dict[str, Any], fitted: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Set the attributes that `pack_support` wrote on an estimator with a model; older files say less.

    What is set here is taken out of ``fitted``.
    """
    n_iter = fitted.pop("n_iter_")
    if type(n_iter) not in (int, list):
        raise ValueError(f"n_iter_ is {n_iter!r}, which no fit leaves")
    estimator.n_iter_ = np.array(n_iter, np.int32) if isinstance(n_iter, list) else estimator._iterations(n_iter, [])
    if "shape_fit_" in fitted:
        estimator.shape_fit_ = tuple(fitted.pop("shape_fit_"))
    if "class_weight_" in fitted:
        estimator.class_weight_ = np.array(fitted.pop("class_weight_"), np.float64)
    estimator._sparse = bool(fitted.pop("_sparse", False))
    if "support_rows" not in arrays:
        estimator._support = _of_earlier_version(estimator, header)
        return
    rows, classes = arrays["support_rows"].astype(np.int64), arrays.get("support_classes")
    for name, found in (("support_rows", rows), ("support_classes", classes)):
        if found is not None and (found.dtype.kind not in "ui" or found.shape != (estimator.model_.n_basis,)):
            raise ValueError(f"{name} must have one whole number for each of {estimator.model_.n_basis} vectors")
    if classes is not None and classes.max(initial=0) >= len(getattr(estimator, "classes_", ())):
        raise ValueError(f"support_classes must be numbers of classes, found {classes.max()}")
    estimator._support = Support(estimator.model_, rows, classes)


def _of_earlier_version(estimator: Any, header: dict[str, Any]) -> Support | None:
    """The support vectors in a file of an exact model, whose coefficients tell their classes."""
    params, model = header["params"], estimator.model_
    solver = params.get("solver")
    name = solver.get("solver") if isinstance(solver, dict) else solver
    kind, is_exact = header["estimator"], name in ("exact", "Exact")
    may_be = name == "auto" and params.get("max_basis") is None and params.get("gamma") != "learn"
    if header["fitted"].get("status_") == "compressed" or not (is_exact or (may_be and is_balanced(model))):
        return None
    if kind == "OneClassSVM":
        return Support(model, None, None)
    if kind == "SVR":
        return support_by_sign(model, None)
    has_pairs = kind == "SVC" and not header["fitted"].get("multilabel_") and model.coef.shape[1] >= 1
    n_classes = len(estimator.classes_) if has_pairs else 0
    is_of_pairs = n_classes == 2 or (n_classes > 2 and estimator.multi_class_ == "ovo")
    return support_by_sign(model, n_classes) if is_of_pairs else None


# -- streams of chunks, and what a warm start goes on from ------------------------------------------------------------


def pack_stream(estimator: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any] | None:
    """An estimator's stream as JSON; its arrays join ``arrays``. None if there is none, or a file cannot hold it.

    Arrays that the model stores already are not stored again.
    """
    if type(getattr(estimator, "_stream", None)) not in KNOWN.values():
        return None
    random = estimator._stream_parts[2].bit_generator.state
    if random["bit_generator"] not in GENERATORS:
        return None
    state = pack(estimator._stream, arrays)
    stream = {"state": state, "random": pack(random, arrays), "centre": float(estimator._centre)}
    if (seen := getattr(estimator, "_seen", None)) is not None:
        stream["seen"] = pack(seen._asdict(), arrays)
    return stream


def unpack_stream(estimator: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Set the stream that `pack_stream` wrote."""
    random = unpack(header["random"], arrays)
    generator = generator_at(random)
    estimator._stream = unpack(header["state"], arrays)
    estimator._stream_parts = estimator.model_.kernel, None, generator
    estimator._centre = header["centre"]
    if "seen" in header:
        estimator._seen = Seen(**unpack(header["seen"], arrays))


def pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; its arrays join ``arrays``."""
    if isinstance(value, np.ndarray):
        return {"array": _stored(value, arrays)}
    if is_sparse(value):
        return {"csr": [_stored(getattr(value, part), arrays) for part in CSR_PARTS], "shape": list(value.shape)}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Task):
        name = next(name for name, known in TASKS.items() if type(value) is known)
        return {"task": name, **_items(vars(value), arrays)}
    if type(value) in KNOWN.values():
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"known": type(value).__name__, **_items(own, arrays)}
    if isinstance(value, dict):
        return _items(value, arrays)
    return value.item() if isinstance(value, np.generic) else value


def _items(values: dict[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {"items": {name: pack(value, arrays) for name, value in values.items()}}


def _stored(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """Store an array, unless an equal one is there, and return its name."""
    for name, other in arrays.items():
        if other.dtype == array.dtype and other.shape == array.shape and np.array_equal(other, array):
            return name
    name = f"stream_{len(arrays)}"
    arrays[name] = array
    return name


def unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value from its JSON; the inverse of `pack`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]]
    if "csr" in value:
        rows = sp.csr_array(tuple(arrays[name] for name in value["csr"]), shape=tuple(value["shape"]))
        rows.check_format(full_check=True)
        return rows
    if "hex" in value:
        return bytes.fromhex(value["hex"])
    items = {name: unpack(item, arrays) for name, item in value["items"].items()}
    if "task" in value:
        return TASKS[value["task"]](**items)
    return (KNOWN | EARLIER)[value["known"]](**items) if "known" in value else items


# -- scalers ----------------------------------------------------------------------------------------------------------


def pack_scalers(steps: Steps, name: str, arrays: dict[str, Array], has_names: bool) -> dict[str, Any]:
    """The header's part on the scalers and the name of the last step; their arrays join ``arrays``.

    Names of features are kept where the scalers take rows as users have them (``has_names``). A TypeError names a step
    that is no fitted scaler that files know.
    """
    packed = []
    for k, (step, scaler) in enumerate(steps):
        fitted: dict[str, Any] = {}
        for attribute, value in vars(scaler).items():
            if not re.fullmatch(r"[a-z]\w*_", attribute):
                continue
            if attribute == "feature_names_in_":
                fitted |= {attribute: list(map(str, value))} if has_names else {}
            elif isinstance(value, np.ndarray):
                arrays[f"scaling_{k}_{attribute}"] = value
            else:
                fitted[attribute] = value.item() if isinstance(value, np.generic) else value
        defaults = type(scaler)().get_params()
        params = {key: value for key, value in scaler.get_params().items() if value != defaults[key]}
        packed.append({"name": step, "class": type(scaler).__name__, "params": params, "fitted": fitted})
    scaling = scaling_of([scaler for _, scaler in steps])
    arrays |= {f"scaling_{part}": value for part, value in scaling._asdict().items() if value is not None}
    return {"steps": packed, "machine": name}


def unpack_scalers(header: dict[str, Any], arrays: dict[str, Array], n_features: int) -> list[tuple[str, Any]]:
    """The steps that `pack_scalers` wrote; KeyError, TypeError or ValueError if the header is not one of its."""
    steps = []
    for k, step in enumerate(header["steps"]):
        # JSON has no tuples, which scikit-learn wants as ranges.
        params = {key: tuple(value) if isinstance(value, list) else value for key, value in step["params"].items()}
        scaler = SCALERS[step["class"]](**params)
        fitted = dict(step["fitted"])
        prefix = f"scaling_{k}_"
        fitted |= {name.removeprefix(prefix): part for name, part in arrays.items() if name.startswith(prefix)}
        for attribute, value in fitted.items():
            if not re.fullmatch(r"[a-z]\w*_", attribute):
                raise ValueError(f"a scaler has no attribute {attribute!r}")
            if attribute == "feature_names_in_":
                check_feature_names(value, n_features)
                value = np.array(value, dtype=object)
            setattr(scaler, attribute, value)
        steps.append((step["name"], scaler))
    return steps


# -- pipelines of other steps and an estimator ------------------------------------------------------------------------


def plain_model_of(model: Any, encodes: bool = False) -> PlainModel:
    """The model for prediction alone of a fitted estimator, or of a pipeline of scalers and one.

    ``encodes``: there may be other steps, which are the model's ``encoding``. Errors are those of `parts_of`, and say
    if the model labels by a task, or scores by a kernel, of Python.
    """
    steps, name, estimator = parts_of(model)
    found = plain_model(*file_parts(estimator, steps, name))
    if not encodes:
        refuse(found.encoding, "this", "give pipeline[-1], and rows that the steps before it have transformed")
    return found


def parts_of(model: Any) -> tuple[Steps, str, Any]:
    """The steps of a pipeline before the estimator with their names, the name of the estimator, and the estimator.

    A TypeError says what to do with anything but a fitted estimator of slimsvm, or a pipeline that ends with one.
    """
    if hasattr(model, "best_estimator_"):
        raise TypeError(
            f"a file holds one estimator, found a {type(model).__name__}: give its best_estimator_, or keep the whole "
            "object by joblib.dump"
        )
    name, estimator = model.steps[-1] if isinstance(model, Pipeline) else ("", model)
    steps = model.steps[:-1] if isinstance(model, Pipeline) else []
    steps = [(own, step) for own, step in steps if step not in (None, "passthrough")]
    if hasattr(estimator, "machines_"):
        raise TypeError(
            f"a {type(estimator).__name__} encodes the columns of a table and averages several models: no other form "
            "has that yet. slimsvm.save writes it, slimsvm.load reads it"
        )
    if not isinstance(estimator, Fitted):
        raise TypeError(f"a file holds a fitted estimator of slimsvm, found {type(estimator).__name__}")
    check_is_fitted(estimator, "model_")
    if steps and (hasattr(estimator, "window") or type(estimator).__name__ == "StructuredSVM"):
        raise TypeError(f"a file cannot hold scalers before a {type(estimator).__name__}, whose X are not single rows: "
                        "save pipeline[-1], and scale new rows like the training rows")  # fmt: skip
    fitted: Any = estimator
    if steps and not fitted.kernel_.has_features:
        raise TypeError("a file cannot hold scalers before a matrix of kernel values: save pipeline[-1]")
    return steps, name, estimator


def split(steps: Steps) -> tuple[Steps, Steps]:
    """The steps up to the last one that is no scaler, and the scalers behind it."""
    others = [k for k, (_, step) in enumerate(steps) if type(step) not in SCALERS.values()]
    at = others[-1] + 1 if others else 0
    return steps[:at], steps[at:]
