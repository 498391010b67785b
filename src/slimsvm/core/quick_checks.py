"""Checks of a call's arguments as straight Python code, made once for each function and set of arguments.

A call across the border must not cost more than a few empty calls. The code made here checks the same as
`slimsvm.core.border.fill`, which walks over the fields and takes ten times as long: it returns True where all is right.
Where something is not it returns False, and `fill` finds out what, and says it.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from slimsvm.core.library import Field, Layout, library

# The bits that an array's ``flags.num`` must have.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400


def _slow_address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


# NumPy's C interface has the address of an array's numbers right after the head that every object begins with. The
# memory of the process as an array of words: to read one of them is the fastest that Python can do.
_AFTER_HEAD = object.__basicsize__
_WORD = ctypes.sizeof(ctypes.c_size_t)
_words = (ctypes.c_size_t * (sys.maxsize // (2 * _WORD))).from_address(0)


def _quick_address(array: np.ndarray) -> int:
    return _words[(id(array) + _AFTER_HEAD) // _WORD]


_probe = np.arange(3.0)
_IS_QUICK = _quick_address(_probe) == _slow_address(_probe)
address_of: Callable[[np.ndarray], int] = _quick_address if _IS_QUICK else _slow_address
# The same as a line of the code made here, where a function's call would take as long as its work.
_ADDRESS = f"words[(id({{}}) + {_AFTER_HEAD}) // {_WORD}]" if _IS_QUICK else "address_of({})"


def quick_check(
    layout: Layout, given: Iterable[str], known: Iterable[str], arguments: Iterable[str], keep: bool
) -> Callable[..., bool]:
    """Generate code ``check(memory, names, **arguments)`` that writes valid arguments into a structure's memory.

    Parameters
    ----------
    layout : Layout
    given : names of those that are not None
    known : names of the numbers and structures that ``names`` holds already
    arguments : names of all
    keep : whether ``names`` takes the numbers and structures that these arguments tell
    """
    bound: set[str] = set(known)
    lines = [f"v_{name} = names[{name!r}]" for name in sorted(bound)]
    fields = [layout.by_name[name] for name in given]
    # Numbers and structures first: bounds of arrays may name them.
    for field in sorted(fields, key=lambda field: field.is_array):
        lines += _array_lines(field, bound) if field.is_array else _number_lines(field, bound)
    for field in fields:
        if field.is_array:
            lines += _bound_lines(field, bound)
    lines += [f"memory.{name} = v_{name}" for name in sorted(bound - set(known)) if _is_length(layout, name)]
    if keep:
        lines += [f"names[{name!r}] = v_{name}" for name in sorted(bound - set(known))]
    lines[:0] = [f"if {name} is not None: return False" for name in arguments if name not in given]
    body = "\n        ".join([*lines, "return True"])
    listed = "".join(f", {name}" for name in arguments)
    source = f"def check(memory, names{listed}):\n    try:\n        {body}\n    except FAILURES:\n        return False"
    scope: dict[str, Any] = {
        "FAILURES": (TypeError, ValueError, AttributeError),
        "ndarray": np.ndarray,
        "address_of": address_of,
        "words": _words,
        "find_outside": library().slimsvm_find_outside,
        "find_fall": library().slimsvm_find_fall,
        **{f"T{i}_{field.name}": dtype for field in fields for i, dtype in enumerate(field.dtypes)},
    }
    exec(source, scope)
    return scope["check"]


def _is_length(layout: Layout, name: str) -> bool:
    return name in layout.by_name and not layout.by_name[name].structure


def _number_lines(field: Field, bound: set[str]) -> list[str]:
    name = field.name
    if field.structure:
        bound.add(name)
        refused = f"{name}.layout.name != {field.structure!r}"
        if field.optional:
            return [f"v_{name} = {name}", f"if {name} is not None:", f"    if {refused}: return False",
                    f"    memory.{name} = {name}.address"]  # fmt: skip
        return [f"v_{name} = {name}", f"if {refused}: return False", f"memory.{name} = {name}.address"]
    lines = [f"memory.{name} = {name}"]
    if name in bound:
        return [f"if {name} != v_{name}: return False", *lines]
    bound.add(name)
    return [f"v_{name} = {name}", *lines]


def _array_lines(field: Field, bound: set[str]) -> list[str]:
    name, lines = field.name, []
    types = " and ".join(f"type_ is not T{i}_{name}" for i in range(len(field.dtypes)))
    wanted = _ALIGNED | (_WRITEABLE if field.is_written else 0) | (0 if field.stride else _CONTIGUOUS)
    lines += [
        f"if {name}.__class__ is not ndarray: return False",
        f"type_ = {name}.dtype",
        f"if {types} or {name}.flags.num & {wanted} != {wanted}: return False",
        f"memory.{name} = a_{name} = {_ADDRESS.format(name)}",
        "".join(f"s{i}_{name}, " for i in range(len(field.axes))) + f"= {name}.shape",
    ]
    if field.stride:
        lines += [f"if {name}.flags.num & {_CONTIGUOUS}: step = s1_{name}", "else:", *_step_lines(name)]
        lines += _bind(field.stride, "step", bound)
    if field.family:
        lines += _bind(field.family + "_size", "type_.itemsize", bound)
    for i, axis in enumerate(field.axes):
        if axis.name:
            length = f"s{i}_{name}" + (f" - {axis.added}" if axis.added else "")
            lines += _bind(axis.name, length, bound)
            if axis.added > 0:
                lines.append(f"if v_{axis.name} < 0: return False")
    return lines


def _step_lines(name: str) -> list[str]:
    """Find the step from one row to the next, in numbers, where rows are C-contiguous but lie apart."""
    return [
        f"    size, (outer, inner) = {name}.itemsize, {name}.strides",
        f"    if outer % size or outer < s1_{name} * size or not {name}.size: return False",
        f"    if inner != size and s1_{name} > 1: return False",
        "    step = outer // size",
    ]


def _bind(name: str, value: str, bound: set[str]) -> list[str]:
    if name in bound:
        return [f"if v_{name} != {value}: return False"]
    bound.add(name)
    return [f"v_{name} = {value}"]


def _bound_lines(field: Field, bound: set[str]) -> list[str]:
    """Check lengths that are sums of others, and whole numbers within bounds."""
    name = field.name
    texts = [*(axis.text for axis in field.axes if not axis.name), *(field.bounds or ()), field.last or ""]
    if any(owner not in bound for text in texts for owner in re.findall(r"([A-Za-z_]\w*)\.", text)):
        return ["return False"]  # a structure is not there yet: `fill` says what that means
    lines = [
        f"if s{i}_{name} != {_expression(axis.text, bound)}: return False"
        for i, axis in enumerate(field.axes)
        if not axis.name
    ]
    place = f"a_{name}, {name}.itemsize, {name}.size"
    if field.bounds:
        lo, hi = (_expression(text, bound) for text in field.bounds)
        lines.append(f"if {name}.size and find_outside({place}, {lo}, {hi}) >= 0: return False")
    if field.last:
        lines.append(f"if find_fall({place}, {_expression(field.last, bound)}) >= 0: return False")
    return lines


def _expression(text: str, bound: set[str]) -> str:
    def named(match: re.Match[str]) -> str:
        owner, _, rest = match[0].partition(".")
        if rest:
            return f"v_{owner}.memory.{rest}"
        return f"v_{owner}" if owner in bound else "0"

    return re.sub(r"[A-Za-z_][\w.]*", named, text)
