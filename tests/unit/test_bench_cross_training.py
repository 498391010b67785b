import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_score

from benchmarks.command_line import main
from benchmarks.cross_training import experiments, measuring
from benchmarks.cross_training.compared_solvers import COMPARATORS
from benchmarks.cross_training.experiments import CASES, SETS, Case, Scope, Trial
from benchmarks.cross_training.measuring import Bench, Search, mcnemar, packed, search_C, unpacked
from benchmarks.shared.cross_trained_rows import latest, summary
from slimsvm import SVC
from slimsvm.datasets import checkerboard, two_gaussians


@pytest.fixture
def small_sets(monkeypatch):
    """Every set is 400 rows of a checkerboard."""

    def small(name):
        X, y = checkerboard(400, side=2, flip=0.1, random_state=0)
        X_test, y_test = checkerboard(300, side=2, flip=0.1, random_state=1)
        return SimpleNamespace(X_train=X, y_train=y, X_test=X_test, y_test=y_test)

    monkeypatch.setattr(experiments, "loaded", small)


def records_of(folder):
    return json.loads((folder / "cross-training.json").read_text())["records"]


def vectors_of(records, n, method):
    return next(r["n_vectors"] for r in records if (r["n_train"], r["method"]) == (n, method))


def test_quick_measures_and_draws(tmp_path, capsys):
    assert main(["cross-training", "--quick", "--output", str(tmp_path), "--sizes", "200", "800"]) == 0
    records = records_of(tmp_path)
    assert [r["n_train"] for r in records if r["part"] == "gaussians"] == [200] * 5 + [800] * 5
    assert [r["method"] for r in records[:5]] == ["exact", "paper", "default", "bagging", "ramp"]
    by_overlap = [r for r in records if r["part"] == "overlap" and r["method"] == "exact"]
    assert [r["overlap"] for r in by_overlap] == [0.0, 0.2, 0.6]
    bounded = [r["n_bounded"] for r in by_overlap]
    assert bounded == sorted(bounded)
    assert bounded[0] < 0.2 * bounded[-1]
    assert vectors_of(records, 800, "exact") > 3 * vectors_of(records, 200, "exact")
    assert vectors_of(records, 800, "paper") < 0.6 * vectors_of(records, 800, "exact")
    for name in ("overlap", "gaussians"):
        assert (tmp_path / f"cross-training-{name}.png").stat().st_size > 0
    assert "at bound" in capsys.readouterr().out


def test_noise_and_sets(tmp_path, small_sets):
    argv = ["cross-training", "--parts", "noise", "sets", "--noise", "0", "0.1", "--sizes", "100", "300"]
    assert main([*argv, "--seeds", "1", "--sets", "banana", "forest-200000", "--output", str(tmp_path)]) == 0
    records = records_of(tmp_path)
    noise = [r for r in records if r["part"] == "noise"]
    assert {(r["noise"], r["n_train"]) for r in noise} == {(0.0, 100), (0.0, 300), (0.1, 100), (0.1, 300)}
    differ = {share: [r["test_error"] != r["clean_error"] for r in noise if r["noise"] == share] for share in (0, 0.1)}
    assert not any(differ[0])
    assert any(differ[0.1])
    names = [(r["data"], r["method"]) for r in records if r["part"] == "sets"]
    assert names[:5] == [("banana", method) for method in measuring.METHODS]
    assert names[5:] == [("forest-200000", method) for method in ("exact", "paper", "default")]  # large: no others
    assert all(("p_value" in r) == (r["method"] != "exact") for r in records)
    assert all(r["commit"] and r["load"] is not None and r["cpu_seconds"] > 0 for r in records)
    for name in ("noise", "size"):
        assert (tmp_path / f"cross-training-{name}.png").stat().st_size > 0


def test_comparators_in_pieces(tmp_path, small_sets):
    argv = ["cross-training", "--parts", "comparators", "--rows", "60", "--seeds", "1", "--output", str(tmp_path)]
    for name in ("ijcnn1", "adult"):
        assert main([*argv, "--sets", name, "--append"]) == 0
    records = records_of(tmp_path)
    assert [(r["data"], r["method"]) for r in records] == [
        (name, method) for name in ("ijcnn1", "adult") for method in COMPARATORS
    ]
    by_method = {r["method"]: r for r in records if r["data"] == "adult"}
    for name in ("CVM", "BVM"):
        assert by_method[name]["own_lower_bound"] <= by_method[name]["own_objective"]
    for name in ("LASVM", "learned 100"):
        assert by_method["exact"]["objective"] <= by_method[name]["objective"] * (1 + 1e-6)
    assert all(r["n_train"] == 60 and r["status"] for r in records)


