"""Sparse rows of millions of columns, of which few occur: the model of these alone, and memory by what is stored."""

import pickle
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from kernel_cases import WITH_FORMULA
from slimsvm import (
    CPSP,
    SVC,
    SVR,
    CrossTrainedSVC,
    EditedNN,
    LowRank,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SequenceSVM,
    compress,
)

N, K, WIDTH = 60, 20, 3_000_000
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(N, K)) * (RNG.random((N, K)) < 0.4)
NUMBERS = np.sort(RNG.choice(np.arange(100, WIDTH - 100), K, replace=False))
OTHERS = np.array([0, 7, 99, WIDTH - 2, WIDTH - 1])  # columns that no training row has
MORE = RNG.normal(size=(N, len(OTHERS))) * (RNG.random((N, len(OTHERS))) < 0.5)
TWO, THREE = (VALUES[:, 0] + VALUES[:, 1] > 0) * 1, np.digitize(VALUES[:, 0] + VALUES[:, 2], [-0.3, 0.3])
TARGETS = VALUES[:, 0] + 0.1 * VALUES[:, 3]


def wide(values, numbers, width=WIDTH, form=sp.csr_array, index=np.int32):
    rows = sp.coo_array(values)
    X = sp.coo_array((rows.data, (rows.row, np.asarray(numbers)[rows.col])), shape=(len(values), width)).tocsr()
    X.sort_indices()
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return form(X)


FEW, MANY = sp.csr_array(np.hstack([np.zeros((N, 3)), VALUES, np.zeros((N, 2))])), wide(VALUES, NUMBERS)
ORDER = np.concatenate([OTHERS[:3], NUMBERS, OTHERS[3:]])
NEW_VALUES = np.hstack([MORE[:, :3], VALUES + (VALUES != 0), MORE[:, 3:]])
NEW_FEW, NEW_MANY = sp.csr_array(NEW_VALUES), wide(NEW_VALUES, ORDER)

ALL_TOGETHER = [kernel for kernel in WITH_FORMULA if kernel != "additive"]
CASES = {f"SVC {kernel}": (SVC(kernel=kernel, gamma=0.3, coef0=0.5), TWO) for kernel in ALL_TOGETHER}
CASES |= {
    solver: (SVC(solver=solver, gamma=0.3, random_state=0, **({"max_basis": 9} if few else {})), TWO)
    for few, names in (
        (False, ("exact-cuts", "bcfw", "lasvm", "cvm", "bvm")),
        (True, ("low-rank", "bsca", "bsgd")),
    )
    for solver in names
}
CASES |= {
    "float32": (SVC(gamma=0.3, precision="float32"), TWO),
    "three classes": (SVC(gamma=0.3), THREE),
    "numbers": (SVR(gamma=0.3), TARGETS),
    "one class": (OneClassSVM(gamma=0.3), None),
    "ordinal": (OrdinalSVC(gamma=0.3), THREE),
}


