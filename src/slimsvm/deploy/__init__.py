"""Models where there is no scikit-learn: prediction with NumPy alone, and the other forms a model is shipped in.

Nothing here trains: a model is what its file says, and of its kernel only the formula is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple


class Target(NamedTuple):
    """A form that models are written in: its writer as "module:function", its files' suffix, what it is, and the
    writer's options.
    """

    writer: str
    suffix: str
    text: str
    options: tuple[str, ...] = ()


TARGETS = {
    "c": Target(
        "c_header:write_c",
        ".h",
        "a C99 header without allocation and without a library",
        ("name", "dtype", "rows", "alpha"),
    ),
    "onnx": Target("onnx_graph:write_onnx", ".onnx", "an ONNX graph of standard operators", ("dtype", "alpha")),
    "wasm": Target("wasm_module:write_wasm", ".mjs", "an ES module that runs WebAssembly in a browser or in Node"),
    "json": Target("json_model:write_json_model", ".json", "the model's numbers, for a predictor of your own"),
}


def forms_with(option: str) -> list[str]:
    """Names of the forms whose writers have an option."""
    return [name for name, target in TARGETS.items() if option in target.options]


def writer_of(target: str) -> Callable[..., str]:
    """``write(model, path) -> sentence`` of a target, imported now."""
    module, _, function = TARGETS[target].writer.partition(":")
    return getattr(import_module(f"slimsvm.deploy.{module}"), function)


# Forms that hold the encoders of a table, too.
OF_TABLES = {
    "c": "c_table:write_table_c",
    "onnx": "onnx_table:write_table_onnx",
    "wasm": "wasm_table:write_table_wasm",
    "json": "json_model:write_table_json",
}


def table_writer_of(target: str) -> Callable[..., str]:
    """The same for a model of a table; a ValueError if there is no such form."""
    if target not in OF_TABLES:
        raise ValueError(f"a table is exported to {', '.join(map(repr, OF_TABLES))}; found {target!r}")
    module, _, function = OF_TABLES[target].partition(":")
    return getattr(import_module(f"slimsvm.deploy.{module}"), function)
