"""How the files of each benchmark set are cut into training and test parts: one function per kind of file.

Each takes the paths of the set's files and returns the arrays of a `Dataset` by name. Labels are int64, of two-class
sets -1 and +1.
"""

from __future__ import annotations

import bz2
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from slimsvm.datasets.files import DataError, read_arrays
from slimsvm.datasets.readers import read_data

Arrays = dict[str, Any]


def svmlight_pair(paths: Sequence[Path], *, n_features: int, dense: bool) -> Arrays:
    """Read a training and a test file of LIBSVM text."""
    (X, y), (X_test, y_test) = (read_data(path, n_features, zero_based=False, dense=dense) for path in paths)
    return {"X_train": X, "y_train": y, "X_test": X_test, "y_test": y_test}


def ijcnn1(paths: Sequence[Path]) -> Arrays:
    """Read ijcnn1: the training file is the challenge's 35,000 training rows, then its 14,990 validation rows."""
    arrays = svmlight_pair(paths, n_features=22, dense=True)
    return arrays | {"X_valid": arrays["X_train"][35_000:], "y_valid": arrays["y_train"][35_000:]}


def covtype(paths: Sequence[Path], *, binary: bool) -> Arrays:
    """Read the two samples of covertype; `binary`: class 2 (+1) against the rest."""
    found = read_arrays(paths[0])
    arrays: Arrays = {"X_train": found["X_100k"].astype(np.float64), "X_test": found["X_extra"].astype(np.float64)}
    for part, y in (("y_train", found["y_100k"]), ("y_test", found["y_extra"])):
        arrays[part] = _signs(y == 2) if binary else y.astype(np.int64)
    return arrays


def mnist(paths: Sequence[Path], *, keep: Sequence[int] = tuple(range(10)), positive: Sequence[int] = ()) -> Arrays:
    """Read MNIST's digits `keep`, pixels / 255; with `positive` those digits are +1 and the others -1."""
    found = read_arrays(paths[0])
    arrays: Arrays = {}
    for part in ("train", "test"):
        X, y = found[f"X_{part}"], found[f"y_{part}"].astype(np.int64)
        if len(keep) < 10:
            chosen = np.isin(y, keep)
            X, y = X[chosen], y[chosen]
        arrays[f"X_{part}"] = X / np.float32(255)
        arrays[f"y_{part}"] = _signs(np.isin(y, positive)) if positive else y
    return arrays


def ocr_letters(paths: Sequence[Path], *, split: str, train_value: int) -> Arrays:
    """Read the letters of the OCR words; the words whose entry in `split` is `train_value` are the training part."""
    found = read_arrays(paths[0])
    pixels = np.unpackbits(found["pixels"], axis=1).astype(np.float32)
    letters = found["letter"].astype(np.int64)
    starts = found["word_start"].astype(np.int64)
    lengths = np.diff(np.append(starts, len(letters)))
    in_train = found[split] == train_value
    arrays: Arrays = {}
    for part, words in (("train", in_train), ("test", ~in_train)):
        rows = np.repeat(words, lengths)
        arrays[f"X_{part}"], arrays[f"y_{part}"] = pixels[rows], letters[rows]
        arrays[f"{part}_offsets"] = _offsets(lengths[words])
    return arrays


def conll(paths: Sequence[Path]) -> Arrays:
    """Read sentences of lines `word POS chunk`: rows are (word, POS), labels the chunk tags."""
    arrays: Arrays = {}
    for part, path in zip(("train", "test"), paths):
        sentences = bz2.decompress(path.read_bytes()).decode("utf-8").strip("\n").split("\n\n")
        tokens = [line.split(" ") for sentence in sentences for line in sentence.split("\n")]
        if {len(token) for token in tokens} != {3}:
            raise DataError(f"{path}: found a line that is not 'word POS chunk'")
        table = np.array(tokens)
        arrays[f"X_{part}"], arrays[f"y_{part}"] = table[:, :2], table[:, 2]
        arrays[f"{part}_offsets"] = _offsets(np.array([sentence.count("\n") + 1 for sentence in sentences]))
    return arrays


def susy(paths: Sequence[Path]) -> Arrays:
    """Read the SUSY sample; the rows that were scaled by another sample's moments are the validation part."""
    found = read_arrays(paths[0])
    names = {"train": "train", "test": "test", "valid": "100kn_test"}
    arrays = {f"X_{part}": found[f"X_{name}"] for part, name in names.items()}
    return arrays | {f"y_{part}": found[f"y_{name}"].astype(np.int64) for part, name in names.items()}


def higgs(paths: Sequence[Path]) -> Arrays:
    """Read the HIGGS samples: one source's rows to train on, the other's two parts (three decimals) to test on."""
    found = read_arrays(paths[0])
    return {
        "X_train": found["X_sas"],
        "y_train": _signs(found["y_sas"] == 1),
        "X_test": np.concatenate([found["X_lgb_train"], found["X_lgb_test"]]),
        "y_test": _signs(np.concatenate([found["y_lgb_train"], found["y_lgb_test"]]) == 1),
    }


def kddcup99(paths: Sequence[Path], *, binary: bool) -> Arrays:
    """Read KDD Cup 1999, 400,000 rows drawn by a fixed permutation to train on; `binary`: attacks (+1) or normal."""
    found = read_arrays(paths[0])
    y = found["y"].astype(np.int64)
    X = np.empty((len(y), 41), dtype=np.float32)
    X[:, found["cols_int"]] = found["X_int"]
    X[:, found["cols_rate"]] = found["X_rate_x100"] / np.float32(100)
    normal = 11
    return _split(X, _signs(y != normal) if binary else y, 400_000, seed=0)


def ida(paths: Sequence[Path], realisation: int, *, key: str) -> Arrays:
    """Read one of the official realisations (1..10) of a set of Raetsch's benchmark."""
    found = read_arrays(paths[0], f"{key}_")
    X, y = found[f"{key}_X"], found[f"{key}_y"].astype(np.int64)
    arrays = {}
    for part in ("train", "test"):
        rows = found[f"{key}_{part}"][realisation - 1].astype(np.int64)
        arrays[f"X_{part}"], arrays[f"y_{part}"] = X[rows], y[rows]
    return arrays


def ida_unsplit(paths: Sequence[Path], realisation: int, *, key: str, n_train: int) -> Arrays:
    """Read a set of which no official split is on record: a permutation seeded by the realisation makes one."""
    found = read_arrays(paths[0], f"{key}_")
    y = found[f"{key}_y"].astype(np.int64)
    if set(np.unique(y)) == {0, 1}:
        y = _signs(y == 1)
    return _split(found[f"{key}_X"], y, n_train, seed=realisation)


def splice(paths: Sequence[Path]) -> Arrays:
    """Read splice: the first 1,000 rows are the training file of the LIBSVM page, the others its test file."""
    found = read_arrays(paths[0], "splice_")
    X, y = found["splice_X"], found["splice_y"].astype(np.int64)
    return {"X_train": X[:1000], "y_train": y[:1000], "X_test": X[1000:], "y_test": y[1000:]}


def _signs(positive: np.ndarray) -> np.ndarray:
    return np.where(positive, 1, -1).astype(np.int64)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _split(X: np.ndarray, y: np.ndarray, n_train: int, seed: int) -> Arrays:
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}
