"""C headers in int16 fixed point: what NumPy says they compute, and near to what the estimators do."""

import shutil

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from calibrated_for_tests import assert_agree, calibrated, some_rows
from deploy.test_c_header import form_of, probabilities_of_header, run_header
from fixtures.make_models import MODELS, dense_queries
from slimsvm.cli import main
from slimsvm.deploy.c_fixed_point import EXP2, fixed_point
from slimsvm.deploy.plain_model import PlainModel, read_plain_model
from slimsvm.deploy.predictors import CalibratedPredictor
from slimsvm.estimators._shared.saving import plain_model_of
from slimsvm.kernels import RBF

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
# One of each kernel that there is, and each kind of labels.
NAMES = [
    "svc-exact", "svc-gammas", "svc-laplacian", "svc-laplacian-gammas", "svc-csr", "svc-objects", "svc-three",
    "svc-three-exact", "svc-labels", "svr-refine", "one-class", "ordinal", "rank-swaps", "cross-trained",
]  # fmt: skip


def assert_header_is_as_numpy_says(model, folder, X, form):
    """Up to the last float32 operations, and wherever a feature lies in the middle of two steps."""
    lines, fixed = run_header(folder, X, form), fixed_point(model)
    scores = np.array([line[: model.n_outputs] for line in lines], float)
    expected = fixed.scores(X)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    return lines, expected


@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_model(name, tmp_path):
    queries = dense_queries(name).astype(np.float32).astype(np.float64)
    estimator, model = slimsvm.load(MODELS / f"{name}.slim"), read_plain_model(MODELS / f"{name}.slim")
    assert model.kernel.is_exponential
    estimator.to_c(tmp_path / "model.h", dtype="int16")
    predictor = slimsvm.load_predictor(MODELS / f"{name}.slim")
    form = "labels" if model.kind == "labels" else form_of(predictor)
    lines, scores = assert_header_is_as_numpy_says(model, tmp_path, queries, form)
    exact = model.scores(queries)
    np.testing.assert_allclose(scores, exact, rtol=0, atol=2e-3 * np.abs(exact).max())
    clear = (np.abs(exact) > 0.01 * np.abs(exact).max()).all(axis=1)
    if model.kind in ("binary", "one class"):
        found, expected = [line[1] for line in lines], predictor.predict(queries)
        assert clear.sum() > 1
        for i in np.flatnonzero(clear):
            assert found[i] == str(expected[i]) or float(found[i]) == float(expected[i])


@needs_compiler
@pytest.mark.parametrize("name", ["binary", "binary-laplacian", "pairs", "classes", "labels", "ordinal", "scaled"])
def test_probabilities(name, tmp_path):
    """Those of the header's own scores, whose rounding is said of probabilities, too."""
    estimator = calibrated(name)
    slimsvm.export(estimator, tmp_path / "model.h", to="c", dtype="int16", rows=some_rows())
    fixed = fixed_point(plain_model_of(estimator))
    _, found, predicted = probabilities_of_header(tmp_path, fixed)
    by_numpy, exact = CalibratedPredictor(fixed).predict_proba(some_rows()), estimator.predict_proba(some_rows())
    assert_agree(found, by_numpy, predicted if fixed.kind in ("binary", "labels") else None)
    said = f"probabilities by at most {np.abs(by_numpy - exact).max():.1e}"
    assert said in (tmp_path / "model.h").read_text()
    np.testing.assert_allclose(found, exact, rtol=0, atol=0.05)


