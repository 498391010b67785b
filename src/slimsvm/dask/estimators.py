"""`SVC` and `SVR` on Dask arrays and dataframes."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from slimsvm import estimators
from slimsvm.dask.cluster import Cluster, client_of, vector_of
from slimsvm.dask.rows import TASK_SIZES, DaskRows
from slimsvm.solvers import LowRank, Refine


class DaskEstimator:
    """The base class of the estimators: each holds the one of the same name in `slimsvm`, whose rows are elsewhere.

    Parameters
    ----------
    client : distributed.Client or None
    parameters
        The parameters of the estimator of the same name in `slimsvm`.
    """

    _local_class: type
    _task_sizes = TASK_SIZES

    def __init__(self, *, client: Any = None, **parameters: Any):
        self.client = client
        self._local = self._local_class(**parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name, ``client`` among them."""
        return {"client": self.client} | self._local.get_params(deep)

    def set_params(self, **parameters: Any) -> DaskEstimator:
        """Set parameters by name."""
        if "client" in parameters:
            self.client = parameters.pop("client")
        self._local.set_params(**parameters)
        return self

    def __repr__(self) -> str:
        return f"slimsvm.dask.{self._local!r}"

    def __getattr__(self, name: str) -> Any:
        """Return a fitted attribute or a parameter."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._local, name)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Train: vectors are learned in this process from a sample, coefficients come from all rows, which stay.

        Rows so few that ``solver="auto"`` takes moved vectors of the exact SVM (`slimsvm.Compact`) come here.

        Parameters
        ----------
        X : dask array of shape (n_samples, n_features) with known chunks, or dask dataframe
            Dense, of real numbers. It is kept in the workers' memory, in parts of 262,144 rows.
        y : dask array or series, or array-like, of shape (n_samples,)
            Labels (numbers or strings) or targets; they come to this process.
        sample_weight : dask array or series, or array-like, or None, default=None
            Positive factors on the rows' losses.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ImportError
            There is no Dask.
        ValueError
            There is no client; a parameter is one that needs rows in memory; a value is out of range. Messages name the
            partition and the row.
        ConnectionError
            The scheduler is gone.
        """
        self._check_solver()
        cluster = Cluster(client_of(self.client))
        rows = DaskRows(X, cluster, self._task_sizes)
        weights = vector_of("sample_weight", sample_weight, cluster)
        if weights is not None and np.asarray(weights).dtype.kind not in "buif":
            raise ValueError(f"sample_weight must be numbers, found {np.asarray(weights).dtype}")
        if weights is not None and not (np.asarray(weights) > 0).all():
            raise ValueError("sample_weight must be > 0 in every row: leave rows of weight 0 out of the collection")
        local = copy(self._local)  # a fit that fails changes nothing
        local.fit(rows, vector_of("y", y, cluster), weights)
        self._local = local
        return self

    def _check_solver(self) -> None:
        """Refuse solvers that need more than a sample of the rows and passes over all of them."""
        local, solver = self._local, self._local.solver
        is_number = isinstance(local.max_basis, int | np.integer) and not isinstance(local.max_basis, bool)
        named = isinstance(solver, str) and (solver in ("refine", "low-rank") or (solver == "auto" and is_number))
        if not named and not isinstance(solver, Refine | LowRank):
            raise ValueError(
                f"training on a cluster needs solver='auto' with a number as max_basis, 'refine' or 'low-rank', "
                f"found solver={solver!r}, max_basis={local.max_basis!r}"
            )
        if getattr(local, "loss", "hinge") not in ("hinge", "epsilon_insensitive"):
            raise ValueError(
                f"training on a cluster has the losses 'hinge' and 'epsilon_insensitive', found {local.loss!r}: use "
                f"slimsvm.{type(local).__name__}, with all rows in memory"
            )
        if local.calibration_size is not None:
            raise ValueError(
                f"calibration_size={local.calibration_size!r} is not offered for rows on a cluster: use slimsvm.Blocks"
            )

    def to_local(self) -> Any:
        """Return the fitted estimator of `slimsvm`, which needs no Dask: it predicts arrays, and can be saved."""
        self._local._check_fitted()
        return self._local

    def predict(self, X: Any) -> Any:
        """Predict labels or values: of a Dask array a lazy one, of a dataframe a lazy series, of an array an array."""
        return self._lazily(X, "predict")

    def _lazily(self, X: Any, method: str) -> Any:
        local = self.to_local()
        if hasattr(X, "map_partitions"):
            names, expected = [str(name) for name in X.columns], getattr(local, "feature_names_in_", None)
            if expected is not None and names != list(expected):
                raise ValueError(f"X has the columns {names}, expected are {list(expected)}")
            like = _as_frame(getattr(local, method)(X._meta_nonempty)[:0], None, method)
            return X.map_partitions(_predicted_frame, local, method, meta=like)
        if not hasattr(X, "map_blocks"):
            return getattr(local, method)(X)
        if X.ndim != 2 or X.shape[1] != local.n_features_in_:
            raise ValueError(f"X must have {local.n_features_in_} columns, found shape {X.shape}")
        X = X.rechunk({1: X.shape[1]}) if len(X.chunks[1]) > 1 else X
        like = getattr(local, method)(np.zeros((1, X.shape[1]), np.float32))
        if like.ndim == 1:
            return X.map_blocks(_predicted, local, method, like[:0], drop_axis=1, dtype=like.dtype, meta=like[:0])
        chunks = (X.chunks[0], (like.shape[1],))
        return X.map_blocks(_predicted, local, method, like[:0], chunks=chunks, dtype=like.dtype, meta=like[:0])


