"""Callbacks of a fit for scikit-learn before 1.9: the part of its protocol that our estimators use.

A callback written for the one runs with the other. Meta-estimators of those versions know of no callbacks: they clone
them with our estimators, and have none themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from copy import copy
from functools import wraps
from typing import Any

HOOKS = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")


class CallbackContext:
    """A task that callbacks are told of: a fit, or an iteration of it.

    Parameters
    ----------
    callbacks : list
        Who is told.
    estimator_name : str
    task_name : str
    task_id : int
        The task's number among its parent's.
    max_subtasks : int or None
        How many tasks it has at most; None where nobody knows.
    parent : CallbackContext or None
        None for the fit.
    """

    def __init__(
        self,
        callbacks: list[Any],
        estimator_name: str,
        task_name: str,
        task_id: int = 0,
        max_subtasks: int | None = 0,
        parent: CallbackContext | None = None,
    ) -> None:
        self._callbacks, self._n_subtasks = callbacks, 0
        self.estimator_name, self.task_name, self.task_id = estimator_name, task_name, task_id
        self.max_subtasks, self.parent = max_subtasks, parent

    def subcontext(self, task_name: str = "", max_subtasks: int | None = 0) -> CallbackContext:
        """The next task of this one."""
        task_id, self._n_subtasks = self._n_subtasks, self._n_subtasks + 1
        return CallbackContext(self._callbacks, self.estimator_name, task_name, task_id, max_subtasks, self)

    def call_on_fit_task_begin(self, **facts: Any) -> CallbackContext:
        """Tell all callbacks that the task begins."""
        self._tell("on_fit_task_begin", **facts)
        return self

    def call_on_fit_task_end(self, **facts: Any) -> bool:
        """Tell all callbacks that the task has ended, and say whether one of them wants to stop."""
        return self._tell("on_fit_task_end", **facts)

    def _tell(
        self,
        hook: str,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        metadata: dict[str, Any] | None = None,
        reconstruction_attributes: dict[str, Any] | Callable[[], dict[str, Any] | None] | None = None,
    ) -> bool:
        """Call a hook of all callbacks with the facts it has keyword-only parameters for; whether any returned True."""
        facts = {"X": X, "y": y, "metadata": metadata}
        stop = False
        for callback in self._callbacks:
            method = getattr(callback, hook)
            parameters = inspect.signature(method).parameters.values()
            wanted = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            unknown = set(wanted) - {*facts, "fitted_estimator"}
            if unknown:
                raise TypeError(
                    f"{hook} of {type(callback).__name__} has the parameters {sorted(unknown)}; accepted are X, y, "
                    "metadata and fitted_estimator"
                )
            if "fitted_estimator" in wanted and "fitted_estimator" not in facts:  # made once, and only when asked for
                facts["fitted_estimator"] = _as_fitted(estimator, reconstruction_attributes)
            stop |= bool(method(estimator, self, **{name: facts[name] for name in wanted}))
        return stop


def _as_fitted(estimator: Any, attributes: dict[str, Any] | Callable[[], dict[str, Any] | None] | None) -> Any:
    """A copy of the estimator with what a fit that ended now would set; None where there is no model yet."""
    attributes = attributes() if callable(attributes) else attributes
    if attributes is None:
        return None
    fitted = copy(estimator)
    vars(fitted).update(attributes)
    return fitted


class CallbackSupportMixin:
    """``set_callbacks``, and the start of a fit that tells them; a fit is decorated by `with_callbacks`."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks that are told of every fit and of its iterations; those set before are dropped.

        Parameters
        ----------
        *callbacks : objects
            With the methods of scikit-learn's ``FitCallback`` protocol (of its version 1.9): ``setup``, ``teardown``,
            ``on_fit_task_begin`` and ``on_fit_task_end``.

        Returns
        -------
        self : estimator

        Raises
        ------
        TypeError
            One of them lacks a method, or is a class.
        """
        for callback in callbacks:
            if isinstance(callback, type) or not all(callable(getattr(callback, hook, None)) for hook in HOOKS):
                raise TypeError(f"callbacks must be instances with the methods {', '.join(HOOKS)}, found {callback!r}")
        self.__dict__.pop("_skl_callbacks", None)
        if callbacks:
            self._skl_callbacks = list(callbacks)
        return self

    def __sklearn_clone__(self) -> Any:
        """A clone has the same callbacks: cross-validation tells them of its fits."""
        new = super().__sklearn_clone__()  # type: ignore[misc]
        return new.set_callbacks(*getattr(self, "_skl_callbacks", ()))

    def _init_callback_context(self, task_name: str = "fit", max_subtasks: int | None = 0) -> CallbackContext:
        """Set all callbacks up, and return what they are told by."""
        callbacks = getattr(self, "_skl_callbacks", [])
        context = CallbackContext(callbacks, type(self).__name__, task_name, max_subtasks=max_subtasks)
        for callback in callbacks:
            self._teardowns.callback(callback.teardown, self, context)
            callback.setup(self, context)
        return context

    _teardowns: ExitStack


def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Have the callbacks of a fit torn down at its end, however it ends."""

    @wraps(method)
    def fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as estimator._teardowns:
            try:
                return method(estimator, *args, **kwargs)
            finally:
                del estimator._teardowns

    return fit
