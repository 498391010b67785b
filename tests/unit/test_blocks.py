"""`Blocks`: any rows by number, what is kept, and what is refused."""

import pickle
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from block_rows_cases import in_blocks, pieces
from slimsvm import BSCA, SVC, Blocks, Condense, CrossTrainedSVC, GridSearchSVC, OneClassSVM, OrdinalSVC, RankSVM
from slimsvm.rows import ChosenRows, as_rows
from threads_for_tests import in_threads


def some_rows(n=200, d=3, dtype=np.float32):
    return (10 * np.random.default_rng(0).normal(size=(n, d))).astype(dtype)


def as_array(block):
    return block.toarray() if sp.issparse(block) else block


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("form", ["functions", "arrays", "F", "csr", "csr functions", "memmap"])
def test_any_rows_by_number(form, dtype, tmp_path):
    X = some_rows(dtype=dtype)
    parts = pieces(sp.csr_array(X) if "csr" in form else np.asfortranarray(X) if form == "F" else X, 7)
    if form == "memmap":
        for i, part in enumerate(parts):
            part = part if len(part) else np.zeros((1, 3), dtype)
            np.save(tmp_path / f"{i}.npy", part)
        parts = [np.load(tmp_path / f"{i}.npy", mmap_mode="r")[: len(part)] for i, part in enumerate(parts)]
    rows = Blocks([lambda part=part: part for part in parts] if "functions" in form else parts, cache_bytes=1)
    assert rows.shape == X.shape
    assert (rows.n_blocks, rows.is_sparse, rows.dtype) == (7, "csr" in form, X.dtype)
    assert rows.n_stored == (np.count_nonzero(X) if rows.is_sparse else X.size)
    rng = np.random.default_rng(1)
    for asked in (np.float32, np.float64):
        for _ in range(20):
            lo, hi = np.sort(rng.integers(0, 201, 2)).tolist()
            np.testing.assert_array_equal(as_array(rows.slice(lo, hi, asked)), X[lo:hi].astype(asked), strict=True)
            index = rng.integers(0, 200, rng.integers(0, 30))
            taken = rows.take(index, asked)
            np.testing.assert_array_equal(as_array(taken), X[index].astype(asked), strict=True)
            np.testing.assert_array_equal(as_array(ChosenRows(rows, index).take(np.arange(len(index)), asked)), taken
                                          if not rows.is_sparse else taken.toarray())  # fmt: skip
    with pytest.raises(IndexError, match=r"rows must be in 0\.\.199, found -1\.\.0"):
        rows.take(np.array([0, -1]), np.float32)


