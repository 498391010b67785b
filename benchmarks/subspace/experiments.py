"""The experiments of Joachims and Yu, "Sparse Kernel SVMs via Cutting-Plane Training" (2009), section 5, and ours.

Accuracy, objective and time against the number of basis vectors (``sizes``), and time against the number of rows at a
fixed number of vectors (``growth``). CCAT has the 27,613 stories of RCV1 that are at hand, in a split of our own; the
OCR sets are MNIST. No sized method has an intercept, as in the paper; the exact SVM has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.shared import methods
from benchmarks.shared.trials import Method, Problem, Session, measure
from benchmarks.subspace import sized_methods
from benchmarks.subspace.sized_methods import SIZED, suits
from benchmarks.subspace.tables import TARGET
from slimsvm.datasets import DataError, Dataset, load
from slimsvm.estimators._shared.automatic import scale_gamma
from slimsvm.rows import is_sparse

Records = list[dict[str, Any]]

# The loader's name, C and γ of each set where they are not chosen on a validation part.
SETTINGS = {
    "adult": ("adult", 32.0, 2.0**-7),
    "CCAT": ("rcv1-ccat", 10.0, 1.0),
    "OCR0": ("mnist-0", 10.0, 0.02),
    "OCR*": ("mnist-04", 10.0, 0.02),
    "ijcnn1": ("ijcnn1", 32.0, 2.0),
    "cod-rna": ("cod-rna", 32.0, 2.0**-3),
    "covtype": ("covtype", 10.0, 8.0),
}
# Choosing C and γ: exact SVMs of so many rows, judged on as many others; γ in multiples of 1 / (d · variance).
CHOICE_ROWS = 4000
CHOICE_SECONDS = 30.0
C_GRID, GAMMA_GRID = (0.1, 1.0, 10.0, 100.0), (0.25, 1.0, 4.0, 16.0)
# Larger sizes take C and γ of this one. They run only where no smaller size came near the exact SVM or met its limit.
LARGEST_USUAL = 1000


@dataclass(frozen=True)
class Scope:
    """How much of the experiments to run.

    Parameters
    ----------
    sets, methods : tuples of str
        Of `SETTINGS`, of `sized_methods.SIZED`.
    beside : tuple of str
        Models of full size in ``sizes``, of `sized_methods.FULL_SIZE`. Objectives are multiples of the exact SVM's.
    sizes : tuple of int
        Numbers of basis vectors.
    growth_rows : tuple of int
        Training-set sizes of ``growth``.
    growth_basis : int
        Its number of basis vectors.
    fixed : bool
        Take C and γ of `SETTINGS` instead of choosing them.
    choose_each : bool
        Choose them for every method and size, as the paper does, instead of once by the exact SVM.
    max_n : int or None
        No training set is larger.
    svc_max_n : int
        Above so many rows scikit-learn's SVC is left out.
    """

    sets: tuple[str, ...] = tuple(SETTINGS)
    methods: tuple[str, ...] = tuple(SIZED)
    beside: tuple[str, ...] = tuple(sized_methods.FULL_SIZE)
    sizes: tuple[int, ...] = (10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000)
    growth_rows: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000)
    growth_basis: int = 100
    fixed: bool = False
    choose_each: bool = False
    max_n: int | None = None
    svc_max_n: int = 100_000


def quick(scope: Scope) -> Scope:
    """A scope of minutes on two cores."""
    return replace(
        scope,
        sizes=tuple(k for k in scope.sizes if k <= 100) or scope.sizes,
        growth_basis=min(scope.growth_basis, 50),
        max_n=5_000 if scope.max_n is None else scope.max_n,
    )


@lru_cache(maxsize=1)
def _load(name: str) -> Dataset:
    return load(name)


@lru_cache(maxsize=1)
def benchmark_set(name: str, max_n: int | None, svc_max_n: int) -> Problem:
    """A set with the settings of the table, at most ``max_n`` rows in a random order, and no intercept."""
    source, C, gamma = SETTINGS[name]
    data = _load(source)
    parts = [_indexed_small(part) for part in (data.X_train, data.X_test)]
    problem = Problem(name, parts[0], data.y_train, parts[1], data.y_test, C, gamma, svc_max_n=svc_max_n).shuffled()
    return problem if max_n is None or problem.n_train <= max_n else problem.head(max_n)


def _indexed_small(X: Any) -> Any:
    """Rows as scikit-learn's SVC takes them: sparse ones with 32-bit indices."""
    if not is_sparse(X):
        return X
    indices, indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)


