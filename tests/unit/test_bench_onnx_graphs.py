"""The benchmark of ONNX graphs."""

import json
from types import SimpleNamespace

import pytest

from benchmarks import onnx_graphs
from benchmarks.command_line import main
from slimsvm.datasets import checkerboard

pytest.importorskip("onnxruntime")


def test_both_score_the_same_model(tmp_path, monkeypatch):
    X, y = checkerboard(600, side=2, random_state=0)
    data = SimpleNamespace(X_train=X[:300], y_train=y[:300], X_test=X[300:], y_test=y[300:])
    monkeypatch.setattr(onnx_graphs, "load", lambda name: data)
    monkeypatch.setitem(onnx_graphs.MODELS, "adult, C = 1", ("adult", {"C": 1.0, "gamma": 2.0}))
    argv = ["onnx", "--models", "adult, C = 1", "--vectors", "20", "--runs", "2", "--output", str(tmp_path)]
    assert main(argv) == 0
    (line,) = json.loads((tmp_path / "onnx.json").read_text())["table"]
    assert (line["features"], line["vectors"], line["numbers"]) == (2, 20, "float32")
    assert 0 < float(line["error"]) < 5e-6
    assert 0 < float(line["SVMClassifier_error"]) < 1e-5
