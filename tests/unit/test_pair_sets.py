"""Pairs of classes side by side on one kernel matrix: the same fits as one by one, in few calls."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from slimsvm import SVC, core
from slimsvm.parts.dual_ascent import pair_sets
from slimsvm.parts.dual_ascent.dual import DualState

SIZES = (7, 40, 19)


@pytest.fixture(params=[np.float32, np.float64])
def sets(request):
    """Three sets of rows of one matrix, in the arguments of the core."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)).astype(request.param)
    rows = np.concatenate([rng.choice(50, size, replace=False) for size in SIZES])
    labels = rng.choice([-1.0, 1.0], len(rows))
    return {
        "K": K,
        "starts": np.concatenate([[0], np.cumsum(SIZES)]),
        "rows": rows,
        "lo": np.minimum(labels, 0.0) * 5.0,
        "hi": np.maximum(labels, 0.0) * 5.0,
        "g": labels.copy(),
        "v": np.zeros(len(rows)),
    }


@pytest.mark.parametrize(("balanced", "offset"), [(True, 0.0), (False, 1.0)])
def test_sets_are_solved_as_each_alone_is(sets, balanced, offset):
    tol, max_steps = np.array([1e-6, 1e-3, 1e-3]), np.array([1000, 12, 0])
    alone = {name: sets[name].copy() for name in ("g", "v")}
    found = {"steps": np.full(3, -1), **{name: np.full(3, -1.0) for name in ("gain", "violation", "middle")}}
    core.smo_sets(**sets, balanced=balanced, offset=offset, tol=tol, max_steps=max_steps, **found)
    for k in range(2):
        part = slice(sets["starts"][k], sets["starts"][k + 1])
        made, gain, violation, middle = core.smo(
            values=sets["K"], slots=sets["rows"][part], places=sets["rows"][part], diagonal=None,
            g=alone["g"][part], v=alone["v"][part], lo=sets["lo"][part], hi=sets["hi"][part], balanced=balanced,
            offset=offset, epsilon=0.0, tol=tol[k], max_steps=max_steps[k],
        )  # fmt: skip
        assert (made, gain, violation, middle) == tuple(found[name][k] for name in found)
        assert made > 0
    assert found["steps"][1] == 12
    assert all(found[name][2] == -1 for name in found), "no steps, no results"
    for name in ("g", "v"):
        np.testing.assert_array_equal(sets[name], alone[name])


@pytest.mark.parametrize(("balanced", "offset"), [(True, 0.0), (False, 1.0)])
def test_steps_end_with_the_first_violation_within_the_tolerance(sets, balanced, offset):
    part = slice(SIZES[0], SIZES[0] + SIZES[1])
    rows, lo, hi = (sets[name][part] for name in ("rows", "lo", "hi"))
    K = sets["K"][np.ix_(rows, rows)].astype(np.float64) + offset

    def after(max_steps, tol):
        """Steps made, and the violation that is left: as the core has it, and by its definition."""
        g, v = sets["g"][part].copy(), np.zeros(len(rows))
        made, _, told, _ = core.smo(
            values=sets["K"], slots=rows, places=rows, diagonal=None, g=g, v=v, lo=lo, hi=hi, balanced=balanced,
            offset=offset, epsilon=0.0, tol=tol, max_steps=max_steps,
        )  # fmt: skip
        slopes = sets["g"][part] - K @ v
        up, down = slopes[v < hi].max(), slopes[v > lo].min()
        return made, told, up - down if balanced else max(up, 0.0) - min(down, 0.0)

    for tol in np.geomspace(1.0, 1e-6, 20):
        made, told, left = after(10_000, tol)
        assert told == pytest.approx(left, abs=1e-9)
        assert told <= tol
        assert 0 < made < 10_000
        assert after(made - 1, tol)[1] > tol


