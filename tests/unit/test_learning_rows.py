"""Vectors learned from a sample of very many rows; coefficients, objective and bound of all of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import naive
from block_rows_cases import in_blocks
from slimsvm import CPSP, SVC, SVR, Refine, SequenceSVM
from slimsvm.kernels import RBF
from slimsvm.parts.descent.first_basis import SampleSettings, learning_part, most_rows
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary

N = 3_000
FEW = SampleSettings(most_rows=800, near_rows=300)


@pytest.fixture(autouse=True)
def few_learning_rows(settings_of_estimators):
    settings_of_estimators(FEW)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(N, 4)) * (rng.random((N, 4)) < 0.8)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=N) > 0).astype(int)


def fitted(X, y, estimator=SVC, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = {"solver": "refine", "max_basis": 12, "random_state": 0, "max_iter": 5, "gamma": 0.4} | options
        return estimator(**options).fit(X, y)


def bits(clf):
    model = clf.model_
    parts = [part.data.tobytes() for part in (model.basis, model.coef, model.intercept)]
    return parts, clf.objective_, clf.history_[-1]


@pytest.mark.parametrize("options", [{}, {"gamma": "learn"}, {"gamma": "scale", "precision": "float64"}], ids=str)
def test_the_same_bits_wherever_the_rows_are(options, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X)
    one = fitted(X, y, **options)
    for rows in (np.load(tmp_path / "rows.npy", mmap_mode="r"), in_blocks(X, 3), in_blocks(X, 37)):
        other = fitted(rows, y, **options)
        assert bits(other)[:1] == bits(one)[:1]
        assert other.objective_ == one.objective_
        assert other.counters_["bound_in_basis"] == one.counters_["bound_in_basis"]
    assert bits(fitted(in_blocks(sp.csr_array(X), 5), y))[0] == bits(fitted(sp.csr_array(X), y))[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_objective_and_bound_are_those_of_all_rows(weighted, data):
    X, y = data
    weights = np.random.default_rng(1).choice([0.5, 1.0, 3.0], N) if weighted else np.ones(N)
    clf = SVC(solver="refine", max_basis=12, random_state=0, gamma=0.4, C=2.0, max_seconds=60).fit(X, y, weights)
    K = naive.kernel_matrix(RBF(0.4), clf.basis_vectors_, clf.basis_vectors_)
    scores = naive.kernel_matrix(RBF(0.4), X, clf.basis_vectors_) @ clf.basis_coef_ + clf.intercept_
    hinge = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * scores[:, 0])
    own = 0.5 * float(clf.basis_coef_[:, 0] @ K @ clf.basis_coef_[:, 0]) + 0.5 * clf.intercept_[0] ** 2
    assert clf.objective_ == pytest.approx(own + 2.0 * weights @ hinge, rel=1e-5)
    # Coefficients of the sample alone are not as good for all rows.
    assert clf.objective_ - clf.counters_["bound_in_basis"] < 1e-3 * clf.objective_


PURSUITS = {"auto": {}, "sweeps": {"sweeps": 3}, "rows": {"preimage": "training-rows"}}


@pytest.mark.parametrize("name", PURSUITS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_pursuit_seeks_vectors_on_the_sample(name, form, data, monkeypatch):
    X, y = data
    whole, kept = form(X), {"gamma": 0.4, "C": 2.0, "random_state": 0, "solver": CPSP(12, **PURSUITS[name])}
    one, rows = SVC(**kept).fit(whole, y), in_blocks(whole, 10)
    taken, take = [], rows.take
    monkeypatch.setattr(rows, "take", lambda index, dtype: taken.append(len(index)) or take(index, dtype))
    other = SVC(**kept).fit(rows, y)
    for clf in (one, other):
        clf.found = clf.basis_coef_.tobytes(), clf.intercept_.tobytes(), clf.decision_function(X[:100]).tobytes()
    assert (other.found, other.objective_) == (one.found, one.objective_)
    assert 800 in taken
    assert len(taken) < 10
    assert other.n_basis_ <= 12
    scores = one.decision_function(whole)
    hinge = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * scores).sum()
    own = one.model_.norm_squared() + float(one.intercept_ @ one.intercept_)
    assert one.objective_ == pytest.approx(0.5 * own + 2.0 * hinge, rel=1e-5)
    assert one.objective_ - one.counters_["bound_in_basis"] < 2e-2 * one.objective_
    assert one.lower_bound_ is None
    assert [record["objective"] for record in one.history_[:-1]] == [None] * (len(one.history_) - 1)
    assert one.history_[-1]["objective"] == one.objective_


def test_a_pursuit_that_is_stopped_or_goes_on(data):
    X, y = data
    few = fitted(X, y, solver=CPSP(12), max_basis=None, max_iter=1)
    scores = few.decision_function(X)
    hinge = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * scores).sum()
    norm = few.model_.norm_squared() + float(few.intercept_ @ few.intercept_)
    assert few.objective_ == pytest.approx(0.5 * norm + hinge, rel=1e-5)
    more = few.set_params(warm_start=True, max_iter=100).fit(X, y)
    assert more.objective_ < 0.5 * norm + hinge
    with pytest.raises(ValueError, match=r"same rows|labels, weights or the loss"):
        more.fit(X, 1 - y)
    exact = SVC(solver=CPSP(12, record_delta=True), random_state=0, gamma=0.4).fit(X, y)  # of all rows
    assert 0 < exact.lower_bound_ <= exact.objective_


def test_interrupted_or_without_a_finish_the_objective_is_that_of_all_rows(data):
    X, y = data
    clf = fitted(X, y, solver=Refine(max_basis=12, finish=False), max_basis=None)
    scores = clf.decision_function(X)
    hinge = np.maximum(0.0, 1.0 - np.where(y == 1, 1.0, -1.0) * scores).sum()
    norm = clf.model_.norm_squared() + float(clf.intercept_ @ clf.intercept_)
    assert clf.objective_ == pytest.approx(0.5 * norm + hinge, rel=1e-5)


def test_only_the_sample_is_read_at_random(data, monkeypatch):
    X, y = data
    taken = []
    rows = in_blocks(X, 10)
    take = rows.take
    monkeypatch.setattr(rows, "take", lambda index, dtype: taken.append(len(index)) or take(index, dtype))
    fitted(rows, y)
    assert 800 in taken
    assert len(taken) < 15  # beside it, rows of directions and of estimates


@pytest.mark.parametrize("solver", ["auto", CPSP(12)], ids=["refine", "cpsp"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_of_which_a_copy_is_small_are_read_once(solver, form, data, monkeypatch):
    """Steps on random batches would ask for blocks again and again."""
    X, y = form(data[0][:700]), data[1][:700]
    rows, taken = in_blocks(X, 5, cache_bytes=0), []
    monkeypatch.setattr(rows, "take", lambda index, dtype: taken.append(index))
    options = {"solver": solver, "max_basis": 12 if solver == "auto" else None}
    assert bits(fitted(rows, y, **options))[:2] == bits(fitted(X, y, **options))[:2]
    assert not taken


def test_the_sample_is_of_the_number_of_rows_and_their_size(data):
    X, y = data
    parts = []
    for rows in (as_rows(X), in_blocks(X, 5), in_blocks(X, 11)):
        problem = Problem(rows, Binary().encode(2 * y - 1), Binary(), RBF(0.4), random_state=3, settings=(FEW,))
        parts.append(learning_part(problem, problem.generator()))
    for part in parts:
        assert part.rows.n_rows == part.examples.n_rows == 800
        assert part.rows.in_memory
        np.testing.assert_allclose(part.C1, problem.C1)
        np.testing.assert_array_equal(part.rows.slice(0, 800, np.float32), parts[0].rows.slice(0, 800, np.float32))
        np.testing.assert_array_equal(part.examples.labels, parts[0].examples.labels)


def test_wide_rows_are_fewer(data):
    X, y = data
    settings = (SampleSettings(most_rows=800, fewest_rows=100),)
    parts = as_rows(X), Binary().encode(2 * y - 1), Binary(), RBF(0.4)
    problem = Problem(*parts, memory_limit=400 * 16 * 4, settings=settings)
    assert most_rows(problem) == 400
    problem = Problem(*parts, memory_limit=1, settings=settings)
    assert most_rows(problem) == 100


def test_regression_and_many_classes(data):
    X, _ = data
    y = X[:, 0] * X[:, 1]
    one = fitted(X, y, SVR)
    assert bits(fitted(in_blocks(X, 4), y, SVR))[0] == bits(one)[0]
    classes = np.digitize(y, [-0.3, 0.3])
    assert bits(fitted(in_blocks(X, 4), classes))[0] == bits(fitted(X, classes))[0]
    assert fitted(X, classes).score(X, classes) > 0.75


def test_sequences_stay_whole(monkeypatch):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 8, 400)
    X = [rng.normal(size=(length, 3)) for length in lengths]
    y = [(rows[:, 0] > 0).astype(int) for rows in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SequenceSVM(max_basis=8, random_state=0, max_iter=3).fit(X, y)
    assert clf.score(X, y) > 0.9
