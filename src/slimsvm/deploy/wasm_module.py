"""A model, or that of a table with its encoders, as one ES module, with the C runtime as WebAssembly in it.

The runtime scores by the model's file; rows of a table are encoded by JavaScript.
"""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.deploy.decisions import KINDS
from slimsvm.deploy.plain_model import PlainModel, describe, whole_numbers
from slimsvm.deploy.rows import CsrRows
from slimsvm.deploy.steps import FORMS_WITH_STEPS, refuse
from slimsvm.deploy.table_model import TableModel, counted
from slimsvm.modelfile import model_parts
from slimsvm.tables.encoders import Encoder, Levels, ManyLevels, Numbers, Times, places_of
from slimsvm.tables.splines import KNOTS
from slimsvm.whole_file import write_whole

FOLDER = Path(__file__).parent
MODULE, TABLE, RUNTIME = FOLDER / "slimsvm.mjs", FOLDER / "slimsvm_table.mjs", FOLDER / "slimsvm_predict.wasm"
ESTIMATORS = {kind: estimator for estimator, kind in KINDS.items()} | dict.fromkeys(
    ("counts", "targets", "quantiles"), "SVR"
)
# Losses that predictions depend on.
LOSSES = {"counts": {"loss": "poisson"}, "quantiles": {"loss": "quantile"}}
INSTANCE = """
// {text}
const runtime = "{runtime}";
const file = "{file}";
export default await SlimModel.load(bytesOf(runtime), bytesOf(file));
"""
TABLE_INSTANCE = """
// {text}
const runtime = "{runtime}";
const facts = {facts};
export default await SlimTable.load(bytesOf(runtime), facts);
"""


def write_wasm(model: PlainModel, path: Any) -> str:
    """Write a model as an ES module, and say in a sentence what was written; `Fitted.to_wasm` lists the errors."""
    refuse(model.encoding, "a WebAssembly module", FORMS_WITH_STEPS)
    check_labels(model.classes)
    parts = {"runtime": base64(runtime_bytes()), "file": base64(slim_bytes(model)), "text": describe(model)}
    text = MODULE.read_text(encoding="utf-8") + INSTANCE.format(**parts)
    write_whole(path, [text])
    return f"{path}: ES module with WebAssembly, {describe(model)}, {len(text):,} bytes"


def check_labels(classes: np.ndarray | None) -> None:
    """Raise an error if labels are whole numbers that JavaScript's numbers do not hold."""
    if classes is not None and classes.dtype.kind in "iu":
        whole_numbers(classes, 2**53 - 1, "JavaScript")


def runtime_bytes() -> bytes:
    """The C runtime, compiled to WebAssembly when the package was made."""
    if not RUNTIME.exists():
        raise FileNotFoundError(
            f"there is no {RUNTIME}, the C runtime as WebAssembly: wheels have it, and in a checkout `make wasm` "
            "compiles it with zig from PyPI"
        )
    return RUNTIME.read_bytes()


def base64(content: bytes) -> str:
    """The bytes as text."""
    return b64encode(content).decode("ascii")


def slim_bytes(model: PlainModel) -> bytes:
    """A model file with what prediction needs alone; vectors that float32 holds exactly take 4 bytes a number."""
    kernel, arrays = model.kernel.to_header()
    header: dict[str, Any] = {
        "estimator": ESTIMATORS.get(model.kind, "SVC"),
        "kernel": kernel,
        "dtype": "float64",
        "params": model.options | LOSSES.get(model.kind, {}),
        "fitted": {
            "n_features_in_": model.n_features // (2 * int(model.options.get("window", 0)) + 1),
            "multilabel_": model.kind == "labels",
            "multi_class_": "ovo" if model.kind == "pairs" else "crammer-singer",
        },
    }
    arrays |= {"intercept": model.intercept, "plain": model.plain}
    if model.classes is not None:
        is_object = model.classes.dtype.kind == "O"
        header["fitted"]["classes_are_objects"] = is_object
        arrays["classes"] = model.classes.astype(str) if is_object else model.classes
    if model.calibration is not None:
        arrays["calibration"] = model.calibration
    if model.scaling is not None:
        header["scaling"] = {}
        arrays |= {f"scaling_{name}": part for name, part in model.scaling._asdict().items() if part is not None}
    _add_vectors(model, header, arrays)
    return b"".join(map(bytes, model_parts(header, arrays, version=1 if model.scaling is None else 2)))


