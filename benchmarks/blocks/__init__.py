"""Rows beyond memory: from files, by Dask, with workers that die, beside boosted trees."""
