"""Whether an earlier fit was of the same loss: what every warm start asks first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from slimsvm.tasks.task import Examples, Task


def check_same_loss(earlier: Any, task: Task, examples: Examples, consequence: str) -> None:
    """Refuse to go on from an earlier fit of other examples or another loss.

    Parameters
    ----------
    earlier : object with the attributes ``task`` and ``examples``
        The earlier fit's state.
    task, examples
        Those of this fit.
    consequence : str
        The end of the message: what follows for the earlier fit, or what may change.

    Raises
    ------
    ValueError
        Rows, labels, weights or loss are others.
    """
    if earlier.examples.n_rows != examples.n_rows:
        raise ValueError(
            f"warm start: the earlier fit had {earlier.examples.n_rows} rows, this one has {examples.n_rows}; "
            "a warm start needs the same rows"
        )
    if not (same_fields(earlier.examples, examples) and same_fields(earlier.task, task)):
        raise ValueError(f"warm start: labels, weights or the loss are not those of the earlier fit{consequence}")


def same_fields(a: Any, b: Any) -> bool:
    """Whether two objects of one class have equal attributes, arrays included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and all(same_fields(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray) and a.dtype == object:
        return a.shape == b.shape and all(same_fields(x, y) for x, y in zip(a.flat, b.flat))
    if not hasattr(a, "__dict__"):
        return np.array_equal(a, b)
    names = [field.name for field in fields(a) if field.compare] if is_dataclass(a) else vars(a)
    return all(same_fields(getattr(a, name), getattr(b, name, None)) for name in names)
