"""The catalogue of benchmark sets: files, sizes, where they come from, and how the files are cut into parts.

For each kind of file one function takes the paths of a set's files and returns the arrays of a `Dataset` by name.
Labels are int64, of two-class sets -1 and +1.
"""

from __future__ import annotations

import bz2
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from slimsvm.datasets.files import DataError, read_arrays
from slimsvm.datasets.readers import read_data

ScalingName = Literal["minmax", "standard", "maxabs"]


@dataclass(frozen=True)
class Source:
    """One benchmark set."""

    files: tuple[str, ...]
    # Makes the arrays of a Dataset, by name, of these files (and of the number of a realisation, if there are several).
    read: Callable[..., dict[str, Any]]
    shape: tuple[int, int, int, int]  # n_train, n_test, n_features, n_classes
    description: str
    origin: str
    scaling: ScalingName | None = None  # what it gets unless another is asked for
    n_realisations: int = 1  # more than 1: `name-k` is realisation k, `name` the first


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


def covtype_large(paths: Sequence[Path], *, n_train: int) -> Arrays:
    """Read the larger sample of covertype, class 2 (+1) against the rest; the test rows of `covtype` are test rows."""
    found = read_arrays(paths[0])
    n = len(found["y"])
    X, row = np.zeros((n, 54), np.float32), np.arange(n)
    X[:, :10] = found["num"]
    X[row, 9 + found["wilderness"].astype(np.int64)] = 1
    X[row, 13 + found["soil"].astype(np.int64)] = 1
    test_of_covtype = 2
    order = np.argsort(found["have"] == test_of_covtype, kind="stable")
    train, test = order[:n_train], order[n_train:]
    y = _signs(found["y"] == 2)
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}


def rcv1(paths: Sequence[Path], *, topic: str) -> Arrays:
    """Read stories of RCV1, each once: subsets 1 to 4 to train on, 5 to test on; `topic` (+1) or not."""
    found = read_arrays(paths[0])
    rows = (found["data"], found["indices"].astype(np.int32), found["indptr"].astype(np.int64))
    X, names = sp.csr_array(rows, shape=tuple(found["shape"])), found["label_names"].tolist()
    y = _signs(np.unpackbits(found["labels"], axis=1)[:, names.index(topic)] == 1)
    first, last = found["first_copy"] == 1, found["subset"] == 5
    train, test = first & ~last, first & last
    return {"X_train": X[train], "y_train": y[train], "X_test": X[test], "y_test": y[test]}


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
    """Read a set without an official split: a permutation seeded by the realisation makes one."""
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


_PAGE = "the LIBSVM data page"
_COVTYPE = (("covtype_subset.npz",), "UCI Covertype (Blackard, Colorado State University)")
_MNIST = (("mnist.npz",), "MNIST (LeCun, Cortes, Burges)")
_KDD = (("kddcup99_10pct.npz",), "UCI KDD Cup 1999, 10 % file (from PMLB)")
_OCR = (("ocr_letters.npz",), "B. Taskar's OCR page (R. Kassel, MIT SLS)")
_IDA = ("ida_benchmarks.npz",)
_IDA_ORIGIN = "G. Rätsch's benchmark repository (IDA)"


def _part(
    data: tuple[tuple[str, ...], str],
    read: Callable[..., Arrays],
    shape: tuple[int, int, int, int],
    text: str,
    scaling: ScalingName | None = None,
    **options: Any,
) -> Source:
    files, origin = data
    return Source(files, partial(read, **options), shape, text, origin, scaling)


def _ida(key: str, shape: tuple[int, int, int, int]) -> Source:
    text = "realisation 1 of the official hundred; NAME-k for k = 2..10 is another one; scaled by the source"
    if key == "image":
        text = "realisation 1 of the official twenty; NAME-k for k = 2..9 is another one; scaled by the source"
    return Source(_IDA, partial(ida, key=key), shape, text, _IDA_ORIGIN, n_realisations=10)


