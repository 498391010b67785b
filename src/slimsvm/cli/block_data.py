"""Data of a command that are read block by block: Parquet, folders of it, and several files by a pattern."""

from __future__ import annotations

import argparse
import glob
import os
from pathlib import Path
from typing import Any

from slimsvm.cli.data import ZERO_BASED, Part
from slimsvm.cli.output import CommandError
from slimsvm.datasets import read_libsvm_blocks
from slimsvm.rows import Blocks

# Columns that hold labels where none is named, in this order.
LABELS = ("label", "target", "y", "class")


def is_read_in_blocks(source: str) -> bool:
    """Whether a source is a Parquet file, a folder of such, or a pattern of files' names (``part-*.libsvm.gz``)."""
    if os.path.isdir(source):
        return any(Path(source).rglob("*.parquet"))
    if os.path.exists(source):
        return source.endswith(".parquet")
    return glob.has_magic(source)


def read_blocks(source: str, args: argparse.Namespace, n_features: int | None, labels_needed: bool) -> Part:
    """Rows as `Blocks`, and their labels.

    Parameters
    ----------
    source : str
    args : Namespace
        With what `data.add_reading_options` asks for.
    n_features : int or None
        Features that there must be (LIBSVM text: may be).
    labels_needed : bool
        False: Parquet may hold no labels.
    """
    files = [source] if os.path.exists(source) else sorted(glob.glob(source))
    if not files:
        raise CommandError(f"{source}: no file has a name like that")
    is_parquet = [os.path.isdir(file) or file.endswith(".parquet") for file in files]
    if all(is_parquet):
        X, y = _parquet(source, files, args, labels_needed)
    elif any(is_parquet):
        raise CommandError(f"{source}: some files are Parquet ({files[is_parquet.index(True)]}), others are not")
    else:
        X, y = read_libsvm_blocks(files, n_features=n_features, zero_based=ZERO_BASED[args.zero_based])
    if n_features is not None and X.n_features != n_features:
        raise CommandError(f"{source}: found {X.n_features} features, the model was trained on {n_features}")
    return Part(source, X, y)


def _parquet(source: str, files: list[str], args: argparse.Namespace, labels_needed: bool) -> tuple[Blocks, Any]:
    """Rows and labels of Parquet files: the column that was named, or one of the usual names."""
    try:
        import pyarrow  # noqa: F401

        from slimsvm.rows import arrow
    except ImportError:
        raise CommandError(f"{source}: Parquet files need pyarrow: pip install 'slimsvm[parquet]'") from None
    names = arrow.parquet_parts(files)[0].schema.names
    label = args.target or next((name for name in LABELS if name in names), None)
    if label is None and labels_needed:
        raise CommandError(f"{source}: which column holds the labels? --label NAME says it; there are {names}")
    if label is None or (label not in names and not labels_needed):
        return Blocks.from_parquet(files), None
    return Blocks.from_parquet(files, label=label)
