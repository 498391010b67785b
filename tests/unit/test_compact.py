"""Few vectors that do as well as the exact SVM: the search, its rules, its end."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning

import slimsvm
from kernel_cases import NO_DERIVATIVE
from slimsvm import SVC, SVR, ExactCuts, solvers
from slimsvm.kernels import RBF
from slimsvm.model import KernelExpansion
from slimsvm.rows import as_rows
from slimsvm.solvers import Compact, Problem, Status
from slimsvm.solvers.in_span.low_rank import LowRank, LowRankState
from slimsvm.solvers.learned.compact import Trial, hopeless, parts, sizes_for, slack
from slimsvm.tasks import Binary, Regression

compact = solvers.learned.compact


def moons(n=2500, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X.astype(np.float32), y


def stages(clf):
    return list(dict.fromkeys(record["stage"] for record in clf.history_))


@pytest.fixture(scope="module")
def fitted():
    return SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(*moons())


def test_few_vectors_do_as_well(fitted):
    X, y = moons()
    X_test, y_test = moons(5000, 1)
    exact = SVC(C=10.0, gamma=1.0, solver=ExactCuts()).fit(X, y)
    assert stages(fitted)[0] == "reference"
    assert stages(fitted)[-1] == "coefficients"
    assert fitted.n_basis_ <= exact.n_basis_ / 5
    assert fitted.score(X_test, y_test) > exact.score(X_test, y_test) - 0.005
    errors = [record["held_out_error"] for record in fitted.history_ if "held_out_error" in record]
    assert len(errors) == len(stages(fitted)) - 1
    assert errors[-1] <= errors[0] + 0.003
    assert fitted.status_ == "converged"


def test_what_is_said_of_the_model_is_of_all_rows(fitted):
    X, y = moons()
    certificate = fitted.certificate(X, y, max_seconds=10)
    assert fitted.objective_ == pytest.approx(certificate.objective, rel=1e-5)
    exact = SVC(C=10.0, gamma=1.0, solver=ExactCuts(), tol=1e-5).fit(X, y)
    assert 0.7 * exact.objective_ < fitted.lower_bound_ <= exact.objective_
    assert 0.99 * fitted.objective_ < fitted.counters_["bound_in_basis"] <= fitted.objective_
    seconds, evals = ([record[name] for record in fitted.history_] for name in ("seconds", "kernel_evals"))
    assert seconds == sorted(seconds)
    assert evals == sorted(evals)
    assert fitted.n_kernel_evals_ >= evals[-1]


def test_the_same_model_again_for_any_number_of_threads(fitted):
    again = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, n_jobs=2).fit(*moons())
    np.testing.assert_array_equal(again.basis_vectors_, fitted.basis_vectors_)
    np.testing.assert_array_equal(again.basis_coef_, fitted.basis_coef_)


def test_without_such_vectors_the_exact_model_of_all_rows(monkeypatch):
    monkeypatch.setattr(compact, "slack", lambda *args: -1.0)
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, tol=1e-7).fit(X, y)
    exact = SVC(C=10.0, gamma=1.0, solver=ExactCuts()).fit(X, y)
    assert stages(clf)[-1] == "exact"
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    assert clf.lower_bound_ == pytest.approx(exact.lower_bound_, rel=1e-8)
    np.testing.assert_array_equal(np.sort(clf.support_), np.sort(exact.support_))
    assert "none does" in clf.history_[-1]["search"]


def test_the_exact_model_of_all_rows_begins_at_that_of_a_part(monkeypatch):
    """Several classes, whose exact solution has no dual point to begin at, begin anew."""
    begun, solve = [], compact.Exact.solve

    def noting(solver, problem, state=None, callbacks=()):
        begun.append(state)
        return solve(solver, problem, state, callbacks)

    monkeypatch.setattr(compact, "slack", lambda *args: -1.0)
    monkeypatch.setattr(compact.Exact, "solve", noting)
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, tol=1e-7).fit(X, y)
    first, second = begun
    assert first is None
    v = np.zeros(len(X))
    v[clf.support_] = clf.dual_coef_[0]
    assert np.count_nonzero(second.v) > 0.6 * len(clf.support_)
    assert np.linalg.norm(second.v - v) < 0.7 * np.linalg.norm(v)
    several = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(X, y + 2 * (X[:, 0] > 0.5))
    assert len(begun) == 2
    assert stages(several)[-1] == "exact"


def test_the_search_says_what_it_tried(capsys):
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, verbose=1).fit(X, y)
    search = clf.history_[-1]["search"]
    assert f"{clf.n_basis_} vectors" in search
    assert "none does" not in search
    assert search in capsys.readouterr().err


@pytest.mark.parametrize("vectors", ["refine", "fixed-point", "training-rows"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_every_way_to_vectors(vectors, form):
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(vectors), random_state=0).fit(form(X), y)
    assert clf.score(form(X), y) > 0.9
    assert clf.lower_bound_ <= clf.objective_


def test_a_metric_of_their_own():
    """Six features of noise, which the exact SVM's kernel counts like the others."""
    X, y = moons(1500)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    isotropic = SVC(C=10.0, kernel=RBF(0.3), solver=Compact(), random_state=0).fit(X, y)
    clf = SVC(C=10.0, kernel=RBF(0.3), gamma="learn", solver=Compact(), random_state=0).fit(X, y)
    gamma = np.array(clf.kernel_.gamma)
    assert gamma[:2].min() > 3 * gamma[2:].max()
    assert clf.n_basis_ <= isotropic.n_basis_
    X_test, y_test = moons(5000, 1)
    X_test = np.column_stack([X_test, np.random.default_rng(1).normal(size=(len(X_test), 6))])
    assert clf.score(X_test, y_test) > isotropic.score(X_test, y_test) + 0.01
    assert stages(clf)[-1] == "coefficients"
    assert clf.lower_bound_ is None
    scores = clf.decision_function(X)
    norm = clf.model_.norm_squared() + clf.intercept_[0] ** 2
    hinge = np.maximum(0, 1 - np.where(y > 0, 1, -1) * scores).sum()
    assert clf.objective_ == pytest.approx(0.5 * norm + 10 * hinge, rel=1e-6)
    assert 0.99 * clf.objective_ < clf.counters_["bound_in_basis"] <= clf.objective_


