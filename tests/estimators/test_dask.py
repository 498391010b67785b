"""`slimsvm.dask`: the bits of blocks on one machine, whatever becomes of partitions and workers; what is refused."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from block_rows_cases import in_blocks
from slimsvm import LowRank, Refine

pytest.importorskip("distributed")
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

from slimsvm.dask import SVC, SVR

# Clusters leave sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
N = 3_000
SETTINGS = {"max_basis": 12, "random_state": 0, "max_iter": 4}


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("slimsvm.rows.arrays.PASS_ROWS", 700)
    monkeypatch.setattr("slimsvm.solvers.in_span.row_passes.KEPT_ROWS", 0)
    monkeypatch.setattr("slimsvm.solvers.learned.learning_rows.LEARNING_ROWS", 900)
    monkeypatch.setattr("slimsvm.solvers.learned.refine.NEAR_ROWS", (300, 900))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).astype(np.float32)
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N) > 0, "yes", "no")


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


@pytest.mark.parametrize("solver", ["auto", "low-rank"])
def test_the_bits_of_blocks_on_one_machine(solver, client, data, tmp_path):
    X, y = data
    # Too little for kernel values of all rows, which a cluster does not keep either: files say how many were computed.
    options = {"solver": solver, "memory_limit": 0.1}
    one = fitted(slimsvm.SVC, X, y, **options)
    assert bits(fitted(slimsvm.SVC, in_blocks(X, 10), y, **options)) == bits(one)
    for n_parts in (3, 37):
        other = fitted(SVC, dask_array(X, n_parts), da.from_array(y, chunks=500), **options)
        assert bits(other) == bits(one)
    one.save(tmp_path / "one.slim")
    other.to_local().save(tmp_path / "other.slim")
    assert (tmp_path / "one.slim").read_bytes() == (tmp_path / "other.slim").read_bytes()


@pytest.mark.parametrize(
    ("options", "weighted"),
    [
        ({"gamma": "learn"}, False),
        ({"C": "validate"}, True),
        ({"intercept": "free", "class_weight": "balanced"}, True),
        ({"solver": LowRank(12, basis="kmeans"), "max_basis": None, "precision": "float64"}, False),
    ],
    ids=str,
)
def test_parameters_mean_the_same(options, weighted, client, data):
    X, y = data
    weights = (np.random.default_rng(1).choice([0.5, 1.0, 3.0], N),) if weighted else ()
    lazy = [da.from_array(part, chunks=700) for part in weights]
    assert bits(fitted(SVC, dask_array(X, 5), y, *lazy, **options)) == bits(
        fitted(slimsvm.SVC, X, y, *weights, **options)
    )


def test_many_classes_and_regression(client, data):
    X, _ = data
    target = X[:, 0] * X[:, 1]
    classes = np.digitize(target, [-0.3, 0.3])
    assert bits(fitted(SVC, dask_array(X, 4), classes)) == bits(fitted(slimsvm.SVC, X, classes))
    one = fitted(slimsvm.SVR, X, target)
    other = fitted(SVR, dask_array(X, 4), da.from_array(target, chunks=900))
    assert bits(other) == bits(one)
    np.testing.assert_array_equal(other.predict(dask_array(X, 3)).compute(), one.predict(X))


def test_dataframes_and_predictions_that_are_made_when_asked_for(client, data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    lazy = dd.from_pandas(frame, npartitions=5)
    labels = dd.from_pandas(pd.Series(y), npartitions=3)
    clf, one = fitted(SVC, lazy, labels), fitted(slimsvm.SVC, frame, y)
    assert bits(clf) == bits(one)
    assert clf.feature_names_in_.tolist() == list("abcd")
    found = clf.predict(lazy)
    assert isinstance(found, dd.Series)
    np.testing.assert_array_equal(found.compute().to_numpy(), one.predict(frame))
    scores = fitted(SVC, dask_array(X, 3), y).decision_function(dask_array(X, 7))
    assert isinstance(scores, da.Array)
    assert scores.chunks == (uneven(7),)
    np.testing.assert_array_equal(one.decision_function(frame), scores.compute())
    with pytest.raises(ValueError, match=r"X has the columns \['b', 'a', 'c', 'd'\], expected are"):
        clf.predict(lazy[["b", "a", "c", "d"]])


def test_scores_of_many_classes(client, data):
    X, _ = data
    classes = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    clf = fitted(SVC, dask_array(X, 4), classes)
    scores = clf.decision_function(dask_array(X, 3))
    assert scores.shape == (N, 3)
    np.testing.assert_array_equal(scores.compute(), clf.to_local().decision_function(X))


def test_a_killed_worker_changes_nothing(cluster, client, data):
    X, y = data
    expected = bits(fitted(slimsvm.SVC, X, y))
    asked, delays = dask_array(X, 7), (0.05, 0.4)
    for i, delay in enumerate(delays):
        fit: dict = {}
        thread = threading.Thread(target=lambda fit=fit: fit.update(bits=bits(fitted(SVC, asked, y))))
        thread.start()
        time.sleep(delay)
        os.kill(list(cluster.workers.values())[i].pid, signal.SIGKILL)
        thread.join(120)
        assert fit["bits"] == expected
        client.wait_for_workers(2, timeout=60)


SCHEDULER = """
import time
from distributed import LocalCluster
if __name__ == "__main__":
    options = {'processes': False, 'protocol': 'tcp://', 'dashboard_address': ':0'}
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, **options)
    print(cluster.scheduler_address, flush=True)
    time.sleep(300)
