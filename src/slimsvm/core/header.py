"""Reads slimsvm.h: the structures and functions of the library, field by field, as the header's top describes them."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_STRUCT = re.compile(r"^struct slimsvm_(\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(r"^#define SLIMSVM_(\w+) (\d+)$", re.MULTILINE)
_FIELD = re.compile(r"^\s*(const )?(struct )?(\w+)(\*)? (\w+);\s*(?://\s*(.*))?$")
_NOTE = re.compile(
    r"(?P<type>real|raw|whole|flags)?\s*\((?P<shape>[^)]*)\)(?P<optional>\?)?\s*"
    r"(?:in (?P<lo>\S+)\.\.(?P<hi>\S+)|offsets to (?P<last>\S+))?"
)
_SCALARS = {"int64_t": ctypes.c_int64, "int32_t": ctypes.c_int32, "double": ctypes.c_double}
_DTYPES = {
    "double": np.dtype(np.float64),
    "float": np.dtype(np.float32),
    "int64_t": np.dtype(np.int64),
    "int32_t": np.dtype(np.int32),
    "uint8_t": np.dtype(np.uint8),
    "int8_t": np.dtype(np.int8),
}
_FAMILIES = {
    "real": (np.dtype(np.float32), np.dtype(np.float64)),
    "raw": (np.dtype(np.float32), np.dtype(np.float64)),
    "whole": (np.dtype(np.int32), np.dtype(np.int64)),
}
SIZE_FIELDS = {"real_size": "real", "raw_size": "raw", "whole_size": "whole"}


@dataclass(frozen=True)
class Axis:
    """One axis of an array: a name that is bound to its length less ``added``, or else a sum of names and numbers."""

    text: str
    name: str
    added: int

    def value(self, names: dict[str, Any]) -> int:
        """What the text stands for."""
        return evaluate(self.text, names)


@dataclass
class Field:
    """One field of a structure."""

    name: str
    ctype: Any
    is_array: bool = False
    structure: str = ""  # of a pointer to another structure
    dtypes: tuple[np.dtype, ...] = ()
    family: str = ""  # real, raw or whole
    axes: tuple[Axis, ...] = ()
    stride: str = ""  # field with the distance of rows
    optional: bool = False
    is_written: bool = False
    is_returned: bool = False
    is_given: bool = True  # a scalar that the caller gives
    bounds: tuple[str, str] | None = None
    last: str = ""  # of offsets


@dataclass
class Layout:
    """A structure: its fields, and the class of its memory."""

    name: str
    fields: list[Field]
    memory: Any
    by_name: dict[str, Field]
    # Arguments that must be given, and those that may be None; code that checks arguments, by their names.
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    checks: dict[tuple[object, ...], Any] = field(default_factory=dict)

    @property
    def is_call(self) -> bool:
        """Whether it holds a function's arguments."""
        return self.name.endswith("_call")


def evaluate(text: str, names: dict[str, Any]) -> int:
    """A name, a number, or such joined by +, - and *; ``rows.n`` is the field n of the structure given as rows."""
    if text in names:
        return names[text]
    total, sign = 0, 1
    for token in re.findall(r"[+-]|[^+\-\s]+", text):
        if token in "+-":
            sign = 1 if token == "+" else -1
            continue
        product = 1
        for factor in token.split("*"):
            product *= int(factor) if factor.isdigit() else _named(factor, names)
        total += sign * product
    return total


def _named(name: str, names: dict[str, Any]) -> int:
    owner, _, rest = name.partition(".")
    if not rest:
        return names.get(name, 0)
    if names.get(owner) is None:
        raise ValueError(f"{name} is asked for, but no {owner} was given")
    return getattr(names[owner].memory, rest)


def _axis(text: str) -> Axis:
    match = re.fullmatch(r"([a-z_]\w*)(?: ([+-] \d+))?", text, re.IGNORECASE)
    return Axis(text, match[1], int((match[2] or "0").replace(" ", ""))) if match else Axis(text, "", 0)


def _array_field(name: str, is_const: bool, kind: str, note: str) -> Field:
    match = _NOTE.match(note)
    if match is None:
        raise ValueError(f"slimsvm.h: the comment of {name} does not begin with a shape: {note!r}")
    family = match["type"] or ""
    if family == "flags":
        dtypes: Any = (np.dtype(np.bool_),)
        family = ""
    else:
        dtypes = _FAMILIES[family] if family else (_DTYPES[kind],)
    shape, _, stride = match["shape"].partition(":")
    axes = tuple(_axis(part.strip()) for part in shape.split(",") if part.strip())
    bounds = (match["lo"], match["hi"]) if match["lo"] else None
    return Field(
        name, ctypes.c_void_p, True, "", dtypes, family, axes, stride.strip(), bool(match["optional"]),
        not is_const, False, True, bounds, match["last"] or "",
    )  # fmt: skip


def _parse_field(line: str) -> Field:
    match = _FIELD.match(line)
    if match is None:
        raise ValueError(f"slimsvm.h: not understood: {line!r}")
    is_const, is_struct, kind, is_pointer, name, note = match.groups()
    note = note or ""
    if is_struct:
        return Field(name, ctypes.c_void_p, structure=kind.removeprefix("slimsvm_"), optional=note.startswith("?"))
    if is_pointer:
        return _array_field(name, bool(is_const), kind, note)
    returned, both = note.startswith("->"), note.startswith("<->")
    return Field(name, _SCALARS[kind], is_returned=returned or both, is_given=not returned)


def parse_constants(text: str) -> dict[str, int]:
    """Numbers that a header defines, by name without ``SLIMSVM_``."""
    return {name: int(number) for name, number in _CONSTANT.findall(text)}


def parse(text: str) -> dict[str, Layout]:
    """Layouts of all structures in a header, by name without ``slimsvm_``."""
    layouts = {}
    for name, body in _STRUCT.findall(text):
        fields = [_parse_field(line) for line in body.splitlines() if line.strip()]
        memory = type(name, (ctypes.Structure,), {"_fields_": [(f.name, f.ctype) for f in fields]})
        by_name = {f.name: f for f in fields}
        lengths = {axis.name for f in fields for axis in f.axes} | {f.stride for f in fields}
        for f in fields:
            if f.name in lengths or f.name in SIZE_FIELDS:
                f.is_given = False
        optional = frozenset(f.name for f in fields if f.optional)
        required = frozenset(f.name for f in fields if f.is_given) - optional - {"workspace"}
        layouts[name] = Layout(name, fields, memory, by_name, required, optional)
    return layouts
