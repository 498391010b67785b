"""max_seconds of every solver and estimator: a clock that goes on by a second whenever somebody looks at it."""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from slimsvm import (
    BSCA,
    CPSP,
    SVC,
    SVR,
    CrossTrainedSVC,
    LowRank,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    Refine,
    SequenceSVM,
    StructuredSVM,
)
from slimsvm.budget import budgeted_model
from slimsvm.core import clock
from slimsvm.kernels import EvalCounter
from slimsvm.kernels.operands import MAP_WORK, RowSizes, Sized
from slimsvm.tasks import Multiclass

N = 240
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
SIGNAL = X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=N)
TWO, THREE = (SIGNAL > 0.2) * 1, np.digitize(SIGNAL, [-0.3, 0.3])
CHUNKS = [slice(i, i + 8) for i in range(0, N, 8)]
SEQUENCES, STATES = [X[part] for part in CHUNKS], [TWO[part].tolist() for part in CHUNKS]
QUERIES = np.repeat(np.arange(N // 8), 8)
FEW = ("cpsp", "refine", "low-rank", "bsca", "bsgd")
KERNEL = {"gamma": 0.5, "random_state": 0}


def classifier(**parameters):
    return lambda seconds, y=TWO: SVC(max_seconds=seconds, **KERNEL | parameters).fit(X, y)


CASES = {
    solver: classifier(solver=solver, precision="float32", **({"max_basis": 12} if solver in FEW else {}))
    for solver in (*FEW, "exact-cuts", "violated-cuts", "uniform-cuts", "exact", "bcfw", "lasvm", "cvm", "bvm")
} | {
    "three classes": lambda seconds: classifier()(seconds, THREE),
    "three classes on a budget": lambda seconds: classifier(solver="bsca", max_basis=12)(seconds, THREE),
    "auto": classifier(max_basis="auto"),
    "validate": classifier(C="validate", gamma="validate"),
    "scales": classifier(gamma="learn", max_basis=8, solver=Refine(8, epochs=30, learn_metric=True)),
    "scales before": classifier(gamma="learn", solver="exact"),
    "ramp": classifier(loss="ramp"),
    "f1": classifier(loss="f1", tol=0.05),
    "rows held out": lambda seconds: CrossTrainedSVC(max_seconds=seconds, C=1.0, first_C=1.0, **KERNEL).fit(X, TWO),
    "one class": lambda seconds: OneClassSVM(max_seconds=seconds, **KERNEL).fit(X),
    "one class on a budget": lambda seconds: OneClassSVM(solver=BSCA(12), max_seconds=seconds, **KERNEL).fit(X),
    "numbers": lambda seconds: SVR(max_seconds=seconds, **KERNEL).fit(X, SIGNAL),
    "numbers of few": lambda seconds: SVR(solver=Refine(8, epochs=30), max_basis=8, max_seconds=seconds, **KERNEL).fit(
        X, SIGNAL
    ),
    "ranks": lambda seconds: RankSVM(max_seconds=seconds, tol=0.05, **KERNEL).fit(X, SIGNAL, groups=QUERIES),
    "ordinal": lambda seconds: OrdinalSVC(max_seconds=seconds, tol=0.05, **KERNEL).fit(X, THREE),
    "sequences": lambda seconds: SequenceSVM(max_seconds=seconds, tol=0.05, **KERNEL).fit(SEQUENCES, STATES),
    "structures": lambda seconds: StructuredSVM(Multiclass(3), max_seconds=seconds, tol=0.05, **KERNEL).fit(
        [X[i : i + 1] for i in range(N)], list(THREE)
    ),
}


@pytest.fixture
def looks(monkeypatch):
    """How often somebody has looked at the clock: the seconds it shows."""
    counted = [0]

    def look():
        counted[0] += 1
        return float(counted[0])

    monkeypatch.setattr(time, "perf_counter", look)
    return counted


def fitted(case, seconds):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CASES[case](seconds)


def arrays_of(estimator):
    vectors = estimator.basis_vectors_
    vectors = vectors.toarray() if hasattr(vectors, "toarray") else np.asarray(vectors)
    return vectors, estimator.basis_coef_, estimator.intercept_


@pytest.mark.parametrize("slow", [3, 10])
def test_sweeps_that_are_slow_at_first_change_nothing_where_the_limit_suffices(slow, monkeypatch):
    """A clock that runs a hundred times as fast for a while at first, as on a machine that others use."""
    looked = [0]

    def look():
        looked[0] += 1
        return 100.0 * min(looked[0], slow) + max(0, looked[0] - slow)

    monkeypatch.setattr(time, "perf_counter", look)
    free = fitted("refine", None)
    looked[0] = 0
    fitted("refine", 1e9)
    whole = look()
    looked[0] = 0
    limited = fitted("refine", 4.0 * whole)
    assert limited.status_ == "converged"
    for one, other in zip(arrays_of(free), arrays_of(limited), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pass_over_the_rows_is_left_when_the_time_is_over(monkeypatch):
    """A clock that runs with the calls of a kernel in Python."""
    calls = [0]

    def kernel(A, B):
        calls[0] += 1
        return np.exp(-0.5 * np.sum((A[:, None] - B) ** 2, axis=2))

    monkeypatch.setattr(time, "perf_counter", lambda: float(calls[0]))
    for solver in ("bcfw", "lasvm", "cvm", "bvm", "exact-cuts", "low-rank", "cpsp"):
        few = {"max_basis": 30} if solver in FEW else {}
        if solver == "cpsp":
            few["solver"] = CPSP(30, preimage="training-rows")
        parameters = {"kernel": kernel, "solver": solver, "random_state": 0, "precision": "float64"} | few
        calls[0] = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            SVC(**parameters).fit(X, TWO)
            whole, calls[0] = calls[0], 0
            clf = SVC(max_seconds=0.1 * whole, **parameters).fit(X, TWO)
        assert clf.status_ == "time limit", solver
        assert calls[0] <= 0.1 * whole + 6, solver


@pytest.mark.parametrize("case", CASES)
def test_a_limit_ends_the_fit_and_one_that_is_not_reached_changes_nothing(case, looks):
    free = fitted(case, None)
    looks[0] = 0
    limited = fitted(case, 1e9)
    whole = looks[0]
    assert limited.status_ == free.status_
    for one, other in zip(arrays_of(free), arrays_of(limited), strict=True):
        np.testing.assert_array_equal(one, other)
    for limit in (1, whole // 3, 2 * whole // 3):
        looks[0] = 0
        cut = fitted(case, float(limit))
        assert cut.status_ == "time limit" or limit > whole / 2
        assert looks[0] <= limit + 100
        assert all(np.isfinite(part).all() for part in arrays_of(cut)[1:])
        above = cut.objective_ + 1e-9 * abs(cut.objective_)  # of one class it is below 0
        assert np.isnan(above) or cut.lower_bound_ is None or cut.lower_bound_ <= above


def test_k_means_looks_at_the_clock_after_each_batch(looks):
    """Of many rows centres take longer than all that follows."""
    rows = np.random.default_rng(1).normal(size=(10_000, 2))
    y, counts = (rows[:, 0] > 0) * 1, {}
    for basis in ("nystrom", "kmeans"):
        looks[0] = 0
        SVC(solver=LowRank(4, basis, tol_relative=0.5), gamma=0.5, max_seconds=1e9, random_state=0).fit(rows, y)
        counts[basis] = looks[0]
    assert counts["kmeans"] > counts["nystrom"] + 10


# Kernel evaluations between two looks at the clock; those of one row with all vectors where that is more.
PIECE, MANY_VECTORS = 1000, {"uniform-cuts": 2700}


@pytest.fixture
def pieces(monkeypatch):
    """Kernel evaluations between two looks at the clock that could end the fit."""
    done, last, found = [0], [0], []

    def add(counter, n):
        counter.n += int(n)
        # Others than these add up what was counted. (Sweeps in compiled code: tests/unit/test_descent.py.)
        if Path(sys._getframe(1).f_code.co_filename).parent.name in ("kernels", "budget"):
            done[0] += int(n)

    def look():
        limit, caller = clock.here.limit, sys._getframe(1).f_code.co_name
        if limit is not None and caller in ("__call__", "check_time", "is_time_over"):
            if limit.interrupts_at < np.inf:
                found.append(done[0] - last[0])
            last[0] = done[0]
        return 0.0

    monkeypatch.setattr(EvalCounter, "add", add)
    monkeypatch.setattr(time, "perf_counter", look)
    monkeypatch.setattr(Sized, "sizes", RowSizes(call_work=PIECE * (X.shape[1] + MAP_WORK), tile_rows=1))
    monkeypatch.setattr(budgeted_model, "CALL_WORK", 40 * PIECE)
    return found


@pytest.mark.parametrize("case", CASES)
def test_no_piece_between_two_looks_at_the_clock_is_large(case, pieces):
    fitted(case, 1e9)
    assert len(pieces) > 10
    assert max(pieces) <= MANY_VECTORS.get(case, PIECE), sorted(pieces)[-8:]
