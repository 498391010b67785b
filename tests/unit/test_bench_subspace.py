import json
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.sparse import csr_array
from sklearn.svm import SVC as SklearnSVC

from bench_cases import Spy, small_set
from benchmarks.command_line import main
from benchmarks.shared import methods
from benchmarks.shared.trials import Problem, Session, describe, measure
from benchmarks.subspace import command, experiments, sized_methods
from benchmarks.subspace.experiments import EXPERIMENTS, SETTINGS, Scope, chosen, quick, why_no_larger
from benchmarks.subspace.sized_methods import AUTOMATIC, EXACT, FULL_SIZE, METRIC, SIZED, suits
from benchmarks.subspace.tables import all_tables
from slimsvm.datasets import DataError, checkerboard
from slimsvm.kernels import RBF


def problem(sparse=False, n=300):
    X, y = checkerboard(n, random_state=0)
    X_test, y_test = checkerboard(100, random_state=1)
    rows = (csr_array(X), csr_array(X_test)) if sparse else (X, X_test)
    return Problem("board", rows[0], y, rows[1], y_test, C=1.0, gamma=10.0, intercept="regularized")


# -- methods --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIZED)
def test_methods_keep_to_their_number_of_vectors(name):
    board = problem()
    method = SIZED[name](7)
    found = measure(method, board, 0, None)
    assert method.settings["max_basis"] == 7
    assert 1 <= found["n_vectors"] <= 7
    assert found["predict_us"] > 0
    assert found["kernel_evals"] > 0
    if name == "learned-metric":
        return
    clf = method.make(board, 0, None).fit(board.X_train, board.y_train)
    hinge = np.maximum(0, 1 - board.y_train * clf.decision_function(board.X_train)).sum()
    norm_squared = clf.model_.norm_squared() + clf.intercept_[0] ** 2
    assert found["objective"] == pytest.approx(0.5 * norm_squared + hinge, rel=1e-4)
    assert found["test_error"] == np.mean(clf.predict(board.X_test) != board.y_test)


def test_two_stages_refine_what_the_first_found(monkeypatch):
    board, made = problem(), []

    def spied(solver, problem, seed, max_seconds):
        made.append((solver, max_seconds))
        return usual(solver, problem, seed, max_seconds)

    usual = methods.make_svc
    monkeypatch.setattr(methods, "make_svc", spied)
    found = measure(SIZED["cpsp-refine"](5), board, 0, 30.0)
    (first, half), (second, left) = made
    assert (type(first).__name__, type(second).__name__) == ("CPSP", "Refine")
    assert half == 15.0
    assert 15.0 < left < 30.0
    assert second.initial.n_basis <= 5
    alone = measure(SIZED["cpsp"](5), board, 0, 30.0)
    assert found["objective"] < alone["objective"]
    assert found["kernel_evals"] > alone["kernel_evals"]


def test_models_of_full_size():
    board = problem()
    found = measure(sized_methods.exact(), board, 0, None)
    clf = SklearnSVC(C=1.0, gamma=10.0).fit(board.X_train, board.y_train)
    assert (found["n_vectors"], found["test_error"]) == (
        len(clf.support_),
        np.mean(clf.predict(board.X_test) != board.y_test),
    )
    assert found["predict_us"] > 0
    linear = measure(sized_methods.linear(), board, 0, None)
    assert linear["test_error"] > found["test_error"]
    assert sized_methods.linear().settings["max_basis"] is None


@pytest.mark.parametrize("name", ["lasvm", "cvm", "bvm"])
def test_vectors_that_are_rows_have_the_memory_they_need(name):
    method = FULL_SIZE[name]()
    assert method.make(problem(), 0, None).memory_limit == 8000
    assert measure(method, problem(), 0, 5.0)["test_error"] < 0.3


def test_sparse_rows_have_the_same_exact_svm_and_no_learned_metric():
    dense, sparse = (measure(sized_methods.exact(), problem(form), 0, None) for form in (False, True))
    assert sparse["objective"] == pytest.approx(dense["objective"], rel=1e-9)
    assert sparse["test_error"] == dense["test_error"]
    assert suits(SIZED["learned-metric"](5), problem(sparse=True)).missing == "needs dense rows"
    assert suits(SIZED["learned-metric"](5), problem()).missing is None
    assert suits(SIZED["learned"](5), problem(sparse=True)).missing is None


# -- experiments ----------------------------------------------------------------------------------------------------


@pytest.fixture
def small_sets(monkeypatch):
    monkeypatch.setattr(experiments, "load", small_set)
    for cache in (experiments._load, experiments.benchmark_set, experiments.prepared):
        cache.cache_clear()
    yield
    for cache in (experiments._load, experiments.benchmark_set, experiments.prepared):
        cache.cache_clear()


