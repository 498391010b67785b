"""ONNX graphs: checked by onnx, and run by ONNX Runtime with the estimators' predictions."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import slimsvm
from calibrated_for_tests import NAMES, assert_agree, calibrated, some_rows, steep_models
from fixtures.make_models import CASES, MODELS, dense_queries
from kernel_cases import OF_DISTANCES, WITH_FORMULA
from slimsvm.cli import main
from slimsvm.deploy.decisions import ARRAYS, DECISIONS
from slimsvm.deploy.onnx_graph import OPSET, write_onnx
from slimsvm.deploy.onnx_numbers import (
    DOUBLE,
    EXACT_DISTANCES,
    EXACT_SUMS,
    LEAST_DIVIDED,
    SINGLE,
    numbers_for,
)
from slimsvm.deploy.plain_model import PlainModel, read_plain_model
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.kernels import RBF, Linear

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

SHIPPED = [name for name in CASES if not name.startswith(("structured", "sequence"))]


def run(path, X):
    """Outputs by name, of rows in the graph's type."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    rows = np.asarray(X, np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32)
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


@pytest.mark.parametrize("name", SHIPPED)
def test_every_model_is_the_same_in_onnx(name, tmp_path):
    queries = dense_queries(name).astype(np.float32).astype(np.float64)
    estimator, predictor = (load(MODELS / f"{name}.slim") for load in (slimsvm.load, slimsvm.load_predictor))
    estimator.to_onnx(tmp_path / "model.onnx")
    found, expected = run(tmp_path / "model.onnx", queries), predictor.predict(queries)
    assert found["prediction"].shape == expected.shape
    if hasattr(predictor, "classes_") or CASES[name].data == "outliers":
        np.testing.assert_array_equal(found["prediction"], expected)
        decision = predictor.decision_function(queries)
        assert_near(found["scores"], decision.reshape(len(queries), -1))
    else:
        assert_near(found["prediction"], expected)
    opsets = onnx.load(tmp_path / "model.onnx").opset_import
    assert [(opset.domain, opset.version) for opset in opsets] == [("", OPSET)]


