"""Scaling of features on the command line: learned from the training rows, kept in the model's file."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from slimsvm.cli.data import Part, Trained
from slimsvm.cli.output import CommandError
from slimsvm.estimators._shared.model_files import scaling_of
from slimsvm.estimators.files import load
from slimsvm.rows import Blocks, Rows, is_sparse

SCALES = {
    "minmax": "every feature to 0 ... 1",
    "standard": "to mean 0 and variance 1 (sparse rows: to variance 1)",
    "maxabs": "by its largest magnitude, which does not change zeros",
}


def fit_scaler(scale: str | None, train: Part) -> Pipeline | None:
    """The scaler of this name, fitted to training rows; None without one."""
    if scale is None:
        return None
    rows, sparse = isinstance(train.X, Rows), _is_sparse(train.X)
    if sparse and scale == "minmax":
        raise CommandError(f"{train.name}: its rows are sparse, and --scale minmax would move their zeros, which are "
                           "not stored: take --scale maxabs or --scale standard")  # fmt: skip
    scalers: dict[str, Any] = {"minmax": MinMaxScaler(), "standard": StandardScaler(with_mean=not sparse),
                               "maxabs": MaxAbsScaler()}  # fmt: skip
    scaler = scalers[scale]
    for lo, hi in pairwise(train.X.bounds) if rows else ():
        if lo < hi:
            scaler.partial_fit(train.X.slice(int(lo), int(hi), train.X.exact_dtype))
    return Pipeline([("scaler", scaler if rows else scaler.fit(train.X))])


def scaled(part: Part, scalers: Pipeline | None) -> Part:
    """A part as the machine behind the scalers takes it; sparse rows become dense where their zeros move."""
    if scalers is None:
        return part
    X = part.X
    is_filled = _is_sparse(X) and bool(scaling_of([step for _, step in scalers.steps]).offset.any())
    if not isinstance(X, Blocks):
        return replace(part, X=scalers.transform(X.toarray() if is_filled else X))
    bounds = X.bounds.tolist()
    blocks = [partial(_scaled_rows, X, lo, hi, scalers, is_filled) for lo, hi in pairwise(bounds) if lo < hi]
    n_stored = X.n_stored if X.is_sparse and not is_filled else None
    return replace(part, X=Blocks(blocks, [n for n in np.diff(bounds).tolist() if n], n_stored=n_stored))


def _scaled_rows(X: Blocks, lo: int, hi: int, scalers: Pipeline, is_filled: bool) -> Any:
    """Some of the rows, scaled."""
    block: Any = X.slice(lo, hi, X.exact_dtype)
    return scalers.transform(block.toarray() if is_filled else block)


def _is_sparse(X: Any) -> bool:
    return X.is_sparse if isinstance(X, Rows) else is_sparse(X)


def load_steps(path: str) -> tuple[Pipeline | None, Any, Trained]:
    """The scalers of a model file, where it has some, the estimator behind them, and the rows that it takes.

    Names of features are taken off both: rows that are read here are arrays.
    """
    model = load(path)
    scalers, estimator = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    names = take_names(scalers, estimator)
    return scalers, estimator, Trained(estimator.n_features_in_, names, getattr(estimator, "label_name_", None))


def take_names(scalers: Pipeline | None, estimator: Any) -> list[str] | None:
    """Take the names of features off the scalers and the estimator; None where neither has some."""
    names = None
    for step in [estimator, *(reversed([step for _, step in scalers.steps]) if scalers is not None else ())]:
        names = step.__dict__.pop("feature_names_in_", names)
    return None if names is None else list(names)


def give_names(scalers: Pipeline | None, estimator: Any, part: Part) -> None:
    """Have a model remember what its columns are called."""
    take_names(scalers, estimator)
    if part.names is not None:
        first = estimator if scalers is None else scalers.steps[0][1]
        first.feature_names_in_ = np.array(part.names, dtype=object)
    if part.label is not None:
        estimator.label_name_ = part.label
