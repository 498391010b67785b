"""Additive kernels of every family, with groups, shares and a product, in every form that models are shipped in."""

import json

import numpy as np
import pytest

import slimsvm
from deploy.test_c_header import needs_compiler, run_header
from deploy.test_json_model import row_scores
from runtime_for_tests import Model, built_library, library
from slimsvm.deploy.plain_model import read_plain_model
from slimsvm.kernels import Additive

KERNELS = [
    Additive(0.1),
    Additive(0.2, "laplacian", [1, 3, 1]),
    Additive(np.linspace(0.05, 0.4, 5), "matern32", [2, 1, 2], [1.0, 0.0, 3.0], 0.3),
    Additive(np.linspace(0.05, 0.4, 5), "laplacian", shares=[1, 2, 3, 4, 5], interaction=0.5),
    Additive(0.1, "rational_quadratic", interaction=1.0),
]


@pytest.fixture(params=KERNELS, ids=lambda kernel: f"{kernel.family}-{kernel.interaction}")
def fitted(request, tmp_path):
    """An estimator, its file, rows that float32 holds, and their scores."""
    X = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32).astype(np.float64)
    y = np.argmax(X[:, :3], axis=1)
    model = slimsvm.SVC(kernel=request.param).fit(X[:70], y[:70])
    model.save(tmp_path / "model.slim")
    return model, X, model.decision_function(X), model.predict(X)


def assert_near(found, expected, share):
    np.testing.assert_allclose(found, expected, rtol=0, atol=share * np.abs(expected).max())


def test_python_without_training_code(fitted, tmp_path):
    _, X, scores, labels = fitted
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    assert_near(predictor.decision_function(X), scores, 1e-12)
    np.testing.assert_array_equal(predictor.predict(X), labels)


def test_json(fitted, tmp_path):
    model, X, _, _ = fitted
    model.to_json(tmp_path / "model.json")
    parts = json.loads((tmp_path / "model.json").read_text())
    pairs = read_plain_model(tmp_path / "model.slim").scores(X)
    assert_near([row_scores(parts, x) for x in X.tolist()], pairs, 1e-12)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_c_header(fitted, dtype, tmp_path):
    model, X, _, labels = fitted
    model.to_c(tmp_path / "model.h", dtype=dtype)
    lines = run_header(tmp_path, X, "classes", dtype == "float64")
    pairs = read_plain_model(tmp_path / "model.slim").scores(X)
    assert_near(np.array([line[:-1] for line in lines], float), pairs, {"float32": 5e-6, "float64": 1e-12}[dtype])
    np.testing.assert_array_equal([float(line[-1]) for line in lines], labels)


def test_onnx(fitted, tmp_path):
    pytest.importorskip("onnxruntime")
    from deploy.test_onnx import run

    model, X, scores, labels = fitted
    model.to_onnx(tmp_path / "model.onnx")
    found = run(tmp_path / "model.onnx", X)
    np.testing.assert_array_equal(found["prediction"], labels)
    assert_near(found["scores"], scores, 5e-6)


def test_the_c_runtime(fitted, tmp_path):
    _, X, scores, labels = fitted
    with Model(library(built_library()), tmp_path / "model.slim") as model:
        assert_near(model.scores(X), scores, 1e-12)
        np.testing.assert_array_equal(np.ravel(model.predict(X)), labels)