def test_a_run_that_is_cut_short_is_resumed_with_its_pairs(tmp_path, small_sets, monkeypatch):
    argv = ["cross-training", "--parts", "sets", "--sets", "banana", "--seeds", "2", "--output"]
    assert main([*argv, str(tmp_path / "whole")]) == 0
    made = measuring.measure

    def until_the_second(part, trial, method, *rest):
        if method == "paper":
            raise KeyboardInterrupt
        return made(part, trial, method, *rest)

    monkeypatch.setattr(measuring, "measure", until_the_second)
    assert main([*argv, str(tmp_path)]) != 0
    assert [r["method"] for r in records_of(tmp_path)] == ["exact"]
    monkeypatch.setattr(measuring, "measure", made)
    assert main([*argv, str(tmp_path), "--resume"]) == 0
    resumed, whole = records_of(tmp_path), records_of(tmp_path / "whole")
    same = ("method", "seed", "n_vectors", "test_error", "C", "p_value", "only_this_wrong")
    assert [[r.get(name) for name in same] for r in resumed] == [[r.get(name) for name in same] for r in whole]
    assert [r["seed"] for r in whole] == [0] * 5 + [1] * 5


# ---- what is run


def test_the_papers_recipe_is_the_papers():
    trial = CASES["sets"](Scope(sets=("forest-200000",)))[0].draw.args[0]
    assert (trial.n, trial.n_subsets, trial.subset_size) == (200_000, 8, 30_000)
    rows = np.zeros((10, 2), np.float32)
    labels = np.tile([-1, 1], 5)
    drawn = Trial(rows, labels, rows, labels, labels, {"gamma": 8.0}, None, 8, 4)
    clf = measuring.make("sets", drawn, "paper", 3, 1.0)
    told = clf.get_params()
    expected = {"variances": 1.0, "max_basis": None, "deviations": 0.0, "rejoin": False, "n_subsets": 8,
                "subset_size": 4, "second_stage": True, "balance": True, "gamma": 8.0, "n_jobs": 1}  # fmt: skip
    assert {name: told[name] for name in expected} == expected
    assert not measuring.make("sets", drawn, "bagging", 3, 1.0).second_stage


def test_table_1_has_the_papers_sizes():
    subsets = {name: (setting.n, setting.n_subsets, setting.subset_size) for name, setting in SETS.items()}
    assert subsets["banana"] == (400, 5, 200)
    assert subsets["adult"] == (32_560, 5, 6000)
    assert subsets["forest-90000"] == (90_000, 5, 18_000)
    for case in CASES["gaussians"](Scope(sizes=(1000,))):
        trial = case.draw(0)
        assert (len(trial.y), trial.n_subsets, trial.subset_size, trial.C) == (1000, 5, 200, None)


def test_the_gaussians_are_the_papers():
    """Means (1, 1, 1, 1, 1, 0, …) and its negative are 2√5 apart; with variance 4 that is √5 in deviations."""
    X, y = two_gaussians(20_000, 10, 5**0.5, random_state=0)
    error = np.mean((X.sum(axis=1) > 0) != (y > 0))
    assert error == pytest.approx(0.132, abs=0.01)


