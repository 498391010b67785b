"""Scaling of features on the command line: learned from the training rows, kept in the model's file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from slimsvm.cli.data import Part
from slimsvm.cli.output import CommandError
from slimsvm.estimators._shared.scalers import scaling_of
from slimsvm.estimators.files import load
from slimsvm.rows import Rows, is_sparse

SCALES = {
    "minmax": "every feature to 0 ... 1",
    "standard": "to mean 0 and variance 1 (sparse rows: to variance 1)",
    "maxabs": "by its largest magnitude, which does not change zeros",
}


def fit_scaler(scale: str | None, train: Part) -> Pipeline | None:
    """The scaler of this name, fitted to training rows; None without one."""
    if scale is None:
        return None
    _check_in_memory(train)
    sparse = is_sparse(train.X)
    if sparse and scale == "minmax":
        raise CommandError(f"{train.name}: its rows are sparse, and --scale minmax would move their zeros, which are "
                           "not stored: take --scale maxabs or --scale standard")  # fmt: skip
    scalers: dict[str, Any] = {"minmax": MinMaxScaler(), "standard": StandardScaler(with_mean=not sparse),
                               "maxabs": MaxAbsScaler()}  # fmt: skip
    return Pipeline([("scaler", scalers[scale])]).fit(train.X)


def scaled(part: Part, scalers: Pipeline | None) -> Part:
    """A part as the machine behind the scalers takes it; sparse rows become dense where their zeros move."""
    if scalers is None:
        return part
    _check_in_memory(part)
    X = part.X
    if is_sparse(X) and scaling_of([step for _, step in scalers.steps]).offset.any():
        X = X.toarray()
    return replace(part, X=scalers.transform(X))


def load_steps(path: str) -> tuple[Pipeline | None, Any]:
    """The scalers of a model file, where it has some, and the estimator behind them."""
    model = load(path)
    return (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)


def _check_in_memory(part: Part) -> None:
    if isinstance(part.X, Rows):
        raise CommandError(f"{part.name}: is read in blocks, which are not scaled: scale its columns beforehand")
