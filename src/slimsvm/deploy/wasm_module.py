"""A model as one ES module: the C runtime as WebAssembly, the model's file, and what calls the one with the other."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.deploy.decisions import KINDS
from slimsvm.deploy.plain_model import PlainModel, describe, whole_numbers
from slimsvm.deploy.rows import CsrRows
from slimsvm.deploy.steps import FORMS_WITH_STEPS, refuse
from slimsvm.modelfile import model_parts
from slimsvm.whole_file import write_whole

FOLDER = Path(__file__).parent
MODULE, RUNTIME = FOLDER / "slimsvm.mjs", FOLDER / "slimsvm_predict.wasm"
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


def write_wasm(model: PlainModel, path: Any) -> str:
    """Write a model as an ES module; say in a sentence what was written.

    Raises
    ------
    FileNotFoundError
        The package came without the compiled runtime.
    ValueError
        Labels are whole numbers that JavaScript's numbers do not hold.
    """
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
    """The same numbers as float32 where these are the same."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values
