"""Fitted estimators as files of arrays and a JSON header, and back."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from slimsvm.deploy.plain_model import check_feature_names, check_parts, multi_class_of
from slimsvm.deploy.predictors import TRIED_FEATURES, try_row
from slimsvm.deploy.scaling import read_scaling
from slimsvm.estimators._shared.scalers import Steps, pack_scalers, scaling_of, unpack_scalers
from slimsvm.estimators._shared.stream_files import CSR_PARTS, pack, pack_stream, unpack, unpack_stream
from slimsvm.estimators._shared.support_files import LISTS, pack_support, unpack_support
from slimsvm.estimators._shared.written import check_target
from slimsvm.model import KernelExpansion
from slimsvm.modelfile import damage_named, read_model, write_model
from slimsvm.parts.budgeted.box_dual import BudgetState
from slimsvm.parts.resuming import Halfway
from slimsvm.parts.solver import Solver
from slimsvm.rows import is_sparse
from slimsvm.size_search.compact import Compact
from slimsvm.solvers import SOLVERS
from slimsvm.tasks import TASKS, Examples, Task

PLAIN = (str, int, float, bool, type(None))
# What the attributes of a fit are, where anything reads them.
TEXTS = "status_", "intercept_kind_", "multi_class_"
NUMBERS = "objective_", "lower_bound_", "C_"
STATE_ARRAYS = ("coef", "intercept", "basis_rows", "alpha")


def save(estimator, path, with_state: bool = False, scalers: Steps = (), name: str = "") -> None:
    """Write a fitted estimator, and what the next chunk of a stream goes on from; see its ``save``.

    With what a warm start needs, where the solver left it and ``with_state`` asks for it. Steps of a pipeline
    before the estimator, which has this name in it, are ``scalers``.
    """
    check_target(estimator, path)
    header, arrays = file_parts(estimator, scalers, name)
    if (stream := pack_stream(estimator, arrays)) is not None:
        header["stream"] = stream
    if with_state and isinstance(estimator._state, Halfway):
        header["halfway"] = pack(estimator._state, arrays)
    elif with_state and estimator._state is not None:
        _pack_budget(estimator._state, header, arrays)
    # A reader that knows of no scaling would predict from rows as they are.
    write_model(path, header, arrays, version=2 if scalers else 1)


def _pack_budget(state: BudgetState, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """What a budgeted solver goes on from."""
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


def file_parts(estimator, scalers: Steps = (), name: str = "") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays that say what a fitted estimator is and how it predicts, behind these scalers."""
    header, arrays = estimator.model_.to_file_parts()
    if scalers:
        header["scaling"] = pack_scalers(scalers, name, arrays)
    # Not how many kernel values the fit computed: that depends on memory and workers, the file must not.
    told = ("n_features_in_", "objective_", "lower_bound_", "status_")
    fitted: dict[str, Any] = {name: getattr(estimator, name) for name in told} | pack_support(estimator, arrays)
    if getattr(estimator, "multilabel_", False):
        fitted["multilabel_"] = True
    fitted |= {
        name: getattr(estimator, name)
        for name in ("C_", "intercept_kind_", "multi_class_", "label_name_")
        if hasattr(estimator, name)
    }
    if hasattr(estimator, "feature_names_in_"):
        fitted["feature_names_in_"] = list(map(str, estimator.feature_names_in_))
    if hasattr(estimator, "classes_"):
        classes = np.asarray(estimator.classes_)
        fitted["classes_are_objects"] = classes.dtype.kind == "O"
        arrays["classes"] = classes.astype(str) if classes.dtype.kind == "O" else classes
    header["estimator"] = type(estimator).__name__
    header["params"] = {name: _plain(value) for name, value in estimator.get_params(deep=False).items()}
    header["fitted"] = {name: _plain(value) for name, value in fitted.items()}
    return header, arrays


def read_estimator(path, by_name: dict[str, type]):
    """The fitted estimator, one of these classes by name, of a file that ``save`` wrote; see `slimsvm.load`.

    A Pipeline where the file has scalers.
    """
    header, arrays = read_model(path)
    with damage_named(f"{path}: not a model this version knows"):
        estimator = _estimator(header, arrays, by_name)
        if "scaling" not in header:
            return estimator
    with damage_named(f"{path}: not a scaling this version knows"):
        steps = unpack_scalers(header["scaling"], arrays, estimator.n_features_in_)
        _check_scaling(steps, arrays, estimator.n_features_in_)
        name = header["scaling"]["machine"]
        if not all(isinstance(step, str) for step in (name, *(step for step, _ in steps))):
            raise ValueError("a step of the pipeline has no name")
        return Pipeline([*steps, (name, estimator)])


