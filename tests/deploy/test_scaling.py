"""Pipelines of scalers and an estimator: one file, and one export, which take rows as they are."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

import slimsvm
from deploy.test_c_header import run_header
from deploy.test_onnx import run
from slimsvm import modelfile
from slimsvm.deploy.plain_model import read_plain_model
from slimsvm.estimators._shared.pipeline_steps import SCALERS, scaling_of

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
# Each scaler by itself, in ways that need other attributes, and one behind the other.
CHAINS = {
    "standard": [StandardScaler()],
    "standard-mean": [StandardScaler(with_std=False)],
    "standard-std": [StandardScaler(with_mean=False)],
    "minmax": [MinMaxScaler((-1, 2))],
    "minmax-clip": [MinMaxScaler(clip=True)],
    "maxabs": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust-plain": [RobustScaler(with_centering=False, with_scaling=False)],
    "two": [MinMaxScaler(clip=True), StandardScaler()],
    "three": [MinMaxScaler((1, 2), clip=True), StandardScaler(), MinMaxScaler((0.2, 0.5), clip=True)],
}


def problem(n=60):
    """Features of very different sizes; the last rows lie outside the range of those before."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 20, 4)) * [1.0, 100.0, 1e-3, 5.0] + [0.0, 2000.0, 1.0, -3.0]
    X[n:] = X[n:] * 1.5 - [0.0, 900.0, 0.4, 0.0]
    X = X.astype(np.float32).astype(np.float64)
    return X[:n], np.array(["no", "yes"])[(X[:n, 0] + X[:n, 1] / 100 > 20).astype(int)], X


def fitted(chain, estimator):
    X, y, _ = problem()
    return make_pipeline(*CHAINS[chain], estimator).fit(X, y)


def assert_near(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6 * np.abs(expected).max())


def test_every_scaler_is_among_them():
    assert {type(step).__name__ for chain in CHAINS.values() for step in chain} == set(SCALERS)


@pytest.mark.parametrize("chain", CHAINS)
def test_scalers_are_one_step(chain):
    X, y, rows = problem()
    scalers = [scaler for _, scaler in make_pipeline(*CHAINS[chain], "passthrough").fit(X, y).steps[:-1]]
    expected = rows
    for scaler in scalers:
        expected = scaler.transform(expected)
    scaling = scaling_of(scalers)
    np.testing.assert_allclose(scaling.rows(rows), expected, rtol=1e-12, atol=1e-11)
    assert (scaling.low is None) == ("clip" not in chain and chain not in ("two", "three"))


