from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import SVC as SklearnSVC

from bench_cases import Spy, small_set
from benchmarks.sampled_cuts import experiments
from benchmarks.sampled_cuts.experiments import EXPERIMENTS, Scope, board, quick, run_experiments
from benchmarks.sampled_cuts.tables import all_tables
from benchmarks.shared import methods, trials
from benchmarks.shared.results import progress
from benchmarks.shared.trials import Method, Session, error, hinge_objective, measure
from slimsvm import SVC, UniformCuts
from slimsvm.datasets import DataError, checkerboard


@pytest.fixture(scope="module")
def problem():
    return board(300)


# -- trials ---------------------------------------------------------------------------------------------------------


def test_errors_of_our_fits_are_those_of_predict(problem):
    method = methods.violated(50, paper=False)
    found = measure(method, problem, 0, None)
    clf = method.make(problem, 0, None).fit(problem.X_train, problem.y_train)
    assert clf.intercept == "none"
    assert found["test_error"] == np.mean(clf.predict(problem.X_test) != problem.y_test)
    assert found["train_error"] == np.mean(clf.predict(problem.X_train) != problem.y_train)
    assert found["n_vectors"] == clf.n_basis_
    assert found["kernel_evals"] == clf.n_kernel_evals_
    assert found["objective"] == clf.objective_
    assert 0 < found["qp_seconds"] < found["seconds"]


