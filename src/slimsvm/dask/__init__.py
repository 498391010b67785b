"""Estimators whose rows are Dask arrays or dataframes: the same bits as from `slimsvm.Blocks` on one machine.

Needs ``pip install 'slimsvm[dask]'``; docs/dask.md says how it works and what it costs.
"""

from slimsvm.dask.estimators import SVC, SVR

__all__ = ["SVC", "SVR"]
