"""Small data and fits for the tests of `slimsvm.dask`, in parts so small that there are several."""

import warnings

import dask.array as da
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm.estimators._shared.kernel_estimator import KernelEstimator
from slimsvm.parts.descent.first_basis import SampleSettings
from slimsvm.parts.span.smoothed_newton import NewtonSettings

N = 3_000
SETTINGS = {"solver": "refine", "max_basis": 12, "random_state": 0, "max_iter": 4}


def in_small_parts(monkeypatch):
    monkeypatch.setattr("slimsvm.rows.arrays.PASS_ROWS", 700)
    own = SampleSettings(most_rows=900, near_rows=300), NewtonSettings(kept_rows=0)
    monkeypatch.setattr(KernelEstimator, "_settings", own)


def rows_and_labels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N) > 0, "yes", "no")


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    in_small_parts(monkeypatch)


@pytest.fixture(scope="module")
def data():
    return rows_and_labels()


def uneven(n_parts, seed=0):
    cuts = np.sort(np.random.default_rng(seed).choice(np.arange(1, N), n_parts - 1, replace=False))
    return tuple(np.diff(np.concatenate([[0], cuts, [N]])).tolist())


def dask_array(X, n_parts):
    return da.from_array(X, chunks=(uneven(n_parts), *X.shape[1:]))


def fitted(estimator, X, y, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator(**(SETTINGS | options)).fit(X, y, *args)


def bits(clf):
    model = clf.model_
    return model.basis.tobytes(), model.coef.tobytes(), model.intercept.tobytes(), clf.objective_


def file_of(clf, path):
    clf.save(path)
    return path.read_bytes()
