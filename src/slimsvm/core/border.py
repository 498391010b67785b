"""The border between Python and libslimsvm: every array is checked here against slimsvm.h, and nowhere else.

    rows = core.Rows(n_features=3, values=..., half=..., ...)    # a structure, made once: it keeps its arrays
    core.fold_rows(raw=X, centre=..., ...)                       # a call
    score = core.score_rows.prepare(points=points, ...)          # a call whose first arguments are checked once
    score(raw=X, labels=labels)                                  # … by as many threads at a time as like

Arguments are given by name. Lengths, sizes of types and workspaces follow from the arrays; a length that no given array
has is 0, or may be given.

A call must not cost more than a few empty calls: `quick_check` makes straight Python code, once for each function and
set of arguments, that checks the same as `fill`, which walks over the fields and takes ten times as long. The code
returns True where all is right. Where something is not it returns False, and `fill` finds out what, and says it.
"""

from __future__ import annotations

import ctypes
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import cache
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from slimsvm.core.clock import check_time, here
from slimsvm.core.library import Field, Layout, evaluate, header_path, library, parse, parse_constants

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
        lines += _binding_lines(field.stride, "step", bound)
    if field.family:
        lines += _binding_lines(field.family + "_size", "type_.itemsize", bound)
    for i, axis in enumerate(field.axes):
        if axis.name:
            length = f"s{i}_{name}" + (f" - {axis.added}" if axis.added else "")
            lines += _binding_lines(axis.name, length, bound)
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


def _binding_lines(name: str, value: str, bound: set[str]) -> list[str]:
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


NEEDS_WORKSPACE = 2
# For calls whose arguments come in two steps: an object that stands for the first step, and numbers by its arguments.
FIRST_STEP = -1
steps: dict[tuple[str | None, ...], int] = {}
step_numbers = count(1)


# A thread keeps the workspace of its largest call so far, if that is no larger than this.
SCRATCH_BYTES = 1 << 18


class _Scratch(threading.local):
    """A thread's workspace: the array, its address and its size, which change together."""

    held: tuple[np.ndarray | None, int | None, int] = None, None, 0


_scratch = _Scratch()


class CoreError(ValueError):
    """The error for an argument that the core cannot take."""


class Structure:
    """Arrays and numbers with addresses, for compiled code; a copy or a pickle makes its own.

    Attributes
    ----------
    memory : ctypes.Structure
        The structure, with the layout of slimsvm.h.
    arguments : dict
        The objects it was made from, to keep their arrays alive.
    """

    def __init__(self, layout: Layout, /, **arguments: Any) -> None:
        self.__dict__ |= arguments
        self.layout, self.arguments = layout, arguments
        self.memory = memory = layout.memory()
        check = layout.checks.get((*arguments, 0))  # `fill_quickly`, without its call, as in `Function`
        if check is None or not check(memory, {}, **arguments):
            _fill_first(layout, arguments, memory, {}, 0, ())
        self.address = ctypes.addressof(self.memory)

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, Any]]]:
        return structure, (self.layout.name, self.arguments)

    def __deepcopy__(self, memo: Any) -> Structure:
        return Structure(self.layout, **self.arguments)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the argument of this name."""


def structure(name: str, arguments: dict[str, Any]) -> Structure:
    """Make the structure ``slimsvm_<name>`` of these arguments."""
    return Structure(layouts()[name], **arguments)


@cache
def _header() -> str:
    return header_path().read_text(encoding="utf-8")


@cache
def layouts() -> dict[str, Layout]:
    """Return every structure of slimsvm.h."""
    return parse(_header())


@cache
def constants() -> dict[str, int]:
    """Return every number that slimsvm.h defines: codes of maps, losses, and so on."""
    return parse_constants(_header())


def fill_quickly(
    layout: Layout,
    arguments: dict[str, Any],
    memory: Any,
    names: dict[str, Any],
    step: int = 0,
    before: Iterable[str] = (),
) -> None:
    """Check and write arguments as `fill` does, by code made for their names; refuse missing arguments.

    Parameters
    ----------
    step : int
        0: these are all arguments. FIRST_STEP: the first of two steps, from which ``names`` takes what its arguments
        tell. Otherwise the second one, by the number that `steps` has for the first: ``names`` stays as it is.
    before : iterable of str
        Arguments that the memory has already.
    """
    check = layout.checks.get((*arguments, step))
    if check is None or not check(memory, names, **arguments):
        _fill_first(layout, arguments, memory, names, step, before)


def _fill_first(
    layout: Layout,
    arguments: dict[str, Any],
    memory: Any,
    names: dict[str, Any],
    step: int,
    before: Iterable[str],
) -> None:
    """Make the code that `fill_quickly` needs for a new set of arguments, or find out what is wrong with them."""
    is_first = step == FIRST_STEP
    missing = set() if is_first else layout.required.difference(before, arguments)
    if missing:
        raise CoreError(f"{layout.name} needs {', '.join(sorted(missing))}")
    given = {name: value for name, value in arguments.items() if value is not None}
    is_known = given.keys() <= layout.by_name.keys() and arguments.keys() - given.keys() <= layout.optional
    if is_known:
        key = (*arguments, step)
        check = layout.checks.get((*key, None, *given))
        if check is None:
            check = layout.checks[(*key, None, *given)] = quick_check(layout, given, names, arguments, is_first)
        layout.checks[key] = check  # the next call will have None in the same places
        if check(memory, names, **arguments):
            return
    fill(layout, arguments, memory, names if is_first else dict(names))


def fill(layout: Layout, arguments: dict[str, Any], memory: Any, names: dict[str, Any]) -> None:
    """Check arguments, and write them into a structure's memory; ``names`` are the numbers known so far."""
    later: list[tuple[Field, Any]] = []
    for name, value in arguments.items():
        field = layout.by_name.get(name)
        if field is None:
            raise CoreError(f"{layout.name} takes no argument {name!r}")
        if field.is_array:
            if value is None:
                if not field.optional:
                    raise CoreError(f"{layout.name}: {name} must be an array, got None")
                setattr(memory, name, None)
                continue
            _check_array(layout, field, value, names)
            setattr(memory, name, address_of(value))
            later.append((field, value))
        elif field.structure:
            _check_structure(layout, field, value)
            setattr(memory, name, None if value is None else value.address)
            names[name] = value
        else:
            number = _number(layout, field, value)
            _bind(layout, field, name, number, names)
            setattr(memory, name, number)
    for field, value in later:
        _check_against_names(layout, field, value, names)
    for field in layout.fields:
        if not field.is_given and not field.is_array and field.name in names:
            setattr(memory, field.name, names[field.name])


