"""Sparse rows whose index arrays contradict each other are an error that says what is wrong, at every entrance."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import slimsvm
from slimsvm import (
    SVC,
    SVR,
    Blocks,
    Condense,
    CrossTrainedSVC,
    EditedNN,
    GridSearchSVC,
    LearnedAxes,
    MultiEdit,
    NormalRanks,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SequenceSVM,
    compress,
    explain,
)

RNG = np.random.default_rng(0)
N, D = 40, 6
DENSE = np.where(RNG.random((N, D)) < 0.4, RNG.normal(size=(N, D)), 0.0)
Y = np.arange(N) % 2
GOOD = sp.csr_array(DENSE)
ESTIMATOR = SVC(gamma=0.3).fit(GOOD, Y)
FAR = 10**6


def damaged(part, at, value, form="csr", container=sp.csr_array, wide=False):
    """Rows of which one entry of one index array is another one."""
    X = container(DENSE).asformat(form).copy()
    if wide:
        X.indptr, X.indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
    getattr(X, part)[at] = value
    return X


WILD = {
    "beyond the values": (
        damaged("indptr", 5, FAR),
        r"indptr must not decrease, found \d+ at position 6, after 1000000",
    ),
    "negative": (damaged("indptr", 5, -3), r"indptr must not decrease, found -3 at position 5"),
    "last one beyond the values": (damaged("indptr", -1, FAR), r"indptr must end within the stored values"),
    "last one too small": (damaged("indptr", -1, 1), r"indptr must not decrease, found 1 at position 40"),
    "first one": (damaged("indptr", 0, 1), r"indptr must begin with 0, found 1"),
    "first one negative": (damaged("indptr", 0, -1), r"indptr must begin with 0, found -1"),
    "decreasing": (damaged("indptr", 5, 0), r"indptr must not decrease, found 0 at position 5"),
    "column too large": (damaged("indices", 3, FAR), r"indices must lie between 0 and 5, found 1000000 at position 3"),
    "column as many as features": (damaged("indices", -1, D), r"indices must lie between 0 and 5, found 6"),
    "column negative": (damaged("indices", 3, -1), r"indices must lie between 0 and 5, found -1 at position 3"),
    "64 bits": (damaged("indptr", 5, 2**40, wide=True), r"indptr must not decrease, found"),
    "64 bits, column": (damaged("indices", 0, -(2**40), wide=True), r"indices must lie between 0 and 5"),
    "matrix": (damaged("indptr", 5, FAR, container=sp.csr_matrix), r"indptr must not decrease"),
    "csc, indptr": (damaged("indptr", 2, FAR, "csc"), r"indptr must not decrease, found \d+ at position 3"),
    "csc, row": (damaged("indices", 2, N, "csc"), r"indices must lie between 0 and 39, found 40"),
    "coo, row": (damaged("row", 2, FAR, "coo", sp.coo_matrix), r"row must lie between 0 and 39, found 1000000"),
    "coo, column": (damaged("col", 2, -1, "coo", sp.coo_matrix), r"col must lie between 0 and 5, found -1"),
    "bsr": (damaged("indices", 0, FAR, "bsr"), r"indices must lie between 0 and"),
}


def shortened(part):
    X = GOOD.copy()
    setattr(X, part, getattr(X, part)[:-3].copy())
    return X


WILD |= {
    "indptr too short": (shortened("indptr"), r"indptr must have 41 entries for shape \(40, 6\), found 38"),
    "indices too short": (shortened("indices"), r"indptr must end within the stored values"),
    "values too short": (shortened("data"), r"indptr must end within the stored values"),
}


@pytest.mark.parametrize("name", WILD)
def test_every_damage_is_named(name):
    X, words = WILD[name]
    with pytest.raises(ValueError, match=rf"X\.{words}"):
        SVC(gamma=0.3).fit(X, Y)
    with pytest.raises(ValueError, match=rf"X\.{words}"):
        ESTIMATOR.decision_function(X)


BAD = [WILD["beyond the values"][0], WILD["column negative"][0], WILD["csc, row"][0]]
CALLS = {
    "fit of few vectors": lambda X: SVC(max_basis=5, random_state=0).fit(X, Y),
    "linear": lambda X: SVC(kernel="linear").fit(X, Y),
    "SVR": lambda X: SVR().fit(X, Y),
    "OneClassSVM": lambda X: OneClassSVM().fit(X),
    "OrdinalSVC": lambda X: OrdinalSVC().fit(X, Y),
    "RankSVM": lambda X: RankSVM().fit(X, Y, groups=np.arange(N) // 8),
    "CrossTrainedSVC": lambda X: CrossTrainedSVC(random_state=0).fit(X, Y),
    "SequenceSVM": lambda X: SequenceSVM().fit([X], [Y]),
    "SequenceSVM with lengths": lambda X: SequenceSVM().fit(X, Y, lengths=[20, 20]),
    "partial_fit": lambda X: SVC(solver="bsgd", max_basis=5).partial_fit(X, Y, classes=[0, 1]),
    "predict": ESTIMATOR.predict,
    "score": lambda X: ESTIMATOR.score(X, Y),
    "certificate": lambda X: ESTIMATOR.certificate(X, Y),
    "compress": lambda X: compress(ESTIMATOR, 3, X=X),
    "explain": lambda X: explain(ESTIMATOR, X),
    "background": lambda X: explain(ESTIMATOR, DENSE[:2], background=X),
    "Condense": lambda X: Condense().fit_resample(X, Y),
    "EditedNN": lambda X: EditedNN().fit_resample(X, Y),
    "MultiEdit": lambda X: MultiEdit(random_state=0).fit_resample(X, Y),
    "LearnedAxes": lambda X: LearnedAxes().fit(X, Y),
    "NormalRanks": lambda X: NormalRanks().fit(X),
    "GridSearchSVC": lambda X: GridSearchSVC(param_grid={"C": [1.0]}, cv=2).fit(X, Y),
    "GridSearchCV's predict": lambda X: GridSearchCV(SVC(), {"C": [1.0]}, cv=2).fit(GOOD, Y).predict(X),
    "Blocks": lambda X: SVC(max_basis=5, random_state=0).fit(Blocks([X]), Y),
    "Blocks made later": lambda X: SVC(max_basis=5, random_state=0).fit(Blocks([lambda: X]), Y),
    "labels": lambda X: SVC().fit(DENSE, X),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_entrance_looks(name):
    for X in BAD:
        with pytest.raises((ValueError, TypeError), match=r"must (not decrease|lie between)|sparse"):
            CALLS[name](X)


def test_a_predictor_looks(tmp_path):
    ESTIMATOR.save(tmp_path / "m.slim")
    predictor = slimsvm.load_predictor(tmp_path / "m.slim")
    for X, words in WILD.values():
        for call in (predictor.predict, predictor.decision_function):
            with pytest.raises(ValueError, match=words):
                call(X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_what_is_right_passes(form):
    """Spare values behind the last row, columns that are not sorted, and columns that occur twice, too."""
    expected = ESTIMATOR.decision_function(DENSE)
    np.testing.assert_allclose(ESTIMATOR.decision_function(GOOD.asformat(form)), expected, atol=1e-12)
    odd = GOOD.copy()
    odd.data, odd.indices = np.append(odd.data, [9.0, 9.0]), np.append(odd.indices, [FAR, -1]).astype(odd.indices.dtype)
    np.testing.assert_allclose(ESTIMATOR.decision_function(odd), expected, atol=1e-12)
    coo = GOOD.tocoo()
    halves = (np.tile(coo.data / 2, 2), (np.tile(coo.row, 2)[::-1], np.tile(coo.col, 2)[::-1]))
    twice = sp.coo_matrix((halves[0][::-1], halves[1]), shape=GOOD.shape)
    np.testing.assert_allclose(ESTIMATOR.decision_function(twice), expected, atol=1e-12)
