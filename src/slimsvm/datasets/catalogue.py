"""The table of benchmark sets: files, parts, sizes, where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from slimsvm.datasets import sources

ScalingName = Literal["minmax", "standard", "maxabs"]


@dataclass(frozen=True)
class Source:
    """One benchmark set.

    Attributes
    ----------
    files : tuple of str
    read : callable
        Of their paths (and the realisation's number, where there are several) to the arrays of a Dataset by name.
    shape : (n_train, n_test, n_features, n_classes)
    description, origin : str
    scaling : str or None
        The scaling it gets unless another is asked for.
    n_realisations : int
        More than 1: `name-k` is realisation k, `name` the first.
    """

    files: tuple[str, ...]
    read: Callable[..., dict[str, Any]]
    shape: tuple[int, int, int, int]
    description: str
    origin: str
    scaling: ScalingName | None = None
    n_realisations: int = 1


_PAGE = "the LIBSVM data page"
_COVTYPE = (("covtype_subset.npz",), "UCI Covertype (Blackard, Colorado State University)")
_MNIST = (("mnist.npz",), "MNIST (LeCun, Cortes, Burges)")
_KDD = (("kddcup99_10pct.npz",), "UCI KDD Cup 1999, 10 % file (from PMLB)")
_OCR = (("ocr_letters.npz",), "B. Taskar's OCR page (R. Kassel, MIT SLS)")
_IDA = ("ida_benchmarks.npz",)
_IDA_ORIGIN = "G. Rätsch's benchmark repository (IDA)"


def _ida(key: str, shape: tuple[int, int, int, int]) -> Source:
    text = "realisation k of the official hundred by -k, k = 1..10 (1 unless said); scaled by the source"
    if key == "image":
        text = (
            "realisation k of the official twenty by -k, k = 1..10 (1 unless said; 10 repeats 1); scaled by the source"
        )
    return Source(_IDA, partial(sources.ida, key=key), shape, text, _IDA_ORIGIN, n_realisations=10)


def _ida_unsplit(key: str, shape: tuple[int, int, int, int], scaling: ScalingName | None) -> Source:
    text = "our own split by -k, k = 1..10 (1 unless said): a permutation seeded by k, parts of the benchmark's sizes"
    read = partial(sources.ida_unsplit, key=key, n_train=shape[0])
    return Source(_IDA, read, shape, text, f"{_IDA_ORIGIN}; rows from PMLB", scaling, n_realisations=10)


SOURCES: dict[str, Source] = {
    "adult": Source(
        ("a9a.bz2", "a9a.t.bz2"),
        partial(sources.svmlight_pair, n_features=123, dense=True),
        (32_561, 16_281, 123, 2),
        "a9a: income over 50,000 from 123 binary features; the page's split",
        f"UCI Adult in Platt's encoding, {_PAGE}",
    ),
    "ijcnn1": Source(
        ("ijcnn1.bz2", "ijcnn1.t.bz2"),
        sources.ijcnn1,
        (49_990, 91_701, 22, 2),
        "the page's split; the last 14,990 training rows are the challenge's validation part, also given as such",
        f"IJCNN 2001 challenge (Prokhorov), {_PAGE}",
    ),
    "cod-rna": Source(
        ("cod-rna.bz2", "cod-rna.t.bz2"),
        partial(sources.svmlight_pair, n_features=8, dense=True),
        (59_535, 271_617, 8, 2),
        "non-coding RNA or not; the page's split; standardised unless said otherwise",
        f"Uzilov, Keegan, Mathews (2006), {_PAGE}",
        "standard",
    ),
    "covtype": Source(
        _COVTYPE[0],
        partial(sources.covtype, binary=True),
        (100_000, 16_476, 54, 2),
        "class 2 (+1) against the rest, a random 100,000 rows and a disjoint test sample; "
        "min-max scaled unless said otherwise",
        _COVTYPE[1],
        "minmax",
    ),
    "covtype-multiclass": Source(
        _COVTYPE[0],
        partial(sources.covtype, binary=False),
        (100_000, 16_476, 54, 7),
        "classes 1..7 of the same rows as covtype; min-max scaled unless said otherwise",
        _COVTYPE[1],
        "minmax",
    ),
    "mnist": Source(
        _MNIST[0], sources.mnist, (60_000, 10_000, 784, 10), "ten digits, pixels / 255, the source's split", _MNIST[1]
    ),
    "mnist-38": Source(
        _MNIST[0],
        partial(sources.mnist, keep=(3, 8), positive=(8,)),
        (11_982, 1_984, 784, 2),
        "8 (+1) against 3 of MNIST, pixels / 255",
        _MNIST[1],
    ),
    "mnist-0": Source(
        _MNIST[0],
        partial(sources.mnist, positive=(0,)),
        (60_000, 10_000, 784, 2),
        "0 (+1) against the other digits of MNIST, pixels / 255",
        _MNIST[1],
    ),
    "mnist-04": Source(
        _MNIST[0],
        partial(sources.mnist, positive=(0, 1, 2, 3, 4)),
        (60_000, 10_000, 784, 2),
        "0..4 (+1) against 5..9 of MNIST, pixels / 255",
        _MNIST[1],
    ),
    "ocr-letters": Source(
        _OCR[0],
        partial(sources.ocr_letters, split="fold0", train_value=0),
        (47_535, 4_617, 128, 26),
        "letters of handwritten words (sequences): 6,251 words to train on, the 626 of fold 0 to test on",
        _OCR[1],
    ),
    "ocr-letters-small": Source(
        _OCR[0],
        partial(sources.ocr_letters, split="fold0", train_value=1),
        (4_617, 47_535, 128, 26),
        "letters of handwritten words (sequences): the 626 words of fold 0 to train on, 6,251 to test on",
        _OCR[1],
    ),
    "ocr-letters-uic": Source(
        _OCR[0],
        partial(sources.ocr_letters, split="uic_split", train_value=0),
        (25_953, 26_199, 128, 26),
        "letters of handwritten words (sequences): 3,438 words to train on, 3,439 to test on",
        _OCR[1],
    ),
    "conll2000": Source(
        ("conll2000.train.txt.bz2", "conll2000.test.txt.bz2"),
        sources.conll,
        (211_727, 47_377, 2, 22),
        "words and parts of speech with chunk tags, sentences (sequences) of newspaper text; for research only",
        "CoNLL-2000 shared task (Tjong Kim Sang, Buchholz), from NLTK's data",
    ),
    "money-fx": Source(
        ("reuters_moneyfx.bz2", "reuters_moneyfx.t.bz2"),
        partial(sources.svmlight_pair, n_features=8_315, dense=False),
        (7_770, 3_299, 8_315, 2),
        "sparse text, rows of unit norm: topic money-fx (+1) or not, the ModApte split; for research only",
        "Reuters-21578 as prepared for LASVM (Bottou)",
    ),
    "sector": Source(
        ("sector.scale.bz2", "sector.t.scale.bz2"),
        partial(sources.svmlight_pair, n_features=55_197, dense=False),
        (6_412, 3_207, 55_197, 105),
        "sparse text, many classes; the page's split and scaling",
        _PAGE,
    ),
    "susy": Source(
        ("susy_subset.npz",),
        sources.susy,
        (10_000, 1_000, 8, 2),
        "eight low-level features of a small sample, standardised by the source; the validation part (10,000 rows) was "
        "scaled by another sample's moments (about 1 % off), its overlap with the training part is not known",
        "UCI SUSY (Baldi, Sadowski, Whiteson 2014)",
    ),
    "higgs": Source(
        ("higgs_subset.npz",),
        sources.higgs,
        (10_984, 7_500, 28, 2),
        "a small sample: 10,984 rows to train on, 7,500 of another source (rounded to three decimals) to test on; "
        "standardised unless said otherwise",
        "UCI HIGGS (Baldi, Sadowski, Whiteson 2014)",
        "standard",
    ),
    "kddcup99": Source(
        _KDD[0],
        partial(sources.kddcup99, binary=True),
        (400_000, 94_020, 41, 2),
        "network attack (+1) or normal; our own split, a permutation with seed 0; standardised unless said otherwise",
        _KDD[1],
        "standard",
    ),
    "kddcup99-multiclass": Source(
        _KDD[0],
        partial(sources.kddcup99, binary=False),
        (400_000, 94_020, 41, 23),
        "the 23 kinds of connection, same rows and split as kddcup99; standardised unless said otherwise",
        _KDD[1],
        "standard",
    ),
    "banana": _ida("banana", (400, 4_900, 2, 2)),
    "breast-cancer": _ida("breast_cancer", (200, 77, 9, 2)),
    "german": _ida("german", (700, 300, 20, 2)),
    "image": _ida("image", (1_300, 1_010, 18, 2)),
    "titanic": _ida("titanic", (150, 2_051, 3, 2)),
    "waveform": _ida("waveform", (400, 4_600, 21, 2)),
    "splice": Source(
        _IDA,
        sources.splice,
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
