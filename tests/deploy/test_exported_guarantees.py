"""Sets and intervals of C headers and graphs are those of the estimator, and JSON has what they follow from."""

import json
import math
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

import slimsvm
from slimsvm import SVC, SVR, LowRank, OneClassSVM, OrdinalSVC
from slimsvm.cli import main

NAMES = ["two", "pairs", "classes", "ordinal", "number", "counts", "quantiles", "one-quantile"]
PROGRAM = """
#include <stdio.h>
#include "model.h"
int main(void)
{
    REAL x[MODEL_N_FEATURES];
    int f, at = 0;
    while (scanf(FORM, &x[at]) == 1) {
        if (++at < MODEL_N_FEATURES) continue;
        at = 0;
        PRINT
        printf("\\n");
    }
    return 0;
}
"""
PRINT_SET = """uint8_t set[MODEL_N_CLASSES]; model_predict_set(x, set);
for (f = 0; f < MODEL_N_CLASSES; ++f) printf("%d ", set[f]);"""
PRINT_INTERVAL = """REAL interval[2]; model_predict_interval(x, interval);
for (f = 0; f < 2; ++f) printf("%.17g ", (double)interval[f]);"""


OWN = {"calibration_size": 0.3, "random_state": 0}
ESTIMATORS = {
    "two": SVC(**OWN),
    "pairs": SVC(**OWN),
    "classes": SVC(loss="logistic", solver=LowRank(15), **OWN),
    "ordinal": OrdinalSVC(**OWN),
    "number": SVR(**OWN),
    "counts": SVR(loss="poisson", solver=LowRank(15), **OWN),
    "quantiles": SVR(loss="quantile", quantile=[0.1, 0.5, 0.9], **OWN),
    "one-quantile": SVR(loss="quantile", quantile=[0.5], **OWN),
}


def labelled_rows(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    value = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.normal(size=300)
    labels = {
        "two": np.where(value > 0.5, "yes", "no"),
        "pairs": np.digitize(value, [0.0, 1.0]),
        "classes": np.digitize(value, [0.0, 1.0]),
        "ordinal": np.digitize(value, [0.0, 0.7, 1.5]),
        "counts": rng.poisson(np.exp(np.clip(value, -2, 2))),
    }
    return X, labels.get(name, value)


@cache
def fitted(name):
    return clone(ESTIMATORS[name]).fit(*labelled_rows(name))


def queries():
    return np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32).astype(np.float64)


def expected_of(model, alpha):
    is_set = hasattr(model, "predict_set")
    return (model.predict_set if is_set else model.predict_interval)(queries(), alpha=alpha), is_set


def of_header(model, rows, tmp_path, **options):
    """Sets or intervals of a compiled header."""
    model.to_c(tmp_path / "model.h", **options)
    is_double = "C99, float64" in (tmp_path / "model.h").read_text()
    is_set = hasattr(model, "predict_set")
    (tmp_path / "main.c").write_text(PROGRAM.replace("PRINT", PRINT_SET if is_set else PRINT_INTERVAL))
    numbers = ["-DREAL=double", '-DFORM="%lf"'] if is_double else ["-DREAL=float", '-DFORM="%f"']
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
    subprocess.run(["cc", *flags, *numbers, "-o", "main", "main.c"], cwd=tmp_path, check=True)
    given = "\n".join(" ".join(map(repr, row)) for row in rows.tolist())
    lines = subprocess.run([tmp_path / "main"], input=given, capture_output=True, text=True, check=True).stdout
    return np.array([line.split() for line in lines.splitlines()], float)


