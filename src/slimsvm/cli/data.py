"""Data of a command: a file, or a benchmark set by its name."""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.cli.output import CommandError
from slimsvm.datasets import DataError, Dataset, DataWarning, find, load
from slimsvm.datasets.csv_tables import Asked
from slimsvm.datasets.readers import read_table

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
    names : list of str or None
        The features, where the file has names of columns.
    label : str or None
        The column of the labels, where it has a name.
    """

    name: str
    X: Any
    y: Any
    extra: dict[str, Any] = field(default_factory=dict)
    names: list[str] | None = None
    label: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.X.shape[0]


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """Options that say how text is to be read."""
    group = parser.add_argument_group("reading data")
    group.add_argument(
        "--target", "--label", metavar="NAME", help="column of the label in a CSV or Parquet file, or its array in a "
        ".npz file (default: a column called label, target, y or class, or else the last of a CSV file; array y); its "
        "number, from 1 on, where a CSV file has no header",
    )  # fmt: skip
    group.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None,
        help="whether the first line of a CSV file names the columns (default: by what it looks like)",
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


@dataclass(frozen=True)
class Trained:
    """What a model was trained on, which other rows must have too.

    Parameters
    ----------
    n_features : int
    names : list of str or None
        The features, where they have names.
    label : str or None
        The column of the labels, where it has a name.
    """

    n_features: int
    names: Sequence[str] | None = None
    label: str | None = None


def asked_of(args: argparse.Namespace, trained: Trained | None, labels_needed: bool) -> Asked:
    """What is asked of a file: by the options, and by what the model was trained on."""
    if trained is None:
        return Asked(None, args.target, args.header, labels_needed=labels_needed)
    label = None if args.target is not None else trained.label
    n_features = trained.n_features if trained.names is None else None
    return Asked(n_features, args.target, args.header, trained.names, label, labels_needed)


def read_part(
    source: str,
    args: argparse.Namespace,
    trained: Trained | None = None,
    labels_needed: bool = True,
    query_id: bool = False,
) -> Part:
    """Rows and labels of one file.

    Parameters
    ----------
    source : str
    args : Namespace
        With what `add_reading_options` asks for.
    trained : Trained, optional
        Columns the file must have (LIBSVM text: may have).
    labels_needed : bool
        False: a CSV or .npz file may also hold features alone.
    query_id : bool
        Whether rows must name their queries.
    """
    if not os.path.exists(source):
        raise CommandError(f"{source}: there is no such file, nor a data set of that name (see `slimsvm datasets`)")
    asked = asked_of(args, trained, labels_needed)
    with warnings.catch_warnings():
        warnings.simplefilter("always", DataWarning)
        found = read_table(source, asked, ZERO_BASED[args.zero_based], query_id=query_id)
    extra = {"groups": found.qid} if query_id else {}
    return Part(source, dense_if_smaller(found.X), found.y, extra, found.names, found.label)


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
