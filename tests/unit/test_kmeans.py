"""K-means centres: which are distinct, and that the clock is looked at while they are found."""

import numpy as np
import pytest

from slimsvm.bases.kmeans import _centres, _distinct
from slimsvm.core.clock import OutOfTimeError, time_limit


def test_distinct_centres_are_those_of_numpy():
    rng = np.random.default_rng(0)
    centres = rng.integers(-2, 3, size=(400, 4)) * np.array([1.0, 0.5, 1e-300, 1e300])
    centres[::7, 1] = -0.0
    centres = np.concatenate([centres, rng.normal(size=(50, 4)), centres[:20]])
    np.testing.assert_array_equal(_distinct(centres), np.unique(centres, axis=0))


@pytest.mark.parametrize("n", [2000, 6000])
def test_the_clock_is_looked_at_for_every_first_centre(n, monkeypatch):
    """A clock that goes on by a second whenever somebody looks at it."""
    looked = [0]

    def look():
        looked[0] += 1
        return float(looked[0])

    monkeypatch.setattr("time.perf_counter", look)
    X = np.random.default_rng(0).normal(size=(n, 3))
    with time_limit(1e9):
        _centres(X, 60, None, 0)
    assert looked[0] > 60
    with time_limit(looked[0] / 3.0), pytest.raises(OutOfTimeError):
        _centres(X, 60, None, 0)