def counted(X, n, made):
    """Functions that return n blocks and note which ones they made."""

    def block(i):
        made.append(i)
        return X[len(X) // n * i : len(X) // n * (i + 1)]

    return [lambda i=i: block(i) for i in range(n)]


def test_blocks_are_made_when_asked_for_and_the_first_ones_kept():
    X, made = some_rows(), []
    rows = Blocks(counted(X, 4, made), n_rows=[50] * 4, cache_bytes=2 * 50 * 3 * 4)
    assert made == [0]  # which says the rest
    rows.take(np.array([120, 10, 110]), np.float32)
    assert made == [0, 2]
    rows.slice(0, 200, np.float32)
    assert made == [0, 2, 1, 3]
    rows.slice(150, 200, np.float32)
    assert made == [0, 2, 1, 3]  # the last one is there, too
    rows.slice(50, 100, np.float32)
    assert made == [0, 2, 1, 3, 1]
    made.clear()
    Blocks(counted(X, 4, made), cache_bytes=10**6).slice(0, 200, np.float32)
    assert made == [0, 1, 2, 3]


def test_the_next_block_of_a_pass_is_made_meanwhile():
    X, made = some_rows(), []
    rows = Blocks(counted(X, 4, made), n_rows=[50] * 4, cache_bytes=0)
    rows.slice(0, 50, np.float32)
    made.clear()
    rows.slice(50, 100, np.float32)
    wait_until(lambda: made == [1, 2])  # nobody has asked for it
    np.testing.assert_array_equal(rows.slice(100, 150, np.float32), X[100:150])
    wait_until(lambda: made == [1, 2, 3])
    np.testing.assert_array_equal(rows.slice(0, 50, np.float32), X[:50])  # another one than was thought
    assert made == [1, 2, 3, 0]


def test_an_error_of_a_block_made_ahead_meets_whoever_asks_for_it():
    X, tries = some_rows(), []

    def broken():
        tries.append(1)
        raise OSError("gone")

    rows = Blocks([lambda: X[:50], lambda: X[50:100], broken], n_rows=[50] * 3, cache_bytes=0)
    rows.slice(0, 100, np.float32)
    wait_until(lambda: tries == [1])
    with pytest.raises(RuntimeError, match="block 2 could not be made: gone"):
        rows.slice(100, 150, np.float32)
    assert len(tries) == 2


def wait_until(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came true")


def test_a_copy_by_pickle_has_the_same_rows():
    X = some_rows()
    rows = Blocks([*(partial(np.array, X[lo : lo + 50]) for lo in (0, 50, 100)), X[150:]], cache_bytes=1000)
    rows.slice(0, 200, np.float32)
    copy = pickle.loads(pickle.dumps(rows))
    np.testing.assert_array_equal(copy.slice(0, 200, np.float32), X)
    assert copy.bounds.tolist() == rows.bounds.tolist()


def test_threads_share_blocks():
    X, wrong, inside = some_rows(1000), [], []

    def made(piece):
        inside.append(piece)
        time.sleep(1e-4)  # lets others in
        if len(inside) > 1:
            wrong.append("two at a time")
        inside.pop()
        return piece.copy()

    rows = Blocks([lambda piece=piece: made(piece) for piece in pieces(X, 13)], cache_bytes=1000)

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            index = rng.integers(0, 1000, 20)
            lo = int(rng.integers(0, 900))
            if not (rows.take(index, np.float32) == X[index]).all():
                wrong.append(index)
            if not (rows.slice(lo, lo + 100, np.float32) == X[lo : lo + 100]).all():
                wrong.append(lo)

    in_threads(read, range(4))
    assert not wrong


def with_value(X, row, value):
    X = X.copy()
    X[row, 1] = value
    return X


GOOD = [some_rows(10) for _ in range(9)]
NAN_IN_7 = [*GOOD[:7], with_value(GOOD[7], 4, np.nan), GOOD[8]]
BAD = {
    "columns": ([*GOOD, some_rows(10, 4)], ValueError, "block 9 has another columns"),
    "dtype": ([*GOOD, some_rows(10, 3, np.float64)], ValueError, "block 9 has another dtype .*float64.*float32"),
    "form": ([*GOOD, sp.csr_array(GOOD[0])], ValueError, "block 9 has another form .*found CSR, expected is dense"),
    "objects": ([*GOOD, np.full((2, 3), "a", object)], TypeError, "block 9: must hold real numbers, .* object"),
    "strings": ([*GOOD, np.full((2, 3), "a")], TypeError, "block 9: must hold real numbers"),
    "one dimension": ([*GOOD, np.zeros(3)], ValueError, "block 9: must have two dimensions"),
    "NaN": (NAN_IN_7, ValueError, "X contains NaN at row 74, column 1, which is row 4 of block 7"),
    "sparse NaN": ([sp.csr_array(part) for part in NAN_IN_7], ValueError, "NaN at row 74, column 1, .* block 7"),
    "infinity": ([with_value(GOOD[0], 3, -np.inf)], ValueError, r"infinity \(inf\) at row 3, column 1, .* block 0"),
    "no rows": ([np.zeros((0, 3))], ValueError, "must have rows, found 1 blocks without any"),
    "no blocks": ([], ValueError, "must have rows"),
    "no columns": ([np.zeros((3, 0))], ValueError, "block 0 has no columns"),
    "a mask": (
        [*GOOD, np.ma.masked_equal(GOOD[0], GOOD[0][4, 1])],
        ValueError,
        "block 9: contains a masked .*row 4, column 1",
    ),
    "frames": (
        [pd.DataFrame(GOOD[0]), pd.DataFrame(GOOD[1])[[2, 1, 0]]],
        ValueError,
        r"block 1 has the columns \['2', '1'",
    ),
}


@pytest.mark.turns("is_made")
@pytest.mark.parametrize("is_made", [False, True])
@pytest.mark.parametrize("bad", BAD)
def test_bad_blocks_are_named(bad, is_made):
    parts, error, message = BAD[bad]
    with pytest.raises(error, match=message):
        Blocks([lambda part=part: part for part in parts] if is_made else parts)


def test_blocks_and_columns_have_the_names_they_are_given():
    files = [f"part-{i}" for i in range(9)]
    with pytest.raises(ValueError, match=r"column 'size', which is row 4 of block 7 \(part-7\)"):
        Blocks(NAN_IN_7, names=files, columns=["age", "size", "mass"])
    with pytest.raises(ValueError, match="names must have an entry for each of the 9 blocks"):
        Blocks(GOOD, names=files[:3])
    with pytest.raises(ValueError, match="columns must have a name for each feature, found 2 for the 3 of block 0"):
        Blocks(GOOD, columns=["age", "size"])
    frame = pd.DataFrame(GOOD[0], columns=list("abc"))
    with pytest.raises(ValueError, match=r"block 1 has the columns \['c', .*expected are \['a', 'b', 'c'\]"):
        Blocks([lambda: frame, lambda: frame[["c", "b", "a"]]], columns=list("abc"))
    assert Blocks([frame, lambda: frame]).n_rows == 20


@pytest.mark.parametrize("n_rows", [[10, -1], [10, 1.5], [10, "10"], [10, True], 10, [10]], ids=str)
def test_sizes_that_are_none(n_rows):
    """A size below 0 took rows off."""
    with pytest.raises(ValueError, match="n_rows must"):
        Blocks([lambda: GOOD[0], lambda: GOOD[1]], n_rows=n_rows)
    with pytest.raises(ValueError, match="cache_bytes must be a number of bytes, found 'all'"):
        Blocks(GOOD, cache_bytes="all")


def test_a_block_that_changes_is_found_out():
    X, kept = some_rows(40), [20]
    rows = Blocks([lambda: X[:20], lambda: X[20 : 20 + kept[0]]], cache_bytes=1)
    kept[0] = 15
    with pytest.raises(ValueError, match="block 1 has 15 rows, expected are 20: blocks must stay as they are"):
        SVC(max_basis=5).fit(rows, np.arange(40) % 2)
    with pytest.raises(ValueError, match="block 1 has 15 rows, expected are 16"):
        Blocks([lambda: X[:20], lambda: X[20:35]], n_rows=[20, 16]).slice(0, 36, np.float32)
    values = [0.0]
    rows = Blocks([lambda: X[:20], lambda: X[20:] + values[0]], cache_bytes=1)
    values[0] = np.nan
    with pytest.raises(ValueError, match="X contains NaN at row 20, column 0, which is row 0 of block 1"):
        rows.slice(0, 40, np.float32)


def test_a_function_that_fails_names_its_block():
    with pytest.raises(RuntimeError, match=r"block 1 \(b\.npy\) could not be made: .*No such file") as caught:
        Blocks([lambda: some_rows(), lambda: np.load("/nowhere/b.npy")], names=["a.npy", "b.npy"])
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    with pytest.raises(RuntimeError, match="block 0 could not be made: StopIteration"):
        Blocks([lambda: next(iter(()))])


def test_estimators_check_labels_and_features():
    X = some_rows()
    rows, y = in_blocks(X, 5), np.arange(200) % 2
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(max_basis=5).fit(rows, y[:-1])
    with pytest.raises(ValueError, match="Input y contains NaN, at row 3"):
        SVC(max_basis=5).fit(rows, np.where(np.arange(200) == 3, np.nan, y))
    with pytest.raises(ValueError, match="X has 2 features, but SVC is expecting 3 features as input"):
        SVC(max_basis=5).fit(rows, y).predict(in_blocks(X[:, :2], 3))
    with pytest.raises(ValueError, match="row 7 of X, whose features are as large as 1e"):
        SVC(max_basis=5, kernel="poly", precision="float32").fit(rows, y).predict(
            in_blocks(np.where(np.arange(200)[:, None] == 7, np.float32(1e30), X), 4)
        )


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (CrossTrainedSVC(), ValueError, "CrossTrainedSVC takes arrays"),
        (SVC(kernel="precomputed"), ValueError, "kernel='precomputed' takes arrays"),
        (GridSearchSVC(), TypeError, "read block by block and not made into an array"),
    ],
    ids=str,
)
def test_what_takes_arrays_only_says_so(estimator, error, message):
    with pytest.raises(error, match=message):
        estimator.fit(in_blocks(some_rows(), 3), np.arange(200) % 2)


