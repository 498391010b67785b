"""Values made on first use: a package's names, classes by the names users give them, values of objects.

`from slimsvm import SVC` need not wait for the solvers that it will not use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as made_once
else:

    class made_once:
        """A property that is computed on first use, and then kept.

        As `functools.cached_property` of Python 3.12. That of 3.11 has a lock, one for all objects of a class: a child
        forked while another thread computes the property of whichever object would wait for it for ever. Threads that
        ask at once may compute the same twice; all get the first result.
        """

        def __init__(self, make):
            self.make, self.__doc__ = make, make.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.make(instance))


def homes_of(names: Mapping[str, list[str]]) -> dict[str, str]:
    """Return the module of each name, for `lazy_names`, from the names that each module has."""
    return {name: module for module, own in names.items() for name in own}


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__`` for names that live in its modules.

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


def named(value: Any, kind: type, classes: Mapping[str, Any], parameter: str) -> Any:
    """Return an object of the class with this name, or an object of this kind itself; otherwise raise a ValueError."""
    if isinstance(value, kind):
        return value
    if not isinstance(value, str) or value not in classes:
        known = ", ".join(map(repr, classes))
        raise ValueError(f"{parameter} must be one of {known} or a {kind.__name__} object; found {value!r}")
    return classes[value]()


class LazyClasses(Mapping[str, Any]):
    """Classes by name, each imported on first use; ``places`` are "module:Class"."""

    def __init__(self, package: str, places: Mapping[str, str]) -> None:
        self._package, self._places = package, dict(places)

    def __getitem__(self, name: str) -> Any:
        module, _, cls = self._places[name].partition(":")
        return getattr(import_module(f"{self._package}.{module}"), cls)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
