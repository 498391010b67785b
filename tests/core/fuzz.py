"""Calls every function of the core with arguments that are wrong in some way. Run as a program, by test_border.py:

    python tests/core/fuzz.py TIMES SEED [FUNCTION ...]

Each call begins with arguments that fit one another: drawn at random from what slimsvm.h says, or those of a real fit.
Then some are changed. A call may end with a result or with an exception; memory beyond its arrays must be as before,
and so must the arrays that it only reads. The name and number of each call are written to the standard output before it
is made, so that the last line names the call that ended the process.
"""

import ctypes
import faulthandler
import pickle
import sys

import numpy as np
from real_calls import real_calls

from slimsvm.core.border import Structure, function, layouts, structure
from slimsvm.core.library import evaluate

SECONDS = 20  # that a call may take before the process is ended
SIZES = (0, 1, 2, 3, 5, 8, 16, 33, 64, 130)
WHOLE = (0, 1, 2, 3, 4, 7, 64, 1000, -1, -2, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**64)
REAL = (0.0, 1.0, -1.0, 0.5, 1e-300, 1e300, -1e300, np.nan, np.inf, -np.inf)
NO_NUMBERS = ("text", None, 1.5, [1], object())
DTYPES = ("f4", "f8", "i4", "i8", "u1", "?", "f2", ">f8", ">i8", "c16", "O", "U3")
# Bytes on each side of an array; the address sanitizer has its own.
BORDER = 0 if hasattr(ctypes.CDLL(None), "__asan_init") else 64
MARK = 0xA5


class Guarded(bytearray):
    """Memory of an array, with bytes on both sides that nobody may write."""

    def is_whole(self):
        """Whether these bytes are as they were."""
        return all(byte == MARK for byte in (*self[:BORDER], *self[len(self) - BORDER :]))


def guarded(array):
    """A copy of an array in guarded memory; an array of objects as it is, since only the border sees it."""
    if array.dtype.hasobject:
        return array
    memory = Guarded(bytes([MARK]) * (array.nbytes + 2 * BORDER))
    copy = np.ndarray(array.shape, array.dtype, memory, BORDER)
    copy[...] = array
    return copy


