"""Printing for all commands: one-line errors, warnings and notes, aligned fields, tables, JSON."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from slimsvm.whole_file import write_whole

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NUMBER = re.compile(r"-|[-+]?[0-9][0-9,]*(\.[0-9]*)?(e[-+]?[0-9]+)?")


class CommandError(ValueError):
    """The error for input that a command cannot work with; the message is one sentence."""


def say(text: str) -> None:
    """Print one line on standard error, above a progress bar if there is one."""
    from tqdm import tqdm

    tqdm.write(f"slimsvm: {escaped(' '.join(text.split()))}", file=sys.stderr)


def escaped(text: str) -> str:
    """Replace control characters, which terminals obey, and halves of letters by their codes: labels may hold them."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def describe_error(error: BaseException) -> str:
    """Describe an error in one sentence; unforeseen errors are named by their type."""
    if isinstance(error, OSError):
        names = [os.fsdecode(name) for name in (error.filename,) if isinstance(name, (str, bytes, os.PathLike))]
        return ": ".join([*names, error.strerror or str(error) or type(error).__name__])
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    # Python names the module of an import that failed; ours say which package to install.
    if isinstance(error, ValueError) or (isinstance(error, ImportError) and error.name is None):
        return str(error)
    return (
        f"unexpected {type(error).__name__}: {error} (a defect of slimsvm: with SLIMSVM_TRACEBACK=1 in the "
        "environment it shows where)"
    )


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show warnings as one line each, and what was said already not again."""
    said = set[str]()

    def show(message, category, filename, lineno, file=None, line=None):
        if str(message) not in said:
            said.add(str(message))
            say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def plain(value: Any) -> Any:
    """Convert a value to types that JSON has; NaN and infinity, which it has not, become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    return str(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """Return the text of one JSON value."""
    text = json.dumps(plain(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return re.sub("[\x7f-\x9f\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    print(to_json(value))


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file for people and programs; make its folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, [to_json(value, indent=1), "\n"])


def print_fields(fields: Mapping[str, Any]) -> None:
    """Print aligned lines `name value` on standard output; fields of None are left out."""
    shown = {name: value for name, value in fields.items() if value is not None}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        print(f"{name:<{width}}  {escaped(str(value))}")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format rows as an aligned table with a header; columns in order of appearance, numbers aligned to the right.

    Examples
    --------
    >>> print(table([{"name": "a", "n": 5}, {"name": "bc", "n": None}]))
    name  n
    a     5
    bc    -
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    cells = {name: [_cell(row.get(name)) for row in rows] for name in columns}
    numeric = {name: all(map(_is_number, cells[name])) for name in columns}
    width = {name: max(map(len, [name, *cells[name]])) for name in columns}

    def line(texts: Mapping[str, str]) -> str:
        parts = (
            texts[name].rjust(width[name]) if numeric[name] else texts[name].ljust(width[name]) for name in columns
        )
        return "  ".join(parts).rstrip()

    body = [line({name: cells[name][at] for name in columns}) for at in range(len(rows))]
    return "\n".join([line({name: name for name in columns}), *body])


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.3g}"
    return escaped(str(value))


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def count(number: float) -> str:
    """Format a large count in short: 12,345 below a million, 1.23e+09 above.

    Examples
    --------
    >>> count(12345), count(1234567890)
    ('12,345', '1.23e+09')
    """
    return f"{number:,.0f}" if number < 1e6 else f"{number:.3g}"


def size(n_bytes: int) -> str:
    """Format a file's size for people.

    Examples
    --------
    >>> size(512), size(20_480), size(3_500_000)
    ('512 bytes', '20.5 kB', '3.5 MB')
    """
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.3g} kB" if n_bytes < 1e6 else f"{n_bytes / 1e6:.3g} MB"


def machine() -> dict[str, Any]:
    """Return processor, usable cores and versions, on which timings depend."""
    from importlib.metadata import version

    import slimsvm
    from slimsvm.core import isa
    from slimsvm.core.threads import resolve_n_jobs

    names = ("numpy", "scipy", "scikit-learn")
    return {
        "processor": _processor(),
        "cores": resolve_n_jobs(None),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "slimsvm": slimsvm.__version__,
        "instruction set": isa(),
        **{name: version(name) for name in names},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"
