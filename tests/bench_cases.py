"""What tests of several benchmarks share."""

from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_array

from benchmarks.shared.trials import Session
from slimsvm.datasets import checkerboard


class Spy(Session):
    """Notes what would have been compared."""

    def compare(self, part, compared, problem):
        return [{"part": part, "methods": [method.name for method in compared], "problem": problem}]


def small_set(name):
    """In place of any benchmark set: 200 rows of a checkerboard, rcv1-ccat sparse and with 64-bit indices."""
    X, y = checkerboard(200, random_state=0)
    if name == "rcv1-ccat":
        X = csr_array(X)
        X = csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    return SimpleNamespace(X_train=X, y_train=y, X_test=X[:50], y_test=y[:50])
