"""Files that a command reads and files that it writes: none may be both."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from slimsvm.cli.block_data import files_of
from slimsvm.cli.data import is_set
from slimsvm.cli.output import CommandError
from slimsvm.datasets import available, find

IGNORES_CASE = sys.platform in ("darwin", "win32")


def check_outputs(outputs: Sequence[Any], inputs: Sequence[Any]) -> None:
    """Refuse to write onto what is read, and to write two things to one file, before anything is written.

    Parameters
    ----------
    outputs, inputs : sequence of str, path-like or None
        Files; inputs are also folders, patterns of names and benchmark sets. None is left out.

    Raises
    ------
    CommandError
        An output is an input, or another output, under this name or another (a link, a relative path).
    """
    written = [os.fspath(path) for path in outputs if path is not None]
    read = [(source, file) for source in inputs if source is not None for file in _files_read(os.fspath(source))]
    for k, path in enumerate(written):
        for source, file in read:
            if _is_same(path, file):
                known = "" if path == source else f" ({source})"
                raise CommandError(f"{path}: is a file that is read{known}, which would be lost: name another to write")
        for other in written[:k]:
            if _place(path) == _place(other) or _is_same(path, other):
                raise CommandError(f"{path}: is to be written twice, also as {other}: name another file")


def check_demo(outputs: Sequence[Any]) -> None:
    """Refuse to write onto a file of a benchmark set."""
    check_outputs(outputs, [path for info in available() for path in info.paths])


def _is_same(one: str, other: str) -> bool:
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


def _place(path: str) -> str:
    """Where a file is that need not be there yet."""
    place = os.path.realpath(path)
    return place.casefold() if IGNORES_CASE else place


def _files_read(source: str) -> Iterator[str]:
    """The files that a source stands for."""
    if is_set(source):
        yield from map(os.fspath, find(source) or ())
        return
    for path in files_of(source):
        if os.path.isdir(path):
            yield from map(os.fspath, Path(path).rglob("*"))
        yield path
