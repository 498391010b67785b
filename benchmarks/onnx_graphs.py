"""ONNX graphs beside ONNX Runtime's own SVMClassifier of the same model, and how far their scores are from float64.

Median microseconds of processor time a row, one thread, batches of 4,096 test rows, interleaved runs.
docs/deploy/onnx.md has the table.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from slimsvm import SVC
from slimsvm.cli import options
from slimsvm.datasets import load
from slimsvm.deploy.onnx_graph import write_onnx
from slimsvm.deploy.onnx_numbers import numbers_for
from slimsvm.deploy.plain_model import PlainModel
from slimsvm.estimators._shared.saving import plain_model_of

# Large C make coefficients that cancel.
MODELS = {
    "covtype, C = 1": ("covtype", {"C": 1.0}),
    "covtype, C = 32": ("covtype", {"C": 32.0}),
    "covtype, C = 300": ("covtype", {"C": 300.0}),
    "adult, C = 1": ("adult", {"C": 1.0, "gamma": 0.05}),
    "adult, C = 100": ("adult", {"C": 100.0, "gamma": 0.05}),
    "mnist-38, C = 10": ("mnist-38", {"C": 10.0, "gamma": 0.02}),
}
TRAINED, BATCH = 8_000, 4_096


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of ``python -m benchmarks onnx``."""
    number = options.positive_integer
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS), help="sets and C")
    parser.add_argument("--vectors", type=number, default=500, help="in a model (%(default)s)")
    parser.add_argument("--runs", type=number, default=9, help="of each graph (%(default)s)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Train each model, and score its test rows in both ways.

    Returns
    -------
    dict
        ``table``: one row per model.
    """
    return {"table": [measure(name, args.vectors, args.runs) for name in args.models]}


def measure(name: str, n_vectors: int, n_runs: int) -> dict[str, Any]:
    """Times, and the largest error of a score over the largest score."""
    name_of_set, params = MODELS[name]
    data = load(name_of_set)
    X, rows = (_dense(part) for part in (data.X_train[:TRAINED], data.X_test[:BATCH]))
    clf = SVC(solver="refine", max_basis=n_vectors, random_state=0, **params).fit(X, data.y_train[:TRAINED])
    model, rows = plain_model_of(clf), np.resize(rows, (BATCH, rows.shape[1]))
    exact = model.scores(rows.astype(np.float64))
    with TemporaryDirectory() as folder:
        sessions = []
        for dtype in ("auto", "float32"):
            write_onnx(model, Path(folder) / "model.onnx", dtype)
            sessions.append(_session((Path(folder) / "model.onnx").read_bytes()))
    sessions.append(_session(svm_classifier(model)))
    seconds = _medians(sessions, rows, n_runs)
    ours, single = (session.run(["scores"], {"X": rows})[0] for session in sessions[:2])
    theirs = sessions[2].run(["scores"], {"X": rows})[0][:, 1:]
    largest = np.abs(exact).max()
    return {
        "model": name,
        "features": model.n_features,
        "vectors": len(model.coef),
        "numbers": str(numbers_for(model)),
        "us": round(1e6 * seconds[0] / BATCH, 2),
        "float32_us": round(1e6 * seconds[1] / BATCH, 2),
        "SVMClassifier_us": round(1e6 * seconds[2] / BATCH, 2),
        "ratio": round(seconds[2] / seconds[0], 1),
        "float32_ratio": round(seconds[2] / seconds[1], 1),
        "error": f"{np.abs(ours - exact).max() / largest:.1e}",
        "float32_error": f"{np.abs(single - exact).max() / largest:.1e}",
        "SVMClassifier_error": f"{np.abs(np.abs(theirs) - np.abs(exact)).max() / largest:.1e}",
    }


def svm_classifier(model: PlainModel) -> bytes:
    """The same model as one node of ``ai.onnx.ml``."""
    from onnx import TensorProto, helper

    n = len(model.coef)
    node = helper.make_node(
        "SVMClassifier", ["X"], ["labels", "scores"], domain="ai.onnx.ml", classlabels_ints=[0, 1], kernel_type="RBF",
        kernel_params=[float(model.kernel.gamma), 0.0, 3.0], post_transform="NONE",
        coefficients=model.coef[:, 0].tolist(), rho=model.intercept.tolist(), vectors_per_class=[n // 2, n - n // 2],
        support_vectors=model.dense_vectors().ravel().tolist(),
    )  # fmt: skip
    rows = helper.make_tensor_value_info("X", TensorProto.FLOAT, ["n", model.n_features])
    outputs = [
        helper.make_tensor_value_info("labels", TensorProto.INT64, ["n"]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 2]),
    ]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
    graph = helper.make_graph([node], "classifier", [rows], outputs)
    return helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()


def _session(content: bytes) -> Any:
    import onnxruntime

    one_thread = onnxruntime.SessionOptions()
    one_thread.intra_op_num_threads = one_thread.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(content, one_thread, providers=["CPUExecutionProvider"])


def _medians(sessions: list[Any], rows: np.ndarray, n_runs: int) -> list[float]:
    """Median seconds of processor time of a run of each, in turns."""
    seconds: list[list[float]] = [[] for _ in sessions]
    for turn in range(n_runs + 1):
        for session, of_session in zip(sessions, seconds, strict=True):
            begun = time.process_time()
            session.run(None, {"X": rows})
            if turn:  # the first one allocates
                of_session.append(time.process_time() - begun)
    return [float(np.median(of_session)) for of_session in seconds]


def _dense(X: Any) -> np.ndarray:
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, np.float32)
