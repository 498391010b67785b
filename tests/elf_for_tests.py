"""Reads the symbols of ELF files, for machines without nm: a library's, or an object file's."""

import struct
from dataclasses import dataclass

_SYMBOLS, _DYNAMIC, _DYNAMIC_SYMBOLS = 2, 6, 11  # types of sections
_LOCAL, _WEAK = 0, 2
_NEEDED = 1


@dataclass(frozen=True)
class Symbol:
    """A name that a file defines or asks for; hidden ones are not seen outside the library."""

    name: str
    is_defined: bool
    is_local: bool
    is_weak: bool
    is_hidden: bool


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


class Elf:
    """An ELF file of 64 bits, least byte first."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not an ELF file of 64 bits")
        start, size, count = struct.unpack_from("<Q10xHH", self.bytes, 0x28)
        self.sections = [
            _Section(*struct.unpack_from("<4xI16xQQI", self.bytes, start + size * i)) for i in range(count)
        ]

    def _text(self, table, at):
        start = self.sections[table].offset + at
        return self.bytes[start : self.bytes.index(b"\0", start)].decode()

    def _symbols(self, kind):
        for section in self.sections:
            if section.kind != kind:
                continue
            for place in range(section.offset + 24, section.offset + section.size, 24):
                name, info, other, index = struct.unpack_from("<IBBH", self.bytes, place)
                if name:
                    binding = info >> 4
                    text = self._text(section.link, name)
                    yield Symbol(text, index != 0, binding == _LOCAL, binding == _WEAK, other & 3 in (1, 2))

    def symbols(self):
        """What an object file defines and asks for."""
        return list(self._symbols(_SYMBOLS))

    def dynamic_symbols(self):
        """What a library exports, and asks other libraries for."""
        return list(self._symbols(_DYNAMIC_SYMBOLS))

    def needed(self):
        """Names of the libraries that a library needs."""
        for section in self.sections:
            if section.kind == _DYNAMIC:
                for place in range(section.offset, section.offset + section.size, 16):
                    tag, value = struct.unpack_from("<QQ", self.bytes, place)
                    if tag == _NEEDED:
                        yield self._text(section.link, value)
