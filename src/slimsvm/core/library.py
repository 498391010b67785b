"""libslimsvm, loaded from the package's own folder, and the parser of slimsvm.h, whose format its top describes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ISAS = ("baseline", "avx2", "avx512")
_FOLDER = Path(__file__).resolve().parent
_NAMES = {"win32": "slimsvm.dll", "darwin": "libslimsvm.dylib"}


def header_path() -> Path:
    """Return the path of slimsvm.h: in a checkout beside the core's sources, in an installation beside the library."""
    in_checkout = _FOLDER.parents[2] / "core" / "slimsvm.h"
    return in_checkout if in_checkout.exists() else _FOLDER / "slimsvm.h"


def library_path() -> Path:
    """Return the path of the library: beside this file, or where the environment variable SLIMSVM_LIBRARY says."""
    told = os.environ.get("SLIMSVM_LIBRARY")
    return Path(told).resolve() if told else _FOLDER / _NAMES.get(sys.platform, "libslimsvm.so")


@cache
def library() -> ctypes.CDLL:
    """Return the library, loaded once.

    Raises
    ------
    ImportError
        It is not there, is of other sources than the Python files, or SLIMSVM_ISA asks for what there is not.
    """
    path = library_path()
    if not path.exists():
        raise ImportError(f"slimsvm's compiled core is missing ({path}): build it with `make` or `pip install .`")
    loaded = ctypes.CDLL(str(path))
    loaded.slimsvm_abi.restype = ctypes.c_char_p
    if loaded.slimsvm_abi().decode() != hashlib.sha256(header_path().read_bytes()).hexdigest():
        raise ImportError(f"slimsvm's compiled core ({path}) is of another version: rebuild it with `make`")
    loaded.slimsvm_isa.restype = loaded.slimsvm_best_isa.restype = loaded.slimsvm_status_text.restype = ctypes.c_char_p
    for name in (
        "slimsvm_vector_bytes",
        "slimsvm_panel_bytes",
        "slimsvm_find_outside",
        "slimsvm_find_fall",
        "slimsvm_times_shared",
        "slimsvm_times_woken",
    ):
        getattr(loaded, name).restype = ctypes.c_int64
    loaded.slimsvm_find_outside.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 4]
    loaded.slimsvm_share_from.argtypes, loaded.slimsvm_share_from.restype = [ctypes.c_double] * 2, None
    loaded.slimsvm_find_fall.argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 3]
    _check_isa(loaded)
    return loaded


def _check_isa(loaded: ctypes.CDLL) -> None:
    asked, got = os.environ.get("SLIMSVM_ISA"), loaded.slimsvm_isa().decode()
    if asked is not None and asked not in ISAS:
        raise ImportError(f"SLIMSVM_ISA must be one of {', '.join(ISAS)}, got {asked!r}")
    if asked is not None and asked != got:
        raise ImportError(f"SLIMSVM_ISA asks for {asked}, but this machine runs {loaded.slimsvm_best_isa().decode()}")


def isa() -> str:
    """Return the instruction set that compiled code uses: "baseline", "avx2" or "avx512".

    Examples
    --------
    >>> from slimsvm.core import isa
    >>> isa() in ("baseline", "avx2", "avx512")
    True
    """
    return library().slimsvm_isa().decode()


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
    """One axis of an array. Its length less ``added`` binds a name, or equals a sum of names and numbers."""

    text: str
    name: str
    added: int

    def value(self, names: dict[str, Any]) -> int:
        """Return the number that the text stands for."""
        return evaluate(self.text, names)


@dataclass
class Field:
    """One field of a structure."""

    name: str
    ctype: Any
    is_array: bool = False
    structure: str = ""  # the structure that a pointer points to
    dtypes: tuple[np.dtype, ...] = ()
    family: str = ""  # real, raw or whole
    axes: tuple[Axis, ...] = ()
    stride: str = ""  # the field with the distance of rows
    optional: bool = False
    is_written: bool = False
    is_returned: bool = False
    is_given: bool = True  # a scalar that the caller gives
    bounds: tuple[str, str] | None = None
    last: str = ""  # the last entry of offsets


@dataclass
class Layout:
    """A structure: its fields, and the class of its memory."""

    name: str
    fields: list[Field]
    memory: Any
    by_name: dict[str, Field]
    # The arguments that must be given, and those that may be None; by their names, code that checks arguments.
    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    checks: dict[tuple[object, ...], Any] = field(default_factory=dict)


def evaluate(text: str, names: dict[str, Any]) -> int:
    """Return the value of names and numbers joined by +, - and *; ``rows.n`` is the field n of the structure rows."""
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
    """Return numbers that a header defines, by name without ``SLIMSVM_``."""
    return {name: int(number) for name, number in _CONSTANT.findall(text)}


def parse(text: str) -> dict[str, Layout]:
    """Return layouts of all structures in a header, by name without ``slimsvm_``."""
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