def chosen(problem: Problem, method: Method | None = None) -> tuple[Problem, Records]:
    """The problem with the C and γ of the exact SVM, or of a method, that does best on a validation part, and what was
    tried.

    Both parts are taken from the training rows. Of equals the smallest C, then the smallest γ counts.
    """
    n = min(CHOICE_ROWS, problem.n_train // 2)
    X, y = problem.X_train[: 2 * n], problem.y_train[: 2 * n]
    scale = scale_gamma(X, None)
    small = replace(problem, X_train=X[:n], y_train=y[:n], X_test=X[n:], y_test=y[n:])
    tried: Records = []
    method = method or methods.svc()
    for C in C_GRID:
        for factor in GAMMA_GRID:
            trial = replace(small, C=C, gamma=float(factor * scale))
            found = measure(method, trial, 0, CHOICE_SECONDS)
            tried.append({"C": C, "gamma": trial.gamma, "error": found["test_error"], "seconds": found["seconds"]})
    best = min(tried, key=lambda entry: entry["error"])
    return replace(problem, C=best["C"], gamma=best["gamma"]), tried


@lru_cache(maxsize=1)
def prepared(name: str, max_n: int | None, svc_max_n: int, fixed: bool) -> Problem:
    """A set with its C and γ."""
    problem = benchmark_set(name, max_n, svc_max_n)
    return problem if fixed else chosen(problem)[0]


def problems(part: str, scope: Scope, session: Session) -> Iterable[Problem]:
    """The sets asked for, one at a time; a record says which cannot be had."""
    for name in SETTINGS:
        if name in scope.sets:
            try:
                yield prepared(name, scope.max_n, scope.svc_max_n, scope.fixed)
            except DataError as error:
                session.leave_out(part, name, str(error))


def compare(part: str, compared: Sequence[Method], problem: Problem, session: Session) -> Records:
    """Records of those methods that go with the problem's rows, and of why the others do not."""
    return session.compare(part, [suits(method, problem) for method in compared], problem)


def sizes(scope: Scope, session: Session) -> Records:
    """Figures 1 and 2, table 2, and the left of figure 3: growing numbers of basis vectors."""
    full = [sized_methods.FULL_SIZE[name]() for name in scope.beside]
    records: Records = []
    for problem in problems("sizes", scope, session):
        found = compare("sizes", full, problem, session)
        for k in sorted(scope.sizes):
            for name in scope.methods if k < problem.n_train else ():
                found += of_size(name, k, problem, scope.choose_each, found, session)
        records += found
    return records


def of_size(name: str, k: int, problem: Problem, choose: bool, found: Records, session: Session) -> Records:
    """Records of a method with k vectors, after ``found`` of full size and of smaller sizes; see `LARGEST_USUAL`."""
    method = suits(SIZED[name](k), problem)
    reason = why_no_larger(method.name, found) if k > LARGEST_USUAL else None
    if reason is not None:
        method = replace(method, missing=f"more than {LARGEST_USUAL:,} vectors: {reason}")
    if choose and method.missing is None:
        tried = SIZED[name](min(k, LARGEST_USUAL))
        problem = chosen_before(problem, tried, [*session.known, *found]) or chosen(problem, tried)[0]
    return session.compare("sizes", [method], problem)


def why_no_larger(name: str, records: Records) -> str | None:
    """Why larger sizes of a method are left out: by its first runs, a smaller one is good enough or met its limit."""
    first = [record for record in records if record.get("seed") == 0 and "test_error" in record]
    exact = next((record["test_error"] for record in first if record["method"] == sized_methods.EXACT), -np.inf)
    for record in (record for record in first if record["method"] == name):
        k = record["max_basis"]
        if record["test_error"] <= exact + TARGET:
            return f"{k:,} come within {100 * TARGET:g} points of the exact SVM"
        if record.get("status") == "time limit":
            return f"{k:,} met the time limit"
    return None


def chosen_before(problem: Problem, method: Method, records: Records) -> Problem | None:
    """The problem with the C and γ that records have of a method and size; None where there are no such records."""
    wanted = {"part": "sizes", "data": problem.data, "n_train": problem.n_train, "method": method.name}
    wanted |= {"max_basis": method.settings["max_basis"]}
    for record in records:
        if "seconds" in record and wanted.items() <= record.items():
            return replace(problem, C=record["C"], gamma=record["gamma"])
    return None


def growth(scope: Scope, session: Session) -> Records:
    """The right of figure 3: growing training sets."""
    compared = [SIZED[name](scope.growth_basis) for name in scope.methods]
    records: Records = []
    for problem in problems("growth", scope, session):
        for n in scope.growth_rows:
            if scope.growth_basis < n <= problem.n_train:
                records += compare("growth", [*compared, sized_methods.exact()], problem.head(n), session)
    return records


EXPERIMENTS: dict[str, Callable[[Scope, Session], Records]] = {"sizes": sizes, "growth": growth}


def run_experiments(parts: Iterable[str], scope: Scope, session: Session) -> Records:
    """Records of the parts named, in the order of `EXPERIMENTS`."""
    return [record for name in EXPERIMENTS if name in set(parts) for record in EXPERIMENTS[name](scope, session)]


def add_multiples(records: Sequence[dict[str, Any]]) -> None:
    """Set ``objective_multiple``: the objective over that of the exact SVM in the same run, where the kernel is one.

    The exact SVM has a free intercept, which lowers its objective. Sized methods have none.
    """
    keys = ("run", "part", "data", "n_train", "C", "gamma")
    exact = {
        tuple(record.get(key) for key in keys): record["objective"]
        for record in records
        if record.get("method") == sized_methods.EXACT and record.get("objective")
    }
    for record in records:
        reference = exact.get(tuple(record.get(key) for key in keys))
        known = reference is not None and record.get("objective") is not None and not record.get("own_kernel")
        record["objective_multiple"] = record["objective"] / reference if known else None
