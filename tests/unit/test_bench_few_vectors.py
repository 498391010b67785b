"""The benchmark of README's first screen."""

import json

import numpy as np
import pytest

from benchmarks import few_vectors
from benchmarks.command_line import main
from benchmarks.report.own_tables import errors_of, vectors_of


def test_every_method_has_its_line_and_the_picture_is_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(
        few_vectors.SETS, "two classes", (lambda: few_vectors.generated(600, 5, 2), {"C": 1.0, "gamma": 0.1})
    )
    argv = ["few-vectors", "--sets", "two classes", "--sizes", "5", "10", "--seeds", "3", "--output", str(tmp_path)]
    assert main(argv) == 0
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
    for method, line in by_name.items():
        runs = line.get("runs", [line])
        assert len(runs) == (1 if method in ("SVC()", "scikit-learn SVC") else 3)
        assert line["error_percent"] == np.median([run["error_percent"] for run in runs])
        assert all(run["cpu_seconds"] >= 0 and (run["elsewhere"] or 0.0) >= 0 for run in runs)
    assert (tmp_path / "error_against_vectors_two_classes.svg").stat().st_size > 1000
    assert "SVC(max_basis=10)" in capsys.readouterr().out


@pytest.mark.parametrize(("vectors", "told"), [((126, 264, 248), "248 (126 to 264)"), ((100, 100, 100), "100")])
def test_random_rows_have_their_range(vectors, told):
    errors = (1.38, 1.0949, 1.1)
    runs = [{"error_percent": error, "vectors": n} for error, n in zip(errors, vectors)]
    line = {"error_percent": 1.1, "vectors": int(np.median(vectors))}
    assert (errors_of(line), vectors_of(line)) == ("1.10 %", str(line["vectors"]))
    assert errors_of(line | {"runs": runs}) == "1.10 % (1.09 to 1.38 %)"
    assert vectors_of(line | {"runs": runs}) == told