def _ida_unsplit(key: str, shape: tuple[int, int, int, int], scaling: ScalingName | None) -> Source:
    text = "our own split, a permutation with seed 1, with the benchmark's sizes; NAME-k for k = 2..10 is another one"
    read = partial(ida_unsplit, key=key, n_train=shape[0])
    return Source(_IDA, read, shape, text, f"{_IDA_ORIGIN}; rows from PMLB", scaling, n_realisations=10)


SOURCES: dict[str, Source] = {
    "adult": Source(
        ("a9a.bz2", "a9a.t.bz2"),
        partial(svmlight_pair, n_features=123, dense=True),
        (32_561, 16_281, 123, 2),
        "a9a: income over 50,000 from 123 binary features; the page's split",
        f"UCI Adult in Platt's encoding, {_PAGE}",
    ),
    "ijcnn1": Source(
        ("ijcnn1.bz2", "ijcnn1.t.bz2"),
        ijcnn1,
        (49_990, 91_701, 22, 2),
        "the page's split; the last 14,990 training rows are the challenge's validation part, also given as such",
        f"IJCNN 2001 challenge (Prokhorov), {_PAGE}",
    ),
    "cod-rna": Source(
        ("cod-rna.bz2", "cod-rna.t.bz2"),
        partial(svmlight_pair, n_features=8, dense=True),
        (59_535, 271_617, 8, 2),
        "non-coding RNA or not; the page's split; standardised unless said otherwise",
        f"Uzilov, Keegan, Mathews (2006), {_PAGE}",
        "standard",
    ),
    "covtype": _part(
        _COVTYPE,
        covtype,
        (100_000, 16_476, 54, 2),
        "class 2 (+1) against the rest, a random 100,000 rows and a disjoint test sample; "
        "min-max scaled unless said otherwise",
        "minmax",
        binary=True,
    ),
    "covtype-multiclass": _part(
        _COVTYPE,
        covtype,
        (100_000, 16_476, 54, 7),
        "classes 1..7 of the same rows as covtype; min-max scaled unless said otherwise",
        "minmax",
        binary=False,
    ),
    "covtype-457k": _part(
        (("covtype_457k.npz",), _COVTYPE[1]),
        covtype_large,
        (411_746, 45_750, 54, 2),
        "class 2 (+1) against the rest, a random 457,496 of the 581,012 rows; the test part contains covtype's test "
        "part; min-max scaled unless said otherwise",
        "minmax",
        n_train=411_746,
    ),
    "mnist": _part(_MNIST, mnist, (60_000, 10_000, 784, 10), "ten digits, pixels / 255, the source's split"),
    "mnist-38": _part(
        _MNIST, mnist, (11_982, 1_984, 784, 2), "8 (+1) against 3 of MNIST, pixels / 255", keep=(3, 8), positive=(8,)
    ),
    "mnist-0": _part(
        _MNIST, mnist, (60_000, 10_000, 784, 2), "0 (+1) against the other digits of MNIST, pixels / 255", positive=(0,)
    ),
    "mnist-04": _part(
        _MNIST,
        mnist,
        (60_000, 10_000, 784, 2),
        "0..4 (+1) against 5..9 of MNIST, pixels / 255",
        positive=(0, 1, 2, 3, 4),
    ),
    "ocr-letters": _part(
        _OCR,
        ocr_letters,
        (47_535, 4_617, 128, 26),
        "letters of handwritten words (sequences): 6,251 words to train on, the 626 of fold 0 to test on",
        split="fold0",
        train_value=0,
    ),
    "ocr-letters-small": _part(
        _OCR,
        ocr_letters,
        (4_617, 47_535, 128, 26),
        "letters of handwritten words (sequences): the 626 words of fold 0 to train on, 6,251 to test on",
        split="fold0",
        train_value=1,
    ),
    "ocr-letters-uic": _part(
        _OCR,
        ocr_letters,
        (25_953, 26_199, 128, 26),
        "letters of handwritten words (sequences): 3,438 words to train on, 3,439 to test on",
        split="uic_split",
        train_value=0,
    ),
    "conll2000": Source(
        ("conll2000.train.txt.bz2", "conll2000.test.txt.bz2"),
        conll,
        (211_727, 47_377, 2, 22),
        "words and parts of speech with chunk tags, sentences (sequences) of newspaper text; for research only",
        "CoNLL-2000 shared task (Tjong Kim Sang, Buchholz), from NLTK's data",
    ),
    "money-fx": Source(
        ("reuters_moneyfx.bz2", "reuters_moneyfx.t.bz2"),
        partial(svmlight_pair, n_features=8_315, dense=False),
        (7_770, 3_299, 8_315, 2),
        "sparse text, rows of unit norm: topic money-fx (+1) or not, the ModApte split; for research only",
        "Reuters-21578 as prepared for LASVM (Bottou)",
    ),
    "rcv1-ccat": Source(
        ("rcv1_subsets.npz",),
        partial(rcv1, topic="CCAT"),
        (22_490, 5_123, 47_236, 2),
        "sparse text, rows of unit norm: topic CCAT (+1) or not; 27,613 stories, each once; our own split; "
        "for research only",
        "RCV1-v2 (Lewis and others, 2004), MULAN's rcv1subset1 to 5 with labels repaired",
    ),
    "sector": Source(
        ("sector.scale.bz2", "sector.t.scale.bz2"),
        partial(svmlight_pair, n_features=55_197, dense=False),
        (6_412, 3_207, 55_197, 105),
        "sparse text, many classes; the page's split and scaling",
        _PAGE,
    ),
    "susy": Source(
        ("susy_subset.npz",),
        susy,
        (10_000, 1_000, 8, 2),
        "eight low-level features of a small sample, standardised by the source; the validation part (10,000 rows) was "
        "scaled by another sample's moments (about 1 % off), its overlap with the training part is not known",
        "UCI SUSY (Baldi, Sadowski, Whiteson 2014)",
    ),
    "higgs": Source(
        ("higgs_subset.npz",),
        higgs,
        (10_984, 7_500, 28, 2),
        "a small sample: 10,984 rows to train on, 7,500 of another source (rounded to three decimals) to test on; "
        "standardised unless said otherwise",
        "UCI HIGGS (Baldi, Sadowski, Whiteson 2014)",
        "standard",
    ),
    "kddcup99": _part(
        _KDD,
        kddcup99,
        (400_000, 94_020, 41, 2),
        "network attack (+1) or normal; our own split, a permutation with seed 0; standardised unless said otherwise",
        "standard",
        binary=True,
    ),
    "kddcup99-multiclass": _part(
        _KDD,
        kddcup99,
        (400_000, 94_020, 41, 23),
        "the 23 kinds of connection, same rows and split as kddcup99; standardised unless said otherwise",
        "standard",
        binary=False,
    ),
    "banana": _ida("banana", (400, 4_900, 2, 2)),
    "breast-cancer": _ida("breast_cancer", (200, 77, 9, 2)),
    "german": _ida("german", (700, 300, 20, 2)),
    "image": _ida("image", (1_300, 1_010, 18, 2)),
    "titanic": _ida("titanic", (150, 2_051, 3, 2)),
    "waveform": _ida("waveform", (400, 4_600, 21, 2)),
    "splice": Source(
        _IDA,
        splice,
        (1_000, 2_175, 60, 2),
        "DNA splice sites; the page's split; standardised unless said otherwise",
        _PAGE,
        "standard",
    ),
    "twonorm": _ida_unsplit("twonorm", (400, 7_000, 20, 2), None),
    "ringnorm": _ida_unsplit("ringnorm", (400, 7_000, 20, 2), "standard"),
    "diabetis": _ida_unsplit("diabetis", (468, 300, 8, 2), "standard"),
    "heart": _ida_unsplit("heart", (170, 100, 13, 2), "standard"),
    "thyroid": _ida_unsplit("thyroid", (140, 75, 5, 3), "standard"),
}
