"""What has to be compiled is compiled before max_seconds begins: a clock that only compiling and sweeps move."""

import time
import warnings

import numpy as np
import pytest

from slimsvm import CPSP, SVC, Exact, ExactCuts, Refine
from slimsvm.kernels import RBF
from slimsvm.kernels.kernel_rows import KernelRows
from slimsvm.rows import as_rows
from slimsvm.solvers import Compact, Problem, Status, base
from slimsvm.solvers.learned.basis_descent import Descent
from slimsvm.tasks import Binary

COMPILING, SWEEP = 1000.0, 0.01


@pytest.fixture
def clock(monkeypatch):
    """The first sweep and the first pass over rows of each type take long, as if they were compiled."""
    now, seen = [0.0], set()
    monkeypatch.setattr(base, "_READY", set())
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def slowed(owner, name):
        usual = getattr(owner, name)

        def method(self, *args, **options):
            rows = getattr(self, "kernel_rows", self)
            kind = name, np.dtype(rows.dtype), rows.rows.is_sparse
            now[0] += SWEEP if kind in seen else COMPILING
            seen.add(kind)
            return usual(self, *args, **options)

        monkeypatch.setattr(owner, name, method)

    slowed(Descent, "sweep")
    slowed(KernelRows, "scores")
    return now


def problem(n=3000, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0.1, 1, -1)
    task = Binary()
    return Problem(as_rows(X), task.encode(y), task, RBF(0.5), **({"C": 3.0, "random_state": 0} | settings))


def solve(solver, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return solver.solve(problem(**settings))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_sweeps_are_planned_by_what_they_take_once_compiled(clock, precision):
    fit = solve(Refine(6, epochs=1000, finish=False), max_seconds=0.6, precision=precision)
    assert 40 < fit.n_iter < 60
    assert fit.history[-1]["rate"] < 0.2 * max(record["rate"] for record in fit.history)
    assert clock[0] > COMPILING


@pytest.mark.parametrize("solver", [ExactCuts(), CPSP(40, method="cutting-planes")], ids=lambda s: type(s).__name__)
def test_other_solvers_have_their_time_too(clock, solver):
    fit = solve(solver, max_seconds=1.0, tol=1e-6)
    assert fit.n_iter > 10
    assert clock[0] >= COMPILING


def test_a_search_has_its_time_too(clock):
    fit = solve(Compact(), max_seconds=100.0)
    assert fit.status == Status.CONVERGED
    assert fit.counters["seconds"] < 100.0


def test_a_closing_descent_is_made_ready(clock):
    stand_in = CPSP(10).stand_in(problem(26_000))
    assert stand_in.sweeps == 1
    fit = solve(CPSP(100).stand_in(problem(26_000)), n=base.READY_EXAMPLES, max_iter=base.READY_STEPS)
    assert any("objective_estimate" in record for record in fit.history)  # a sweep
    assert CPSP(10).stand_in(problem()).sweeps == "auto"
    assert CPSP(10, method="cutting-planes").stand_in(problem(26_000)).sweeps == "auto"


def test_a_closing_descent_is_made_ready_after_a_fit_without_one(clock):
    for n in (3000, 26_000):
        fit = solve(CPSP(10), n=n, max_seconds=100.0)
        assert fit.status == Status.CONVERGED
        assert fit.counters["seconds"] < 100.0


def test_nothing_is_done_twice_nor_without_a_limit(clock, monkeypatch):
    asked = []
    usual = base._few_examples
    monkeypatch.setattr(base, "_few_examples", lambda problem: asked.append(problem) or usual(problem))
    solve(Exact(), n=500)
    assert not asked
    for n in (2100, 2500):
        solve(Exact(), n=n, max_seconds=1e6)
    assert len(asked) == 1
    solve(Exact(), n=500, max_seconds=1e6)
    assert len(asked) == 2
    solve(Exact(), n=500, max_seconds=1e6, precision="float32")  # as the first
    assert len(asked) == 2
    solve(Exact(), n=500, max_seconds=1e6, precision="float64")
    assert len(asked) == 3


def test_the_model_is_the_same_as_without_a_limit(clock):
    free, limited = (solve(Refine(6, epochs=5), max_seconds=limit) for limit in (None, 1e9))
    np.testing.assert_array_equal(free.model.basis, limited.model.basis)
    np.testing.assert_array_equal(free.model.coef, limited.model.coef)
    generators = [np.random.default_rng(0) for _ in range(2)]
    for generator, limit in zip(generators, (None, 1e9), strict=True):
        solve(Refine(6, epochs=2), max_seconds=limit, random_state=generator)
    assert generators[0].random() == generators[1].random()


def test_ctrl_c_while_compiling_ends_the_fit(clock, monkeypatch):
    def interrupted(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Descent, "sweep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve(Refine(6), max_seconds=0.6)


def test_a_few_examples_have_every_label():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 2)), np.repeat([0, 1, 2], [2000, 3, 1997])
    clf = SVC(solver=Refine(5, epochs=1), random_state=0, max_seconds=1e6)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "_READY", set())
        usual = base._few_examples
        patch.setattr(base, "_few_examples", lambda problem: seen.append(usual(problem)) or seen[-1])
        clf.fit(X, y)
    assert sorted(set(seen[0].examples.labels)) == [0, 1, 2]
    assert seen[0].rows.n_rows <= base.READY_EXAMPLES + 3
