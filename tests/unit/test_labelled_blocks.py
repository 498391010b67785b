"""Blocks that come with labels and weights, and the names of columns that a fit keeps."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import slimsvm
from block_rows_cases import pieces
from slimsvm import SVC, SVR, Blocks

X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
Y = np.where(X[:, 0] * X[:, 1] > 0, 1, 0)
WEIGHTS = np.random.default_rng(1).choice([1.0, 2.5], 300)


def estimator(**options):
    return SVC(max_basis=10, random_state=0, max_iter=3, **options)


def triples(rows=X, labels=Y, n=7):
    return list(zip(pieces(rows, n), pieces(labels, n), pieces(WEIGHTS, n)))


@pytest.mark.filterwarnings("ignore:Refine stopped")
@pytest.mark.parametrize("form", ["held", "functions", "csr", "csr functions"])
@pytest.mark.parametrize("names", [None, np.array(["in", "outside"])], ids=["numbers", "strings"])
def test_labels_and_weights_come_with_their_blocks(form, names):
    labels = Y if names is None else names[Y]
    rows = sp.csr_array(X) if "csr" in form else X
    parts = triples(rows, labels)
    made = [lambda part=part: part for part in parts] if "functions" in form else parts
    blocks, y, weights = Blocks.with_labels(made, columns=["a", "b", "c"], cache_bytes=1)
    assert (blocks.shape, blocks.n_blocks, y.dtype.kind) == (X.shape, 7, labels.dtype.kind)
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(weights, WEIGHTS)
    clf, other = estimator().fit(blocks, y, weights), estimator().fit(rows, labels, WEIGHTS)
    assert clf.basis_coef_.tobytes() == other.basis_coef_.tobytes()
    assert clf.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(other, "feature_names_in_")
    blocks, y = Blocks.with_labels([part[:2] for part in parts])
    assert (blocks.shape, y.tolist()) == (X.shape, labels.tolist())


def make_pair():
    return X[:100], Y[:100]


def test_functions_are_called_once_for_labels_and_travel_by_pickle():
    calls = []

    def pair(lo):
        calls.append(lo)
        return X[lo : lo + 100], Y[lo : lo + 100]

    Blocks.with_labels([lambda lo=lo: pair(lo) for lo in (0, 100, 200)])
    assert calls == [0, 100, 200, 0]  # and the first for what all have in common
    copy = pickle.loads(pickle.dumps(Blocks.with_labels([make_pair])[0]))
    np.testing.assert_array_equal(copy.slice(0, 100, np.float32), X[:100])


@pytest.mark.filterwarnings("ignore:Refine stopped")
def test_a_class_that_the_last_block_alone_has_and_blocks_without_rows():
    labels = np.r_[np.zeros(150), np.ones(140), np.full(10, 2)].astype(int)
    parts = [(X[lo : lo + 50], labels[lo : lo + 50]) for lo in range(0, 300, 50)]
    parts.insert(2, (X[:0], np.zeros(0)))
    clf = estimator().fit(*Blocks.with_labels(parts))
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.classes_.dtype == labels.dtype
    few = SVR(max_basis=5, random_state=0).fit(*Blocks.with_labels([(X, X[:, 0])]))
    assert few.predict(X).shape == (300,)


GOOD = (X[:10], Y[:10])
BAD = {
    "no labels": (X[:10], r"block 2 \(c\) must be \(rows, labels\) or .*found ndarray"),
    "weights in one": ((*GOOD, WEIGHTS[:10]), r"block 2 \(c\) must be .*the same in all blocks; found 3 parts"),
    "too few": ((X[:10], Y[:9]), r"block 2 \(c\) has labels of shape \(9,\), expected is one for each of its 10 rows"),
    "kind": ((X[:10], Y[:10].astype(str)), r"block 2 \(c\) has other labels .* of <U21, expected is \(10,\) of int64"),
    "columns": ((X[:10], np.eye(10)), r"block 2 \(c\) has other labels .*\(10, 10\) of float64, expected is \(10,\)"),
    "objects": ((X[:10], [None] * 10), r"block 2 \(c\) has labels of dtype object, accepted are numbers or strings"),
    "a mask": ((X[:10], np.ma.masked_equal(Y[:10], Y[3])), r"block 2 \(c\) has labels that are masked: .*row"),
    "rows": ((X[:10, :2], Y[:10]), r"block 2 \(c\) has another columns"),
    "fails": (lambda: {}["x"], r"block 2 \(c\) could not be made: 'x'"),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_wrong_names_the_block(bad):
    part, message = BAD[bad]
    with pytest.raises((ValueError, RuntimeError), match=message):
        Blocks.with_labels([GOOD, GOOD, part], names=["a", "b", "c"])


@pytest.mark.filterwarnings("ignore:Refine stopped")
def test_other_things_that_are_wrong():
    with pytest.raises(ValueError, match=r"block 0 has weights of dtype <U1, accepted are numbers$"):
        Blocks.with_labels([(*GOOD, np.full(10, "a"))])
    with pytest.raises(ValueError, match="names must have an entry for each of the 1 blocks, found 2"):
        Blocks.with_labels([GOOD], names=["a", "b"])
    with pytest.raises(ValueError, match="must have rows"):
        Blocks.with_labels([])
    weights = WEIGHTS.copy()
    weights[74] = -1.0
    blocks = Blocks.with_labels([(X[i : i + 10], Y[i : i + 10], weights[i : i + 10]) for i in range(0, 300, 10)])
    assert estimator().fit(*blocks).n_basis_ > 0  # a row of negative weight is left out


@pytest.mark.filterwarnings("ignore:Refine stopped")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("is_held", [False, True])
def test_blocks_of_data_frames_have_the_names_of_their_columns(kind, is_held):
    pd, names = pytest.importorskip("pandas"), ["size", "age", "mass"]
    frames = [pd.DataFrame(X[lo : lo + 20], columns=names) for lo in range(0, 60, 20)]
    if kind == "polars":
        frames = list(map(pytest.importorskip("polars").from_pandas, frames))
    if kind == "arrow":
        frames = list(map(pytest.importorskip("pyarrow").Table.from_pandas, frames))
    made = [(lambda i=i: (frames[i], Y[20 * i : 20 * i + 20])) for i in range(3)]
    blocks, y = Blocks.with_labels(made) if not is_held else (Blocks(frames), Y[:60])
    clf = SVC(max_basis=5, random_state=0).fit(blocks, y)
    assert clf.feature_names_in_.tolist() == names
    with pytest.raises(ValueError, match="must be in the same order"):
        clf.predict(pd.DataFrame(X[:5], columns=names[::-1]))
    numbered = SVC(max_basis=5, random_state=0).fit(Blocks([pd.DataFrame(X)]), Y)
    assert not hasattr(numbered, "feature_names_in_")


def test_names_of_columns_are_kept_and_checked(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"size": X[:, 0], "age": X[:, 1], "mass": X[:, 2], "y": Y})
    parquet.write_table(table, tmp_path / "rows.parquet")
    clf = estimator().fit(*Blocks.from_parquet(tmp_path / "rows.parquet", label="y"))
    assert clf.feature_names_in_.tolist() == ["size", "age", "mass"]
    assert clf.feature_names_in_.dtype == object
    clf.save(tmp_path / "model.slim")
    read = slimsvm.load(tmp_path / "model.slim")
    assert read.feature_names_in_.tolist() == ["size", "age", "mass"]
    for fitted in (clf, read):
        with pytest.raises(ValueError, match=r"columns \['age', 'size', 'mass'\], expected are those of training"):
            fitted.predict(Blocks.from_parquet(tmp_path / "rows.parquet", columns=["age", "size", "mass"]))
        with pytest.warns(UserWarning, match="does not have valid feature names"):
            plain = fitted.predict(X)  # as scikit-learn has it
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_array_equal(
                fitted.predict(Blocks.from_arrow(table, columns=["size", "age", "mass"])), plain
            )
            np.testing.assert_array_equal(fitted.predict(table.to_pandas()[["size", "age", "mass"]]), plain)
            np.testing.assert_array_equal(fitted.predict(Blocks([X])), plain)
    assert not hasattr(clf.fit(Blocks([X]), Y), "feature_names_in_")