def test_norms_of_sets(sets):
    v = np.random.default_rng(1).standard_normal(len(sets["v"]))
    v[::3] = 0.0
    norms = np.empty(3)
    core.set_norms(K=sets["K"], starts=sets["starts"], rows=sets["rows"], v=v, norms=norms)
    for k, norm in enumerate(norms):
        part = slice(sets["starts"][k], sets["starts"][k + 1])
        K = sets["K"][np.ix_(sets["rows"][part], sets["rows"][part])].astype(np.float64)
        np.testing.assert_allclose(norm, v[part] @ K @ v[part], rtol=1e-13)


@pytest.fixture(scope="module")
def classes():
    """Ten classes of few rows, some of which overlap."""
    return make_blobs(300, 6, centers=10, cluster_std=3.0, random_state=3)


def test_pairs_in_groups_are_those_side_by_side(classes, settings_of_estimators):
    X, y = classes
    together = SVC(C=10.0, tol=1e-6).fit(X, y)
    settings_of_estimators(pair_sets.PairSettings(rows_side_by_side=1))
    apart = SVC(C=10.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(together.decision_function(X), apart.decision_function(X), atol=1e-3)
    assert together.objective_ == pytest.approx(apart.objective_, rel=1e-6)
    assert [record["pair"] for record in together.history_] == [record["pair"] for record in apart.history_]
    assert len(together.history_) == 45


def test_few_calls_solve_for_many_pairs(classes, monkeypatch):
    X, y = classes
    calls, smo_sets = [], core.smo_sets
    monkeypatch.setattr(pair_sets.core, "smo_sets", lambda **given: (calls.append(1), smo_sets(**given)))
    clf = SVC(C=100.0).fit(X, y)
    assert len(calls) <= 6, "45 pairs"
    assert clf.status_ == "converged"


def test_an_interrupt_leaves_all_pairs_as_far_as_they_were(classes, monkeypatch):
    X, y = classes
    smo_sets = core.smo_sets

    def interrupted(**given):
        given["max_steps"] = np.minimum(given["max_steps"], 20)
        smo_sets(**given)
        if given["v"].any() and not calls:
            calls.append(1)
            raise KeyboardInterrupt

    calls = []
    monkeypatch.setattr(pair_sets.core, "smo_sets", interrupted)
    with pytest.warns(UserWarning, match="interrupted"):
        clf = SVC(C=10.0).fit(X, y)
    assert clf.status_ == "interrupted"
    assert np.mean(clf.predict(X) == y) > 0.5, "20 steps for each pair"


@pytest.mark.parametrize("intercept", ["free", "regularized"])
def test_the_next_C_starts_from_scores_that_are_known(classes, intercept, monkeypatch):
    X, y = classes
    known, scores_at, go_on = [], DualState.scores_at, pair_sets.PairSets.go_on

    def noted(self, v, C, last):
        known.append(scores_at(self, v, C, last))
        return known[-1]

    def compared(self, k, state):
        go_on(self, k, state)
        part, places = self.part(k), self.places[self.part(k)]
        scores = self.K[np.ix_(places, places)] @ self.v[part] + self.dual.offset * self.v[part].sum()
        np.testing.assert_allclose(self.dual.target[part] - self.g[part], scores, rtol=1e-5, atol=1e-5)

    monkeypatch.setattr(DualState, "scores_at", noted)
    monkeypatch.setattr(pair_sets.PairSets, "go_on", compared)
    SVC(C="validate", intercept=intercept, random_state=0).fit(X, y)
    assert len(known) >= 2 * 45
    assert all(scores is not None for scores in known)


def test_scores_of_another_point_are_not_known():
    v, scores = np.array([1.0, -1.0]), np.array([0.5, 0.25])
    state = DualState(v, 2.0, None, None)
    np.testing.assert_array_equal(state.scores_at(3 * v, 6.0, (v, scores)), 3 * scores)
    assert state.scores_at(3 * v, 6.0, None) is None
    assert state.scores_at(3 * v, 6.0, (v.copy(), scores)) is None, "of another fit"
    assert state.scores_at(np.array([3.0, -2.9]), 6.0, (v, scores)) is None, "cut off by its bounds"