def test_several_classes_and_regression():
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(X, y + 2 * (X[:, 0] > 0.5))
    assert clf.score(X, y + 2 * (X[:, 0] > 0.5)) > 0.85
    target = np.sin(3 * X[:, 0]) + np.random.default_rng(0).normal(0, 0.3, len(X))
    reg = SVR(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(X, target)
    assert reg.score(X, np.sin(3 * X[:, 0])) > 0.9
    assert stages(reg)[-1] == "coefficients"


def test_no_vectors_may_do():
    """All targets lie within epsilon of each other: the exact SVM of all rows is the answer then."""
    X, y = moons(600)
    settings = {"gamma": 1.0, "epsilon": 0.5, "random_state": 0}
    reg = SVR(solver=Compact(), **settings).fit(X, y)
    exact = SVR(solver=ExactCuts(), **settings).fit(X, y)
    assert stages(reg)[-1] == "exact"
    assert "none are needed" in reg.history_[-1]["search"]
    assert reg.objective_ == pytest.approx(exact.objective_, rel=1e-8)
    np.testing.assert_allclose(reg.predict(X), exact.predict(X), rtol=1e-8)


def test_no_vectors_may_not_do(monkeypatch):
    """There are no coefficients to solve for at another price then."""
    monkeypatch.setattr(compact, "slack", lambda *args: -1.0)
    X, y = moons(600)
    reg = SVR(solver=Compact(), gamma=1.0, epsilon=1.0, random_state=0).fit(X, y)
    assert stages(reg)[-1] == "exact"
    assert reg.n_basis_ == 0


@pytest.mark.parametrize(
    ("search", "changes", "message"),
    [
        (Compact("nearest"), {}, "vectors must be one of 'refine', 'fixed-point', 'training-rows'; found 'nearest'"),
        (Compact("fixed-point", learn_metric=True), {}, "learn_metric=True needs vectors='refine'"),
        (Compact("fixed-point"), {"kernel": "poly"}, "preimage='fixed-point' is for the RBF kernel, found Polynomial"),
        (Compact(), {"kernel": "laplacian"}, NO_DERIVATIVE + " Laplacian"),
        (Compact("training-rows"), {"kernel": "precomputed"}, "needs a kernel of rows, found kernel='precomputed'"),
        (Compact(), {"loss": "f1"}, "two classes, several .* or regression, found FBeta"),
        (Compact(), {"multi_class": "ovo"}, "found OneVsOne"),
        (Compact(), {"intercept": "free"}, "intercept='free' is for one score column"),
    ],
)
def test_what_cannot_be_searched_is_refused_before_any_work(monkeypatch, search, changes, message):
    monkeypatch.setattr(compact._Search, "run", lambda self: pytest.fail("the search was begun"))
    X, y = moons(40)
    y = y + (X[:, 0] > 0.5) if changes.keys() & {"multi_class", "intercept"} else y
    X = X @ X.T if "precomputed" in changes.values() else X
    with pytest.raises(ValueError, match=message):
        SVC(solver=search, **changes).fit(X, y)


def test_several_labels_and_two_rows_are_refused():
    X, y = moons(40)
    with pytest.raises(ValueError, match="found Multilabel"):
        SVC(solver=Compact()).fit(X, np.stack([y, 1 - y], axis=1))
    with pytest.raises(ValueError, match="holds out a fifth of the rows and needs at least 3, found 2"):
        SVC(solver=Compact()).fit(X[:2], [0, 1])
    assert SVC(solver=Compact(), random_state=0).fit(X[:3], [0, 1, 0]).n_basis_ >= 1


@pytest.mark.parametrize(("stage", "n_stages"), [("reference", 1), ("vectors", 2)])
def test_a_search_cut_short_returns_the_exact_model_of_its_rows(stage, n_stages):
    X, y = moons(600)
    seen = []

    def stop(record):
        seen.append(record)
        return stage in record["stage"]

    problem = Problem(as_rows(X), Binary().encode(y), Binary(), RBF(1.0), C=10.0, random_state=0)
    fit = Compact().solve(problem, callbacks=(stop,))
    assert fit.status is Status.STOPPED
    assert len({record["stage"] for record in seen}) == n_stages
    np.testing.assert_allclose(fit.model.basis, X[fit.basis_rows])
    loss = np.maximum(0, 1 - np.where(y > 0, 1, -1) * fit.model.scores(X)[:, 0]).sum()
    norm = fit.model.norm_squared() + fit.model.intercept @ fit.model.intercept
    assert fit.objective == pytest.approx(0.5 * norm + 10 * loss, rel=1e-6)
    assert fit.lower_bound is None or fit.lower_bound <= fit.objective


def test_time_runs_out():
    X, y = moons()
    with pytest.warns(ConvergenceWarning, match="time limit"):
        clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, max_seconds=1e-3).fit(X, y)
    assert clf.status_ == "time limit"
    assert np.isfinite(clf.decision_function(X)).all()


