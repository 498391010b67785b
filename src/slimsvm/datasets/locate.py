"""Where the files of the benchmark sets are: folders that are searched, download, checksums."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import urllib.request
from pathlib import Path

from slimsvm.datasets.files import DataError
from slimsvm.whole_file import write_whole

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"

# Files that can be had from their first source. What is downloaded is decompressed, its line ends made LF, compressed
# again by bzip2 -9 and only then compared with the checksum, so that a page that changes its packing changes nothing.
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
    "covtype_subset.npz": "a3959c77d7d817d1d022b89090865df173bcebedd17bad1abb9e1c6623023fcc",
    "higgs_subset.npz": "b6fc432e55c9672e53b8ff6be1e5ba1216038f6b83ea2f4bcde90eb664316252",
    "ida_benchmarks.npz": "d418063127e59c7914fef0b1a4c94028412cb7806655b98b62174ee81a233a14",
    "ijcnn1.bz2": "b38a4198ce142d43e96fb86d17b87211feec1f909ac344fa057455c69de29de3",
    "ijcnn1.t.bz2": "acd1db430684fdd3f0c768ecc49aa8e749d0004fc117611220c2aa576a7b6a24",
    "kddcup99_10pct.npz": "851bac7cf13bcc2e6b4c6c3bc29eaf1abbbe6f12ee7340b37d19baec381e23ed",
    "mnist.npz": "58c05ffd9880e3b6ddfe8c74b89ccc40c0da6f6152f4c5203a7c6a12919c2344",
    "ocr_letters.npz": "f3edef09ca6d75401dfd2039dc0805da6cf7d54336f15f400bf9005c7a28eb19",
    "reuters_moneyfx.bz2": "e77a3368662c02caebe0d9cbcc97d856019bcfb33a8e9b7c48e0b51ee4cdfb60",
    "reuters_moneyfx.t.bz2": "3d699b9644a38160bf3228059d18fbfc07474057d8e82d512576a2b82d72e211",
    "sector.scale.bz2": "cba3d66eed97803665eeb76379fe9d9955712ea0e5c61d7003f644713ed842b5",
    "sector.t.scale.bz2": "c8c26e073abd92dda9e2a7903546fbe3c783a8d6141ec3fad360de4c0a572cbc",
    "susy_subset.npz": "c29eabafd7a160217a0724ea89f2844ecf64df22bb843793f53b220127b1afc7",
}


def search_folders(data_home: str | os.PathLike | None = None) -> list[Path]:
    """Return the folders that are searched for data files, first one first.

    They are `data_home`, the folder named by the environment variable SLIMSVM_DATA, `../shared/data` beside the working
    directory and beside the checkout this package runs from, and the cache folder that downloads go to.

    Raises
    ------
    DataError
        If `data_home` or SLIMSVM_DATA names something that is not a folder.
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


def download_file(filename: str, timeout: float = 60.0) -> Path:
    """Download one file of the table of addresses into the cache folder, check it, and return where it is.

    Raises
    ------
    DataError
        If there is no address for it, the download fails, or its content is not what the checksum says; nothing is
        kept then.
    """
    if filename not in URLS:
        raise DataError(f"{filename}: there is no address to download it from")
    url = URLS[filename]
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
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
