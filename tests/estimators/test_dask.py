"""`slimsvm.dask`: the bits of blocks on one machine, whatever becomes of partitions and workers; what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from block_rows_cases import in_blocks
from slimsvm import Blocks, Compact, LowRank, Refine

pytest.importorskip("distributed")
import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

import dask_cases
from dask_cases import SETTINGS, N, bits, dask_array, file_of, fitted, uneven
from slimsvm.dask import SVC, SVR
from slimsvm.dask.cluster import Cluster, vector_of
from slimsvm.dask.rows import DaskRows, TaskSizes

# Clusters leave sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed (socket|transport|event loop):ResourceWarning")
small_parts, data = dask_cases.small_parts, dask_cases.data


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


def test_low_rank_has_the_bits_of_one_machine(client, data):
    X, y = data
    options = {"solver": "low-rank"}
    assert bits(fitted(SVC, dask_array(X, 5), y, **options)) == bits(fitted(slimsvm.SVC, X, y, **options))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_moved_vectors_have_the_bits_of_one_machine(client, data, n_classes):
    X, _ = data
    y = np.digitize(X[:, 0] * X[:, 1], [0.0, 1.0][: n_classes - 1])
    options = {"solver": "auto", "max_iter": -1}
    found = fitted(SVC, dask_array(X, 5), y, **options)
    assert type(found.solver_) is Compact
    assert bits(found) == bits(fitted(slimsvm.SVC, X, y, **options))


def test_rows_stay_where_they_are(client, data, monkeypatch):
    """What is taken from the workers: samples, and rows near the margin."""

    X, y = data
    taken, take = [], DaskRows.take
    monkeypatch.setattr(
        DaskRows, "take", lambda self, index, dtype: taken.append(len(index)) or take(self, index, dtype)
    )
    monkeypatch.setattr(DaskRows, "slice", None)
    far = 1e3 * X  # so far apart that a box about them does not say whether float32 will do
    fitted(SVC, dask_array(far, 5), y, gamma=1.0)
    assert max(taken) < N


def test_few_rows_are_learned_from_where_the_client_is(client, data, monkeypatch):
    """Batches at random places, each a round of tasks, took most of the time."""
    X, y = data[0][:800], data[1][:800]
    asked, done = [], DaskRows._done
    monkeypatch.setattr(DaskRows, "take", None)
    monkeypatch.setattr(DaskRows, "_done", lambda self, *of: asked.append(of) or done(self, *of))
    found = fitted(SVC, da.from_array(X, chunks=(300, 4)), y)
    assert len(asked) == 1  # for gamma="scale"
    assert bits(found) == bits(fitted(slimsvm.SVC, X, y))


def test_a_step_asks_for_few_rounds_of_tasks(client, data, monkeypatch):
    X, y = data
    asked, each = [], DaskRows.each

    def heard(self, work, *items, **options):
        asked.append(work.func.__name__)
        return each(self, work, *items, **options)

    monkeypatch.setattr(DaskRows, "each", heard)
    fitted(SVC, dask_array(X, 5), y)
    assert "_smoothed_sums" in asked
    assert "_largest" not in asked  # comes with the sums


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


def test_probabilities_are_made_when_asked_for(client, data):
    X, y = data
    clf = SVC(max_basis=10, probability=True, random_state=0, client=client).fit(dask_array(X, 4), y)
    for method in ("predict_proba", "predict_log_proba"):
        found = getattr(clf, method)(dask_array(X, 3))
        assert isinstance(found, da.Array)
        np.testing.assert_array_equal(found.compute(), getattr(clf.to_local(), method)(X))
    plain = SVC(max_basis=10, random_state=0, client=client).fit(dask_array(X, 4), y)
    assert not hasattr(plain, "predict_proba")


def test_scores_of_many_classes(client, data):
    X, _ = data
    classes = np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])
    clf = fitted(SVC, dask_array(X, 4), classes)
    scores = clf.decision_function(dask_array(X, 3))
    assert scores.shape == (N, 3)
    np.testing.assert_array_equal(scores.compute(), clf.to_local().decision_function(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("columns", r"partition 2 has 3 columns of float32, expected are 4 of float32, as in partition 0"),
        ("dtype", r"partition 2 has 4 columns of float64, expected are 4 of float32"),
        ("nan", r"X contains NaN at row 2103, column 1, which is row 103 of partition 2"),
        ("text", r"found dtype <U1 in partition 0"),
        ("mask", "partition 1 has a masked entry in its row 4; only finite"),
        ("no columns", "X must have columns, found none in partition 0"),
        ("sparse", r"partition 1 is sparse \(csr_array\), only dense arrays are accepted"),
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
    elif change == "mask":
        parts[1] = np.ma.masked_equal(parts[1], parts[1][4, 2])
    elif change == "no columns":
        parts = [part[:, :0] for part in parts]
    elif change == "sparse":
        parts[1] = sp.csr_array(parts[1])
    else:
        parts = [np.full(part.shape, "a") for part in parts]
    lazy = [da.from_delayed(dask.delayed(part), shape=(1000, 4), dtype=np.float32) for part in parts]
    clf = SVC(**SETTINGS)
    with pytest.raises((TypeError, ValueError), match=message):
        clf.fit(da.concatenate(lazy), y)
    assert not hasattr(clf, "classes_")


def frame_of(parts):
    frames = [dask.delayed(part) for part in parts]
    return dd.from_delayed(frames, meta=parts[0].iloc[:0], verify_meta=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda part: part[list("badc")],
            r"partition 1 has the columns \['b', 'a', 'd', 'c'\], expected",
        ),
        (lambda part: part.assign(b="text"), r"found (object|str) in column 'b' of partition 1"),
        (lambda part: part.astype(np.float64), r"partition 1 has 4 columns of float64, expected are 4 of float32"),
        (lambda part: part.assign(c=np.where(part.a < -9, 0, np.inf)).astype(np.float32), r"inf.*row 1500, column 'c'"),
    ],
)
def test_what_is_wrong_with_a_dataframe_is_named(change, message, client, data):
    frame, y = pd.DataFrame(data[0], columns=list("abcd")), data[1]
    with pytest.raises((TypeError, ValueError), match=message):
        SVC(**SETTINGS).fit(frame_of([frame[:1500], change(frame[1500:])]), y)


@pytest.mark.parametrize("dtype", ["Float32", "Float64"])
def test_columns_of_types_that_know_what_is_missing(dtype, client, data):
    """NumPy's float64 is equal to None."""
    frame, y = pd.DataFrame(data[0], columns=list("abcd")).astype(dtype.lower()), data[1]
    parts = [frame[:1500].astype(dtype), frame[1500:].astype(dtype)]
    assert bits(fitted(SVC, frame_of(parts), y)) == bits(fitted(slimsvm.SVC, frame, y))
    parts[1].iloc[7, 2] = pd.NA
    with pytest.raises(ValueError, match=r"NaN at row 1507, column 'c', which is row 7 of partition 1"):
        SVC(**SETTINGS).fit(frame_of(parts), y)