def test_rankings_take_arrays_only():
    with pytest.raises(ValueError, match="RankSVM takes arrays and sparse matrices, found Blocks"):
        RankSVM().fit(in_blocks(some_rows(), 3), np.arange(200), groups=np.arange(200) // 5)


def test_the_other_estimators_take_blocks():
    X = some_rows()
    rows, y = in_blocks(X, 5), np.arange(200) % 3
    for estimator in (OneClassSVM(solver=BSCA(max_basis=10), random_state=0), OrdinalSVC(max_basis=5, random_state=0)):
        one, other = (clone(estimator).fit(data, y).predict(data) for data in (X, rows))
        np.testing.assert_array_equal(other, one)
    with pytest.raises(ValueError, match="Exact needs all rows in memory"):
        OneClassSVM().fit(rows)
    with pytest.raises(TypeError, match="read block by block and not made into an array"):
        Condense().fit_resample(rows, y)


def test_partial_fit_takes_one_block_at_a_time():
    rows, y = in_blocks(some_rows(), 3), np.arange(200) % 2
    with pytest.raises(ValueError, match="partial_fit takes the rows of one chunk"):
        SVC(solver="bsgd", max_basis=10, gamma=0.1).partial_fit(rows, y)


def test_a_fit_says_which_block_it_reads(capsys):
    X = some_rows(900)
    rows = Blocks([partial(np.array, X[lo : lo + 300]) for lo in (0, 300, 600)], names=["a.npy", "b.npy", "c.npy"])
    y = np.arange(900) % 2
    kept = {"max_basis": 5, "random_state": 0}
    quiet = SVC(**kept).fit(rows, y)
    assert capsys.readouterr().err == ""
    loud = SVC(verbose=1, **kept).fit(ChosenRows(rows, np.arange(900)), y)
    assert loud.basis_coef_.tobytes() == quiet.basis_coef_.tobytes()
    shown = capsys.readouterr().err
    assert "reading rows: " in shown
    assert " of 3 blocks" in shown
    assert "block 0 (a.npy)" in shown
    assert "learning vectors" in shown
    assert rows._listener is None
    heard = []
    rows.tell(lambda *facts: heard.append(facts))
    as_rows(rows).map(lambda part: part.slice(0, part.n_rows, np.float32))
    assert heard == [(i, 3, f"block {i} ({name}.npy)") for i, name in enumerate("abc")]
    assert pickle.loads(pickle.dumps(rows))._listener is None
    bad = Blocks([X[:300], with_value(X[300:], 7, np.nan)[:0], X[300:]])
    with pytest.raises(ValueError, match="max_basis"):
        SVC(max_basis=-1, verbose=1).fit(bad, y)
    assert bad._listener is None


def test_rows_are_rows():
    rows = Blocks(GOOD)
    assert as_rows(rows) is rows
    assert repr(rows) == "Blocks(90 rows, 3 features, 9 dense blocks of float32)"
