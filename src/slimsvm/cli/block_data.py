"""Data of a command that are read block by block: Parquet, folders of it, and several files by a pattern."""

from __future__ import annotations

import argparse
import glob
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.cli.data import ZERO_BASED, Part, Trained, dense_if_smaller
from slimsvm.cli.output import CommandError
from slimsvm.datasets import DataWarning, read_libsvm_blocks
from slimsvm.datasets.csv_tables import LABEL_NAMES, UNNAMED, Asked, by_name, is_index, say_index
from slimsvm.datasets.readers import whole_numbers
from slimsvm.rows import Blocks, Rows

# Rows are read into memory where they take no more than this share of what the solver may.
SHARE = 1 / 4


def is_read_in_blocks(source: str) -> bool:
    """Whether a source is a Parquet file, a folder of such, or a pattern of files' names (``part-*.libsvm.gz``)."""
    if os.path.isdir(source):
        return any(Path(source).rglob("*.parquet"))
    if os.path.exists(source):
        return source.endswith(".parquet")
    return glob.has_magic(source)


def files_of(source: str) -> list[str]:
    """The files, or folders, that a source stands for."""
    return [source] if os.path.exists(source) else sorted(glob.glob(source))


def read_blocks(source: str, args: argparse.Namespace, trained: Trained | None, labels_needed: bool) -> Part:
    """Rows as `Blocks`, and their labels.

    Parameters
    ----------
    source : str
    args : Namespace
        With what `data.add_reading_options` asks for.
    trained : Trained or None
        Features that there must be (LIBSVM text: may be).
    labels_needed : bool
        False: Parquet may hold no labels.
    """
    files = files_of(source)
    if not files:
        raise CommandError(f"{source}: no file has a name like that")
    is_parquet = [os.path.isdir(file) or file.endswith(".parquet") for file in files]
    n_features = None if trained is None else trained.n_features
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        if all(is_parquet):
            part = _parquet(source, files, args, trained, labels_needed)
        elif any(is_parquet):
            raise CommandError(f"{source}: some files are Parquet ({files[is_parquet.index(True)]}), others are not")
        else:
            part = Part(source, *read_libsvm_blocks(files, n_features, ZERO_BASED[args.zero_based]))
    if n_features is not None and part.X.n_features != n_features:
        raise CommandError(f"{source}: found {part.X.n_features} features, the model was trained on {n_features}")
    return part


def in_memory(part: Part, megabytes: float) -> Part:
    """The part with rows that were to be read in blocks as one array, where this takes a quarter of the memory limit at
    most.
    """
    X = part.X
    if not isinstance(X, Rows):
        return part
    n_values = X.n_stored if X.is_sparse else X.n_rows * X.n_features
    if n_values * X.exact_dtype.itemsize > SHARE * 1e6 * megabytes:
        return part
    return replace(part, X=dense_if_smaller(X.slice(0, X.n_rows, X.exact_dtype)))


def _parquet(
    source: str, files: list[str], args: argparse.Namespace, trained: Trained | None, labels_needed: bool
) -> Part:
    """Rows and labels of Parquet files: the column that was named, that of training, or one of the usual names."""
    try:
        import pyarrow  # noqa: F401

        from slimsvm.rows import arrow
    except ImportError:
        raise CommandError(f"{source}: Parquet files need pyarrow: pip install 'slimsvm[parquet]'") from None
    names = arrow.parquet_parts(files)[0].schema.names
    wanted, known = (None, None) if trained is None else (trained.names, trained.label)
    usual = (name for name in (known, *LABEL_NAMES) if name in names and name not in (wanted or ()))
    label: str | None = args.target or next(usual, None)
    if label is None and labels_needed:
        raise CommandError(f"{source}: which column holds the labels? --label NAME says it; there are {names}")
    if label not in names and not labels_needed:
        label = None
    if wanted is not None:
        layout = by_name(names, Asked(target=label or False, columns=wanted), source)
        wanted = [names[at] for at in layout.features]
    X, y = _blocks(files, wanted, label)
    features = X.feature_names or []
    numbering = [] if trained is not None else [name for name in features if _numbers_rows(files, name, X.n_rows)]
    if numbering:
        say_index(source, numbering)
        X, y = _blocks(files, [name for name in features if name not in numbering], label)
    return Part(source, X, y, names=X.feature_names, label=label)


def _blocks(files: list[str], columns: Sequence[str] | None, label: str | None) -> tuple[Blocks, Any]:
    if label is None:
        return Blocks.from_parquet(files, columns), None
    X, y = Blocks.from_parquet(files, columns, label)
    return X, whole_numbers(y) if y.dtype.kind == "f" else y


def _numbers_rows(files: list[str], column: str, n_rows: int) -> bool:
    """Whether a column only numbers the rows."""
    if UNNAMED.fullmatch(column) is None:
        return False
    return is_index(column, Blocks.from_parquet(files, [column]).slice(0, n_rows, np.float64)[:, 0])
