"""Vectors that are sought, or learned, along a few principal directions of the rows."""

import numpy as np
import pytest

from slimsvm import CPSP, SVC, Refine
from slimsvm.bases.preimage import FixedPoint, GradientAscent
from slimsvm.kernels import RBF, KernelRows, Linear
from slimsvm.parts.principal_directions import Search, search_for
from slimsvm.parts.problem import Problem
from slimsvm.rows import as_rows
from slimsvm.tasks import Binary

ANY = np.inf


def images(n, d=200, rank=8, noise=0.05):
    """Rows near a few directions, of two classes."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, rank))
    X = z @ rng.standard_normal((rank, d)) / np.sqrt(d) + noise * rng.standard_normal((n, d)) + 3.0
    return X.astype(np.float32), np.where(np.sum(z[:, :3] ** 2, axis=1) > 2.4, 1, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_kernel_values_along_directions_are_those_of_the_vectors_in_input_space(dtype, order):
    X, rng = np.asarray(images(1100, 30)[0], order=order), np.random.default_rng(1)
    kernel = RBF(rng.uniform(0.1, 1.0, 30))
    rows = KernelRows(kernel, X, dtype=dtype, n_jobs=1)
    directions = Search(5, 0.0, ANY, ANY).find(rows, rng)
    seen = directions.beside(rows)
    vectors = np.column_stack([0.3 * rng.standard_normal((7, 5)), np.zeros(7)])
    np.testing.assert_allclose(directions.V.T @ directions.V, np.eye(5), atol=1e-5)
    values, before = seen.block(seen.points_of(vectors)), rows.counter.n
    expected = kernel.block(X.astype(float), directions.lifted(vectors))
    np.testing.assert_allclose(values, expected, atol=1e-6 if dtype == np.float32 else 1e-12)
    assert rows.counter is seen.counter
    assert before == len(X) * 7
    kept = directions.seen(rows)
    given = {"dtype": dtype, "n_jobs": 4, "centre": rows.centre}
    for limit in (1 << 30, 0):
        other = KernelRows(kernel, X, memory_limit=limit, **given)
        np.testing.assert_array_equal(directions.seen(other, block_rows=300), kept)


def test_directions_are_principal_ones():
    X, _ = images(3000, rank=6, noise=0.01)
    rows = KernelRows(RBF(0.5), X, dtype=np.float32, n_jobs=1)
    directions = Search(6, 0.85, ANY, ANY).find(rows, np.random.default_rng(0))
    centred = X - X.mean(axis=0)
    best = np.linalg.svd(centred, full_matrices=False)[2][:6]
    assert np.sum((centred @ directions.V) ** 2) > 0.99 * np.sum((centred @ best.T) ** 2)


def test_no_directions_where_they_hold_too_little_or_take_too_much():
    X = np.random.default_rng(0).standard_normal((1500, 200)).astype(np.float32)
    rows, rng = KernelRows(RBF(0.5), X, dtype=np.float32, n_jobs=1), np.random.default_rng(0)
    assert Search(20, 0.85, ANY, ANY).find(rows, rng) is None
    assert Search(20, 0.0, ANY, ANY).find(rows, rng) is not None
    assert Search(20, 0.0, ANY, 8 * 1500 * 21 - 1).find(rows, rng) is None
    left = 0.5 * 180 * (1 - 0.3)  # times γ; 20 of 200 alike directions hold less than three tenths of the variance
    assert Search(20, 0.0, left, ANY).find(rows, rng) is None
    alike = KernelRows(RBF(0.5), np.ones((1500, 200), np.float32), dtype=np.float32, n_jobs=1)
    assert Search(20, 0.85, ANY, ANY).find(alike, rng) is None


def problem_of(n, d, kernel=None):
    X, y = images(n, d)
    return Problem(as_rows(X), Binary().encode(y), Binary(), kernel or RBF(0.5), memory_limit=1 << 30)


def test_when_they_are_looked_for_by_default():
    strategy = FixedPoint()
    assert search_for("auto", 100, problem_of(2001, 240), strategy) == Search(40, 0.8, 0.5, (1 << 30) / 4)
    assert [search_for("auto", k, problem_of(2001, 800), strategy).n for k in (10, 100, 2000)] == [64, 70, 133]
    for problem in (problem_of(2001, 191), problem_of(2000, 240), problem_of(2001, 240, Linear())):
        assert search_for("auto", 9, problem, strategy) is None
    assert search_for("auto", 9, problem_of(2001, 240), GradientAscent()) is None
    assert search_for(0, 9, problem_of(2001, 240), strategy) is None
    assert search_for(7, 9, problem_of(30, 9), strategy) == Search(7, 0.0, ANY, ANY)


def fitted(n_jobs=1, directions="auto", n=2300, **settings):
    X, y = images(n)
    solver = CPSP(24, directions=directions, tol_relative=1e-3)
    return SVC(solver=solver, C=10, gamma=0.5, n_jobs=n_jobs, random_state=0, **settings).fit(X, y), X, y


def test_the_model_is_one_of_vectors_in_input_space():
    clf, X, y = fitted(intercept="none")
    everywhere = fitted(directions=0, intercept="none")[0]
    model, C = clf.model_, 10.0
    assert model.basis.shape == (24, 200)
    assert np.linalg.matrix_rank(model.basis - model.basis.mean(axis=0)) <= 23
    margins = y * model.scores(X)[:, 0]
    gram = RBF(0.5).block(model.basis, model.basis)
    norm = np.sum(model.coef * (gram @ model.coef))
    assert clf.objective_ == pytest.approx(0.5 * norm + C * np.maximum(0, 1 - margins).sum(), rel=1e-4)
    assert clf.counters_["bound_in_basis"] <= clf.objective_ <= 1.002 * clf.counters_["bound_in_basis"]
    assert clf.objective_ < 1.3 * everywhere.objective_
    assert clf.score(X, y) > everywhere.score(X, y) - 0.04


def test_a_gamma_that_tells_every_row_from_every_other():
    X, y = images(2300)
    clf = SVC(solver=CPSP(24), C=10, gamma=1e6, n_jobs=1, random_state=0).fit(X, y)
    assert clf.n_basis_ == 24
    assert np.mean(clf.predict(X) == y) > 0.5


def test_the_same_bits_for_any_number_of_threads():
    one, four = fitted(1)[0], fitted(4)[0]
    np.testing.assert_array_equal(one.model_.basis, four.model_.basis)
    np.testing.assert_array_equal(one.model_.coef, four.model_.coef)


def test_a_fit_cut_short_while_the_basis_grows_is_a_model_and_goes_on():
    with pytest.warns(match="max_iter"):
        clf, X, y = fitted(max_iter=2)
    assert 0 < clf.n_basis_ < 24
    assert clf.model_.basis.shape[1] == 200
    margins = y * clf.decision_function(X)
    record = clf.history_[-1]
    assert record["loss"] == pytest.approx(np.mean(np.maximum(0, 1 - margins)), rel=1e-3)
    before = clf.objective_
    clf.set_params(warm_start=True, max_iter=-1).fit(X, y)
    assert clf.n_basis_ == 24
    assert clf.objective_ < before


def test_a_pursuit_that_finds_no_vector():
    X, y = images(2300)
    clf = SVC(solver=CPSP(5), C=1e-10, gamma=1e-9, random_state=0).fit(X, y)
    assert clf.model_.basis.shape[1] == 200
    assert np.isfinite(clf.decision_function(X)).all()
    X[:] = 1.0
    clf.fit(X, np.arange(2300) % 2)
    assert clf.n_basis_ <= 1
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize(
    ("directions", "settings", "message"),
    [
        (-1, {}, "from 0 to 6"),
        (7, {}, "from 0 to 6"),
        (True, {}, "found True"),
        (2.0, {}, "found 2.0"),
        ("all", {}, "found 'all'"),
        (3, {"preimage": "gradient"}, "GradientAscent"),
        (3, {"method": "cutting-planes"}, "cutting planes"),
    ],
)
def test_what_cannot_be_asked_for(directions, settings, message):
    X, y = images(40, 6)
    with pytest.raises(ValueError, match=message):
        SVC(solver=CPSP(5, directions=directions, **settings), gamma=0.5).fit(X, y)


# -- learned vectors --------------------------------------------------------------------------------------------------


def learned(n_jobs=1, n=2300, fit=True, **parameters):
    X, y = images(n)
    solver = Refine(**{"max_basis": 50, "epochs": 30} | parameters)
    clf = SVC(solver=solver, C=10, gamma=0.5, n_jobs=n_jobs, random_state=0, intercept="none")
    return (clf.fit(X, y) if fit else clf), X, y


def test_learned_vectors_lie_along_the_directions():
    clf, X, y = learned()
    everywhere = learned(directions=0)[0]
    ranks = [np.linalg.matrix_rank(fit.model_.basis - fit.model_.basis.mean(axis=0)) for fit in (clf, everywhere)]
    assert ranks == [33, 49]  # a sixth of 200 features; 50 vectors
    model = clf.model_
    gram = RBF(0.5).block(model.basis, model.basis)
    norm = np.sum(model.coef * (gram @ model.coef))
    margins = y * model.scores(X)[:, 0]
    assert clf.objective_ == pytest.approx(0.5 * norm + 10 * np.maximum(0, 1 - margins).sum(), rel=1e-4)
    assert clf.counters_["bound_in_basis"] <= clf.objective_ <= 1.002 * clf.counters_["bound_in_basis"]
    assert clf.score(X, y) > everywhere.score(X, y) - 0.03


def test_learned_vectors_have_the_same_bits_for_any_number_of_threads():
    one, four = (learned(n_jobs, epochs=5)[0].model_ for n_jobs in (1, 4))
    np.testing.assert_array_equal(one.basis, four.basis)
    np.testing.assert_array_equal(one.coef, four.coef)


def test_vectors_that_may_lie_elsewhere_are_learned_everywhere():
    clf, X, y = learned(initial=images(2300)[0][:50], epochs=1)
    assert np.linalg.matrix_rank(clf.model_.basis - clf.model_.basis.mean(axis=0)) == 49
    clf.set_params(warm_start=True).fit(X, y)
    assert np.linalg.matrix_rank(clf.model_.basis - clf.model_.basis.mean(axis=0)) == 49
    asked = learned(initial=images(2300)[0][:50], epochs=1, directions=12)[0]
    assert np.linalg.matrix_rank(asked.model_.basis - asked.model_.basis.mean(axis=0)) == 12


def test_noise_is_as_strong_along_directions_as_in_input_space():
    X, rng = images(1100, 30)[0], np.random.default_rng(1)
    rows = KernelRows(RBF(rng.uniform(0.1, 1.0, 30)), X, dtype=np.float64, n_jobs=1)
    directions = Search(5, 0.0, ANY, ANY).find(rows, rng)
    deviations = rng.uniform(0.1, 2.0, 30)
    drawn = rng.standard_normal((200_000, 30)) * deviations
    seen = (drawn * directions.scale) @ directions.V
    np.testing.assert_allclose(directions.along(deviations), np.append(seen.std(axis=0), 0.0), rtol=0.01)
    vectors = directions.of_vectors(X[:4])
    np.testing.assert_allclose(vectors[:, :-1], directions.seen(rows)[:4, :-1], atol=1e-6)
    np.testing.assert_allclose(directions.of_vectors(directions.lifted(vectors)), vectors, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "kernel", "message"),
    [
        ({"directions": 201}, "rbf", "from 0 to 200"),
        ({"directions": 3}, "poly", "needs the RBF kernel, dense rows, found Polynomial, dense rows; use directions=0"),
        ({"directions": 3, "learn_metric": True}, "rbf", "learn_metric"),
    ],
)
def test_what_learned_vectors_cannot_be_asked_for(parameters, kernel, message):
    clf, X, y = learned(fit=False, **parameters)
    with pytest.raises(ValueError, match=message):
        clf.set_params(kernel=kernel).fit(X[:100], y[:100])
