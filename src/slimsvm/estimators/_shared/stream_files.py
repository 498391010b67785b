"""What a stream of chunks goes on from, as JSON and arrays of a model file, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from slimsvm.parts.budgeted.box_dual import BudgetState
from slimsvm.parts.budgeted.one_class_chunks import OneClassState
from slimsvm.parts.dual_ascent.lasvm_chunks import OnlineState
from slimsvm.parts.resuming import GENERATORS, Halfway, generator_at
from slimsvm.rows import is_sparse
from slimsvm.tasks import TASKS, Examples, Task

CSR_PARTS = ("data", "indices", "indptr")
KNOWN = {known.__name__: known for known in (BudgetState, OneClassState, OnlineState, Examples, Halfway)}


def pack_stream(machine: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any] | None:
    """JSON of a machine's stream, whose arrays join ``arrays``; None where it has none, or one that a file cannot hold.

    Arrays that are those of the model already are not stored again.
    """
    if type(getattr(machine, "_stream", None)) not in KNOWN.values():
        return None
    random = machine._stream_parts[2].bit_generator.state
    if random["bit_generator"] not in GENERATORS:
        return None
    return {"state": pack(machine._stream, arrays), "random": pack(random, arrays), "centre": float(machine._centre)}


def unpack_stream(machine: Any, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Give a machine the stream that `pack_stream` described."""
    random = unpack(header["random"], arrays)
    generator = generator_at(random)
    machine._stream = unpack(header["state"], arrays)
    machine._stream_parts = machine.model_.kernel, None, generator
    machine._centre = header["centre"]


def pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """JSON of a value, whose arrays join ``arrays``."""
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
    """The name of an array that is stored, after it is."""
    for name, other in arrays.items():
        if other.dtype == array.dtype and other.shape == array.shape and np.array_equal(other, array):
            return name
    name = f"stream_{len(arrays)}"
    arrays[name] = array
    return name


def unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """What `pack` was given."""
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
    return KNOWN[value["known"]](**items) if "known" in value else items
