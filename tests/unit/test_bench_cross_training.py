import json
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.command_line import main
from benchmarks.cross_training import command
from benchmarks.cross_training.compared_solvers import COMPARATORS
from slimsvm.datasets import checkerboard, two_gaussians


def test_quick_measures_and_draws(tmp_path, capsys):
    argv = ["cross-training", "--quick", "--output", str(tmp_path), "--n-jobs", "1", "--sizes", "200", "800"]
    assert main(argv) == 0
    result = json.loads((tmp_path / "cross-training.json").read_text())
    records = result["records"]
    assert [r["n"] for r in records if r["part"] == "gaussians"] == [200] * 5 + [800] * 5
    assert [r["method"] for r in records[:5]] == ["exact", "default", "paper", "bagging", "ramp"]
    by_overlap = [r for r in records if r["part"] == "overlap" and r["method"] == "exact"]
    assert [r["overlap"] for r in by_overlap] == [0.0, 0.2, 0.6]
    bounded = [r["n_bounded"] for r in by_overlap]
    assert bounded == sorted(bounded)
    assert bounded[0] < 0.2 * bounded[-1]
    growth = {row["method"]: row for row in result["growth"]}
    assert growth["exact"]["growth"] == records_of(records, 800, "exact") / records_of(records, 200, "exact") > 3
    assert records_of(records, 800, "paper") < 0.4 * records_of(records, 800, "exact")
    for name in ("overlap", "gaussians"):
        assert (tmp_path / f"cross-training-{name}.png").stat().st_size > 0
    assert "at bound" in capsys.readouterr().out


def records_of(records, n, method):
    return next(r["n_vectors"] for r in records if (r["n"], r["method"]) == (n, method))


def small(seed):
    X, y = checkerboard(400, side=2, random_state=seed)
    X_test, y_test = checkerboard(300, side=2, random_state=seed + 1)
    return SimpleNamespace(X_train=X, y_train=y, X_test=X_test, y_test=y_test)


def test_noise_and_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "load", lambda name: small(0))
    argv = ["cross-training", "--parts", "noise", "sets", "--noise", "0", "0.1", "--sizes", "100", "300"]
    methods = ["--methods", "exact", "default", "paper"]
    assert main([*argv, *methods, "--output", str(tmp_path), "--n-jobs", "1"]) == 0
    records = json.loads((tmp_path / "cross-training.json").read_text())["records"]
    noise = [r for r in records if r["part"] == "noise"]
    assert {(r["noise"], r["n"]) for r in noise} == {(0.0, 100), (0.0, 300), (0.1, 100), (0.1, 300)}
    for record in noise:
        assert (record["test_error"] == record["clean_error"]) == (record["noise"] == 0)
    names = [r["data"] for r in records if r["part"] == "sets" and r["method"] == "exact"]
    assert names == ["banana", "waveform", "splice", "adult-3185", "adult"]
    assert all((r["p_value"] is None) == (r["method"] == "exact") for r in records)
    for name in ("noise", "size"):
        assert (tmp_path / f"cross-training-{name}.png").stat().st_size > 0


def test_comparators_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "load", lambda name: small(0))
    argv = ["cross-training", "--parts", "comparators", "--rows", "60", "--output", str(tmp_path)]
    for name in ("ijcnn1", "adult"):
        assert main([*argv, "--sets", name, "--append", "--n-jobs", "1"]) == 0
    records = json.loads((tmp_path / "cross-training.json").read_text())["records"]
    assert [(r["data"], r["method"]) for r in records] == [
        (name, method) for name in ("ijcnn1", "adult") for method in COMPARATORS
    ]
    by_method = {r["method"]: r for r in records if r["data"] == "adult"}
    for name in ("CVM", "BVM"):
        assert by_method[name]["own_lower_bound"] <= by_method[name]["own_objective"]
    for name in ("LASVM", "learned 100"):
        assert by_method["exact"]["objective"] <= by_method[name]["objective"] * (1 + 1e-6)
    assert all(r["n"] == 60 and r["status"] for r in records)


def test_what_was_measured_is_there_when_a_run_is_cut_short(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "load", lambda name: small(0))
    wanted = command.make

    def until_the_second(part, method, *rest):
        if method == "default":
            raise KeyboardInterrupt
        return wanted(part, method, *rest)

    monkeypatch.setattr(command, "make", until_the_second)
    argv = [
        "cross-training",
        "--parts",
        "sets",
        "--sets",
        "banana",
        "--n-jobs",
        "1",
        "--output",
        str(tmp_path),
    ]
    assert main(argv) != 0
    records = json.loads((tmp_path / "cross-training.json").read_text())["records"]
    assert [r["method"] for r in records] == ["exact"]


def test_mcnemar():
    one, other = np.zeros(100, bool), np.zeros(100, bool)
    assert command.mcnemar(one, other) == 1.0
    one[:10] = True
    assert command.mcnemar(one, other) == pytest.approx(2 * 0.5**10)
    other[10:20] = True
    assert command.mcnemar(one, other) == 1.0


def test_the_gaussians_are_the_papers():
    """Means (1, 1, 1, 1, 1, 0, …) and its negative are 2√5 apart; with variance 4 that is √5 in deviations."""
    X, y = two_gaussians(20_000, 10, 5**0.5, random_state=0)
    error = np.mean((X.sum(axis=1) > 0) != (y > 0))
    assert error == pytest.approx(0.132, abs=0.01)