def is_whole(array):
    """Whether the memory around an array, or around what it is a part of, is as it was."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return not isinstance(array.base, Guarded) or array.base.is_whole()


# ---------------------------------------------------------------- arguments that fit one another


class Draw:
    """Random arguments, as slimsvm.h describes them."""

    def __init__(self, rng):
        self.rng = rng
        self.sizes = {family: int(rng.choice([4, 8])) for family in ("real", "raw", "whole")}

    def arguments(self, layout):
        """Arguments of a function or a structure."""
        rng, names, found = self.rng, {}, {}
        usual = int(rng.choice(SIZES))
        for field in layout.fields:
            if not field.is_array and not field.structure and field.is_given:
                found[field.name] = self.number(field)
            elif field.structure:
                inner = layouts()[field.structure]
                found[field.name] = names[field.name] = structure(inner.name, self.arguments(inner))
        for field in layout.fields:
            for name in {axis.name for axis in field.axes if axis.name}:
                names.setdefault(name, usual if rng.random() < 0.7 else int(rng.choice(SIZES)))
        names |= {name: value for name, value in found.items() if isinstance(value, int)}
        for field in layout.fields:
            if field.is_array and field.name != "workspace" and not (field.optional and rng.random() < 0.3):
                found[field.name] = self.array(field, names)
        return found

    def number(self, field):
        """A number that is likely to be one that the function can take."""
        if field.ctype is ctypes.c_double:
            return float(self.rng.choice([0.0, 0.5, 1.0, 10.0]))
        return int(self.rng.choice([0, 1, 1, 2, 3, 4, 8, 16, 33, 64]))

    def array(self, field, names):
        """An array of its shape, with numbers within its bounds."""
        rng, shape = self.rng, tuple(max(0, evaluate(axis.text, names)) for axis in field.axes)
        dtype = field.dtypes[0]
        if field.family:
            dtype = next(dtype for dtype in field.dtypes if dtype.itemsize == self.sizes[field.family])
        if field.last:
            last = max(0, evaluate(field.last, names))
            values = np.sort(rng.integers(0, last + 1, shape))
            if values.size and rng.random() < 0.8:
                values[0], values[-1] = 0, last
        elif field.bounds:
            lo, hi = (evaluate(text, names) for text in field.bounds)
            values = rng.integers(lo, max(hi, lo + 1), shape)
        elif dtype.kind == "f":
            values = rng.normal(size=shape)
        else:
            values = rng.integers(0, 3, shape)
        return guarded(np.asarray(values).astype(dtype))


# ---------------------------------------------------------------- arguments that do not


def changed(rng, value, field):
    """The argument in a wrong form, or with other numbers."""
    if isinstance(value, Structure):
        return changed_structure(rng, value)
    if isinstance(value, np.ndarray) and rng.random() < 0.95:
        return changed_array(rng, value)
    if field is not None and field.ctype is ctypes.c_double and rng.random() < 0.8:
        return float(rng.choice(REAL))
    return WHOLE[rng.integers(len(WHOLE))] if rng.random() < 0.9 else NO_NUMBERS[rng.integers(len(NO_NUMBERS))]


def changed_structure(rng, value):
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return ("text", 3, np.zeros(3))[rng.integers(3)]
    if kind < 0.3:
        others = [layout for layout in layouts().values() if not layout.name.endswith("_call")]
        layout = others[rng.integers(len(others))]
        return structure(layout.name, Draw(rng).arguments(layout))
    arguments = dict(value.arguments)
    change(rng, arguments, value.layout)
    return structure(value.layout.name, arguments)


def changed_array(rng, array):
    kind = rng.integers(10)
    if kind == 0:
        return array.astype(DTYPES[rng.integers(len(DTYPES))], copy=True)
    if kind == 1 and array.ndim:
        return array[tuple(slice(rng.integers(0, 2), size - rng.integers(0, 2)) for size in array.shape)]
    if kind == 2 and array.ndim:
        return np.repeat(array, 2, axis=rng.integers(array.ndim))[..., : rng.integers(1, 200)]
    if kind == 3:
        return (array[::2], array[..., ::-1], np.asfortranarray(array), array.T)[rng.integers(4)]
    if kind == 4:
        return (array.reshape(-1), array[None], array[:0], np.zeros(0, array.dtype))[rng.integers(4)]
    if kind == 5:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if kind == 6 and not array.dtype.hasobject:
        return np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:].view(array.dtype).reshape(array.shape)
    if kind == 7 and rng.random() < 0.5:
        return (None, list(array.ravel()[:3]), "text", 0)[rng.integers(4)]
    other = guarded(array)
    if array.size and array.dtype.kind in "fiu":
        places = rng.integers(0, array.size, rng.choice([1, 1, 3, array.size]))
        with np.errstate(all="ignore"):
            drawn = REAL if array.dtype.kind == "f" else [-1, 0, 1, 2, array.size, 2**31 - 1, -(2**31)]
            other.reshape(-1)[places] = rng.choice(np.array(drawn), len(places)).astype(array.dtype)
    return other


def change(rng, arguments, layout):
    """Change one argument, or leave it out, or give one that Python would have found out."""
    kind, names = rng.random(), sorted(arguments)
    if kind < 0.04 or not names:
        arguments["nonsense"] = 1
    elif kind < 0.1:
        del arguments[names[rng.integers(len(names))]]
    elif kind < 0.2:
        lengths = [field.name for field in layout.fields if not field.is_given]
        if lengths:
            arguments[lengths[rng.integers(len(lengths))]] = WHOLE[rng.integers(len(WHOLE))]
    else:
        name = names[rng.integers(len(names))]
        arguments[name] = changed(rng, arguments[name], layout.by_name.get(name))


# ---------------------------------------------------------------- the calls


def arrays_in(arguments, layout):
    """(name, array, whether it may be written) of all arrays, those of structures too."""
    for name, value in arguments.items():
        if isinstance(value, Structure):
            yield from ((f"{name}.{inner}", *rest) for inner, *rest in arrays_in(value.arguments, value.layout))
        elif isinstance(value, np.ndarray):
            yield name, value, name in layout.by_name and layout.by_name[name].is_written


def bytes_of(array):
    return pickle.dumps(array) if array.dtype.hasobject else array.tobytes()


def call(name, arguments, splits):
    """Call it; returns what the exception says, or None."""
    layout = layouts()[name + "_call"]
    before = {place: bytes_of(array) for place, array, is_written in arrays_in(arguments, layout) if not is_written}
    said = None
    # The clock runs for the call alone: to draw its arguments, millions of numbers as text among them, may take longer.
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        if splits:
            first = {key: value for i, (key, value) in enumerate(arguments.items()) if i % 2}
            function(name).prepare(**first)(**{key: value for key, value in arguments.items() if key not in first})
        else:
            function(name)(**arguments)
    except (ValueError, TypeError, MemoryError, OverflowError) as error:
        said = str(error) or type(error).__name__
    faulthandler.cancel_dump_traceback_later()
    for place, array, _ in arrays_in(arguments, layout):
        assert is_whole(array), f"{name} wrote beyond {place}"
        assert place not in before or bytes_of(array) == before[place], f"{name} wrote to {place}, which it should read"
    return said


def copied(arguments):
    """The same arguments in memory of their own."""
    return {
        name: structure(value.layout.name, copied(value.arguments))
        if isinstance(value, Structure)
        else guarded(value)
        if isinstance(value, np.ndarray)
        else value
        for name, value in arguments.items()
    }


def main(times, seed, chosen):
    """Make `times` calls of each function."""
    recorded = real_calls()
    names = chosen or sorted(name.removesuffix("_call") for name in layouts() if name.endswith("_call"))
    for name in names:
        layout, done = layouts()[name + "_call"], 0
        for i in range(times):
            print(name, i, flush=True)
            rng = np.random.default_rng([seed, i, *name.encode()])
            real = recorded.get(name)
            try:
                arguments = copied(real[i % len(real)]) if real and i % 4 else Draw(rng).arguments(layout)
                for _ in range(rng.integers(0, 4)):
                    change(rng, arguments, layout)
            except (ValueError, OverflowError) as error:  # a structure that cannot be made, or an array
                said = str(error)
            else:
                said = call(name, arguments, rng.random() < 0.3)
            done += said is None
        print(
            f"# {name}: {done} of {times} calls done, {len(recorded.get(name, []))} real ones to begin from", flush=True
        )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
