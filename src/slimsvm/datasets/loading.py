"""The benchmark sets by name: `load` finds, downloads, splits and scales them; `available` lists them."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.sparse import diags_array

from slimsvm.datasets.catalogue import SOURCES, ScalingName, Source
from slimsvm.datasets.files import DataError
from slimsvm.whole_file import write_whole


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


# ---- scaling, fitted on the training part and applied to every part


SCALINGS = ("minmax", "standard", "maxabs")


@dataclass(frozen=True, eq=False)
class Scaling:
    """The map x -> (x - shift) / width, per feature; `shift` is None if nothing is subtracted.

    Attributes
    ----------
    shift : ndarray of shape (d,) or None
    width : ndarray of shape (d,)
        Infinite where the feature is constant, so that it becomes 0.
    """

    shift: np.ndarray | None
    width: np.ndarray

    def apply(self, X: Any) -> Any:
        """Return X scaled: float32 stays float32, other types become float64, sparse stays sparse."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        if not isinstance(X, np.ndarray):
            return (X @ diags_array(1 / self.width)).tocsr().astype(dtype)
        scaled = X.astype(np.float64)
        if self.shift is not None:
            scaled -= self.shift
        scaled /= self.width
        return scaled.astype(dtype, copy=False)


def fit_scaling(X: Any, scaling: str) -> Scaling:
    """Return the scaling that X, the training part, asks for.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n, d)
    scaling : {"minmax", "standard", "maxabs"}
        "minmax": to [0, 1]; "standard": to mean 0 and standard deviation 1; "maxabs": to [-1, 1] without a shift, the
        only one for sparse X, whose zeros it keeps. A feature that is constant in X becomes 0 ("maxabs": a feature that
        is 0 throughout stays 0).

    Raises
    ------
    DataError
        For another name, and for "minmax" or "standard" with sparse X.
    """
    if scaling not in SCALINGS:
        raise DataError(f"scaling must be None or one of {', '.join(map(repr, SCALINGS))}, found {scaling!r}")
    if scaling == "maxabs":
        low, high = (_as_vector(X.min(axis=0)), _as_vector(X.max(axis=0)))
        return Scaling(None, _positive(np.maximum(np.abs(low), np.abs(high))))
    if not isinstance(X, np.ndarray):
        raise DataError(f"scaling={scaling!r} would fill the zeros of sparse rows; accepted for them is 'maxabs'")
    if scaling == "minmax":
        low = X.min(axis=0).astype(np.float64)
        return Scaling(low, _positive(X.max(axis=0).astype(np.float64) - low))
    return Scaling(X.mean(axis=0, dtype=np.float64), _positive(X.std(axis=0, dtype=np.float64)))


def _as_vector(row: Any) -> np.ndarray:
    return np.asarray(row if isinstance(row, np.ndarray) else row.toarray(), dtype=np.float64).ravel()


def _positive(width: np.ndarray) -> np.ndarray:
    return np.where(width > 0, width, np.inf)


# ---- folders that are searched, downloads, checksums


_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"

# Files that can be downloaded from their first source. A download is decompressed, its line ends are made LF, and it is
# compressed again by bzip2 -9 before it is compared with the checksum: another packing of the same data is no change.
URLS = {
    "a9a.bz2": f"{_LIBSVM}/binary/a9a",
    "a9a.t.bz2": f"{_LIBSVM}/binary/a9a.t",
    "cod-rna.bz2": f"{_LIBSVM}/binary/cod-rna",
    "cod-rna.t.bz2": f"{_LIBSVM}/binary/cod-rna.t",
    "ijcnn1.bz2": f"{_LIBSVM}/binary/ijcnn1.bz2",
    "ijcnn1.t.bz2": f"{_LIBSVM}/binary/ijcnn1.t.bz2",
    "sector.scale.bz2": f"{_LIBSVM}/multiclass/sector/sector.scale.bz2",
    "sector.t.scale.bz2": f"{_LIBSVM}/multiclass/sector/sector.t.scale.bz2",
}

