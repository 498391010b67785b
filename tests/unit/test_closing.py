"""The closing descent of a pursuit: sweeps that move all its vectors together."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from slimsvm import CPSP, SVC
from slimsvm.kernels import RBF, Polynomial
from slimsvm.parts.pursuit import ClosingSettings, small_coefficients


@pytest.fixture
def problem():
    return make_classification(150, 6, n_informative=4, flip_y=0.1, random_state=3)


@pytest.mark.parametrize(
    ("kernel", "share"), [(RBF(0.1), 0.98), (Polynomial(2, 0.2, 1.0), 1 - 1e-6)], ids=["rbf", "poly"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sweeps_move_the_vectors_to_a_lower_objective(kernel, share, n_classes):
    X, y = make_classification(600, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=3)
    preimage = "fixed-point" if isinstance(kernel, RBF) else "gradient"
    options = {"C": 2.0, "kernel": kernel, "random_state": 0}
    paper = SVC(solver=CPSP(8, preimage, sweeps=0, vectors_per_cut=4), **options).fit(X, y)
    moved = SVC(solver=CPSP(8, preimage, sweeps=60, vectors_per_cut=4), **options).fit(X, y)
    assert moved.n_basis_ == paper.n_basis_ == 8
    assert moved.objective_ < share * paper.objective_
    # What is reported is that of the model, and the pursuit before the sweeps is the same, up to its tolerance.
    scores = moved.decision_function(X)
    if n_classes == 2:
        hinge = np.maximum(0, 1 - np.where(y == 1, 1, -1) * scores).sum()
        norm = moved.model_.norm_squared() + moved.intercept_ @ moved.intercept_
        assert moved.objective_ == pytest.approx(0.5 * norm + 2.0 * hinge, rel=1e-6)
    assert moved.history_[-1]["bound_in_basis"] <= moved.objective_ * (1 + 1e-12)
    before = [record["objective"] for record in moved.history_ if "objective_estimate" in record]
    assert before == [pytest.approx(paper.objective_, rel=3e-3)] * 60
    assert before[0] > paper.objective_


def test_sweeps_that_raise_the_objective_are_thrown_away(problem, settings_of_estimators):
    """One sweep from coefficients made far too small: the model stays as the pursuit left it."""
    X, y = problem
    paper = SVC(C=2.0, gamma=0.1, solver=CPSP(40, sweeps=0, vectors_per_cut=4), random_state=0).fit(X, y)
    settings_of_estimators(ClosingSettings(shrink=1e9))
    wild = SVC(C=2.0, gamma=0.1, solver=CPSP(40, sweeps=1, vectors_per_cut=4), random_state=0).fit(X, y)
    assert wild.status_ == "converged"
    assert np.array_equal(wild.basis_vectors_, paper.basis_vectors_)
    assert wild.objective_ == pytest.approx(paper.objective_, rel=1e-9)
    assert wild.history_[-1]["bound_in_basis"] == pytest.approx(paper.history_[-1]["bound_in_basis"], rel=1e-9)


def test_small_coefficients_are_nearly_the_same_function(problem):
    """The start of the closing descent: a fraction of the coefficients, scores that differ little."""
    X, y = problem
    model = SVC(C=100.0, gamma=0.1, solver=CPSP(60, sweeps=0), random_state=0).fit(X, y).model_
    gram = RBF(0.1).block(model.basis, model.basis)
    small = small_coefficients(gram, model.coef, 0.1)
    np.testing.assert_allclose(small, np.linalg.solve(gram + 0.1 * np.eye(60), gram @ model.coef), rtol=1e-6)
    K = RBF(0.1).block(X, model.basis)
    assert np.abs(small).max() < 0.5 * np.abs(model.coef).max()
    assert np.corrcoef((K @ small).ravel(), (K @ model.coef).ravel())[0, 1] > 0.9


def test_who_gets_sweeps(problem, settings_of_estimators):
    X, y = problem
    with pytest.raises(ValueError, match="sweeps must be an integer >= 0 or 'auto', found -1"):
        SVC(solver=CPSP(5, sweeps=-1)).fit(X, y)
    with pytest.raises(ValueError, match="sweeps must be an integer >= 0 or 'auto', found 'many'"):
        SVC(solver=CPSP(5, sweeps="many")).fit(X, y)
    with pytest.raises(ValueError, match="sweeps=3 moves the vectors: it cannot go with preimage='training-rows'"):
        SVC(solver=CPSP(5, "training-rows", sweeps=3)).fit(X, y)
    with pytest.raises(ValueError, match="sweeps=3 needs method='newton', found cutting planes"):
        SVC(solver=CPSP(5, method="cutting-planes", sweeps=3)).fit(X, y)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ClosingSettings.rows, 2)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, -1)

    def swept(X, y, *args):
        records = SVC(gamma=1.0, solver=CPSP(*args), random_state=0).fit(X, y).history_
        return sum("objective_estimate" in record for record in records)

    assert swept(X, y, 2) == ClosingSettings.sweeps
    settings_of_estimators(ClosingSettings(shrink=10.0))  # a start that loses nearly everything
    assert swept(X, y, 2) == 0
    settings_of_estimators(ClosingSettings(shrink=2.0))  # two far vectors lose four ninths
    assert swept(X, y, 2) == ClosingSettings.sweeps
    settings_of_estimators(ClosingSettings(shrink=2.0, few_vectors=1))
    assert swept(X, y, 2) == 0
    settings_of_estimators()
    assert swept(X, y, 2, "training-rows") == 0
    assert swept(X[1:], y[1:], 2) == 0
    assert swept(sp.csr_array(X), y, 2) == 0
