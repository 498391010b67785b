"""Distances from spans, and log odds of least log loss, in compiled code: by their definitions, in NumPy and SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize

from slimsvm import core

SIZES = [(2, 5), (8, 3), (13, 17), (30, 0), (41, 9), (75, 38)]  # rows of F, and others
RIDGE = 1e-10


def squares(K, in_span, softness, has_border):
    """S² of some rows, with their kernel matrix, by inverses: a border is one more row of ones."""
    m = np.count_nonzero(in_span)
    own = K[np.ix_(in_span, in_span)]
    centred = own - own.mean(axis=0) - own.mean(axis=1)[:, None] + own.mean() if has_border else own
    A, across = own + (softness + RIDGE * centred.diagonal().max()) * np.eye(m), K[in_span]
    if has_border:
        A = np.block([[A, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
        across = np.vstack([across, np.ones(len(K))])
    inverse = np.linalg.inv(A)
    found = K.diagonal() - np.einsum("ij,ij->j", across, inverse @ across)
    found[in_span] = 1.0 / inverse.diagonal()[:m] - softness
    return np.maximum(found, 0.0)


@pytest.fixture
def sets():
    """Sets of rows of one kernel matrix, in the arguments of the core."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    rows = [np.sort(rng.choice(120, m + n, replace=False)) for m, n in SIZES]
    return {
        "K": np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2)),
        "starts": np.concatenate([[0], np.cumsum([len(part) for part in rows])]),
        "rows": np.concatenate(rows),
        "is_in_span": np.concatenate([rng.permutation(m + n) < m for m, n in SIZES]),
    }


def distances(K, starts, rows, is_in_span, softness, **options):
    """The core's, and whether each set has any."""
    found, is_solved = np.full(len(rows), np.nan), np.zeros(len(starts) - 1, bool)
    core.span_distances(
        K=K, starts=starts, kernel_rows=rows, places=rows, is_in_span=is_in_span,
        softness=np.full(len(is_solved), softness), diagonal=K.diagonal()[rows] + options["offset"],
        squares=found, is_solved=is_solved, **options,
    )  # fmt: skip
    return found, is_solved


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("softness", [0.0, 0.3])
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_distances_are_those_of_inverses(sets, balanced, softness, offset):
    found, is_solved = distances(**sets, softness=softness, offset=offset, balanced=balanced)
    assert is_solved.all()
    for first, last in pairwise(sets["starts"]):
        part = slice(first, last)
        rows, in_span = sets["rows"][part], sets["is_in_span"][part]
        expected = squares(sets["K"][np.ix_(rows, rows)] + offset, in_span, softness, balanced)
        np.testing.assert_allclose(found[part], expected, rtol=1e-6, atol=1e-9)


def test_a_set_is_what_it_is_alone_and_far_from_0(sets):
    together, _ = distances(**sets, softness=0.0, offset=0.0, balanced=True)
    part = slice(sets["starts"][2], sets["starts"][3])
    alone, _ = distances(
        sets["K"], np.array([0, sum(SIZES[2])]), sets["rows"][part], sets["is_in_span"][part], 0.0, offset=0.0,
        balanced=True,
    )  # fmt: skip
    np.testing.assert_array_equal(alone, together[part])
    far, _ = distances(sets["K"] + 1e6, *(sets[name] for name in ("starts", "rows", "is_in_span")), 0.0, offset=0.0,
                       balanced=True)  # fmt: skip
    np.testing.assert_allclose(far, together, rtol=0, atol=1e-4)


def test_copies_have_no_distance_and_no_inner_product_is_said(sets):
    K, rows = np.ones((3, 3)), np.arange(3)
    found, is_solved = distances(K, np.array([0, 3]), rows, np.array([True, True, False]), 0.0, offset=0.0,
                                 balanced=False)  # fmt: skip
    assert is_solved.all()
    np.testing.assert_allclose(found, 0.0, atol=1e-9)
    K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    starts = np.array([0, 2, 3, 3])
    is_in_span = np.array([True, True, True])
    _, is_solved = distances(K, starts, rows, is_in_span, 0.0, offset=0.0, balanced=False)
    assert is_solved.tolist() == [False, True, False]


# -- log odds ----


def objective(theta, terms, targets, weights, centre, pulls):
    z = theta @ terms
    return float(weights @ (np.logaddexp(0.0, z) - targets * z) + 0.5 * pulls @ (theta - centre) ** 2)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("n_bounded", [0, 1, 3])
def test_log_odds_are_the_optimum_of_each_column(d, n_bounded):
    rng = np.random.default_rng(d)
    starts = np.array([0, 60, 60, 73, 200])
    terms, weights = rng.normal(size=(d, 200)) * 2.0, rng.exponential(size=200)
    targets = (rng.random(200) < 1.0 / (1.0 + np.exp(-1.5 * terms[0] + terms[-1]))).astype(float)
    centre, pulls, found = rng.random((4, d)), np.full(d, 0.1), np.empty((4, d))
    core.fit_log_odds(terms=terms, targets=targets, weights=weights, starts=starts, centre=centre, pulls=pulls,
                      n_bounded=n_bounded, theta=found)  # fmt: skip
    bounds = [(0.0 if j < n_bounded else None, None) for j in range(d)]
    for column, (first, last) in enumerate(pairwise(starts)):
        own = slice(first, last)
        args = terms[:, own], targets[own], weights[own], centre[column], pulls
        best = minimize(objective, centre[column], args, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15})
        assert objective(found[column], *args) <= best.fun + 1e-8 * max(1.0, abs(best.fun))
        assert (found[column, :n_bounded] >= 0.0).all()
    np.testing.assert_array_equal(found[1], centre[1])  # no rows


def test_log_odds_of_huge_terms_are_finite():
    terms = np.array([[1e300, -1e300, 5.0], [1.0, 1.0, 1.0]])
    found = np.empty((1, 2))
    core.fit_log_odds(
        terms=terms, targets=np.array([1.0, 0.0, 0.5]), weights=np.ones(3), starts=np.array([0, 3]), n_bounded=1,
        centre=np.array([[1.0, 0.0]]), pulls=np.array([1e-8, 1e-8]), theta=found,
    )  # fmt: skip
    assert np.isfinite(found).all()


def test_more_terms_than_there_is_code_for_are_refused():
    with pytest.raises(ValueError, match="argument"):
        core.fit_log_odds(terms=np.ones((5, 3)), targets=np.ones(3), weights=np.ones(3), starts=np.array([0, 3]),
                          centre=np.ones((1, 5)), pulls=np.ones(5), n_bounded=0, theta=np.empty((1, 5)))  # fmt: skip
