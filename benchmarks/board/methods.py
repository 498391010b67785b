"""What is measured: ours, and what users would take instead, each with its defaults, one thread, and categories as it
takes them.

A pipeline's encoders are part of it: they count in seconds, bytes and predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, SVR

from benchmarks.shared.package_sets import MOST_ROWS
from slimsvm import TableClassifier, TableRegressor

Make = Callable[[bool, pd.DataFrame], Any]

# What networks are tried on: rows of a table, seconds of a fit.
OF_PYTABKIT: dict[str, Any] = {"most_rows": 10_000, "limit": 600.0}
MOST_LEVELS = 255  # of a column, for histogram boosting; more are codes


class Columns(TransformerMixin, BaseEstimator):
    """Dates as days, and texts as categories whose levels are those of training, or as texts without gaps.

    Parameters
    ----------
    as_texts : bool
        Whether categories stay texts, with a missing value as a text.
    most_levels : int or None
        A category of more levels becomes its codes.
    """

    def __init__(self, as_texts: bool = False, most_levels: int | None = None):
        self.as_texts = as_texts
        self.most_levels = most_levels

    def fit(self, X: pd.DataFrame, y: Any = None) -> Columns:
        """Learn the levels."""
        self.levels_ = {name: sorted(X[name].dropna().unique()) for name in texts_of(X)}
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        """The columns, in the same order."""
        return pd.DataFrame({name: self._column(name, X[name]) for name in X})

    def _column(self, name: str, column: pd.Series) -> pd.Series:
        """One column as it becomes."""
        if column.dtype.kind == "M":
            return (column - pd.Timestamp(0, tz=column.dt.tz)) / pd.Timedelta(days=1)
        if name not in self.levels_:
            return column
        if self.as_texts:
            return column.astype(object).where(column.notna(), "missing")
        levels = self.levels_[name]
        known = column.astype(object).where(column.isin(levels), np.nan)
        categories = pd.Series(pd.Categorical(known, categories=levels), index=column.index)
        if self.most_levels is None or len(levels) <= self.most_levels:
            return categories
        return categories.cat.codes.astype(float).replace(-1.0, np.nan)


def texts_of(X: pd.DataFrame) -> list[str]:
    """Names of the columns of texts."""
    return [name for name in X if X[name].dtype.kind not in "fM"]


def flags_and(numbers: Any, X: pd.DataFrame) -> Pipeline:
    """A column for each level, and what becomes of numbers."""
    texts = texts_of(X)
    flags = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    others = [name for name in X if name not in texts]
    return make_pipeline(Columns(as_texts=True), ColumnTransformer([("f", flags, texts), ("n", numbers, others)]))


def ranks(X: pd.DataFrame) -> Pipeline:
    """Normal deviates of the ranks of numbers; gaps have the median, and a column that says so."""
    filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(filled, QuantileTransformer(n_quantiles=min(1000, len(X)), output_distribution="normal"))


def catboost(classes: bool, X: pd.DataFrame) -> Any:
    """CatBoost with its own encoding of categories."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    make = CatBoostClassifier if classes else CatBoostRegressor
    quiet: dict[str, Any] = {"verbose": 0, "allow_writing_files": False}
    model = make(cat_features=texts_of(X), thread_count=1, random_seed=0, **quiet)
    return make_pipeline(Columns(as_texts=True), model)


def lightgbm(classes: bool, X: pd.DataFrame) -> Any:
    """LightGBM with categories as pandas has them."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    make = LGBMClassifier if classes else LGBMRegressor
    return make_pipeline(Columns(), make(n_jobs=1, random_state=0, verbose=-1))


def xgboost(classes: bool, X: pd.DataFrame) -> Any:
    """XGBoost with categories as pandas has them."""
    from xgboost import XGBClassifier, XGBRegressor

    make = XGBClassifier if classes else XGBRegressor
    return make_pipeline(Columns(), make(n_jobs=1, random_state=0, enable_categorical=True))


def histogram_boosting(classes: bool, X: pd.DataFrame) -> Any:
    """scikit-learn's boosting with categories as pandas has them."""
    make = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return make_pipeline(Columns(most_levels=MOST_LEVELS), make(random_state=0))