SHA256 = {
    "a9a.bz2": "1dcb2b4aedea0b5a9e964192dd211675d16cf05ab6477ddd0702d87c1d1af8da",
    "a9a.t.bz2": "e55725b53c3c47f7053bd3ef12e41555539eac4c0fe989e69345cc4dd0ea6e8d",
    "cod-rna.bz2": "a781557c85cccdfc8123cd3bf6d6b1a35eac8a9ac0d2bbc80a90332c887b2d99",
    "cod-rna.t.bz2": "372457fab08e9705922662d56993b2f7be11feaa8de5d240dfa66700a5d1e2da",
    "conll2000.test.txt.bz2": "4017c8dd6c2450ef6f379f8a208fb84a375bb20c0a8a39e19ba2cf24522f9ec5",
    "conll2000.train.txt.bz2": "805108a2c73ab6db76586cdc27f9a263539cfcf441bd8ca58e1af541fb9322b4",
    "covtype_457k.npz": "a91ede08f551477abe6a401d409d5fc0d26c9e88b793c6b8328712efcf230961",
    "covtype_subset.npz": "a3959c77d7d817d1d022b89090865df173bcebedd17bad1abb9e1c6623023fcc",
    "higgs_subset.npz": "b6fc432e55c9672e53b8ff6be1e5ba1216038f6b83ea2f4bcde90eb664316252",
    "ida_benchmarks.npz": "d418063127e59c7914fef0b1a4c94028412cb7806655b98b62174ee81a233a14",
    "ijcnn1.bz2": "b38a4198ce142d43e96fb86d17b87211feec1f909ac344fa057455c69de29de3",
    "ijcnn1.t.bz2": "acd1db430684fdd3f0c768ecc49aa8e749d0004fc117611220c2aa576a7b6a24",
    "kddcup99_10pct.npz": "851bac7cf13bcc2e6b4c6c3bc29eaf1abbbe6f12ee7340b37d19baec381e23ed",
    "mnist.npz": "58c05ffd9880e3b6ddfe8c74b89ccc40c0da6f6152f4c5203a7c6a12919c2344",
    "ocr_letters.npz": "f3edef09ca6d75401dfd2039dc0805da6cf7d54336f15f400bf9005c7a28eb19",
    "rcv1_subsets.npz": "781c3af12be691971700b770503cef4b10a3476c3fa85412d8dde155dbcc8e47",
    "reuters_moneyfx.bz2": "e77a3368662c02caebe0d9cbcc97d856019bcfb33a8e9b7c48e0b51ee4cdfb60",
    "reuters_moneyfx.t.bz2": "3d699b9644a38160bf3228059d18fbfc07474057d8e82d512576a2b82d72e211",
    "sector.scale.bz2": "cba3d66eed97803665eeb76379fe9d9955712ea0e5c61d7003f644713ed842b5",
    "sector.t.scale.bz2": "c8c26e073abd92dda9e2a7903546fbe3c783a8d6141ec3fad360de4c0a572cbc",
    "susy_subset.npz": "c29eabafd7a160217a0724ea89f2844ecf64df22bb843793f53b220127b1afc7",
}


def search_folders(data_home: str | os.PathLike | None = None) -> list[Path]:
    """Return the folders that are searched for data files, first one first; a DataError says that `data_home` or
    SLIMSVM_DATA names no folder.

    They are `data_home`, the folder named by the environment variable SLIMSVM_DATA, `../shared/data` beside the working
    directory and beside the checkout this package runs from, and the cache folder that downloads go to.
    """
    folders = []
    for origin, named in (("data_home", data_home), ("SLIMSVM_DATA", os.environ.get("SLIMSVM_DATA"))):
        if named:
            if not Path(named).is_dir():
                raise DataError(f"{origin} is {os.fspath(named)!r}, which is not a folder")
            folders.append(Path(named))
    checkout = Path(__file__).resolve().parents[3]
    bases = [Path.cwd(), checkout] if (checkout / "pyproject.toml").exists() else [Path.cwd()]
    folders += [base.parent / "shared" / "data" for base in bases]
    folders.append(cache_folder())
    return list(dict.fromkeys(folders))


def cache_folder() -> Path:
    """Return the folder that downloads go to: `slimsvm` in XDG_CACHE_HOME, or else in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "slimsvm"


def find_file(filename: str, data_home: str | os.PathLike | None = None) -> Path | None:
    """Return the first file of this name in the folders that are searched, or None."""
    paths = (folder / filename for folder in search_folders(data_home))
    return next((path for path in paths if path.is_file()), None)


def verify_file(path: Path) -> None:
    """Raise a DataError unless the file has the SHA-256 on record for its name."""
    _compare(path.read_bytes(), path.name, str(path))


def download_file(filename: str) -> Path:
    """Download a file of `URLS` into the cache folder, check it, and return where it is.

    A DataError says that there is no address, that the download fails, or that its content is not what the checksum
    says; nothing is kept then.
    """
    if filename not in URLS:
        raise DataError(f"{filename}: there is no address to download it from")
    url = URLS[filename]
    try:
        with urllib.request.urlopen(url, timeout=60.0) as answer:
            content = answer.read()
        packed = _pack(content)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{filename}: the download from {url} failed: {error}") from None
    _compare(packed, filename, url)
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / filename, [packed])
    return folder / filename


def _pack(content: bytes) -> bytes:
    if content.startswith(b"BZh"):
        content = bz2.decompress(content)
    elif content.startswith(b"\x1f\x8b"):
        content = gzip.decompress(content)
    return bz2.compress(content.replace(b"\r\n", b"\n"), 9)


def _compare(content: bytes, filename: str, where: str) -> None:
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[filename]:
        raise DataError(f"{where}: the content of {filename} has SHA-256 {found}, expected is {SHA256[filename]}")