@pytest.mark.parametrize("place", ["step", "between"])
def test_an_interrupted_search_returns_the_exact_model_of_its_rows_and_warns(monkeypatch, place):
    X, y = moons(600)

    def press_ctrl_c(*args):
        raise KeyboardInterrupt

    if place == "step":
        monkeypatch.setattr("slimsvm.solvers.learned.refine.RefineRun.step", press_ctrl_c)
    else:
        monkeypatch.setattr(compact.Compact, "learner", press_ctrl_c)
    with pytest.warns(ConvergenceWarning, match=r"ended early \(interrupted\): the exact SVM of 480 of the rows"):
        clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(X, y)
    assert clf.status_ == "interrupted"
    assert stages(clf) == ["reference"]
    assert clf.lower_bound_ <= clf.objective_
    assert clf.score(X, y) > 0.9


def test_a_warm_start_goes_on_from_the_vectors_there_are():
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0, warm_start=True).fit(X, y)
    before = clf.n_basis_
    clf.set_params(C=12.0).fit(X, y)
    assert clf.n_basis_ >= before
    other = SVC(C=10.0, gamma=1.0, solver=ExactCuts(), warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="Compact can only be warm-started from a Compact fit, found CutsState"):
        other.set_params(solver=Compact()).fit(X, y)


