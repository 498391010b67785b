"""Small problems for every estimator."""

import numpy as np
import pytest

from slimsvm.estimators import ESTIMATORS

BOTH = pytest.mark.parametrize("name", sorted(ESTIMATORS))


def problem(name="SVC", n=80, n_classes=2, seed=0):
    """(X, y) with something to learn."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if name == "SVR":
        return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)
    score = X[:, :n_classes] if n_classes > 2 else np.stack([X[:, 0] * X[:, 1], 0 * X[:, 0]], axis=1)
    return X, np.argmax(score + 0.2 * rng.normal(size=score.shape), axis=1)


def outputs(estimator, X):
    """Scores where there are several, predictions otherwise."""
    return estimator.decision_function(X) if hasattr(estimator, "decision_function") else estimator.predict(X)
