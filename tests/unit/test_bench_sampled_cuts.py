import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.svm import SVC as SklearnSVC
from threadpoolctl import threadpool_limits

from slimsvm import SVC, UniformCuts
from slimsvm.cli import bench_sampled_cuts, main
from slimsvm.cli.benching import methods, sampled_cuts, sampled_cuts_figures
from slimsvm.cli.benching.results import progress
from slimsvm.cli.benching.sampled_cuts import EXPERIMENTS, Scope, board, quick, run_experiments
from slimsvm.cli.benching.sampled_cuts_tables import all_tables, growth, overview
from slimsvm.cli.benching.tables import latest, slope, summarise
from slimsvm.cli.benching.trials import Method, Session, add_gaps, error, hinge_objective, measure
from slimsvm.datasets import DataError, checkerboard


def record(**given):
    usual = dict(
        run=0, part="scaling", data="checkerboard", n_train=1000, n_test=10, n_features=2, C=1.0, gamma=10.0,
        intercept="none", method="exact", seed=0, oracle="exact", sample_size=None, steps="ours", status="converged",
        seconds=1.0, cpu_seconds=2.0, load=0.0, train_error=0.01, test_error=0.05, iterations=10, kernel_evals=1e6,
        n_vectors=50, objective=100.0, lower_bound=None, qp_seconds=0.1, gap=None,
    )  # fmt: skip
    return {**usual, **given}


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
    clf = SklearnSVC(C=1.0, gamma=10.0).fit(problem.X_train, problem.y_train)
    np.testing.assert_allclose(
        methods.svc_scores(clf, problem, problem.X_test), clf.decision_function(problem.X_test), atol=1e-10
    )
    assert found["test_error"] == np.mean(clf.predict(problem.X_test) != problem.y_test)
    assert found["n_vectors"] == len(clf.support_)
    squares = ((clf.support_vectors_[:, None] - clf.support_vectors_[None]) ** 2).sum(axis=2)
    norm_squared = (clf.dual_coef_ @ np.exp(-10.0 * squares) @ clf.dual_coef_.T).item()
    hinge = np.maximum(0, 1 - problem.y_train * clf.decision_function(problem.X_train)).sum()
    assert found["objective"] == pytest.approx(0.5 * norm_squared + hinge, rel=1e-9)


@pytest.mark.parametrize("intercept", ["none", "regularized"])
def test_objective_of_uniform_cuts_is_what_the_solver_would_compute(problem, intercept):
    clf = SVC(C=1.0, gamma=10.0, intercept=intercept, solver=UniformCuts(50), precision="float32", random_state=3)
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
    session.compare("peers", [seeded], problem)
    assert len(seeded_fits) == 1 + 3 + 3


def test_what_cannot_run_says_why(problem):
    capped, fits = counted("capped", capped=True)
    missing, _ = counted("missing", missing="not installed")
    scope = Scope(svc_max_n=299)
    records = Session().compare("scaling", [capped, missing], scope.limited(problem))
    assert [record["skipped"] for record in records] == ["left out above 299 rows", "not installed"]
    assert fits == []
    assert "seconds" not in records[0]


def test_gaps_are_to_the_best_bound_of_the_same_problem():
    records = [
        record(objective=102.0, lower_bound=98.0),
        record(objective=110.0, lower_bound=99.0, seed=1),
        record(objective=120.0, method="violated"),
        record(objective=90.0, intercept="free", method="scikit-learn SVC"),
        record(objective=120.0, run=1),
        record(objective=None, method="trees"),
    ]
    add_gaps(records)
    assert [record["gap"] for record in records] == [
        pytest.approx(3 / 102),
        pytest.approx(11 / 110),
        pytest.approx(21 / 120),
        None,
        None,
        None,
    ]


