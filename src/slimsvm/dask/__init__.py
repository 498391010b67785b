"""Estimators whose rows are Dask arrays or dataframes: the same bits as from `slimsvm.Blocks` on one machine.

Needs ``pip install 'slimsvm[dask]'``; docs/dask.md says how it works and what it costs.
"""

from typing import TYPE_CHECKING

from slimsvm.lazy import lazy_names

if TYPE_CHECKING:
    from slimsvm.dask.estimators import SVC, SVR

__all__ = ["SVC", "SVR"]

# Every worker imports this package for what it does with its rows, and not scikit-learn, which takes seconds.
__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, "estimators"))
