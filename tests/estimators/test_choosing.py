"""What an estimator chooses by itself: the metric (``gamma="learn"``) and C on a validation part."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from slimsvm import SVC, SVR, Refine
from slimsvm.estimators import choosing
from slimsvm.kernels import RBF, Laplacian


@pytest.fixture(scope="module")
def noisy_moons():
    """Two features that matter and six that do not: (X, y) for training, (X, y) for testing."""
    X, y = make_moons(5000, noise=0.25, random_state=0)
    X = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    return X[:1000], y[:1000], X[1000:], y[1000:]


# ---- gamma="learn"


def test_a_learned_metric_needs_no_search(noisy_moons, tmp_path):
    X, y, X_test, y_test = noisy_moons
    learned = SVC(gamma="learn", max_basis=10, random_state=0).fit(X, y)
    assert isinstance(learned.solver_, Refine)
    assert learned.n_basis_ <= 10
    gamma = np.array(learned.kernel_.gamma)
    assert gamma.shape == (8,)
    assert gamma[:2].min() > 3 * gamma[2:].max()
    best = max(
        SVC(gamma=gamma, solver="refine", max_basis=10, random_state=0).fit(X, y).score(X_test, y_test)
        for gamma in (0.03, 0.1, 0.3, 1.0)
    )
    assert learned.score(X_test, y_test) > best + 0.02
    learned.save(tmp_path / "model.slim")
    again = slimsvm.load(tmp_path / "model.slim")
    assert again.gamma == "learn"
    assert again.kernel_ == learned.kernel_
    np.testing.assert_array_equal(again.decision_function(X_test), learned.decision_function(X_test))


def test_the_start_may_be_given(noisy_moons):
    X, y = noisy_moons[:2]
    solver = Refine(5, rate=1e-9, epochs=1)
    for kernel, start in (("rbf", 1 / (8 * X.var())), (RBF(0.7), 0.7)):
        clf = SVC(kernel=kernel, gamma="learn", solver=solver, random_state=0).fit(X, y)
        np.testing.assert_allclose(clf.kernel_.gamma, start, rtol=1e-5)
    assert solver.learn_metric is False  # the user's object is as it was
    same = SVC(kernel=RBF(0.7), solver=Refine(5, epochs=3, learn_metric=True), random_state=0).fit(X, y)
    learned = SVC(kernel=RBF(0.7), gamma="learn", solver=Refine(5, epochs=3), random_state=0).fit(X, y)
    np.testing.assert_array_equal(learned.decision_function(X), same.decision_function(X))


def test_regression_learns_a_metric_too():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (1500, 4))
    y = np.sin(3 * X[:, 1]) + 0.05 * rng.normal(size=1500)
    reg = SVR(gamma="learn", C=10.0, max_basis=12, random_state=0).fit(X, y)
    gamma = np.array(reg.kernel_.gamma)
    assert gamma[1] > 5 * np.delete(gamma, 1).max()
    assert np.abs(reg.predict(X) - np.sin(3 * X[:, 1])).mean() < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "poly"}, "gamma='learn' needs kernel='rbf', found kernel='poly'"),
        ({"kernel": Laplacian(1.0)}, "gamma='learn' needs kernel='rbf', found kernel=Laplacian"),
        ({"kernel": "precomputed"}, "gamma='learn' needs kernel='rbf', found kernel='precomputed'"),
        ({"solver": "cpsp"}, r"gamma='learn' needs solver='refine' .* found solver=CPSP\(\)"),
        ({"solver": "exact-cuts"}, "gamma='learn' needs solver='refine'"),
    ],
    ids=repr,
)
def test_what_cannot_learn_a_metric_says_so(parameters, message):
    X, y = np.eye(30), np.arange(30) % 2
    with pytest.raises(ValueError, match=message):
        SVC(gamma="learn", **parameters).fit(X, y)


def test_a_metric_of_sparse_rows_is_refused():
    with pytest.raises(ValueError, match="gamma='learn' needs dense rows, found a sparse matrix"):
        SVC(gamma="learn").fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])


# ---- C="validate"


@pytest.mark.parametrize("flip", [0.0, 0.4])
def test_validated_C_follows_the_noise(flip):
    """Many labels turned round ask for a low price, none for a high one; the model is that of this price."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3, (600, 2))
    y = (np.floor(X).sum(axis=1) % 2).astype(int)
    y = np.where(rng.random(600) < flip, 1 - y, y)
    clf = SVC(C="validate", gamma=3.0, random_state=0).fit(X, y)
    assert clf.C_ >= 10 if flip == 0 else clf.C_ <= 1
    np.testing.assert_array_equal(
        clf.decision_function(X), SVC(C=clf.C_, gamma=3.0, random_state=0).fit(X, y).decision_function(X)
    )
    errors = [trial["error"] for trial in clf.validation_]
    assert clf.validation_[int(np.argmin(errors))]["C"] == clf.C_
    assert min(errors) < 0.1 + flip
    assert SVC(gamma=3.0).fit(X, y).validation_ == []


def test_one_call_without_any_search(noisy_moons):
    X, y, X_test, y_test = noisy_moons
    clf = SVC(C="validate", gamma="learn", max_basis=10, random_state=0).fit(X, y)
    assert clf.score(X_test, y_test) > 0.92
    reg = SVR(C="validate", solver="refine", max_basis=5, random_state=0).fit(X[:, :1], np.sin(X[:, 0]))
    assert np.abs(reg.predict(X[:, :1]) - np.sin(X[:, 0])).mean() < 0.1


@pytest.mark.parametrize("labels", [np.repeat([0, 1, 2], [900, 60, 40]), np.linspace(0, 1, 1000)])
def test_parts_hold_the_same_shares(labels, monkeypatch):
    monkeypatch.setattr(choosing, "MAX_TRAINING", 700)
    training, held = choosing._parts(labels, np.random.default_rng(0))
    assert len(training) == 700
    assert len(held) == 200
    assert not set(training) & set(held)
    assert labels[held].mean() == pytest.approx(labels.mean(), abs=0.01)
    assert labels[training].mean() == pytest.approx(labels.mean(), abs=0.03)


def test_validation_that_cannot_be():
    with pytest.raises(ValueError, match="C='validate' needs at least 20 rows, found 4"):
        SVC(C="validate").fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"C='validate' cuts the rows in two .* found kernel='precomputed'"):
        SVC(C="validate", kernel="precomputed").fit(np.eye(30), np.arange(30) % 2)
    with pytest.raises(ValueError, match="C must be a positive number or 'validate', found 'best'"):
        SVC(C="best").fit(np.eye(4), [0, 1, 0, 1])


def test_validation_keeps_to_the_time(noisy_moons):
    X, y = noisy_moons[:2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = SVC(C="validate", max_seconds=2.0, solver=Refine(5, epochs=1_000_000), random_state=0).fit(X, y)
    assert clf.status_ in ("converged", "time limit")
    assert len(clf.validation_) >= 3
