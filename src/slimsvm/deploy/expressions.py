"""Numbers of which a kernel's formula makes text, nodes of a graph, or values of fewer digits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Expression(ABC):
    """A number of `FoldedKernel.formula` that is no array: what ``+ - * /`` and minus make is said by two methods."""

    @abstractmethod
    def joined(self, sign: str, left: Any, right: Any) -> Any:
        """``left sign right``, of which one may be a float."""

    @abstractmethod
    def __neg__(self) -> Any: ...

    def __add__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return self.joined("+", self, other)

    def __sub__(self, other: Any) -> Any:
        return self.joined("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.joined("-", other, self)

    def __mul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self.joined("*", self, other)

    def __truediv__(self, other: Any) -> Any:
        return self.joined("/", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self.joined("/", other, self)
