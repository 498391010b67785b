"""Loaders against the figures on record for each set; scaling."""

from collections import Counter
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from slimsvm import datasets
from slimsvm.datasets import (
    DataError,
    available,
    fit_scaling,
    load,
)
from slimsvm.datasets.catalogue import SOURCES

# Classes and their counts: training part, test part (the data page's, the papers' or the source's figures).
COUNTS = {
    "adult": ({-1: 24720, 1: 7841}, {-1: 12435, 1: 3846}),
    "ijcnn1": ({-1: 45137, 1: 4853}, {-1: 82989, 1: 8712}),
    "cod-rna": ({-1: 39690, 1: 19845}, {-1: 181078, 1: 90539}),
    "covtype": ({-1: 51000, 1: 49000}, {-1: 8454, 1: 8022}),
    "covtype-multiclass": (
        dict(zip(range(1, 8), (36307, 49000, 6133, 481, 1663, 2990, 3426))),
        dict(zip(range(1, 8), (5930, 8022, 1054, 78, 281, 497, 614))),
    ),
    "mnist": (
        dict(enumerate((5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949))),
        dict(enumerate((980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009))),
    ),
    "mnist-38": ({-1: 6131, 1: 5851}, {-1: 1010, 1: 974}),
    "mnist-0": ({-1: 54077, 1: 5923}, {-1: 9020, 1: 980}),
    "mnist-04": ({-1: 29404, 1: 30596}, {-1: 4861, 1: 5139}),
    "money-fx": ({-1: 7232, 1: 538}, {-1: 3120, 1: 179}),
    "susy": ({-1: 5372, 1: 4628}, {-1: 544, 1: 456}),
    "higgs": ({-1: 5163, 1: 5821}, {-1: 3284 + 228, 1: 3716 + 272}),
    "splice": ({1: 517, -1: 483}, {1: 1648 - 517, -1: 1527 - 483}),
    "rcv1-ccat": ({-1: 12349, 1: 10141}, {-1: 2791, 1: 2332}),
}
OCR_LETTERS = """
4034 1284 2114 1442 4955 921 2472 861 4913 189 909 3140 1602
5024 3897 1377 341 2673 1394 2136 2562 664 520 413 1221 1094
"""
# Sets with only the sum over both parts on record.
TOTALS = {
    "ocr-letters": dict(enumerate(int(n) for n in OCR_LETTERS.split())),
    "covtype-457k": {-1: 457496 - 223120, 1: 223120},
    "kddcup99": {-1: 97277, 1: 494020 - 97277},
    "banana": {1: 2376, -1: 2924},
    "breast-cancer": {1: 81, -1: 196},
    "german": {1: 300, -1: 700},
    "image": {1: 1320, -1: 990},
    "titanic": {1: 711, -1: 1490},
    "waveform": {1: 1647, -1: 3353},
    "twonorm": {-1: 3703, 1: 3697},
    "ringnorm": {-1: 3664, 1: 3736},
    "diabetis": {-1: 500, 1: 268},
    "heart": {-1: 150, 1: 120},
    "thyroid": {1: 150, 2: 35, 3: 30},
}
TOTALS["ocr-letters-small"] = TOTALS["ocr-letters-uic"] = TOTALS["ocr-letters"]


def count(y):
    return {label: n for label, n in zip(*(part.tolist() for part in np.unique(y, return_counts=True)))}


def check_ijcnn1(found):
    assert found.X_valid.shape == (14_990, 22)
    np.testing.assert_array_equal(found.X_valid, found.X_train[-14_990:])
    np.testing.assert_array_equal(found.y_valid, found.y_train[-14_990:])


