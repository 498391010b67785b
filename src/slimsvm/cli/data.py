"""Data of a command: a file, or a benchmark set by its name."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.cli.output import CommandError
from slimsvm.datasets import DataError, Dataset, find, load, read_data

ZERO_BASED: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}


@dataclass(frozen=True)
class Part:
    """Rows and labels as they were read.

    Parameters
    ----------
    name : str
        The file, or the set and its part.
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,) or None
        None where the file has no labels.
    extra : dict
        What `fit` and `score` take besides: the ``groups`` of rows to rank, the ``lengths`` of sequences.
    """

    name: str
    X: Any
    y: Any
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Options that say how text is to be read."""
    group = parser.add_argument_group("reading data")
    group.add_argument(
        "--target", "--label", metavar="NAME", help="column of the label in a CSV or Parquet file, or its array in a "
        ".npz file (default: a column called label, target, y or class, or else the last of a CSV file; array y)",
    )  # fmt: skip
    group.add_argument(
        "--zero-based",
        choices=ZERO_BASED,
        default="auto",
        help="whether indices of LIBSVM text count from 0 (default: auto, they do if a 0 occurs in the file; give "
        "it if files could differ)",
    )


def is_set(source: str) -> bool:
    """Whether a source is the name of a benchmark set: files come first."""
    if os.path.exists(source):
        return False
    try:
        find(source)
    except DataError:
        return False
    return True


def load_set(name: str) -> Dataset:
    """A benchmark set whose rows are numbers."""
    data = load(name)
    if data.X_train.dtype.kind not in "biuf":
        raise CommandError(f"{name}: its rows are words, and no kernel takes words")
    return data


def read_part(source: str, args: argparse.Namespace, n_features: int | None = None, labels_needed: bool = True) -> Part:
    """Rows and labels of one file.

    Parameters
    ----------
    source : str
    args : Namespace
        With what `add_reading_options` asks for.
    n_features : int, optional
        Columns the file must have (LIBSVM text: may have).
    labels_needed : bool
        False: a CSV or .npz file may also hold exactly `n_features` features and no label.
    """
    if not os.path.exists(source):
        raise CommandError(f"{source}: there is no such file, nor a data set of that name (see `slimsvm datasets`)")
    options: dict[str, Any] = {"n_features": n_features, "zero_based": ZERO_BASED[args.zero_based]}
    try:
        X, y = read_data(source, target=args.target, **options)
    except DataError:
        if labels_needed or args.target is not None:
            raise
        try:
            X, y = read_data(source, target=False, **options)
        except DataError:
            X = None
        if X is None:
            raise
    return Part(source, dense_if_smaller(X), y)


def dense_if_smaller(X: Any) -> Any:
    """Sparse rows as an array where that takes no more memory: with so few zeros it is faster too."""
    if isinstance(X, np.ndarray) or X.shape[0] * X.shape[1] * X.dtype.itemsize > X.data.nbytes + X.indices.nbytes:
        return X
    return X.toarray()


def check_model_path(path: str) -> None:
    """Refuse a model's path that cannot be written, before the work begins."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise CommandError(f"{path}: is a folder, a file's name is needed for the model")
    if target.exists() and not target.is_file():
        raise CommandError(f"{path}: is not a regular file, the model cannot replace it")
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {os.fspath(folder)!r} to write the model to")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{path}: the folder {os.fspath(folder)!r} is not writable")
