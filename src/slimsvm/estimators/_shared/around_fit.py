"""Wrappers of every fit: attributes of an earlier fit go, callbacks hear of iterations.

scikit-learn has callbacks from its version 1.9 on. Before, `CallbackContext` and `OwnCallbackSupport` are the part of
its protocol that the estimators use, so that a callback written for the one runs with the other. Meta-estimators of
those versions know of no callbacks: they clone them with our estimators, and have none themselves.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from slimsvm.estimators._shared.input_checks import check_at_least, check_path
from slimsvm.parts.run import Status

P = ParamSpec("P")
R = TypeVar("R")

# -- attributes of one fit alone ----------------------------------------------------------------------------------

# What scikit-learn's `with_callbacks` tears down at the end of a fit, and then deletes.
OF_CALLBACKS = ("_callback_fit_ctx", "_skl_callbacks_to_teardown")
# What a fit leaves under private names. What a warm start goes on from stays for the fit itself.
PRIVATE = ("_objects", "_support", "_sparse", "_centre", "_stream", "_stream_parts", "_seen", "_at_fit")


def forget(estimator: Any, kept: Iterable[str] = ()) -> None:
    """Delete the attributes of an earlier fit, except those that are kept."""
    attributes = vars(estimator)
    for name in tuple(attributes):
        if (name in PRIVATE or name[-1] == "_" != name[0]) and name not in kept:
            del attributes[name]


def unchanged_by_failure(method: Callable[P, R], forgets: bool = False) -> Callable[P, R]:
    """A method that leaves the estimator as it was if it raises; ``forgets``: attributes of an earlier fit go first."""

    @wraps(method)
    def whole(*args: P.args, **kwargs: P.kwargs) -> R:
        estimator: Any = args[0]
        before = vars(estimator).copy()
        try:
            if forgets:
                forget(estimator)
            return method(*args, **kwargs)
        except BaseException:
            to_tear_down = {name: vars(estimator)[name] for name in OF_CALLBACKS if name in vars(estimator)}
            vars(estimator).clear()
            vars(estimator).update(before | to_tear_down)
            raise

    return whole


def afresh(fit: Callable[P, R]) -> Callable[P, R]:
    """A ``fit`` after which the estimator has the attributes of this fit alone; if it raises, the earlier ones.

    scikit-learn's estimators keep what a later fit does not set, and some of what a fit sets that fails.
    """
    return unchanged_by_failure(fit, forgets=True)


# -- callbacks where scikit-learn has none ----------------------------------------------------------------------------

HOOKS = ("setup", "teardown", "on_fit_task_begin", "on_fit_task_end")


class CallbackContext:
    """A task that callbacks are told of: a fit (whose parent is None), or an iteration of it.

    ``task_id`` is its number among its parent's, ``max_subtasks`` how many tasks it has at most; None: nobody knows.
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
    """A copy of the estimator as a fit that ended now would leave it; None if there is no model yet."""
    attributes = attributes() if callable(attributes) else attributes
    if attributes is None:
        return None
    fitted = copy(estimator)
    vars(fitted).update(attributes)
    return fitted


class OwnCallbackSupport:
    """`set_callbacks`, and the context that a ``fit`` decorated by `with_own_callbacks` tells them by."""

    def set_callbacks(self, *callbacks: Any) -> Any:
        """Set the callbacks that are told of every fit and of its iterations; earlier ones are dropped.

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
        of_scikit_learn: Any = super()
        new = of_scikit_learn.__sklearn_clone__()
        return new.set_callbacks(*getattr(self, "_skl_callbacks", ()))

    def _init_callback_context(self, task_name: str = "fit", max_subtasks: int | None = 0) -> CallbackContext:
        """Set all callbacks up, and return the context of the fit."""
        callbacks = getattr(self, "_skl_callbacks", [])
        context = CallbackContext(callbacks, type(self).__name__, task_name, max_subtasks=max_subtasks)
        for callback in callbacks:
            self._teardowns.callback(callback.teardown, self, context)
            callback.setup(self, context)
        return context

    _teardowns: ExitStack


def with_own_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Tear the callbacks of a fit down at its end, also if it raises."""

    @wraps(method)
    def fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as estimator._teardowns:
            try:
                return method(estimator, *args, **kwargs)
            finally:
                del estimator._teardowns

    return fit


if TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        CallbackSupportMixin, with_callbacks = OwnCallbackSupport, with_own_callbacks


# -- who is told, and what ------------------------------------------------------------------------------------------