def check_cod_rna(found):
    assert found.scaling == "standard"
    np.testing.assert_allclose(found.X_train.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(found.X_train.std(axis=0), 1, rtol=1e-10)
    assert np.abs(found.X_test.mean(axis=0)).max() > 1e-6


def check_covtype(found):
    assert found.scaling == "minmax"
    assert set(np.unique(found.X_train.min(axis=0))) == {0}
    assert set(np.unique(found.X_train.max(axis=0))) <= {0, 1}
    assert found.X_test.max() > 1 or found.X_test.min() < 0


def check_covtype_457k(found):
    assert set(np.unique(found.X_train[:, 10:].sum(axis=1))) == {2}  # a wilderness and a soil
    of_covtype = {row.tobytes() for row in load("covtype", scaling=None).X_test.astype(np.float32)}
    tests = load("covtype-457k", scaling=None).X_test
    assert len(of_covtype) == sum(row.tobytes() in of_covtype for row in tests) == 16_476


def rows_as_bytes(X):
    """Columns and values of each sparse row."""
    ends = zip(X.indptr[:-1], X.indptr[1:])
    return [X.indices[begin:end].tobytes() + X.data[begin:end].tobytes() for begin, end in ends]


def check_rcv1_ccat(found):
    assert isinstance(found.X_train, csr_array)
    np.testing.assert_allclose((found.X_train**2).sum(axis=1), 1, rtol=1e-4)
    assert found.X_train.nnz / found.X_train.shape[0] == pytest.approx(77, abs=2)
    train, test = (rows_as_bytes(X) for X in (found.X_train, found.X_test))
    assert len(train) == len(set(train)) == 22_490
    assert len(test) == len(set(test)) == 5_123
    assert not set(train) & set(test)


def check_mnist(found):
    assert found.X_train.dtype == np.float32
    assert (found.X_train.min(), found.X_train.max()) == (0, 1)


def check_sector(found):
    per_class = np.unique(found.y_train, return_counts=True)[1]
    assert (per_class.min(), per_class.max()) == (10, 80)
    assert isinstance(found.X_train, csr_array)
    assert round(found.X_train.nnz / found.X_train.shape[0]) == 163


def check_money_fx(found):
    assert isinstance(found.X_train, csr_array)
    np.testing.assert_allclose(np.sqrt((found.X_train**2).sum(axis=1)), 1, rtol=1e-4)
    assert found.X_train.nnz / found.X_train.shape[0] == pytest.approx(43.7, abs=0.05)


def check_susy(found):
    assert found.X_valid.shape == (10_000, 8)
    assert count(found.y_valid) == {-1: 5392, 1: 4608}


def check_kddcup99_multiclass(found):
    total = Counter(count(found.y_train)) + Counter(count(found.y_test))
    assert (total[11], total[18], total[9]) == (97277, 280790, 107201)


def check_ocr_letters(found):
    """Only 55 different words occur, so a word cut at the wrong letter would be a 56th."""
    check_sequences(found, 6251, 626)
    words = {bytes(y.tolist()) for part in ("train", "test") for _, y in found.sequences(part)}
    assert len(words) == 55
    assert {len(word) for word in words} <= set(range(3, 15))
    assert set(np.unique(found.X_train)) == {0, 1}


def check_ocr_letters_small(found):
    check_sequences(found, 626, 6251)


def check_ocr_letters_uic(found):
    check_sequences(found, 3438, 3439)


def check_conll2000(found):
    check_sequences(found, 8936, 2012)
    X, y = next(found.sequences())
    assert X[0].tolist() == ["Confidence", "NN"]
    assert y[0] == "B-NP"
    assert X[-1].tolist() == [".", "."]
    assert len(np.unique(found.X_train[:, 1])) == 44
    assert len(np.unique(found.y_test)) == 19


def check_sequences(found, n_train, n_test):
    for part, n in (("train", n_train), ("test", n_test)):
        offsets = getattr(found, f"{part}_offsets")
        assert offsets.dtype == np.int64
        assert len(offsets) == n + 1
        assert (offsets[0], offsets[-1]) == (0, len(getattr(found, f"y_{part}")))
        assert (np.diff(offsets) > 0).all()
    X, y = next(found.sequences("test"))
    assert len(X) == len(y) == found.test_offsets[1]


@pytest.mark.parametrize("name", SOURCES)
def test_each_set_is_what_its_source_says(data, name):
    found = data(name)
    n_train, n_test, n_features, n_classes = SOURCES[name].shape
    assert found.X_train.shape == (n_train, n_features)
    assert found.X_test.shape == (n_test, n_features)
    assert found.y_train.shape == (n_train,)
    assert found.y_test.shape == (n_test,)
    assert len(np.unique(found.y_train)) == n_classes
    assert found.name == name
    assert len(found.source) == len(SOURCES[name].files)
    if name != "conll2000":
        assert found.y_train.dtype == found.y_test.dtype == np.int64
        assert found.X_train.dtype == found.X_test.dtype
        assert found.X_train.dtype in (np.float32, np.float64)
        values = found.X_train if isinstance(found.X_train, np.ndarray) else found.X_train.data
        assert np.isfinite(values).all()
    if name in COUNTS:
        assert (count(found.y_train), count(found.y_test)) == COUNTS[name]
    if name in TOTALS:
        assert Counter(count(found.y_train)) + Counter(count(found.y_test)) == TOTALS[name]
    check = globals().get(f"check_{name.replace('-', '_')}")
    if check is not None:
        check(found)


def test_every_set_is_compared_with_figures_of_its_own():
    others = {"sector", "conll2000", "kddcup99-multiclass"}
    assert set(COUNTS) | set(TOTALS) | others == set(SOURCES)


def test_the_documentation_lists_every_set_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert rows == [
        f"| {info.name} | {info.n_train:,} | {info.n_test:,} | {info.n_features:,} | {info.n_classes} "
        f"| {info.description} | {info.origin} |"
        for info in available()
    ]


def test_a_set_without_sequences_says_so(data):
    with pytest.raises(DataError, match="banana is not a set of sequences"):
        next(data("banana").sequences())


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.n_realisations > 1])
def test_realisations_cut_one_table_into_ten_pairs(data, name):
    rows = None
    train_parts = set()
    for k in range(1, 11):
        found = data(f"{name}-{k}", scaling=None)
        table = np.hstack([np.vstack([found.X_train, found.X_test]), np.append(found.y_train, found.y_test)[:, None]])
        table = table[np.lexsort(table.T)]
        rows = table if rows is None else rows
        np.testing.assert_array_equal(table, rows)
        train_parts.add(found.X_train.tobytes())
    # The source's tenth realisation of image is its first again.
    assert len(train_parts) == (9 if name == "image" else 10)
    np.testing.assert_array_equal(data(name, scaling=None).X_train, data(f"{name}-1", scaling=None).X_train)