def _estimator(header: dict[str, Any], arrays: dict[str, np.ndarray], by_name: dict[str, type]) -> Any:
    """The fitted estimator that a file describes."""
    check_parts(header, arrays)
    estimator = by_name[header["estimator"]]()
    estimator.set_params(**{name: _object(value) for name, value in header["params"].items() if value != UNSAVED})
    model = KernelExpansion.from_file_parts(header, arrays)
    fitted = dict(header["fitted"])
    if "classes" in arrays:
        classes = arrays["classes"]
        estimator.classes_ = classes.astype(object) if fitted.pop("classes_are_objects") else classes
    if "state" in header:
        estimator._state = _state(header["state"], arrays)
    if "halfway" in header:
        estimator._state = unpack(header["halfway"], arrays)
    later = {name: fitted.pop(name) for name in (*LISTS, "_sparse") if name in fitted}
    if lacking := {"objective_", "lower_bound_", "status_"} - set(fitted):
        raise ValueError(f"a fit leaves {', '.join(sorted(lacking))}")
    for name, value in fitted.items():
        if not re.fullmatch(r"[A-Za-z]\w*_", name) or hasattr(getattr(type(estimator), name, None), "__get__"):
            raise ValueError(f"a fit leaves no attribute {name!r}")
        _check_fitted(name, value, fitted["n_features_in_"])
        if value == UNSAVED:  # an objective that was not computed
            value = float("nan")
        setattr(estimator, name, np.array(value, dtype=object) if name == "feature_names_in_" else value)
    if "multi_class" in header["params"] and "multi_class_" not in fitted:
        estimator.multi_class_ = multi_class_of(header)
    estimator.model_, estimator.kernel_, estimator.precision_ = model, model.kernel, model.dtype
    estimator.basis_vectors_, estimator.basis_coef_ = model.basis, model.coef
    estimator.n_basis_, estimator.intercept_ = model.n_basis, model.intercept
    unpack_support(estimator, header, later, arrays)
    if "stream" in header:
        unpack_stream(estimator, header["stream"], arrays)
    if header["estimator"] != "StructuredSVM":  # whose task may be the user's, who gives it after this
        row = sp.csr_array((1, estimator.n_features_in_))
        is_wide = estimator.n_features_in_ > TRIED_FEATURES
        try_row(estimator.predict, row if is_wide else row.toarray(), hasattr(estimator, "window"))
    return estimator


def _check_fitted(name: str, value: Any, n_features: int) -> None:
    """A ValueError where an attribute's value is none that a fit leaves."""
    if name in TEXTS:
        is_right = isinstance(value, str)
    elif name in NUMBERS:
        is_right = value in (None, UNSAVED) or type(value) in (int, float)
    else:
        if name == "feature_names_in_":
            check_feature_names(value, n_features)
        return
    if not is_right:
        raise ValueError(f"{name} is {value!r}, which no fit leaves")


def _check_scaling(steps: Steps, arrays: dict[str, np.ndarray], n_features: int) -> None:
    """A ValueError where the scalers do not what the file says to readers without scikit-learn."""
    told = read_scaling(arrays, n_features)
    for part, found in zip(told, scaling_of([scaler for _, scaler in steps]), strict=True):
        is_alike = part is found if part is None or found is None else np.allclose(part, found, rtol=1e-9, atol=0)
        if not is_alike:
            raise ValueError("the scalers and the scaling contradict each other")


def _state(header: dict[str, Any], arrays: dict[str, Any]) -> BudgetState:
    """What a checkpoint was written with."""
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


UNSAVED = {"unsaved": True}


def _solver_classes() -> dict[str, type[Solver]]:
    """Solvers that files know, by the names of their classes."""
    return {cls.__name__: cls for cls in (*SOLVERS.values(), Compact)}


def _plain(value: Any) -> Any:
    """A JSON value that `_object` turns back, or UNSAVED."""
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
    """What `_plain` was given."""
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
