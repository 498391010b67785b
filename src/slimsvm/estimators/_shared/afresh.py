"""Fits that leave nothing of an earlier one, and change nothing where they fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

# What a fit leaves under private names. What a warm start goes on from stays for the fit itself.
PRIVATE = ("_objects", "_support", "_sparse", "_centre", "_stream", "_stream_parts")


def forget(estimator: Any, kept: Iterable[str] = ()) -> None:
    """Take out the attributes of an earlier fit, except those that are kept."""
    attributes = vars(estimator)
    for name in [name for name in attributes if name in PRIVATE or name[-1] == "_" != name[0]]:
        if name not in kept:
            del attributes[name]


def unchanged_by_failure(method: Method) -> Method:
    """A method that leaves the estimator as it was where it raises."""

    @wraps(method)
    def whole(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return whole  # type: ignore[return-value]


def afresh(fit: Method) -> Method:
    """A ``fit`` after which the estimator has the attributes of a new one; if it raises, those of before.

    scikit-learn's estimators keep what a later fit does not set, and some of what a fit sets that fails.
    """

    @unchanged_by_failure
    @wraps(fit)
    def fitted(self: Any, *args: Any, **kwargs: Any) -> Any:
        forget(self)
        return fit(self, *args, **kwargs)

    return fitted  # type: ignore[return-value]