# ---- scaling


def test_scaling_on_request(data):
    raw, scaled = data("heart", scaling=None), data("heart", scaling="minmax")
    assert (raw.scaling, scaled.scaling) == (None, "minmax")
    assert raw.X_train.max() > 100
    assert (scaled.X_train.min(), scaled.X_train.max()) == (0, 1)
    expected = (raw.X_test - raw.X_train.min(axis=0)) / np.ptp(raw.X_train, axis=0)
    np.testing.assert_allclose(scaled.X_test, expected, rtol=1e-12)


def test_the_validation_part_is_scaled_like_the_others(data):
    raw, scaled = data("susy"), data("susy", scaling="minmax")
    expected = (raw.X_valid - raw.X_train.min(axis=0)) / np.ptp(raw.X_train, axis=0)
    np.testing.assert_allclose(scaled.X_valid, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("scaling", "train", "test"),
    [
        ("minmax", [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.5]], [[2, 0, -0.5]]),
        ("standard", [[-1, 0, -1], [1, 0, 1], [0, 0, 0]], [[3, 0, -2]]),
        ("maxabs", [[0, 1, -1], [1, 1, 1], [0.5, 1, 0]], [[2, 2, -2]]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_scaling_by_hand(scaling, train, test, dtype):
    X = np.array([[0, 5, -2], [4, 5, 2], [2, 5, 0]], dtype=dtype)
    fitted = fit_scaling(X, scaling)
    unit = np.array([sqrt(1.5), 1, sqrt(1.5)]) if scaling == "standard" else 1
    np.testing.assert_allclose(fitted.apply(X), np.array(train) * unit, rtol=1e-6)
    other = fitted.apply(np.array([[8, 10, -4]], dtype=dtype))
    np.testing.assert_allclose(other[:, [0, 2]], (np.array(test) * unit)[:, [0, 2]], rtol=1e-6)
    assert other.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert X[0, 1] == 5


def test_sparse_rows_stay_sparse_when_scaled():
    X = csr_array(np.array([[0, 4.0, 0], [0, -8.0, 3.0]]))
    scaled = fit_scaling(X, "maxabs").apply(X)
    assert isinstance(scaled, csr_array)
    assert scaled.nnz == X.nnz
    np.testing.assert_array_equal(scaled.toarray(), [[0, 0.5, 0], [0, -1, 1]])
    for scaling in ("minmax", "standard"):
        with pytest.raises(DataError, match="accepted for them is 'maxabs'"):
            fit_scaling(X, scaling)


def test_public_names_exist():
    assert all(hasattr(datasets, name) for name in datasets.__all__)
