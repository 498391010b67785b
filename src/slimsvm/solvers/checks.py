"""Checks of parameters that several solvers have."""

from __future__ import annotations

from numbers import Integral
from typing import Any


def check_count(name: str, value: Any) -> None:
    """A parameter that counts things must be an integer of at least 1."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer >= 1, found {value!r}")