@needs_compiler
@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(clip=True)], ids=repr)
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_scaling_costs_nothing(kernel, scaler, tmp_path):
    """It is part of the steps; features beyond a scaler's range are cut as it does."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(120, 3)) * [1.0, 100.0, 0.01] + [0.0, 5000.0, 3.0]).astype(np.float32).astype(np.float64)
    pipeline = make_pipeline(scaler, slimsvm.SVR(kernel=kernel)).fit(X[:60], X[:60, 0] + X[:60, 1] / 100)
    slimsvm.export(pipeline, tmp_path / "model.h", to="c", dtype="int16")
    _, scores = assert_header_is_as_numpy_says(plain_model_of(pipeline), tmp_path, X, "numbers")
    expected = pipeline.predict(X)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=0, atol=2e-3 * np.abs(expected - expected.mean()).max())


@needs_compiler
def test_rows_far_from_all_vectors_have_kernel_values_of_0(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    estimator = slimsvm.SVR(gamma=np.array([1.0, 0.1, 1e-12])).fit(X, X[:, 0])
    estimator.to_c(tmp_path / "model.h", dtype="int16")
    far = np.array([[1e30, 0, 0], [0, -1e30, 0], [9.0, 0, 0], [0, 0, 1e3]])
    lines = np.array(run_header(tmp_path, far, "numbers"), float)[:, 0]
    constant = np.float32(estimator.intercept_[0])
    assert lines[:3].tolist() == [constant] * 3
    assert lines[3] == pytest.approx(estimator.predict([[0, 0, 0]])[0], abs=2e-3)


def test_powers_of_2_are_right():
    rest = np.linspace(0, 1, 1001)
    value = sum((-1) ** n * c / 2**31 * rest**n for n, c in enumerate(EXP2))
    np.testing.assert_allclose(value, 2.0**-rest, rtol=2e-7)


def test_50_vectors_of_8_features_take_half_the_bytes(tmp_path):
    rng = np.random.default_rng(0)
    parts = {"vectors": rng.normal(size=(50, 8)), "coef": np.ones((50, 1)), "intercept": np.zeros(1)}
    model = PlainModel("binary", RBF(0.2), 8, plain=np.zeros(0), classes=np.arange(2), options={}, **parts)
    said = slimsvm.deploy.writer_of("c")(model, tmp_path / "model.h", dtype="int16")
    assert (
        "C99 header, int16, binary, kernel rbf, 50 vectors of 8 features, 1 score, 972 bytes of constants; on 50"
        in said
    )


def test_the_error_is_measured_on_rows(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 0] > 0).astype(int)
    slimsvm.SVC(C=100.0).fit(X, y).save(tmp_path / "model.slim")
    rows = "\n".join(["a,b,c,label", *(f"{a},{b},{c},{label}" for (a, b, c), label in zip(X, y, strict=True))])
    (tmp_path / "rows.csv").write_text(rows + "\n")
    argv = ["export", str(tmp_path / "model.slim"), "--to", "c", "--type", "int16"]
    assert main([*argv, "--rows", str(tmp_path / "rows.csv")]) == 0
    model, X = read_plain_model(tmp_path / "model.slim"), X.astype(np.float32).astype(np.float64)
    exact, found = model.scores(X), fixed_point(model).scores(X)
    n_other = np.count_nonzero((exact > 0) != (found > 0))
    error = np.abs(exact - found).max() / np.abs(exact).max()
    said = f"on 200 rows given scores differ by at most {error:.1e} of the largest; {n_other} predictions differ"
    assert said in capsys.readouterr().out
    assert said in (tmp_path / "model.h").read_text()
    assert main(argv) == 0
    assert "on 109 rows near the vectors" in capsys.readouterr().out or model.coef.shape[0] != 109
    assert main(["export", str(tmp_path / "model.slim"), "--to", "json", "--type", "int16"]) == 1
    assert "--type goes with --to c or onnx, found --to json" in capsys.readouterr().err


def test_what_fixed_point_cannot_do_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = X[:, 0] > 0
    clf = slimsvm.SVC().fit(X, y)
    for estimator, options, words in (
        (slimsvm.SVC(kernel="poly").fit(X, y), {"dtype": "int16"}, "RBF kernel and the Laplacian one, found poly"),
        (slimsvm.SVC(gamma=1.0).fit(1e6 * X, y), {"dtype": "int16"}, "too far apart for int16: take float32"),
        (clf, {"dtype": "int8"}, "dtype must be one of 'auto', 'float32', 'float64', 'int16'; found 'int8'"),
        (clf, {"dtype": "int16", "rows": X[:, :1]}, "rows must be some of 2 features"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.to_c(tmp_path / "model.h", **options)
