"""Labels, targets and weights of Dask collections, brought to the client."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.dask.cluster import Cluster
from slimsvm.rows import find_not_finite


def vector_of(name: str, values: Any, cluster: Cluster) -> Any:
    """Labels or weights of a Dask collection as an array in this process; others as they are.

    Raises
    ------
    ValueError
        A partition has another kind of labels than the first, or a NaN or an infinity.
    """
    if not hasattr(values, "to_delayed"):
        return values
    if hasattr(values, "chunks") and getattr(values, "ndim", 1) == 2 and len(values.chunks[1]) > 1:
        values = values.rechunk({1: values.shape[1]})
    delayed = values.to_delayed()
    futures = cluster.compute(delayed.ravel().tolist() if isinstance(delayed, np.ndarray) else list(delayed))
    parts = [
        coded[codes] if coded is not None else codes
        for coded, codes in cluster.gather_partitions(name, cluster.submit_all(_coded, futures), futures)
    ]
    _check_parts(name, parts)
    return np.concatenate([part for part in parts if len(part)] or parts[:1])


def _check_parts(name: str, parts: list[np.ndarray]) -> None:
    """All hold numbers, or all others; numbers are finite."""
    first, start = next((i for i, part in enumerate(parts) if len(part)), 0), 0
    for i, part in enumerate(parts):
        if not len(part):
            continue
        if (part.dtype.kind in "buif") != (parts[first].dtype.kind in "buif"):
            raise ValueError(
                f"{name} has values of {part.dtype} in partition {i}, expected are such as the {parts[first].dtype} of "
                f"partition {first}"
            )
        bad = find_not_finite(part.reshape(len(part), -1))
        if bad is not None:
            row, _, value = bad
            what = "NaN" if np.isnan(value) else "infinity (inf)"
            raise ValueError(
                f"{name} contains {what} at row {start + row}, which is row {row} of partition {i}; only finite "
                "numbers are accepted"
            )
        start += len(part)


def _coded(part: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """Values, of Python's objects (strings) each only once, and which of these a row has."""
    values = np.asarray(part)
    if values.dtype.kind != "O" or values.ndim != 1:
        return None, values
    import pandas

    codes, each = pandas.factorize(values)
    if (codes < 0).any():  # something is missing: said where all is checked
        return None, values
    return np.asarray(each, object), codes.astype(np.min_scalar_type(len(each)))
