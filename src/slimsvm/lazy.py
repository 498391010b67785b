"""Names that are imported when first asked for: a package's names, and classes by the names users give them.

`from slimsvm import SVC` need not wait for the solvers that it will not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's ``__getattr__`` and ``__dir__`` for names that live in its modules.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    homes : mapping of str to str
        For each name the module within the package where it lives, "" for a module or package of that name itself.

    Examples
    --------
    >>> from slimsvm.lazy import lazy_names
    >>> get, names = lazy_names("slimsvm", {"RBF": "kernels.shift_invariant"})
    >>> get("RBF").__name__
    'RBF'
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name]:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        else:
            value = import_module(f"{package}.{name}")
        setattr(import_module(package), name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *homes})

    return get, names


class LazyClasses(Mapping[str, Any]):
    """Classes by name, each imported when asked for; ``places`` are "module:Class"."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, dict(places)

    def __getitem__(self, name: str) -> Any:
        module, _, cls = self._places[name].partition(":")
        return getattr(import_module(f"{self._package}.{module}"), cls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
