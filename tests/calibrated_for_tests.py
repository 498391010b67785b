"""Calibrated models, one for each kind of decision that has probabilities, and rows that float32 holds."""

from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from slimsvm import SVC, CrossTrainedSVC, LowRank, OrdinalSVC, Refine
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.kernels import Linear

NAMES = [
    "binary", "binary-linear", "binary-tiny", "binary-laplacian", "cross-trained", "pairs", "pairs-ovo", "pairs-26",
    "classes", "classes-ovo", "labels", "ordinal", "ordinal-outer", "ordinal-two", "scaled",
    "logistic", "softmax", "logistic-labels",
]  # fmt: skip


def some_rows():
    """300 rows of 3 features, some of them far out."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    X[:10] *= 20.0
    return X.astype(np.float32).astype(np.float64)


@cache
def calibrated(name):
    """The estimator of a name, fitted."""
    X, rng = some_rows(), np.random.default_rng(1)
    value = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=len(X))
    three = np.array(["low", "middle", "high"])[np.digitize(value, [0.0, 1.0])]
    estimators = {
        "binary": (SVC(probability=True), value > 0.5),
        "binary-linear": (SVC(kernel="linear", probability=True), value > 0.5),
        "binary-tiny": (SVC(C=1e-6, probability=True), value > 0.7),
        "binary-laplacian": (SVC(kernel="laplacian", max_basis=20, random_state=0, probability=True), value > 0.0),
        "cross-trained": (CrossTrainedSVC(random_state=0, probability=True), value > 0.5),
        "pairs": (SVC(probability=True), three),
        "pairs-ovo": (SVC(probability=True, decision_function_shape="ovo"), three),
        "pairs-26": (SVC(probability=True), np.argsort(np.argsort(value)) * 26 // len(X)),
        "classes": (SVC(solver=Refine(max_basis=15), random_state=0, probability=True), three),
        "classes-ovo": (
            SVC(solver=Refine(max_basis=15), random_state=0, probability=True, decision_function_shape="ovo"),
            three,
        ),
        "labels": (SVC(probability=True), np.stack([value > 0, value > 1, X[:, 2] > 0], axis=1).astype(int)),
        "ordinal": (OrdinalSVC(probability=True), np.digitize(value, [0.0, 0.7, 1.5])),
        "ordinal-outer": (OrdinalSVC(probability=True, classes=range(6)), np.digitize(value, [0.0, 0.7]) + 2),
        "ordinal-two": (OrdinalSVC(probability=True), (value > 0.5).astype(int)),
        "logistic": (SVC(loss="logistic", max_basis=15, random_state=0), value > 0.5),
        "softmax": (SVC(loss="logistic", max_basis=15, random_state=0), three),
        "logistic-labels": (
            SVC(loss="logistic", solver=LowRank(20), random_state=0),
            np.stack([value > 0, value > 1, X[:, 2] > 0], axis=1).astype(int),
        ),
        "scaled": (make_pipeline(StandardScaler(), SVC(probability=True)), three),
    }
    estimator, y = estimators[name]
    return estimator.fit(X, y)


def steep_models():
    """Models of a line, with steep odds on a side and a constant, or next to none; and of differences of classes."""
    two = PlainModel("binary", Linear(), 1, None, np.ones((1, 1)), np.zeros(1), np.zeros(0), np.arange(2), {})
    three = replace(two, kind="classes", coef=np.array([[0.0, 1.0, -2.0]]), intercept=np.zeros(3), classes=np.arange(3))
    return [
        replace(two, calibration=np.array([[3e3, 0.5, 7.0, 2.0]])),
        replace(two, calibration=np.array([[0.5, 3e3, 7.0, -2.0]])),
        replace(two, calibration=np.array([[1e-6, 1e-4, 0.0, 0.0]])),
        replace(two, calibration=np.array([[1e-6, 1e-4, 0.0, 4.0]])),
        replace(three, calibration=np.array([[0.5, 2.0, 0.0, 1.0], [1e3, 1e3, 0.0, -1.0], [1.0, 0.0, 0.0, 0.0]])),
        replace(three, calibration=np.array([[2.0, 2.0, 0.0, 1.0], [1e3, 1e3, 0.0, -1.0], [1.0, 1.0, 1.0, 0.0]])),
        replace(three, calibration=np.array([[2.0, 2.0, 0.0, 1.0], [1e3, 1e3, 0.0, -1.0], [1.0, 1.0, 0.0, 0.0]])),
    ]


def assert_agree(found, expected, predicted=None, tolerance=1e-5):
    """Probabilities are the estimator's; ``predicted`` are places of two classes, or 0 and 1 for each label."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    assert np.min(found) >= 0.0
    if predicted is not None:
        above = found[:, 1] if np.ndim(predicted) == 1 else found
        np.testing.assert_array_equal(above > 0.5, np.asarray(predicted) == 1)