@pytest.mark.parametrize(
    ("name", "step", "keep"),
    [
        ("cpsp-paper", "full", "last"),
        ("cpsp-paper-tr", "full", "last"),
        ("cpsp-paper-line", "line-search", "best"),
    ],
)
def test_the_papers_method_ends_by_its_own_rule_and_keeps_the_last_iterate(name, step, keep):
    clf = SIZED[name](15).make(problem(), 0, None)
    assert (clf.solver.step, clf.solver.keep, clf.tol) == (step, keep, 0.01)
    assert (clf.solver.fill_basis, clf.solver.tol_relative, clf.solver.vectors_per_cut) == (False, None, 1)


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("name", [*SIZED, "lasvm", "cvm", "bvm"])
def test_methods_have_no_intercept(name):
    board = experiments.benchmark_set("adult", None, 1000)
    method = SIZED[name](7) if name in SIZED else FULL_SIZE[name]()
    clf = method.make(board, 0, None).fit(board.X_train, board.y_train)
    assert clf.intercept_.tolist() == [0.0]
    assert describe("sizes", method, board, 0)["intercept"] == "none"


@pytest.fixture
def asked(monkeypatch):
    """Names and sizes of the methods whose C and γ were chosen; C comes out as 3, γ as a thousandth of the size."""
    names = []

    def chosen(problem, method=None):
        names.append((method.name, method.settings["max_basis"]))
        return replace(problem, C=3.0, gamma=method.settings["max_basis"] / 1000), []

    monkeypatch.setattr(experiments, "chosen", chosen)
    return names


@pytest.mark.usefixtures("small_sets")
def test_C_is_chosen_for_each_method_and_size(asked):
    scope = Scope(sets=("OCR0",), methods=("nystrom", "cpsp"), beside=(), sizes=(5, 10), fixed=True, choose_each=True)
    found = [entry for entry in EXPERIMENTS["sizes"](scope, Spy()) if entry["methods"]]
    assert asked == [("Nyström", 5), ("CPSP", 5), ("Nyström", 10), ("CPSP", 10)]
    assert [entry["methods"] for entry in found] == [["Nyström"], ["CPSP"]] * 2
    assert all(entry["problem"].C == 3.0 for entry in found)


@pytest.mark.usefixtures("small_sets")
def test_C_that_a_run_has_is_not_chosen_again(asked):
    scope = Scope(sets=("OCR0",), methods=("nystrom",), beside=("exact",), sizes=(5, 10), fixed=True, choose_each=True)
    first = EXPERIMENTS["sizes"](scope, Session(seeds=1, max_seconds=5.0))
    again = EXPERIMENTS["sizes"](scope, Session(seeds=2, max_seconds=5.0, known=first))
    assert asked == [("Nyström", 5), ("Nyström", 10)]
    nystrom = [record for record in again if record["method"] == "Nyström"]
    assert [(record["max_basis"], record["seed"], record["gamma"]) for record in nystrom] == [
        (5, 0, 0.005), (5, 1, 0.005), (10, 0, 0.01), (10, 1, 0.01),
    ]  # fmt: skip
    assert [record for record in again if record["seed"] == 0] == first


def test_no_larger_size_is_tried_after_one_that_met_the_time_limit():
    def fit(**given):
        return {"method": "CPSP", "seed": 0, "max_basis": 500, "test_error": 0.2, "status": "converged", **given}

    records = [fit(method=EXACT, max_basis=None, test_error=0.1), fit(), fit(seed=1, status="time limit")]
    assert why_no_larger("CPSP", records) is None
    records.append(fit(max_basis=1000, status="time limit"))
    assert why_no_larger("CPSP", records) == "1,000 met the time limit"
    assert why_no_larger("Nyström", records) is None


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize(("target", "ran"), [(1.0, [10, 20]), (-1.0, [10, 20, 30, 40])])
def test_sizes_above_the_usual_ones_run_where_no_smaller_one_came_near(asked, monkeypatch, target, ran):
    monkeypatch.setattr(experiments, "LARGEST_USUAL", 20)
    monkeypatch.setattr(experiments, "TARGET", target)
    scope = Scope(("OCR0",), ("nystrom",), ("exact",), sizes=(10, 20, 30, 40), fixed=True, choose_each=True)
    records = EXPERIMENTS["sizes"](scope, Session(seeds=1, max_seconds=5.0))[1:]
    assert [record["max_basis"] for record in records if "seconds" in record] == ran
    assert {record["gamma"] for record in records if record["max_basis"] > 20 and "seconds" in record} <= {0.02}
    assert asked == [("Nyström", 10), ("Nyström", 20)]
    left_out = [record for record in records if "skipped" in record]
    assert [record["max_basis"] for record in left_out] == [k for k in scope.sizes if k not in ran]
    assert {record["skipped"] for record in left_out} <= {
        "more than 20 vectors: 10 come within 100 points of the exact SVM"
    }


