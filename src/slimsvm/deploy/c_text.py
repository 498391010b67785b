"""Numbers, arrays and strings as C has them."""

from __future__ import annotations

import numpy as np

from slimsvm.deploy.plain_model import texts, whole_numbers

Array = np.ndarray

LINE_WIDTH = 110


TYPES = {"float32": "float", "float64": "double", "int16": "int16_t"}


def number(value: float, dtype: str = "float32") -> str:
    """A constant of C: the shortest that is the same float32 or float64, or a whole number."""
    if dtype == "int16":
        return str(int(value))
    with np.errstate(over="ignore"):
        rounded = np.dtype(dtype).type(value)
    if not np.isfinite(rounded):
        raise ValueError(f"the model holds {value:.3g}, which is beyond {dtype}: scale the features, or train with a "
                         "smaller C")  # fmt: skip
    return f"{rounded!s}f" if dtype == "float32" else repr(float(rounded))


def array(name: str, values: Array, shape: str, dtype: str = "float32") -> str:
    """A constant array."""
    lines = [f"static const {TYPES[dtype]} NAME_{name}{shape} = {{"]
    for row in np.atleast_2d(values):
        words, line = [number(value, dtype) for value in row], "    "
        if np.ndim(values) == 2:
            words[0] = "{" + words[0]
            words[-1] += "}"
        for word in words:
            if len(line) + len(word) > LINE_WIDTH:
                lines.append(line.rstrip())
                line = "    "
            line += word + ", "
        lines.append(line.rstrip())
    return "\n".join([*lines, "};\n"])


def classes_array(classes: Array) -> str:
    """The labels of the classes, as numbers of their type or strings."""
    if classes.dtype.kind in "biu":
        kind, words = "int64_t ", list(map(str, whole_numbers(classes, 2**63 - 1, "a C header")))
        words = ["-9223372036854775807 - 1" if word == str(-(2**63)) else word for word in words]
    elif classes.dtype.kind == "f":
        kind, words = "double ", [repr(float(label)) for label in classes]
    else:
        labels = texts(classes, "a C header")
        if ended := [label for label in labels if "\0" in label]:
            raise ValueError(f"a text of C ends at its first zero byte, found the label {ended[0]!r}")
        kind, words = "char *const ", list(map(string, labels))
    return f"static const {kind}NAME_classes[NAME_N_CLASSES] = {{{', '.join(words)}}};\n"


def string(text: str) -> str:
    """A string of C in UTF-8; octal escapes, unlike hexadecimal ones, end after three digits."""
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return '"' + "".join(plain) + '"'