def _add_vectors(model: PlainModel, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """The vectors with their coefficients, or the weights that are not 0."""
    arrays["coef"] = model.coef
    if model.vectors is None:
        used = np.flatnonzero(model.coef.any(axis=1))
        header["weights"] = [len(used), len(model.coef)]
        arrays |= {"features": used, "coef": model.coef[used]}
    elif isinstance(model.vectors, CsrRows):
        header["basis_shape"] = [int(n) for n in model.vectors.shape]
        arrays |= {"basis_data": _short(model.vectors.data), "basis_indices": model.vectors.indices,
                   "basis_indptr": model.vectors.indptr}  # fmt: skip
    else:
        header["basis_shape"] = list(model.vectors.shape)
        arrays["basis"] = _short(model.vectors)


def _short(values: np.ndarray) -> np.ndarray:
    """Numbers as float32 if that changes none of them."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values


# -- tables -----------------------------------------------------------------------------------------------------------


def write_table_wasm(model: TableModel, path: Any) -> str:
    """Write encoders and models as an ES module; say what was written."""
    check_labels(model.classes)
    facts: dict[str, Any] = {
        "classes": None if model.classes is None else model.classes.tolist(),
        "mean": model.mean,
        "spread": model.spread,
        "columns": [column_facts(encoder) for encoder in model.encoding.encoders],
        "models": [model_facts(*each) for each in model.members],
    }
    text = f"a table of {len(facts['columns'])} columns, {counted(model.members)}"
    parts = {"runtime": base64(runtime_bytes()), "facts": json.dumps(facts, allow_nan=False), "text": text}
    whole = MODULE.read_text(encoding="utf-8") + TABLE.read_text(encoding="utf-8") + TABLE_INSTANCE.format(**parts)
    write_whole(path, [whole])
    return f"{path}: ES module with WebAssembly, {text}, {len(whole):,} bytes"


def column_facts(encoder: Encoder) -> dict[str, Any]:
    """What JavaScript knows of a column; of levels the places of all texts that stand for them."""
    facts: dict[str, Any] = {"name": encoder.name, "kind": encoder.kind if encoder.width else "left out"}
    if isinstance(encoder, Numbers | Times):
        facts |= {"values": encoder.values.tolist(), "deviates": encoder.deviates.tolist()}
        facts |= {"flag": encoder.flags_missing}
    if isinstance(encoder, Numbers) and encoder.straight:
        values, deviates = (part.tolist() for part in encoder.line)
        facts["straight"] = {"values": values, "deviates": deviates, "middle": encoder.middle}
    if isinstance(encoder, Times):
        facts["cycles"] = list(encoder.cycles)
    if isinstance(encoder, Levels | ManyLevels):
        places = places_of(encoder.levels)
        facts |= {"missing": places.pop(None, None), "places": list(places.items()), "n": len(encoder.levels)}
    if isinstance(encoder, ManyLevels):
        facts["means"] = encoder.features_of_levels.tolist()
    return facts


def model_facts(weight: float, part: Any, lines: np.ndarray) -> dict[str, Any]:
    """What JavaScript knows of a model: the file that the runtime scores by, or the weights of one without a kernel."""
    facts: dict[str, Any] = {"weight": weight, "calibration": lines.tolist(), "n": part.n_features}
    if isinstance(part, PlainModel):
        scores_of_pairs = {"decision_function_shape": "ovo"} if part.kind == "pairs" else {}
        return facts | {"file": base64(slim_bytes(replace(part, options=scores_of_pairs)))}
    return facts | {
        "weights": part.weights.tolist(),
        "intercept": part.intercept.tolist(),
        "flags": part.are_flags.tolist(),
        "knots": KNOTS.tolist(),
    }