def test_the_papers_steps_and_ours(problem):
    def made(method, of=problem):
        return method.make(of, 5, 60.0)

    paper = made(methods.violated(1000, paper=True)).solver
    assert (paper.sample_size, paper.step, paper.tol_relative, paper.max_idle) == (1000, "full", None, 20)
    ours = made(methods.violated(400, paper=False)).solver
    assert (ours.sample_size, ours.step, ours.tol_relative) == (400, "line-search", 0.01)
    uniform = made(methods.uniform(400)).solver
    assert (uniform.sample_size, uniform.patience, uniform.final_objective) == (400, 4, False)
    clf = made(methods.exact())
    assert (clf.tol, clf.random_state, clf.max_seconds, clf.precision) == (0.001, 5, 60.0, "float32")
    assert made(methods.exact(), board(2001)).precision == "auto"


# -- experiments ----------------------------------------------------------------------------------------------------


class Spy(Session):
    """Notes what would have been compared."""

    def compare(self, part, compared, problem):
        return [{"part": part, "methods": [method.name for method in compared], "problem": problem}]


@pytest.fixture
def small_sets(monkeypatch):
    """Every benchmark set with 200 rows of a checkerboard."""

    def load(name):
        X, y = checkerboard(200, random_state=0)
        return SimpleNamespace(X_train=X, y_train=y, X_test=X[:50], y_test=y[:50])

    monkeypatch.setattr(sampled_cuts, "load", load)
    sampled_cuts._load.cache_clear()
    yield
    sampled_cuts._load.cache_clear()


def settings(found):
    return [
        (entry["problem"].data, entry["problem"].n_train, entry["problem"].C, entry["problem"].gamma) for entry in found
    ]


def test_scaling_has_the_papers_settings(small_sets):
    found = EXPERIMENTS["scaling"](Scope(sizes=(100, 200)), Spy())
    assert settings(found) == [
        ("checkerboard", 100, 1.0, 10.0),
        ("checkerboard", 200, 1.0, 10.0),
        ("covtype", 100, 1.0, 1 / 3.4),
        ("covtype", 200, 1.0, 1 / 3.4),
    ]
    assert found[0]["methods"] == [
        "uniform r=400, paper's steps",
        "uniform r=1000, paper's steps",
        "violated r=400, paper's steps",
        "violated r=1000, paper's steps",
        "Cholesky(250)",
        "violated r=400",
        "violated r=1000",
        "exact",
        "scikit-learn SVC",
    ]
    assert found[3]["methods"][4:6] == ["Cholesky(250)", "Cholesky(500)"]
    assert {entry["problem"].intercept for entry in found} == {"none"}
    small, large = found[2]["problem"], found[3]["problem"]
    np.testing.assert_array_equal(small.X_train, large.X_train[:100])
    assert not np.array_equal(large.X_train, checkerboard(200, random_state=0)[0])


def test_fixed_c1_and_sample_sizes(small_sets):
    found = EXPERIMENTS["fixed-c1"](Scope(sizes=(1000, 2000)), Spy())
    assert [C * n for _, n, C, _ in settings(found)] == [1e4, 1e4]
    found = EXPERIMENTS["sample-size"](Scope(sample_sizes=(10, 20), C_values=(0.5, 2.0)), Spy())
    assert settings(found) == [("adult", 200, 0.5, 1 / 40), ("adult", 200, 2.0, 1 / 40)]
    baselines = ["Cholesky(250)", "Cholesky(500)", "Cholesky(5000)", "Cholesky(10000)"]
    assert found[0]["methods"][6:] == [*baselines, "exact", "scikit-learn SVC"]
    assert quick(Scope()).ranks == {"checkerboard": (250,), "covtype": (250, 500), "adult": (250, 500)}