@pytest.mark.parametrize("chain", CHAINS)
def test_a_pipeline_is_one_file(chain, tmp_path):
    pipeline, rows = fitted(chain, slimsvm.SVC(C=10.0)), problem()[2]
    slimsvm.save(pipeline, tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    assert isinstance(loaded, Pipeline)
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    np.testing.assert_array_equal(loaded.decision_function(rows), pipeline.decision_function(rows))
    for (_, ours), (_, theirs) in zip(loaded.steps[:-1], pipeline.steps[:-1], strict=True):
        assert ours.get_params() == theirs.get_params()
        np.testing.assert_equal(vars(ours), vars(theirs))
    predictor = slimsvm.load_predictor(tmp_path / "model.slim")
    assert_near(predictor.decision_function(rows), pipeline.decision_function(rows))
    assert_near(predictor.decision_function(sp.csr_array(rows)), pipeline.decision_function(rows))
    np.testing.assert_array_equal(predictor.predict(rows), pipeline.predict(rows))


@needs_compiler
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("chain", ["standard", "minmax-clip", "three"])
def test_a_c_header_scales(kernel, chain, tmp_path):
    pipeline, rows = fitted(chain, slimsvm.SVC(kernel=kernel)), problem()[2]
    slimsvm.export(pipeline, tmp_path / "model.h", to="c", name="model")
    is_double = "const double *x" in (tmp_path / "model.h").read_text()
    lines = run_header(tmp_path, rows, "strings", is_double)
    assert_near(np.array([line[0] for line in lines], float), pipeline.decision_function(rows))
    assert [line[1] for line in lines] == pipeline.predict(rows).tolist()


@needs_compiler
def test_a_large_offset_costs_no_digits_in_c(tmp_path):
    """Years: an offset of 1,000 spreads, which float32 does not have exactly."""
    X = 2000.1 + 2.0 * np.random.default_rng(0).normal(size=(80, 2))
    X = X.astype(np.float32).astype(np.float64)
    pipeline = make_pipeline(StandardScaler(), slimsvm.SVR(gamma=3.0)).fit(X, np.sin(3 * X[:, 0]))
    slimsvm.export(pipeline, tmp_path / "model.h", to="c", dtype="float32")
    scores = np.array([line[0] for line in run_header(tmp_path, X, "numbers")], float)
    assert_near(scores, pipeline.predict(X))


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("chain", ["standard", "minmax-clip", "three"])
def test_an_onnx_graph_scales(kernel, chain, tmp_path):
    pytest.importorskip("onnxruntime")
    pipeline, rows = fitted(chain, slimsvm.SVC(kernel=kernel)), problem()[2]
    slimsvm.export(pipeline, tmp_path / "model.onnx", to="onnx")
    found = run(tmp_path / "model.onnx", rows)
    assert_near(found["scores"][:, 0], pipeline.decision_function(rows))
    assert found["prediction"].tolist() == pipeline.predict(rows).tolist()


def test_json_says_the_scaling(tmp_path):
    pipeline = make_pipeline(MinMaxScaler(clip=True), slimsvm.SVR())
    X, _, rows = problem()
    pipeline.fit(X, X[:, 0])
    slimsvm.export(pipeline, tmp_path / "model.json", to="json")
    model = json.loads((tmp_path / "model.json").read_text())
    assert model["version"] == 2
    scaling = {name: np.array(values) for name, values in model["scaling"].items()}
    scaled = np.clip((rows - scaling["offset"]) * scaling["factor"], scaling["low"], scaling["high"])
    squares = ((scaled[:, None] - np.array(model["vectors"])) ** 2).sum(axis=2)
    scores = np.exp(-model["kernel"]["gamma"] * squares) @ np.array(model["coef"]) + model["intercept"]
    assert_near(scores[:, 0], pipeline.predict(rows))


def test_files_of_before_are_read():
    """As the version that introduced them wrote one: it stays as it is when the code changes."""
    folder = Path(__file__).parents[1] / "fixtures" / "pipelines"
    stored = json.loads((folder / "minmax-clip-standard-svc.json").read_text())
    path = folder / "minmax-clip-standard-svc.slim"
    pipeline, predictor = slimsvm.load(path), slimsvm.load_predictor(path)
    assert [name for name, _ in pipeline.steps] == ["minmaxscaler", "standardscaler", "svc"]
    for model in (pipeline, predictor):
        np.testing.assert_allclose(model.decision_function(stored["rows"]), stored["scores"], rtol=1e-9, atol=1e-9)


def test_names_of_features_are_kept(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, _ = problem()
    frame = pd.DataFrame(X, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), slimsvm.SVC()).fit(frame, y)
    slimsvm.save(pipeline, tmp_path / "model.slim")
    loaded = slimsvm.load(tmp_path / "model.slim")
    assert loaded.feature_names_in_.tolist() == list("abcd")
    assert loaded.predict(frame).tolist() == pipeline.predict(frame).tolist()


def test_readers_of_before_refuse_it(tmp_path, monkeypatch):
    slimsvm.save(fitted("standard", slimsvm.SVC()), tmp_path / "model.slim")
    monkeypatch.setattr(modelfile, "VERSIONS", (1,))
    with pytest.raises(slimsvm.ModelFileError, match="format version 2; this version of slimsvm reads 1"):
        slimsvm.load(tmp_path / "model.slim")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: make_pipeline(PCA(2), slimsvm.SVC()), "found a PCA: slimsvm.save(pipeline[-1], path)"),
        (lambda: make_pipeline(StandardScaler(), PCA(2)), "a fitted estimator of slimsvm, found PCA"),
        (lambda: make_pipeline(StandardScaler(), slimsvm.SVC(kernel="precomputed")), "a matrix of kernel values"),
        (lambda: GridSearchCV(slimsvm.SVC(), {"C": [1.0]}, cv=2), "found a GridSearchCV: give its best_estimator_"),
    ],
)
def test_what_a_file_cannot_hold_is_refused(make, words, tmp_path):
    X, y, _ = problem()
    model = make()
    is_square = isinstance(model, Pipeline) and getattr(model[-1], "kernel", None) == "precomputed"
    model.fit(X @ X.T if is_square else X, y)
    for write in (slimsvm.save, lambda model, path: slimsvm.export(model, path, to="json")):
        with pytest.raises(TypeError) as caught:
            write(model, tmp_path / "model.slim")
        assert words in str(caught.value)
    assert not (tmp_path / "model.slim").exists()


def test_options_of_another_form_are_refused(tmp_path):
    with pytest.raises(TypeError, match="dtype goes with to='c' or 'onnx', found to='json'"):
        slimsvm.export(slimsvm.SVC().fit(*problem()[:2]), tmp_path / "model.json", to="json", dtype="int16")


def test_sequences_have_no_scaling(tmp_path):
    X, y, _ = problem()
    pipeline = make_pipeline(StandardScaler(), slimsvm.SequenceSVM()).fit(X, y, sequencesvm__lengths=[30, 30])
    with pytest.raises(TypeError, match=r"cannot hold scalers before a SequenceSVM.*save pipeline\[-1\]"):
        slimsvm.save(pipeline, tmp_path / "model.slim")


@pytest.mark.parametrize(
    ("part", "values"),
    [
        ("offset", np.zeros(3)),
        ("offset", np.array([0.0, np.nan, 0.0, 0.0])),
        ("factor", np.array([1.0, 0.0, 1.0, 1.0])),
        ("factor", np.ones(4, np.float32)),
        ("low", np.zeros(4)),
        ("high", np.full(4, -1.0)),
    ],
)
def test_a_scaling_that_does_not_fit_is_refused(part, values, tmp_path):
    """A file with a right checksum may hold anything."""
    slimsvm.save(fitted("minmax-clip" if part == "high" else "standard", slimsvm.SVC()), tmp_path / "model.slim")
    header, arrays = modelfile.read_model(tmp_path / "model.slim")
    modelfile.write_model(tmp_path / "other.slim", header, arrays | {f"scaling_{part}": values}, version=2)
    with pytest.raises(ValueError, match="the scaling"):
        read_plain_model(tmp_path / "other.slim")


@pytest.mark.parametrize("change", [{"class": "PCA"}, {"params": {"nonsense": 1}}, {"fitted": {"__class__": 1}}])
def test_scalers_that_files_do_not_have_are_refused(change, tmp_path):
    slimsvm.save(fitted("standard", slimsvm.SVC()), tmp_path / "model.slim")
    header, arrays = modelfile.read_model(tmp_path / "model.slim")
    header["scaling"]["steps"][0] |= change
    modelfile.write_model(tmp_path / "other.slim", header, arrays, version=2)
    with pytest.raises(slimsvm.ModelFileError, match="not a scaling this version knows"):
        slimsvm.load(tmp_path / "other.slim")
