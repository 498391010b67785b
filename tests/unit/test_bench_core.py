import json
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from benchmarks.command_line import main
from benchmarks.core import command, new_processes
from benchmarks.core.cases import CASES


def test_a_version_beside_itself(tmp_path, capsys):
    argv = ["core", "--old", sys.executable, "--cases", "argmax *", "--rounds", "2", "--threads", "1", "2"]
    assert main([*argv, "--output", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "core.json").read_text())
    rows, means = record["table"][:6], record["table"][6:]
    lines = [json.loads(line) for line in (tmp_path / "core.jsonl").read_text().splitlines()]
    assert [(row["case"], row["threads"]) for row in rows] == [(row["case"], row["threads"]) for row in lines]
    assert {row["case"] for row in rows} == {"argmax chain", "argmax F1", "argmax ROC area"}
    for row in rows:
        assert row["old ms"] > 0
        assert row["old/new"] == pytest.approx(row["old ms"] / row["new ms"], rel=0.02)
        assert row["values differ"] == row["objective differs"] == 0
    assert [row["case"].split(":")[0] for row in means] == ["geometric mean", "worst"] * 2
    assert means[0]["old/new"] == pytest.approx(np.exp(np.mean(np.log([row["old/new"] for row in rows[:3]]))), abs=2e-3)
    assert "geometric mean" in capsys.readouterr().out


def test_what_is_other_is_said():
    old = {"values": np.array([1.0, -4.0]), "objective": 2.0, "error": 10.0, "n_basis": 3}
    new = {"values": np.array([1.0, -3.9]), "objective": 2.2, "error": 10.2, "n_basis": 4}
    record = {"case": "scores d=2", "old/new": 0.8, "fastest": 0.85} | command.differences(old, new)
    assert record["values differ"] == 0.025
    assert record["objective differs"] == pytest.approx(0.1)
    assert record["n_basis"] == "3 -> 4"
    assert command.misses(record) == ["slower", "other values", "other objective", "other test error"]
    assert (
        command.misses(record | {"old/new": 0.95, "objective differs": 1e-4, "old error": 10.2, "case": "exact"}) == []
    )


def test_an_instruction_set_is_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
    old, new = command.environment("avx2", tmp_path, is_other=True)
    assert old["SLIMSVM_ISA"] == new["SLIMSVM_ISA"] == "avx2"
    assert ("PYTHONPATH" in old, "PYTHONPATH" in new) == (False, True)


def test_python_calls_of_a_fit_are_counted(tmp_path):
    """A step between a caller and the solver is an entry here: the checks and attributes of a fit are some 60 calls."""
    assert main(["core", "--calls", "--output", str(tmp_path)]) == 0
    total, *rows = json.loads((tmp_path / "core.json").read_text())["table"]
    assert total == {"file": f"all {len(rows)} files", "calls": sum(row["calls"] for row in rows)}
    of_estimators = {row["file"]: row["calls"] for row in rows if row["file"].startswith("estimators/")}
    assert of_estimators["estimators/svc.py"] >= 1
    assert len(of_estimators) <= 6
    assert sum(of_estimators.values()) <= 62


@pytest.mark.parametrize(
    ("argv", "message"),
    [([], "--old PYTHON says which"), (["--old", sys.executable, "--cases", "x*"], "no case is named 'x*'")],
)
def test_wrong_options(argv, message, capsys, tmp_path):
    assert main(["core", *argv, "--output", str(tmp_path)]) == 1
    assert message in capsys.readouterr().err


def test_cases_are_listed(capsys):
    assert main(["core", "--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(CASES)
    assert {"scores d=784", "exact adult CSR", "chain BCFW"} < set(CASES)


def test_imports_are_timed_in_new_processes():
    (row,) = new_processes.import_rows(partial(subprocess.run, check=True), sys.executable, 1)
    assert row["slimsvm ms"] > 0
    assert row["ratio"] == pytest.approx(row["slimsvm ms"] / row["scikit-learn ms"], abs=1e-3)
