import argparse
import json

import numpy as np
import pytest

from benchmarks.budget import command
from benchmarks.command_line import main
from slimsvm import BSCA, SVC


def test_bench_budget_measures_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "read", lambda name, quick: small())
    argv = ["budget", "--quick", "--output", str(tmp_path), "--n-jobs", "1"]
    assert main(argv) == 0
    result = json.loads((tmp_path / "budget.json").read_text())
    assert [(r["method"], r["max_basis"], r["seed"]) for r in result["records"]] == [
        (method, 50, seed) for method in ("bsca", "bsgd", "our-bsca", "our-bsgd") for seed in (0, 1)
    ]
    for record in result["records"]:
        assert 0 < record["test_error"] < 0.3
        assert record["n_vectors"] <= 50
        seconds = [point["seconds"] for point in record["curve"]]
        assert len(seconds) == 5
        assert seconds == sorted(seconds)
        assert (record["curve"][0]["dual"] is None) == record["method"].endswith("bsgd")
        assert np.isfinite(record["curve"][0]["dual_of_model"])
    for record in result["no_budget"]:
        assert len(record["curve"]) == 5
    for record in result["lemma_2"]:
        assert (record["rows"], record["epochs"]) == (300, 150)
        assert record["observed"] == pytest.approx(record["limit"], rel=0.1)
    comparison = result["acceptance"][0]
    last = [[p["test_error"] for p in r["curve"]] for r in result["records"] if r["method"] == "bsgd"]
    assert comparison["mean of BSGD's last epochs %"] == pytest.approx(100 * np.mean(last), abs=0.006)
    assert [row["data"] for row in result["table_1"]] == ["checkerboard"]
    row = result["table"][0]
    errors = [100 * record["test_error"] for record in result["records"][:2]]
    assert row["finished %"] == pytest.approx(np.mean(errors), abs=0.006)
    assert row["seconds"] > 0
    assert (tmp_path / "budget-checkerboard.png").stat().st_size > 0
    assert "finished %" in capsys.readouterr().out


def small():
    return (*command.checkerboard(700, random_state=0), *command.checkerboard(400, random_state=1))


def test_the_exact_svm_is_a_line_of_table_1():
    X, y, X_test, y_test = small()
    record = command.exact_svm(command.SETS["checkerboard"], (X, y, X_test, y_test), 1)
    alpha = np.abs(SVC(C=1.0, gamma=10.0, solver="exact", intercept="none", tol=1e-6).fit(X, y).dual_coef_)
    assert record["limits"]["bsca"] == pytest.approx(np.mean(alpha < 1 - 1e-9) * alpha.size / len(y), abs=0.01)
    assert record["limits"]["bsgd"] == pytest.approx(alpha.sum() / len(y), rel=0.01)
    row = command.table_1(["checkerboard"], [{"data": "checkerboard", **record}])[0]
    assert (row["n"], row["features"], row["source"]) == (700, 2, "this run")
    assert row["accuracy %"] == pytest.approx(100 - 100 * record["test_error"], abs=0.006)


def test_curves_go_on_from_epoch_to_epoch():
    """A curve's epochs are those of one fit: the dual variables and the model are kept, the rows' order is not."""
    data, setting = small(), command.SETS["checkerboard"]
    points = command.curve(BSCA(300), setting, data, 0, 1, 6)
    assert points[-1]["dual"] > points[0]["dual"]
    orders = {point["degradation"] for point in points}
    assert len(orders) == 6
    solver = BSCA(300, epochs=1, finish=False)
    fit = SVC(
        C=setting.C, gamma=setting.gamma, solver=solver, intercept="none", precision="float32",
        random_state=np.random.default_rng(0),
    ).fit(data[0], data[1])  # fmt: skip
    assert points[0]["test_error"] == pytest.approx(1 - fit.score(data[2], data[3]))


def test_methods_are_the_papers_and_ours_as_the_options_have_it():
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(["--no-two-signs", "--damping", "2", "--no-average", "--selection", "adaptive"])
    paper, ours = (command.solver_of(name, 50, args) for name in ("bsca", "our-bsca"))
    assert (paper.damping, paper.average, paper.selection) == (0.0, False, "uniform")
    assert (ours.damping, ours.average, ours.selection) == (2.0, False, "adaptive")
    assert not paper.maintenance.two_signs
    assert not ours.maintenance.two_signs
    usual = command.solver_of("our-bsgd", 50, parser.parse_args([]))
    assert usual.maintenance.two_signs
    assert usual.average
    assert not command.solver_of("bsgd", 50, parser.parse_args([])).average
    assert command.solver_of("our-bsgd", 50, parser.parse_args(["--rule", "remove"])).maintenance.name == "remove"


def test_settings_are_the_papers():
    for name, accuracy in (("susy", 79.79), ("covtype", 75.88)):
        assert command.SETS[name].exact == pytest.approx(100 - accuracy)
    assert (command.SETS["ijcnn1"].C, command.SETS["ijcnn1"].gamma) == (32, 2)
