"""An exact SVM made to do with a share of its vectors."""

import numpy as np
import pytest
import scipy.sparse as sp

from slimsvm import SVC, KernelExpansion, solvers
from slimsvm.kernels import RBF, EvalCounter, Linear
from slimsvm.rows import as_rows
from slimsvm.solvers import Compact, Exact, Problem, Status
from slimsvm.solvers.learned import refine, thinned
from slimsvm.solvers.learned.thinned import Thinned, can_thin, projected
from slimsvm.tasks import Binary, Regression

compact = solvers.learned.compact
cut_short = pytest.mark.filterwarnings("ignore:.* before its tolerance was:sklearn.exceptions.ConvergenceWarning")


def fields(n, seed=0):
    """A chessboard, of which every category (two indicators) has its own colours; a tenth of the labels are wrong."""
    rng = np.random.default_rng(seed)
    at, second = 4 * rng.random((n, 2)), rng.random(n) < 0.5
    y = (np.floor(at).sum(axis=1) + second) % 2
    return np.column_stack([at, 3.0 * second, 3.0 * ~second]).astype(np.float32), np.where(y == 1, 1, -1)


def problem_of(n, **options):
    X, y = fields(n)
    noisy = np.where(np.random.default_rng(1).random(n) < 0.1, -y, y)
    return Problem(as_rows(X), Binary().encode(noisy), Binary(), RBF(4.0), C=10.0, random_state=0, **options)


def error(model, n=4000):
    X, y = fields(n, 2)
    return np.mean(np.sign(model.scores(X)[:, 0]) != y)


@pytest.fixture(scope="module")
def exact():
    return Exact().solve(problem_of(6000)).model


@pytest.fixture(scope="module")
def projection(exact):
    return projected(exact, 400, np.random.default_rng(0), EvalCounter(), 1)


def test_the_projection_is_the_nearest_model_of_its_vectors(exact, projection):
    start = projection.model

    def distance(coef):
        basis, both = np.vstack([exact.basis, start.basis]), np.vstack([exact.coef, -coef])
        difference = KernelExpansion(basis, both, np.zeros(1), np.zeros(0), start.kernel, "float64")
        return difference.norm_squared() + thinned.RIDGE * float(np.sum(coef**2))

    best, rng = distance(start.coef), np.random.default_rng(0)
    assert 390 < start.n_basis <= 400
    assert not start.basis[:, 2:].min(axis=1).any()
    assert set(projection.block) == {0, 1}
    for _ in range(5):
        assert distance(start.coef + 0.1 * rng.normal(size=start.coef.shape)) > best


def test_few_vectors_err_little_more_than_the_many(exact, projection):
    problem = problem_of(6000)
    fit = Thinned(projection).solve(problem)
    assert fit.status is Status.CONVERGED
    assert fit.model.n_basis <= 400 < exact.n_basis / 5
    assert error(fit.model) < error(exact) + 0.01
    scores = fit.model.scores(fields(6000)[0])[:, 0]
    loss = np.maximum(0, 1 - problem.examples.labels * scores).sum()
    norm = fit.model.norm_squared() + fit.model.intercept @ fit.model.intercept
    assert fit.objective == pytest.approx(0.5 * norm + 10 * loss, rel=1e-4)
    assert fit.history[-1]["objective_estimate"] == pytest.approx(fit.objective, rel=0.1)


@cut_short
def test_features_in_which_no_row_differs_stay(projection):
    fit = Thinned(projection).solve(problem_of(6000, max_iter=20))
    moved = np.abs(fit.model.basis - projection.model.basis)
    assert moved[:, :2].mean() > 10 * moved[:, 2:].mean()


@cut_short
def test_the_loss_may_rise_on_the_way(projection, monkeypatch):
    monkeypatch.setattr(refine, "DIVERGED", 0.0)
    run = Thinned(projection).start(problem_of(6000))
    run.step()
    assert not any(block.n_restarts for block, _, _ in run.blocks)


@cut_short
def test_the_same_for_any_number_of_threads(projection, monkeypatch):
    monkeypatch.setattr(thinned, "NORM_SHARE", 0.5)
    monkeypatch.setattr(solvers.learned.batch_gradient, "SHARED_WORK", 1)
    one, four = (Thinned(projection).solve(problem_of(6000, max_iter=3, n_jobs=n)).model for n in (1, 4))
    np.testing.assert_array_equal(one.basis, four.basis)
    np.testing.assert_array_equal(one.coef, four.coef)


def test_what_can_be_thinned():
    problem = problem_of(100)
    assert can_thin(problem, 50)
    assert not can_thin(problem, 10_000)
    X, y = fields(100)
    sparse = Problem(as_rows(sp.csr_array(X)), Binary().encode(y), Binary(), RBF(1.0))
    assert not can_thin(sparse, 50)
    assert not can_thin(Problem(as_rows(X), Binary().encode(y), Binary(), Linear()), 50)
    assert not can_thin(Problem(as_rows(X), Regression().encode(1.0 * y), Regression(), RBF(1.0)), 50)


def searched(monkeypatch, least=100, promising=1000.0, **options):
    """A search in which no other size will do."""
    monkeypatch.setattr(compact, "LEAST_THINNED", least)
    monkeypatch.setattr(compact, "PROMISING", promising)
    monkeypatch.setattr(compact, "sizes_for", lambda n_exact: [1, 2])
    monkeypatch.setattr(compact, "slack", lambda *args: 0.02)
    X, y = fields(6000)
    noisy = np.where(np.random.default_rng(1).random(6000) < 0.1, -y, y)
    return SVC(C=10.0, gamma=4.0, solver=Compact(), random_state=0, **options).fit(X, noisy)


def test_where_no_other_size_does_the_exact_svm_is_thinned(monkeypatch):
    clf = searched(monkeypatch)
    names = list(dict.fromkeys(record["stage"] for record in clf.history_))
    k = int(names[-2].split()[0])
    assert names == ["reference", "1 vectors", "2 vectors", f"{k} vectors", "all rows"]
    n_exact = int(clf.history_[-1]["search"].split("(")[1].split()[0])
    assert clf.n_basis_ <= k <= n_exact / 4
    assert f"{k} vectors" in clf.history_[-1]["search"]
    assert "none does" not in clf.history_[-1]["search"]
    assert clf.status_ == "converged"
    assert clf.lower_bound_ <= clf.objective_
    X, y = fields(4000, 2)
    exact = searched(monkeypatch, least=10_000)
    assert exact.history_[-1]["stage"] == "exact"
    assert clf.score(X, y) > exact.score(X, y) - 0.01
    assert clf.lower_bound_ <= exact.objective_ <= clf.objective_


def test_that_of_wide_rows_is_not(monkeypatch):
    monkeypatch.setattr(compact, "WIDE", fields(10)[0].shape[1])
    assert searched(monkeypatch).history_[-1]["stage"] == "exact"


def test_a_projection_that_errs_too_much_is_not_gone_on_from(monkeypatch):
    clf = searched(monkeypatch, promising=-1000.0)
    assert clf.history_[-1]["stage"] == "exact"
    assert "none does" in clf.history_[-1]["search"]
