"""The benchmark sets by name: `load`, and which of them are on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from slimsvm.datasets.catalogue import SOURCES, ScalingName, Source
from slimsvm.datasets.files import DataError
from slimsvm.datasets.locate import URLS, download_file, find_file, verify_file
from slimsvm.datasets.scaling import SCALINGS, fit_scaling


@dataclass(frozen=True, eq=False)
class Dataset:
    """A benchmark set with its split.

    Attributes
    ----------
    name : str
    X_train, X_test : ndarray or csr_array of shape (n, d)
        Rows. For conll2000 an array of strings with two columns, word and part of speech.
    y_train, y_test : ndarray of shape (n,)
        Labels: int64, for sets of two classes -1 and +1; for conll2000 strings.
    X_valid, y_valid : as above, or None
        A validation part, if the source has one.
    train_offsets, test_offsets : int64 ndarray of shape (N + 1,), or None
        For sets of sequences: sequence e consists of the rows offsets[e] to offsets[e + 1].
    description : str
        What it is, the split and the scaling.
    scaling : str or None
        The scaling that was applied.
    source : tuple of Path
        The files it was read from.
    """

    name: str
    X_train: Any
    y_train: np.ndarray
    X_test: Any
    y_test: np.ndarray
    description: str
    scaling: str | None
    source: tuple[Path, ...]
    X_valid: Any = None
    y_valid: np.ndarray | None = None
    train_offsets: np.ndarray | None = None
    test_offsets: np.ndarray | None = None

    def sequences(self, part: Literal["train", "test"] = "train") -> Iterator[tuple[Any, np.ndarray]]:
        """Yield (rows, labels) of each sequence of a part; a DataError if this is not a set of sequences."""
        offsets = getattr(self, f"{part}_offsets")
        if offsets is None:
            raise DataError(f"{self.name} is not a set of sequences")
        X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
        for low, high in pairwise(offsets):
            yield X[low:high], y[low:high]


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a benchmark set, without reading the set.

    Attributes
    ----------
    name : str
    found : bool
        Whether all its files are on this machine.
    paths : tuple of Path
        The files found.
    n_train, n_test, n_features, n_classes : int
    description : str
    origin : str
        Who published it.
    """

    name: str
    found: bool
    paths: tuple[Path, ...]
    n_train: int
    n_test: int
    n_features: int
    n_classes: int
    description: str
    origin: str


def load(
    name: str,
    data_home: str | os.PathLike | None = None,
    *,
    scaling: ScalingName | Literal["default"] | None = "default",
    download: bool = True,
    verify: bool = False,
) -> Dataset:
    """Load a benchmark set with its documented split and scaling.

    Parameters
    ----------
    name : str
        One of the names that `available` lists; `name-3` is the third realisation of a set that has several.
    data_home : path-like, optional
        A folder to look in first. Then come the folder that the environment variable SLIMSVM_DATA names,
        `../shared/data` beside the working directory and beside the checkout, and the cache folder
        (`~/.cache/slimsvm`).
    scaling : {"default", None, "minmax", "standard", "maxabs"}
        Scaling of the features, always fitted on the training part: to [0, 1], to mean 0 and deviation 1, to [-1, 1]
        without a shift (the only one for sparse rows), or none. "default": as the set's description says.
    download : bool
        Whether files that are not found are downloaded to the cache folder, if an address is known.
    verify : bool
        Whether local files are checked by their SHA-256 too (downloads always are).

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If there is no such set, its files are not found, a checksum differs, or the scaling does not apply to it.

    Examples
    --------
    >>> from slimsvm.datasets import load
    >>> data = load("banana-3")                                     # doctest: +SKIP
    >>> data.X_train.shape, data.X_test.shape                       # doctest: +SKIP
    ((400, 2), (4900, 2))
    """
    source, realisation = _look_up(name)
    if scaling not in ("default", None, *SCALINGS):
        known = ", ".join(map(repr, ("default", *SCALINGS)))
        raise DataError(f"scaling must be None or one of {known}, found {scaling!r}")
    paths = tuple(_obtain(filename, name, source, data_home, download) for filename in source.files)
    if verify:
        for path in paths:
            verify_file(path)
    arrays = source.read(paths) if source.n_realisations == 1 else source.read(paths, realisation)
    chosen = source.scaling if scaling == "default" else scaling
    if chosen is not None:
        if arrays["X_train"].dtype.kind not in "iuf":
            raise DataError(f"{name} holds words, scaling={chosen!r} does not apply to them")
        fitted = fit_scaling(arrays["X_train"], chosen)
        for part in ("X_train", "X_test", "X_valid"):
            if part in arrays:
                arrays[part] = fitted.apply(arrays[part])
    return Dataset(name=name, description=source.description, scaling=chosen, source=paths, **arrays)


def find(name: str, data_home: str | os.PathLike | None = None) -> tuple[Path, ...] | None:
    """Return the paths of a benchmark set's files, or None if one of them is not on this machine.

    Raises
    ------
    DataError
        If there is no set of this name.
    """
    source, _ = _look_up(name)
    paths = _paths_found(source, data_home)
    return paths if len(paths) == len(source.files) else None


def available(data_home: str | os.PathLike | None = None) -> list[DatasetInfo]:
    """Return the description of every benchmark set, and which of its files are on this machine, without reading."""
    return [_describe(name, source, _paths_found(source, data_home)) for name, source in SOURCES.items()]


def _describe(name: str, source: Source, paths: tuple[Path, ...]) -> DatasetInfo:
    n_train, n_test, n_features, n_classes = source.shape
    return DatasetInfo(
        name=name,
        found=len(paths) == len(source.files),
        paths=paths,
        n_train=n_train,
        n_test=n_test,
        n_features=n_features,
        n_classes=n_classes,
        description=source.description,
        origin=source.origin,
    )


def _paths_found(source: Source, data_home: str | os.PathLike | None) -> tuple[Path, ...]:
    return tuple(path for filename in source.files if (path := find_file(filename, data_home)) is not None)


def _look_up(name: str) -> tuple[Source, int]:
    """Return a set's source and the number of the realisation that its name asks for."""
    if name in SOURCES:
        return SOURCES[name], 1
    base, _, number = name.rpartition("-")
    source = SOURCES.get(base)
    if source is not None and source.n_realisations > 1 and re.fullmatch("[0-9]{1,3}", number):
        if not 1 <= int(number) <= source.n_realisations:
            raise DataError(f"{base} has the realisations 1 to {source.n_realisations}, found {number}")
        return source, int(number)
    raise DataError(f"found no data set named {name!r}; known are {', '.join(sorted(SOURCES))}")


def _obtain(filename: str, name: str, source: Source, data_home: str | os.PathLike | None, download: bool) -> Path:
    path = find_file(filename, data_home)
    if path is not None:
        return path
    advice = f"it comes from {source.origin}; put the file in the folder that SLIMSVM_DATA names"
    if filename not in URLS:
        raise DataError(f"{name}: {filename} is not on this machine and has no address to download it from; {advice}")
    if not download:
        raise DataError(f"{name}: {filename} is not on this machine; {advice}, or load it with download=True")
    try:
        return download_file(filename)
    except DataError as error:
        raise DataError(f"{error}; {advice}") from None
