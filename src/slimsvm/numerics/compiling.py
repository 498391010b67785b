"""Numba's `njit` with a disk cache that several processes, and the next version, can share.

Numba numbers its files of machine code and keeps the numbers in an index. Two processes that compile one function for
two types at once give both the same number: a third one then finds the code for float64 where that for float32 should
be, and runs it. Here a file is named after its content and lies there before the index speaks of it, so that the worst
that two can do to each other is to compile once more.

Numba also compiles again only when the file of the function itself is another, while much of its code comes from
functions in other files. Here it is compiled again when the text of its module, or of one that it names, is another.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

_FOLDER = Path(__file__).parent
_NAMED = re.compile(rf"{re.escape(__package__)}\.(\w+)")


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def stamp(path: Path) -> str:
    """Hash of the text of a module and of all compiled modules it names, directly or through others."""
    reached, found = {path}, [path]
    while found:
        named = {_FOLDER / f"{name}.py" for name in _NAMED.findall(_text(found.pop()))}
        fresh = [module for module in named - reached if module.exists()]
        reached.update(fresh)
        found += fresh
    texts = "".join(_text(module) for module in sorted(reached))
    return hashlib.sha256(texts.encode()).hexdigest()


class CacheFiles(IndexDataCacheFile):
    """The files of one function's machine code, each named after its content.

    Parameters
    ----------
    folder : str
    base : str
        What the names of all its files begin with.
    source_stamp : str
        Of the sources the code was made from: code with another one is not used.
    """

    def __init__(self, folder: str, base: str, source_stamp: str) -> None:
        super().__init__(cache_path=folder, filename_base=base, source_stamp=source_stamp)
        self._base = base

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for a signature: the code first, then the index."""
        code = self._dump(data)
        name = f"{self._base}.{hashlib.sha256(code).hexdigest()[:16]}.nbc"
        with self._open_for_write(self._data_path(name)) as file:
            file.write(code)
        overloads = self._load_index()
        if not overloads and Path(self._index_path).exists():  # it is of other sources, and so is what else lies there
            for other in Path(self._cache_path).glob(f"{self._base}.*.nbc"):
                if other.name != name:
                    other.unlink(missing_ok=True)
        overloads[key] = name
        self._save_index(overloads)


def _inner(function: Any, options: dict[str, Any]) -> Any:
    """A compiled function for other compiled functions: what Python would call it through is not made.

    That takes a fifth of the time to compile. Python, a test say, calls a second one, made when that first happens.
    """
    without: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**without, **options)(function)
    if isinstance(dispatcher, Dispatcher):
        made: Any = vars(dispatcher)
        for_python = functools.cache(lambda: numba.njit(**options)(function))
        made["add_overload"] = lambda result: dispatcher.overloads.update({tuple(result.signature.args): result})
        made["_compile_for_args"] = lambda *args, **named: for_python()._compile_for_args(*args, **named)
    return dispatcher


def njit(*, cache: bool = False, **options: Any) -> Any:
    """`numba.njit` of a module-level function of this package; with ``cache=True`` in a cache as above.

    With it are those functions that Python calls; without, those that only compiled code does.
    """

    def compiled(function: Any) -> Any:
        if not cache:
            return _inner(function, options)
        dispatcher = numba.njit(cache=True, **options)(function)
        if isinstance(dispatcher, Dispatcher):  # it is the plain function under NUMBA_DISABLE_JIT
            made: Any = vars(dispatcher)["_cache"]
            path = Path(function.__code__.co_filename)
            made._cache_file = CacheFiles(made.cache_path, made._impl.filename_base, stamp(path))
        return dispatcher

    return compiled
