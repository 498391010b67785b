"""Tables as JSON: encoders and models with all numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.deploy.json_model import json_parts
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.tables.encoders import pack_encoder
from slimsvm.whole_file import write_whole

Array = np.ndarray

FORMAT, VERSION = "slimsvm table", 1


def write_table_json(model: TableModel, path: Any) -> str:
    """Write encoders and models as JSON; say what was written."""
    columns = columns_of(model)
    machines = []
    for weight, part, lines in model.machines:
        if isinstance(part, PlainModel):
            facts = json_parts(replace(part, calibration=lines if len(lines) else None))
        else:
            facts = {"kind": "additive", "weights": part.weights.tolist(), "intercept": part.intercept.tolist(),
                     "calibration": lines.tolist()}  # fmt: skip
        machines.append({"weight": weight} | facts)
    classes = None if model.classes is None else model.classes.tolist()
    parts = {"format": FORMAT, "version": VERSION, "classes": classes, "mean": model.mean, "spread": model.spread,
             "are_flags": model.encoding.are_flags.tolist(), "columns": columns, "machines": machines}  # fmt: skip
    text = json.dumps(parts, allow_nan=False) + "\n"
    write_whole(path, [text])
    return f"{path}: JSON, {len(columns)} columns, {counted(machines)}, {len(text):,} bytes"


def columns_of(model: TableModel) -> list[dict[str, Any]]:
    """The encoders of the columns as JSON."""
    columns = []
    for encoder in model.encoding.encoders:
        arrays: dict[str, Array] = {}
        facts = pack_encoder(encoder, "own", arrays)
        columns.append(facts | {name.removeprefix("own_"): values.tolist() for name, values in arrays.items()})
    return columns
