"""Docstrings in the style of numpydoc that share text: sections of several functions are written once."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

# Sections in the order in which numpydoc has them.
SECTIONS = (
    "Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples",
)  # fmt: skip

NAMES = "Parameters", "Attributes"  # sections of names


def described(shared: str | None) -> Callable[[Function], Function]:
    r"""Return a decorator that completes the docstring of a function or a class by `completed`.

    Examples
    --------
    >>> from slimsvm.docstrings import described
    >>> @described("Returns\n-------\nfloat")
    ... def double(x):
    ...     '''Twice a number.'''
    >>> double.__doc__.split()
    ['Twice', 'a', 'number.', 'Returns', '-------', 'float']
    """

    def complete(function: Function) -> Function:
        function.__doc__ = completed(function.__doc__, shared)
        return function

    return complete


def completed(doc: str | None, shared: str | None, of: Any = None, adds_sections: bool = True) -> str | None:
    """Return a docstring with the shared sections of another; None, which ``python -OO`` makes of docstrings, stays
    None.

    An entry that is a name alone gets the description that the shared section has. Sentences below the name of a
    parameter or an attribute follow the shared ones; below a type or an error they replace them. The defaults of a
    class or function are added to shared parameters. ``adds_sections``: sections that the docstring lacks are added to
    it.
    """
    if doc is None or shared is None:
        return doc
    start, sections = _sections(inspect.cleandoc(doc))
    defaults = {} if of is None else {name: each.default for name, each in inspect.signature(of).parameters.items()}
    for title, text in _sections(inspect.cleandoc(shared))[1].items():
        if title in sections:
            by_name = _by_name(text)
            has_names = title in NAMES
            sections[title] = "".join(
                _described(entry, by_name, defaults) if has_names or entry.count("\n") == 1 else entry
                for entry in _entries(sections[title])
            )
        elif adds_sections:
            sections[title] = text
    in_order = sorted(sections, key=SECTIONS.index)
    texts = (f"{title}\n{'-' * len(title)}\n{sections[title].strip()}" for title in in_order)
    return "\n\n".join([start.strip(), *texts])


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the sections by their titles."""
    start, *parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", doc + "\n", flags=re.MULTILINE)
    return start, dict(zip(parts[::2], (text.rstrip() + "\n" for text in parts[1::2])))


def _entries(section: str) -> list[str]:
    """Return the entries of a section, each with the indented lines below it."""
    return re.findall(r"^\S.*\n(?:[ \t].*\n)*", section, flags=re.MULTILINE)


def _by_name(section: str) -> dict[str, str]:
    """Return entries by the names in their headers."""
    return {name: entry for entry in _entries(section) for name in re.split(r" :|\n", entry)[0].split(", ")}


def _described(entry: str, shared: dict[str, str], defaults: dict[str, object]) -> str:
    """Return an entry with only shared names in its header together with their descriptions; any other as it is."""
    header, _, more = entry.partition("\n")
    names = header.split(", ")
    if not set(names) <= set(shared):
        return entry
    found = ""
    for description in dict.fromkeys(shared[name] for name in names):
        head, _, text = description.partition("\n")
        name, _, kind = head.partition(" : ")
        if kind and name in defaults and ", default=" not in head:
            default = defaults[name]
            head += f', default="{default}"' if isinstance(default, str) else f", default={default}"
        found += f"{head}\n{text}"
    return found + more