def test_peers_have_an_intercept_and_the_settings_of_the_tables(small_sets):
    found = EXPERIMENTS["peers"](Scope(max_n=150), Spy())
    assert settings(found) == [
        ("adult", 150, 32.0, 2**-7),
        ("ijcnn1", 150, 32.0, 2.0),
        ("cod-rna", 150, 32.0, 2**-3),
        ("covtype", 150, 10.0, 8.0),
        ("checkerboard", 150, 1.0, 10.0),
    ]
    assert {entry["problem"].intercept for entry in found} == {"regularized"}
    assert [entry["problem"].svc_max_n for entry in found] == [100_000, 100_000, 100_000, 60_000, 100_000]
    assert found[0]["methods"][3:6] == ["decomposition", "learned, 100 vectors", 'solver="auto"']
    assert found[0]["methods"][6:] == ["scikit-learn SVC", "scikit-learn-intelex SVC", "100 boosted trees"]


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
    assert run_experiments(["peers", "fixed-c1"], Scope(sets=("ijcnn1",)), Spy())[0]["problem"].data == "ijcnn1"
    assert Scope().sizes_up_to(100_000) == (1_000, 3_000, 10_000, 30_000, 100_000)
    assert Scope(max_n=20_000).sizes_up_to(10**6) == (1_000, 3_000, 10_000)
    assert Scope(max_n=300).sizes_up_to(10**6) == (300,)
    assert quick(Scope()).max_n == 10_000
    assert quick(Scope(max_n=50)).max_n == 50


def test_missing_data_are_said_to_be_missing(monkeypatch):
    def load(name):
        raise DataError(f"{name}: nowhere")

    monkeypatch.setattr(sampled_cuts, "load", load)
    sampled_cuts._load.cache_clear()
    heard = []
    records = run_experiments(["peers"], Scope(sets=("adult", "cod-rna")), Session(hear=heard.append))
    assert records == heard
    assert [(record["data"], record["skipped"]) for record in records] == [
        ("adult", "adult: nowhere"),
        ("cod-rna", "cod-rna: nowhere"),
    ]
    assert progress(records[0]) == "peers, adult: adult: nowhere"
    assert "| peers | adult | – | – | adult: nowhere |" in all_tables(records)["Left out"]


# -- tables and figures: from made-up records -------------------------------------------------------------------------


def test_means_and_deviations():
    rows = summarise([
        record(seconds=1.0, gap=None),
        record(seconds=3.0, seed=1, gap=0.5, status="time limit"),
        record(method="svc", seconds=7.0),
        dict(run=0, part="scaling", data="checkerboard", n_train=9, C=1.0, gamma=10.0, method="svc", skipped="why"),
    ])  # fmt: skip
    assert [row["method"] for row in rows] == ["exact", "svc", "svc"]
    assert (rows[0]["seconds"], rows[0]["seconds_std"]) == (2.0, pytest.approx(np.sqrt(2)))
    assert (rows[0]["gap"], rows[0]["gap_std"]) == (0.5, None)
    assert (rows[0]["runs"], rows[0]["limited"]) == (2, True)
    assert (rows[1]["seconds"], rows[1]["seconds_std"], rows[1]["limited"]) == (7.0, None, False)
    assert (rows[2]["seconds"], rows[2]["runs"], rows[2]["skipped"]) == (None, 0, "why")


def test_the_last_run_counts():
    old, new = record(seconds=9.0), record(run=1, seconds=1.0)
    other = record(n_train=3000)
    assert latest([old, other, new]) == [other, new]