class Iterations:
    """Tells callbacks of every iteration of a fit, with its model if the solver has one by then.

    ``seen`` has what callbacks may ask for: estimator, X, y and metadata.
    """

    def __init__(self, estimator: Any, context: Any, seen: dict[str, Any], trained: Any):
        self.estimator, self.context, self.seen, self.trained = estimator, context, seen, trained
        self.run: Any = None
        self.history: list[dict[str, Any]] = []
        self.iteration: Any = None  # that has begun, and has several steps

    def watch(self, run: Any) -> None:
        """Ask the solver's run to tell of its steps, too."""
        self.run = run
        run.between = self.between

    def __call__(self, record: dict[str, Any]) -> Any:
        self.history.append(record)
        iteration = self.iteration or self.begun(self.context, "iteration", 0)
        self.iteration = None
        return iteration.call_on_fit_task_end(**self.seen, reconstruction_attributes=self.fitted)

    def between(self) -> None:
        """Tell of a step within an iteration."""
        self.iteration = self.iteration or self.begun(self.context, "iteration", None)
        step = self.begun(self.iteration, "step", 0)
        step.call_on_fit_task_end(**self.seen, reconstruction_attributes=self.fitted)

    def begun(self, parent: Any, name: str, max_subtasks: int | None) -> Any:
        """Begin a task and tell the callbacks."""
        task = parent.subcontext(task_name=name, max_subtasks=max_subtasks)
        task.call_on_fit_task_begin(**self.seen)
        return task

    def fitted(self) -> dict[str, Any] | None:
        """The attributes that the estimator would have if the fit stopped here."""
        if self.run is None or self.estimator._is_of_parts:  # runs of a search or of parts are not the fit's
            return None
        stopped = copy(self.estimator)
        if self.run.can_go_on:
            fit = replace(self.run.so_far(), history=list(self.history))
        elif self.run.has_models:
            counter = self.run.kernel_rows.counter
            n_evals = counter.n
            fit = self.run.finish(Status.STOPPED, list(self.history))
            counter.add(n_evals - counter.n)  # what callbacks ask for is not the fit's
        else:
            return None
        stopped._keep(fit, self.trained)
        return dict(vars(stopped))


class Checkpoint:
    """A callback (`set_callbacks`) that writes the model to a file during a fit, so that the fit can be resumed.

    It writes after every epoch of `BSCA` or `BSGD`, after every sweep of `Refine` (``max_basis`` a number), and after
    every step over all rows in which `Refine` and `LowRank` solve for coefficients. A file is replaced only once the
    new one is complete, so it is valid whatever ends the process. It is the file that ``save`` writes after the fit,
    plus what a warm start needs: ``slimsvm.load(path).set_params(warm_start=True).fit(X, y)`` continues from there.

    `Refine` and `LowRank` end with the same bits as an uninterrupted fit, for the same rows, labels, weights
    and parameters; others are refused. ``history_``, ``n_iter_`` and ``n_kernel_evals_`` count from the resumption,
    and so does ``max_seconds``. While coefficients are solved for, the file has 8 bytes for each row and output
    besides the model. `BSCA` and `BSGD` continue with the dual variables, the steps and the random numbers of the
    interrupted fit; the result differs from an uninterrupted fit.

    Parameters
    ----------
    path : str or path-like
        "{iteration}" in it becomes the number of the epoch, sweep or step (of the trial, for `OneClassSVM`), so that
        all files are kept. Python's format specifications such as "{iteration:03d}" work.
    every : int, default=1
        Iterations between two writings. Steps in which coefficients are solved for are always written.

    Raises
    ------
    FileNotFoundError
        When a fit begins: the folder does not exist.
    ValueError
        The path has other fields, or is a file that the rows are read from; or, in the first iteration, the solver has
        no model before its end.
    OSError
        A file cannot be written; an older file of that name is unchanged.

    Examples
    --------
    >>> import os, tempfile
    >>> import slimsvm
    >>> from slimsvm import BSGD, SVC, Checkpoint
    >>> from slimsvm.datasets import checkerboard
    >>> X, y = checkerboard(500, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "epoch-{iteration}.slim")
    >>> clf = SVC(gamma=10, solver=BSGD(30, epochs=4), random_state=0).set_callbacks(Checkpoint(path, every=2))
    >>> sorted(os.listdir(os.path.dirname(path))) if clf.fit(X, y) else None
    ['epoch-2.slim', 'epoch-4.slim']
    >>> slimsvm.load(path.format(iteration=2)).n_basis_
    30
    """

    def __init__(self, path, every=1):
        self.path = os.fsdecode(path)
        self.every = check_at_least("every", every, 1)
        try:
            self.path.format(iteration=1)
        except (KeyError, IndexError, ValueError) as error:
            raise ValueError(f"path may have the field {{iteration}} and no other, found {self.path!r}") from error

    def setup(self, estimator: Any, context: Any) -> None:
        """Refuse a folder that is not there, and a file of the rows, before any work."""
        check_path(estimator, self.path.format(iteration=1))
        folder = os.path.dirname(os.path.abspath(self.path.format(iteration=1)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"Checkpoint writes to {self.path!r}, but there is no folder {folder!r}")

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing is left to do."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing is there to write."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> None:
        """Write the model of the iteration that ended, or of a step of one."""
        if context.task_name not in ("iteration", "step"):
            return
        is_step = context.task_name == "step"
        iteration = (context.parent if is_step else context).task_id + 1
        if iteration % self.every and not is_step:
            return
        if fitted_estimator is None:
            raise ValueError(
                "Checkpoint needs a solver with a model after every iteration, 'bsca', 'bsgd', 'refine' or 'low-rank', "
                f"found {estimator.solver!r}"
            )
        from slimsvm.estimators._shared.saving import save

        save(fitted_estimator, self.path.format(iteration=iteration), with_state=True)