@pytest.mark.usefixtures("small_sets")
def test_sizes_run_every_method_at_every_size():
    found = EXPERIMENTS["sizes"](Scope(sets=("OCR0", "CCAT"), sizes=(20, 10, 5000), fixed=True), Spy())
    assert [entry["problem"].data for entry in found] == ["CCAT"] * 23 + ["OCR0"] * 23
    assert found[0]["methods"] == [
        EXACT, "scikit-learn-intelex SVC", "LASVM", "CVM", "BVM", AUTOMATIC, METRIC, "linear SVM",
    ]  # fmt: skip
    assert [entry["methods"][0] for entry in found[1:12]] == [
        "CPSP",
        "CPSP (paper's)",
        "CPSP (paper's, line search)",
        "CPSP (training rows)",
        "CPSP (paper's, training rows)",
        "CPSP + refinement",
        "learned",
        "learned with metric",
        "Nyström",
        "k-means",
        "incomplete Cholesky",
    ]
    assert {(entry["problem"].C, entry["problem"].gamma) for entry in found} == {(10.0, 1.0), (10.0, 0.02)}
    assert {entry["problem"].intercept for entry in found} == {"none"}
    rows = found[0]["problem"].X_train
    assert (rows.indices.dtype, rows.indptr.dtype) == (np.int32, np.int32)


@pytest.mark.usefixtures("small_sets")
def test_pieces_of_it_can_be_asked_for():
    found = EXPERIMENTS["sizes"](Scope(sets=("OCR0",), methods=(), beside=("exact",), sizes=(10,), fixed=True), Spy())
    assert [entry["methods"] for entry in found] == [[EXACT]]


def test_a_search_with_a_metric_of_its_own():
    board, method = problem(), FULL_SIZE["automatic-metric"]()
    assert measure(method, board, 0, 30.0)["test_error"] < 0.3
    assert method.name == METRIC
    assert method.settings["own_kernel"] is True
    clf = method.make(board, 0, 30.0)
    assert (clf.solver, clf.gamma, clf.kernel) == ("auto", "learn", RBF(board.gamma))
    assert suits(method, problem(sparse=True)).missing == "needs dense rows"


@pytest.mark.usefixtures("small_sets")
def test_growth_takes_the_first_rows():
    scope = Scope(sets=("adult",), methods=("cpsp",), growth_rows=(40, 100, 200, 1000), growth_basis=40, fixed=True)
    found = EXPERIMENTS["growth"](scope, Spy())
    assert [entry["problem"].n_train for entry in found] == [100, 200]
    assert found[0]["methods"] == ["CPSP", EXACT]
    np.testing.assert_array_equal(found[0]["problem"].X_train, found[1]["problem"].X_train[:100])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_settings_are_those_that_do_best_on_the_validation_part(sparse, monkeypatch):
    board = problem(sparse)
    monkeypatch.setattr(experiments, "C_GRID", (0.1, 10.0))
    monkeypatch.setattr(experiments, "GAMMA_GRID", (0.25, 16.0))
    best, tried = chosen(board)
    X, y = checkerboard(300, random_state=0)
    scale = 1 / (2 * X.var())
    errors = {
        (C, factor): 1 - SklearnSVC(C=C, gamma=factor * scale).fit(X[:150], y[:150]).score(X[150:], y[150:])
        for C in (0.1, 10.0)
        for factor in (0.25, 16.0)
    }
    assert [entry["error"] for entry in tried] == pytest.approx(list(errors.values()))
    C, factor = min(errors, key=errors.get)
    assert (best.C, best.gamma) == (C, pytest.approx(factor * scale))
    assert best.n_train == 300


def test_scopes():
    assert set(SETTINGS) == {"adult", "ijcnn1", "OCR0", "OCR*", "CCAT", "cod-rna", "covtype"}
    assert Scope().sizes == (10, 20, 50, 100, 200, 500, 1000, 2000, 3000, 4000, 5000)
    small = quick(Scope())
    assert (small.sizes, small.max_n, small.growth_basis) == ((10, 20, 50, 100), 5000, 50)
    assert quick(Scope(sizes=(200,), max_n=7)).sizes == (200,)
    assert quick(Scope(max_n=7)).max_n == 7


