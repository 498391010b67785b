"""libslimsvm, loaded from the package's own folder, and the header that says what is in it."""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from functools import cache
from pathlib import Path

ISAS = ("baseline", "avx2", "avx512")
_FOLDER = Path(__file__).resolve().parent
_NAMES = {"win32": "slimsvm.dll", "darwin": "libslimsvm.dylib"}


def header_path() -> Path:
    """Where slimsvm.h lies: in a checkout beside the core's sources, in an installation beside the library."""
    in_checkout = _FOLDER.parents[2] / "core" / "slimsvm.h"
    return in_checkout if in_checkout.exists() else _FOLDER / "slimsvm.h"


def library_path() -> Path:
    """Where the library lies: beside this file, or where the environment variable SLIMSVM_LIBRARY says."""
    told = os.environ.get("SLIMSVM_LIBRARY")
    return Path(told).resolve() if told else _FOLDER / _NAMES.get(sys.platform, "libslimsvm.so")


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once.

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
    """Instruction set that compiled code uses: "baseline", "avx2" or "avx512".

    Examples
    --------
    >>> from slimsvm.core import isa
    >>> isa() in ("baseline", "avx2", "avx512")
    True
    """
    return library().slimsvm_isa().decode()
