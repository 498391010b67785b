"""Checkpoint: a model after every epoch, an interrupted fit that goes on, files that are whole, what is wrong."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import slimsvm
from slimsvm import (
    BSCA,
    BSGD,
    SVC,
    SVR,
    Checkpoint,
    CrossTrainedSVC,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    modelfile,
)

BOTH = pytest.mark.parametrize("solver", [BSCA, BSGD])


def rows(n=500, classes=2):
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.digitize(X[:, 0] * X[:, 1], np.linspace(-0.3, 0.3, classes - 1) if classes > 2 else [0.0])


def estimator(solver, epochs=6, **options):
    solver = solver(30, epochs=epochs, finish=False)
    return SVC(**{"C": 2.0, "gamma": 0.5, "solver": solver, "random_state": 0} | options)


class Stop:
    """Raises in the k-th iteration, as a computer that is switched off would."""

    def __init__(self, at):
        self.at = at

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration" and context.task_id + 1 == self.at:
            raise RuntimeError("switched off")


@BOTH
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_an_interrupted_fit_goes_on(solver, container, tmp_path):
    X, y = rows()
    X = container(X)
    path, labels = tmp_path / "run.slim", np.array(["no", "yes"])[y]
    whole = estimator(solver).fit(X, labels)
    with pytest.raises(RuntimeError, match="switched off"):
        estimator(solver).set_callbacks(Checkpoint(path), Stop(4)).fit(X, labels)
    clf = slimsvm.load(path)
    first = estimator(solver, epochs=4).fit(X, labels)
    np.testing.assert_array_equal(clf.predict(X), first.predict(X))
    np.testing.assert_allclose(clf.decision_function(X), first.decision_function(X), atol=1e-6)
    assert (clf.n_iter_, clf.status_) == (4, "stopped by a callback")
    clf.set_params(warm_start=True, solver__epochs=2).fit(X, labels)
    assert clf._state.n_steps == whole._state.n_steps == 6 * 500
    # A warm start in the same process, from the same epoch, takes the same rows in the same order.
    here = estimator(solver, epochs=4, warm_start=True).fit(X, labels).set_params(solver__epochs=2).fit(X, labels)
    np.testing.assert_allclose(clf.decision_function(X), here.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(clf.decision_function(X), whole.decision_function(X), atol=1e-4)
    if solver is BSCA:
        duals = [record["dual"] for record in clf.history_]
        assert duals[0] > first.history_[-1]["dual"] > whole.history_[0]["dual"]
        np.testing.assert_allclose(clf._state.alpha, here._state.alpha, atol=1e-6)


@BOTH
def test_a_file_for_every_epoch_and_a_fit_that_does_not_notice(solver, tmp_path):
    X, y = rows(classes=3)
    path = os.path.join(tmp_path, "{iteration:02d}.slim")
    plain, watched = estimator(solver).fit(X, y), estimator(solver).set_callbacks(Checkpoint(path, every=2)).fit(X, y)
    np.testing.assert_array_equal(plain.basis_coef_, watched.basis_coef_)
    assert plain.n_kernel_evals_ == watched.n_kernel_evals_
    assert [r["kernel_evals"] for r in plain.history_] == [r["kernel_evals"] for r in watched.history_]
    assert sorted(os.listdir(tmp_path)) == ["02.slim", "04.slim", "06.slim"]
    for epoch in (2, 4, 6):
        fit, read = estimator(solver, epochs=epoch).fit(X, y), slimsvm.load(path.format(iteration=epoch))
        np.testing.assert_allclose(read.decision_function(X), fit.decision_function(X), atol=1e-12)
        assert read.objective_ == pytest.approx(fit.objective_)


@BOTH
def test_regression_and_one_class_and_no_more_rows_than_vectors(solver, tmp_path):
    X, _ = rows()
    y, path = X[:, 0] + 50, tmp_path / "run.slim"
    fits = [
        (SVR(gamma=0.5, solver=solver(30, finish=False), random_state=0), y, 500),
        (OneClassSVM(gamma=0.5, nu=0.2, solver=solver(30), random_state=0), None, 500),
        (SVC(gamma=0.5, solver=solver(100), random_state=0), (y > 50).astype(int), 80),
    ]
    for estimator, target, n in fits:
        target = None if target is None else target[:n]
        estimator.set_callbacks(Checkpoint(path)).fit(X[:n], target)
        read = slimsvm.load(path)
        assert read.predict(X).shape == (500,)
        read.set_params(warm_start=True).fit(X[:n], target)
        if isinstance(estimator, SVR):
            assert abs(read.predict(X).mean() - 50) < 0.5
        else:
            assert np.mean(read.predict(X) == estimator.predict(X)) > 0.9
        if isinstance(estimator, OneClassSVM) and solver is BSGD:
            continue  # goes on from C alone, which other rows may have too
        with pytest.raises(ValueError, match=r"a warm start needs the same rows|labels, weights or the loss"):
            read.fit(X[: n - 1], None if target is None else target[: n - 1])


def test_scikit_learns_scoring_monitor_sees_every_epoch():
    X, y = rows()
    monitor = pytest.importorskip("sklearn.callback").ScoringMonitor(scoring="accuracy")
    clf = estimator(BSCA).set_callbacks(monitor).fit(X, y)
    scores = [entry["accuracy"] for entry in monitor.get_logs().data]
    assert len(scores) == 7  # six epochs and the fit
    assert clf.score(X, y) in scores
    assert [s for s in scores[:6]] != [scores[0]] * 6


def test_a_failed_write_leaves_the_file_before(tmp_path, monkeypatch):
    X, y = rows()
    path, replace, seen = tmp_path / "run.slim", os.replace, []

    def full(source, target):
        seen.append(target)
        if len(seen) == 3:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(modelfile.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        estimator(BSGD).set_callbacks(Checkpoint(path)).fit(X, y)
    assert os.listdir(tmp_path) == ["run.slim"]
    assert slimsvm.load(path).n_iter_ == 2


@pytest.mark.parametrize(
    "clf",
    [SVC(), SVC(max_basis=5), SVC(max_basis="auto"), SVC(multi_class="crammer-singer"), NuSVC(nu=0.1), NuSVR(),
     OneClassSVM(), OrdinalSVC(), CrossTrainedSVC(), SVC(C="validate", max_basis=5)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("classes", [2, 3])
def test_solvers_without_models_on_the_way_are_named(clf, classes, tmp_path):
    """A search, and estimators of pairs of classes, have no run of their own: it was an AttributeError."""
    X, y = rows(80, classes if not isinstance(clf, CrossTrainedSVC) else 2)
    clf = clone(clf).set_params(random_state=0).set_callbacks(Checkpoint(os.fsencode(tmp_path / "m.slim")))
    with pytest.raises(ValueError, match="Checkpoint needs a solver with a model after every iteration"):
        clf.fit(X, y)
    assert os.listdir(tmp_path) == []


def test_what_is_wrong_is_said(tmp_path):
    X, y = rows()
    with pytest.raises(ValueError, match=r"path may have the field \{iteration\} and no other, found 'a-\{epoch\}'"):
        Checkpoint("a-{epoch}")
    with pytest.raises(ValueError, match="every must be an integer >= 1, found 0"):
        Checkpoint("a", every=0)
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        estimator(BSCA).set_callbacks(Checkpoint(tmp_path / "nowhere" / "a.slim")).fit(X, y)
    with pytest.raises(ValueError, match="'bsca', 'bsgd', 'refine' or 'low-rank', found 'exact-cuts'"):
        SVC(solver="exact-cuts").set_callbacks(Checkpoint(tmp_path / "a.slim")).fit(X[:40], y[:40])
    assert os.listdir(tmp_path) == []
