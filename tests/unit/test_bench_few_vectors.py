"""The benchmark of README's first screen."""

import json

import pytest

from benchmarks import few_vectors
from benchmarks.command_line import main


def test_every_method_has_its_line_and_the_picture_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        few_vectors.SETS, "two classes", (lambda: few_vectors.generated(600, 5, 2), {"C": 1.0, "gamma": 0.1})
    )
    assert main(["few-vectors", "--sets", "two classes", "--sizes", "5", "10", "--output", str(tmp_path)]) == 0
    lines = json.loads((tmp_path / "few-vectors.json").read_text())["table"]
    by_name = {line["method"]: line for line in lines}
    assert list(by_name) == [
        "scikit-learn SVC",
        "SVC()",
        'SVC(max_basis="auto")',
        "SVC(max_basis=5)",
        "SVC(max_basis=10)",
        'SVC(gamma="learn", max_basis=5)',
        'SVC(gamma="learn", max_basis=10)',
        "boosted trees",
    ]
    assert by_name["scikit-learn SVC"]["ratio"] == 1.0
    assert by_name["SVC()"]["error_percent"] == pytest.approx(by_name["scikit-learn SVC"]["error_percent"], abs=1.0)
    assert by_name["SVC(max_basis=5)"]["vectors"] <= 5
    assert by_name["boosted trees"]["vectors"] is None
    assert (tmp_path / "error_against_vectors_two_classes.svg").stat().st_size > 1000
    assert "SVC(max_basis=10)" in capsys.readouterr().out
