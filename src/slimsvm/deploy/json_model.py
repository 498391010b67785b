"""A model, or that of a table with its encoders, as JSON, for those who write a predictor of their own.

docs/deploy/json.md and docs/tables.md are the schemas.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.deploy.plain_model import PlainModel, describe
from slimsvm.deploy.rows import CsrRows
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.tables.encoders import facts_of
from slimsvm.whole_file import write_whole

FORMAT, VERSION, SCALED_VERSION, ENCODED_VERSION = "slimsvm model", 1, 2, 3
TABLE_FORMAT, TABLE_VERSION, STRAIGHT_VERSION = "slimsvm table", 1, 2


def write_json_model(model: PlainModel, path: Any) -> str:
    """Write a model as JSON, with all digits of float64 and a line for each vector; say what was written."""
    entries = (f"{json.dumps(key)}: {_lines(value)}" for key, value in json_parts(model).items())
    text = "{\n" + ",\n".join(entries) + "\n}\n"
    write_whole(path, [text])
    return f"{path}: JSON, {describe(model)}, {len(text):,} bytes"


def json_parts(model: PlainModel) -> dict[str, Any]:
    """The model's entries as JSON values, in the order of the page."""
    parts = {
        "format": FORMAT,
        "version": ENCODED_VERSION if model.encoding else VERSION if model.scaling is None else SCALED_VERSION,
        "kind": model.kind,
        "kernel": {"name": model.kernel.name} | {name: _plain(value) for name, value in vars(model.kernel).items()},
        "n_features": model.n_features,
        "n_outputs": model.n_outputs,
        "vectors": _vectors(model.vectors),
        "coef": model.coef.tolist(),
        "intercept": model.intercept.tolist(),
    }
    if model.encoding is not None:
        arrays: dict[str, np.ndarray] = {}
        parts["encoding"] = _with_arrays(model.encoding.pack(arrays), arrays)
    if model.scaling is not None:
        parts["scaling"] = {name: _finite(part) for name, part in model.scaling._asdict().items() if part is not None}
    if model.classes is not None:
        parts["classes"] = model.classes.tolist()
    if model.kind == "ordinal":
        parts["thresholds"] = model.plain.tolist()
    if model.calibration is not None:
        parts["calibration"] = model.calibration.tolist()
    if model.nonconformity is not None:
        parts["nonconformity"] = _finite(model.nonconformity)
        if model.classes is not None:
            parts["nonconformity_classes"] = model.nonconformity_classes.tolist()
    if model.kind == "sequences":
        k, plain = model.n_outputs, model.plain
        parts |= {"transitions": plain[: k * k].reshape(k, k).tolist(), "start": plain[k * k : k * k + k].tolist(),
                  "end": plain[k * k + k :].tolist()}  # fmt: skip
    return parts | {name: _plain(value) for name, value in model.options.items()}


def _vectors(vectors: Any) -> Any:
    """A list for each vector, or of sparse ones an object with the features that are not 0; None without vectors."""
    if not isinstance(vectors, CsrRows):
        return None if vectors is None else vectors.tolist()
    ends = zip(vectors.indptr[:-1], vectors.indptr[1:], strict=True)
    return [{"features": vectors.indices[lo:hi].tolist(), "values": vectors.data[lo:hi].tolist()} for lo, hi in ends]


def _finite(values: np.ndarray) -> list[Any]:
    """A list of numbers, or of lists; None where there is no bound, or no number."""
    if values.ndim > 1:
        return [_finite(row) for row in values]
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _with_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Facts of an encoding with its arrays where they are named."""
    if isinstance(value, list):
        return [_with_arrays(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _finite(arrays[value["array"]])
    return {name: _with_arrays(part, arrays) for name, part in value.items()}


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _lines(value: Any) -> str:
    """JSON with a line for each entry of a list of lists."""
    if isinstance(value, list) and value and isinstance(value[0], list | dict):
        return "[\n" + ",\n".join(json.dumps(entry, allow_nan=False) for entry in value) + "\n]"
    return json.dumps(value, allow_nan=False)


def write_table_json(model: TableModel, path: Any) -> str:
    """Write encoders and models as JSON; say what was written."""
    columns = columns_of(model)
    members = []
    for weight, part, lines in model.members:
        if isinstance(part, PlainModel):
            facts = json_parts(replace(part, calibration=lines if len(lines) else None))
        else:
            facts = {"kind": "linear" if part.are_flags.all() else "additive", "weights": part.weights.tolist(),
                     "intercept": part.intercept.tolist(), "calibration": lines.tolist()}  # fmt: skip
        members.append({"weight": weight} | facts)
    classes = None if model.classes is None else model.classes.tolist()
    version = TABLE_VERSION if model.encoding.n_features == len(model.encoding.are_flags) else STRAIGHT_VERSION
    parts = {"format": TABLE_FORMAT, "version": version, "classes": classes, "mean": model.mean,
             "spread": model.spread, "are_flags": model.encoding.are_flags.tolist(), "columns": columns,
             "machines": members}  # fmt: skip
    text = json.dumps(parts, allow_nan=False) + "\n"
    write_whole(path, [text])
    return f"{path}: JSON, {len(columns)} columns, {counted(members)}, {len(text):,} bytes"


def columns_of(model: TableModel) -> list[dict[str, Any]]:
    """The encoders of the columns as JSON."""
    return [{name: _plain(value) for name, value in facts_of(encoder).items()} for encoder in model.encoding.encoders]