def test_a_price_is_validated_with_a_metric_where_one_is_learned():
    X, y = moons(600)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(len(X), 6))])
    learned = {"C": "validate", "kernel": RBF(0.3), "gamma": "learn", "random_state": 0}
    clf = SVC(solver=Compact(), **learned).fit(X, y)
    capped = SVC(solver="refine", max_basis=100, **learned).fit(X, y)
    errors = [[trial["error"] for trial in each.validation_] for each in (clf, capped)]
    assert errors[0] == errors[1]
    assert clf.C_ == capped.C_


def test_a_price_is_validated_with_the_exact_svm():
    X, y = moons(400)
    clf = SVC(C="validate", gamma=1.0, solver=Compact(), random_state=0).fit(X, y)
    exact = SVC(C="validate", gamma=1.0, solver="exact", random_state=0).fit(X, y)
    assert [(trial["C"], trial["error"]) for trial in clf.validation_] == [
        (trial["C"], trial["error"]) for trial in exact.validation_
    ]


# -- the rules ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_exact", "sizes"),
    [
        (1, [1, 1]),
        (72, [5, 8]),
        (504, [36, 56]),
        (2800, [25, 100, 200, 311]),
        (70_000, [25, 100, 400, 1600, 5000, 7777]),
    ],
)
def test_sizes(n_exact, sizes):
    assert sizes_for(n_exact) == sizes


def test_parts_are_disjoint_and_of_the_same_shares():
    labels = np.repeat([0, 1, 2], [1000, 100, 10])
    training, held = parts(labels, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(np.concatenate([training, held])), np.arange(1110))
    np.testing.assert_array_equal(np.bincount(labels[held]), [200, 20, 2])
    training, held = parts(np.arange(1_000_000), np.random.default_rng(0))
    assert len(held) == 20_000


def problem_of(task, labels):
    examples = task.encode(labels)
    return Problem(as_rows(np.zeros((len(labels), 1))), examples, task, RBF(1.0)), examples


@pytest.mark.parametrize(
    ("share", "error", "expected"),
    [(0.3, 0.1, 0.003), (0.3, 0.006, 0.0015), (0.3, 0.001, 0.0005), (0.03, 0.01, 0.001), (0.1, 0.2, 0.0)],
)
def test_slack_of_classes(share, error, expected):
    labels = np.where(np.arange(1000) < 1000 * share, 1, -1)
    assert slack(error, *problem_of(Binary(), labels)) == pytest.approx(expected)


def test_slack_of_regression():
    problem, examples = problem_of(Regression(0.0), np.array([0.0, 1.0, 2.0]))
    assert slack(0.1, problem, examples) == pytest.approx(0.01 * 0.1)
    assert slack(0.6, problem, examples) == pytest.approx(0.05 * (2 / 3 - 0.6))
    assert slack(0.7, problem, examples) == 0.0


def test_when_there_is_no_hope():
    def trials(*excess):
        return [Trial(100 * 4**i, 0.1 + e) for i, e in enumerate(excess)]

    assert not hopeless([], 0.1, 0.005, 7000)
    assert not hopeless(trials(0.09), 0.1, 0.005, 7000)
    assert hopeless(trials(0.09, 0.055), 0.1, 0.005, 7000)
    assert not hopeless(trials(0.01, 0.005), 0.1, 0.005, 7000)
    assert hopeless(trials(0.01, 0.011), 0.1, 0.005, 7000)
    assert not hopeless(trials(0.004, 0.0045), 0.1, 0.005, 7000)
    assert not hopeless([Trial(0, 0.2), Trial(25, 0.15)], 0.1, 0.005, 7000)


