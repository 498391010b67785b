"""The benchmark of headers in fixed point."""

import json
from types import SimpleNamespace

from benchmarks import fixed_point
from benchmarks.command_line import main
from slimsvm.datasets import checkerboard


def test_both_errors_have_a_column(tmp_path, monkeypatch):
    X, y = checkerboard(600, side=2, random_state=0)
    data = SimpleNamespace(X_train=X[:300], y_train=y[:300], X_test=X[300:], y_test=y[300:])
    monkeypatch.setattr(fixed_point, "load", lambda name: data)
    monkeypatch.setitem(fixed_point.SETS, "adult", {"C": 10.0, "gamma": 2.0})
    assert main(["fixed-point", "--sets", "adult", "--vectors", "20", "--output", str(tmp_path)]) == 0
    (line,) = json.loads((tmp_path / "fixed-point.json").read_text())["table"]
    assert (line["set"], line["test_rows"]) == ("adult", 300)
    assert 0 < line["error"] < 30
    assert abs(line["error"] - line["error_int16"]) <= 100 * line["other_predictions"] / 300 + 1e-3
    assert 0 < float(line["score_error"]) < 0.01