class SVC(DaskEstimator):
    """`slimsvm.SVC` on Dask arrays and dataframes, with ``max_basis`` a number.

    The same bits for any number of workers, partitions and losses of workers, and as `slimsvm.SVC` finds from
    `slimsvm.Blocks` of the same rows, where all processors have the same instruction set (``SLIMSVM_ISA`` asks for
    one).

    Parameters
    ----------
    client : distributed.Client or None, default=None
        None: the one that is connected.
    **parameters
        The parameters of `slimsvm.SVC`; ``max_basis`` must be a number, and ``solver`` must be "auto", "refine",
        "low-rank" or an object of these solvers.

    Attributes
    ----------
    classes_, basis_vectors_, …
        As of `slimsvm.SVC`.

    References
    ----------
    Rocklin: Dask: Parallel Computation with Blocked algorithms and Task Scheduling, SciPy 2015.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from slimsvm.dask import SVC
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     X = da.random.default_rng(0).normal(size=(2000, 3), chunks=(700, 3))
    ...     y = X[:, 0] * X[:, 1] > 0
    ...     clf = SVC(max_basis=20, C=10.0, random_state=0).fit(X, y)
    ...     wrong = (clf.predict(X) != y).mean().compute()
    >>> bool(wrong < 0.05)
    True
    """

    _local_class = estimators.SVC

    def decision_function(self, X: Any) -> Any:
        """Return scores in the form that `predict` returns; of a dataframe with several columns a Dask array."""
        return self._lazily(X, "decision_function")

    @available_if(lambda own: hasattr(own.to_local(), "predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return probabilities, in the form that `decision_function` returns."""
        return self._lazily(X, "predict_proba")

    @available_if(lambda own: hasattr(own.to_local(), "predict_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Return their logarithms, in the same form."""
        return self._lazily(X, "predict_log_proba")


class SVR(DaskEstimator):
    """`slimsvm.SVR` on Dask arrays and dataframes, with ``max_basis`` a number; see `SVC`.

    Parameters
    ----------
    client : distributed.Client or None, default=None
    **parameters
        The parameters of `slimsvm.SVR`.
    """

    _local_class = estimators.SVR


def _predicted(block: np.ndarray, local: Any, method: str, empty: np.ndarray) -> np.ndarray:
    return getattr(local, method)(block) if len(block) else empty


def _predicted_frame(frame: Any, local: Any, method: str) -> Any:
    values = getattr(local, method)(frame if len(frame) else frame.reindex([0]).fillna(0.0))[: len(frame)]
    return _as_frame(values, frame.index, method)


def _as_frame(values: np.ndarray, index: Any, name: str) -> Any:
    import pandas

    return pandas.Series(values, index, name=name) if values.ndim == 1 else pandas.DataFrame(values, index)