def of_graph(model, rows, tmp_path, **options):
    """Sets or intervals of a graph."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model.to_onnx(tmp_path / "model.onnx", **options)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    rows = rows.astype(np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32)
    (found,) = session.run(["set" if hasattr(model, "predict_set") else "interval"], {"X": rows})
    return found


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["auto", "float64", "int16"])
@pytest.mark.parametrize("name", NAMES)
def test_c_headers(name, dtype, tmp_path):
    model = fitted(name)
    expected, is_set = expected_of(model, 0.1)
    found = of_header(model, queries(), tmp_path, dtype=dtype, alpha=0.1)
    if dtype == "int16":  # whose scores are right to a thousandth
        assert (found != expected).any(axis=1).mean() < 0.03 if is_set else np.abs(found - expected).max() < 0.02
    elif is_set:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.turns("dtype")
@pytest.mark.parametrize("dtype", ["auto", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs(name, dtype, tmp_path):
    model = fitted(name)
    expected, is_set = expected_of(model, 0.05)
    found = of_graph(model, queries(), tmp_path, dtype=dtype, alpha=0.05)
    assert found.shape == expected.shape
    if is_set:
        assert found.dtype == bool
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["header", "header in int16", "header in float64", "graph", "graph in float64"])
@pytest.mark.parametrize("name", ["two", "pairs", "ordinal", "number", "counts", "quantiles"])
def test_rows_held_out_are_within_the_bound(name, form, tmp_path):
    """Also where their scores, or the rows, are rounded to float32: many rows alike may lie at the bound."""
    if form.startswith("header") and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    rows, y = labelled_rows(name)
    rows = np.round(rows) / 7 + 1
    model = clone(fitted(name)).fit(rows, y)
    held = model.calibration_indices_
    of_form = of_header if form.startswith("header") else of_graph
    for alpha in (0.05, 0.3, 0.5):
        found = of_form(
            model, rows[held], tmp_path, dtype=form.split(" in ")[1] if " in " in form else "auto", alpha=alpha
        )
        if hasattr(model, "predict_set"):
            is_right = found[np.arange(len(held)), np.searchsorted(model.classes_, y[held])].astype(bool)
        else:
            is_right = (found[:, 0] <= y[held]) & (y[held] <= found[:, 1])
        assert is_right.sum() >= math.ceil((len(held) + 1) * (1 - alpha) - 1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_json_has_the_rows_held_out(name, tmp_path):
    model = fitted(name)
    model.to_json(tmp_path / "model.json")
    found = json.loads((tmp_path / "model.json").read_text())["nonconformity"]
    place = math.ceil((len(found) + 1) * (1 - 0.25))
    if name == "number":
        half = np.diff(model.predict_interval(queries(), alpha=0.25))[:, 0] / 2
        np.testing.assert_allclose(half, found[place - 1], rtol=1e-9)
    assert found == sorted(found)
    assert len(found) == 90


def test_without_alpha_there_is_none(tmp_path):
    fitted("two").to_c(tmp_path / "model.h")
    assert "predict_set" not in (tmp_path / "model.h").read_text()


@pytest.mark.parametrize(
    ("make", "alpha", "match"),
    [
        (lambda: fitted("two"), 0.001, "alpha=0.001 needs 999 rows held out, found 90"),
        (lambda: fitted("number"), 0, r"alpha must be a number in \(0, 1\), found 0"),
        (lambda: fitted("number"), 1.0, "alpha must be a number"),
        (lambda: SVC().fit([[0.0], [1.0]], [0, 1]), 0.1, "this model was fitted without calibration_size"),
        (
            lambda: OneClassSVM(calibration_size=5).fit(queries()),
            0.1,
            "this model has p-values: use load_predictor or JSON",
        ),
    ],
)
@pytest.mark.parametrize("form", ["c", "onnx"])
def test_what_has_no_sets_is_refused(form, make, alpha, match, tmp_path):
    with pytest.raises(ValueError, match=match):
        slimsvm.export(make(), tmp_path / "model", to=form, alpha=alpha)


def test_the_command(tmp_path, capsys):
    fitted("pairs").save(tmp_path / "model.slim")
    path = str(tmp_path / "model.slim")
    assert main(["export", path, "--to", "c", "--alpha", "0.1"]) == 0
    assert "model_predict_set(" in (tmp_path / "model.h").read_text()
    assert main(["export", path, "--to", "wasm", "--alpha", "0.1"]) != 0
    assert "--alpha goes with --to c or onnx, found --to wasm" in capsys.readouterr().err
