"""slimsvm's `TableClassifier` and `TableRegressor` as a model of AutoGluon and TabArena."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from autogluon.common.utils.pandas_utils import get_approximate_df_mem_usage
from autogluon.core.constants import REGRESSION
from autogluon.core.models import AbstractModel

# A fit stops searching at this share of the time it has: what is chosen is trained on all rows after that.
SHARE_OF_TIME = 0.9
# Rows that slimsvm trains on at most, and bytes of what it keeps of a pair of them: kernel values of a few machines.
MOST_ROWS, BYTES_OF_PAIR = 30_000, 16
BYTES_AT_LEAST = 300e6


class SlimSVMModel(AbstractModel):
    """A weighted mean of exact kernel SVMs in learned scales, an additive and a linear model, chosen out of fold.

    Columns are encoded by slimsvm: numbers by rank, categories by level or by their targets, missing values as such.
    There is no validation set to stop by: the choice is made on five folds of the training rows, so ``X_val`` is left
    unused.

    License: BSD 3-clause.
    """

    ag_key = "SLIMSVM"
    ag_name = "slimsvm"
    ag_priority = 65
    seed_name = "random_state"
    _supported_problem_types = ["binary", "multiclass", "regression"]  # noqa: RUF012
    _default_auxiliary_params_extra = {"valid_raw_types": ["int", "float", "category"]}  # noqa: RUF012
    default_resources_physical_cores_only = True

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        X_val: pd.DataFrame | None = None,
        y_val: pd.Series | None = None,
        time_limit: float | None = None,
        num_cpus: int = 1,
        num_gpus: float = 0,
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> None:
        from slimsvm import TableClassifier, TableRegressor

        params = self._get_model_params()
        limit = None if time_limit is None else SHARE_OF_TIME * time_limit
        cls = TableRegressor if self.problem_type == REGRESSION else TableClassifier
        self.model = cls(**params, n_jobs=num_cpus, time_limit=limit)
        self.model.fit(self.preprocess(X, y=y, is_train=True), np.asarray(y), sample_weight=sample_weight)

    @classmethod
    def warmup(cls, **kwargs: Any) -> None:
        """Import the library, which loads its compiled core."""
        from slimsvm import TableClassifier  # noqa: F401

    @classmethod
    def _estimate_memory_usage_static(cls, *, X: pd.DataFrame, **kwargs: Any) -> int:
        """The table a few times, and kernel values of the rows that train."""
        pairs = min(len(X), MOST_ROWS) ** 2
        return int(BYTES_AT_LEAST + 5 * get_approximate_df_mem_usage(X).sum() + BYTES_OF_PAIR * pairs)
