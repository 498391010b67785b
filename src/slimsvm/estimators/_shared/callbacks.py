"""scikit-learn's callbacks, or ours where it has none: they came with its version 1.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["CallbackSupportMixin", "begun_fit", "with_callbacks"]

if TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        from slimsvm.estimators._shared.own_callbacks import CallbackSupportMixin, with_callbacks


class _NoOne:
    """In the place of a fit's context where there are no callbacks: to make one takes a fiftieth of a small fit."""

    def call_on_fit_task_begin(self, **facts: Any) -> None:
        """Tell no one."""

    def call_on_fit_task_end(self, **facts: Any) -> bool:
        """Tell no one; no one wants to stop."""
        return False


def begun_fit(estimator: Any, max_subtasks: int | None) -> Any:
    """What tells an estimator's callbacks of its fit, and those of an estimator around it that watches its tasks."""
    is_watched = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    return estimator._init_callback_context(max_subtasks=max_subtasks) if is_watched else _NoOne()