def forest(classes: bool, X: pd.DataFrame) -> Any:
    """scikit-learn's forest of 300 trees, a column for each level."""
    make = RandomForestClassifier if classes else RandomForestRegressor
    return make_pipeline(flags_and("passthrough", X), make(n_estimators=300, n_jobs=1, random_state=0))


def explainable_boosting(classes: bool, X: pd.DataFrame) -> Any:
    """Explainable boosting of interpret."""
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    make = ExplainableBoostingClassifier if classes else ExplainableBoostingRegressor
    return make_pipeline(Columns(as_texts=True), make(n_jobs=1, random_state=0))


def of_pytabkit(interface: str) -> Make:
    """RealMLP or xRFM with pytabkit's tuned defaults. Gaps of numbers have the median, and a column that
    says so: xRFM takes none.
    """

    def make(classes: bool, X: pd.DataFrame) -> Any:
        import pytabkit

        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        numbers = [name for name in X if name not in texts_of(X)]
        columns = ColumnTransformer([("n", filled, numbers)], remainder="passthrough", verbose_feature_names_out=False)
        model = getattr(pytabkit, f"{interface}_{'Classifier' if classes else 'Regressor'}")
        one_core: dict[str, Any] = {"device": "cpu", "n_threads": 1, "random_state": 0}
        return make_pipeline(Columns(as_texts=True), columns.set_output(transform="pandas"), model(**one_core))

    return make


def linear(classes: bool, X: pd.DataFrame) -> Any:
    """Logistic or ridge regression on flags and ranks."""
    return make_pipeline(flags_and(ranks(X), X), LogisticRegression(max_iter=1000) if classes else Ridge())


def grid(classes: bool, X: pd.DataFrame) -> Any:
    """scikit-learn's calibrated SVC, or SVR of standardised targets, on flags and ranks: C and gamma by five folds."""
    C_values, gammas = [1.0, 10.0, 100.0], [share / X.shape[1] for share in (0.1, 0.3, 1.0)]
    if classes:
        search = GridSearchCV(SVC(), {"C": C_values, "gamma": gammas})
        return make_pipeline(flags_and(ranks(X), X), CalibratedClassifierCV(search, ensemble=False))
    search = GridSearchCV(SVR(), {"C": C_values, "gamma": gammas})
    standardised = TransformedTargetRegressor(search, transformer=StandardScaler())
    return make_pipeline(flags_and(ranks(X), X), standardised)


def ours(classes: bool, X: pd.DataFrame) -> Any:
    """The mean of machines."""
    return TableClassifier(n_jobs=1) if classes else TableRegressor(n_jobs=1)


def our_small(classes: bool, X: pd.DataFrame) -> Any:
    """One machine of learned vectors."""
    make = TableClassifier if classes else TableRegressor
    return make(preset="small", n_jobs=1)


class Method(NamedTuple):
    """The package it comes from, what makes it for rows to train on, the most rows of a table that it is tried on, and
    the seconds that a fit may take.
    """

    package: str
    make: Make
    most_rows: int = MOST_ROWS
    limit: float = float("inf")


METHODS = {
    "slimsvm": Method("slimsvm", ours),
    "slimsvm, small": Method("slimsvm", our_small),
    "CatBoost": Method("catboost", catboost),
    "LightGBM": Method("lightgbm", lightgbm),
    "XGBoost": Method("xgboost", xgboost),
    "histogram boosting": Method("scikit-learn", histogram_boosting),
    "random forest": Method("scikit-learn", forest),
    "explainable boosting": Method("interpret-core", explainable_boosting),
    "RealMLP": Method("pytabkit", of_pytabkit("RealMLP_TD"), **OF_PYTABKIT),
    "xRFM": Method("pytabkit", of_pytabkit("XRFM_D"), **OF_PYTABKIT),
    "linear": Method("scikit-learn", linear),
    "SVC by a grid": Method("scikit-learn", grid),
}


def installed() -> list[str]:
    """Names of the methods that can be measured here."""
    modules = {"scikit-learn": "sklearn", "interpret-core": "interpret"}
    return [name for name, method in METHODS.items() if find_spec(modules.get(method.package, method.package))]