def test_missing_data_are_said_to_be_missing(monkeypatch):
    def load(name):
        raise DataError(f"{name}: nowhere")

    monkeypatch.setattr(experiments, "load", load)
    for cache in (experiments._load, experiments.benchmark_set, experiments.prepared):
        cache.cache_clear()
    heard = []
    assert EXPERIMENTS["sizes"](Scope(sets=("OCR*",)), Session(hear=heard.append)) == []
    assert [(entry["data"], entry["skipped"]) for entry in heard] == [("OCR*", "mnist-04: nowhere")]
    assert "| sizes | OCR* | – | mnist-04: nowhere |" in all_tables(heard)["Left out"]


# -- the command ------------------------------------------------------------------------------------------------------


def bench(folder, *more):
    sizes = ["--sets", "adult", "--sizes", "5", "--seeds", "1", "--max-seconds", "5", "--fixed"]
    return main(["subspace", "--output", str(folder), *sizes, *more])


@pytest.mark.usefixtures("small_sets")
def test_command_runs_appends_and_redraws(tmp_path, capsys, monkeypatch):
    assert bench(tmp_path, "--parts", "sizes", "--methods", "cpsp", "nystrom") == 0
    shown = capsys.readouterr()
    assert "sizes, adult, n = 200, C = 32: CPSP, k = 5, seed 0:" in shown.err
    first = json.loads((tmp_path / "subspace.json").read_text())
    assert [entry["method"] for entry in first["records"] if "seconds" in entry][-3:] == [
        "linear SVM",
        "CPSP",
        "Nyström",
    ]
    assert first["runs"][0]["options"]["fixed"] is True
    assert first["records"][-1]["objective_multiple"] > 1
    assert (tmp_path / "subspace-figure-1.png").stat().st_size > 5000
    assert "## Models of full size" in (tmp_path / "subspace.md").read_text()

    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: path.write_bytes(b"drawn again"))
    assert bench(tmp_path, "--append", "--parts", "sizes", "--beside", "exact", "--methods", "cholesky") == 0
    results = json.loads((tmp_path / "subspace.json").read_text())
    n = len(first["records"])
    assert results["records"][:n] == first["records"]
    assert [entry["method"] for entry in results["records"][n:]] == [EXACT, "incomplete Cholesky"]
    assert len(results["runs"]) == 2
    (tmp_path / "subspace.md").unlink()
    assert bench(tmp_path, "--redraw") == 0
    assert json.loads((tmp_path / "subspace.json").read_text())["records"] == results["records"]
    assert (tmp_path / "subspace.md").exists()


@pytest.mark.usefixtures("small_sets")
def test_one_run_of_everything_comes_before_second_runs(tmp_path):
    argv = ["--parts", "sizes", "--methods", "cpsp", "nystrom", "--beside", "exact", "--seeds", "2"]
    assert bench(tmp_path, *argv) == 0
    records = json.loads((tmp_path / "subspace.json").read_text())["records"]
    assert [(record["method"], record["seed"]) for record in records] == [
        (EXACT, 0), ("CPSP", 0), ("Nyström", 0), ("CPSP", 1), ("Nyström", 1),
    ]  # fmt: skip


@pytest.mark.usefixtures("small_sets")
def test_a_run_that_ended_early_goes_on(tmp_path):
    argv = ["--parts", "sizes", "--methods", "cpsp", "nystrom", "--beside", "exact"]
    assert bench(tmp_path, *argv) == 0
    path = tmp_path / "subspace.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "records": whole["records"][:-1]}))
    assert bench(tmp_path, *argv, "--resume") == 0
    records = json.loads(path.read_text())["records"]
    assert records[:-1] == whole["records"][:-1]
    assert (records[-1]["method"], records[-1]["max_basis"]) == ("Nyström", 5)


def test_quick_and_limits_reach_the_experiments(tmp_path, monkeypatch):
    heard = {"seeds": []}

    def run_experiments(parts, scope, session):
        heard.update(parts=parts, scope=scope, max_seconds=session.max_seconds)
        heard["seeds"].append(session.seeds)
        return []

    monkeypatch.setattr(command, "run_experiments", run_experiments)
    assert main(["subspace", "--output", str(tmp_path), "--quick", "--svc-max-n", "9"]) == 0
    assert heard["scope"] == quick(Scope(svc_max_n=9))
    assert (heard["seeds"], heard["max_seconds"]) == ([1], 20.0)
    heard["seeds"].clear()
    assert main(["subspace", "--output", str(tmp_path), "--max-seconds", "none", "--parts", "growth"]) == 0
    assert (heard["scope"], heard["seeds"], heard["max_seconds"]) == (Scope(), [1, None], None)
    assert heard["parts"] == ["growth"]


def test_redraw_of_what_is_not_there(tmp_path, capsys):
    assert bench(tmp_path, "--redraw") == 1
    assert "there is no such file, and --redraw needs the records in it" in capsys.readouterr().err