def test_growth_finds_the_exponents():
    assert slope([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    sizes = (1000, 10_000, 100_000)
    records = [
        record(n_train=n, seconds=1e-6 * n**1.5, iterations=n**0.5, kernel_evals=3.0 * n**1.25, C=1.0) for n in sizes
    ]
    records += [record(n_train=10**6, seconds=1.0, status="time limit"), record(data="covtype", n_train=100_000)]
    lines = growth(summarise(records)).splitlines()
    assert len(lines) == 3
    assert lines[2] == "| C | checkerboard | exact | 10,000 to 100,000 | 1.50 | 1.00 | 17.78 |"


def test_table_1_takes_the_largest_size_of_each_set():
    records = [
        record(n_train=1000, method="exact", seconds=1.0),
        record(n_train=9000, method="exact", seconds=2.0, train_error=0.0123, test_error=0.0345),
        record(n_train=9000, method="exact", seconds=3.0, train_error=0.0123, test_error=0.0345, seed=1),
        record(data="adult", part="sample-size", C=100.0, method="scikit-learn SVC", seconds=4.0),
        record(data="adult", part="sample-size", C=10.0, method="exact"),
        record(data="adult", part="sample-size", C=100.0, method="violated r=4000", sample_size=4000),
        record(data="covtype", part="peers"),
    ]
    table = all_tables(records)["Table 1: time and error at the largest size"].splitlines()
    assert table[0].startswith("| method | checkerboard (n = 9,000, C = 1): seconds | checkerboard: training error % |")
    assert table[0].count("|") == 2 + 6
    assert table[2:] == [
        "| exact | 2.5 (0.707) | 1.23 (0.00) | 3.45 (0.00) | – | – | – |",
        "| scikit-learn SVC | – | – | – | 4 | 1.00 | 5.00 |",
    ]


def test_peers_are_measured_by_svc_in_the_same_run():
    usual = dict(part="peers", data="adult", C=32.0)
    records = [
        record(**usual, method="exact", seconds=2.0, gap=0.0123),
        record(**usual, method="scikit-learn SVC", seconds=10.0, kernel_evals=None),
        record(**{**usual, "data": "covtype"}, method="exact", seconds=5.0, status="time limit"),
        {**record(**{**usual, "data": "covtype"}, method="scikit-learn SVC"), "skipped": "left out above 60,000 rows"},
        record(**{**usual, "data": "ijcnn1"}, method="exact", seconds=50.0, status="time limit"),
        record(**{**usual, "data": "ijcnn1"}, method="scikit-learn SVC", seconds=10.0),
    ]
    for name in ("seconds", "test_error"):
        records[3].pop(name)
    tables = all_tables(records)
    assert tables["Peers"].splitlines()[2:] == [
        "| adult, 1,000 × 2 | exact | 2 | 5× | 5.00 | 50 | 1e+06 | 1.2 % |",
        "| adult, 1,000 × 2 | scikit-learn SVC | 10 | 1× | 5.00 | 50 | – | – |",
        "| covtype, 1,000 × 2 | exact | > 5 | – | 5.00 | 50 | 1e+06 | – |",
        "| ijcnn1, 1,000 × 2 | exact | > 50 | < 0.2× | 5.00 | 50 | 1e+06 | – |",
        "| ijcnn1, 1,000 × 2 | scikit-learn SVC | 10 | 1× | 5.00 | 50 | 1e+06 | – |",
    ]
    assert tables["Left out"].endswith("| peers | covtype | 1,000 | scikit-learn SVC | left out above 60,000 rows |")
    assert "Fixed C₁ = 10⁴" not in tables
    assert [line["method"] for line in overview(records)] == [
        "exact",
        "scikit-learn SVC",
        "exact",
        "exact",
        "scikit-learn SVC",
    ]


def made_up_records():
    oracles = [("uniform", "paper"), ("violated", "paper"), ("violated", "ours")]
    records = [
        record(n_train=n, data=data, method=f"{oracle} {steps}", oracle=oracle, steps=steps, seed=seed)
        for n in (1000, 3000)
        for data in ("checkerboard", "covtype")
        for oracle, steps in oracles
        for seed in range(2)
    ]
    records += [
        record(part="sample-size", data="adult", C=C, sample_size=r, oracle=oracle, steps=steps)
        for r in (100, 400)
        for C in (1.0, 100.0)
        for oracle, steps in oracles
    ]
    records += [
        record(part="sample-size", data="adult", method="scikit-learn SVC", sample_size=None, kernel_evals=None)
    ]
    records += [record(part="fixed-c1", C=10.0)]
    return records


@pytest.fixture
def _no_png(monkeypatch):
    """Laying a figure out takes most of a second; the command's test does it."""
    monkeypatch.setattr(Figure, "savefig", lambda *args, **options: None)


@pytest.mark.usefixtures("_no_png")
def test_every_figure_is_drawn(tmp_path):
    paths = sampled_cuts_figures.draw_figures(made_up_records(), tmp_path)
    names = [*(f"sampled-cuts-figure-{k}.png" for k in range(1, 8)), "sampled-cuts-evaluations.png"]
    assert paths == [tmp_path / name for name in names]
    assert sampled_cuts_figures.draw_figures([], tmp_path) == []


@pytest.mark.usefixtures("_no_png")
def test_figures_show_what_finished(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        sampled_cuts_figures, "plot_means", lambda found, x, y, by, scale, ax: drawn.append((found, x, y, by, scale))
    )
    unfinished = record(n_train=9000, status="time limit")
    skipped = dict(part="scaling", data="checkerboard", n_train=1, method="svc", skipped="why")
    sampled_cuts_figures.draw_figures([*made_up_records(), unfinished, skipped], tmp_path)
    assert [entry[1:] for entry in drawn[:2]] == [("n_train", "seconds", "method", 1.0)] * 2
    assert {entry["data"] for entry in drawn[0][0]} == {"checkerboard"}
    assert max(entry["n_train"] for entry in drawn[0][0]) == 3000
    figure_7 = [entry for entry in drawn if entry[1:3] == ("sample_size", "test_error")]
    assert [{(entry["oracle"], entry["steps"]) for entry in found} for found, *_ in figure_7] == [
        {("uniform", "paper")},
        {("violated", "paper")},
        {("violated", "ours")},
    ]
    assert {entry["C"] for entry in figure_7[0][0]} == {"C = 1", "C = 100"}
    assert all(entry[4] == 100.0 for entry in figure_7)


# -- the command ------------------------------------------------------------------------------------------------------


def bench(folder, *more):
    sizes = ["--sets", "checkerboard", "--max-n", "300", "--seeds", "1", "--max-seconds", "0.3"]
    return main(["bench", "sampled-cuts", "--output", str(folder), *sizes, *more])


def test_command_runs_appends_and_redraws(tmp_path, capsys, monkeypatch):
    assert bench(tmp_path, "--parts", "scaling") == 0
    shown = capsys.readouterr()
    assert "scikit-learn SVC" in shown.out
    assert "scaling, checkerboard, n = 300, C = 1: exact, seed 0:" in shown.err
    first = json.loads((tmp_path / "sampled-cuts.json").read_text())
    assert len(first["records"]) == 9
    assert first["runs"][0]["options"]["seeds"] == 1
    exact = next(record for record in first["records"] if record["method"] == "exact")
    assert 0 <= exact["gap"] <= 0.01
    violated = next(record for record in first["records"] if record["method"] == "violated r=400")
    assert violated["gap"] == pytest.approx((violated["objective"] - exact["lower_bound"]) / violated["objective"])
    assert (tmp_path / "sampled-cuts-figure-1.png").stat().st_size > 5000

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.write_bytes(b"drawn again"))
    with threadpool_limits(1):
        assert bench(tmp_path, "--parts", "peers", "--append") == 0
    results = json.loads((tmp_path / "sampled-cuts.json").read_text())
    assert results["records"][:9] == first["records"]
    assert len(results["runs"]) == 2
    peers = results["records"][9:]
    assert {record["part"] for record in peers} == {"peers"}
    assert {record["run"] for record in peers} == {1}
    assert "## Peers" in (tmp_path / "sampled-cuts.md").read_text()

    (tmp_path / "sampled-cuts-figure-1.png").unlink()
    assert bench(tmp_path, "--redraw") == 0
    assert json.loads((tmp_path / "sampled-cuts.json").read_text())["records"] == results["records"]
    assert (tmp_path / "sampled-cuts-figure-1.png").exists()


def test_records_survive_a_run_that_breaks_off(tmp_path, monkeypatch):
    def break_off(parts, scope, session):
        session.hear(record())
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_sampled_cuts, "run_experiments", break_off)
    assert bench(tmp_path) == 1
    assert len(json.loads((tmp_path / "sampled-cuts.json").read_text())["records"]) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file, and --redraw needs the records in it"),
        ("{", "not JSON"),
        ('{"bench": "kernels"}', "not the results of `bench sampled-cuts`"),
    ],
)
def test_redraw_of_what_is_not_there(tmp_path, capsys, content, message):
    if content is not None:
        (tmp_path / "sampled-cuts.json").write_text(content)
    assert bench(tmp_path, "--redraw") == 1
    assert message in capsys.readouterr().err