def _number(layout: Layout, field: Field, value: Any) -> Any:
    try:
        return float(value) if field.ctype is ctypes.c_double else value.__index__()
    except (AttributeError, TypeError, ValueError):
        raise CoreError(f"{layout.name}: {field.name} must be a number, got {value!r}") from None


def _check_structure(layout: Layout, field: Field, value: Any) -> None:
    if value is None and field.optional:
        return
    if not isinstance(value, Structure) or value.layout.name != field.structure:
        raise CoreError(f"{layout.name}: {field.name} must be a structure {field.structure}, got {type(value)}")


def _check_array(layout: Layout, field: Field, array: Any, names: dict[str, Any]) -> None:
    """Check an array's type, axes and order, and bind the names of its axes and the size of its family."""
    if not isinstance(array, np.ndarray) or array.dtype not in field.dtypes:
        accepted = " or ".join(str(dtype) for dtype in field.dtypes)
        found = array.dtype if isinstance(array, np.ndarray) else type(array)
        raise CoreError(f"{layout.name}: {field.name} must be an array of {accepted}, got {found}")
    if array.ndim != len(field.axes):
        raise CoreError(f"{layout.name}: {field.name} must have {len(field.axes)} axes, got shape {array.shape}")
    flags = array.flags
    if field.stride:
        _bind(layout, field, field.stride, _stride(layout, field, array), names)
    elif not flags.c_contiguous:
        raise CoreError(f"{layout.name}: {field.name} must be C-contiguous")
    if not flags.aligned or (field.is_written and not flags.writeable):
        raise CoreError(f"{layout.name}: {field.name} must be aligned" + " and writeable" * field.is_written)
    if field.family:
        _bind(layout, field, field.family + "_size", array.itemsize, names)
    for axis, length in zip(field.axes, array.shape):
        if axis.name:
            if length < axis.added:
                raise CoreError(f"{layout.name}: {field.name} must have at least {axis.added} numbers, got {length}")
            _bind(layout, field, axis.name, length - axis.added, names)


def _stride(layout: Layout, field: Field, array: np.ndarray) -> int:
    if array.size == 0:
        return array.shape[-1]
    step, rest = divmod(array.strides[0], array.itemsize)
    if array.ndim != 2 or rest or step < array.shape[1] or (array.shape[1] > 1 and array.strides[1] != array.itemsize):
        raise CoreError(f"{layout.name}: the rows of {field.name} must be C-contiguous, one after another")
    return step


