"""`Rows` (`Blocks`, or those of Dask) in the place of an array: what an estimator checks of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import is_multilabel

from slimsvm.estimators._shared.validation import checked_target, naming_rows_of
from slimsvm.rows import Rows, is_sparse


def check_blocks(machine: Any, X: Rows, reset: bool, y: Any) -> Any:
    """See `KernelMachine._check_X`: the rows as they are, whose numbers are checked whenever they are read, and y.

    Raises
    ------
    ValueError
        The estimator or its kernel takes no blocks, or the number of features, or their names, are not those of
        training.
    """
    if not machine._takes_blocks or machine._is_precomputed:
        what = "kernel='precomputed'" if machine._takes_blocks else type(machine).__name__
        raise ValueError(f"{what} takes arrays and sparse matrices, found {X!r}: load the rows, or use SVC or SVR")
    if reset:
        machine.__dict__.pop("feature_names_in_", None)
        machine.n_features_in_ = X.n_features
        if X.feature_names is not None:
            machine.feature_names_in_ = np.array(X.feature_names, dtype=object)
    elif X.n_features != machine.n_features_in_:
        raise ValueError(
            f"X has {X.n_features} features, but {type(machine).__name__} is expecting {machine.n_features_in_} "
            "features as input"
        )
    else:
        _check_names(machine, X)
    if isinstance(y, str):
        return X
    y = checked_target(y)
    several = machine._takes_labels and is_multilabel(y)
    stand_in = np.broadcast_to(np.float32(0), (X.n_rows, 1))  # scikit-learn checks y together with rows
    with naming_rows_of(y):
        pair: Any = check_X_y(stand_in, y, multi_output=several, y_numeric=machine._y_numeric, estimator=machine)
    return X, pair[1].toarray() if is_sparse(pair[1]) else pair[1]


def _check_names(machine: Any, X: Rows) -> None:
    """As scikit-learn has it of data frames: the names of training in their order, where both have names."""
    expected, found = getattr(machine, "feature_names_in_", None), X.feature_names
    if expected is not None and found is not None and found != list(expected):
        raise ValueError(f"X has the columns {found}, expected are those of training, in their order: {list(expected)}")
