"""Data and estimators for the tests of cross-training."""

from slimsvm import CrossTrainedSVC
from slimsvm.datasets import checkerboard

# The paper's algorithm at a given C, without thresholds.
PLAIN = {"C": 1.0, "first_C": 1.0, "validation_size": 0, "gamma": 0.3, "variances": 1.0, "max_basis": None}


def noisy(n=600, seed=0):
    """A checkerboard of four squares with a tenth of the labels turned round."""
    return checkerboard(n, side=2, flip=0.1, random_state=seed)


def fitted(X, y, **parameters):
    """On one thread, repeatable."""
    return CrossTrainedSVC(random_state=0, n_jobs=1, **parameters).fit(X, y)
