"""The library needs no C++ runtime, shows its interface alone, and mixes no two instruction sets."""

import ctypes
import re
import sys
from pathlib import Path

import pytest

from elf_for_tests import Elf
from slimsvm.core.library import header_path, library_path, parse

ROOT = Path(__file__).parents[2]
OBJECTS = ROOT / "build" / "core" / "CMakeFiles"  # of the library that `make` builds
ISAS = ("baseline", "avx2", "avx512")

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF files")


@pytest.fixture(scope="module")
def built():
    return Elf(library_path())


@pytest.fixture(scope="module")
def units():
    """Object files of each instruction set, as `make` left them."""
    found = {isa: sorted((OBJECTS / f"core_{isa}.dir").rglob("*.o")) for isa in ISAS}
    if not any(found.values()):
        pytest.skip(f"no object files under {OBJECTS}: `make` compiles them")
    return {isa: paths for isa, paths in found.items() if paths}


def test_the_library_needs_the_c_library_alone(built):
    assert {re.match(r"(ld-linux|lib\w+)", name)[0] for name in built.needed()} <= {
        "libc", "libm", "libpthread", "ld-linux"
    }  # fmt: skip


def test_every_symbol_asked_for_is_one_of_the_c_library(built):
    asked = {symbol.name for symbol in built.dynamic_symbols() if not symbol.is_defined and not symbol.is_weak}
    assert asked
    libraries = [ctypes.CDLL(name) for name in built.needed()]
    nowhere = {name for name in asked if not any(hasattr(library, name) for library in libraries)}
    cpp = {name for name in asked if name.startswith(("_Z", "__cxa_", "__gxx", "_Unwind"))}
    assert not nowhere
    assert cpp <= {"__cxa_finalize"}  # of the C library: what a library does at its end


def test_the_interface_is_all_that_is_exported(built):
    exported = {symbol.name for symbol in built.dynamic_symbols() if symbol.is_defined and not symbol.is_hidden}
    text = header_path().read_text(encoding="utf-8")
    calls = {f"slimsvm_{name.removesuffix('_call')}" for name in parse(text) if name.endswith("_call")}
    declared = set(re.findall(r"^SLIMSVM_API [\w *]+?(slimsvm_\w+)\(", text, re.MULTILINE))
    assert exported == calls | declared


def test_each_instruction_set_has_the_same_units(units):
    names = {isa: [path.relative_to(OBJECTS / f"core_{isa}.dir") for path in paths] for isa, paths in units.items()}
    assert all(found == names["baseline"] for found in names.values())


def test_what_a_unit_defines_names_its_instruction_set(units):
    # The linker keeps one copy of a weak symbol: an older processor would run the newer one's.
    mixed = {}
    for isa, paths in units.items():
        own = f"7slimsvm{len(isa)}{isa}"
        for path in paths:
            defined = [symbol for symbol in Elf(path).symbols() if symbol.is_defined and not symbol.is_local]
            assert defined
            foreign = [symbol.name for symbol in defined if own not in symbol.name]
            mixed |= {f"{isa}/{path.name}": foreign} if foreign else {}
    assert not mixed