def test_the_last_size_but_one_is_passed_over_where_little_is_expected_of_it(monkeypatch):
    X, y = moons(600)
    asked = set()

    def is_hopeless(trials, least, most, size):
        asked.add((most, size))
        return most < 0.25 and size == 4

    monkeypatch.setattr(compact, "hopeless", is_hopeless)
    monkeypatch.setattr(compact, "sizes_for", lambda n_exact: [2, 3, 4, 6])
    monkeypatch.setattr(compact, "slack", lambda *args: 0.125)
    monkeypatch.setattr(compact._Search, "_error", lambda search, model: 0.5 if model.n_basis <= 6 else 0.1)
    clf = SVC(C=10.0, gamma=1.0, solver=Compact(), random_state=0).fit(X, y)
    assert stages(clf) == ["reference", "2 vectors", "3 vectors", "6 vectors", "exact"]
    assert asked == {(0.125 * compact.HOPELESS, 6), (0.125 * compact.UNLIKELY, 4)}


@pytest.mark.parametrize("solver", [Compact(), Compact(learn_metric=True)], ids=repr)
def test_the_largest_sizes_are_tried_at_twice_the_price_too(monkeypatch, solver):
    """Vectors that only do with coefficients for 2C; what is said of the model is at C."""
    monkeypatch.setattr(compact, "sizes_for", lambda n_exact: [2, 8, 12])
    monkeypatch.setattr(compact, "slack", lambda *args: 0.125)
    errors = iter([0.1, 0.5, 0.4, 0.2])
    monkeypatch.setattr(compact._Search, "_error", lambda search, model: next(errors))
    X, y = moons(600)
    clf = SVC(C=10.0, gamma=1.0, solver=solver, random_state=0).fit(X, y)
    assert stages(clf) == ["reference", "2 vectors", "8 vectors", "coefficients"]
    assert [r["held_out_error"] for r in clf.history_ if "held_out_error" in r] == [0.1, 0.5, 0.4, 0.2]
    assert clf.history_[-1]["search"].endswith("2 vectors 0.5, 8 vectors (at 2 C) 0.2")
    last = [record for record in clf.history_ if record["stage"] == "coefficients"]
    assert all(record["objective"] is None for record in last)
    assert clf.objective_ == pytest.approx(clf.certificate(X, y, max_seconds=0.1).objective, rel=1e-5)
    assert clf.counters_["bound_in_basis"] is None
    basis, kernel = clf.basis_vectors_, clf.model_.kernel
    vectors = KernelExpansion(basis, np.zeros((8, 1)), np.zeros(1), np.zeros(0), kernel, "float32")
    problem = Problem(as_rows(X), Binary().encode(2 * y - 1), Binary(), kernel, C=20.0, intercept="free")
    losses = np.maximum(0.0, 1.0 - (2 * y - 1) * clf.decision_function(X))
    at_twice = 0.5 * clf.model_.norm_squared() + 20.0 * losses.sum()
    assert at_twice == pytest.approx(LowRank(8).solve(problem, LowRankState(vectors, None)).objective, rel=2e-3)


@pytest.mark.parametrize(
    ("solver", "rows", "rate"),
    [
        (Compact(), np.zeros((2, 200)), 0.4),
        (Compact(), np.zeros((2, 199)), 0.1),
        (Compact(), sp.csr_array((2, 200)), 0.1),
        (Compact(learn_metric=True), np.zeros((2, 200)), 0.1),
    ],
    ids=["wide", "narrow", "sparse", "metric"],
)
def test_many_vectors_of_wide_rows_are_learned_in_larger_steps(solver, rows, rate):
    assert solver.learner(784, as_rows(rows)).rate == pytest.approx(rate)
    assert solver.learner(49, as_rows(rows)).rate == 0.1


def test_a_file_keeps_the_solver(tmp_path):
    solver = slimsvm.Compact(learn_metric=True)
    SVC(solver=solver, gamma=1.0).fit(*moons(300)).save(tmp_path / "model.slim")
    assert repr(slimsvm.load(tmp_path / "model.slim").solver) == repr(solver) == "Compact(learn_metric=True)"
