"""Models where there is no scikit-learn: prediction with NumPy alone, and the other forms a model is shipped in.

Nothing here trains: a model is what its file says, and of its kernel only the formula is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple


class Target(NamedTuple):
    """A form that models are written in."""

    writer: str  # "module:function"
    suffix: str  # of its files
    text: str  # what it is
    options: tuple[str, ...] = ()  # of the writer
    table_writer: str = ""  # the same for a model of a table, with its encoders


TARGETS = {
    "c": Target(
        "c_header:write_c",
        ".h",
        "a C99 header without allocation and without a library",
        ("name", "dtype", "rows", "alpha"),
        "c_table:write_table_c",
    ),
    "onnx": Target(
        "onnx_graph:write_onnx",
        ".onnx",
        "an ONNX graph of standard operators",
        ("dtype", "alpha"),
        "onnx_table:write_table_onnx",
    ),
    "wasm": Target(
        "wasm_module:write_wasm",
        ".mjs",
        "an ES module that runs WebAssembly in a browser or in Node",
        table_writer="wasm_module:write_table_wasm",
    ),
    "json": Target(
        "json_model:write_json_model",
        ".json",
        "the model's numbers, for a predictor of your own",
        table_writer="json_model:write_table_json",
    ),
}


def forms_with(option: str) -> list[str]:
    """Return the names of the forms whose writers have an option."""
    return [name for name, target in TARGETS.items() if option in target.options]


def writer_of(target: str, of_table: bool = False) -> Callable[..., str]:
    """Import and return ``write(model, path) -> sentence`` of a target; a ValueError if a table has no such form."""
    forms = [name for name, known in TARGETS.items() if known.table_writer]
    if of_table and target not in forms:
        raise ValueError(f"a table is exported to {', '.join(map(repr, forms))}; found {target!r}")
    writer = TARGETS[target].table_writer if of_table else TARGETS[target].writer
    module, _, function = writer.partition(":")
    return getattr(import_module(f"slimsvm.deploy.{module}"), function)
