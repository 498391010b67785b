"""The generators against their definitions and the figures on record."""

from math import erf, sqrt

import numpy as np
import pytest
from sklearn.svm import SVC

from slimsvm.datasets import checkerboard, two_gaussians, waveform


def test_checkerboard_gives_the_figures_on_record():
    """Of SVC(C=1, gamma=10); means over seeds 6.3, 4.1 %, which the board's side as unit of the noise misses by 5."""
    X_test, y_test = checkerboard(20_000, random_state=1)
    for n, error in ((1000, 0.063), (3000, 0.041)):
        X, y = checkerboard(n, random_state=0)
        assert 1 - SVC(C=1, gamma=10).fit(X, y).score(X_test, y_test) == pytest.approx(error, abs=0.005)


@pytest.mark.full
def test_checkerboard_gives_the_support_vectors_on_record():
    X, y = checkerboard(100_000, random_state=0)
    model = SVC(C=1, gamma=10, cache_size=1000).fit(X, y)
    assert model.n_support_.sum() == pytest.approx(9156, abs=5)
    assert 1 - model.score(*checkerboard(20_000, random_state=1)) == pytest.approx(0.0232, abs=0.0003)


def test_checkerboard_squares_noise_and_flips():
    X, y = checkerboard(20_000, side=3, noise=0, random_state=0)
    assert (X >= 0).all()
    assert (X <= 3).all()
    np.testing.assert_array_equal(y, np.where(np.floor(X).sum(axis=1) % 2 == 0, 1, -1))
    moved, y_moved = checkerboard(20_000, side=3, noise=0.1, random_state=0)
    np.testing.assert_allclose((moved - X).std(axis=0), 0.1, rtol=0.02)
    np.testing.assert_array_equal(y_moved, y)
    flipped_X, flipped = checkerboard(20_000, side=3, noise=0, flip=0.25, random_state=0)
    np.testing.assert_array_equal(flipped_X, X)
    assert (flipped != y).mean() == pytest.approx(0.25, abs=0.01)


def test_squares_that_overlap():
    """Neighbours share a strip: half its points are of the wrong colour, 1.5 strips a square, less their corners."""
    X, y = checkerboard(200_000, noise=0, overlap=0.1, random_state=0)
    assert X.min() == pytest.approx(0.0, abs=0.01)
    assert X.max() == pytest.approx(4.1, abs=0.01)
    squares = np.floor(X - 0.05).clip(0, 3)
    wrong = np.where(squares.sum(axis=1) % 2 == 0, 1, -1) != y
    share = 0.75 * 0.1 / 1.1  # of the points are beyond the middle of a strip, along one axis
    assert wrong.mean() == pytest.approx(2 * share * (1 - share), abs=0.002)
    one_axis = np.abs(X[:, 0] - 1.05) < 0.05
    assert y[one_axis & (X[:, 1] > 0.2) & (X[:, 1] < 0.9)].mean() == pytest.approx(0.0, abs=0.05)


def test_waveform():
    X, y = waveform(30_000, random_state=0)
    np.testing.assert_allclose(np.bincount(y) / 30_000, 1 / 3, atol=0.01)
    point = np.arange(1, 22)
    triangle = {peak: np.maximum(6 - np.abs(point - peak), 0) for peak in (7, 11, 15)}
    for label, peaks in enumerate(((7, 15), (7, 11), (15, 11))):
        mean = (triangle[peaks[0]] + triangle[peaks[1]]) / 2
        np.testing.assert_allclose(X[y == label].mean(axis=0), mean, atol=0.06)
        np.testing.assert_allclose(X[y == label][:, [0, 20]].var(axis=0), 1, atol=0.05)
    X_two, y_two = waveform(30_000, n_classes=2, random_state=0)
    np.testing.assert_array_equal(X_two, X)
    np.testing.assert_array_equal(y_two, np.where(y == 0, 1, -1))


@pytest.mark.parametrize(("n_features", "distance"), [(1, 2.0), (10, 3.0)])
def test_two_gaussians(n_features, distance):
    X, y = two_gaussians(50_000, n_features, distance, random_state=0)
    gap = X[y == 1].mean(axis=0) - X[y == -1].mean(axis=0)
    assert np.linalg.norm(gap) == pytest.approx(distance, abs=0.03)
    error = 0.5 * (1 - erf(distance / 2 / sqrt(2)))
    assert ((X.sum(axis=1) > 0) != (y > 0)).mean() == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize("generate", [checkerboard, waveform, two_gaussians])
def test_generators_are_seeded(generate):
    X, y = generate(50, random_state=3)
    again, y_again = generate(50, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, y_again)
    assert (generate(50, random_state=4)[0] != X).any()
    assert (X.dtype, y.dtype) == (np.float32, np.int64)


@pytest.mark.parametrize(
    ("generate", "options", "sentence"),
    [
        (checkerboard, {"n": 0}, "n must be at least 1, found 0"),
        (checkerboard, {"n": 1, "side": 0}, "side must be at least 1, found 0"),
        (checkerboard, {"n": 1, "noise": -1}, "noise must be at least 0, found -1"),
        (checkerboard, {"n": 1, "overlap": -1}, "overlap must be at least 0, found -1"),
        (checkerboard, {"n": 1, "flip": 1.5}, "flip must be in [0, 1], found 1.5"),
        (waveform, {"n": 0}, "n must be at least 1, found 0"),
        (waveform, {"n": 1, "n_classes": 4}, "n_classes must be 2 or 3, found 4"),
        (two_gaussians, {"n": 0}, "n must be at least 1, found 0"),
        (two_gaussians, {"n": 1, "n_features": 0}, "n_features must be at least 1, found 0"),
        (two_gaussians, {"n": 1, "distance": float("nan")}, "distance must be at least 0, found nan"),
    ],
)
def test_generators_check_their_parameters(generate, options, sentence):
    with pytest.raises(ValueError) as caught:
        generate(**options, random_state=0)
    assert str(caught.value) == sentence
