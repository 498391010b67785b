"""Calls that real fits make of the core: arguments for the fuzz to begin from."""

import warnings
from collections import Counter

import numpy as np
import scipy.sparse as sp

from slimsvm.core.border import Function, Prepared, Structure, structure

PER_FUNCTION = 12  # calls of each function that are kept


def fits():
    """Functions that fit and predict something small, each by other loops of the core."""
    from slimsvm import SVC
    from slimsvm.kernels import RBF, Additive, Laplacian, Linear, Polynomial, Sigmoid
    from slimsvm.model import KernelExpansion

    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3))
    sparse = sp.csr_array(X * (rng.random(X.shape) < 0.5))
    y, y3 = (X[:, 0] * X[:, 1] > 0).astype(int), rng.integers(0, 3, len(X))
    for kernel in (RBF(0.5), Laplacian(0.5), Polynomial(3, 0.5, 1.0), Linear(), Sigmoid(0.1, 0.0), Additive(0.5)):
        for rows in (X, X.astype(np.float32), sparse):
            for m, dtype in ((1, "float32"), (3, "float64")):
                model = KernelExpansion(rows[:20], rng.normal(size=(20, m)), np.zeros(m), np.zeros(0), kernel, dtype)
                yield lambda model=model, rows=rows: model.scores(rows)
                yield model.norm_squared
    for rows in (X, sparse):
        for solver, options in SOLVERS.items():
            for labels in (y,) if solver in ("lasvm", "cvm", "bvm") else (y, y3):
                for precision in ("float32", "float64"):
                    estimator = SVC(solver=solver, gamma=0.5, precision=precision, random_state=0, **options)
                    yield lambda e=estimator, rows=rows, labels=labels: e.fit(rows, labels).predict(rows)
    for precision in ("float32", "float64"):
        estimator = SVC(max_basis="auto", gamma=0.5, precision=precision, random_state=0)
        yield lambda e=estimator: e.fit(X, y3).predict(X)


SOLVERS = {"exact": {}, "lasvm": {}, "cvm": {}, "bvm": {}}


def kept(arguments):
    """The same arguments in memory of their own."""
    return {
        name: structure(value.layout.name, kept(value.arguments))
        if isinstance(value, Structure)
        else value.copy()
        if isinstance(value, np.ndarray)
        else value
        for name, value in arguments.items()
    }


def real_calls():
    """Arguments of calls, by the name of the function."""
    found, counts, rng = {}, Counter(), np.random.default_rng(0)
    call, call_prepared = Function.__call__, Prepared.__call__

    def keep(name, arguments):
        # Of all calls each is as likely to be kept as any other.
        counts[name] += 1
        calls, at = found.setdefault(name, []), rng.integers(counts[name])
        if len(calls) < PER_FUNCTION:
            calls.append(kept(arguments))
        elif at < PER_FUNCTION:
            calls[at] = kept(arguments)

    def called(self, *complete, **arguments):
        if not complete:  # otherwise `called_prepared` has kept the arguments
            keep(self.name, arguments)
        return call(self, *complete, **arguments)

    def called_prepared(self, **arguments):
        keep(self.function.name, self.arguments | arguments)
        return call_prepared(self, **arguments)

    Function.__call__, Prepared.__call__ = called, called_prepared
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for fit in fits():
                fit()
    finally:
        Function.__call__, Prepared.__call__ = call, call_prepared
    return found