def scores_of(model, X):
    return getattr(model, "decision_function", model.predict)(X)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_the_columns_that_occur(case, tmp_path):
    estimator, y = CASES[case]
    y = np.zeros(N) if y is None else y
    few, many = clone(estimator), clone(estimator)
    few.fit(FEW, y)
    many.fit(MANY, y)
    assert many.n_features_in_ == WIDTH
    assert many.basis_vectors_.shape[1] == WIDTH
    assert set(many.basis_vectors_.indices) <= set(NUMBERS)
    expected = scores_of(few, NEW_FEW)
    tolerance = {"rtol": 1e-9, "atol": 1e-9} if many.precision_ == "float64" else {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(scores_of(many, NEW_MANY), expected, **tolerance)
    np.testing.assert_array_equal(scores_of(pickle.loads(pickle.dumps(many)), NEW_MANY), scores_of(many, NEW_MANY))
    many.save(tmp_path / "m.slim")
    np.testing.assert_array_equal(scores_of(slimsvm.load(tmp_path / "m.slim"), NEW_MANY), scores_of(many, NEW_MANY))
    plain = slimsvm.load_predictor(tmp_path / "m.slim")
    assert plain.n_features_in_ == WIDTH
    np.testing.assert_allclose(scores_of(plain, NEW_MANY), expected, **tolerance)
    np.testing.assert_array_equal(plain.predict(NEW_MANY), many.predict(NEW_MANY)) if y is not TARGETS else None


def test_a_sum_over_millions_of_columns_is_refused():
    with pytest.raises(ValueError, match="sums over the columns of rows, at most 16,384, found 3,000,000"):
        SVC(kernel="additive", gamma=0.3).fit(MANY, TWO)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear"])
def test_one_row_has_the_same_scores_as_in_company_and_columns_that_no_vector_has_count(kernel):
    clf = SVC(kernel=kernel, gamma=0.3).fit(MANY, TWO)
    together = clf.decision_function(NEW_MANY)
    alone = np.concatenate([clf.decision_function(NEW_MANY[[i]]) for i in range(N)])
    np.testing.assert_array_equal(alone, together)
    nothing = clf.decision_function(wide(VALUES + (VALUES != 0), NUMBERS))
    assert (nothing == together).all() == (kernel == "linear")
    far = wide(np.full((1, 1), 1e200), [5])
    assert np.isfinite(clf.decision_function(far)).all()


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_all_forms_of_sparse_rows(form, index):
    expected = SVC(gamma=0.3).fit(MANY, TWO).decision_function(NEW_MANY)
    width = 3_000_000 if form is sp.csc_array else WIDTH
    clf = SVC(gamma=0.3).fit(form(wide(VALUES, NUMBERS, width, index=index)), TWO)
    np.testing.assert_array_equal(clf.decision_function(form(wide(NEW_VALUES, ORDER, width, index=index))), expected)


def test_columns_stored_twice_are_added_up(tmp_path):
    clf = SVC(gamma=0.3).fit(MANY, TWO)
    clf.save(tmp_path / "m.slim")
    twice = sp.csr_array((np.array([1.0, 2.0, 3.0]), np.array([5, 5, int(NUMBERS[0])]), np.array([0, 3])), (1, WIDTH))
    once = wide(np.array([[3.0, 3.0]]), [5, NUMBERS[0]])
    np.testing.assert_array_equal(clf.decision_function(twice), clf.decision_function(once))
    plain = slimsvm.load_predictor(tmp_path / "m.slim")
    np.testing.assert_array_equal(plain.decision_function(twice), plain.decision_function(once))


def test_what_knows_columns_by_their_numbers():
    few, many = (SVC(solver=LowRank(5, basis=X[:5]), gamma=0.3).fit(X, TWO) for X in (FEW, MANY))
    np.testing.assert_allclose(few.decision_function(FEW), many.decision_function(MANY), rtol=1e-9, atol=1e-9)
    seen = []

    def kernel(A, B):
        seen.append((A.shape[1], B.shape[1]))
        return (A @ B.T).toarray()

    SVC(kernel=kernel).fit(MANY, TWO)
    assert set(seen) == {(WIDTH, WIDTH)}
    clf = SVC(gamma=0.3, solver="low-rank", max_basis=5, random_state=0).fit(MANY, TWO)
    shifted = wide(VALUES, NUMBERS - 50)
    clf.set_params(warm_start=True).fit(shifted, TWO)
    assert set(clf.basis_vectors_.indices) <= set(NUMBERS - 50)


def test_weights_certificates_and_smaller_models():
    few, many = (SVC(kernel="linear").fit(X, TWO) for X in (FEW, MANY))
    assert many.coef_.shape == (1, WIDTH)
    np.testing.assert_allclose(many.coef_[:, NUMBERS].toarray(), few.coef_[:, 3 : 3 + K].toarray(), rtol=1e-12)
    few, many = (SVC(gamma=0.3).fit(X, TWO) for X in (FEW, MANY))
    assert many.certificate(MANY, TWO).objective == pytest.approx(few.certificate(FEW, TWO).objective, rel=1e-9)
    small = compress(many, max_basis=4, X=MANY, random_state=0)
    assert small.basis_vectors_.shape == (4, WIDTH)
    other = compress(few, max_basis=4, X=FEW, random_state=0)
    np.testing.assert_allclose(small.decision_function(NEW_MANY), other.decision_function(NEW_FEW), atol=0.05)


LONG = 200_000_000
HUGE = wide(VALUES, NUMBERS * 60, LONG)


def saved(clf, X):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.slim"
        clf.save(path)
        slimsvm.load(path).predict(X)
        slimsvm.load_predictor(path).predict(X)


MEMORY = {
    "exact": lambda X: saved(SVC(gamma=0.3).fit(X, TWO), X),
    "linear": lambda X: saved(SVC(kernel="linear").fit(X, TWO), X),
    "weights": lambda X: saved(SVC(kernel="linear", solver="bcfw", precision="float32").fit(X, TWO), X),
    "laplacian": lambda X: saved(SVC(kernel="laplacian", gamma=0.3).fit(X, TWO), X),
    "few vectors": lambda X: saved(SVC(max_basis=4, gamma=0.3, random_state=0).fit(X, TWO), X),
    "refine": lambda X: saved(SVC(solver="refine", max_basis=4, gamma=0.3, random_state=0).fit(X, TWO), X),
    "auto": lambda X: saved(SVC(max_basis="auto", gamma=0.3, random_state=0).fit(X, TWO), X),
    "bsca": lambda X: saved(SVC(solver="bsca", max_basis=9, gamma=0.3).fit(X, TWO), X),
    "cuts": lambda X: saved(SVC(solver="exact-cuts", kernel="poly", gamma=0.3).fit(X, TWO), X),
    "validate": lambda X: saved(SVC(C="validate", gamma="validate", random_state=0).fit(X, TWO), X),
    "three classes": lambda X: saved(SVC().fit(X, THREE), X),
    "numbers": lambda X: saved(SVR().fit(X, TARGETS), X),
    "one class": lambda X: saved(OneClassSVM().fit(X), X),
    "ordinal": lambda X: saved(OrdinalSVC(gamma=0.3).fit(X, THREE), X),
    "ranks": lambda X: saved(RankSVM(gamma=0.3).fit(X, TARGETS, groups=np.repeat(np.arange(6), 10)), X),
    "sequences": lambda X: (
        SequenceSVM(gamma=0.3, max_iter=3).fit([X[:30], X[30:]], [TWO[:30], TWO[30:]]).predict([X[:30]])
    ),
    "rows held out": lambda X: saved(CrossTrainedSVC(gamma=0.3, C=1.0, first_C=1.0, random_state=0).fit(X, TWO), X),
    "nearest": lambda X: EditedNN().fit_resample(X, TWO),
    "certificate": lambda X: SVC(gamma=0.3).fit(X, TWO).certificate(X, TWO),
    "compress": lambda X: compress(SVC(gamma=0.3).fit(X, TWO), max_basis=4, random_state=0).predict(X),
    "coef_": lambda X: SVC(kernel="linear").fit(X, TWO).coef_,
}


@pytest.mark.parametrize("case", MEMORY)
def test_memory_goes_by_what_is_stored(case):
    tracemalloc.start()
    try:
        MEMORY[case](HUGE)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000  # a byte for every column is 200,000,000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("n_columns", "by_columns"), [((1 << 14) + 1, True), (1 << 14, False)])
def test_hashed_text_is_worked_on_by_the_columns_that_occur(n_columns, by_columns):
    numbers = np.sort(np.random.default_rng(1).choice(n_columns, K, replace=False))
    X = wide(VALUES, numbers, n_columns)
    clf, few = (SVC(gamma=0.3, solver=CPSP(4), random_state=0).fit(rows, TWO) for rows in (X, sp.csr_array(VALUES)))
    assert sp.issparse(clf.model_.basis) == by_columns
    assert clf.basis_vectors_.shape == (4, n_columns)
    np.testing.assert_allclose(clf.decision_function(X), few.decision_function(sp.csr_array(VALUES)), atol=1e-3)