def test_a_partition_that_cannot_be_made_is_named(client, data):
    X, y = data

    def made(i):
        if i == 1:
            raise OSError("no such file")
        return X[:1000]

    parts = [da.from_delayed(dask.delayed(made)(i), (1000, 4), np.float32) for i in range(3)]
    with pytest.raises(RuntimeError, match="partition 1 of X could not be made: no such file"):
        SVC(**SETTINGS).fit(da.concatenate(parts), y)


def test_labels_that_only_the_last_partition_has(client, data):
    X, _ = data
    labels = np.where(np.arange(N) < N - 40, np.where(X[:, 0] > 0, "a", "b"), "rare").astype(object)
    series = dd.from_pandas(pd.Series(labels), npartitions=4)
    unknown = series.astype("category")
    known = dd.from_pandas(pd.Series(labels, dtype="category"), npartitions=4)
    without_sizes = da.from_array(labels, chunks=500)
    without_sizes = without_sizes[without_sizes != "none"]  # chunks of unknown size
    for given in (series, unknown, known, without_sizes):
        np.testing.assert_array_equal(vector_of("y", given, Cluster(client)), labels)
    found = fitted(SVC, dask_array(X, 3), unknown)
    assert found.classes_.tolist() == ["a", "b", "rare"]
    assert bits(found) == bits(fitted(slimsvm.SVC, X, labels))


