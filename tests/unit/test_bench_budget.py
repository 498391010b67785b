import json

import numpy as np
import pytest

from slimsvm import BSCA, SVC
from slimsvm.cli import bench_budget, main


def test_bench_budget_measures_and_draws(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench_budget, "read", lambda name, quick: small())
    argv = ["bench", "budget", "--quick", "--output", str(tmp_path), "--n-jobs", "1"]
    assert main(argv) == 0
    result = json.loads((tmp_path / "budget.json").read_text())
    assert [(r["method"], r["max_basis"], r["seed"]) for r in result["records"]] == [
        (method, 50, seed) for method in ("bsca", "bsgd") for seed in (0, 1)
    ]
    for record in result["records"]:
        assert 0 < record["test_error"] < 0.3
        assert record["n_vectors"] <= 50
        seconds = [point["seconds"] for point in record["curve"]]
        assert len(seconds) == 5
        assert seconds == sorted(seconds)
        assert (record["curve"][0]["dual"] is None) == (record["method"] == "bsgd")
    row = result["table"][0]
    errors = [100 * record["test_error"] for record in result["records"][:2]]
    assert row["finished %"] == pytest.approx(np.mean(errors), abs=0.006)
    assert row["seconds"] > 0
    assert (tmp_path / "budget-checkerboard.png").stat().st_size > 0
    assert "finished %" in capsys.readouterr().out


def small():
    return (*bench_budget.checkerboard(700, random_state=0), *bench_budget.checkerboard(400, random_state=1))


def test_curves_go_on_from_epoch_to_epoch():
    """A curve's epochs are those of one fit: the dual variables and the model are kept, the rows' order is not."""
    data, setting = small(), bench_budget.SETS["checkerboard"]
    points = bench_budget.curve(BSCA(300), setting, data, 0, 1, 6)
    assert points[-1]["dual"] > points[0]["dual"]
    orders = {point["degradation"] for point in points}
    assert len(orders) == 6
    solver = BSCA(300, epochs=1, finish=False)
    fit = SVC(
        C=setting.C, gamma=setting.gamma, solver=solver, intercept="none", precision="float32",
        random_state=np.random.default_rng(0),
    ).fit(data[0], data[1])  # fmt: skip
    assert points[0]["test_error"] == pytest.approx(1 - fit.score(data[2], data[3]))


def test_settings_are_the_papers():
    for name, accuracy in (("susy", 79.79), ("covtype", 75.88)):
        assert bench_budget.SETS[name].exact == pytest.approx(100 - accuracy)
    assert (bench_budget.SETS["ijcnn1"].C, bench_budget.SETS["ijcnn1"].gamma) == (32, 2)
