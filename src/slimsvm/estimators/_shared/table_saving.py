"""Fitted estimators of tables as files of arrays and a JSON header, and back.

All models' vectors are rows of one array, with features that are 0 or 1 as bits; a model's coefficients are sparse.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.deploy.plain_model import check_params
from slimsvm.deploy.table_model import (
    checked_misfits,
    dense_coef,
    misfits_of_classes,
    model_without_kernel,
    own_arrays,
    unpack_vectors,
)
from slimsvm.estimators._shared.table_goals import ClassGoal, Goal, NumberGoal
from slimsvm.estimators._shared.table_search import Member, Recipe
from slimsvm.kernels import KERNELS
from slimsvm.model import KernelExpansion, row_keys
from slimsvm.modelfile import write_model
from slimsvm.tables import TableEncoding

Array = np.ndarray

# What a fit leaves besides the models, where the estimator has it.
NUMBERS = "mean_y_", "spread_y_"


def save_table_estimator(estimator: Any, path: Any) -> None:
    """Write a fitted `TableClassifier` or `TableRegressor`."""
    # Readers of version 1 know of one model of numbers alone.
    write_model(path, *table_parts(estimator), version=2)


def table_parts(estimator: Any) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of its file."""
    arrays: dict[str, Array] = {}
    header: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "params": {name: value for name, value in estimator.get_params(deep=False).items() if is_plain(value)},
        "table": estimator.encoding_.pack(arrays),
        "machines": pack_members(estimator.machines_, estimator.encoding_.are_flags, arrays),
        "report": estimator.report_,
        "label": getattr(estimator, "label_name_", None),
        "numbers": {name: getattr(estimator, name) for name in NUMBERS if hasattr(estimator, name)},
    }
    arrays |= {"importances": estimator.feature_importances_, "misfits": estimator.nonconformity_}
    if hasattr(estimator, "classes_"):
        own = estimator.nonconformity_of_classes_
        arrays |= {"misfits_of_classes": np.concatenate(own), "n_misfits": np.array(list(map(len, own)), np.uint32)}
        header["classes_are_objects"], arrays["classes"] = pack_classes(estimator.classes_)
    return header, arrays


def pack_classes(classes: Any) -> tuple[bool, Array]:
    """Whether classes are texts in an array of objects, and the array that a file has of them; a TypeError if they are
    dates or times.
    """
    classes = np.asarray(classes)
    if classes.dtype.kind in "mM":
        raise TypeError(
            f"a file holds labels that are numbers or texts, found {classes.dtype}: train with y.astype(str)"
        )
    is_object = classes.dtype.kind == "O"
    return is_object, classes.astype(str) if is_object else classes


def read_table_estimator(header: dict[str, Any], arrays: dict[str, Array], cls: type) -> Any:
    """The estimator that `save_table_estimator` wrote."""
    estimator: Any = cls()
    check_params(header["params"])
    estimator.set_params(**header["params"])
    estimator.encoding_ = TableEncoding.unpack(header["table"], arrays)
    estimator.machines_ = unpack_members(header["machines"], estimator.encoding_, arrays)
    estimator.report_ = str(header["report"])
    if isinstance(header["label"], str):
        estimator.label_name_ = header["label"]
    estimator.feature_importances_, estimator.nonconformity_ = arrays["importances"], checked_misfits(arrays)
    names = [encoder.name for encoder in estimator.encoding_.encoders]
    estimator.n_features_in_ = len(names)
    if estimator.encoding_.has_names:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    for name in NUMBERS:
        if name in header["numbers"]:
            setattr(estimator, name, float(header["numbers"][name]))
    if "classes" in arrays:
        classes = arrays["classes"]
        estimator.classes_ = classes.astype(object) if header["classes_are_objects"] else classes
        estimator.nonconformity_of_classes_ = misfits_of_classes(arrays)
    check_members(estimator.machines_, goal_of(estimator))
    estimator.predict({name: [None] for name in names} if estimator.encoding_.has_names else [[None] * len(names)])
    return estimator


def goal_of(estimator: Any) -> Goal:
    """What the models of a fitted estimator predict."""
    return ClassGoal(len(estimator.classes_)) if hasattr(estimator, "classes_") else NumberGoal()


