"""What a small fit costs: nothing is asked of the core twice, and nothing is made that nobody asks for."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import make_moons

from slimsvm import SVC, Exact
from slimsvm.core.border import Function
from slimsvm.kernels import kernel as kernel_module
from slimsvm.parts.dual_ascent import active_rows
from slimsvm.parts.dual_ascent.dual import Tolerance, ToleranceSettings
from slimsvm.parts.dual_ascent.smo import NewtonSteps


@pytest.fixture
def calls(monkeypatch):
    """Calls of compiled functions, by name."""
    found: Counter[str] = Counter()
    call = Function.__call__

    def counted(function, *complete, **arguments):
        found[function.name] += 1
        return call(function, *complete, **arguments)

    monkeypatch.setattr(Function, "__call__", counted)
    return found


def two_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, 3)) + 2.0 * y[:, None], y


def test_a_small_fit_calls_each_compiled_function_once_and_steps_twice(calls):
    X, y = two_classes()
    model = SVC(C=10.0, gamma=0.5, n_jobs=1).fit(X, y)
    assert calls == {"add_rows": 1, "fold_rows": 1, "pack_dense": 1, "scores": 1, "smo": 2}
    calls.clear()
    model.predict(X)
    assert calls == {"fold_rows": 1, "pack_dense": 1, "cut_weights": 1, "score_rows": 1}
    calls.clear()
    model.predict(X)
    assert calls == {"score_rows": 1}


def test_a_fit_without_callbacks_makes_no_context_for_them(monkeypatch):
    def refused(*args, **kwargs):
        raise AssertionError("a context was made")

    monkeypatch.setattr(SVC, "_init_callback_context", refused)
    SVC().fit(*two_classes())


@pytest.mark.parametrize("n_rows", [10, 900, 2000])
def test_the_least_wait_for_a_newton_step_is_that_of_any_number_of_free_variables(n_rows):
    newton = NewtonSteps(memory=10**8)
    for worked, risen in ((0, 1.0), (10**6, 0.0), (10**7, 0.0)):
        newton.note(worked, n_rows, 0.0)
        waits = [newton.wait(n_rows, n_free) for n_free in range(n_rows + 1)]
        assert newton.least_wait(n_rows) <= min(waits)
        newton.made(risen)


@pytest.mark.parametrize("seed", range(3))
def test_steps_for_a_wide_gap_end_where_it_is_wide_no_more(seed):
    """Those of few rows are made at once, and not to the last digit."""
    X, y = two_classes(300, seed)
    model = SVC(C=1000.0, gamma=2.0, n_jobs=1).fit(X, y)
    tolerance = Tolerance(1e-3)
    assert 0 <= model.objective_ - model.lower_bound_ <= 1e-3 * model.objective_
    assert not tolerance.is_lowered(model.objective_, model.lower_bound_, 10, 300)
    assert tolerance.steps_for_gap(model.objective_, model.lower_bound_, 1e-4, 12, 300)[0] == 0
    # A bound further away asks for steps, as many more as the first ones allow, to a violation in proportion.
    steps, violation = tolerance.steps_for_gap(100.0, 99.0, 1e-4, 12, 300)
    assert (steps, violation) == (28, pytest.approx(1e-4 * 0.5 * 0.1))
    assert tolerance.steps_for_gap(100.0, 99.0, 1e-11, 12, 300)[0] == 0  # rounding's


def test_two_classes_whose_gap_is_not_wide_take_the_closing_steps_alone(monkeypatch):
    asked = []
    solve = active_rows.solve_set

    def noted(*arguments, max_steps, **options):
        asked.append(max_steps)
        return solve(*arguments, max_steps=max_steps, **options)

    monkeypatch.setattr(active_rows, "solve_set", noted)
    X, y = two_classes(60)
    SVC(C=1.0, n_jobs=1).fit(X, y)
    assert asked[1:] == [ToleranceSettings.more_work // 60]


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_lengths_of_rows_are_computed_once(kernel, monkeypatch):
    rng = np.random.default_rng(0)
    X, seen, real = rng.normal(size=(2500, 3)), [], kernel_module.squared_norms
    monkeypatch.setattr(kernel_module, "squared_norms", lambda block: seen.append(len(block)) or real(block))
    SVC(kernel=kernel, solver="exact").fit(X, X[:, 0] > 0)
    assert sum(seen) == len(X)


def test_second_rows_of_pairs_are_chosen_for_what_they_gain():
    """With the curvature along the pair: by each row's own value alone twice as many working sets are gone through."""
    X, y = make_moons(1000, noise=0.25, random_state=0)
    clf = SVC(C=1000.0, gamma=0.5, solver=Exact(64), n_jobs=1).fit(X, y)
    assert clf.status_ == "converged"
    assert clf.n_iter_.item() < 90
