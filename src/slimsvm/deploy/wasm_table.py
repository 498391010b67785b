"""A table as one ES module: the C runtime as WebAssembly scores rows that JavaScript has encoded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from slimsvm.deploy.plain_model import PlainModel
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.deploy.wasm_module import FOLDER, MODULE, base64, check_labels, runtime_bytes, slim_bytes
from slimsvm.tables.encoders import Encoder, Levels, ManyLevels, Numbers, Times, places_of
from slimsvm.tables.splines import KNOTS
from slimsvm.whole_file import write_whole

Array = np.ndarray

TABLE = FOLDER / "slimsvm_table.mjs"
INSTANCE = """
// {text}
const runtime = "{runtime}";
const facts = {facts};
export default await SlimTable.load(bytesOf(runtime), facts);
"""


def write_table_wasm(model: TableModel, path: Any) -> str:
    """Write encoders and models as an ES module; say what was written.

    Raises
    ------
    FileNotFoundError
        The package came without the compiled runtime.
    ValueError
        Labels are whole numbers that JavaScript's numbers do not hold.
    """
    check_labels(model.classes)
    facts = {
        "classes": None if model.classes is None else model.classes.tolist(),
        "mean": model.mean,
        "spread": model.spread,
        "flags": model.encoding.are_flags.tolist(),
        "columns": [column_facts(encoder) for encoder in model.encoding.encoders],
        "models": [model_facts(*each) for each in model.machines],
    }
    text = f"a table of {len(facts['columns'])} columns, {counted(model.machines)}"
    parts = {"runtime": base64(runtime_bytes()), "facts": json.dumps(facts, allow_nan=False), "text": text}
    whole = MODULE.read_text(encoding="utf-8") + TABLE.read_text(encoding="utf-8") + INSTANCE.format(**parts)
    write_whole(path, [whole])
    return f"{path}: ES module with WebAssembly, {text}, {len(whole):,} bytes"


def column_facts(encoder: Encoder) -> dict[str, Any]:
    """What JavaScript knows of a column; of levels the places of all texts that stand for them."""
    facts: dict[str, Any] = {"name": encoder.name, "kind": encoder.kind if encoder.width else "left out"}
    if isinstance(encoder, Numbers | Times):
        facts |= {"values": encoder.values.tolist(), "deviates": encoder.deviates.tolist()}
        facts |= {"flag": encoder.flags_missing}
    if isinstance(encoder, Times):
        facts["cycles"] = list(encoder.cycles)
    if isinstance(encoder, Levels | ManyLevels):
        places = places_of(encoder.levels)
        facts |= {"missing": places.pop(None, None), "places": list(places.items()), "n": len(encoder.levels)}
    if isinstance(encoder, ManyLevels):
        means = (np.vstack([encoder.means, encoder.prior]) - encoder.prior) / encoder.spread
        facts["means"] = means.tolist()
    return facts


def model_facts(weight: float, part: Any, lines: Array) -> dict[str, Any]:
    """What JavaScript knows of a model: the file that the runtime scores by, or the additive model's weights."""
    facts: dict[str, Any] = {"weight": weight, "calibration": lines.tolist()}
    if isinstance(part, PlainModel):
        scores_of_pairs = {"decision_function_shape": "ovo"} if part.kind == "pairs" else {}
        return facts | {"file": base64(slim_bytes(replace(part, options=scores_of_pairs)))}
    return facts | {
        "weights": part.weights.tolist(),
        "intercept": part.intercept.tolist(),
        "knots": KNOTS.tolist(),
    }