def board(n=300, C=None):
    X, y = checkerboard(n, side=2, flip=0.1, random_state=0)
    return Trial(X, y, X[:100], y[:100], y[:100], {"gamma": 2.0}, C, 5, n // 5)


def test_the_exact_machines_C_is_the_best_in_cross_validation(monkeypatch):
    trial = board()
    folds = StratifiedKFold(5, shuffle=True, random_state=7)
    scores = {
        C: cross_val_score(SVC(C=C, gamma=2.0, solver="exact", intercept="free"), trial.X, trial.y, cv=folds).mean()
        for C in (0.1, 1.0, 10.0)
    }
    found = search_C(trial, 7)
    assert max(scores, key=scores.get) == found.C
    assert found.rows == 300
    assert found.seconds > 0
    monkeypatch.setattr(measuring, "SEARCH_ROWS", 100)
    assert search_C(trial, 7).rows == 100


def test_the_search_ends_where_nothing_is_gained(monkeypatch):
    tried = []
    monkeypatch.setattr(
        measuring, "cross_val_predict", lambda clf, X, y, cv: tried.append(clf.C) or np.where(np.arange(300) < 9, -y, y)
    )
    assert search_C(board(), 0).C == 0.1  # the lowest of values that err alike
    assert tried == [0.1, 1.0, 10.0]


def test_seconds_include_the_search_and_pairs_are_counted(monkeypatch):
    monkeypatch.setattr(measuring, "search_C", lambda trial, seed: Search(10.0, 300, 50.0))
    trial = board()
    exact = measuring.measure("sets", trial, "exact", 0, None)
    assert exact["seconds"] == 50.0 + exact["fit_seconds"] > exact["cpu_seconds"]
    assert (exact["C"], exact["search_rows"]) == (10.0, 300)
    ramp = measuring.measure("sets", trial, "ramp", 0, exact)
    assert ramp["C"] == 10.0
    assert ramp["seconds"] > 50
    few = measuring.measure("sets", trial, "paper", 0, exact)
    assert few["fit_seconds"] is None
    assert few["seconds"] < 50
    more = few["only_this_wrong"] - few["only_exact_wrong"]
    assert more / 100 == pytest.approx(few["test_error"] - exact["test_error"])
    assert few["clean_p_value"] == few["p_value"]  # no label is turned round
    assert few["n_kept_wrong"] <= few["n_kept"] < 300
    assert [C for C, *_ in few["tried"]] == [0.1, 1.0, 10.0, 100.0, 1000.0][: len(few["tried"])]


def test_turned_labels_count_in_one_of_two_tests():
    trial = board()
    turned = Trial(**{**vars(trial), "clean": np.where(np.arange(100) < 20, -trial.y_test, trial.y_test)})
    wrong, wrong_of_exact = np.arange(100) < 10, np.zeros(100, bool)
    counts = measuring.beside(wrong_of_exact, wrong, turned)
    assert (counts["only_this_wrong"], counts["only_exact_wrong"]) == (10, 0)
    assert (counts["clean_only_this_wrong"], counts["clean_only_exact_wrong"]) == (0, 10)


@pytest.mark.parametrize(("seconds", "runs"), [(1.0, 5), (700.0, 3), (4000.0, 1)])
def test_seeds_by_the_cost_of_the_slowest_method(monkeypatch, seconds, runs):
    heard = []
    fits = {"exact": 0.1, "paper": seconds}
    monkeypatch.setattr(measuring, "methods_of", lambda part, case: list(fits))
    monkeypatch.setattr(measuring, "measure", lambda part, trial, method, seed, exact: {"seconds": fits[method]})
    case = Case({"data": "d", "n_train": 300}, lambda seed: board())
    bench = Bench(None, heard.append)
    assert bench.runs_of("sets", case) == 1
    for seed in range(5):
        if seed < bench.runs_of("sets", case):
            bench.compare("sets", case, seed)
    assert [record["seed"] for record in heard if record["method"] == "exact"] == list(range(runs))


# ---- what is made of records


def test_mcnemar_and_masks():
    one, other = np.zeros(100, bool), np.zeros(100, bool)
    assert mcnemar(one, other) == 1.0
    one[:10] = True
    assert mcnemar(one, other) == pytest.approx(2 * 0.5**10)
    other[10:20] = True
    assert mcnemar(one, other) == 1.0
    mask = np.random.default_rng(0).random(1003) < 0.2
    np.testing.assert_array_equal(unpacked(packed(mask), 1003), mask)


def test_the_table_has_means_deviations_and_tests_of_every_seed():
    fit = {"part": "sets", "data": "d", "n_train": 9, "method": "paper", "n_bounded": 3, "clean_error": 0.1,
           "seconds": 2.0}  # fmt: skip
    records = [
        {**fit, "seed": seed, "n_vectors": count, "test_error": error, "p_value": p}
        for seed, count, error, p in ((0, 10, 0.1, 0.04), (1, 20, 0.2, 0.06), (2, 30, 0.3, 0.01))
    ]
    (row,) = summary(records)
    assert (row["runs"], row["vectors"], row["± vectors"], row["error %"], row["± error"]) == (3, 20, 10, 20.0, 10.0)
    assert row["p < 0.05"] == "2 of 3"
    assert summary(records[:1])[0]["± vectors"] == ""


def test_the_last_of_equal_records_counts_and_earlier_ones_called_the_rows_n():
    fit = {"part": "sets", "data": "d", "method": "paper", "seed": 0}
    found = latest([{**fit, "n": 9, "n_vectors": 1}, {**fit, "n_train": 9, "n_vectors": 2}, {**fit, "n": 8}])
    assert [(record["n_train"], record.get("n_vectors")) for record in found] == [(9, 2), (8, None)]
