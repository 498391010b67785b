"""Estimators whose rows are Dask arrays or dataframes: the same bits as from `slimsvm.Blocks` on one computer.

Needs ``pip install 'slimsvm[dask]'``; docs/dask.md says how it works and what it costs.
"""

from typing import TYPE_CHECKING, Any

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm.dask.estimators import SVC, SVR

__all__ = ["SVC", "SVR"]

NOT_HERE = ("NuSVC", "NuSVR", "OneClassSVM", "OrdinalSVC")

# Every worker imports this package for what it does with its rows, and not scikit-learn, which takes seconds.
_get, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "estimators"))


def __getattr__(name: str) -> Any:
    if name in NOT_HERE:
        raise ImportError(
            f"there is no slimsvm.dask.{name}: it needs all rows in memory; slimsvm.{name} can train on a sample"
        )
    return _get(name)