def check_members(members: list[Member], goal: Goal) -> None:
    """A ValueError if models are not those of a goal."""
    n_outputs = goal.task.n_outputs
    for member in members:
        model, calibration = member.model, member.calibration
        weights, intercept = model.coef if isinstance(model, KernelExpansion) else model.weights, model.intercept
        shape = (n_outputs if isinstance(goal, ClassGoal) else 0, 4)
        fits = weights.shape[1:] == intercept.shape == (n_outputs,) and calibration.shape == shape
        if not (fits and 0 < member.weight <= 1):
            raise ValueError(f"a model has weights of shape {weights.shape} and a calibration of {calibration.shape}")
        if not all(np.isfinite(part).all() for part in (weights, intercept, calibration)):
            raise ValueError("a model has numbers that are not finite")
    if not members:
        raise ValueError("there is no model")


def is_plain(value: Any) -> bool:
    """Whether a parameter is JSON as it is."""
    return value is None or isinstance(value, str | int | float | bool)


def pack_members(members: list[Member], are_flags: Array, arrays: dict[str, Array]) -> list[dict[str, Any]]:
    """The models as JSON; their arrays join ``arrays``."""
    bases = [member.model.basis for member in members if isinstance(member.model, KernelExpansion)]
    vectors = np.concatenate([np.zeros((0, len(are_flags)), np.float32), *bases])
    number_of: dict[bytes, int] = {}
    numbers = np.array([number_of.setdefault(key, len(number_of)) for key in row_keys(vectors)], np.uint32)
    firsts = np.unique(numbers, return_index=True)[1]
    vectors = vectors[firsts]
    if np.isin(vectors[:, are_flags], (0.0, 1.0)).all():
        arrays["vector_flags"] = np.packbits(vectors[:, are_flags] != 0, axis=1)
        vectors = vectors[:, ~are_flags]
    halves = vectors.astype(np.float16)
    arrays["vectors"] = halves if np.array_equal(halves, vectors) else vectors
    facts, at = [], 0
    for j, member in enumerate(members):
        recipe = member.recipe
        fact: dict[str, Any] = {"recipe": list(astuple(recipe)), "weight": member.weight}
        if isinstance(member.model, KernelExpansion):
            n = member.model.n_basis
            more, parts = _pack_expansion(member.model, numbers[at : at + n])
            fact, at = fact | more, at + n
        else:
            parts = {"weights": member.model.weights.astype(np.float32)}
        parts |= {"intercept": member.model.intercept, "calibration": member.calibration}
        arrays |= {f"machine{j}_{name}": array for name, array in parts.items()}
        facts.append(fact)
    return facts


def _pack_expansion(model: KernelExpansion, rows: Array) -> tuple[dict[str, Any], dict[str, Array]]:
    """JSON and arrays of a model whose vectors are these rows of all vectors."""
    kernel, of_kernel = model.kernel.to_header()
    coef = sp.csr_array(model.coef)
    parts = {
        "rows": rows,
        "coef": coef.data.astype(np.float32),
        "indices": coef.indices.astype(np.min_scalar_type(coef.shape[1])),
        "indptr": coef.indptr.astype(np.uint32),
    }
    return {"kernel": kernel, "dtype": model.dtype, "n_outputs": coef.shape[1]}, parts | of_kernel


def unpack_members(facts: list[dict[str, Any]], encoding: TableEncoding, arrays: dict[str, Array]) -> list[Member]:
    """The models that `pack_members` wrote; an error if they contradict themselves."""
    vectors = unpack_vectors(encoding.are_flags, arrays)
    members = []
    for j, fact in enumerate(facts):
        own = own_arrays(j, arrays)
        recipe = Recipe(*fact["recipe"])
        has_kernel = "weights" not in own
        model: Any = _unpack_expansion(fact, own, vectors) if has_kernel else model_without_kernel(fact, own, encoding)
        members.append(Member(recipe, fact["weight"], model, own["calibration"]))
    return members


def _unpack_expansion(fact: dict[str, Any], own: dict[str, Array], vectors: Array) -> KernelExpansion:
    """The model that `_pack_expansion` wrote."""
    basis = vectors[own["rows"]]
    coef = dense_coef(fact, own)
    kernel = KERNELS[fact["kernel"]["kernel"]].from_header(fact["kernel"], own)
    return KernelExpansion(basis, coef, own["intercept"], np.zeros(0), kernel, fact["dtype"])