"""


def test_a_scheduler_that_is_gone_is_one_clear_error(data):
    X, y = data
    process = subprocess.Popen([sys.executable, "-W", "ignore", "-c", SCHEDULER], stdout=subprocess.PIPE, text=True)
    client = None
    try:
        client = Client(process.stdout.readline().strip(), set_as_default=False, timeout=20)
        clf = SVC(client=client, **SETTINGS)
        failed: list[Exception] = []

        def fit():
            try:
                while True:  # until there is no scheduler
                    clf.fit(dask_array(X, 5), y)
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=fit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            thread.start()
            time.sleep(1.0)
            process.kill()
            thread.join(60)
        assert not thread.is_alive()
        assert isinstance(failed[0], ConnectionError)
        assert "the Dask scheduler" in str(failed[0])
    finally:
        process.kill()
        process.stdout.close()
        process.wait()
        if client is not None:
            client.close(timeout=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("columns", r"partition 2 has 3 columns of float32, expected are 4 of float32, as in partition 0"),
        ("dtype", r"partition 2 has 4 columns of float64, expected are 4 of float32"),
        ("nan", r"X contains NaN at row 2103, column 1, which is row 103 of partition 2"),
        ("text", r"found dtype <U1 in partition 0"),
    ],
)
def test_what_is_wrong_with_a_partition_is_named(change, message, client, data):
    X, y = data
    parts = [X[lo : lo + 1000].copy() for lo in (0, 1000, 2000)]
    if change == "columns":
        parts[2] = parts[2][:, :3]
    elif change == "dtype":
        parts[2] = parts[2].astype(np.float64)
    elif change == "nan":
        parts[2][103, 1] = np.nan
    else:
        parts = [np.full(part.shape, "a") for part in parts]
    import dask

    lazy = [da.from_delayed(dask.delayed(part), shape=(1000, 4), dtype=np.float32) for part in parts]
    clf = SVC(**SETTINGS)
    with pytest.raises((TypeError, ValueError), match=message):
        clf.fit(da.concatenate(lazy), y)
    assert not hasattr(clf, "classes_")


def test_empty_partitions_and_labels_of_the_last_one(client, data):
    X, y = data
    lazy = da.concatenate([dask_array(X, 3), da.zeros((0, 4), dtype=np.float32), dask_array(X, 2)])
    labels = np.concatenate([np.full(N, "no"), y])
    assert bits(fitted(SVC, lazy, labels)) == bits(fitted(slimsvm.SVC, np.vstack([X, X]), labels))


def test_what_cannot_be_done_is_said_before_any_work(client, data):
    X, y = data
    lazy = dask_array(X, 3)
    for options, message in (
        ({}, "max_basis a number"),
        ({"max_basis": "auto"}, "max_basis a number"),
        ({"solver": "bsgd", "max_basis": 5}, "found solver='bsgd'"),
        ({"max_basis": 5, "loss": "f1"}, "over all rows at once"),
    ):
        with pytest.raises(ValueError, match=message):
            SVC(**options).fit(lazy, y)
    with pytest.raises(ValueError, match=r"chunks of unknown size.*compute_chunk_sizes"):
        SVC(max_basis=5).fit(lazy[lazy[:, 0] > 0], y)
    with pytest.raises(TypeError, match="X must be a dask array or dataframe, found ndarray"):
        SVC(max_basis=5).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must be > 0"):
        SVC(max_basis=5).fit(lazy, y, np.zeros(N))
    with pytest.raises(ValueError, match="must have rows"):
        SVC(max_basis=5).fit(lazy[:0], y[:0])


def test_without_a_client(monkeypatch):
    monkeypatch.setattr("distributed.get_client", no_client)
    with pytest.raises(ValueError, match="no Dask client is connected"):
        SVC(max_basis=5).fit(da.zeros((10, 2)), np.zeros(10))


def no_client():
    raise ValueError("No global client found and no address provided")


def test_parameters_as_scikit_learn_has_them():
    clf = SVC(solver=Refine(max_basis=7), C=2.0)
    assert clone(clf).get_params()["solver__max_basis"] == 7
    assert clf.set_params(C=3.0, client=None).C == 3.0
    assert repr(clf).startswith("slimsvm.dask.SVC(C=3.0")
    with pytest.raises(TypeError):
        SVC(maximum=3)