@pytest.mark.parametrize(
    ("last", "message"),
    [
        (
            ["no", "yes"] * 500,
            r"y has values of <U3 in partition 2, expected are such as the int64 of partition 0",
        ),
        ([0.5, np.nan] * 500, r"y contains NaN at row 2001, which is row 1 of partition 2"),
        ([0, 1] * 400, "inconsistent numbers of samples"),
        (np.ma.masked_equal([0, 1, 2, 1] * 250, 2), "y is masked at row 2002, which is row 2 of partition 2"),
    ],
)
def test_what_is_wrong_with_labels_is_named(last, message, client, data):
    first = [da.from_array(np.arange(1000) % 2, chunks=1000)] * 2
    delayed = da.from_delayed(dask.delayed(np.asanyarray)(last), (len(last),), np.int64)
    with pytest.raises(ValueError, match=message):
        SVC(**SETTINGS).fit(dask_array(data[0], 3), da.concatenate([*first, delayed]))


def test_empty_partitions_and_labels_of_the_last_one(client, data):
    X, y = data
    lazy = da.concatenate([dask_array(X, 3), da.zeros((0, 4), dtype=np.float32), dask_array(X, 2)])
    labels = np.concatenate([np.full(N, "no"), y])
    assert bits(fitted(SVC, lazy, labels)) == bits(fitted(slimsvm.SVC, np.vstack([X, X]), labels))


def test_what_cannot_be_done_is_said_before_any_work(client, data):
    X, y = data
    lazy = dask_array(X, 3)
    for options, message in (
        ({}, "a number as max_basis"),
        ({"max_basis": "auto"}, "a number as max_basis"),
        ({"solver": "bsgd", "max_basis": 5}, "found solver='bsgd'"),
        ({"max_basis": 5, "loss": "f1"}, "training on a cluster has the losses"),
        ({"max_basis": 5, "loss": "logistic"}, "training on a cluster has the losses"),
    ):
        with pytest.raises(ValueError, match=message):
            SVC(**options).fit(lazy, y)
    with pytest.raises(ValueError, match=r"chunks of unknown size.*compute_chunk_sizes"):
        SVC(max_basis=5).fit(lazy[lazy[:, 0] > 0], y)
    with pytest.raises(TypeError, match="X must be a dask array or dataframe, found ndarray"):
        SVC(max_basis=5).fit(X, y)
    with pytest.raises(ValueError, match="sample_weight must be > 0"):
        SVC(max_basis=5).fit(lazy, y, np.zeros(N))
    with pytest.raises(ValueError, match="sample_weight must be numbers, found <U1"):
        SVC(max_basis=5).fit(lazy, y, np.full(N, "x"))
    with pytest.raises(ValueError, match="must have rows"):
        SVC(max_basis=5).fit(lazy[:0], y[:0])
    with pytest.raises(ValueError, match="X must have two dimensions"):
        SVC(max_basis=5).fit(dd.from_pandas(pd.Series(X[:, 0]), npartitions=2), y)
    with pytest.raises(ValueError, match=r"client must be a distributed\.Client or None, found 5"):
        SVC(max_basis=5, client=5).fit(lazy, y)


@pytest.mark.parametrize("name", ["NuSVC", "NuSVR", "OneClassSVM", "OrdinalSVC"])
def test_estimators_that_are_not_here_say_why(name):
    with pytest.raises(ImportError, match=rf"no slimsvm\.dask\.{name}: .* memory; slimsvm\.{name} can train"):
        exec(f"from slimsvm.dask import {name}")
    with pytest.raises(AttributeError):
        slimsvm.dask.Nothing  # noqa: B018


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


def test_the_same_file_from_all_that_rows_are_in(cluster, client, data, tmp_path):
    """The last test here: workers go."""
    X, y = data
    expected = file_of(fitted(slimsvm.SVC, X, y), tmp_path / "one.slim")
    mapped = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape)
    mapped[:] = X
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.assign(y=y).to_parquet(tmp_path / "X.parquet", row_group_size=800)
    rows, labels = Blocks.from_parquet(tmp_path / "X.parquet", label="y")
    rows.feature_names = None  # which an array has not
    for same in ((mapped, y), (in_blocks(X, 10), y), (rows, np.asarray(labels))):
        assert file_of(fitted(slimsvm.SVC, *same), tmp_path / "other.slim") == expected
    for n_workers, n_parts, tasks_per_thread in ((3, 17, 1), (1, 3, 4)):
        cluster.scale(n_workers)
        sized = type("Sized", (SVC,), {"_task_sizes": TaskSizes(per_thread=tasks_per_thread)})
        other = fitted(sized, dask_array(X, n_parts), da.from_array(y, chunks=500))
        assert file_of(other.to_local(), tmp_path / "other.slim") == expected