def _bind(layout: Layout, field: Field, name: str, value: int, names: dict[str, Any]) -> None:
    known = names.setdefault(name, value)
    if known != value:
        raise CoreError(f"{layout.name}: {field.name} has {name} = {value}, where the others have {known}")


def _check_against_names(layout: Layout, field: Field, array: np.ndarray, names: dict[str, Any]) -> None:
    """Check lengths that are sums of others, and whole numbers within bounds."""
    for axis, length in zip(field.axes, array.shape):
        if not axis.name and axis.value(names) != length:
            raise CoreError(
                f"{layout.name}: {field.name} must have {axis.text} = {axis.value(names)} numbers, got {length}"
            )
    if not array.size or not (field.bounds or field.last):
        return
    address = address_of(array)
    if field.bounds:
        lo, hi = evaluate(field.bounds[0], names), evaluate(field.bounds[1], names)
        at = library().slimsvm_find_outside(address, array.itemsize, array.size, lo, hi)
        if at >= 0:
            raise CoreError(f"{layout.name}: {field.name} must be in {lo}..{hi - 1}, got {array.flat[at]} at {at}")
    else:
        last = evaluate(field.last, names)
        at = library().slimsvm_find_fall(address, array.itemsize, array.size, last)
        if at >= 0:
            raise CoreError(f"{layout.name}: {field.name} must rise from 0 to at most {last}, not so at {at}")


class Function:
    """A function of the library."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.name = layout.name.removesuffix("_call")
        self.compiled = getattr(library(), "slimsvm_" + self.name)
        self.compiled.argtypes, self.compiled.restype = [ctypes.c_void_p], ctypes.c_int32
        returned = [field.name for field in layout.fields if field.is_returned]
        self.results = attrgetter(*returned) if returned else None
        self.has_workspace = "workspace" in layout.by_name

    def __call__(self, complete: Any = None, /, **arguments: Any) -> Any:
        """Call it if there is time; return the numbers that slimsvm.h marks with ->: none, one, or a tuple.

        ``complete`` is the structure of a call whose arguments have been written, as `Prepared` does.
        """
        memory = complete
        if memory is None:
            layout = self.layout
            memory = layout.memory()
            check = layout.checks.get(
                (*arguments, 0)
            )  # `fill_quickly`, without its call: small fits make many of these
            if check is None or not check(memory, {}, **arguments):
                _fill_first(layout, arguments, memory, {}, 0, ())
        limit = here.limit
        if limit is not None and time.perf_counter() >= limit.interrupts_at:
            check_time()
        workspace = None
        if self.has_workspace and not memory.workspace:
            # A reference is kept here, too: a signal's handler may call the core before this call begins, and replace
            # it.
            workspace, memory.workspace, memory.n_workspace = _scratch.held
        status = self.compiled(ctypes.addressof(memory))
        if status == NEEDS_WORKSPACE and self.has_workspace:
            workspace = np.empty(memory.n_workspace, np.uint8)
            memory.workspace = address_of(workspace)
            status = self.compiled(ctypes.addressof(memory))
            if workspace.size <= SCRATCH_BYTES:
                _scratch.held = workspace, memory.workspace, workspace.size
        if status:
            raise CoreError(f"{self.name}: {library().slimsvm_status_text(status).decode()}")
        return None if self.results is None else self.results(memory)

    def prepare(self, **arguments: Any) -> Prepared:
        """Return the call with some arguments given, which are checked now; the others come with each call."""
        return Prepared(self, arguments)


class Prepared:
    """A call whose first arguments are checked. It can be pickled, and called from several threads together."""

    def __init__(self, function: Function, arguments: dict[str, Any]) -> None:
        self.function, self.arguments = function, arguments
        self.memory = function.layout.memory()
        self.names: dict[str, Any] = {}
        fill_quickly(function.layout, arguments, self.memory, self.names, FIRST_STEP)
        # Which arguments a second step may omit depends on the first one's arguments and on which are None.
        self.step = steps.setdefault((function.name, *arguments, None, *self.names), next(step_numbers))

    def __call__(self, **arguments: Any) -> Any:
        """Call it with the other arguments."""
        memory = self.function.layout.memory.from_buffer_copy(self.memory)
        fill_quickly(self.function.layout, arguments, memory, self.names, self.step, self.arguments)
        return self.function(memory)

    def __reduce__(self) -> tuple[Any, tuple[str, dict[str, Any]]]:
        return _prepared, (self.function.name, self.arguments)


def _prepared(name: str, arguments: dict[str, Any]) -> Prepared:
    return function(name).prepare(**arguments)


@cache
def function(name: str) -> Function:
    """Return the function ``slimsvm_<name>`` of the library."""
    return Function(layouts()[name + "_call"])
