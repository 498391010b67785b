"""Whole pipelines by skl2onnx, run by ONNX Runtime."""

import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import slimsvm
from kernel_cases import WITH_FORMULA
from slimsvm import (
    SVC,
    SVR,
    CrossTrainedSVC,
    LearnedAxes,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OrdinalSVC,
    RankSVM,
    SequenceSVM,
)

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")

# What skl2onnx itself warns of is none of ours.
pytestmark = pytest.mark.filterwarnings("ignore:::skl2onnx", "ignore::DeprecationWarning")
OPSETS = 13, 21


@pytest.fixture(scope="module", autouse=True)
def _registered():
    slimsvm.onnx.register()


def problem(n_classes=2, n=300, d=5):
    """Rows in float32 and classes, at least ten of each."""
    X = np.random.default_rng(0).normal(size=(n, d)) * np.arange(1, d + 1)
    order = np.argsort(np.argsort(X[:, 0] + 0.3 * X[:, 1]))
    return X.astype(np.float32), np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))[order * n_classes // n]


def converted(model, X, opset=17, **options):
    """Outputs of the graph by name."""
    graph = skl2onnx.to_onnx(model, X[:1], target_opset={"": opset, "ai.onnx.ml": 3}, **options)
    onnx.checker.check_model(graph, full_check=True)
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def assert_near(found, expected, tolerance=5e-6):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.turns("opset")
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("kernel", WITH_FORMULA)
def test_a_pipeline_is_one_graph(kernel, opset):
    X, y = problem()
    pipeline = make_pipeline(MinMaxScaler(), PCA(3), SVC(kernel=kernel)).fit(X, y)
    found = converted(pipeline, X, opset)
    assert list(found) == ["prediction", "scores"]
    assert found["prediction"].tolist() == pipeline.predict(X).tolist()
    assert_near(found["scores"][:, 0], pipeline.decision_function(X), 2e-5)  # their PCA is float32, too


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_learned_axes_are_part_of_the_graph(dtype):
    X, y = problem()
    X = (10 * X).astype(dtype)
    estimator = SVC(gamma="learn", max_basis=10, random_state=0)
    pipeline = make_pipeline(StandardScaler(), LearnedAxes(SVC(kernel="rbf")), estimator).fit(X, y)
    found = converted(pipeline, X)
    assert found["prediction"].tolist() == pipeline.predict(X).tolist()
    assert_near(found["scores"][:, 0], pipeline.decision_function(X), 1e-13 if dtype is np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_learned_axes_come_first(dtype):
    X, y = problem()
    X = (10 * X).astype(dtype)
    pipeline = make_pipeline(LearnedAxes(SVC(kernel="rbf")), SVC()).fit(X, y)
    assert_near(converted(pipeline, X)["scores"][:, 0], pipeline.decision_function(X), 1e-5)


@pytest.mark.parametrize(
    "labels", ["ABC", [0, 1, 2], [0.0, 1.0, 2.0], [False, True, True]], ids=["texts", "integers", "floats", "truths"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_have_their_type(labels, n_classes):
    X, y = problem(n_classes)
    y = np.array(list(labels))[np.searchsorted(list("ABC"), y)]
    clf = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    found = converted(clf, X)
    assert found["prediction"].tolist() == clf.predict(X).tolist()


@pytest.mark.parametrize("multi_class", ["ovo", "crammer-singer"])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_26_classes(multi_class, shape):
    X, y = problem(26, 520)
    clf = make_pipeline(StandardScaler(), SVC(multi_class=multi_class, decision_function_shape=shape)).fit(X, y)
    found = converted(clf, X)
    scores = clf.decision_function(X)
    assert_near(found["scores"], scores)
    clear = np.sort(scores, axis=1)[:, -1] - np.sort(scores, axis=1)[:, -2] > 1e-4 if shape == "ovr" else slice(None)
    assert found["prediction"][clear].tolist() == clf.predict(X)[clear].tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 26])
def test_probabilities_of_a_calibrated_classifier(n_classes):
    X, y = problem(n_classes, 780)
    y = np.searchsorted(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), y)
    clf = CalibratedClassifierCV(SVC(gamma=0.05), ensemble=False, cv=2).fit(X, y)
    found = converted(clf, X, options={"zipmap": False})
    np.testing.assert_allclose(found["probabilities"], clf.predict_proba(X), atol=1e-5)
    first, second = np.sort(clf.predict_proba(X), axis=1)[:, -2:].T
    clear = second - first > 1e-4
    assert clear.mean() > 0.9
    assert found["label"][clear].tolist() == clf.predict(X)[clear].tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_an_estimator_itself(n_classes):
    """Alone an output of their own; in a stack they are what it asks for."""
    X, y = problem(n_classes)
    pipeline = make_pipeline(StandardScaler(), SVC(probability=True)).fit(X, y)
    found = converted(pipeline, X)
    assert list(found) == ["prediction", "scores", "probabilities"]
    np.testing.assert_allclose(found["probabilities"], pipeline.predict_proba(X), rtol=0, atol=1e-5)
    assert_near(found["scores"], pipeline.decision_function(X).reshape(len(X), -1))
    stacked = StackingClassifier([("a", SVC(probability=True)), ("b", SVC(gamma=0.1, probability=True))], cv=2)
    stacked.fit(X, np.searchsorted(list("ABC"), y))
    found = converted(stacked, X, options={"zipmap": False})
    np.testing.assert_allclose(found["probabilities"], stacked.predict_proba(X), rtol=0, atol=2e-5)
    again = CalibratedClassifierCV(SVC(probability=True), ensemble=False, cv=2).fit(X, np.searchsorted(list("ABC"), y))
    found = converted(again, X, options={"zipmap": False})
    np.testing.assert_allclose(found["probabilities"], again.predict_proba(X), rtol=0, atol=1e-5)


def test_numbers_are_a_column():
    X, _ = problem()
    y = X[:, 0] + np.sin(X[:, 1])
    pipeline = make_pipeline(StandardScaler(), SVR()).fit(X, y)
    found = converted(pipeline, X)
    assert found["prediction"].shape == (300, 1)
    assert_near(found["prediction"][:, 0], pipeline.predict(X))
    stacked = StackingRegressor([("a", SVR()), ("b", SVR(kernel="laplacian"))], Ridge(), cv=2).fit(X, y)
    assert_near(next(iter(converted(stacked, X).values()))[:, 0], stacked.predict(X), 2e-5)


def test_two_estimators_are_in_one_graph():
    """Names in it are each estimator's own, those of the Laplacian kernel's loop, too."""
    X, y = problem()
    model = StackingRegressor(
        [("a", SVR(kernel="laplacian")), ("b", SVR(kernel="laplacian", gamma=0.3))], Ridge(), cv=2
    ).fit(X, X[:, 0])
    assert_near(next(iter(converted(model, X).values()))[:, 0], model.predict(X), 2e-5)
    columns = ColumnTransformer([("first", StandardScaler(), [0, 1, 2])])
    pipeline = make_pipeline(columns, SVC()).fit(X, y)
    assert converted(pipeline, X)["prediction"].tolist() == pipeline.predict(X).tolist()


def test_every_estimator_of_rows():
    X, y = problem(3)
    codes = np.searchsorted(list("ABC"), y)
    for estimator, target, extra in (
        (OrdinalSVC(), codes, {}),
        (CrossTrainedSVC(random_state=0), codes == 1, {}),
        (RankSVM(), codes, {"groups": np.arange(300) // 30}),
        (NuSVC(nu=0.2), codes, {}),
        (NuSVR(), X[:, 0].astype(float), {}),
        (SVC(), np.stack([codes == 0, codes > 1], axis=1).astype(int), {}),
    ):
        estimator.fit(X, target, **extra)
        found, expected = converted(estimator, X), estimator.predict(X)
        if isinstance(estimator, RankSVM | NuSVR):
            assert_near(found["prediction"][:, 0], expected)
        else:
            np.testing.assert_array_equal(found["prediction"], expected)
    outliers = OneClassSVM(nu=0.2).fit(X)
    found, scores = converted(outliers, X), outliers.decision_function(X)
    assert_near(found["scores"][:, 0], scores)
    clear = np.abs(scores) > 1e-5
    np.testing.assert_array_equal(found["prediction"][clear], outliers.predict(X)[clear])


def test_rows_in_float64_keep_their_digits():
    X, y = problem()
    X = X.astype(np.float64)
    pipeline = make_pipeline(StandardScaler(), SVC(C=1000.0)).fit(X, y)
    found = converted(pipeline, X)
    assert found["scores"].dtype == np.float64
    assert_near(found["scores"][:, 0], pipeline.decision_function(X), 1e-9)


def test_what_is_no_graph_is_refused(monkeypatch):
    X, y = problem()
    chains = SequenceSVM().fit([X[:100], X[100:200]], [y[:100], y[100:200]])
    with pytest.raises(ValueError, match=r"SequenceSVM's labels depend on each other: slimsvm\.load_predictor"):
        converted(chains, X)
    with pytest.raises(ValueError, match="target_opset must be at least 13, found 12"):
        converted(SVC().fit(X, y), X, opset=12)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'slimsvm\[onnx\]'"):
        slimsvm.onnx.register()
