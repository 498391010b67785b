"""Fit another package's SVM and time it: a program of its own, run by an interpreter that has that package.

    python other_packages.py METHOD C GAMMA THREADS FOLDER

reads FOLDER/train.npz and FOLDER/test.npz, and writes FOLDER/found.npz. It needs NumPy, SciPy and the package alone:
slimsvm need not be there. It ends with status ABSENT, and the reason as its output, if the package cannot be imported.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

Array = np.ndarray

TOL, CACHE_MEGABYTES = 1e-3, 1000
PREDICTIONS = 2  # of which the faster counts
WARM_UP_ROWS = 2500  # more than 2,000: slimsvm's float32 code, which is another than that for few rows, is loaded too
ABSENT = 3


def _sklearn(C: float, gamma: float, n_threads: int) -> Any:
    from sklearn.svm import SVC

    return SVC(C=C, gamma=gamma, tol=TOL, cache_size=CACHE_MEGABYTES)


def _intelex(C: float, gamma: float, n_threads: int) -> Any:
    import daal4py
    from sklearnex.svm import SVC

    daal4py.daalinit(n_threads)
    return SVC(C=C, gamma=gamma, tol=TOL, cache_size=CACHE_MEGABYTES)


def _thundersvm(C: float, gamma: float, n_threads: int) -> Any:
    from thundersvm import SVC

    return SVC(C=C, gamma=gamma, tol=TOL, n_jobs=n_threads, max_mem_size=CACHE_MEGABYTES)


class LibSVM:
    """LIBSVM's own Python interface, as far as it is needed here."""

    def __init__(self, C: float, gamma: float, n_threads: int):
        from libsvm import svmutil

        self.util = svmutil
        self.options = f"-t 2 -c {C!r} -g {gamma!r} -e {TOL!r} -m {CACHE_MEGABYTES} -q"

    def fit(self, X: Any, y: Array) -> LibSVM:
        """Train."""
        self.model = self.util.svm_train(np.asarray(y, float), self._rows(X), self.options)
        self.support_ = np.asarray(self.model.get_sv_indices()) - 1
        self.dual_coef_ = np.asarray(self.model.get_sv_coef()).T
        return self

    def predict(self, X: Any) -> Array:
        """Labels."""
        return np.asarray(self.util.svm_predict(np.zeros(X.shape[0]), self._rows(X), self.model, "-q")[0])

    @staticmethod
    def _rows(X: Any) -> Any:
        return sp.csr_matrix(X) if hasattr(X, "indptr") else X  # it knows no sparse arrays


PEERS: dict[str, Callable[[float, float, int], Any]] = {
    "scikit-learn": _sklearn,
    "libsvm-official": LibSVM,
    "scikit-learn-intelex": _intelex,
    "thundersvm": _thundersvm,
}


def measure(make: Callable[[], Any], X: Any, y: Array, X_test: Any) -> dict[str, Any]:
    """One fit and its predictions, after one of a few rows: what happens once per process is not counted."""
    head = np.sort(np.random.default_rng(0).choice(len(y), min(len(y), WARM_UP_ROWS), replace=False))
    make().fit(narrow(X[head]), y[head]).predict(X_test[:10])
    begun = time.perf_counter()
    clf = make().fit(X, y)
    seconds, predict_seconds = time.perf_counter() - begun, []
    for _ in range(PREDICTIONS):
        begun = time.perf_counter()
        predicted = clf.predict(X_test)
        predict_seconds.append(time.perf_counter() - begun)
    coef = clf.dual_coef_.toarray() if hasattr(clf.dual_coef_, "toarray") else clf.dual_coef_
    return {
        "seconds": seconds,
        "predict_seconds": min(predict_seconds),
        "coef": np.ravel(coef),
        "support": np.asarray(clf.support_),
        "predicted": np.asarray(predicted),
    }


def narrow(X: Any) -> Any:
    """Sparse rows with 32-bit indices, as LIBSVM's interfaces take them."""
    if not hasattr(X, "indptr"):
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)


def write(path: Path, X: Any, y: Array) -> None:
    """Put rows and labels where `read` finds them."""
    if hasattr(X, "indptr"):
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape), y=y)
    else:
        np.savez(path, X=X, y=y)


def read(path: Path) -> tuple[Any, Array]:
    """Rows and labels."""
    with np.load(path) as file:
        if "X" in file:
            return file["X"], file["y"]
        parts = file["data"], file["indices"], file["indptr"]
        return sp.csr_array(parts, shape=tuple(file["shape"])), file["y"]


def main(arguments: list[str]) -> int:
    """Measure; see the module's text."""
    method, C, gamma, n_threads, folder = arguments
    settings = float(C), float(gamma), int(n_threads)
    try:
        PEERS[method](*settings)
    except ImportError as error:
        print(error)
        return ABSENT
    (X, y), (X_test, _) = (read(Path(folder) / name) for name in ("train.npz", "test.npz"))
    np.savez(Path(folder) / "found.npz", **measure(lambda: PEERS[method](*settings), X, y, X_test))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