def test_errors_and_objective_of_svc_are_its_own(problem):
    method = methods.svc()
    found = measure(method, problem, 0, None)
    clf = SklearnSVC(C=1.0, gamma=20.0).fit(problem.X_train, problem.y_train)
    np.testing.assert_allclose(
        methods.svc_scores(clf, problem, problem.X_test), clf.decision_function(problem.X_test), atol=1e-10
    )
    assert found["test_error"] == np.mean(clf.predict(problem.X_test) != problem.y_test)
    assert found["n_vectors"] == len(clf.support_)
    squares = ((clf.support_vectors_[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2)
    norm_squared = (clf.dual_coef_ @ np.exp(-20.0 * squares) @ clf.dual_coef_.T).item()
    hinge = np.maximum(0, 1 - problem.y_train * clf.decision_function(problem.X_train)).sum()
    assert found["objective"] == pytest.approx(0.5 * norm_squared + hinge, rel=1e-9)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_objective_of_uniform_cuts_is_what_the_solver_would_compute(problem, intercept):
    clf = SVC(C=1.0, gamma=20.0, intercept=intercept, solver=UniformCuts(50), precision="float32", random_state=3)
    clf.fit(problem.X_train, problem.y_train)
    found = measure(methods.uniform(50), replace(problem, intercept=intercept), 3, None)
    assert found["objective"] == pytest.approx(clf.objective_, rel=1e-5)


def test_a_score_of_zero_is_negative():
    assert error(np.array([0.0, 0.0, 2.0, -1.0]), np.array([-1, -1, 1, 1])) == 0.25


def test_hinge_objective(problem):
    scores = problem.y_train * 0.25
    assert hinge_objective(problem, scores, 8.0) == pytest.approx(4.0 + 300 * 0.75)


def test_the_cholesky_baseline_is_spanned_by_random_rows(problem):
    method = methods.cholesky(20)
    clf = method.make(problem, 1, None).fit(problem.X_train, problem.y_train)
    rows = {row.tobytes() for row in problem.X_train}
    assert all(row.tobytes() in rows for row in clf.basis_vectors_)
    assert clf.intercept == "none"
    found = measure(method, problem, 1, None)
    assert found["n_vectors"] == clf.n_basis_ <= 20
    best = measure(methods.exact(), problem, 0, None)["objective"]
    assert best < found["objective"] < measure(methods.cholesky(5), problem, 1, None)["objective"]


def counted(name, **options):
    """A method that notes its fits and takes no time."""
    fits = []

    def make(problem, seed, max_seconds):
        fits.append((problem.n_train, seed, max_seconds))
        return SimpleNamespace(fit=lambda X, y: None)

    method = Method(
        name, make, lambda clf, problem, X: np.ones(len(X)), lambda clf, problem, scores: {"n_vectors": 7}, **options
    )
    return method, fits


def test_every_seed_of_methods_that_have_one(problem):
    seeded, seeded_fits = counted("seeded")
    fixed, fixed_fits = counted("fixed", seeded=False, settings={"intercept": "free"})
    heard = []
    session = Session(seeds=3, max_seconds=9.0, hear=heard.append)
    records = session.compare("scaling", [seeded, fixed], problem)
    assert records == heard
    assert [(record["method"], record["seed"]) for record in records] == [
        ("seeded", 0),
        ("seeded", 1),
        ("seeded", 2),
        ("fixed", 0),
    ]
    assert [record["intercept"] for record in records] == ["none", "none", "none", "free"]
    assert {record["n_vectors"] for record in records} == {7}
    assert seeded_fits[0][:2] == (300, 0)  # the fit that is not timed
    assert seeded_fits[1:] == [(300, seed, 9.0) for seed in range(3)]
    assert len(fixed_fits) == 2
    session.compare("fixed-c1", [seeded], problem)
    assert len(seeded_fits) == 1 + 3 + 3


def test_what_cannot_run_says_why(problem):
    capped, fits = counted("capped", capped=True)
    missing, _ = counted("missing", missing="not installed")
    records = Session().compare("scaling", [capped, missing], replace(problem, svc_max_n=299))
    assert [record["skipped"] for record in records] == ["left out above 299 rows", "not installed"]
    assert fits == []
    assert "seconds" not in records[0]


@pytest.mark.parametrize(("seconds", "runs"), [(599.0, 5), (600.0, 3), (3599.0, 3), (3600.0, 1)])
def test_dear_methods_run_less_often(seconds, runs, problem, monkeypatch):
    monkeypatch.setattr(trials, "measure", lambda *args: {"seconds": seconds})
    seeded, fixed = counted("seeded")[0], counted("fixed", seeded=False)[0]
    records = Session(seeds=None).compare("scaling", [seeded, fixed], problem)
    assert [record["method"] for record in records] == ["seeded"] * runs + ["fixed"]
    monkeypatch.setattr(trials, "measure", lambda *args: {"seconds": seconds, "status": "time limit"})
    assert len(Session(seeds=None).compare("scaling", [seeded], problem)) == 1


def test_a_method_without_a_limit_is_left_out_where_its_growth_says_more_than_an_hour(problem, monkeypatch):
    """At n^2 from 1 s at 10 rows: 100 s at 100 rows, 2,500 at 500, 10,000 at 1,000."""
    monkeypatch.setattr(trials, "measure", lambda method, problem, *rest: {"seconds": 0.01 * problem.n_train**2})
    capped, _ = counted("capped", capped=True, seeded=False)
    session = Session()
    large = board(1000)
    told = [session.compare("scaling", [capped], large.head(n))[0].get("skipped") for n in (10, 100, 500, 1000)]
    assert told == [None, None, None, "167 minutes expected by its growth so far"]


def test_what_a_run_has_is_not_run_again(problem):
    method, fits = counted("seeded")
    heard = []
    first = Session(seeds=2, hear=heard.append).compare("scaling", [method], problem)
    n_fits = len(fits)
    again = Session(seeds=2, hear=heard.append, known=first[:1])
    assert again.compare("scaling", [method], problem)[0] is first[0]
    assert [fit[1] for fit in fits[n_fits:] if fit[1]] == [1]  # the second seed alone
    assert len(heard) == 3


def test_the_papers_steps_and_ours(problem):
    def made(method, of=problem):
        return method.make(of, 5, 60.0)

    paper = made(methods.violated(1000, paper=True)).solver
    assert (paper.sample_size, paper.step, paper.tol_relative, paper.max_idle) == (1000, "full", None, 20)
    assert (paper.constant, paper.keep) == ("all", "last")
    ours = made(methods.violated(400, paper=False)).solver
    assert (ours.sample_size, ours.step, ours.tol_relative) == (400, "line-search", 0.01)
    uniform = made(methods.uniform(400)).solver
    assert (uniform.sample_size, uniform.patience, uniform.final_objective) == (400, 4, False)
    clf = made(methods.exact())
    assert (clf.tol, clf.random_state, clf.max_seconds, clf.precision) == (0.001, 5, 60.0, "float32")
    assert made(methods.exact(), board(2001)).precision == "auto"


# -- experiments ----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_sets(monkeypatch):
    monkeypatch.setattr(experiments, "load", small_set)
    experiments._load.cache_clear()
    yield
    experiments._load.cache_clear()


def settings(found):
    return [
        (entry["problem"].data, entry["problem"].n_train, entry["problem"].C, entry["problem"].gamma) for entry in found
    ]


def test_scaling_has_the_papers_settings(small_sets):
    found = EXPERIMENTS["scaling"](Scope(sizes=(100,), max_n=200), Spy())
    boards = [("checkerboard", 100, 1.0, 20.0), ("checkerboard", 200, 1.0, 20.0)]
    forests = [("covtype", 100, 1.0, 1 / 1.7), ("covtype", 200, 1.0, 1 / 1.7)]
    assert settings(found) == 3 * boards + 3 * forests
    assert found[0]["methods"] == [
        "uniform r=400, paper's steps",
        "uniform r=1000, paper's steps",
        "violated r=400, paper's steps",
        "violated r=1000, paper's steps",
        "Cholesky(250)",
    ]
    assert found[2]["methods"] == ["violated r=400", "violated r=1000", "exact", "decomposition"]
    assert found[4]["methods"] == ["scikit-learn SVC"]
    found = found[:2] + found[6:8]
    assert found[3]["methods"][4:6] == ["Cholesky(250)", "Cholesky(500)"]
    assert {entry["problem"].intercept for entry in found} == {"none"}
    small, large = found[2]["problem"], found[3]["problem"]
    np.testing.assert_array_equal(small.X_train, large.X_train[:100])
    assert not np.array_equal(large.X_train, checkerboard(200, random_state=0)[0])


def test_fixed_c1_and_sample_sizes(small_sets):
    found = EXPERIMENTS["fixed-c1"](Scope(sizes=(1000,), max_n=2000), Spy())
    assert [C * n for _, n, C, _ in settings(found)] == [1e4, 1e4]
    found = EXPERIMENTS["sample-size"](Scope(sample_sizes=(10, 400), C_values=(0.5, 2.0)), Spy())
    both = [("adult", 200, 0.5, 1 / 20), ("adult", 200, 2.0, 1 / 20)]
    assert settings(found) == [*both, *both, both[0]]
    assert found[0]["methods"][3:] == ["decomposition", "scikit-learn SVC", "exact"]
    assert found[4]["methods"] == ["Cholesky(250)", "Cholesky(500)", "Cholesky(5000)", "Cholesky(10000)"]
    cuts = ["uniform r={}, paper's steps", "violated r={}, paper's steps", "violated r={}"]
    assert found[0]["methods"][:3] == [name.format(400) for name in cuts]
    assert found[2]["methods"] == [name.format(10) for name in cuts]
    np.testing.assert_array_equal(found[0]["problem"].X_test, checkerboard(200, random_state=0)[0])  # all rows
    assert quick(Scope()).ranks == {"checkerboard": (250,), "covtype": (250, 500), "adult": (250, 500)}


@pytest.mark.parametrize(
    ("method", "n_vectors"), [(methods.decomposition(), None), (methods.learned(5), 5)], ids=["all", "5"]
)
def test_solvers_that_are_not_cuts_are_measured_alike(problem, method, n_vectors):
    found = measure(method, problem, 0, None)
    clf = method.make(problem, 0, None).fit(problem.X_train, problem.y_train)
    assert found["test_error"] == np.mean(clf.predict(problem.X_test) != problem.y_test)
    assert found["n_vectors"] == (n_vectors or clf.n_basis_)
    assert (found["lower_bound"] is None) == (n_vectors is not None)


def test_scope_chooses_sets_parts_and_sizes(small_sets):
    found = run_experiments(["sample-size", "scaling"], Scope(sets=("adult",), C_values=(1.0,)), Spy())
    assert {entry["problem"].data for entry in found} == {"adult"}
    assert Scope().sizes_up_to(100_000) == (1_000, 3_000, 10_000, 30_000, 100_000)
    assert Scope().sizes_up_to(411_746)[-2:] == (300_000, 411_746)
    assert Scope(max_n=20_000).sizes_up_to(10**6) == (1_000, 3_000, 10_000, 20_000)
    assert Scope(max_n=300).sizes_up_to(10**6) == (300,)
    assert quick(Scope()).max_n == 10_000
    assert quick(Scope(max_n=50)).max_n == 50


def test_missing_data_are_said_to_be_missing(monkeypatch):
    def load(name):
        raise DataError(f"{name}: nowhere")

    monkeypatch.setattr(experiments, "load", load)
    experiments._load.cache_clear()
    heard = []
    scope = Scope(sets=("covtype", "adult"), sizes=(), C_values=(1.0,))
    records = run_experiments(["scaling", "sample-size"], scope, Session(hear=heard.append))
    assert records == heard
    assert [(record["data"], record["skipped"]) for record in records] == [
        ("covtype", "covtype-457k: nowhere"),
        ("adult", "adult: nowhere"),
    ]
    assert progress(records[1]) == "sample-size, adult: adult: nowhere"
    assert "| sample-size | adult | – | – | adult: nowhere |" in all_tables(records)["Left out"]
