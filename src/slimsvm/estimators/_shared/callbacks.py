"""scikit-learn's callbacks, or ours where it has none: they came with its version 1.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["CallbackSupportMixin", "with_callbacks"]

if TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        from slimsvm.estimators._shared.own_callbacks import CallbackSupportMixin, with_callbacks