@pytest.mark.parametrize("dtype", ["auto", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_probabilities(name, dtype, tmp_path):
    estimator = calibrated(name)
    slimsvm.export(estimator, tmp_path / "model.onnx", to="onnx", dtype=dtype)
    found, kind = run(tmp_path / "model.onnx", some_rows()), plain_model_of(estimator).kind
    predicted = None
    if kind in ("binary", "labels") or name == "ordinal-two":
        predicted = found["prediction"] if kind == "labels" else found["prediction"] == estimator.classes_[1]
    assert_agree(
        found["probabilities"], estimator.predict_proba(some_rows()), predicted, 1e-5 if dtype == "auto" else 1e-9
    )
    empty = run(tmp_path / "model.onnx", some_rows()[:0])
    assert empty["probabilities"].shape == (0, found["probabilities"].shape[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_scores_from_tiny_to_huge(dtype, tmp_path):
    """Two classes, and differences of classes."""
    values = np.logspace(-30, 30, 121)
    X = np.concatenate([-values[::-1], [0.0], values]).astype(np.float32).astype(float)[:, None]
    for model in steep_models():
        write_onnx(model, tmp_path / "model.onnx", dtype)
        expected = DECISIONS[model.kind](model, ARRAYS).probabilities(model.scores(X))
        found = run(tmp_path / "model.onnx", X)["probabilities"]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 if dtype == "float32" else 1e-8)


@pytest.mark.turns("n")
@pytest.mark.parametrize("kernel", [*OF_DISTANCES, "additive"])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_any_number_of_rows(kernel, n, tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    estimator = slimsvm.SVC(kernel=kernel, gamma=np.arange(1.0, 6.0) / 10).fit(X, X[:, 0] * X[:, 1] > 0)
    estimator.to_onnx(tmp_path / "model.onnx")
    rows = np.resize(X, (n, 5)).astype(np.float64)
    found = run(tmp_path / "model.onnx", rows)
    assert found["prediction"].shape == (n,)
    largest = np.abs(estimator.decision_function(X.astype(np.float64))).max()
    expected = estimator.decision_function(rows) if n else np.zeros(0)
    np.testing.assert_allclose(found["scores"][:, 0], expected, rtol=0, atol=5e-6 * largest)


@pytest.mark.parametrize("kernel", WITH_FORMULA)
def test_a_constant_has_no_vectors(kernel, tmp_path):
    X = np.arange(10.0)[:, None]
    estimator = slimsvm.SVR(kernel=kernel).fit(X, np.ones(10))
    assert estimator.n_basis_ == 0
    estimator.to_onnx(tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", X)["prediction"].tolist() == [1.0] * 10


def test_26_classes(tmp_path):
    X = np.random.default_rng(0).normal(size=(520, 4)).astype(np.float32)
    X, y = X[:260], np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[np.arange(260) % 26]
    for multi_class in ("ovo", "crammer-singer"):
        estimator = slimsvm.SVC(gamma=2.0, multi_class=multi_class).fit(X, y)
        estimator.to_onnx(tmp_path / "model.onnx")
        found = run(tmp_path / "model.onnx", X)
        assert_near(found["scores"], estimator.decision_function(X.astype(np.float64)))
        np.testing.assert_array_equal(found["prediction"], estimator.predict(X.astype(np.float64)))


@pytest.mark.parametrize(("kind", "scores"), [("pairs", [1.0, -1.0, 1.0]), ("classes", [1.0, 1.0, 1.0])])
def test_ties_go_to_the_lowest_class(kind, scores, tmp_path):
    """Three classes with a vote each, and with equal scores."""
    options = {"decision_function_shape": "ovo"}
    model = PlainModel(kind, Linear(), 1, None, np.zeros((1, 3)), np.array(scores), np.zeros(0), np.arange(3), options)
    write_onnx(model, tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", [[0.0]])["prediction"].tolist() == [0]


def two_vectors(gap, coef):
    """Two vectors of opposite signs, so far from each other (and from their centre)."""
    vectors = np.array([[0.0], [gap]])
    coefs = np.array([[coef], [-coef]])
    return PlainModel("binary", RBF(1.0), 1, vectors, coefs, np.zeros(1), np.zeros(0), np.arange(2), {})


def test_float32_is_taken_where_it_is_good_enough():
    assert numbers_for(two_vectors(1.0, 1.0)) == SINGLE
    # Squares of thousands leave no digit for a difference of them, and large coefficients cancel where vectors meet.
    assert numbers_for(two_vectors(300.0, 1.0)) == EXACT_DISTANCES
    assert numbers_for(two_vectors(1e-3, 1e6)) == DOUBLE


@pytest.mark.parametrize(("n_far", "eighths"), [(2, 2), (40, 3), (60, 4), (100, 8)])
def test_some_vectors_are_exact_where_the_others_matter_little(n_far, eighths, tmp_path):
    """Far vectors of large coefficients, between many small ones."""
    rng = np.random.default_rng(0)
    n = LEAST_DIVIDED
    vectors, coef = rng.normal(size=(n, 3)), 1e-3 * rng.normal(size=(n, 1))
    far = np.sort(rng.permutation(n)[:n_far])
    vectors[far] = np.linspace(100, 300, n_far)[:, None]
    coef[far] = 2.0 * (-1.0) ** np.arange(n_far)[:, None]
    model = PlainModel("binary", RBF(1.0), 3, vectors, coef, np.zeros(1), np.zeros(0), np.arange(2), {})
    assert numbers_for(model) == EXACT_DISTANCES._replace(exact_eighths=eighths)
    fewer = replace(model, vectors=vectors[: n - 1], coef=coef[: n - 1])
    assert numbers_for(fewer) == EXACT_DISTANCES
    said = write_onnx(model, tmp_path / "model.onnx")
    assert (f"sums in float32; of {eighths} vectors in 8, others in float32" in said) == (eighths < 8)
    X = vectors.astype(np.float32)
    found = run(tmp_path / "model.onnx", X)["scores"]
    np.testing.assert_allclose(found, model.scores(X.astype(np.float64)), atol=5e-6 * 2.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["svc-exact", "svc-linear", "svc-laplacian", "svc-poly", "svr-refine"])
def test_a_graph_of_one_type(name, dtype, tmp_path):
    """All numbers of the graph have the type that was asked for, and the sentence says what float32 costs."""
    model = read_plain_model(MODELS / f"{name}.slim")
    said = write_onnx(model, tmp_path / "model.onnx", dtype)
    assert f", {dtype}, " in said
    assert ("scores differ by at most" in said) == (dtype == "float32" and not model.is_one_product)
    X = np.random.default_rng(0).normal(size=(50, model.n_features)).astype(np.float32)
    found = run(tmp_path / "model.onnx", X)
    scores = found["scores"] if "scores" in found else found["prediction"][:, None]
    exact = model.scores(X.astype(np.float64))
    np.testing.assert_allclose(scores, exact, atol=1e-4 * np.abs(exact).max())


def test_float32_is_taken_where_it_is_not_good_enough_if_it_is_asked_for(tmp_path, monkeypatch):
    """Coefficients cancel: by itself the graph would take float64."""
    rng = np.random.default_rng(0)
    vectors, coef = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    vectors[9], coef[3], coef[9] = vectors[3] + 1e-3, 1e3, -1e3
    model = PlainModel("binary", RBF(0.1), 3, vectors, coef, np.zeros(1), np.zeros(0), np.arange(2), {})
    assert numbers_for(model) != SINGLE
    said = write_onnx(model, tmp_path / "model.onnx", "float32")
    error = float(re.search(r"differ by at most (\S+) of the largest", said)[1])
    assert error > 5e-6
    X = vectors.astype(np.float32)
    exact = model.scores(X.astype(np.float64))
    found = run(tmp_path / "model.onnx", X)["scores"]
    assert np.abs(found - exact).max() < 10 * error * np.abs(exact).max()


def test_a_type_that_graphs_do_not_have_is_refused(tmp_path, capsys):
    estimator = slimsvm.load(MODELS / "svc-exact.slim")
    with pytest.raises(ValueError, match="dtype must be one of 'auto', 'float32', 'float64'; found 'int16'"):
        estimator.to_onnx(tmp_path / "model.onnx", dtype="int16")
    command = ["export", str(MODELS / "svc-exact.slim"), "--output", str(tmp_path / "model.onnx")]
    assert main([*command, "--to", "onnx", "--type", "int16"]) == 1
    assert "--type int16 goes with --to c, found --to onnx" in capsys.readouterr().err
    assert main([*command, "--to", "json", "--type", "float32"]) == 1
    assert "--type goes with --to c or onnx, found --to json" in capsys.readouterr().err
    assert not (tmp_path / "model.onnx").exists()
    assert main([*command, "--to", "onnx", "--type", "float32"]) == 0
    assert "scores differ by at most" in capsys.readouterr().out
    with pytest.raises(TypeError, match="rows goes with to='c', found to='onnx'"):
        slimsvm.export(estimator, tmp_path / "other.onnx", "onnx", rows=np.eye(3))
    with pytest.raises(TypeError, match="no form has an option colour"):
        slimsvm.export(estimator, tmp_path / "other.onnx", "onnx", colour="red")


def test_few_exponentials_are_exact_where_few_coefficients_are_huge(tmp_path):
    """Two vectors that nearly meet cancel, among many of small coefficients."""
    rng = np.random.default_rng(0)
    n = LEAST_DIVIDED
    vectors, coef = rng.normal(size=(n, 3)), rng.normal(size=(n, 1))
    vectors[9], coef[3], coef[9] = vectors[3] + 1e-3, 1e3, -1e3
    model = PlainModel("binary", RBF(0.1), 3, vectors, coef, np.zeros(1), np.zeros(0), np.arange(2), {})
    assert numbers_for(model) == DOUBLE._replace(exact_eighths=2)
    said = write_onnx(model, tmp_path / "model.onnx")
    assert "float64; of 2 vectors in 8, kernel values of the others in float32" in said
    X = vectors.astype(np.float32)
    assert_near(run(tmp_path / "model.onnx", X)["scores"], model.scores(X.astype(np.float64)))


def test_a_graph_of_float64_keeps_its_digits(tmp_path):
    X = (300.0 * np.arange(40) + np.arange(40) % 3)[:, None].astype(np.float32)
    estimator = slimsvm.SVR(gamma=0.5).fit(X, np.arange(40) % 5)
    estimator.to_onnx(tmp_path / "model.onnx")
    assert numbers_for(read_and_save(estimator, tmp_path)).distances == np.float64
    assert_near(run(tmp_path / "model.onnx", X)["prediction"], estimator.predict(X.astype(np.float64)))


@pytest.mark.parametrize("kernel", sorted(set(WITH_FORMULA) - {"linear"}))
def test_every_choice_of_numbers_keeps_its_digits(kernel, tmp_path, monkeypatch):
    """More digits in the sums, and then in the exponentials, are nearer to the estimator's scores."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)).astype(np.float32).astype(np.float64)
    estimator = slimsvm.SVC(kernel=kernel, gamma=0.1, degree=2, coef0=0.5, C=100).fit(X, rng.random(300) < 0.5)
    expected, errors = estimator.decision_function(X)[:, None], []
    halves = EXACT_SUMS._replace(exact_eighths=4), DOUBLE._replace(exact_eighths=4)
    for numbers in (SINGLE, EXACT_DISTANCES, EXACT_SUMS, DOUBLE, *halves):
        monkeypatch.setattr("slimsvm.deploy.onnx_graph.numbers_for", lambda model, rows, numbers=numbers: numbers)
        estimator.to_onnx(tmp_path / "model.onnx")
        found = run(tmp_path / "model.onnx", X)["scores"]
        errors.append(np.abs(found - expected).max() / np.abs(expected).max())
    assert errors[0] > errors[2] > 2 * errors[3]
    assert errors[1] > errors[2]
    assert errors[0] > errors[4]
    assert errors[2] > errors[5]
    assert errors[3] < 1e-7  # scores come out in float32


def read_and_save(estimator, folder):
    estimator.save(folder / "model.slim")
    return read_plain_model(folder / "model.slim")


def test_sequences_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"SequenceSVM's labels depend on each other: slimsvm\.load_predictor"):
        slimsvm.load(MODELS / "sequence.slim").to_onnx(tmp_path / "model.onnx")


def test_the_command_writes_and_refuses(tmp_path, capsys):
    target = tmp_path / "three.onnx"
    assert main(["export", str(MODELS / "svc-three.slim"), "--to", "onnx", "--output", str(target)]) == 0
    assert "three.onnx: ONNX graph of opset 13, classes, kernel rbf" in capsys.readouterr().out
    assert main(["export", str(MODELS / "sequence.slim"), "--to", "onnx", "--output", str(target)]) == 1
    assert "labels depend on each other" in capsys.readouterr().err
    assert main(["export", str(MODELS / "svc-three.slim"), "--to", "onnx", "--name", "x"]) == 1
    assert "--name goes with --to c" in capsys.readouterr().err


def test_without_the_package_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'slimsvm\[onnx\]'"):
        slimsvm.load(MODELS / "svc-exact.slim").to_onnx(tmp_path / "model.onnx")
